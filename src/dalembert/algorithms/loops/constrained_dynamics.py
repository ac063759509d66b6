"""Forward dynamics of systems with constraints, by any of the methods of Featherstone 2008 chapter 8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Unpack

from dalembert.algorithms.applied_forces import Conditions, Loads, Stabilization
from dalembert.algorithms.constraints import closure_equations, constraint_equations, stabilized_k
from dalembert.algorithms.dense import (
    DEPENDENT_ROW_RATIO,
    DEPENDENT_ROW_RATIO_SQUARED,
    NEGLIGIBLE_ROW_RATIO,
    Matrix,
    Rows,
    dot,
    factor,
    factor_semidefinite,
    identity,
    is_double,
    largest,
    minimum_norm_solution,
    symmetric_product,
    times,
    total,
    transpose,
)
from dalembert.algorithms.inverse_dynamics import bias_forces
from dalembert.algorithms.loops.maximal_coordinates import (
    accelerations_by_maximal_coordinates,
    accelerations_by_sparse_elimination,
)
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.open_tree import require_moving_mass, variable_parents
from dalembert.algorithms.sparse import factor_with_reciprocals, solve_l, solve_l_transposed
from dalembert.errors import ModelError, require_choice
from dalembert.model.tree import Tree
from dalembert.model.user_functions import LoopClosure
from dalembert.scalar import Scalar, Scalars, absolute, is_zero, select, sqrt

# The equations of motion of a constrained system, and the preconditions of every solution method.
#
#     M a = tau' + K^T lambda,     K a = k                                (Featherstone 2008 Eqs 8.34 to 8.36)
#
# with tau' = tau - C, the book's H written M, and k with its stabilisation if there is one. Rows of K that
# are zero by structure, as the constraints across the plane of a planar loop often are, are left out.


class ConstrainedSystem(NamedTuple):
    """M (nv, nv), tau' (nv), K (nr, nv) and k (nr) of the rows that are not zero by structure.

    `rows` are the places of these in all nc constraints, `size` is nc; `parents` is lambda' of the velocity
    variables, which says where M has its zeros.
    """

    M: Matrix
    force: list[Scalar]
    K: Matrix
    k: list[Scalar]
    rows: tuple[int, ...]
    size: int
    parents: list[int]

    def spread(self, multipliers: Scalars) -> list[Scalar]:
        """Return lambda (nc) from the multipliers of the kept rows, with zeros for the others."""
        result: list[Scalar] = [0.0] * self.size
        for row, value in zip(self.rows, multipliers, strict=True):
            result[row] = value
        return result


def constrained_system(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    *,
    stabilization: Stabilization = None,
    **given: Unpack[Loads],
) -> ConstrainedSystem:
    """Return M, tau', K and k of a system in motion. `stabilization`: T_stab [s] of Eq. 8.22, or None."""
    time = given.get("time")
    C = bias_forces(tree, q, v, **given)
    equations = constraint_equations(tree, q, v, time=time)
    k = stabilized_k(equations, stabilization)
    rows = tuple(i for i, row in enumerate(equations.K) if not all(is_zero(x) for x in row))
    return ConstrainedSystem(
        M=mass_matrix(tree, q, time=time),
        force=[t - c for t, c in zip(tau, C, strict=True)],
        K=[equations.K[i] for i in rows],
        k=[k[i] for i in rows],
        rows=rows,
        size=len(k),
        parents=variable_parents(tree),
    )


# Method 2: solve for lambda first (Featherstone 2008 section 8.5, Eqs 8.37 to 8.41).
#
# With the sparse factors M = L^T D L (section 6.5),
#
#     Y = L^-T K^T,   z = L^-T tau'                                                                      (1)
#     A = K M^-1 K^T = Y^T D^-1 Y,   b = k - Y^T D^-1 z                                                  (2)
#     A lambda = b,   M a = tau' + K^T lambda  =>  L a = D^-1 (z + Y lambda)                             (3)
#
# Where constraints depend on each other A is singular: `factor_semidefinite` drops rows until it is not,
# which changes lambda and not a. The last line of (3) saves one of the two triangular solutions of the book's
# step 6.


class ConstrainedMotion(NamedTuple):
    """a (nv), and lambda (nc) of the constraint forces K^T lambda."""

    a: list[Scalar]
    multipliers: list[Scalar]


