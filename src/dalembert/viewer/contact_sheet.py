"""A strip of pictures of a motion, drawn by NumPy alone.

Triangles become points as dense as pixels, and the nearest point of each pixel is seen.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dalembert.api.kinematics import forward_kinematics
from dalembert.errors import ArgumentError, own_errors
from dalembert.host.atomic_files import write_file
from dalembert.motion.clip import Frames, nearest_frames
from dalembert.viewer.drawing import (
    Array,
    Drawing,
    Triangles,
    drawing_of,
    rotation_of,
    upward,
    visible_triangles,
)
from dalembert.viewer.frames import frames_of

NEAR_PLANE_DISTANCE: Final = 1e-3
"""Triangles nearer to the eye [m] are not drawn."""
POINTS_PER_PIXEL: Final = 1.45
"""Points per pixel, along and across: above sqrt(2), since the diagonal of a grid is that much longer."""
MAX_TRIANGLE_PIXELS: Final = 128.0
"""Triangles of more pixels, in width or height, are cut into four."""
MAX_CUTS: Final = 18
"""Triangles that are too large after this many cuts are not drawn."""
QUARTERS: Final = 0.5 * np.array(
    [
        [[2, 0, 0], [1, 1, 0], [1, 0, 1]],
        [[1, 1, 0], [0, 2, 0], [0, 1, 1]],
        [[1, 0, 1], [0, 1, 1], [0, 0, 2]],
        [[1, 1, 0], [0, 1, 1], [1, 0, 1]],
    ]
)
"""A triangle's four quarters, by weights of its corners."""
SKY: Final = np.array([0.62, 0.68, 0.78])
BOUNCE: Final = np.array([0.28, 0.27, 0.26])
SUN: Final = np.array([1.15, 1.10, 1.04])
HORIZON: Final = np.array([0.91, 0.925, 0.945])
GROUND: Final = np.array([0.66, 0.69, 0.74])
LINE: Final = np.array([0.50, 0.55, 0.62])
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
    chosen = np.unique(nearest_frames(whole.time, wanted))
    write_file(target, png(sheet(Frames(whole.model, whole.time[chosen], whole.q[chosen]), size)))
    return target


