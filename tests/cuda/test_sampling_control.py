"""The example of sampling-based control on a GPU: tensors of the host stand for those there."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cuda.fake_libcuda import FakeCuda

torch = pytest.importorskip("torch")

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "gpu" / "mppi.py"))


def states(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A cart-pole in motion; a quadruped that lands askew."""
    if name == "cart_pole":
        return np.array([0.1, 2.5]), np.array([-0.2, 0.4])
    q = np.concatenate([[0.0, 0.0, 0.33, 1.0, 0.0, 0.0, 0.0], EXAMPLE["STANCE"]])
    v = np.zeros(18)
    v[:6] = [0.5, -0.3, 0.1, 0.2, 0.4, -0.3]
    return q, v


@pytest.mark.filterwarnings("ignore:rollout. shapes")
@pytest.mark.parametrize("name", ["cart_pole", "quadruped"])
def test_tensors_lead_to_the_plan_of_arrays_in_one_launch_a_decision(torch_gpu: FakeCuda, name: str) -> None:
    """From the same noise; tensors are float32 and arrays float64."""
    task = EXAMPLE[name]()
    q, v = states(name)
    here = EXAMPLE["Controller"](task, 20, EXAMPLE["numpy_arrays"](5))
    rng = np.random.default_rng(5)

    def normal(shape: tuple[int, ...]) -> Any:
        return torch.asarray(rng.standard_normal(shape), dtype=torch.float32)

    arrays = EXAMPLE["torch_arrays"]("cpu", 0)
    assert arrays.normal((3, 2)).dtype == torch.float32
    there = EXAMPLE["Controller"](task, 20, arrays._replace(normal=normal))
    for _ in range(2):
        launched = len(torch_gpu.launches)
        found = there.decide(q, v)
        assert len(torch_gpu.launches) == launched + 1
        np.testing.assert_allclose(found, here.decide(q, v), rtol=0.0, atol=2e-3)
    assert isinstance(there.plan, torch.Tensor)
    np.testing.assert_allclose(there.plan.numpy(), here.plan, rtol=0.0, atol=2e-3)
