"""The triangles of a drawing in the world."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.spatial.rotations import rotation_of_quaternion
from dalembert.viewer.shape_data import Drawing
from dalembert.viewer.solids import mesh_surface, unit_solid

__all__ = ["PlacedSurface", "rotation_of", "surfaces"]

Array: TypeAlias = npt.NDArray[np.float64]


class PlacedSurface(NamedTuple):
    """One shape: its body (-1 the world), corners and normals (m, 3, 3) of its triangles, its colour (3,)."""

    body: int
    corners: Array
    normals: Array
    colour: list[float]


def surfaces(drawing: Drawing, rotation: Array, translation: Array) -> Iterator[PlacedSurface]:
    """Yield every visible shape, with the bodies at rotations (bodies, 3, 3) and translations (bodies, 3)."""
    for shape in drawing.shapes:
        if shape["collision"] or shape["kind"] == "plane" or shape["colour"][3] < 0.05:
            continue
        mesh = shape.get("mesh")
        surface = unit_solid(shape["kind"]) if mesh is None else mesh_surface(drawing.triangles[mesh])
        R, p = rotation_of(shape), np.array(shape["position"])
        body = shape["body"]
        if body >= 0:
            R, p = rotation[body] @ R, rotation[body] @ p + translation[body]
        corners, normals = surface.place(np.array(shape["scale"]), shape.get("stretch", 0.0), R, p)
        yield PlacedSurface(body, corners, normals, shape["colour"][:3])


def rotation_of(shape: dict[str, Any]) -> Array:
    """Return the axes of a shape on its body, as columns."""
    found: Array = np.array(rotation_of_quaternion(shape["rotation"]).to_list())
    return found
