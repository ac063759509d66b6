"""Every public function of arrays through PyTorch and through JAX: values, and gradients equal to our own."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.interop.array_libraries import LIBRARIES, MISSING
from tests.interop.public_calls import IN_NUMPY, PUBLIC_CALLS, TREE_CALLS, PublicCall, rate_matrix
from tests.public_stubs import SUBJECTS

import dalembert as da
from dalembert.compiler import CompiledFunction
from dalembert.errors import DtypeError

Array = np.ndarray
COUNT = 3


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param in MISSING:
        pytest.skip(
            f"{request.param} is not installed; make test installs it where there is a build for CPUs"
        )
    made = LIBRARIES[request.param]()
    if request.param == "jax":
        with made.jax.enable_x64(True):
            yield made
    else:
        yield made


def compiled_call(
    library: Any, call: PublicCall, arrays: list[Array]
) -> tuple[Any, list[Any], list[list[int]]]:
    """The one compiled function that a public call comes down to, what it is given, and at which of its
    places each of the arrays arrives.
    """
    seen = []

    def spy(function: CompiledFunction, values: list[Any], out: object, check: str) -> Any:
        seen.append((function, values))
        return original(function, values, out, check)

    original, given = library.bridge.call, [library.array(x) for x in arrays]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library.bridge, "call", spy)
        call(given)
    ((function, values),) = seen
    values = [np.asarray(value) for value in values]
    places = [[k for k, value in enumerate(values) if np.array_equal(value, x)] for x in arrays]
    assert all(places)
    return function, values, places


def our_jacobians(library: Any, call: PublicCall, arrays: list[Array]) -> list[list[Array]]:
    """Of each result by each array, (count, size of result, numbers of the array): f.jacobian in NumPy, by
    configurations brought from the tangent space to coordinates with the pseudo-inverse of Q.
    """
    function, values, places = compiled_call(library, call, arrays)
    names, model = list(function.inputs), call.model()
    by = [k for own in places for k in own]
    found = function.jacobian(*(names[k] for k in by))(*values, check="off")
    columns = dict(zip(by, found if len(by) > 1 else (found,), strict=True))
    inverses = {
        k: np.array([np.linalg.pinv(rate_matrix(model, q)) for q in x])
        for k, x in enumerate(arrays)
        if call.is_configuration(k)
    }

    def by_array(k: int, result: int) -> Array:
        total = 0.0
        for place in places[k]:
            J = columns[place][result] if isinstance(columns[place], tuple) else columns[place]
            tangent = len(inverses[k][0]) if k in inverses else arrays[k][0].size
            total = total + J.reshape(COUNT, -1, tangent)
        return total @ inverses[k] if k in inverses else total

    results = len(columns[by[0]]) if isinstance(columns[by[0]], tuple) else 1
    return [[by_array(k, i) for k in range(len(arrays))] for i in range(results)]


def same_to_rounding(found: Any, expected: Array) -> None:
    """Within 1e-12 of the greatest entry, or of one."""
    error = np.abs(np.asarray(found).reshape(expected.shape) - expected).max(initial=0.0)
    assert error <= 1e-12 * max(1.0, np.abs(expected).max(initial=0.0))


@pytest.mark.parametrize("call", PUBLIC_CALLS, ids=str)
def test_values_and_gradients_are_ours(library: Any, call: PublicCall):
    """J^T w and J dx to 1e-12 on a batch of moving states; row by row under vmap (and jit) to the bit."""
    arrays = call.rows(COUNT)
    expected = [np.asarray(x) for x in call(arrays)]
    results = call([library.array(x) for x in arrays])
    for ours, theirs in zip(expected, results, strict=True):
        np.testing.assert_array_equal(ours, np.asarray(theirs), strict=True)
        assert not getattr(theirs, "requires_grad", False)

    rng = np.random.default_rng(1)
    weights = [rng.normal(size=x.shape) for x in expected]
    changes = [rng.normal(size=x.shape) for x in arrays]
    jacobians = our_jacobians(library, call, arrays)

    def on_arrays(*given: Any) -> tuple[Any, ...]:
        return tuple(call(given))

    gradients = library.vjp(on_arrays, arrays, weights)
    for k, gradient in enumerate(gradients):
        assert gradient.shape == arrays[k].shape
        products = [w.reshape(COUNT, 1, -1) @ J[k] for w, J in zip(weights, jacobians, strict=True)]
        same_to_rounding(gradient, sum(products).reshape(arrays[k].shape))
    for row_wise, gradient in zip(library.vmapped_vjp(on_arrays, arrays, weights), gradients, strict=True):
        np.testing.assert_array_equal(np.asarray(row_wise), np.asarray(gradient))
    for changed, row, value in zip(library.jvp(on_arrays, arrays, changes), jacobians, expected, strict=True):
        products = [J @ x.reshape(COUNT, -1, 1) for J, x in zip(row, changes, strict=True)]
        same_to_rounding(changed, sum(products).reshape(value.shape))


@pytest.mark.parametrize("call", PUBLIC_CALLS, ids=str)
def test_gradients_pass_the_libraries_own_checks(library: Any, call: PublicCall):
    """gradcheck and check_grads, forward and reverse, of f(normalize(q), …): they leave the sphere of unit
    quaternions.
    """
    arrays = [1.1 * x if call.is_configuration(k) else x for k, x in enumerate(call.rows(COUNT))]

    def from_any_length(*given: Any) -> tuple[Any, ...]:
        normal = [
            da.dynamics.normalize(call.model(), x) if call.is_configuration(k) else x
            for k, x in enumerate(given)
        ]
        return tuple(call(normal))

    library.check_gradients(from_any_length, arrays)


TWICE = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "kinetic_energy", "forward_kinematics")


@pytest.mark.parametrize("call", [call for call in TREE_CALLS if call.name in TWICE], ids=str)
def test_second_gradients_pass_the_libraries_own_checks(library: Any, call: PublicCall):
    """gradgradcheck and check_grads of second order, of f(integrate(q, dv), …) by dv and the rest."""
    q, *others = call.arrays()
    dv = 0.3 * np.random.default_rng(4).normal(size=call.model().nv)

    def along_the_manifold(dv: Any, *given: Any) -> tuple[Any, ...]:
        return tuple(call([da.integrate(call.model(), q, dv), *given]))

    library.check_second_gradients(along_the_manifold, [dv, *others])


@pytest.mark.parametrize("call", PUBLIC_CALLS[::8], ids=str)
def test_float32_in_gives_float32_values_and_gradients(library: Any, call: PublicCall):
    single = [x.astype(np.float32) for x in call.rows(COUNT)]
    results = call([library.array(x) for x in single])
    weights = [np.ones(result.shape, np.float32) for result in results]
    gradients = library.vjp(lambda *given: tuple(call(given)), single, weights)
    assert {np.asarray(x).dtype for x in (*results, *gradients)} == {np.dtype(np.float32)}
    for result, expected in zip(results, call(single), strict=True):
        np.testing.assert_array_equal(np.asarray(result), expected)


@pytest.mark.parametrize("name", IN_NUMPY)
def test_functions_that_compute_in_numpy_say_so(library: Any, name: str):
    kind = {"torch": "PyTorch tensor", "jax": "JAX array"}[library.bridge.__name__.rpartition(".")[2]]
    with pytest.raises(
        DtypeError, match=f"is a {kind}, but this function computes in NumPy.*pass a NumPy array"
    ):
        IN_NUMPY[name](library.array)


def test_every_public_function_of_arrays_is_called_here():
    """One that is neither differentiated nor refused above is one that nobody has tried."""
    tried = {str(name).partition("-")[0].partition(" ")[0] for name in (*PUBLIC_CALLS, *IN_NUMPY)}
    untried = [
        name
        for module in (da, da.control, *(getattr(da, subject) for subject in SUBJECTS))
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
        and "ArrayLike" in str(inspect.signature(getattr(module, name)))
        and name not in tried
    ]
    assert not untried, "give each a line in public_calls.py: TREE_CALLS, or IN_NUMPY where it refuses"
