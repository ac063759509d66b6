"""Control laws on generic scalars: functions of a state and a target that return joint forces."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, NotRequired, TypedDict, Unpack

from dalembert.algorithms.aligned import AlignedTree, aligned
from dalembert.algorithms.applied_forces import passive_forces
from dalembert.algorithms.declaration import (
    FRAME_NAME,
    JOINTS_ALONE,
    F,
    Option,
    constant_shape,
    kernel,
    per_velocity,
    public,
)
from dalembert.algorithms.dense import Matrix, Vector, dot, factor_semidefinite, unit
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.geometry import allowed_accelerations, nearest_acceleration
from dalembert.algorithms.integrators import independent, with_armatures
from dalembert.algorithms.inverse_dynamics import (
    differential_inverse_dynamics,
    gravity_forces,
    inverse_dynamics,
)
from dalembert.algorithms.jacobians import Place, frame_of, jacobian, jacobian_rate_times_velocity
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.loops import is_constrained
from dalembert.algorithms.mass_matrix import inertia_solver
from dalembert.algorithms.open_tree import HAS_INVERSE, require_moving_mass
from dalembert.errors import ArgumentError, ModelError
from dalembert.model.joints import Free, Joint
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, Scalars, Time, is_zero, literal, maximum, minimum, sqrt
from dalembert.spatial import Mat3, Vec3
from dalembert.spatial.exponential import so3_log

FRAME_PARTS: Final = {
    "frame_name": FRAME_NAME,
    "rotation": Option("bool", True),
    "position": Option("bool", True),
}
"""Options of functions of a frame's task space."""


def joint_law(keywords: str, optional: str, **more: Any) -> Callable[[F], F]:
    """Declare a public law of q, v and q_ref, whose gains may be one number for all joints."""
    gains = tuple(x for x in (*keywords.split(), *optional.split()) if x in GAINS)
    more |= {"by_place": "v_ref a_ref", "gains": gains, "frame_free": True}
    return public("control", "q v q_ref", keywords=keywords, optional=optional, **more)


GAINS: Final = ("stiffness", "damping", "kp", "kd", "effort")
"""The gains of joint laws."""


# Motor forces for a wanted acceleration, and the preconditions of control laws on a model.


def commanded_forces(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, *, law: str, time: Time = None
) -> list[Scalar]:
    """Return tau `(nv,)` = M a + b, the last step of every law; with constraints, of the actuated joints."""
    if not is_constrained(tree):
        require_actuation(tree, law)
    return inverse_dynamics(tree, q, v, a, time=time)


def require_actuation(tree: Tree, law: str) -> None:
    """Refuse a tree with joints that have no motor: the law needs a force at every joint."""
    model = tree.original if isinstance(tree, AlignedTree) else tree
    if not isinstance(model, Model):
        return
    driven = set(model.actuated)
    idle = [body.joint_name for body in model.bodies if body.nv and body.joint_name not in driven]
    if idle:
        names = ", ".join(f'"{name}"' for name in idle)
        raise ModelError(
            f"{law}: joints {names} are not in model.actuated, and this law commands a force at every joint; "
            "lock them with model.lock, or actuate them with builder.set_actuated"
        )


# Control in joint space: cancel the dynamics and replace them by springs and dampers.
#
# Todorov, "Using the dynamics for control": with M a + b = tau and every joint actuated,
#
#     tau = b + M a*        makes a = a*                                                                   (1)
#     a* = a_ref - B (v - v_ref) - K (q - q_ref)                                                           (2)
#
# so that the error e = q - q_ref obeys e'' + B e' + K e = 0 exactly. On quaternions there is no q - q_ref:
# there e = difference(q_ref, q), the displacement that leads from the reference to q. Its rates are
#
#     e' = A v + A_ref v_ref         e'' = A a + bias         A = de/dq Q(q)                               (3)
#     a* = A^-1 (-B e' - K e - bias)                                                                       (4)
#
# by exact derivatives of `difference`, joint by joint. Where v = dq/dt, A is 1 and (4) is (2). A is singular
# only for a full turn of error, which `difference` does not return.


