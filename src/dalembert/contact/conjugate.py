"""Conjugate gradients for (A + J^T G J) x = b where some points have bodies known only at run time.

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
from dalembert.contact.curvature import assemble_hessian, factor
from dalembert.contact.joint_axes import JointAxes
from dalembert.scalar import Scalar, loop, maximum
from dalembert.spatial import SymMat3, Vec3

__all__ = ["add_impulse", "solve_newton_system", "velocity_of"]

MAX_CG_ITERATIONS = 40
"""The most iterations: more than are ever useful, as about a dozen directions press at once."""

CG_TOLERANCE = 1e-3
"""The residual of the linear system of a Newton step, as a fraction of b."""


def solve_newton_system(
    axes: JointAxes,
    A: Matrix,
    points: Sequence[tuple[Point, SymMat3]],
    diagonal: Sequence[tuple[int, Scalar]],
    equalities: Sequence[Equality],
    b: Sequence[Scalar],
    tolerance: float = CG_TOLERANCE,
) -> list[Scalar]:
    """Return x of H x = b; `tolerance`: the residual as a fraction of b where bodies are known at run
    time."""
    known = [(point, G) for point, G in points if point.rows is None]
    active = [(point.rows, G) for point, G in points if point.rows is not None]
    H = assemble_hessian(axes, A, known, diagonal, equalities)
    factors = factor(H)
    if not active:
        return factors.solve(b)
    weights = [1.0 / H[i][i] for i in range(len(H))]

    def apply_contact_hessian(v: Sequence[Scalar]) -> list[Scalar]:
        """Return J^T G J v of the active contacts."""
        total: list[Scalar] = [0.0] * len(v)
        for rows, G in active:
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
        Hp = [a + c for a, c in zip(along, apply_contact_hessian(p), strict=True)]
        alpha = falling / maximum(dot(p, Hp), 1e-300)
        x = [a + alpha * c for a, c in zip(x, p, strict=True)]
        r = [a - alpha * c for a, c in zip(r, Hp, strict=True)]
        return [x, r, p, along, maximum(falling, 1e-300), size(r)]

    start = size(b)
    none: list[Scalar] = [0.0] * len(b)
    carry: Any = [none, list(b), none, none, 1.0, start]
    enough = tolerance * tolerance * start
    found: list[Scalar] = loop(MAX_CG_ITERATIONS, step, carry, until=lambda carry: carry[5] <= enough)[0]
    return found


def velocity_of(rows: Rows, v: Sequence[Scalar]) -> Vec3:
    """Return J v of a point."""
    total = Vec3.zero()
    for places, column in rows:
        for place, ratio in places:
            total = total + column * (v[place] * ratio)
    return total


def add_impulse(total: list[Scalar], rows: Rows, impulse: Vec3) -> None:
    """Add J^T impulse to total, in place."""
    for places, column in rows:
        h = column.dot(impulse)
        for place, ratio in places:
            total[place] = total[place] + h * ratio
