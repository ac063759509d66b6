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

from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

from dalembert.algorithms.applied_forces import ExternalForces, Loads, body_forces
from dalembert.algorithms.declaration import LOADS, NO_LOADS, later, public
from dalembert.algorithms.kinematics import forward_kinematics, require_centers_of_mass
from dalembert.algorithms.open_tree import KEEPS_CONSTRAINTS, WITHIN_REACH, require_open_tree
from dalembert.model.body import Body, JointMotion
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import BodyAcceleration, Force, Motion, RigidInertia, Vec3


@public(
    "dynamics",
    "q v a",
    optional=LOADS,
    others=lambda: _methods(),
    frame_free=True,
    loops=("rnea",),
    preconditions=(KEEPS_CONSTRAINTS, WITHIN_REACH),
    differentiable=True,
)
def inverse_dynamics(tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]) -> list[Scalar]:
    """Solve M(q) a + b(q, v) = tau + J^T external for tau `(…, nv)` [N m or N].

    `a`: dv/dt `(…, nv)` [rad/s^2 or m/s^2]. `external_forces`: `(…, n_bodies, 6)` [N m, N], moment and force
    on each body in body coordinates at its origin, or with `external_frame="world"` in world coordinates at
    the world's origin, with "center" along the world's axes at the body's centre of mass. Armature is
    included; damping, springs, friction and limits are not (`passive_forces`). Recursive Newton-Euler,
    Featherstone 2008 Table 5.1.

    Other methods for trees: "rnea_spatial" (the table word for word), "rnea_common_frame" (in world
    coordinates), "luh_walker_paul" (3-D vectors, Table 5.2), "liu_jain" (local frames, at the centres of
    mass), "balafoutis_patel" (Cartesian tensors), "lagrange" (Jacobians of all bodies), "closed_form" (the
    tensors of Eq. 5.6, O(n^4), as reference).

    In models with loops or other constraints many tau produce the same motion. The result is the one of least
    norm that is zero at joints not in `model.actuated` (section 8.12). An `a` that violates the constraints,
    or that the actuators cannot produce, is rejected (`check`); see `actuation`.

    >>> model = da.models.two_link_arm()
    >>> tau = da.inverse_dynamics(model, q=[0.0, 0.5], v=[0.2, -0.3], a=[1.0, 2.0])
    >>> print(tau.round(4))
    [23.1152  5.7529]
    >>> hold = da.inverse_dynamics(model, np.zeros((1000, 2)), np.zeros(2), np.zeros(2))  # a batch
    >>> hold.shape, hold[0].round(3).tolist()
    ((1000, 2), [19.62, 4.905])
    """
    if tree.loop_names or tree.constraints or tree.closure is not None:
        from dalembert.algorithms.loops import constrained_inverse_dynamics  # it is built on this module

        return constrained_inverse_dynamics(tree, q, v, a, **given)
    return spanning_tree_forces(tree, q, v, a, **given)


def _methods() -> dict[str, Callable[..., Any]]:
    from dalembert.algorithms import loops  # it is built on this module

    def forces_alone(algorithm: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **options: algorithm(*args, **options).tau

    return {
        "rnea": loops.on_trees(spanning_tree_forces, "rnea"),
        "rnea_spatial": forces_alone(rnea_spatial),
        "rnea_common_frame": later("textbook:inverse_dynamics_common_frame"),
        "luh_walker_paul": forces_alone(later("textbook:luh_walker_paul")),
        "liu_jain": forces_alone(later("textbook:liu_jain")),
        "balafoutis_patel": forces_alone(later("textbook:balafoutis_patel")),
        "lagrange": later("textbook:inverse_dynamics_by_jacobians"),
        "closed_form": later("textbook:inverse_dynamics_closed_form"),
        **loops.INVERSE_METHODS,
    }


def spanning_tree_forces(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]
) -> list[Scalar]:
    """Return tau_ID = M a + b - external of the tree alone, without loops and constraints (Eq. 8.62)."""
    return tree.project_forces(required_forces(tree, q, v, a, tree.gravity, **given), a)  # (3), (4)


@public("dynamics", "q v", method="rnea", optional=LOADS, frame_free=True, loops=True, differentiable=True)
def bias_forces(tree: Tree, q: Scalars, v: Scalars, **given: Unpack[Loads]) -> list[Scalar]:
    """Compute b(q, v) = inverse_dynamics(q, v, 0) `(…, nv)` [N m or N], velocity terms and gravity.

    M a + b = tau. b is C of Featherstone 2008 Eq. 6.1, less J^T external of `external_forces`, if there are
    any.

    >>> model = da.models.cart_pole()
    >>> q, v = [0.0, 0.2], [0.5, -1.0]
    >>> print(da.bias_forces(model, q, v).round(5))
    [-0.00993 -0.09745]
    >>> print((da.coriolis_forces(model, q, v) + da.gravity_forces(model, q)).round(5))
    [-0.00993 -0.09745]
    """
    return tree.project_forces(required_forces(tree, q, v, None, tree.gravity, **given))


