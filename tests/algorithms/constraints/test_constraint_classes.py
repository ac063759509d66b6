"""Classes of constraints, each with a system that has it: Featherstone 2008 section 3.4."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dalembert as da
from dalembert.algorithms import body_velocities
from dalembert.scalar import sin, sqrt
from dalembert.spatial import Vec3

RADIUS, MASS = 0.2, 1.5
MOMENT = 0.4 * MASS * RADIUS**2


def height(model, q):
    """The ball stays on the floor."""
    return [q[2] - RADIUS]


def rolling(model, q, v):
    """The point of the ball that touches the floor is at rest."""
    body = model.bodies[0]
    pose = body.joint.transform(q)
    velocity = body_velocities(model, q, v)[0]
    down = pose.R.transposed_times(Vec3(0.0, 0.0, -RADIUS))
    contact = pose.R @ (velocity.linear + velocity.angular.cross(down))
    return [contact.x, contact.y]


def ball(*, rolls=True):
    builder = da.ModelBuilder()
    builder.add_body("ball", joint=da.Free(), inertia=da.RigidInertia(MASS, (0, 0, 0), (MOMENT,) * 3))
    builder.add_constraint(height)
    if rolls:
        builder.add_constraint(rolling, "velocity")
    return builder.build()


def on_the_floor(model):
    q = model.neutral()
    q[2] = RADIUS
    return q


def test_a_rolling_ball_has_three_velocity_and_five_position_freedoms():
    """RBDA-3.4-CLASSES: nonholonomic rolling takes freedoms of velocity, not of position; a = 5 F / (7 m)."""
    model = ball()
    q = on_the_floor(model)
    q, v = da.constraints.close_loops(model, q, np.random.default_rng(1).normal(size=6))
    assert da.analysis.mobility(model, q).mobility == 3
    assert da.analysis.mobility(ball(rolls=False), q).mobility == 5
    # A horizontal push at the centre, in any attitude.
    q[3:7] = [0.4, -0.2, 0.6, 0.3]
    q = da.dynamics.normalize(model, q)
    R = da.forward_kinematics(model, q).rotation[0]
    push = R.T @ [2.0, -1.0, 0.0]
    a = da.forward_dynamics(model, q, np.zeros(6), np.zeros(6), [[0.0, 0.0, 0.0, *push]])
    np.testing.assert_allclose(R @ a[3:], np.array([2.0, -1.0, 0.0]) * 5.0 / (7.0 * MASS), atol=1e-9)
    np.testing.assert_allclose(R @ a[:3], np.array([1.0, 2.0, 0.0]) * 5.0 / (7.0 * MASS * RADIUS), atol=1e-9)
    # Round a square the ball comes back to its place and not to its attitude: a fourth and fifth freedom.
    q, start = on_the_floor(model), on_the_floor(model)
    for x, y in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)):
        R = da.forward_kinematics(model, q).rotation[0]
        omega, speed = np.array([-y, x, 0.0]) / RADIUS, np.array([x, y, 0.0])
        v = np.concatenate([R.T @ omega, R.T @ speed])
        np.testing.assert_allclose(da.constraints.constraint_jacobian(model, q) @ v, 0.0, atol=1e-12)
        # The attitude turns about a fixed axis, the centre moves straight.
        turned = da.integrate(model, q, 0.3 * np.concatenate([v[:3], np.zeros(3)]))
        turned[:3] = q[:3] + 0.3 * speed
        q = turned
    np.testing.assert_allclose(q[:3], start[:3], atol=1e-12)
    assert abs(q[3]) < 0.8


def string(model, q):
    """l1 + l2 + l3 + 2 pi r = p: a closed string around three discs of one radius."""
    centres = [(q[body.q_slice.start], q[body.q_slice.start + 1]) for body in model.bodies]
    length = 2.0 * math.pi * RADIUS
    for (x0, y0), (x1, y1) in zip(centres, centres[1:] + centres[:1]):
        length = length + sqrt((x1 - x0) * (x1 - x0) + (y1 - y0) * (y1 - y0))
    return [length - 5.0]


def test_three_discs_in_a_string():
    """RBDA-3.4-CLASSES: one constraint over three bodies holds along their motion, and does no work."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    masses = (1.0, 2.0, 3.5)
    for i, mass in enumerate(masses):
        builder.add_body(
            f"disc{i}", joint=da.joints.Planar(), inertia=da.RigidInertia(mass, (0, 0, 0), (0.01, 0.01, 0.02))
        )
    builder.add_constraint(string)
    model = builder.build()
    assert (
        da.analysis.mobility(
            model, da.constraints.close_loops(model, [0, 0, 0, 1.2, 0, 0, 0.4, 1.1, 0.0])
        ).mobility
        == 8
    )
    q, v = da.constraints.close_loops(
        model, [0, 0, 0, 1.2, 0, 0, 0.4, 1.1, 0.0], np.random.default_rng(3).normal(size=9) * 0.7
    )

    def momentum(q, v):
        velocity = [
            da.forward_kinematics(model, q).rotation[i][:2, :2] @ v[3 * i + 1 : 3 * i + 3] for i in range(3)
        ]
        return sum(m * x for m, x in zip(masses, velocity))

    energy, carried = da.dynamics.kinetic_energy(model, q, v), momentum(q, v)
    without = da.integrate(model, q, 0.6 * v)
    for _ in range(300):
        q, v = da.step(model, q, v, np.zeros(9), 2e-3, integrator="rk4")
    assert abs(da.constraints.constraint_error(model, q)[0]) < 1e-8
    assert abs((da.constraints.constraint_jacobian(model, q) @ v)[0]) < 1e-8
    assert da.dynamics.kinetic_energy(model, q, v) == pytest.approx(energy, rel=1e-7)
    np.testing.assert_allclose(momentum(q, v), carried, rtol=1e-7, atol=1e-8)
    assert abs(da.constraints.constraint_error(model, without)[0]) > 1e-2


