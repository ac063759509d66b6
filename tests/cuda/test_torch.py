"""Tensors on a GPU: results, gradients, streams. Tensors of the host stand for them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.cuda.fake_libcuda import FakeCuda, HostMemoryArray
from tests.cuda.moving_states import states

import dalembert as da
from dalembert.compiler import gpu_calls as prepared
from dalembert.errors import ArgumentError, DtypeError

torch = pytest.importorskip("torch")


def tensors(model: Any, rows: int, *, grad: bool = False) -> list[Any]:
    return [torch.tensor(x, requires_grad=grad) for x in states(model, rows)]


def numpy_of(given: list[Any]) -> list[np.ndarray]:
    return [x.detach().numpy() for x in given]


def test_tensors_come_back_computed_on_the_current_stream(torch_gpu: FakeCuda) -> None:
    model = da.models.quadruped()
    given = tensors(model, 140)
    found = da.forward_dynamics(model, *given)
    assert isinstance(found, torch.Tensor)
    assert [launch["stream"] for launch in torch_gpu.launches] == [99]
    np.testing.assert_allclose(found.numpy(), da.forward_dynamics(model, *numpy_of(given)), rtol=1e-10)


def test_gradients_are_computed_on_the_gpu(torch_gpu: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """One launch forward; backward the vjp kernel and, for q of a free body, its coordinates."""
    model = da.models.quadruped()
    given = tensors(model, 5, grad=True)
    da.forward_dynamics(model, *given).pow(2).sum().backward()
    assert len(torch_gpu.launches) == 3
    monkeypatch.undo()
    again = [x.detach().clone().requires_grad_() for x in given]
    da.forward_dynamics(model, *again).pow(2).sum().backward()
    for a, b in zip(given, again, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-8, atol=1e-8)


def test_the_gradient_of_a_sum_is_no_matter_of_strides(torch_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    given = tensors(model, 4, grad=True)
    da.forward_dynamics(model, *given).sum().backward()
    jacobian = da.compile(da.forward_dynamics, model).jacobian("tau")(*numpy_of(given))
    np.testing.assert_allclose(given[2].grad.numpy(), jacobian.sum(axis=-2), rtol=1e-9)


def test_numbers_of_the_host_stay_numbers_and_have_gradients(torch_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = tensors(model, 4)
    dt = torch.tensor(0.01, dtype=torch.float64, requires_grad=True)
    q2, _ = da.step(model, q, v, tau, dt)
    q2.sum().backward()
    after, before = (da.step(model, *numpy_of([q, v, tau]), 0.01 + h)[0].sum() for h in (1e-6, -1e-6))
    assert abs(dt.grad.item() - (after - before) / 2e-6) < 1e-6 * abs(dt.grad.item())
    assert dt.grad.device.type == "cpu"


def test_out_takes_tensors_and_refuses_gradients(torch_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    given = tensors(model, 6)
    out = torch.empty(6, 6, dtype=torch.float64)
    assert da.forward_dynamics(model, *given, out=out) is out
    np.testing.assert_allclose(out.numpy(), da.forward_dynamics(model, *numpy_of(given)), rtol=1e-12)
    with pytest.raises(ArgumentError, match="do not go together"):
        da.forward_dynamics(model, *tensors(model, 6, grad=True), out=out)


def test_batches_that_need_repeating_are_repeated(torch_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = tensors(model, 12)
    found = da.forward_dynamics(model, q.reshape(3, 4, 6), v[:4], tau[:3].reshape(3, 1, 6))
    wanted = da.forward_dynamics(model, q.numpy().reshape(3, 4, 6), v[:4].numpy(), tau[:3].numpy()[:, None])
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)


def test_transforms_work_on_the_gpu(torch_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    q, _, _ = tensors(model, 3)
    launched = len(torch_gpu.launches)
    J = torch.func.vmap(torch.func.jacrev(lambda x: da.gravity_forces(model, x)))(q)
    assert len(torch_gpu.launches) > launched
    wanted = da.compile(da.gravity_forces, model).jacobian("q")(q.numpy())
    np.testing.assert_allclose(J.numpy(), wanted, rtol=1e-9, atol=1e-9)


def test_a_second_call_alike_computes_with_its_own_numbers(torch_gpu: FakeCuda) -> None:
    """The layout of arrays is looked at once; addresses, numbers of the host and streams are not kept."""
    model = da.models.arm6()
    step = da.compile(da.step, model)
    for seed, dt in enumerate((0.001, 0.001, 0.0005)):
        q, v, tau = (0.1 * torch.tensor(x) for x in np.random.default_rng(seed).normal(size=(3, 70, 6)))
        found = step(q, v, tau, dt)
        for array, wanted in zip(found, step(*numpy_of([q, v, tau]), dt), strict=True):
            np.testing.assert_allclose(array.numpy(), wanted, rtol=1e-11, atol=1e-13)
    assert len(step._gpu_calls) == 1
    found = step(q[:9], v[:9], tau[:9], dt)
    assert found[0].shape == (9, 6)
    assert len(step._gpu_calls) == 2


def test_a_second_call_repeats_its_own_arguments(torch_gpu: FakeCuda) -> None:
    """An argument that has to be repeated along some batch axes is, in every call alike."""
    step = da.compile(da.step, da.models.arm6())
    for seed in range(3):
        q, tau = 0.1 * torch.tensor(np.random.default_rng(seed).normal(size=(2, 3, 5, 6)))
        v = tau[:, :1].clone()
        found = step(q, v, tau, 0.001)
        for array, wanted in zip(found, step(*numpy_of([q, v, tau]), 0.001), strict=True):
            np.testing.assert_allclose(array.numpy(), wanted, rtol=1e-11, atol=1e-13)


def test_a_second_call_refuses_results_that_share_memory(torch_gpu: FakeCuda) -> None:
    step = da.compile(da.step, da.models.arm6())
    q, v, tau, *out = torch.zeros(5, 4, 6, dtype=torch.float64)
    tau += 0.1
    step(q, v, tau, 0.001, out=tuple(out))
    for array, wanted in zip(out, step(*numpy_of([q, v, tau]), 0.001), strict=True):
        np.testing.assert_allclose(array.numpy(), wanted, rtol=1e-11, atol=1e-13)
    with pytest.raises(da.errors.ArgumentError, match="share memory"):
        step(q, v, tau, 0.001, out=(out[0], out[0]))


def test_a_function_remembers_a_bounded_number_of_layouts(
    torch_gpu: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "MAX_PREPARED_CALLS", 3)
    step = da.compile(da.step, da.models.arm6())
    for rows in range(2, 9):
        q = torch.full((rows, 6), 0.1, dtype=torch.float64)
        assert step(q, q, q, 0.001)[0].shape == (rows, 6)
    assert len(step._gpu_calls) == 3


def test_gradients_are_not_lost_after_a_call_without_them(torch_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    given = tensors(model, 4)
    da.forward_dynamics(model, *given)
    watched = [x.clone().requires_grad_() for x in given]
    assert da.forward_dynamics(model, *watched).requires_grad
    with torch.no_grad():
        assert not da.forward_dynamics(model, *watched).requires_grad


def test_memory_shared_in_a_later_call_is_noticed(torch_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = tensors(model, 200)
    wanted = da.forward_dynamics(model, *numpy_of([q, v, tau]))
    da.forward_dynamics(model, q, v, tau, out=torch.empty_like(q))
    assert "cuMemcpy2DAsync_v2" not in torch_gpu.calls
    place = tau.clone()
    da.forward_dynamics(model, q, v, place, out=place)
    assert "cuMemcpy2DAsync_v2" in torch_gpu.calls, "computed beside it, then copied"
    np.testing.assert_allclose(place.numpy(), wanted, rtol=1e-12)


def test_threads_may_make_the_same_call_at_once(torch_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    many = [tensors(model, 30)[0] * factor for factor in range(1, 9)]
    da.gravity_forces(model, many[0])
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda q: da.gravity_forces(model, q), many * 4))
    for q, tau in zip(many * 4, found, strict=True):
        np.testing.assert_allclose(tau.numpy(), da.gravity_forces(model, q.numpy()), rtol=1e-11, atol=1e-11)


def test_tensors_whose_memory_is_not_their_value_are_refused(torch_gpu: FakeCuda) -> None:
    """Negated when read, zeros without memory, sparse: also where such a call is known, and as `out=`."""
    model = da.models.arm6()
    q, v, tau = tensors(model, 5)
    negated, nothing = torch._neg_view(-q), torch._efficientzerotensor(5, 6, dtype=torch.float64)
    for _ in range(2):
        for strange, remedy in (
            (negated, r"q\.resolve_neg\(\)\.clone\(\)"),
            (nothing, r"q\.resolve_neg\(\)\.clone\(\)"),
            (q.to_sparse(), r"q\.to_dense\(\)"),
        ):
            with pytest.raises(ArgumentError, match=remedy):
                da.forward_dynamics(model, strange, v, tau)
        with pytest.raises(ArgumentError, match="out for"):
            da.forward_dynamics(model, q, v, tau, out=torch._neg_view(torch.zeros_like(q)))
        da.forward_dynamics(model, q, v, tau)
        da.forward_dynamics(model, q, v, tau, out=torch.zeros_like(q))


def test_weights_and_changes_that_pytorch_left_unmade(torch_gpu: FakeCuda) -> None:
    """Gradients may arrive negated when read, and tangents as zeros without memory."""
    model = da.models.arm6()
    q, v, tau = tensors(model, 5)
    watched = q.clone().requires_grad_()
    weights = torch.ones_like(q)
    (wanted,) = torch.autograd.grad(da.forward_dynamics(model, watched, v, tau), watched, weights)
    negated = torch._neg_view(-weights)
    (found,) = torch.autograd.grad(da.forward_dynamics(model, watched, v, tau), watched, negated)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)
    nothing = torch._efficientzerotensor(5, 6, dtype=torch.float64)
    _, change = torch.func.jvp(lambda x: da.forward_dynamics(model, x, v, tau), (q,), (nothing,))
    assert not change.any()


def test_arrays_of_another_library_beside_tensors_are_refused(torch_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = tensors(model, 5)
    with pytest.raises(DtypeError, match=r"v is an array of tests beside PyTorch .* torch\.as_tensor\(v\)"):
        da.forward_dynamics(model, q, HostMemoryArray(v.numpy()), tau)
    with pytest.raises(DtypeError, match=r"v is a PyTorch tensor beside GPU arrays; .* all as arrays of one"):
        da.forward_dynamics(model, HostMemoryArray(q.numpy()), v, tau)


def test_vmap_over_any_axis(torch_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    q, v, tau = tensors(model, 5)
    wanted = da.forward_dynamics(model, *numpy_of([q, v, tau]))
    mapped = torch.func.vmap(lambda *given: da.forward_dynamics(model, *given), in_dims=(1, 0, -1))
    found = mapped(q.T.contiguous(), v, tau.T.contiguous())
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("grad", [False, True])
def test_whole_numbers_are_refused_with_gradients_and_without(torch_gpu: FakeCuda, grad: bool) -> None:
    model = da.models.arm6()
    q, v, tau = tensors(model, 5, grad=grad)
    with pytest.raises(DtypeError, match=r"q is torch\.int64, .* pass q\.to\(torch\.float64\)"):
        da.forward_dynamics(model, q.long(), v, tau)


def test_batches_without_samples(torch_gpu: FakeCuda) -> None:
    model = da.models.arm6()
    for batch in ((0,), (3, 0, 4), (0, 3)):
        nothing = torch.zeros(*batch, 6, dtype=torch.float64)
        assert da.forward_dynamics(model, nothing, nothing, nothing).shape == (*batch, 6)
        out = torch.zeros(*batch, 6, dtype=torch.float64)
        assert da.forward_dynamics(model, nothing, nothing, nothing, out=out) is out
    assert not torch_gpu.launches


def test_out_goes_with_numbers_of_the_host(torch_gpu: FakeCuda) -> None:
    """Steps in place: the arguments are the results, and the time step is a number."""
    model = da.models.arm6()
    q, v, tau = tensors(model, 5)
    step = da.compile(da.step, model)
    wanted = numpy_of([q.clone(), v.clone()])
    for _ in range(3):
        step(q, v, tau, 1e-4, out=(q, v))
        wanted = list(da.step(model, *wanted, tau.numpy(), 1e-4))
    np.testing.assert_allclose(q.numpy(), wanted[0], rtol=1e-12)
    np.testing.assert_allclose(v.numpy(), wanted[1], rtol=1e-12)
