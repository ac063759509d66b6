"""Every route to one quantity gives the same numbers: on random trees, floating bases and closed loops.

The algorithms run uncompiled on floats; that machine code gives the same is the conformance list's matter.
An oracle in dense NumPy stands beside the routes: all bodies and all joints as one system of equations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.moving_samples import EXAMPLES, Sample, acceleration_scale, agree, array, moving_trees

import dalembert as da
from dalembert import algorithms as al
from dalembert.algorithms import coriolis, floating_base, geometry, hybrid, loops
from dalembert.textbook import cartesian_tensors as balafoutis_patel
from dalembert.textbook import closed_form_equations as closed_form
from dalembert.textbook import constrained_equations, handles, lagrange
from dalembert.textbook import local_recursion as liu_jain
from dalembert.textbook import recursive_assembly as divide_and_conquer
from dalembert.textbook import vector_recursion as luh_walker_paul


def force_scale(s: Sample) -> float:
    """The size of the terms that inverse dynamics adds up, so that their rounding errors are known."""
    q, v, model = s.q, s.v, s.model
    M = np.abs(array(al.mass_matrix(model, q)))
    speeds = np.abs(s.v)
    velocity_terms = M.max(initial=0.0) * (1.0 + speeds.max(initial=0.0)) ** 2 * model.nv
    parts = [M @ np.abs(s.a), al.coriolis_forces(model, q, v), al.gravity_forces(model, q), s.f]
    return 1.0 + velocity_terms + sum(float(np.abs(array(x)).max(initial=0.0)) for x in parts)


def christoffel_forces(s: Sample) -> list[float]:
    """M a + Gamma_ij,k v_i v_j + g - J^T f, from the symbols of the first kind."""
    symbols = array(coriolis.christoffel_symbols_by_derivatives(s.model, s.q))
    c = np.einsum("ijk,i,j->k", symbols, s.v, s.v)
    external = np.subtract(
        al.bias_forces(s.model, s.q, s.v, external_forces=s.f), al.bias_forces(s.model, s.q, s.v)
    )
    total = array(al.mass_matrix(s.model, s.q)) @ s.a + c + al.gravity_forces(s.model, s.q) + external
    return total.tolist()  # type: ignore[no-any-return]


@settings(max_examples=EXAMPLES)
@given(moving_trees(largest=5))
def test_inverse_dynamics_by_every_route(s: Sample) -> None:
    """RNEA in body and in base coordinates, Luh-Walker-Paul, Liu-Jain, Balafoutis-Patel, the lecture's,
    closed form, Lagrange and Christoffel: RBDA-5.3-RNEA, RBDA-5.3-BASIC, ANIM-ID, TOD-RNE, GR-FORWARD.
    """
    m, at = s.model, (s.q, s.v, s.a)
    f = {"external_forces": s.f}
    poses = al.forward_kinematics(m, s.q)
    in_world = [
        poses[b].inverse_apply(da.spatial.Force.of(force)).to_list()
        for b, force in zip(m.bodies, s.f, strict=True)
    ]
    routes = {
        "RNEA in body coordinates": al.inverse_dynamics(m, *at, **f),
        "RNEA on aligned frames": al.inverse_dynamics(al.aligned(m), *at, **f),
        "Table 5.1": al.rnea_spatial(m, *at, **f).tau,
        "RNEA in base coordinates": closed_form.inverse_dynamics_common_frame(m, *at, **f),
        "the lecture's three steps": al.rnea_common_frame(m, *at, external_forces=in_world),
        "Luh, Walker and Paul": luh_walker_paul.luh_walker_paul(m, *at, **f).tau,
        "Liu and Jain": liu_jain.liu_jain(m, *at, **f).tau,
        "Balafoutis and Patel": balafoutis_patel.balafoutis_patel(m, *at, **f).tau,
        "closed form": closed_form.inverse_dynamics_closed_form(m, *at, **f),
        "Lagrange, by Jacobians": lagrange.inverse_dynamics_by_jacobians(m, *at, **f),
        "Christoffel": christoffel_forces(s),
    }
    agree(routes, 1e-11, force_scale(s))


@settings(max_examples=EXAMPLES)
@given(moving_trees())
def test_mass_matrix_by_every_route(s: Sample) -> None:
    """CRBA, the sum of J^T I J, columns of ID_delta and Eq. 59: RBDA-6.2-CRBA, RBDA-6.1-IDDELTA, TOD-CRB."""
    m, q = s.model, s.q
    jacobians = al.all_jacobians(m, q, frame="body")
    summed = np.diag(array([x for body in m.bodies for x in body.armature]))
    for body in m.bodies:
        J = array(jacobians[body]).reshape(6, m.nv)
        summed = summed + J.T @ array(body.inertia.matrix()) @ J
    routes = {
        "CRBA": al.mass_matrix(m, q),
        "CRBA on aligned frames": al.mass_matrix(al.aligned(m), q),
        "CRBA in a common frame": al.crba_common_frame(m, q),
        "sum of J^T I J": summed,
        "N + 1 inverse dynamics": al.mass_matrix_by_columns(m, q),
        "ID_delta": array([al.differential_inverse_dynamics(m, q, unit) for unit in np.eye(m.nv).tolist()]).T,
        "Liu and Jain, Eq. 59": lagrange.mass_matrix_by_jacobians(m, q),
    }
    gravity = float(np.abs(array(al.gravity_forces(m, q))).max(initial=0.0))
    agree(routes, 1e-11, 1.0 + np.abs(summed).max(initial=0.0) + gravity)


class Maximal:
    """Featherstone 2008 section 3.7 in dense NumPy: I a + p = T_a tau + T lambda of all bodies at once."""

    def __init__(self, s: Sample) -> None:
        m = s.model
        size = 6 * len(m.bodies)
        motions = al.body_motions(m, s.q, s.v)
        self.I, self.force = np.zeros((size, size)), np.zeros(size)
        rows, right = [], []
        self.joints: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for body in m.bodies:
            own = slice(6 * body.index, 6 * body.index + 6)
            X, _, v_J, c_J = body.jcalc(s.q, s.v)
            E = array(X.motion_matrix())
            velocity = motions[body].velocity
            weight = body.inertia * da.spatial.Motion.of(
                [0.0, 0.0, 0.0, *motions[body].pose.R.transposed_times(m.gravity).to_list()]
            )
            p = velocity.cross(body.inertia * velocity)
            self.I[own, own] = array(body.inertia.matrix())
            self.force[own] += array(s.f[body.index]) + array((weight - p).to_list())
            joint_q = body.own_q(s.q)
            T = array([x.to_list() for x in body.joint.constraint_subspace(joint_q)]).reshape(-1, 6)
            T_a = array([x.to_list() for x in body.joint.active_subspace(joint_q)]).reshape(-1, 6)
            push = T_a.T @ array(body.own_v(s.tau))
            self.force[own] += push
            relative = np.zeros((6, size))
            relative[:, own] = np.eye(6)
            if body.parent >= 0:
                parent = slice(6 * body.parent, 6 * body.parent + 6)
                relative[:, parent] = -E
                self.force[parent] -= E.T @ push
            bias = array((c_J + velocity.cross(v_J)).to_list())
            rows.append(T @ relative)
            right.append(T @ bias)
            self.joints.append((T_a, relative, bias))
        self.J, self.b = np.vstack(rows), np.concatenate(right)

    def joint_accelerations(self, a: np.ndarray) -> np.ndarray:
        """dv/dt of the joints, from the accelerations of all bodies."""
        return np.concatenate([T_a @ (relative @ a - bias) for T_a, relative, bias in self.joints])

    def solution(self) -> np.ndarray:
        n = len(self.b)
        A = np.block([[self.I, -self.J.T], [self.J, np.zeros((n, n))]])
        return self.joint_accelerations(np.linalg.solve(A, [*self.force, *self.b])[: len(self.I)])

    def by_gauss(self) -> np.ndarray:
        """The accelerations nearest to those of free bodies, by the library's function."""
        free = np.linalg.solve(self.I, self.force)
        nearest = geometry.gauss_acceleration(
            self.I.tolist(), free.tolist(), self.J.tolist(), self.b.tolist()
        )
        return self.joint_accelerations(array(nearest))


