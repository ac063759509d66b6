"""Meshes of saved models: a model from a file reads meshes only where a model file may name them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path

from dalembert.errors import FileError
from dalembert.formats.resources import MissingResourceError, Resources
from dalembert.model.model import Model
from dalembert.model.shapes import Mesh, Shape
from dalembert.model.values import rebuilt

__all__ = ["resolve_meshes", "named_from", "resolve_allowed_meshes"]


def resolve_meshes(model: Model, resources: Resources) -> Model:
    """Return the model with meshes that may be read; a mesh outside the allowed folders is a `FileError`.

    A relative name starts at the model file's folder. A mesh that is missing stays with its name and is not
    readable.
    """

    def found(shape: Mesh, body: str) -> Mesh:
        return _resolve_mesh(shape, resources, f'mesh of "{body}"')

    return _with_meshes(model, found)


def resolve_allowed_meshes(model: Model, resources: Resources) -> Model:
    """Return the model with the same meshes, of which those outside the allowed folders are not readable.

    A trajectory is worth loading without the pictures of its bodies: its meshes often lie elsewhere, or on
    another machine.
    """
    outside: list[str] = []

    def found(shape: Mesh, body: str) -> Mesh:
        try:
            return _resolve_mesh(shape, resources, f'mesh of "{body}"')
        except FileError as error:
            outside.append(str(error))
            return dataclasses.replace(shape, readable=False)

    kept = _with_meshes(model, found)
    if not outside:
        return kept
    more = f" ({len(outside)} meshes like this)" if len(outside) > 1 else ""
    return rebuilt(kept, report=(*kept.report, f"warning: not read: {outside[0]}{more}"))


def named_from(model: Model, folder: Path) -> Model:
    """Return the model with meshes below a folder named relative to it, so that both can move together."""
    below = folder.resolve()

    def found(shape: Mesh, _: str) -> Mesh:
        path = Path(shape.path)
        if not path.is_absolute() or not path.is_relative_to(below):
            return shape
        return dataclasses.replace(shape, path=path.relative_to(below).as_posix())

    return _with_meshes(model, found)


def _resolve_mesh(shape: Mesh, resources: Resources, what: str) -> Mesh:
    path = Path(shape.path)
    # Saved models name meshes by absolute paths, which are as good as relative ones below an allowed folder.
    if path.is_absolute() and resources.admits(path):
        return dataclasses.replace(shape, path=str(path.resolve()), readable=True)
    try:
        return dataclasses.replace(shape, path=str(resources.resolve(shape.path, what=what)), readable=True)
    except MissingResourceError:
        return dataclasses.replace(shape, readable=False)


def _with_meshes(model: Model, found: Callable[[Mesh, str], Mesh]) -> Model:
    """Return the model with every mesh replaced; the same model if it has none."""
    if not any(isinstance(shape, Mesh) for shape in _shapes(model)):
        return model

    def replace_meshes(shapes: Iterable[Shape], body: str) -> tuple[Shape, ...]:
        return tuple(found(shape, body) if isinstance(shape, Mesh) else shape for shape in shapes)

    return rebuilt(
        model,
        bodies=[
            dataclasses.replace(body, shapes=replace_meshes(body.shapes, body.name)) for body in model.bodies
        ],
        world_shapes=replace_meshes(model.world_shapes, "world"),
    )


def _shapes(model: Model) -> Iterable[Shape]:
    yield from model.world_shapes
    for body in model.bodies:
        yield from body.shapes
