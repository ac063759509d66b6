"""One line of the table of `physics.py`, and the bodies that several of its experiments use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import dalembert as da
from dalembert.model.shapes import Shape

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Findings: TypeAlias = Iterator["Finding"]

G = 9.81
UPRIGHT = (1.0, 0.0, 0.0, 0.0)


class Finding(NamedTuple):
    """A law, what it says, what was found, and the bar."""

    law: str
    expected: str
    found: str
    bar: str
    holds: bool


def below(law: str, expected: str, found: float, bar: float, unit: str = "") -> Finding:
    """What must not exceed its bar."""
    return Finding(law, expected, f"{found:.2g}{unit}", f"<= {bar:g}{unit}", bool(found <= bar))


def greatest(*values: Any) -> float:
    """The greatest number; NaN, which meets no bar, if one is."""
    return max((float(np.max(value)) for value in values), key=lambda x: np.inf if np.isnan(x) else x)


def body(
    shapes: Sequence[Shape],
    mass: float,
    moments: Sequence[float],
    *,
    friction: float = 0.5,
    restitution: float = 0.0,
    gravity: float = G,
) -> da.Model:
    """A free body over level ground, which has the friction."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -gravity))
    builder.add_body("body", "world", da.Free(), inertia=da.RigidInertia(mass, (0.0, 0.0, 0.0), moments))
    for shape in shapes:
        builder.add_shape("body", replace(shape, friction=(0.0, 0.0, 0.0)))
    return builder.build().with_ground(friction=friction, restitution=restitution)


def ball(radius: float, mass: float, **options: float) -> da.Model:
    """A solid sphere."""
    return body([da.shapes.Sphere(radius)], mass, (0.4 * mass * radius**2,) * 3, **options)


def block(size: tuple[float, float, float], mass: float) -> da.RigidInertia:
    """The inertia of a solid box."""
    x, y, z = (length**2 * mass / 12.0 for length in size)
    return da.RigidInertia(mass, (0.0, 0.0, 0.0), (y + z, x + z, x + y))
