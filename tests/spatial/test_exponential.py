"""Exponential maps; oracle: the matrix exponential of SciPy."""

import numpy as np
import pytest
import scipy.linalg
from tests.spatial.dense import ONE, Random, array, cross_motion, skew

from dalembert.spatial import Motion, Transform, Vec3
from dalembert.spatial.exponential import (
    quaternion_difference,
    quaternion_exp,
    quaternion_integrate,
    quaternion_log,
    se2_exp,
    se2_log,
    se3_exp,
    se3_left_jacobian,
    se3_left_jacobian_inverse,
    se3_log,
    se3_right_jacobian,
    se3_right_jacobian_inverse,
    so3_exp,
    so3_left_jacobian,
    so3_left_jacobian_inverse,
    so3_left_jacobian_inverse_times,
    so3_left_jacobian_times,
    so3_log,
    so3_right_jacobian,
    so3_right_jacobian_inverse,
)
from dalembert.spatial.rotations import rotation_of_quaternion

ANGLES = [0.0, 1e-300, 1e-160, 1e-12, 1e-8, 1e-4, 1.9e-3, 1e-2, 0.3, 0.4999, 0.5001, 1.0, 2.0, 3.0, 3.141]
angles = pytest.mark.parametrize("angle", ANGLES)


def rotation_vector(angle, seed=0):
    axis = Random(seed).vector()
    return axis / np.linalg.norm(axis) * angle


def integral_of_exponential(A):
    """The integral of exp(t A) over t in [0, 1], from the exponential of a larger matrix."""
    n = len(A)
    big = np.block([[A, np.eye(n)], [np.zeros((n, 2 * n))]])
    return scipy.linalg.expm(big)[:n, n:]


@angles
def test_rotation_of_a_rotation_vector(angle):
    """LJ-5.2-EXPMAP, LJ-5.2-EXPMAP0: R, with no NaN at zero and both branches accurate; log is the inverse"""
    phi = rotation_vector(angle)
    R = so3_exp(Vec3.of(phi))
    np.testing.assert_allclose(array(R), scipy.linalg.expm(skew(phi)), atol=3e-15)
    np.testing.assert_allclose(array(so3_log(R)), phi, rtol=1e-12, atol=1e-300)
    q = quaternion_exp(Vec3.of(phi))
    np.testing.assert_allclose(array(rotation_of_quaternion(q)), array(R), atol=2e-15)
    np.testing.assert_allclose(array(quaternion_log(q)), phi, rtol=2e-14, atol=1e-300)
    np.testing.assert_allclose(array(quaternion_log([-item for item in q])), phi, rtol=1e-12, atol=1e-300)


@angles
def test_both_forms_of_the_jacobian_agree(angle):
    """LJ-5.2-EXPMAP: J = 1 + B [q] + C [q]^2 = R (1 - B [q] + C [q]^2), and its inverse"""
    phi = Vec3.of(rotation_vector(angle))
    R, left, right = array(so3_exp(phi)), array(so3_left_jacobian(phi)), array(so3_right_jacobian(phi))
    np.testing.assert_allclose(left, integral_of_exponential(skew(array(phi))), atol=2e-15)
    np.testing.assert_allclose(left, R @ right, atol=1e-15)
    np.testing.assert_allclose(left @ array(so3_left_jacobian_inverse(phi)), ONE, atol=1e-14)
    np.testing.assert_allclose(right @ array(so3_right_jacobian_inverse(phi)), ONE, atol=1e-14)
    v = Vec3.of(Random(7).vector())
    np.testing.assert_allclose(array(so3_left_jacobian_times(phi, v)), left @ array(v), atol=3e-15)
    np.testing.assert_allclose(left @ array(so3_left_jacobian_inverse_times(phi, v)), array(v), atol=3e-14)


@pytest.mark.parametrize("angle", [0.0, 1e-3, 0.4, 1.3, 2.9])
def test_jacobian_by_finite_differences(angle):
    """LJ-5.2-EXPMAP: omega x = R' R^T with omega = J_l phi' in the parent"""
    phi, rate, step = rotation_vector(angle), rotation_vector(1.0, seed=5), 1e-6
    ahead, behind = (array(so3_exp(Vec3.of(phi + sign * step * rate))) for sign in (1.0, -1.0))
    spin = (ahead - behind) / (2.0 * step) @ array(so3_exp(Vec3.of(phi))).T
    omega = array(so3_left_jacobian(Vec3.of(phi)) @ Vec3.of(rate))
    np.testing.assert_allclose(spin, skew(omega), atol=1e-9)


