"""The shapes of a model as they are drawn: unit solids with sizes for a page, triangles for a picture."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import DalembertError
from dalembert.formats.meshes import mesh_of
from dalembert.formats.triangle_mesh import Colour, TriangleMesh
from dalembert.model import shapes
from dalembert.model.body import Body
from dalembert.model.model import Model
from dalembert.model.shapes.shape import GREY, Shape
from dalembert.spatial.rotations import quaternion_of_rotation, rotation_of_quaternion

Array: TypeAlias = npt.NDArray[np.float64]

LIMBS: Final = ("#6f93c4", "#d99a6c", "#84ac8b", "#c2868f", "#9a8cbf", "#c9b26b", "#77aeb5")
"""Colours of limbs whose shapes have no colour."""
WORLD: Final = "#b4b9c2"
"""Colour of shapes of the world that have none."""
MAX_DRAWN_FACES: Final = 400_000
"""A mesh of more triangles is drawn as its hull, so that pages stay small."""


@final
@dataclass
class Drawing:
    """The shapes on bodies, the triangles that some of them share, and notes on what was left out.

    Shapes and meshes are entries for a page, with large arrays in base64; `triangles` are those of `meshes`.
    """

    shapes: list[dict[str, Any]] = field(default_factory=list)
    meshes: list[dict[str, Any]] = field(default_factory=list)
    triangles: list[TriangleMesh] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    numbers: dict[tuple[object, ...], int] = field(default_factory=dict)
    read: dict[tuple[object, ...], list[tuple[int, Colour | None]]] = field(default_factory=dict)

    def mesh(self, key: tuple[object, ...], mesh: TriangleMesh) -> int:
        """Return the number of these triangles, which are stored once."""
        if key not in self.numbers:
            self.numbers[key] = len(self.meshes)
            self.triangles.append(mesh)
            low, high = mesh.bounds
            extent = np.where(high > low, high - low, 1.0)
            x, y, z = np.round((mesh.vertices - low) / extent * 65535.0).clip(0.0, 65535.0).astype("<u8").T
            # Files repeat the corners for each face: here each stands once.
            corners, names = np.unique(x | y << 16 | z << 32, return_inverse=True)
            faces = names[mesh.faces]
            a, b, c = faces.T
            faces = faces[(a != b) & (b != c) & (c != a)]
            vertices = np.stack([corners >> shift & 65535 for shift in (0, 16, 32)], 1)
            self.meshes.append(
                {
                    "low": low.tolist(),
                    "extent": extent.tolist(),
                    "vertices": to_base64(vertices, "<u2"),
                    "wide": len(corners) > 65536,
                    "faces": to_base64(faces, "<u4" if len(corners) > 65536 else "<u2"),
                }
            )
        return self.numbers[key]


def to_base64(values: Any, kind: str) -> str:
    """Encode numbers as base64 text, little-endian."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def vector(components: Iterable[Any]) -> Array:
    """Return a vector of the model's numbers as an array."""
    return np.array([float(x) for x in components])


def upward(model: Model) -> Array:
    """Return the unit vector (3,) against gravity; z without gravity."""
    g = vector(model.gravity)
    found: Array = -g / np.linalg.norm(g) if g.any() else np.array([0.0, 0.0, 1.0])
    return found


def drawing_of(model: Model) -> Drawing:
    """Return every shape of the model; bodies without shapes are drawn as sticks from joint to joint."""
    drawing = Drawing()
    for shape in model.world_shapes:
        _add(drawing, -1, shape, _numbers(WORLD), collision=shape.visual is False)
    colours = _limb_colours(model)
    # Sticks are as thick as 0.04 of the median distance from joint to joint.
    steps = [vector(b.placement.as_transform().p) for b in model.bodies]
    steps += [2.0 * vector(b.inertia.com) for b in model.bodies]
    lengths = np.linalg.norm(steps, axis=1)
    long = lengths[lengths > 1e-6]
    radius = 0.04 * float(np.median(long)) if len(long) else 0.02
    for body in model.bodies:
        added: list[tuple[str, dict[str, Any]]] = []
        undrawn: set[str] = set()
        for shape in body.shapes:
            before = len(drawing.shapes)
            _add(drawing, body.index, shape, colours[body.index], collision=not shape.visual)
            added += [(shape.link, entry) for entry in drawing.shapes[before:]]
            if shape.visual and len(drawing.shapes) == before:
                undrawn.add(shape.link)
        seen = {link for link, entry in added if not entry["collision"]}
        for link, entry in added:
            # A link whose visual shapes cannot be drawn, and a body without any, show where they collide.
            if not seen or (link in undrawn and link not in seen):
                entry["collision"] = False
        if not added:
            _add_sticks(drawing, model, body, colours[body.index], radius)
    if len(drawing.notes) > 3:
        drawing.notes[2:] = [f"and {len(drawing.notes) - 2} more shapes"]
    return drawing


