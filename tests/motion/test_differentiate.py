"""Velocities and accelerations of motions that are known in closed form, on every kind of joint."""

from __future__ import annotations

import numpy as np
import pytest
from tests.motion.figures import turn

import dalembert as da
from dalembert.motion import Clip
from dalembert.motion.differentiation import continuous, position_rates, velocities_and_accelerations

INERTIA = da.RigidInertia(1.0, (0.1, 0.0, 0.0), np.diag([0.2, 0.3, 0.25]))


def one_joint(joint: da.joints.Joint) -> da.Model:
    builder = da.ModelBuilder()
    builder.add_body("body", joint=joint, inertia=INERTIA)
    return builder.build()


def spinning(time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quaternion, omega and its derivative in body coordinates of R = Rz(a) Ry(b) Rx(c)."""
    a, b, c = 2.0 * time, 0.8 * np.sin(3.0 * time), -7.0 * time + 0.5 * np.cos(2.0 * time)
    da_, db, dc = 2.0 + 0.0 * time, 2.4 * np.cos(3.0 * time), -7.0 - np.sin(2.0 * time)
    dda, ddb, ddc = 0.0 * time, -7.2 * np.sin(3.0 * time), -2.0 * np.cos(2.0 * time)
    sb, cb, sc, cc = np.sin(b), np.cos(b), np.sin(c), np.cos(c)
    omega = np.stack([dc - da_ * sb, db * cc + da_ * cb * sc, -db * sc + da_ * cb * cc], 1)
    rate = np.stack(
        [
            ddc - dda * sb - da_ * db * cb,
            ddb * cc - db * dc * sc + dda * cb * sc - da_ * db * sb * sc + da_ * cb * dc * cc,
            -ddb * sc - db * dc * cc + dda * cb * cc - da_ * db * sb * cc - da_ * cb * dc * sc,
        ],
        1,
    )
    half = [np.stack([np.cos(x / 2), np.sin(x / 2)], 1) for x in (a, b, c)]
    (wa, za), (wb, yb), (wc, xc) = (part.T for part in half)
    w, x, y, z = wa * wb, -za * yb, wa * yb, za * wb
    q = np.stack([w * wc - x * xc, w * xc + x * wc, y * wc + z * xc, z * wc - y * xc], 1)
    return q, omega, rate


def order_of(errors: list[float]) -> float:
    return float(np.log2(errors[0] / errors[1]))


def test_the_oracle_turns_as_it_says() -> None:
    q, omega, _ = spinning(np.array([0.3]))
    w, x, y, z = q[0]
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    angles = np.degrees([0.6, 0.8 * np.sin(0.9), -2.1 + 0.5 * np.cos(0.6)])
    np.testing.assert_allclose(
        np.eye(3) + 2 * w * K + 2 * K @ K, turn("z", angles[0]) @ turn("y", angles[1]) @ turn("x", angles[2])
    )
    h = 1e-6
    step = (spinning(np.array([0.3 + h]))[0] - spinning(np.array([0.3 - h]))[0])[0] / (2 * h)
    np.testing.assert_allclose(
        2.0 * (w * step[1:] - step[0] * np.array([x, y, z]) - np.cross([x, y, z], step[1:])),
        omega[0],
        rtol=1e-6,
    )


def test_ball_joints_turn_with_omega_to_the_fourth_order() -> None:
    model = one_joint(da.Spherical())
    errors: list[list[float]] = [[], []]
    for count in (101, 201):
        time = np.linspace(0.0, 1.5, count)
        q, omega, rate = spinning(time)
        v, a = velocities_and_accelerations(model, time, continuous(model, q))
        errors[0].append(np.abs(v - omega).max())
        errors[1].append(np.abs(a - rate).max())
    assert order_of(errors[0]) > 3.7
    assert order_of(errors[1]) > 3.5
    assert errors[0][1] < 1e-4
    assert errors[1][1] < 1e-2


def test_free_bodies_move_with_velocity_in_body_axes_to_the_fourth_order() -> None:
    model = one_joint(da.Free())
    errors: list[list[float]] = [[], []]
    for count in (101, 201):
        time = np.linspace(0.0, 1.5, count)
        q, omega, rate = spinning(time)
        p = np.stack([np.sin(2 * time), time**2, np.cos(time)], 1)
        dp = np.stack([2 * np.cos(2 * time), 2 * time, -np.sin(time)], 1)
        ddp = np.stack([-4 * np.sin(2 * time), 2 + 0 * time, -np.cos(time)], 1)
        w, u = q[:, :1], q[:, 1:]

        def into_body(x: np.ndarray, w: np.ndarray = w, u: np.ndarray = u) -> np.ndarray:
            return x - 2 * w * np.cross(u, x) + 2 * np.cross(u, np.cross(u, x))

        linear = into_body(dp)
        expected_v = np.hstack([omega, linear])
        expected_a = np.hstack([rate, into_body(ddp) - np.cross(omega, linear)])
        v, a = velocities_and_accelerations(model, time, np.hstack([p, q]))
        errors[0].append(np.abs(v - expected_v).max())
        errors[1].append(np.abs(a - expected_a).max())
    assert order_of(errors[0]) > 3.7
    assert order_of(errors[1]) > 3.5


@pytest.mark.parametrize(
    "joint",
    [
        da.Revolute(),
        da.joints.Universal(),
        da.joints.SphericalEuler("xzy"),
        da.joints.SphericalExponential(),
        da.joints.Planar(),
        da.Free(),
        da.joints.Composite([da.joints.Translation(), da.Spherical()]),
    ],
    ids=lambda joint: joint.kind,
)
def test_velocity_and_acceleration_carry_the_motion_on(joint: da.joints.Joint) -> None:
    """q(t + h) = q + h dq/dt + O(h^2), and the same for v, on a smooth motion along the manifold."""
    model = one_joint(joint)
    rng = np.random.default_rng(4)
    start = model.random_state(3)[0]
    amplitude, phase = rng.uniform(0.3, 0.6, model.nv), rng.uniform(0.0, 6.0, model.nv)
    time = np.linspace(0.0, 1.0, 201)
    offsets = amplitude * np.sin(2.0 * time[:, None] + phase)
    q = np.array([joint.integrate(list(start), list(row)) for row in offsets])
    clip = Clip.from_positions(model, time, q)
    rates = position_rates(model, clip.q, clip.v)
    h = time[1]
    np.testing.assert_allclose((clip.q[2:] - clip.q[:-2]) / (2 * h), rates[1:-1], atol=3e-4)
    np.testing.assert_allclose((clip.v[2:] - clip.v[:-2]) / (2 * h), clip.a[1:-1], atol=3e-3)


def test_jumps_of_sign_and_of_whole_turns_are_no_motion() -> None:
    time = np.linspace(0.0, 3.0, 301)
    q, omega, _ = spinning(time)
    flipped = q * np.where(np.random.default_rng(0).random(301) < 0.5, -1.0, 1.0)[:, None]
    clip = Clip.from_positions(one_joint(da.Spherical()), time, flipped)
    np.testing.assert_allclose(clip.v, omega, atol=1e-3)
    angle = 9.0 * time[:, None]
    wrapped = (angle + np.pi) % (2 * np.pi) - np.pi
    np.testing.assert_allclose(Clip.from_positions(one_joint(da.Revolute()), time, wrapped).v, 9.0, atol=1e-9)


def test_inverse_dynamics_of_a_free_fall_is_zero() -> None:
    model = one_joint(da.Free())
    time = np.linspace(0.0, 0.5, 101)
    q, v = model.neutral(), np.array([0.5, 4.0, -1.0, 1.0, 0.0, 2.0])
    record = [q]
    for step in np.diff(time):
        for _ in range(4):
            q, v = da.step(model, q, v, np.zeros(6), step / 4, integrator="rk4")
        record.append(q)
    clip = Clip.from_positions(model, time, record)
    tau = da.inverse_dynamics(model, clip.q, clip.v, clip.a)
    assert np.abs(tau).max() < 2e-4 * 9.81
