"""Modules of kernels that nobody has any more are unloaded: by the next load, never behind one's back."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from tests.cuda.fake_libcuda import FakeCuda, HostMemoryArray

import dalembert as da
from dalembert.call.cuda import kernel as kernels
from dalembert.call.cuda.device import device

CAPTURING = 9
"""A stream on which a graph may be captured."""


def use(length: float, *, stream: int | None = None, model: Any = None) -> Any:
    """The model of a pendulum that was computed with; its kernels live as long."""
    found = model or da.models.pendulum(length=length)
    x = np.full((3, 1), 0.3)
    out = HostMemoryArray(np.empty((3, 1)))  # a capture allocates nothing
    da.forward_dynamics(found, *(HostMemoryArray(x, stream) for _ in range(3)), out=out)
    np.testing.assert_allclose(out.array, da.forward_dynamics(found, x, x, x), rtol=1e-12)
    return found


def test_the_next_load_unloads_what_was_dropped(cuda: FakeCuda) -> None:
    kept, dropped = use(1.0), use(1.5)
    assert len(cuda.modules) == 2
    del dropped
    gc.collect()
    assert len(cuda.modules) == 2, "garbage is collected anywhere: nothing is called then"
    cuda.calls.clear()
    use(1.0, model=kept)
    assert "cuModuleUnload" not in cuda.calls, "a call that loads nothing waits for nothing"
    later = use(2.0)
    assert cuda.calls.count("cuModuleUnload") == 1
    assert cuda.calls.index("cuCtxSynchronize") < cuda.calls.index("cuModuleUnload")
    assert len(cuda.modules) == 2
    use(1.0, model=kept)
    use(2.0, model=later)


def test_many_models_one_after_the_other_leave_two_modules(cuda: FakeCuda) -> None:
    for number in range(12):
        use(1.0 + number)
        gc.collect()
    assert len(cuda.modules) <= 2


def test_what_a_graph_may_launch_again_stays(cuda: FakeCuda) -> None:
    captured = use(1.0, stream=CAPTURING)
    cuda.capturing = True
    use(1.0, stream=CAPTURING, model=captured)
    cuda.capturing = False
    (module,) = cuda.modules
    del captured
    gc.collect()
    use(2.0)
    use(3.0)
    assert module in cuda.modules


def test_nothing_is_unloaded_while_a_graph_is_captured(cuda: FakeCuda) -> None:
    """Waiting would end the capture; what waits is unloaded after it."""
    dropped = use(1.0)
    del dropped
    gc.collect()
    cuda.capturing = True
    cuda.calls.clear()
    other = use(2.0, stream=CAPTURING)
    assert "cuCtxSynchronize" not in cuda.calls
    assert len(cuda.modules) == 2
    cuda.capturing = False
    again = use(3.0, stream=CAPTURING)
    assert len(cuda.modules) == 2
    del other, again


def test_a_gpu_that_has_failed_unloads_nothing_and_hides_nothing(cuda: FakeCuda) -> None:
    dropped = use(1.0)
    del dropped
    gc.collect()
    cuda.failures["cuCtxSynchronize"] = 700
    kept = [use(2.0)]
    assert len(cuda.modules) == 2
    del cuda.failures["cuCtxSynchronize"]
    kept.append(use(3.0))
    assert len(cuda.modules) == 2


def test_tables_and_scratch_memory_go_with_the_module(cuda: FakeCuda) -> None:
    model = da.models.gu(160)
    kernel = da.compile(da.forward_dynamics, model)._kernels.on_gpu(device(0))
    with kernel.kept_scratch(0, 3) as first:
        pass
    with kernel.kept_scratch(0, 10 * kernel.info.block) as second:
        pass
    assert first in cuda.freed
    tables = kernel._tables
    assert tables
    assert second
    del kernel, model
    gc.collect()
    assert not {tables, second} & cuda.freed
    kept = use(1.0)
    assert {tables, second} <= cuda.freed
    assert list(cuda.modules.values()) == [len(cuda.sources) - 1]
    del kept


def test_the_end_of_the_process_calls_no_driver(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finalizers do not run then; CUDA may be gone before Python's objects are."""
    made = []
    finalize = kernels.weakref.finalize

    def noted(*given: Any) -> Any:
        one = finalize(*given)
        made.extend([one] * (given[1] == device(0).drop))
        return one

    monkeypatch.setattr(kernels.weakref, "finalize", noted)
    kept = use(1.0)
    assert [one.atexit for one in made] == [False]
    cuda.calls.clear()
    made[0]()
    assert not cuda.calls
    del kept


def test_calls_like_one_before_note_captures_too(torch_gpu: FakeCuda) -> None:
    torch = pytest.importorskip("torch")
    model = da.models.pendulum(length=1.0)
    x = torch.full((3, 1), 0.3, dtype=torch.float64)
    da.forward_dynamics(model, x, x, x)
    torch_gpu.capturing = True
    da.forward_dynamics(model, x, x, x)
    torch_gpu.capturing = False
    (module,) = torch_gpu.modules
    del model
    gc.collect()
    other = use(2.0)
    assert module in torch_gpu.modules
    del other
