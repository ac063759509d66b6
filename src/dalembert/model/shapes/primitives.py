"""Solids whose principal axes are their own. Sizes are in metres."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from dalembert.errors import ArgumentError, ModelError, items_of
from dalembert.model.checks import is_finite
from dalembert.model.joints.subspaces import basis_around
from dalembert.model.shapes.shape import CentredSolid, Shape, Solid, positive, triple
from dalembert.spatial import Mat3, RigidInertia, Transform, Vec3


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
        except Exception as error:  # of somebody's array, whatever it is
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
