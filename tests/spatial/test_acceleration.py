"""Spatial and classical acceleration, chains of bodies, and the co-moving observer."""

import numpy as np
import pytest
from tests.spatial.dense import Random, array, skew

from dalembert.spatial import (
    BodyAcceleration,
    Motion,
    ScrewChain,
    SpatialTypeError,
    Transform,
    Vec3,
    classical_acceleration,
    scrx,
    scry,
    scrz,
    spatial_acceleration,
)

SEEDS = pytest.mark.parametrize("seed", range(4))


@SEEDS
def test_spatial_and_classical_acceleration_convert_into_each_other(seed):
    """RBDA-2.11-ACCEL: Eqs. 2.48 to 2.50"""
    random = Random(seed)
    (v, dv), (a, da) = random.motion(), random.motion()
    classical = classical_acceleration(a, v)
    np.testing.assert_allclose(array(classical), [*da[:3], *(da[3:] + np.cross(dv[:3], dv[3:]))])
    np.testing.assert_allclose(array(spatial_acceleration(classical, v)), da)
    drift = Motion(Vec3.zero(), v.linear)
    np.testing.assert_allclose(array(a), array(classical + drift.cross(v)))


def test_a_body_spinning_steadily_about_a_fixed_line_has_no_spatial_acceleration():
    """RBDA-2.11-ACCEL: Figure 2.6; its points do accelerate"""
    axis_point, omega = np.array([0.5, 0.0, 0.0]), np.array([0.0, 0.0, 2.0])
    v = Motion.of([*omega, *np.cross(axis_point, omega)])
    centripetal = np.cross(omega, np.cross(omega, -axis_point))
    a = spatial_acceleration(Motion.of([0.0, 0.0, 0.0, *centripetal]), v)
    np.testing.assert_allclose(array(a), 0.0, atol=1e-15)


@SEEDS
def test_accelerations_add_like_velocities(seed):
    """RBDA-2.11-ACCEL: a_rel = a_2 - a_1 in every frame; RBDA-2.7-RULES"""
    random = Random(seed)
    (a1, d1), (a2, d2), (X, dX) = random.motion(), random.motion(), random.transform()
    np.testing.assert_allclose(array(X.apply(a2) - X.apply(a1)), dX @ (d2 - d1), atol=1e-13)


@SEEDS
def test_chain_accelerations_three_ways_and_by_finite_differences(seed):
    """RBDA-2.11-CHAINACC: recursion (2.55), double sum (2.56), J q'' + J' q' (2.57)"""
    random = Random(seed)
    n = 4
    axes, rates, accelerations = [random.motion()[0] for _ in range(n)], random.vector(n), random.vector(n)
    v, a = Motion.zero(), Motion.zero()
    velocities = []
    for s, rate, acceleration in zip(axes, rates, accelerations, strict=True):
        v = v + s * rate
        a = a + s * acceleration + v.cross(s) * rate
        velocities.append(v)
    double = sum(array(s) * x for s, x in zip(axes, accelerations, strict=True)) + sum(
        array(axes[k].cross(axes[j])) * rates[j] * rates[k] for j in range(n) for k in range(j)
    )
    J = np.array([s.to_list() for s in axes]).T
    J_rate = np.array([v_i.cross(s).to_list() for v_i, s in zip(velocities, axes, strict=True)]).T
    np.testing.assert_allclose(array(a), double, atol=1e-12)
    np.testing.assert_allclose(array(a), J @ accelerations + J_rate @ rates, atol=1e-12)

    def velocity(t):
        """All axes carried along by the joints before them for a time t, then summed."""
        total = np.zeros(6)
        for j in range(n):
            axis = axes[j]
            for k in range(j - 1, -1, -1):
                axis = _carried(axes[k], rates[k] * t + 0.5 * accelerations[k] * t * t, axis)
            total = total + array(axis) * (rates[j] + accelerations[j] * t)
        return total

    step = 1e-5
    np.testing.assert_allclose((velocity(step) - velocity(-step)) / (2.0 * step), array(a), atol=1e-6)


def _carried(axis, angle, m):
    """m after a rigid motion exp(angle axis), to third order, which finite differences do not see."""
    once = axis.cross(m) * angle
    twice = axis.cross(once) * (angle / 2.0)
    return m + once + twice


def comoving(v, a):
    """What the co-moving observer sees of a body with spatial velocity v and acceleration a."""
    return BodyAcceleration(v.angular, a.angular, classical_acceleration(a, v).linear)


@SEEDS
def test_points_of_a_body_accelerate_by_its_tensor(seed):
    """RBDA-2.11-ACCEL: r'' = linear + (alpha x + omega x omega x) r"""
    random = Random(seed)
    (v, dv), (a, da) = random.motion(), random.motion()
    r = random.vector()
    A = comoving(v, a)
    W = skew(da[:3]) + skew(dv[:3]) @ skew(dv[:3])
    np.testing.assert_allclose(array(A.tensor), W, atol=1e-14)
    # The same point by the spatial route: shift the origin there, then take the classical acceleration.
    X = Transform.from_rotation_translation(np.eye(3), r)
    expected = classical_acceleration(X.apply(a), X.apply(v)).linear
    np.testing.assert_allclose(array(A.at(Vec3.of(r))), array(expected), atol=1e-12)


