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
    """Compute the kinetic energy T = v^T M v / 2 = sum v_i . I_i v_i / 2 `(…)` [J], including armatures.

    Featherstone 2008 Eqs 2.67 and 3.2.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> print(da.kinetic_energy(model, [0.4], [0.5]))  # m l^2 v^2 / 2
    1.5
    """
    return result(model, "kinetic_energy", (q, v), {"time": time}, None, {}, None, None)


def potential_energy(model: Model, q: ArrayLike, *, time: ArrayLike | None = None) -> Array:
    """Compute the potential energy V = -sum m_i g . c_i `(…)` [J].

    c_i [m]: centres of mass in world coordinates; g [m/s^2]: the model's gravity. V is zero with all centres
    of mass at the world's origin.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> print(round(float(da.potential_energy(model, [0.0])), 6))  # -m g l, hanging
    -58.86
    """
    return result(model, "potential_energy", (q,), {"time": time}, None, {}, None, None)


def center_of_mass(model: Model, q: ArrayLike, *, time: ArrayLike | None = None) -> Array:
    """Compute the system's centre of mass c = sum m_i c_i / sum m_i `(…, 3)` [m] in world coordinates.

    >>> model = da.models.two_link_arm()
    >>> print(da.center_of_mass(model, [0.0, 0.0]))  # two equal links of 1 m along x
    [1. 0. 0.]
    """
    return result(model, "center_of_mass", (q,), {"time": time}, None, {}, None, None)


def centroidal_momentum(model: Model, q: ArrayLike, v: ArrayLike, *, time: ArrayLike | None = None) -> Array:
    """Compute the momentum h = sum I_i v_i `(…, 6)` about the centre of mass, in world axes.

    The angular part [kg m^2/s] comes first, then the linear part [kg m/s]. h_C = h_O - c x (linear part), and
    the linear part is m dc/dt; Featherstone 2008 Eqs 2.58 to 2.60.

    >>> model = da.models.two_link_arm()
    >>> print(da.centroidal_momentum(model, [0.0, 0.0], [1.0, 0.0]).round(4) + 0.0)  # 2 kg of 2 m: m l^2 / 12
    [ 0.     -0.6667  0.      0.      0.      2.    ]
    """
    return result(model, "centroidal_momentum", (q, v), {"time": time}, None, {}, None, None)


def centroidal_momentum_matrix(model: Model, q: ArrayLike, *, time: ArrayLike | None = None) -> Array:
    """Compute the matrix A(q) `(…, 6, nv)` of the centroidal momentum h = A v.

    A = sum X_i^T I_i J_i over the bodies, about the centre of mass, in world axes.

    >>> model = da.models.two_link_arm()
    >>> A = da.centroidal_momentum_matrix(model, [0.0, 0.0])
    >>> print((A @ [1.0, 0.0]).round(4) + 0.0)
    [ 0.     -0.6667  0.      0.      0.      2.    ]
    """
    return result(model, "centroidal_momentum_matrix", (q,), {"time": time}, None, {}, None, None)
