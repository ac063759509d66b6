"""Every method of section 8.5 solves the one equation of motion of a constrained system."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.constraints import closed_trees
from tests.algorithms.loops.looped import equations, random_looped, textbook_accelerations
from tests.looped_models import closed_velocity, moving

import dalembert as da
from dalembert.algorithms import loops
from dalembert.algorithms.constraints import constraint_equations
from dalembert.errors import ModelError, UnknownNameError

CLOSERS = {
    "ball": (da.Spherical(),),
    "hinge": (da.Revolute((0.48, -0.6, 0.64)),),
    "weld": (da.Fixed(),),
    "slot": (da.joints.SphereInCylinder((0.0, 0.6, 0.8)),),
    "two": (da.joints.Universal(), da.joints.Cylindrical((0.0, 1.0, 0.0))),
}

BY_TREE = ("range_space", "direct", "null_space", "sparse", "maximal")


@pytest.mark.parametrize("name", CLOSERS)
def test_all_methods_solve_the_equation_of_motion(name: str) -> None:
    """RBDA-8.5-M1, RBDA-8.5-M2, RBDA-8.5-M3, RBDA-3.2-IMPLICIT, TOD-EQCON: one a, with K a = k."""
    model, q, v = random_looped(sum(map(ord, name)), CLOSERS[name])
    tau = np.random.default_rng(1).normal(size=model.nv)
    expected = textbook_accelerations(model, q, v, tau)
    found = equations(model, q, v)
    np.testing.assert_allclose(found.K @ expected, found.k, atol=1e-9 * np.abs(expected).max())
    for method in BY_TREE:
        a = loops.METHODS[method](model, q.tolist(), v.tolist(), tau.tolist())
        np.testing.assert_allclose(a, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max(), err_msg=method)


def test_compiled_methods_agree_on_couplings_loops_and_outer_forces() -> None:
    """RBDA-8.1-EOM: couplings, armatures, external forces and two loops in one system, float64 and 32."""
    model, q, v = random_looped(11, (da.Spherical(), da.Fixed()), bodies=4, couple=True)
    rng = np.random.default_rng(2)
    tau, push = rng.normal(size=model.nv), rng.normal(size=(len(model.bodies), 6))
    assert model.couplings
    expected = da.forward_dynamics(model, q, v, tau, push)
    for method in ("sparse", "maximal", "null_space"):
        a = loops.METHODS[method](model, q.tolist(), v.tolist(), tau.tolist(), external_forces=push.tolist())
        np.testing.assert_allclose(a, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max(), err_msg=method)
    batch = da.forward_dynamics(model, np.tile(q, (5, 1)), v, tau, push)
    np.testing.assert_array_equal(batch, np.tile(expected, (5, 1)))
    single = da.forward_dynamics(*[model, *(x.astype(np.float32) for x in (q, v, tau, push))])
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=0.0, atol=2e-4 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_redundant_rows_change_lambda_and_not_the_motion(dtype: str) -> None:
    """RBDA-8.5-M1, RBDA-8.5-M2, RBDA-3.2-IMPLICIT: rank-deficient K, K^T (1 - A^+ A) = 0, rank n + rank K."""
    rng = np.random.default_rng(3)
    n, rank = 6, 3
    B = rng.normal(size=(n, n))
    M, K = B @ B.T + np.eye(n), rng.normal(size=(5, rank)) @ rng.normal(size=(rank, n))
    K = np.vstack([K, 1e-17 * rng.normal(size=n)])  # a row of rounding errors
    f, k = rng.normal(size=n), K @ rng.normal(size=n)
    assert np.linalg.matrix_rank(np.block([[M, K.T], [K, np.zeros((6, 6))]]), tol=1e-9) == n + rank
    parents = [i - 1 for i in range(n)]

    def solved(rows: list[int], solve: object) -> loops.ConstrainedMotion:
        number = [[[np.asarray(x, dtype)] for x in row] for row in M]
        system = loops.ConstrainedSystem(
            [[x[0] for x in row] for row in number],
            [np.asarray(x, dtype) for x in f],
            [[np.asarray(x, dtype) for x in K[i]] for i in rows],
            [np.asarray(k[i], dtype) for i in rows],
            tuple(range(len(rows))),
            len(rows),
            parents,
        )
        return solve(system)  # type: ignore[operator,no-any-return]

    tolerance = 1e-10 if dtype == "float64" else 2e-4
    reference = solved([0, 1, 2], loops.constrained_motion)
    for rows in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [0, 0, 1, 3, 2]):
        for solve in (loops.constrained_motion, loops.constrained_motion_directly):
            found = solved(rows, solve)
            np.testing.assert_allclose(found.a, reference.a, rtol=0.0, atol=tolerance)
            force = K[rows].T @ np.array(found.multipliers, float)
            np.testing.assert_allclose(force, M @ np.array(found.a, float) - f, rtol=0.0, atol=30 * tolerance)
    shortest = solved([0, 1, 2, 3, 4], lambda s: loops.constrained_motion(s, minimum_norm=True))
    A = K[:5] @ np.linalg.solve(M, K[:5].T)
    expected = np.linalg.pinv(A, rcond=1e-9) @ (k[:5] - K[:5] @ np.linalg.solve(M, f))
    np.testing.assert_allclose(shortest.multipliers, expected, rtol=0.0, atol=10 * tolerance)
    leftover = K[:5].T @ (np.eye(5) - np.linalg.pinv(A, rcond=1e-9) @ A)
    np.testing.assert_allclose(leftover, 0.0, atol=1e-9)


def test_slightly_inconsistent_constraints_are_met_by_least_squares() -> None:
    """RBDA-8.5-M2: k outside range(K) by a little: A^+ b leaves the least residual in the metric of A."""
    rng = np.random.default_rng(4)
    n = 4
    B = rng.normal(size=(n, n))
    M, half = B @ B.T + np.eye(n), rng.normal(size=(2, n))
    K = np.vstack([half, half])
    f, k = rng.normal(size=n), np.array([0.3, -0.2, 0.3 + 1e-3, -0.2])
    system = loops.ConstrainedSystem(
        M.tolist(), f.tolist(), K.tolist(), k.tolist(), (0, 1, 2, 3), 4, [-1, 0, 1, 2]
    )
    found = loops.constrained_motion(system, minimum_norm=True)
    A, b = K @ np.linalg.solve(M, K.T), k - K @ np.linalg.solve(M, f)
    np.testing.assert_allclose(found.multipliers, np.linalg.lstsq(A, b, rcond=1e-9)[0], atol=1e-9)
    np.testing.assert_allclose(K @ found.a, [0.3005, -0.2, 0.3005, -0.2], atol=1e-9)  # halfway between


def test_planar_loops_in_space_are_overconstrained_and_move_all_the_same() -> None:
    """RBDA-3.2-IMPLICIT: a planar linkage tilted in space, so that its null rows hold rounding errors."""
    for name in ("four_bar", "slider_crank"):
        flat = getattr(da.models, name)()
        R, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))
        R *= np.sign(np.linalg.det(R))
        tilted = tilt(flat, R)
        q, v = moving(flat, 6)
        tau = np.random.default_rng(7).normal(size=3)
        assert np.linalg.matrix_rank(da.constraints.constraint_jacobian(tilted, q), tol=1e-9) == 2
        expected = da.forward_dynamics(flat, q, v, tau)
        for method in BY_TREE:
            a = loops.METHODS[method](tilted, q.tolist(), v.tolist(), tau.tolist())
            np.testing.assert_allclose(a, expected, rtol=1e-8, err_msg=f"{name} {method}")
        np.testing.assert_allclose(da.forward_dynamics(tilted, q, v, tau), expected, rtol=1e-8)
        single = [x.astype(np.float32) for x in (q, v, tau)]
        found = da.forward_dynamics(tilted, *single)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=2e-3 * np.abs(expected).max())


def tilt(model: da.Model, R: np.ndarray) -> da.Model:
    """The model with its world turned: gravity too, so that the motion is the same."""
    turn = da.Transform.from_rotation_translation(R.tolist(), (0.3, -0.2, 0.5))
    builder = da.ModelBuilder(gravity=(R @ np.array(model.gravity.to_list())).tolist())
    for body in model.bodies:
        placement = body.placement.as_transform()
        builder.add_body(
            body.name,
            model.bodies[body.parent].name if body.parent >= 0 else "world",
            body.joint,
            body.joint_name,
            placement=turn @ placement if body.parent < 0 else placement,
            inertia=body.inertia,
        )
    for loop in model.loops:
        names = [*model.bodies.names, "world"]
        builder.add_loop(
            loop.name,
            names[loop.predecessor],
            names[loop.successor],
            loop.joint,
            loop.placement_predecessor,
            loop.placement_successor,
        )
    return builder.build()


def test_rank_may_change_along_a_motion() -> None:
    """RBDA-8.5-M2, RBDA-8.5-M3: the slider-crank at its dead centre, stretched, where K loses no motion."""
    model = da.models.slider_crank()
    tau = np.array([0.5, 0.0, 2.0])
    for angle in (0.0, 1e-9, 1e-3, 0.4):
        q, v = da.constraints.close_loops(
            model, np.array([angle, -angle * 0.25 / 0.8, 0.0]), np.array([2.0, 0.0, 0.0])
        )
        expected = textbook_accelerations(model, q, v, tau)
        for method in ("range_space", "null_space", "direct"):
            a = loops.METHODS[method](model, q.tolist(), v.tolist(), tau.tolist())
            np.testing.assert_allclose(a, expected, rtol=1e-6, atol=1e-6, err_msg=f"{method} at {angle}")


def test_explicit_constraints_give_the_same_motion() -> None:
    """RBDA-3.2-EXPLICIT: H_G = G^T H G, C_G = G^T (C + H g), u = G^T tau; equal energy and power."""
    model, q, v = random_looped(21, (da.Revolute(),))
    tau = np.random.default_rng(8).normal(size=model.nv)
    found = equations(model, q, v)
    K, k = np.array(found.K, float), np.array(found.k, float)
    solution = loops.explicit_solution(found.K, found.k)
    chosen = np.array(solution.independent, float) > 0.5
    G, g = np.array(solution.G, float)[:, chosen], np.array(solution.g, float)
    np.testing.assert_allclose(K @ G, 0.0, atol=1e-9)
    np.testing.assert_allclose(K @ g, k, atol=1e-8)
    M, C = da.mass_matrix(model, q), da.bias_forces(model, q, v)
    ydd = np.linalg.solve(G.T @ M @ G, G.T @ tau - G.T @ (C + M @ g))
    a = da.forward_dynamics(model, q, v, tau)
    np.testing.assert_allclose(G @ ydd + g, a, rtol=0.0, atol=1e-9 * np.abs(a).max())
    rates = v[chosen]
    np.testing.assert_allclose(G @ rates, v, atol=1e-9)
    assert 0.5 * rates @ (G.T @ M @ G) @ rates == pytest.approx(
        float(da.dynamics.kinetic_energy(model, q, v))
    )
    assert (G.T @ tau) @ rates == pytest.approx(tau @ v)
    n, r = model.nv, int(chosen.sum())
    three = np.block(  # Eq. 3.18: M a - f = tau - C, a - G y'' = g, G^T f = 0
        [
            [M, -np.eye(n), np.zeros((n, r))],
            [np.eye(n), np.zeros((n, n)), -G],
            [np.zeros((r, n)), G.T, np.zeros((r, r))],
        ]
    )
    x = np.linalg.solve(three, np.concatenate([tau - C, g, np.zeros(r)]))
    np.testing.assert_allclose(x[:n], a, rtol=0.0, atol=1e-8 * np.abs(a).max())
    dual = np.block([[np.linalg.inv(M), G], [G.T, np.zeros((r, r))]])  # Eq. 3.19: M^-1 f - G y'' = …
    y = np.linalg.solve(dual, np.concatenate([g - np.linalg.solve(M, tau - C), np.zeros(r)]))
    np.testing.assert_allclose(-y[n:], ydd, rtol=0.0, atol=1e-7 * np.abs(ydd).max())


def test_constraint_forces_do_no_work() -> None:
    """RBDA-3.2-IMPLICIT: K^T lambda . v = 0, so that the energy changes by the power of tau alone."""
    model, q, v = random_looped(31, (da.joints.Universal(),))
    tau = np.random.default_rng(9).normal(size=model.nv)
    K, lam = da.constraints.constraint_jacobian(model, q), da.constraints.constraint_forces(model, q, v, tau)
    force = K.T @ lam
    assert abs(force @ v) < 1e-9 * np.abs(force).max() * np.abs(v).max()
    a = da.forward_dynamics(model, q, v, tau)
    h = 1e-6

    def energy(t: float) -> float:
        later = da.integrate(model, q, t * v + 0.5 * t * t * a)
        w = v + t * a
        return float(da.dynamics.kinetic_energy(model, later, w) + da.dynamics.potential_energy(model, later))

    assert (energy(h) - energy(-h)) / (2 * h) == pytest.approx(tau @ v, rel=1e-5, abs=1e-5)


def test_methods_for_trees_and_for_loops_are_told_apart() -> None:
    linkage, arm = da.models.four_bar(), da.models.two_link_arm()
    state = [np.zeros(3)] * 3
    for method in ("aba", "crba", "aba_spatial"):
        with pytest.raises(ModelError, match=f'"{method}" is for trees.*"range_space".*model.tree'):
            da.forward_dynamics(linkage, *state, method=method)
    for method in ("range_space", "direct", "null_space", "loop_closure"):
        with pytest.raises(ModelError, match=f'"{method}" is for models with loops.*"aba"'):
            da.forward_dynamics(arm, [0.1, 0.2], [0.3, 0.4], [0.0, 0.0], method=method)
    with pytest.raises(ModelError, match=r'"loop_closure" needs q as a function.*set_loop_closure'):
        da.forward_dynamics(linkage, *state, method="loop_closure")
    with pytest.raises(UnknownNameError, match=r'unknown method.*"range_spice".*nearest: "range_space"'):
        da.forward_dynamics(linkage, *state, method="range_spice")


def test_massless_bodies_that_loops_hold_are_no_obstacle() -> None:
    """RBDA-8.5-M3, RBDA-8.5-M1: M is singular, G^T M G is not; the default method sees to it."""
    plain = da.models.four_bar()
    builder = da.ModelBuilder()
    for body in plain.bodies:
        parent = plain.bodies[body.parent].name if body.parent >= 0 else "world"
        builder.add_body(
            body.name, parent, body.joint, body.joint_name, placement=body.placement, inertia=body.inertia
        )
    loop = plain.loops[0]
    builder.add_body("bush", "coupler", loop.joint, placement=loop.placement_predecessor)
    builder.add_loop("weld", "bush", "rocker", da.Fixed(), None, loop.placement_successor)
    bushed = builder.build()
    q, v = moving(plain, 12)
    tau = np.array([0.4, -0.3, 0.2])
    wide, fast = da.constraints.close_loops(bushed, np.array([*q, 0.0]), np.array([*v, 0.0]))
    np.testing.assert_allclose(da.constraints.constraint_error(plain, wide[:3]), 0.0, atol=1e-9)
    fast = closed_velocity(bushed, wide, fast)
    expected = da.forward_dynamics(plain, wide[:3], fast[:3], tau)
    a = da.forward_dynamics(bushed, wide, fast, [*tau, 0.0])
    np.testing.assert_allclose(a[:3], expected, rtol=1e-8)
    direct = da.forward_dynamics(bushed, wide, fast, [*tau, 0.0], method="direct")
    np.testing.assert_allclose(direct[:3], expected, rtol=1e-8)
    with pytest.raises(ModelError, match="no mass"):
        da.forward_dynamics(bushed, wide, fast, [*tau, 0.0], method="range_space")


@pytest.mark.parametrize("name", sorted(closed_trees.CLOSERS))
def test_any_joint_may_close_a_loop(name: str) -> None:
    """RBDA-8.1-EOM, RBDA-8.5-M1, RBDA-8.5-M2, RBDA-8.5-M3: joints of every kind, driven ones too, moving."""
    closer, time = closed_trees.CLOSERS[name], closed_trees.TIME
    model, q, start = closed_trees.closed_model(closer, ("world", "arm2"), 5)
    found = constraint_equations(model, q, start, time=time)
    K = np.array(found.K, float).reshape(-1, model.nv)
    v = (np.array(start) - np.linalg.pinv(K, rcond=1e-9) @ np.array(found.velocity_error, float)).tolist()
    tau = np.random.default_rng(1).normal(size=model.nv).tolist()
    a = np.array(loops.constrained_forward_dynamics(model, q, v, tau, time=time), float)
    found = constraint_equations(model, q, v, time=time)
    scale = np.abs(a).max()
    np.testing.assert_allclose(K @ a, found.k, atol=1e-9 * scale)
    for method in ("direct", "null_space", "sparse", "maximal"):
        other = loops.METHODS[method](da.algorithms.aligned(model), q, v, tau, time=time)
        np.testing.assert_allclose(np.array(other, float), a, rtol=0.0, atol=1e-8 * scale, err_msg=method)