def sheet(moments: Frames, size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    """Return pictures of moments side by side, `(height, width, 3)`; `size`: width and height of one."""
    model = moments.model
    drawing = drawing_of(model)
    times = moments.time if model.time_dependent else None
    poses = forward_kinematics(model, moments.q, time=times)
    figures = [visible_triangles(drawing, *pose) for pose in zip(poses.rotation, poses.translation)]
    if not len(figures[0].corners):
        raise ArgumentError("the model has nothing to draw: all of its shapes are clear")
    up = upward(model)
    x = _across(up)
    y = np.cross(up, x)
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
    focal = 0.5 * height / math.tan(ANGLE / 2.0)
    camera = Camera(eye, np.stack([right, np.cross(out, right), out]), focal, width, height)
    sun = up + 0.1 * x - 0.65 * y
    sun = sun / np.linalg.norm(sun)
    picture = Picture(camera, sun, up)
    if floor is not None:
        spacing = 10.0 ** round(math.log10(radius))
        picture.ground(*floor, spacing, distance, _shade(figure, floor, sun, camera))
    picture.solids(figure.corners, figure.normals, figure.colours)
    return picture.bytes(by=SUPERSAMPLING_FACTOR)


def _shade(figure: Triangles, floor: Floor, sun: Array, camera: Camera) -> Array:
    """Return points (n, 3) of the ground in the figure's shadow, about as dense as pixels."""
    slant = float(sun @ floor.normal)
    if slant < 0.05:
        return np.zeros((0, 3))
    a, b, c = np.moveaxis(figure.corners, 1, 0)
    area = np.cross(b - a, c - a)
    corners = figure.corners[area @ sun > 0.0]  # what is lit casts the shadow
    above = np.maximum((corners - floor.origin) @ floor.normal, 0.0)
    fallen = corners - (above / slant)[..., np.newaxis] * sun
    shares, whole = pieces(camera, fallen)
    fallen = shares @ fallen[whole]
    weights, which = samples(camera.project(fallen)[0])
    points: Array = np.einsum("nk,nkj->nj", weights, fallen[which])
    return points


def _bounds(figure: Triangles, axes: Array) -> tuple[Array, Array]:
    """Return the bounds (3,), (3,) along the axes of what moves; of the world if nothing does."""
    moving = figure.bodies >= 0
    seen = figure.corners[moving | ~moving.any()].reshape(-1, 3) @ axes.T
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


@final
@dataclass(frozen=True)
class Camera:
    """A camera at `eye` that looks along `-axes[2]`; `axes` (3, 3): to the right, upward, towards the
    viewer, as rows; `focal`: pixels for each unit of slope; `width`, `height` of its picture in pixels.
    """

    eye: Array
    axes: Array
    focal: float
    width: int
    height: int

    def seen(self, points: Array) -> tuple[Array, Array, Array]:
        """Return how far points (…, 3) are to the right, upward, and away [m]."""
        X, Y, Z = np.moveaxis(points - self.eye, -1, 0)
        right, upward, back = (a * X + b * Y + c * Z for a, b, c in self.axes)  # sooner than small products
        return right, upward, -back

    def project(self, points: Array) -> tuple[Array, Array]:
        """Return pixels (…, 2), from the upper left, and depths (…) [m]."""
        right, upward, depth = self.seen(points)
        safe = np.maximum(depth, NEAR_PLANE_DISTANCE)
        x = self.width / 2 + self.focal * right / safe
        y = self.height / 2 - self.focal * upward / safe
        return np.stack([x, y], axis=-1), depth

    def misses(self, triangles: Array) -> npt.NDArray[np.bool_]:
        """Return which triangles (m, 3, 3) are entirely behind the eye or beyond a side of the picture.

        The sides are planes through the eye, so that this holds for triangles that reach behind it, too.
        """
        right, upward, depth = self.seen(triangles)
        x, y = (0.5 * pixels / self.focal * depth for pixels in (self.width, self.height))
        sides = (depth - NEAR_PLANE_DISTANCE, x - right, x + right, y - upward, y + upward)
        found: npt.NDArray[np.bool_] = np.any([(side <= 0.0).all(axis=1) for side in sides], axis=0)
        return found


@final
class Picture:
    """A picture that is being drawn: `colour (height, width, 3)` from 0 to 1, linear in light."""

    def __init__(self, camera: Camera, sun: Array, up: Array) -> None:
        self.camera, self.sun, self.up = camera, sun, up
        self.width, self.height = camera.width, camera.height
        self.colour = np.tile(HORIZON**2.2, (self.height, self.width, 1))
        self.depth = np.full((self.height, self.width), np.inf)

    def ground(
        self, origin: Array, normal: Array, x: Array, spacing: float, reach: float, shade: Array
    ) -> None:
        """Draw a plane with a grid that fades beyond `reach` [m]; `shade` (n, 3): points of it in shadow."""
        columns, rows = np.meshgrid(np.arange(self.width) + 0.5, np.arange(self.height) + 0.5)
        right, upward = columns - self.width / 2, self.height / 2 - rows
        slope = np.stack([right, upward, np.full_like(rows, -self.camera.focal)], axis=-1) / self.camera.focal
        rays = slope @ self.camera.axes
        height = float(normal @ (self.camera.eye - origin))
        fall = -(rays @ normal)
        hit = (fall > 1e-4) & (height > 0.0)
        t = height / np.where(hit, fall, 1.0)
        place = self.camera.eye + t[..., np.newaxis] * rays - origin
        u, v = place @ x / spacing, place @ np.cross(normal, x) / spacing
        width = np.maximum(t / self.camera.focal / spacing, 1e-9)
        near = np.minimum(np.abs(u - np.round(u)), np.abs(v - np.round(v)) * np.maximum(fall, 0.05))
        line = np.clip(1.6 - near / width, 0.0, 1.0) * np.clip(1.5 - 4.0 * width, 0.0, 1.0)
        tile = 1.0 + 0.05 * ((np.floor(u) + np.floor(v)) % 2 - 0.5)
        base = GROUND * tile[..., np.newaxis]
        base = base + 0.6 * line[..., np.newaxis] * (LINE - base)
        lit = np.full((self.height, self.width), max(float(normal @ self.sun), 0.0))
        if len(shade):
            pixels, depth = self.camera.project(shade)
            i, k, there = self._pixels(pixels)
            there &= depth > NEAR_PLANE_DISTANCE
            lit[i[there], k[there]] = 0.0
        seen = base * (0.62 * SKY + 0.8 * SUN * lit[..., np.newaxis])
        far = np.clip((t / reach - 1.0) / 2.5, 0.0, 1.0)
        far = (far * far * (3.0 - 2.0 * far))[..., np.newaxis]
        seen = seen + far * (HORIZON**2.2 - seen)
        self.colour = np.where(hit[..., np.newaxis], seen, self.colour)
        self.depth = np.where(hit, 1.001 * t, self.depth)  # what lies on it is seen

    def solids(self, corners: Array, normals: Array, colours: Array) -> None:
        """Draw triangles: corners and normals (m, 3, 3) in the world, colours (m, 3) as displayed."""
        a, b, c = np.moveaxis(corners, 1, 0)
        faces_eye = np.einsum("ij,ij->i", np.cross(b - a, c - a), self.camera.eye - a) > 0.0
        shares, whole = pieces(self.camera, corners[faces_eye])
        corners, normals = shares @ corners[faces_eye][whole], shares @ normals[faces_eye][whole]
        colours = colours[faces_eye][whole]
        pixels, depth = self.camera.project(corners)
        weights, which = samples(pixels)
        place = np.einsum("nk,nkj->nj", weights, pixels[which])
        z = np.einsum("nk,nk->n", weights, depth[which])
        i, k, there = self._pixels(place)
        there[there] = z[there] <= self.depth[i[there], k[there]]
        order = np.flatnonzero(there)[np.argsort(-z[there], kind="stable")]
        nearest = np.full(self.height * self.width, -1)
        nearest[i[order] * self.width + k[order]] = order  # the last one stays: the nearest
        drawn = np.flatnonzero(nearest >= 0)
        source = nearest[drawn]
        n = np.einsum("nk,nkj->nj", weights[source], normals[which[source]])
        n /= np.maximum(np.linalg.norm(n, axis=1, keepdims=True), 1e-300)
        point = np.einsum("nk,nkj->nj", weights[source], corners[which[source]])
        lit = self._lit(n, point, colours[which[source]])
        self.colour.reshape(-1, 3)[drawn] = lit

    def _pixels(self, places: Array) -> tuple[Any, Any, npt.NDArray[np.bool_]]:
        """Return rows and columns of places (n, 2), and which of them are in the picture."""
        k, i = np.floor(places).astype(np.int64).T
        return i, k, (i >= 0) & (i < self.height) & (k >= 0) & (k < self.width)

    def _lit(self, n: Array, point: Array, colour: Array) -> Array:
        e = self.camera.eye - point
        e /= np.linalg.norm(e, axis=1, keepdims=True)
        sun = np.maximum(n @ self.sun, 0.0)[:, np.newaxis]
        high = (n @ self.up * 0.5 + 0.5)[:, np.newaxis]
        facing = np.maximum(np.einsum("ij,ij->i", n, e), 0.0)[:, np.newaxis]
        half = self.sun + e
        half /= np.linalg.norm(half, axis=1, keepdims=True)
        shine = 0.25 * sun * np.maximum(np.einsum("ij,ij->i", n, half), 0.0)[:, np.newaxis] ** 48
        ambient = BOUNCE + high * (SKY - BOUNCE) + 0.16 * facing
        found: Array = colour**2.2 * (ambient + SUN * sun) + shine
        return found

    def bytes(self, *, by: int) -> npt.NDArray[np.uint8]:
        """Return the picture (height / by, width / by, 3): squares of pixels are averaged to smooth edges."""
        shown = np.clip(self.colour, 0.0, 1.0) ** (1 / 2.2)
        small = shown.reshape(self.height // by, by, self.width // by, by, 3).mean(axis=(1, 3))
        found: npt.NDArray[np.uint8] = np.round(255.0 * small).astype(np.uint8)
        return found


def pieces(camera: Camera, corners: Array) -> tuple[Array, npt.NDArray[np.int64]]:
    """Cut triangles (m, 3, 3) up until their pieces are small; those outside the picture are left out.

    The corners of each piece as shares (n, 3, 3) of the corners of a triangle, and which triangle (n,).
    """
    shares, whole = np.tile(np.eye(3), (len(corners), 1, 1)), np.arange(len(corners))
    found = [(shares[:0], whole[:0])]
    for _ in range(MAX_CUTS):
        triangles = shares @ corners[whole]
        seen = ~camera.misses(triangles)
        shares, whole, triangles = shares[seen], whole[seen], triangles[seen]
        pixels, depth = camera.project(triangles)
        large = (depth.min(axis=1) <= NEAR_PLANE_DISTANCE) | (
            np.ptp(pixels, axis=1).max(axis=1) > MAX_TRIANGLE_PIXELS
        )
        found.append((shares[~large], whole[~large]))
        shares = (QUARTERS[:, np.newaxis] @ shares[large]).reshape(-1, 3, 3)
        whole = np.tile(whole[large], 4)
    return np.concatenate([part for part, _ in found]), np.concatenate([part for _, part in found])


def samples(pixels: Array) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return weights (n, 3) of the corners and the triangle (n,) of points that leave no pixel of it out.

    A triangle of the corners (m, 3, 2) gets rows of points along its longest edge. Rows, and points in them,
    are at most 1 / POINTS_PER_PIXEL pixels apart, so that a point lies within half a pixel of every place.
    """
    edge = np.roll(pixels, -1, axis=1) - pixels  # from corner k to the next
    length = np.linalg.norm(edge, axis=2)
    start = length.argmax(axis=1)
    longest = np.maximum(length.max(axis=1), 1e-12)
    area = np.abs(edge[:, 0, 0] * edge[:, 1, 1] - edge[:, 0, 1] * edge[:, 1, 0])
    along, over = (_steps(POINTS_PER_PIXEL * x) for x in (longest, area / longest))
    kinds = along * 8192 + over
    weights, which = [np.zeros((0, 3))], [np.zeros(0, dtype=np.int64)]
    for kind in np.unique(kinds).tolist():
        s, t = np.meshgrid(*(np.linspace(0.0, 1.0, count + 1) for count in divmod(kind, 8192)))
        grid = np.stack([(1.0 - t) * (1.0 - s), (1.0 - t) * s, t], axis=-1).reshape(-1, 3)
        for first in range(3):
            members = np.flatnonzero((kinds == kind) & (start == first))
            weights.append(np.tile(np.roll(grid, first, axis=1), (len(members), 1)))
            which.append(np.repeat(members, len(grid)))
    return np.concatenate(weights), np.concatenate(which)


def _steps(pixels: Array) -> npt.NDArray[np.int64]:
    """Round a number of steps up to one of a few values, so that many triangles share it."""
    return np.ceil(2.0 ** (np.ceil(3.0 * np.log2(np.clip(pixels, 1.0, 4096.0))) / 3.0)).astype(np.int64)


def png(picture: npt.NDArray[np.uint8]) -> bytes:
    """Encode red, green, blue (height, width, 3) as a PNG file."""
    height, width, _ = picture.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, 3 * width)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
        + chunk(b"IEND", b"")
    )
