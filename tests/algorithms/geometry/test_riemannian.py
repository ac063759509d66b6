"""The metric M(q): inner products, the mechanical connection, its geodesics and parallel transport."""

import numpy as np
import pytest
from tests.algorithms.trees import close, random_tree, state

import dalembert as da
from dalembert import scalar
from dalembert.algorithms import forward_dynamics, gravity_forces, mass_matrix
from dalembert.algorithms.coriolis import structure_constants
from dalembert.algorithms.geometry import (
    connection_term,
    covariant_derivative,
    geodesic_acceleration,
    inner_product,
)
from dalembert.errors import ModelError, ShapeError, UnknownNameError
from dalembert.model.configuration import position_rate
from dalembert.model.joints.dual import directional_derivative


def fields(model):
    """Two vector fields that vary with q."""
    n = model.nv

    def u(tree, q):
        return [scalar.sin(q[k % len(q)]) + 0.3 * k * q[0] * q[-1] for k in range(n)]

    def w(tree, q):
        return [q[(k + 1) % len(q)] * q[0] - 0.5 * k + scalar.cos(q[-1]) for k in range(n)]

    return u, w


def along(model, function, q, v):
    """The derivative of a function of q along v."""
    return directional_derivative(function, q, position_rate(model, q, v))[1]


def free_of_gravity(model):
    return model.with_values({"gravity": (0.0, 0.0, 0.0)})


@pytest.mark.parametrize("seed", range(3))
def test_inner_products_of_velocities_and_of_momenta(seed):
    """TOD-METRIC: <u, w> = u^T M w; with the lowered vectors u* = M u the pairing by M^-1 is the same, and
    so is the plain product u^T w*.
    """
    model = random_tree(seed, 5)
    q, u, w, _ = state(model, seed)
    M = np.array(mass_matrix(model, q))
    u_low, w_low = M @ u, M @ w
    expected = u @ M @ w
    assert inner_product(model, q, u, w) == pytest.approx(expected, rel=1e-10)
    found = inner_product(model, q, u_low.tolist(), w_low.tolist(), space="cotangent")
    assert found == pytest.approx(expected, rel=1e-8)
    assert np.dot(u, da.geometry.momentum_coordinates(model, q, w)) == pytest.approx(expected, rel=1e-10)
    assert np.linalg.eigvalsh(M).min() > 0.0
    with pytest.raises(UnknownNameError, match="cotangent"):
        inner_product(model, q, u, w, space="dual")


