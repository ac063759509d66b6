"""Operational space: the hand is a unit mass on a spring, and what it leaves free is left free."""

import numpy as np
import pytest
from tests.algorithms.trees import close

import dalembert as da
from dalembert.algorithms import control_laws
from dalembert.errors import ArgumentError, ShapeError
from dalembert.textbook import handle_inertia, handle_inverse_inertia

ARM = da.models.arm7()


def state(seed=0):
    q, v = ARM.random_state(seed)
    return q, v


def hand(q, v, a):
    """Position, velocity (6, angular first) and acceleration (6) of the tool along world axes."""
    J, J_rate = da.jacobian(ARM, q, "tool"), da.kinematics.jacobian_rate(ARM, q, v, "tool")
    pose = da.forward_kinematics(ARM, q)["hand"]
    place = ARM.frame("tool").placement
    x = pose.rotation @ place.p.to_list() + pose.translation
    R = pose.rotation @ np.array(place.R.to_list())
    return x, R, J @ v, J @ a + J_rate @ v


def turn(phi):
    return np.array(da.spatial.exponential.so3_exp(da.spatial.Vec3(*phi)).to_list())


def test_hand_behaves_as_the_designed_mass():
    """TOD-OPSPACE: x'' = x''_ref - D (x' - x'_ref) - K (x - x_ref) for the whole pose, each row with its own
    gains; the error of the rotation is its rotation vector in the world.
    """
    q, v = state()
    x, R, x_rate, _ = hand(q, v, 0.0 * v)
    rng = np.random.default_rng(1)
    phi = np.array([0.3, -0.2, 0.5])
    x_ref, R_ref = x + rng.normal(size=3), turn(-phi) @ R
    v_ref, a_ref = rng.normal(size=(2, 6))
    K, D = rng.uniform(1.0, 20.0, (2, 6))
    tau = da.control.operational_space(
        ARM, q, v, "tool", x_ref, R_ref, velocity=v_ref, acceleration=a_ref, stiffness=K, damping=D
    )
    found = hand(q, v, da.forward_dynamics(ARM, q, v, tau))[3]
    error = np.concatenate([phi, x - x_ref])
    close(found, a_ref - D * (x_rate - v_ref) - K * error, 1e-9)


@pytest.mark.parametrize("rows", ["position", "rotation"])
def test_tasks_of_three_rows(rows):
    """TOD-OPSPACE: a position or a rotation alone, critically damped; on a batch."""
    states = [state(seed) for seed in range(3)]
    q, v = (np.array(part) for part in zip(*states))
    if rows == "position":
        target = {"position": np.array([0.3, 0.2, 0.6])}
    else:
        target = {"rotation": np.eye(3)}
    tau = da.control.operational_space(ARM, q, v, "tool", **target, stiffness=9.0)
    for q_k, v_k, a in zip(q, v, da.forward_dynamics(ARM, q, v, tau)):
        x, R, x_rate, found = hand(q_k, v_k, a)
        if rows == "position":
            close(found[3:], -6.0 * x_rate[3:] - 9.0 * (x - target["position"]), 1e-9)
        else:
            error = da.spatial.exponential.so3_log(da.spatial.Mat3(*R.ravel().tolist())).to_list()
            close(found[:3], -6.0 * x_rate[:3] - 9.0 * np.array(error), 1e-9)


def test_null_space_does_not_disturb_the_hand():
    """TOD-OPSPACE: forces tau_0 pass as N^T tau_0: the hand accelerates as without them, the arm does not;
    J M^-1 N^T = 0 and N N = N.
    """
    q, v = state(2)
    x, R, _, _ = hand(q, v, 0.0 * v)
    tau_0 = da.control.posture_forces(ARM, q, v, np.zeros(7), stiffness=4.0)
    law = {"position": x + 0.1, "rotation": R, "stiffness": 4.0}
    without = da.control.operational_space(ARM, q, v, "tool", **law)
    with_it = da.control.operational_space(ARM, q, v, "tool", **law, null_space=tau_0)
    J, inverse = da.jacobian(ARM, q, "tool"), da.control.consistent_inverse(ARM, q, "tool")
    N = np.eye(7) - inverse @ J
    close(with_it - without, N.T @ tau_0, 1e-8)
    close(N @ N, N, 1e-10)
    close(J @ da.inverse_mass_matrix(ARM, q) @ N.T, np.zeros((6, 7)), 1e-9)
    a, b = (da.forward_dynamics(ARM, q, v, tau) for tau in (without, with_it))
    close(hand(q, v, a)[3], hand(q, v, b)[3], 1e-8)
    assert np.abs(a - b).max() > 1e-3


