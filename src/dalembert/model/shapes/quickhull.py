"""The convex hull of points in space, by quickhull (Barber, Dobkin, Huhdanpaa 1996), whole or of few corners.

The hull starts as a tetrahedron. The point farthest outside becomes a corner: the faces that it sees go, and
new ones join it to their rim. Whether a point sees a face is decided exactly: by a determinant in floating
point where its rounding error (Shewchuk 1997) cannot change the sign, else in integers. The faces that a
point sees are therefore always one piece, its rim is one closed loop without three corners on a line, and the
surface stays closed and convex for any points. A tolerance only decides which points are worth
adding. With the SciPy extra or without, and on any machine, the same points give the same faces.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ModelError

Array: TypeAlias = npt.NDArray[np.float64]
Faces: TypeAlias = npt.NDArray[np.int64]
Edge: TypeAlias = tuple[int, int]

MIN_RELATIVE_THICKNESS: Final = 1e-9
"""Thickness of the points, relative to their extent, below which they lie in a plane and have no hull."""
MAX_RELATIVE_GAP: Final = 1e-10
"""Distance outside the hull, relative to the extent, up to which points are left out: ten thousand times the
rounding of coordinates that were computed, and a tenth of a nanometre on a body of a metre."""
MAX_GAP_PER_THICKNESS: Final = 1e-7
"""The same relative to the thickness, so that the volume of a thin plate keeps seven digits."""
ROUNDING: Final = 24.0 * 2.0**-53
"""Bound of the error of n . (p - a), relative to |p - a| |u| |v| / |u x v| for the unit normal n of the edges
u and v from a: 8 roundings of sqrt(3) |u| |v| |p - a| in the determinant (Shewchuk 1997, orient3d), which is
14, and 10 for the division by |u x v|."""


class Hull(NamedTuple):
    """Corners (n, 3) and faces (m, 3), counter-clockwise from outside; the gap to the hull of all points."""

    corners: Array
    faces: Faces
    gap: float


def convex_hull(points: Array) -> tuple[Array, Faces]:
    """Return the corners (n, 3) of the hull, in the order of the points, and its faces (m, 3): triangles,
    counter-clockwise seen from outside. The hull of the corners is the same, bit for bit.
    """
    given = np.asarray(points, dtype=np.float64)
    faces = _known_faces.get(given.tobytes())
    if faces is not None:
        return given, faces
    kept = _distinct(given)
    while True:
        growing = _GrowingHull(kept)
        growing.grow()
        faces = growing.surface()
        used = _true_corners(growing.points, faces, growing.tolerance)
        if len(used) == len(kept):
            remember_hull(Hull(kept, faces, 0.0))
            return kept, faces
        kept = kept[used]


MAX_REMEMBERED_FACES: Final = 100_000
"""Faces of the hulls that are remembered, 4 MB with their corners: models are copied often, shapes and
all."""
_known_faces: Final[dict[bytes, Faces]] = {}


def remember_hull(hull: Hull) -> None:
    """Remember the faces of corners, so that shapes with these corners are made without search."""
    while sum(map(len, list(_known_faces.values()))) > MAX_REMEMBERED_FACES:
        _known_faces.pop(next(iter(list(_known_faces))), None)
    faces = hull.faces.copy()
    faces.flags.writeable = False
    _known_faces[hull.corners.tobytes()] = faces


EXACT_VERTICES: Final = 64
"""Corners up to which a hull stays as it is: as many as PhysX takes on a GPU. Boxes with bevels and flat
soles have fewer, and keep their planes."""
MAX_HULL_VERTICES: Final = 256
"""Corners of a reduced hull: of 1,048 meshes of robots, 98.7 % need fewer to come within 0.5 % of their
extent, and the others come within 0.8 %. MuJoCo and Drake do not reduce hulls, which have up to 15,000."""
MAX_HULL_GAP: Final = 1e-3
"""[m] Distance up to which a hull is reduced: PyBullet's margin around the hull of a mesh in a URDF file."""
MAX_RELATIVE_HULL_GAP: Final = 5e-3
"""The same relative to the extent, for parts below 0.2 m, such as fingers."""


