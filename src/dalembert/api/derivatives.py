"""Derivatives of the dynamics, by configurations on the tangent space."""

from __future__ import annotations

import numpy as np

from dalembert.algorithms.open_tree import is_constrained
from dalembert.api.calls import Array, ArrayLike, Check
from dalembert.api.dynamics import forward_dynamics, inverse_mass_matrix, mass_matrix
from dalembert.library import FUNCTIONS, function
from dalembert.model.model import Model

__all__ = [
    "forward_dynamics_derivatives",
    "inverse_dynamics_derivatives",
]


def inverse_dynamics_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, check: Check = "raise"
) -> tuple[Array, Array, Array]:
    """(dtau/dq, dtau/dv, dtau/da) of tau = ID(q, v, a), `(…, nv, nv)` each.

    By q on the tangent space: column k is the derivative along `integrate(q, e_k)`. dtau/da = M, of a tree.
    By exact differentiation of the traced recursion.

    Rows: RBDA-5.3-RNEA, RBDA-10.4-SYMBOLIC.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> by_q, by_v, by_a = da.inverse_dynamics_derivatives(model, [np.pi / 3], [0.0], [0.0])
    >>> print(by_q.round(4), by_v.round(4), by_a.round(4))  # m g l cos q, 0, m l^2
    [[29.43]] [[0.]] [[12.]]
    """
    if is_constrained(model):
        return _all_derivatives(model, "inverse_dynamics", (q, v, a), check)
    by_q = function(model, "inverse_dynamics", by="q")(q, v, a, check=check)
    by_v = function(model, "inverse_dynamics", by="v")(q, v, a, check="off")
    batch = np.broadcast_shapes(*(np.shape(item)[:-1] for item in (q, v, a)))
    by_a = np.broadcast_to(mass_matrix(model, q, check="off"), (*batch, model.nv, model.nv))
    return by_q, by_v, by_a.copy() if by_a.shape != np.shape(by_q) or not by_a.flags.writeable else by_a


def forward_dynamics_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, check: Check = "raise"
) -> tuple[Array, Array, Array]:
    """(da/dq, da/dv, da/dtau) of a = FD(q, v, tau), `(…, nv, nv)` each; by q on the tangent space.

    From tau = ID(q, v, a(q, v, tau)): da/dx = -M^-1 dID/dx at the a that results, and da/dtau = M^-1. Where
    loops or other constraints bind the coordinates, the constrained dynamics are differentiated themselves.

    Rows: RBDA-1.1-API, RBDA-10.4-SYMBOLIC.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> by_q, by_v, by_tau = da.forward_dynamics_derivatives(model, [np.pi / 3], [0.0], [0.0])
    >>> print(by_q.round(4), by_tau.round(4))  # -g / l cos q, 1 / (m l^2)
    [[-2.4525]] [[0.0833]]
    """
    if is_constrained(model):
        return _all_derivatives(model, "forward_dynamics", (q, v, tau), check)
    a = forward_dynamics(model, q, v, tau, check=check)
    by_q, by_v, _ = inverse_dynamics_derivatives(model, q, v, a, check="off")
    inverse = np.broadcast_to(inverse_mass_matrix(model, q, check="off"), by_q.shape)
    return -inverse @ by_q, -inverse @ by_v, inverse.copy()


def _all_derivatives(
    model: Model, name: str, values: tuple[ArrayLike, ...], check: Check
) -> tuple[Array, Array, Array]:
    """The derivatives of a library function by each of its three arguments."""
    by_q, by_v, by_last = (
        function(model, name, by=argument)(*values, check=check) for argument in FUNCTIONS[name].arguments
    )
    return by_q, by_v, by_last
