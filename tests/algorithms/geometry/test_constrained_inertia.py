"""Constrained dynamics with any inertia and any constraints: closed forms, block systems and Gauss agree."""

import numpy as np
import pytest
from tests.algorithms.trees import close

import dalembert as da
from dalembert import scalar
from dalembert.algorithms.coriolis import map_motion
from dalembert.algorithms.geometry import (
    constrained_inverse_inertia,
    explicit_dynamics,
    explicit_dynamics_by_blocks,
    gauss_acceleration,
    implicit_dynamics,
    implicit_dynamics_kkt,
    penalized_inverse_inertia,
    transformed_force,
    transformed_inertia,
)

N, ROWS = 6, 2


def system(seed, n=N, m=ROWS):
    """D positive definite, J of full rank, forces f and b."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n))
    return X @ X.T + 0.5 * np.eye(n), rng.normal(size=(m, n)), rng.normal(size=n), rng.normal(size=m)


def argmin(D, a_0, J, b):
    """The minimizer in the null space of J, by orthogonal decomposition: no multipliers anywhere."""
    particular = np.linalg.pinv(J) @ b
    _, s, Vt = np.linalg.svd(J)
    Z = Vt[np.sum(s > 1e-10) :].T
    y = np.linalg.solve(Z.T @ D @ Z, Z.T @ D @ (a_0 - particular))
    return particular + Z @ y


@pytest.mark.parametrize("seed", range(3))
def test_block_system_and_closed_form_agree(seed):
    """TOD-IMPLICIT: D x'' = f + J^T lambda with J x'' = -J' x', by both ways."""
    D, J, f, bias = system(seed)
    x, multipliers = implicit_dynamics(D.tolist(), f.tolist(), J.tolist(), bias.tolist())
    close(D @ x, f + J.T @ multipliers, 1e-12)
    close(J @ x, -bias, 1e-12)
    closed = f - J.T @ np.linalg.solve(J @ np.linalg.solve(D, J.T), bias + J @ np.linalg.solve(D, f))
    close(D @ x, closed, 1e-12)
    x_kkt, multipliers_kkt = implicit_dynamics_kkt(D.tolist(), f.tolist(), J.tolist(), bias.tolist())
    close(x_kkt, x, 1e-12)
    close(multipliers_kkt, multipliers, 1e-12)


def test_constrained_inertia_is_the_limit_of_stiff_ones():
    """TOD-AMATRIX: J A = 0, rank A = n - m, and (D + epsilon J^T J)^-1 - A is of order 1/epsilon."""
    D, J, f, _ = system(0)
    A = np.array(constrained_inverse_inertia(D.tolist(), J.tolist()))
    close(J @ A, np.zeros((ROWS, N)), 1e-12)
    close(A, A.T, 1e-12)
    assert np.linalg.matrix_rank(A, tol=1e-9) == N - ROWS
    close(A @ f, implicit_dynamics(D.tolist(), f.tolist(), J.tolist(), [0.0] * ROWS).acceleration, 1e-12)
    errors = [
        np.abs(np.array(penalized_inverse_inertia(D.tolist(), J.tolist(), epsilon)) - A).max()
        for epsilon in (1e3, 1e4, 1e5)
    ]
    assert errors[0] / errors[1] == pytest.approx(10.0, rel=0.02)
    assert errors[1] / errors[2] == pytest.approx(10.0, rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_gauss_principle(seed):
    """TOD-GAUSS: argmin (a - a_0)^T D (a - a_0) with J a = b, for any J and b, equals the block system's
    solution and the minimum found in the null space; no other admissible a is nearer.
    """
    D, J, a_0, b = system(seed)
    a = np.array(gauss_acceleration(D.tolist(), a_0.tolist(), J.tolist(), b.tolist()))
    close(a, argmin(D, a_0, J, b), 1e-11)
    close(
        a,
        implicit_dynamics_kkt(D.tolist(), (D @ a_0).tolist(), J.tolist(), (-b).tolist()).acceleration,
        1e-11,
    )
    Z = np.linalg.svd(J)[2][ROWS:].T
    least = (a - a_0) @ D @ (a - a_0)
    for y in np.random.default_rng(seed).normal(size=(5, N - ROWS)):
        other = a + Z @ y - a_0
        assert other @ D @ other > least


def test_gauss_principle_with_dependent_constraints():
    """TOD-GAUSS: rows of J that repeat or combine others change nothing, nor does a row of zeros."""
    D, J, a_0, b = system(7)
    mixed = np.array([[1.0, 0.0], [2.0, -1.0], [0.0, 0.0], [0.0, 1.0]])
    expected = argmin(D, a_0, J, b)
    close(
        gauss_acceleration(D.tolist(), a_0.tolist(), (mixed @ J).tolist(), (mixed @ b).tolist()),
        expected,
        1e-9,
    )
    close(gauss_acceleration(D.tolist(), a_0.tolist(), [], []), a_0, 1e-15)


def overconstrained():
    """A planar four-bar whose pin also holds it in its plane, where it is anyway."""
    model = da.models.four_bar()
    return model, *da.constraints.close_loops(model, *model.random_state(4))


def test_gauss_principle_of_models_with_loops():
    """TOD-GAUSS: forward dynamics of closed loops as the minimum over the accelerations that they allow."""
    model, q, v = overconstrained()
    tau = np.random.default_rng(0).normal(size=model.nv)
    a = da.forward_dynamics(model, q, v, tau, method="gauss")
    close(a, da.forward_dynamics(model, q, v, tau), 1e-9)
    tree = model.tree()
    a_0 = da.forward_dynamics(tree, q, v, tau)
    K, k = da.constraints.constraint_jacobian(model, q), da.constraints.constraint_bias(model, q, v)
    close(a, argmin(da.mass_matrix(tree, q), a_0, K, k), 1e-8)
    close(da.forward_dynamics(tree, q, v, tau, method="gauss"), a_0, 1e-12)
    stabilized = da.forward_dynamics(model, q + 0.01, v, tau, method="gauss", stabilization=0.1)
    close(stabilized, da.forward_dynamics(model, q + 0.01, v, tau, stabilization=0.1), 1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_explicit_constraints_by_blocks(seed):
    """TOD-EXPLICIT: the three block rows give x'' = J q'' + J' q', J^T f_c = 0, q'' of M q'' + c = tau."""
    D, _, f, _ = system(seed)
    rng = np.random.default_rng(seed)
    J, bias = rng.normal(size=(N, 2)), rng.normal(size=N)
    x, f_c, q = explicit_dynamics_by_blocks(D.tolist(), f.tolist(), J.tolist(), bias.tolist())
    close(x, J @ q + bias, 1e-10)
    close(J.T @ f_c, np.zeros(2), 1e-10)
    close(D @ x, f + f_c, 1e-10)
    M, c, tau = explicit_dynamics(D.tolist(), f.tolist(), J.tolist(), bias.tolist())
    close(np.linalg.solve(M, np.array(tau) - c), q, 1e-10)


def test_power_and_energy_are_the_same_in_all_coordinates():
    """TOD-COORDS: tau = J^T f and M = J^T D J keep q'^T tau = x'^T f and q'^T M q' = x'^T D x'."""
    D, _, f, _ = system(2)
    rng = np.random.default_rng(2)
    J, q_rate = rng.normal(size=(N, 3)), rng.normal(size=3)
    x_rate = J @ q_rate
    assert q_rate @ transformed_force(f.tolist(), J.tolist()) == pytest.approx(x_rate @ f, rel=1e-12)
    M = np.array(transformed_inertia(D.tolist(), J.tolist()))
    assert q_rate @ M @ q_rate == pytest.approx(x_rate @ D @ x_rate, rel=1e-12)


def test_map_motion_differentiates_twice():
    """TOD-IMPLICIT: J = df/dx and J' x' with J' = sum of dJ/dx_i x_i', against formulas done by hand."""
    x, y, x_rate, y_rate = 0.7, -0.4, 1.3, 2.1
    value, J, velocity, bias = map_motion(
        lambda z: [scalar.sin(z[0]) * z[1] * z[1]], [x, y], [x_rate, y_rate]
    )
    by_hand = [np.cos(x) * y * y, 2.0 * np.sin(x) * y]
    close(value, [np.sin(x) * y * y], 1e-15)
    close(J, [by_hand], 1e-15)
    close(velocity, [by_hand[0] * x_rate + by_hand[1] * y_rate], 1e-15)
    second = -np.sin(x) * y * y * x_rate**2 + 4 * np.cos(x) * y * x_rate * y_rate + 2 * np.sin(x) * y_rate**2
    close(bias, [second], 1e-14)


def test_choices_have_second_derivatives_in_traces():
    """TOD-IMPLICIT: constraints may hold select and absolute; compiled, their J' x' is exact on each side."""
    model = da.models.two_link_arm()

    def law(model, q, v):
        return map_motion(lambda z: [scalar.absolute(z[0]) * z[1] * z[1]], q, v).bias

    bias = da.compile(law, model)
    for q in ([0.3, 0.5], [-0.3, 0.5]):
        v = [1.0, 2.0]
        sign = np.sign(q[0])
        close(bias(q, v), [sign * (4 * q[1] * v[0] * v[1] + 2 * q[0] * v[1] ** 2)], 1e-14)