def reduced_hull(
    points: Array, *, max_vertices: int = MAX_HULL_VERTICES, tolerance: float | None = None
) -> Hull:
    """Return a hull of few of the points, to which no point is farther than its `gap`.

    Points are added, farthest first, until there are `max_vertices`, or `EXACT_VERTICES` and no point is more
    than `tolerance` [m] outside (default: the smaller of `MAX_HULL_GAP` and `MAX_RELATIVE_HULL_GAP` of the
    extent). The reduced hull lies in the hull of all points, so that the gap is the largest distance between
    the two.
    """
    every = _distinct(points)
    growing = _GrowingHull(every)
    extent = float(np.max(np.ptp(every, axis=0)))
    most = min(MAX_HULL_GAP, MAX_RELATIVE_HULL_GAP * extent) if tolerance is None else tolerance
    growing.grow(max_vertices=min(max_vertices, EXACT_VERTICES))
    height = most
    while (gap := growing.gap()) > most and growing.vertex_count < max_vertices:
        growing.grow(max_vertices=max_vertices, height=height)
        # A point may be farther from the hull than above the plane of any face.
        height *= min(0.9, most / gap)
    kept, faces = convex_hull(every[np.unique(growing.surface())])
    return Hull(kept, faces, gap)


def _distinct(points: Array) -> Array:
    """Return the points without those that are there already."""
    every = np.asarray(points, dtype=np.float64) + 0.0  # 0.0 for -0.0
    order = np.lexsort(every.T)
    new = np.ones(len(every), dtype=bool)
    new[1:] = (every[order[1:]] != every[order[:-1]]).any(axis=1)
    found: Array = every[np.sort(order[new])]
    return found


