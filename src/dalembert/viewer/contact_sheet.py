"""A strip of pictures of a motion, side by side."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.api import forward_kinematics
from dalembert.errors import ArgumentError, own_errors
from dalembert.host.atomic_files import write_file
from dalembert.model.model import Model
from dalembert.viewer.frames import Frames, frames_of
from dalembert.viewer.rasterizer import Camera, Picture, focal_of, pieces, png, samples
from dalembert.viewer.shape_data import Drawing, drawing_of
from dalembert.viewer.surfaces import rotation_of, surfaces

__all__ = ["contact_sheet"]

Array: TypeAlias = npt.NDArray[np.float64]

SUPERSAMPLING_FACTOR: Final = 2
"""Pixels drawn along each side of a pixel of the file; their mean smooths edges."""
ANGLE: Final = math.radians(34.0)
DIRECTION: Final = (-0.95, 0.22)
"""From where a figure is seen: azimuth and height of the camera [rad], as in the viewer."""
GLYPHS: Final = {
    "0": "0E11191513110E", "1": "040C040404040E", "2": "0E11010204081F", "3": "1F02040201110E",
    "4": "02060A121F0202", "5": "1F101E0101110E", "6": "0608101E11110E", "7": "1F010204080808",
    "8": "0E11110E11110E", "9": "0E11110F01020C", ".": "0000000000000C", "-": "0000001F000000",
    "s": "00000E100E011E", " ": "00000000000000",
}  # fmt: skip
"""Rows of five pixels, as two hexadecimal digits each."""


class Triangles(NamedTuple):
    """Everything of one moment: corners and normals (m, 3, 3) in the world, colours (m, 3), and which of
    them are of bodies (m,), not of the world.
    """

    corners: Array
    normals: Array
    colours: Array
    moving: npt.NDArray[np.bool_]


class Floor(NamedTuple):
    """A plane: a point of it (3,), its normal, and a direction in it."""

    origin: Array
    normal: Array
    x: Array


@own_errors
def contact_sheet(
    motion: Any,
    path: str | os.PathLike[str],
    *,
    frames: int = 8,
    times: npt.ArrayLike | None = None,
    size: tuple[int, int] = (200, 280),
) -> Path:
    """Write a PNG picture of moments of a motion, evenly spaced from its first to its last, side by side.

    `motion` as for `record`. `times` [s]: those of the pictures, instead of `frames` evenly spaced ones.
    `size`: width and height of one of the pictures in pixels; each is marked with its time. The camera goes
    along with the figure and keeps its height. Needs no browser and no graphics card. Returns the path.

    >>> q = np.linspace([0.0, 0.0], [1.0, 2.0], 30)
    >>> da.viewer.contact_sheet((da.models.two_link_arm(), q), "arm.png", frames=4).name
    'arm.png'
    """
    target = Path(path)
    if target.suffix.lower() != ".png":
        raise ArgumentError(f"a contact sheet is a PNG file; {str(target)!r} should end in .png")
    if isinstance(frames, bool) or not isinstance(frames, int) or not 1 <= frames <= 100:
        raise ArgumentError(f"frames is {frames!r}; give the number of pictures, from 1 to 100")
    if len(size) != 2 or not all(isinstance(x, int) and 16 <= x <= 4096 for x in size):
        raise ArgumentError(f"size is {size!r}; give width and height in pixels, from 16 to 4096")
    whole = frames_of(motion, fps=1000.0)
    wanted = np.linspace(whole.time[0], whole.time[-1], frames) if times is None else np.asarray(times, float)
    if wanted.ndim != 1 or not 1 <= len(wanted) <= 100 or not np.isfinite(wanted).all():
        raise ArgumentError(f"times is {times!r}; give the times [s] of 1 to 100 pictures")
    moments = _moments(whole, wanted)
    sheet = _sheet(moments, size)
    write_file(target, png(sheet))
    return target


def _moments(whole: Frames, wanted: Array) -> Frames:
    """Return the frames nearest to some times."""
    nearest = np.abs(whole.time[:, np.newaxis] - wanted).argmin(axis=0)
    chosen = np.unique(nearest)
    return Frames(whole.model, whole.time[chosen], whole.q[chosen])


def _sheet(moments: Frames, size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    model = moments.model
    drawing = drawing_of(model)
    times = moments.time if model.time_dependent else None
    poses = forward_kinematics(model, moments.q, time=times)
    figures = [_triangles(drawing, poses.rotation[k], poses.translation[k]) for k in range(len(moments))]
    up, x, y = _basis(model)
    boxes = [_bounds(figure, np.stack([x, y, up])) for figure in figures]
    bottom = min(low[2] for low, _ in boxes)
    floor = _floor(drawing, up, bottom)
    if floor is not None and abs(floor.normal @ up) > 0.99:
        bottom = min(bottom, float(floor.origin @ up))
    top = max(high[2] for _, high in boxes)
    wide = max(float(np.linalg.norm(high[:2] - low[:2])) for low, high in boxes)
    radius = max(0.5 * (top - bottom), 0.5 * wide * size[1] / size[0], 1e-3)
    pictures = []
    for figure, (low, high), time in zip(figures, boxes, moments.time):
        middle = 0.5 * (low + high)
        centre = middle[0] * x + middle[1] * y + 0.5 * (bottom + top) * up
        picture = _picture(figure, centre, radius, (up, x, y), floor, size)
        _write(picture, f"{time:.2f} s")
        pictures.append(picture)
    rows = -(-len(pictures) // 10)
    columns = -(-len(pictures) // rows)
    pictures += [np.full_like(pictures[0], 255)] * (rows * columns - len(pictures))
    whole = np.concatenate(
        [np.concatenate(pictures[r * columns : (r + 1) * columns], axis=1) for r in range(rows)]
    )
    whole[:, size[0] :: size[0]] = 255
    return whole


def _picture(
    figure: Triangles,
    centre: Array,
    radius: float,
    basis: tuple[Array, Array, Array],
    floor: Floor | None,
    size: tuple[int, int],
) -> npt.NDArray[np.uint8]:
    up, x, y = basis
    azimuth, elevation = DIRECTION
    out = math.cos(elevation) * (math.cos(azimuth) * x + math.sin(azimuth) * y) + math.sin(elevation) * up
    right = np.cross(up, out)
    right /= np.linalg.norm(right)
    distance = 1.25 * radius / math.sin(ANGLE / 2.0)
    eye = centre + distance * out
    width, height = SUPERSAMPLING_FACTOR * size[0], SUPERSAMPLING_FACTOR * size[1]
    camera = Camera(eye, np.stack([right, np.cross(out, right), out]), focal_of(ANGLE, height))
    sun = up + 0.1 * x - 0.65 * y
    sun = sun / np.linalg.norm(sun)
    picture = Picture(width, height, camera, sun, up)
    if floor is not None:
        spacing = 10.0 ** round(math.log10(radius))
        picture.ground(*floor, spacing, distance, _shade(figure, floor, sun, camera, size))
    picture.solids(figure.corners, figure.normals, figure.colours)
    return picture.bytes(by=SUPERSAMPLING_FACTOR)


def _shade(figure: Triangles, floor: Floor, sun: Array, camera: Camera, size: tuple[int, int]) -> Array:
    """Return points (n, 3) of the ground in the figure's shadow, about as dense as pixels."""
    slant = float(sun @ floor.normal)
    if slant < 0.05:
        return np.zeros((0, 3))
    a, b, c = np.moveaxis(figure.corners, 1, 0)
    area = np.cross(b - a, c - a)
    corners = figure.corners[area @ sun > 0.0]  # what is lit casts the shadow
    above = np.maximum((corners - floor.origin) @ floor.normal, 0.0)
    fallen = corners - (above / slant)[..., np.newaxis] * sun
    width, height = SUPERSAMPLING_FACTOR * size[0], SUPERSAMPLING_FACTOR * size[1]
    shares, whole = pieces(camera, fallen, width, height)
    fallen = shares @ fallen[whole]
    weights, which = samples(camera.project(fallen, width, height)[0])
    points: Array = np.einsum("nk,nkj->nj", weights, fallen[which])
    return points


