"""The example of gradients through rollouts on a GPU: tensors of the host stand for those there."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from tests.cuda.fake_libcuda import FakeCuda

torch = pytest.importorskip("torch")

PATH = Path(__file__).parents[2] / "examples" / "gpu" / "rollout_gradients.py"


@pytest.mark.parametrize(("way", "launches"), [("stepwise_cost", 120), ("traced_cost", 2)])
def test_gradients_of_rollouts_stay_on_the_gpu(torch_gpu: FakeCuda, way: str, launches: int) -> None:
    """One launch a call, and one for its derivative; finite differences agree."""
    example = runpy.run_path(str(PATH))
    q, v = example["starts"](6, "cpu", seed=2)
    K = torch.tensor([0.5, -16.0, 0.4, -3.0], dtype=torch.float64)
    slope = example["gradient"](example[way], K, q, v)
    assert len(torch_gpu.launches) == launches
    expected = example["differences"](example[way], K, q, v)
    torch.testing.assert_close(slope, expected, rtol=1e-7, atol=1e-10)
