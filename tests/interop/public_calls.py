"""Every public function of arrays, as a user of another array library calls it, with arrays to call it on."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from tests.catalogue_calls import CALLS as CATALOGUED
from tests.catalogue_calls import at_arm, ball_arm, linkage, rigged, state

import dalembert as da
from dalembert.api import declared
from dalembert.compiler.library import FUNCTIONS
from dalembert.model import configuration

Array = np.ndarray
Arrays = Sequence[Any]


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
        return f"{self.name}-{self.model.__name__}"

    def arrays(self) -> list[Array]:
        return [_state(self.model)[name] for name in self.names]

    def __call__(self, arrays: Arrays) -> list[Any]:
        found = self.function(self.model(), *arrays)
        if isinstance(found, da.kinematics.Poses):
            found = (found.rotation, found.translation)
        return list(found) if isinstance(found, tuple) else [found]

    def is_configuration(self, place: int) -> bool:
        return self.names[place].startswith("q")

    def rows(self, count: int) -> list[Array]:
        """A batch of moving states, each its own, with closed loops."""
        rng, model = np.random.default_rng(7), self.model()
        found = {}
        for name, x in zip(self.names, self.arrays(), strict=True):
            if name.startswith("q"):
                found[name] = da.integrate(model, x, 0.2 * rng.normal(size=(count, model.nv)))
            else:
                found[name] = x * rng.uniform(0.8, 1.2, size=(count, *x.shape))
        if model.loops:
            found["q"], v = da.constraints.close_loops(
                model, found["q"], found.get("v", np.zeros((count, model.nv)))
            )
            if "v" in found:
                found["v"] = v
        return [found[name] for name in self.names]


@functools.cache
def _state(model: Callable[[], da.Model]) -> dict[str, Array]:
    made, rng = model(), np.random.default_rng(8)
    q = state(model)["q"]
    q1 = da.integrate(made, q, 0.3 * rng.normal(size=made.nv))
    more = {"q0": q, "q1": q1, "q_ref": q1, "dv": 0.4 * rng.normal(size=made.nv)}
    more["stiffness"] = rng.uniform(1.0, 2.0, made.nv)
    more["external_forces"] = rng.normal(size=(len(made.bodies), 6))
    return {**state(model), **more}


def _at(model: Callable[[], da.Model], name: str) -> Array:
    return _state(model)[name]


def _call(function: Callable[..., Any], model: Callable[[], da.Model]) -> PublicCall:
    by_place = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    return PublicCall(function.__name__, function, model, tuple(p.name for p in by_place[1:]))


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
    others = {call.function.__name__ for call in CATALOGUED if call.model in (ball_arm, rigged)}
    names = [name for name, found in FUNCTIONS.items() if found.subject and name not in others]
    calls = [_call(getattr(declared, name), ball_arm) for name in names]
    calls.append(_call(da.step, ball_arm))
    on_loops = ("constraint_", "loop_", "floating_base_")
    return [
        call
        for call in calls
        if set(call.names) <= set(_state(ball_arm)) and not call.name.startswith(on_loops)
    ]


def _field(model: Any, q: Any) -> list[Any]:
    """A vector field that changes with q."""
    return [q[k] * q[k + 1] for k in range(model.nv)]


TREE_CALLS = [
    *_of_trees(),
    PublicCall("jacobian", at_arm(da.jacobian), ball_arm, ("q",)),
    PublicCall(
        "jacobian_rate", lambda m, q, v: da.kinematics.jacobian_rate(m, q, v, "arm"), ball_arm, ("q", "v")
    ),
    PublicCall(
        "point_motion",
        lambda m, q, v, a: da.kinematics.point_motion(m, q, v, a, "arm"),
        ball_arm,
        ("q", "v", "a"),
    ),
    PublicCall(
        "forward_dynamics-external",
        _with_forces(da.forward_dynamics),
        ball_arm,
        ("q", "v", "tau", "external_forces"),
    ),
    PublicCall(
        "hybrid_dynamics_derivatives",
        lambda m, *x: da.dynamics.hybrid_dynamics_derivatives(m, *x, prescribed=("arm",)),
        ball_arm,
        ("q", "v", "tau", "a"),
    ),
    PublicCall(
        "step-rk4", lambda m, *x: da.step(m, *x, dt=0.01, integrator="rk4"), ball_arm, ("q", "v", "tau")
    ),
    PublicCall("derivative", lambda m, q: da.dynamics.derivative(da.mass_matrix, m, q), ball_arm, ("q",)),
    PublicCall(
        "covariant_derivative",
        lambda m, *x: da.geometry.covariant_derivative(m, _field)(*x),
        ball_arm,
        ("q", "v"),
    ),
    PublicCall(
        "feedback_linearization-gains",
        lambda m, q, v, k: da.control.feedback_linearization(m, q, v, q, stiffness=k),
        ball_arm,
        ("q", "v", "stiffness"),
    ),
]

LOOP_CALLS = [
    _call(function, linkage)
    for function in (
        da.bias_forces,
        da.dynamics.centroidal_momentum,
        da.forward_kinematics,
        da.integrate,
        da.dynamics.kinetic_energy,
        da.mass_matrix,
    )
]
"""Those of trees that serve loops as well; the catalogue's own calls are of loops where they must be."""

