"""Checks of the arguments of `da.rollout`, before anything is compiled."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.stepping import INTEGRATORS
from dalembert.call.arguments import as_array, short_repr, whole_number
from dalembert.contact.options import Compliant, Rigid
from dalembert.errors import ArgumentError, DtypeError, ShapeError, require_choice
from dalembert.host.foreign_arrays import is_foreign
from dalembert.host.memory_limits import require_memory
from dalembert.model.model import Model
from dalembert.simulation.step_function import DEFAULT_INTEGRATOR

__all__ = [
    "Contact",
    "batch_of",
    "checked_contact",
    "checked_frame",
    "checked_integrator",
    "checked_start",
    "checked_steps",
    "require_function",
    "require_room",
    "whole",
]

Array: TypeAlias = npt.NDArray[Any]
Contact: TypeAlias = str | Rigid | Compliant | None

CONTACTS: Final = ("rigid", "compliant")
FRAMES: Final = ("body", "world", "center")

MAX_STEPS: Final = 2**53
"""Steps are counted in float64 beside the state, which is exact up to this number."""

FEWER_FRAMES: Final = "take fewer steps or samples, or keep a frame every so many steps, such as every=100"


def checked_contact(model: Model, contact: Contact) -> Rigid | Compliant | None:
    """Return the law of contact with its options; None without contact."""
    if contact is None:
        return None
    if isinstance(contact, str):
        require_choice("contact", contact, CONTACTS)
        contact = Rigid() if contact == "rigid" else Compliant()
    if not isinstance(contact, Rigid | Compliant):
        raise DtypeError(
            f'rollout: contact is {type(contact).__name__}; give None, "rigid", "compliant", '
            "da.contact.Rigid(…) or da.contact.Compliant(…)"
        )
    if model.time_dependent or model.closure is not None:
        what = "joints that depend on time" if model.time_dependent else "a loop closure q = gamma(y)"
        raise ArgumentError(f"rollout: steps with contact do not know {what}; leave contact away")
    return contact


def checked_integrator(name: str | None, contact: Rigid | Compliant | None) -> str:
    """Return the name of the integrator, if it goes with that contact."""
    if name is None:
        return DEFAULT_INTEGRATOR
    require_choice("integrator", name, INTEGRATORS)
    if contact is not None and name != "semi_implicit":
        raise ArgumentError(
            f'rollout: integrator="{name}" is for motion without contact; a step with contact is '
            "semi-implicit"
        )
    return name


def checked_frame(name: str) -> str:
    """Return the frame of external forces."""
    require_choice("external_frame", name, FRAMES)
    return name


def checked_steps(steps: object, controls: object, every: int) -> int:
    """Return the number of steps: as given, or that of the controls."""
    if steps is None:
        shape = _shape_of(controls)
        if len(shape) < 2:
            raise ArgumentError("rollout: say how many steps to take: steps=1000")
        steps = shape[-2]
    count = whole("steps", steps)
    if count % every:
        raise ArgumentError(
            f"rollout: {count} steps are not a multiple of every={every}, so that no frame is at the end"
        )
    return count


def _shape_of(controls: Any) -> tuple[int, ...]:
    if controls is None or callable(controls):
        return ()
    return tuple(controls.shape) if is_foreign(controls) else as_array("controls", controls, ()).shape


def whole(name: str, value: Any) -> int:
    """Return a whole number of steps from 1 on."""
    return whole_number(f"rollout: {name}", value, 1, MAX_STEPS)


def require_room(model: Model, batch: tuple[int, ...], frames: int) -> None:
    """Refuse a trajectory whose positions and velocities alone exceed the memory of this machine."""
    size = 8 * math.prod(batch) * (frames + 1) * (model.nq + model.nv + 1)
    require_memory(f"rollout: {frames} frames of {math.prod(batch)} samples", size, FEWER_FRAMES)


def checked_start(time: object) -> float:
    """Return the time of the first frame [s]."""
    if isinstance(time, int | float | np.integer | np.floating) and not isinstance(time, bool):
        with contextlib.suppress(OverflowError):  # an int beyond all floats
            if math.isfinite(float(time)):
                return float(time)
    raise ArgumentError(f"rollout: start is {short_repr(time)}; give a finite time [s]")


def require_function(name: str, given: object, arguments: str) -> None:
    """Refuse what cannot be called."""
    if given is not None and not callable(given):
        raise ArgumentError(f"rollout: {name} is {short_repr(given)}; give a function of ({arguments})")


def batch_of(shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the common batch shape of arguments with these batch shapes."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except (ValueError, RuntimeError):  # the latter for too many axes
        told = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
        raise ShapeError(
            f"rollout: the arguments have different batches: {told}; they must agree, or be 1 along an axis"
        ) from None