@public("control", "q", method="rnea", frame_free=True, loops=True)
def gravity_compensation(tree: Tree, q: Scalars, *, time: Time = None) -> list[Scalar]:
    """Compute tau = g(q) = +dV/dq `(…, nv)` [N m or N], which holds the system at rest in any configuration.

    Source: Todorov, "Using the dynamics for control", with the gravity term.

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> a = da.forward_dynamics(model, q, 0.0 * v, da.control.gravity_compensation(model, q))
    >>> np.allclose(a, 0.0, atol=1e-9)
    True
    """
    if not is_constrained(tree):
        require_actuation(tree, "gravity_compensation")
        return gravity_forces(tree, q, time=time)
    rest = [0.0] * tree.nv
    return commanded_forces(tree, q, rest, rest, law="gravity_compensation", time=time)


@joint_law("stiffness", "v_ref a_ref damping time", method="rnea")
def feedback_linearization(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    q_ref: Scalars,
    v_ref: Scalars | None = None,
    a_ref: Scalars | None = None,
    *,
    time: Time = None,
    **gains: Unpack[Gains],
) -> list[Scalar]:
    """Compute tau = b + M a* `(…, nv)` [N m or N], with which the error e obeys e'' + B e' + K e = 0.

    a* = a_ref - B (v - v_ref) - K (q - q_ref). e = `difference(q_ref, q)`, which for quaternions is the
    rotation vector of the error. `q_ref (…, nq)`, `v_ref` and `a_ref` `(…, nv)`: the reference motion, at
    rest by default. `stiffness` K [1/s^2] and `damping` B [1/s]: one number, or one for each velocity
    variable; B is critical, 2 sqrt(K), by default. Every joint must be actuated; in a model with loops or
    other constraints, a is the nearest to a* that these allow (Gauss).

    Source: Todorov, "Using the dynamics for control".

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> tau = da.control.feedback_linearization(model, q, v, model.neutral(), stiffness=25.0, damping=10.0)
    >>> np.allclose(da.forward_dynamics(model, q, v, tau), -10.0 * v - 25.0 * q)
    True
    """
    a = tracking_acceleration(tree, q, v, q_ref, v_ref, a_ref, **gains)
    K, k = allowed_accelerations(tree, q, v, time=time)
    if K:
        a = nearest_acceleration(inertia_solver(tree, q, time=time), a, K, k)
    return commanded_forces(tree, q, v, a, law="feedback_linearization", time=time)


@joint_law("stiffness", "damping time", method="rnea")
def posture_forces(
    tree: Tree, q: Scalars, v: Scalars, q_ref: Scalars, *, time: Time = None, **gains: Unpack[Gains]
) -> list[Scalar]:
    """Compute tau_0 = M a* `(…, nv)` [N m or N]: `feedback_linearization` without the bias forces b.

    a* = -B v - K (q - q_ref). Pass the result to `operational_space` as `null_space` to move an arm towards
    the posture q_ref as far as its task allows. Gains as in `feedback_linearization`.

    Source: Todorov, "Using the dynamics for control".

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> tau = da.control.posture_forces(model, q, v, model.neutral(), stiffness=25.0)
    >>> np.allclose(tau, da.mass_matrix(model, q) @ (-10.0 * v - 25.0 * q))
    True
    """
    a = tracking_acceleration(tree, q, v, q_ref, None, None, **gains)
    return differential_inverse_dynamics(tree, q, a, time=time)


