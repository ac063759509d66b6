"""A fluid around the bodies, such as water or air, and the shapes by which it resists their motion.

The fluid has no motion of its own but a uniform wind, and no buoyancy. Each shape stands for a part of a
body: a box of the given edges, or an ellipsoid of the given half axes, with the coefficients of MuJoCo's
models of the same names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from dalembert.errors import ModelError, items_of, short_repr
from dalembert.model import checks
from dalembert.spatial import Placement, Vec3

COEFFICIENTS: Final = ("blunt drag", "slender drag", "angular drag", "Kutta lift", "Magnus lift")
"""The coefficients of an ellipsoid, in order."""


@dataclass(frozen=True, slots=True)
class DragShape:
    """A part of a body that moves in the fluid, in the frame `placement` on the body.

    `coefficients`: None for a box of the edges `size` [m]; five numbers for an ellipsoid of the half axes
    `size`, with `added_inertia` per density of the fluid: masses [m^3] and moments [m^5] along the axes.
    """

    name: str
    body: str
    placement: Placement
    size: tuple[float, float, float]
    coefficients: tuple[float, ...] | None = None
    added_inertia: tuple[float, ...] = (0.0,) * 6


@dataclass(frozen=True, slots=True)
class Fluid:
    """A fluid of uniform density [kg/m^3], viscosity [Pa s] and wind [m/s], and the shapes it resists."""

    density: float
    viscosity: float
    wind: Vec3
    shapes: tuple[DragShape, ...] = ()


def checked_fluid(density: Any, viscosity: Any, wind: Any) -> Fluid:
    """Return a fluid of finite numbers."""
    for what, number in (("density", density), ("viscosity", viscosity)):
        if not checks.is_finite(number) or number < 0.0:
            raise ModelError(
                f"set_fluid: {what} is {short_repr(number)}; give a finite number that is not negative"
            )
    velocity = _numbers("set_fluid: wind", wind, 3)
    return Fluid(float(density), float(viscosity), Vec3(*velocity))


def checked_drag_shape(
    name: str, body: str, size: Any, placement: Placement, coefficients: Any, added_inertia: Any
) -> DragShape:
    """Return a shape of finite numbers and positive size."""
    what = f'drag shape "{checks.valid_name(name, "the name of a drag shape")}"'
    x, y, z = _numbers(f"{what}: size", size, 3)
    if min(x, y, z) <= 0.0:
        raise ModelError(f"{what} has the size {short_repr(size)}; give three lengths above zero [m]")
    given = (
        None if coefficients is None else _numbers(f"{what}: coefficients", coefficients, len(COEFFICIENTS))
    )
    added = _numbers(f"{what}: added_inertia", added_inertia, 6)
    return DragShape(name, body, placement, (x, y, z), given, added)


def _numbers(what: str, given: Any, count: int) -> tuple[float, ...]:
    found = items_of(given)
    if len(found) != count or not all(checks.is_finite(x) for x in found):
        raise ModelError(f"{what} is {short_repr(given)}; give {count} finite numbers")
    return tuple(float(x) for x in found)
