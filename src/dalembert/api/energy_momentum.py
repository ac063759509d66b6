"""Energy, the centre of mass and momentum of the whole system."""

from __future__ import annotations

from dalembert.api.calls import Array, ArrayLike, result
from dalembert.model.model import Model

__all__ = [
    "center_of_mass",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "kinetic_energy",
    "potential_energy",
]


def kinetic_energy(model: Model, q: ArrayLike, v: ArrayLike, *, time: ArrayLike | None = None) -> Array:
    """T = v^T M v / 2 `(…)` [J], the armatures' share included."""
    return result(model, "kinetic_energy", (q, v), {"time": time}, None, {}, None, "raise")


def potential_energy(model: Model, q: ArrayLike, *, time: ArrayLike | None = None) -> Array:
    """V = -sum m g . c `(…)` [J], zero with every centre of mass at the world's origin."""
    return result(model, "potential_energy", (q,), {"time": time}, None, {}, None, "raise")


def center_of_mass(model: Model, q: ArrayLike, *, time: ArrayLike | None = None) -> Array:
    """The centre of mass of the whole system `(…, 3)` [m], in world coordinates."""
    return result(model, "center_of_mass", (q,), {"time": time}, None, {}, None, "raise")


def centroidal_momentum(model: Model, q: ArrayLike, v: ArrayLike, *, time: ArrayLike | None = None) -> Array:
    """(angular momentum about the centre of mass, linear momentum) `(…, 6)`, in world axes."""
    return result(model, "centroidal_momentum", (q, v), {"time": time}, None, {}, None, "raise")


def centroidal_momentum_matrix(model: Model, q: ArrayLike, *, time: ArrayLike | None = None) -> Array:
    """A(q) `(…, 6, nv)` with centroidal momentum = A v."""
    return result(model, "centroidal_momentum_matrix", (q,), {"time": time}, None, {}, None, "raise")
