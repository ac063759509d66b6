"""Policies are forces like any other: integrators of higher order keep their order with them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.scalar import sin

ORDERS = {"euler": 1, "semi_implicit": 1, "midpoint": 1, "implicit": 1, "heun": 2, "variational": 2, "rk4": 4}
START = np.array([0.5, -0.3]), np.array([1.0, 2.0])
SPAN = 0.6


def pull(model, t, q, v):
    """A spring, a damper and a force of time."""
    return [-8.0 * q[0] - 0.6 * v[0] + 3.0 * sin(7.0 * t), -5.0 * sin(q[1] - q[0]) - 0.4 * v[1]]


def pulled_end(model):
    """(q, v) after some time by SciPy."""

    def rate(t, x):
        q, v = x[:2], x[2:]
        return np.concatenate([v, da.forward_dynamics(model, q, v, np.array(pull(model, t, q, v)))])

    return solve_ivp(rate, (0.2, 0.2 + SPAN), np.concatenate(START), rtol=1e-11, atol=1e-12).y[:, -1]


@pytest.mark.parametrize("integrator", ORDERS)
def test_order_with_a_policy(integrator):
    """Held over a step, the policy would leave an error of first order."""
    model = da.models.double_pendulum()
    exact, errors = pulled_end(model), []
    for n in (48, 96, 192):
        run = da.rollout(model, *START, pull, steps=n, dt=SPAN / n, integrator=integrator, every=n, time=0.2)
        errors.append(np.linalg.norm(np.concatenate([run.q[-1], run.v[-1]]) - exact))
    order = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert order[-1] == pytest.approx(ORDERS[integrator], abs=0.25)


@pytest.mark.parametrize("integrator", ["heun", "rk4"])
def test_a_policy_acts_like_a_spring_of_the_joint(integrator):
    model = da.models.double_pendulum()
    joints = [body.joint_name for body in model.bodies]
    sprung = model.with_values(
        {f"{joints[0]}.stiffness": 9.0, f"{joints[1]}.stiffness": 4.0, f"{joints[1]}.damping": 0.3}
    )
    options = {"steps": 200, "dt": 0.01, "integrator": integrator}
    by_joint = da.rollout(sprung, *START, **options)
    by_policy = da.rollout(
        model, *START, lambda model, t, q, v: [-9.0 * q[0], -4.0 * q[1] - 0.3 * v[1]], **options
    )
    np.testing.assert_allclose(by_policy.q, by_joint.q, atol=1e-11)
    np.testing.assert_allclose(by_policy.tau[0], [-9.0 * START[0][0], -4.0 * START[0][1] - 0.6], rtol=1e-14)


def test_order_with_a_policy_beside_a_prescribed_joint():
    """The other joint follows the policy, whose force on the prescribed one is not read."""
    model = da.models.double_pendulum()
    upper, _ = (body.joint_name for body in model.bodies)
    given = {upper: lambda model, t: 0.3 * sin(4.0 * t)}
    ends = [
        da.rollout(model, *START, pull, steps=n, dt=SPAN / n, integrator="rk4", every=n, prescribed=given).q[
            -1, 1
        ]
        for n in (24, 48, 96)
    ]
    assert np.log2(abs((ends[0] - ends[1]) / (ends[1] - ends[2]))) == pytest.approx(4.0, abs=0.4)
