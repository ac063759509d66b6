"""Shapes of ours as MJCF geoms."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, final

import numpy as np

from dalembert.errors import FileError
from dalembert.formats.document import MAX_ATTRIBUTE_BYTES
from dalembert.formats.mjcf_geometry import DEFAULT_FRICTION_PRIORITY
from dalembert.formats.mjcf_writer_lines import Lines, placement_attributes
from dalembert.model.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    Ellipsoid,
    HeightField,
    Mesh,
    Plane,
    Shape,
    Sphere,
)
from dalembert.spatial import Mat3, Transform, Vec3

__all__ = ["Assets", "write_geom"]

MESH_ENDINGS: Final = (".stl", ".obj", ".msh")


FIELD_BASE: Final = 1.0
"""Depth of the ground below the lowest point of a height field [m]."""


@final
class Assets:
    """The meshes and height fields of one file, and the names of geoms given away.

    MuJoCo opens every mesh that a file names, so that only those below the file's `folder` are named.
    """

    def __init__(self, losses: list[str], folder: Path | None) -> None:
        self.folder = folder
        self.elements: dict[object, tuple[str, dict[str, str]]] = {}
        self.names: set[str] = set()
        self.losses = losses

    def write(self, lines: Lines) -> None:
        """Write the element `asset`, if it has content."""
        if self.elements:
            lines.open("asset")
            for tag, attributes in self.elements.values():
                lines.leaf(tag, **attributes)
            lines.close("asset")

    def mesh_file(self, shape: Mesh) -> str | None:
        """Return the name of the asset of a mesh shape; None if the file cannot name it."""
        if "://" in shape.path or not shape.path.lower().endswith(MESH_ENDINGS) or self.folder is None:
            return None
        folder = self.folder.resolve()
        path = (folder / shape.path).resolve()
        if not path.is_relative_to(folder) or not path.is_file():
            return None
        # Meshes that are not closed have no volume to weigh; their inertia is not used.
        attributes = {"file": path.relative_to(folder).as_posix(), "inertia": "shell"}
        if shape.scale != (1.0, 1.0, 1.0):
            attributes["scale"] = _numbers(shape.scale)
        return self._add_asset((shape.path, shape.scale), "mesh", attributes)

    def hull(self, shape: ConvexMesh) -> str:
        """Return the name of the asset of a convex mesh."""
        corners = _numbers(x for vertex in shape.vertices for x in vertex)
        return self._add_asset(shape.vertices, "mesh", {"vertex": corners})

    def height_field(self, shape: HeightField) -> str:
        """Return the name of the asset of a height field: heights above the lowest, the last row first."""
        heights = np.array(shape.heights)
        rise = float(np.ptp(heights))
        size = (shape.size[0] / 2.0, shape.size[1] / 2.0, rise or 1.0, FIELD_BASE)
        attributes = {
            "nrow": str(heights.shape[0]),
            "ncol": str(heights.shape[1]),
            "elevation": " ".join(str(x) for x in (heights - heights.min())[::-1].ravel().astype(np.float32)),
            "size": _numbers(size),
        }
        return self._add_asset((shape.heights, shape.size), "hfield", attributes)

    def _add_asset(self, key: object, tag: str, attributes: dict[str, str]) -> str:
        if max(map(len, attributes.values())) > MAX_ATTRIBUTE_BYTES:
            raise FileError(
                f"a {'height field' if tag == 'hfield' else 'convex mesh'} has more numbers than MJCF files "
                f"hold ({MAX_ATTRIBUTE_BYTES} characters are read); save as .json"
            )
        name = f"{tag}_{len(self.elements)}"
        return self.elements.setdefault(key, (tag, {"name": name, **attributes}))[1]["name"]


def write_geom(shape: Shape, lines: Lines, assets: Assets, *, moving: bool, place: str) -> None:
    """Write a shape of a body, or of the "world", as a geom; what MJCF cannot hold is a loss."""
    attributes = _geom(shape, assets, moving=moving, place=place)
    if attributes is None:
        return
    X = shape.placement.as_transform()
    if isinstance(shape, HeightField):
        X = X @ Transform(Mat3.identity(), Vec3(0.0, 0.0, float(np.min(shape.heights))))
    lines.leaf("geom", **attributes, **placement_attributes(X))


def _geom(shape: Shape, assets: Assets, *, moving: bool, place: str) -> dict[str, str] | None:
    """Return the attributes of a shape but its placement; None, with a loss, for what MJCF cannot hold."""
    what = f'shape "{shape.name}" of body "{place}"' if shape.name else f'a {shape.kind} of body "{place}"'
    attributes = {"type": shape.kind}
    if isinstance(shape, Plane) and moving:
        assets.losses.append(f"{what}: planes can only stand still in MJCF; it is left out")
        return None
    if isinstance(shape, Mesh):
        asset = assets.mesh_file(shape)
        if asset is None:
            assets.losses.append(
                f'{what}: the mesh "{shape.path}" is not an STL or OBJ file below the folder of the MJCF '
                "file; it is left out"
            )
            return None
        attributes["mesh"] = asset
    elif isinstance(shape, ConvexMesh):
        attributes = {"type": "mesh", "mesh": assets.hull(shape)}
    elif isinstance(shape, HeightField):
        attributes = {"type": "hfield", "hfield": assets.height_field(shape)}
    else:
        attributes["size"] = _numbers(_size(shape))
    if shape.name and shape.name not in assets.names:
        assets.names.add(shape.name)
        attributes = {"name": shape.name, **attributes}
    elif shape.name:
        assets.losses.append(f"{what}: the name is taken; the geom has none")
    attributes["rgba"] = _numbers(shape.rgba)
    if shape.friction is None:
        attributes["priority"] = str(DEFAULT_FRICTION_PRIORITY)
    else:
        attributes["friction"] = _numbers(shape.friction)
        if not any(shape.friction):
            attributes["condim"] = "1"
    for key, mask in (("contype", shape.group), ("conaffinity", shape.collides_with)):
        own = mask if shape.collision else 0
        if own != 1:
            attributes[key] = str(own if own < 2**31 else own - 2**32)  # MuJoCo's masks are signed
    if not shape.visual:
        attributes["group"] = "3"
    if shape.restitution:
        assets.losses.append(f"{what}: restitution {shape.restitution:g} is left out")
    return attributes


def _size(shape: Shape) -> tuple[float, ...]:
    """Return the size in MJCF's numbers: half lengths and radii."""
    if isinstance(shape, Sphere):
        return (shape.radius,)
    if isinstance(shape, (Capsule, Cylinder)):
        return (shape.radius, shape.length / 2.0)
    if isinstance(shape, Box):
        return tuple(edge / 2.0 for edge in shape.size)
    if isinstance(shape, Ellipsoid):
        return shape.radii
    return (0.0, 0.0, 1.0)


def _numbers(values: Iterable[float]) -> str:
    return " ".join(repr(float(x)) for x in values)
