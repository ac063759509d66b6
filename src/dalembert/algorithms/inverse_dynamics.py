"""Inverse dynamics: recursive Newton-Euler, with motions outward and forces inward.

`inverse_dynamics` is Featherstone 2008 Table 5.1 as seen by co-moving observers. Each body is observed from
an inertial frame that at this instant moves with the body's origin: there the body's linear velocity is
zero, so that it need not be computed, and spatial acceleration is classical acceleration:

    A_i   = A_lambda through (X, v_J, S a + c_J)        omega, alpha, linear acceleration             (1)
    f_i^B = I_i a_i + v_i x* I_i v_i                    from A_i alone                                (2)
    f_i   = f_i^B - f_i^x + sum over children of X^T f_j                                              (3)
    tau_i = S_i^T f_i + armature a                                                                    (4)

The base accelerates by -gravity, so weights need no terms of their own. `rnea_spatial` is Table 5.1 word
for word and also returns v, a and f.
"""

from __future__ import annotations

from typing import NamedTuple, Unpack

from dalembert.algorithms.applied_forces import ExternalForces, Loads, body_forces
from dalembert.algorithms.kinematics import forward_kinematics, require_centers_of_mass
from dalembert.algorithms.open_tree import require_open_tree
from dalembert.model.body import Body, JointMotion
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import BodyAcceleration, Force, Motion, RigidInertia, Vec3
from dalembert.spatial.transform import Placement


def inverse_dynamics(tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]) -> list[Scalar]:
    """Solve M(q) a + b(q, v) = tau + external for tau `(nv,)` [N m or N].

    `a`: dv/dt `(nv,)`. Armature is part of M. `external_forces`: (moment, force) on each body, in body
    coordinates or, with `external_frame="world"`, in world coordinates at the world's origin. Recursive
    Newton-Euler, Table 5.1. Of systems with loops and other constraints it is
    `loops.constrained_inverse_dynamics`.
    """
    if tree.loop_names or tree.constraints or tree.closure is not None:
        from dalembert.algorithms.loops import constrained_inverse_dynamics  # it is built on this module

        return constrained_inverse_dynamics(tree, q, v, a, **given)
    return spanning_tree_forces(tree, q, v, a, **given)


def spanning_tree_forces(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]
) -> list[Scalar]:
    """Return tau_ID = M a + b - external of the tree alone,
    without its loops and other constraints (Eq. 8.62)."""
    time = given.get("time")
    f_x = body_forces(tree, q, **given)
    return _newton_euler(tree, q, v, a, tree.gravity, f_x, time)


def bias_forces(tree: Tree, q: Scalars, v: Scalars, **given: Unpack[Loads]) -> list[Scalar]:
    """Return b(q, v) = inverse_dynamics(q, v, 0): velocity terms, gravity and external forces;
    the book's C (Eq. 6.2).
    """
    time = given.get("time")
    f_x = body_forces(tree, q, **given)
    return _newton_euler(tree, q, v, None, tree.gravity, f_x, time)


def coriolis_forces(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> list[Scalar]:
    """Return the velocity terms alone: inverse_dynamics(q, v, 0) without gravity."""
    return _newton_euler(tree, q, v, None, Vec3.zero(), None, time)


def gravity_forces(tree: Tree, q: Scalars, *, time: Time = None) -> list[Scalar]:
    """Return the forces that hold the system at rest, +dV/dq: f_i = -I_i a_g + sum f_j, tau_i = S_i^T f_i
    (Eqs 5.12, 5.13)."""

    def fall(body: Body, a: Vec3) -> tuple[Vec3, tuple[JointMotion, Force]]:
        joint = body.jcalc(q, None, time)
        a_i = joint.X.apply(Motion(Vec3.zero(), a)).linear
        weight = Force(body.inertia.h.cross(a_i), a_i * body.inertia.mass)
        return a_i, (joint, weight)

    return tree.project_forces(tree.outward(fall, -tree.gravity))


def _newton_euler(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    a: Scalars | None,
    gravity: Vec3,
    f_x: PerBody[Force] | None,
    time: Time,
) -> list[Scalar]:
    def accelerate(
        body: Body, A_parent: BodyAcceleration
    ) -> tuple[BodyAcceleration, tuple[JointMotion, Force]]:
        joint = body.jcalc(q, v, time)
        a_J = joint.c_J if a is None else combination(joint.S, body.own_v(a)) + joint.c_J
        A = A_parent.across_joint(joint.X, joint.v_J, a_J)  # (1)
        f = body.inertia.force_of(A)  # (2)
        return A, (joint, f if f_x is None else f - f_x[body])

    base = BodyAcceleration(Vec3.zero(), Vec3.zero(), -gravity)
    return tree.project_forces(tree.outward(accelerate, base), a)  # (3), (4)


class NewtonEuler(NamedTuple):
    """The results of Table 5.1: tau, and for each body v, a (offset by -gravity) and the joint force f."""

    tau: list[Scalar]
    v: PerBody[Motion]
    a: PerBody[Motion]
    f: PerBody[Force]


def rnea_spatial(tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]) -> NewtonEuler:
    """Run Table 5.1 in spatial body coordinates; return its by-products too.

    Legend: X link transform, S, v_J, c_J of the joint; v, a, f spatial velocity, acceleration and
    transmitted force of body i in its coordinates. The base accelerates by -gravity: the true acceleration
    of body i is a_i + i_X_0 a_g.
    """
    time = given.get("time")
    require_open_tree(tree, "rnea_spatial")
    f_x = body_forces(tree, q, **given)

    def accelerate(
        body: Body, parent: tuple[Motion, Motion]
    ) -> tuple[tuple[Motion, Motion], tuple[JointMotion, Motion, Motion, Force]]:
        joint = X, S, v_J, c_J = body.jcalc(q, v, time)
        v_parent, a_parent = parent
        v_i = X.apply(v_parent) + v_J
        a_i = X.apply(a_parent) + combination(S, body.own_v(a)) + c_J + v_i.cross(v_J)
        f_i = body.inertia * a_i + v_i.cross(body.inertia * v_i)
        return (v_i, a_i), (joint, v_i, a_i, f_i if f_x is None else f_i - f_x[body])

    moved = tree.outward(accelerate, (Motion.zero(), Motion(Vec3.zero(), -tree.gravity)))

    def transmit(body: Body, f_children: Force) -> tuple[Force, tuple[list[Scalar], Force]]:
        joint, _, _, f_body = moved[body]
        f_i = f_body + f_children
        tau = [s.dot(f_i) + m * x for s, m, x in zip(joint.S, body.armature, body.own_v(a), strict=True)]
        return joint.X.inverse_apply(f_i), (tau, f_i)

    sent, _ = tree.inward(transmit, Force.zero())
    return NewtonEuler(
        tau=tree.collect([tau for tau, _ in sent]),
        v=PerBody([v_i for _, v_i, _, _ in moved]),
        a=PerBody([a_i for _, _, a_i, _ in moved]),
        f=PerBody([f_i for _, f_i in sent]),
    )


