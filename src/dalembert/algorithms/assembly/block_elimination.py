"""Assembly formulae by block Gaussian elimination (Featherstone 2008 §7.4, the systematic procedure).

Given equations are written as one composite equation in blocks,

    A x = r + R y                                                                               (1)

by the rules of §7.4: y is the unknown on the right of the target equation, the target's left-hand unknown is
the top entry of x, the unknown and the equation of a dimension other than six stand last, and the others in
between so that A is nearly upper-triangular. Elimination and back-substitution then express every unknown as

    x_i = M_i y + m_i                                                                           (2)

and the top entry is the target equation. `standard_equations`, `variant_1_equations` and
`variant_2_equations` are the three composite equations of Table 7.2; others may be written down likewise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.assembly.variants import active_force
from dalembert.algorithms.dense import (
    Matrix,
    Rows,
    identity,
    minus,
    product,
    times,
    transpose,
    zeros,
)
from dalembert.algorithms.elimination import solve
from dalembert.errors import ArgumentError
from dalembert.scalar import Scalar, is_zero
from dalembert.spatial import ArticulatedInertia, Force, Motion

__all__ = [
    "CompositeEquation",
    "Expressed",
    "solve_composite",
    "standard_equations",
    "variant_1_equations",
    "variant_2_equations",
]

Block = Matrix | None
"""A block of the composite matrix; None is a block of zeros."""


class CompositeEquation(NamedTuple):
    """A x = r + R y in blocks: `matrix` A, `constant` r, `coefficient` R; `sizes` of the unknowns x."""

    matrix: list[list[Block]]
    constant: list[list[Scalar]]
    coefficient: list[Block]
    sizes: tuple[int, ...]


class Expressed(NamedTuple):
    """An unknown as a function of y: `coefficient` M and `constant` m of x = M y + m."""

    coefficient: Matrix
    constant: list[Scalar]


def solve_composite(equation: CompositeEquation, width: int = 6) -> list[Expressed]:
    """Solve for every unknown as a function of y, which has `width` numbers (2)."""
    sizes = equation.sizes
    present = [i for i, size in enumerate(sizes) if size]  # a joint may have no freedom or no constraint
    A = [list(row) for row in equation.matrix]
    # r and R side by side, so that one operation serves both.
    right = [
        [[*row, x] for row, x in zip(R or zeros(sizes[i], width), r, strict=True)]
        for i, (R, r) in enumerate(zip(equation.coefficient, equation.constant, strict=True))
    ]
    for j in present:
        pivot = A[j][j]
        if pivot is None:
            raise ArgumentError(
                f"solve_composite: block ({j}, {j}) is zero when its turn comes; order equations and "
                "unknowns so that the matrix is as close as possible to upper-triangular form"
            )
        for i in present:
            below = A[i][j]
            if i <= j or below is None:
                continue
            factor = transpose(solve(transpose(pivot), transpose(below)))  # below pivot^-1
            for k in present:
                if k > j:
                    A[i][k] = _less(A[i][k], factor, A[j][k])
            right[i] = minus(right[i], product(factor, right[j]))
    found: list[Matrix] = [[] for _ in sizes]
    for i in reversed(present):
        rest = right[i]
        for k in present:
            block = A[i][k]
            if k > i and block is not None:
                rest = minus(rest, product(block, found[k]))
        pivot = A[i][i]
        assert pivot is not None
        found[i] = solve(pivot, rest)
    return [Expressed([row[:width] for row in x], [row[width] for row in x]) for x in found]


def standard_equations(
    I_1: ArticulatedInertia,
    p_1: Force,
    I_2: ArticulatedInertia,
    p_2: Force,
    S: Sequence[Motion],
    c: Motion,
    tau: Sequence[Scalar],
) -> CompositeEquation:
    """Return the equations of x = (f, f_1, f_2, a_2, q̈), y = a_1: Eqs 7.51 to 7.55."""
    one, n = identity(6), len(S)
    S_rows, S_transposed = _rows(S), [s.to_list() for s in S]
    matrix: list[list[Block]] = [
        [one, _negative(one), _negative(one), None, None],
        [None, one, None, None, None],
        [None, None, one, _negative(I_2.matrix()), None],
        [None, None, None, one, _negative(S_rows)],
        [None, None, S_transposed, None, None],
    ]
    constant = [[0.0] * 6, p_1.to_list(), p_2.to_list(), c.to_list(), list(tau)]
    return CompositeEquation(matrix, constant, [None, I_1.matrix(), None, one, None], (6, 6, 6, 6, n))


def variant_1_equations(
    Phi_1: Rows,
    b_1: Motion,
    Phi_2: Rows,
    b_2: Motion,
    T: Sequence[Force],
    T_a: Sequence[Force],
    c: Motion,
    tau: Sequence[Scalar],
) -> CompositeEquation:
    """Return the equations of x = (a_1, a_2, f_1, f_2, lambda), y = f,
    with inverse inertias and the implicit joint constraint."""
    one, n = identity(6), len(T)
    T_rows, T_transposed = _rows(T), [t.to_list() for t in T]
    matrix: list[list[Block]] = [
        [one, None, _negative(Phi_1), None, None],
        [None, one, None, _negative(Phi_2), None],
        [None, None, one, one, None],
        [None, None, None, one, _negative(T_rows)],
        [_negative(T_transposed), T_transposed, None, None, None],
    ]
    constant = [
        b_1.to_list(),
        b_2.to_list(),
        [0.0] * 6,
        active_force(T_a, tau).to_list(),
        times(T_transposed, c.to_list()),
    ]
    return CompositeEquation(matrix, constant, [None, None, one, None, None], (6, 6, 6, 6, n))


def variant_2_equations(
    I_1: ArticulatedInertia,
    p_1: Force,
    I_2: ArticulatedInertia,
    p_2: Force,
    T: Sequence[Force],
    T_a: Sequence[Force],
    c: Motion,
    tau: Sequence[Scalar],
) -> CompositeEquation:
    """Return the equations of x = (f, f_1, f_2, a_2, lambda), y = a_1,
    with inertias and the implicit joint constraint."""
    one, n = identity(6), len(T)
    T_rows, T_transposed = _rows(T), [t.to_list() for t in T]
    matrix: list[list[Block]] = [
        [one, _negative(one), _negative(one), None, None],
        [None, one, None, None, None],
        [None, None, one, _negative(I_2.matrix()), None],
        [None, None, one, None, _negative(T_rows)],
        [None, None, None, T_transposed, None],
    ]
    constant = [
        [0.0] * 6,
        p_1.to_list(),
        p_2.to_list(),
        active_force(T_a, tau).to_list(),
        times(T_transposed, c.to_list()),
    ]
    return CompositeEquation(
        matrix, constant, [None, I_1.matrix(), None, None, T_transposed], (6, 6, 6, 6, n)
    )


def _less(block: Block, factor: Matrix, over: Block) -> Block:
    """Return block - factor over, where either may be zero."""
    if over is None:
        return block
    change = product(factor, over)
    return _negative(change) if block is None else minus(block, change)


def _negative(A: Rows) -> Matrix:
    return [[0.0 if is_zero(x) else -x for x in row] for row in A]


def _rows(columns: Sequence[Motion | Force]) -> Matrix:
    """Return the 6 x n matrix with these columns."""
    return transpose([column.to_list() for column in columns]) or zeros(6, 0)
