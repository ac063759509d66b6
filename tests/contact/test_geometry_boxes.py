"""Boxes against spheres, capsules and boxes: distances by coal, contact areas by a polygon cut."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from tests.contact.placements import (
    Poses,
    by_coal,
    check_form,
    check_symmetry,
    points_between,
    polygon_cut,
    random_poses,
    rotations,
)

import dalembert as da
from dalembert.contact.narrow_phase.boxes import AXIS_PREFERENCE_PER_EDGE, RELATIVE_AXIS_PREFERENCE
from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP

SPHERE, CAPSULE = da.shapes.Sphere(0.3), da.shapes.Capsule(0.2, 0.9)
BOX, OTHER = da.shapes.Box((0.5, 0.8, 1.1)), da.shapes.Box((0.7, 0.4, 0.9))


def placed(n, seed, reach=0.8):
    rng = np.random.default_rng(seed)
    return random_poses(n, reach, rng), random_poses(n, reach, rng), rng


def level(n, z, yaw=0.0, x=0.0, y=0.0):
    """Boxes that stand upright, turned about z."""
    c, s, o = np.cos(yaw) * np.ones(n), np.sin(yaw) * np.ones(n), np.zeros(n)
    R = np.array([[c, -s, o], [s, c, o], [o, o, o + 1.0]])
    return Poses(R, np.array([o + x, o + y, o + z]))


def test_a_sphere_is_as_far_from_a_box_as_coal_says_inside_too():
    A, B, rng = placed(2000, 11)
    points = points_between(SPHERE, A, BOX, B)
    check_form(points)
    distances, normals = by_coal(SPHERE, A, BOX, B)
    assert (distances < -0.3).sum() > 50  # the centre is in the box
    np.testing.assert_allclose(points.least, distances, atol=1e-8)
    np.testing.assert_allclose(points.deepest(points.normal), normals, atol=1e-6)
    check_symmetry(SPHERE, A, BOX, B, 1e-12, rng)


def test_a_capsule_is_as_far_from_a_box_as_coal_says():
    """As long as its axis is out of the box; with it inside, a ball on it is inside."""
    A, B, rng = placed(3000, 12)
    points = points_between(CAPSULE, A, BOX, B)
    check_form(points)
    distances, normals = by_coal(CAPSULE, A, BOX, B)
    outside = distances > -CAPSULE.radius + 1e-6
    assert (outside & (distances < 0.0)).sum() > 300
    np.testing.assert_allclose(points.least[outside], distances[outside], atol=1e-8)
    np.testing.assert_allclose(points.deepest(points.normal)[:, outside], normals[:, outside], atol=1e-6)
    assert (points.least[~outside] <= -CAPSULE.radius + 1e-6).all()
    check_symmetry(CAPSULE, A.at(outside), BOX, B.at(outside), 1e-12, rng)


def test_a_capsule_lies_on_a_box_with_both_ends_of_what_is_over_it():
    """However it leans by rounding, and longer than the box or not."""
    rng = np.random.default_rng(13)
    for length, ends in ((0.3, 0.15), (2.0, 0.25)):
        n, lean = 200, 1e-9 * rng.normal(size=200)
        o, i = 0.0 * lean, 0.0 * lean + 1.0
        R = np.array([[lean, o, i], [o, i, o], [-i, o, lean]])  # its axis is along x
        capsule = da.shapes.Capsule(0.1, length)
        points = points_between(capsule, Poses(R, np.array([o, o, o + 0.65 - 1e-5])),
                                BOX, level(n, 0.0))  # fmt: skip
        np.testing.assert_allclose(points.gap, -1e-5, atol=1e-8)
        np.testing.assert_allclose(points.position[:, 0], np.array([[-ends], [ends]]) * np.ones(n), atol=1e-6)
        np.testing.assert_allclose(points.normal[:, 2], -1.0, atol=1e-8)


def test_boxes_overlap_as_deep_as_coal_says():
    """Up to the share by which faces are preferred."""
    A, B, rng = placed(3000, 14)
    points = points_between(OTHER, A, BOX, B)
    check_form(points)
    distances, normals = by_coal(OTHER, A, BOX, B)
    inside = distances < 0.0
    assert inside.sum() > 1000
    error = distances[inside] - points.least[inside]
    tolerated = (
        2.2 * (RELATIVE_AXIS_PREFERENCE * np.abs(distances[inside]) + AXIS_PREFERENCE_PER_EDGE * 0.4) + 1e-8
    )
    assert (np.abs(error) <= tolerated).all()
    same = np.abs(error) < 1e-9
    assert same.mean() > 0.7
    n = points.deepest(points.normal)[:, inside][:, same]
    assert (np.sum(n * normals[:, inside][:, same], axis=0) > 1.0 - 1e-6).mean() > 0.99
    near = (distances > 0.0) & (points.least < ABSENT_POINT_GAP)
    assert near.sum() > 300
    assert (points.least[near] >= -1e-12).all()
    clear = points.least < -1e-3
    swapped = points_between(BOX, B.at(clear), OTHER, A.at(clear))
    assert (np.abs(swapped.least / points.least[clear] - 1.0) < 2.2 * RELATIVE_AXIS_PREFERENCE + 1e-2).all()
    same = np.abs(swapped.least - points.least[clear]) < 1e-9
    assert same.mean() > 0.7
    np.testing.assert_allclose(
        swapped.deepest(swapped.normal)[:, same], -points.deepest(points.normal)[:, clear][:, same], atol=1e-9
    )
    R, p = rotations(1, rng)[:, :, 0], rng.normal(size=3)
    moved = points_between(OTHER, A.moved(R, p), BOX, B.moved(R, p))
    np.testing.assert_allclose(moved.gap, points.gap, atol=1e-9)


@pytest.mark.parametrize("depth", [1e-6, 1e-4, 1e-3, -1e-4])
def test_equal_boxes_on_each_other_touch_at_four_corners_whatever_rounding_does(depth):
    rng = np.random.default_rng(15)
    n = 300
    below = level(n, 0.0)
    above = level(n, 1.1 - depth, *(1e-10 * rng.normal(size=(3, n))))
    tilt = 1e-10 * rng.normal(size=n)
    above.R[0, 2], above.R[2, 0] = tilt, -tilt
    points = points_between(BOX, below, BOX, above)
    np.testing.assert_allclose(points.normal - np.array([0.0, 0.0, 1.0])[:, None], 0.0, atol=1e-8)
    there = points.gap < ABSENT_POINT_GAP
    np.testing.assert_allclose(points.gap[there], -depth, atol=1e-8)
    for x in (-0.25, 0.25):
        for y in (-0.4, 0.4):
            corner = np.array([x, y, 0.55 - 0.5 * depth])[:, None]
            away = np.linalg.norm(points.position - corner, axis=1)
            assert (np.where(there, away, ABSENT_POINT_GAP).min(axis=0) < 1e-6).all()


def test_boxes_that_just_touch_touch_with_their_faces():
    """Turned a little: the cross products of their edges are the faces' normals too."""
    rng = np.random.default_rng(18)
    n = 300
    above = level(n, 1.1 + 1e-15 * rng.normal(size=n), 0.05 * rng.normal(size=n))
    points = points_between(BOX, level(n, 0.0), BOX, above)
    assert ((points.gap < ABSENT_POINT_GAP).sum(axis=0) >= 4).all()


