"""Abstract base classes of shapes and of solids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from dalembert.errors import ArgumentError, ModelError, items_of
from dalembert.model.checks import is_finite, placement_or_identity
from dalembert.spatial import Mat3, Placement, RigidInertia, SymMat3, Transform, Vec3

GREY = (0.6, 0.6, 0.65, 1.0)
"""The colour of a shape that was given none."""
ALL_GROUPS = 2**32 - 1
"""The mask that has every group."""
USUAL_FRICTION = (1.0, 0.005, 0.0001)
"""Coefficients of sliding, torsional and rolling friction between two shapes of which neither has its own."""


def positive(value: Any, what: str) -> float:
    if not is_finite(value) or value <= 0.0:
        raise ModelError(f"{what} is {value!r}; give a finite positive number [m]")
    return float(value)


def triple(values: Any, what: str) -> tuple[float, float, float]:
    items = items_of(values)
    if len(items) != 3:
        raise ModelError(f"{what} has {len(items)} numbers; give three")
    return items[0], items[1], items[2]


def checked_friction(given: Any, what: str) -> tuple[float, float, float]:
    """Return the coefficients of sliding, torsional and rolling friction after checking them."""
    numbers = items_of(given)
    if len(numbers) != 3 or not all(is_finite(c) and c >= 0.0 for c in numbers):
        raise ModelError(f"{what}: friction is {given!r}; give three finite numbers, none negative")
    return float(numbers[0]), float(numbers[1]), float(numbers[2])


def checked_restitution(given: Any, what: str) -> float:
    """Return the coefficient of restitution after checking it."""
    if not is_finite(given) or not 0.0 <= given <= 1.0:
        raise ModelError(f"{what}: restitution is {given!r}; give a number from 0 to 1")
    return float(given)


@dataclass(frozen=True, kw_only=True)
class Shape(ABC):
    """Abstract base: the shape's placement on its body, its appearance, and its contact properties.

    `friction` holds the sliding, torsional and rolling coefficients. With None the other shape's are used,
    and between two such shapes `USUAL_FRICTION`. (Contact uses the sliding coefficient; the others are kept
    for files.) `restitution` is the ratio of normal velocities. `group` and `collides_with` are bit masks:
    shapes a and b may touch if a.group & b.collides_with or b.group & a.collides_with is not zero, and both
    have `collision`.
    """

    kind: ClassVar[str]

    name: str = ""
    placement: Placement = field(default_factory=Transform.identity)
    rgba: tuple[float, float, float, float] = GREY
    visual: bool = True
    collision: bool = True
    friction: tuple[float, float, float] | None = None
    restitution: float = 0.0
    group: int = 1
    collides_with: int = 1

    def __post_init__(self) -> None:
        self._check_size()
        if not isinstance(self.name, str):
            raise ModelError(f"{self.kind}: name is {self.name!r}; give text")
        colour = items_of(self.rgba)
        if len(colour) != 4 or not all(is_finite(c) and 0.0 <= c <= 1.0 for c in colour):
            raise ModelError(f"{self.kind}: rgba is {self.rgba!r}; give four numbers from 0 to 1")
        for name in ("group", "collides_with"):
            given = getattr(self, name)
            number = is_finite(given) and not isinstance(given, bool)
            mask = int(given) if number else -1
            if not number or mask != given or not 0 <= mask <= ALL_GROUPS:
                raise ModelError(
                    f"{self.kind}: {name} is {given!r}; give a bit mask, an int from 0 to 2^32 - 1"
                )
            self._put(name, mask)
        self._put("placement", placement_or_identity(self.placement, f"{self.kind}: placement"))
        self._put("rgba", tuple(float(c) for c in colour))
        if self.friction is not None:
            self._put("friction", checked_friction(self.friction, self.kind))
        self._put("restitution", checked_restitution(self.restitution, self.kind))

    @abstractmethod
    def _check_size(self) -> None:
        """Refuse sizes that are not positive and finite; keep them as floats."""

    def _put(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def data(self) -> Iterator[tuple[str, Any]]:
        """Yield the fields by name that are saved with a model."""
        for item in fields(self):
            if item.metadata.get("saved", True):
                yield item.name, getattr(self, item.name)


class Solid(Shape):
    """Abstract base of shapes with a volume."""

    @property
    @abstractmethod
    def volume(self) -> float:
        """The volume [m^3]."""

    def inertia(self, *, mass: float | None = None, density: float | None = None) -> RigidInertia:
        """Return the inertia in body coordinates from the mass [kg] or the density [kg/m^3]."""
        if (mass is None) == (density is None):
            raise ArgumentError(f"{self.kind}: give either mass or density")
        m = mass if mass is not None else density * self.volume  # type: ignore[operator]
        if not is_finite(m) or m < 0.0:
            raise ModelError(f"{self.kind}: mass is {m!r} kg; give a finite number that is not negative")
        return self._inertia_of(float(m))

    @abstractmethod
    def _inertia_of(self, mass: float) -> RigidInertia:
        """Return the inertia in body coordinates for the mass [kg]."""


class CentredSolid(Solid):
    """Abstract base of solids whose principal axes are their own; their own fields are lengths [m]."""

    def _check_size(self) -> None:
        for item in fields(self):
            given, what = getattr(self, item.name), f"{self.kind}: {item.name}"
            if item.name in ("size", "radii"):
                self._put(item.name, tuple(positive(length, what) for length in triple(given, what)))
            elif not item.kw_only:
                self._put(item.name, positive(given, what))

    @abstractmethod
    def _moments(self) -> tuple[float, float, float]:
        """Return the principal moments per unit mass [m^2] about the shape's own axes."""

    def _inertia_of(self, mass: float) -> RigidInertia:
        A, B, C = (mass * moment for moment in self._moments())
        X = self.placement.as_transform()
        R: Mat3 = X.R
        rotated = R @ Mat3(A, 0.0, 0.0, 0.0, B, 0.0, 0.0, 0.0, C) @ R.transpose()
        xx, xy, xz, _, yy, yz, _, _, zz = rotated
        return RigidInertia(mass, Vec3(*X.p), SymMat3(xx, yy, zz, xy, xz, yz))


def checked_shape(shape: object, what: str) -> Shape:
    """Return the shape after checking its type."""
    if not isinstance(shape, Shape):
        own = type(shape).__name__
        other = "da.shapes.Ellipsoid, " if own == "EllipsoidJoint" else ""
        raise ModelError(f"{what}: {own} is no shape; use {other}Box(…), Sphere(…), Plane(), …")
    return shape
