"""Coupled joints: every function on independent coordinates equals the reduced full system."""

import numpy as np
from tests.algorithms.trees import close, inertia, place, state

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.applied_forces import passive_forces
from dalembert.algorithms.energy_momentum import centroidal_momentum_matrix, kinetic_energy, momentum
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.inverse_dynamics import bias_forces, gravity_forces, inverse_dynamics
from dalembert.algorithms.jacobians import jacobian, jacobian_rate
from dalembert.algorithms.mass_matrix import crba_common_frame, inverse_mass_matrix, mass_matrix
from dalembert.algorithms.stepping import step
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Prismatic, Revolute, Spherical


def geared():
    """A branched arm: the finger mimics the motor, the slide follows a sum of two joints; one ball joint is
    free.
    """
    rng = np.random.default_rng(8)
    builder = ModelBuilder(gravity=(0.5, 0.3, -9.0))

    def add(name, parent, joint):
        builder.add_body(
            name,
            parent=parent,
            joint=joint,
            placement=place(rng),
            inertia=inertia(rng),
            armature=0.2,
            damping=0.3,
        )

    add("motor", "world", Revolute(rng.normal(size=3).tolist()))
    add("ball", "motor", Spherical())
    add("finger", "ball", Revolute(rng.normal(size=3).tolist()))
    add("slide", "motor", Prismatic(rng.normal(size=3).tolist()))
    add("tip", "finger", Revolute(rng.normal(size=3).tolist()))
    builder.add_coupling("mimic", {"motor": 2.0, "finger": -1.0}, offset=0.3)
    builder.add_coupling("belt", {"slide": 1.0, "motor": 0.5, "tip": -0.25}, offset=0.1)
    return builder.build()


def full_state(model, q, v, a):
    return model.expand_q(q), model.expand_v(v), model.expand_v(a)


def test_inverse_dynamics_reduces_by_equal_power():
    """RBDA-3.1-KE: tau = G^T tau_full, for bias, gravity and passive forces too."""
    model = geared()
    full = model.uncoupled()
    assert model.nv < full.nv
    G = np.array(model.expansion()[0])
    q, v, a, f = state(model, 1)
    Q, V, A = full_state(model, q, v, a)
    tau = inverse_dynamics(full, Q, V, A, external_forces=f)
    close(inverse_dynamics(model, q, v, a, external_forces=f), G.T @ tau, 1e-12)
    close(inverse_dynamics(aligned(model), q, v, a, external_forces=f), G.T @ tau, 1e-12)
    close(bias_forces(model, q, v), G.T @ bias_forces(full, Q, V), 1e-12)
    close(gravity_forces(model, q), G.T @ gravity_forces(full, Q), 1e-12)
    close(passive_forces(model, q, v), G.T @ passive_forces(full, Q, V), 1e-12)


def test_mass_matrix_and_kinematics_reduce_by_the_coupling():
    """RBDA-6.2-CRBA: M = G^T M_full G; J = J_full G; energy and momentum are unchanged."""
    model = geared()
    full = model.uncoupled()
    G = np.array(model.expansion()[0])
    q, v, a, _ = state(model, 2)
    Q, V, _ = full_state(model, q, v, a)
    M = G.T @ np.array(mass_matrix(full, Q)) @ G
    for tree in (model, aligned(model)):
        close(mass_matrix(tree, q), M, 1e-12)
    close(mass_matrix(model, q, method="rnea_columns"), M, 1e-11)
    close(crba_common_frame(model, q), M, 1e-12)
    close(np.array(inverse_mass_matrix(model, q)) @ M, np.eye(model.nv), 1e-10)
    close(jacobian(model, q, "tip"), np.array(jacobian(full, Q, "tip")) @ G, 1e-12)
    close(jacobian_rate(model, q, v, "tip"), np.array(jacobian_rate(full, Q, V, "tip")) @ G, 1e-12)
    close(centroidal_momentum_matrix(model, q), np.array(centroidal_momentum_matrix(full, Q)) @ G, 1e-12)
    close(kinetic_energy(model, q, v), kinetic_energy(full, Q, V), 1e-12)
    close(momentum(model, q, v).to_list(), momentum(full, Q, V).to_list(), 1e-12)


def test_forward_dynamics_equals_constraint_forces_on_the_full_system():
    """The full system with multipliers, [M K^T; K 0], moves exactly as the coupled model says."""
    model = geared()
    full = model.uncoupled()
    G = np.array(model.expansion()[0])
    q, v, tau, f = state(model, 3)
    Q, V, _ = full_state(model, q, v, tau)
    K = np.linalg.svd(G.T)[2][model.nv :]
    close(K @ G, np.zeros((len(K), model.nv)), 1e-13)
    M = np.array(mass_matrix(full, Q))
    applied = np.linalg.lstsq(G.T, np.array(tau), rcond=None)[0]
    right = np.concatenate([applied - bias_forces(full, Q, V, external_forces=f), np.zeros(len(K))])
    system = np.block([[M, K.T], [K, np.zeros((len(K), len(K)))]])
    A = np.linalg.solve(system, right)[: full.nv]
    for tree in (model, aligned(model)):
        a = forward_dynamics(tree, q, v, tau, external_forces=f)
        close(G @ a, A, 1e-10)
    close(inverse_dynamics(model, q, v, a, external_forces=f), tau, 1e-11)


def test_steps_keep_the_coupling():
    """q holds independent coordinates only, so a step cannot break a coupling."""
    model = geared()
    q, v, tau, _ = state(model, 4)
    for integrator in ("semi_implicit", "rk4"):
        q2, v2 = step(model, q, v, tau, 0.01, integrator=integrator)
        assert len(q2) == model.nq
        assert len(v2) == model.nv
        assert len(model.expand_q(q2)) == model.uncoupled().nq
