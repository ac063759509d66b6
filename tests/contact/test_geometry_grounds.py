"""Solids on planes and height fields."""

import numpy as np
import pytest
from tests.contact.placements import Poses, by_coal, check_form, points_between, random_poses, rotations

import dalembert as da
from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP
from dalembert.model.shapes import ConvexMesh, Ellipsoid, HeightField

POINTS = np.random.default_rng(1).normal(size=(40, 3)) * 0.3
SOLIDS = [
    da.shapes.Sphere(0.2),
    da.shapes.Capsule(0.1, 0.5),
    da.shapes.Box((0.3, 0.4, 0.5)),
    da.shapes.Cylinder(0.25, 0.8),
    Ellipsoid((0.2, 0.5, 0.35)),
    ConvexMesh(POINTS),
    ConvexMesh(POINTS[:6]),
]


def ids(shape):
    return shape.kind


def identity(n):
    return Poses(np.repeat(np.eye(3)[:, :, None], n, axis=2), np.zeros((3, n)))


@pytest.mark.parametrize("solid", SOLIDS, ids=ids)
def test_the_lowest_point_of_every_solid_is_over_the_plane_as_coal_says(solid):
    rng = np.random.default_rng(21)
    A, B = random_poses(1000, 0.8, rng), random_poses(1000, 0.8, rng)
    points = points_between(da.shapes.Plane(), A, solid, B)
    check_form(points)
    distances, normals = by_coal(da.shapes.Plane(), A, solid, B)
    np.testing.assert_allclose(points.least, distances, atol=1e-8)
    np.testing.assert_allclose(points.normal[0], normals, atol=1e-9)


def test_a_sole_with_a_rounded_rim_stands_on_its_four_corners():
    """Not on one point at a time: the rim is higher, if only by 0.9 mm in 10 mm."""
    sole = [(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.05, 0.05)]
    rim = [(1.1 * x, 1.2 * y, 0.9e-3) for x, y, _ in sole]
    mesh = ConvexMesh([*sole, *rim, *[(x, y, 0.05) for x, y, _ in rim]])
    pose = identity(1)
    pose.p[2] = -1e-5
    points = points_between(da.shapes.Plane(), identity(1), mesh, pose)
    corners = points.position[points.gap[:, 0] < 0.0, :2, 0]
    assert {(round(x, 3), round(y, 3)) for x, y in corners} == {(x, y) for x, y, _ in sole}


GROUNDS = [da.shapes.Plane(), HeightField([[0.0, 0.0], [0.0, 0.0]], (9.0, 9.0))]


@pytest.mark.parametrize("ground", GROUNDS, ids=ids)
def test_a_mesh_on_one_of_its_corners_has_one_point(ground):
    """An icosahedron, each corner in turn down and tilted by up to 5 degrees."""
    golden = 0.5 * (1.0 + np.sqrt(5.0))
    upright = [(0.0, y, z) for y in (-0.1, 0.1) for z in (-0.1 * golden, 0.1 * golden)]
    mesh = ConvexMesh(np.concatenate([np.roll(upright, k, axis=1) for k in range(3)]))
    vertices, rng = np.array(mesh.vertices), np.random.default_rng(25)
    assert len(vertices) == 12
    radius = np.linalg.norm(vertices[0])
    down = np.repeat(vertices / radius, 20, axis=0) + rng.uniform(-0.05, 0.05, size=(240, 3))
    down /= np.linalg.norm(down, axis=1, keepdims=True)
    pose = Poses(turned_down(down, rng), np.array([0.0, 0.0, 0.15])[:, None] * np.ones(240))
    points = points_between(ground, identity(240), mesh, pose)
    exists = points.gap < ABSENT_POINT_GAP
    np.testing.assert_array_equal(exists.sum(axis=0), 1)
    lowest = np.einsum("ijn,nj->in", pose.R, np.repeat(vertices, 20, axis=0)) + pose.p
    np.testing.assert_allclose(points.least, lowest[2], atol=1e-12)
    middle = lowest * np.array([[1.0], [1.0], [0.5]])
    np.testing.assert_allclose(points.deepest(points.position), middle, atol=1e-12)


def turned_down(down, rng):
    """Rotations (3, 3, n) that turn unit vectors (n, 3) to -z."""
    across = np.cross(down, rng.normal(size=down.shape))
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return np.stack([across, np.cross(across, down), -down]).transpose(0, 2, 1)


