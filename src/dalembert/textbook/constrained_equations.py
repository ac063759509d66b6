"""Equations of motion collected, constrained and projected (Featherstone 2008 §3.2, §3.3 and §3.6), and
assembly formulae by block elimination (§7.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Unpack

from dalembert.algorithms.applied_forces import Loads, Stabilization, body_forces
from dalembert.algorithms.articulated import joint_inertia, velocity_products
from dalembert.algorithms.dense import (
    Matrix,
    Rows,
    Vector,
    dot,
    factor,
    factor_semidefinite,
    identity,
    minus,
    product,
    reduce_rows,
    solve,
    symmetric_product,
    times,
    transpose,
    unit,
    zeros,
)
from dalembert.algorithms.open_tree import require_moving_mass, require_open_tree, velocity_places
from dalembert.errors import ArgumentError
from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, Scalars, is_zero
from dalembert.spatial import Force, Motion, Vec3
from dalembert.textbook.handles import Forces, Inertia, combine, handle_inertia, rows_of
from dalembert.textbook.lagrange import add_armature

# Vector subspaces as the ranges of matrices (Featherstone 2008 §3.3).
#
# A subspace is given by its columns, n numbers each. A motion subspace S and its orthogonal complement S^⊥
# lie in spaces that are dual to each other: the columns of S are motions, those of S^⊥ forces, and S^T f = 0
# is no power. Euclidean orthogonality has no meaning here, since it adds squares of metres and radians.
#
#     dim S + dim S^⊥ = n,     S_1 ⊕ S_2^⊥ = U  exactly where  S_1^T S_2  can be inverted     (Table 3.1)

Columns = Rows
"""The columns of the matrix of a subspace."""


def decompose(v: Scalars, *subspaces: Columns) -> list[Vector]:
    """Return the parts v_1 + v_2 + … = v of a vector in subspaces whose direct sum is the whole space.

    [alpha_1; alpha_2] = [S_1 S_2]^-1 v (Eqs 3.26, 3.27); v_i = S_i alpha_i does not depend on the bases.
    """
    columns = [column for S in subspaces for column in S]
    if len(columns) != len(v):
        raise ArgumentError(
            f"decompose: the subspaces have {len(columns)} columns together and the vector has {len(v)} "
            "numbers; a direct sum needs one column for each"
        )
    alpha = [row[0] for row in solve(transpose(columns), [[x] for x in v])]
    parts: list[Vector] = []
    for S in subspaces:
        own, alpha = alpha[: len(S)], alpha[len(S) :]
        parts.append(times(transpose(S), own) if S else [0.0] * len(v))
    return parts


def dual_complement(S: Columns, n: int) -> Matrix:
    """Return columns that span S^⊥ in the dual space: n - dim S of them, with S^T T = 0, for S of full rank.

    Elimination finds an invertible A with A S = [1; 0]; the last rows of A are the columns of S^⊥.
    """
    rows = [[column[i] for column in S] + unit(n, i) for i in range(n)]
    return [row[len(S) :] for row in reduce_rows(rows, len(S))[len(S) :]]


def dimension(S: Columns) -> Scalar:
    """Return dim(span S), as a scalar: how many columns have a part outside the span of those before them.

    From the pivots of the columns' Gram matrix, which `factor_semidefinite` keeps or drops.
    """
    return sum(factor_semidefinite([[dot(a, b) for b in S] for a in S]).independent_rows, 0.0)


def split_force(inertia: Inertia, S: Sequence[Motion], f: Force) -> tuple[Force, Force]:
    """Return (f_a, f_c) with f = f_a + f_c: f_a accelerates a body that may move in S, bearings oppose f_c.

    f_a = I S (S^T I S)^-1 S^T f lies in I S, f_c in S^⊥; F^6 is their direct sum for any basis of S
    (Example 3.1, Eq. 3.28). The acceleration is S (S^T I S)^-1 S^T f.
    """
    U = [inertia * s for s in S]
    alpha = factor(joint_inertia(S, U, [0.0] * len(S))).solve([s.dot(f) for s in S])
    accelerating = combine(U, alpha)
    return accelerating, f - accelerating


# Equations of motion collected into those of a bigger system (Featherstone 2008 §3.2, Eq. 3.10).
#
#     [H_1         ] [a_1]   [C_1]   [tau_1]
#     [     H_2    ] [a_2] + [C_2] = [tau_2]
#     [         ...] [...]   [...]   [ ... ]
#
# A subsystem is a system in joint coordinates, H a + C = tau, or one body in spatial coordinates, I a + p =
# f: Plücker coordinates are generalized coordinates, so that both may be mixed.


class Equations(NamedTuple):
    """H a + C = tau: `H` (n, n) symmetric and positive definite, `C` (n,), `tau` (n,)."""

    H: Matrix
    C: Vector
    tau: Vector


def body_equations(inertia: Inertia, p: Force, f: Force) -> Equations:
    """Return I a + p = f of one body in spatial coordinates: six equations (Eq. 2.69)."""
    return Equations(inertia.matrix(), p.to_list(), f.to_list())


def collect(systems: Iterable[Equations]) -> Equations:
    """Return the equations of all systems as those of one (Eq. 3.10)."""
    held = list(systems)
    n = sum(len(system.C) for system in held)
    H: Matrix = []
    for system in held:
        before, own = len(H), len(system.C)
        H += [[0.0] * before + list(row) + [0.0] * (n - before - own) for row in system.H]
    return Equations(H, [x for s in held for x in s.C], [x for s in held for x in s.tau])


def free_acceleration(equations: Equations) -> Vector:
    """Return a = H^-1 (tau - C): the motion without further constraints."""
    H, C, tau = equations
    return factor(H).solve([t - c for t, c in zip(tau, C, strict=True)])


# Implicit motion constraints K a = k applied to a system (Featherstone 2008 §3.2, Eqs 3.15 and 3.17).
#
#     [H  K^T] [   a   ]   [tau - C]
#     [K   0 ] [-lambda] = [   k   ]                                                              (3.17)
#
# The constraint force K^T lambda does no work in any motion that the constraint allows. The coefficient
# matrix has the rank n + rank K. Eliminating a leaves
#
#     A lambda = k - K H^-1 (tau - C),     A = K H^-1 K^T                                           (1)
#     a = H^-1 (tau - C + K^T lambda)                                                               (2)
#
# with A positive semidefinite. Where constraints repeat one another A is singular, lambda is one of many, and
# a is unique all the same.


class Constrained(NamedTuple):
    """`acceleration` (n,) and the force variables lambda `multipliers` (nc,)."""

    acceleration: Vector
    multipliers: Vector


def constrain(equations: Equations, K: Rows, k: Scalars) -> Constrained:
    """Solve Eq. 3.17 for a and lambda; K may have dependent rows, whose lambda is then 0."""
    H, C, tau = equations
    inertia = factor(H)
    free = inertia.solve([t - c for t, c in zip(tau, C, strict=True)])
    moved = [inertia.solve(row) for row in K]  # the rows of K H^-1
    A = [[dot(K[i], moved[j]) for j in range(i + 1)] for i in range(len(K))]
    error = [k_i - dot(row, free) for k_i, row in zip(k, K, strict=True)]
    multipliers = factor_semidefinite(A).solve(error)  # (1)
    acceleration = list(free)
    for row, force in zip(moved, multipliers, strict=True):
        acceleration = [a + x * force for a, x in zip(acceleration, row, strict=True)]  # (2)
    return Constrained(acceleration, multipliers)


def constraint_matrix(H: Rows, K: Rows) -> Matrix:
    """Return the coefficient matrix [[H, K^T], [K, 0]] of Eq. 3.17."""
    upper = [[*row, *column] for row, column in zip(H, transpose(K) or zeros(len(H), 0), strict=True)]
    return upper + [[*row, *[0.0] * len(K)] for row in K]


# One body on a joint, solved in three ways (Featherstone 2008 §3.6).
#
#     f + f_c = I a + p,     v in S,  f_c in S^⊥,     a = S q̈ + c,  c = S' q'           (3.45, 3.46, 3.49)
#
# `I` the inertia, `p` the bias force v x* I v - f_g, `f` the applied force, `S` the joint's motion subspace
# and `T` its constraint-force subspace, all in one coordinate system.


def apparent_inverse_inertia(
    inertia: Inertia, p: Force, S: Sequence[Motion], c: Motion
) -> tuple[Matrix, Motion]:
    """Return (Phi, b) of a = Phi f + b by method 1: Phi = S (S^T I S)^-1 S^T, b = c - Phi (I c + p).

    Phi has the range S, the null space S^⊥ and the rank of S (Eqs 3.53 to 3.55).
    """
    H = factor(joint_inertia(S, [inertia * s for s in S], [0.0] * len(S)))
    rows = rows_of(S)
    Phi = symmetric_product([H.solve(row) for row in rows], rows)
    return Phi, c - Motion.of(times(Phi, (inertia * c + p).to_list()))


def body_with_constraint_forces(
    inertia: Inertia, p: Force, T: Sequence[Force], k: Scalars, f: Force
) -> tuple[Motion, list[Scalar]]:
    """Return (a, lambda) by method 2: [I T; T^T 0] [a; -lambda] = [f - p; k], k = T^T c (Eq. 3.60)."""
    a, multipliers = constrain(body_equations(inertia, p, f), [t.to_list() for t in T], k)
    return Motion.of(a), multipliers


def body_in_joint_coordinates(
    inertia: Inertia, p: Force, S: Sequence[Motion], c: Motion, f: Force
) -> Equations:
    """Return H q̈ + C = tau by method 3: H = S^T I S, C = S^T (I c + p), tau = S^T f (Eqs 3.61 to 3.64)."""
    H = joint_inertia(S, [inertia * s for s in S], [0.0] * len(S))
    bias = inertia * c + p
    return Equations(H, [s.dot(bias) for s in S], [s.dot(f) for s in S])


# Explicit motion constraints v = G y', a = G y'' + g applied to a system (Featherstone 2008 §3.2).
#
#     H_G y'' + C_G = u,     H_G = G^T H G,   C_G = G^T (C + H g),   u = G^T tau              (3.21)
#
# is the equation of motion projected onto the motions that the constraint allows; the constraint force tau_c
# = H a + C - tau has G^T tau_c = 0 (Eq. 3.16). The same follows from either of the larger systems
#
#     [ H  -1   0 ] [  a  ]   [tau - C]          [H^-1  G] [-tau_c]   [H^-1 (tau - C) - g]
#     [-1   0   G ] [tau_c] = [  -g   ]  (3.18)  [G^T   0] [  y'' ] = [        0         ]  (3.19)
#     [ 0  G^T  0 ] [ y'' ]   [   0   ]
#
# Eq. 3.19 follows from Eq. 3.18 by adding H^-1 times its first row to the second, which leaves -H^-1 tau_c;
# the book prints it with tau_c in place of -tau_c. Eq. 3.17 has its -lambda in the same place.


class Reduced(NamedTuple):
    """`acceleration` (n,), `constraint_force` tau_c (n,) and `independent` y'' (ny,)."""

    acceleration: Vector
    constraint_force: Vector
    independent: Vector


def project(equations: Equations, G: Rows, g: Scalars) -> Equations:
    """Return H_G y'' + C_G = u (Eq. 3.21): a system like the first, in the independent variables."""
    H, C, tau = equations
    columns = transpose(G)
    moved = [times(H, column) for column in columns]  # the columns of H G
    H_G = symmetric_product(columns, moved)
    bias = [c + x for c, x in zip(C, times(H, g), strict=True)]
    return Equations(H_G, times(columns, bias), times(columns, tau))


def constrain_explicitly(equations: Equations, G: Rows, g: Scalars) -> Reduced:
    """Return a, tau_c and y'' of the constrained system, by projection (Eq. 3.20)."""
    H, C, tau = equations
    independent = free_acceleration(project(equations, G, g))
    acceleration = [dot(row, independent) + g_i for row, g_i in zip(G, g, strict=True)]
    force = [x + c - t for x, c, t in zip(times(H, acceleration), C, tau, strict=True)]
    return Reduced(acceleration, force, independent)


def three_block_system(equations: Equations, G: Rows, g: Scalars) -> tuple[Matrix, Vector]:
    """Return matrix and right-hand side of Eq. 3.18, whose unknowns are a, tau_c, y''."""
    H, C, tau = equations
    n, ny = len(H), len(G[0]) if G else 0
    less_one = _negative(identity(n))
    top = [[*row, *e, *[0.0] * ny] for row, e in zip(H, less_one, strict=True)]
    middle = [[*e, *[0.0] * n, *row] for e, row in zip(less_one, G, strict=True)]
    bottom = [[*[0.0] * n, *column, *[0.0] * ny] for column in transpose(G)]
    right = [*[t - c for t, c in zip(tau, C, strict=True)], *[-x for x in g], *[0.0] * ny]
    return top + middle + bottom, right


def dual_system(equations: Equations, G: Rows, g: Scalars) -> tuple[Matrix, Vector]:
    """Return matrix and right-hand side of Eq. 3.19, whose unknowns are -tau_c, y'': the dual of Eq. 3.17."""
    ny = len(G[0]) if G else 0
    top = [[*row, *own] for row, own in zip(handle_inertia(equations.H), G, strict=True)]
    bottom = [[*column, *[0.0] * ny] for column in transpose(G)]
    free = free_acceleration(equations)
    return top + bottom, [*[a - x for a, x in zip(free, g, strict=True)], *[0.0] * ny]


# Forward dynamics by projection: all bodies are collected, then all joints applied (Featherstone 2008 §3.2).
#
# The bodies' spatial equations side by side, I_i a_i + p_i = f_i, under the explicit constraint of the joints
#
#     a_i = J_i a + g_i,     g_i = X g_lambda + c_i,  g_0 = -gravity                                    (1)
#
# with J_i the body's Jacobian in its own coordinates, become sum J_i^T I_i J_i a + sum J_i^T (p_i + I_i g_i)
# = tau: the projection of Newton's and Euler's equations onto the motions that the joints allow. It takes
# O(N^3) operations and says what M and b are; couplings are only another Jacobian.

Moving = tuple[dict[int, Motion], Motion]
"""Of a body: the columns of its Jacobian by their place in v, and g (1)."""


def forward_dynamics_by_projection(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    *,
    stabilization: Stabilization = None,
    **given: Unpack[Loads],
) -> list[Scalar]:
    """Solve M a + b = tau + external for a `(nv,)` by projecting the bodies' equations onto the joints.

    `stabilization` is for constraints, which this method does not take.
    """
    require_open_tree(tree, 'forward_dynamics with method="projection"')
    require_moving_mass(tree, 'forward_dynamics with method="projection"')
    return free_acceleration(projected_equations(tree, q, v, tau, **given))


def projected_equations(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Loads]
) -> Equations:
    """Return M a + b = tau of a tree: the bodies' equations collected (Eq. 3.10) and projected (Eq. 3.21)."""
    moved = velocity_products(tree, q, v, body_forces(tree, q, **given), given.get("time"))

    def step(body: Body, parent: Moving) -> tuple[Moving, Moving]:
        (X, S, _, _), c, _ = moved[body]
        J = {place: X.apply(column) for place, column in parent[0].items()}
        for places, s in zip(velocity_places(body), S, strict=True):
            for place, ratio in places:
                J[place] = J.get(place, Motion.zero()) + s * ratio
        motion = (J, X.apply(parent[1]) + c)  # (1)
        return motion, motion

    motions = tree.outward(step, ({}, Motion(Vec3.zero(), -tree.gravity)))
    bodies = collect(body_equations(body.inertia, moved[body][2], Force.zero()) for body in tree.bodies)
    zero = Motion.zero()
    G = [row for J, _ in motions for row in rows_of([J.get(place, zero) for place in range(tree.nv)])]
    M, b, _ = project(bodies, G, [x for _, g in motions for x in g])
    add_armature(tree, M)
    return Equations(M, b, list(tau))


