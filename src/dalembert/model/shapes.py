"""Shapes of bodies as data: for inertia, for contact, for pictures.

Sizes are in metres. A solid's `inertia` is that of a homogeneous body, in body coordinates.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, final

from dalembert.errors import ArgumentError, ModelError
from dalembert.model.body import Placement
from dalembert.model.checks import is_finite, placement_or_identity
from dalembert.model.joints.axes import basis_around
from dalembert.spatial import Mat3, RigidInertia, SymMat3, Transform, Vec3

__all__ = [
    "Box",
    "Capsule",
    "Cylinder",
    "Ellipsoid",
    "Mesh",
    "Plane",
    "Shape",
    "Solid",
    "Sphere",
    "shape_kinds",
]

GREY = (0.6, 0.6, 0.65, 1.0)
"""The colour of a shape that was given none."""


def shape_kinds() -> dict[str, type[Shape]]:
    """Every kind of shape by the name under which it is saved."""
    return {kind.kind: kind for kind in (Box, Sphere, Capsule, Cylinder, Ellipsoid, Plane, Mesh)}


def _positive(value: Any, what: str) -> float:
    if not is_finite(value) or value <= 0.0:
        raise ModelError(f"{what} is {value!r}; give a finite positive number [m]")
    return float(value)


def _triple(values: Any, what: str) -> tuple[float, float, float]:
    items = list(values)
    if len(items) != 3:
        raise ModelError(f"{what} has {len(items)} numbers; give three")
    return items[0], items[1], items[2]


@dataclass(frozen=True, kw_only=True)
class Shape(ABC):
    """Abstract base: where the shape sits on its body, how it looks, and what touches it.

    `friction` holds the sliding, torsional and rolling coefficients; `restitution` the ratio of normal
    velocities.
    """

    kind: ClassVar[str]

    name: str = ""
    placement: Placement = field(default_factory=Transform.identity)
    rgba: tuple[float, float, float, float] = GREY
    visual: bool = True
    collision: bool = True
    friction: tuple[float, float, float] = (1.0, 0.005, 0.0001)
    restitution: float = 0.0

    def __post_init__(self) -> None:
        self._check_size()
        if len(self.rgba) != 4 or not all(is_finite(c) and 0.0 <= c <= 1.0 for c in self.rgba):
            raise ModelError(f"{self.kind}: rgba is {self.rgba!r}; give four numbers from 0 to 1")
        if len(self.friction) != 3 or not all(is_finite(c) and c >= 0.0 for c in self.friction):
            raise ModelError(
                f"{self.kind}: friction is {self.friction!r}; give three finite numbers, none negative"
            )
        if not is_finite(self.restitution) or not 0.0 <= self.restitution <= 1.0:
            raise ModelError(f"{self.kind}: restitution is {self.restitution!r}; give a number from 0 to 1")
        self._put("placement", placement_or_identity(self.placement, f"{self.kind}: placement"))
        self._put("rgba", tuple(float(c) for c in self.rgba))
        self._put("friction", tuple(float(c) for c in self.friction))
        self._put("restitution", float(self.restitution))

    @abstractmethod
    def _check_size(self) -> None:
        """Refuse sizes that are not positive and finite; keep them as floats."""

    def _put(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def data(self) -> Iterator[tuple[str, Any]]:
        """The fields by name, for saving."""
        for item in fields(self):
            yield item.name, getattr(self, item.name)


class Solid(Shape):
    """Abstract base of shapes with a volume, centred at their own origin."""

    @property
    @abstractmethod
    def volume(self) -> float:
        """The volume [m^3]."""

    @abstractmethod
    def _moments(self) -> tuple[float, float, float]:
        """The principal moments per unit mass [m^2] about the shape's own axes."""

    def inertia(self, *, mass: float | None = None, density: float | None = None) -> RigidInertia:
        """The inertia in body coordinates of the homogeneous solid, from its mass [kg] or its density
        [kg/m^3].
        """
        if (mass is None) == (density is None):
            raise ArgumentError(f"{self.kind}: give either mass or density")
        m = mass if mass is not None else density * self.volume  # type: ignore[operator]
        if not is_finite(m) or m < 0.0:
            raise ModelError(f"{self.kind}: mass is {m!r} kg; give a finite number that is not negative")
        A, B, C = (float(m) * moment for moment in self._moments())
        X = self.placement.as_transform()
        R: Mat3 = X.R
        rotated = R @ Mat3(A, 0.0, 0.0, 0.0, B, 0.0, 0.0, 0.0, C) @ R.transpose()
        xx, xy, xz, _, yy, yz, _, _, zz = rotated
        return RigidInertia(float(m), Vec3(*X.p), SymMat3(xx, yy, zz, xy, xz, yz))


@final
@dataclass(frozen=True)
class Box(Solid):
    """A box with edges of the given full lengths along x, y, z."""

    kind = "box"
    size: tuple[float, float, float]

    def _check_size(self) -> None:
        self._put("size", tuple(_positive(s, "box: size") for s in _triple(self.size, "box: size")))

    @property
    def volume(self) -> float:
        return math.prod(self.size)

    def _moments(self) -> tuple[float, float, float]:
        x, y, z = (s * s / 12.0 for s in self.size)
        return y + z, x + z, x + y


