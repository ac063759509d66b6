"""Joints that others follow, ranges of joints, and constraints of velocity, in steps with contact."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import dalembert as da
from dalembert.contact.contacts import listed_contacts
from dalembert.contact.costs import RangeEnd
from dalembert.contact.newton import GaussProblem, solve
from dalembert.contact.point_set import PointSet
from dalembert.contact.tree_system import TreeSystem, joint_axes
from dalembert.spatial import Mat3, Transform, Vec3

ROD = da.RigidInertia(1.0, (0.0, 0.0, -0.4), (0.1, 0.12, 0.05))
BELOW = Transform(Mat3.identity(), Vec3(0.0, 0.0, -0.8))
DISC = da.RigidInertia(2.0, (0.0, 0.0, 0.0), (0.1, 0.12, 0.05))
LAWS = ["rigid", "compliant"]


def chain(count=2, **last):
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    for k in range(count):
        builder.add_body(
            f"b{k}",
            f"b{k - 1}" if k else "world",
            da.Revolute((0.0, 1.0, 0.0)),
            f"j{k}",
            inertia=ROD,
            placement=BELOW if k else None,
            **(last if k == count - 1 else {}),
        )
    return builder


def geared(**last):
    """q1 = -2 q0."""
    builder = chain(**last)
    builder.add_coupling("gear", {"j0": 2.0, "j1": 1.0})
    return builder.build()


def differential(**last):
    """q2 = q0 / 2 - 3 q1."""
    builder = chain(3, **last)
    builder.add_coupling("differential", {"j0": -0.5, "j1": 3.0, "j2": 1.0})
    return builder.build()


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize(
    "passive",
    [
        {"damping": 2.0},
        {"stiffness": 20.0, "rest": 0.3},
        {"friction": 1.0},
        {"damping": 1.0, "stiffness": 5.0},
    ],
    ids=lambda passive: " ".join(passive),
)
@pytest.mark.parametrize("model", [geared, differential])
def test_what_acts_at_joints_that_follow_others_acts_in_steps_with_contact(model, passive, contact):
    own = model(**passive)
    q, v = np.linspace(0.5, 0.2, own.nq), np.linspace(1.0, 0.8, own.nv)
    exact = da.rollout(own, q, v, steps=400, dt=5e-4, integrator="rk4")
    found = da.rollout(own, q, v, steps=2000, dt=1e-4, contact=contact)
    without = da.rollout(model(), q, v, steps=400, dt=5e-4, integrator="rk4")
    assert np.abs(exact.q[-1] - without.q[-1]).max() > 0.004
    np.testing.assert_allclose(found.q[-1], exact.q[-1], atol=1e-3)
    np.testing.assert_allclose(found.v[-1], exact.v[-1], atol=1e-2)


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize("ratio", [2.0, -2.0])
def test_limits_of_a_joint_that_follows_another_hold(contact, ratio):
    builder = chain(limits=(-0.6, 0.4))
    builder.add_coupling("gear", {"j0": ratio, "j1": 1.0})
    model = builder.build()
    for tau, end in ((20.0, 0.6 if ratio > 0.0 else 0.4), (-20.0, -0.4 if ratio > 0.0 else -0.6)):
        found = da.rollout(model, [0.1], [0.0], [tau], steps=1500, dt=0.002, contact=contact)
        assert found.q[-1, 0] == pytest.approx(end / 2.0, abs=2e-3)


@pytest.mark.parametrize("contact", LAWS)
def test_prescribed_velocities_are_kept(contact):
    """psi = v0 - 1 has a part that no velocity changes."""
    builder = chain()
    builder.add_constraint(lambda model, q, v: [v[0] - 1.0], "velocity", name="drive")
    model = builder.build()
    exact = da.rollout(model, [0.5, 0.2], [1.0, 0.5], steps=400, dt=5e-4, integrator="rk4")
    found = da.rollout(model, [0.5, 0.2], [1.0, 0.5], steps=2000, dt=1e-4, contact=contact)
    np.testing.assert_allclose(found.v[:, 0], 1.0, atol=1e-3)
    np.testing.assert_allclose(found.q[-1], exact.q[-1], atol=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_newtons_method_finds_the_minimum_where_ranges_end(seed):
    """Random rows and bounds in three variables; beside SciPy's minimum of the same cost."""
    rng = np.random.default_rng(seed)
    model = chain(3).build()
    q, p = rng.normal(size=3), 3.0 * rng.normal(size=3)
    A = da.mass_matrix(model, q)
    rows, bounds, k = rng.normal(size=(4, 3)), rng.uniform(-0.5, 0.2, 4), 10.0 ** rng.uniform(0.0, 3.0, 4)

    def cost(v):
        return 0.5 * v @ A @ v - p @ v + 0.5 * k @ np.minimum(rows @ v - bounds, 0.0) ** 2

    def slope(v):
        return A @ v - p + rows.T @ (k * np.minimum(rows @ v - bounds, 0.0))

    ends = [RangeEnd(list(row), bound, 0.0, stiff) for row, bound, stiff in zip(rows, bounds, k, strict=True)]
    system = TreeSystem.of(joint_axes(model, q.tolist()), [[0.0]] * 3, (1.0 / np.diag(A)).tolist())
    nothing = listed_contacts(3, (), ())
    points = PointSet(nothing, system, nothing.near.stack([]), None, None, None)
    problem = GaussProblem(system, list(p), points, ranges=ends)
    found = solve(problem, [0.0] * 3, nothing.near.stack([]), acting=list(p), iterations=12, tolerance=1e-9)
    best = minimize(cost, np.zeros(3), jac=slope, method="BFGS", options={"gtol": 1e-10}).x
    assert (rows @ best < bounds).any()
    np.testing.assert_allclose(found.v, best, atol=1e-7)