# Assembly formulae by block Gaussian elimination (Featherstone 2008 §7.4, the systematic procedure).
#
# Given equations are written as one composite equation in blocks,
#
#     A x = r + R y                                                                               (1)
#
# by the rules of §7.4: y is the unknown on the right of the target equation, the target's left-hand unknown
# is the top entry of x, the unknown and the equation of a dimension other than six stand last, and the others
# in between so that A is nearly upper-triangular. Elimination and back-substitution then express every
# unknown as
#
#     x_i = M_i y + m_i                                                                           (2)
#
# and the top entry is the target equation. `standard_equations`, `variant_1_equations` and
# `variant_2_equations` are the three composite equations of Table 7.2; others may be written down likewise.

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
                over = A[j][k]
                if k > j and over is not None:
                    A[i][k] = minus(A[i][k] or zeros(sizes[i], sizes[k]), product(factor, over))
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
    I_1: Inertia, p_1: Force, I_2: Inertia, p_2: Force, S: Sequence[Motion], c: Motion, tau: Scalars
) -> CompositeEquation:
    """Return the equations of x = (f, f_1, f_2, a_2, q̈), y = a_1: Eqs 7.51 to 7.55."""
    one, less_one = identity(6), _negative(identity(6))
    matrix: list[list[Block]] = [
        [one, less_one, less_one, None, None],
        [None, one, None, None, None],
        [None, None, one, _negative(I_2.matrix()), None],
        [None, None, None, one, _negative(rows_of(S))],
        [None, None, [s.to_list() for s in S], None, None],
    ]
    constant = [[0.0] * 6, list(p_1), list(p_2), list(c), list(tau)]
    return CompositeEquation(matrix, constant, [None, I_1.matrix(), None, one, None], (6, 6, 6, 6, len(S)))