def tracking_acceleration(
    tree: Tree, q: Scalars, v: Scalars, q_ref: Scalars, *rates: Scalars | None, **gains: Unpack[Gains]
) -> list[Scalar]:
    """Return a* `(nv,)` of Eq. (4), with which e'' + B e' + K e = 0; `rates`: v_ref and a_ref, None: zero."""
    v_ref, a_ref = ([0.0] * tree.nv if rate is None else rate for rate in rates)
    K, B = gains["stiffness"], gains.get("damping")
    lists = (v, v_ref, a_ref, K, critical_damping(K) if B is None else B)
    wanted: list[Scalars] = []
    for body in tree.bodies:
        if body.dependence is None:
            own = (list(x[body.v_slice]) for x in lists)
            wanted.append(_joint_acceleration(body.joint, body.own_q(q), body.own_q(q_ref), *own))
        else:
            wanted.append([0.0])  # it follows the joints that it depends on
    return tree.collect(wanted)


class Gains(TypedDict):
    """The gains for each velocity variable: K [1/s^2] and B [1/s], critical where it is left out."""

    stiffness: Scalars
    damping: NotRequired[Scalars | None]


def critical_damping(stiffness: Scalars) -> list[Scalar]:
    """Return B = 2 sqrt(K): the error decays without overshoot."""
    return [2.0 * sqrt(k) for k in stiffness]


def _joint_acceleration(joint: Joint, q: Vector, q_ref: Vector, *lists: Vector) -> Vector:
    """Compute Eqs (3) and (4) of one joint; `lists`: v, v_ref, a_ref, K and B."""
    v, v_ref, a_ref, K, B = lists
    nq, nv = joint.nq, joint.nv

    def rate(q: list[Scalar], v: list[Scalar], q_ref: list[Scalar], v_ref: list[Scalar]) -> list[Scalar]:
        direction = [*joint.position_rate(q, v), *joint.position_rate(q_ref, v_ref)]
        return directional_derivative(lambda x: joint.difference(x[nq:], x[:nq]), [*q, *q_ref], direction)[1]

    def rate_of(x: list[Scalar]) -> list[Scalar]:
        return rate(x[:nq], x[nq : nq + nv], x[nq + nv : 2 * nq + nv], x[2 * nq + nv :])

    zero: list[Scalar] = [0.0] * nv
    motion = [*joint.position_rate(q, v), *zero, *joint.position_rate(q_ref, v_ref), *a_ref]
    e = joint.difference(q_ref, q)
    e_rate, bias = directional_derivative(rate_of, [*q, *v, *q_ref, *v_ref], motion)
    columns = [rate(q, unit(nv, k), q_ref, zero) for k in range(nv)]
    A = [[column[r] for column in columns] for r in range(nv)]
    rest = [-(b * de) - k * x - more for b, de, k, x, more in zip(B, e_rate, K, e, bias, strict=True)]
    return _solve_without_pivoting(A, rest)


def _solve_without_pivoting(A: Matrix, b: list[Scalar]) -> list[Scalar]:
    """Solve A x = b by elimination without row exchange: the symmetric part of A is positive definite."""
    n = len(b)
    rows = [[*row, x] for row, x in zip(A, b, strict=True)]
    for k in range(n):
        for i in range(k + 1, n):
            if is_zero(rows[i][k]):
                continue
            factor = rows[i][k] / rows[k][k]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    x: list[Scalar] = [0.0] * n
    for i in reversed(range(n)):
        rest = rows[i][n]
        for k in range(i + 1, n):
            rest = rest - rows[i][k] * x[k]
        x[i] = rest / rows[i][i]
    return x


# Control of a frame, such as a hand: the dynamics in the space of a task (Todorov; Khatib 1987).
#
# A task wants J a + J' v = x''*, with J the rows of the frame's Jacobian that it minds. In its space the
# system has the inertia Lambda, and the dynamically consistent inverse of J disturbs nothing that the task
# leaves free:
#
#     Lambda = (J M^-1 J^T)^-1            J# = M^-1 J^T Lambda            N = 1 - J# J                     (1)
#     tau = b + J^T Lambda (x''* - J' v) + N^T tau_0                                                       (2)
#     x''* = x''_ref - D (x' - x'_ref) - K (x - x_ref)                                                     (3)
#
# so that the frame moves as a free unit mass with spring and damper for every arm, and tau_0 moves the rest.
# Since N M^-1 = M^-1 N^T, (2) is the inverse dynamics of
#
#     a = J# (x''* - J' v) + N M^-1 tau_0 = argmin (a - a_0)^T M (a - a_0),   a_0 = M^-1 tau_0             (4)
#                                           with J a = x''* - J' v
#
# that is of Gauss's principle, with the task as the constraint. More tasks are more rows, in the order of
# their priority: a row that depends on rows before it is left out, and so is one that nothing moves. The
# constraints of the model itself, loops and others, come first of all.
#
# Near a singularity Lambda grows without bound; (J M^-1 J^T + epsilon)^-1 bounds it and gives up exactness
# there.