@settings(max_examples=EXAMPLES)
@given(moving_trees())
def test_forward_dynamics_by_every_route(s: Sample) -> None:
    """CRBA with LTDL factors, ABA and its variants, projection, divide and conquer, maximal coordinates and
    Hamiltonian form, with rotors too: RBDA-7.3-ABA, RBDA-6.5-LTDL, RBDA-3.2-ORDERS, RBDA-6.6-HISTORY.
    """
    m, at, f = s.model, (s.q, s.v, s.tau), {"external_forces": s.f}
    M = array(al.mass_matrix(m, s.q))
    bias = array(al.bias_forces(m, s.q, s.v, **f))
    routes: dict[str, Any] = {"dense M": np.linalg.solve(M, s.tau - bias)}
    for name, method in TREE_ROUTES.items():
        routes[name] = method(m, *at, **f)
    routes["ABA on aligned frames"] = al.forward_dynamics(al.aligned(m), *at, **f)
    agree(routes, 1e-9, acceleration_scale(M, array(routes["dense M"])))


TREE_ROUTES: dict[str, Callable[..., Any]] = {
    "CRBA and LTDL": al.forward_dynamics_by_matrix,
    "ABA": al.forward_dynamics,
    "ABA, Table 7.1": al.forward_dynamics_spatial,
    "ABA, variant 1": divide_and_conquer.forward_dynamics_by_inverse_inertias,
    "ABA, variant 2": handles.forward_dynamics_in_constraint_space,
    "divide and conquer": divide_and_conquer.divide_and_conquer,
    "projection": constrained_equations.forward_dynamics_by_projection,
    "maximal coordinates": loops.accelerations_by_maximal_coordinates,
    "maximal coordinates, sparse": loops.accelerations_by_sparse_elimination,
    "Hamilton": geometry.forward_dynamics_hamiltonian,
}