def test_inertia_is_that_of_the_handle():
    """TOD-OPSPACE RBDA-7.2-PROJECT: Lambda = (J M^-1 J^T)^-1 is the articulated-body inertia by projection,
    and J# is the inverse of J with the least kinetic energy.
    """
    q, _ = state(3)
    Lambda = da.control.operational_inertia(ARM, q, "tool")
    Phi = handle_inverse_inertia(ARM, q.tolist(), ["tool"], frame="world_aligned")
    close(Lambda, handle_inertia(Phi), 1e-9)
    J, M = da.jacobian(ARM, q, "tool"), da.mass_matrix(ARM, q)
    inverse = da.control.consistent_inverse(ARM, q, "tool")
    close(J @ inverse, np.eye(6), 1e-9)
    x_rate = np.random.default_rng(0).normal(size=6)
    least = inverse @ x_rate
    null = np.linalg.svd(J)[2][6]
    assert abs(null @ M @ least) < 1e-9 * np.abs(M @ least).max()
    small = da.control.operational_inertia(ARM, q, "tool", rotation=False)
    close(small, np.linalg.inv(np.array(Phi)[3:, 3:]), 1e-9)


def test_tasks_in_the_order_of_their_priority():
    """TOD-OPSPACE: of two tasks that contradict each other the first is met; a third that fits is met."""
    q, v = state(4)

    def law(model, q, v):
        hold = control_laws.frame_task(model, q, v, "tool", position=[0.3, 0.1, 0.5], stiffness=[4.0] * 3)
        pull = control_laws.frame_task(model, q, v, "tool", position=[9.0, 9.0, 9.0], stiffness=[4.0] * 3)
        elbow = control_laws.frame_task(
            model, q, v, "elbow_link", position=[0.0, 0.2, 0.4], stiffness=[1.0] * 3
        )
        one = control_laws.Task(elbow.J[2:], elbow.wanted[2:])
        return control_laws.operational_space(model, q, v, [hold, pull, one])

    tau = da.compile(law, ARM)(q, v)
    a = da.forward_dynamics(ARM, q, v, tau)
    x, _, x_rate, found = hand(q, v, a)
    close(found[3:], -4.0 * x_rate[3:] - 4.0 * (x - [0.3, 0.1, 0.5]), 1e-8)
    p, p_rate, p_second = da.kinematics.point_motion(ARM, q, v, a, "elbow_link")
    assert p_second[2] == pytest.approx(-2.0 * p_rate[2] - (p[2] - 0.4), abs=1e-8)


def test_directions_that_nothing_moves_are_left_out():
    """TOD-OPSPACE: a planar arm follows x and z of its target, whatever y says."""
    model = da.models.two_link_arm()
    q, v = np.array([0.4, 0.9]), np.array([0.3, -0.5])
    tau = da.control.operational_space(model, q, v, "tip", [0.9, 5.0, 0.8], stiffness=4.0, damping=1.0)
    a = da.forward_dynamics(model, q, v, tau)
    x, x_rate, found = da.kinematics.point_motion(model, q, v, a, "tip")
    close(found[[0, 2]], (-x_rate - 4.0 * (x - [0.9, 5.0, 0.8]))[[0, 2]], 1e-10)


def test_regularization_bounds_the_forces_near_a_singularity():
    """TOD-OPSPACE: with the arm almost straight the exact law asks for ever larger forces along it, and the
    regularized one does not; elsewhere the two agree.
    """
    model = da.models.two_link_arm()
    v = np.zeros(2)

    def force(bend, **options):
        q = np.array([0.3, bend])
        x = da.kinematics.point_motion(model, q, v, v, "tip")[0]
        along = np.array([np.cos(0.3), 0.0, np.sin(0.3)])
        return np.abs(
            da.control.operational_space(model, q, v, "tip", x + 0.1 * along, stiffness=100.0, **options)
        ).max()

    assert force(1e-4) > 50.0 * force(1e-2)
    assert force(1e-4, regularization=1e-3) < 2.0 * force(1e-2, regularization=1e-3) + 50.0
    assert force(1.5, regularization=1e-9) == pytest.approx(force(1.5), rel=1e-6)


