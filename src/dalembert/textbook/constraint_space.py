"""The articulated-body algorithm by constraint forces (Featherstone 2008 §7.4, variant 2 of Table 7.2).

Seen from its parent, body i with all that it carries is, in terms of its joint's T' and E (`joint_forces`),

    Y = T'^T (I^A)^-1 T' + E,   z = T'^T (c - (I^A)^-1 (T_a tau - p^A))                              (1)
    I^a = T' Y^-1 T'^T,   p^a = T_a tau + T' Y^-1 z                                                  (2)

and once the parent's acceleration a' = X a_lambda is known,

    lambda' = Y^-1 (z + T'^T a'),   f = T_a tau + T' lambda',   a = (I^A)^-1 (f - p^A)               (3)
    q̈ = T_a^T (a - a' - c)                                                                           (4)

Dearer than the standard formulae where joints have few freedoms, and cheaper where they have many: Y is of
the size of the constraints, D of that of the freedoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.applied_forces import ExternalForces, body_forces
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
    solve,
    symmetric_product,
    times,
    transpose,
    zeros,
)
from dalembert.algorithms.open_tree import (
    has_couplings,
    require_moving_mass,
    require_open_tree,
    velocity_places,
)
from dalembert.errors import ArgumentError, ModelError
from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, Scalars, Time, is_zero
from dalembert.spatial import ArticulatedInertia, Force, Motion, Vec3
from dalembert.textbook.handles import (
    ConstraintSpaceHandle,
    Equations,
    Forces,
    Inertia,
    body_equations,
    collect,
    combine,
    constraint_space_handle,
    free_acceleration,
    handle_inertia,
    joint_forces,
    relative_acceleration,
    require_invertible_inertias,
    rows_of,
)
from dalembert.textbook.lagrange import add_armature

FUNCTION = 'forward_dynamics with method="aba_constraint_space"'


def forward_dynamics_in_constraint_space(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Time = None,
    stabilization: Scalar | None = None,
) -> list[Scalar]:
    """Solve M a + b = tau + external for a `(nv,)` by variant 2 of the assembly formulae.

    `stabilization` is for constraints, which this method does not take.
    """
    require_open_tree(tree, FUNCTION)
    require_invertible_inertias(tree, FUNCTION)
    if has_couplings(tree):
        raise ModelError(f'{FUNCTION}: this model couples joints; use method="aba" or model.uncoupled()')
    joints = joint_forces(
        tree, q, v, tau, external_forces=external_forces, external_frame=external_frame, time=time
    )

    def inward(
        body: Body, children: tuple[ArticulatedInertia, Force]
    ) -> tuple[tuple[ArticulatedInertia, Force], ConstraintSpaceHandle]:
        X, T, E, _, active, c, p = joints[body]
        I_A, p_A = children[0] + body.inertia, children[1] + p
        handle, I_a, p_a = constraint_space_handle(I_A, p_A, T, E, active, c)  # (1), (2)
        return (X.inverse_apply(I_a), X.inverse_apply(p_a)), handle

    handles, _ = tree.inward(inward, (ArticulatedInertia.zero(), Force.zero()))

    def outward(body: Body, a_parent: Motion) -> tuple[Motion, list[Scalar]]:
        X, T, _, T_a, active, c, _ = joints[body]
        inertia, p_A, Y, z = handles[body]
        a_prime = X.apply(a_parent)
        multipliers = Y.solve([z_k + a_prime.dot(t) for z_k, t in zip(z, T, strict=True)])
        f = active + combine(T, multipliers)
        a = Motion.of(inertia.solve((f - p_A).to_list()))  # (3)
        return a, relative_acceleration(a_prime, a, c, T_a)  # (4)

    return tree.collect(tree.outward(outward, Motion(Vec3.zero(), -tree.gravity)))


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
    """Return (a, lambda) by method 2: [I T; T^T 0] [a; -lambda] = [f - p; k],
    k = -T'^T v = T^T c (Eq. 3.60)."""
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
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Time = None,
    stabilization: Scalar | None = None,
) -> list[Scalar]:
    """Solve M a + b = tau + external for a `(nv,)` by projecting the bodies' equations onto the joints.

    `stabilization` is for constraints, which this method does not take.
    """
    require_open_tree(tree, 'forward_dynamics with method="projection"')
    require_moving_mass(tree, 'forward_dynamics with method="projection"')
    return free_acceleration(
        projected_equations(
            tree, q, v, tau, external_forces=external_forces, external_frame=external_frame, time=time
        )
    )


def projected_equations(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Time = None,
) -> Equations:
    """Return M a + b = tau of a tree: the equations of the bodies collected
    (Eq. 3.10) and projected (Eq. 3.21)."""
    f_x = body_forces(tree, q, external_forces, external_frame, time)
    moved = velocity_products(tree, q, v, f_x, time)

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
    """Return the equations of x = (a_1, a_2, f_1, f_2, lambda), y = f,
    with inverse inertias and the implicit joint constraint."""
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
    """Return the equations of x = (f, f_1, f_2, a_2, lambda), y = a_1,
    with inertias and the implicit joint constraint."""
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
