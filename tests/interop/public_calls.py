"""Every public function of arrays, as a user of another array library calls it, with arrays to call it on."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from tests.test_api_catalogue import CALLS as CATALOGUED
from tests.test_api_catalogue import at_arm, ball_arm, state

import dalembert as da
from dalembert import api
from dalembert.library import FUNCTIONS
from dalembert.model import configuration

Array = np.ndarray
Arrays = Sequence[Any]

STEP = 1e-5


def rate_matrix(model: da.Model, q: Array) -> Array:
    """Q(q) with dq/dt = Q v."""
    rates = [configuration.position_rate(model, q, unit) for unit in np.eye(model.nv)]
    return np.array(rates, dtype=float).T


class PublicCall(NamedTuple):
    """`function(model, *arrays)` for any kind of arrays, and where in them configurations are."""

    name: str
    function: Callable[..., Any]
    model: Callable[[], da.Model]
    names: tuple[str, ...]

    def __str__(self) -> str:
        return self.name

    def arrays(self) -> list[Array]:
        return [_state(self.model)[name] for name in self.names]

    def __call__(self, arrays: Arrays) -> list[Any]:
        found = self.function(self.model(), *arrays)
        if isinstance(found, da.Poses):
            found = (found.rotation, found.translation, found["arm"].translation)
        return list(found) if isinstance(found, tuple) else [found]

    def moved(self, arrays: Arrays, directions: Arrays, length: float) -> list[Array]:
        """The arrays along directions, which for configurations have nv numbers."""
        model = self.model()
        return [
            da.integrate(model, x, length * d) if name.startswith("q") else x + length * d
            for name, x, d in zip(self.names, arrays, directions, strict=True)
        ]

    def directions(self, seed: int) -> list[Array]:
        rng, model = np.random.default_rng(seed), self.model()
        return [
            rng.normal(size=model.nv if name.startswith("q") else x.shape)
            for name, x in zip(self.names, self.arrays(), strict=True)
        ]

    def slope_by_differences(self, weights: Arrays, directions: Arrays) -> float:
        """The change of the weighted sum of the results along directions, by central differences."""

        def total(length: float) -> float:
            results = self(self.moved(self.arrays(), directions, length))
            return sum(float((w * result).sum()) for w, result in zip(weights, results, strict=True))

        return (total(STEP) - total(-STEP)) / (2.0 * STEP)

    def weights(self, seed: int) -> list[Array]:
        rng = np.random.default_rng(seed)
        return [rng.normal(size=np.shape(result)) for result in self(self.arrays())]

    def rates(self, directions: Arrays) -> list[Array]:
        """The change of every coordinate along directions."""
        ahead = self.moved(self.arrays(), directions, STEP)
        back = self.moved(self.arrays(), directions, -STEP)
        return [(a - b) / (2.0 * STEP) for a, b in zip(ahead, back, strict=True)]


@functools.cache
def _state(model: Callable[[], da.Model]) -> dict[str, Array]:
    made, rng = model(), np.random.default_rng(8)
    q = state(model)["q"]
    q1 = da.integrate(made, q, 0.3 * rng.normal(size=made.nv))
    more = {"q0": q, "q1": q1, "q_ref": q1, "dv": 0.4 * rng.normal(size=made.nv)}
    more["external_forces"] = rng.normal(size=(len(made.bodies), 6))
    return {**state(model), **more}


def _tree_call(function: Callable[..., Any]) -> PublicCall:
    by_place = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    return PublicCall(function.__name__, function, ball_arm, tuple(p.name for p in by_place[1:]))


def _catalogued() -> list[PublicCall]:
    """Those of the catalogue, by one method each; without constraints there are no rows of them."""
    calls: dict[Any, PublicCall] = {}
    for call in CATALOGUED:
        key = (call.function.__name__, call.model)
        if key in calls or (call.function.__name__.startswith("constraint_") and not call.model().loops):
            continue

        def on_arrays(model: da.Model, *arrays: Any, _call: Any = call) -> Any:
            return tuple(_call(arrays))

        calls[key] = PublicCall(str(call), on_arrays, call.model, tuple(call.names))
    return list(calls.values())


def _with_forces(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda model, *arrays: function(model, *arrays[:-1], external_forces=arrays[-1])


def _of_trees() -> list[PublicCall]:
    """Those that take arrays alone and are not in the table of the catalogue's tests."""
    others = {call.function.__name__ for call in CATALOGUED if call.model is ball_arm}
    names = [name for name in api.__all__ if name in FUNCTIONS and name not in others]
    calls = [_tree_call(getattr(da, name)) for name in names]
    on_loops = ("constraint_", "loop_", "floating_base_")
    return [
        call
        for call in calls
        if set(call.names) <= set(_state(ball_arm)) and not call.name.startswith(on_loops)
    ]


TREE_CALLS = [
    *_of_trees(),
    PublicCall("jacobian", at_arm(da.jacobian), ball_arm, ("q",)),
    PublicCall("jacobian_rate", lambda m, q, v: da.jacobian_rate(m, q, v, "arm"), ball_arm, ("q", "v")),
    PublicCall(
        "point_motion", lambda m, q, v, a: da.point_motion(m, q, v, a, "arm"), ball_arm, ("q", "v", "a")
    ),
    PublicCall(
        "forward_dynamics-external",
        _with_forces(da.forward_dynamics),
        ball_arm,
        ("q", "v", "tau", "external_forces"),
    ),
    PublicCall(
        "hybrid_dynamics_derivatives",
        lambda m, *x: da.hybrid_dynamics_derivatives(m, *x, prescribed=("arm",)),
        ball_arm,
        ("q", "v", "tau", "a"),
    ),
    PublicCall(
        "step-rk4", lambda m, *x: da.step(m, *x, dt=0.01, integrator="rk4"), ball_arm, ("q", "v", "tau")
    ),
    PublicCall(
        "feedback_linearization-gains",
        lambda m, q, v, k: da.control.feedback_linearization(m, q, v, q, stiffness=k * k),
        ball_arm,
        ("q", "v", "tau"),
    ),
]  # fmt: skip

PUBLIC_CALLS = [*TREE_CALLS, *_catalogued()]
