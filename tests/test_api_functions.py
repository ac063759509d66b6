"""What the public functions compute, against definitions, finite differences and one another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.conformance.models import arm, branched

import dalembert as da
from dalembert import scalar
from dalembert.errors import ArgumentError, UnknownNameError

FRAMES = ("body", "world", "world_aligned")


def with_frame() -> da.Model:
    """A free, branching tree with a named frame on its ball joint's body."""
    tree = branched()
    builder = da.ModelBuilder(gravity=(0.3, -0.2, -9.7))
    for body in tree.bodies:
        parent = "world" if body.parent < 0 else tree.bodies[body.parent].name
        builder.add_body(body.name, parent, body.joint, placement=body.placement, inertia=body.inertia)
    R = ((0.36, 0.48, -0.8), (-0.8, 0.6, 0.0), (0.48, 0.64, 0.6))
    builder.add_frame("tool", "ball", da.Transform.from_rotation_translation(R, (0.2, -0.3, 0.4)))
    return builder.build()


@pytest.fixture(scope="module")
def tree() -> da.Model:
    return with_frame()


@pytest.fixture(scope="module")
def state(tree: da.Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, v = tree.random_state(4)
    return q, v, np.random.default_rng(4).normal(size=tree.nv)


def along(
    model: da.Model, q: np.ndarray, v: np.ndarray, function: Callable[[np.ndarray], Any], h: float = 1e-5
) -> Any:
    """d/dt function(q(t)) at constant v, by central differences on the manifold, to fourth order."""
    at = lambda t: np.asarray(function(da.integrate(model, q, v * t)))
    return (8.0 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12.0 * h)


# kinematics


def test_poses_are_found_by_name(tree: da.Model, state: tuple[np.ndarray, ...]):
    """Bodies in order, a frame on its body, and the world at rest."""
    q = state[0]
    poses = da.forward_kinematics(tree, q)
    assert len(poses) == 3
    for body in tree.bodies:
        np.testing.assert_array_equal(poses[body.name].rotation, poses.rotation[body.index])
        np.testing.assert_array_equal(poses[body.name].translation, poses.translation[body.index])
    place = tree.frame("tool").placement
    ball = poses["ball"]
    R = ball.rotation @ np.array(place.R.to_list())
    p = ball.translation + ball.rotation @ np.array(place.p.to_list())
    rotation, translation = poses["tool"]
    np.testing.assert_allclose(rotation, R, atol=1e-14)
    np.testing.assert_allclose(translation, p, atol=1e-14)
    np.testing.assert_array_equal(poses["world"].rotation, np.eye(3))
    many = da.forward_kinematics(tree, np.tile(q, (2, 3, 1)))["tool"]
    np.testing.assert_allclose(many.rotation, np.broadcast_to(R, (2, 3, 3, 3)), atol=1e-14)
    np.testing.assert_allclose(many.translation, np.broadcast_to(p, (2, 3, 3)), atol=1e-14)


@pytest.mark.parametrize("name", ["tool", "screw"])
def test_jacobian_is_the_rate_of_the_pose(tree: da.Model, state: tuple[np.ndarray, ...], name: str):
    """In all three frames, against the finite difference of the pose along the motion."""
    q, v, _ = state
    R, p = da.forward_kinematics(tree, q)[name]
    R_rate = along(tree, q, v, lambda x: da.forward_kinematics(tree, x)[name].rotation)
    p_rate = along(tree, q, v, lambda x: da.forward_kinematics(tree, x)[name].translation)
    spin = R_rate @ R.T
    omega = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
    expected = {
        "world_aligned": np.concatenate([omega, p_rate]),
        "body": np.concatenate([R.T @ omega, R.T @ p_rate]),
        "world": np.concatenate([omega, p_rate - np.cross(omega, p)]),
    }
    for frame in FRAMES:
        np.testing.assert_allclose(da.jacobian(tree, q, name, frame=frame) @ v, expected[frame], atol=1e-8)
    np.testing.assert_array_equal(
        da.jacobian(tree, q, name), da.jacobian(tree, q, name, frame="world_aligned")
    )


@pytest.mark.parametrize("frame", FRAMES)
def test_jacobian_rate_is_the_rate_of_the_jacobian(tree: da.Model, state: tuple[np.ndarray, ...], frame: Any):
    q, v, _ = state
    expected = along(tree, q, v, lambda x: da.jacobian(tree, x, "tool", frame=frame))
    np.testing.assert_allclose(
        da.kinematics.jacobian_rate(tree, q, v, "tool", frame=frame), expected, atol=1e-7
    )


def test_point_motion_is_the_motion_of_the_frame(tree: da.Model, state: tuple[np.ndarray, ...]):
    """Position, velocity J v, classical acceleration J a + J' v."""
    q, v, a = state
    position, velocity, acceleration = da.kinematics.point_motion(tree, q, v, a, "tool")
    np.testing.assert_allclose(position, da.forward_kinematics(tree, q)["tool"].translation, atol=1e-13)
    J, J_rate = da.jacobian(tree, q, "tool")[3:], da.kinematics.jacobian_rate(tree, q, v, "tool")[3:]
    np.testing.assert_allclose(velocity, J @ v, atol=1e-12)
    np.testing.assert_allclose(acceleration, J @ a + J_rate @ v, atol=1e-11)


def test_world_does_not_move(tree: da.Model, state: tuple[np.ndarray, ...]):
    q, v, a = state
    assert not da.jacobian(tree, q, "world").any()
    for part in da.kinematics.point_motion(tree, q, v, a, "world"):
        np.testing.assert_array_equal(part, np.zeros(3))


# forces


def test_external_forces_act_on_the_right_hand_side(tree: da.Model, state: tuple[np.ndarray, ...]):
    """tau(f) = tau(0) - sum J^T f, in body and in world coordinates; forward dynamics inverts it."""
    q, v, a = state
    f = np.random.default_rng(5).normal(size=(3, 6))
    free = da.inverse_dynamics(tree, q, v, a)
    for frame in ("body", "world"):
        J = [da.jacobian(tree, q, body.name, frame=frame) for body in tree.bodies]
        loaded = da.inverse_dynamics(tree, q, v, a, f, external_frame=frame)
        np.testing.assert_allclose(loaded, free - sum(j.T @ x for j, x in zip(J, f)), atol=1e-11)
        np.testing.assert_allclose(
            da.forward_dynamics(tree, q, v, loaded, f, external_frame=frame), a, atol=1e-10
        )
    moved = da.step(tree, q, v, free, 1e-3, external_forces=f)
    assert not np.allclose(moved[1], da.step(tree, q, v, free, 1e-3)[1])


def test_force_at_point_has_the_power_of_the_point(tree: da.Model, state: tuple[np.ndarray, ...]):
    """J^T f of the built external force is J_point^T force, for a point given in the world; batched too."""
    q, v, a = state
    point, force = np.array([0.4, -0.2, 0.9]), np.array([3.0, -1.0, 2.0])
    f = da.force_at_point(tree, q, "ball", point, force)
    assert f.shape == (3, 6)
    assert not np.delete(f, tree.body("ball").index, axis=0).any()
    J = da.jacobian(tree, q, "ball", frame="world")
    wrench = np.concatenate([np.cross(point, force), force])
    free = da.inverse_dynamics(tree, q, v, a)
    np.testing.assert_allclose(da.inverse_dynamics(tree, q, v, a, f), free - J.T @ wrench, atol=1e-11)
    many = da.force_at_point(tree, np.tile(q, (4, 1)), "ball", np.tile(point, (4, 1)), force)
    np.testing.assert_allclose(many, np.tile(f, (4, 1, 1)), atol=1e-13)
    spread = da.force_at_point(tree, q, "ball", np.array([point, point + 1.0]), force)
    np.testing.assert_allclose(spread[0], f, atol=1e-13)


def test_bias_is_the_sum_of_its_parts(tree: da.Model, state: tuple[np.ndarray, ...]):
    q, v, a = state
    bias = da.bias_forces(tree, q, v)
    np.testing.assert_allclose(bias, da.inverse_dynamics(tree, q, v, np.zeros(tree.nv)), atol=1e-12)
    np.testing.assert_allclose(bias, da.coriolis_forces(tree, q, v) + da.gravity_forces(tree, q), atol=1e-11)
    np.testing.assert_allclose(
        da.inverse_dynamics(tree, q, v, a), da.mass_matrix(tree, q) @ a + bias, atol=1e-11
    )


def test_gravity_is_the_slope_of_potential_energy(tree: da.Model, state: tuple[np.ndarray, ...]):
    q, _, a = state
    slope = along(tree, q, a, lambda x: da.dynamics.potential_energy(tree, x))
    assert abs(da.gravity_forces(tree, q) @ a - slope) < 1e-7


def test_energy_and_momentum_are_quadratic_and_linear_in_v(tree: da.Model, state: tuple[np.ndarray, ...]):
    q, v, _ = state
    M = da.mass_matrix(tree, q)
    assert abs(da.dynamics.kinetic_energy(tree, q, v) - 0.5 * v @ M @ v) < 1e-12
    momentum = da.dynamics.centroidal_momentum(tree, q, v)
    np.testing.assert_allclose(da.dynamics.centroidal_momentum_matrix(tree, q) @ v, momentum, atol=1e-12)
    speed = along(tree, q, v, lambda x: da.dynamics.center_of_mass(tree, x))
    np.testing.assert_allclose(momentum[3:], tree.total_mass * speed, atol=1e-8)
    np.testing.assert_allclose(da.inverse_mass_matrix(tree, q) @ M, np.eye(tree.nv), atol=1e-11)


def test_every_method_gives_the_same_answer(tree: da.Model, state: tuple[np.ndarray, ...]):
    q, v, a = state
    tau = da.inverse_dynamics(tree, q, v, a)
    np.testing.assert_allclose(da.inverse_dynamics(tree, q, v, a, method="rnea_spatial"), tau, atol=1e-11)
    for method in ("aba", "crba", "aba_spatial"):
        np.testing.assert_allclose(da.forward_dynamics(tree, q, v, tau, method=method), a, atol=1e-9)
    M = da.mass_matrix(tree, q, method="crba")
    for method in ("rnea_columns", "crba_common_frame"):
        np.testing.assert_allclose(da.mass_matrix(tree, q, method=method), M, atol=1e-12)


# derivatives


@pytest.mark.parametrize("make", [with_frame, arm])
def test_derivatives_are_the_slopes(make: Callable[[], da.Model]):
    """dtau and da by q on the tangent, by v and by a or tau, against central differences."""
    model = make()
    q, v = model.random_state(6)
    x = np.random.default_rng(6).normal(size=model.nv)
    h = 1e-5
    for function, derivatives in (
        (da.inverse_dynamics, da.inverse_dynamics_derivatives),
        (da.forward_dynamics, da.forward_dynamics_derivatives),
    ):
        found = derivatives(model, q, v, x)
        for column, e in enumerate(np.eye(model.nv)):
            slopes = (
                along(model, q, e, lambda y: function(model, y, v, x)),  # noqa: B023
                (function(model, q, v + h * e, x) - function(model, q, v - h * e, x)) / (2 * h),
                (function(model, q, v, x + h * e) - function(model, q, v, x - h * e)) / (2 * h),
            )
            for matrix, slope in zip(found, slopes):
                scale = max(1.0, np.abs(matrix).max())
                np.testing.assert_allclose(matrix[:, column], slope, atol=1e-6 * scale)


# the configuration manifold


def test_difference_inverts_integrate(tree: da.Model):
    rng = np.random.default_rng(9)
    q = np.array([tree.random_state(rng)[0] for _ in range(20)])
    dv = 0.5 * rng.normal(size=(20, tree.nv))  # rotations of less than half a turn
    moved = da.integrate(tree, q, dv)
    np.testing.assert_allclose(da.difference(tree, q, moved), dv, atol=1e-12)
    other = np.roll(q, 1, axis=0)
    again = da.integrate(tree, q, da.difference(tree, q, other))
    for place in (slice(3, 7), slice(7, 11)):
        again[:, place] *= np.sign(np.sum(again[:, place] * other[:, place], axis=1, keepdims=True))
    np.testing.assert_allclose(again, other, atol=1e-12)
    np.testing.assert_allclose(da.integrate(tree, q, np.zeros(tree.nv)), q, atol=1e-15)


def test_step_follows_the_equation_of_motion():
    """Both integrators approach the state after dt at their order; passive forces are inside."""
    model = arm()
    q, v = model.random_state(1)
    tau = np.random.default_rng(1).normal(size=model.nv)
    dt = 1e-4
    a = da.forward_dynamics(model, q, v, tau + da.passive_forces(model, q, v))
    q2, v2 = da.step(model, q, v, tau, dt)
    np.testing.assert_allclose(v2, v + dt * a, atol=1e-12)
    np.testing.assert_allclose(q2, q + dt * v2, atol=1e-12)
    fine_q, fine_v = q, v
    for _ in range(16):
        fine_q, fine_v = da.step(model, fine_q, fine_v, tau, 0.02 / 16, integrator="rk4")
    errors = []
    for count in (1, 2):
        x, w = q, v
        for _ in range(count):
            x, w = da.step(model, x, w, tau, 0.02 / count, integrator="rk4")
        errors.append(np.linalg.norm(np.concatenate([x - fine_q, w - fine_v])))
    assert 10.0 < errors[0] / errors[1] < 25.0  # 2^4


def test_results_of_step_come_as_the_same_kind_every_time(tree: da.Model, state: tuple[np.ndarray, ...]):
    q, v, tau = state
    kinds = {type(da.step(tree, q, v, tau, 0.01)) for _ in range(3)}
    fresh = with_frame()
    kinds.add(type(da.step(fresh, q, v, tau, 0.01)))  # from the disk cache, without a trace
    assert len(kinds) == 1


# time


def driven() -> da.Model:
    """A pendulum on a cart that is driven along x = sin t."""
    builder = da.ModelBuilder()
    joint = da.joints.TimeDependent(
        da.Revolute((0, 1, 0)), da.Prismatic((1, 0, 0)), lambda t: [scalar.sin(t)]
    )
    inertia = da.RigidInertia(1.0, (0.0, 0.0, -1.0), ((0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)))
    builder.add_body("bob", "world", joint, inertia=inertia)
    return builder.build()


def test_time_dependent_model_needs_the_time():
    model = driven()
    for call in (
        lambda: da.forward_dynamics(model, [0.1], [0.2], [0.3]),
        lambda: da.mass_matrix(model, [0.1]),
        lambda: da.forward_kinematics(model, [0.1]),
        lambda: da.step(model, [0.1], [0.2], [0.3], 0.01),
        lambda: da.jacobian(model, [0.1], "bob"),
    ):
        with pytest.raises(ArgumentError, match="depends on time and none was given; pass time="):
            call()


def test_time_is_an_argument_like_any_other():
    """(m l^2 + I) a = tau - m g l sin q + m l cos q x'' for the support x = sin t, batched over time."""
    model = driven()
    time = np.linspace(0.0, 3.0, 7)
    q, tau = 0.4, 0.3
    found = da.forward_dynamics(model, [q], [0.2], [tau], time=time)
    expected = (tau - 9.81 * np.sin(q) - np.cos(q) * np.sin(time)) / 1.1
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-12)
    origin = da.forward_kinematics(model, [q], time=time).translation[:, 0]
    np.testing.assert_allclose(origin, np.stack([np.sin(time), 0 * time, 0 * time], axis=1), atol=1e-15)
    still = da.models.pendulum()
    np.testing.assert_array_equal(
        da.forward_dynamics(still, [0.1], [0.2], [0.3], time=1.0),
        da.forward_dynamics(still, [0.1], [0.2], [0.3]),
    )


