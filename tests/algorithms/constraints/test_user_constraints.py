"""Constraints given as functions: their rows are exact rates, on trees with quaternions and with time."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.constraints.closed_trees import TIME, moved, tree

import dalembert as da
from dalembert.algorithms import aligned, body_velocities, forward_kinematics
from dalembert.algorithms.constraints import closure_equations, constraint_equations
from dalembert.algorithms.open_tree import require_open_tree
from dalembert.model import configuration
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Free, Prismatic, Revolute
from dalembert.model.joints.dual import directional_derivative
from dalembert.models.random_trees import random_inertia, random_placement
from dalembert.scalar import atan2, cos, sin, sqrt

STEP = 1e-5


def triangle(model, q, time):
    """The perimeter of a triangle of three bodies, and a product of coordinates."""
    poses = forward_kinematics(model, q, time=time)
    corners = [poses[model.body(name)].p for name in ("arm2", "leg2", "head")]
    sides = [corners[i] - corners[i - 1] for i in range(3)]
    return [sum(sqrt(side.dot(side)) for side in sides) - 2.0 - 0.1 * time * time, sin(q[7]) * q[8]]


def skate(model, q, v, time):
    """A blade on the leg that does not slip sideways, on ice that drifts."""
    body = model.body("leg2")
    velocity = body_velocities(model, q, v, time=time)[body]
    return [velocity.linear.y + 0.3 * velocity.angular.z - 0.2 * time]


def plain(model, q):
    return [q[8] - q[7] * q[7]]


def constrained(seed=5):
    builder = tree(np.random.default_rng(seed))
    builder.add_constraint(triangle)
    builder.add_constraint(skate, "velocity", name="blade")
    builder.add_constraint(plain)
    return builder.build()


def test_rows_of_functions_are_their_rates():
    """RBDA-3.4-CLASSES: holonomic, nonholonomic and rheonomic constraints over several bodies."""
    model = constrained()
    q, v = (x.tolist() for x in model.random_state(5))
    assert [item.size for item in model.constraints] == [2, 1, 1]
    assert model.time_dependent
    for system in (model, aligned(model)):
        now = constraint_equations(system, q, v, time=TIME)
        assert now.names == ("triangle", "triangle", "blade", "plain")
        ahead, behind = (
            constraint_equations(system, moved(model, q, v, h), v, time=TIME + h) for h in (STEP, -STEP)
        )
        rate = (np.array(ahead.velocity_error) - np.array(behind.velocity_error)) / (2.0 * STEP)
        np.testing.assert_allclose(rate, -np.array(now.k), rtol=1e-6, atol=1e-6)
        drift = (np.array(ahead.position_error) - np.array(behind.position_error)) / (2.0 * STEP)
        np.testing.assert_allclose(
            np.delete(drift, 2), np.delete(now.velocity_error, 2), rtol=1e-6, atol=1e-7
        )
        assert now.position_error[2] == 0.0
        still = constraint_equations(system, q, [0.0] * model.nv, time=TIME)
        Kv = np.array(now.K) @ np.array(v)
        np.testing.assert_allclose(Kv + np.array(still.velocity_error), now.velocity_error, atol=1e-11)


def crank_model(l1=0.5, l2=0.8):
    """A floating base with a piston arm: y = base, elbow; the piston's two joints follow."""
    rng = np.random.default_rng(2)
    builder = ModelBuilder()
    for name, parent, joint in (
        ("base", "world", Free()),
        ("elbow", "base", Revolute()),
        ("swing", "base", Revolute()),
        ("piston", "swing", Prismatic()),
    ):
        builder.add_body(
            name, parent=parent, joint=joint, placement=random_placement(rng), inertia=random_inertia(rng)
        )

    def gamma(model, y, time):
        angle = y[7] + 0.1 * time
        swing = atan2(l2 * sin(angle), l2 * cos(angle) - l1)
        length = sqrt(l1 * l1 + l2 * l2 - 2.0 * l1 * l2 * cos(angle))
        return [*y, swing, length]

    builder.set_loop_closure(gamma, ["base", "elbow"])
    return builder.build()


