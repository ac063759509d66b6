"""Contact solvers beside equality constraints, and the reduction of contact sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

import dalembert as da
from dalembert.errors import ArgumentError, ShapeError, StateError, UnknownNameError
from dalembert.textbook.contact_gaps import GapFunction
from dalembert.textbook.contact_solvers import RigidSolver, SpringDamper, StepSolver, contact_dynamics

G = 9.81


def body(mass: float, *inertia: float) -> Any:
    return da.RigidInertia(mass, (0.0, 0.0, 0.0), inertia)


@pytest.fixture(scope="module")
def block() -> tuple[da.Model, GapFunction]:
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("block", "world", da.Free(), inertia=body(3.0, 0.03, 0.02, 0.04))
    builder.add_shape("block", da.shapes.Box((0.3, 0.2, 0.2)))
    model = builder.build().with_ground()
    return model, da.textbook.shape_gaps(model)


def test_a_contact_solver_gives_the_forces_of_the_complementarity_problem(
    block: tuple[da.Model, GapFunction],
) -> None:
    """TOD-CONTACT: M a + c = tau + J_c^T lambda_c with lambda_c of either solver is the motion of the LCP:
    a block on four corners under any load stays, or leaves with those that the load lifts."""
    model, gaps = block
    q = model.neutral()
    q[2] = 0.1
    bottom = [int(i) for i in np.flatnonzero(gaps.value(q) < 1e-9)]
    assert len(bottom) == 4
    rng = np.random.default_rng(0)
    for _ in range(8):
        tau = rng.normal(size=6) * [3.0, 3.0, 1.0, 10.0, 10.0, 30.0]
        v = np.array([0.0, 0.0, rng.normal(), *rng.normal(size=2), 0.0])  # slides and spins on the ground
        equations = da.textbook.contact_equations(model, q, v, tau, gaps).of(bottom)
        expected = equations.acceleration(da.textbook.solve_lcp(equations.M, equations.d).force)
        for solution in ("lcp", "qp"):
            a, force = contact_dynamics(model, q, v, tau, gaps, RigidSolver(gaps, solution))
            np.testing.assert_allclose(a, expected, atol=1e-6)
            lack = da.mass_matrix(model, q) @ a + da.bias_forces(model, q, v) - tau
            np.testing.assert_allclose(lack, gaps.normals(q) @ force, atol=1e-9)
            assert (gaps.normals(q).T @ a + gaps.bias(q, v))[bottom].min() > -1e-6
    resting = contact_dynamics(model, q, np.zeros(6), np.zeros(6), gaps, RigidSolver(gaps, "qp"))
    np.testing.assert_allclose(resting[1][bottom], 3.0 * G / 4, rtol=1e-3)  # amid all solutions


def test_contact_solvers_stand_beside_the_loops_of_a_linkage() -> None:
    """TOD-CONTACT: J a + dJ/dt v = 0 of the loops holds with whatever contact forces a solver returns."""
    model = da.models.four_bar()
    q, v = da.constraints.close_loops(model, [0.4, 0.3, 1.2], np.zeros(3))
    touch = float(q[2])
    stop = GapFunction(model, lambda model, q: [q[2] - touch])
    # Hold the rocker against its stop by a torque on the crank that would turn it through.
    rest = da.forward_dynamics(model, q, v, np.zeros(3))
    pull = -50.0 * float(np.sign((da.forward_dynamics(model, q, v, [1.0, 0, 0]) - rest)[2]))
    tau = np.array([pull, 0.0, 0.0])
    a, force = contact_dynamics(model, q, v, tau, stop, RigidSolver(stop))
    assert force[0] > 0.1
    np.testing.assert_allclose(a, 0.0, atol=1e-8)
    K, k = da.constraints.constraint_jacobian(model, q), da.constraints.constraint_bias(model, q, v)
    a, _ = contact_dynamics(model, q, v, tau, stop, lambda q, v, tau: [3.7])  # anything may be plugged in
    np.testing.assert_allclose(K @ a, k, atol=1e-8)
    free = da.forward_dynamics(model, q, v, tau + stop.normals(q) @ [3.7])
    np.testing.assert_allclose(a, free, atol=1e-9)


def steps(model: Any, gaps: Any, solver: Any, q: Any, v: Any, dt: float, count: int) -> tuple[Any, Any]:
    """Semi-implicit steps with the forces of a contact solver."""
    states = []
    for _ in range(count):
        a, _ = contact_dynamics(model, q, v, np.zeros(model.nv), gaps, solver)
        v = v + dt * a
        q = da.integrate(model, q, dt * v)
        states.append((q, v))
        if not np.abs(v).max() < 1e6:
            break
    return np.array([s[0] for s in states]), np.array([s[1] for s in states])


@pytest.mark.parametrize("solution", ["lcp", "qp"])
def test_an_optimisation_at_each_step_lands_a_block_without_penetration(
    block: tuple[da.Model, GapFunction], solution: Any
) -> None:
    """TOD-CONTACT: dropped tilted, it hardly sinks in, loses energy, and ends at rest on its face."""
    model, gaps = block
    q = model.neutral()
    q[2], q[3:7] = 0.25, [np.cos(0.2), np.sin(0.2) * 0.6, np.sin(0.2) * 0.8, 0.0]
    path, velocities = steps(model, gaps, StepSolver(gaps, 0.002, solution), q, np.zeros(6), 0.002, 500)
    assert gaps.value(path).min() > -2e-4
    energy = da.dynamics.kinetic_energy(model, path, velocities) + da.dynamics.potential_energy(model, path)
    assert energy[-1] < energy[0]
    assert np.abs(velocities[-1, [0, 1, 5]]).max() < 1e-3
    assert path[-1, 2] == pytest.approx(0.1, abs=1e-4)


def stack(light: float, heavy: float) -> tuple[da.Model, GapFunction]:
    """A heavy weight on a light one on the floor, which move up and down."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    for name, mass in (("light", light), ("heavy", heavy)):
        builder.add_body(name, "world", da.Prismatic(axis=(0, 0, 1)), inertia=body(mass, 1.0, 1.0, 1.0))
    model = builder.build()
    return model, GapFunction(model, lambda model, q: [q[0], q[1] - q[0]])


