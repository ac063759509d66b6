"""A GPU that is none, for tests of everything but the GPU itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cuda.fake_cupy import fake_cupy
from tests.cuda.fake_libcuda import FakeCuda

from dalembert.call.cuda import device
from dalembert.call.cuda import device as driver
from dalembert.call.cuda import device_arrays as arrays
from dalembert.compiler import gpu_calls


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeCuda]:
    """The fake driver in place of the real one, with a disk cache of its own."""
    fake = FakeCuda()
    monkeypatch.setenv("DALEMBERT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(driver, "load_library", lambda: fake)
    monkeypatch.setattr(gpu_calls, "ptx_of", fake.ptx)
    driver.driver.cache_clear()
    device.device.cache_clear()
    yield fake
    driver.driver.cache_clear()
    device.device.cache_clear()


@pytest.fixture
def torch_gpu(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    """Tensors with axes count as tensors on GPU 0; PyTorch works on stream 99."""
    torch = pytest.importorskip("torch")

    def empty(shape: tuple[int, ...], *, dtype: Any, device: str) -> Any:
        assert device == "cuda:0"
        return torch.empty(shape, dtype=dtype)

    stand_in = SimpleNamespace(
        **{
            name: getattr(torch, name)
            for name in (
                "float64",
                "float32",
                "int64",
                "as_tensor",
                "broadcast_to",
                "where",
                "is_grad_enabled",
            )
        },
        empty=empty,
    )
    kind = arrays.TorchTensors()
    monkeypatch.setattr(kind, "module", stand_in)
    monkeypatch.setattr(kind, "_raw_stream", lambda ordinal: 99)
    monkeypatch.setattr(arrays.TorchTensors, "ordinal", lambda self, array: 0)
    monkeypatch.setitem(arrays._KINDS, arrays.TorchTensors, kind)
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda tensor: tensor.dim() > 0), raising=False)
    return cuda


@pytest.fixture
def cupy_gpu(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCuda]:
    """Arrays of the host as CuPy's; CuPy works on stream 77."""
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    monkeypatch.delitem(arrays._KINDS, arrays.CupyArrays, raising=False)
    yield cuda
    arrays._KINDS.pop(arrays.CupyArrays, None)


@pytest.fixture
def jax_gpu(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCuda]:
    """XLA's CPU stands for its GPU: its arrays count as arrays there, and it calls our function with them."""
    jax = pytest.importorskip("jax")
    from dalembert.interop import jax as interop
    from dalembert.interop import xla_calls

    mlir, register = jax.interpreters.mlir, xla_calls.register
    monkeypatch.setattr(xla_calls, "register", lambda platform: register("cpu"))
    monkeypatch.setattr(xla_calls, "_numbers", {})
    for module in (interop, xla_calls):
        monkeypatch.setattr(module, "is_on_gpu", lambda array: isinstance(array, jax.Array))
    rules = mlir._platform_specific_lowerings["cpu"]
    for primitive, launched in (
        (interop.call_p, interop._launch_by_xla),
        (xla_calls.rollout_p, xla_calls._launch_by_xla),
    ):
        monkeypatch.setitem(rules, primitive, rules.get(primitive))
        mlir.register_lowering(primitive, mlir.lower_fun(launched, multiple_results=True), platform="cpu")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield cuda
    jax.config.update("jax_enable_x64", before)
    rules.pop(xla_calls.rollout_p)
    jax.clear_caches()
