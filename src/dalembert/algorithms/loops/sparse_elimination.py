"""The sparse matrix method (Featherstone 2008 section 8.13): Eq. 8.64 in an order that keeps its zeros.

The order of elimination is chosen once, from the connectivity. Nodes are bodies (6 unknowns) and joints
(their constraint forces); a body is joined to the joints on it. The node with the fewest unknowns around it
goes first (minimum degree), which is leaves before parents in a tree, as in the articulated-body algorithm:
the cost is proportional to the number of bodies, in a ladder too.

No pivoting is needed. Bodies have positive-definite pivots from the start. The pivot of a joint is minus its
compliance through the bodies that are gone. That is regular once its bodies are gone, or all but one of which
nothing else than this joint holds the others; a joint waits until then. Joints that close a loop by then may
be redundant; a small pivot of theirs is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Unpack

from dalembert.algorithms.external_forces import Conditions
from dalembert.algorithms.loops.maximal import MaximalSystem, maximal_system
from dalembert.algorithms.rank import CANCELLATION_RATIO, threshold
from dalembert.model.topology import WORLD
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, absolute, is_zero, select

__all__ = ["EliminationStep", "accelerations_by_sparse_elimination", "elimination_order"]


class EliminationStep(NamedTuple):
    """A node that is eliminated: body or constraint `number`; `closing`: it closes a loop, and may be
    redundant; `around`: unknowns of the nodes that it touches then."""

    is_body: bool
    number: int
    closing: bool
    around: int


def accelerations_by_sparse_elimination(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    **options: Unpack[Conditions],
) -> list[Scalar]:
    """Return a `(nv,)` of a system of any connectivity;
    in O(n) operations for trees, ladders and the like."""
    system = maximal_system(tree, q, v, tau, **options)
    order = elimination_order(system)
    start = _starts(system)
    bodies = len(system.force)
    pivots = [
        (start[step.number if step.is_body else bodies + step.number] + k, step.closing)
        for step in order
        for k in range(6 if step.is_body else len(system.constraints[step.number].rows))
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
            closing = _join(ends[node - bodies], held, _reaches_world(system, node - bodies))
            closing = closing or system.constraints[node - bodies].by_user
        index = node if node < bodies else node - bodies
        order.append(EliminationStep(node < bodies, index, closing, around[node]))
        left.remove(node)
        for other in near[node]:
            near[other] = (near[other] | near[node]) - {other, node}
    return order


def _reaches_world(system: MaximalSystem, number: int) -> bool:
    """Return whether a constraint is on one body and the world."""
    return len({i for row in system.constraints[number].rows for i in row}) == 1


def _ready(number: int, ends: Sequence[Sequence[int]], held: Sequence[set[int]], left: set[int]) -> bool:
    """Return whether a joint can be eliminated.

    All of its bodies are eliminated, or all but one, to which it alone ties the others.
    """
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

    `held[i]`: the bodies, and maybe the world, that eliminated joints hold to body i.
    """
    sets = [held[i] for i in touched]
    closing = any(a & b for k, a in enumerate(sets) for b in sets[k + 1 :]) or (
        grounded and any(WORLD in members for members in sets)
    )
    joined: set[int] = set().union(*sets, {WORLD} if grounded else set())
    for i in joined - {WORLD}:
        held[i] = joined
    return closing


def _starts(system: MaximalSystem) -> list[int]:
    """Return the index of the first unknown of each node."""
    start, starts = 0, []
    for size in [6] * len(system.force) + [len(constraint.rows) for constraint in system.constraints]:
        starts.append(start)
        start += size
    return starts


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


def _solve(
    rows: list[dict[int, Scalar]], right: Sequence[Scalar], pivots: Sequence[tuple[int, bool]]
) -> list[Scalar]:
    """Solve a symmetric system by L D L^T in the given order; a closing pivot that cancels is dropped."""
    sizes: dict[int, Scalar] = {p: 0.0 for p, closing in pivots if closing}
    x = list(right)
    factors: list[tuple[int, dict[int, Scalar], Scalar]] = []
    for p, closing in pivots:
        row = rows[p]
        d = row.pop(p, 0.0)
        inverse = _reciprocal(d, sizes[p]) if closing else 1.0 / d
        scaled = {j: value * inverse for j, value in row.items()}
        for j, factor in scaled.items():
            target = rows[j]
            del target[p]
            x[j] = x[j] - factor * x[p]
            for k, value in row.items():
                if k < j:
                    continue  # the matrix is symmetric
                change = factor * value
                old = target.get(k)
                target[k] = rows[k][j] = -change if old is None else old - change
                if k == j and j in sizes:
                    sizes[j] = sizes[j] + absolute(change)
        factors.append((p, scaled, inverse))
    for p, scaled, inverse in reversed(factors):
        total = x[p] * inverse
        for j, factor in scaled.items():
            total = total - factor * x[j]
        x[p] = total
    return x


def _reciprocal(d: Scalar, size: Scalar) -> Scalar:
    """Return 1 / d, or zero if d is only the rounding error of its terms."""
    kept = size * threshold(CANCELLATION_RATIO, size) < absolute(d)
    return select(kept, 1.0 / select(kept, d, 1.0), 0.0)