def test_springs_and_dampers_blow_up_at_great_mass_ratios() -> None:
    """TOD-CONTACT: springs that let 1,000 kg sink in by 1 mm are unstable under 1 kg between it and the
    floor at steps of 1 ms, damped or not, and stable with equal masses or steps of 0.1 ms; optimised forces
    are stable at once."""
    sink, dt = 1e-3, 1e-3

    def fastest(light: float, heavy: float, damping: float, dt: float) -> float:
        model, gaps = stack(light, heavy)
        K = heavy * G / sink
        solver = SpringDamper(gaps, stiffness=K, damping=damping * np.sqrt(K * heavy))
        start = np.array([-(heavy + light) * G / K, -(2 * heavy + light) * G / K])
        start[1] -= 1e-6  # a micrometre from equilibrium
        return float(np.abs(steps(model, gaps, solver, start, np.zeros(2), dt, int(0.2 / dt))[1]).max())

    assert fastest(1000.0, 1000.0, 0.1, dt) < 1e-2
    assert fastest(1.0, 1000.0, 0.0, dt) > 0.1
    assert fastest(1.0, 1000.0, 0.1, dt) > 0.1
    assert fastest(1.0, 1000.0, 0.0, dt / 10) < 1e-2
    model, gaps = stack(1.0, 1000.0)
    path, velocities = steps(model, gaps, StepSolver(gaps, dt), np.zeros(2), np.zeros(2), dt, 200)
    assert np.abs(velocities).max() < 1e-6
    assert np.abs(path).max() < 1e-8
    forces = StepSolver(gaps, dt)(path[-1], velocities[-1], np.zeros(2))
    np.testing.assert_allclose(forces, [1001.0 * G, 1000.0 * G], rtol=1e-4)


def test_springs_and_dampers_push_where_bodies_overlap_and_never_pull() -> None:
    """TOD-CONTACT: -K phi - D phi-dot where phi < 0 and that is positive, else nothing."""
    _, gaps = stack(1.0, 2.0)
    solver = SpringDamper(gaps, stiffness=1000.0, damping=10.0)
    rng = np.random.default_rng(3)
    pushed = 0
    for q, v in rng.normal(size=(60, 2, 2)) * [[[0.01], [1.0]]]:
        gap, rate = np.array([q[0], q[1] - q[0]]), np.array([v[0], v[1] - v[0]])
        expected = np.where(gap < 0.0, np.maximum(-1000.0 * gap - 10.0 * rate, 0.0), 0.0)
        np.testing.assert_allclose(solver(q, v, np.zeros(2)), expected, atol=1e-12)
        pushed += np.count_nonzero(expected)
    assert 20 < pushed < 100


def test_wrong_solvers_are_named(block: tuple[da.Model, GapFunction]) -> None:
    """TOD-CONTACT"""
    model, gaps = block
    q = model.neutral()
    q[2] = 0.1
    with pytest.raises(StateError, match="apply an impulse"):
        RigidSolver(gaps)(q, np.array([0, 0, 0, 0, 0, -1.0]), np.zeros(6))
    with pytest.raises(ShapeError, match="one for each contact"):
        contact_dynamics(model, q, np.zeros(6), np.zeros(6), gaps, lambda q, v, tau: [1.0])
    with pytest.raises(UnknownNameError, match="lcp"):
        RigidSolver(gaps, "lpc")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="dt"):
        StepSolver(gaps, 0.0)
    with pytest.raises(ArgumentError, match="stiffness"):
        SpringDamper(gaps, stiffness=-1.0)