def _true_corners(points: Array, faces: Faces, tolerance: float) -> Faces:
    """Return the points at which three planes or more meet.

    Where none of the edges of a point is a crease, it lies inside a flat part; where two are, on an edge.
    """
    a, b, c = (points[faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    start, end = faces.reshape(-1), np.roll(faces, -1, axis=1).reshape(-1)
    face, opposite = np.repeat(np.arange(len(faces)), 3), np.roll(faces, 1, axis=1).reshape(-1)
    twin = np.lexsort((start, end))[np.argsort(np.lexsort((end, start)))]
    below = np.einsum("ei,ei->e", normals[face], points[opposite[twin]] - points[start])
    crease = below < -tolerance
    crease |= crease[twin]
    count: Faces = np.bincount(start[crease], minlength=len(points))
    return np.flatnonzero(count >= 3)


@final
@dataclass(slots=True, eq=False)
class _Face:
    """A triangle, its unit normal, and the points outside it, of which `farthest` is at `height`.

    `doubt` times |p - base|_1 bounds the error of the height of p.
    """

    corners: tuple[int, int, int]
    base: tuple[float, float, float]
    normal: tuple[float, float, float]
    doubt: float
    outside: Faces | None = None
    farthest: int = -1
    alive: bool = True


@final
class _GrowingHull:
    """The hull of some of the points, to which the points outside are added one by one."""

    def __init__(self, points: Array) -> None:
        # A power of two changes no digit, and keeps products of coordinates in range.
        self.exponent = int(np.frexp(np.abs(points).max())[1])
        self.points = np.ldexp(points, -self.exponent)
        self.rows: list[tuple[float, float, float]] = [(x, y, z) for x, y, z in self.points.tolist()]
        self.x, self.y, self.z = (np.ascontiguousarray(column) for column in self.points.T)
        extent = float(np.max(np.ptp(self.points, axis=0)))
        corners, thickness = _simplex(self.points, extent)
        self.tolerance = min(MAX_RELATIVE_GAP * extent, MAX_GAP_PER_THICKNESS * thickness)
        self.radii = np.square(self.points - self.points[corners].mean(axis=0)).sum(axis=1)
        self.integers = _Integers(self.points)
        self.faces: dict[Edge, _Face] = {}  # the face to the left of each edge
        self.heap: list[tuple[float, int, _Face]] = []
        self.count = 0
        a, b, c, d = corners
        if self.integers.orientation(a, b, c, d) > 0:
            b, c = c, b
        new = [self._face(*face) for face in ((a, b, c), (a, d, b), (b, d, c), (c, d, a))]
        self._share_out(new, np.setdiff1d(np.arange(len(points)), corners))

    @property
    def vertex_count(self) -> int:
        """The number of corners, by Euler's formula for triangles."""
        return len(self.faces) // 6 + 2

    def grow(self, *, max_vertices: int | None = None, height: float = 0.0) -> None:
        """Add the points that are more than `height` above a face, farthest first."""
        height = math.ldexp(height, -self.exponent)
        while self.heap and -self.heap[0][0] > height:
            if max_vertices is not None and self.vertex_count >= max_vertices:
                return
            face = heapq.heappop(self.heap)[-1]
            if not face.alive:
                continue
            assert face.outside is not None
            if self._sees(face.farthest, face):
                self._add(face.farthest, face)
            else:  # the height was rounding
                self._share_out([face], face.outside[face.outside != face.farthest])

    def surface(self) -> Faces:
        """Return the faces (m, 3), each from its lowest corner, in order."""
        rows = np.array([face.corners for face in self._each_face()], dtype=np.int64)
        first = np.argmin(rows, axis=1)[:, np.newaxis]
        rows = np.take_along_axis(rows, (first + np.arange(3)) % 3, axis=1)
        found: Faces = rows[np.lexsort(rows.T[::-1])]
        return found

    def _each_face(self) -> list[_Face]:
        return [face for edge, face in self.faces.items() if edge == face.corners[:2]]

    def gap(self) -> float:
        """Return the distance from the hull to the point that is farthest from it."""
        faces = [face for face in self._each_face() if face.outside is not None]
        if not faces:
            return 0.0
        outside = np.concatenate([face.outside for face in faces if face.outside is not None])
        counts = [len(face.outside) for face in faces if face.outside is not None]
        owners = np.repeat([face.corners for face in faces], counts, axis=0)
        # No point is farther from the hull than from its own face, and few are much nearer: those first.
        most = _distances(self.points[outside][:, np.newaxis], self.points[owners][:, np.newaxis])
        order = np.argsort(-most)
        triangles, found = self.points[self.surface()][np.newaxis], 0.0
        for block in np.array_split(order, range(POINTS_PER_BLOCK, len(order), POINTS_PER_BLOCK)):
            if most[block[0]] <= found:
                break
            points = self.points[outside[block]][:, np.newaxis]
            found = max(found, float(_distances(points, triangles).max()))
        return math.ldexp(found, self.exponent)

    def _add(self, apex: int, face: _Face) -> None:
        """Make the apex a corner: replace the faces that it sees, of which one is given."""
        seen, hidden, rim = [face], set[int](), list[Edge]()
        face.alive = False
        for visible in seen:
            a, b, c = visible.corners
            for start, end in ((a, b), (b, c), (c, a)):
                across = self.faces[end, start]
                if not across.alive:
                    continue
                if id(across) not in hidden and self._sees(apex, across):
                    across.alive = False
                    seen.append(across)
                else:
                    hidden.add(id(across))
                    rim.append((start, end))
        for old in seen:
            a, b, c = old.corners
            del self.faces[a, b], self.faces[b, c], self.faces[c, a]
        new = [self._face(apex, start, end) for start, end in rim]
        outside = [old.outside for old in seen if old.outside is not None]
        candidates = np.concatenate(outside)
        self._share_out(new, candidates[candidates != apex])

    def _face(self, a: int, b: int, c: int) -> _Face:
        """Return the new face a, b, c, of which all edges lead to it from now on."""
        base, (bx, by, bz), (cx, cy, cz) = self.rows[a], self.rows[b], self.rows[c]
        ax, ay, az = base
        ux, uy, uz, vx, vy, vz = bx - ax, by - ay, bz - az, cx - ax, cy - ay, cz - az
        x, y, z = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        length = math.sqrt(x * x + y * y + z * z)
        if length > 0.0:
            edges = math.sqrt((ux * ux + uy * uy + uz * uz) * (vx * vx + vy * vy + vz * vz))
            face = _Face((a, b, c), base, (x / length, y / length, z / length), ROUNDING * edges / length)
        else:
            face = _Face((a, b, c), base, (0.0, 0.0, 0.0), math.inf)
        self.faces[a, b] = self.faces[b, c] = self.faces[c, a] = face
        return face

    def _sees(self, p: int, face: _Face) -> bool:
        """Return whether the point is outside the face, exactly."""
        (px, py, pz), (ax, ay, az), (nx, ny, nz) = self.rows[p], face.base, face.normal
        dx, dy, dz = px - ax, py - ay, pz - az
        height = nx * dx + ny * dy + nz * dz
        error = face.doubt * (abs(dx) + abs(dy) + abs(dz))
        if abs(height) > error:
            return height > 0.0
        return self.integers.orientation(*face.corners, p) > 0

    def _share_out(self, new: list[_Face], candidates: Faces) -> None:
        """Give each candidate to the new face above which it is highest, if it is above one."""
        for face in new:
            face.outside = None
        if not len(candidates):
            return
        x, y, z = self.x[candidates], self.y[candidates], self.z[candidates]
        # Sums without BLAS, whose roundings differ from machine to machine.
        heights = np.empty((len(new), len(candidates)))
        for row, face in zip(heights, new):
            (nx, ny, nz), (ax, ay, az) = face.normal, face.base
            row[:] = (x - ax) * nx + (y - ay) * ny + (z - az) * nz
        best, owner = heights.max(axis=0), heights.argmax(axis=0)
        above = best > self.tolerance
        candidates, best, owner = candidates[above], best[above], owner[above]
        for number in sorted(set(owner.tolist())):
            mine = owner == number
            self._set_outside(new[number], candidates[mine], best[mine])

    def _set_outside(self, face: _Face, outside: Faces, heights: Array) -> None:
        """Keep the points outside a face. Of the highest, the farthest from the middle is a corner."""
        height = float(heights.max())
        highest = outside[heights >= height - self.tolerance]
        face.outside = outside
        face.farthest = int(highest[np.argmax(self.radii[highest])] if len(highest) > 1 else highest[0])
        self.count += 1  # of two faces with the same height the older comes first
        heapq.heappush(self.heap, (-height, self.count, face))


def _simplex(points: Array, extent: float) -> tuple[list[int], float]:
    """Return four points that span a volume, all corners of the hull, and the distance of the last from the
    plane of the others.
    """
    from_middle = np.square(points - points.mean(axis=0)).sum(axis=1)
    a = int(np.argmax(from_middle))
    b = int(np.argmax(np.square(points - points[a]).sum(axis=1)))
    line = points[b] - points[a]
    normals = np.cross(points - points[a], line)
    area = np.square(normals).sum(axis=1)
    c = int(np.argmax(area))
    length = math.sqrt(area[c])
    height = np.abs((points - points[a]) @ normals[c]) / length if length > 0.0 else np.zeros(len(points))
    d = int(np.argmax(height))
    if (
        extent == 0.0
        or length <= MIN_RELATIVE_THICKNESS * extent * extent
        or height[d] <= MIN_RELATIVE_THICKNESS * extent
    ):
        raise ModelError("convex mesh: the points lie in a plane; give four or more that span a volume")
    return [a, b, c, d], float(height[d])


@final
class _Integers:
    """The points as integers, all multiplied by one power of two, and the exact sign of a determinant."""

    def __init__(self, points: Array) -> None:
        self.points = points
        least = np.frexp(points[points != 0.0])[1].min(initial=0)
        self.shift = 53 - int(least)
        self.rows: dict[int, tuple[int, int, int]] = {}

    def row(self, p: int) -> tuple[int, int, int]:
        """Return the coordinates of a point as integers."""
        if p not in self.rows:
            ratios = [float(x).as_integer_ratio() for x in self.points[p]]
            x, y, z = (top << self.shift + 1 - bottom.bit_length() for top, bottom in ratios)
            self.rows[p] = x, y, z
        return self.rows[p]

    def orientation(self, a: int, b: int, c: int, p: int) -> int:
        """Return (b - a) x (c - a) . (p - a) times a positive number."""
        ax, ay, az = self.row(a)
        (ux, uy, uz), (vx, vy, vz), (wx, wy, wz) = (
            (x - ax, y - ay, z - az) for x, y, z in (self.row(b), self.row(c), self.row(p))
        )
        return (uy * vz - uz * vy) * wx + (uz * vx - ux * vz) * wy + (ux * vy - uy * vx) * wz


POINTS_PER_BLOCK: Final = 32
"""Points of which the distances from all faces are computed at a time."""


def _distances(points: Array, triangles: Array) -> Array:
    """Return the distance (n,) of each point (n, 1, 3) from the nearest of its triangles (n or 1, m, 3,
    3).
    """
    a, b, c = (triangles[..., k, :] for k in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), np.finfo(np.float64).tiny)
    squares, inside = [], np.array(True)
    for start, end in ((a, b), (b, c), (c, a)):
        edge, from_start = end - start, points - start
        along = ((from_start * edge).sum(axis=-1) / np.square(edge).sum(axis=-1)).clip(0.0, 1.0)
        squares.append(np.square(from_start - along[..., np.newaxis] * edge).sum(axis=-1))
        inside = inside & ((from_start * np.cross(normals, edge)).sum(axis=-1) > 0.0)
    height = np.where(inside, np.abs(((points - a) * normals).sum(axis=-1)), np.inf)
    found: Array = np.minimum(np.sqrt(np.minimum.reduce(squares)), height).min(axis=1)
    return found
