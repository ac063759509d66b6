"""Shapes without a volume to weigh: a plane, a height field, a mesh file. Sizes are in metres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np

from dalembert.errors import ArgumentError, ModelError, items_of
from dalembert.model.checks import is_finite
from dalembert.model.shapes.shape import Shape, positive, triple

__all__ = ["HeightField", "Mesh", "Plane"]


@final
@dataclass(frozen=True)
class Plane(Shape):
    """The half space below z = 0 of the placement; it has no volume to weigh.

    >>> builder = da.ModelBuilder()
    >>> builder.add_shape("world", da.Plane(friction=(0.8, 0.005, 0.0001)))
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

    >>> slope = da.HeightField([[0.0, 1.0], [0.0, 1.0]], size=(2.0, 4.0))
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

    >>> da.Mesh("meshes/hand.stl", scale=(0.001, 0.001, 0.001)).path
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
