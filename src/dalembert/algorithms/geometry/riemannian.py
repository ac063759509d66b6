"""The configuration space as a Riemannian manifold with the metric M(q): Todorov, "Manifolds and metrics".

Tangent vectors u are velocities, cotangent vectors f are forces and momenta; M maps the former to the latter.

    <u, w>   = u^T M w             <f, h>   = f^T M^-1 h             u . f = u^T f                         (1)
    nabla_v u = v(u) + M^-1 C(q, v) u                                                                      (2)
    nabla_v v = 0:   dv/dt = -M^-1 C(q, v) v                                                               (3)

v(u) is the derivative of u's components along v and C the matrix of the Christoffel symbols, C_kj =
Gamma_ij,k v_i, so that (2) is the covariant derivative of the mechanical connection and (3) its geodesics,
the motions without forces and gravity. With forces, M nabla_v v = tau - g. <v, v> is twice the kinetic
energy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalembert.algorithms.geometry.coriolis_matrix import coriolis_product, require_scleronomic
from dalembert.algorithms.geometry.hamiltonian import momentum_coordinates, velocity_coordinates
from dalembert.algorithms.integrators.carried import CentroidalCoordinates, State
from dalembert.algorithms.integrators.explicit import runge_kutta_step
from dalembert.algorithms.inverse_dynamics import coriolis_forces
from dalembert.algorithms.open_tree import require_open_tree
from dalembert.errors import ArgumentError, require_choice
from dalembert.model.configuration import position_rate
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = [
    "connection_term",
    "covariant_derivative",
    "geodesic_acceleration",
    "geodesic_step",
    "inner_product",
]

SPACES = ("tangent", "cotangent")

Field = Callable[[Tree, list[Scalar]], Sequence[Scalar]]
"""A vector field: `field(tree, q)` has nv components."""


def inner_product(
    tree: Tree, q: Sequence[Scalar], u: Sequence[Scalar], w: Sequence[Scalar], *, space: str = "tangent"
) -> Scalar:
    """Return <u, w> = u^T M w of two velocities, or u^T M^-1 w of two forces or momenta; Eq. (1)."""
    require_choice("space of inner_product", space, SPACES)
    mapped = momentum_coordinates if space == "tangent" else velocity_coordinates
    total: Scalar = 0.0
    for x, y in zip(u, mapped(tree, q, w), strict=True):
        total = total + x * y
    return total


def connection_term(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], u: Sequence[Scalar]
) -> list[Scalar]:
    """Return Gamma_ij^k v_i u_j = M^-1 C(q, v) u `(nv,)`: how u turns in parallel transport along v.

    A vector is carried parallel if du/dt = -connection_term.
    """
    return velocity_coordinates(tree, q, coriolis_product(tree, q, v, u))


def covariant_derivative(tree: Tree, field: Field, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """Return nabla_v u `(nv,)` of the vector field u = field(tree, q) along v; Eq. (2).

    The derivative of the components is exact, by dual numbers, along dq/dt = Q(q) v.
    """
    direction = position_rate(tree, q, v)  # type: ignore[arg-type]

    def components(x: list[Scalar]) -> list[Scalar]:
        found = field(tree, x)
        if not isinstance(found, Sequence):
            raise ArgumentError(
                f"covariant_derivative: the field returned a {type(found).__name__}; return a list of scalars"
            )
        return list(found)

    u, u_rate = directional_derivative(components, list(q), direction)
    if len(u) != tree.nv:
        raise ArgumentError(
            f"covariant_derivative: the field has {len(u)} components; return {tree.nv}, one for each "
            "velocity variable"
        )
    return [rate + turn for rate, turn in zip(u_rate, connection_term(tree, q, v, u), strict=True)]


def geodesic_acceleration(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """Return dv/dt `(nv,)` = -M^-1 C(q, v) v of the motion without forces and gravity; Eq. (3)."""
    require_open_tree(tree, "geodesic_acceleration")
    require_scleronomic(tree, "geodesic_acceleration")
    return [-x for x in velocity_coordinates(tree, q, coriolis_forces(tree, q, v))]


def geodesic_step(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], dt: Scalar) -> State:
    """Return (q, v) after the time dt along the geodesic, by the Runge–Kutta method of order four."""

    def acceleration(q: Sequence[Scalar], v: Sequence[Scalar], elapsed: Scalar) -> list[Scalar]:
        return geodesic_acceleration(tree, q, v)

    return runge_kutta_step(CentroidalCoordinates(tree, None), acceleration, State(list(q), list(v)), dt)