def test_a_prescribed_cylinder_joint_has_one_freedom():
    """RBDA-3.4-CLASSES: a rheonomic constraint on a cylindrical joint is the rheonomic joint itself."""
    solid = da.RigidInertia(1.3, (0.2, 0.1, 0.05), (0.02, 0.03, 0.04))

    def prescribed(model, q, time):
        return [q[1] - 0.3 * sin(2.0 * time)]

    builder = da.ModelBuilder(gravity=(0.0, -9.81, 0.0))
    builder.add_body("body", joint=da.joints.Cylindrical(), inertia=solid)
    assert da.analysis.mobility(builder.build()).mobility == 2
    builder.add_constraint(prescribed)
    implicit = builder.build()
    builder = da.ModelBuilder(gravity=(0.0, -9.81, 0.0))
    joint = da.joints.TimeDependent(
        da.Revolute(), driver=da.Prismatic(), motion=lambda t: [0.3 * sin(2.0 * t)]
    )
    builder.add_body("body", joint=joint, inertia=solid)
    explicit = builder.build()
    time, angle, speed = 0.4, 0.7, 1.3
    q, v = da.constraints.close_loops(implicit, [angle, 0.0], [speed, 0.0], time=time)
    assert q[1] == pytest.approx(0.3 * math.sin(2.0 * time))
    assert v[1] == pytest.approx(0.6 * math.cos(2.0 * time))
    assert da.analysis.mobility(implicit, q, time=time).mobility == explicit.nv == 1
    a = da.forward_dynamics(implicit, q, v, [0.2, 0.0], time=time)
    b = da.forward_dynamics(explicit, [angle], [v[0]], [0.2], time=time)
    assert a[0] == pytest.approx(b[0], rel=1e-9)
    assert a[1] == pytest.approx(-1.2 * math.sin(2.0 * time), rel=1e-9)