PUBLIC_CALLS = [*TREE_CALLS, *LOOP_CALLS, *_catalogued()]


IN_NUMPY: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "actuation": lambda foreign: da.analysis.actuation(linkage(), foreign(_at(linkage, "q"))),
    "close_loops": lambda foreign: da.constraints.close_loops(linkage(), foreign(_at(linkage, "q"))),
    "close_loops v": lambda foreign: da.constraints.close_loops(
        linkage(), _at(linkage, "q"), foreign(_at(linkage, "v"))
    ),
    "convert_state": lambda foreign: da.convert_state(
        ball_arm(), foreign(_at(ball_arm, "q")), source="dalembert", target="pinocchio"
    ),
    "convert_state v": lambda foreign: da.convert_state(
        ball_arm(), _at(ball_arm, "q"), foreign(_at(ball_arm, "v")), source="dalembert", target="pinocchio"
    ),
    "force_at_point": lambda foreign: da.force_at_point(
        ball_arm(), _at(ball_arm, "q"), "arm", np.zeros(3), foreign(np.ones(3))
    ),
    "geodesic": lambda foreign: da.geometry.geodesic(
        ball_arm(), foreign(_at(ball_arm, "q")), _at(ball_arm, "v"), 0.1, 2
    ),
    "rollout": lambda foreign: da.rollout(
        ball_arm(), foreign(_at(ball_arm, "q")), _at(ball_arm, "v"), steps=1, dt=0.01
    ),
    "identify": lambda foreign: da.identification.identify(
        ball_arm(), *(_at(ball_arm, name) for name in "qva"), foreign(_at(ball_arm, "tau"))
    ),
    "inverse_kinematics": lambda foreign: da.kinematics.inverse_kinematics(
        ball_arm(), {"arm": np.ones(3)}, foreign(_at(ball_arm, "q"))
    ),
    "inverse_kinematics target": lambda foreign: da.kinematics.inverse_kinematics(
        ball_arm(), {"arm": foreign(np.ones(3))}, _at(ball_arm, "q")
    ),
    "mobility": lambda foreign: da.analysis.mobility(linkage(), foreign(_at(linkage, "q"))),
    "parallel_transport": lambda foreign: da.geometry.parallel_transport(
        ball_arm(), foreign(_at(ball_arm, "q")), _at(ball_arm, "v"), _at(ball_arm, "v"), 0.1
    ),
    "sensitivity": lambda foreign: da.analysis.sensitivity(
        ball_arm(), _at(ball_arm, "q"), foreign(_at(ball_arm, "tau"))
    ),
    "stand": lambda foreign: da.stand(ball_arm(), foreign(_at(ball_arm, "q"))),
    "condition_number": lambda foreign: da.analysis.condition_number(ball_arm(), foreign(_at(ball_arm, "q"))),
    "with_inertial_parameters": lambda foreign: da.identification.with_inertial_parameters(
        ball_arm(), foreign(da.identification.inertial_parameters(ball_arm()))
    ),
}
"""Calls, with one array of another library, of functions that compute in NumPy."""