def _add(drawing: Drawing, body: int, shape: Shape, colour: list[float], *, collision: bool) -> None:
    """Add one shape; `collision`: it is not meant to be seen, and is drawn on request only.

    The colours of a COLLADA file are drawn as they are, also where a URDF file names another material, as in
    RViz: exporters write one for every link. Those of an OBJ file count where the model gives no colour.
    """
    try:
        forms = _forms(drawing, shape)
    except DalembertError as error:
        drawing.notes.append(f"not drawn: {error}")
        return
    X = shape.placement.as_transform()
    given = None if shape.rgba == GREY else shape.rgba
    file_first = isinstance(shape, shapes.Mesh) and shape.path.lower().endswith(".dae")
    for form, of_file in forms:
        own = of_file or given if file_first else given or of_file
        drawing.shapes.append(
            form
            | {
                "body": body,
                "name": shape.name,
                "position": vector(X.p).tolist(),
                "rotation": vector(quaternion_of_rotation(X.R)).tolist(),
                "colour": [*colour, 1.0] if own is None else list(own),
                "plain": own is None,
                "collision": collision,
            }
        )


def _forms(drawing: Drawing, shape: Shape) -> list[tuple[dict[str, Any], Colour | None]]:
    """Return what a shape is drawn as, each with the colour that its file gives it."""
    match shape:
        case shapes.Box():
            form: dict[str, Any] = {"kind": "box", "scale": [s / 2.0 for s in shape.size]}
        case shapes.Sphere():
            form = {"kind": "ball", "scale": [shape.radius] * 3}
        case shapes.Ellipsoid():
            form = {"kind": "ball", "scale": list(shape.radii)}
        case shapes.Capsule():
            form = {"kind": "ball", "scale": [shape.radius] * 3, "stretch": shape.length / 2.0}
        case shapes.Cylinder():
            form = {"kind": "cylinder", "scale": [shape.radius, shape.radius, shape.length / 2.0]}
        case shapes.Plane():
            form = {"kind": "plane", "scale": [1.0] * 3}
        case _:
            pieces = _pieces(drawing, shape)
            return [({"kind": "mesh", "scale": [1.0] * 3, "mesh": mesh}, colour) for mesh, colour in pieces]
    return [(form, None)]


def _pieces(drawing: Drawing, shape: Shape) -> list[tuple[int, Colour | None]]:
    """Return the numbers of the meshes that a shape is drawn as, with the colours that its file gives."""
    match shape:
        case shapes.ConvexMesh():
            return [(drawing.mesh((id(shape),), _hull_mesh(shape)), None)]
        case shapes.HeightField():
            return [(drawing.mesh((id(shape),), height_field_mesh(shape)), None)]
        case shapes.Mesh():
            key = (shape.path, shape.scale)
            if key not in drawing.read:
                drawing.read[key] = list(_pieces_of_file(drawing, shape))
            return drawing.read[key]
    raise DalembertError(f"shapes of the kind {shape.kind} have no picture")


def _pieces_of_file(drawing: Drawing, shape: shapes.Mesh) -> Iterator[tuple[int, Colour | None]]:
    mesh = mesh_of(shape)
    if len(mesh.faces) > MAX_DRAWN_FACES:
        drawing.notes.append(f"{shape.path} has {len(mesh.faces)} triangles: its hull is drawn")
        mesh = _hull_mesh(mesh.hull())
    for number, (piece, colour) in enumerate(mesh.pieces()):
        yield drawing.mesh((shape.path, shape.scale, number), piece), colour


def _hull_mesh(hull: shapes.ConvexMesh) -> TriangleMesh:
    return TriangleMesh(np.array(hull.vertices), np.array(hull.faces))


def height_field_mesh(shape: shapes.HeightField) -> TriangleMesh:
    """Return two triangles for each cell, as `HeightField` defines them."""
    heights = np.array(shape.heights)
    rows, columns = heights.shape
    x = (np.arange(columns) / (columns - 1) - 0.5) * shape.size[0]
    y = (np.arange(rows) / (rows - 1) - 0.5) * shape.size[1]
    X, Y = np.meshgrid(x, y)
    return TriangleMesh(np.stack([X, Y, heights], axis=-1).reshape(-1, 3), _grid_faces(rows, columns))


def _grid_faces(rows: int, columns: int) -> npt.NDArray[np.intp]:
    """Return two triangles (m, 3) for each cell of a grid of points, numbered row by row."""
    corner = (np.arange(rows - 1)[:, np.newaxis] * columns + np.arange(columns - 1)).reshape(-1, 1)
    return np.concatenate([corner + [0, 1, columns + 1], corner + [0, columns + 1, columns]])


def _add_sticks(drawing: Drawing, model: Model, body: Body, colour: list[float], radius: float) -> None:
    """Add sticks for a body without shapes: from its joint to its children's, or to its centre of mass."""
    ends = [vector(b.placement.as_transform().p) for b in model.bodies if b.parent == body.index]
    if not any(np.linalg.norm(end) > radius for end in ends):
        # The centre is halfway along most links.
        ends.append(2.0 * vector(body.inertia.com) if float(body.inertia.mass) > 0.0 else np.zeros(3))
    _add(drawing, body.index, shapes.Sphere(1.6 * radius), colour, collision=False)
    for end in ends:
        if np.linalg.norm(end) > 1e-3 * radius:
            stick = shapes.Capsule.between((0, 0, 0), end.tolist(), radius)
            _add(drawing, body.index, stick, colour, collision=False)