def differential_inverse_dynamics(tree: Tree, q: Scalars, a: Scalars, *, time: Time = None) -> list[Scalar]:
    """Return M(q) a without velocity and gravity terms: ID_delta (Table 6.1)."""

    def accelerate(body: Body, a_parent: Motion) -> tuple[Motion, tuple[JointMotion, Force]]:
        joint = body.jcalc(q, None, time)
        a_i = joint.X.apply(a_parent) + combination(joint.S, body.own_v(a))
        return a_i, (joint, body.inertia * a_i)

    return tree.project_forces(tree.outward(accelerate, Motion.zero()), a)


def rnea_common_frame(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    a: Scalars,
    *,
    external_forces: ExternalForces = None,
    time: Time = None,
) -> list[Scalar]:
    """Run the basic equations 5.7 to 5.11: all vectors, external forces included, in world coordinates.

    v_i = v_lambda + v_J;  a_i = a_lambda + S a + S' v;  f_i = I a_i + v_i x* I v_i - f_i^x + sum f_j;
    tau_i = S^T f_i.
    """
    require_open_tree(tree, "rnea_common_frame")
    poses = forward_kinematics(tree, q, time=time)
    f_x = body_forces(tree, q, external_forces, "world", time)

    def accelerate(body: Body, parent: tuple[Motion, Motion]) -> tuple[tuple[Motion, Motion], Force]:
        _, S, v_J, c_J = body.jcalc(q, v, time)
        to_world = poses[body].inverse_apply
        v_parent, a_parent = parent
        v_Ji = to_world(v_J)
        v_i = v_parent + v_Ji
        a_i = a_parent + to_world(combination(S, body.own_v(a)) + c_J) + v_i.cross(v_Ji)
        inertia: RigidInertia = to_world(body.inertia)
        f_i = inertia * a_i + v_i.cross(inertia * v_i)
        return (v_i, a_i), f_i if f_x is None else f_i - to_world(f_x[body])

    forces = tree.outward(accelerate, (Motion.zero(), Motion(Vec3.zero(), -tree.gravity)))

    def transmit(body: Body, f_children: Force) -> tuple[Force, Scalars]:
        f_i = forces[body] + f_children
        S = [poses[body].inverse_apply(s) for s in body.jcalc(q, None, time).S]
        return f_i, [s.dot(f_i) + m * x for s, m, x in zip(S, body.armature, body.own_v(a), strict=True)]

    taus, _ = tree.inward(transmit, Force.zero())
    return tree.collect(taus)


# The force by which the world holds a system; it follows from weight and motion, not from joint forces.
#
# Summed over all bodies the forces across joints cancel, loop joints among them, but for those to the world:
#
#     sum of f to the world = d/dt (sum I_i v_i) - weight - external forces            (all at one point)
#
# For a figure that touches nothing but the ground, and whose root joint carries no force, it is the force of
# the ground.


def base_wrench(tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]) -> Force:
    """Return (moment about the world's origin, force) on the system, in world axes [N m, N].

    The inward pass of recursive Newton-Euler taken one step further, to the world (Featherstone 2008 Eq. 5.10
    for body 0), with what the bodies need and no joint forces.
    """
    time = given.get("time")
    require_centers_of_mass(tree, "base_wrench")
    f_x = body_forces(tree, q, **given)

    def accelerate(
        body: Body, A_parent: BodyAcceleration
    ) -> tuple[BodyAcceleration, tuple[Placement, Force]]:
        X, S, v_J, c_J = body.jcalc(q, v, time)
        A = A_parent.across_joint(X, v_J, combination(S, body.own_v(a)) + c_J)
        f = body.inertia.force_of(A)
        return A, (X, f if f_x is None else f - f_x[body])

    base = BodyAcceleration(Vec3.zero(), Vec3.zero(), -tree.gravity)
    needed = tree.outward(accelerate, base)

    def gather(body: Body, beyond: Force) -> tuple[Force, tuple[()]]:
        X, f = needed[body]
        return X.inverse_apply(f + beyond), ()

    _, total = tree.inward(gather, Force.zero())
    support: Force = total
    return support
