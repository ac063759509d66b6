"""Cylinders, ellipsoids and convex meshes: distances by coal, what lies on flat faces by polygons."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from tests.contact.placements import (
    Poses,
    by_coal,
    check_form,
    points_between,
    polygon_cut,
    random_poses,
    rotations,
)

import dalembert as da
from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP
from dalembert.contact.narrow_phase.closest import closest_points, point_count
from dalembert.model.shapes import ConvexMesh, Ellipsoid

CLOUD = np.random.default_rng(1).normal(size=(60, 3)) * 0.3
SMALL, LARGE = ConvexMesh(CLOUD[:12]), ConvexMesh(CLOUD)
CYLINDER, ELLIPSOID, BOX = (
    da.shapes.Cylinder(0.25, 0.8),
    Ellipsoid((0.2, 0.5, 0.35)),
    da.shapes.Box((0.5, 0.8, 1.1)),
)
SPHERE, CAPSULE = da.shapes.Sphere(0.3), da.shapes.Capsule(0.15, 0.7)
PAIRS = [
    (SPHERE, CYLINDER), (CAPSULE, CYLINDER), (BOX, CYLINDER), (CYLINDER, CYLINDER),
    (SPHERE, ELLIPSOID), (CAPSULE, ELLIPSOID), (BOX, ELLIPSOID), (CYLINDER, ELLIPSOID),
    (ELLIPSOID, ELLIPSOID),
    (SPHERE, SMALL), (CAPSULE, SMALL), (BOX, SMALL), (CYLINDER, SMALL), (ELLIPSOID, SMALL), (LARGE, SMALL),
]  # fmt: skip

SOME = [(CAPSULE, ELLIPSOID), (BOX, CYLINDER), (LARGE, SMALL)]


def named(pair):
    return f"{pair[0].kind}-{pair[1].kind}"


def level(n, z, yaw=0.0, x=0.0, y=0.0):
    """What stands upright, turned about z."""
    c, s, o = np.cos(yaw) * np.ones(n), np.sin(yaw) * np.ones(n), np.zeros(n)
    return Poses(np.array([[c, -s, o], [s, c, o], [o, o, o + 1.0]]), np.array([o + x, o + y, o + z]))


def prism(x, y, z):
    """A box with a roof, as a mesh; it stands on z = 0."""
    return ConvexMesh([(a, b, c) for a in (-x, x) for b in (-y, y) for c in (0.0, z)] + [(0.0, 0.0, 2.0 * z)])


@pytest.mark.parametrize("pair", PAIRS, ids=named)
def test_solids_are_as_far_apart_as_coal_says(pair):
    rng = np.random.default_rng(31)
    A, B = random_poses(400, 0.8, rng), random_poses(400, 0.8, rng)
    points = points_between(pair[0], A, pair[1], B)
    check_form(points)
    gap, normal = points.gap[0], points.normal[0]
    distances, normals = by_coal(pair[0], A, pair[1], B)
    apart = distances > 1e-6
    assert apart.sum() > 150
    np.testing.assert_allclose(gap[apart], distances[apart], atol=1e-7)
    assert (np.sum(normal * normals, axis=0)[apart] > 1.0 - 1e-7).all()
    # Overlaps that are not deep: no n parts them better, and hardly ever is the depth not the least.
    touching = (distances <= 0.0) & (distances > -0.05)
    assert touching.sum() > 5
    error = gap[touching] - distances[touching]
    assert (error < 1e-6).all()
    assert (error > -1e-5).mean() > 0.9
    assert (error > -0.02).all()
    assert (gap[distances < -0.05] < 0.0).all()


@pytest.mark.parametrize("pair", SOME, ids=named)
def test_exchanging_solids_and_moving_both_changes_nothing(pair):
    rng = np.random.default_rng(32)
    A, B = random_poses(100, 0.8, rng), random_poses(100, 0.8, rng)
    points, swapped = points_between(pair[0], A, pair[1], B), points_between(pair[1], B, pair[0], A)
    R, p = rotations(1, rng)[:, :, 0], rng.normal(size=3)
    moved = points_between(pair[0], A.moved(R, p), pair[1], B.moved(R, p))
    apart = points.gap[0] > 1e-5
    for other, turned in ((swapped, -points.normal[0]), (moved, R @ points.normal[0])):
        np.testing.assert_allclose(other.gap[0][apart], points.gap[0][apart], atol=1e-7)
        np.testing.assert_allclose(other.normal[0][:, apart], turned[:, apart], atol=1e-3)


def test_the_point_is_midway_between_the_surfaces():
    """Of solids that are apart: coal's nearest points are half a gap away on either side."""
    rng = np.random.default_rng(33)
    A, B = random_poses(200, 1.2, rng), random_poses(200, 1.2, rng)
    ball = da.shapes.Sphere(1e-9)
    for a, b in ((CYLINDER, ELLIPSOID), (BOX, SMALL), (LARGE, CAPSULE)):
        points = points_between(a, A, b, B)
        apart = np.flatnonzero(points.gap[0] > 1e-3)
        middle = Poses(A.R[:, :, apart], points.position[0][:, apart])
        for shape, pose in ((a, A), (b, B)):
            distances, _ = by_coal(shape, pose.at(apart), ball, middle)
            np.testing.assert_allclose(distances, 0.5 * points.gap[0][apart], atol=1e-5)


