"""PyTorch tensors through the library: values, gradients, batches, float types, and what is refused."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from tests.catalogue_calls import ball_arm
from tests.interop.public_calls import rate_matrix
from tests.test_documentation import blocks

import dalembert as da
from dalembert.errors import ArgumentError, DtypeError, ShapeError, StateError

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed, and make test found no build of it for CPUs"
)


@functools.cache
def arm() -> da.Model:
    return da.models.two_link_arm()


def tensor(x, **options):
    return torch.tensor(np.asarray(x), **options)


def state(*batch: int, dtype=torch.float64):
    """q, v, tau of the arm that require gradients."""
    rng = np.random.default_rng(2)
    return [torch.tensor(rng.normal(size=(*batch, 2)), dtype=dtype, requires_grad=True) for _ in range(3)]


def test_gradcheck_passes_once_and_twice_forward_and_reverse():
    f = functools.partial(da.forward_dynamics, arm())
    assert torch.autograd.gradcheck(f, state(), check_forward_ad=True)
    assert torch.autograd.gradcheck(f, state(3))
    assert torch.autograd.gradgradcheck(f, state())


def test_second_derivatives_are_exact_along_the_manifold():
    """The gradient by coordinates changes along a motion on the manifold as its derivative says."""
    model = ball_arm()
    q, v = model.random_state(6)
    dv, w = np.random.default_rng(1).normal(size=model.nv), tensor(np.arange(1.0, model.nq + 1.0))

    def gradient(q):
        given = tensor(q, requires_grad=True)
        energy = da.dynamics.kinetic_energy(model, given, tensor(v))
        return given, torch.autograd.grad(energy, given, create_graph=True)[0]

    given, found = gradient(q)
    (second,) = torch.autograd.grad(found @ w, given)
    ahead, back = (gradient(da.integrate(model, q, s * dv))[1].detach() for s in (1e-5, -1e-5))
    expected = float((ahead - back) @ w) / 2e-5
    assert float(second @ tensor(rate_matrix(model, q) @ dv)) == pytest.approx(expected, rel=1e-6)


def test_numpy_arrays_beside_tensors_are_constants():
    """Read-only and reversed ones too."""
    q = state()[0]
    fixed = np.array([0.5, -0.25])[::-1]
    fixed.flags.writeable = False
    expected = da.forward_dynamics(arm(), q.detach().numpy(), fixed, fixed)
    np.testing.assert_array_equal(da.forward_dynamics(arm(), q, fixed, fixed).detach(), expected)


def test_only_what_requires_a_gradient_is_differentiated():
    q, v, tau = state()
    a = da.forward_dynamics(arm(), q.detach(), v, tau.detach())
    a.sum().backward()
    assert q.grad is None
    assert tau.grad is None
    jacobian = da.compile(da.forward_dynamics, arm()).jacobian("v")
    expected = jacobian(q.detach().numpy(), v.detach().numpy(), tau.detach().numpy()).sum(0)
    np.testing.assert_allclose(v.grad.numpy(), expected, rtol=1e-12)
    assert not da.forward_dynamics(arm(), q.detach(), v.detach(), tau.detach()).requires_grad


def test_gradients_of_what_is_broadcast_are_summed():
    q, v, _ = state(4)
    tau = torch.ones(2, dtype=torch.float64, requires_grad=True)
    da.forward_dynamics(arm(), q.reshape(4, 1, 2), v, tau).pow(2).sum().backward()
    wide = tau.detach().expand(4, 4, 2).clone().requires_grad_()
    da.forward_dynamics(arm(), q.reshape(4, 1, 2), v, wide).pow(2).sum().backward()
    np.testing.assert_allclose(tau.grad.numpy(), wide.grad.sum((0, 1)).numpy(), rtol=1e-12)


def test_vmap_and_the_transforms_of_torch_func_agree_with_batches():
    q, v, tau = (x.detach() for x in state(5))
    model = arm()
    by_rows = torch.func.vmap(lambda q, tau: da.forward_dynamics(model, q, v[0], tau), in_dims=(0, 1))
    expected = da.forward_dynamics(model, q, v[0], tau)
    assert torch.equal(by_rows(q, tau.T.contiguous()), expected)
    energy = functools.partial(da.dynamics.kinetic_energy, model)
    gradients = torch.func.vmap(torch.func.grad(energy), in_dims=(0, None))(q, v[0])
    for row, gradient in zip(q, gradients, strict=True):
        assert torch.equal(gradient, torch.func.grad(energy)(row, v[0]))
    forces = functools.partial(da.gravity_forces, model)
    forward, reverse = torch.func.jacfwd(forces)(q[0]), torch.func.jacrev(forces)(q[0])
    np.testing.assert_allclose(forward, reverse, atol=1e-12)
    potential = functools.partial(da.dynamics.potential_energy, model)
    np.testing.assert_allclose(torch.func.hessian(potential)(q[0]), reverse, atol=1e-12)


def test_nested_vmap_with_batches_inside():
    q, v, _ = (x.detach() for x in state(3, 4))
    energy = functools.partial(da.dynamics.kinetic_energy, arm())
    found = torch.func.vmap(torch.func.vmap(energy, in_dims=(0, None)), in_dims=(0, None))(q, v[0])
    assert found.shape == (3, 4, 4)
    assert torch.equal(found[1, 2], energy(q[1, 2], v[0]))


def test_float32_stays_float32():
    given = state(3, dtype=torch.float32)
    a = da.forward_dynamics(arm(), *given)
    a.sum().backward()
    assert a.dtype == given[0].grad.dtype == torch.float32
    wide = [x.detach().double().requires_grad_() for x in given]
    da.forward_dynamics(arm(), *wide).sum().backward()
    np.testing.assert_allclose(given[0].grad, wide[0].grad, rtol=1e-4, atol=1e-4)


def test_memory_is_shared_with_numpy():
    """A result is a view of the array that the kernel wrote, an argument is read where it is."""
    q = torch.zeros(4, 6, dtype=torch.float64)[:, ::2][:, :2]
    expected = da.mass_matrix(arm(), q.numpy())
    M = da.mass_matrix(arm(), q)
    assert torch.equal(M, torch.from_numpy(expected))
    assert M.numpy().base is not None


def test_functions_of_ones_own_and_parameters_have_gradients():
    model = da.models.pendulum(length=2.0, mass=3.0)
    f = da.compile(da.gravity_forces, model, parameters=("bob.mass",))
    mass = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    q = torch.tensor([0.7], dtype=torch.float64, requires_grad=True)
    f(q, parameters={"bob.mass": mass}).backward()
    assert mass.grad.item() == pytest.approx(9.81 * 2.0 * np.sin(0.7), rel=1e-12)
    assert q.grad.item() == pytest.approx(1.5 * 9.81 * 2.0 * np.cos(0.7), rel=1e-12)

    twice, square = da.compile(lambda model, q: (2.0 * q[0], [q[0] * q[0]]), model)(q)
    (gradient,) = torch.autograd.grad(twice + square.sum(), q)
    assert gradient.item() == pytest.approx(2.0 + 1.4, rel=1e-12)


def test_function_fixes_the_model_and_takes_lists():
    J = da.interop.torch.function(da.jacobian, arm(), frame_name="tip", frame="body")
    found = J([0.3, -0.2])
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), da.jacobian(arm(), [0.3, -0.2], "tip", frame="body"))
    f = da.interop.torch.function(da.compile(da.mass_matrix, arm()))
    assert isinstance(f(np.zeros(2)), torch.Tensor)


def test_wrong_tensors_are_refused():
    q, v, tau = (x.detach() for x in state())
    with pytest.raises(DtypeError, match="mix float types: v is float32, q is float64"):
        da.forward_dynamics(arm(), q, v.float(), tau)
    with pytest.raises(DtypeError, match=r"tau is torch\.float16"):
        da.forward_dynamics(arm(), q, v, tau.half())
    with pytest.raises(DtypeError, match="q is on meta, but functions are compiled for the CPU"):
        da.forward_dynamics(arm(), q.to("meta"), v, tau)
    with pytest.raises(ShapeError, match="q: expected"):
        da.forward_dynamics(arm(), q[:1], v, tau)
    with pytest.raises(ArgumentError, match="out="):
        da.mass_matrix(arm(), q, out=np.zeros((2, 2)))
    with pytest.raises(StateError, match="unit norm"):
        da.gravity_forces(ball_arm(), tensor([2.0, 0.0, 0.0, 0.0, 0.1]))


def test_a_step_of_descent_through_a_rollout_lowers_the_cost():
    model = arm()
    tau = torch.zeros(2, dtype=torch.float64, requires_grad=True)

    def cost():
        q = v = torch.zeros(2, dtype=torch.float64)
        for _ in range(5):
            q, v = da.step(model, q, v, tau, 0.02)
        return (da.forward_kinematics(model, q)["tip"].translation - tensor([1.9, 0.0, 0.3])).pow(2).sum()

    before = cost()
    before.backward()
    with torch.no_grad():
        tau -= 10.0 * tau.grad
    assert cost() < before


def test_the_code_of_the_guide_runs():
    page = Path(__file__).parents[2] / "docs" / "guides" / "torch.md"
    exec(compile(blocks(page), str(page), "exec"), {})
