"""`derivative`: every differentiable public function against central differences along `integrate`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from tests.catalogue_calls import rigged
from tests.conformance.models import branched

import dalembert as da
from dalembert.api import declared
from dalembert.compiler.library import FUNCTIONS
from dalembert.errors import ArgumentError, ShapeError, UnknownNameError

DIFFERENTIABLE = sorted(name for name, declared in FUNCTIONS.items() if declared.differentiable)
ALONG_PATHS = ("actuator_forces", "spring_lengths")
FRAMED = ("jacobian", "jacobian_rate", "point_motion")


def state(model: da.Model) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    q, v = model.random_state(rng)
    found = {"q": q, "v": v, "a": rng.normal(size=model.nv), "tau": rng.normal(size=model.nv)}
    return found | {"ctrl": rng.normal(size=len(model.actuators))}


def value(name: str, model: da.Model, arrays: list[np.ndarray]) -> list[np.ndarray]:
    more = (model.bodies[-1].name,) if name in FRAMED else ()
    found = getattr(declared, name)(model, *arrays, *more)
    if name == "forward_kinematics":
        return [found.rotation, found.translation]
    return list(found) if isinstance(found, tuple) else [np.asarray(found)]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_are_slopes_along_the_manifold(name: str) -> None:
    """By every argument, on a free root with a ball and a screw; a batch of two equals its samples."""
    model = rigged() if name in ALONG_PATHS else branched()
    at = state(model)
    arguments = FUNCTIONS[name].arguments
    more = (model.bodies[-1].name,) if name in FRAMED else ()
    for by in arguments:
        arrays = [at[item] for item in arguments]
        found: Any = da.dynamics.derivative(getattr(declared, name), model, *arrays, *more, by=by)
        results = list(found) if isinstance(found, tuple) else [found]
        for k in range(model.nv if by == "q" else at[by].size):
            h = 1e-5
            ends = []
            for sign in (1.0, -1.0):
                step = sign * h * np.eye(model.nv if by == "q" else at[by].size)[k]
                moved = dict(at)
                moved[by] = da.integrate(model, at["q"], step) if by == "q" else at[by] + step
                ends.append(value(name, model, [moved[item] for item in arguments]))
            for result, plus, minus in zip(results, *ends, strict=True):
                slope = (plus - minus) / (2.0 * h)
                scale = 1.0 + np.abs(slope).max()
                np.testing.assert_allclose(result[..., k] / scale, slope / scale, atol=1e-7)
    twice = da.dynamics.derivative(
        getattr(declared, name), model, *(np.stack([x, x]) for x in arrays), *more, by=by
    )
    np.testing.assert_array_equal((twice[0] if isinstance(twice, tuple) else twice)[1], results[0])


def test_options_of_the_function_are_kept() -> None:
    model = da.models.arm6()
    q = np.linspace(-1.0, 1.0, 6)
    world = da.dynamics.derivative(da.jacobian, model, q, model.bodies[-1].name, frame="world")
    assert np.abs(world - da.dynamics.derivative(da.jacobian, model, q, model.bodies[-1].name)).max() > 0.01
    single = da.dynamics.derivative(da.mass_matrix, model, q.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, da.dynamics.derivative(da.mass_matrix, model, q), atol=1e-5)
    out = np.empty((6, 6, 6))
    assert da.dynamics.derivative(da.mass_matrix, model, q, out=out) is out


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_dynamics_take_the_recursions_for_their_derivatives(name: str) -> None:
    """The same numbers, at no more cost, call after call and in either precision."""
    model = da.models.arm7()
    at = state(model)
    arguments = FUNCTIONS[name].arguments
    arrays = [at[item] for item in arguments]
    recursive = getattr(declared, f"{name}_derivatives")
    whole = da.compile(recursive, model).operation_count.total
    for by, expected in zip(arguments, recursive(model, *arrays), strict=True):
        for _ in range(3):
            found = da.dynamics.derivative(getattr(declared, name), model, *arrays, by=by)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        single = da.dynamics.derivative(
            getattr(declared, name), model, *(x.astype(np.float32) for x in arrays), by=by
        )
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
        assert model.functions["derivative", getattr(declared, name), by].operation_count.total <= whole
    forces = np.ones((len(model.bodies), 6))
    found = da.dynamics.derivative(getattr(declared, name), model, *arrays, forces, external_frame="world")
    expected = recursive(model, *arrays, forces, external_frame="world")[0]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    with pytest.raises(ShapeError, match="v: expected"):
        da.dynamics.derivative(getattr(declared, name), model, arrays[0], np.zeros(3), arrays[2])


def test_what_cannot_be_differentiated_is_named() -> None:
    model = da.models.pendulum()
    with pytest.raises(UnknownNameError, match="mass_matrix"):
        da.dynamics.derivative(da.step, model, [0.1], [0.0], [0.0], 0.1)
    with pytest.raises(UnknownNameError, match="argument of mass_matrix"):
        da.dynamics.derivative(da.mass_matrix, model, [0.1], by="v")
    with pytest.raises(ArgumentError, match="derivative of jacobian"):
        da.dynamics.derivative(da.jacobian, model, [0.1])
    with pytest.raises(UnknownNameError, match="external_frame"):
        da.dynamics.derivative(da.inverse_dynamics, model, [0.1], [0.0], [0.0], external_frame="moon")
    with pytest.raises(ArgumentError, match="stabilization"):
        da.dynamics.derivative(da.forward_dynamics, model, [0.1], [0.0], [0.0], stabilization=-1.0)


def test_a_function_of_another_that_has_the_same_name_is_not_taken_for_ours() -> None:
    def mass_matrix(model: da.Model, q: list[float]) -> list[float]:
        return [3.0 * q[0]]

    wrapped = functools.wraps(da.mass_matrix)(mass_matrix)
    for other in (mass_matrix, wrapped, da.algorithms.mass_matrix):
        with pytest.raises(ArgumentError, match=r"public da\.mass_matrix"):
            da.dynamics.derivative(other, da.models.pendulum(), [0.1])


def test_results_that_share_memory_are_refused() -> None:
    """One array for three results would hold the last of them; parts of one array are as good as three."""
    model = da.models.arm6()
    q = np.linspace(-1.0, 1.0, 6)
    whole = np.empty((3, 6, 6))
    with pytest.raises(ArgumentError, match="share memory"):
        da.inverse_dynamics_derivatives(model, q, q, q, out=(whole[0], whole[1], whole[0]))
    da.inverse_dynamics_derivatives(model, q, q, q, out=tuple(whole))
    np.testing.assert_array_equal(whole, np.stack(da.inverse_dynamics_derivatives(model, q, q, q)))
