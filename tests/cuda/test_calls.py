"""Arrays on a GPU in, arrays out: the rules of NumPy, on a driver that runs kernels as grids of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.cuda.fake_libcuda import FakeCuda, HostMemoryArray
from tests.cuda.moving_states import states
from tests.tracing.test_row_loops import N, springs

import dalembert as da
from dalembert.call.cuda.device import device
from dalembert.call.cuda.device_arrays import DeviceArray, View
from dalembert.errors import ArgumentError, DeviceError, DtypeError, ShapeError, StateError


def on_gpu(*arrays: np.ndarray) -> list[HostMemoryArray]:
    return [HostMemoryArray(array) for array in arrays]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["arm6", "quadruped"])
def test_results_are_those_of_the_cpu(cuda: FakeCuda, name: str, dtype: str) -> None:
    model = getattr(da.models, name)()
    q, v, x = states(model, 150, dtype)
    tolerance = 1e-12 if dtype == "float64" else 2e-4
    for function, arrays in (
        (da.forward_dynamics, (q, v, x)),
        (da.inverse_dynamics, (q, v, x)),
        (da.mass_matrix, (q,)),
        (da.gravity_forces, (q,)),
    ):
        found = function(model, *on_gpu(*arrays))
        assert isinstance(found, DeviceArray)
        wanted = function(model, *(array.astype(np.float64) for array in arrays))
        assert found.dtype == dtype
        assert found.shape == wanted.shape
        scale = np.abs(wanted).max(axis=tuple(range(1, wanted.ndim)), keepdims=True)
        assert np.max(np.abs(found.numpy() - wanted) / scale) < tolerance, function.__name__
    assert sum(launch["grid"] for launch in cuda.launches) >= 8


def test_several_results_come_as_a_tuple(cuda: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = states(model, 9)
    found = da.step(model, *on_gpu(q, v, tau), 0.01)
    for array, wanted in zip(found, da.step(model, q, v, tau, 0.01), strict=True):
        np.testing.assert_allclose(array.numpy(), wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("rows", [1, 127, 128, 129, 300])
def test_every_number_of_rows_is_computed_and_no_row_more(cuda: FakeCuda, rows: int) -> None:
    model = da.models.arm6()
    arrays = states(model, rows)
    guarded = np.full((rows + 2, 6), 7.0)
    da.forward_dynamics(model, *on_gpu(*arrays), out=HostMemoryArray(guarded[1:-1]))
    np.testing.assert_allclose(guarded[1:-1], da.forward_dynamics(model, *arrays), rtol=1e-12)
    np.testing.assert_array_equal(guarded[[0, -1]], 7.0)


def test_batch_axes_broadcasting_and_strides_follow_the_rules_of_numpy(cuda: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = states(model, 12)
    wide = np.zeros((12, 9))
    wide[:, :6] = q
    for arrays in (
        (q[0], v[0], tau[0]),
        (q, v[0], tau[:1]),
        (q.reshape(3, 4, 6), v.reshape(3, 4, 6), tau[0]),
        (wide[:, :6], v, tau),
        (q[::2], v[::2], tau[1::2]),
        (q[:0], v[:0], tau[:0]),
    ):
        found = da.forward_dynamics(model, *on_gpu(*arrays))
        wanted = da.forward_dynamics(model, *arrays)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)


def test_numbers_and_arrays_of_the_host_go_to_the_gpu_once(cuda: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = states(model, 6)
    wanted = da.step(model, q, v, tau[0], 0.01)
    for _ in range(3):
        cuda.calls.clear()
        found = da.step(model, *on_gpu(q, v), tau[0].tolist(), 0.01)
        np.testing.assert_allclose(found[1].numpy(), wanted[1], rtol=1e-12)
        cuda.calls.remove("cuMemcpyDtoHAsync_v2")
    assert "cuMemcpyHtoDAsync_v2" not in cuda.calls


def test_a_captured_graph_needs_no_allocation_copy_or_wait(cuda: FakeCuda) -> None:
    step = da.compile(da.step, da.models.arm6())
    out = on_gpu(np.empty((6, 6)), np.empty((6, 6)))
    arguments = on_gpu(*states(da.models.arm6(), 6))
    step(*arguments, 0.01, out=tuple(out))
    wanted = [array.array.copy() for array in out]
    for array in out:
        array.array[...] = 0.0
    cuda.capturing = True
    step(*arguments, 0.01, out=tuple(out))
    for array, expected in zip(out, wanted, strict=True):
        np.testing.assert_array_equal(array.array, expected)
    with pytest.raises(DeviceError, match="call the function once before"):
        step(*arguments, 0.02, out=tuple(out))


def test_what_a_graph_has_captured_is_never_given_back(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dalembert.call.cuda import device as module

    monkeypatch.setattr(module, "KEPT_CONSTANTS", 3)
    home = device(0)
    captured = home.constant(np.array([1.0]), 0)
    cuda.capturing = True
    assert home.constant(np.array([1.0]), 9) == captured
    cuda.capturing = False
    for number in range(2, 20):
        home.constant(np.array([float(number)]), 0)
    assert captured not in cuda.freed
    assert cuda.calls.count("cuMemFree_v2") == 16
    assert home.constant(np.array([1.0]), 0) == captured


def test_large_shared_memory_is_asked_for(cuda: FakeCuda) -> None:
    """The driver refuses launches with more than 48 kB that were not announced."""
    model = da.models.quadruped()
    da.forward_dynamics(model, *on_gpu(*states(model, 3)))
    assert cuda.launches[-1]["shared"] > 48 << 10
    assert "cuFuncSetAttribute" in cuda.calls


def test_scratch_memory_grows_with_the_rows_until_the_gpu_is_full(cuda: FakeCuda) -> None:
    """A stream keeps its own; what was too small is given back; a full GPU takes turns instead."""
    home = device(0)
    kernel = da.compile(da.forward_dynamics, da.models.gu(160))._kernels.on_gpu(home)
    each = kernel.info.block * kernel.info.scratch_bytes
    assert each

    def kept(stream: int, rows: int) -> int:
        with kernel.kept_scratch(stream, rows) as address:
            return address

    small = kept(0, 1)
    assert kept(0, kernel.info.block) == small
    assert kept(5, 1) != small
    large = kept(0, 3 * kernel.info.block)
    assert small in cuda.freed
    assert len(cuda.memory[large]) >= 3 * each
    assert kept(0, 1) == large
    assert kernel.scratch_bytes(10**9) == 4 * home.processors * each


def test_loops_over_rows_take_turns_in_the_memory_there_is(
    cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scratch memory grows with the rows that there may be; at most an eighth of the GPU's is taken."""
    home = device(0)
    model = da.models.pendulum()

    def forces(model: Any, x: Any) -> Any:
        return springs(x)

    f = da.compile(forces, model, inputs={"x": (N,)})
    x = np.random.default_rng(5).normal(size=(700, N))
    each = (kernel := f._kernels.on_gpu(home)).info.block * kernel.info.scratch_bytes
    assert kernel.scratch_bytes(10**9) == 4 * home.processors * each
    for memory, blocks in ((8 * (3 * each) + 7, 3), (5, 1)):
        monkeypatch.setattr(home, "memory", memory)
        assert kernel.scratch_bytes(10**9) == blocks * each
        found = da.compile(forces, model, inputs={"x": (N,)})(*on_gpu(x))
        assert cuda.launches[-1]["grid"] == blocks
        np.testing.assert_allclose(found.numpy(), f(x), rtol=1e-12, atol=1e-14)