def variant_1_equations(
    Phi_1: Rows, b_1: Motion, Phi_2: Rows, b_2: Motion, T: Forces, T_a: Forces, c: Motion, tau: Scalars
) -> CompositeEquation:
    """Return the equations of x = (a_1, a_2, f_1, f_2, lambda), y = f, by inverse inertias and T."""
    one, T_transposed = identity(6), [t.to_list() for t in T]
    matrix: list[list[Block]] = [
        [one, None, _negative(Phi_1), None, None],
        [None, one, None, _negative(Phi_2), None],
        [None, None, one, one, None],
        [None, None, None, one, _negative(rows_of(T))],
        [_negative(T_transposed), T_transposed, None, None, None],
    ]
    constant = [list(b_1), list(b_2), [0.0] * 6, list(combine(T_a, tau)), [c.dot(t) for t in T]]
    return CompositeEquation(matrix, constant, [None, None, one, None, None], (6, 6, 6, 6, len(T)))


def variant_2_equations(
    I_1: Inertia, p_1: Force, I_2: Inertia, p_2: Force, T: Forces, T_a: Forces, c: Motion, tau: Scalars
) -> CompositeEquation:
    """Return the equations of x = (f, f_1, f_2, a_2, lambda), y = a_1, by inertias and T."""
    one, less_one, T_transposed = identity(6), _negative(identity(6)), [t.to_list() for t in T]
    matrix: list[list[Block]] = [
        [one, less_one, less_one, None, None],
        [None, one, None, None, None],
        [None, None, one, _negative(I_2.matrix()), None],
        [None, None, one, None, _negative(rows_of(T))],
        [None, None, None, T_transposed, None],
    ]
    constant = [[0.0] * 6, list(p_1), list(p_2), list(combine(T_a, tau)), [c.dot(t) for t in T]]
    coefficient: list[Block] = [None, I_1.matrix(), None, None, T_transposed]
    return CompositeEquation(matrix, constant, coefficient, (6, 6, 6, 6, len(T)))


def _negative(A: Rows) -> Matrix:
    return [[0.0 if is_zero(x) else -x for x in row] for row in A]
