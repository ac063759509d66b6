"""JAX arrays through the library: values, gradients, jit, vmap, float types, and what is refused."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.catalogue_calls import ball_arm
from tests.interop.public_calls import rate_matrix
from tests.test_documentation import blocks

import dalembert as da
from dalembert.errors import ArgumentError, CompileError, DtypeError, ShapeError, StateError

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@functools.cache
def arm() -> da.Model:
    return da.models.two_link_arm()


def state(*batch: int):
    """q, v, tau of the arm."""
    rng = np.random.default_rng(2)
    return [jnp.asarray(rng.normal(size=(*batch, 2))) for _ in range(3)]


def test_check_grads_passes_once_and_twice_forward_and_reverse():
    from jax.test_util import check_grads

    check_grads(functools.partial(da.forward_dynamics, arm()), state(), order=2, rtol=1e-4, atol=1e-4)
    check_grads(functools.partial(da.forward_dynamics, arm()), state(3), order=1)


def test_second_derivatives_are_exact_along_the_manifold():
    """The gradient by coordinates changes along a motion on the manifold as its derivative says."""
    model = ball_arm()
    q, v = model.random_state(6)
    dv = np.random.default_rng(1).normal(size=model.nv)
    gradient = jax.grad(lambda q: da.dynamics.kinetic_energy(model, q, v))
    _, found = jax.jvp(gradient, (jnp.asarray(q),), (jnp.asarray(rate_matrix(model, q) @ dv),))
    ahead, back = (gradient(jnp.asarray(da.integrate(model, q, s * dv))) for s in (1e-5, -1e-5))
    np.testing.assert_allclose(found, (ahead - back) / 2e-5, rtol=1e-6, atol=1e-8)


def test_jit_gives_the_same_bits():
    q, v, tau = state(3)
    f = functools.partial(da.forward_dynamics, arm())
    np.testing.assert_array_equal(jax.jit(f)(q, v, tau), f(q, v, tau))
    np.testing.assert_array_equal(f(q, v, tau), da.forward_dynamics(arm(), *map(np.asarray, (q, v, tau))))


def test_a_call_is_one_equation_whatever_the_model():
    for model in (arm(), da.models.humanoid()):
        q = jnp.asarray(model.neutral())
        equations = jax.make_jaxpr(functools.partial(da.gravity_forces, model))(q).eqns
        assert [str(equation.primitive) for equation in equations] == ["dalembert"]


def test_vmap_and_derivatives_agree_with_batches():
    q, v, tau = state(5)
    model = arm()
    by_rows = jax.vmap(lambda q, tau: da.forward_dynamics(model, q, v[0], tau), in_axes=(0, 1))
    np.testing.assert_array_equal(by_rows(q, tau.T), da.forward_dynamics(model, q, v[0], tau))
    energy = functools.partial(da.dynamics.kinetic_energy, model)
    gradients = jax.jit(jax.vmap(jax.grad(energy), in_axes=(0, None)))(q, v[0])
    for row, gradient in zip(q, gradients, strict=True):
        np.testing.assert_array_equal(gradient, jax.grad(energy)(row, v[0]))
    forces = functools.partial(da.gravity_forces, model)
    forward, reverse = jax.jacfwd(forces)(q[0]), jax.jit(jax.jacrev(forces))(q[0])
    np.testing.assert_allclose(forward, reverse, atol=1e-12)
    potential = functools.partial(da.dynamics.potential_energy, model)
    np.testing.assert_allclose(jax.jit(jax.hessian(potential))(q[0]), reverse, atol=1e-12)
    nested = jax.vmap(jax.vmap(energy, in_axes=(0, None)), in_axes=(None, 0))(q, v)
    np.testing.assert_array_equal(nested[3, 1], energy(q[1], v[3]))


def test_vmap_with_batches_inside():
    q, v, _ = state(3, 4)
    energy = functools.partial(da.dynamics.kinetic_energy, arm())
    found = jax.vmap(energy, in_axes=(0, None))(q[:, 0], v[0])
    assert found.shape == (3, 4)
    np.testing.assert_array_equal(found[1], energy(q[1, 0], v[0]))


def test_gradients_of_what_is_broadcast_are_summed():
    q, v, _ = state(4)
    tau = jnp.ones(2)

    def cost(tau):
        return (da.forward_dynamics(arm(), q.reshape(4, 1, 2), v, tau) ** 2).sum()

    wide = jax.grad(cost)(jnp.ones((4, 4, 2)))
    np.testing.assert_allclose(jax.grad(cost)(tau), wide.sum((0, 1)), rtol=1e-12)
    np.testing.assert_allclose(jax.grad(cost)(tau[None]), wide.sum((0, 1))[None], rtol=1e-12)


def test_a_rollout_is_a_scan():
    model = arm()

    @jax.jit
    def final(tau):
        def step(state, _):
            return da.step(model, *state, tau, 0.02), None

        return jax.lax.scan(step, (jnp.zeros(2), jnp.zeros(2)), None, length=5)[0][0]

    q = v = np.zeros(2)
    for _ in range(5):
        q, v = da.step(model, q, v, np.ones(2), 0.02)
    np.testing.assert_array_equal(final(jnp.ones(2)), q)
    forward, reverse = jax.jacfwd(final)(jnp.ones(2)), jax.jacrev(final)(jnp.ones(2))
    np.testing.assert_allclose(forward, reverse, rtol=1e-11)


def test_float32_stays_float32():
    q, v, tau = (x.astype(np.float32) for x in state(3))
    f = functools.partial(da.forward_dynamics, arm())
    with jax.enable_x64(False):
        gradient = jax.jit(jax.grad(lambda q: f(q, v, tau).sum()))(q)
        assert f(q, v, tau).dtype == gradient.dtype == np.float32
        with pytest.raises(DtypeError, match="jax_enable_x64"):
            f(jnp.asarray([0, 1]), np.zeros(2), np.zeros(2))
    wide = jax.grad(lambda q: f(q, *(x.astype(np.float64) for x in (v, tau))).sum())(q.astype(np.float64))
    np.testing.assert_allclose(gradient, wide, rtol=1e-4, atol=1e-4)


def test_functions_of_ones_own_and_parameters_have_gradients():
    model = da.models.pendulum(length=2.0, mass=3.0)
    f = da.compile(da.gravity_forces, model, parameters=("bob.mass",))
    by_mass = jax.jit(jax.grad(lambda mass: f([0.7], parameters={"bob.mass": mass})[0]))
    assert float(by_mass(1.5)) == pytest.approx(9.81 * 2.0 * np.sin(0.7), rel=1e-12)


def test_function_fixes_the_model_and_takes_lists():
    J = da.interop.jax.function(da.jacobian, arm(), frame_name="tip", frame="body")
    found = J([0.3, -0.2])
    assert isinstance(found, jax.Array)
    np.testing.assert_array_equal(found, da.jacobian(arm(), [0.3, -0.2], "tip", frame="body"))
    f = da.interop.jax.function(da.compile(da.mass_matrix, arm()))
    assert isinstance(f(np.zeros(2)), jax.Array)


def test_other_devices_are_refused():
    traced = jax.jit(functools.partial(da.gravity_forces, arm())).trace(jnp.zeros(2))
    with pytest.raises(CompileError, match="gravity_forces is compiled for"):
        traced.lower(lowering_platforms=("tpu",))


def test_wrong_arrays_are_refused():
    q, v, tau = state()
    with pytest.raises(DtypeError, match="mix float types: v is float32, q is float64"):
        da.forward_dynamics(arm(), q, v.astype(np.float32), tau)
    with pytest.raises(DtypeError, match="tau is float16"):
        da.forward_dynamics(arm(), q, v, tau.astype(np.float16))
    with pytest.raises(ShapeError, match="q: expected"):
        jax.jit(functools.partial(da.forward_dynamics, arm()))(q[:1], v, tau)
    with pytest.raises(ArgumentError, match="out="):
        da.mass_matrix(arm(), q, out=np.zeros((2, 2)))
    with pytest.raises(StateError, match="unit norm"):
        da.gravity_forces(ball_arm(), jnp.asarray([2.0, 0.0, 0.0, 0.0, 0.1]))


def test_the_code_of_the_guide_runs():
    page = Path(__file__).parents[2] / "docs" / "guides" / "jax.md"
    try:
        exec(compile(blocks(page), str(page), "exec"), {})
    finally:
        jax.config.update("jax_enable_x64", False)
