"""H = A + J^T G J of all points, limits and constraints, and its factors.

Hessians of points between the world and bodies add up the tree; H_ij = s_i^T Lambda_i s_j, with Lambda_i the
sum over all bodies that joint i carries, has the zeros of the mass matrix. Points between two moving bodies,
and equalities, fill in the entries of their bodies' joints. Entries that are zero by structure stay
literals, and the elimination, leaves first, skips them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from dalembert.algorithms.dense import Matrix
from dalembert.algorithms.mass_matrix import Block, assemble_blocks
from dalembert.contact.costs import Equality, Point
from dalembert.contact.joint_axes import JointAxes
from dalembert.model.body import Body
from dalembert.model.topology import WORLD
from dalembert.scalar import Scalar, is_zero
from dalembert.spatial import ArticulatedInertia, SymMat3

__all__ = ["SparseFactor", "factor", "multiply", "assemble_hessian"]


def assemble_hessian(
    axes: JointAxes,
    A: Matrix,
    points: Sequence[tuple[Point, SymMat3]],
    diagonal: Sequence[tuple[int, Scalar]],
    equalities: Sequence[Equality],
) -> Matrix:
    """Assemble the lower triangle of H; entries above the diagonal must not be read."""
    sums: dict[tuple[int, int], ArticulatedInertia] = {}
    for point, G in points:
        pair = (point.first, point.second)
        added = point.inertia(G)
        sums[pair] = sums[pair] + added if pair in sums else added
    H = [list(row) for row in A]
    on_world = {second: total for (first, second), total in sums.items() if first == WORLD}
    if on_world:
        added_rows = assemble_blocks(axes.tree, _blocks(axes, on_world))
        H = [[h + x for h, x in zip(a, b, strict=True)] for a, b in zip(H, added_rows, strict=True)]
    for (first, second), total in sums.items():
        if first != WORLD:
            _add_pair(H, axes, first, second, total)
    for place, hessian in diagonal:
        H[place][place] = H[place][place] + hessian
    for equality in equalities:
        _add_row(H, equality)
    return H


def _blocks(axes: JointAxes, on_world: dict[int, ArticulatedInertia]) -> Iterator[Block]:
    """Yield S_i^T Lambda_i S_j for every joint i that carries a point and every joint j that carries joint
    i."""

    def step(body: Body, gathered: ArticulatedInertia) -> tuple[ArticulatedInertia, ArticulatedInertia]:
        own = on_world.get(body.index)
        total = gathered if own is None else gathered + own
        return total, total

    sums, _ = axes.tree.inward(step, ArticulatedInertia.zero())
    for i in axes.tree.bodies:
        if all(is_zero(x) for x in sums[i].leaves()):
            continue
        F = [sums[i] * s for s in axes.S[i]]
        yield Block(i, i, [[s.dot(f) for s in axes.S[i]] for f in F])
        j = i
        while j.parent >= 0:
            j = axes.tree.bodies[j.parent]
            yield Block(i, j, [[s.dot(f) for s in axes.S[j]] for f in F])


def _add_pair(H: Matrix, axes: JointAxes, first: int, second: int, total: ArticulatedInertia) -> None:
    columns = axes.columns(first, second)
    for number, (places, s) in enumerate(columns):
        f = total * s
        for other, t in columns[: number + 1]:
            h = t.dot(f)
            for r, ratio_r in places:
                for c, ratio_c in other:
                    term = h if ratio_r * ratio_c == 1.0 else h * (ratio_r * ratio_c)
                    # Two columns of one variable (a coupling) meet twice on the diagonal.
                    twice = r == c and other is not places
                    H[max(r, c)][min(r, c)] = H[max(r, c)][min(r, c)] + (term + term if twice else term)


def _add_row(H: Matrix, equality: Equality) -> None:
    found = [i for i, k in enumerate(equality.row) if not is_zero(k)]
    for i in found:
        weighted = equality.row[i] * equality.stiffness
        for j in found:
            if j <= i:
                H[i][j] = H[i][j] + weighted * equality.row[j]


@final
@dataclass(frozen=True, slots=True)
class SparseFactor:
    """H = L^T D L with the columns of each row of L that are not zero by structure."""

    rows: list[dict[int, Scalar]]
    reciprocals: list[Scalar]

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        """Return x of H x = b."""
        x = list(b)
        for k in reversed(range(len(x))):
            for i, a in self.rows[k].items():
                x[i] = x[i] - a * x[k]
        x = [y * r for y, r in zip(x, self.reciprocals, strict=True)]
        for k in range(len(x)):
            for i, a in self.rows[k].items():
                x[k] = x[k] - a * x[i]
        return x


def factor(H: Matrix) -> SparseFactor:
    """Factor a symmetric positive-definite H, of which the lower triangle is read, from the last row up."""
    n = len(H)
    lower = [{j: H[i][j] for j in range(i + 1) if not is_zero(H[i][j])} for i in range(n)]
    rows: list[dict[int, Scalar]] = [{} for _ in range(n)]
    reciprocals: list[Scalar] = [0.0] * n
    for k in reversed(range(n)):
        reciprocals[k] = 1.0 / lower[k][k]
        below = sorted((i for i in lower[k] if i < k), reverse=True)
        for i in below:
            a = lower[k][i] * reciprocals[k]
            for j in below:
                if j <= i:
                    term = a * lower[k][j]
                    lower[i][j] = lower[i][j] - term if j in lower[i] else -term
            rows[k][i] = a
    return SparseFactor(rows, reciprocals)


def multiply(A: Matrix, x: Sequence[Scalar]) -> list[Scalar]:
    """Return A x of a symmetric A, without its structural zeros."""
    result: list[Scalar] = []
    for row in A:
        total: Scalar = 0.0
        for a, b in zip(row, x, strict=True):
            if not is_zero(a):
                total = total + a * b
        result.append(total)
    return result
