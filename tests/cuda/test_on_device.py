"""On a real GPU, where there is one: values, streams, graphs, gradients, rollouts. Run: `pytest -m gpu`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.cuda.moving_states import states

import dalembert as da
from dalembert.call.cuda.device import device
from dalembert.errors import DalembertError, StateError


def _no_gpu() -> str:
    try:
        device(0)
    except DalembertError as error:
        return str(error)
    return ""


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(_no_gpu()), reason="no GPU here")]

MODELS = ("pendulum", "cart_pole", "arm6", "quadruped", "humanoid")


def errors(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """max|difference| / max|value|, by sample."""
    found, wanted = found.reshape(len(found), -1), wanted.reshape(len(wanted), -1)
    return np.abs(found - wanted).max(axis=1) / np.abs(wanted).max(axis=1)


def to_torch(array: np.ndarray) -> Any:
    return pytest.importorskip("torch").as_tensor(array, device="cuda")


def to_cupy(array: np.ndarray) -> Any:
    return pytest.importorskip("cupy").asarray(array)


def to_jax(array: np.ndarray) -> Any:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax.device_put(array, jax.devices("gpu")[0])


def to_host(array: Any) -> np.ndarray:
    return np.asarray(
        array.get() if hasattr(array, "get") else array.cpu() if hasattr(array, "cpu") else array
    )


@pytest.mark.parametrize("put", [to_torch, to_cupy, to_jax])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
def test_dynamics_are_those_of_the_cpu(name: str, dtype: str, put: Callable[[np.ndarray], Any]) -> None:
    model = getattr(da.models, name)()
    q, v, x = states(model, 1000, dtype)
    bound = 1e-12 if dtype == "float64" else 1e-3
    for function, given in (
        (da.forward_dynamics, (q, v, x)),
        (da.inverse_dynamics, (q, v, x)),
        (da.mass_matrix, (q,)),
    ):
        found = to_host(function(model, *map(put, given)))
        wanted = function(model, *(array.astype(np.float64) for array in given))
        assert found.dtype == dtype
        assert errors(found, wanted).max() < bound, function.__name__


def test_a_side_stream_is_followed() -> None:
    torch = pytest.importorskip("torch")
    model = da.models.arm6()
    arrays = states(model, 500)
    given = [to_torch(x) for x in arrays]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        late = given[0] * 1.0
        found = da.forward_dynamics(model, late, *given[1:])
    stream.synchronize()
    assert errors(found.cpu().numpy(), da.forward_dynamics(model, *arrays)).max() < 1e-12


def test_calls_are_captured_in_a_graph() -> None:
    torch = pytest.importorskip("torch")
    model = da.models.arm6()
    arrays = states(model, 500)
    q, v, tau = (to_torch(0.1 * x) for x in arrays)
    da.step(model, q, v, tau, 1e-4)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = q, v
        for _ in range(5):
            found = da.step(model, *found, tau, 1e-4)
    graph.replay()
    torch.cuda.synchronize()
    wanted = tuple(0.1 * x for x in arrays[:2])
    for _ in range(5):
        wanted = da.step(model, *wanted, 0.1 * arrays[2], 1e-4)
    np.testing.assert_allclose(found[0].cpu().numpy(), wanted[0], rtol=1e-12, atol=1e-14)


def test_gradients_are_those_of_the_cpu() -> None:
    torch = pytest.importorskip("torch")
    model = da.models.quadruped()
    gradients = []
    for place in ("cpu", "cuda"):
        given = [torch.tensor(x, device=place, requires_grad=True) for x in states(model, 20)]
        da.forward_dynamics(model, *given).pow(2).sum().backward()
        gradients.append([x.grad.cpu().numpy() for x in given])
    for wanted, found in zip(*gradients, strict=True):
        assert errors(found, wanted).max() < 1e-9


def test_jax_computes_inside_jit() -> None:
    jax = pytest.importorskip("jax")
    model = da.models.arm6()
    q = to_jax(states(model, 30)[0])
    slope = jax.jit(jax.grad(lambda q: (da.gravity_forces(model, q) ** 2).sum()))(q)
    J = da.compile(da.gravity_forces, model).jacobian("q")(np.asarray(q))
    wanted = 2 * np.einsum("bij,bi->bj", J, da.gravity_forces(model, np.asarray(q)))
    np.testing.assert_allclose(np.asarray(slope), wanted, rtol=1e-9, atol=1e-9)


def test_rollouts_of_jax_inside_jit_and_vmap() -> None:
    jax = pytest.importorskip("jax")
    model = da.models.quadruped()
    q, v, tau = states(model, 24)
    v *= 0.1

    def final(q: Any, v: Any, tau: Any) -> Any:
        return da.rollout(model, q, v, tau, steps=30, dt=1e-3).q[..., -1, :]

    wanted = da.rollout(model, q, v, tau[:, None], steps=30, dt=1e-3).q[:, -1]
    given = [to_jax(x) for x in (q, v, tau)]
    found = jax.jit(lambda q, v, tau: 2.0 * final(q, v, tau[:, None]))(*given)
    np.testing.assert_allclose(np.asarray(found), 2.0 * wanted, rtol=1e-9, atol=1e-11)
    found = jax.jit(jax.vmap(final))(*given)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-9, atol=1e-11)


def test_rows_are_refused_when_asked_for() -> None:
    model = da.models.humanoid()
    arrays = states(model, 40)
    arrays[0][7] *= 1.01
    given = [to_torch(x) for x in arrays]
    with pytest.raises(StateError, match=r"sample \(7,\)"):
        da.forward_dynamics(model, *given, check="raise")
    flagged = da.forward_dynamics(model, *given, check="flag").cpu().numpy()
    assert np.flatnonzero(np.isnan(flagged).any(axis=1)).tolist() == [7]


@pytest.mark.parametrize("put", [to_torch, to_cupy, to_jax])
def test_rollouts_are_those_of_the_cpu(put: Callable[[np.ndarray], Any]) -> None:
    model = da.models.cart_pole()
    name = f"{model.bodies[1].name}.mass"
    q, v, _ = states(model, 100)
    mass, mask = np.linspace(0.5, 2.0, 100), np.zeros((100, 40))
    mask[::3, 10] = 1.0
    found = da.rollout(
        model, put(q), put(v), steps=40, dt=1e-3, parameters={name: put(mass)}, reset=put(mask)
    )
    wanted = da.rollout(model, q, v, steps=40, dt=1e-3, parameters={name: mass}, reset=mask)
    np.testing.assert_allclose(found.numpy().q, wanted.q, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("put", [to_torch, to_cupy, to_jax])
def test_servos_without_a_reference_hold_the_initial_poses(put: Callable[[np.ndarray], Any]) -> None:
    """Of every sample its own, where the number of samples is that of the steps too."""
    model = da.models.arm6()
    for steps in (30, 20):
        q, v, _ = states(model, 20)
        servo = da.control.Servo(kp=50.0, kd=5.0)
        found = da.rollout(model, put(q), put(0.1 * v), servo, steps=steps, dt=1e-3)
        wanted = da.rollout(model, q, 0.1 * v, servo, steps=steps, dt=1e-3)
        np.testing.assert_allclose(found.numpy().q, wanted.q, rtol=1e-9, atol=1e-10)


def test_numpy_arrays_go_there_and_back() -> None:
    model = da.models.arm6()
    arrays = states(model, 33)
    f = da.compile(da.inverse_dynamics, model, device="cuda")
    np.testing.assert_allclose(f(*arrays), da.inverse_dynamics(model, *arrays), rtol=1e-12)
