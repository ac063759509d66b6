"""The motion of a tree and its first variations, in one coordinate system for all bodies.

Everything is expressed in an inertial frame that now coincides with that of the tree's root: there the
root's own S are coordinate directions and those of its children constants. For a direction k of joint
j, with lambda the parent of j and v_lambda, a_lambda its motion (the world accelerates by -gravity),

    psi = v_lambda x S_k + dv_J                             change of v with the position               (1)
    chi = a_lambda x S_k + v_lambda x (psi + dv_J) + v_J x dv_J + dS a + dc_J           of a            (2)
    phi = 2 v_lambda x S_k + v_J x S_k + dc_J/dv_k          change of a with the velocity               (3)

where d is the change in successor coordinates (`joint_rates`), zero for a constant S. Seen by an observer
who is displaced with the subtree of j, the force I a + v x* I v that a body of it needs changes by

    I chi + 2 B psi     with the position,        I phi + 2 B S_k     with the velocity                 (4)

2 B m = v x* I m - I (v x m) + m x* I v takes 12 numbers, for it knows only the angular part of m: with
P = v h^T + omega x J, the integral of r' r^T over the mass (J: Euler's tensor), and p the momentum,

    2 B (w, .) = (D w, w x 2p),   D = 2 (tr(P) 1 - P),      and   v x* I v = B v                        (5)

(1) to (4) for constant S: Singh, Russell, Wensing, Efficient analytical derivatives of rigid-body dynamics
using spatial vector algebra (2022); Carpentier, Mansard, Analytical derivatives of rigid body dynamics
algorithms (2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from dalembert.algorithms.derivatives.joint_rates import JointRates, joint_rates
from dalembert.model.body import Body, JointMotion
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Mat3, Motion, Placement, RigidInertia, ScrewChain, Transform, Vec3
from dalembert.spatial.congruence import times_symmetric

__all__ = ["BodyState", "VelocityProducts", "acceleration", "body_state", "changes_of_acceleration"]


@final
@dataclass(frozen=True, slots=True)
class VelocityProducts:
    """2 B of a body or a composite by (5): `matrix` D [kg m^2/s], `momentum` 2 p [kg m/s]."""

    matrix: Mat3
    momentum: Vec3

    @staticmethod
    def of(inertia: RigidInertia, v: Motion) -> VelocityProducts:
        """Return 2 B of a rigid body that moves with v; the factor 2 is in the velocity."""
        w, u, h = v.angular + v.angular, v.linear + v.linear, inertia.h
        P = u.outer(h) + times_symmetric(w, inertia.euler_tensor)
        t = P.trace()
        D = Mat3(t - P.xx, -P.xy, -P.xz, -P.yx, t - P.yy, -P.yz, -P.zx, -P.zy, t - P.zz)
        return VelocityProducts(D, u * inertia.mass + w.cross(h))

    def __add__(self, other: VelocityProducts) -> VelocityProducts:
        return VelocityProducts(self.matrix + other.matrix, self.momentum + other.momentum)

    def __mul__(self, m: Motion) -> Force:
        """Return 2 B m."""
        w = m.angular
        return Force(self.matrix @ w, w.cross(self.momentum))

    def row(self, s: Motion) -> Vec3:
        """Return r with s . (2 B m) = r . (the angular part of m)."""
        return self.matrix.transposed_times(s.angular) + self.momentum.cross(s.linear)


class BodyState(NamedTuple):
    """One body in common coordinates: its motion without dv/dt, and what depends on q and v alone.

    `world`: the acceleration of the world, -gravity; `v_parent`, `v`: of the parent and of the body; `psi` by
    (1), `phi` by (3); `bias`: a - a_lambda at dv/dt = 0; `force`: v x* I v less the external force.
    """

    body: Body
    rates: JointRates
    pose: Transform
    world: Motion
    v_parent: Motion
    v: Motion
    S: list[Motion]
    psi: list[Motion]
    phi: list[Motion]
    bias: Motion
    inertia: RigidInertia
    products: VelocityProducts
    force: Force


def body_state(
    tree: Tree,
    body: Body,
    parent: BodyState | None,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    f_x: PerBody[Force] | None = None,
    time: Scalar | None = None,
) -> BodyState:
    """Return the state of a body from that of its parent; None for the world.

    `f_x`: the external force on each body, in its own coordinates.
    """
    joint = body.jcalc(q, v, time)
    if parent is None:
        pose, v_parent = Transform.identity(), Motion.zero()
        world = Motion(Vec3.zero(), joint.X.rotate_to_child(-tree.gravity))
    else:
        pose, v_parent, world = _compose_pose(parent.pose, joint.X), parent.v, parent.world
    rates, own, to_common = joint_rates(body, q, v, time), body.own_v(v), pose.inverse_apply
    S = [to_common(s) for s in joint.S]
    carried = [v_parent.cross(s) for s in S]
    if body.joint.time_dependent:
        v_J = to_common(joint.v_J)
        drift = v_parent.cross(v_J)
    else:
        v_J, drift = combination(S, own), combination(carried, own)
    v_i = v_parent + v_J
    inertia = to_common(body.inertia)
    products = VelocityProducts.of(inertia, v_i)
    force = products * (v_i * 0.5)  # (5)
    turning = [_product(body, joint, s) + c for s, c in zip(joint.S, rates.bias_by_speed, strict=True)]
    return BodyState(
        body=body,
        rates=rates,
        pose=pose,
        world=world,
        v_parent=v_parent,
        v=v_i,
        S=S,
        psi=[x + to_common(d) for x, d in zip(carried, rates.v_J, strict=True)],  # (1)
        phi=[x + x + to_common(c) for x, c in zip(carried, turning, strict=True)],  # (3)
        bias=drift + to_common(joint.c_J),
        inertia=inertia,
        products=products,
        force=force if f_x is None else force - to_common(f_x[body]),
    )


def acceleration(state: BodyState, a_parent: Motion, a: Sequence[Scalar] | None) -> Motion:
    """Return a_i at dv/dt = a of the model; None for zero."""
    a_i = a_parent + state.bias
    return a_i if a is None else a_i + combination(state.S, state.body.own_v(a))


def changes_of_acceleration(state: BodyState, a_parent: Motion, a: Sequence[Scalar]) -> list[Motion]:
    """Return chi of (2) for each direction of a joint, at dv/dt = a of the model."""
    own, rates, to_common = state.body.own_v(a), state.rates, state.pose.inverse_apply
    v_J = state.v - state.v_parent
    result = []
    for k, s in enumerate(state.S):
        dv_J = to_common(rates.v_J[k])
        inside = to_common(combination(rates.S[k], own) + rates.c_J[k])
        result.append(
            a_parent.cross(s) + state.v_parent.cross(state.psi[k] + dv_J) + v_J.cross(dv_J) + inside
        )
    return result


def _product(body: Body, joint: JointMotion, s: Motion) -> Motion:
    """Return v_J x S_k in successor coordinates: zero if S has one column, since v_J is along it."""
    if body.nv == 1 and not body.joint.time_dependent:
        return Motion.zero()
    return joint.v_J.cross(s)


def _compose_pose(pose: Transform, X: Placement) -> Transform:
    """Return pose @ X, screw by screw."""
    factors = X.factors if isinstance(X, ScrewChain) else (X,)
    for factor in factors:
        pose = pose @ factor
    return pose
