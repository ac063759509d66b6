"""Shapes of ours as MJCF geoms."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, final

from dalembert.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Mesh, Plane, Shape, Sphere

__all__ = ["Meshes", "geom"]

MESH_ENDINGS: Final = (".stl", ".obj", ".msh")


@final
class Meshes:
    """The mesh assets of one file, one for each file and scale, and the names of geoms given away.

    MuJoCo opens every mesh that a file names, so that only those below the file's `folder` are named.
    """

    def __init__(self, losses: list[str], folder: Path | None) -> None:
        self.folder = folder
        self.assets: dict[tuple[str, tuple[float, float, float]], dict[str, str]] = {}
        self.names: set[str] = set()
        self.losses = losses

    def asset(self, shape: Mesh) -> str | None:
        """The name of the asset of a mesh shape; None if the file cannot name it."""
        if "://" in shape.path or not shape.path.lower().endswith(MESH_ENDINGS) or self.folder is None:
            return None
        folder = self.folder.resolve()
        path = (folder / shape.path).resolve()
        if not path.is_relative_to(folder) or not path.is_file():
            return None
        key = (shape.path, shape.scale)
        if key not in self.assets:
            # Meshes that are not closed have no volume to weigh; their inertia is not used.
            attributes = {
                "name": f"mesh_{len(self.assets)}",
                "file": path.relative_to(folder).as_posix(),
                "inertia": "shell",
            }
            if shape.scale != (1.0, 1.0, 1.0):
                attributes["scale"] = _numbers(shape.scale)
            self.assets[key] = attributes
        return self.assets[key]["name"]


def geom(shape: Shape, meshes: Meshes, *, moving: bool, place: str) -> dict[str, str] | None:
    """The attributes of a shape but its placement; None, with a loss, for what MJCF cannot hold."""
    what = f'shape "{shape.name}" of body "{place}"' if shape.name else f'a {shape.kind} of body "{place}"'
    size = _size(shape)
    attributes = {"type": shape.kind}
    if isinstance(shape, Plane) and moving:
        meshes.losses.append(f"{what}: planes can only stand still in MJCF; it is left out")
        return None
    if isinstance(shape, Mesh):
        asset = meshes.asset(shape)
        if asset is None:
            meshes.losses.append(
                f'{what}: the mesh "{shape.path}" is no STL or OBJ file below the folder of the MJCF file; '
                "it is left out"
            )
            return None
        attributes["mesh"] = asset
    else:
        attributes["size"] = _numbers(size)
    if shape.name and shape.name not in meshes.names:
        meshes.names.add(shape.name)
        attributes = {"name": shape.name, **attributes}
    elif shape.name:
        meshes.losses.append(f"{what}: the name is taken; the geom has none")
    attributes["rgba"] = _numbers(shape.rgba)
    attributes["friction"] = _numbers(shape.friction)
    if not shape.collision:
        attributes |= {"contype": "0", "conaffinity": "0"}
    if not shape.visual:
        attributes["group"] = "3"
    if shape.restitution:
        meshes.losses.append(f"{what}: restitution {shape.restitution:g} is left out")
    return attributes


def _size(shape: Shape) -> tuple[float, ...]:
    """MJCF's numbers: half lengths and radii."""
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
