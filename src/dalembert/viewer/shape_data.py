"""The shapes of a model as a page draws them: unit solids with sizes, triangles for all else."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import DalembertError
from dalembert.formats.meshes import TriangleMesh, mesh_of
from dalembert.model.body import Body
from dalembert.model.model import Model
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
from dalembert.model.shapes.shape import GREY
from dalembert.spatial.rotations import quaternion_of_rotation

__all__ = ["Drawing", "drawing_of", "to_base64", "height_field_mesh"]

Array = npt.NDArray[Any]

LIMBS: Final = ("#6f93c4", "#d99a6c", "#84ac8b", "#c2868f", "#9a8cbf", "#c9b26b", "#77aeb5")
"""Colours of limbs whose shapes have no colour."""
MAX_DRAWN_FACES: Final = 400_000
"""A mesh of more triangles is drawn as its hull, so that pages stay small."""


@final
@dataclass
class Drawing:
    """The shapes on bodies, the triangles that some of them share, and notes on what was left out."""

    shapes: list[dict[str, Any]] = field(default_factory=list)
    meshes: list[dict[str, Any]] = field(default_factory=list)
    triangles: list[TriangleMesh] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    read: dict[tuple[object, ...], int] = field(default_factory=dict)

    def mesh(self, key: tuple[object, ...], mesh: TriangleMesh) -> int:
        """Return the number of these triangles, which are stored once."""
        if key not in self.read:
            self.read[key] = len(self.meshes)
            self.triangles.append(mesh)
            low, high = mesh.bounds
            extent = np.where(high > low, high - low, 1.0)
            x, y, z = np.round((mesh.vertices - low) / extent * 65535.0).clip(0.0, 65535.0).astype("<u8").T
            # Files repeat the corners for each face: here each stands once.
            corners, names = np.unique(x | y << 16 | z << 32, return_inverse=True)
            faces = names[mesh.faces]
            a, b, c = faces.T
            faces = faces[(a != b) & (b != c) & (c != a)]
            self.meshes.append(
                {
                    "low": low.tolist(),
                    "extent": extent.tolist(),
                    "vertices": to_base64(
                        np.stack([corners >> shift & 65535 for shift in (0, 16, 32)], 1), "<u2"
                    ),
                    "wide": len(corners) > 65536,
                    "faces": to_base64(faces, "<u4" if len(corners) > 65536 else "<u2"),
                }
            )
        return self.read[key]


def to_base64(values: Any, kind: str) -> str:
    """Encode numbers as base64 text, little-endian."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def drawing_of(model: Model) -> Drawing:
    """Return every shape of the model; bodies without shapes are drawn as sticks from joint to joint."""
    drawing = Drawing()
    for shape in model.world_shapes:
        _add(drawing, -1, shape, _numbers("#b4b9c2"), collision=shape.visual is False)
    colours = _limb_colours(model)
    size = _size(model)
    for body in model.bodies:
        before = len(drawing.shapes)
        for shape in body.shapes:
            _add(drawing, body.index, shape, colours[body.index], collision=not shape.visual)
        added = drawing.shapes[before:]
        if not added:
            _add_sticks(drawing, model, body, colours[body.index], 0.02 * size)
        elif all(entry["collision"] for entry in added):
            for entry in added:
                entry["collision"] = False  # better than nothing
    drawing.notes = _short(drawing.notes)
    return drawing