@pytest.mark.parametrize("depth", [1e-6, 1e-4, 1e-3])
def test_what_lies_on_a_face_touches_it_in_the_corners_of_the_area(depth):
    rng = np.random.default_rng(34)
    n = 100
    shift = 1e-9 * rng.normal(size=(3, n))
    mesh = prism(0.2, 0.15, 0.2)
    for below, top in ((BOX, 0.55), (prism(0.3, 0.25, 0.3), None)):
        if top is None:  # the roof is down
            lower = Poses(np.diag([1.0, -1.0, -1.0])[:, :, None] * np.ones(n), np.zeros((3, n)))
            top, half = 0.0, np.array([0.3, 0.25])
        else:
            lower, half = level(n, 0.0), np.array([0.25, 0.4])
        upper = level(n, top - depth, 0.7 + shift[0], 0.1 + shift[1], 0.05 + shift[2])
        points = points_between(below, lower, mesh, upper)
        there = points.gap < ABSENT_POINT_GAP
        np.testing.assert_allclose(points.normal - np.array([0.0, 0.0, 1.0])[:, None], 0.0, atol=1e-8)
        np.testing.assert_allclose(points.gap[there], -depth, atol=1e-8)
        assert (there == there[:, :1]).all()
        assert np.ptp(points.position[1:], axis=2)[there[1:, 0]].max() < 1e-6
        square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        corners = square * np.array([0.2, 0.15]) @ upper.R[:2, :2, 0].T + upper.p[:2, 0]
        expected = ConvexHull(polygon_cut(list(corners), square * half)).volume
        found = ConvexHull(points.position[there[:, 0], :2, 0]).volume
        assert found == pytest.approx(expected, rel=1e-3)


CUBE = ConvexMesh([(x, y, z) for x in (-0.2, 0.2) for y in (-0.2, 0.2) for z in (-0.2, 0.2)])


def cubes(down, height, n, rng):
    """Points of a mesh cube below and one above whose direction `down` points downwards, a little tilted,
    turned and moved; and the pose of the upper one."""
    down = np.array(down) / np.linalg.norm(down)
    across = np.cross(down, [0.3, -0.5, 0.8]) / np.linalg.norm(np.cross(down, [0.3, -0.5, 0.8]))
    R = np.stack([across, np.cross(across, down), -down])
    turn = level(n, 0.0, rng.uniform(-np.pi, np.pi, n)).R
    at = np.array([rng.uniform(-0.05, 0.05, n), rng.uniform(-0.05, 0.05, n), 0.2 + height + np.zeros(n)])
    upper = Poses(np.einsum("ikn,kj->ijn", turn, R), at)
    return points_between(CUBE, level(n, 0.0), CUBE, upper), upper


@pytest.mark.parametrize("depth", [1e-3, 1e-5, -1e-3])
def test_a_mesh_cube_that_stands_on_a_corner_has_one_point(depth):
    rng = np.random.default_rng(37)
    n = 60
    for signs in ((1.0, 1.0, 1.0), (-1.0, 1.0, -1.0)):
        down = np.array(signs) + rng.uniform(-0.2, 0.2, 3)
        low = float(0.2 * np.abs(down).sum() / np.linalg.norm(down))
        points, upper = cubes(down, low - depth, n, rng)
        there = points.gap < ABSENT_POINT_GAP
        np.testing.assert_array_equal(there.sum(axis=0), 1)
        np.testing.assert_allclose(points.least, -depth, atol=1e-8)
        corner = np.einsum("ijn,j->in", upper.R, 0.2 * np.array(signs)) + upper.p
        found = points.deepest(points.position)
        np.testing.assert_allclose(found[:2], corner[:2], atol=1e-5)
        np.testing.assert_allclose(points.deepest(points.normal)[2], 1.0, atol=1e-8)
        swapped = points_between(CUBE, upper, CUBE, level(n, 0.0))
        np.testing.assert_array_equal((swapped.gap < ABSENT_POINT_GAP).sum(axis=0), 1)