def test_two_motors_of_a_linkage_move_its_hand():
    """TOD-OPSPACE: the pin of a five-bar is a designed mass in its plane; its loop holds, and the two motors
    do all of it.
    """
    model = da.models.five_bar()
    q, v = da.constraints.close_loops(
        model, 0.2 * np.array([1.0, -0.5, 0.7, 0.3]), np.array([1.0, 0.4, -0.3, 0.2])
    )
    x, x_rate, _ = da.kinematics.point_motion(model, q, v, 0.0 * v, "tool")
    target = x + [0.05, 0.0, -0.04]
    tau = da.control.operational_space(model, q, v, "tool", target, stiffness=9.0, damping=2.0)
    a = da.forward_dynamics(model, q, v, tau)
    close(da.constraints.constraint_jacobian(model, q) @ a, da.constraints.constraint_bias(model, q, v), 1e-9)
    close(da.kinematics.point_motion(model, q, v, a, "tool")[2], -2.0 * x_rate - 9.0 * (x - target), 1e-9)
    close(tau[[1, 3]], np.zeros(2), 1e-12)
    assert np.abs(tau).max() > 1.0
    soft = da.control.operational_space(model, q, v, "tool", target, stiffness=9.0, regularization=0.1)
    a = da.forward_dynamics(model, q, v, soft)
    close(soft, da.inverse_dynamics(model, q, v, a), 1e-8)  # which refuses what breaks the loop


def test_two_link_arm_tracks_a_line():
    """TOD-OPSPACE: in simulation the tip follows a straight line at constant speed, to what holding
    the forces for a step costs, after its start beside the line has died out.
    """
    model = da.models.two_link_arm()
    q, v = np.array([0.6, 1.2]), np.zeros(2)
    start, speed, dt = np.array([1.0, 0.0, 1.2]), np.array([-0.5, 0.0, -0.3]), 0.004
    distances = []
    for k in range(500):
        target = start + speed * k * dt
        tau = da.control.operational_space(model, q, v, "tip", target, velocity=speed, stiffness=100.0)
        q, v = da.step(model, q, v, tau, dt, integrator="rk4")
        x = da.kinematics.point_motion(model, q, v, v, "tip")[0]
        distances.append(np.linalg.norm(x - start - speed * (k + 1) * dt))
    assert distances[0] > 0.1
    assert max(distances[300:]) < 5e-4


def test_redundant_arm_keeps_its_hand_while_its_posture_changes():
    """TOD-OPSPACE: seven joints hold the pose of the hand; a posture in the null space moves the elbow."""
    q = np.array([0.2, 0.7, -0.3, 1.1, 0.4, 0.8, -0.2])
    v = np.zeros(7)
    x, R, _, _ = hand(q, v, v)
    elbow = da.kinematics.point_motion(ARM, q, v, v, "elbow_link")[0]
    rest = q + [0.9, 0.0, -0.9, 0.0, 0.0, 0.0, 0.0]
    dt = 0.005
    model = ARM.with_values({f"{body.joint_name}.damping": 0.0 for body in ARM.bodies})
    for _ in range(300):
        tau_0 = da.control.posture_forces(model, q, v, rest, stiffness=16.0)
        tau = da.control.operational_space(model, q, v, "tool", x, R, stiffness=100.0, null_space=tau_0)
        q, v = da.step(model, q, v, tau, dt, integrator="rk4")
    x_end, R_end, _, _ = hand(q, v, v)
    close(x_end, x, 1e-4)
    close(R_end, R, 1e-4)
    assert np.linalg.norm(da.kinematics.point_motion(ARM, q, v, v, "elbow_link")[0] - elbow) > 0.02


def test_wrong_targets_are_refused():
    q, v = state()
    with pytest.raises(ArgumentError, match="position, a rotation or both"):
        da.control.operational_space(ARM, q, v, "tool", stiffness=1.0)
    with pytest.raises(ShapeError, match="one number or 3"):
        da.control.operational_space(ARM, q, v, "tool", [0, 0, 0], stiffness=[1.0] * 6)
