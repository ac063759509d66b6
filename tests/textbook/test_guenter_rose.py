"""Guenter and Rose 2000: the recursions of Balafoutis and Patel on trees of hinges, and all their partials.

Every intermediate quantity is compared, with the spatial algorithms of Featherstone or with dual numbers
through the undifferentiated recursion. Where the report is misprinted, the printed form is shown to be wrong.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.algorithms.counting import count
from tests.algorithms.trees import close, inertia, mat, place, random_tree, six, state, vec
from tests.textbook.guenter_rose_exact import derivative

import dalembert as da
from dalembert import algorithms as al
from dalembert.model.model import Model
from dalembert.spatial import SymMat3, Vec3
from dalembert.textbook import cartesian_tensors as balafoutis_patel_module
from dalembert.textbook import guenter_rose_partials as guenter_rose
from dalembert.textbook.cartesian_tensors import balafoutis_patel

HINGES = ("revolute",)

OTHERS = ("revolute", "prismatic", "helical", "rack_pinion", "universal", "spherical", "free")

TREES = [(seed, joints) for seed in range(3) for joints in (HINGES, OTHERS)]

on_trees = pytest.mark.parametrize(("seed", "joints"), TREES)


def moving_tree(seed: int, joints: tuple[str, ...] = HINGES, n: int = 6) -> tuple[Model, Any]:
    model = random_tree(seed, n, joints)
    return model, state(model, seed)[:3]


def skew(v: Any) -> np.ndarray:
    x, y, z = np.array(v, dtype=float)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def full(matrix: SymMat3) -> np.ndarray:
    return np.array(matrix.to_list(), dtype=float)


def test_eulers_tensor_turns_euler_s_equation_into_a_product():
    """GR-EULERTENSOR: J = 1/2 tr(I) - I; Omega J - (Omega J)^T = dual(I omega' + omega x I omega)."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        points, masses = rng.normal(size=(7, 3)), rng.uniform(0.1, 1.0, 7)
        second = np.einsum("k,ki,kj->ij", masses, points, points)
        I = np.trace(second) * np.eye(3) - second
        J = balafoutis_patel_module.euler_tensor(SymMat3.of(I.tolist()))
        close(full(J), second, 1e-14)
        w, w_dot = rng.normal(size=3), rng.normal(size=3)
        omega, omega_dot = Vec3(*w.tolist()), Vec3(*w_dot.tolist())
        assert balafoutis_patel_module.dual(balafoutis_patel_module.dual(omega)).to_list() == omega.to_list()
        close(mat(balafoutis_patel_module.dual(omega)), skew(w), 0.0)
        Omega = balafoutis_patel_module.acceleration_tensor(omega, omega_dot)
        close(mat(Omega), skew(w_dot) + skew(w) @ skew(w), 1e-14)
        product = mat(Omega) @ second
        moment = I @ w_dot + np.cross(w, I @ w)
        close(product - product.T, skew(moment), 1e-13)
        close(vec(balafoutis_patel_module.moment_of(Omega, J)), moment, 1e-13)


@on_trees
def test_outward_recursion(seed, joints):
    """GR-FORWARD: omega, omega', Omega, s'', r'', F and M of every link, against spatial velocities,
    accelerations and momenta. Omega has the indices of its own link, not those of the link before.
    """
    model, (q, v, a) = moving_tree(seed, joints)
    found, spatial = balafoutis_patel(model, q, v, a), al.rnea_spatial(model, q, v, a)
    motions = al.body_motions(model, q, v, a)
    for body in model.bodies:
        moving, net = found.moving[body], found.net[body]
        w, w_dot = vec(moving.omega), vec(moving.omega_dot)
        close(w, vec(spatial.v[body].angular), 1e-12)
        close(w_dot, vec(spatial.a[body].angular), 1e-12)
        close(mat(moving.Omega), skew(w_dot) + skew(w) @ skew(w), 1e-12)
        to_body = motions[body].pose.R.transposed_times
        for point, acceleration in ((Vec3.zero(), moving.s_ddot), (body.inertia.com, net.r_ddot)):
            in_world = al.point_motion(motions[body], point).acceleration - model.gravity
            close(vec(acceleration), vec(to_body(in_world)), 1e-11)
        I = full(body.inertia.inertia_at_com)
        close(vec(net.F), body.inertia.mass * vec(net.r_ddot), 1e-13)
        close(vec(net.M), I @ w_dot + np.cross(w, I @ w), 1e-12)


@on_trees
def test_inward_recursion(seed, joints):
    """GR-BACKWARD: at leaves f = F and eta = r x F + M; elsewhere the children's f and eta are added, each
    turned by A, which the report leaves out of s x A f. tau = z . eta is that of RNEA.
    """
    model, (q, v, a) = moving_tree(seed, joints)
    found, spatial = balafoutis_patel(model, q, v, a), al.rnea_spatial(model, q, v, a)
    close(found.tau, al.inverse_dynamics(model, q, v, a), 1e-12)
    printed = 0
    for body in model.bodies:
        r, F, M = vec(body.inertia.com), vec(found.net[body].F), vec(found.net[body].M)
        f, eta, misprinted = F, np.cross(r, F) + M, np.cross(r, F) + M
        for child in model.bodies:
            if child.parent == body.index:
                X = child.link_transform(q)
                A, s = mat(X.R), vec(X.p)
                f_child, eta_child = vec(found.f[child]), vec(found.eta[child])
                f, eta = f + A @ f_child, eta + A @ eta_child + np.cross(s, A @ f_child)
                misprinted = misprinted + A @ eta_child + np.cross(s, f_child)
        close(vec(found.f[body]), f, 1e-12)
        close(vec(found.eta[body]), eta, 1e-12)
        close([*vec(found.eta[body]), *vec(found.f[body])], six(spatial.f[body]), 1e-11)
        printed += not np.allclose(misprinted, eta, rtol=1e-3)
    assert printed > 0


def test_a_raised_link_is_held_by_a_positive_torque():
    """GR-BASE: y up, g = (0, -9.80665, 0), a rod along x on a hinge about z: tau = m g l cos q. With s'' = +g
    as printed it would be pulled down. Of the root, omega = z q', omega' = z q'', s'' = -A^T g.
    """
    m, l, g = 2.0, 0.7, 9.80665
    builder = da.ModelBuilder(gravity=(0.0, -g, 0.0))
    builder.add_body(
        "rod", joint=da.Revolute((0, 0, 1)), inertia=da.RigidInertia(m, (l, 0, 0), (0.1, 0.2, 0.2))
    )
    model = builder.build()
    for q in (0.0, 0.4, 2.5):
        tau = balafoutis_patel(model, [q], [0.0], [0.0]).tau
        close(tau, [m * g * l * np.cos(q)], 1e-14)
        close(tau, al.inverse_dynamics(model, [q], [0.0], [0.0]), 1e-14)
    found = balafoutis_patel(model, [0.4], [1.5], [-2.0])
    moving = found.moving[0]
    close(vec(moving.omega), [0.0, 0.0, 1.5], 0.0)
    close(vec(moving.omega_dot), [0.0, 0.0, -2.0], 0.0)
    close(vec(moving.s_ddot), [g * np.sin(0.4), g * np.cos(0.4), 0.0], 1e-14)
    partials = guenter_rose.guenter_rose(model, [0.4], [1.5], [-2.0])
    close(partials.by_q, [[-m * g * l * np.sin(0.4)]], 1e-14)
    root = partials.moving[0][guenter_rose.Along("q", 0, 0)]
    close(vec(root.s_ddot), [g * np.cos(0.4), -g * np.sin(0.4), 0.0], 1e-14)
    assert not vec(root.omega).any()
    assert not vec(root.omega_dot).any()


def check_partials(seed: int, joints: tuple[str, ...], quantities: dict[str, Callable[..., Any]]) -> None:
    """Each quantity of each body along every variable of every joint, against dual numbers.

    `quantities`: how to read one from the recursion's result at a body and from the derivatives.
    """
    model, at = moving_tree(seed, joints, 5)
    found = guenter_rose.guenter_rose(model, *at)
    for by in "qva":
        for joint in model.bodies:
            for k in range(joint.nv):
                x = guenter_rose.Along(by, joint.index, k)
                j = joint.v_slice.start + k
                for name, read in quantities.items():

                    def everywhere(q, v, a, read=read):
                        result = balafoutis_patel(model, q, v, a)
                        return [read(result, body) for body in model.bodies]

                    exact = derivative(everywhere, model, at, by, j)
                    for body, expected in zip(model.bodies, exact, strict=True):
                        place = getattr(found, name.split(".")[0])[body]
                        numbers = np.array(expected.leaves(), dtype=float)
                        if x in place:
                            value = getattr(place[x], name.split(".")[1])
                            close(np.array(value.leaves(), dtype=float), numbers, 1e-11)
                        else:
                            assert not numbers.any()


@on_trees
def test_partials_of_angular_velocity(seed, joints):
    """GR-DW: A^T d omega beyond the joint; at the joint dA^T omega by q, z by q', 0 by q''."""
    check_partials(seed, joints, {"moving.omega": lambda r, b: r.moving[b].omega})


@on_trees
def test_partials_of_angular_acceleration(seed, joints):
    """GR-DWDOT: with omega, not omega', in the dual at the joint by q, and a tilde by q'."""
    check_partials(seed, joints, {"moving.omega_dot": lambda r, b: r.moving[b].omega_dot})


@on_trees
def test_partials_of_the_acceleration_tensor(seed, joints):
    """GR-DOMEGA: dual(d omega') + d omega~ omega~ + (d omega~ omega~)^T; by q'' the first term only."""
    check_partials(seed, joints, {"moving.Omega": lambda r, b: r.moving[b].Omega})
    model, at = moving_tree(seed, joints, 5)
    for partials in guenter_rose.guenter_rose(model, *at).moving:
        for x, d in partials.items():
            if x.by == "a":
                close(mat(d.Omega), skew(vec(d.omega_dot)), 0.0)


@on_trees
def test_partials_of_linear_accelerations(seed, joints):
    """GR-DS: of origins and centres of mass; at a hinge 0 by q' and q''."""
    check_partials(
        seed,
        joints,
        {
            "moving.s_ddot": lambda r, b: r.moving[b].s_ddot,
            "net.r_ddot": lambda r, b: r.net[b].r_ddot,
        },
    )
    if joints == HINGES:
        model, at = moving_tree(seed)
        partials = guenter_rose.guenter_rose(model, *at).moving
        for body in model.bodies:
            for by in "va":
                assert partials[body][guenter_rose.Along(by, body.index, 0)].s_ddot.to_list() == [
                    0.0,
                    0.0,
                    0.0,
                ]


@on_trees
def test_partials_of_net_forces_and_moments(seed, joints):
    """GR-DFM: dF = m d r'', dual(dM) = dOmega J - (dOmega J)^T."""
    check_partials(seed, joints, {"net.F": lambda r, b: r.net[b].F, "net.M": lambda r, b: r.net[b].M})


@on_trees
def test_partials_of_transmitted_forces(seed, joints):
    """GR-DBACK: df and d eta, with dA at the joint itself and by q only; leaves have no children's terms."""
    check_partials(
        seed, joints, {"force.linear": lambda r, b: r.f[b], "force.angular": lambda r, b: r.eta[b]}
    )


def test_misprints_of_the_partials_give_other_numbers():
    """GR-DWDOT: of a hinge on a moving hinge, (11) as printed and as corrected, against dual numbers."""
    model, at = chain_of_two(), ([0.3, -0.4], [1.1, 0.7], [0.5, -0.9])
    found, result = guenter_rose.guenter_rose(model, *at), balafoutis_patel(model, *at)
    child = model.bodies[1]
    A_T = mat(child.link_transform(at[0]).R).T
    z = vec(child.joint.axis)
    dA_T = -skew(z) @ A_T
    omega, omega_dot = vec(result.moving[0].omega), vec(result.moving[0].omega_dot)
    corrected = dA_T @ omega_dot + np.cross(dA_T @ omega, z * at[1][1])
    printed = dA_T @ omega_dot + np.cross(dA_T @ omega_dot, z * at[1][1])
    partial = vec(found.moving[1][guenter_rose.Along("q", 1, 0)].omega_dot)
    close(partial, corrected, 1e-13)
    assert not np.allclose(partial, printed, rtol=1e-2)
    close(vec(found.moving[1][guenter_rose.Along("v", 1, 0)].omega_dot), np.cross(A_T @ omega, z), 1e-13)


def chain_of_two() -> Model:
    rng = np.random.default_rng(4)
    builder = da.ModelBuilder()
    for name, parent in (("upper", "world"), ("lower", "upper")):
        axis = rng.normal(size=3).tolist()
        builder.add_body(name, parent, da.Revolute(axis), placement=place(rng), inertia=inertia(rng))
    return builder.build()


@on_trees
def test_derivatives_of_joint_forces(seed, joints):
    """GR-DTAU: dtau/dq, dtau/dq' and dtau/dq'' against those of the traced graph of RNEA; the last is H."""
    model, at = moving_tree(seed, joints)
    found = guenter_rose.inverse_dynamics_partials(model, *at)
    graph = da.compile(da.inverse_dynamics, model).jacobian("q", "v", "a")
    for partial, expected in zip(found, graph(*at), strict=True):
        close(partial, expected, 1e-11)
    close(found[2], al.mass_matrix(model, at[0]), 1e-12)


def operations(model: Model, function: Callable[..., Any]) -> int:
    tree = al.aligned(model)
    counted = count(lambda q, v, a: function(tree, q, v, a), q=model.nq, v=model.nv, a=model.nv)
    return counted.multiplications + counted.additions


def forces(tree: Any, q: Any, v: Any, a: Any) -> Any:
    return balafoutis_patel(tree, q, v, a).tau


def derivatives(tree: Any, q: Any, v: Any, a: Any) -> Any:
    return [
        x for matrix in guenter_rose.inverse_dynamics_partials(tree, q, v, a) for row in matrix for x in row
    ]


def test_cost_of_the_recursion_is_linear_and_near_that_of_newton_and_euler():
    """GR-BACKWARD: the same work for every further link, and within 5 % of RNEA's; fewer on a humanoid."""
    chains = [operations(da.models.gu(n), forces) for n in (4, 6, 8)]
    assert chains[2] - chains[1] == chains[1] - chains[0]
    for model in (da.models.arm6(), da.models.gu(6), da.models.humanoid()):
        assert operations(model, forces) <= 1.05 * operations(model, al.inverse_dynamics)


def test_cost_of_the_partials_is_quadratic():
    """GR-DTAU: O(n^2) along a chain: third differences vanish; twice the branches cost twice as much."""
    chains = np.array([operations(da.models.gu(n), derivatives) for n in range(3, 8)])
    second = np.diff(chains, 2)
    assert second.min() > 0
    assert second.max() - second.min() <= 0.02 * second.max()

    def branches(n: int) -> Model:
        builder = da.ModelBuilder()
        for k in range(n):
            for i in range(3):
                rng = np.random.default_rng(i)
                parent = f"b{k}_{i - 1}" if i else "world"
                joint = da.Revolute(rng.normal(size=3).tolist())
                builder.add_body(f"b{k}_{i}", parent, joint, placement=place(rng), inertia=inertia(rng))
        return builder.build()

    one, two, four = (operations(branches(n), derivatives) for n in (1, 2, 4))
    assert four - two <= 2.05 * (two - one)
    assert four <= 4.2 * one


def test_public_methods():
    """GR-BACKWARD, GR-DTAU: da.inverse_dynamics(method="balafoutis_patel") and its derivatives by
    method="guenter_rose", batched, with external forces, against the other methods.
    """
    model = random_tree(5, 3, ("revolute", "prismatic", "universal"))
    rng = np.random.default_rng(0)
    q = np.array([model.random_state(rng)[0] for _ in range(4)])
    v, a = rng.normal(size=(2, 4, model.nv))
    f = rng.normal(size=(4, 3, 6))
    expected = da.inverse_dynamics(model, q, v, a, f)
    close(da.inverse_dynamics(model, q, v, a, f, method="balafoutis_patel"), expected, 1e-11)
    for frame in ("body", "world", "center"):
        expected, found = (
            da.inverse_dynamics_derivatives(model, q, v, a, f, external_frame=frame, method=method)
            for method in (None, "guenter_rose")
        )
        for partial, reference in zip(found, expected, strict=True):
            close(partial, reference, 1e-11)
    empty = da.ModelBuilder()
    empty.add_body("stone", joint=da.Fixed(), inertia=da.RigidInertia(1.0, (0, 0, 0), (1, 1, 1)))
    nothing = np.zeros(0)
    for partial in da.inverse_dynamics_derivatives(
        empty.build(), nothing, nothing, nothing, method="guenter_rose"
    ):
        assert partial.shape == (0, 0)