@pytest.mark.parametrize("contact", LAWS)
def test_impact_at_the_limit_of_a_joint_that_follows_several_obeys_gauss_principle(contact):
    """v+ = v - M^-1 r (r . M^-1 r)^-1 (r . v), where q2 = r . q reaches its end."""
    model, r = differential(limits=(-0.6, 0.4)), np.array([0.5, -3.0])
    q, v = np.array([0.5, 0.0]), np.array([1.0, -0.8])
    found = da.rollout(model, q, v, steps=2000, dt=1e-4, contact=contact)
    (k,) = np.nonzero(found.q @ r > 0.4 - 1e-4)[0][:1]
    before, after = found.v[k - 2], found.v[k + 2]
    across = np.linalg.solve(da.mass_matrix(model, found.q[k]), r)
    assert before @ r > 2.0
    np.testing.assert_allclose(after, before - across * (before @ r) / (across @ r), atol=0.03)
    assert (found.q @ r).max() < 0.4 + 1e-4
    unbound = da.rollout(model, q, v, steps=2000, dt=1e-4, contact=without_limits(contact))
    assert (unbound.q @ r).max() > 0.5


@pytest.mark.parametrize("contact", LAWS)
def test_a_start_beyond_the_limit_of_a_joint_that_follows_several_is_mended_without_speed(contact):
    model, r = differential(limits=(-0.6, 0.4)), np.array([0.5, -3.0])
    q = np.array([0.0, -0.15])
    still = np.zeros(2)
    tau = da.inverse_dynamics(model, q, still, still)
    found = da.rollout(model, q, still, tau, 100, 1e-3, contact=contact)
    length = found.q @ r
    assert length[0] == pytest.approx(0.45)
    assert np.all(np.diff(length) <= 1e-9)
    assert length[-1] == pytest.approx(0.4, abs=1e-3)
    assert np.abs(found.v).max() < 1e-2


def without_limits(contact):
    return {"rigid": da.contact.Rigid, "compliant": da.contact.Compliant}[contact](limits=False)


@pytest.mark.parametrize("contact", LAWS)
def test_limits_of_a_planar_joint_are_those_of_its_angle_and_of_its_lengths(contact):
    """Its velocities are along the body's axes, angle first; its positions are not, angle last. A puck that
    turns about its centre of mass stops at either wall, and goes on along it as fast as before."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    limits = ((-0.1, -0.2, -9.0), (0.1, 0.2, 0.7))
    builder.add_body("puck", "world", da.joints.Planar(), inertia=DISC, limits=limits)
    model = builder.build()
    dt, speed, spin = 0.002, np.array([-1.0, 0.5]), 1.0
    found = da.rollout(model, [0.0, 0.0, 0.0], [spin, *speed], steps=500, dt=dt, contact=contact)
    time = dt * np.arange(501)
    assert not found.failed
    np.testing.assert_allclose(found.q[:, 0], np.maximum(speed[0] * time, -0.1), atol=1e-4)
    np.testing.assert_allclose(found.q[:, 1], np.minimum(speed[1] * time, 0.2), atol=1e-4)
    np.testing.assert_allclose(found.q[:, 2], np.minimum(spin * time, 0.7), atol=1e-3)
    np.testing.assert_allclose(found.v[-1], 0.0, atol=1e-3)
