"""Derivatives without graphs and dual numbers: complex steps and differences, all directions at once.

Directions are samples: the algorithms run on complex NumPy arrays, and derivatives of traced functions on the
interpreter, one direction an element, so that nothing is compiled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pytest
from tests.algorithms.trees import inertia, place
from tests.model.joints.catalogue import CATALOGUE, TIME
from tests.tracing.interpreter import interpret

import dalembert as da
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.lowering import Recipe, lower
from dalembert.model import configuration
from dalembert.scalar.kinds import NUMPY
from dalembert.spatial.value import leaves
from dalembert.tracing.derivative_calls import Derivative

Array = np.ndarray[Any, Any]

STEP = 1e-30

KINDS = (
    "fixed", "revolute(0, 1, 0)", "revolute skew 0", "prismatic skew 0", "helical skew 0",
    "cylindrical skew 1", "euler zyx", "universal skew", "planar", "spherical", "exponential", "translation",
    "free", "rack and pinion", "sphere in cylinder skew", "ellipsoid", "composite ball", "composite nested",
    "reversed helical", "reversed free", "reversed ellipsoid", "user helix", "user book planar", "user ball",
    "user rheonomic", "driven revolute", "driven nothing", "driven in composite",
)  # fmt: skip
"""One of every kind in the catalogue of joints, and of those made of others the ways in which they differ."""

every_kind = pytest.mark.parametrize("kind", KINDS)


def _atan2(y: Any, x: Any) -> Any:
    """The angle, to first order in the imaginary parts."""
    turn = np.real(x) * np.imag(y) - np.real(y) * np.imag(x)
    return np.arctan2(np.real(y), np.real(x)) + 1j * turn / (np.real(x) ** 2 + np.real(y) ** 2)


COMPLEX = {
    "atan2": _atan2,
    "absolute": lambda x: np.where(np.real(x) < 0.0, -x, x)[()],
    "floor": lambda x: np.floor(np.real(x)),
}
"""What NumPy lacks for complex steps."""


def complex_step(function: Callable[[complex], Any], count: int) -> Array:
    """(samples, numbers): Im f(i h) / h of a function of the step."""
    with mock.patch.multiple(NUMPY, **COMPLEX):
        return numbers(function(1j * STEP), count).imag / STEP


@cache
def carried(kind: str) -> da.Model:
    """The joint between two hinges: its parent moves, and it carries another body."""
    rng = np.random.default_rng(3)
    builder = da.ModelBuilder(gravity=(0.7, -0.4, -9.5))
    own = CATALOGUE[kind]
    for name, parent, joint in (
        ("base", "world", da.Revolute((0.2, 0.9, -0.3))),
        ("own", "base", own),
        ("tip", "own", da.Revolute((0.6, 0.1, 0.5))),
    ):
        builder.add_body(
            name,
            parent,
            joint,
            placement=place(rng),
            inertia=inertia(rng),
            armature=0.2 if joint.nv else 0.0,
        )
    return builder.build()


def state(model: da.Model, seed: int = 1) -> dict[str, list[float]]:
    rng = np.random.default_rng(seed)
    q, v = model.random_state(rng)
    more = rng.normal(size=(2, model.nv))
    at = {"q": q.tolist(), "v": v.tolist(), "a": more[0].tolist(), "tau": more[1].tolist()}
    return at | {"time": [TIME]}


def clock(model: da.Model, time: Any) -> dict[str, Any]:
    return {"time": time[0]} if model.time_dependent else {}


def numbers(result: Any, count: int) -> Array:
    """All numbers of a result, a row a sample."""
    return np.array([np.broadcast_to(x, count) for x in leaves(result)]).reshape(-1, count).T


def directions(model: da.Model, at: dict[str, list[float]], names: list[str]) -> dict[str, Array]:
    """For each argument the rates of its elements along all directions of all arguments, a row each."""
    sizes = [1 if name == "time" else model.nv for name in names]
    found = {}
    for k, name in enumerate(names):
        rates: Array = np.zeros((sum(sizes), len(at[name])))
        start = sum(sizes[:k])
        for j, e in enumerate(np.eye(sizes[k]).tolist()):
            rates[start + j] = configuration.position_rate(model, at["q"], e) if name == "q" else e
        found[name] = rates
    return found


def complex_steps(function: Callable[..., Any], model: da.Model, at: Any, names: list[str]) -> Array:
    """(directions, numbers): Im f(x + i h dx) / h."""
    rates = directions(model, at, names)

    def moved(h: complex) -> Any:
        return function(model, *([x + h * r for x, r in zip(at[name], rates[name].T)] for name in names))

    return complex_step(moved, len(rates[names[0]]))


def differences(function: Callable[..., Any], model: da.Model, at: Any, names: list[str]) -> Array:
    """(directions, numbers): central differences along `integrate`."""
    h = 1e-5
    count = len(directions(model, at, names)[names[0]])
    ends = []
    for sign in (h, -h):
        moved, start = [], 0
        for name in names:
            size = 1 if name == "time" else model.nv
            step: Array = np.zeros((count, size))
            step[start : start + size] = sign * np.eye(size)
            start += size
            x = list(np.broadcast_to(at[name], (count, len(at[name]))).T)
            moved.append(
                configuration.integrate(model, x, list(step.T)) if name == "q" else [*(np.array(x) + step.T)]
            )
        ends.append(numbers(function(model, *moved), count))
    return (ends[0] - ends[1]) / (2.0 * h)


def traced(function: Callable[..., Any], model: da.Model, names: list[str]) -> Recipe:
    """The function of these arguments, to be differentiated and traced."""
    sizes = {"q": model.nq, "time": 1}
    return Recipe(
        "quantity",
        function,
        model,
        tuple(ArrayArgument(name, (sizes.get(name, model.nv),)) for name in names),
    )


def differentiated(of: Recipe, kind: str, *names: str) -> Recipe:
    """A derivative of that kind by arguments or parameters."""
    inputs = [ArrayArgument(item.name, item.shape) for item in (*of.signature, *of.parameters)]
    shapes = lambda: [item.shape for item in lower(of, "float64").results]
    found = Derivative.of(kind, names, inputs, shapes, of.charts())
    return dataclasses.replace(of, derivatives=(*of.derivatives, found))


def interpreted(of: Recipe, arrays: dict[str, Array], count: int) -> Array:
    """The results of a program, a row a sample; arrays are (elements,) or (samples, elements)."""
    spread = {key: list(np.broadcast_to(x, (count, np.shape(x)[-1])).T) for key, x in arrays.items()}
    return numbers(list(interpret(lower(of, "float64").program, spread).values()), count)


def split(gradient: Recipe, weights: Array) -> dict[str, Array]:
    """Weights of all numbers, a row a sample, as those of each result."""
    sizes = {item.name: item.size for item in gradient.signature if "cotangent" in item.name}
    parts = np.split(weights, np.cumsum(list(sizes.values()))[:-1], axis=1)
    return dict(zip(sizes, parts, strict=True))


def close(found: Any, expected: Any, tolerance: float, name: str) -> None:
    scale = 1.0 + np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * scale, err_msg=name)
