"""Sliders that move a model: one for each coordinate, three angles for each quaternion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.api import close_loops
from dalembert.errors import ArgumentError, DalembertError
from dalembert.model.body import Body
from dalembert.model.model import Model
from dalembert.spatial.rotations import (
    euler_angles_of_rotation,
    quaternion_of_rotation,
    rotation_of_euler_angles,
    rotation_of_quaternion,
)

__all__ = ["Slider", "configuration_of", "has_loops", "sliders_of", "values_of"]

Array: TypeAlias = npt.NDArray[np.float64]

UNLIMITED: Final = {"angle": (-math.pi, math.pi), "length": (-2.0, 2.0)}
"""Ranges of coordinates without limits, by what they measure [rad, m]."""
TURNS: Final = ("yaw", "pitch", "roll")
"""A quaternion as rotations about z, then the new y, then the new x."""


@final
@dataclass(frozen=True)
class Slider:
    """One slider: of which joint, its name and unit there, and its range; `turn` 0 to 2 for an angle of the
    quaternion that starts at `place` in q, -1 for the coordinate there.
    """

    joint: str
    name: str
    unit: str
    low: float
    high: float
    place: int
    turn: int = -1


def sliders_of(model: Model) -> list[Slider]:
    """Return the sliders of a model, in the order of its joints; joints that a coupling moves have none."""
    return [slider for body in model.bodies if body.dependence is None for slider in _of_joint(body)]


def _of_joint(body: Body) -> list[Slider]:
    found = []
    start, coordinates = body.q_slice.start, body.joint.coordinates
    quaternions = {part.start for part in body.joint.unit_quaternions}
    inside = {k for part in body.joint.unit_quaternions for k in range(part.start, part.stop)}
    for k, what in enumerate(coordinates):
        if k in quaternions:
            found += [
                Slider(
                    body.joint_name,
                    name,
                    "rad",
                    -bound,
                    bound,
                    start + k,
                    turn,
                )
                for turn, (name, bound) in enumerate(zip(TURNS, (math.pi, math.pi / 2.0, math.pi)))
            ]
        elif k not in inside:
            low, high = _range(body, k, what)
            unit = "m" if what == "length" else "rad"
            found.append(Slider(body.joint_name, _name(coordinates, k), unit, low, high, start + k))
    return found


def _name(coordinates: tuple[str, ...], k: int) -> str:
    """Return x, y, z for a joint with three lengths; else angle or length, numbered if there are several."""
    what = coordinates[k]
    alike = [i for i, other in enumerate(coordinates) if other == what]
    if what == "length" and len(alike) == 3:
        return "xyz"[alike.index(k)]
    return what if len(alike) == 1 else f"{what} {alike.index(k) + 1}"


def _range(body: Body, k: int, what: str) -> tuple[float, float]:
    limits = body.limits
    bounds = [x if isinstance(x, (int, float)) else x[k] for x in (limits.lower, limits.upper)]
    low, high = (
        float(bound) if math.isfinite(bound) else other
        for bound, other in zip(bounds, UNLIMITED.get(what, (-1.0, 1.0)))
    )
    return (low, high) if low < high else (low, low + 1e-6)


def values_of(sliders: list[Slider], q: Array) -> list[float]:
    """Return the positions of the sliders for a configuration (nq,)."""
    angles: dict[int, list[Any]] = {}
    found = []
    for slider in sliders:
        if slider.turn < 0:
            found.append(float(q[slider.place]))
            continue
        if slider.place not in angles:
            R = rotation_of_quaternion(q[slider.place : slider.place + 4].tolist())
            angles[slider.place] = euler_angles_of_rotation("zyx", R)
        found.append(float(angles[slider.place][slider.turn]))
    return found


def configuration_of(model: Model, sliders: list[Slider], values: Any, *, moved: int | None = None) -> Array:
    """Return the configuration (nq,) for values of the sliders.

    Loops are closed as near as can be, with the joint of the slider `moved` held where it closes then.
    """
    numbers = np.array(values, dtype=np.float64)
    if numbers.shape != (len(sliders),) or not np.isfinite(numbers).all():
        raise ArgumentError(f"expected {len(sliders)} finite numbers for the sliders")
    q = model.neutral()
    for slider, value in zip(sliders, numbers):
        if slider.turn < 0:
            q[slider.place] = value
    for k, slider in enumerate(sliders):
        if slider.turn == 0:
            R = rotation_of_euler_angles("zyx", numbers[k : k + 3].tolist())
            q[slider.place : slider.place + 4] = quaternion_of_rotation(R)
    if not has_loops(model):
        return q
    if moved is not None:
        try:
            return np.asarray(close_loops(model, q, hold=[sliders[moved].joint], tolerance=1e-6))
        except DalembertError:  # out of reach: the joint gives way
            pass
    return np.asarray(close_loops(model, q, tolerance=1e-6))


def has_loops(model: Model) -> bool:
    """Return whether moving one joint may require others to move."""
    return bool(model.loop_names)
