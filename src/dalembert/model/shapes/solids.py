"""Solids whose principal axes are their own. Sizes are in metres."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from dalembert.model.joints.axes import basis_around
from dalembert.model.shapes.shape import CentredSolid, Solid, positive, triple
from dalembert.spatial import Mat3, RigidInertia, Transform, Vec3

__all__ = ["Box", "Capsule", "Cylinder", "Ellipsoid", "Sphere", "total_inertia"]


@final
@dataclass(frozen=True)
class Box(CentredSolid):
    """A box with edges of the given full lengths along x, y, z.

    >>> da.Box((2.0, 1.0, 0.5)).inertia(mass=3.0).inertia_at_com.xx
    0.3125
    """

    kind = "box"
    size: tuple[float, float, float]

    def _check_size(self) -> None:
        self._put("size", tuple(positive(s, "box: size") for s in triple(self.size, "box: size")))

    @property
    def volume(self) -> float:
        return math.prod(self.size)

    def _moments(self) -> tuple[float, float, float]:
        x, y, z = (s * s / 12.0 for s in self.size)
        return y + z, x + z, x + y


@final
@dataclass(frozen=True)
class Sphere(CentredSolid):
    """A sphere.

    >>> da.Sphere(0.5).inertia(mass=1.0).inertia_at_com.xx
    0.1
    """

    kind = "sphere"
    radius: float

    def _check_size(self) -> None:
        self._put("radius", positive(self.radius, "sphere: radius"))

    @property
    def volume(self) -> float:
        return 4.0 / 3.0 * math.pi * (self.radius * self.radius * self.radius)

    def _moments(self) -> tuple[float, float, float]:
        moment = 0.4 * (self.radius * self.radius)
        return moment, moment, moment


@final
@dataclass(frozen=True)
class Ellipsoid(CentredSolid):
    """An ellipsoid with the given half-axes along x, y, z."""

    kind = "ellipsoid"
    radii: tuple[float, float, float]

    def _check_size(self) -> None:
        self._put(
            "radii", tuple(positive(r, "ellipsoid: radii") for r in triple(self.radii, "ellipsoid: radii"))
        )

    @property
    def volume(self) -> float:
        return 4.0 / 3.0 * math.pi * math.prod(self.radii)

    def _moments(self) -> tuple[float, float, float]:
        x, y, z = (0.2 * r * r for r in self.radii)
        return y + z, x + z, x + y


@final
@dataclass(frozen=True)
class Cylinder(CentredSolid):
    """A cylinder about the z axis; `length` is its full height.

    >>> da.Cylinder(radius=0.5, length=1.0).inertia(mass=8.0).inertia_at_com.zz
    1.0
    """

    kind = "cylinder"
    radius: float
    length: float

    def _check_size(self) -> None:
        self._put("radius", positive(self.radius, "cylinder: radius"))
        self._put("length", positive(self.length, "cylinder: length"))

    @property
    def volume(self) -> float:
        return math.pi * (self.radius * self.radius) * self.length

    def _moments(self) -> tuple[float, float, float]:
        across = self.radius * self.radius / 4.0 + self.length * self.length / 12.0
        return across, across, self.radius * self.radius / 2.0


@final
@dataclass(frozen=True)
class Capsule(CentredSolid):
    """A cylinder about the z axis with half spheres at its ends; `length` is that of the cylinder alone.

    >>> thigh = da.Capsule.between((0, 0, 0), (0, 0, -0.4), radius=0.06)
    >>> thigh.length, round(thigh.volume, 6)
    (0.4, 0.005429)
    """

    kind = "capsule"
    radius: float
    length: float

    def _check_size(self) -> None:
        self._put("radius", positive(self.radius, "capsule: radius"))
        self._put("length", positive(self.length, "capsule: length"))

    @classmethod
    def between(cls, a: Sequence[float], b: Sequence[float], radius: float, **options: Any) -> Capsule:
        """Return the capsule whose axis runs from point a to point b [m], in body coordinates."""
        start, end = triple(a, "capsule: a"), triple(b, "capsule: b")
        axis = [y - x for x, y in zip(start, end)]
        length = positive(math.sqrt(sum(c * c for c in axis)), "capsule: the distance between its ends")
        centre = Vec3(*((x + y) / 2.0 for x, y in zip(start, end)))
        R = Mat3.from_columns(*basis_around(Vec3(*(c / length for c in axis))))
        return cls(radius=radius, length=length, placement=Transform(R, centre), **options)

    @property
    def volume(self) -> float:
        return math.pi * (self.radius * self.radius) * (self.length + 4.0 / 3.0 * self.radius)

    def _moments(self) -> tuple[float, float, float]:
        r, L = self.radius, self.length
        # Shares of the mass: cylinder, and both half spheres together.
        cylinder = L / (L + 4.0 / 3.0 * r)
        caps = 1.0 - cylinder
        along = cylinder * r * r / 2.0 + caps * 0.4 * r * r
        # A half sphere's centre of mass lies 3 r / 8 from its face; its moment across is 83/320 m r^2 there.
        from_middle = L / 2.0 + 0.375 * r
        across = cylinder * (r * r / 4.0 + L * L / 12.0) + caps * (
            83.0 / 320.0 * r * r + from_middle * from_middle
        )
        return across, across, along


def total_inertia(shapes: Sequence[Solid], *, density: float) -> RigidInertia:
    """Return the inertia of several solids of one density [kg/m^3] that make up a body; overlaps count
    twice.
    """
    total = RigidInertia.zero()
    for shape in shapes:
        total = total + shape.inertia(density=density)
    return total
