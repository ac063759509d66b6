"""The example of gradients through rollouts, on tensors of the CPU."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import dalembert as da

torch = pytest.importorskip("torch")

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "gpu" / "rollout_gradients.py"))
WAYS = pytest.mark.parametrize("way", ["stepwise_cost", "traced_cost"])


@pytest.fixture
def start():
    """Gains that hold the poles but not the carts, and states of 24 of them."""
    q, v = EXAMPLE["starts"](24, "cpu", seed=3)
    return torch.tensor([0.5, -16.0, 0.4, -3.0], dtype=torch.float64), q, v


@WAYS
def test_the_gradient_is_that_of_finite_differences(start, way):
    slope = EXAMPLE["gradient"](EXAMPLE[way], *start)
    expected = EXAMPLE["differences"](EXAMPLE["stepwise_cost"], *start)
    torch.testing.assert_close(slope, expected, rtol=1e-7, atol=1e-10)


@WAYS
def test_the_cost_is_that_of_a_rollout_under_the_same_law(start, way):
    """A policy that is traced into the kernel of `da.rollout` gives the same motion."""
    K, q, v = start
    k = K.tolist()

    def law(model, t, q, v):
        return [-(k[0] * q[0] + k[1] * q[1] + k[2] * v[0] + k[3] * v[1]), 0.0]

    same = {"steps": EXAMPLE["STEPS"], "dt": EXAMPLE["DT"], "integrator": "semi_implicit"}
    motion = da.rollout(EXAMPLE["MODEL"], q.numpy(), v.numpy(), law, **same)
    x = np.concatenate([motion.q, motion.v], axis=-1)[:, 1:]
    J = (x**2 @ np.array(EXAMPLE["WEIGHTS"])).mean()
    assert abs(EXAMPLE[way](*start).item() - J) < 1e-12


def test_descent_lowers_the_cost(start):
    path = EXAMPLE["descend"](EXAMPLE["traced_cost"], *start, iterations=12)
    assert path.shape == (13, 5)
    assert path[-1, 0] < 0.6 * path[0, 0]
    torch.testing.assert_close(path[-1, 0], EXAMPLE["stepwise_cost"](path[-1, 1:], *start[1:]))
