"""Shapes: abstract bases, solids whose principal axes are their own, and shapes without a volume."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, final

import numpy as np

from dalembert.errors import ArgumentError, ModelError, items_of
from dalembert.model.checks import is_finite, placement_or_identity
from dalembert.model.joints.subspaces import basis_around
from dalembert.spatial import Mat3, Placement, RigidInertia, SymMat3, Transform, Vec3

GREY = (0.6, 0.6, 0.65, 1.0)
"""The colour of a shape that was given none."""
ALL_GROUPS = 2**32 - 1
"""The mask that has every group."""
USUAL_FRICTION = (1.0, 0.005, 0.0001)
"""Coefficients of sliding, torsional and rolling friction between two shapes of which neither has its own."""

CONDIMS = (1, 3, 4, 6)
"""The numbers of directions in which a contact may act: the normal; the surface; turning about the normal;
and turning across it."""


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


def checked_pair_friction(given: Any, what: str) -> tuple[float, ...]:
    """Return the three coefficients of a pair, or four, after checking them."""
    numbers = items_of(given)
    if len(numbers) != 4:
        return checked_friction(given, what)
    if not all(is_finite(c) and c >= 0.0 for c in numbers):
        raise ModelError(f"{what}: friction is {given!r}; give finite numbers, none negative")
    return tuple(float(c) for c in numbers)


def checked_condim(given: Any, what: str) -> int:
    """Return the number of directions in which a contact acts after checking it."""
    if not is_finite(given) or given not in CONDIMS:
        raise ModelError(
            f"{what}: condim is {given!r}; give 1 (no friction), 3 (sliding), 4 (and torsional) or 6 (and "
            "rolling friction)"
        )
    return int(given)


def checked_restitution(given: Any, what: str) -> float:
    """Return the coefficient of restitution after checking it."""
    if not is_finite(given) or not 0.0 <= given <= 1.0:
        raise ModelError(f"{what}: restitution is {given!r}; give a number from 0 to 1")
    return float(given)


@dataclass(frozen=True, kw_only=True)
class Shape(ABC):
    """Abstract base: the shape's placement on its body, its appearance, and its contact properties.

    `friction` holds the coefficients of sliding friction, a number, and of torsional and rolling friction,
    lengths [m]: a torque is at most that times the normal force. A contact uses the larger coefficients of
    its two shapes, those of the other shape if one has None, and `USUAL_FRICTION` if both do. `condim` is the
    number of directions in which it acts, the larger of the two: 1, no friction; 3, sliding friction; 4,
    torsional friction too; 6, rolling friction too. `restitution` is the ratio of normal velocities. `group`
    and `collides_with` are bit masks:
    shapes a and b may touch if a.group & b.collides_with or b.group & a.collides_with is not zero, and both
    have `collision`. `link` names the link of a file that the shape belongs to, if that was merged into
    another body.
    """

    kind: ClassVar[str]

    name: str = ""
    placement: Placement = field(default_factory=Transform.identity)
    rgba: tuple[float, float, float, float] = GREY
    visual: bool = True
    collision: bool = True
    friction: tuple[float, float, float] | None = None
    condim: int = 3
    restitution: float = 0.0
    group: int = 1
    collides_with: int = 1
    link: str = ""

    def __post_init__(self) -> None:
        self._check_size()
        for own in ("name", "link"):
            if not isinstance(getattr(self, own), str):
                raise ModelError(f"{self.kind}: {own} is {getattr(self, own)!r}; give text")
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
        self._put("condim", checked_condim(self.condim, self.kind))
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


# Solids whose principal axes are their own. Sizes are in metres.


@final
@dataclass(frozen=True)
class Box(CentredSolid):
    """A box with edges of the given full lengths along x, y, z.

    >>> da.shapes.Box((2.0, 1.0, 0.5)).inertia(mass=3.0).inertia_at_com.xx
    0.3125
    """

    kind = "box"
    size: tuple[float, float, float]

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

    >>> da.shapes.Sphere(0.5).inertia(mass=1.0).inertia_at_com.xx
    0.1
    """

    kind = "sphere"
    radius: float

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

    >>> da.shapes.Cylinder(radius=0.5, length=1.0).inertia(mass=8.0).inertia_at_com.zz
    1.0
    """

    kind = "cylinder"
    radius: float
    length: float

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

    >>> thigh = da.shapes.Capsule.between((0, 0, 0), (0, 0, -0.4), radius=0.06)
    >>> thigh.length, round(thigh.volume, 6)
    (0.4, 0.005429)
    """

    kind = "capsule"
    radius: float
    length: float

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
    """Return the inertia of a body of several solids of one density [kg/m^3]; overlaps count twice."""
    return sum((shape.inertia(density=density) for shape in shapes), RigidInertia.zero())


