"""Explicit motion constraints v = G y', a = G y'' + g applied to a system (Featherstone 2008 §3.2).

    H_G y'' + C_G = u,     H_G = G^T H G,   C_G = G^T (C + H g),   u = G^T tau              (3.21)

is the equation of motion projected onto the motions that the constraint allows; the constraint force
tau_c = H a + C - tau has G^T tau_c = 0 (Eq. 3.16). The same follows from either of the larger systems

    [ H  -1   0 ] [  a  ]   [tau - C]          [H^-1  G] [-tau_c]   [H^-1 (tau - C) - g]
    [-1   0   G ] [tau_c] = [  -g   ]  (3.18)  [G^T   0] [  y'' ] = [        0         ]  (3.19)
    [ 0  G^T  0 ] [ y'' ]   [   0   ]

Eq. 3.19 follows from Eq. 3.18 by adding H^-1 times its first row to the second, which leaves -H^-1 tau_c; the
book prints it with tau_c in place of -tau_c. Eq. 3.17 has its -lambda in the same place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.assembly.collecting import Equations, free_acceleration
from dalembert.algorithms.dense import (
    Matrix,
    Rows,
    Vector,
    dot,
    identity,
    symmetric_product,
    times,
    transpose,
)
from dalembert.algorithms.small_solve import factor
from dalembert.scalar import Scalar

__all__ = ["Reduced", "constrain_explicitly", "dual_system", "project", "three_block_system"]


class Reduced(NamedTuple):
    """`acceleration` (n,), `constraint_force` tau_c (n,) and `independent` y'' (ny,)."""

    acceleration: Vector
    constraint_force: Vector
    independent: Vector


def project(equations: Equations, G: Rows, g: Sequence[Scalar]) -> Equations:
    """Return H_G y'' + C_G = u (Eq. 3.21): a system like the first, in the independent variables."""
    H, C, tau = equations
    columns = transpose(G)
    moved = [times(H, column) for column in columns]  # the columns of H G
    H_G = symmetric_product(columns, moved)
    bias = [c + x for c, x in zip(C, times(H, g), strict=True)]
    return Equations(H_G, times(columns, bias), times(columns, tau))


def constrain_explicitly(equations: Equations, G: Rows, g: Sequence[Scalar]) -> Reduced:
    """Return a, tau_c and y'' of the constrained system, by projection (Eq. 3.20)."""
    H, C, tau = equations
    independent = free_acceleration(project(equations, G, g))
    acceleration = [dot(row, independent) + g_i for row, g_i in zip(G, g, strict=True)]
    force = [x + c - t for x, c, t in zip(times(H, acceleration), C, tau, strict=True)]
    return Reduced(acceleration, force, independent)


def three_block_system(equations: Equations, G: Rows, g: Sequence[Scalar]) -> tuple[Matrix, Vector]:
    """Return matrix and right-hand side of Eq. 3.18, whose unknowns are a, tau_c, y''."""
    H, C, tau = equations
    n, ny = len(H), len(G[0]) if G else 0
    unit = identity(n)
    top = [[*row, *[-x for x in e], *[0.0] * ny] for row, e in zip(H, unit, strict=True)]
    middle = [[*[-x for x in e], *[0.0] * n, *row] for e, row in zip(unit, G, strict=True)]
    bottom = [[*[0.0] * n, *column, *[0.0] * ny] for column in transpose(G)]
    right = [*[t - c for t, c in zip(tau, C, strict=True)], *[-x for x in g], *[0.0] * ny]
    return top + middle + bottom, right


def dual_system(equations: Equations, G: Rows, g: Sequence[Scalar]) -> tuple[Matrix, Vector]:
    """Return matrix and right-hand side of Eq. 3.19, whose unknowns are -tau_c, y'': the dual of Eq. 3.17."""
    n, ny = len(equations.H), len(G[0]) if G else 0
    inertia = factor(equations.H)
    inverse = [inertia.solve(e) for e in identity(n)]
    top = [[*row, *own] for row, own in zip(transpose(inverse), G, strict=True)]
    bottom = [[*column, *[0.0] * ny] for column in transpose(G)]
    free = free_acceleration(equations)
    return top + bottom, [*[a - x for a, x in zip(free, g, strict=True)], *[0.0] * ny]