def test_a_mesh_cube_that_stands_on_an_edge_touches_at_both_ends_of_it():
    rng = np.random.default_rng(38)
    n, depth = 60, 1e-4
    points, upper = cubes((1.0, 0.0, 1.0), 0.2 * np.sqrt(2.0) - depth, n, rng)
    there = points.gap < ABSENT_POINT_GAP
    np.testing.assert_allclose(points.gap[there], -depth, atol=1e-8)
    assert (there[1:].sum(axis=0) == 2).all()
    for y in (-0.2, 0.2):
        end = np.einsum("ijn,j->in", upper.R, [0.2, y, 0.2]) + upper.p
        away = np.linalg.norm((points.position - end)[:, :2], axis=1)
        inside = (np.abs(end[:2]) < 0.19).all(axis=0)
        assert inside.sum() > 10
        assert np.where(there, away, ABSENT_POINT_GAP).min(axis=0)[inside].max() < 1e-4


@pytest.mark.parametrize("depth", [1e-3, 1e-5, -1e-3])
def test_edges_of_mesh_cubes_that_cross_have_one_point(depth):
    rng = np.random.default_rng(40)
    n, c = 60, np.sqrt(0.5)
    lower = Poses(
        np.array([[c, 0.0, c], [0.0, 1.0, 0.0], [-c, 0.0, c]])[:, :, None] * np.ones(n), np.zeros((3, n))
    )
    turned = np.array([[1.0, 0.0, 0.0], [0.0, c, -c], [0.0, c, c]])
    yaw, x, y = rng.uniform(-0.5, 0.5, n), rng.uniform(-0.1, 0.1, n), rng.uniform(-0.1, 0.1, n)
    upright = level(n, 0.4 * np.sqrt(2.0) - depth, yaw, x, y)
    points = points_between(CUBE, lower, CUBE, Poses(np.einsum("ikn,kj->ijn", upright.R, turned), upright.p))
    np.testing.assert_array_equal((points.gap < ABSENT_POINT_GAP).sum(axis=0), 1)
    np.testing.assert_allclose(points.least, -depth, atol=1e-8)
    np.testing.assert_allclose(points.position[0][0], 0.0, atol=2e-5)
    np.testing.assert_allclose(points.position[0][1], y - x * np.tan(yaw), atol=2e-5)


def test_mesh_cubes_face_on_face_touch_in_the_corners_of_the_area():
    rng = np.random.default_rng(39)
    n, depth = 60, 1e-4
    points, upper = cubes((0.0, 0.0, 1.0), 0.2 - depth, n, rng)
    there = points.gap < ABSENT_POINT_GAP
    np.testing.assert_allclose(points.gap[there], -depth, atol=1e-8)
    square = 0.2 * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    for i in range(n):
        corners = [(upper.R[:, :, i] @ (*x, 0.2) + upper.p[:, i])[:2] for x in square]
        area = ConvexHull(polygon_cut(corners, square)).volume
        assert ConvexHull(points.position[there[:, i], :2, i]).volume == pytest.approx(area, rel=1e-3)


def test_a_cylinder_stands_on_a_box_and_lies_on_it():
    n = 20
    rng = np.random.default_rng(35)
    shift = 1e-9 * rng.normal(size=(3, n))
    points = points_between(
        da.shapes.Box((2.0, 2.0, 1.0)), level(n, 0.0), CYLINDER, level(n, 0.9 - 1e-5, *shift)
    )
    on_rim = points.gap[1:5]
    np.testing.assert_allclose(on_rim, -1e-5, atol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(points.position[1:5, :2], axis=1), 0.25, atol=1e-6)
    assert ConvexHull(points.position[1:5, :2, 0]).volume == pytest.approx(2.0 * 0.25**2, rel=1e-3)
    R = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])[:, :, None] * np.ones(n)
    lying = Poses(R, np.array([shift[0], shift[1], 0.75 - 1e-5 + 0.0 * shift[2]]))
    points = points_between(da.shapes.Box((2.0, 2.0, 1.0)), level(n, 0.0), CYLINDER, lying)
    touching = np.where(points.gap < 0.0, points.position[:, 0], 0.0)
    np.testing.assert_allclose(touching.max(axis=0), 0.4, atol=1e-6)
    np.testing.assert_allclose(touching.min(axis=0), -0.4, atol=1e-6)


