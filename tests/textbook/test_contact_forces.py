"""Contact forces of one body, and the three equivalent problems that give those of many contacts."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog, minimize, nnls

import dalembert as da
from dalembert.errors import ArgumentError, ContactError, ShapeError, StateError

G = 9.81


def cross_force(v: Any, f: Any) -> Any:
    """Return v x* f (Featherstone 2008 Eq. 2.32)."""
    return np.concatenate([np.cross(v[:3], f[:3]) + np.cross(v[3:], f[3:]), np.cross(v[:3], f[3:])])


def problems(count: int, seed: int, *, bias: float = 1.0) -> Any:
    """H, T, the free acceleration and dT/dt^T v of random systems; many have dependent or opposed normals."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        nv, nc = int(rng.integers(1, 8)), int(rng.integers(1, 12))
        B, T = rng.normal(size=(nv, nv)), rng.normal(size=(nv, nc))
        if number % 3 == 0:
            T = np.round(T)
        if number % 4 == 0 and nc > 1:
            half = nc // 2
            T[:, half:] = -T[:, : nc - half] * rng.uniform(0.5, 2.0, nc - half)
        rates = bias * rng.normal(size=nc) * (number % 2)
        yield B @ B.T + 0.1 * np.eye(nv), T, 3.0 * rng.normal(size=nv), rates


def complementarity(H: Any, T: Any, free: Any, rates: Any) -> tuple[Any, Any]:
    M = T.T @ np.linalg.solve(H, T)
    return (M + M.T) / 2, T.T @ free + rates


def by_enumeration(M: Any, d: Any) -> Any:
    """zeta by trying every set of active contacts; None where none will do."""
    for size in range(len(d) + 1):
        for active in itertools.combinations(range(len(d)), size):
            force = np.zeros(len(d))
            A = M[np.ix_(active, active)]
            if size and np.linalg.matrix_rank(A, tol=1e-9 * np.abs(M).max()) < size:
                continue
            force[list(active)] = -np.linalg.solve(A, d[list(active)])
            zeta = M @ force + d
            if force.min() >= -1e-9 and zeta.min() >= -1e-9:
                return zeta
    return None


def test_the_complementarity_problem_is_solved_by_a_basic_solution() -> None:
    """RBDA-11.5-LCP: zeta >= 0, lambda >= 0, zeta . lambda = 0, as enumeration of all active sets finds it;
    active normals are independent; without a solution, linear programming finds none either
    (RBDA-11.2-NOSOL)."""
    solved = unsolved = 0
    for H, T, free, rates in problems(150, seed=1):
        M, d = complementarity(H, T, free, rates)
        scale = np.abs(d).max() + 1e-300
        feasible = linprog(np.zeros(len(d)), A_ub=-M, b_ub=d, bounds=(0, None)).status == 0
        if not feasible:
            unsolved += 1
            with pytest.raises(ContactError, match="no contact forces keep contacts"):
                da.textbook.solve_lcp(M, d)
            continue
        solved += 1
        solution = da.textbook.solve_lcp(M, d)
        zeta = M @ solution.force + d
        assert solution.force.min() >= 0.0
        assert zeta.min() >= -1e-9 * scale
        np.testing.assert_allclose(solution.rate, zeta, atol=1e-9 * scale)
        assert abs(zeta @ solution.force) <= 1e-8 * scale * max(1.0, solution.force.max())
        active = list(solution.active)
        assert set(np.flatnonzero(solution.force)) <= set(active)
        assert np.linalg.matrix_rank(T[:, active]) == len(active)
        if len(d) <= 7:
            np.testing.assert_allclose(zeta, by_enumeration(M, d), atol=1e-8 * max(scale, 1.0))
    assert solved > 80
    assert unsolved > 20


def test_the_quadratic_program_in_forces_has_the_same_solutions() -> None:
    """RBDA-11.5-QP: the same T lambda and zeta as the complementarity problem, and no less cost by SciPy's
    search."""
    for H, T, free, rates in problems(120, seed=2, bias=0.3):
        M, d = complementarity(H, T, free, rates)
        try:
            expected = da.textbook.solve_lcp(M, d)
        except ContactError:
            with pytest.raises(ContactError):
                da.textbook.solve_force_qp(M, d)
            continue
        found = da.textbook.solve_force_qp(M, d)
        scale = max(1.0, np.abs(T @ expected.force).max())
        np.testing.assert_allclose(T @ found.force, T @ expected.force, atol=1e-6 * scale)
        np.testing.assert_allclose(found.rate, expected.rate, atol=1e-6 * max(1.0, np.abs(d).max()))
        if not rates.any():  # then it is a problem of least squares
            L = np.linalg.cholesky(H)
            other, _ = nnls(np.linalg.solve(L, T), -L.T @ free)
            np.testing.assert_allclose(T @ found.force, T @ other, atol=1e-6 * scale)