class MultiplierEquation(NamedTuple):
    """A lambda = b of Eq. 8.37, with the factors that it came from."""

    A: Matrix
    b: list[Scalar]
    Y: Matrix
    z: list[Scalar]
    L: Matrix
    reciprocals: list[Scalar]


def accelerations_by_range_space(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Conditions]
) -> list[Scalar]:
    """Return a `(nv,)` of M a + C = tau + K^T lambda, K a = k; method 2 of section 8.5."""
    system = constrained_system(tree, q, v, tau, **given)
    return constrained_motion(system).a


def constrained_motion(system: ConstrainedSystem, *, minimum_norm: bool = False) -> ConstrainedMotion:
    """Return a and lambda (Eqs 8.37 to 8.41).

    `minimum_norm`: of the many lambda of dependent constraints the shortest, A^+ b, which also solves
    inconsistent constraints in the sense of least squares; else one with zeros at the rows that were dropped.
    """
    A, b, Y, push, L, reciprocals = multiplier_equation(system)
    factors = factor_semidefinite(A)
    lam = minimum_norm_solution(factors, b) if minimum_norm else factors.solve(b)
    for y, x in zip(Y, lam, strict=True):
        push = [p if is_zero(y_k) else p + y_k * x for p, y_k in zip(push, y, strict=True)]
    scaled = [p * r for p, r in zip(push, reciprocals, strict=True)]
    return ConstrainedMotion(solve_l(L, system.parents, scaled, unit=True), system.spread(lam))  # (3)


def multiplier_equation(system: ConstrainedSystem) -> MultiplierEquation:
    """Return A = K M^-1 K^T, b = k - K M^-1 tau' (Eqs 8.38, 8.39)."""
    L, reciprocals = factor_with_reciprocals(system.M, system.parents)
    Y = [solve_l_transposed(L, system.parents, row, unit=True) for row in system.K]  # (1)
    z = solve_l_transposed(L, system.parents, system.force, unit=True)
    W = [[y_k if is_zero(y_k) else y_k * r for y_k, r in zip(y, reciprocals, strict=True)] for y in Y]
    A = symmetric_product(Y, W)  # (2)
    b = [k_i - dot(w, z) for k_i, w in zip(system.k, W, strict=True)]
    return MultiplierEquation(A, b, Y, z, L, reciprocals)


# All solutions x = G y + g of K x = k, by elimination on generic scalars: pivots are found through `select`.
#
# Sizes are fixed and no index depends on a value, so that one straight-line program serves every sample,
# of any rank.


class ExplicitSolution(NamedTuple):
    """x = G y + g, all solutions of K x = k; y are those elements of x that are independent.

    To keep sizes fixed, y has the length of x: `independent` (n) is one for the elements that y takes from
    x, and zero for the others, whose columns of G (n, n) are zero.
    """

    G: Matrix
    g: list[Scalar]
    independent: list[Scalar]


def explicit_solution(
    K: Sequence[Scalars], k: Scalars, *, independent: Sequence[int] | None = None
) -> ExplicitSolution:
    """Solve K x = k as x = G y + g with K G = 0 and K g = k (Featherstone 2008 section 8.8, Eq. 8.51).

    Complete pivoting chooses the dependent elements, as many as K has rank; `independent` names the elements
    to be y instead, and partial pivoting then chooses among the rows. Elements that no row of K touches are
    independent from the start (the mask of section 8.8). K is solved block by block, a block for each loop
    cluster, and G has the same blocks (section 8.9). Rows are scaled to a largest entry of one before; what
    is below `rank.DEPENDENT_ROW_RATIO` then is not a pivot.
    """
    scales, double = row_scales(K)
    least = select(double, *DEPENDENT_ROW_RATIO)
    n = len(K[0]) if K else 0
    found = ExplicitSolution(identity(n), [0.0] * n, [1.0] * n)
    for block, columns in _blocks(K):
        rows = [
            [x if is_zero(x) else x * scales[i] for x in (*(K[i][j] for j in columns), k[i])] for i in block
        ]
        if independent is None:
            part = _block_solution(rows, list(range(len(columns))), least, complete=True)
        else:
            candidates = [c for c, j in enumerate(columns) if j not in independent]
            part = _block_solution(rows, candidates, least, complete=False)
        for r, j in enumerate(columns):
            found.g[j], found.independent[j] = part.g[r], part.independent[r]
            for c, l in enumerate(columns):
                found.G[j][l] = part.G[r][c]
    return found


