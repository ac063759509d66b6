"""Derivatives of the dynamics, by configurations on the tangent space."""

from __future__ import annotations

import numpy as np

from dalembert.api.calls import Array, ArrayLike, Check
from dalembert.api.dynamics import forward_dynamics, inverse_mass_matrix, mass_matrix
from dalembert.library import function
from dalembert.model.model import Model

__all__ = [
    "forward_dynamics_derivatives",
    "inverse_dynamics_derivatives",
]


def inverse_dynamics_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, check: Check = "raise"
) -> tuple[Array, Array, Array]:
    """(dtau/dq, dtau/dv, dtau/da), `(…, nv, nv)` each; by q on the tangent space; dtau/da = M."""
    by_q = function(model, "inverse_dynamics", by="q")(q, v, a, check=check)
    by_v = function(model, "inverse_dynamics", by="v")(q, v, a, check="off")
    batch = np.broadcast_shapes(*(np.shape(item)[:-1] for item in (q, v, a)))
    by_a = np.broadcast_to(mass_matrix(model, q, check="off"), (*batch, model.nv, model.nv))
    return by_q, by_v, by_a.copy() if by_a.shape != np.shape(by_q) or not by_a.flags.writeable else by_a


def forward_dynamics_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, check: Check = "raise"
) -> tuple[Array, Array, Array]:
    """(da/dq, da/dv, da/dtau), `(…, nv, nv)` each; by q on the tangent space.

    From tau = ID(q, v, a(q, v, tau)): da/dx = -M^-1 dID/dx at the a that results, and da/dtau = M^-1.
    """
    a = forward_dynamics(model, q, v, tau, check=check)
    by_q, by_v, _ = inverse_dynamics_derivatives(model, q, v, a, check="off")
    inverse = np.broadcast_to(inverse_mass_matrix(model, q, check="off"), by_q.shape)
    return -inverse @ by_q, -inverse @ by_v, inverse.copy()
