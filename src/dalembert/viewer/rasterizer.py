"""Pictures by NumPy alone: triangles become points as dense as pixels, the nearest of each pixel is seen."""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = ["Camera", "Picture", "focal_of", "pieces", "png", "samples"]

Array: TypeAlias = npt.NDArray[np.float64]

NEAR_PLANE_DISTANCE: Final = 1e-3
"""Triangles nearer to the eye [m] are not drawn."""
POINTS_PER_PIXEL: Final = 1.45
"""Points per pixel, along and across: above sqrt(2), since the diagonal of a grid is that much longer."""
MAX_TRIANGLE_PIXELS: Final = 128.0
"""Triangles of more pixels, in width or height, are cut into four."""
MAX_CUTS: Final = 18
"""Triangles that are too large after this many cuts are not drawn."""
QUARTERS: Final = (
    np.array(
        [
            [[2, 0, 0], [1, 1, 0], [1, 0, 1]],
            [[1, 1, 0], [0, 2, 0], [0, 1, 1]],
            [[1, 0, 1], [0, 1, 1], [0, 0, 2]],
            [[1, 1, 0], [0, 1, 1], [1, 0, 1]],
        ]
    )
    / 2.0
)
"""A triangle's four quarters, by shares of its corners."""
SKY: Final = np.array([0.62, 0.68, 0.78])
BOUNCE: Final = np.array([0.28, 0.27, 0.26])
SUN: Final = np.array([1.15, 1.10, 1.04])
HORIZON: Final = np.array([0.91, 0.925, 0.945])
GROUND: Final = np.array([0.66, 0.69, 0.74])
LINE: Final = np.array([0.50, 0.55, 0.62])


@final
@dataclass(frozen=True)
class Camera:
    """A camera at `eye` that looks along `-axes[2]`; `axes` (3, 3): to the right, upward, towards the
    viewer, as rows; `focal`: pixels for each unit of slope.
    """

    eye: Array
    axes: Array
    focal: float

    def seen(self, points: Array) -> tuple[Array, Array, Array]:
        """Return how far points (…, 3) are to the right, upward, and away [m]."""
        X, Y, Z = np.moveaxis(points - self.eye, -1, 0)
        right, upward, back = (a * X + b * Y + c * Z for a, b, c in self.axes)  # sooner than small products
        return right, upward, -back

    def project(self, points: Array, width: int, height: int) -> tuple[Array, Array]:
        """Return pixels (…, 2), from the upper left, and depths (…) [m]."""
        right, upward, depth = self.seen(points)
        safe = np.maximum(depth, NEAR_PLANE_DISTANCE)
        x = width / 2 + self.focal * right / safe
        y = height / 2 - self.focal * upward / safe
        return np.stack([x, y], axis=-1), depth

    def misses(self, triangles: Array, width: int, height: int) -> npt.NDArray[np.bool_]:
        """Return which triangles (m, 3, 3) are entirely behind the eye or beyond a side of the picture.

        The sides are planes through the eye, so that this holds for triangles that reach behind it, too.
        """
        right, upward, depth = self.seen(triangles)
        x, y = 0.5 * width / self.focal * depth, 0.5 * height / self.focal * depth
        sides = (depth - NEAR_PLANE_DISTANCE, x - right, x + right, y - upward, y + upward)
        found: npt.NDArray[np.bool_] = np.any([(side <= 0.0).all(axis=1) for side in sides], axis=0)
        return found


@final
class Picture:
    """A picture that is being drawn: `colour (height, width, 3)` from 0 to 1, linear in light."""

    def __init__(self, width: int, height: int, camera: Camera, sun: Array, up: Array) -> None:
        self.width, self.height, self.camera, self.sun, self.up = width, height, camera, sun, up
        self.colour = np.tile(HORIZON**2.2, (height, width, 1))
        self.depth = np.full((height, width), np.inf)

    def ground(
        self, origin: Array, normal: Array, x: Array, spacing: float, reach: float, shade: Array
    ) -> None:
        """Draw a plane with a grid, which fades beyond the distance `reach` [m] from the eye; `shade`: points
        (n, 3) on it that the sun does not reach.
        """
        columns, rows = np.meshgrid(np.arange(self.width) + 0.5, np.arange(self.height) + 0.5)
        slope = np.stack(
            [
                (columns - self.width / 2) / self.camera.focal,
                (self.height / 2 - rows) / self.camera.focal,
                -np.ones_like(rows),
            ],
            axis=-1,
        )
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
            pixels, depth = self.camera.project(shade, self.width, self.height)
            i, k = (np.floor(pixels[:, a]).astype(np.int64) for a in (1, 0))
            there = (depth > NEAR_PLANE_DISTANCE) & (i >= 0) & (i < self.height) & (k >= 0) & (k < self.width)
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
        shares, whole = pieces(self.camera, corners[faces_eye], self.width, self.height)
        corners, normals = shares @ corners[faces_eye][whole], shares @ normals[faces_eye][whole]
        colours = colours[faces_eye][whole]
        pixels, depth = self.camera.project(corners, self.width, self.height)
        weights, which = samples(pixels)
        place = np.einsum("nk,nkj->nj", weights, pixels[which])
        z = np.einsum("nk,nk->n", weights, depth[which])
        i, k = np.floor(place[:, 1]).astype(np.int64), np.floor(place[:, 0]).astype(np.int64)
        there = (i >= 0) & (i < self.height) & (k >= 0) & (k < self.width)
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


def pieces(camera: Camera, corners: Array, width: int, height: int) -> tuple[Array, npt.NDArray[np.int64]]:
    """Cut triangles (m, 3, 3) up until their pieces are small; those outside the picture are left out.

    The corners of each piece as shares (n, 3, 3) of the corners of a triangle, and which triangle (n,).
    """
    shares, whole = np.tile(np.eye(3), (len(corners), 1, 1)), np.arange(len(corners))
    found = [(shares[:0], whole[:0])]
    for _ in range(MAX_CUTS):
        triangles = shares @ corners[whole]
        seen = ~camera.misses(triangles, width, height)
        shares, whole, triangles = shares[seen], whole[seen], triangles[seen]
        pixels, depth = camera.project(triangles, width, height)
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


def focal_of(angle: float, height: int) -> float:
    """Return the pixels per unit of slope of a camera that sees this angle [rad] from bottom to top."""
    return height / 2.0 / math.tan(angle / 2.0)