@pytest.mark.parametrize("seed", range(4))
def test_connection_preserves_the_metric(seed):
    """TOD-COVARIANT: v<u, w> = <nabla_v u, w> + <u, nabla_v w>, for joints of every kind."""
    model = random_tree(seed, 4)
    q, v, _, _ = state(model, seed)
    u, w = fields(model)

    def product(x):
        return inner_product(model, x, u(model, x), w(model, x))

    of_u, of_w = (covariant_derivative(model, f, q, v) for f in (u, w))
    right = inner_product(model, q, of_u, w(model, q)) + inner_product(model, q, u(model, q), of_w)
    assert along(model, product, q, v) == pytest.approx(right, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_connection_has_no_torsion(seed):
    """TOD-COVARIANT: nabla_u w - nabla_w u = [u, w]; with both, the connection is the Levi-Civita one.
    Brackets of turning frames have gamma_ij^l beside the derivatives of the components.
    """
    model = random_tree(seed, 4, armature=False)
    q, _, _, _ = state(model, seed)
    u, w = fields(model)
    at_u, at_w = u(model, q), w(model, q)
    left = np.array(covariant_derivative(model, w, q, at_u)) - covariant_derivative(model, u, q, at_w)
    bracket = np.array(along(model, lambda x: w(model, x), q, at_u), dtype=float)
    bracket -= np.array(along(model, lambda x: u(model, x), q, at_w), dtype=float)
    gamma = np.array(structure_constants(model, q), dtype=float)
    close(left, bracket + np.einsum("ijl,i,j->l", gamma, at_u, at_w), 1e-8)


def test_covariant_derivative_compiled_on_a_batch():
    """TOD-COVARIANT: nabla_v u = v_i du_k/dq_i + Gamma_ij^k v_i u_j, against Christoffel symbols."""
    model = da.models.two_link_arm()
    u, _ = fields(model)
    q, v = np.random.default_rng(0).normal(size=(2, 7, 2))
    found = da.geometry.covariant_derivative(model, u)(q, v)
    for row, q_row, v_row in zip(found, q, v):
        rate = along(model, lambda x: u(model, x), q_row.tolist(), v_row.tolist())
        Gamma = da.geometry.christoffel_symbols(model, q_row, kind="second")
        close(row, rate + np.einsum("ijk,i,j->k", Gamma, v_row, u(model, q_row)), 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_unforced_motion_is_a_geodesic(seed):
    """TOD-GEODESIC: forward dynamics with tau = g = 0 is -Gamma_ij^k v_i v_j, and with them M nabla_v v =
    tau - g.
    """
    model = random_tree(seed, 5)
    q, v, tau, _ = state(model, seed)
    a = geodesic_acceleration(model, q, v)
    close(forward_dynamics(free_of_gravity(model), q, v, [0.0] * model.nv), a, 1e-8)
    close(a, -np.array(connection_term(model, q, v, v)), 1e-9)
    forced = np.array(forward_dynamics(model, q, v, tau)) + connection_term(model, q, v, v)
    close(np.array(mass_matrix(model, q)) @ forced, np.array(tau) - gravity_forces(model, q), 1e-8)


def test_path_of_a_geodesic_does_not_depend_on_its_speed():
    """TOD-GEODESIC: a start three times as fast runs through the same configurations in a third of the time,
    and K = v^T M v / 2 stays constant; a free root and a ball joint, on a batch.
    """
    builder = da.ModelBuilder()
    solid = da.RigidInertia(1.5, (0.1, 0.2, -0.1), (0.2, 0.3, 0.4))
    builder.add_body("root", "world", da.Free(), inertia=solid)
    builder.add_body("hinge", "root", da.Revolute((1, 2, 3)), inertia=solid)
    builder.add_body("ball", "hinge", da.Spherical(), inertia=solid)
    model = builder.build()
    starts = [model.random_state(seed) for seed in range(2)]
    q, v = np.array([q for q, _ in starts]), np.array([v for _, v in starts])
    slow_q, slow_v = da.geometry.geodesic(model, q, v, 0.006, 60)
    fast_q, fast_v = da.geometry.geodesic(model, q, 3.0 * v, 0.002, 60)
    close(fast_q, slow_q, 1e-10)
    close(fast_v, 3.0 * slow_v, 1e-10)
    K = da.dynamics.kinetic_energy(model, slow_q, slow_v)
    close(K, np.broadcast_to(K[0], K.shape), 1e-7)
    simulated_q, simulated_v = q, v
    weightless = free_of_gravity(model)
    for _ in range(60):
        simulated_q, simulated_v = da.step(
            weightless, simulated_q, simulated_v, np.zeros_like(v), 0.006, integrator="rk4"
        )
    close(slow_q[-1], simulated_q, 1e-10)


def sphere():
    """A point mass on a massless arm: longitude and latitude on the unit sphere, M = diag(cos^2 q1, 1)."""
    builder = da.ModelBuilder(gravity=(0, 0, 0))
    nothing = da.RigidInertia(0.0, (0, 0, 0), (0, 0, 0))
    point = da.RigidInertia(1.0, (1.0, 0, 0), (0, 0, 0))
    builder.add_body("turntable", "world", da.Revolute((0, 0, 1)), inertia=nothing)
    builder.add_body("arm", "turntable", da.Revolute((0, -1, 0)), inertia=point)
    return builder.build()


def test_geodesics_of_the_sphere_are_great_circles():
    """TOD-GEODESIC: on the unit sphere the point stays in the plane of its start and its velocity."""
    model = sphere()
    q, v = da.geometry.geodesic(model, [0.2, 0.5], [0.8, 0.6], 0.02, 200)
    arm = da.forward_kinematics(model, q)["arm"].rotation[:, :, 0]
    normal = np.cross(arm[0], arm[1])
    assert np.abs(arm @ normal).max() < 1e-7 * np.linalg.norm(normal)
    assert np.ptp(da.geometry.inner_product(model, q, v, v)) < 1e-7


def test_parallel_transport_around_a_circle_of_latitude():
    """TOD-COVARIANT: around the circle of latitude b a vector comes back turned by 2 pi sin(b); lengths and
    angles stay on the way.
    """
    model = sphere()
    latitude, steps = 0.5, 400
    t = np.linspace(0.0, 2.0 * np.pi, steps + 1)
    q = np.stack([t, np.full_like(t, latitude)], axis=-1)
    v = np.broadcast_to([1.0, 0.0], q.shape)
    u = np.array([[0.3, 0.9], [1.0, -0.2]])
    carried = da.geometry.parallel_transport(model, q[:, None], np.tile(v[:, None], (1, 2, 1)), u, t[1])
    scale = np.array([np.cos(latitude), 1.0])  # to an orthonormal frame, east and north
    start, end = u * scale, carried[-1] * scale
    angle = 2.0 * np.pi * np.sin(latitude)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    close(end, start @ turn.T, 1e-8)
    gram = np.einsum("tak,tbk->tab", carried * scale, carried * scale)
    close(gram, np.broadcast_to(gram[0], gram.shape), 1e-8)
    with pytest.raises(ShapeError, match="odd"):
        da.geometry.parallel_transport(model, q[:-1], v[:-1], u[0], t[1])


def test_geodesics_of_constrained_models_are_refused():
    model = da.models.four_bar()
    q, v = model.random_state(0)
    with pytest.raises(ModelError, match="trees"):
        da.geometry.geodesic(model, q, v, 0.01, 1)