def test_explicit_constraint_and_its_implicit_form():
    """RBDA-8.11-GAMMA: q = gamma(y), v = G dy + ..., a = G ddy + g, with a floating base among y."""
    model = crank_model()
    rng = np.random.default_rng(8)
    q0, _ = model.random_state(3)
    y, ydot, ydd = q0[list(model.closure.positions)], rng.normal(size=7), rng.normal(size=7)
    start = closure_equations(model, y.tolist(), ydot.tolist(), time=TIME)
    np.testing.assert_array_equal(np.array(start.q)[list(model.closure.positions)], y)

    def at(h):
        """y moves with ydot + ydd h; its base is a free joint alone."""
        base = Free()
        step = (ydot * h + 0.5 * ydd * h * h).tolist()
        later = [*base.integrate(y[:7].tolist(), step[:6]), y[7] + step[6]]
        return closure_equations(model, later, (ydot + ydd * h).tolist(), time=TIME + h)

    ahead, behind = at(STEP), at(-STEP)
    q_rate = (np.array(ahead.q) - np.array(behind.q))[8:] / (2.0 * STEP)
    np.testing.assert_allclose(q_rate, start.v[7:], rtol=1e-7, atol=1e-8)
    a = (np.array(ahead.v) - np.array(behind.v)) / (2.0 * STEP)
    np.testing.assert_allclose(a, np.array(start.G) @ ydd + start.g, rtol=1e-6, atol=1e-6)
    # The implicit form has the same motions.
    for system in (model, aligned(model)):
        rows = constraint_equations(system, start.q, start.v, time=TIME)
        assert rows.names == ("loop closure",) * 2
        np.testing.assert_allclose(rows.position_error, 0.0, atol=1e-15)
        np.testing.assert_allclose(rows.velocity_error, 0.0, atol=1e-15)
        np.testing.assert_allclose(np.array(rows.K) @ np.array(start.G), 0.0, atol=1e-14)
        np.testing.assert_allclose(np.array(rows.K) @ a, rows.k, rtol=1e-6, atol=1e-6)


def test_time_must_be_given_where_functions_depend_on_it():
    for model in (constrained(), crank_model()):
        q, v = (x.tolist() for x in model.random_state(1))
        with pytest.raises(da.errors.ArgumentError, match="time="):
            constraint_equations(model, q, v)


def test_tree_algorithms_refuse_every_kind_of_constraint():
    closed = {
        "plain": constrained(),
        "loop closure": crank_model(),
    }
    for name, model in closed.items():
        with pytest.raises(da.errors.ModelError, match=name):
            require_open_tree(model, "test")
        require_open_tree(model.tree(), "test")


def test_rows_have_derivatives_of_their_own():
    """Dual numbers inside dual numbers: the rate of K and k along q alone, or along v alone."""
    model = constrained()
    q, v = (x.tolist() for x in model.random_state(7))
    rng = np.random.default_rng(2)
    along = rng.normal(size=model.nv).tolist()

    def numbers(q, v):
        found = constraint_equations(model, q, v, time=TIME)
        return [*(x for row in found.K for x in row), *found.k, *found.velocity_error]

    rate = configuration.position_rate(model, q, along)
    by_q = directional_derivative(lambda x: numbers(x, v), q, rate)[1]
    ahead, behind = (numbers(moved(model, q, along, h), v) for h in (STEP, -STEP))
    np.testing.assert_allclose(by_q, (np.array(ahead) - behind) / (2 * STEP), rtol=1e-5, atol=1e-5)
    by_v = directional_derivative(lambda x: numbers(q, x), v, along)[1]
    ahead, behind = (numbers(q, [x + h * y for x, y in zip(v, along)]) for h in (STEP, -STEP))
    np.testing.assert_allclose(by_v, (np.array(ahead) - behind) / (2 * STEP), rtol=1e-5, atol=1e-5)