def _add(drawing: Drawing, body: int, shape: Shape, colour: list[float], *, collision: bool) -> None:
    """Add one shape; `collision`: it is not meant to be seen, and is drawn on request only."""
    form: dict[str, Any]
    match shape:
        case Box():
            form = {"kind": "box", "scale": [s / 2.0 for s in shape.size]}
        case Sphere():
            form = {"kind": "ball", "scale": [shape.radius] * 3}
        case Ellipsoid():
            form = {"kind": "ball", "scale": list(shape.radii)}
        case Capsule():
            form = {"kind": "ball", "scale": [shape.radius] * 3, "stretch": shape.length / 2.0}
        case Cylinder():
            form = {"kind": "cylinder", "scale": [shape.radius, shape.radius, shape.length / 2.0]}
        case Plane():
            form = {"kind": "plane", "scale": [1.0] * 3}
        case _:
            try:
                form = {"kind": "mesh", "scale": [1.0] * 3, "mesh": _triangles(drawing, shape)}
            except DalembertError as error:
                drawing.notes.append(f"not drawn: {error}")
                return
    X = shape.placement.as_transform()
    own = shape.rgba != GREY
    drawing.shapes.append(
        form
        | {
            "body": body,
            "name": shape.name,
            "position": [float(x) for x in X.p],
            "rotation": [float(x) for x in quaternion_of_rotation(X.R)],
            "colour": list(shape.rgba) if own else [*colour, 1.0],
            "plain": not own,
            "collision": collision,
        }
    )


def _short(notes: list[str]) -> list[str]:
    return notes if len(notes) <= 3 else [*notes[:2], f"and {len(notes) - 2} more shapes"]


def _triangles(drawing: Drawing, shape: Shape) -> int:
    match shape:
        case ConvexMesh():
            found = TriangleMesh(np.array(shape.vertices), np.array(shape.faces))
            return drawing.mesh((id(shape),), found)
        case HeightField():
            return drawing.mesh((id(shape),), height_field_mesh(shape))
        case Mesh():
            key = (shape.path, shape.scale)
            if key in drawing.read:
                return drawing.read[key]
            mesh = mesh_of(shape)
            if len(mesh.faces) > MAX_DRAWN_FACES:
                hull = mesh.hull()
                drawing.notes.append(f"{shape.path} has {len(mesh.faces)} triangles: its hull is drawn")
                mesh = TriangleMesh(np.array(hull.vertices), np.array(hull.faces))
            return drawing.mesh(key, mesh)
    raise DalembertError(f"shapes of the kind {shape.kind} have no picture")


def height_field_mesh(shape: HeightField) -> TriangleMesh:
    """Return two triangles for each cell, as `HeightField` defines them."""
    heights = np.array(shape.heights)
    rows, columns = heights.shape
    x = (np.arange(columns) / (columns - 1) - 0.5) * shape.size[0]
    y = (np.arange(rows) / (rows - 1) - 0.5) * shape.size[1]
    X, Y = np.meshgrid(x, y)
    vertices = np.stack([X, Y, heights], axis=-1).reshape(-1, 3)
    corner = (np.arange(rows - 1)[:, np.newaxis] * columns + np.arange(columns - 1)).reshape(-1, 1)
    lower = corner + np.array([0, 1, columns + 1])
    upper = corner + np.array([0, columns + 1, columns])
    return TriangleMesh(vertices, np.concatenate([lower, upper]))


def _add_sticks(drawing: Drawing, model: Model, body: Body, colour: list[float], radius: float) -> None:
    """Add sticks for a body without shapes: from its joint to its children's, or to its centre of mass."""
    children = [b for b in model.bodies if b.parent == body.index]
    ends = [np.array([float(x) for x in b.placement.as_transform().p]) for b in children]
    centre = np.array([float(x) for x in body.inertia.com]) if float(body.inertia.mass) > 0.0 else np.zeros(3)
    if not any(np.linalg.norm(end) > radius for end in ends):
        # The centre is halfway along most links.
        ends.append(2.0 * centre)
    _add(drawing, body.index, Sphere(1.6 * radius), colour, collision=False)
    for end in ends:
        if np.linalg.norm(end) > 1e-3 * radius:
            _add(
                drawing, body.index, Capsule.between((0, 0, 0), end.tolist(), radius), colour, collision=False
            )


def _size(model: Model) -> float:
    """Return the median distance from joint to joint [m], scaled so that a figure's height is about its
    value.
    """
    steps = [float(np.linalg.norm([float(x) for x in b.placement.as_transform().p])) for b in model.bodies]
    steps += [2.0 * float(np.linalg.norm([float(x) for x in b.inertia.com])) for b in model.bodies]
    long = [step for step in steps if step > 1e-6]
    return 2.0 * float(np.median(long)) if long else 1.0


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
