"""Derivatives of the Lagrangian on the configuration manifold, without accelerations and mass matrices.

In the variables (y, w) of `flight` every freedom is either a straight line (dy = w dt) or a rotation (w =
omega in body axes). With the velocity V_i of each body, the momentum F_i and weight W_i of all that it
carries, external forces included, zeta_k the motion of the body for w_k = 1 and V_lambda = V_i - v_J,

    p_k = dL/dw_k = F_i . zeta_k                                                                        (1)
    f_k = dL/dy_k = (W_i - V_lambda x* F_i) . zeta_k + F_i . d_k v_J                                       (2)

d_k is the derivative along freedom k with w held, of a rotation along a turn in body axes. (2) is since
moving the body along zeta changes the velocity that its parent gives it by V_lambda x zeta, and with it the
momentum of all it carries. One pass outward and one inward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.dense import dot, unit
from dalembert.algorithms.external_forces import ExternalForces, body_forces
from dalembert.algorithms.flight import from_centroidal, to_centroidal
from dalembert.algorithms.integrators.carried import independent
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.joints import Composite, Free, Joint, Planar, SphereInCylinder, Spherical, UserDefined
from dalembert.model.joints.derived import DerivedJoint
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero
from dalembert.spatial import Force, Motion, Placement, Vec3

__all__ = ["Slopes", "centroidal_forces", "joint_forces", "rotation_places", "slopes"]


class Slopes(NamedTuple):
    """p = dL/dw [kg m^2/s or kg m/s] and f = dL/dy with external forces [N m or N], in the order of v."""

    p: list[Scalar]
    f: list[Scalar]


def slopes(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    *,
    tau: Sequence[Scalar] | None = None,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    weightless: Sequence[int] = (),
) -> Slopes:
    """Compute Eqs (1) and (2) in the state (q, v); `tau`: joint forces to be added to f.

    `weightless`: indices of bodies on the world that gravity leaves alone, with all that they carry.
    """
    f_x = body_forces(tree, q, external_forces, external_frame, time)

    def outward(body: Body, parent: tuple[Motion, Vec3]) -> tuple[tuple[Motion, Vec3], _Moving]:
        joint = body.jcalc(q, v, time)
        V_parent = joint.X.apply(parent[0])
        falls = Vec3.zero() if body.index in weightless else parent[1]
        V, g = V_parent + joint.v_J, joint.X.rotate_to_child(falls)
        W = Force(body.inertia.h.cross(g), g * body.inertia.mass)
        own = _Moving(joint.X, joint.S, V_parent, body.inertia * V, W if f_x is None else W + f_x[body])
        return (V, g), own

    moving = tree.outward(outward, (Motion.zero(), tree.gravity))

    def inward(body: Body, carried: tuple[Force, Force]) -> tuple[tuple[Force, Force], Slopes]:
        own = moving[body]
        F, W = own.momentum + carried[0], own.weight + carried[1]
        own_slopes = _joint_slopes(body, q, v, own.S, F, W - own.V_parent.cross(F), time)
        return (own.X.inverse_apply(F), own.X.inverse_apply(W)), own_slopes

    found = list(tree.inward(inward, (Force.zero(), Force.zero()))[0])
    p, f = tree.collect([own.p for own in found]), tree.collect([own.f for own in found])
    if tau is not None:
        f = [a + b for a, b in zip(f, centroidal_forces(tree, q, tau), strict=True)]
    return Slopes(p, f)


def centroidal_forces(tree: Tree, q: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
    """Return the forces or momenta along w that have the same power as those along v."""
    found = list(tau)
    for body in independent(tree):
        own_q, own = body.own_q(q), tau[body.v_slice]
        columns = (from_centroidal(body, own_q, unit(body.nv, k))[1] for k in range(body.nv))
        found[body.v_slice] = [dot(own, column) for column in columns]
    return found


def joint_forces(tree: Tree, q: Sequence[Scalar], carried: Sequence[Scalar]) -> list[Scalar]:
    """Return the forces or momenta along v that have the same power as those along w."""
    found = list(carried)
    for body in independent(tree):
        own_q, own = body.own_q(q), carried[body.v_slice]
        columns = (to_centroidal(body, own_q, unit(body.nv, k))[1] for k in range(body.nv))
        found[body.v_slice] = [dot(own, column) for column in columns]
    return found


class _Moving(NamedTuple):
    X: Placement
    S: tuple[Motion, ...]
    V_parent: Motion
    momentum: Force
    weight: Force


def _joint_slopes(
    body: Body,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    S: tuple[Motion, ...],
    F: Force,
    W: Force,
    time: Scalar | None,
) -> Slopes:
    """Compute (1) and (2) of one joint: F is the momentum it carries, W the factor of zeta in (2)."""
    own_q, own_v = body.own_q(q), body.own_v(v)
    w = to_centroidal(body, own_q, own_v)[1]
    rotor = [m * u for m, u in zip(body.armature, own_v, strict=True)]

    def motion(x: list[Scalar]) -> tuple[Motion, list[Scalar]]:
        now = from_centroidal(body, x, w)[1]
        return body.joint.velocity(x, now, time), now

    turning = _rotor_forces(body, own_v, rotor)
    p, f = [], []
    for k in range(body.nv):
        column = from_centroidal(body, own_q, unit(body.nv, k))[1]
        zeta = combination(S, column)
        along = body.joint.position_rate(own_q, column)
        _, (changed, faster) = directional_derivative(motion, own_q, along, constants=[*w])
        p.append(F.dot(zeta) + dot(rotor, column))
        f.append(W.dot(zeta) + F.dot(changed) + dot(rotor, faster) + dot(turning, column))
    return Slopes(p, f)


def _rotor_forces(body: Body, v: list[Scalar], rotor: list[Scalar]) -> list[Scalar]:
    """Return the forces that make armature m add only m dv/dt to the joint force, as in `mass_matrix`.

    Where v is not a rate of coordinates, the energy m v^2 / 2 would add gyroscopic forces, v x* (m v).
    """
    forces: list[Scalar] = [0.0] * body.nv
    if all(is_zero(x) for x in rotor):
        return forces
    if isinstance(body.joint, Planar):
        omega, x, y = v
        _, p_x, p_y = rotor
        return [x * p_y - y * p_x, -(omega * p_y), omega * p_x]
    if isinstance(body.joint, Free):
        motion = Motion(Vec3(*v[:3]), Vec3(*v[3:]))
        return motion.cross(Force(Vec3(*rotor[:3]), Vec3(*rotor[3:]))).to_list()
    for place in _rotations(body.joint, body):
        own = slice(place, place + 3)
        forces[own] = list(Vec3(*v[own]).cross(Vec3(*rotor[own])))
    return forces


def rotation_places(tree: Tree) -> list[int]:
    """Return the first index in v of each angular velocity that is not a rate of coordinates."""
    found = []
    for body in independent(tree):
        if isinstance(body.joint, Free):
            found.append(body.v_slice.start)
        elif not isinstance(body.joint, Planar):
            found += [body.v_slice.start + place for place in _rotations(body.joint, body)]
    return found


def _rotations(joint: Joint, body: Body) -> list[int]:
    """Return the rotation places of one joint, relative to its first variable."""
    if isinstance(joint, (Spherical, SphereInCylinder)):
        return [0]
    if isinstance(joint, DerivedJoint):
        return _rotations(joint.joint, body)
    if isinstance(joint, Composite):
        places, start = [], 0
        for member in joint.joints:
            places += [start + place for place in _rotations(member, body)]
            start += member.nv
        return places
    own_way = isinstance(joint, UserDefined) and any(name == "integrate" for name, _ in joint.functions)
    if own_way or isinstance(joint, (Free, Planar)):
        raise ModelError(
            f'integrator "variational": joint "{body.joint_name}" ({body.joint.kind}) has velocities that '
            "are neither rates of its coordinates nor a quaternion's angular velocity; use another joint "
            'there, or another integrator, such as "rk4"'
        )
    return []