def _triangles(drawing: Drawing, rotation: Array, translation: Array) -> Triangles:
    parts = [
        (s.corners, s.normals, np.tile(s.colour, (len(s.corners), 1)), np.full(len(s.corners), s.body >= 0))
        for s in surfaces(drawing, rotation, translation)
    ]
    if not parts:
        raise ArgumentError("the model has nothing to draw: all of its shapes are clear")
    return Triangles(*(np.concatenate(column) for column in zip(*parts)))


def _basis(model: Model) -> tuple[Array, Array, Array]:
    """Return the upward direction, against gravity, and two directions across."""
    g = np.array([float(c) for c in model.gravity])
    up = -g / np.linalg.norm(g) if g.any() else np.array([0.0, 0.0, 1.0])
    x = _across(up)
    return up, x, np.cross(up, x)


def _bounds(figure: Triangles, axes: Array) -> tuple[Array, Array]:
    """Return the least and greatest coordinates (3,) along the axes of what moves; of the world if nothing
    does.
    """
    moving = figure.moving if figure.moving.any() else ~figure.moving
    seen = figure.corners[moving].reshape(-1, 3) @ axes.T
    return seen.min(axis=0), seen.max(axis=0)


def _floor(drawing: Drawing, up: Array, lowest: float) -> Floor | None:
    """Return the world's plane; in an empty world, the level of the figure's lowest point."""
    world = [shape for shape in drawing.shapes if shape["body"] < 0]
    for shape in world:
        if shape["kind"] == "plane":
            normal = rotation_of(shape)[:, 2]
            return Floor(np.array(shape["position"]), normal, _across(normal))
    return None if world else Floor(lowest * up, up, _across(up))


def _across(up: Array) -> Array:
    """Return a unit vector across: along an axis if `up` is one."""
    x = np.eye(3)[0 if abs(up[2]) > 0.7 else 2 if abs(up[1]) > 0.7 else 1]
    x = x - (x @ up) * up
    found: Array = x / np.linalg.norm(x)
    return found


def _write(picture: npt.NDArray[np.uint8], text: str) -> None:
    """Draw small letters in the upper left corner."""
    for place, letter in enumerate(text):
        rows = bytes.fromhex(GLYPHS[letter])
        glyph = np.array([[row >> (4 - k) & 1 for k in range(5)] for row in rows], dtype=bool)
        left = 6 + 6 * place
        if left + 5 <= picture.shape[1]:
            picture[6:13, left : left + 5][glyph] = (70, 80, 95)