@final
@dataclass(frozen=True)
class Sphere(Solid):
    """A sphere."""

    kind = "sphere"
    radius: float

    def _check_size(self) -> None:
        self._put("radius", _positive(self.radius, "sphere: radius"))

    @property
    def volume(self) -> float:
        return 4.0 / 3.0 * math.pi * self.radius**3

    def _moments(self) -> tuple[float, float, float]:
        moment = 0.4 * self.radius**2
        return moment, moment, moment


@final
@dataclass(frozen=True)
class Ellipsoid(Solid):
    """An ellipsoid with the given half-axes along x, y, z."""

    kind = "ellipsoid"
    radii: tuple[float, float, float]

    def _check_size(self) -> None:
        self._put(
            "radii", tuple(_positive(r, "ellipsoid: radii") for r in _triple(self.radii, "ellipsoid: radii"))
        )

    @property
    def volume(self) -> float:
        return 4.0 / 3.0 * math.pi * math.prod(self.radii)

    def _moments(self) -> tuple[float, float, float]:
        x, y, z = (0.2 * r * r for r in self.radii)
        return y + z, x + z, x + y


@final
@dataclass(frozen=True)
class Cylinder(Solid):
    """A cylinder about the z axis; `length` is its full height."""

    kind = "cylinder"
    radius: float
    length: float

    def _check_size(self) -> None:
        self._put("radius", _positive(self.radius, "cylinder: radius"))
        self._put("length", _positive(self.length, "cylinder: length"))

    @property
    def volume(self) -> float:
        return math.pi * self.radius**2 * self.length

    def _moments(self) -> tuple[float, float, float]:
        across = self.radius**2 / 4.0 + self.length**2 / 12.0
        return across, across, self.radius**2 / 2.0


@final
@dataclass(frozen=True)
class Capsule(Solid):
    """A cylinder about the z axis with half spheres at its ends; `length` is that of the cylinder alone."""

    kind = "capsule"
    radius: float
    length: float

    def _check_size(self) -> None:
        self._put("radius", _positive(self.radius, "capsule: radius"))
        self._put("length", _positive(self.length, "capsule: length"))

    @classmethod
    def between(cls, a: Sequence[float], b: Sequence[float], radius: float, **options: Any) -> Capsule:
        """The capsule whose axis runs from point a to point b [m], in body coordinates."""
        start, end = _triple(a, "capsule: a"), _triple(b, "capsule: b")
        axis = [y - x for x, y in zip(start, end)]
        length = _positive(math.sqrt(sum(c * c for c in axis)), "capsule: the distance between its ends")
        centre = Vec3(*((x + y) / 2.0 for x, y in zip(start, end)))
        R = Mat3.from_columns(*basis_around(Vec3(*(c / length for c in axis))))
        return cls(radius=radius, length=length, placement=Transform(R, centre), **options)

    @property
    def volume(self) -> float:
        return math.pi * self.radius**2 * (self.length + 4.0 / 3.0 * self.radius)

    def _moments(self) -> tuple[float, float, float]:
        r, L = self.radius, self.length
        # Shares of the mass: cylinder, and both half spheres together.
        cylinder = L / (L + 4.0 / 3.0 * r)
        caps = 1.0 - cylinder
        along = cylinder * r * r / 2.0 + caps * 0.4 * r * r
        # A half sphere's centre of mass lies 3 r / 8 from its face; its moment across is 83/320 m r^2 there.
        across = cylinder * (r * r / 4.0 + L * L / 12.0) + caps * (
            83.0 / 320.0 * r * r + (L / 2.0 + 0.375 * r) ** 2
        )
        return across, across, along


@final
@dataclass(frozen=True)
class Plane(Shape):
    """The half space below z = 0 of the placement; it has no volume to weigh."""

    kind = "plane"

    def _check_size(self) -> None:
        pass


@final
@dataclass(frozen=True)
class Mesh(Shape):
    """A reference to a mesh file, scaled along x, y, z; the file is read by whoever draws or collides it."""

    kind = "mesh"
    path: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def _check_size(self) -> None:
        scale = _triple(self.scale, "mesh: scale")
        if not all(is_finite(s) and s != 0.0 for s in scale):
            raise ModelError(f"mesh: scale is {self.scale!r}; give three finite numbers, none zero")
        if not isinstance(self.path, str) or not self.path:
            raise ModelError("mesh: path is empty; name the mesh file")
        self._put("scale", tuple(float(s) for s in scale))


def total_inertia(shapes: Sequence[Solid], *, density: float) -> RigidInertia:
    """The inertia of several solids of one density [kg/m^3] that make up a body; overlaps count twice."""
    total = RigidInertia.zero()
    for shape in shapes:
        total = total + shape.inertia(density=density)
    return total
