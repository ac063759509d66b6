"""Rotation matrices, quaternions, axis and angle, Euler angles; oracle: SciPy's Rotation."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tests.spatial.dense import ONE, Random, array

from dalembert.errors import StateError, UnknownNameError
from dalembert.spatial import Mat3, Vec3
from dalembert.spatial.rotations import (
    EULER_ORDERS,
    axis_angle_of_rotation,
    euler_angles_of_rotation,
    euler_axes,
    euler_singularity,
    principal_direction,
    quaternion_conjugate,
    quaternion_normalized,
    quaternion_of_rotation,
    quaternion_product,
    quaternion_rate,
    rotation_about,
    rotation_about_axis,
    rotation_of_euler_angles,
    rotation_of_quaternion,
)

SEEDS = pytest.mark.parametrize("seed", range(6))


def unit_quaternion(seed):
    q = Random(seed).rng.standard_normal(4)
    return q / np.linalg.norm(q)


@SEEDS
def test_quaternions_are_scalar_first_hamilton_and_of_r(seed):
    q, p = unit_quaternion(seed), unit_quaternion(seed + 50)
    R = rotation_of_quaternion(q)
    np.testing.assert_allclose(array(R), Rotation.from_quat(q, scalar_first=True).as_matrix(), atol=1e-14)
    product = quaternion_product(q, p)
    np.testing.assert_allclose(
        array(rotation_of_quaternion(product)), array(R) @ array(rotation_of_quaternion(p))
    )
    np.testing.assert_allclose(array(rotation_of_quaternion(quaternion_conjugate(q))), array(R).T)
    np.testing.assert_allclose(quaternion_normalized(3.0 * q), q)
    back = np.array(quaternion_of_rotation(R))
    assert back[0] >= 0.0
    np.testing.assert_allclose(back, q * np.sign(q[0]), atol=1e-14)


@pytest.mark.parametrize("q", [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1e-9, 0.6, 0.0, 0.8]])
def test_half_turns_have_quaternions(q):
    """Each of the four ways to divide is the right one somewhere"""
    unit = np.array(q) / np.linalg.norm(q)
    np.testing.assert_allclose(quaternion_of_rotation(rotation_of_quaternion(unit)), unit, atol=1e-15)


@SEEDS
def test_rate_of_a_quaternion_by_finite_differences(seed):
    q, omega = unit_quaternion(seed), Random(seed).vector()
    step = 1e-6
    turned = [
        Rotation.from_quat(q, scalar_first=True) * Rotation.from_rotvec(sign * step * omega)
        for sign in (1.0, -1.0)
    ]
    ahead, behind = (r.as_quat(scalar_first=True) for r in turned)
    ahead, behind = ahead * np.sign(ahead @ q), behind * np.sign(behind @ q)
    np.testing.assert_allclose(quaternion_rate(q, Vec3.of(omega)), (ahead - behind) / (2.0 * step), atol=1e-8)


@SEEDS
def test_axis_and_angle(seed):
    random = Random(seed)
    axis = random.vector()
    axis /= np.linalg.norm(axis)
    angle = float(random.rng.uniform(0.0, np.pi))
    R = rotation_about(Vec3.of(axis), angle)
    np.testing.assert_allclose(array(R), Rotation.from_rotvec(axis * angle).as_matrix(), atol=1e-14)
    got_axis, got_angle = axis_angle_of_rotation(R)
    np.testing.assert_allclose(got_angle, angle)
    np.testing.assert_allclose(array(got_axis), axis, atol=1e-13)
    for k in range(3):
        np.testing.assert_allclose(
            array(rotation_about_axis(k, angle)), array(rotation_about(Vec3.of(ONE[k]), angle))
        )


def test_a_turn_about_a_coordinate_axis_is_one_by_structure():
    """Only plain floats tell an axis; its opposite turns backwards, and the matrix keeps literal zeros"""
    for k in range(3):
        for sign in (1.0, -1.0):
            axis = Vec3.unit(k) * sign
            assert principal_direction(axis) == (k, sign)
            R = rotation_about(axis, 0.7)
            rotvec = 0.7 * sign * ONE[k]
            np.testing.assert_allclose(array(R), Rotation.from_rotvec(rotvec).as_matrix(), atol=1e-16)
            assert [R.to_list()[k][j] for j in range(3)] == ONE[k].tolist()
    assert principal_direction(Vec3(0.6, 0.8, 0.0)) is None
    assert principal_direction(Vec3(np.float64(1.0), 0.0, 0.0)) is None


def test_four_zeros_are_no_rotation():
    """A zero quaternion is refused; in a batch it spoils its own row only"""
    with pytest.raises(StateError, match="four zeros"):
        quaternion_normalized([0.0, 0.0, 0.0, 0.0])
    with np.errstate(all="ignore"):
        rows = np.array(quaternion_normalized([np.array([0.0, 2.0]), *[np.zeros(2)] * 3]))
    assert np.isnan(rows[:, 0]).all()
    assert rows[:, 1].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_no_turn_has_the_x_axis_and_angle_zero():
    axis, angle = axis_angle_of_rotation(Mat3.identity())
    assert axis == Vec3(1.0, 0.0, 0.0)
    assert angle == 0.0


@pytest.mark.parametrize("order", EULER_ORDERS)
@SEEDS
def test_euler_angles_of_every_order_round_trip(order, seed):
    """LJ-5.2-EULERXYZ, the rotation and its inverse in all twelve orders"""
    rng = Random(seed).rng
    proper = order[0] == order[2]
    angles = rng.uniform(-np.pi, np.pi, 3)
    angles[1] = rng.uniform(0.0, np.pi) if proper else rng.uniform(-np.pi / 2, np.pi / 2)
    R = rotation_of_euler_angles(order, angles.tolist())
    np.testing.assert_allclose(array(R), Rotation.from_euler(order.upper(), angles).as_matrix(), atol=1e-14)
    np.testing.assert_allclose(euler_angles_of_rotation(order, R), angles, atol=1e-12)


@pytest.mark.parametrize("order", EULER_ORDERS)
def test_gimbal_lock_gives_angles_of_the_same_rotation(order):
    middles = (0.0, np.pi) if order[0] == order[2] else (np.pi / 2, -np.pi / 2)
    for middle in middles:
        R = rotation_of_euler_angles(order, [0.7, middle, -1.1])
        angles = euler_angles_of_rotation(order, R)
        assert angles[2] == 0.0
        np.testing.assert_allclose(array(rotation_of_euler_angles(order, angles)), array(R), atol=1e-7)


@pytest.mark.parametrize("order", EULER_ORDERS)
def test_axes_of_turning_give_the_angular_velocity(order):
    """LJ-5.2-EULERXYZ: R^T R' = (sum of axis times rate) x, in child coordinates, by finite differences"""
    angles, rates, step = np.array([0.4, 0.9, -1.3]), np.array([0.3, -0.5, 0.8]), 1e-6
    R = array(rotation_of_euler_angles(order, angles))
    ahead, behind = (
        array(rotation_of_euler_angles(order, angles + sign * step * rates)) for sign in (1.0, -1.0)
    )
    spin = R.T @ (ahead - behind) / (2.0 * step)
    axes = euler_axes(order, angles)
    omega = sum(array(axis) * rate for axis, rate in zip(axes, rates, strict=True))
    np.testing.assert_allclose([spin[2, 1], spin[0, 2], spin[1, 0]], omega, atol=1e-9)
    determinant = np.linalg.det(np.array([array(axis) for axis in axes]))
    np.testing.assert_allclose(euler_singularity(order, angles), np.abs(determinant), atol=1e-15)


@pytest.mark.parametrize("order", ["xxy", "abc", "xy", "XYZ"])
def test_an_unknown_order_is_named(order):
    with pytest.raises(UnknownNameError, match="order of Euler angles"):
        rotation_of_euler_angles(order, [0.0, 0.0, 0.0])
