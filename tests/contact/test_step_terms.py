"""Joints that others follow, and constraints of velocity, in steps with contact."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.spatial import Mat3, Transform, Vec3

ROD = da.RigidInertia(1.0, (0.0, 0.0, -0.4), (0.1, 0.12, 0.05))
BELOW = Transform(Mat3.identity(), Vec3(0.0, 0.0, -0.8))
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


@pytest.mark.parametrize("contact", LAWS)
def test_limits_of_a_planar_joint_are_those_of_its_angle(contact):
    """Its velocities are along the body's axes, angle first; its positions are not, angle last."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    solid = da.RigidInertia(1.0, (0.1, 0.0, 0.0), (0.1, 0.12, 0.05))
    limits = ((-0.1, -0.2, -0.3), (0.1, 0.2, 0.3))
    builder.add_body("puck", "world", da.Planar(), inertia=solid, limits=limits)
    model = builder.build()
    found = da.rollout(model, [0.0, 0.0, 0.0], [2.0, 0.0, 0.0], steps=500, dt=0.002, contact=contact)
    assert not found.failed
    assert found.q[:, 2].max() == pytest.approx(0.3, abs=5e-3)
    spin = da.rollout(model, [0.0, 0.0, 0.0], [0.0, 1.0, 0.5], steps=500, dt=0.002, contact=contact)
    np.testing.assert_allclose(spin.q[-1, :2], [1.0, 0.5], atol=1e-6)  # nothing ends a slide