def test_the_small_angle_branch_is_the_series_and_joins_the_exact_one():
    """LJ-5.2-EXPMAP0: R = 1 + [q] + [q]^2/2 and J = 1 + [q]/2 + [q]^2/6 near zero; continuous at the seam"""
    for angle in (1e-4, 1e-6):
        phi = rotation_vector(angle)
        P = skew(phi)
        np.testing.assert_allclose(array(so3_exp(Vec3.of(phi))), ONE + P + P @ P / 2.0, atol=angle**3)
        np.testing.assert_allclose(
            array(so3_left_jacobian(Vec3.of(phi))), ONE + P / 2.0 + P @ P / 6.0, atol=angle**3
        )
    below, above = (rotation_vector(0.5 * (1.0 + sign * 1e-15)) for sign in (-1.0, 1.0))
    for function in (so3_exp, so3_left_jacobian, so3_left_jacobian_inverse):
        np.testing.assert_allclose(
            array(function(Vec3.of(below))), array(function(Vec3.of(above))), atol=5e-15
        )


@angles
def test_motion_at_constant_body_velocity(angle):
    """SE(3): exp, log, and both Jacobians with their inverses"""
    twist = np.concatenate([rotation_vector(angle), Random(3).vector()])
    m = Motion.of(twist)
    X = se3_exp(m)
    dense = scipy.linalg.expm(np.block([[skew(twist[:3]), twist[3:, None]], [np.zeros((1, 4))]]))
    np.testing.assert_allclose(X.homogeneous(), dense, atol=5e-15)
    np.testing.assert_allclose(array(se3_log(X)), twist, rtol=1e-11, atol=1e-13)
    left = integral_of_exponential(cross_motion(twist))
    right = integral_of_exponential(-cross_motion(twist))
    np.testing.assert_allclose(se3_left_jacobian(m), left, atol=1e-13)
    np.testing.assert_allclose(se3_right_jacobian(m), right, atol=1e-13)
    np.testing.assert_allclose(np.array(se3_left_jacobian_inverse(m)) @ left, np.eye(6), atol=1e-13)
    np.testing.assert_allclose(np.array(se3_right_jacobian_inverse(m)) @ right, np.eye(6), atol=1e-13)


def test_the_right_jacobian_is_the_body_velocity_of_the_exponential():
    """SE(3): exp(m + step d) = exp(m) exp(step J_r d), to first order"""
    m, d, step = Motion.of(Random(1).vector(6)), Motion.of(Random(2).vector(6)), 1e-6
    ahead, behind = (se3_exp(m + d * (sign * step)) for sign in (1.0, -1.0))
    velocity = se3_log(behind.inverse() @ ahead) * (0.5 / step)
    np.testing.assert_allclose(array(velocity), np.array(se3_right_jacobian(m)) @ array(d), atol=1e-8)


@angles
def test_planar_motion_at_constant_body_velocity(angle):
    """SE(2): exp and log equal those of SE(3) in the plane"""
    velocity = (angle, 0.7, -1.2)
    x, y, turned = se2_exp(*velocity)
    space = se3_exp(Motion.of([0.0, 0.0, angle, 0.7, -1.2, 0.0]))
    assert turned == angle
    np.testing.assert_allclose([x, y, 0.0], array(space.p), atol=1e-15)
    np.testing.assert_allclose(se2_log(x, y, turned), velocity, rtol=1e-13, atol=1e-14)


def test_logarithm_of_half_turns():
    """At angle pi the axis is found from the matrix; its sign is free"""
    for axis in (ONE[0], ONE[1], ONE[2], np.array([0.6, 0.0, -0.8])):
        phi = array(so3_log(so3_exp(Vec3.of(np.pi * axis))))
        np.testing.assert_allclose(np.linalg.norm(phi), np.pi)
        np.testing.assert_allclose(np.abs(phi @ axis), np.pi)


def test_integration_and_difference_are_inverse_on_the_manifold():
    """X exp(log(X^-1 Y)) = Y"""
    X, Y = Random(1).transform()[0], Random(2).transform()[0]
    back = X @ se3_exp(se3_log(X.inverse() @ Y))
    assert isinstance(back, Transform)
    np.testing.assert_allclose(back.homogeneous(), Y.homogeneous(), atol=1e-13)


@angles
def test_quaternions_turn_by_rotation_vectors(angle):
    """R(q exp(phi)) = R(q) exp(phi), of unit norm whatever q's; the difference is phi"""
    phi, q = rotation_vector(angle), np.array([0.5, -0.1, 0.7, 0.5])
    turned = quaternion_integrate((1.01 * q).tolist(), Vec3.of(phi))
    assert np.linalg.norm(turned) == pytest.approx(1.0, abs=1e-15)
    R, unit = scipy.linalg.expm(skew(phi)), (q / np.linalg.norm(q)).tolist()
    np.testing.assert_allclose(
        array(rotation_of_quaternion(turned)), array(rotation_of_quaternion(unit)) @ R, atol=3e-15
    )
    np.testing.assert_allclose(array(quaternion_difference(unit, turned)), phi, atol=3e-15)
    np.testing.assert_allclose(array(quaternion_difference(unit, [-x for x in turned])), phi, atol=3e-15)