def positively_dependent(N: Any, n: Any) -> bool:
    return bool(linprog(np.zeros(N.shape[1]), A_eq=N, b_eq=n, bounds=(0, None)).status == 0)


def test_flat_contacts_reduce_to_the_corners_of_their_hull() -> None:
    """RBDA-11.6-REDUCE: a segment leaves two points, a pentagon with points inside five, random points in a
    plane of any pose the corners of their convex hull; what is left carries what was taken away."""
    rng = np.random.default_rng(0)
    rotation, shift = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=3)
    for number in range(6):
        flat = rng.normal(size=(25, 2))
        if number == 0:
            flat = np.linspace(0, 1, 9)[:, None] * [0.6, 0.8]
        if number == 1:
            angle = 2 * np.pi * np.arange(5) / 5
            flat = np.vstack([np.column_stack([np.cos(angle), np.sin(angle)]), 0.2 * flat])
        points = np.column_stack([flat, np.zeros(len(flat))]) @ rotation.T + shift
        direction = rotation[:, 2]
        kept = da.textbook.reduce_contacts(points, direction)
        expected = (0, 8) if number == 0 else tuple(sorted(ConvexHull(flat).vertices))
        assert kept == expected
        if number == 1:
            assert len(kept) == 5
        N = da.textbook.contact_normal(points, direction).T
        for k in set(range(len(points))) - set(kept):
            assert positively_dependent(N[:, list(kept)], N[:, k])


def test_curved_contacts_need_samples() -> None:
    """RBDA-11.6-REDUCE: every sample on the rim of a disc is needed and none inside; along the line x = 0
    of z = x tan(y) every normal points elsewhere, and all are needed."""
    rim = da.textbook.disc_contacts([0.1, 0.2, 0.3], [1.0, 2.0, 2.0], 0.5, tolerance=0.003)
    spokes = rim - [0.1, 0.2, 0.3]
    np.testing.assert_allclose(np.linalg.norm(spokes, axis=1), 0.5, rtol=1e-12)
    np.testing.assert_allclose(spokes @ [1.0, 2.0, 2.0], 0.0, atol=1e-12)
    np.testing.assert_allclose(spokes.sum(axis=0), 0.0, atol=1e-12)  # all the way round, evenly
    sides = np.linalg.norm(rim - np.roll(rim, 1, axis=0), axis=1)
    np.testing.assert_allclose(sides, sides[0], rtol=1e-9)
    inside = 0.7 * spokes + [0.1, 0.2, 0.3]
    kept = da.textbook.reduce_contacts(np.vstack([rim, inside]), [1.0, 2.0, 2.0])
    assert kept == tuple(range(len(rim)))
    edge_middle = 0.5 * (rim[0] + rim[1])
    assert 0.0 < 0.5 - np.linalg.norm(edge_middle - [0.1, 0.2, 0.3]) <= 0.003
    y = np.linspace(-1.0, 1.0, 9)
    points = np.column_stack([0 * y, y, 0 * y])
    normals = np.column_stack([-np.tan(y), 0 * y, np.ones(9)])  # of the surface z - x tan(y) = 0 at x = 0
    assert da.textbook.reduce_contacts(points, normals) == tuple(range(9))
    assert da.textbook.reduce_contacts(points, [0.0, 0.0, 1.0]) == (0, 8)


def test_reduced_contacts_give_the_same_motion() -> None:
    """RBDA-11.6-REDUCE: acceleration of a block pressed at random on its face, with all points and with
    those kept."""
    rng = np.random.default_rng(2)
    points = np.column_stack([rng.uniform(-0.3, 0.3, (20, 2)), np.full(20, -0.1)])
    kept = list(da.textbook.reduce_contacts(points, [0.0, 0.0, 1.0]))
    N = da.textbook.contact_normal(points, [0.0, 0.0, 1.0]).T
    inertia = body(2.0, 0.1, 0.2, 0.3)
    for _ in range(10):
        force = rng.normal(size=6) * [3, 3, 3, 5, 5, 20]
        whole = da.textbook.body_contacts(inertia, np.zeros(6), force, N)
        reduced = da.textbook.body_contacts(inertia, np.zeros(6), force, N[:, kept])
        np.testing.assert_allclose(whole.acceleration, reduced.acceleration, atol=1e-8)


def test_wrong_reductions_are_named() -> None:
    """RBDA-11.6-REDUCE"""
    with pytest.raises(ShapeError, match="nc, 3"):
        da.textbook.reduce_contacts([1.0, 2.0, 3.0], [0.0, 0.0, 1.0])
    with pytest.raises(ArgumentError, match=r"radius is -1.0; give a finite number above zero"):
        da.textbook.disc_contacts([0, 0, 0], [0, 0, 1], -1.0, tolerance=0.1)
    assert da.textbook.reduce_contacts(np.zeros((0, 3)), [0.0, 0.0, 1.0]) == ()
    assert da.textbook.reduce_contacts(np.ones((3, 3)), [0.0, 0.0, 1.0]) == (2,)
