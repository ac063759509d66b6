"""The example of sampling-based control, on the CPU with few samples."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import dalembert as da

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "gpu" / "mppi.py"))

pytestmark = pytest.mark.filterwarnings("ignore:rollout. shapes")


def test_the_cart_pole_swings_up_and_stays_there():
    run = EXAMPLE["swing_up"]("cpu", 128, seconds=8.0, seed=1)
    angle = EXAMPLE["upright"](run)
    assert angle[0] > 3.1
    assert angle[-1] < 0.2
    assert (angle[run.time > 7.0] < 0.35).all()
    assert (np.abs(run.q[:, 0]) < 2.4).all(), "the cart left its track"


def test_the_force_on_the_cart_is_too_weak_to_lift_the_pole_at_once():
    """Whichever way it is pushed, with all that there is, the pole stays in the lower half for a second, the
    time in which the cart would leave its track."""
    task = EXAMPLE["cart_pole"]()
    force = np.array([[-6.0, 0.0], [6.0, 0.0]])
    motion = da.rollout(task.model, [0.0, np.pi], [0.0, 0.0], force[:, None], steps=100, dt=0.01)
    assert (np.abs(motion.q[:, -1, 0]) > 1.8).all()
    assert (np.cos(motion.q[..., 1]) < 0.0).all()


def test_the_trunk_of_a_quadruped_stays_up_under_pushes_that_fell_it_otherwise():
    run = EXAMPLE["stand"]("cpu", 64, seconds=2.0, seed=0)
    tilt = EXAMPLE["upright"](run)
    assert (tilt < 0.5).all()
    assert ((run.q[:, 2] > 0.25) & (run.q[:, 2] < 0.45)).all()
    assert (np.hypot(run.q[:, 0], run.q[:, 1]) < 0.7).all()
    still = EXAMPLE["stand"]("cpu", 64, seconds=2.0, planning=False)
    assert EXAMPLE["upright"](still).max() > 1.0
    assert still.q[:, 2].min() < 0.15


def test_weights_are_those_of_the_path_integral():
    """Costs from single steps, plan by plan; the mean of the plans, weighted by exp(-S / lambda)."""
    task = EXAMPLE["cart_pole"]()
    controller = EXAMPLE["Controller"](task, 50, EXAMPLE["numpy_arrays"](7))
    u = np.clip(4.0 * np.random.default_rng(7).standard_normal((50, task.horizon, 1)), -6.0, 6.0)
    q, v = np.array([0.1, 0.3]), np.array([-0.2, 0.4])
    costs = []
    for plan in u:  # one by one, step by step
        x, rate, S = q, v, 0.0
        for action in plan[:, 0]:
            for _ in range(task.steps):
                x, rate = da.step(task.model, x, rate, [action, 0.0], task.dt, integrator="midpoint")
            S += task.cost(np, x, rate) + task.effort * action**2
        costs.append(S)
    w = np.exp(-(np.array(costs) - min(costs)) / task.temperature)
    expected = np.tensordot(w / w.sum(), u, 1)
    np.testing.assert_allclose(controller.decide(q, v), expected[0], rtol=1e-9)
    np.testing.assert_allclose(controller.plan[:-1], expected[1:], rtol=1e-9)
    assert controller.plan[-1] == task.rest