@pytest.mark.parametrize("ground", GROUNDS, ids=ids)
@pytest.mark.parametrize("corners", [3, 4, 6])
def test_a_mesh_that_stands_flat_has_corners_of_its_face_and_none_twice(ground, corners):
    """Frusta with a wider top of nine corners, however they are turned and lean by rounding: all corners, or
    four or five of more."""
    rng = np.random.default_rng(26)
    n = 100
    base = 0.2 * np.array([(*ring(2.0 * np.pi * k / corners), 0.0) for k in range(corners)])
    mesh = ConvexMesh([*base, *[(*(0.3 * ring(2.0 * np.pi * k / 9)), 0.2) for k in range(9)]])
    yaw, lean = rng.uniform(-np.pi, np.pi, n), 1e-10 * rng.normal(size=(2, n))
    c, s, o = np.cos(yaw), np.sin(yaw), np.zeros(n)
    R = np.array([[c, -s, o], [s, c, o], [lean[0], lean[1], o + 1.0]])
    pose = Poses(R, np.array([o, o, o - 1e-5]))
    points = points_between(ground, identity(n), mesh, pose)
    exists = points.gap < ABSENT_POINT_GAP
    assert set(exists.sum(axis=0)) == ({corners} if corners < 5 else {4, 5})
    np.testing.assert_allclose(points.gap[exists], -1e-5, atol=1e-9)
    at = np.einsum("ijn,kj->kin", R, base) + pose.p
    for i in range(n):
        own = points.position[exists[:, i], :, i]
        nearest = np.linalg.norm(own[:, None] - at[None, :, :, i], axis=2)
        assert nearest.min(axis=1).max() < 1e-5
        assert len(set(nearest.argmin(axis=1))) == len(own)


def ring(angle):
    return np.array([np.cos(angle), np.sin(angle)])


def test_a_cylinder_stands_on_three_points_and_lies_on_two():
    rng = np.random.default_rng(22)
    n, cylinder = 100, da.shapes.Cylinder(0.25, 0.8)
    pose = identity(n)
    pose.p[2] = 0.4 - 1e-5
    lean = 1e-10 * rng.normal(size=n)
    pose.R[0, 2], pose.R[2, 0] = lean, -lean
    points = points_between(da.shapes.Plane(), identity(n), cylinder, pose)
    touching = points.gap < 0.0
    assert (touching.sum(axis=0) == 3).all()
    np.testing.assert_allclose(points.gap[touching], -1e-5, atol=1e-9)
    assert np.ptp(points.position, axis=2).max() < 1e-3  # whatever way it leans by rounding
    assert np.abs(points.position[touching[:, 0]].mean(axis=0)[:2]).max() < 1e-6
    np.testing.assert_allclose(
        np.linalg.norm(points.position[touching[:, 0], :2], axis=1), 0.25, atol=1e-6
    )  # on the rim
    lying = Poses(
        np.array([[0, 0, 1], [0, 1, 0], [-1, 0, 0]], float)[:, :, None], np.array([[0], [0], [0.25]])
    )
    points = points_between(da.shapes.Plane(), identity(1), cylinder, lying)
    np.testing.assert_allclose(sorted(points.gap[:, 0])[:2], 0.0, atol=1e-12)
    np.testing.assert_allclose(sorted(points.position[:2, 0, 0]), [-0.4, 0.4], atol=1e-12)


@pytest.mark.parametrize("solid", SOLIDS, ids=ids)
def test_a_height_field_that_is_a_slope_is_a_plane(solid):
    rng = np.random.default_rng(23)
    n, slope = 300, np.array([0.4, -0.3])
    x, y = np.linspace(-3.0, 3.0, 7), np.linspace(-2.0, 2.0, 6)
    field = HeightField(slope[0] * x + slope[1] * y[:, None] + 0.2, (6.0, 4.0))
    up = np.array([*-slope, 1.0]) / np.linalg.norm([*-slope, 1.0])
    across = np.cross([0.0, 1.0, 0.0], up) / np.linalg.norm(np.cross([0.0, 1.0, 0.0], up))
    R = np.column_stack([across, np.cross(up, across), up])
    tilted = Poses(np.repeat(R[:, :, None], n, axis=2), np.repeat([[0.0], [0.0], [0.2]], n, axis=1))
    pose = random_poses(n, 0.8, rng)
    found = points_between(field, identity(n), solid, pose)
    expected = points_between(da.shapes.Plane(), tilted, solid, pose)
    np.testing.assert_allclose(found.gap, expected.gap, atol=1e-12)
    np.testing.assert_allclose(found.normal, expected.normal, atol=1e-12)
    np.testing.assert_allclose(found.position, expected.position, atol=1e-12)
    R, p = rotations(1, rng)[:, :, 0], rng.normal(size=3)
    moved = points_between(field, identity(n).moved(R, p), solid, pose.moved(R, p))
    np.testing.assert_allclose(moved.gap, found.gap, atol=1e-9)


