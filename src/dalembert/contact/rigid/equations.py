"""The equations of contacts in a system of bodies: zeta-dot = M lambda + d."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.open_tree import is_constrained
from dalembert.api import forward_dynamics, forward_kinematics, jacobian, jacobian_rate, mass_matrix
from dalembert.call.arguments import real_array
from dalembert.contact.rigid.bodies import contact_normal
from dalembert.contact.rigid.gaps import GapFunction
from dalembert.contact.rigid.starts import checked_state
from dalembert.errors import ArgumentError, DtypeError, own_errors
from dalembert.model.model import Model
from dalembert.model.system import WORLD_NAME

__all__ = ["ContactEquations", "Contacts", "PointContact", "contact_equations", "inertia_response"]

Array: TypeAlias = npt.NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class PointContact:
    """A point at which `second` touches `first` now: `point` and unit `normal` from first to second, in the
    world.

    `point_velocity` and `normal_rate` say how they move, which the separation acceleration needs: by
    default those of a vertex of `second` on a flat face of `first`, v_second at the point and omega_first x
    n. The point of contact of a sphere that rolls on a plane moves like its centre.

    Source: Featherstone 2008 section 11.3.

    >>> model = da.models.two_link_arm()
    >>> tip = da.forward_kinematics(model, [0.3, -0.6])["tip"].translation
    >>> contact = da.contact.PointContact("lower", tip, (0.0, 0.0, 1.0))
    >>> equations = da.contact.contact_equations(model, [0.3, -0.6], [0.0, 0.0], [0.0, 0.0], [contact])
    >>> print(equations.T.round(4).ravel(), equations.d.round(3))
    [1.9107 0.9553] [-11.147]
    """

    second: str
    point: Any
    normal: Any
    first: str = WORLD_NAME
    point_velocity: Any = None
    normal_rate: Any = None


Contacts: TypeAlias = GapFunction | Sequence[PointContact]


@final
@dataclass(frozen=True, eq=False)
class ContactEquations:
    """The equations zeta-dot = M lambda + d of nc contacts, and their parts.

    `T (nv, nc)`: contact normals in joint space; `M (nc, nc)` = T^T H^-1 T; `d (nc,)` [m/s^2]; `velocity`
    zeta = T^T v `(nc,)` [m/s]; `bias` = dT/dt^T v `(nc,)`; `free (nv,)`: the acceleration without contact
    forces; `response` = H^-1 T `(nv, nc)`. In a system with loops H^-1 stands for the inverse under their
    constraints.
    """

    T: Array
    M: Array
    d: Array
    velocity: Array
    bias: Array
    free: Array
    response: Array

    def acceleration(self, force: Any) -> Array:
        """Return a = H^-1 (tau - C + T lambda) `(nv,)`."""
        return np.asarray(self.free + self.response @ np.asarray(force, dtype=np.float64))

    def of(self, chosen: Sequence[int]) -> ContactEquations:
        """Return the equations of some of the contacts."""
        k = list(chosen)
        M = self.M[np.ix_(k, k)]
        return ContactEquations(
            self.T[:, k], M, self.d[k], self.velocity[k], self.bias[k], self.free, self.response[:, k]
        )


@own_errors
def contact_equations(
    model: Model, q: Any, v: Any, tau: Any, contacts: Contacts, *, external_forces: Any = None
) -> ContactEquations:
    """Return the equations zeta-dot = M lambda + d of contacts in a system: M = T^T H^-1 T, d = T^T H^-1 (tau
    - C) + dT/dt^T v.

    t_i = (J_second - J_first)^T n_i and dt_i/dt^T v = n_i . (a_second - a_first) + dn_i/dt . (v_second -
    v_first), with a the velocity-product accelerations dJ/dt v; for a `GapFunction` t_i = (dphi_i/dq)^T.
    (The book's Eqs 11.29 and 11.30 are misprinted: zeta-dot = t^T a + dt/dt^T v.) Loops and other
    constraints hold besides.

    `q (nq,)`, `v`, `tau (nv,)`, `external_forces (n_bodies, 6)` as in `da.forward_dynamics`; `contacts`: a
    sequence of `PointContact`, or a `GapFunction`.

    Source: Featherstone 2008 section 11.3, Eqs 11.23 to 11.36.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> floor = da.contact.GapFunction(model, lambda model, q: [2.0 - 2.0 * da.scalar.cos(q[0])])
    >>> equations = da.contact.contact_equations(model, [np.pi / 2], [0.0], [0.0], floor)
    >>> print(equations.T.round(6), (1.0 / equations.M).round(6), equations.d.round(6))  # l, m, -g
    [[2.]] [[3.]] [-9.81]
    """
    q, v = checked_state(model, q, v)
    tau = real_array("tau", tau)
    if isinstance(contacts, GapFunction):
        T, bias = contacts.normals(q), contacts.bias(q, v)
    elif isinstance(contacts, Sequence) and all(isinstance(contact, PointContact) for contact in contacts):
        T, bias = _point_normals(model, q, v, contacts)
    else:
        raise DtypeError(
            f"contacts are a GapFunction or a sequence of PointContact, got {type(contacts).__name__}"
        )
    free = forward_dynamics(model, q, v, tau, external_forces)
    response = inertia_response(model, q, T)
    M = T.T @ response
    return ContactEquations(T, (M + M.T) / 2, T.T @ free + bias, T.T @ v, bias, free, response)


def inertia_response(model: Model, q: Any, forces: Any) -> Array:
    """Return H^-1 F `(nv, n)` of joint forces or impulses F `(nv, n)`, under the constraints of the model if
    it has any."""
    F = np.asarray(forces, dtype=np.float64)
    if not is_constrained(model):
        return np.linalg.solve(mass_matrix(model, q), F)
    still = np.zeros(model.nv)
    with_forces = forward_dynamics(model, q, still, F.T)
    return np.asarray(with_forces - forward_dynamics(model, q, still, still)).T


def _point_normals(model: Model, q: Array, v: Array, contacts: Sequence[PointContact]) -> tuple[Array, Array]:
    """Return T and dT/dt^T v (Eqs 11.25 and 11.30), all vectors in the world's frame at its origin."""
    T, bias = np.zeros((model.nv, len(contacts))), np.zeros(len(contacts))
    if contacts:
        forward_kinematics(model, q)  # rejects a wrong q once, by name
    for i, contact in enumerate(contacts):
        point = real_array(f"the point of contact {i}", contact.point)
        u = real_array(f"the normal of contact {i}", contact.normal)
        if contact.first == contact.second:
            raise ArgumentError(f'contact {i} is of "{contact.first}" with itself')
        n = contact_normal(point, u)
        u = n[3:]
        J1, rate1 = _motion(model, q, v, contact.first)
        J2, rate2 = _motion(model, q, v, contact.second)
        v1, v2 = J1 @ v, J2 @ v
        moves = v2[3:] + np.cross(v2[:3], point) if contact.point_velocity is None else contact.point_velocity
        turns = np.cross(v1[:3], u) if contact.normal_rate is None else contact.normal_rate
        n_rate = np.concatenate([np.cross(moves, u) + np.cross(point, turns), turns])
        T[:, i] = (J2 - J1).T @ n
        bias[i] = n @ (rate2 - rate1) + n_rate @ (v2 - v1)
    return T, bias


def _motion(model: Model, q: Array, v: Array, body: str) -> tuple[Array, Array]:
    """Return J of a body in the world's frame, and its velocity-product acceleration."""
    if body == WORLD_NAME:
        return np.zeros((6, model.nv)), np.zeros(6)
    rate = jacobian_rate(model, q, v, body, frame="world")
    return jacobian(model, q, body, frame="world"), rate @ v
