"""Splines of configurations: ends met exactly, velocities and accelerations that are derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BSpline

import dalembert as da
from dalembert.motion.configuration_spline import (
    ORDER,
    SPLINE_DEGREE,
    ConfigurationSpline,
    Controls,
    Knots,
)

KNOTS, DURATION = 7, 0.9
SPACING = Knots(KNOTS, DURATION)
FREE_ENDS = slice(3, -3)


def mixed_model() -> da.Model:
    """Every kind of joint that has its own spline, and a composite of two of them."""
    inertia = da.RigidInertia(1.0, (0.1, 0.2, 0.3), (1.0, 1.1, 1.2))
    builder = da.ModelBuilder()
    builder.add_body("trunk", "world", da.Free(), inertia=inertia)
    builder.add_body("arm", "trunk", da.Spherical(), inertia=inertia)
    builder.add_body("plate", "arm", da.joints.Planar(), inertia=inertia)
    builder.add_body(
        "hook", "plate", da.joints.Composite([da.Revolute((1, 0, 0)), da.Spherical()]), inertia=inertia
    )
    builder.add_body("tip", "hook", da.joints.SphericalEuler("yxz"), inertia=inertia)
    return builder.build()


MODEL = mixed_model()


def ends(count: int) -> list[tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(5)
    return [(*MODEL.random_state(seed), rng.normal(size=MODEL.nv))[:count] for seed in (1, 2)]


def curve(count: int) -> tuple[ConfigurationSpline, Controls]:
    """A motion between two states whose free control values are thrown about."""
    spline = ConfigurationSpline(MODEL, SPACING)
    controls = spline.between(*ends(count))
    free = controls.values[FREE_ENDS]
    free += 0.3 * np.random.default_rng(0).normal(size=free.shape)
    return spline, controls


def test_weights_and_their_derivatives_are_those_of_scipy() -> None:
    time = np.concatenate([[0.0], np.random.default_rng(0).uniform(0.0, DURATION, 40), [DURATION]])
    places = np.concatenate(
        [[0.0] * SPLINE_DEGREE, np.linspace(0.0, DURATION, KNOTS), [DURATION] * SPLINE_DEGREE]
    )
    controls = np.random.default_rng(1).normal(size=KNOTS + SPLINE_DEGREE - 1)
    points = SPACING.points(time)
    for order in range(3):
        ours = np.sum(points.weights[:, order] * controls[points.first[:, None] + np.arange(ORDER)], axis=1)
        theirs = BSpline(places, controls, SPLINE_DEGREE).derivative(order)(time) if order else None
        theirs = BSpline(places, controls, SPLINE_DEGREE)(time) if theirs is None else theirs
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


def test_the_smoothest_spline_between_values_and_rates_is_the_cubic() -> None:
    start, end = np.array([[1.0], [2.0]]), np.array([[0.5], [-1.0]])
    controls = Knots(KNOTS, 1.0).smoothest_controls(start, end)
    points, shares = Knots(KNOTS, 1.0).gauss_points(4)
    window = points.first[:, None] + np.arange(ORDER)
    x, rate = (np.sum(points.weights[:, k] * controls[window, 0], axis=1) for k in range(2))
    t = points.time
    cubic = np.polynomial.Polynomial([1.0, 2.0, -4.5, 2.0])  # 1 + 2 t - (3 (1 - 0.5) + 4 - 1) t^2 + 2 t^3
    np.testing.assert_allclose(x, cubic(t), atol=1e-12)
    np.testing.assert_allclose(shares @ rate, -0.5, atol=1e-12)


@pytest.mark.parametrize("count", [2, 3])
def test_both_ends_are_met_on_every_manifold(count: int) -> None:
    spline, controls = curve(3) if count == 3 else (ConfigurationSpline(MODEL, SPACING), None)
    controls = controls or spline.between(*ends(2))
    q, v, a = spline.sample(controls, SPACING.points(np.array([0.0, DURATION])))
    for k, state in enumerate(ends(count)):
        assert np.abs(da.difference(MODEL, q[k], state[0])).max() < 1e-12
        np.testing.assert_allclose(v[k], state[1], atol=1e-11)
        if count == 3:
            np.testing.assert_allclose(a[k], state[2], atol=1e-10)


def test_velocities_and_accelerations_are_derivatives() -> None:
    spline, controls = curve(3)
    time, e = np.linspace(0.02, 0.88, 9), 1e-5
    _, v, a = spline.sample(controls, SPACING.points(time))
    q_later, v_later, _ = spline.sample(controls, SPACING.points(time + e))
    q_before, v_before, _ = spline.sample(controls, SPACING.points(time - e))
    np.testing.assert_allclose(da.difference(MODEL, q_before, q_later) / (2 * e), v, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose((v_later - v_before) / (2 * e), a, rtol=1e-6, atol=1e-5)


def test_rotations_stay_unit_and_do_not_depend_on_the_frame() -> None:
    """A cumulative spline turned as a whole is the spline of turned control rotations."""
    spline, controls = curve(3)
    turn = np.array([0.5, 0.5, -0.5, 0.5])
    w, x, y, z = turn
    left = np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])
    turned = Controls(controls.values, controls.anchors @ left.T)
    points = SPACING.points(np.linspace(0.0, DURATION, 7))
    place = MODEL.body("arm").q_slice
    q, v, _ = spline.sample(controls, points)
    q_turned, v_turned, _ = spline.sample(turned, points)
    np.testing.assert_allclose(np.linalg.norm(q[:, place], axis=1), 1.0, atol=1e-14)
    np.testing.assert_allclose(q_turned[:, place], q[:, place] @ left.T, atol=1e-13)
    own = MODEL.body("arm").v_slice
    np.testing.assert_allclose(v_turned[:, own], v[:, own], atol=1e-12)


def test_a_joint_with_velocities_of_its_own_is_refused() -> None:
    def along(q: list) -> da.Transform:
        return da.Transform(da.spatial.Mat3.identity(), da.spatial.Vec3(q[0], 0.0, 0.0))

    def doubled(q: list, v: list) -> list:
        return [2.0 * v[0]]

    builder = da.ModelBuilder()
    joint = da.joints.UserDefined(
        "geared slider",
        1,
        1,
        along,
        position_rate=doubled,
        integrate=lambda q, dv: [q[0] + 2.0 * dv[0]],
        difference=lambda q0, q1: [0.5 * (q1[0] - q0[0])],
    )
    builder.add_body("slider", "world", joint, "rail", inertia=da.RigidInertia(1.0, (0, 0, 0), (1, 1, 1)))
    with pytest.raises(da.errors.ArgumentError, match='"rail"'):
        ConfigurationSpline(builder.build(), SPACING)
