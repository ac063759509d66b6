"""Particles in generalized coordinates, and Lagrange's equations for any kinetic energy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.trees import close, inertia, place, random_tree, state, vec

from dalembert import scalar
from dalembert.algorithms.energy_momentum import kinetic_energy, potential_energy
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.inverse_dynamics import bias_forces, coriolis_forces, inverse_dynamics
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Revolute, Universal
from dalembert.model.joints.dual import directional_derivative
from dalembert.spatial import Vec3
from dalembert.textbook import lagrange as lg

RATES = (
    "revolute",
    "prismatic",
    "helical",
    "cylindrical",
    "spherical_euler",
    "spherical_exponential",
    "universal",
    "translation",
    "rack_pinion",
    "ellipsoid",
    "composite",
    "reversed",
)
"""The joints whose v is the rate of their q."""


def particles(q):
    """Three points of a chain on a cart that also turns."""
    x, theta, phi = q
    tip = Vec3(x + scalar.sin(theta), 0.0, -scalar.cos(theta))
    arm = Vec3(scalar.sin(theta + phi), scalar.sin(phi) * x, -scalar.cos(theta + phi)) * 0.7
    return [Vec3(x, 0.0, 0.0), tip, tip + arm]


MASSES = (2.0, 0.5, 0.8)


def at_random(seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=3).tolist() for _ in range(3)], rng.normal(size=(3, 3))


def test_generalized_force_does_the_work_of_the_forces():
    """LJ-2-GENFORCE: Q . qd = sum f_i . r_i' for any qd, and J against differences of r(q)."""
    (q, qd, _), forces = at_random(0)
    Q = lg.particle_forces(particles, [Vec3(*f) for f in forces], q)
    h = 1e-6
    ahead = [vec(r) for r in particles([x + h * s for x, s in zip(q, qd)])]
    behind = [vec(r) for r in particles([x - h * s for x, s in zip(q, qd)])]
    velocities = (np.array(ahead) - np.array(behind)) / (2 * h)
    assert np.dot(Q, qd) == pytest.approx(float(np.sum(forces * velocities)), rel=1e-8)
    J = np.array(lg.particle_jacobians(particles, q), dtype=float)
    close(np.einsum("ijk,k->ij", J, qd), velocities, 1e-8)
    for k in range(3):
        unit = [h * (k == i) for i in range(3)]
        up = np.array([vec(r) for r in particles([x + u for x, u in zip(q, unit)])])
        down = np.array([vec(r) for r in particles([x - u for x, u in zip(q, unit)])])
        close(J[:, :, k], (up - down) / (2 * h), 1e-8)


def test_the_two_identities_behind_lagrange():
    """LJ-2-LAGRANGE: dr'/dqd = dr/dq, and d/dt (dr/dq_j) = dr'/dq_j."""
    (q, qd, _), _ = at_random(1)

    def velocity(x, rates):
        return list(directional_derivative(particles, x, rates)[1])

    for j in range(3):
        unit = [float(j == k) for k in range(3)]
        column = directional_derivative(particles, q, unit)[1]
        by_rate = directional_derivative(lambda rates: velocity(q, rates), qd, unit)[1]
        close([vec(x) for x in by_rate], [vec(x) for x in column], 1e-14)
        column_rate = directional_derivative(
            lambda x, unit=unit: list(directional_derivative(particles, x, unit)[1]), q, qd
        )[1]
        slope = directional_derivative(lambda x: velocity(x, qd), q, unit)[1]
        close([vec(x) for x in column_rate], [vec(x) for x in slope], 1e-14)


def test_lagrange_equals_newton_for_particles():
    """LJ-2-LAGRANGE: Q_j = sum mu r'' . dr/dq_j, the inertia forces of D'Alembert, by Eq. 4 and by Eq. 13."""
    (q, qd, qdd), _ = at_random(2)

    def velocity(x):
        return list(directional_derivative(particles, x[:3], x[3:])[1])

    accelerations = directional_derivative(velocity, [*q, *qd], [*qd, *qdd])[1]
    inertia_forces = [r * mass for r, mass in zip(accelerations, MASSES)]
    found = lg.lagrange_equations(
        lambda x, rates: lg.particle_kinetic_energy(particles, MASSES, x, rates), q, qd, qdd
    )
    close(found, lg.particle_forces(particles, inertia_forces, q), 1e-13)


def planar_arm() -> ModelBuilder:
    rng = np.random.default_rng(4)
    builder = ModelBuilder()
    builder.add_body("upper", parent="world", joint=Revolute((0, 1, 0)), inertia=inertia(rng))
    builder.add_body(
        "lower", parent="upper", joint=Revolute((0, 1, 0)), placement=place(rng), inertia=inertia(rng)
    )
    return builder


@pytest.mark.parametrize("joints", [1, 2])
def test_pendulum_and_arm_of_two_links(joints):
    """LJ-2-LAGRANGE: L = T - V of a pendulum and of a two-link arm gives the forces of RNEA."""
    model = planar_arm().build()
    if joints == 1:
        model = model.lock(["lower"], model.neutral())
    q, v, a, _ = state(model, 3)
    found = lg.lagrange_equations(
        lambda x, rates: kinetic_energy(model, x, rates) - potential_energy(model, x), q, v, a
    )
    close(found, inverse_dynamics(model, q, v, a), 1e-12)