class Task(NamedTuple):
    """J a = wanted, with wanted = x''* - J' v; J has a row for each direction that the task controls."""

    J: Matrix
    wanted: Vector


def frame_task(
    model: Model,
    q: Scalars,
    v: Scalars,
    where: Place,
    *,
    position: Scalars | None = None,
    rotation: Sequence[Scalars] | None = None,
    velocity: Scalars | None = None,
    acceleration: Scalars | None = None,
    stiffness: Scalars,
    damping: Scalars | None = None,
    time: Time = None,
) -> Task:
    """Return the task of a frame with a target position (3) [m] and a target rotation (3x3, frame to world),
    or one of them; Eq. (3).

    The task has three rows for each, angular first, along world axes; `velocity`, `acceleration`, `stiffness`
    [1/s^2] and `damping` [1/s] have a number for each row. The error of a rotation is its rotation vector.
    """
    parts = _parts(rotation is not None, position is not None)
    place = frame_of(model, where)
    pose = place.placement.as_transform()
    if place.body >= 0:
        pose = forward_kinematics(model, q, time=time)[place.body] @ pose
    error: Vector = []
    if rotation is not None:
        R_ref = Mat3(*[x for row in rotation for x in row])
        error += list(so3_log(pose.R @ R_ref.transpose()))
    if position is not None:
        error += list(pose.p - Vec3(*position))
    J = jacobian(model, q, place, time=time)[parts]
    bias = jacobian_rate_times_velocity(model, q, v, place, time=time)[parts]
    rates = [dot(row, v) for row in J]
    v_ref = [0.0] * len(J) if velocity is None else list(velocity)
    a_ref = [0.0] * len(J) if acceleration is None else list(acceleration)
    D = critical_damping(stiffness) if damping is None else list(damping)
    wanted = [
        a - d * (rate - r) - k * e - b
        for a, d, rate, r, k, e, b in zip(a_ref, D, rates, v_ref, stiffness, error, bias, strict=True)
    ]
    return Task(J, wanted)


def operational_space(
    model: Model,
    q: Scalars,
    v: Scalars,
    tasks: Sequence[Task],
    *,
    null_space: Scalars | None = None,
    regularization: Scalar = 0.0,
    time: Time = None,
) -> Vector:
    """Return tau `(nv,)` that fulfils the tasks in the order of their priority; Eqs (4), (2).

    `null_space`: joint forces tau_0 `(nv,)` beside the bias forces, of which the tasks let pass what does
    not disturb them. `regularization`: epsilon, added to the diagonal of J M^-1 J^T of the tasks.
    """
    require_moving_mass(model, "operational_space")
    tree = aligned(model)  # forces and accelerations of joints do not depend on the frames of the bodies
    solve = inertia_solver(tree, q, time=time)
    a_0 = [0.0] * model.nv if null_space is None else solve(null_space)
    K, k = allowed_accelerations(tree, q, v, time=time)
    rows = [*K, *(row for task in tasks for row in task.J)]
    wanted = [*k, *(x for task in tasks for x in task.wanted)]
    epsilon = [0.0] * len(K) + [regularization] * (len(rows) - len(K))
    a = nearest_acceleration(solve, a_0, rows, wanted, regularization=epsilon)
    return commanded_forces(tree, q, v, a, law="operational_space", time=time)


