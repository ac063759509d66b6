"""Mesh files: STL, OBJ and COLLADA as triangles and as convex hulls, and the meshes of a model."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from dalembert.errors import ArgumentError, FileError, MissingExtraError, ModelError, UnknownNameError
from dalembert.formats.collada import read_collada
from dalembert.formats.resources import (
    MissingResourceError,
    Resources,
    read_regular_file,
    reported_as_file_errors,
)
from dalembert.formats.stl_obj import read_obj, read_stl
from dalembert.formats.triangle_mesh import Surface, TriangleMesh, Vertices
from dalembert.host.disk_cache import DiskCache
from dalembert.model.model import Model
from dalembert.model.shapes import ConvexMesh, Mesh, Shape
from dalembert.model.shapes.convex_hull import hull_of
from dalembert.model.shapes.quickhull import MAX_HULL_VERTICES, Hull, reduced_hull, remember_hull
from dalembert.model.values import rebuilt

MAX_MESH_BYTES: Final = 128 * 1024 * 1024
"""Larger mesh files are rejected before they are read."""


def read_mesh(path: str | os.PathLike[str]) -> TriangleMesh:
    """Read the mesh in an STL (text or binary), OBJ or COLLADA file.

    STL and OBJ have no units: their numbers are taken as they are. COLLADA has one, and is read in metres.
    """
    file = Path(path)
    return _mesh_in(mesh_content(file), file)


def mesh_content(file: Path) -> bytes:
    """Return the bytes of a mesh file of a known format."""
    if file.suffix.lower() not in READERS:
        raise UnknownNameError.of("mesh format", file.suffix or file.name, READERS)
    content = read_regular_file(file, limit=MAX_MESH_BYTES)
    if not content or content.isspace():
        raise FileError(f"{file} is empty")
    return content


def _mesh_in(content: bytes, file: Path) -> TriangleMesh:
    """Return the mesh in the content of a file."""
    with reported_as_file_errors(str(file)):
        surface = READERS[file.suffix.lower()](content, file)
        if not len(surface.faces):
            raise FileError(f"{file}: the file has no faces")
        finite = np.isfinite(surface.vertices).all(axis=1)
        if not finite.all():
            first = int(np.argmin(finite))
            found = surface.vertices[first].tolist()
            raise FileError(f"{file}: vertex {first + 1} is {found}; every number must be finite")
        return TriangleMesh(surface.vertices, surface.faces, surface.colours, surface.colour_of_face)


READERS: Final[dict[str, Callable[[bytes, Path], Surface]]] = {
    ".stl": read_stl,
    ".obj": read_obj,
    ".dae": read_collada,
}


def mesh_of(shape: Mesh) -> TriangleMesh:
    """Return the mesh that a shape names, scaled as the shape says."""
    return read_mesh(_readable_path(shape)).scale_by(shape.scale)


# Convex hulls

HULLS: Final = DiskCache("hull", max_bytes=64 * 2**20)
"""The hulls of mesh files by their content, scale and options. A hull of 256 corners takes 19 kB, so that
there is room for those of a hundred robots of thirty meshes."""


def hull_of_file(shape: Mesh, *, max_vertices: int, tolerance: float | None) -> Hull:
    """Return the hull that `reduced_hull` makes of the file that a shape names, scaled."""
    (found,) = _hulls_of_file(shape, max_vertices, tolerance, None)
    return found


def _hulls_of_file(
    shape: Mesh, max_vertices: int, tolerance: float | None, concavity: float | None
) -> list[Hull]:
    """Return the hull of a file, or those of its convex pieces, from the cache folder if they are there."""
    file = _readable_path(shape)
    content = mesh_content(file)
    facts = file.suffix.lower(), shape.scale, max_vertices, tolerance, concavity, _reader_digest()
    key = hashlib.sha256(repr(facts).encode() + b"\0" + content).hexdigest()
    if (entry := HULLS.load(key)) is not None:
        found = [
            Hull(np.frombuffer(a, "<f8").reshape(-1, 3), np.frombuffer(b, "<i8").reshape(-1, 3), gap)
            for gap, a, b in zip(entry[0]["gaps"], entry[1][::2], entry[1][1::2])
        ]
    else:
        mesh = _mesh_in(content, file).scale_by(shape.scale)
        pieces = [mesh.corners] if concavity is None else _convex_pieces(mesh, concavity)
        found = [reduced_hull(piece, max_vertices=max_vertices, tolerance=tolerance) for piece in pieces]
        arrays = [array for hull in found for array in (hull.corners.astype("<f8"), hull.faces.astype("<i8"))]
        HULLS.store(key, {"gaps": [hull.gap for hull in found]}, [array.tobytes() for array in arrays])
    for hull in found:
        remember_hull(hull)
    return found


@cache
def _reader_digest() -> str:
    """Return a digest of the source that makes hulls of files."""
    digest = hashlib.sha256()
    formats = Path(__file__).parent
    sources = [formats / f"{name}.py" for name in ("meshes", "stl_obj", "collada", "document")]
    for source in (*sources, formats.parent / "model" / "shapes" / "quickhull.py"):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _readable_path(shape: Mesh) -> Path:
    """Return the path of a shape's mesh after checking that it may be read."""
    if not shape.readable or "://" in shape.path:
        raise FileError(
            f'mesh "{shape.path}" was not found when the model was loaded, or lies outside the folders that '
            "the model file may name; name its folder in roots=[…], or trust the file (trusted=True)"
        )
    return Path(shape.path)


# The meshes of a model


