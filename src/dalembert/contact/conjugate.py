"""(A + J^T G J) x = b where some points have bodies that are known only as the program runs.

Such points would fill all of H. So the matrix H_0 without them is factored, with its structural zeros, and
conjugate gradients, preconditioned by it, solve for the rest: n points press with at most 3 n directions, in
each of which H and H_0 differ, so that 3 n + 1 iterations would be exact (Hestenes, Stiefel 1952). One is
enough where no such point touches, and few where some do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dalembert.algorithms.dense import Matrix, dot
from dalembert.contact.chosen_points import Rows
from dalembert.contact.costs import Equality, Point
from dalembert.contact.curvature import factor, total_curvature
from dalembert.contact.joint_axes import JointAxes
from dalembert.scalar import Scalar, loop, maximum
from dalembert.spatial import SymMat3, Vec3

__all__ = ["add_impulse", "solved", "velocity_of"]

ITERATIONS = 40
"""More than are ever useful: what presses at once are a dozen directions or so."""

ACCURACY = 1e-3
"""The residual that is left of a step of Newton's method, as a share of b."""


def solved(
    axes: JointAxes,
    A: Matrix,
    points: Sequence[tuple[Point, SymMat3]],
    diagonal: Sequence[tuple[int, Scalar]],
    equalities: Sequence[Equality],
    b: Sequence[Scalar],
    accuracy: float = ACCURACY,
) -> list[Scalar]:
    """x of H x = b; `accuracy`: what may be left of b where points have bodies chosen as the program runs."""
    known = [(point, G) for point, G in points if point.rows is None]
    chosen = [(point.rows, G) for point, G in points if point.rows is not None]
    H = total_curvature(axes, A, known, diagonal, equalities)
    factors = factor(H)
    if not chosen:
        return factors.solve(b)
    weights = [1.0 / H[i][i] for i in range(len(H))]

    def pressed(v: Sequence[Scalar]) -> list[Scalar]:
        """J^T G J v of the chosen points."""
        total: list[Scalar] = [0.0] * len(v)
        for rows, G in chosen:
            add_impulse(total, rows, G @ velocity_of(rows, v))
        return total

    def size(r: Sequence[Scalar]) -> Scalar:
        return dot([y * w for y, w in zip(r, weights, strict=True)], r)

    def step(carry: Any) -> Any:
        x, r, p, along, slope, _ = carry
        z = factors.solve(r)
        falling = dot(r, z)
        beta = falling / slope
        p = [a + beta * c for a, c in zip(z, p, strict=True)]
        along = [a + beta * c for a, c in zip(r, along, strict=True)]  # H_0 p
        Hp = [a + c for a, c in zip(along, pressed(p), strict=True)]
        alpha = falling / maximum(dot(p, Hp), 1e-300)
        x = [a + alpha * c for a, c in zip(x, p, strict=True)]
        r = [a - alpha * c for a, c in zip(r, Hp, strict=True)]
        return [x, r, p, along, maximum(falling, 1e-300), size(r)]

    start = size(b)
    none: list[Scalar] = [0.0] * len(b)
    carry: Any = [none, list(b), none, none, 1.0, start]
    enough = accuracy * accuracy * start
    found: list[Scalar] = loop(ITERATIONS, step, carry, until=lambda carry: carry[5] <= enough)[0]
    return found


def velocity_of(rows: Rows, v: Sequence[Scalar]) -> Vec3:
    """J v of a point."""
    total = Vec3.zero()
    for places, column in rows:
        for place, ratio in places:
            total = total + column * (v[place] * ratio)
    return total


def add_impulse(total: list[Scalar], rows: Rows, impulse: Vec3) -> None:
    """total + J^T impulse, in place."""
    for places, column in rows:
        h = column.dot(impulse)
        for place, ratio in places:
            total[place] = total[place] + h * ratio
