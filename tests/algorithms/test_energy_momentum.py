"""Energy, momentum and centre of mass, against sums over bodies and finite differences."""

import numpy as np
import pytest
from tests.algorithms.trees import close, random_tree, six, state, vec

from dalembert.algorithms.energy_momentum import (
    center_of_mass,
    center_of_mass_acceleration,
    center_of_mass_velocity,
    centroidal_momentum,
    centroidal_momentum_matrix,
    centroidal_momentum_rate,
    centroidal_momentum_rate_matrix,
    inertia_rate,
    kinetic_energy,
    momentum,
    potential_energy,
    total_mass,
)
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.kinematics import body_motions, forward_kinematics
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.model.configuration import integrate

SEEDS = range(8)
H = 1e-5


def along(model, q, v, a, h):
    return (
        integrate(model, q, [h * x + 0.5 * h * h * y for x, y in zip(v, a)]),
        [x + h * y for x, y in zip(v, a)],
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_kinetic_energy_is_half_v_M_v(seed):
    """RBDA-3.1-KE, RBDA-6.2-CRBA: sum of v.Iv/2 equals v^T H v / 2."""
    model = random_tree(seed)
    q, v, _, _ = state(model, seed)
    close(kinetic_energy(model, q, v), 0.5 * np.dot(v, np.array(mass_matrix(model, q)) @ v), 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_potential_energy_is_weight_times_height_of_center(seed):
    """V = -m g . c."""
    model = random_tree(seed)
    q, _, _, _ = state(model, seed)
    poses = forward_kinematics(model, q)
    masses = [body.inertia.mass for body in model.bodies]
    centers = [vec(poses[body].transform_point(body.inertia.com)) for body in model.bodies]
    c = np.average(centers, axis=0, weights=masses)
    close(total_mass(model), sum(masses), 1e-14)
    close(vec(center_of_mass(model, q)), c, 1e-12)
    close(potential_energy(model, q), -sum(masses) * np.dot(vec(model.gravity), c), 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_center_of_mass_motion_is_derivative_of_its_position(seed):
    """RBDA-2.12-MOMENTUM: velocity and acceleration of c by central differences."""
    model = random_tree(seed)
    q, v, a, _ = state(model, seed)
    (q1, v1), (q0, v0) = along(model, q, v, a, H), along(model, q, v, a, -H)
    rate = (vec(center_of_mass(model, q1)) - vec(center_of_mass(model, q0))) / (2 * H)
    close(rate, vec(center_of_mass_velocity(model, q, v)), 1e-7)
    rate = (vec(center_of_mass_velocity(model, q1, v1)) - vec(center_of_mass_velocity(model, q0, v0))) / (
        2 * H
    )
    close(rate, vec(center_of_mass_acceleration(model, q, v, a)), 1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_centroidal_matrix_maps_velocity_to_momentum(seed):
    """RBDA-2.12-MOMENTUM: A_G v is the momentum about the centre of mass, whose linear part is m c'."""
    model = random_tree(seed)
    q, v, _, _ = state(model, seed)
    h_O, c = momentum(model, q, v), vec(center_of_mass(model, q))
    about_center = np.concatenate([vec(h_O.angular) - np.cross(c, vec(h_O.linear)), vec(h_O.linear)])
    close(np.array(centroidal_momentum_matrix(model, q)) @ v, about_center, 1e-12)
    close(six(centroidal_momentum(model, q, v)), about_center, 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_centroidal_matrix_rate_is_its_derivative(seed):
    """A_G' element by element, and A_G' v as the rate of momentum at dv/dt = 0."""
    model = random_tree(seed)
    q, v, a, _ = state(model, seed)
    ends = [
        np.array(centroidal_momentum_matrix(model, integrate(model, q, [s * x for x in v]))) for s in (H, -H)
    ]
    rate = np.array(centroidal_momentum_rate_matrix(model, q, v))
    close((ends[0] - ends[1]) / (2 * H), rate, 1e-7)
    close(rate @ v, six(centroidal_momentum_rate(model, q, v)), 1e-11)
    A = np.array(centroidal_momentum_matrix(model, q))
    close(A @ a + rate @ v, six(centroidal_momentum_rate(model, q, v, a)), 1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_free_system_keeps_momentum_but_for_gravity(seed):
    """The momentum of a floating tree changes by its weight alone, whatever its joints do; about c not at
    all.
    """
    model = random_tree(seed, 7, root="free", branching=0.0, armature=False)
    q, v, tau, _ = state(model, seed)
    tau[:6] = [0.0] * 6
    a = forward_dynamics(model, q, v, tau)
    rate = six(centroidal_momentum_rate(model, q, v, a))
    weight = total_mass(model) * vec(model.gravity)
    close(rate, np.concatenate([np.zeros(3), weight]), 1e-9, terms=(a, tau))


def test_inertia_rate_is_derivative_of_moving_inertia():
    """RBDA-2.13-INERTIA: d/dt I = v x* I - I v x in fixed coordinates, by central differences."""
    model = random_tree(2)
    q, v, _, _ = state(model, 2)
    body = model.bodies[-1]
    motion = body_motions(model, q, v)[body]
    rate = inertia_rate(motion.pose.inverse_apply(body.inertia), motion.pose.inverse_apply(motion.velocity))
    ends = []
    for s in (H, -H):
        pose = forward_kinematics(model, integrate(model, q, [s * x for x in v]))[body]
        ends.append(np.array(pose.inverse_apply(body.inertia).matrix(), dtype=float))
    close((ends[0] - ends[1]) / (2 * H), np.array(rate.matrix(), dtype=float), 1e-7)