def _blocks(K: Sequence[Scalars]) -> list[tuple[list[int], list[int]]]:
    """Return (rows, columns) of each block of K that shares neither with the others, a loop cluster."""
    blocks: list[tuple[list[int], set[int]]] = []
    for i, row in enumerate(K):
        columns = {j for j, x in enumerate(row) if not is_zero(x)}
        if columns:
            same = [block for block in blocks if block[1] & columns]
            merged = ([n for block in same for n in block[0]] + [i], columns.union(*(b[1] for b in same)))
            blocks = [block for block in blocks if not block[1] & columns] + [merged]
    return [(sorted(rows), sorted(columns)) for rows, columns in blocks]


def _block_solution(
    rows: Matrix, candidates: Sequence[int], least: Scalar, *, complete: bool
) -> ExplicitSolution:
    """Solve one block for x = G y + g, its rows with their right sides; `candidates` may be dependent."""
    n = len(rows[0]) - 1
    free_row: list[Scalar] = [1.0] * len(rows)
    free_column: list[Scalar] = [1.0 if j in candidates else 0.0 for j in range(n)]
    pivots: list[tuple[list[Scalar], list[Scalar]]] = []
    for step in range(min(len(rows), len(candidates)) if complete else len(candidates)):
        columns = candidates if complete else [candidates[step]]
        at_row, at_column = _largest(rows, free_row, free_column, columns, least)
        pivot_row = [dot(at_row, [row[j] for row in rows]) for j in range(n + 1)]
        pivot = dot([at_column[j] for j in columns], [pivot_row[j] for j in columns])
        found = total(at_row)
        inverse = 1.0 / (pivot + (1.0 - found))
        pivot_row = [x * inverse for x in pivot_row]
        at_columns = [at_column[j] for j in columns]
        factors = [  # the pivot row itself is scaled to a pivot of one
            dot(at_columns, [row[j] for j in columns]) - at for row, at in zip(rows, at_row, strict=True)
        ]
        rows = [
            [x if is_zero(y) else x - factor * y for x, y in zip(row, pivot_row, strict=True)]
            for row, factor in zip(rows, factors, strict=True)
        ]
        free_row = [f - at for f, at in zip(free_row, at_row, strict=True)]
        free_column = [f - at for f, at in zip(free_column, at_column, strict=True)]
        pivots.append((at_row, at_column))
    return _explicit_solution(rows, pivots, n)


def row_scales(K: Sequence[Scalars]) -> tuple[list[Scalar], Scalar]:
    """Return factors that make the largest entry of each row one, and whether the arithmetic is double.

    The factor is zero for rows of rounding errors (below 1e-12 of the largest row, in single precision 3e-6).
    """
    sizes = [largest(absolute(entry) for entry in row if not is_zero(entry)) for row in K]
    longest = largest(sizes)
    double = is_double(longest)
    least = longest * select(double, *NEGLIGIBLE_ROW_RATIO)
    scales = []
    for size in sizes:
        real = least < size
        scales.append(select(real, 1.0 / select(real, size, 1.0), 0.0))
    return scales, double


def _largest(
    rows: Matrix, free_row: Scalars, free_column: Scalars, columns: Sequence[int], least: Scalar
) -> tuple[list[Scalar], list[Scalar]]:
    """Return row and column of the largest entry, each as zeros with a single one; zeros if all are small."""
    best: Scalar = least
    at: list[tuple[int, int, Scalar]] = []
    for i, row in enumerate(rows):
        for j in columns:
            if not is_zero(row[j]):
                size = absolute(row[j]) * free_row[i] * free_column[j]
                larger = best < size
                best = select(larger, size, best)
                at.append((i, j, larger))
    at_row: list[Scalar] = [0.0] * len(rows)
    at_column: list[Scalar] = [0.0] * len(free_column)
    taken: Scalar = 0.0  # the last entry that was larger than all before it is the largest
    for i, j, larger in reversed(at):
        here = select(larger, 1.0 - taken, 0.0)
        at_row[i] = at_row[i] + here
        at_column[j] = at_column[j] + here
        taken = taken + here
    return at_row, at_column


