"""Sparse factors of tree matrices: equal to dense algebra, without fill-in, at exactly the book's cost."""

import numpy as np
import pytest
from tests.algorithms.counting import count
from tests.algorithms.trees import close, random_tree, state

from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.open_tree import matrix_density, variable_parents
from dalembert.algorithms.sparse import (
    ancestors,
    depths,
    expanded_parents,
    factor_ltdl,
    factor_ltl,
    factor_with_reciprocals,
    multiply_h,
    multiply_l,
    multiply_l_transposed,
    operation_sums,
    solve_l,
    solve_l_transposed,
    solve_ltdl,
    solve_ltl,
    solve_with_reciprocals,
)

SEEDS = range(8)
BINARY = [-1, 0, 0, 1, 1, 2, 2]
"""lambda = (0, 1, 1, 2, 2, 3, 3) of the book, numbered from zero."""


def random_parents(seed, n=9):
    rng = np.random.default_rng(seed)
    return [int(rng.integers(-1, i)) for i in range(n)]


def random_matrix(lam, seed):
    """A positive-definite matrix with the pattern of the tree: L^T L of a random L with that pattern."""
    rng = np.random.default_rng(seed)
    L = np.diag(rng.uniform(0.5, 2.0, len(lam)))
    for k in range(len(lam)):
        for i in ancestors(lam, k):
            L[k, i] = rng.normal()
    return L.T @ L


@pytest.mark.parametrize("seed", SEEDS)
def test_factors_multiply_to_the_matrix_without_fill_in(seed):
    """RBDA-6.5-LTL, RBDA-6.5-LTDL: L^T L = H and L^T D L = H; L is zero wherever H is; the upper triangle
    is not read.
    """
    lam = random_parents(seed)
    H = random_matrix(lam, seed)
    lower = np.where(np.tri(len(lam), dtype=bool), H, np.nan).tolist()
    L = np.array(factor_ltl(lower, lam))
    close(L.T @ L, H, 1e-13)
    U, D = factor_ltdl(lower, lam)
    U = np.array(U)
    close(U.T @ np.diag(D) @ U, H, 1e-13)
    assert np.all(np.diag(U) == 1.0)
    for k in range(len(lam)):
        zero = set(range(k)) - set(ancestors(lam, k))
        assert all(L[k, i] == 0.0 and U[k, i] == 0.0 for i in zero)


