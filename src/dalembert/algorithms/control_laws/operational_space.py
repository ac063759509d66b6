"""Control of a hand, or of any frame: the dynamics seen in the space of a task (Todorov; Khatib 1987).

A task wants J a + J' v = x''*, with J the rows of the frame's Jacobian that it minds. In its space the
system has the inertia Lambda, and the dynamically consistent inverse of J disturbs nothing that the task
leaves free:

    Lambda = (J M^-1 J^T)^-1            J# = M^-1 J^T Lambda            N = 1 - J# J                       (1)
    tau = b + J^T Lambda (x''* - J' v) + N^T tau_0                                                         (2)
    x''* = x''_ref - D (x' - x'_ref) - K (x - x_ref)                                                       (3)

so that the frame moves as a free unit mass with spring and damper, whatever the arm, and tau_0 moves the
rest. Since N M^-1 = M^-1 N^T, (2) is the inverse dynamics of

    a = J# (x''* - J' v) + N M^-1 tau_0                                                                    (4)

and more tasks follow in the order of their priority, each in what those before it leave free:

    a <- a + J_N# (x''* - J' v - J a),     J_N = J N,     N <- N (1 - J_N# J_N)                            (5)

Near a singularity Lambda grows without bound; (J M^-1 J^T + epsilon)^-1 bounds it and gives up exactness
there. Rows that depend on others, or that nothing moves, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.control_laws.actuation import require_actuation
from dalembert.algorithms.control_laws.joint_space import critical_damping
from dalembert.algorithms.geometry.constrained_inertia import semidefinite_solver
from dalembert.algorithms.inverse_dynamics import inverse_dynamics
from dalembert.algorithms.jacobians import frame_of, jacobian, jacobian_rate_times_velocity
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.open_tree import require_moving_mass
from dalembert.algorithms.sparse import factor_with_reciprocals, solve_with_reciprocals
from dalembert.algorithms.sparsity import variable_parents
from dalembert.errors import ArgumentError
from dalembert.model.body import Body
from dalembert.model.elements import Frame
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero
from dalembert.spatial import Mat3, Transform, Vec3
from dalembert.spatial.exponential import so3_log

__all__ = [
    "Task",
    "consistent_inverse",
    "frame_task",
    "operational_inertia",
    "operational_space",
    "prioritized_acceleration",
]

Vector = list[Scalar]
Matrix = list[list[Scalar]]
Solve = Callable[[Sequence[Scalar]], Vector]


class Task(NamedTuple):
    """J a = wanted, with wanted = x''* - J' v; J has a row for each direction that the task minds."""

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
    """A frame drawn to a position (3) [m] and a rotation (3x3, frame to world), or to one of them; Eq. (3).

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
    rates = [_dot(row, v) for row in J]
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
    """tau `(nv,)` that fulfils the tasks in the order of their priority; Eqs (4), (5), (2).

    `null_space`: joint forces tau_0 `(nv,)` beside the bias forces, of which the tasks let pass what does
    not disturb them. `regularization`: epsilon, added to the diagonal of J M^-1 J^T.
    """
    require_actuation(model, "operational_space")
    tree = aligned(model)  # forces and accelerations of joints do not depend on the frames of the bodies
    a = prioritized_acceleration(
        tree, q, tasks, null_space=null_space, regularization=regularization, time=time
    )
    return inverse_dynamics(tree, q, v, a, time=time)


def prioritized_acceleration(
    tree: Tree,
    q: Sequence[Scalar],
    tasks: Sequence[Task],
    *,
    null_space: Sequence[Scalar] | None = None,
    regularization: Scalar = 0.0,
    time: Scalar | None = None,
) -> Vector:
    """a `(nv,)` of Eqs (4) and (5)."""
    solve = _inertia_solver(tree, q, time)
    levels: list[_Level] = []
    a: Vector = [0.0] * tree.nv
    for task in tasks:
        level = _level(solve, [_unseen(levels, row) for row in task.J], regularization)
        missing = [w - _dot(row, a) for w, row in zip(task.wanted, task.J, strict=True)]
        a = _plus(a, level.Y, level.forces(missing))  # (5)
        levels.append(level)
    if null_space is not None:
        free = solve(null_space)
        for level in levels:
            carried = level.forces([_dot(row, free) for row in level.J])
            free = _plus(free, level.Y, [-f for f in carried])
        a = [x + y for x, y in zip(a, free, strict=True)]  # (4)
    return a


def operational_inertia(
    model: Model,
    q: Sequence[Scalar],
    where: str | Body | Frame,
    *,
    rotation: bool = True,
    position: bool = True,
    time: Scalar | None = None,
) -> Matrix:
    """Lambda `(m, m)` of a frame's rotation (3 rows), position (3 rows) or both, along world axes; Eq. (1).

    Of a handle it is the articulated-body inertia, `handle_inertia`. Rows that depend on others have none.
    """
    J, level = _frame_level(model, q, where, rotation, position, time)
    m = len(J)
    columns = [level.forces([1.0 if i == k else 0.0 for i in range(m)]) for k in range(m)]
    return [[column[r] for column in columns] for r in range(m)]


def consistent_inverse(
    model: Model,
    q: Sequence[Scalar],
    where: str | Body | Frame,
    *,
    rotation: bool = True,
    position: bool = True,
    time: Scalar | None = None,
) -> Matrix:
    """J# = M^-1 J^T Lambda `(nv, m)`: of the inverses of J the one of least kinetic energy; Eq. (1)."""
    J, level = _frame_level(model, q, where, rotation, position, time)
    m, zero = len(J), [0.0] * model.nv
    columns = [
        _plus(zero, level.Y, level.forces([1.0 if i == k else 0.0 for i in range(m)])) for k in range(m)
    ]
    return [[column[r] for column in columns] for r in range(model.nv)]