@kernel(
    "q v",
    keywords="stiffness",
    name="operational_space",
    method="rnea",
    shapes={
        **dict.fromkeys(("stiffness", "damping", "velocity", "acceleration"), constant_shape(6)),
        "position": constant_shape(3),
        "rotation": constant_shape(3, 3),
        "null_space": per_velocity,
        "regularization": constant_shape(),
    },
    preconditions=HAS_INVERSE,
    optional="position rotation velocity acceleration damping null_space regularization time",
)
def frame_control(
    model: Model,
    q: Scalars,
    v: Scalars,
    *,
    where: str,
    null_space: Scalars | None = None,
    regularization: Scalar = 0.0,
    time: Scalar | None = None,
    **target: Any,
) -> Vector:
    """Return tau `(nv,)` that drives one frame to a pose, of which `target` has the rows of `frame_task`.

    Rows count as six, angular first; a task of position or rotation alone reads three of them.
    """
    rows = slice(0 if "rotation" in target else 3, 6 if "position" in target else 3)
    own = {name: x if name in ("rotation", "position") else x[rows] for name, x in target.items()}
    task = frame_task(model, q, v, where, time=time, **own)
    return operational_space(
        model, q, v, [task], null_space=null_space, regularization=regularization, time=time
    )


class FrameRows(TypedDict, total=False):
    """The rows of a frame's Jacobian, both by default, and the time [s]."""

    rotation: bool
    position: bool
    time: Time


@public("control", "q", method="ltdl", preconditions=HAS_INVERSE, options=FRAME_PARTS)
def operational_inertia(model: Model, q: Scalars, where: Place, **rows: Unpack[FrameRows]) -> Matrix:
    """Compute the operational-space inertia Lambda = (J M^-1 J^T)^-1 `(…, m, m)` of a frame.

    The m = 6 rows are angular first, along world axes at the frame's origin [kg m^2, kg m, kg]; m = 3 without
    the `rotation` or without the `position`. Lambda does not exist if rows are dependent or cannot move. In
    models with loops M^-1 is restricted to the motions that the loops allow.

    Source: Featherstone 2008 Eq. 7.12; Todorov, "Using the dynamics for control".

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> hand = model.bodies[-1].name
    >>> J = da.jacobian(model, q, hand)
    >>> Lambda = da.control.operational_inertia(model, q, hand)
    >>> np.allclose(Lambda @ J @ da.inverse_mass_matrix(model, q) @ J.T, np.eye(6))
    True
    """
    return _responses_and_inertia(model, q, where, **rows)[1]


@public("control", "q", method="ltdl", preconditions=HAS_INVERSE, options=FRAME_PARTS)
def consistent_inverse(model: Model, q: Scalars, where: Place, **rows: Unpack[FrameRows]) -> Matrix:
    """Compute the dynamically consistent inverse J# = M^-1 J^T Lambda `(…, nv, m)` of a frame's Jacobian.

    Of all joint velocities with J v = x', J# x' has the least kinetic energy. 1 - J# J projects onto the
    motions that do not move the frame, and its transpose onto the joint forces that do not accelerate it.
    Loops are treated as in `operational_inertia`.

    Source: Khatib 1987; Todorov, "Using the dynamics for control".

    >>> model = da.models.arm7()
    >>> q, v = model.random_state(0)
    >>> hand = model.bodies[-1].name
    >>> J, inverse = da.jacobian(model, q, hand), da.control.consistent_inverse(model, q, hand)
    >>> np.allclose(J @ inverse, np.eye(6))
    True
    """
    Y, Lambda = _responses_and_inertia(model, q, where, **rows)
    return [[dot([y[r] for y in Y], column) for column in Lambda] for r in range(model.nv)]