def test_corners_stand_over_the_triangles_of_a_height_field():
    """Those of `height_at`, for whose normal a vertical difference is a cosine longer than the gap."""
    rng = np.random.default_rng(24)
    n, field = 400, HeightField(0.3 * rng.normal(size=(6, 8)), (4.0, 3.0))
    box = da.shapes.Box((0.02, 0.02, 0.02))
    pose = Poses(rotations(n, rng), rng.uniform(-1, 1, size=(3, n)) * np.array([[1.9], [1.4], [0.6]]))
    points = points_between(field, identity(n), box, pose)
    check_form(points)
    up = points.normal[:, 2]
    corners = points.position + 0.5 * points.gap[:, None] * points.normal
    for k in range(4):
        for i in range(n):
            x, y, z = corners[k, :, i]
            assert points.gap[k, i] == pytest.approx((z - field.height_at(x, y)) * up[k, i], abs=1e-12)
            slope = field.height_at(x + 1e-7, y) - field.height_at(x - 1e-7, y)
            assert slope / 2e-7 == pytest.approx(-points.normal[k, 0, i] / up[k, i], abs=1e-6) or i % 50 == 0


def test_beyond_a_height_field_there_is_nothing():
    field = HeightField([[0.0, 0.0], [0.0, 0.0]], (2.0, 4.0))
    pose = Poses(identity(4).R, np.array([[0.9, 1.1, 0.0, 0.0], [0.0, 0.0, -1.9, 2.1], [0.5, 0.5, 0.5, 0.5]]))
    points = points_between(field, identity(4), da.shapes.Sphere(0.1), pose)
    np.testing.assert_allclose(points.gap[0], [0.4, ABSENT_POINT_GAP, 0.4, ABSENT_POINT_GAP], atol=1e-12)


def test_a_ball_touches_the_nearer_side_of_a_hollow_and_the_farther_side_of_a_ridge():
    """Slopes 0, 1/2 and 2, then level again: bends at x = 0 and 1 upward, at 2 downward."""
    x = np.linspace(-3.0, 4.0, 8)
    heights = np.interp(x, [-3.0, 0.0, 1.0, 2.0, 4.0], [0.0, 0.0, 0.5, 2.5, 2.5])
    field = HeightField(heights * np.ones((3, 1)), (7.0, 4.0))
    normals = {slope: np.array([-slope, 0.0, 1.0]) / np.hypot(slope, 1.0) for slope in (0.0, 0.5, 2.0)}
    on = {0.0: np.zeros(3), 0.5: np.zeros(3), 2.0: np.array([1.0, 0.0, 0.5])}
    # The field is centred at x = 0.5; c over the slope, and which slope counts.
    for c, slope, top in (
        ([-0.5, 0.3, 0.8], 0.0, 0.0),  # far from the bend
        ([0.95, 0.3, 1.5], 2.0, 0.0),  # over the gentle slope, the foot is under the steep one
        ([1.9, 0.3, 3.1], 0.0, 2.5),  # over the steep slope, the foot is beyond its end
        ([1.5, 0.3, 2.0], 2.0, 0.0),
    ):
        pose = Poses(identity(1).R, np.array(c)[:, None] - np.array([[0.5], [0.0], [0.0]]))
        points = points_between(field, identity(1), da.shapes.Sphere(0.3), pose)
        expected = normals[slope] @ (np.array(c) - on[slope] - np.array([0.0, 0.0, top])) - 0.3
        assert points.gap[0, 0] == pytest.approx(expected, abs=1e-12)
        np.testing.assert_allclose(points.normal[0, :, 0], normals[slope], atol=1e-12)