# names


def test_unknown_names_come_with_the_nearest(tree: da.Model, state: tuple[np.ndarray, ...]):
    q, v, a = state
    for call, message in (
        (lambda: da.jacobian(tree, q, "tol"), 'unknown frame "tol".*nearest: "tool"'),
        (lambda: da.jacobian(tree, q, "tool", frame="wrld"), 'unknown .*"wrld".*nearest: "world"'),
        (lambda: da.forward_kinematics(tree, q)["bal"], 'unknown frame "bal".*nearest: "ball"'),
        (lambda: da.forward_dynamics(tree, q, v, a, method="abba"), 'unknown method of .*"abba".*"aba"'),
        (lambda: da.step(tree, q, v, a, 0.1, integrator="rk5"), 'unknown integrator "rk5".*"rk4"'),
        (lambda: da.force_at_point(tree, q, "bal", (0, 0, 0), (0, 0, 1)), 'unknown body "bal".*"ball"'),
        (
            lambda: da.inverse_dynamics(tree, q, v, a, np.zeros((3, 6)), external_frame="wolrd"),
            'unknown external_frame "wolrd".*"world"',
        ),
        (lambda: da.inverse_dynamics(tree, q, v, a, external_frame="wolrd"), 'unknown external_frame'),
    ):  # fmt: skip
        with pytest.raises(UnknownNameError, match=message):
            call()