def _responses_and_inertia(
    model: Model, q: Scalars, where: Place, **rows: Unpack[FrameRows]
) -> tuple[Matrix, Matrix]:
    """Return the columns of M^-1 J^T for a frame, and Lambda; M^-1 is for the motions that loops allow."""
    require_moving_mass(model, "operational_inertia")
    tree, time = aligned(model), rows.get("time")
    parts = _parts(rows.get("rotation", True), rows.get("position", True))
    J = jacobian(model, q, where, time=time)[parts]
    solve = inertia_solver(tree, q, time=time)
    K, k = allowed_accelerations(tree, q, [0.0] * tree.nv, time=time)
    Y = [nearest_acceleration(solve, solve(row), K, [0.0] * len(k)) for row in J]
    Phi = factor_semidefinite([[dot(row, y) for y in Y] for row in J])
    m = len(J)
    return Y, [Phi.solve(unit(m, k)) for k in range(m)]


def _parts(rotation: bool, position: bool) -> slice:
    """Return the rows of a Jacobian, angular first."""
    if not rotation and not position:
        raise ArgumentError("a task needs a position, a rotation or both as its target; give one of them")
    return slice(0 if rotation else 3, 6 if position else 3)


# PD control of the joints: motors act as a spring and a damper between a joint and its reference.
#
#     tau = kp e + kd (v_ref - v)                        e = difference(q, q_ref)                          (1)
#
# e is q_ref - q of angles and lengths, and the rotation vector of the error of a ball joint, in the axes of
# its v. Held for a step of h seconds (1) is explicit, and unstable where h kd exceeds about 2 M. *Stable* PD
# (Tan, Liu & Turk 2011) takes position and velocity where the step will end, v' = v + h a:
#
#     tau = kp (e - h v') + kd (v_ref - v')                                                                (2)
#     (M + h kd + h^2 kp) a = kp (e - h v) + kd (v_ref - v) - b + passive forces                           (3)
#
# and is stable with any gains. (The paper has e - h v in (2), which asks for kd >= h kp.) The gains stand in
# (3) where armature does, so that loops and couplings are those of `forward_dynamics`. Torques end at the
# effort limits, and joints without motors have none.


@joint_law("kp kd", "v_ref effort", name="pd", method="joints", without=JOINTS_ALONE)
def pd_forces(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    q_ref: Scalars,
    v_ref: Scalars | None = None,
    *,
    kp: Scalars,
    kd: Scalars,
    effort: Scalars | None = None,
) -> list[Scalar]:
    """Compute tau = kp (q_ref - q) + kd (v_ref - v) `(…, nv)` [N m or N], limited to ± effort.

    q_ref - q is `difference(q, q_ref)`, for a ball joint the rotation vector of the error. `q_ref (…, nq)`,
    `v_ref (…, nv)`: the reference motion, at rest by default. `kp` [N m/rad or N/m] and `kd` [N m s/rad or N
    s/m]: one number, or one for each velocity variable. `effort`: the largest torques or forces likewise; by
    default the model's limits. Free joints, and joints not in `model.actuated`, have no motor and no force.
    Applied for a step of dt the law is explicit: it requires dt kd well below the inertias; `stable_pd` does
    not.

    Source: the "voluntary" and "response" motions of physically based animation.

    >>> model = da.models.two_link_arm()
    >>> print(da.control.pd(model, [0.1, 0.0], [0.0, 1.0], [0.3, 0.0], kp=[10.0, 5.0], kd=1.0))
    [ 2. -1.]
    """
    terms = zip(kp, _errors(tree, q, q_ref), kd, _slips(v, v_ref), strict=True)
    return _clamp_torques(tree, [a * b + c * d for a, b, c, d in terms], effort)


