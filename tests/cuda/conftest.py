"""A GPU that is none, for tests of everything but the GPU itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cuda.fake_libcuda import FakeCuda

from dalembert.cuda import arrays, device, driver, modules


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeCuda]:
    """The fake driver in place of the real one, with a disk cache of its own."""
    fake = FakeCuda()
    monkeypatch.setenv("DALEMBERT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(driver, "load_library", lambda: fake)
    monkeypatch.setattr(modules, "ptx_of", fake.ptx)
    driver.driver.cache_clear()
    device.device.cache_clear()
    yield fake
    driver.driver.cache_clear()
    device.device.cache_clear()


@pytest.fixture
def torch_gpu(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    """Tensors with axes count as tensors on GPU 0; PyTorch works on stream 99."""
    torch = pytest.importorskip("torch")
    from dalembert.interop import torch as interop

    def empty(shape: tuple[int, ...], *, dtype: Any, device: str) -> Any:
        assert device == "cuda:0"
        return torch.empty(shape, dtype=dtype)

    stand_in = SimpleNamespace(
        **{
            name: getattr(torch, name)
            for name in ("float64", "float32", "int64", "as_tensor", "where", "is_grad_enabled")
        },
        empty=empty,
    )
    kind = arrays.TorchTensors()
    monkeypatch.setattr(kind, "_torch", stand_in)
    monkeypatch.setattr(kind, "_raw_stream", lambda ordinal: 99)
    monkeypatch.setattr(arrays.TorchTensors, "ordinal", lambda self, array: 0)
    monkeypatch.setitem(arrays._KINDS, arrays.TorchTensors, kind)
    monkeypatch.setattr(interop, "_on_gpu", lambda tensor: tensor.dim() > 0)
    monkeypatch.setattr(arrays, "_is_cuda", lambda tensor: tensor.dim() > 0)
    return cuda