def test_scratch_memory_stays_until_its_launch(cuda: FakeCuda) -> None:
    """A thread that needs more waits for one that has not launched yet."""
    kernel = da.compile(da.forward_dynamics, da.models.gu(160))._kernels.on_gpu(device(0))

    def kept_more() -> int:
        with device(0).current(), kernel.kept_scratch(0, 3 * kernel.info.block) as address:
            return address

    with ThreadPoolExecutor(1) as pool:
        with kernel.kept_scratch(0, 1) as small:
            other = pool.submit(kept_more)
            with pytest.raises(TimeoutError):
                other.result(timeout=0.1)
            assert small in cuda.memory
        assert other.result() != small


def test_the_stream_of_the_arrays_is_the_stream_of_the_launch(cuda: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = states(model, 3)
    found = da.forward_dynamics(model, HostMemoryArray(q, 4242), HostMemoryArray(v), HostMemoryArray(tau))
    assert cuda.launches[-1]["stream"] == 4242
    assert found.__cuda_array_interface__["stream"] == 4242


def test_out_may_be_an_argument(cuda: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = states(model, 200)
    wanted = da.forward_dynamics(model, q, v, tau)
    place = HostMemoryArray(tau.copy())
    assert da.forward_dynamics(model, *on_gpu(q, v), place, out=place) is place
    np.testing.assert_allclose(place.array, wanted, rtol=1e-12)


def test_wrong_arrays_are_refused_by_name(cuda: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = states(model, 4)
    cases: list[tuple[type[Exception], str, list[Any], Any]] = [
        (DtypeError, "mix float types", on_gpu(q.astype(np.float32), v, tau), None),
        (ShapeError, r"v: expected \(6,\), got \(4, 5\)", on_gpu(q, v[:, :5].copy(), tau), None),
        (ShapeError, "do not broadcast", on_gpu(q, v[:3], tau), None),
        (ArgumentError, "q: the numbers of a sample must be adjacent", on_gpu(q.T.copy().T, v, tau), None),
        (ArgumentError, "evenly spaced", on_gpu(q[::-1], v, tau), None),
        (ArgumentError, "evenly spaced", on_gpu(np.zeros((2, 5, 6))[:, :4], v, tau), None),
        (DtypeError, "float16", on_gpu(q.astype(np.float16), v, tau), None),
        (DeviceError, "must be an array on GPU 0", on_gpu(q, v, tau), np.empty((4, 6))),
        (ShapeError, "expected shape", on_gpu(q, v, tau), HostMemoryArray(np.empty((3, 6)))),
        (DtypeError, "expected float64", on_gpu(q, v, tau), HostMemoryArray(np.empty((4, 6), "f4"))),
        (ArgumentError, "adjacent", on_gpu(q, v, tau), HostMemoryArray(np.empty((6, 4)).T)),
        (
            ArgumentError,
            "evenly spaced",
            on_gpu(q, v, tau),
            HostMemoryArray(np.broadcast_to(np.empty(6), (4, 6))),
        ),
        (ArgumentError, "out holds 2 arrays", on_gpu(q, v, tau), tuple(on_gpu(q, v))),
    ]
    for kind, said, arrays, out in cases:
        with pytest.raises(kind, match=said):
            da.forward_dynamics(model, *arrays, out=out)
    with pytest.raises(ArgumentError, match="share memory"):
        da.compile(da.step, model)(*on_gpu(q, v, tau), 0.1, out=tuple(on_gpu(q, q)))


def test_checks_are_off_unless_asked_for(cuda: FakeCuda) -> None:
    model = da.models.quadruped()
    arrays = states(model, 20)
    arrays[0][5] *= 1.1
    arguments = on_gpu(*arrays)
    cuda.calls.clear()
    da.forward_dynamics(model, *arguments)
    after = cuda.calls[cuda.calls.index("cuLaunchKernel") :]
    assert "cuStreamSynchronize" not in after
    with pytest.raises(StateError, match=r"q\[3:7\], sample \(5,\): a quaternion must have unit norm"):
        da.forward_dynamics(model, *arguments, check="raise")
    flagged = da.forward_dynamics(model, *arguments, check="flag").numpy()
    assert np.isnan(flagged[5]).all()
    arrays[0][5] /= 1.1
    wanted = da.forward_dynamics(model, *arrays)
    np.testing.assert_allclose(np.delete(flagged, 5, 0), np.delete(wanted, 5, 0), rtol=1e-9)


def test_device_cuda_takes_numpy_arrays_there_and_back(cuda: FakeCuda) -> None:
    model = da.models.quadruped()
    arrays = states(model, 11)
    f = da.compile(da.forward_dynamics, model, device="cuda")
    assert f.device == "cuda"
    launched = len(cuda.launches)
    found = f(*arrays)
    assert isinstance(found, np.ndarray)
    assert len(cuda.launches) == launched + 1
    np.testing.assert_allclose(found, da.forward_dynamics(model, *arrays), rtol=1e-11)
    np.testing.assert_allclose(f(*(x[0] for x in arrays)), found[0], rtol=1e-12)
    q, v, tau = arrays
    mixed = f(q, v[0], tau[1:2])
    np.testing.assert_allclose(mixed, da.forward_dynamics(model, q, v[0], tau[1:2]), rtol=1e-11)
    arrays[0][5] *= 1.1
    with pytest.raises(StateError, match=r"sample \(5,\)"):
        f(*arrays)
    assert not cuda.memory or len(cuda.memory) < 8, "what was taken for the call is given back"


def test_parameters_and_users_functions_run_on_the_gpu(cuda: FakeCuda) -> None:
    model = da.models.pendulum(length=2.0)

    def power(model: Any, q: Any, v: Any, tau: Any) -> Any:
        return da.scalar.sin(q[0]) * v[0] * tau[0]

    f = da.compile(power, model)
    g = da.compile(da.gravity_forces, model, parameters=("bob.mass",))
    q, v, tau = states(model, 40)
    np.testing.assert_allclose(f(*on_gpu(q, v, tau)).numpy(), f(q, v, tau), rtol=1e-14)
    mass = np.linspace(1.0, 3.0, 40)
    found = g(HostMemoryArray(q), parameters={"bob.mass": HostMemoryArray(mass)})
    np.testing.assert_allclose(found.numpy(), g(q, parameters={"bob.mass": mass}), rtol=1e-14)
    np.testing.assert_allclose(g(HostMemoryArray(q)).numpy(), g(q), rtol=1e-14)


def test_derivatives_run_on_the_gpu(cuda: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = states(model, 30)
    f = da.compile(da.forward_dynamics, model)
    for derived, more in ((f.vjp("q", "v"), [tau]), (f.jvp("tau"), [v]), (f.jacobian("v"), [])):
        found, wanted = derived(*on_gpu(q, v, tau, *more)), derived(q, v, tau, *more)
        for a, b in zip(np.atleast_1d(found), wanted if isinstance(wanted, tuple) else [wanted], strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-9, atol=1e-9)


class _Exporter:
    """An array that speaks DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.streams = array, []
        self.dtype = array.dtype

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, *, stream: int) -> Any:
        self.streams.append(stream)
        return self.array.__dlpack__()


def test_arrays_come_by_dlpack_too(cuda: FakeCuda) -> None:
    model = da.models.arm6()
    arrays = states(model, 8)
    given = [_Exporter(arrays[0]), _Exporter(arrays[1][:, :]), _Exporter(arrays[2])]
    found = da.forward_dynamics(model, *given)
    np.testing.assert_allclose(found.numpy(), da.forward_dynamics(model, *arrays), rtol=1e-12)
    assert given[0].streams == [1], "the default stream, as DLPack names it"


def test_device_arrays_are_arguments_again(cuda: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = states(model, 8)
    first = da.forward_dynamics(model, *on_gpu(q, v, tau))
    second = da.inverse_dynamics(model, *on_gpu(q, v), first)
    np.testing.assert_allclose(second.numpy(), tau, rtol=1e-10, atol=1e-10)
    freed = cuda.calls.count("cuMemFree_v2")
    del first
    assert cuda.calls.count("cuMemFree_v2") == freed + 1


def test_rows_of_nothing_have_any_strides() -> None:
    """CuPy gives empty arrays strides of zero."""
    for shape, strides in (((0, 6), (0, 0)), ((3, 0, 4, 6), (0, 0, 0, 0)), ((0, 6), (48, 8))):
        assert View(64, shape, strides, "float64").rows(1) == (64, 48)
    assert View(64, (2, 6), (0, 0), "float64").rows(1) is None
