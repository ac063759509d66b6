"""Spheres, capsules and planes: nearest points in closed form, against coal."""

import numpy as np
import pytest
from tests.contact.placements import (
    Poses,
    by_coal,
    check_form,
    check_symmetry,
    points_between,
    random_poses,
    rotations,
)

import dalembert as da
from dalembert.contact.narrow_phase.rounded_shapes import nearest_on_segments
from dalembert.spatial import Vec3

SPHERE, CAPSULE, BOX = da.shapes.Sphere(0.3), da.shapes.Capsule(0.2, 0.9), da.shapes.Box((0.5, 0.8, 1.1))
PAIRS = [
    (da.shapes.Plane(), SPHERE),
    (da.shapes.Plane(), CAPSULE),
    (da.shapes.Plane(), BOX),
    (SPHERE, da.shapes.Sphere(0.45)),
    (SPHERE, CAPSULE),
    (CAPSULE, da.shapes.Capsule(0.1, 0.6)),
]


def named(pair):
    return f"{pair[0].kind}-{pair[1].kind}"


@pytest.mark.parametrize("pair", PAIRS, ids=named)
def test_gaps_and_normals_are_those_of_an_independent_library(pair):
    rng = np.random.default_rng(3)
    A, B = random_poses(2000, 0.8, rng), random_poses(2000, 0.8, rng)
    points = points_between(pair[0], A, pair[1], B)
    check_form(points)
    distances, normals = by_coal(pair[0], A, pair[1], B)
    assert (distances < -1e-3).sum() > 50
    assert (distances > 1e-3).sum() > 50
    np.testing.assert_allclose(points.least, distances, atol=1e-8)
    np.testing.assert_allclose(points.deepest(points.normal), normals, atol=1e-6)


@pytest.mark.parametrize("pair", PAIRS, ids=named)
def test_exchanging_shapes_flips_normals_and_moving_both_moves_all(pair):
    rng = np.random.default_rng(4)
    A, B = random_poses(500, 0.8, rng), random_poses(500, 0.8, rng)
    check_symmetry(pair[0], A, pair[1], B, 1e-12, rng)


def test_positions_are_midway_between_the_surfaces():
    """Half a gap from either surface, along the normal."""
    rng = np.random.default_rng(5)
    A, B = random_poses(500, 0.8, rng), random_poses(500, 0.8, rng)
    for a, b in PAIRS[3:]:
        points = points_between(a, A, b, B)
        middle, n, gap = points.position[0], points.normal[0], points.gap[0]
        for shape, pose, side in ((a, A, -1.0), (b, B, 1.0)):
            on_surface = middle + side * 0.5 * gap * n
            local = np.einsum("jin,jn->in", pose.R, on_surface - pose.p)
            half = 0.0 if isinstance(shape, da.shapes.Sphere) else 0.5 * shape.length
            local[2] -= np.clip(local[2], -half, half)
            apart = gap > 0.0
            np.testing.assert_allclose(np.linalg.norm(local, axis=0)[apart], shape.radius, atol=1e-12)


def test_a_box_on_a_plane_has_the_four_corners_of_its_lowest_face():
    rng = np.random.default_rng(6)
    n = 300
    ground = Poses(np.repeat(np.eye(3)[:, :, None], n, axis=2), np.zeros((3, n)))
    pose = random_poses(n, 0.8, rng)
    points = points_between(da.shapes.Plane(), ground, BOX, pose)
    assert points.gap.shape == (4, n)
    signs = np.array(np.meshgrid(*[[-0.5, 0.5]] * 3, indexing="ij")).reshape(3, 8)
    corners = np.einsum("ijn,jk->ikn", pose.R, signs * np.array(BOX.size)[:, None]) + pose.p[:, None, :]
    heights = np.sort(corners[2], axis=0)
    lowest = np.sort(points.gap, axis=0)
    np.testing.assert_allclose(lowest[0], heights[0], atol=1e-12)
    # What is left out lies higher than the lowest corner by 2/sqrt(3) of a half edge at least.
    for i in range(n):
        missing = [h for h in heights[:, i] if np.abs(h - lowest[:, i]).min() > 1e-9]
        assert min(missing) - lowest[0, i] > 2.0 / np.sqrt(3.0) * 0.5 * min(BOX.size) - 1e-9
    # Each is half its gap above its corner.
    up = points.position.copy()
    up[:, 2] += 0.5 * points.gap
    distance = np.linalg.norm(up[:, :, None] - corners[None], axis=1).min(axis=1)
    np.testing.assert_allclose(distance, 0.0, atol=1e-12)


def test_the_normal_of_level_ground_is_up_by_structure():
    from dalembert import scalar
    from dalembert.contact.pairs import contact_points, pairs_of

    model = da.models.humanoid().with_ground()
    pairs = pairs_of(model, self_collision=False)
    traced = da.algorithms.forward_kinematics(model, model.neutral().tolist())
    for candidate in contact_points(traced, pairs):
        assert candidate.first == -1
        assert [scalar.literal(x) for x in candidate.point.normal] == [0.0, 0.0, 1.0]


def test_shapes_within_each_other_have_finite_unit_normals():
    """Concentric spheres, crossing and coinciding axes, at the precision of both kinds of floats."""
    n = 4
    R = rotations(n, np.random.default_rng(7))
    R[:, :, 1] = R[:, :, 0]
    pose = Poses(R, np.zeros((3, n)))
    twin = Poses(np.repeat(R[:, :, :1], n, axis=2), np.zeros((3, n)))
    for a, b in PAIRS[3:]:
        points = points_between(a, pose, b, twin)
        check_form(points)
        np.testing.assert_allclose(points.gap, -(a.radius + b.radius), atol=1e-12)


def test_parallel_segments_touch_in_the_middle_of_where_they_pass():
    """And the distance is right on both sides of parallel, the point without jumps."""
    u = Vec3(0.0, 0.0, 1.0)
    offset = Vec3(0.1, 0.0, 0.7)
    last = None
    for angle in np.linspace(-2e-8, 2e-8, 2001):
        v = Vec3(np.sin(angle), 0.0, np.cos(angle))
        s, t = nearest_on_segments(offset, u, 0.5, v, 0.5)
        distance = (offset + v * t - u * s).norm()
        ends = [(offset + v * x - u * np.clip((offset + v * x).z, -0.5, 0.5)).norm() for x in (-0.5, 0.5)]
        ends += [(offset + v * np.clip(v.dot(u * x - offset), -0.5, 0.5) - u * x).norm() for x in (-0.5, 0.5)]
        assert distance <= min(ends) + 5e-9
        if angle == 0.0:
            assert s == pytest.approx(0.35)  # they pass from 0.2 to 0.5
        if last is not None:
            assert abs(s - last) < 5e-3
        last = s
