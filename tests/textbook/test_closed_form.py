"""The closed form with its tensors: equal to the recursion, and what recursion saves."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.counting import count
from tests.algorithms.trees import (
    JOINTS,
    close,
    geared_chain,
    random_tree,
    scale_of,
    state,
    vec,
)

import dalembert as da
from dalembert.algorithms import aligned
from dalembert.algorithms.inverse_dynamics import coriolis_forces, gravity_forces, inverse_dynamics
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.errors import ModelError
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Fixed, Revolute, TimeDependent
from dalembert.spatial import RigidInertia
from dalembert.textbook.closed_form_equations import closed_form, inverse_dynamics_closed_form


@pytest.mark.parametrize("seed", range(5))
def test_closed_form_equals_recursion(seed):
    """RBDA-5.2-CLOSED: tau_i = sum H_ij a_j + sum C_ijk v_j v_k + g_i, with external forces and armature."""
    model = random_tree(seed, 6)
    q, v, a, f = state(model, seed)
    for tree in (model, aligned(model)):
        found = inverse_dynamics_closed_form(tree, q, v, a, external_forces=f)
        close(found, inverse_dynamics(model, q, v, a, external_forces=f), 1e-11)


@pytest.mark.parametrize("kind", JOINTS)
def test_each_tensor_is_its_part_of_the_equation_of_motion(kind):
    """RBDA-5.2-CLOSED: H of CRBA, C v v the velocity terms, g the weights, for every joint type."""
    model = random_tree(7, 4, (kind, "revolute"), root=kind)
    q, v, _, _ = state(model, 1)
    H, C, g = closed_form(model, q)
    close(H, mass_matrix(model, q), 1e-12)
    close(g, gravity_forces(model, q), 1e-12)
    tensor = np.array(C, dtype=float)
    quadratic = np.einsum("ijk,j,k->i", tensor, v, v)
    close(quadratic, coriolis_forces(model, q, v), 1e-11, terms=(np.abs(tensor).max() * scale_of(v) ** 2,))


def test_coupled_joints_have_tensors_of_their_own():
    """RBDA-5.2-CLOSED: G^T H G and so on, of the independent coordinates."""
    model = geared_chain(8)
    q, v, a, f = state(model, 2)
    found = inverse_dynamics_closed_form(model, q, v, a, external_forces=f)
    close(found, inverse_dynamics(model, q, v, a, external_forces=f), 1e-12)


def test_joints_that_depend_on_time_are_refused():
    """RBDA-5.2-CLOSED: the form has no terms of first degree in v."""
    builder = ModelBuilder()
    drive = TimeDependent(Fixed(), driver=Revolute((1, 2, 0)), motion=lambda t: [t * t])
    builder.add_body("driven", parent="world", joint=drive, inertia=RigidInertia(1.0, (0, 0, 0), (1, 1, 1)))
    with pytest.raises(ModelError, match='"driven" depends on time'):
        closed_form(builder.build(), [])


def operations(counted) -> int:
    return counted.multiplications + counted.additions


def test_closed_form_costs_the_fourth_power():
    """RBDA-5.2-CLOSED: doubling n of GU(n) multiplies the work by more than eight, of RNEA by two."""

    def closed(n: int) -> int:
        model = da.models.gu(n)
        return operations(count(lambda q, v, a: inverse_dynamics_closed_form(model, q, v, a), q=n, v=n, a=n))

    def recursive(n: int) -> int:
        model = da.models.gu(n)
        return operations(count(lambda q, v, a: inverse_dynamics(model, q, v, a), q=n, v=n, a=n))

    assert 2**3 < closed(12) / closed(6) < 2**4.2
    assert recursive(12) / recursive(6) < 2.5


class Tally:
    """Multiplications and additions of matrix products written out in full, as Uicker and Kahn had them."""

    def __init__(self) -> None:
        self.total = 0

    def product(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """4x4 transforms: rows of three numbers, the last row known."""
        self.total += 36 + 27
        return A @ B

    def trace(self, A: np.ndarray, J: np.ndarray, B: np.ndarray) -> float:
        """tr(A J B^T)."""
        self.total += (48 + 36) + (12 + 11)
        return float(np.einsum("ij,jk,ik->", A, J, B))


def uicker_kahn(model: da.Model, q, v, a, tally: Tally) -> np.ndarray:
    """tau_i = sum_b [sum_j tr(U_bj J_b U_bi^T) a_j + sum_jk tr(U_bjk J_b U_bi^T) v_j v_k - m g^T U_bi c].

    U_bi = dT_b/dq_i and U_bjk = d2T_b/dq_j dq_k as products of link matrices with their derivatives, J_b the
    body's second moments in homogeneous coordinates (Kahn & Roth 1971). Each is a product of its own.
    """
    n = model.nv
    turn = np.zeros((4, 4))
    turn[0, 1], turn[1, 0] = -1.0, 1.0  # dA/dq = A turn, about z
    links = []
    for body in model.bodies:
        links.append(np.array(body.jcalc(q).X.homogeneous(), dtype=float))

    def derivative(b: int, *by: int) -> np.ndarray:
        T = np.eye(4)
        for k in range(b + 1):
            T = tally.product(T, links[k])
            for _ in range(by.count(k)):
                T = tally.product(T, turn)
        return T

    gravity = np.array([*vec(model.gravity), 0.0])
    tau = np.zeros(n)
    for b, body in enumerate(model.bodies):
        c, m = np.array([*vec(body.inertia.com), 1.0]), float(body.inertia.mass)
        J = np.zeros((4, 4))
        J[:3, :3] = np.array(body.inertia.euler_tensor.to_list(), dtype=float)
        J[:3, 3] = J[3, :3] = m * c[:3]
        J[3, 3] = m
        path = range(b + 1)
        first = [derivative(b, j) for j in path]
        second = [[derivative(b, j, k) for k in path] for j in path]
        for i in path:
            tau[i] -= m * gravity @ first[i] @ c
            tally.total += 16 + 15
            for j in path:
                tau[i] += tally.trace(first[j], J, first[i]) * a[j]
                for k in path:
                    tau[i] += tally.trace(second[j][k], J, first[i]) * v[j] * v[k]
                    tally.total += 3
    return tau


def test_recursion_is_a_hundred_times_cheaper_than_uicker_and_kahn():
    """RBDA-5.5-NOTES: for a 6-DoF arm, the closed form as Uicker and Kahn had it against RNEA, by operations.

    The publication that made the comparison has 117,819 operations against 1,590 (Hollerbach 1980), here it
    is 105,203 against 808. Tensors that share their parts, as tracing finds them, are 16 times as dear.
    """
    model = da.models.gu(6)
    assert all(body.joint == Revolute((0, 0, 1)) for body in model.bodies)
    q, v, a, _ = state(model, 0)
    tally = Tally()
    close(uicker_kahn(model, q, v, a, tally), inverse_dynamics(model, q, v, a), 1e-11)
    recursive = operations(count(lambda q, v, a: inverse_dynamics(aligned(model), q, v, a), q=6, v=6, a=6))
    shared = operations(count(lambda q, v, a: inverse_dynamics_closed_form(model, q, v, a), q=6, v=6, a=6))
    assert 75 < tally.total / recursive < 150
    assert pytest.approx(tally.total, rel=0.25) == 117_819
    assert 10 * recursive < shared < tally.total
