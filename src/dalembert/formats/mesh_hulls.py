"""Meshes as they collide: by their convex hulls, read from the files that shapes name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from dalembert.errors import ModelError
from dalembert.formats.meshes import mesh_of
from dalembert.model import Model
from dalembert.model.shapes import ConvexMesh, Mesh, Shape
from dalembert.model.values import rebuilt

__all__ = ["hull_of", "with_hulls"]


def with_hulls(model: Model) -> Model:
    """Return the model with the hull of every mesh that collides; a mesh that is drawn stays to be drawn.

    MuJoCo and most engines collide meshes so. A file that is missing, or that holds no volume, is an error.
    """
    return rebuilt(
        model,
        bodies=[
            dataclasses.replace(body, shapes=tuple(_replace_meshes_by_hulls(body.shapes)))
            for body in model.bodies
        ],
        world_shapes=tuple(_replace_meshes_by_hulls(model.world_shapes)),
    )


def hull_of(shape: Mesh) -> ConvexMesh:
    """Return the convex hull of the mesh in a shape's file, scaled, with all else that the shape has."""
    same = {name: value for name, value in shape.data() if name not in ("path", "scale")}
    mesh = mesh_of(shape)
    try:
        return mesh.hull(**same)
    except ModelError as error:
        raise ModelError(f"{shape.path}: {error}") from error


def _replace_meshes_by_hulls(shapes: Iterable[Shape]) -> Iterator[Shape]:
    for shape in shapes:
        if not isinstance(shape, Mesh) or not shape.collision:
            yield shape
            continue
        if shape.visual:
            yield dataclasses.replace(shape, collision=False, name="")  # its name is the hull's
        yield hull_of(dataclasses.replace(shape, visual=False))
