"""Control of a frame, such as a hand: the dynamics in the space of a task (Todorov; Khatib 1987).

A task wants J a + J' v = x''*, with J the rows of the frame's Jacobian that it minds. In its space the
system has the inertia Lambda, and the dynamically consistent inverse of J disturbs nothing that the task
leaves free:

    Lambda = (J M^-1 J^T)^-1            J# = M^-1 J^T Lambda            N = 1 - J# J                       (1)
    tau = b + J^T Lambda (x''* - J' v) + N^T tau_0                                                         (2)
    x''* = x''_ref - D (x' - x'_ref) - K (x - x_ref)                                                       (3)

so that the frame moves as a free unit mass with spring and damper for every arm, and tau_0 moves the
rest. Since N M^-1 = M^-1 N^T, (2) is the inverse dynamics of

    a = J# (x''* - J' v) + N M^-1 tau_0 = argmin (a - a_0)^T M (a - a_0),   a_0 = M^-1 tau_0               (4)
                                          with J a = x''* - J' v

that is of Gauss's principle, with the task as the constraint. More tasks are more rows, in the order of
their priority: a row that depends on rows before it is left out, and so is one that nothing moves. The
constraints of the model itself, loops and others, come first of all.

Near a singularity Lambda grows without bound; (J M^-1 J^T + epsilon)^-1 bounds it and gives up exactness
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.control_laws.actuation import commanded_forces
from dalembert.algorithms.control_laws.joint_space import critical_damping
from dalembert.algorithms.dense import Matrix, Vector, dot, unit
from dalembert.algorithms.geometry.constrained_inertia import nearest_acceleration
from dalembert.algorithms.geometry.gauss import allowed_accelerations, inertia_solver
from dalembert.algorithms.jacobians import frame_of, jacobian, jacobian_rate_times_velocity
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.open_tree import require_moving_mass
from dalembert.algorithms.small_solve import factor_semidefinite
from dalembert.errors import ArgumentError
from dalembert.model.body import Body
from dalembert.model.elements import Frame
from dalembert.model.model import Model
from dalembert.scalar import Scalar
from dalembert.spatial import Mat3, Transform, Vec3
from dalembert.spatial.exponential import so3_log

__all__ = ["Task", "consistent_inverse", "frame_task", "operational_inertia", "operational_space"]


class Task(NamedTuple):
    """J a = wanted, with wanted = x''* - J' v; J has a row for each direction that the task controls."""

    J: Matrix
    wanted: Vector


def frame_task(
    model: Model,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    where: str | Body | Frame,
    *,
    position: Sequence[Scalar] | None = None,
    rotation: Sequence[Sequence[Scalar]] | None = None,
    velocity: Sequence[Scalar] | None = None,
    acceleration: Sequence[Scalar] | None = None,
    stiffness: Sequence[Scalar],
    damping: Sequence[Scalar] | None = None,
    time: Scalar | None = None,
) -> Task:
    """Return the task of a frame with a target position (3) [m] and a target rotation (3x3, frame to world),
    or one of them; Eq. (3).

    The task has three rows for each, angular first, along world axes; `velocity`, `acceleration`, `stiffness`
    [1/s^2] and `damping` [1/s] have a number for each row. The error of a rotation is its rotation vector.
    """
    parts = _parts(rotation is not None, position is not None)
    place = frame_of(model, where)
    pose = _pose(model, q, place, time)
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
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tasks: Sequence[Task],
    *,
    null_space: Sequence[Scalar] | None = None,
    regularization: Scalar = 0.0,
    time: Scalar | None = None,
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


def operational_inertia(
    model: Model,
    q: Sequence[Scalar],
    where: str | Body | Frame,
    *,
    rotation: bool = True,
    position: bool = True,
    time: Scalar | None = None,
) -> Matrix:
    """Return Lambda `(m, m)` of a frame's rotation (3 rows), position (3 rows) or both,
    along world axes; Eq. (1).

    Of a handle it is the articulated-body inertia, `handle_inertia`. Rows that depend on others have none.
    """
    _, Lambda = _responses_and_inertia(model, q, where, rotation, position, time)
    return Lambda


def consistent_inverse(
    model: Model,
    q: Sequence[Scalar],
    where: str | Body | Frame,
    *,
    rotation: bool = True,
    position: bool = True,
    time: Scalar | None = None,
) -> Matrix:
    """Return J# = M^-1 J^T Lambda `(nv, m)`, the inverse of J of least kinetic energy; Eq. (1)."""
    Y, Lambda = _responses_and_inertia(model, q, where, rotation, position, time)
    return [[dot([y[r] for y in Y], column) for column in Lambda] for r in range(model.nv)]


def _responses_and_inertia(
    model: Model,
    q: Sequence[Scalar],
    where: str | Body | Frame,
    rotation: bool,
    position: bool,
    time: Scalar | None,
) -> tuple[Matrix, Matrix]:
    """Return the columns of M^-1 J^T for a frame, and Lambda; M^-1 is for the motions that loops allow."""
    require_moving_mass(model, "operational_inertia")
    tree = aligned(model)
    J = jacobian(model, q, where, time=time)[_parts(rotation, position)]
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


def _pose(model: Model, q: Sequence[Scalar], place: Frame, time: Scalar | None) -> Transform:
    offset = place.placement.as_transform()
    return offset if place.body < 0 else forward_kinematics(model, q, time=time)[place.body] @ offset