def test_a_bar_that_ends_over_a_cylinder_touches_it_up_to_its_rim():
    """The end of the bar is over the middle of the end face; its sides leave the face at the rim."""
    bar, place = da.shapes.Box((2.0, 0.2, 1.0)), np.array([[1.0], [0.0], [0.9 - 1e-5]])
    points = points_between(CYLINDER, level(1, 0.0), bar, Poses(np.eye(3)[:, :, None], place))
    touching = points.position[points.gap[:, 0] < 0.0, :2, 0]
    rim = np.sqrt(0.25**2 - 0.1**2)
    for corner in ((0.0, 0.1), (0.0, -0.1)):
        assert np.linalg.norm(touching - corner, axis=1).min() < 1e-6
    leaving = [np.linalg.norm(touching - (rim, y), axis=1).min() for y in (0.1, -0.1)]
    assert min(leaving) < 2e-5
    assert np.all(np.linalg.norm(touching, axis=1) < 0.25 + 2e-5)
    assert np.abs(touching[:, 1]).max() < 0.1 + 2e-5
    # A disc of four corners loses a little at the rim.
    assert ConvexHull(touching).volume > 0.9 * 0.2 * rim


@pytest.mark.parametrize("pair", SOME, ids=named)
def test_solids_in_the_same_place_and_just_touching_have_finite_points(pair):
    n = 6
    rng = np.random.default_rng(36)
    A = random_poses(n, 0.0, rng)
    check_form(points_between(pair[0], A, pair[1], A))
    check_form(points_between(pair[0], A, pair[1], level(n, 0.0)))
    # Along a random direction until they touch, and a little to both sides.
    direction = rng.normal(size=(3, n))
    direction /= np.linalg.norm(direction, axis=0)
    B = random_poses(n, 0.0, rng)
    way = 3.0 * np.ones(n)
    for _ in range(8):
        points = points_between(pair[0], A, pair[1], Poses(B.R, direction * way))
        way -= points.gap[0] / np.sum(points.normal[0] * direction, axis=0)
    for step in (-1e-6, -1e-9, 0.0, 1e-9, 1e-6):
        points = points_between(pair[0], A, pair[1], Poses(B.R, direction * (way + step)))
        check_form(points)
        assert (np.abs(points.gap[0]) < 1.1e-6).all()
        if step == -1e-6:
            before = points.normal[0]
        assert (np.sum(points.normal[0] * before, axis=0) > 0.99).all()


@pytest.mark.parametrize("vertices", [6, 8, 9, 40])
@pytest.mark.parametrize(
    "other",
    [
        da.shapes.Plane(),
        da.shapes.Sphere(0.3),
        da.shapes.Capsule(0.2, 0.5),
        da.shapes.Box((0.3, 0.4, 0.5)),
        da.shapes.Cylinder(0.2, 0.5),
        da.shapes.Ellipsoid((0.1, 0.2, 0.3)),
        None,
    ],
)
def test_the_number_of_points_is_that_of_the_shapes(vertices: int, other: da.shapes.Shape | None) -> None:
    """Which is found by a small mesh in place of larger ones."""
    points = np.random.default_rng(vertices).normal(size=(vertices, 3))
    mesh = da.shapes.ConvexMesh(points / np.linalg.norm(points, axis=1, keepdims=True))
    assert len(mesh.vertices) == vertices
    X, shape = da.Transform.identity(), other or mesh
    assert point_count(shape, mesh) == len(closest_points(shape, X, mesh, X))


@pytest.mark.parametrize("depth", [1e-7, 1e-5, 1e-3, 5e-3])
def test_the_overlap_of_meshes_is_the_least_depth_of_their_difference(depth):
    """Which is a polyhedron: its nearest face, from all differences of corners."""
    rng = np.random.default_rng(41)
    for _ in range(20):
        A, B = random_poses(1, 0.1, rng), random_poses(1, 3.0, rng)
        of_a, of_b = SMALL.vertices @ A.R[:, :, 0].T, LARGE.vertices @ B.R[:, :, 0].T
        differences = of_b[:, None] - of_a
        faces = ConvexHull(differences.reshape(-1, 3)).equations
        # With b moved by t u the separation is the greatest offset - t normal . u of all faces.
        rates = faces[:, :3] @ B.p[:, 0]
        t = ((depth + faces[:, 3]) / rates)[rates < 0.0].min()
        points = points_between(SMALL, Poses(A.R, 0.0 * A.p), LARGE, Poses(B.R, t * B.p))
        np.testing.assert_allclose(points.least, -depth, atol=1e-9)
