"""Hamilton's form of the equation of motion: positions and momenta."""

from __future__ import annotations

from typing import cast

import numpy as np

from dalembert.api.calls import Array, ArrayLike, Check, is_large, result, results
from dalembert.api.dynamics import forward_dynamics, gravity_forces
from dalembert.model.model import Model

__all__ = ["hamiltonian", "hamiltonian_rates", "momentum_coordinates", "velocity_coordinates"]


def hamiltonian(
    model: Model, q: ArrayLike, p: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Compute the Hamiltonian H(q, p) = p^T M(q)^-1 p / 2 + V(q) `(…)` [J] for momenta p `(…, nv)`.

    V is gravity's potential; springs are passive forces. H = v^T p - L for the Lagrangian L = K - V.

    Source: Todorov, "Hamiltonian formulation".

    >>> model = da.models.pendulum()
    >>> q, v = np.array([0.5]), np.array([2.0])
    >>> H = da.hamiltonian(model, q, da.momentum_coordinates(model, q, v))
    >>> np.allclose(H, da.kinetic_energy(model, q, v) + da.potential_energy(model, q))
    True
    """
    return result(model, "hamiltonian", (q, p), {}, None, {}, out, check)


def hamiltonian_rates(
    model: Model, q: ArrayLike, p: ArrayLike, tau: ArrayLike, *, check: Check = None
) -> tuple[Array, Array]:
    """Compute (v, dp/dt), `(…, nv)` each, of Hamilton's equations: v = dH/dp = M^-1 p, dp/dt = -dH/dq + tau.

    Move q by `integrate(model, q, v * dt)`. Where v is dq/dt this is Hamilton's first equation. For
    quaternions -dH/dq alone is not enough, and dp/dt includes Hamel's terms: dp/dt = tau - g + C^T v.

    Source: Todorov, "Hamiltonian formulation".

    >>> model = da.models.pendulum()
    >>> v, p_rate = da.hamiltonian_rates(model, [0.5], [2.0], [0.0])
    >>> np.allclose(p_rate, -da.gravity_forces(model, [0.5]))
    True
    """
    return cast(
        "tuple[Array, Array]",
        results(model, "hamiltonian_rates", (q, p, tau), {}, None, {}, None, check),
    )


def momentum_coordinates(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Compute the momenta p = M(q) v `(…, nv)` [kg m^2/s or kg m/s] in linear time.

    This is the Legendre transformation p = dL/dv. In the metric M it lowers the index of any velocity: u* = M
    u.

    Source: Todorov, "Hamiltonian formulation", "Manifolds and metrics".

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> np.allclose(da.momentum_coordinates(model, q, v), da.mass_matrix(model, q) @ v)
    True
    """
    return result(model, "momentum_coordinates", (q, v), {}, None, {}, out, check)


def velocity_coordinates(
    model: Model, q: ArrayLike, p: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    """Compute the velocities v = M(q)^-1 p `(…, nv)` [rad/s or m/s], the inverse of `momentum_coordinates`.

    v = dH/dp. In the metric M it raises the index of any force or momentum: u = M^-1 u*.

    Source: Todorov, "Hamiltonian formulation", "Manifolds and metrics".

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> np.allclose(da.velocity_coordinates(model, q, da.momentum_coordinates(model, q, v)), v)
    True
    """
    if is_large(model, "velocity_coordinates") and not model.loop_names:
        push = np.asarray(p) + gravity_forces(model, q, check=check)
        return forward_dynamics(model, q, np.zeros_like(push), push, out=out, check=check)
    return result(model, "velocity_coordinates", (q, p), {}, None, {}, out, check)