def test_chain_is_the_dense_case():
    """RBDA-6.5-LTL: lambda(k) = k - 1 factors any positive-definite matrix."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 5))
    H = A @ A.T + np.eye(5)
    L = np.array(factor_ltl(H.tolist(), [-1, 0, 1, 2, 3]))
    close(L.T @ L, H, 1e-14)


@pytest.mark.parametrize("seed", SEEDS)
def test_products_and_solutions_equal_dense_algebra(seed):
    """RBDA-6.5-SOLVE: L x, L^T x, L^-1 x, L^-T x, H x, unit variants, and the solution of H x = b."""
    lam = random_parents(seed)
    H = random_matrix(lam, seed)
    x = np.random.default_rng(seed + 9).normal(size=len(lam)).tolist()
    L = factor_ltl(H.tolist(), lam)
    U, D = factor_ltdl(H.tolist(), lam)
    for factor, unit in ((L, False), (U, True)):
        dense = np.array(factor)
        close(multiply_l(factor, lam, x, unit=unit), dense @ x, 1e-13)
        close(multiply_l_transposed(factor, lam, x, unit=unit), dense.T @ x, 1e-13)
        close(solve_l(factor, lam, x, unit=unit), np.linalg.solve(dense, x), 1e-11)
        close(solve_l_transposed(factor, lam, x, unit=unit), np.linalg.solve(dense.T, x), 1e-11)
    close(multiply_h(H.tolist(), lam, x), H @ x, 1e-13)
    close(solve_ltl(L, lam, x), np.linalg.solve(H, x), 1e-10)
    close(solve_ltdl(U, D, lam, x), np.linalg.solve(H, x), 1e-10)
    V, reciprocals = factor_with_reciprocals(H.tolist(), lam)
    close(V, U, 1e-12)
    close(np.multiply(reciprocals, D), np.ones(len(lam)), 1e-12)
    close(solve_with_reciprocals(V, reciprocals, lam, x), np.linalg.solve(H, x), 1e-10)


def test_expanded_parent_array_of_the_book():
    """RBDA-6.5-EXPAND: lambda = (0, 1, 1, 2, 2, 3) with n_2 = 3 becomes (0, 1, 2, 3, 1, 4, 4, 5), here from
    zero.
    """
    assert expanded_parents([-1, 0, 0, 1, 1, 2], [1, 3, 1, 1, 1, 1]) == [-1, 0, 1, 2, 0, 3, 3, 4]
    assert expanded_parents([-1, 0, 1, 0], [1, 0, 2, 1]) == [-1, 0, 1, 0]


def test_binary_tree_of_the_book():
    """RBDA-6.5-COST: D1 = 10, D2 = 14; rows 5, 6 and 7 take two area-2 and three area-3 steps each."""
    assert operation_sums(BINARY) == (10, 14)
    for k in (4, 5, 6):
        path = list(ancestors(BINARY, k))
        assert len(path) == 2
        assert sum(1 + len(list(ancestors(BINARY, i))) for i in path) == 3


@pytest.mark.parametrize("lam", [BINARY, *(random_parents(seed, 8) for seed in range(4)), [-1, 0, 1, 2, 3]])
def test_costs_are_those_of_table_6_6(lam):
    """RBDA-6.5-COST, RBDA-10.3-COUNTER: counted operations, divisions and square roots equal the formulas."""
    n, (D1, D2) = len(lam), operation_sums(lam)
    square = (n, n)

    def cost(function, **sizes):
        c = count(function, **sizes)
        return c.multiplications - c.divisions, c.additions, c.divisions, c.square_roots

    assert cost(lambda H: factor_ltl(H, lam), H=square) == (D2, D2, D1, n)
    assert cost(lambda H: factor_ltdl(H, lam), H=square) == (D2, D2, D1, 0)
    assert cost(lambda H: factor_with_reciprocals(H, lam), H=square) == (D2 + D1, D2, n, 0)
    assert cost(lambda L, b: solve_ltl(L, lam, b), L=square, b=n) == (2 * D1, 2 * D1, 2 * n, 0)
    assert cost(lambda L, D, b: solve_ltdl(L, D, lam, b), L=square, D=n, b=n) == (2 * D1, 2 * D1, n, 0)
    for product in (multiply_l, multiply_l_transposed):
        assert cost(lambda L, x, f=product: f(L, lam, x), L=square, x=n) == (n + D1, D1, 0, 0)
        assert cost(lambda L, x, f=product: f(L, lam, x, unit=True), L=square, x=n) == (D1, D1, 0, 0)
    for solution in (solve_l, solve_l_transposed):
        assert cost(lambda L, x, f=solution: f(L, lam, x), L=square, x=n) == (D1, D1, n, 0)
        assert cost(lambda L, x, f=solution: f(L, lam, x, unit=True), L=square, x=n) == (D1, D1, 0, 0)
    assert cost(lambda H, x: multiply_h(H, lam, x), H=square, x=n) == (n + 2 * D1, 2 * D1, 0, 0)


@pytest.mark.parametrize("n", [2, 6, 11])
def test_factor_and_solve_of_a_chain_costs_the_book_polynomial(n):
    """RBDA-10.3-FS: (n^3/6 + 3n^2/2 - 2n/3) m + (n^3/6 + n^2 - 7n/6) a; n = 6: 86 m + 65 a."""
    lam = [k - 1 for k in range(n)]

    def factor_and_solve(H, b):
        L, D = factor_ltdl(H, lam)
        return solve_ltdl(L, D, lam, b)

    c = count(factor_and_solve, H=(n, n), b=n)
    assert 6 * c.multiplications == n**3 + 9 * n**2 - 4 * n
    assert 6 * c.additions == n**3 + 6 * n**2 - 7 * n


@pytest.mark.parametrize("seed", SEEDS)
def test_cost_sums_are_bounded_by_depth(seed):
    """RBDA-6.5-BOUNDS: D1 <= n (d - 1), D2 <= n d (d - 1) / 2; a chain has the dense values; n + 2 D1
    nonzeros.
    """
    lam = random_parents(seed, 12)
    n, d = 12, max(depths(lam))
    D1, D2 = operation_sums(lam)
    assert n * (d - 1) >= D1
    assert n * d * (d - 1) // 2 >= D2
    assert np.count_nonzero(random_matrix(lam, seed)) == n + 2 * D1
    assert operation_sums([k - 1 for k in range(n)]) == ((n * n - n) // 2, (n**3 - n) // 6)


@pytest.mark.parametrize("seed", SEEDS)
def test_mass_matrix_has_the_zeros_of_the_tree(seed):
    """RBDA-6.4-SPARSITY: H_ij = 0 unless one variable supports the other, as literal zeros; the density
    follows.
    """
    model = random_tree(seed, 8)
    q, _, _, _ = state(model, seed)
    M, lam = mass_matrix(model, q), variable_parents(model)
    zeros = 0
    for i in range(model.nv):
        for j in range(i):
            if j not in set(ancestors(lam, i)):
                zeros += 2
                assert M[i][j] == 0.0 == M[j][i]
    assert matrix_density(model) == pytest.approx(1.0 - zeros / model.nv**2)
