"""Poses, velocities and accelerations of bodies and points, against finite differences and products."""

import numpy as np
import pytest
from tests.algorithms.trees import close, mat, place, random_tree, six, state, vec

from dalembert.algorithms.kinematics import (
    body_accelerations,
    body_motions,
    body_velocities,
    forward_kinematics,
    placed_motion,
    point_motion,
    relative_motion,
)
from dalembert.model.configuration import integrate
from dalembert.spatial import Transform, Vec3

SEEDS = range(10)
STEP = 1e-5


def moved(model, q, v, a, h):
    """The state h later, to third order in h for joints with v = dq/dt and to second order otherwise."""
    return (
        integrate(model, q, [h * x + 0.5 * h * h * y for x, y in zip(v, a)]),
        [x + h * y for x, y in zip(v, a)],
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_poses_are_products_of_homogeneous_transforms(seed):
    """LJ-5.1-TREE, RBDA-2.8-XFORM: W_0k = W_0p(k) W_k."""
    model = random_tree(seed)
    q, _, _, _ = state(model, seed)
    poses = forward_kinematics(model, q)
    found = {-1: np.eye(4)}
    for body in model.bodies:
        link = np.array(body.jcalc(q).X.homogeneous(), dtype=float)
        found[body.index] = found[body.parent] @ link
        close(np.array(poses[body].homogeneous(), dtype=float), found[body.index], 1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_velocities_are_rates_of_poses(seed):
    """LJ-5.2-OMEGA, RBDA-2.7-CHAIN, RBDA-5.2-RECUR: R^T dR = omega x and R^T dp = v_O."""
    model = random_tree(seed)
    q, v, a, _ = state(model, seed)
    velocities = body_velocities(model, q, v)
    ahead = forward_kinematics(model, moved(model, q, v, a, STEP)[0])
    behind = forward_kinematics(model, moved(model, q, v, a, -STEP)[0])
    here = forward_kinematics(model, q)
    for body in model.bodies:
        R = mat(here[body].R)
        spin = R.T @ (mat(ahead[body].R) - mat(behind[body].R)) / (2 * STEP)
        close([spin[2, 1], spin[0, 2], spin[1, 0]], vec(velocities[body].angular), 1e-7)
        close(
            R.T @ (vec(ahead[body].p) - vec(behind[body].p)) / (2 * STEP), vec(velocities[body].linear), 1e-7
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_accelerations_are_rates_of_velocities(seed):
    """RBDA-2.11-ACCEL, RBDA-2.11-CHAINACC: a_i is the rate of the body coordinates of v_i."""
    model = random_tree(seed)
    q, v, a, _ = state(model, seed)
    accelerations = body_accelerations(model, q, v, a)
    ahead = body_velocities(model, *moved(model, q, v, a, STEP))
    behind = body_velocities(model, *moved(model, q, v, a, -STEP))
    for body in model.bodies:
        rate = (six(ahead[body]) - six(behind[body])) / (2 * STEP)
        close(rate, six(accelerations[body]), 1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_point_motion_is_derivative_of_point_position(seed):
    """RBDA-2.2-VELOCITY, RBDA-2.11-ACCEL, LJ-5.2-JV: first and second derivative of a body-fixed point."""
    model = random_tree(seed)
    q, v, a, _ = state(model, seed)
    point = Vec3(0.3, -0.4, 0.2)
    body = model.bodies[-1]
    here = point_motion(body_motions(model, q, v, a)[body], point)
    ahead, behind = (
        point_motion(body_motions(model, *moved(model, q, v, a, h))[body], point) for h in (STEP, -STEP)
    )
    close((vec(ahead.position) - vec(behind.position)) / (2 * STEP), vec(here.velocity), 1e-7)
    close((vec(ahead.velocity) - vec(behind.velocity)) / (2 * STEP), vec(here.acceleration), 1e-7)


def test_motion_of_a_fixed_frame_follows_its_body():
    """RBDA-2.2-VELOCITY: the origin of a frame is a point of the body."""
    model = random_tree(4)
    q, v, a, _ = state(model, 4)
    motion = body_motions(model, q, v, a)[model.bodies[-1]]
    X = place(np.random.default_rng(2))
    X = Transform.from_rotation_translation(X.R.to_list(), [0.1, 0.2, 0.3])
    velocity, acceleration = placed_motion(relative_motion(motion, X))
    origin = point_motion(motion, X.p)
    close(vec(velocity.linear), vec(origin.velocity), 1e-13)
    close(vec(acceleration.linear), vec(origin.acceleration), 1e-12)
    close(vec(velocity.angular), mat(motion.pose.R) @ vec(motion.velocity.angular), 1e-13)