@joint_law("kp kd dt", "v_ref effort time", name="stable_pd", method="aba")
def stable_pd_forces(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    q_ref: Scalars,
    dt: Scalar,
    v_ref: Scalars | None = None,
    *,
    kp: Scalars,
    kd: Scalars,
    effort: Scalars | None = None,
    time: Time = None,
) -> list[Scalar]:
    """Compute tau = kp (q_ref - q') + kd (v_ref - v') `(…, nv)` [N m or N], q' and v' after a step dt [s].

    v' = v + dt a, q' = q + dt v' and (M + dt kd + dt^2 kp) a = kp (q_ref - q - dt v) + kd (v_ref - v) - b +
    passive forces. Hold tau during the step; it is stable for all gains. The other arguments as in `pd`. In a
    rollout `da.control.Servo` is the same law.

    Source: Tan, Liu and Turk, "Stable Proportional-Derivative Controllers", 2011, who leave out dt^2 kp.

    >>> model = da.models.pendulum()
    >>> q, v = np.array([0.0]), np.array([0.0])
    >>> for _ in range(100):  # gains a thousand times beyond what `pd` stands at this step
    ...     tau = da.control.stable_pd(model, q, v, [0.5], kp=1e6, kd=1e4, dt=0.01)
    ...     q, v = da.step(model, q, v, tau, 0.01)
    >>> print(q.round(4))
    [0.5]
    """
    driven = _driven(tree)
    kp, kd = ([x if on else 0.0 for x, on in zip(gain, driven, strict=True)] for gain in (kp, kd))
    e, slip = _errors(tree, q, q_ref), _slips(v, v_ref)
    gain = [c + dt * a for a, c in zip(kp, kd, strict=True)]  # tau falls by so much for each unit of v'
    tau = [a * (b - dt * u) + c * d for a, b, u, c, d in zip(kp, e, v, kd, slip, strict=True)]
    a = implicit_acceleration(tree, q, v, tau, gain, dt, time)
    return _clamp_torques(tree, [t - g * (dt * x) for t, g, x in zip(tau, gain, a, strict=True)], effort)


def implicit_acceleration(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, gain: Scalars, dt: Scalar, time: Time = None
) -> list[Scalar]:
    """Return a of (M + dt gain) a = tau - b + passive forces: that of joint forces tau at the velocities v
    which fall by `gain` for each unit of the velocity at the end of a step dt [s].
    """
    armatures = {body.index: body.armature for body in tree.bodies}
    for body in independent(tree):
        own = zip(body.armature, gain[body.v_slice], strict=True)
        armatures[body.index] = tuple(m + dt * g for m, g in own)
    total = [t + f for t, f in zip(tau, passive_forces(tree, q, v), strict=True)]
    return forward_dynamics(with_armatures(tree, armatures), q, v, total, time=time)  # (3)


def _errors(tree: Tree, q: Scalars, q_ref: Scalars) -> list[Scalar]:
    """Return e of all joints."""
    found: list[Scalar] = [0.0] * tree.nv
    for body in independent(tree):
        found[body.v_slice] = body.joint.difference(body.own_q(q), body.own_q(q_ref))
    return found


def _slips(v: Scalars, v_ref: Scalars | None) -> list[Scalar]:
    """Return v_ref - v."""
    return [-x for x in v] if v_ref is None else [b - a for a, b in zip(v, v_ref, strict=True)]


def _driven(tree: Tree) -> list[bool]:
    """Return which velocity variables have a motor: those of `model.actuated`, none of a free body."""
    model = tree.original if isinstance(tree, AlignedTree) else tree
    names = {body.joint_name for body in tree.bodies if not isinstance(body.joint, Free)}
    if isinstance(model, Model):
        names &= set(model.actuated)
    found = [False] * tree.nv
    for body in independent(tree):
        found[body.v_slice] = [body.joint_name in names] * body.nv
    return found


def _clamp_torques(tree: Tree, tau: Scalars, effort: Scalars | None) -> list[Scalar]:
    """Clamp each torque to its limits; joints without motors get zero."""
    if effort is None:
        effort = [math.inf] * tree.nv
        for body in independent(tree):
            limit = body.limits.effort
            effort[body.v_slice] = limit if isinstance(limit, (tuple, list)) else [limit] * body.nv
    limited: list[Scalar] = []
    for t, bound, on in zip(tau, effort, _driven(tree), strict=True):
        if on and literal(bound) != math.inf:
            t = minimum(maximum(t, -bound), bound)
        limited.append(t if on else 0.0)
    return limited
