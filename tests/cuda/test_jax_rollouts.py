"""Rollouts of JAX arrays inside `jit` and `vmap`; arrays of two libraries. The rest is in `test_rollouts`."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from tests.cuda.fake_libcuda import FakeCuda, HostMemoryArray

import dalembert as da
from dalembert.errors import ArgumentError, CompileError, DeviceError, DtypeError, ShapeError

jax = pytest.importorskip("jax")
jnp = jax.numpy
xla_calls = pytest.importorskip("dalembert.interop.xla_calls")


@pytest.fixture
def x64() -> Any:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def start(samples: int) -> list[np.ndarray]:
    """q, v and forces of an arm."""
    rng = np.random.default_rng(3)
    return [0.3 * x for x in rng.standard_normal((3, samples, 6))]


def test_inside_jit_a_rollout_is_part_of_the_computation(jax_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = start(5)

    @jax.jit
    def cost(q: Any, v: Any, tau: Any) -> Any:
        motion = da.rollout(model, 2.0 * q, v, tau[:, None], steps=7, dt=0.001)
        return (motion.q[:, -1] ** 2).sum(), motion.failed_at

    for _ in range(2):
        found, failed = cost(*map(jnp.asarray, (q, v, tau)))
        wanted = da.rollout(model, 2.0 * q, v, tau[:, None], steps=7, dt=0.001)
        np.testing.assert_allclose(found, (wanted.q[:, -1] ** 2).sum(), rtol=1e-12)
        assert failed.tolist() == [-1] * 5
    assert len(jax_gpu.launches) == 2


def test_vmap_adds_an_axis_of_samples(jax_gpu: FakeCuda) -> None:
    """Over any axis; streams have one of steps after it."""
    model = da.models.arm6()
    q, v, _ = start(12)
    series = np.random.default_rng(6).standard_normal((8, 3, 6))

    def final(q: Any, v: Any, tau: Any) -> Any:
        return da.rollout(model, q, v, tau, dt=0.001).q

    found = jax.vmap(final, in_axes=(0, None, 1))(q[:3], v[0], jnp.asarray(series))
    wanted = da.rollout(model, q[:3], v[0], series.transpose(1, 0, 2), dt=0.001).q
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    grid = q.reshape(3, 4, 6)
    found = jax.vmap(jax.vmap(lambda q: final(q, v[0], series[:, 0])))(jnp.asarray(grid))
    wanted = da.rollout(model, grid, v[0], series[:, 0], dt=0.001).q
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    found = jax.vmap(final, in_axes=(1, None, None))(jnp.asarray(grid), v[:3], jnp.asarray(series[:, 0]))
    assert found.shape == (4, 3, 9, 6)
    wanted = da.rollout(model, grid.transpose(1, 0, 2), v[:3], series[:, 0], dt=0.001).q
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def test_some_batch_axes_are_repeated_and_no_sample_is_no_launch(jax_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = start(12)
    arrays = q.reshape(3, 4, 6), v[:4], tau[:3, None, None]
    found = da.rollout(model, *map(jnp.asarray, arrays), steps=3, dt=0.001)
    wanted = da.rollout(model, *arrays, steps=3, dt=0.001)
    np.testing.assert_allclose(found.q, wanted.q, rtol=1e-10, atol=1e-12)
    jax_gpu.calls.clear()
    assert da.rollout(model, jnp.zeros((0, 6)), jnp.zeros((0, 6)), steps=3).q.shape == (0, 4, 6)
    xla_calls._tasks[-1](0, [], [xla_calls.Buffer(0, (0, 2))])
    assert not jax_gpu.calls, "memory of no bytes is nowhere"


def test_gradients_are_pointed_to_steps_in_a_scan(jax_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, _ = map(jnp.asarray, start(3))

    def cost(q: Any) -> Any:
        return da.rollout(model, q, v, steps=3).q.sum()

    for differentiate in (jax.grad, jax.jacfwd):
        with pytest.raises(ArgumentError, match=r"gradients do not pass .* da\.step in jax\.lax\.scan"):
            differentiate(cost)(q)
    assert not jax.grad(lambda q: cost(jax.lax.stop_gradient(q)))(q).any()


def test_shapes_that_do_not_fit_are_refused(jax_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = map(jnp.asarray, start(4))
    with pytest.raises(ShapeError, match="tau has the shape"):
        da.rollout(model, q, v, jnp.zeros((4, 5, 6)), steps=3)
    with pytest.raises(ShapeError, match="the batch shapes do not broadcast"):
        da.rollout(model, q, v[:3], tau[:, None], steps=3)
    with pytest.raises(ShapeError, match="q: expected"):
        da.rollout(model, q[:, :5], v, steps=3)


def test_single_precision_without_double_precision_in_jax(jax_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    jax.config.update("jax_enable_x64", False)
    q, v, _ = start(3)
    found = da.rollout(model, jnp.asarray(q), jnp.asarray(v), steps=5, dt=0.001)
    assert found.q.dtype == jnp.float32
    np.testing.assert_allclose(found.q, da.rollout(model, q, v, steps=5, dt=0.001).q, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("x64")
def test_where_there_is_no_gpu_the_error_says_what_to_do() -> None:
    model = da.models.arm6()
    q, v, _ = map(jnp.asarray, start(3))
    with pytest.raises(DtypeError, match="q0 is a JAX array, but this function computes in NumPy"):
        da.rollout(model, q, v, steps=3)
    with pytest.raises(
        CompileError, match=r"compiled for CUDA; elsewhere pass NumPy arrays, or call da\.step"
    ):
        jax.jit(lambda q, v: da.rollout(model, q, v, steps=3).q)(q, v)
    with pytest.raises(DeviceError, match="compiled for CUDA; elsewhere pass NumPy arrays"):
        jax.vmap(lambda q, v: da.rollout(model, q, v, steps=3).q)(q, v)


@pytest.mark.usefixtures("x64")
def test_arrays_of_two_libraries_in_one_call_are_refused(torch_gpu: FakeCuda) -> None:
    """Whichever comes first, in calls and in rollouts."""
    torch = pytest.importorskip("torch")
    model = da.models.arm6()
    q, v, tau = start(3)
    cases = (
        (
            torch.tensor,
            jnp.asarray,
            r"v is a JAX array beside PyTorch tensors; .* pass torch\.from_dlpack\(v\)",
        ),
        (jnp.asarray, torch.tensor, r"v is a PyTorch tensor beside JAX arrays; .* jax\.numpy\.asarray\(v\)"),
        (HostMemoryArray, jnp.asarray, "v is a JAX array beside GPU arrays; .* all as arrays of one"),
        (
            jnp.asarray,
            HostMemoryArray,
            r"v is an array of tests beside JAX arrays; .* jax\.numpy\.asarray\(v\)",
        ),
    )
    for first, second, words in cases:
        with pytest.raises(DtypeError, match=words):
            da.forward_dynamics(model, first(q), second(v), first(tau))
    for first, second, words in cases[:2]:
        with pytest.raises(DtypeError, match=words):
            da.rollout(model, first(q), second(v), steps=2)
    assert not torch_gpu.launches


TWO_DEVICES = """
import jax, numpy as np, dalembert as da
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_enable_x64", True)
first, second = jax.devices()
q, v = (jax.device_put(np.zeros((3, 6)), place) for place in (first, second))
da.interop.jax.is_on_gpu = lambda array: True
for call, more in ((da.forward_dynamics, ()), (da.rollout, (5,))):
    try:
        call(da.models.arm6(), q, v, np.zeros(6), *more)
    except da.errors.DeviceError as error:
        print(error)
"""


def test_arrays_on_two_devices_are_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES], capture_output=True, text=True, check=True, timeout=120
    )
    words = "v is on cpu:1 and q is on cpu:0; bring them together: jax.device_put(v, q.sharding)"
    assert done.stdout.splitlines() == [words, words]
