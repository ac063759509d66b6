"""The observers of a rollout: energy, momentum, contact, constraints, and traced functions.

Functions of the state are computed for the frames that are kept, after the steps; what happens inside steps
(work and forces of contact) is carried and recorded by the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from dalembert.algorithms.constraints import constraint_equations
from dalembert.algorithms.energy_momentum import centroidal_momentum, kinetic_energy, potential_energy
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.api import kinematics
from dalembert.api.records import Poses
from dalembert.call.arguments import Array, ArrayArgument
from dalembert.compiler.compiled import compile
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.lowering import Recipe
from dalembert.compiler.recording import kept_kernel, record_function
from dalembert.errors import ArgumentError, DtypeError, UnknownNameError, items_of
from dalembert.model.model import Model
from dalembert.scalar import Scalar
from dalembert.simulation.initial_state import for_frames
from dalembert.simulation.sensing import Sensor, SensorSet

Observer: TypeAlias = Callable[..., Any]
Observe: TypeAlias = (
    str | Sensor | Mapping[str, Observer | Sensor] | Iterable[str | Sensor | Mapping[str, Observer | Sensor]]
)

IN_STEPS: Final = ("contact_forces", "contact_work")
"""Observers that the kernel records."""


def observers_of(observe: Any) -> dict[str, Observer | None]:
    """Return the observers by name: a function of (model, t, q, v), or None for one of the library."""
    listed = [observe] if isinstance(observe, str | Mapping) else items_of(observe)
    found: dict[str, Observer | None] = {}
    for item in listed:
        if isinstance(item, str):
            if item not in (*IN_STEPS, *_OF_STATES):
                raise UnknownNameError.of("observer", item, (*_OF_STATES, *IN_STEPS))
            found[item] = None
            continue
        if not isinstance(item, Mapping) or not all(callable(function) for function in item.values()):
            raise DtypeError(
                f"observe holds {item!r}; give names, or functions of (model, t, q, v) by name: "
                '{"height": f}'
            )
        for name, function in item.items():
            if not isinstance(name, str):
                raise DtypeError(f"observe has the name {name!r}; give text")
            if name in found or name in (*IN_STEPS, *_OF_STATES):
                raise ArgumentError(f'observe: "{name}" is taken; give each function a name of its own')
            found[name] = function
    return found


def require_contact(observers: Mapping[str, Observer | None], contact: object) -> None:
    """Refuse to observe contact in a rollout without contact."""
    for name in IN_STEPS:
        if name in observers and contact is None:
            raise ArgumentError(
                f'rollout: "{name}" cannot be observed where nothing touches; give contact="rigid"'
            )


def require_own_names(sensors: SensorSet, observers: Mapping[str, Observer | None]) -> None:
    """Refuse a sensor with the name of an observer."""
    for name, _ in sensors.sensors:
        if name in observers or name in (*IN_STEPS, *_OF_STATES):
            raise ArgumentError(f'observe: "{name}" is taken; give the sensor a name, {{"name": sensor}}')


def evaluate_observers(
    model: Model,
    observers: Mapping[str, Observer | None],
    time: Array,
    q: Array,
    v: Array,
    parameters: Mapping[str, Array],
    check: str | None = None,
) -> dict[str, Array]:
    """Evaluate the observers of states at all frames, `(…, T+1, …)`."""
    times = np.ascontiguousarray(np.broadcast_to(time, q.shape[:-1]))
    values = for_frames(model, parameters)
    result = {}
    for name, own in observers.items():
        if name in IN_STEPS:
            continue
        function = _OF_STATES[name] if own is None else own
        found = _compile_observer(model, name, function, tuple(values))(
            times, q, v, parameters=values or None, check=check
        )
        if isinstance(found, tuple):
            raise ArgumentError(
                f'observer "{name}" returns {len(found)} results; return one number, vector or list'
            )
        result[name] = np.asarray(found)
    return result


def poses_of(model: Model, time: Array, q: Array, parameters: Mapping[str, Array]) -> Poses:
    """Return the poses of the bodies at all frames."""
    if not parameters:
        return kinematics.forward_kinematics(model, q, time=time if model.time_dependent else None)
    values = for_frames(model, parameters)
    key = ("poses", tuple(values))

    def poses(model: Model, t: Scalar, q: Any) -> Any:
        found = forward_kinematics(model, q, **_time(model, t))
        placed = [found[body] for body in model.bodies]
        return [X.R.to_list() for X in placed], [X.p.to_list() for X in placed]

    if key not in model.functions:
        model.functions[key] = compile(poses, model, inputs={"t": ()}, parameters=tuple(values))
    times = np.ascontiguousarray(np.broadcast_to(time, q.shape[:-1]))
    return Poses(model, *model.functions[key](times, q, parameters=values))


def _compile_observer(
    model: Model, name: str, function: Observer, parameters: tuple[str, ...]
) -> CompiledFunction:
    """Return the kernel of an observer; one of the caller's as what it computes now."""
    arguments = (ArrayArgument("t", ()), ArrayArgument("q", (model.nq,)), ArrayArgument("v", (model.nv,)))
    values = tuple(ArrayArgument(item, np.shape(model.value(item))) for item in parameters)
    key = ("observer", name, parameters)
    if _OF_STATES.get(name) is function:
        if key not in model.functions:
            model.functions[key] = CompiledFunction(Recipe(name, function, model, arguments, values))
        return model.functions[key]  # type: ignore[no-any-return]
    own = record_function("observer", function, model, arguments, values)
    recipe = Recipe(name, own, model, arguments, values, traced=own.trace)
    return kept_kernel(model, key, (own,), lambda: CompiledFunction(recipe))


def _time(model: Model, t: Scalar) -> dict[str, Scalar]:
    return {"time": t if model.time_dependent else None}


_OF_STATES: Final[dict[str, Observer]] = {
    "energy": lambda model, t, q, v: (
        kinetic_energy(model, q, v, **_time(model, t)) + potential_energy(model, q, **_time(model, t))
    ),
    "momentum": lambda model, t, q, v: centroidal_momentum(model, q, v, **_time(model, t)),
    "constraint_error": lambda model, t, q, v: (
        constraint_equations(model, q, v, **_time(model, t)).position_error or np.zeros(0)
    ),
}
"""Functions of the state, by name."""