def _limb_colours(model: Model) -> list[list[float]]:
    """Return one hue for each run of bodies without a branch, a lighter and a darker tone of it in turn."""
    children = [0] * len(model.bodies)
    for body in model.bodies:
        if body.parent >= 0:
            children[body.parent] += 1
    limb: list[int] = []
    place: list[int] = []
    for body in model.bodies:
        goes_on = body.parent >= 0 and children[body.parent] == 1
        limb.append(limb[body.parent] if goes_on else max(limb, default=-1) + 1)
        place.append(place[body.parent] + 1 if goes_on else 0)
    return [
        [c + 0.28 * (1.0 - c) * (k % 2) for c in _numbers(LIMBS[number % len(LIMBS)])]
        for number, k in zip(limb, place)
    ]


def _numbers(colour: str) -> list[float]:
    return [int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)]


class Triangles(NamedTuple):
    """Triangles in the world: corners and normals (m, 3, 3), colours (m, 3), bodies (m,), -1 the world's."""

    corners: Array
    normals: Array
    colours: Array
    bodies: npt.NDArray[np.intp]


def visible_triangles(drawing: Drawing, rotation: Array, translation: Array) -> Triangles:
    """Return what is seen of all shapes; rotations (bodies, 3, 3) and translations (bodies, 3) given."""
    found = [Triangles(np.zeros((0, 3, 3)), np.zeros((0, 3, 3)), np.zeros((0, 3)), np.zeros(0, np.intp))]
    for shape in drawing.shapes:
        if shape["collision"] or shape["kind"] == "plane" or shape["colour"][3] < 0.05:
            continue
        mesh = shape.get("mesh")
        solid = unit_solid(shape["kind"]) if mesh is None else _flat_shaded(drawing.triangles[mesh])
        R, p = rotation_of(shape), np.array(shape["position"])
        body, scale = shape["body"], np.array(shape["scale"])
        if body >= 0:
            R, p = rotation[body] @ R, rotation[body] @ p + translation[body]
        local = solid.corners * scale
        local[..., 2] += shape.get("stretch", 0.0) * solid.sides
        colours, bodies = np.tile(shape["colour"][:3], (len(local), 1)), np.full(len(local), body)
        found.append(Triangles(local @ R.T + p, (solid.normals / scale) @ R.T, colours, bodies))
    return Triangles(*(np.concatenate(column) for column in zip(*found)))


def rotation_of(shape: dict[str, Any]) -> Array:
    """Return the axes of a shape on its body, as columns."""
    found: Array = np.array(rotation_of_quaternion(shape["rotation"]).to_list())
    return found


class Solid(NamedTuple):
    """Triangles: corners and normals (m, 3, 3), the ends of a capsule that corners belong to (m, 3), or 0."""

    corners: Array
    normals: Array
    sides: Array


def _flat_shaded(mesh: TriangleMesh) -> Solid:
    corners = mesh.vertices[mesh.faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    return Solid(corners, np.repeat(normal[:, np.newaxis], 3, axis=1), np.zeros(corners.shape[:2]))


@cache
def unit_solid(kind: str) -> Solid:
    """Return the ball, the cylinder or the box that reaches from -1 to 1 along each axis."""
    if kind == "ball":
        profile = []
        for side, angles in ((-1.0, np.linspace(-math.pi / 2, 0, 7)), (1.0, np.linspace(0, math.pi / 2, 7))):
            profile += [(math.cos(a), math.sin(a), math.cos(a), math.sin(a), side) for a in angles]
        return _lathe(profile)
    if kind == "cylinder":
        bottom = [(0, -1, 0, -1, 0), (1, -1, 0, -1, 0)]
        return _lathe([*bottom, (1, -1, 1, 0, 0), (1, 1, 1, 0, 0), (1, 1, 0, 1, 0), (0, 1, 0, 1, 0)])
    return _flat_shaded(_hull_mesh(shapes.ConvexMesh(list(product((-1.0, 1.0), repeat=3)))))


def _lathe(profile: Sequence[tuple[float, ...]], around: int = 24) -> Solid:
    """Return a surface of revolution about z; profile: radius, z, normal outward, normal along z, side."""
    r, z, nr, nz, side = np.array(profile, dtype=np.float64).T
    angle = 2.0 * math.pi * np.arange(around + 1) / around
    c, s, ones = np.cos(angle), np.sin(angle), np.ones_like(angle)
    points = np.stack([np.outer(r, c), np.outer(r, s), np.outer(z, ones)], axis=-1)
    normals = np.stack([np.outer(nr, c), np.outer(nr, s), np.outer(nz, ones)], axis=-1)
    faces = _grid_faces(len(r), around + 1)
    sides = np.outer(side, ones).reshape(-1)
    return Solid(points.reshape(-1, 3)[faces], normals.reshape(-1, 3)[faces], sides[faces])
