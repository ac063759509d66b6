"""The equations of all bodies and all joints, without a spanning tree (Featherstone 2008 §3.7, §8.13).

    [ I     B^T ] [   a    ]   [ f ]
    [ B      0  ] [ -lambda] = [ k ],      B = T^T P^T                            (3.74, 8.64)

a are the spatial accelerations of the bodies, each in its own coordinates. Row by row B is the constraint
subspace T of a joint at its successor less T at its predecessor: P has +1 at s(j) and -1 at p(j). Here the
unknowns are d = a - a^vp, what the joint accelerations add to the velocity-product accelerations, so that

    B d = 0 for tree joints,   B d = k of Eq. 8.16 for loop joints                (1)
    f_i = -(I_i a_i^vp + v_i x* I_i v_i) + weight + external + T_a tau            (2)
    a_j = T_a^T (d_s - d_p)    the joints' accelerations                          (3)

Armatures m add m w w^T to I, with w = T_a at s and -T_a at p. By (3) any equation between joint accelerations
is one between bodies: couplings, and users' constraints.

I must be regular, which that of a thin rod is not: it has no moment about itself. Then joints on the body
hold it: with (B^T w B) d = B^T w k added to the upper equation, which changes no solution, I + B^T w B is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, Unpack, final

import numpy as np

from dalembert.algorithms.applied_forces import Conditions, Loads, Stabilization, body_forces, stabilized_row
from dalembert.algorithms.constraints import loop_bias, rows_of_users
from dalembert.algorithms.dense import (
    CANCELLATION_RATIO,
    Matrix,
    dot,
    factor,
    factor_semidefinite,
    symmetric_product,
    threshold,
    total,
)
from dalembert.algorithms.kinematics import BodyMotion, body_motions
from dalembert.errors import ModelError
from dalembert.model.body import Body, Loop
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time, absolute, is_zero, literal, select
from dalembert.spatial import Force, Motion, Placement, Transform, Vec3

# The rows of B d = k: constraints of joints, couplings and users on the accelerations of all bodies.
#
# That of a joint is its constraint force, at the successor less at the predecessor (Featherstone 2008 §3.7);
# by (3) any equation between joint accelerations is one between bodies.

Row = dict[int, Force]
"""One row of B: what multiplies the acceleration of each body that it concerns."""

JointRows = Sequence[Sequence[Row]]
"""The rows of (3) of every joint."""


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


def coupling_constraint(body: Body, active: JointRows, tree: Tree) -> JointConstraint:
    """Return the constraint of a dependent joint: its acceleration less those that it follows, by (3)."""
    assert body.dependence is not None
    weights = {place: -ratio for _, place, ratio in body.dependence.terms}
    row = _combine_rows([(active[body.index][0], 1.0), *_weighted_rows(tree, active, weights)])
    return JointConstraint(f"coupling of {body.joint_name}", [row], [0.0], by_user=True)


def loop_constraint(
    loop: Loop, motions: PerBody[BodyMotion], time: Time, stabilization: Stabilization
) -> JointConstraint:
    """Return the constraint of a loop joint: T at both ends, k from the motions of its two bodies."""
    rest = BodyMotion(Transform.identity(), Motion.zero(), Motion.zero())
    at_s, at_p = (motions[i] if i >= 0 else rest for i in (loop.successor, loop.predecessor))
    X_s, X_p = loop.placement_successor.as_transform(), loop.placement_predecessor.as_transform()
    X = (at_p.pose @ X_p).inverse() @ (at_s.pose @ X_s)
    v_s, v_p = X_s.apply(at_s.velocity), X.apply(X_p.apply(at_p.velocity))
    a_s, a_p = X_s.apply(at_s.acceleration), X.apply(X_p.apply(at_p.acceleration))
    v_J, a_J = v_s - v_p, a_s - a_p + v_s.cross(v_p)
    T, k, slip = loop_bias(loop.joint, X, v_J, a_J, time)
    if stabilization is not None:
        errors = zip(k, T, loop.joint.closure_error(X, time), strict=True)
        k = [stabilized_row(x, slip.dot(t), delta, stabilization) for x, t, delta in errors]
    ends = [
        (loop.successor, [X_s.inverse_apply(t) for t in T]),
        (loop.predecessor, [-X_p.inverse_apply(X.inverse_apply(t)) for t in T]),
    ]
    rows = [{i: forces[number] for i, forces in ends if i >= 0} for number in range(len(T))]
    return JointConstraint(loop.name, rows, k)


def user_constraints(
    tree: Tree, q: Scalars, v: Scalars, active: JointRows, time: Time, stabilization: Stabilization
) -> list[JointConstraint]:
    """Return the constraints of users, and the loop closure where that is the only constraint, by (3)."""
    result = []
    for name, rows in rows_of_users(tree, q, v, time):
        errors = zip(rows.k, rows.velocity_error, rows.position_error, strict=True)
        k = [stabilized_row(x, e_v, e_p, stabilization) for x, e_v, e_p in errors]
        for number, row in enumerate(rows.K):
            weights = {place: x for place, x in enumerate(row) if not is_zero(x)}
            if weights:
                combined = _combine_rows(_weighted_rows(tree, active, weights))
                result.append(JointConstraint(f"{name}[{number}]", [combined], [k[number]], by_user=True))
    return result


def _weighted_rows(tree: Tree, active: JointRows, weights: dict[int, Scalar]) -> list[tuple[Row, Scalar]]:
    """Return the rows of (3) for places in v, with their weights."""
    return [
        (row, weights[place])
        for body in tree.bodies
        if body.dependence is None
        for place, row in enumerate(active[body.index], body.v_slice.start)
        if place in weights
    ]


def _combine_rows(parts: Sequence[tuple[Row, Scalar]]) -> Row:
    total: Row = {}
    for row, weight in parts:
        for i, force in row.items():
            total[i] = total[i] + force * weight if i in total else force * weight
    return total


SINGULAR_EIGENVALUE_RATIO = 1e-9
"""Ratio of the least to the greatest eigenvalue up to which an inertia is singular."""


@final
@dataclass(frozen=True, slots=True)
class MaximalSystem:
    """I by blocks (bodies i, j: 6 x 6), f (6 a body), and the constraints; `active` gives (3) back."""

    inertia: dict[tuple[int, int], Matrix]
    force: list[list[Scalar]]
    constraints: list[JointConstraint]
    active: list[list[Row]]

    def joint_accelerations(self, tree: Tree, d: Sequence[Scalars]) -> list[Scalar]:
        """Compute (3) for the independent joints."""
        result: list[Scalar] = [0.0] * tree.nv
        for body in tree.bodies:
            if body.dependence is None:
                for place, row in enumerate(self.active[body.index], body.v_slice.start):
                    result[place] = total(dot(force.to_list(), d[i]) for i, force in row.items())
        return result


def connectivity(tree: Tree) -> list[list[int]]:
    """Return P, with a row for each body and a column for each joint (tree joints, then loop joints).

    +1 at the joint's successor, -1 at its predecessor, 0 elsewhere (Eq. 3.69).
    v_J = P^T v, f = P f_J (Eqs 3.67, 3.70).
    """
    ends = [(body.parent, body.index) for body in tree.bodies]
    ends += [(loop.predecessor, loop.successor) for loop in tree.loops]
    return [[(i == s) - (i == p) for p, s in ends] for i in range(len(tree.bodies))]


def accelerations_by_maximal_coordinates(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Conditions]
) -> list[Scalar]:
    """Return a `(nv,)` of a system of any connectivity, a tree or not: Eq. 3.74 by dense matrices.

    B I^-1 B^T lambda = k - B I^-1 f first, then d = I^-1 (f + B^T lambda).
    """
    system = maximal_system(tree, q, v, tau, **given)
    n = 6 * len(tree.bodies)
    I: Matrix = [[0.0] * n for _ in range(n)]
    for (i, j), block in system.inertia.items():
        for r in range(6):
            for c in range(6):
                I[6 * i + r][6 * j + c] = block[r][c]
    B: Matrix = []
    k: list[Scalar] = []
    for constraint in system.constraints:
        k += constraint.k
        for row in constraint.rows:
            full: list[Scalar] = [0.0] * n
            for i, coefficient in row.items():
                full[6 * i : 6 * i + 6] = coefficient.to_list()
            B.append(full)
    f = [x for part in system.force for x in part]
    inverse = factor(I)
    columns = [inverse.solve(row) for row in B]
    free = inverse.solve(f)
    A = symmetric_product(B, columns)
    lam = factor_semidefinite(A).solve([k_i - dot(row, free) for row, k_i in zip(B, k, strict=True)])
    d = [x + sum((c[i] * y for c, y in zip(columns, lam, strict=True)), 0.0) for i, x in enumerate(free)]
    return system.joint_accelerations(tree, [d[6 * i : 6 * i + 6] for i in range(len(tree.bodies))])


def maximal_system(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    *,
    stabilization: Stabilization = None,
    **given: Unpack[Loads],
) -> MaximalSystem:
    """Return I, f and B of a system in motion, in time proportional to its bodies and joints."""
    time = given.get("time")
    motions = body_motions(tree, q, v, time=time)
    f_x = body_forces(tree, q, **given)
    inertia = {(body.index, body.index): body.inertia.matrix() for body in tree.bodies}
    force = []
    for body, (pose, velocity, a_vp) in zip(tree.bodies, motions, strict=True):
        fall = a_vp - pose.apply(Motion(Vec3.zero(), tree.gravity))
        f = -(body.inertia * fall + velocity.cross(body.inertia * velocity))
        force.append((f if f_x is None else f + f_x[body]).to_list())
    constraints: list[JointConstraint] = []
    active: list[list[Row]] = []
    for body in tree.bodies:
        own_q = body.own_q(q)
        X = body.link_transform(q, time)
        T = [force_across(body.index, body.parent, t, X) for t in body.joint.constraint_subspace(own_q, time)]
        T_a = [force_across(body.index, body.parent, t, X) for t in body.joint.active_subspace(own_q, time)]
        constraints.append(JointConstraint(body.joint_name, T, [0.0] * len(T)))
        active.append(T_a)
        for row, armature in zip(T_a, body.armature, strict=True):
            _add_armature(inertia, row, armature)
        if body.dependence is None:
            for row, t in zip(T_a, body.own_v(tau), strict=True):
                _push(force, row, t)
    constraints += [
        coupling_constraint(body, active, tree) for body in tree.bodies if body.dependence is not None
    ]
    for loop in tree.loops:
        constraints.append(loop_constraint(loop, motions, time, stabilization))
    _hold_thin_bodies(tree, inertia, force, constraints)
    constraints += user_constraints(tree, q, v, active, time, stabilization)
    return MaximalSystem(inertia, force, [c for c in constraints if c.rows], active)


def _hold_thin_bodies(
    tree: Tree,
    inertia: dict[tuple[int, int], Matrix],
    force: list[list[Scalar]],
    constraints: Sequence[JointConstraint],
) -> None:
    """Add B^T w B and B^T w k of all joints on bodies whose own inertia is singular."""
    weights = {body.index: weight for body in tree.bodies if (weight := _thinness(body)) > 0.0}
    for constraint in constraints:
        for row, k in zip(constraint.rows, constraint.k, strict=True):
            weight = max((weights.get(i, 0.0) for i in row), default=0.0)
            _add_armature(inertia, row, weight)
            if weight > 0.0 and not is_zero(k):
                _push(force, row, weight * k)


def _thinness(body: Body) -> float:
    """Return the largest entry of a singular inertia, else zero; unknown inertias count as regular."""
    numbers = [[literal(x) for x in row] for row in body.inertia.matrix()]
    known = [[x for x in row if x is not None] for row in numbers]
    if any(len(row) < 6 for row in known):
        return 0.0
    sizes = np.linalg.eigvalsh(np.array(known))
    if sizes[0] < -SINGULAR_EIGENVALUE_RATIO * np.abs(sizes).max():
        raise ModelError(
            f'forward_dynamics in maximal coordinates: body "{body.name}" has a negative inertia; '
            "give it one that a body can have, or use a method of the spanning tree"
        )
    if sizes[0] > SINGULAR_EIGENVALUE_RATIO * sizes[-1]:
        return 0.0
    return float(np.max(np.abs(known))) or 1.0


def _add_armature(inertia: dict[tuple[int, int], Matrix], row: Row, armature: Scalar) -> None:
    if is_zero(armature):
        return
    for i, w_i in row.items():
        for j, w_j in row.items():
            old = inertia.get((i, j), [[0.0] * 6 for _ in range(6)])
            left, right = w_i.to_list(), w_j.to_list()
            inertia[i, j] = [[old[r][c] + armature * left[r] * right[c] for c in range(6)] for r in range(6)]


def _push(force: list[list[Scalar]], row: Row, size: Scalar) -> None:
    for i, direction in row.items():
        force[i] = [x + y * size for x, y in zip(force[i], direction.to_list(), strict=True)]


# The sparse matrix method (Featherstone 2008 section 8.13): Eq. 8.64 in an order that keeps its zeros.
#
# The order of elimination is chosen once, from the connectivity. Nodes are bodies (6 unknowns) and joints
# (their constraint forces); a body is joined to the joints on it. The node with the fewest unknowns around it
# goes first (minimum degree), which is leaves before parents in a tree, as in the articulated-body algorithm:
# the cost is proportional to the number of bodies, in a ladder too.
#
# No pivoting is needed. Bodies have positive-definite pivots from the start. The pivot of a joint is minus
# its compliance through the bodies that are gone. That is regular once its bodies are gone, or all but one of
# which nothing else than this joint holds the others; a joint waits until then. Joints that close a loop by
# then may be redundant; a small pivot of theirs is dropped.


class EliminationStep(NamedTuple):
    """A node that is eliminated: body or constraint `number`; `closing`: it closes a loop, and may be
    redundant; `around`: unknowns of the nodes that it touches then."""

    is_body: bool
    number: int
    closing: bool
    around: int


def accelerations_by_sparse_elimination(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Conditions]
) -> list[Scalar]:
    """Return a `(nv,)` of a system of any connectivity; O(n) for trees, ladders and the like."""
    system = maximal_system(tree, q, v, tau, **given)
    order = elimination_order(system)
    bodies = len(system.force)
    sizes = [6] * bodies + [len(constraint.rows) for constraint in system.constraints]
    start = list(accumulate(sizes, initial=0))[:-1]  # the first unknown of each node
    pivots = [
        (start[step.number if step.is_body else bodies + step.number] + k, step.closing)
        for step in order
        for k in range(sizes[step.number if step.is_body else bodies + step.number])
    ]
    x = _solve(*_matrix(system, start), pivots)
    d = [[x[start[i] + r] for r in range(6)] for i in range(bodies)]
    return system.joint_accelerations(tree, d)


def elimination_order(system: MaximalSystem) -> list[EliminationStep]:
    """Return every body and every constraint in the order of minimum degree that needs no pivoting."""
    bodies = len(system.force)
    sizes = [6] * bodies + [len(constraint.rows) for constraint in system.constraints]
    ends = [sorted({i for row in constraint.rows for i in row}) for constraint in system.constraints]
    near: list[set[int]] = [set() for _ in sizes]
    for number, touched in enumerate(ends):
        for i in touched:
            near[i].add(bodies + number)
            near[bodies + number].add(i)
    for i, j in system.inertia:
        if i != j:
            near[i].add(j)
    held = [{i} for i in range(bodies)]
    left = set(range(len(sizes)))
    order = []
    while left:
        around = {
            node: sum(sizes[other] for other in near[node])
            for node in left
            if node < bodies or _ready(node - bodies, ends, held, left)
        }
        node = min(around, key=lambda item: (around[item], -item))
        closing = False
        if node >= bodies:
            touched = ends[node - bodies]
            closing = _join(touched, held, grounded=len(touched) == 1)
            closing = closing or system.constraints[node - bodies].by_user
        index = node if node < bodies else node - bodies
        order.append(EliminationStep(node < bodies, index, closing, around[node]))
        left.remove(node)
        for other in near[node]:
            near[other] = (near[other] | near[node]) - {other, node}
    return order


def _ready(number: int, ends: Sequence[Sequence[int]], held: Sequence[set[int]], left: set[int]) -> bool:
    """Return whether all bodies of a joint are gone, or all but one, to which it alone ties the others."""
    waiting = [i for i in ends[number] if i in left]
    if not waiting:
        return True
    gone = [i for i in ends[number] if i not in left]
    if len(waiting) > 1 or not gone:
        return False
    members = set().union(*(held[i] for i in gone))
    bodies = len(held)
    return WORLD not in members and not any(
        other != number and bodies + other in left and members.intersection(touched)
        for other, touched in enumerate(ends)
    )


def _join(touched: Sequence[int], held: list[set[int]], grounded: bool) -> bool:
    """Join the sets of bodies that a joint connects; return whether some were connected before.

    `held[i]`: the bodies, and maybe the world, that eliminated joints hold to body i; `grounded`: the world
    is one of the bodies that the joint connects.
    """
    sets = [held[i] for i in touched]
    closing = any(a & b for k, a in enumerate(sets) for b in sets[k + 1 :]) or (
        grounded and any(WORLD in members for members in sets)
    )
    joined: set[int] = set().union(*sets, {WORLD} if grounded else set())
    for i in joined - {WORLD}:
        held[i] = joined
    return closing


def _matrix(system: MaximalSystem, start: Sequence[int]) -> tuple[list[dict[int, Scalar]], list[Scalar]]:
    """Return the coefficients of Eq. 8.64, by rows without their zeros, and its right side."""
    right = [x for part in system.force for x in part]
    right += [x for constraint in system.constraints for x in constraint.k]
    rows: list[dict[int, Scalar]] = [{} for _ in right]
    for (i, j), block in system.inertia.items():
        for r in range(6 if i <= j else 0):  # one of two equal halves
            for c in range(r if i == j else 0, 6):
                if not is_zero(block[r][c]):
                    rows[start[i] + r][start[j] + c] = rows[start[j] + c][start[i] + r] = block[r][c]
    bodies = len(system.force)
    for number, constraint in enumerate(system.constraints):
        for offset, row in enumerate(constraint.rows):
            here = start[bodies + number] + offset
            for i, force in row.items():
                for r, x in enumerate(force.to_list()):
                    if not is_zero(x):
                        rows[here][start[i] + r] = x
                        rows[start[i] + r][here] = x
    return rows, right


def _solve(rows: list[dict[int, Scalar]], right: Scalars, pivots: Sequence[tuple[int, bool]]) -> list[Scalar]:
    """Solve a symmetric system by L D L^T in the given order; a closing pivot that cancels is dropped."""
    sizes: dict[int, Scalar] = {p: 0.0 for p, closing in pivots if closing}
    x = list(right)
    factors: list[tuple[int, dict[int, Scalar], Scalar]] = []
    for p, closing in pivots:
        row = rows[p]
        d = row.pop(p, 0.0)
        if closing:  # zero if d is only the rounding error of its terms
            kept = sizes[p] * threshold(CANCELLATION_RATIO, sizes[p]) < absolute(d)
            inverse = select(kept, 1.0 / select(kept, d, 1.0), 0.0)
        else:
            inverse = 1.0 / d
        scaled = {j: value * inverse for j, value in row.items()}
        for j, weight in scaled.items():
            target = rows[j]
            del target[p]
            x[j] = x[j] - weight * x[p]
            for k, value in row.items():
                if k < j:
                    continue  # the matrix is symmetric
                change = weight * value
                old = target.get(k)
                target[k] = rows[k][j] = -change if old is None else old - change
                if k == j and j in sizes:
                    sizes[j] = sizes[j] + absolute(change)
        factors.append((p, scaled, inverse))
    for p, scaled, inverse in reversed(factors):
        total = x[p] * inverse
        for j, weight in scaled.items():
            total = total - weight * x[j]
        x[p] = total
    return x
