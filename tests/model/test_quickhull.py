"""Hulls of points that break quickhull in floating point, against Qhull; and what reduced hulls leave out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dalembert.errors import ModelError
from dalembert.model.shapes import ConvexMesh, quickhull
from dalembert.model.shapes.quickhull import (
    EXACT_VERTICES,
    MAX_HULL_VERTICES,
    Hull,
    convex_hull,
    reduced_hull,
    remember_hull,
)

Array = npt.NDArray[np.float64]


def rotated(rng: np.random.Generator, points: Array) -> Array:
    return points @ np.linalg.qr(rng.normal(size=(3, 3)))[0]


def surface_grid() -> Array:
    """The surface of a cube as 386 points, 8 of which are its corners."""
    grid = np.array(list(itertools.product(np.linspace(0.0, 1.0, 9), repeat=3)))
    return grid[((grid == 0.0) | (grid == 1.0)).any(axis=1)]


def sphere(rng: np.random.Generator, count: int) -> Array:
    points = rng.normal(size=(count, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def cylinder() -> Array:
    angles = np.linspace(0.0, 2.0 * math.pi, 90, endpoint=False)
    return np.array([(math.cos(t), math.sin(t), z) for t in angles for z in np.linspace(0.0, 1.0, 7)])


def noisy(points: Array, rng: np.random.Generator, size: float) -> Array:
    return points + size * rng.normal(size=points.shape)


CLOUDS: dict[str, Callable[[np.random.Generator], Array]] = {
    "grid": lambda rng: surface_grid(),
    "rotated grid": lambda rng: rotated(rng, surface_grid()),
    "grid in single precision": lambda rng: rotated(rng, surface_grid()).astype("f4").astype("f8") * 0.001,
    "far grid": lambda rng: surface_grid() + 1e6,
    **{
        f"grid with noise {size}": lambda rng, size=size: noisy(surface_grid(), rng, size)  # type: ignore[misc]
        for size in (1e-15, 1e-12, 1e-10, 1e-9, 1e-8, 1e-6)
    },
    **{
        f"points repeated within {size}": lambda rng, size=size: noisy(  # type: ignore[misc]
            np.repeat(sphere(rng, 200), 4, axis=0), rng, size
        )
        for size in (0.0, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7)
    },
    **{
        f"plate of thickness {size}": lambda rng, size=size: rotated(  # type: ignore[misc]
            rng, rng.normal(size=(500, 3)) * [1.0, 1.0, size]
        )
        for size in (1e-2, 1e-4, 1e-6, 1e-8)
    },
    **{
        f"needle of thickness {size}": lambda rng, size=size: rotated(  # type: ignore[misc]
            rng, rng.normal(size=(500, 3)) * [1.0, size, size]
        )
        for size in (1e-2, 1e-3, 1e-4)
    },
    "sphere": lambda rng: sphere(rng, 800),
    "lens": lambda rng: sphere(rng, 800) * [1.0, 1.0, 1e-3],
    "cylinder": lambda rng: cylinder(),
    "rotated cylinder": lambda rng: rotated(rng, cylinder()),
    "cone": lambda rng: np.vstack([cylinder()[::7], [(0.0, 0.0, 1.0)]]),
    "lattice": lambda rng: rng.integers(-5, 6, size=(2000, 3)).astype(float),
    "points on edges": lambda rng: np.vstack(
        [
            np.vstack([np.zeros(3), np.eye(3)]),
            *([(t, 1.0 - t, 0.0), (t, 0.0, 0.0)] for t in np.arange(1, 50) / 50),
        ]
    ),
    "sizes from 1 to 1e-9": lambda rng: np.vstack(
        [sphere(rng, 150) * 10.0 ** (-3 * k) + np.eye(4, 3, -1)[k] for k in range(4)]
    ),
}


def support(points: Array, directions: Array) -> Array:
    return np.array((points @ directions.T).max(axis=0))


def assert_hull(points: Array, corners: Array, faces: npt.NDArray[np.int64]) -> None:
    """Closed, a sphere by Euler's formula, outward, around all points, with the volume of Qhull."""
    spatial = pytest.importorskip("scipy.spatial")
    low, extent = points.min(axis=0), np.ptp(points, axis=0).max()
    points, corners = (points - low) / extent, (corners - low) / extent
    edges = {(a, b) for face in faces.tolist() for a, b in zip(face, (*face[1:], face[0]))}
    assert len(edges) == 3 * len(faces)
    assert all((b, a) in edges for a, b in edges)
    assert len(corners) - len(edges) // 2 + len(faces) == 2
    a, b, c = (corners[faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    assert (np.einsum("fi,fi->f", normals, a - corners.mean(axis=0)) > 0.0).all()
    # How far points reach along the normals of both hulls: heights above a face that is as small as the gaps
    # between its corners would be rounding.
    directions = np.vstack([normals, spatial.ConvexHull(points).equations[:, :3]])
    parts = 1 + max(len(directions) // 200, len(directions) * len(points) // 4_000_000)  # of 32 MB at most
    for part in np.array_split(directions, parts):
        assert (support(points, part) - support(corners, part)).max() < 1e-9
    volume = float(np.einsum("fi,fi->", a - 0.5, np.cross(b - 0.5, c - 0.5))) / 6.0
    assert volume == pytest.approx(spatial.ConvexHull(points).volume, rel=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("kind", CLOUDS)
def test_hulls_of_degenerate_points_are_those_of_qhull(kind: str, seed: int) -> None:
    points = CLOUDS[kind](np.random.default_rng(seed))
    corners, faces = convex_hull(points)
    assert_hull(points, corners, faces)
    assert {*map(tuple, corners.tolist())} <= {*map(tuple, (points + 0.0).tolist())}
    quickhull._known_faces.clear()
    again = convex_hull(corners)
    assert np.array_equal(again[0], corners)
    assert np.array_equal(again[1], faces)


def test_flat_parts_have_no_corners_inside_them() -> None:
    rng = np.random.default_rng(1)
    for points in (surface_grid(), rotated(rng, surface_grid()), noisy(surface_grid(), rng, 1e-12)):
        assert len(convex_hull(points)[0]) == 8
    assert len(convex_hull(cylinder())[0]) == 180


def test_coordinates_of_any_size_have_a_hull() -> None:
    """A power of two changes no face, and products of the coordinates would overflow or vanish."""
    points = sphere(np.random.default_rng(3), 100)
    corners, faces = convex_hull(points)
    for power in (-900, -300, 300, 900):
        scaled, same = convex_hull(np.ldexp(points, power))
        assert np.array_equal(scaled, np.ldexp(corners, power))
        assert np.array_equal(same, faces)


def test_signs_of_determinants_are_exact() -> None:
    """Points on the plane through three others, and one rounding beside it, against fractions."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        points = rng.normal(size=(4, 3)) * 10.0 ** rng.integers(-8, 8)
        weights = rng.normal(size=3)
        points[3] = weights / weights.sum() @ points[:3]
        points[3, rng.integers(3)] *= 1.0 + rng.integers(-1, 2) * 2.0**-52
        u, v, w = ([Fraction(x) - Fraction(y) for x, y in zip(p, points[0])] for p in points[1:].tolist())
        exact = sum(
            w[i] * (u[(i + 1) % 3] * v[(i + 2) % 3] - u[(i + 2) % 3] * v[(i + 1) % 3]) for i in range(3)
        )
        found = quickhull._Integers(points).orientation(0, 1, 2, 3)
        assert (found > 0) - (found < 0) == (exact > 0) - (exact < 0)


@pytest.mark.parametrize("count", [4, 16, 64, 200])
@pytest.mark.parametrize("kind", ["sphere", "rotated cylinder", "lattice", "lens", "rotated grid"])
def test_a_reduced_hull_is_within_its_gap_both_ways(kind: str, count: int) -> None:
    """h(u) of the whole hull is at most the gap above that of the reduced one, and never below; in the
    direction of the point that is farthest outside it is the gap.
    """
    rng = np.random.default_rng(count)
    points = CLOUDS[kind](rng)
    hull = reduced_hull(points, max_vertices=count, tolerance=0.0)
    assert len(hull.corners) <= count
    directions = sphere(rng, 20_000)
    excess = support(points, directions) - support(hull.corners, directions)
    assert excess.min() > -1e-12
    assert excess.max() <= hull.gap + 1e-12
    if hull.gap:
        assert _largest_distance(points, hull) == pytest.approx(hull.gap, rel=1e-5)
    else:
        assert len(hull.corners) == len(convex_hull(points)[0])


def _largest_distance(points: Array, hull: Hull) -> float:
    """The distance from a hull to the point farthest from it, by Frank-Wolfe steps with exact line search,
    fully corrected: the nearest point in the hull of corners by non-negative least squares.
    """
    optimize = pytest.importorskip("scipy.optimize")
    weight, found = 1e4, 0.0
    matrix = np.vstack([hull.corners.T, np.full(len(hull.corners), weight)])
    for point in convex_hull(points)[0]:
        found = max(found, optimize.nnls(matrix, np.append(point, weight))[1])
    return found


def test_hulls_are_reduced_until_they_are_within_the_tolerance() -> None:
    points = sphere(np.random.default_rng(6), 1500) * [0.1, 0.15, 0.2]
    counts = []
    for tolerance in (5e-3, 2e-3, 1e-3):
        hull = reduced_hull(points, max_vertices=1500, tolerance=tolerance)
        assert 0.0 < hull.gap <= tolerance
        counts.append(len(hull.corners))
    assert EXACT_VERTICES <= counts[0] < counts[1] < counts[2] < 600
    usual = reduced_hull(points)
    assert len(usual.corners) == MAX_HULL_VERTICES  # which do not come within the tolerance of 1 mm
    assert 1e-3 < usual.gap < 2.5e-3
    small = reduced_hull(points / 10.0)
    assert small.gap <= usual.gap / 10.0 + 1e-4


def test_hulls_of_few_corners_stay_as_they_are() -> None:
    points = sphere(np.random.default_rng(7), EXACT_VERTICES)
    hull = reduced_hull(points)
    assert hull.gap == 0.0
    assert np.array_equal(hull.corners, points)
    assert np.array_equal(hull.faces, convex_hull(points)[1])


def test_the_hull_of_a_reduced_hull_is_itself() -> None:
    hull = reduced_hull(sphere(np.random.default_rng(8), 900), max_vertices=40)
    quickhull._known_faces.clear()
    mesh = ConvexMesh(hull.corners.tolist(), approximation_error=hull.gap)
    assert np.array_equal(mesh.vertices, hull.corners)
    assert np.array_equal(mesh.faces, hull.faces)
    assert mesh.approximation_error == hull.gap


@pytest.mark.parametrize("given", [-1.0, math.nan, math.inf, "1 mm"])
def test_approximation_errors_are_lengths(given: Any) -> None:
    with pytest.raises(ModelError, match="approximation_error is"):
        ConvexMesh(surface_grid().tolist(), approximation_error=given)


def test_few_hulls_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quickhull, "MAX_REMEMBERED_FACES", 100)
    quickhull._known_faces.clear()
    for seed in range(20):
        corners, faces = convex_hull(sphere(np.random.default_rng(seed), 20))
        remember_hull(Hull(corners, faces, 0.0))
        assert corners.tobytes() in quickhull._known_faces
        assert sum(map(len, quickhull._known_faces.values())) <= 100 + len(faces)
