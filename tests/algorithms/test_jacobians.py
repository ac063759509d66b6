"""Jacobians and their rates in every frame, against velocities and finite differences."""

import numpy as np
import pytest
from tests.algorithms.trees import close, mat, place, random_tree, six, state, vec

from dalembert.algorithms.jacobians import (
    FRAMES,
    all_jacobians,
    jacobian,
    jacobian_rate,
    jacobian_rate_times_velocity,
    point_jacobian,
)
from dalembert.algorithms.kinematics import (
    body_motions,
    forward_kinematics,
    placed_motion,
    point_motion,
    relative_motion,
)
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.errors import UnknownNameError
from dalembert.model.body import Frame
from dalembert.model.builder import ModelBuilder
from dalembert.model.configuration import integrate
from dalembert.model.joints import Revolute, Spherical, Universal
from dalembert.model.model import Model
from dalembert.spatial import RigidInertia, Transform

SEEDS = range(8)


def with_frame(model, seed):
    rng = np.random.default_rng(seed)
    tool = Frame("tool", len(model.bodies) - 1, place(rng))
    return Model(bodies=model.bodies, gravity=model.gravity, frames=[tool])


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("seed", SEEDS)
def test_jacobian_maps_joint_rates_to_velocity(seed, frame):
    """RBDA-4.1-JACOBIAN, RBDA-2.7-CHAIN, LJ-5.2-OMEGA, LJ-5.2-JV: J v is the frame's velocity
    where J is expressed.
    """
    model = with_frame(random_tree(seed), seed)
    q, v, _, _ = state(model, seed)
    tool = model.frame("tool")
    motion = relative_motion(body_motions(model, q, v)[tool.body], tool.placement)
    expected = {
        "body": motion.velocity,
        "world": motion.pose.inverse_apply(motion.velocity),
        "world_aligned": placed_motion(motion)[0],
    }
    close(np.array(jacobian(model, q, "tool", frame=frame)) @ v, six(expected[frame]), 1e-12)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("seed", SEEDS)
def test_jacobian_rate_is_derivative_of_every_element(seed, frame):
    """RBDA-4.1-JACOBIAN, RBDA-2.11-CHAINACC: dJ/dt by central differences along the motion, and J' v as
    the acceleration at dv/dt = 0.
    """
    model = with_frame(random_tree(seed), seed)
    q, v, _, _ = state(model, seed)
    h = 1e-5
    ahead, behind = (
        np.array(jacobian(model, integrate(model, q, [s * x for x in v]), "tool", frame=frame))
        for s in (h, -h)
    )
    rate = np.array(jacobian_rate(model, q, v, "tool", frame=frame))
    close((ahead - behind) / (2 * h), rate, 1e-7)
    close(rate @ v, jacobian_rate_times_velocity(model, q, v, "tool", frame=frame), 1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_acceleration_is_jacobian_times_acceleration_plus_rate(seed):
    """RBDA-2.11-CHAINACC: a = J dv/dt + J' v."""
    model = random_tree(seed)
    q, v, a, _ = state(model, seed)
    motions = body_motions(model, q, v, a)
    for body in model.bodies:
        J = np.array(jacobian(model, q, body, frame="body"))
        close(
            J @ a + jacobian_rate_times_velocity(model, q, v, body, frame="body"),
            six(motions[body].acceleration),
            1e-12,
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_mass_matrix_is_sum_of_projected_inertias(seed):
    """RBDA-6.2-CRBA: H = sum of J_k^T I_k J_k, plus armature."""
    model = random_tree(seed)
    q, _, _, _ = state(model, seed)
    M = np.diag([m for body in model.bodies for m in body.armature]).astype(float)
    for body, J in zip(model.bodies, all_jacobians(model, q)):
        J = np.array(J, dtype=float)
        M = M + J.T @ np.array(body.inertia.matrix(), dtype=float) @ J
    close(mass_matrix(model, q), M, 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_point_jacobian_is_gradient_of_position(seed):
    """LJ-5.2-JV: J_v of the centre of mass by finite differences of W_0k c_k."""
    model = random_tree(seed)
    q, v, _, _ = state(model, seed)
    body = model.bodies[-1]
    c = body.inertia.com
    J = np.array(point_jacobian(model, q, body, c))
    close(J @ v, vec(point_motion(body_motions(model, q, v)[body], c).velocity), 1e-12)
    h = 1e-6
    for k in range(model.nv):
        d = [h if i == k else 0.0 for i in range(model.nv)]
        ends = [forward_kinematics(model, integrate(model, q, [s * x for x in d]))[body] for s in (1.0, -1.0)]
        up, down = (vec(pose.transform_point(c)) for pose in ends)
        close((up - down) / (2 * h), J[:, k], 1e-7)


def test_world_angular_jacobian_of_the_tutorial_tree():
    """LJ-5.2-OMEGA: J_w1 = (J1 0 0 0), J_w4 = (J1, R1 J2, 0, R2 J4), on the tree p = (0, 1, 2, 2), n = (2,
    3, 1, 1).
    """
    inertia = RigidInertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder = ModelBuilder()
    builder.add_body("1", parent="world", joint=Universal((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), inertia=inertia)
    offset = Transform.from_rotation_translation(np.eye(3).tolist(), [0.0, 0.0, 1.0])
    builder.add_body("2", parent="1", joint=Spherical(), placement=offset, inertia=inertia)
    builder.add_body("3", parent="2", joint=Revolute((1.0, 0.0, 0.0)), placement=offset, inertia=inertia)
    builder.add_body("4", parent="2", joint=Revolute((0.0, 1.0, 0.0)), placement=offset, inertia=inertia)
    model = builder.build()
    q, _, _, _ = state(model, 1)
    poses = forward_kinematics(model, q)

    def own(name):
        """J-hat of the seed: the joint's angular directions in the parent's frame."""
        body = model.body(name)
        X = body.jcalc(q).X
        return np.array([mat(X.R) @ vec(s.angular) for s in body.jcalc(q).S]).T

    J1 = np.array(jacobian(model, q, "1"))[:3]
    close(J1[:, :2], own("1"), 1e-13)
    close(J1[:, 2:], np.zeros((3, 5)), 1e-13)
    J4 = np.array(jacobian(model, q, "4"))[:3]
    expected = np.hstack(
        [
            own("1"),
            mat(poses[model.body("1")].R) @ own("2"),
            np.zeros((3, 1)),
            mat(poses[model.body("2")].R) @ own("4"),
        ]
    )
    close(J4, expected, 1e-13)


def test_unknown_names_and_the_world():
    """Names are checked; the world does not move."""
    model = random_tree(2, 3)
    q, v, _, _ = state(model, 2)
    with pytest.raises(UnknownNameError, match="world_aligned"):
        jacobian(model, q, "b1", frame="local")
    with pytest.raises(UnknownNameError, match="hand"):
        jacobian(model, q, "hand")
    close(jacobian(model, q, "world"), np.zeros((6, model.nv)), 1e-15)
    close(jacobian_rate_times_velocity(model, q, v, "world"), np.zeros(6), 1e-15)
