"""Custom calls of XLA: JAX on the CPU calls our function with its buffers, the fake GPU computes there."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from tests.cuda.fake_libcuda import FakeCuda

import dalembert as da
from dalembert.api import declared
from dalembert.errors import ArgumentError

jax = pytest.importorskip("jax")
interop = pytest.importorskip("dalembert.interop.jax")
xla_calls = pytest.importorskip("dalembert.interop.xla_calls")


def arguments(rows: int) -> list[np.ndarray]:
    return list(np.random.default_rng(5).standard_normal((3, rows, 6)))


def launched(function: Any, check: str | None = None) -> Any:
    return jax.jit(lambda *arrays: interop._launch_by_xla(*arrays, function=function, check=check))


def test_a_call_inside_jit_launches_on_xlas_buffers(jax_gpu: FakeCuda) -> None:
    f = da.compile(da.forward_dynamics, da.models.arm6())
    q, v, tau = arguments(37)
    (found,) = launched(f)(q, v, tau)
    np.testing.assert_allclose(np.asarray(found), f(q, v, tau), rtol=1e-12)
    assert len(jax_gpu.launches) == 1


def test_rows_are_repeated_where_batches_are_broadcast(jax_gpu: FakeCuda) -> None:
    f = da.compile(da.forward_dynamics, da.models.arm6())
    q, v, tau = arguments(12)
    arrays = q.reshape(3, 4, 6), v[:4], tau[0]
    (found,) = launched(f)(*arrays)
    np.testing.assert_allclose(np.asarray(found), f(*arrays), rtol=1e-12)


def test_several_functions_have_numbers_of_their_own(jax_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = arguments(4)
    for name in ("forward_dynamics", "inverse_dynamics"):
        f = da.compile(getattr(declared, name), model)
        (found,) = launched(f)(q, v, tau)
        np.testing.assert_allclose(np.asarray(found), f(q, v, tau), rtol=1e-12)


def test_failures_become_errors_of_jax(jax_gpu: FakeCuda) -> None:
    f = da.compile(da.forward_dynamics, da.models.arm6())
    jax_gpu.failures["cuLaunchKernel"] = 700
    with pytest.raises(Exception, match="DeviceError: forward_dynamics: cuLaunchKernel failed"):
        jax.block_until_ready(launched(f)(*arguments(4)))


def test_checks_cannot_wait_inside_a_computation(jax_gpu: FakeCuda) -> None:
    f = da.compile(da.forward_dynamics, da.models.arm6())
    with pytest.raises(ArgumentError, match="would have to wait for the GPU"):
        launched(f, "raise")(*arguments(4))


def test_the_layout_of_call_frames_is_that_of_the_header() -> None:
    """Offsets of `XLA_FFI_CallFrame` and `XLA_FFI_Api` on 64-bit machines, counted by hand from c_api.h."""
    assert xla_calls._Frame.arguments.offset == 40
    assert xla_calls._Frame.results.offset == 80
    assert xla_calls._Frame.attributes.offset == 120
    assert xla_calls._Api.error_create.offset == 48
    assert xla_calls._Api.stream_get.offset == 80
    assert ctypes.sizeof(xla_calls._Buffer) == 48
