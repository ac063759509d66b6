"""Every function of a coupled model equals the uncoupled model's with q = gamma(y), v = G y."""

import numpy as np
import pytest
from tests.algorithms.gears.coupled_trees import coupled_tree
from tests.algorithms.trees import close, state

import dalembert as da
from dalembert import algorithms as al
from dalembert.algorithms import floating_base as fb
from dalembert.algorithms import hybrid
from dalembert.algorithms.aligned import aligned
from dalembert.compiler.library import FUNCTIONS

SEEDS = range(6)


def expanded(model, *vectors):
    """The uncoupled model, G, and q and the velocity-like vectors with all coordinates."""
    q, *rest = vectors
    return model.uncoupled(), np.array(model.expansion()[0]), model.expand_q(q), *map(model.expand_v, rest)


@pytest.mark.parametrize("seed", SEEDS)
def test_forces_and_matrices(seed):
    """RBDA-9.6-GEARS: tau = G^T tau_full, M = G^T H G, by every method and in every frame (Eq. 9.26)."""
    model = coupled_tree(seed)
    q, v, a, f = state(model, seed)
    full, G, Q, V, A = expanded(model, q, v, a)
    tau = G.T @ al.inverse_dynamics(full, Q, V, A, external_forces=f)
    M = G.T @ np.array(al.mass_matrix(full, Q)) @ G
    for tree in (model, aligned(model)):
        close(al.inverse_dynamics(tree, q, v, a, external_forces=f), tau, 1e-11)
        close(al.rnea_spatial(tree, q, v, a, external_forces=f).tau, tau, 1e-11)
        for matrix in (al.mass_matrix, al.crba_common_frame, al.mass_matrix_by_columns):
            close(matrix(tree, q), M, 1e-11, terms=(tau,))
        close(np.array(al.inverse_mass_matrix(tree, q)) @ M, np.eye(model.nv), 1e-8)
        close(al.differential_inverse_dynamics(tree, q, a), M @ a, 1e-11)
    close(al.rnea_common_frame(model, q, v, a), G.T @ al.inverse_dynamics(full, Q, V, A), 1e-11)
    close(al.gravity_forces(model, q), G.T @ al.gravity_forces(full, Q), 1e-11)
    close(al.coriolis_forces(model, q, v), G.T @ al.coriolis_forces(full, Q, V), 1e-11)
    close(al.passive_forces(model, q, v), G.T @ al.passive_forces(full, Q, V), 1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_kinematics_energy_and_momentum(seed):
    """J = J_full G, A_G = A_G,full G and their rates; energies and momentum are the same numbers."""
    model = coupled_tree(seed)
    q, v, a, _ = state(model, seed)
    full, G, Q, V, A = expanded(model, q, v, a)
    tip = model.bodies[-1].name
    for frame in al.FRAMES:
        close(
            al.jacobian(model, q, tip, frame=frame),
            np.array(al.jacobian(full, Q, tip, frame=frame)) @ G,
            1e-11,
        )
        rate = np.array(al.jacobian_rate(full, Q, V, tip, frame=frame)) @ G
        close(al.jacobian_rate(model, q, v, tip, frame=frame), rate, 1e-11)
        drift = al.jacobian_rate_times_velocity(model, q, v, tip, frame=frame)
        close(drift, al.jacobian_rate_times_velocity(full, Q, V, tip, frame=frame), 1e-11)
    close(
        al.centroidal_momentum_matrix(model, q), np.array(al.centroidal_momentum_matrix(full, Q)) @ G, 1e-11
    )
    rate = np.array(al.centroidal_momentum_rate_matrix(full, Q, V)) @ G
    close(al.centroidal_momentum_rate_matrix(model, q, v), rate, 1e-11)
    for function in (al.kinetic_energy, al.momentum, al.centroidal_momentum, al.center_of_mass_velocity):
        one, other = function(model, q, v), function(full, Q, V)
        close(*(x.to_list() if hasattr(x, "to_list") else x for x in (one, other)), 1e-11)
    close(al.potential_energy(model, q), al.potential_energy(full, Q), 1e-11)
    close(al.center_of_mass_acceleration(model, q, v, a).to_list(),
          al.center_of_mass_acceleration(full, Q, V, A).to_list(), 1e-11)  # fmt: skip
    for one, other in zip(al.body_motions(model, q, v, a), al.body_motions(full, Q, V, A), strict=True):
        close(one.acceleration.to_list(), other.acceleration.to_list(), 1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_hybrid_dynamics(seed):
    """RBDA-9.1-HYBRID: with couplings too, inverse dynamics of the accelerations gives the forces."""
    model = coupled_tree(seed)
    q, v, tau, f = state(model, seed)
    a = np.random.default_rng(seed).normal(size=model.nv).tolist()
    leaders = [body.joint_name for body in model.bodies if body.dependence is None and body.nv]
    chosen = leaders[seed % 2 :: 2]
    given = hybrid.prescribed_places(model, chosen)
    for method in ("articulated", "matrix"):
        for tree in (model, aligned(model)):
            found, forces = hybrid.hybrid_dynamics(
                tree, q, v, tau, a, prescribed=chosen, external_forces=f, method=method
            )
            close(al.inverse_dynamics(model, q, v, found, external_forces=f), forces, 1e-8, terms=(found,))
            assert all(found[k] == a[k] if k in given else forces[k] == tau[k] for k in range(model.nv))


@pytest.mark.parametrize("seed", SEEDS)
def test_floating_bases(seed):
    """RBDA-9.4-FBABA: floating bases that carry coupled joints: all routes give one acceleration."""
    model = coupled_tree(seed, root="free")
    q, v, tau, f = state(model, seed)
    reference = al.forward_dynamics(model, q, v, tau, external_forces=f, method="crba")
    close(fb.floating_base_forward_dynamics(model, q, v, tau, external_forces=f), reference, 1e-8)
    close(fb.floating_base_forward_dynamics_by_matrix(model, q, v, tau, external_forces=f), reference, 1e-8)
    push = [0.0] * 6
    a = al.forward_dynamics(model, q, v, push + tau[6:], external_forces=f)
    a_0, forces = fb.floating_base_inverse_dynamics(model, q, v, a[6:], external_forces=f)
    close(a_0 + forces, a[:6] + tau[6:], 1e-8, terms=(a,))


FOR_CONSTRAINTS = ("range_space", "direct", "null_space", "loop_closure")
EVERY_METHOD = [
    (name, method)
    for name in ("forward_dynamics", "inverse_dynamics", "mass_matrix", "inverse_mass_matrix")
    for method in FUNCTIONS[name].methods
    if method not in FOR_CONSTRAINTS
]


@pytest.mark.parametrize(("name", "method"), EVERY_METHOD)
def test_every_method_of_the_public_functions(name, method):
    """RBDA-9.6-GEARS: no method of the dynamics refuses couplings, and all give the same."""
    model = coupled_tree(5, 7, root="free")
    q, v, x, _ = state(model, 1)
    arrays = {"q": q, "v": v, "a": x, "tau": x}
    given = [arrays[argument] for argument in FUNCTIONS[name].arguments]
    tree = aligned(model)
    want = FUNCTIONS[name].methods[next(iter(FUNCTIONS[name].methods))](tree, *given)
    close(FUNCTIONS[name].methods[method](tree, *given), want, 1e-7)


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_operational_space_inertia(seed):
    """Phi = J M^-1 J^T of a handle, and its bias acceleration, on independent coordinates."""
    model = coupled_tree(seed)
    q, v, tau, _ = state(model, seed)
    tip = model.bodies[-1].name
    J, M = np.array(al.jacobian(model, q, tip, frame="body")), np.array(al.mass_matrix(model, q))
    close(al.handle_inverse_inertia(model, q, [tip]), J @ np.linalg.solve(M, J.T), 1e-8)
    b = J @ al.forward_dynamics(model, q, v, tau)
    b = b + al.jacobian_rate_times_velocity(model, q, v, tip, frame="body")
    close(al.handle_bias_acceleration(model, q, v, tau, [tip]), b, 1e-8)


def test_public_functions_and_their_derivatives():
    """Compiled: both methods, the step, and Jacobians of forward dynamics against differences."""
    model = coupled_tree(4)
    q, v = model.random_state(2)
    tau = np.linspace(-1.0, 1.0, model.nv)
    a = da.forward_dynamics(model, q, v, tau, method="aba")
    np.testing.assert_allclose(a, da.forward_dynamics(model, q, v, tau, method="crba"), rtol=1e-9, atol=1e-9)
    by_q, by_v, by_tau = da.forward_dynamics_derivatives(model, q, v, tau)
    h = 1e-6
    for k in range(model.nv):
        e = h * np.eye(model.nv)[k]
        ahead, behind = da.integrate(model, q, e), da.integrate(model, q, -e)
        dq = da.forward_dynamics(model, ahead, v, tau) - da.forward_dynamics(model, behind, v, tau)
        dv = da.forward_dynamics(model, q, v + e, tau) - da.forward_dynamics(model, q, v - e, tau)
        scale = 1.0 + np.abs(a).max()
        np.testing.assert_allclose(by_q[:, k], dq / (2 * h), atol=1e-5 * scale * (1 + np.abs(by_q).max()))
        np.testing.assert_allclose(by_v[:, k], dv / (2 * h), atol=1e-6 * scale * (1 + np.abs(by_v).max()))
    np.testing.assert_allclose(by_tau, da.inverse_mass_matrix(model, q), rtol=1e-7, atol=1e-9)
