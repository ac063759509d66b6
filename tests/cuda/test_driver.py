"""What is said where there is no GPU, where it is too old, or where it fails; the order of calls."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cuda.fake_libcuda import FakeCuda, HostMemoryArray

import dalembert as da
from dalembert.call.cuda import device
from dalembert.call.cuda import device as driver
from dalembert.errors import CompileError, DeviceError


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LIBRARY", "libcuda-that-is-not-there.so.1")
    driver.driver.cache_clear()
    device.device.cache_clear()


def arm_arguments(rows: int = 5, dtype: str = "float64") -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.standard_normal((rows, 6)).astype(dtype) for _ in range(3)]


def test_without_a_driver_the_error_says_what_is_missing_and_what_to_do(no_driver: None) -> None:
    model = da.models.arm6()
    with pytest.raises(DeviceError, match="libcuda-that-is-not-there") as caught:
        da.compile(da.forward_dynamics, model, device="cuda")
    assert "nvidia-smi" in str(caught.value)
    assert 'device="cpu"' in str(caught.value)
    with pytest.raises(DeviceError, match="libcuda-that-is-not-there"):
        da.forward_dynamics(model, *map(HostMemoryArray, arm_arguments()))


def test_a_missing_driver_stops_nothing_else(no_driver: None) -> None:
    model = da.models.arm6()
    assert np.isfinite(da.forward_dynamics(model, *arm_arguments())).all()


def test_an_unknown_device_is_named() -> None:
    with pytest.raises(da.errors.UnknownNameError, match='unknown device "tpu"; valid: "cpu", "cuda"'):
        da.compile(da.forward_dynamics, da.models.arm6(), device="tpu")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fake", "said"),
    [
        (FakeCuda(devices=0), "the NVIDIA driver finds no GPU"),
        (FakeCuda(version=11080), r"knows CUDA 11\.8, but kernels need 12\.0"),
    ],
)
def test_a_driver_that_will_not_do_is_refused(
    fake: FakeCuda, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "load_library", lambda: fake)
    driver.driver.cache_clear()
    device.device.cache_clear()
    with pytest.raises(DeviceError, match=said):
        device.device(0)
    driver.driver.cache_clear()


def test_hidden_gpus_are_pointed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(DeviceError, match="CUDA_VISIBLE_DEVICES is ''"):
        driver.Driver(FakeCuda(devices=0))


def test_a_driver_that_does_not_start_says_why() -> None:
    fake = FakeCuda()
    fake.failures["cuInit"] = 803
    with pytest.raises(DeviceError, match=r"does not start \(CUDA_ERROR_FAKE, 803: as the test wants it\)"):
        driver.Driver(fake)


def test_a_gpu_that_is_not_there_is_refused(cuda: FakeCuda) -> None:
    with pytest.raises(DeviceError, match="there is no GPU 1; the driver shows 1, from 0 on"):
        device.device(1)


@pytest.mark.parametrize(
    ("function", "status", "kind", "said"),
    [
        ("cuLaunchKernel", 700, DeviceError, "forward_dynamics: cuLaunchKernel failed"),
        ("cuMemAlloc_v2", 2, DeviceError, "memory is full: take smaller batches"),
        ("cuLinkComplete", 218, CompileError, "forward_dynamics: Fake GPU refused the kernel"),
        ("cuModuleLoadData", 209, DeviceError, "forward_dynamics: loading"),
        ("cuLaunchKernel", 900, DeviceError, "a CUDA graph is being captured"),
    ],
)
def test_failures_of_the_driver_name_the_kernel_and_the_reason(
    cuda: FakeCuda, function: str, status: int, kind: type[Exception], said: str
) -> None:
    cuda.failures[function] = status
    with pytest.raises(kind, match=said):
        da.forward_dynamics(da.models.arm6(), *map(HostMemoryArray, arm_arguments()))
    assert cuda.contexts == [], "the context of the caller is current again"


def test_a_forked_process_is_told_so(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    device.device(0)
    monkeypatch.setattr(driver.os, "getpid", lambda: -1)
    cuda.failures["cuMemAlloc_v2"] = 3
    with pytest.raises(DeviceError, match="forked from one that already used the GPU"):
        device.device(0).allocate(8)


def test_a_call_is_one_launch_and_nothing_else(cuda: FakeCuda) -> None:
    model = da.models.arm6()
    arrays = [HostMemoryArray(x) for x in arm_arguments()]
    out = HostMemoryArray(np.empty((5, 6)))
    da.forward_dynamics(model, *arrays, out=out)
    cuda.calls.clear()
    da.forward_dynamics(model, *arrays, out=out)
    asked = [name for name in cuda.calls if name not in ("cuPointerGetAttribute", "cuCtxGetCurrent")]
    assert asked == ["cuCtxPushCurrent_v2", "cuLaunchKernel", "cuCtxPopCurrent_v2"]


def test_the_primary_context_of_others_is_used_and_left_as_it_was(cuda: FakeCuda) -> None:
    cuda.contexts = [1000]
    da.forward_dynamics(da.models.arm6(), *map(HostMemoryArray, arm_arguments()))
    assert "cuCtxPushCurrent_v2" not in cuda.calls
    assert cuda.contexts == [1000]
    cuda.contexts = [4711]
    da.forward_dynamics(da.models.arm6(), *map(HostMemoryArray, arm_arguments()))
    assert cuda.contexts == [4711]


def test_machine_code_is_linked_once_and_then_read_from_disk(cuda: FakeCuda) -> None:
    arrays = [HostMemoryArray(x) for x in arm_arguments()]
    first = da.forward_dynamics(da.models.arm6(), *arrays).numpy()
    assert cuda.calls.count("cuLinkComplete") == 1
    device.device.cache_clear()
    driver.driver.cache_clear()
    cuda.calls.clear()
    second = da.forward_dynamics(da.models.arm6(), *arrays).numpy()
    assert "cuLinkCreate_v2" not in cuda.calls
    assert "cuModuleLoadData" in cuda.calls
    np.testing.assert_array_equal(first, second)


def test_another_driver_links_anew(cuda: FakeCuda) -> None:
    arrays = [HostMemoryArray(x) for x in arm_arguments()]
    da.forward_dynamics(da.models.arm6(), *arrays)
    device.device.cache_clear()
    driver.driver.cache_clear()
    cuda.version = 13010
    cuda.calls.clear()
    da.forward_dynamics(da.models.arm6(), *arrays)
    assert "cuLinkCreate_v2" in cuda.calls
