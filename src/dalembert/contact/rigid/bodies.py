"""Frictionless point contacts of one rigid body with its environment.

Spatial vectors here are arrays of six numbers, the angular part first, all in one frame of the user's choice:
velocities (omega, v_O), forces (moment about O, force).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import real_array
from dalembert.contact.rigid.lcp import solve_lcp
from dalembert.errors import ArgumentError, ShapeError, StateError, own_errors
from dalembert.spatial import RigidInertia

__all__ = ["BodyContact", "body_contact", "body_contacts", "contact_normal"]

Array: TypeAlias = npt.NDArray[Any]

MAX_REST_SPEED = 1e-6
"""The separation velocity [m/s] below which a contact is at rest."""


@final
@dataclass(frozen=True, eq=False)
class BodyContact:
    """The motion of a body under its contacts.

    `force` lambda >= 0 `(nc,)` [N]; `rate` the separation accelerations zeta-dot >= 0 `(nc,)` [m/s^2];
    `acceleration` the spatial acceleration a `(6,)`; `M (nc, nc)` and `d (nc,)` of zeta-dot = M lambda + d.
    """

    force: Array
    rate: Array
    acceleration: Array
    M: Array
    d: Array


@own_errors
def contact_normal(point: Any, direction: Any) -> Array:
    """Return the spatial unit force n = (p x u, u) `(…, 6)` along the direction u through the point p.

    `point (…, 3)` [m], `direction (…, 3)`, scaled to unit length here. n points out of the surface, so
    that n lambda repels the body that it acts on for lambda > 0.

    Source: Featherstone 2008 section 11.1.

    >>> print(da.contact.contact_normal([0.5, 0.0, 0.0], [0.0, 0.0, 2.0]))
    [ 0.  -0.5  0.   0.   0.   1. ]
    """
    p, u = real_array("point", point), real_array("direction", direction)
    if p.shape[-1:] != (3,) or u.shape[-1:] != (3,):
        raise ShapeError(f"a point and a direction have three coordinates each, got {p.shape} and {u.shape}")
    length = np.linalg.norm(u, axis=-1, keepdims=True)
    if not np.all(length > 0.0):
        raise ArgumentError("a contact normal needs a direction other than zero")
    u = u / length
    p, u = np.broadcast_arrays(p, u)
    return np.concatenate([np.cross(p, u), u], axis=-1)


@own_errors
def body_contact(
    inertia: Any, velocity: Any, force: Any, normal: Any, normal_rate: Any = None
) -> BodyContact:
    """Solve one point contact of a body: lambda = 0 if d >= 0, else lambda = -d / M.

    zeta = n . v is zero in lasting contact, and zeta-dot = n . a + dn/dt . v = M lambda + d must not be
    negative, where M = n . I^-1 n and d = n . I^-1 (f - v x* I v) + dn/dt . v.

    `inertia`: a `RigidInertia` or a 6 x 6 matrix; `velocity` v, `force` f without the contact's (gravity
    included), `normal` n (see `contact_normal`) and `normal_rate` dn/dt, zero if omitted: `(6,)` each, in
    one frame. A body with zeta < 0 collides, and one with zeta > 0 has left: `StateError`.

    Source: Featherstone 2008 section 11.1, Eqs 11.1 to 11.10.

    >>> ball = da.RigidInertia(2.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    >>> n = da.contact.contact_normal([0.0, 0.0, -0.3], [0.0, 0.0, 1.0])
    >>> weight = [0.0, 0.0, 0.0, 0.0, 0.0, -2.0 * 9.81]
    >>> print(da.contact.body_contact(ball, np.zeros(6), weight, n).force)  # it carries its weight
    [19.62]
    >>> print(da.contact.body_contact(ball, np.zeros(6), np.negative(weight), n).rate)  # pulled up
    [9.81]
    """
    n = spatial_vector("normal", normal)
    rate = None if normal_rate is None else spatial_vector("normal_rate", normal_rate).reshape(6, 1)
    I, N, free, M, d = _equations(inertia, velocity, force, n.reshape(6, 1), rate)
    lam = np.where(d >= 0.0, 0.0, -d / np.diag(M))  # Eq. 11.10
    return BodyContact(lam, np.maximum(d, 0.0), free + np.linalg.solve(I, N @ lam), M, d)


@own_errors
def body_contacts(
    inertia: Any, velocity: Any, force: Any, normals: Any, normal_rates: Any = None
) -> BodyContact:
    """Solve several point contacts of a body: zeta-dot = M lambda + d >= 0, lambda >= 0, zeta-dot . lambda =
    0.

    M = N^T I^-1 N, d = N^T I^-1 (f - v x* I v) + dN/dt^T v. `normals` N and `normal_rates` dN/dt `(6, nc)`,
    the other arguments as in `body_contact`. a is unique; lambda is not where normals are dependent, and
    this one has no more positive elements than N has rank. `ContactError` where no forces prevent
    penetration.

    Source: Featherstone 2008 section 11.2, Eqs 11.11 to 11.22.

    >>> block = da.RigidInertia(2.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    >>> corners = [[x, y, -0.1] for x in (-0.2, 0.2) for y in (-0.3, 0.3)]
    >>> N = da.contact.contact_normal(corners, [0.0, 0.0, 1.0]).T
    >>> resting = da.contact.body_contacts(block, np.zeros(6), [0.0, 0.0, 0.0, 0.0, 0.0, -19.62], N)
    >>> print(resting.force.sum().round(9), np.abs(resting.acceleration).max() < 1e-12)
    19.62 True
    """
    rates = None if normal_rates is None else real_array("normal_rates", normal_rates)
    I, N, free, M, d = _equations(inertia, velocity, force, real_array("normals", normals), rates)
    solution = solve_lcp(M, d)
    return BodyContact(solution.force, solution.rate, free + np.linalg.solve(I, N @ solution.force), M, d)


def inertia_matrix(inertia: Any) -> Array:
    """Return the 6 x 6 matrix of a `RigidInertia`, or of an array that is one."""
    if isinstance(inertia, RigidInertia):
        return np.asarray(inertia.matrix(), dtype=np.float64)
    I: Array = real_array("inertia", inertia)
    if I.shape != (6, 6):
        raise ShapeError(f"an inertia is a RigidInertia or a 6 x 6 matrix, got the shape {I.shape}")
    return I


def spatial_vector(name: str, given: Any) -> Array:
    """Return an array of six numbers, or raise an error that names it."""
    x: Array = real_array(name, given)
    if x.shape != (6,):
        raise ShapeError(f"{name} is a spatial vector of six numbers, angular first; got the shape {x.shape}")
    if not np.isfinite(x).all():
        raise ArgumentError(f"{name} holds numbers that are not finite")
    return x


def cross_force(v: Array, f: Array) -> Array:
    """Return v x* f (Featherstone 2008 Eq. 2.32)."""
    return np.concatenate([np.cross(v[:3], f[:3]) + np.cross(v[3:], f[3:]), np.cross(v[:3], f[3:])])


def _equations(
    inertia: Any, velocity: Any, force: Any, N: Array, rates: Array | None
) -> tuple[Array, Array, Array, Array, Array]:
    """Return I, N, the acceleration without contact forces, M, d (Eqs 11.19 to 11.22)."""
    I, v, f = inertia_matrix(inertia), spatial_vector("velocity", velocity), spatial_vector("force", force)
    if N.ndim != 2 or len(N) != 6 or (rates is not None and rates.shape != N.shape):
        raise ShapeError(
            f"normals and their rates are (6, nc), got {N.shape}"
            + ("" if rates is None else f" and {rates.shape}")
        )
    zeta = N.T @ v
    if np.abs(zeta).max(initial=0.0) > MAX_REST_SPEED:
        worst = int(np.argmax(np.abs(zeta)))
        what = (
            "it collides there: apply an impulse first"
            if zeta[worst] < 0.0
            else "it is leaving: drop the contact"
        )
        raise StateError(
            f"the body moves at {zeta[worst]:.3g} m/s along the normal of contact {worst}; {what}"
        )
    free = np.linalg.solve(I, f - cross_force(v, I @ v))
    d = N.T @ free + (0.0 if rates is None else rates.T @ v)
    return I, N, free, N.T @ np.linalg.solve(I, N), d