def test_points_on_faces_are_the_corners_of_the_contact_area():
    rng = np.random.default_rng(16)
    n = 300
    yaw, x, y = rng.uniform(-np.pi, np.pi, n), rng.uniform(-0.5, 0.5, n), rng.uniform(-0.5, 0.5, n)
    below, above = level(n, 0.0), level(n, 1.0 - 1e-4, yaw, x, y)
    points = points_between(BOX, below, OTHER, above)
    compared = 0
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    for i in range(n):
        top = square * np.array([0.35, 0.2]) @ above.R[:2, :2, i].T + above.p[:2, i]
        expected = polygon_cut(list(top), square * np.array([0.25, 0.4]))
        there = points.gap[:, i] < ABSENT_POINT_GAP
        if len(expected) and points.normal[0, 2, i] > 0.5:  # else they pass each other sideways
            assert there.sum() == len(expected)
            np.testing.assert_allclose(points.gap[there, i], -1e-4, atol=1e-12)
            area = ConvexHull(points.position[there, :2, i]).volume
            assert area == pytest.approx(ConvexHull(expected).volume, rel=1e-5, abs=1e-7)
            compared += 1
    assert compared > 200


@pytest.mark.parametrize("side", [1.0, 0.6])
def test_crossing_edges_touch_at_one_point(side):
    """Two boxes on their edges, one across the other, of the same size or not."""
    h, reach = 0.5 * np.sqrt(2.0), 0.5 * np.sqrt(2.0) * side
    below = Poses(_turned("x", np.pi / 4), np.zeros((3, 1)))  # its upper edge is along x
    at = np.array([[0.1], [0.2], [h + reach - 1e-3]])
    above = Poses(_turned("y", np.pi / 4), at)  # its lower one along y
    points = points_between(da.shapes.Box((1.0, 1.0, 1.0)), below, da.shapes.Box((side, side, side)), above)
    assert (points.gap[:, 0] < ABSENT_POINT_GAP).sum() == 1
    np.testing.assert_allclose(points.gap[0], -1e-3, atol=1e-12)
    np.testing.assert_allclose(points.normal[0, :, 0], [0.0, 0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(points.position[0, :, 0], [0.1, 0.0, h - 5e-4], atol=1e-9)


def _turned(axis, angle):
    c, s = np.cos(angle), np.sin(angle)
    rows = {"x": [[1, 0, 0], [0, c, -s], [0, s, c]], "y": [[c, 0, s], [0, 1, 0], [-s, 0, c]]}[axis]
    return np.array(rows)[:, :, None]


def test_a_box_in_a_box_has_finite_points():
    n = 5
    inner = random_poses(n, 0.0, np.random.default_rng(17))
    check_form(points_between(BOX, level(n, 0.0), BOX, level(n, 0.0)))
    check_form(points_between(BOX, level(n, 0.0), OTHER, inner))
    check_form(points_between(CAPSULE, level(n, 0.0), BOX, level(n, 0.0)))
    check_form(points_between(SPHERE, level(n, 0.0), BOX, inner))
