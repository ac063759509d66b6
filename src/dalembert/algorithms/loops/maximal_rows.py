"""The rows of B d = k: constraints of joints, couplings and users on the accelerations of all bodies.

A row of B says what multiplies the acceleration of each body that it concerns. That of a joint is its
constraint force, at the successor less at the predecessor (Featherstone 2008 §3.7). By

    a_j = T_a^T (d_s - d_p)    the joints' accelerations                          (1)

any equation between joint accelerations is one between bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.constraints.explicit import closure_rows, original_model
from dalembert.algorithms.constraints.user_rows import UserRows, user_rows
from dalembert.algorithms.kinematics import BodyMotion
from dalembert.algorithms.stabilization import Stabilization, stabilized_row
from dalembert.model.body import Body
from dalembert.model.elements import Loop
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, is_zero
from dalembert.spatial import Force, Motion, Placement, Transform
from dalembert.spatial.structure import leaves, rebuild

__all__ = [
    "JointConstraint",
    "Row",
    "coupling_constraint",
    "force_across",
    "loop_constraint",
    "user_constraints",
]

Row = dict[int, Force]
"""One row of B: what multiplies the acceleration of each body that it concerns."""


class JointConstraint(NamedTuple):
    """The rows of B that one joint, coupling or user's constraint gives, and their right sides; `by_user`:
    a coupling or user's constraint, of which the connectivity says nothing."""

    name: str
    rows: list[Row]
    k: list[Scalar]
    by_user: bool = False


def force_across(successor: int, predecessor: int, force: Force, X: Placement) -> Row:
    """Return a force across a joint, in the coordinates of both bodies; none on the world."""
    row: Row = {} if successor < 0 else {successor: force}
    if predecessor >= 0:
        row[predecessor] = -X.inverse_apply(force)
    return row


def coupling_constraint(body: Body, active: Sequence[Sequence[Row]], tree: Tree) -> JointConstraint:
    """Return the constraint of a dependent joint: its acceleration less those that it follows, by (1)."""
    assert body.dependence is not None
    weights = {place: -ratio for _, place, ratio in body.dependence.terms}
    row = _combine_rows([(active[body.index][0], 1.0), *_weighted_rows(tree, active, weights)])
    return JointConstraint(f"coupling of {body.joint_name}", [row], [0.0], by_user=True)


def loop_constraint(
    loop: Loop, motions: PerBody[BodyMotion], time: Scalar | None, stabilization: Stabilization
) -> JointConstraint:
    """Return the constraint of a loop joint: T at both ends, and k from the motions of its two bodies
    (Eqs 8.14 to 8.19)."""
    rest = BodyMotion(Transform.identity(), Motion.zero(), Motion.zero())
    at_s, at_p = (motions[i] if i >= 0 else rest for i in (loop.successor, loop.predecessor))
    X_s, X_p = loop.placement_successor.as_transform(), loop.placement_predecessor.as_transform()
    X = (at_p.pose @ X_p).inverse() @ (at_s.pose @ X_s)
    v_s, v_p = X_s.apply(at_s.velocity), X.apply(X_p.apply(at_p.velocity))
    a_s, a_p = X_s.apply(at_s.acceleration), X.apply(X_p.apply(at_p.acceleration))
    v_J, a_J = v_s - v_p, a_s - a_p + v_s.cross(v_p)
    joint = loop.joint

    def subspace(x: Sequence[Scalar]) -> tuple[tuple[Force, ...], Motion]:
        placed, now = rebuild(X, x[:12]), x[12] if joint.time_dependent else None
        T = joint.constraint_subspace_at(placed, now)
        if not joint.time_dependent:
            return T, Motion.zero()
        return T, joint.velocity(joint.position_of(placed, now), [0.0] * joint.nv, now)

    moving = [*leaves(Transform(X.R @ v_J.angular.skew(), X.R @ v_J.linear))]
    point = leaves(X)
    if joint.time_dependent:
        point, moving = [*point, time], [*moving, 1.0]
    (T, sigma), (T_rate, sigma_rate) = directional_derivative(subspace, point, moving)
    k = [-(a_J - sigma_rate).dot(t) - (v_J - sigma).dot(rate) for t, rate in zip(T, T_rate, strict=True)]
    if stabilization is not None:
        errors = zip(k, T, joint.closure_error(X, time), strict=True)
        k = [stabilized_row(x, (v_J - sigma).dot(t), delta, stabilization) for x, t, delta in errors]
    rows: list[Row] = []
    for t in T:
        row: Row = {loop.successor: X_s.inverse_apply(t)} if loop.successor >= 0 else {}
        if loop.predecessor >= 0:
            row[loop.predecessor] = -X_p.inverse_apply(X.inverse_apply(t))
        rows.append(row)
    return JointConstraint(loop.name, rows, k)


def user_constraints(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    active: Sequence[Sequence[Row]],
    time: Scalar | None,
    stabilization: Stabilization,
) -> list[JointConstraint]:
    found: list[tuple[str, UserRows]] = []
    for item in tree.constraints:
        found.append((item.name, user_rows(original_model(tree), item, q, v, time)))
    if tree.closure is not None and not tree.constraints and not tree.loops:
        found.append(("loop closure", closure_rows(tree, q, v, time)))
    result = []
    for name, rows in found:
        errors = zip(rows.k, rows.velocity_error, rows.position_error, strict=True)
        k = [stabilized_row(x, e_v, e_p, stabilization) for x, e_v, e_p in errors]
        for number, row in enumerate(rows.K):
            weights = {place: x for place, x in enumerate(row) if not is_zero(x)}
            if weights:
                combined = _combine_rows(_weighted_rows(tree, active, weights))
                result.append(JointConstraint(f"{name}[{number}]", [combined], [k[number]], by_user=True))
    return result


def _weighted_rows(
    tree: Tree, active: Sequence[Sequence[Row]], weights: dict[int, Scalar]
) -> list[tuple[Row, Scalar]]:
    """Return the rows of (1) for places in v, with their weights."""
    found = []
    for body in tree.bodies:
        if body.dependence is None:
            for place, row in zip(range(body.v_slice.start, body.v_slice.stop), active[body.index]):
                if place in weights:
                    found.append((row, weights[place]))
    return found


def _combine_rows(parts: Sequence[tuple[Row, Scalar]]) -> Row:
    total: Row = {}
    for row, weight in parts:
        for i, force in row.items():
            total[i] = total[i] + force * weight if i in total else force * weight
    return total
