"""Files of simulations: the state, and the options by which a simulation is made again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dalembert.contact.law import Law
from dalembert.contact.options import Compliant, Rigid
from dalembert.contact.pairs import ContactPair
from dalembert.control import Actuators, Servo
from dalembert.errors import ArgumentError, DalembertError, FileError, ModelError
from dalembert.formats.npz import Archive, open_archive
from dalembert.formats.resources import reported_as_file_errors
from dalembert.host.atomic_files import replacing
from dalembert.model.storage import parse
from dalembert.simulation.sensing import Sensor, SensorSet
from dalembert.simulation.sensors import KINDS

if TYPE_CHECKING:
    from dalembert.simulation.running import Simulation

FORMAT: Final = "dalembert simulation 1"

GIVEN_AGAIN: Final = ("controls", "contact", "prescribed", "sensors")
"""Options that a file may not hold, and `load` takes."""

LAWS: Final = {"rigid": Rigid, "compliant": Compliant}
"""The contact laws that a file holds, with all their numbers."""

Options = dict[str, Any]


def save(simulation: Simulation, path: Path) -> None:
    """Write a simulation as `.npz`."""
    if path.suffix.lower() != ".npz":
        raise FileError(f"{path}: a simulation is saved as .npz, not as {path.suffix or 'no ending'}")
    made = simulation.made_with
    head = {
        "format": FORMAT,
        "model": simulation.model.digest,
        "parameters": list(simulation.parameters),
        "contact": _stored_law(made["contact"]),
        "controls": _stored_controls(made["controls"]),
        "prescribed": "given" if made["prescribed"] else None,
        "sensors": _stored_sensors(made["sensors"]),
        **{name: made[name] for name in PLAIN},
    }
    with replacing(path) as file:
        arrays: dict[str, Any] = {"head": np.array(json.dumps(head, default=float)), **simulation.state()}
        np.savez(file, **arrays)


def load(make: Any, path: Path, model: Any, given: Options) -> Any:
    """Return the simulation that a file holds, made by `make`."""
    for name in given:
        if name not in GIVEN_AGAIN:
            raise ArgumentError(
                f"Simulation.load: {name} is in the file; give {', '.join(GIVEN_AGAIN)} alone, where needed"
            )
    with reported_as_file_errors(str(path)), open_archive(path) as archive:
        head = _read_head(archive)
        arrays = {name: archive.array(name, "f") for name in archive.names if name != "head"}
    if head["model"] != getattr(model, "digest", None):
        raise ModelError(
            f"{path} holds a simulation of another model than {model!r}; load the model that it was made with"
        )
    for name in GIVEN_AGAIN:
        if head[name] == "given" and name not in given:
            raise ArgumentError(
                f"{path}: {name} of this simulation cannot be stored in a file; give it again: "
                f"da.Simulation.load(path, model, {name}=…)"
            )
    try:
        found = _make_again(make, model, head, arrays, given)
        found.set_state(arrays)
    except (DalembertError, LookupError, TypeError, ValueError) as error:
        raise FileError(f"{path} holds no simulation of dalembert that can be made: {error}") from error
    return found


def _make_again(make: Any, model: Any, head: Options, arrays: Mapping[str, Any], given: Options) -> Any:
    """Return the simulation at its start."""
    options = {name: head[name] for name in PLAIN}
    for name, read in _READERS.items():
        options[name] = given[name] if head[name] == "given" else read(head[name], arrays)
    prefix = "start of "
    first = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    options["parameters"] = {name: first[name] for name in head["parameters"]} or None
    return make(model, first["q"], first["v"], dt=first["dt"], time=first["start"], **options)


PLAIN: Final = ("integrator", "external_frame", "check")
"""Options that are texts or None."""


def _read_head(archive: Archive) -> Options:
    """Return what the archive says about itself."""
    archive.check_sizes()
    try:
        said = parse(archive.text("head")) if "head" in archive.names else None
    except ModelError:  # no JSON
        said = None
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise FileError(f"{archive.path} holds no simulation of dalembert of this version")
    needed = {"model", "parameters", *GIVEN_AGAIN, *PLAIN}
    if missing := sorted(needed - said.keys()):
        raise FileError(f'{archive.path} holds no simulation of dalembert: its head has no "{missing[0]}"')
    return said


def _stored_law(law: object) -> object:
    """Return a contact law as JSON, or "given" for one that only Python can hold."""
    for name, kind in LAWS.items():
        if isinstance(law, kind):
            numbers = _options(law)
            shapes = numbers["pairs"] if not isinstance(numbers["pairs"], str) else None
            own = any(isinstance(pair, ContactPair) for pair in shapes or ())
            return "given" if own else {"law": name, **numbers}
    return "given" if isinstance(law, Law) else None


def _law(entry: Any, _: Mapping[str, Any]) -> object:
    if entry is None:
        return None
    return LAWS[entry["law"]](**{name: value for name, value in entry.items() if name != "law"})


def _stored_controls(controls: object) -> str | None:
    """Return what kind of controls a simulation has; "given" for functions."""
    if isinstance(controls, Servo):
        return "given" if callable(controls.q_ref) or callable(controls.v_ref) else "servo"
    if isinstance(controls, Actuators):
        return "given" if callable(controls.ctrl) else "actuators"
    return None if controls is None else "given"


def _controls(entry: Any, arrays: Mapping[str, Any]) -> object:
    if entry == "servo":
        names = ("kp", "kd", "effort", "no_load_speed", "stall", "q_ref", "v_ref")
        known = {name: arrays[f"start of {name}"] for name in names if f"start of {name}" in arrays}
        return Servo(**known, delay=_delay(arrays))
    return Actuators(delay=_delay(arrays)) if entry == "actuators" else None


def _delay(arrays: Mapping[str, Any]) -> Any:
    return np.asarray(arrays.get("start of delay", 0)).astype(int)


def _stored_sensors(sensors: SensorSet) -> object:
    """Return sensors as JSON; "given" where one is a function."""
    if sensors.has_functions:
        return "given"
    return {name: [type(sensor).__name__, _options(sensor)] for name, sensor in sensors.sensors}


def _options(value: Any) -> dict[str, Any]:
    return {item.name: getattr(value, item.name) for item in fields(value)}


def _sensors(entry: Any, _: Mapping[str, Any]) -> dict[str, Sensor]:
    kinds = {kind.__name__: kind for kind in KINDS}
    return {name: kinds[kind](**options) for name, (kind, options) in entry.items()}


_READERS: Final[dict[str, Callable[[Any, Mapping[str, Any]], Any]]] = {
    "contact": _law,
    "controls": _controls,
    "prescribed": lambda entry, _: entry,
    "sensors": _sensors,
}
"""What makes an option of an entry of the head and of the arrays of a file."""