def _explicit_solution(
    rows: Matrix, pivots: Sequence[tuple[list[Scalar], list[Scalar]]], n: int
) -> ExplicitSolution:
    """Return G = Q^T [-K11^-1 K12; 1], g = Q^T [K11^-1 k1; 0] of Eq. 8.51, from rows in which K11 is one."""
    dependent: list[Scalar] = [0.0] * n
    G: Matrix = [[0.0] * n for _ in range(n)]
    g: list[Scalar] = [0.0] * n
    for at_row, at_column in pivots:
        solved = [dot(at_row, [row[l] for row in rows]) for l in range(n + 1)]
        for j in range(n):
            if not is_zero(at_column[j]):
                dependent[j] = dependent[j] + at_column[j]
                g[j] = g[j] + at_column[j] * solved[n]
                G[j] = [
                    x if is_zero(s) else x - at_column[j] * s for x, s in zip(G[j], solved[:n], strict=True)
                ]
    independent = [1.0 - d for d in dependent]
    for j in range(n):
        G[j] = [x if is_zero(x) else x * independent[l] for l, x in enumerate(G[j])]
        G[j][j] = G[j][j] + independent[j]
    return ExplicitSolution(G, g, independent)


# Method 1: solve the whole equation at once (Featherstone 2008 section 8.5, Eq. 8.36).
#
#     [ M  K^T ] [    a    ]   [ tau' ]            [ M + K^T K  K^T ] [    a     ]   [ tau' + K^T k ]
#     [ K   0  ] [ -lambda ] = [  k   ]     (1)    [     K       0  ] [ -lambda  ] = [      k       ]     (2)
#
# (2) is (1) with K^T times the second row added to the first. Its upper left block is positive definite
# wherever a is unique, so that L D L^T of the whole matrix needs no pivoting: massless bodies are allowed, as
# long as the constraints move them along. Before, a is scaled by the square roots of M's diagonal and the
# rows of K to a largest entry of one, so that kilograms, metres and radians do not decide which pivots are
# small. The simplest method, and a slow one: it makes no use of the zeros of M, and serves as a witness of
# the others.


def accelerations_by_elimination(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Conditions]
) -> list[Scalar]:
    """Return a `(nv,)` of M a + C = tau + K^T lambda, K a = k; method 1 of section 8.5."""
    system = constrained_system(tree, q, v, tau, **given)
    return constrained_motion_directly(system).a


def constrained_motion_directly(system: ConstrainedSystem) -> ConstrainedMotion:
    """Return a and lambda of Eq. 8.36; lambda is zero for rows that depend on others."""
    n, m = len(system.M), len(system.K)
    s = []  # 1 / sqrt(M_ii), or one where no inertia moves
    for i in range(n):
        real = system.M[i][i] > 0.0
        s.append(select(real, 1.0 / sqrt(select(real, system.M[i][i], 1.0)), 1.0))
    M = [[_scale(x, s[i] * s[j]) for j, x in enumerate(row)] for i, row in enumerate(system.M)]
    K = [[_scale(x, s[j]) for j, x in enumerate(row)] for row in system.K]
    r, _ = row_scales(K)
    K = [[_scale(x, r_i) for x in row] for row, r_i in zip(K, r, strict=True)]
    k = [k_i * r_i for k_i, r_i in zip(system.k, r, strict=True)]
    columns = [[row[j] for row in K] for j in range(n)]
    upper = factor([[M[i][j] + dot(columns[i], columns[j]) for j in range(i + 1)] for i in range(n)])  # (2)
    Y = [upper.forward(row) for row in K]  # the lower rows of L, before they are divided by D
    W = [[y if is_zero(y) else y * d for y, d in zip(row, upper.reciprocals, strict=True)] for row in Y]
    z = upper.forward([f * s_i + dot(c, k) for f, s_i, c in zip(system.force, s, columns, strict=True)])
    lower = factor_semidefinite([[dot(Y[i], W[j]) for j in range(i + 1)] for i in range(m)])
    multipliers = lower.solve([k_i - dot(w, z) for k_i, w in zip(k, W, strict=True)])
    y = [z_j * d for z_j, d in zip(z, upper.reciprocals, strict=True)]
    for w, x in zip(W, multipliers, strict=True):
        y = [y_j if is_zero(w_j) else y_j + w_j * x for y_j, w_j in zip(y, w, strict=True)]
    a = [x * s_j for x, s_j in zip(upper.backward(y), s, strict=True)]
    return ConstrainedMotion(a, system.spread([x * r_i for x, r_i in zip(multipliers, r, strict=True)]))


def _scale(x: Scalar, scale: Scalar) -> Scalar:
    return x if is_zero(x) else x * scale


