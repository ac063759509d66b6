"""Convex meshes against the hulls of Qhull and integrals over volumes; height fields between their points."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dalembert.errors import ArgumentError, DalembertError, ModelError
from dalembert.formats.meshes import TriangleMesh, read_mesh
from dalembert.model.shapes import Box, ConvexMesh, HeightField
from dalembert.models.random_trees import random_placement

CLOUDS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "cloud": lambda rng, n: rng.normal(size=(n, 3)),
    "flat cloud": lambda rng, n: rng.normal(size=(n, 3)) * [1.0, 1e-3, 1.0],
    "far cloud": lambda rng, n: rng.normal(size=(n, 3)) + [1e3, 0.0, -1e3],
    "sphere": lambda rng, n: (x := rng.normal(size=(n, 3))) / np.linalg.norm(x, axis=1, keepdims=True),
    "lattice": lambda rng, n: np.round(2.0 * rng.normal(size=(n, 3))),
    "cut cloud": lambda rng, n: np.clip(rng.normal(size=(n, 3)), -0.6, 0.6),
    "cylinder": lambda rng, n: np.array(
        [(math.cos(t), math.sin(t), z) for t in np.arange(n) * 2.0 * math.pi / n for z in (0.0, 0.5, 1.0)]
    ),
}


@pytest.mark.parametrize("count", [8, 60, 400])
@pytest.mark.parametrize("kind", CLOUDS)
def test_hulls_are_those_of_qhull(kind: str, count: int) -> None:
    """Volume, and every point is inside or on the surface; corners are all kept."""
    spatial = pytest.importorskip("scipy.spatial")
    points = np.unique(CLOUDS[kind](np.random.default_rng(count), count), axis=0)
    expected = spatial.ConvexHull(points)
    mesh = ConvexMesh(points.tolist())
    assert mesh.volume == pytest.approx(expected.volume, rel=1e-10)
    vertices, faces = np.array(mesh.vertices), np.array(mesh.faces)
    normals = np.cross(*(vertices[faces[:, k]] - vertices[faces[:, 0]] for k in (1, 2)))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    heights = points @ normals.T - np.einsum("fi,fi->f", normals, vertices[faces[:, 0]])
    assert heights.max() < 1e-9 * np.ptp(points, axis=0).max()
    # Qhull may keep points on edges and faces too; corners are what other points do not make.
    if kind in ("cloud", "far cloud", "sphere"):
        assert {*map(tuple, vertices)} == {*map(tuple, points[expected.vertices])}
    edges = {(a, b) for face in mesh.faces for a, b in zip(face, (*face[1:], face[0]))}
    assert len(edges) == 3 * len(faces)
    assert all((b, a) in edges for a, b in edges)
    assert len(vertices) - len(edges) // 2 + len(faces) == 2  # Euler


@pytest.mark.parametrize("kind", CLOUDS)
def test_the_hull_of_a_hull_is_itself(kind: str) -> None:
    mesh = ConvexMesh(CLOUDS[kind](np.random.default_rng(5), 70).tolist())
    again = ConvexMesh(mesh.vertices)
    assert again == mesh
    assert again.faces == mesh.faces
    assert hash(again) == hash(mesh)


def test_a_box_of_eight_corners_weighs_what_the_box_does() -> None:
    X = random_placement(3)
    corners = [(x, y, z) for x in (-0.1, 0.1) for y in (-0.2, 0.2) for z in (-0.3, 0.3)]
    mesh, box = ConvexMesh(corners, placement=X), Box((0.2, 0.4, 0.6), placement=X)
    np.testing.assert_allclose(
        mesh.inertia(density=700.0).leaves(), box.inertia(density=700.0).leaves(), rtol=1e-12, atol=1e-12
    )
    assert len(mesh.faces) == 12


def test_moments_are_integrals_over_the_volume() -> None:
    """A skew body off its origin, by tetrahedra and by a lattice of points."""
    rng = np.random.default_rng(4)
    mesh = ConvexMesh((rng.uniform(-1.0, 1.0, (12, 3)) + [0.5, 0.2, -0.3]).tolist())
    vertices, faces = np.array(mesh.vertices), np.array(mesh.faces)
    normals = np.cross(*(vertices[faces[:, k]] - vertices[faces[:, 0]] for k in (1, 2)))
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    n = 90
    axes = [a + (np.arange(n) + 0.5) * (b - a) / n for a, b in zip(low, high)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    inside = np.all(grid @ normals.T <= np.einsum("fi,fi->f", normals, vertices[faces[:, 0]]), axis=1)
    points = grid[inside]
    body = mesh.inertia(mass=2.0)
    np.testing.assert_allclose(list(body.com), points.mean(axis=0), atol=3e-3)
    r = points - points.mean(axis=0)
    second = 2.0 * r.T @ r / len(r)
    expected = np.trace(second) * np.eye(3) - second
    np.testing.assert_allclose(np.array(body.inertia_at_com.to_list()), expected, atol=5e-3)
    assert mesh.volume == pytest.approx(len(points) * np.prod((high - low) / n), rel=5e-3)


def test_the_hull_of_a_mesh_file(tmp_path: Any) -> None:
    path = tmp_path / "wedge.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 9 9 9\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    hull = read_mesh(path).scale_by((1.0, 2.0, 3.0)).hull(name="wedge", group=4)
    assert hull.volume == pytest.approx(1.0)
    assert (hull.name, hull.group) == ("wedge", 4)
    with pytest.raises(ModelError, match="in a plane"):
        TriangleMesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)], [(0, 1, 2), (1, 3, 2)]).hull()  # type: ignore[arg-type]


def test_height_fields_pass_through_their_points_and_are_linear_between() -> None:
    """The diagonal runs from corner (i, k) to (i + 1, k + 1)."""
    rng = np.random.default_rng(2)
    heights = rng.normal(size=(4, 6))
    field = HeightField(heights.tolist(), (5.0, 6.0))
    for i in range(4):
        for k in range(6):
            assert field.height_at(-2.5 + k, -3.0 + 2.0 * i) == pytest.approx(heights[i, k], abs=1e-12)
    for i in range(3):
        for k in range(5):
            middle = field.height_at(-2.0 + k, -2.0 + 2.0 * i)
            assert middle == pytest.approx((heights[i, k] + heights[i + 1, k + 1]) / 2.0, abs=1e-12)
    a, b = rng.normal(size=2)
    x, y = np.meshgrid(np.linspace(-1.0, 1.0, 5), np.linspace(-2.0, 2.0, 7))
    plane = HeightField((a * x + b * y).tolist(), (2.0, 4.0))
    for u, v in rng.uniform(-1.0, 1.0, (50, 2)) * [1.0, 2.0]:
        assert plane.height_at(u, v) == pytest.approx(a * u + b * v, abs=1e-12)
    assert HeightField(np.array(field.heights), (5.0, 6.0)) == field  # type: ignore[arg-type]


FLAT = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1.0, 1.0, 0.0), (0.3, 0.2, 0.0)]
BAD: list[tuple[str, Callable[[], Any], type[DalembertError], str]] = [
    ("three points", lambda: ConvexMesh(FLAT[:3]), ModelError, r"shape \(3, 3\); give four points"),
    ("plane", lambda: ConvexMesh(FLAT), ModelError, "in a plane"),
    ("line", lambda: ConvexMesh([(t, 2 * t, 0) for t in range(5)]), ModelError, "in a plane"),
    ("one point", lambda: ConvexMesh([(1, 2, 3)] * 5), ModelError, "in a plane"),
    ("pairs", lambda: ConvexMesh([(1, 2)] * 5), ModelError, "shape"),
    ("ragged", lambda: ConvexMesh([(1, 2, 3), (1, 2)]), ModelError, "must be points"),
    ("text", lambda: ConvexMesh("abc"), ModelError, "must be points"),
    ("nan", lambda: ConvexMesh([*FLAT, (0, 0, math.nan)]), ModelError, "not finite"),
    ("density", lambda: ConvexMesh([*FLAT, (0, 0, 1)]).inertia(), ArgumentError, "either mass or density"),
    ("one row", lambda: HeightField([[1.0, 2.0]], (1, 1)), ModelError, "two rows and two columns"),
    ("one list", lambda: HeightField([1.0, 2.0], (1, 1)), ModelError, "two rows and two columns"),  # type: ignore[list-item]
    ("ragged rows", lambda: HeightField([[1.0, 2.0], [1.0]], (1, 1)), ModelError, "equal length"),
    ("infinite", lambda: HeightField([[1.0, math.inf], [1.0, 2.0]], (1, 1)), ModelError, "not finite"),
    ("no size", lambda: HeightField([[1.0, 1.0], [1.0, 2.0]], (1, 0)), ModelError, "positive"),
    ("sizes", lambda: HeightField([[1.0, 1.0], [1.0, 2.0]], (1, 1, 1)), ModelError, "give two"),  # type: ignore[arg-type]
    (
        "beyond",
        lambda: HeightField([[1.0, 1.0], [1.0, 2.0]], (1, 1)).height_at(0.6, 0.0),
        ArgumentError,
        "no ground",
    ),
]


@pytest.mark.parametrize(("build", "kind", "message"), [case[1:] for case in BAD], ids=[c[0] for c in BAD])
def test_bad_input_is_refused(build: Callable[[], Any], kind: type[DalembertError], message: str) -> None:
    with pytest.raises(kind, match=message):
        build()