@settings(max_examples=EXAMPLES)
@given(moving_trees(largest=5, armature=False))
def test_forward_dynamics_of_all_bodies_at_once(s: Sample) -> None:
    """Maximal coordinates, solved densely here, and Gauss's principle, against ABA."""
    whole = Maximal(s)
    a = array(al.forward_dynamics(s.model, s.q, s.v, s.tau, external_forces=s.f))
    routes = {"ABA": a, "all bodies, densely": whole.solution(), "Gauss": whole.by_gauss()}
    agree(routes, 1e-9, acceleration_scale(array(al.mass_matrix(s.model, s.q)), a))


@settings(max_examples=EXAMPLES)
@given(moving_trees(root="free"))
def test_floating_bases_by_every_route(s: Sample) -> None:
    """A joint of six freedoms against Tables 9.4 and 9.5 forward and 9.6 inverse."""
    m, at, f = s.model, (s.q, s.v, s.tau), {"external_forces": s.f}
    a = array(al.forward_dynamics(m, *at, **f))
    routes = {
        "a joint of six freedoms": a,
        "Table 9.4": floating_base.floating_base_forward_dynamics(m, *at, **f),
        "Table 9.5": floating_base.floating_base_forward_dynamics_by_matrix(m, *at, **f),
    }
    scale = acceleration_scale(array(al.mass_matrix(m, s.q)), a)
    agree(routes, 1e-9, scale)
    # Inverse dynamics: no force acts on the base but the external one.
    free = [0.0] * 6 + s.tau[6:]
    fall = array(al.forward_dynamics(m, s.q, s.v, free, **f))
    base, tau = floating_base.floating_base_inverse_dynamics(m, s.q, s.v, fall[6:].tolist(), **f)
    agree({"forward": fall[:6], "Table 9.6": base}, 1e-9, scale * (1.0 + np.abs(fall).max()))
    agree({"given": free[6:], "Table 9.6": tau}, 1e-9, scale * force_scale(s))


@settings(max_examples=EXAMPLES)
@given(moving_trees(), st.integers(0, 2**12))
def test_hybrid_dynamics_by_every_route(s: Sample, chosen: int) -> None:
    """Matrix and articulated-body forms, with any joints prescribed."""
    m, f = s.model, {"external_forces": s.f}
    names = [joint.name for k, joint in enumerate(m.joints) if chosen >> k & 1]
    known = {k for name in names for k in range(m.nv)[m.joint(name).v_slice]}
    full = array(al.inverse_dynamics(m, s.q, s.v, s.a, **f))
    tau = [x if k not in known else 7.0 for k, x in enumerate(full)]
    a = [x if k in known else -7.0 for k, x in enumerate(s.a)]
    scale = acceleration_scale(array(al.mass_matrix(m, s.q)), array(s.a))
    by_matrix, articulated = (
        route(m, s.q, s.v, tau, a, prescribed=names, **f)
        for route in (hybrid.hybrid_dynamics_by_matrix, hybrid.hybrid_dynamics_articulated)
    )
    agree({"given": s.a, "matrix": by_matrix[0], "articulated": articulated[0]}, 1e-9, scale)
    agree(
        {"given": full, "matrix": by_matrix[1], "articulated": articulated[1]}, 1e-9, scale * force_scale(s)
    )