# Method 3: express the accelerations by independent ones first (Featherstone 2008 section 8.5).
#
#     a = G y'' + g,   K G = 0,   K g = k                                          (8.42 to 8.44)
#     G^T M G y'' = G^T (tau' - M g)                                               (8.45, 8.46)
#
# y are the elements of v that the caller names (`explicit_solution`, section 8.8). Without, G is the
# orthogonal projector onto all motions that the constraints allow (`allowed_motions`): no elements of v serve
# everywhere, and it costs less to find than they do. Either way y'' has the length of a, and to G^T M G is
# added what makes it regular along what y does not move.


def accelerations_by_null_space(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    *,
    independent: Sequence[str] | None = None,
    **given: Unpack[Conditions],
) -> list[Scalar]:
    """Return a `(nv,)` of M a + C = tau + K^T lambda, K a = k; method 3 of section 8.5.

    `independent`: names of the joints whose accelerations are y'', as many freedoms as the system has;
    without, all motions that the constraints allow.
    """
    system = constrained_system(tree, q, v, tau, **given)
    if independent is not None:
        chosen = velocity_indices(tree, independent)
        return constrained_motion_from(system, explicit_solution(system.K, system.k, independent=chosen))
    G, g = allowed_motions(system.K, system.k, tree.nv)
    n = tree.nv
    size = dot([system.M[i][i] for i in range(n)], [1.0 / max(n, 1)] * n)
    idle = [[size * (1.0 - G[i][j]) if i == j else -(size * G[i][j]) for j in range(n)] for i in range(n)]
    return [y_i + g_i for y_i, g_i in zip(_solve_projected(system, G, g, idle), g, strict=True)]  # G y = y


def velocity_indices(tree: Tree, joints: Sequence[str]) -> list[int]:
    """Return the places in v of the named joints."""
    by_name = {body.joint_name: body for body in tree.bodies}
    return [k for name in joints for k in range(by_name[name].v_slice.start, by_name[name].v_slice.stop)]


def constrained_motion_from(system: ConstrainedSystem, solution: ExplicitSolution) -> list[Scalar]:
    """Return a = G y'' + g of the equation of motion projected by G (Eq. 8.45)."""
    G, g, independent = solution
    n = len(independent)
    idle = [[1.0 - independent[i] if i == j else 0.0 for j in range(n)] for i in range(n)]
    y = _solve_projected(system, G, g, idle)
    return [dot(row, y) + g_i for row, g_i in zip(G, g, strict=True)]


class AllowedMotions(NamedTuple):
    """x = G y + g: G (n, n) projects onto the null space of K, g (n) is the shortest solution of K x = k."""

    G: Matrix
    g: list[Scalar]


def allowed_motions(K: Rows, k: Scalars, n: int) -> AllowedMotions:
    """Return G = 1 - K^+ K and g = K^+ k, of a K (m, n) of any rank.

    By Gram and Schmidt: each row less its parts along the rows before it. A row that depends on those, in the
    sense of `rank.DEPENDENT_ROW_RATIO`, is dropped.
    """
    scales, double = row_scales(K)
    least = select(double, *DEPENDENT_ROW_RATIO_SQUARED)
    found: list[tuple[list[Scalar], Scalar, Scalar]] = []
    for row, k_i, scale in zip(K, k, scales, strict=True):
        rest = [x if is_zero(x) else x * scale for x in row]
        value = k_i * scale
        smallest = dot(rest, rest) * least
        for other, reciprocal, other_value in found:
            part = dot(rest, other) * reciprocal
            if not is_zero(part):
                rest = [x if is_zero(y) else x - part * y for x, y in zip(rest, other, strict=True)]
                value = value - part * other_value
        d = dot(rest, rest)
        kept = smallest < d
        found.append((rest, select(kept, 1.0 / select(kept, d, 1.0), 0.0), value))
    G, g = identity(n), [0.0] * n
    for row, reciprocal, value in found:
        part = [x if is_zero(x) else x * reciprocal for x in row]
        g = [g_i if is_zero(x) else g_i + x * value for g_i, x in zip(g, part, strict=True)]
        for i in range(n):
            for j in range(i + 1):
                if not (is_zero(part[i]) or is_zero(row[j])):
                    G[i][j] = G[j][i] = G[i][j] - part[i] * row[j]
    return AllowedMotions(G, g)