class _Level(NamedTuple):
    """One priority: J_N, the columns Y = M^-1 J_N^T, and Lambda as a function, from x'' to forces."""

    J: Matrix
    Y: Matrix
    forces: Solve


def _level(solve: Solve, J: Matrix, regularization: Scalar) -> _Level:
    Y = [solve(row) for row in J]
    Phi = [[_dot(row, y) for y in Y] for row in J]
    if not is_zero(regularization):
        Phi = [[x + regularization if i == k else x for k, x in enumerate(row)] for i, row in enumerate(Phi)]
    return _Level(J, Y, semidefinite_solver(Phi))


def _frame_level(
    model: Model,
    q: Sequence[Scalar],
    where: str | Body | Frame,
    rotation: bool,
    position: bool,
    time: Scalar | None,
) -> tuple[Matrix, _Level]:
    J = jacobian(model, q, where, time=time)[_parts(rotation, position)]
    return J, _level(_inertia_solver(aligned(model), q, time), J, 0.0)


def _unseen(levels: Sequence[_Level], row: Sequence[Scalar]) -> Vector:
    """A row of J N: what of it the tasks before cannot see; N^T row = row - J_N^T Lambda Y^T row."""
    rest = list(row)
    for level in levels:
        seen = level.forces([_dot(y, rest) for y in level.Y])
        rest = _plus(rest, level.J, [-f for f in seen])
    return rest


def _inertia_solver(tree: Tree, q: Sequence[Scalar], time: Scalar | None) -> Solve:
    require_moving_mass(tree, "operational_space")
    lam = variable_parents(tree)
    L, reciprocals = factor_with_reciprocals(mass_matrix(tree, q, time=time), lam)
    return lambda f: solve_with_reciprocals(L, reciprocals, lam, f)


def _parts(rotation: bool, position: bool) -> slice:
    """The rows of a Jacobian, angular first."""
    if not rotation and not position:
        raise ArgumentError("a task needs a position, a rotation or both as its target; give one of them")
    return slice(0 if rotation else 3, 6 if position else 3)


def _pose(model: Model, q: Sequence[Scalar], place: Frame, time: Scalar | None) -> Transform:
    offset = place.placement.as_transform()
    return offset if place.body < 0 else forward_kinematics(model, q, time=time)[place.body] @ offset


def _plus(a: Sequence[Scalar], columns: Sequence[Sequence[Scalar]], weights: Sequence[Scalar]) -> Vector:
    total = list(a)
    for column, weight in zip(columns, weights, strict=True):
        total = [x + weight * y for x, y in zip(total, column, strict=True)]
    return total


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total