def test_gauss_principle_with_inequalities_gives_the_same_accelerations() -> None:
    """RBDA-11.5-GAUSS: the acceleration of least constraint is that of the contact forces, and SciPy's search
    in accelerations finds no better one."""
    compared = 0
    for H, T, free, rates in problems(120, seed=3, bias=0.3):
        M, d = complementarity(H, T, free, rates)
        try:
            lam = da.textbook.solve_lcp(M, d).force
        except ContactError:
            with pytest.raises(ContactError):
                da.textbook.least_constraint(H, free, T, rates)
            continue
        found = da.textbook.least_constraint(H, free, T, rates)
        expected = free + np.linalg.solve(H, T @ lam)
        np.testing.assert_allclose(found.acceleration, expected, atol=1e-7 * max(1.0, np.abs(expected).max()))
        np.testing.assert_allclose(
            H @ (found.acceleration - free), T @ found.force, atol=1e-7 * max(1.0, np.abs(T @ lam).max())
        )
        assert found.force.min(initial=0.0) >= 0.0
        if compared < 15 and len(found.active):
            compared += 1
            search = minimize(
                lambda a: 0.5 * (a - free) @ H @ (a - free),  # noqa: B023
                free,
                jac=lambda a: H @ (a - free),  # noqa: B023
                constraints={"type": "ineq", "fun": lambda a: T.T @ a + rates, "jac": lambda a: T.T},  # noqa: B023
                method="SLSQP",
                options={"ftol": 1e-14, "maxiter": 500},
            )
            np.testing.assert_allclose(
                found.acceleration, search.x, atol=1e-5 * max(1.0, np.abs(search.x).max())
            )
    assert compared == 15


def test_opposed_normals_have_no_solution_if_they_close_together() -> None:
    """RBDA-11.2-NOSOL: M = [m -m; -m m] has a solution iff d1 + d2 >= 0, and zeta1 + zeta2 = d1 + d2 then."""
    rng = np.random.default_rng(4)
    for m, d1, d2 in rng.normal(size=(200, 3)):
        M = abs(m) * np.array([[1.0, -1.0], [-1.0, 1.0]])
        if d1 + d2 < 0.0:
            with pytest.raises(ContactError, match="contacts 0, 1"):
                da.textbook.solve_lcp(M, [d1, d2])
        else:
            solution = da.textbook.solve_lcp(M, [d1, d2])
            assert solution.rate.sum() == pytest.approx(d1 + d2)


def test_one_contact_holds_breaks_or_is_refused() -> None:
    """RBDA-11.1-SINGLE: a resting body is carried by its weight; lambda = -d/M or 0 for random moving
    bodies, with Newton and Euler's equations; a body that approaches or leaves is refused."""
    rng = np.random.default_rng(5)
    ball = da.RigidInertia(3.0, (0.0, 0.0, 0.0), (0.2, 0.2, 0.2))
    n = da.textbook.contact_normal([0.0, 0.0, -0.5], [0.0, 0.0, 1.0])
    weight = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -3.0 * G])
    rest = da.textbook.body_contact(ball, np.zeros(6), weight, n)
    assert rest.force == pytest.approx([3.0 * G])
    assert np.abs(rest.acceleration).max() < 1e-13
    held = broken = 0
    for _ in range(40):
        inertia = da.RigidInertia(rng.uniform(1, 3), rng.normal(size=3), rng.uniform(0.5, 0.9, 3))
        I = np.array(inertia.matrix(), dtype=float)
        n = da.textbook.contact_normal(rng.normal(size=3), rng.normal(size=3))
        v = rng.normal(size=6)
        v -= n * (n @ v) / (n @ n)
        f, n_rate = 5.0 * rng.normal(size=6), rng.normal(size=6)
        found = da.textbook.body_contact(inertia, v, f, n, n_rate)
        residual = I @ found.acceleration + cross_force(v, I @ v) - f - n * found.force[0]  # Eq. 11.5
        np.testing.assert_allclose(residual, 0.0, atol=1e-10)
        zeta_rate = n @ found.acceleration + n_rate @ v  # Eq. 11.3
        assert zeta_rate == pytest.approx(found.rate[0], abs=1e-10)
        assert min(found.force[0], zeta_rate) >= -1e-12
        assert abs(found.force[0] * zeta_rate) < 1e-9
        held, broken = held + (found.force[0] > 0), broken + (found.force[0] == 0)
        with pytest.raises(StateError, match="apply an impulse"):
            da.textbook.body_contact(inertia, v - n, f, n)
        with pytest.raises(StateError, match="leaving"):
            da.textbook.body_contact(inertia, v + n, f, n)
    assert held > 5
    assert broken > 5