def with_hulls(
    model: Model,
    *,
    max_vertices: int = MAX_HULL_VERTICES,
    tolerance: float | None = None,
    concavity: float | None = None,
) -> Model:
    """Return the model with the hull of every mesh that collides; a mesh that is drawn stays to be drawn.

    MuJoCo and most engines collide meshes so. A file that is missing, or that holds no volume, is an error.

    A hull of more than 64 corners loses those that are not needed to stay within `tolerance` [m] (default:
    1 mm, or 0.5 % of the extent of smaller parts), and never has more than `max_vertices`. The distance from
    the hull of the whole mesh is the `approximation_error` of the result. Hulls are kept in the cache folder.

    With `concavity` [m] a mesh becomes several hulls: those of convex pieces into which CoACD cuts it until
    none is more concave (extra `decomposition`; seconds to minutes for each mesh, the first time).
    """
    most = None if concavity is None else _checked_concavity(concavity)

    def hulls(shape: Mesh, _: str) -> Iterator[Shape]:
        if shape.visual or not shape.collision:  # the name is the hull's
            yield replace(shape, collision=False, name="") if shape.collision else shape
        if shape.collision and most is None:
            yield hull_of(replace(shape, visual=False), max_vertices=max_vertices, tolerance=tolerance)
        elif shape.collision:
            options = dict(shape.data()) | {"visual": False}
            del options["path"], options["scale"]
            for hull in _hulls_of_file(shape, max_vertices, tolerance, most):
                yield ConvexMesh(hull.corners.tolist(), approximation_error=hull.gap, **options)

    return _with_meshes(model, hulls)


def resolve_meshes(model: Model, resources: Resources) -> Model:
    """Return the model with meshes that may be read; a mesh outside the allowed folders is a `FileError`.

    A relative name starts at the model file's folder. A mesh that is missing stays with its name and is not
    readable.
    """
    return _with_meshes(model, lambda shape, body: [_resolve(shape, resources, body)])


def resolve_allowed_meshes(model: Model, resources: Resources) -> Model:
    """Return the model with the same meshes, of which those outside the allowed folders are not readable.

    A trajectory is worth loading without the pictures of its bodies: its meshes often lie elsewhere, or on
    another machine.
    """
    outside: list[str] = []

    def resolve(shape: Mesh, body: str) -> Iterator[Mesh]:
        try:
            yield _resolve(shape, resources, body)
        except FileError as error:
            outside.append(str(error))
            yield replace(shape, readable=False)

    found = _with_meshes(model, resolve)
    if not outside:
        return found
    more = f" ({len(outside)} meshes like this)" if len(outside) > 1 else ""
    return rebuilt(found, report=(*found.report, f"warning: not read: {outside[0]}{more}"))


def with_relative_mesh_names(model: Model, folder: Path) -> Model:
    """Return the model with meshes below a folder named relative to it, so that both can move together."""
    below = folder.resolve()

    def rename(shape: Mesh, _: str) -> Iterator[Mesh]:
        path = Path(shape.path)
        inside = path.is_absolute() and path.is_relative_to(below)
        yield replace(shape, path=path.relative_to(below).as_posix()) if inside else shape

    return _with_meshes(model, rename)


def _resolve(shape: Mesh, resources: Resources, body: str) -> Mesh:
    path = Path(shape.path)
    # Saved models name meshes by absolute paths, which are as good as relative ones below an allowed folder.
    if path.is_absolute() and resources.admits(path):
        return replace(shape, path=str(path.resolve()), readable=True)
    try:
        found = resources.resolve(shape.path, what=f'mesh of "{body}"')
    except MissingResourceError:
        return replace(shape, readable=False)
    return replace(shape, path=str(found), readable=True)


def _with_meshes(model: Model, replacement: Callable[[Mesh, str], Iterable[Shape]]) -> Model:
    """Return the model with every mesh replaced by shapes; the same model if it has none."""

    def replace_in(shapes: Iterable[Shape], body: str) -> tuple[Shape, ...]:
        return tuple(
            new
            for shape in shapes
            for new in (replacement(shape, body) if isinstance(shape, Mesh) else (shape,))
        )

    every = [*model.world_shapes, *(shape for body in model.bodies for shape in body.shapes)]
    if not any(isinstance(shape, Mesh) for shape in every):
        return model
    return rebuilt(
        model,
        bodies=[replace(body, shapes=replace_in(body.shapes, body.name)) for body in model.bodies],
        world_shapes=replace_in(model.world_shapes, "world"),
    )


def _checked_concavity(given: Any) -> float:
    """Return the concavity [m] after checking it."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0.0 < given < math.inf:
        raise ArgumentError(f"concavity is {given!r}; give a finite positive length [m]")
    return float(given)


def _convex_pieces(mesh: TriangleMesh, concavity: float) -> list[Vertices]:
    """Return the corners (n, 3) of convex pieces, none more concave than `concavity` [m], by CoACD (Wei, Liu,
    Ling, Su 2022).

    The pieces are the same every time: CoACD searches with a fixed seed.
    """
    try:
        import coacd
    except ImportError as error:
        raise MissingExtraError(
            "convex decomposition computes with CoACD, which is not installed; "
            "pip install 'dalembert[decomposition]'"
        ) from error
    coacd.set_log_level("error")
    given = coacd.Mesh(mesh.vertices, mesh.faces.astype(np.int32))
    pieces = coacd.run_coacd(given, threshold=concavity, real_metric=True, seed=0)
    if not pieces:
        raise ModelError("convex mesh: CoACD finds no pieces; is the surface closed?")
    return [np.asarray(vertices, dtype=np.float64) for vertices, _ in pieces]
