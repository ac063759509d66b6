"""Control in joint space: cancel the dynamics and replace them by springs and dampers.

Todorov, "Using the dynamics for control": with M a + b = tau and every joint actuated,

    tau = b + M a*        makes a = a*                                                                     (1)
    a* = a_ref - B (v - v_ref) - K (q - q_ref)                                                             (2)

so that the error e = q - q_ref obeys e'' + B e' + K e = 0 exactly. On quaternions there is no q - q_ref:
there e = difference(q_ref, q), the displacement that leads from the reference to q. Its rates are

    e' = A v + A_ref v_ref         e'' = A a + bias         A = de/dq Q(q)                                 (3)
    a* = A^-1 (-B e' - K e - bias)                                                                         (4)

by exact derivatives of `difference`, joint by joint. Where v = dq/dt, A is 1 and (4) is (2). A is singular
only for a full turn of error, which `difference` does not return.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.control_laws.actuation import commanded_forces, require_actuation
from dalembert.algorithms.dense import Matrix, unit
from dalembert.algorithms.geometry.constrained_inertia import nearest_acceleration
from dalembert.algorithms.geometry.gauss import allowed_accelerations, inertia_solver
from dalembert.algorithms.inverse_dynamics import differential_inverse_dynamics, gravity_forces
from dalembert.algorithms.loops import is_constrained
from dalembert.model.joints import Joint
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero, sqrt

__all__ = [
    "critical_damping",
    "feedback_linearization",
    "gravity_compensation",
    "posture_forces",
    "tracking_acceleration",
]


def gravity_compensation(tree: Tree, q: Sequence[Scalar], *, time: Scalar | None = None) -> list[Scalar]:
    """Return tau = g(q) `(nv,)`, which holds the system at rest in any configuration."""
    if not is_constrained(tree):
        require_actuation(tree, "gravity_compensation")
        return gravity_forces(tree, q, time=time)
    rest = [0.0] * tree.nv
    return commanded_forces(tree, q, rest, rest, law="gravity_compensation", time=time)


def feedback_linearization(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    q_ref: Sequence[Scalar],
    v_ref: Sequence[Scalar] | None = None,
    a_ref: Sequence[Scalar] | None = None,
    *,
    stiffness: Sequence[Scalar],
    damping: Sequence[Scalar] | None = None,
    time: Scalar | None = None,
) -> list[Scalar]:
    """Return tau `(nv,)` with which the error obeys e'' + B e' + K e = 0; Eqs (1), (4).

    `stiffness` K [1/s^2], `damping` B [1/s], one number for each velocity variable; B omitted: critical. In
    a model with loops or other constraints, a is the nearest that these allow (Gauss).
    """
    a = tracking_acceleration(tree, q, v, q_ref, v_ref, a_ref, stiffness=stiffness, damping=damping)
    K, k = allowed_accelerations(tree, q, v, time=time)
    if K:
        a = nearest_acceleration(inertia_solver(tree, q, time=time), a, K, k)
    return commanded_forces(tree, q, v, a, law="feedback_linearization", time=time)


def posture_forces(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    q_ref: Sequence[Scalar],
    *,
    stiffness: Sequence[Scalar],
    damping: Sequence[Scalar] | None = None,
    time: Scalar | None = None,
) -> list[Scalar]:
    """Return M a* `(nv,)`: feedback linearisation without the bias forces, for the null space of a task."""
    a = tracking_acceleration(tree, q, v, q_ref, None, None, stiffness=stiffness, damping=damping)
    return differential_inverse_dynamics(tree, q, a, time=time)


def tracking_acceleration(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    q_ref: Sequence[Scalar],
    v_ref: Sequence[Scalar] | None = None,
    a_ref: Sequence[Scalar] | None = None,
    *,
    stiffness: Sequence[Scalar],
    damping: Sequence[Scalar] | None = None,
) -> list[Scalar]:
    """Return a* `(nv,)` of Eq. (4): the acceleration with which e'' + B e' + K e = 0."""
    zero = [0.0] * tree.nv
    B = critical_damping(stiffness) if damping is None else damping
    lists = (v, zero if v_ref is None else v_ref, zero if a_ref is None else a_ref, stiffness, B)
    wanted: list[Sequence[Scalar]] = []
    for body in tree.bodies:
        if body.dependence is None:
            own = (list(x[body.v_slice]) for x in lists)
            wanted.append(_joint_acceleration(body.joint, body.own_q(q), body.own_q(q_ref), *own))
        else:
            wanted.append([0.0])  # it follows the joints that it depends on
    return tree.collect(wanted)


def critical_damping(stiffness: Sequence[Scalar]) -> list[Scalar]:
    """Return B = 2 sqrt(K): the error decays without overshoot."""
    return [2.0 * sqrt(k) for k in stiffness]


def _joint_acceleration(
    joint: Joint,
    q: list[Scalar],
    q_ref: list[Scalar],
    v: list[Scalar],
    v_ref: list[Scalar],
    a_ref: list[Scalar],
    K: list[Scalar],
    B: list[Scalar],
) -> list[Scalar]:
    """Compute Eqs (3) and (4) of one joint."""
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