@public("dynamics", "q v", method="rnea", frame_free=True, loops=True, differentiable=True)
def coriolis_forces(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> list[Scalar]:
    """Compute c(q, v) = inverse_dynamics(q, v, 0) - inverse_dynamics(q, 0, 0) `(…, nv)` [N m or N].

    These are the velocity terms of the equation of motion, quadratic in v: bias = coriolis + gravity.
    Featherstone 2008 section 5.3.

    >>> model = da.models.double_pendulum()
    >>> q, v = [0.3, np.pi / 2], np.array([1.0, 2.0])
    >>> print(da.coriolis_forces(model, q, v).round(6))  # -sin q2 (2 v1 v2 + v2^2), sin q2 v1^2
    [-8.  1.]
    >>> print(da.coriolis_forces(model, q, 2.0 * v).round(6))
    [-32.   4.]
    """
    return tree.project_forces(required_forces(tree, q, v, None, Vec3.zero(), time=time))


@public("dynamics", "q", method="rnea", frame_free=True, loops=True, differentiable=True)
def gravity_forces(tree: Tree, q: Scalars, *, time: Time = None) -> list[Scalar]:
    """Compute the gravity forces g(q) = inverse_dynamics(q, 0, 0) = +dV/dq `(…, nv)` [N m or N].

    tau = g holds the system at rest. One inward pass, f_i = -I_i a_g + sum of the children's, tau_i = S_i^T
    f_i; Featherstone 2008 Eqs 5.12 and 5.13.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> print(da.gravity_forces(model, [np.pi / 6]).round(6))  # m g l sin q
    [29.43]
    """

    def fall(body: Body, a: Vec3) -> tuple[Vec3, tuple[JointMotion, Force]]:
        joint = body.jcalc(q, None, time)
        a_i = joint.X.apply(Motion(Vec3.zero(), a)).linear
        weight = Force(body.inertia.h.cross(a_i), a_i * body.inertia.mass)
        return a_i, (joint, weight)

    return tree.project_forces(tree.outward(fall, -tree.gravity))


def required_forces(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars | None, gravity: Vec3, **given: Unpack[Loads]
) -> PerBody[tuple[JointMotion, Force]]:
    """Return the joint of each body, and the force (2) that the motion of the body needs, less f_i^x."""
    f_x = body_forces(tree, q, **given)

    def accelerate(
        body: Body, A_parent: BodyAcceleration
    ) -> tuple[BodyAcceleration, tuple[JointMotion, Force]]:
        joint = body.jcalc(q, v, given.get("time"))
        a_J = joint.c_J if a is None else combination(joint.S, body.own_v(a)) + joint.c_J
        A = A_parent.across_joint(joint.X, joint.v_J, a_J)  # (1)
        f = body.inertia.force_of(A)  # (2)
        return A, (joint, f if f_x is None else f - f_x[body])

    return tree.outward(accelerate, BodyAcceleration(Vec3.zero(), Vec3.zero(), -gravity))


def joint_forces(tree: Tree, q: Scalars, forces: PerBody[Force], *, time: Time = None) -> list[Scalar]:
    """Return Q = sum J_k^T f_k `(nv,)` of one spatial force a body, in body coordinates.

    Equal power, Q . v = sum f_k . v_k: f_k and all that acts beyond joint k do work on S_k (Liu & Jain
    Eq. 67; Featherstone 2008 Eq. 7.6).
    """
    return tree.project_forces(
        tree.outward(lambda body, _: ((), (body.jcalc(q, None, time), forces[body])), ())
    )


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


@public(
    "dynamics",
    "q a",
    name="inertial_forces",
    method="rnea",
    without=NO_LOADS,
    frame_free=True,
    loops=True,
    differentiable=True,
)
def differential_inverse_dynamics(tree: Tree, q: Scalars, a: Scalars, *, time: Time = None) -> list[Scalar]:
    """Compute tau = M(q) a `(…, nv)` [N m or N] in linear time, without forming M.

    `a`: `(…, nv)` [rad/s^2 or m/s^2]. It is inverse dynamics without velocity and gravity, ID_delta of
    Featherstone 2008 Eq. 6.4.

    >>> model = da.models.two_link_arm()
    >>> q, a = [0.1, 0.4], [1.0, -2.0]
    >>> print(da.dynamics.inertial_forces(model, q, a).round(6))
    [1.       0.127197]
    >>> print((da.mass_matrix(model, q) @ a).round(6))
    [1.       0.127197]
    """

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


@public("cartesian", "q v a", method="rnea", optional=LOADS)
def base_wrench(tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]) -> Force:
    """Return the base wrench (n, f) = d/dt (momentum) - weight - external forces `(…, 6)` [N m, N].

    It is the moment about the world's origin and the force, in world axes, that the world exerts on the
    system while it moves with q, v and a: through the joints to the world or, for a figure with an unactuated
    root, through the ground. Recursive Newton-Euler continued to body 0, Featherstone 2008 Eq. 5.10.

    >>> model = da.models.humanoid()
    >>> still = np.zeros(model.nv)
    >>> support = da.cartesian.base_wrench(model, model.neutral(), still, still)
    >>> bool(np.isclose(support[5], model.total_mass * 9.81))
    True
    """
    require_centers_of_mass(tree, "base_wrench")
    needed = required_forces(tree, q, v, a, tree.gravity, **given)

    def gather(body: Body, beyond: Force) -> tuple[Force, tuple[()]]:
        joint, f = needed[body]
        return joint.X.inverse_apply(f + beyond), ()

    support: Force = tree.inward(gather, Force.zero())[1]
    return support