@SEEDS
def test_force_of_a_body_acceleration_is_the_equation_of_motion(seed):
    """RBDA-2.14-EOM: f = I a + v x* I v without linear velocity"""
    random = Random(seed)
    v, a, I = random.motion()[0], random.motion()[0], random.rigid()[0]
    expected = I * a + v.cross(I * v)
    # Linear velocity is the observer's: in the frame that moves with the origin the moment is the same.
    seen = Motion(v.angular, Vec3.zero())
    seen_a = Motion(a.angular, classical_acceleration(a, v).linear)
    np.testing.assert_allclose(array(I * seen_a + seen.cross(I * seen)), array(expected), atol=1e-11)
    np.testing.assert_allclose(array(I.force_of(comoving(v, a))), array(expected), atol=1e-11)


def links():
    """Placements with joint motions: general, and screws that turn about their own or other axes."""
    random = Random(77)
    T = random.transform()[0]
    about = [Motion(Vec3.unit(k) * 1.3, Vec3.unit(k) * 0.7) for k in range(3)]
    free = random.motion()[0]
    return {
        "transform": (T, free),
        "unshifted transform": (Transform.from_rotation_translation(random.rotation(), np.zeros(3)), free),
        "x screw about x": (scrx(0.4, 0.3), about[0]),
        "y screw about y": (scry(0.4, 0.3), about[1]),
        "z screw about z": (scrz(0.4, 0.3), about[2]),
        "z screw, other joint": (scrz(0.4, 0.3), free),
        "z screw, sliding off its axis": (scrz(0.4, 0.3), Motion(Vec3.unit(2), Vec3(0.3, 0.4, 0.5))),
        "chain about z": (ScrewChain((scrx(0.2, 0.1), scrz(0.4, 0.3))), about[2]),
        "chain, other joint": (ScrewChain((scrx(0.2, 0.1), scry(1.0, 2.0), scrz(0.4, 0.3))), free),
        "chain with a transform": (ScrewChain((T, scrz(0.4, 0.3))), about[2]),
        "chain ending in a transform": (ScrewChain((scrz(0.4, 0.3), T)), free),
    }


@pytest.mark.parametrize("along", [True, False])
@pytest.mark.parametrize("name", links())
def test_acceleration_across_a_joint_equals_the_spatial_recursion(name, along):
    """RBDA-2.11-CHAINACC: v' = X v + v_J and a' = X a + a_J + v' x v_J, for every kind of placement"""
    X, v_J = links()[name]
    random = Random(7)
    (v, _), (a, _), (a_J, _) = random.motion(), random.motion(), random.motion()
    if along:
        a_J = Motion(v_J.angular * -0.6, a_J.linear)
    child_v = X.apply(v) + v_J
    child_a = X.apply(a) + a_J + child_v.cross(v_J)
    expected = comoving(child_v, child_a)
    got = comoving(v, a).across_joint(X, v_J, a_J)
    np.testing.assert_allclose(got.leaves(), expected.leaves(), atol=1e-12)
    np.testing.assert_allclose(array(got.tensor), array(expected.tensor), atol=1e-12)


def test_bias_acceleration_is_what_aba_needs():
    """RBDA-2.14-EOM: BodyAcceleration(omega, 0, 0).across_joint(X, v_J, c_J) holds the bias acceleration"""
    random = Random(9)
    X, v_J = links()["chain about z"]
    omega, c_J = random.vec3(), v_J * 0.4
    still = BodyAcceleration(omega, Vec3.zero(), Vec3.zero())
    child = still.across_joint(X, v_J, c_J)
    v = Motion(omega, Vec3.zero())
    child_v = X.apply(v) + v_J
    bias = X.apply(Motion.zero()) + c_J + child_v.cross(v_J)
    np.testing.assert_allclose(array(child.omega), array(child_v.angular), atol=1e-13)
    np.testing.assert_allclose(array(child.alpha), array(bias.angular), atol=1e-13)
    np.testing.assert_allclose(
        array(child.linear), array(classical_acceleration(bias, child_v).linear), atol=1e-12
    )


@pytest.mark.parametrize("name", ["z screw about z", "chain about z"])
def test_a_joint_at_rest_may_accelerate_about_another_axis(name):
    """RBDA-2.11-CHAINACC: a zero velocity says nothing about the axis of the acceleration"""
    X, _ = links()[name]
    random = Random(11)
    (v, _), (a, _), (a_J, _) = random.motion(), random.motion(), random.motion()
    got = comoving(v, a).across_joint(X, Motion.zero(), a_J)
    np.testing.assert_allclose(got.leaves(), comoving(X.apply(v), X.apply(a) + a_J).leaves(), atol=1e-12)


def test_wrong_arguments_of_across_joint_are_refused():
    A = BodyAcceleration(Vec3.zero(), Vec3.zero(), Vec3.zero())
    with pytest.raises(SpatialTypeError, match="placement and two Motions"):
        A.across_joint(Vec3.zero(), Motion.zero(), Motion.zero())
    with pytest.raises(SpatialTypeError, match="placement and two Motions"):
        A.across_joint(scrz(0.1, 0.2), Motion.zero(), Vec3.zero())