def test_a_block_on_four_corners_is_carried_though_no_one_knows_by_which() -> None:
    """RBDA-11.2-MULTI: forces sum to the weight with the moment of an off-centre load, three corners
    suffice, four may share it, and the acceleration is the same."""
    corners = np.array([[x, y, -0.1] for x in (-0.2, 0.2) for y in (-0.3, 0.3)])
    N = da.textbook.contact_normal(corners, [0.0, 0.0, 1.0]).T
    block = da.RigidInertia(2.0, (0.05, 0.02, 0.0), (0.1, 0.2, 0.3))
    weight = da.textbook.contact_normal([0.05, 0.02, 0.0], [0.0, 0.0, -1.0]) * 2.0 * G
    found = da.textbook.body_contacts(block, np.zeros(6), weight, N)
    assert found.force.sum() == pytest.approx(2.0 * G)
    assert np.abs(found.acceleration).max() < 1e-12
    assert np.count_nonzero(found.force) <= 3
    np.testing.assert_allclose(N @ found.force, -weight, atol=1e-12)
    # Other forces do the same: those of the quadratic program, of which every corner has a share.
    shared = da.textbook.solve_force_qp(found.M, found.d).force
    assert shared.min() > 0.5
    assert np.abs(shared - found.force).max() > 0.5
    np.testing.assert_allclose(N @ shared, -weight, atol=1e-9)
    # Pulled up at one corner it turns about the opposite edge or corner, as Gauss's principle says.
    pull = weight + da.textbook.contact_normal(corners[3], [0.0, 0.0, 1.0]) * 12.0
    tipped = da.textbook.body_contacts(block, np.zeros(6), pull, N)
    I = np.array(block.matrix(), dtype=float)
    gauss = da.textbook.least_constraint(I, np.linalg.solve(I, pull), N, np.zeros(4))
    np.testing.assert_allclose(tipped.acceleration, gauss.acceleration, atol=1e-9)
    assert tipped.rate.max() > 0.1
    assert tipped.force.max() > 0.1


def test_one_contact_is_the_case_of_many_with_one_normal() -> None:
    """RBDA-11.2-MULTI"""
    rng = np.random.default_rng(6)
    inertia = da.RigidInertia(2.0, rng.normal(size=3), (0.5, 0.6, 0.7))
    for _ in range(10):
        n, f, rate = (
            da.textbook.contact_normal(*rng.normal(size=(2, 3))),
            rng.normal(size=6),
            rng.normal(size=6),
        )
        v = rng.normal(size=6)
        v -= n * (n @ v) / (n @ n)
        one = da.textbook.body_contact(inertia, v, f, n, rate)
        many = da.textbook.body_contacts(inertia, v, f, n[:, None], rate[:, None])
        np.testing.assert_allclose(one.acceleration, many.acceleration, atol=1e-12)


def test_wrong_problems_are_named() -> None:
    """RBDA-11.5-LCP"""
    with pytest.raises(ShapeError, match="nc"):
        da.textbook.solve_lcp(np.eye(3), [1.0, 2.0])
    with pytest.raises(ArgumentError, match="symmetric"):
        da.textbook.solve_lcp([[1.0, 0.5], [0.0, 1.0]], [1.0, 2.0])
    with pytest.raises(ArgumentError, match="finite"):
        da.textbook.solve_force_qp([[np.nan]], [1.0])
    with pytest.raises(ShapeError, match="six numbers"):
        da.textbook.body_contact(np.eye(6), np.zeros(3), np.zeros(6), np.ones(6))
    assert da.textbook.solve_lcp(np.zeros((0, 0)), []).active == ()