# Shapes without a volume to weigh: a plane, a height field, a mesh file. Sizes are in metres.


@final
@dataclass(frozen=True)
class Plane(Shape):
    """The half space below z = 0 of the placement; it has no volume to weigh.

    >>> builder = da.ModelBuilder()
    >>> builder.add_shape("world", da.shapes.Plane(friction=(0.8, 0.005, 0.0001)))
    """

    kind = "plane"

    def _check_size(self) -> None:
        pass


@final
@dataclass(frozen=True)
class HeightField(Shape):
    """Ground given by its heights z [m] on a grid, centred at the placement; solid below.

    `heights[i][k]` stands at x = (k / (columns - 1) - 1/2) size[0], y = (i / (rows - 1) - 1/2) size[1]. Each
    cell of the grid is two triangles, parted by the diagonal from its corner (i, k) to (i + 1, k + 1), as in
    MuJoCo. Beyond the grid there is nothing.

    >>> slope = da.shapes.HeightField([[0.0, 1.0], [0.0, 1.0]], size=(2.0, 4.0))
    >>> slope.height_at(0.5, 0.3)
    0.75
    """

    kind = "height_field"
    heights: Sequence[Sequence[float]]
    size: tuple[float, float]

    def _check_size(self) -> None:
        try:
            heights = np.array(self.heights, dtype=np.float64)
        except Exception as error:  # any exception that a foreign array raises
            raise ModelError(f"height field: heights must be rows of equal length: {error}") from error
        if heights.ndim != 2 or min(heights.shape) < 2:
            raise ModelError(
                f"height field: heights has the shape {heights.shape}; give two rows and two columns or more"
            )
        if not np.isfinite(heights).all():
            raise ModelError("height field: a height is not finite")
        size = tuple(items_of(self.size))
        if len(size) != 2:
            raise ModelError(f"height field: size has {len(size)} numbers; give two, along x and y")
        self._put("heights", tuple(map(tuple, heights.tolist())))
        self._put("size", tuple(positive(s, "height field: size") for s in size))

    def height_at(self, x: float, y: float) -> float:
        """Return the height z [m] of the surface at x, y in the shape's own frame."""
        rows, columns = len(self.heights), len(self.heights[0])
        u = (x / self.size[0] + 0.5) * (columns - 1)
        v = (y / self.size[1] + 0.5) * (rows - 1)
        if not (0.0 <= u <= columns - 1 and 0.0 <= v <= rows - 1):
            raise ArgumentError(f"height field: there is no ground at x = {x}, y = {y}")
        k, i = min(int(u), columns - 2), min(int(v), rows - 2)
        u, v = u - k, v - i
        low, high = self.heights[i][k], self.heights[i + 1][k + 1]
        if u >= v:
            return low + u * (self.heights[i][k + 1] - low) + v * (high - self.heights[i][k + 1])
        return low + v * (self.heights[i + 1][k] - low) + u * (high - self.heights[i + 1][k])


@final
@dataclass(frozen=True)
class Mesh(Shape):
    """A reference to a mesh file, scaled along x, y, z; the file is read by whoever draws or collides it.

    `readable` is False where a model file named a mesh that is missing or lies outside the folders that the
    file may name: such a mesh is never opened. It is not saved: every load decides it anew.

    >>> da.shapes.Mesh("meshes/hand.stl", scale=(0.001, 0.001, 0.001)).path
    'meshes/hand.stl'
    """

    kind = "mesh"
    path: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    readable: bool = field(default=True, compare=False, repr=False, metadata={"saved": False})

    def _check_size(self) -> None:
        scale = triple(self.scale, "mesh: scale")
        if not all(is_finite(s) and s != 0.0 for s in scale):
            raise ModelError(f"mesh: scale is {self.scale!r}; give three finite numbers, none zero")
        if not isinstance(self.path, str) or not self.path:
            raise ModelError("mesh: path is empty; name the mesh file")
        self._put("scale", tuple(float(s) for s in scale))