@pytest.mark.parametrize("kind", RATES)
def test_lagrange_for_every_joint_whose_velocity_is_a_rate(kind):
    """LJ-2-LAGRANGE, LJ-2-CORIOLIS: joint by joint, M' qd - ((dM/dq) qd)^T qd / 2 and Eq. 13 against RNEA."""
    model = random_tree(2, 3, (kind, "revolute"), root=kind, branching=0.0)
    q, v, a, _ = state(model, 4)
    lagrangian = lambda x, rates: kinetic_energy(model, x, rates) - potential_energy(model, x)
    terms = (coriolis_forces(model, q, v), mass_matrix(model, q))
    found = lg.lagrange_equations(lagrangian, q, v, a)
    close(found, inverse_dynamics(model, q, v, a), 1e-10, terms=terms)
    C = lg.coriolis_vector(lambda x: mass_matrix(model, x), q, v)
    close(C, coriolis_forces(model, q, v), 1e-10, terms=terms)


def test_velocity_terms_are_quadratic_and_the_two_matrices_differ():
    """LJ-2-CORIOLIS: C(q, 2 qd) = 4 C(q, qd); M' is symmetric, (dM/dq) qd is not M'."""
    model = random_tree(9, 3, ("revolute", "universal"), branching=0.0)
    q, v, _, _ = state(model, 9)
    M = lambda x: mass_matrix(model, x)
    once, twice = lg.coriolis_vector(M, q, v), lg.coriolis_vector(M, q, [2.0 * x for x in v])
    close(twice, 4.0 * np.array(once), 1e-13)
    gradient = lg.mass_matrix_gradient(M, q)
    rate = np.array(lg.mass_matrix_rate(gradient, v))
    other = np.array(lg.mass_matrix_gradient_times(gradient, v))
    h = 1e-6
    ahead, behind = (np.array(M([x + s * h * y for x, y in zip(q, v)])) for s in (1.0, -1.0))
    close(rate, (ahead - behind) / (2 * h), 1e-8)
    tensor = np.array(gradient, dtype=float)
    close(other, np.einsum("jik,k->ij", tensor, v), 1e-14)
    assert np.abs(rate - rate.T).max() < 1e-12
    assert np.abs(rate - other).max() > 0.01


def test_simulation_and_inverse_dynamics_are_inverse():
    """LJ-2-FDID: qdd = M^-1 (Q - C) and Q = M qdd + C undo each other, and agree with recursion."""
    model = random_tree(10, 5)
    q, v, tau, _ = state(model, 10)
    M, C = mass_matrix(model, q), bias_forces(model, q, v)
    a = lg.accelerations_from(M, C, tau)
    close(lg.forces_from(M, C, a), tau, 1e-10, terms=(C,))
    close(a, forward_dynamics(model, q, v, tau), 1e-8)


def cloud(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and masses of a box of 0.2 x 0.4 x 0.6 m, 3 kg, on a grid."""
    sides = np.array([0.2, 0.4, 0.6])
    ticks = (np.arange(count) + 0.5) / count - 0.5
    grid = np.stack(np.meshgrid(ticks, ticks, ticks), axis=-1).reshape(-1, 3) * sides
    return grid + [0.1, 0.0, -0.3], np.full(len(grid), 3.0 / len(grid))


def test_particles_become_a_rigid_body():
    """LJ-2-PARTICLE-M: sum mu J^T J of a sampled body is symmetric, positive, tends to CRBA's M as 1/n^2."""
    from dalembert.spatial import RigidInertia

    sides = np.array([0.2, 0.4, 0.6])
    box = (
        3.0
        / 12.0
        * np.array(
            [sides[1] ** 2 + sides[2] ** 2, sides[0] ** 2 + sides[2] ** 2, sides[0] ** 2 + sides[1] ** 2]
        )
    )
    builder = ModelBuilder()
    builder.add_body(
        "box",
        parent="world",
        joint=Universal((0, 0, 1), (1, 0, 0)),
        inertia=RigidInertia(3.0, (0.1, 0.0, -0.3), box.tolist()),
    )
    model = builder.build()
    q, v, _, _ = state(model, 6)
    exact = np.array(mass_matrix(model, q))
    errors = []
    for count in (2, 4, 8):
        points, masses = cloud(count, 0)

        def positions(x, points=points):
            pose = forward_kinematics(model, x)[0]
            return [pose.transform_point(Vec3(*p)) for p in points.tolist()]

        M = np.array(lg.particle_mass_matrix(positions, masses.tolist(), q))
        close(M, M.T, 1e-14)
        assert np.linalg.eigvalsh(M).min() > 0.0
        T = lg.particle_kinetic_energy(positions, masses.tolist(), q, v)
        assert pytest.approx(0.5 * np.dot(v, M @ v), rel=1e-12) == T
        errors.append(np.abs(M - exact).max())
    assert errors[1] == pytest.approx(errors[0] / 4, rel=0.05)
    assert errors[2] == pytest.approx(errors[1] / 4, rel=0.05)
    assert errors[2] < 1e-2
