"""Random placements of two shapes, their nearest points by dalembert, and by coal as an oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dalembert as da
from dalembert.contact.narrow_phase import closest_points
from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP
from dalembert.model.shapes import ConvexMesh, Ellipsoid
from dalembert.spatial import Mat3, Vec3

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Poses:
    """Placements R (3, 3, n), p (3, n) of a shape, one a sample."""

    R: Array
    p: Array

    def transform(self) -> da.Transform:
        return da.Transform(Mat3(*self.R.reshape(9, -1)), Vec3(*self.p))

    def at(self, chosen: Array) -> Poses:
        """Of some samples."""
        return Poses(self.R[:, :, chosen], self.p[:, chosen])

    def moved(self, R: Array, p: Array) -> Poses:
        """Seen from the frame that R and p place."""
        return Poses(np.einsum("ij,jkn->ikn", R, self.R), R @ self.p + p[:, None])


@dataclass(frozen=True)
class Points:
    """Position (k, 3, n), normal (k, 3, n) and gap (k, n) of the k points of a pair."""

    position: Array
    normal: Array
    gap: Array

    @property
    def least(self) -> Array:
        """The least gap of each sample."""
        return self.gap.min(axis=0)

    def deepest(self, of: Array) -> Array:
        """The row of `of` (k, 3, n) that belongs to the least gap: (3, n)."""
        number = self.gap.argmin(axis=0)
        return np.take_along_axis(of, number[None, None, :], axis=0)[0]


def rotations(n: int, rng: np.random.Generator) -> Array:
    """Rotation matrices (3, 3, n), any orientation as likely as another."""
    w, x, y, z = (q := rng.normal(size=(4, n))) / np.linalg.norm(q, axis=0)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def random_poses(n: int, reach: float, rng: np.random.Generator) -> Poses:
    return Poses(rotations(n, rng), rng.uniform(-reach, reach, size=(3, n)))


def points_between(a: da.Shape, A: Poses, b: da.Shape, B: Poses) -> Points:
    """By dalembert, on arrays of samples."""
    n = A.p.shape[1]
    found = closest_points(a, A.transform(), b, B.transform())

    def full(values: Any) -> Array:
        return np.stack([np.broadcast_to(x, (n,)) for x in values])

    return Points(
        np.stack([full(point.position) for point in found]),
        np.stack([full(point.normal) for point in found]),
        full([point.gap for point in found]),
    )


def coal_shape(shape: da.Shape) -> Any:
    import coal

    match shape:
        case da.shapes.Sphere():
            return coal.Sphere(shape.radius)
        case da.shapes.Capsule():
            return coal.Capsule(shape.radius, shape.length)
        case da.shapes.Cylinder():
            return coal.Cylinder(shape.radius, shape.length)
        case da.shapes.Box():
            return coal.Box(*shape.size)
        case Ellipsoid():
            return coal.Ellipsoid(*shape.radii)
        case da.shapes.Plane():
            return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
        case ConvexMesh():
            vertices = coal.StdVec_Vec3s()
            for vertex in shape.vertices:
                vertices.append(np.array(vertex))
            triangles = coal.StdVec_Triangle()
            for face in shape.faces:
                triangles.append(coal.Triangle(*face))
            return coal.Convex(vertices, triangles)
    raise AssertionError(f"no such shape in coal: {shape.kind}")


def by_coal(a: da.Shape, A: Poses, b: da.Shape, B: Poses) -> tuple[Array, Array]:
    """Signed distances (n,) and unit normals (3, n) from a to b."""
    coal = pytest.importorskip("coal")  # comes with Pinocchio
    shape_a, shape_b = coal_shape(a), coal_shape(b)
    request = coal.DistanceRequest()
    request.gjk_tolerance = request.epa_tolerance = 1e-9
    request.gjk_max_iterations = request.epa_max_iterations = 500
    n = A.p.shape[1]
    distances, normals = np.empty(n), np.empty((3, n))
    for i in range(n):
        result = coal.DistanceResult()
        X_a = coal.Transform3s(A.R[:, :, i].copy(), A.p[:, i].copy())
        X_b = coal.Transform3s(B.R[:, :, i].copy(), B.p[:, i].copy())
        distances[i] = coal.distance(shape_a, X_a, shape_b, X_b, request, result)
        normals[:, i] = result.normal
    return distances, normals


def check_form(points: Points) -> None:
    """Finite everywhere, normals of unit length, gaps not beyond ABSENT_POINT_GAP."""
    assert np.isfinite(points.position).all()
    assert np.isfinite(points.gap).all()
    np.testing.assert_allclose(np.linalg.norm(points.normal, axis=1), 1.0, atol=1e-12)
    assert points.gap.max() <= ABSENT_POINT_GAP


def check_symmetry(
    a: da.Shape, A: Poses, b: da.Shape, B: Poses, atol: float, rng: np.random.Generator
) -> None:
    """Exchanging the shapes, and moving both, changes what it must and nothing else."""
    points, swapped = points_between(a, A, b, B), points_between(b, B, a, A)
    R, p = rotations(1, rng)[:, :, 0], rng.normal(size=3)
    moved = points_between(a, A.moved(R, p), b, B.moved(R, p))
    np.testing.assert_allclose(swapped.least, points.least, atol=atol)
    np.testing.assert_allclose(moved.least, points.least, atol=atol)
    clear = np.abs(points.least) > 1e-6
    np.testing.assert_allclose(
        swapped.deepest(swapped.normal)[:, clear], -points.deepest(points.normal)[:, clear], atol=1e3 * atol
    )
    np.testing.assert_allclose(
        moved.deepest(moved.normal)[:, clear], R @ points.deepest(points.normal)[:, clear], atol=1e3 * atol
    )


def polygon_cut(subject: Any, clip: Any) -> Array:
    """The cut of two convex polygons, counter-clockwise, one after the other of clip's half planes."""
    for a, b in zip(clip, np.roll(clip, -1, axis=0), strict=True):
        side = [(b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) for p in subject]
        kept = []
        for k, p in enumerate(subject):
            if side[k] * side[k - 1] < 0.0:
                kept.append(subject[k - 1] + (p - subject[k - 1]) * side[k - 1] / (side[k - 1] - side[k]))
            if side[k] >= 0.0:
                kept.append(p)
        subject = kept
    return np.array(subject)