def _solve_projected(system: ConstrainedSystem, G: Matrix, g: Scalars, idle: Matrix) -> list[Scalar]:
    """Solve (G^T M G + idle) y = G^T (tau' - M g) for y."""
    columns = transpose(G)
    MG = [times(system.M, column) for column in columns]
    H = [[dot(columns[i], MG[j]) + idle[i][j] for j in range(i + 1)] for i in range(len(columns))]
    rest = [f - x for f, x in zip(system.force, times(system.M, g), strict=True)]
    return factor(H).solve([dot(column, rest) for column in columns])


# Loop-closure functions: dynamics in the independent variables alone (Featherstone 2008 section 8.11).
#
# A model that holds q = gamma(y) (`builder.set_loop_closure`) has v = G y' and a = G y'' + g in closed form:
#
#     G^T M G y'' = G^T (tau - C - M g)                                            (8.45 with 8.57 to 8.60)
#
# with M and C at q = gamma(y), v = G y'. What q and v hold of dependent joints is not read, so that loops
# cannot open, and stabilisation has nothing to do.


def accelerations_by_closure(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    *,
    stabilization: Stabilization = None,
    **given: Unpack[Loads],
) -> list[Scalar]:
    """Return a `(nv,)` = G y'' + g from the independent variables of q and v; no stabilisation is needed."""
    time = given.get("time")
    y, ydot = independent_variables(closure_of(tree), q, v)
    full_q, full_v, G, g = closure_equations(tree, y, ydot, time=time)
    C = bias_forces(tree, full_q, full_v, **given)
    M = mass_matrix(tree, full_q, time=time)
    force = [t - c - dot(row, g) for t, c, row in zip(tau, C, M, strict=True)]
    columns = transpose(G)
    H = symmetric_product(columns, [times(M, column) for column in columns])
    ydd = factor(H).solve(times(columns, force))
    return [dot(row, ydd) + g_i for row, g_i in zip(G, g, strict=True)]


def closure_of(tree: Tree) -> LoopClosure:
    """Return the model's loop closure, which this method needs."""
    if tree.closure is None:
        raise ModelError(
            'method="loop_closure" needs q as a function of independent joints: give the model one with '
            "builder.set_loop_closure, or use another method"
        )
    return tree.closure


def independent_variables(closure: LoopClosure, q: Scalars, v: Scalars) -> tuple[list[Scalar], list[Scalar]]:
    """Return (y, y') from q and v."""
    return [q[i] for i in closure.positions], [v[i] for i in closure.velocities]


METHODS: dict[str, Callable[..., list[Scalar]]] = {
    "range_space": accelerations_by_range_space,
    "direct": accelerations_by_elimination,
    "null_space": accelerations_by_null_space,
    "loop_closure": accelerations_by_closure,
    "sparse": accelerations_by_sparse_elimination,
    "maximal": accelerations_by_maximal_coordinates,
}
"""Every method for the accelerations of a constrained system, by its name."""

ANY_CONNECTIVITY = ("sparse", "maximal")
"""The methods without a spanning tree, which also accept trees."""

MAX_RANGE_SPACE_ROWS = 50
"""Rows of K up to which "range_space" takes less time than maximal coordinates; measured on ladders."""

METHODS_THAT_NEED_MASS = ("range_space", "sparse", "maximal")
"""The methods that divide by inertias before they apply the constraints."""


def constrained_forward_dynamics(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    *,
    method: str | None = None,
    **given: Unpack[Conditions],
) -> list[Scalar]:
    """Solve M(q) a + b(q, v) = tau + external + K^T lambda, K a = k for a `(nv,)`.

    `method`: a name of `METHODS`; by default "loop_closure" where the model has q = gamma(y), "null_space"
    where joints move massless bodies that only the constraints hold, "sparse" where loops are many, else
    "range_space". `stabilization`: T_stab [s] (Eq. 8.22), without it errors drift.
    """
    chosen = method or _default_method(tree)
    require_choice("method of forward_dynamics for a model with constraints", chosen, METHODS)
    if chosen in METHODS_THAT_NEED_MASS:
        require_moving_mass(tree, f'forward_dynamics with method="{chosen}"')
    return METHODS[chosen](tree, q, v, tau, **given)


def _default_method(tree: Tree) -> str:
    if tree.closure is not None:
        return "loop_closure"
    try:
        require_moving_mass(tree, "forward_dynamics")
    except ModelError:
        return "null_space"
    rows = sum(6 - loop.joint.nv for loop in tree.loops)
    return "range_space" if rows <= MAX_RANGE_SPACE_ROWS else "sparse"
