"""The equations of contacts in a system of bodies: zeta-dot = M lambda + d."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from dalembert.algorithms.open_tree import is_constrained
from dalembert.api.dynamics import forward_dynamics, mass_matrix
from dalembert.api.kinematics import forward_kinematics, jacobian, jacobian_rate
from dalembert.call.arguments import as_array, real_array
from dalembert.errors import (
    ArgumentError,
    DtypeError,
    ModelError,
    ShapeError,
    StateError,
    own_errors,
    positive_number,
    short_repr,
)
from dalembert.model.model import Model, require_model
from dalembert.model.topology import WORLD_NAME
from dalembert.simulation.initial_state import require_closed_loops, require_finite
from dalembert.spatial import RigidInertia
from dalembert.textbook.complementarity import Array, solve_lcp
from dalembert.textbook.contact_gaps import GapFunction

# Frictionless point contacts of one rigid body with its environment.
#
# Spatial vectors here are arrays of six numbers, the angular part first, all in one frame of the user's
# choice: velocities (omega, v_O), forces (moment about O, force).

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

    >>> print(da.textbook.contact_normal([0.5, 0.0, 0.0], [0.0, 0.0, 2.0]))
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
    >>> n = da.textbook.contact_normal([0.0, 0.0, -0.3], [0.0, 0.0, 1.0])
    >>> weight = [0.0, 0.0, 0.0, 0.0, 0.0, -2.0 * 9.81]
    >>> print(da.textbook.body_contact(ball, np.zeros(6), weight, n).force)  # it carries its weight
    [19.62]
    >>> print(da.textbook.body_contact(ball, np.zeros(6), np.negative(weight), n).rate)  # pulled up
    [9.81]
    """
    n = spatial_vector("normal", normal).reshape(6, 1)
    rate = None if normal_rate is None else spatial_vector("normal_rate", normal_rate).reshape(6, 1)
    equations = _body_equations(inertia, velocity, force, n, rate)
    M, d = equations.M, equations.d
    lam = np.where(d >= 0.0, 0.0, -d / np.diag(M))  # Eq. 11.10
    return BodyContact(lam, np.maximum(d, 0.0), equations.acceleration(lam), M, d)


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
    >>> N = da.textbook.contact_normal(corners, [0.0, 0.0, 1.0]).T
    >>> resting = da.textbook.body_contacts(block, np.zeros(6), [0.0, 0.0, 0.0, 0.0, 0.0, -19.62], N)
    >>> print(resting.force.sum().round(9), np.abs(resting.acceleration).max() < 1e-12)
    19.62 True
    """
    rates = None if normal_rates is None else real_array("normal_rates", normal_rates)
    equations = _body_equations(inertia, velocity, force, real_array("normals", normals), rates)
    M, d = equations.M, equations.d
    solution = solve_lcp(M, d)
    return BodyContact(solution.force, solution.rate, equations.acceleration(solution.force), M, d)


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
    require_finite(name, x)
    return x


def _body_equations(
    inertia: Any, velocity: Any, force: Any, N: Array, rates: Array | None
) -> ContactEquations:
    """Return zeta-dot = M lambda + d of a body: H is I, and T is N (Eqs 11.19 to 11.22)."""
    I, v, f = inertia_matrix(inertia), spatial_vector("velocity", velocity), spatial_vector("force", force)
    if N.ndim != 2 or len(N) != 6 or (rates is not None and rates.shape != N.shape):
        raise ShapeError(
            f"normals and their rates are (6, nc), got {N.shape}"
            + ("" if rates is None else f" and {rates.shape}")
        )
    zeta = N.T @ v
    if np.abs(zeta).max(initial=0.0) > MAX_REST_SPEED:
        worst = int(np.argmax(np.abs(zeta)))
        closing = zeta[worst] < 0.0
        raise StateError(
            f"the body moves at {zeta[worst]:.3g} m/s along the normal of contact {worst}; it "
            + ("collides there: apply an impulse first" if closing else "is leaving: drop the contact")
        )
    h = I @ v
    gyroscopic = np.concatenate([np.cross(v[:3], h[:3]) + np.cross(v[3:], h[3:]), np.cross(v[:3], h[3:])])
    bias = np.zeros(N.shape[1]) if rates is None else rates.T @ v
    return equations_of(N, bias, v, np.linalg.solve(I, f - gyroscopic), np.linalg.solve(I, N))


# Checks of the arguments of chapter 11's functions.


def checked_state(model: Model, q: Any, v: Any) -> tuple[Array, Array]:
    """Return q `(nq,)` and v `(nv,)` of one sample."""
    require_model(model)
    found = as_array("q", q, (model.nq,)), as_array("v", v, (model.nv,))
    if found[0].ndim != 1 or found[1].ndim != 1:
        raise ShapeError(
            f"q and v have the shapes {found[0].shape} and {found[1].shape}; samples have contacts of their "
            "own, so call this for one at a time"
        )
    return found


def checked_start(model: Model, q: Any, v: Any, gaps: GapFunction) -> Array:
    """Return y = (q, v) after checking that the contacts and the model's constraints allow this state."""
    require_model(model)
    require_gaps(gaps)
    if gaps.model is not model and gaps.model != model:
        raise ModelError(f'the gaps are those of "{gaps.model.name}" and not of "{model.name}"')
    position, velocity = checked_state(model, q, v)
    require_finite("q", position)
    require_finite("v", velocity)
    require_closed_loops(model, position, velocity, np.zeros(()))
    return np.concatenate([position, velocity])


def require_gaps(gaps: object) -> None:
    """Raise an error unless `gaps` is a `GapFunction`."""
    if not isinstance(gaps, GapFunction):
        raise DtypeError(
            f"gaps is {type(gaps).__name__}; give a GapFunction, such as da.textbook.shape_gaps(model)"
        )


def require_number(name: str, value: object, *, positive: bool) -> None:
    """Raise an error unless `value` is a finite number that is positive or, otherwise, not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise DtypeError(f"{name} is {short_repr(value)}; give a number")
    try:
        number = float(value)
    except OverflowError:  # an int beyond all floats
        number = math.inf
    if not math.isfinite(number) or number < 0.0 or (positive and number == 0.0):
        wanted = "a positive, finite number" if positive else "a finite number from 0 on"
        raise ArgumentError(f"{name} is {short_repr(value)}; give {wanted}")


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
    >>> contact = da.textbook.PointContact("lower", tip, (0.0, 0.0, 1.0))
    >>> equations = da.textbook.contact_equations(model, [0.3, -0.6], [0.0, 0.0], [0.0, 0.0], [contact])
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
        M, response = self.M[np.ix_(k, k)], self.response[:, k]
        return ContactEquations(
            self.T[:, k], M, self.d[k], self.velocity[k], self.bias[k], self.free, response
        )


def equations_of(T: Array, bias: Array, v: Array, free: Array, response: Array) -> ContactEquations:
    """Return the equations from T, dT/dt^T v, v, the acceleration without contact forces, and H^-1 T."""
    M = T.T @ response
    return ContactEquations(T, (M + M.T) / 2, T.T @ free + bias, T.T @ v, bias, free, response)


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
    >>> floor = da.textbook.GapFunction(model, lambda model, q: [2.0 - 2.0 * da.scalar.cos(q[0])])
    >>> equations = da.textbook.contact_equations(model, [np.pi / 2], [0.0], [0.0], floor)
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
    return equations_of(T, bias, v, free, inertia_response(model, q, T))


def inertia_response(model: Model, q: Any, forces: Any) -> Array:
    """Return H^-1 F `(nv, n)` of joint forces or impulses F `(nv, n)`, under the model's constraints."""
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


# Line and surface contacts as the fewest point contacts that do the same.

MIN_TOLERANCE_RATIO = 1e-12
"""The least tolerance of a disc as a fraction of its radius: two million points on its rim."""


@own_errors
def reduce_contacts(points: Any, directions: Any, *, tolerance: float = 1e-7) -> tuple[int, ...]:
    """Return which of many point contacts of two bodies suffice: those whose normals are not positively
    dependent, n_i = sum_k a_k n_k with a_k >= 0, on the others.

    `points (nc, 3)` [m], `directions (nc, 3)`, or `(3,)` if all are the same, in one frame. Contacts
    between two flat faces leave the corners of the convex hull of their area, along a straight edge on a
    face its two ends; of a disc, every point of its boundary is left, and of the line x = 0 on z = x tan(y)
    every point at all, so these need samples. `tolerance`: how far a normal may be from the cone of the
    others to count as dependent.

    Source: Featherstone 2008 section 11.6, Figure 11.7.

    >>> edge = [[x, 0.0, 0.0] for x in (0.0, 0.3, 0.5, 1.0)]
    >>> da.textbook.reduce_contacts(edge, [0.0, 0.0, 1.0])
    (0, 3)
    """
    require_number("tolerance", tolerance, positive=False)
    p = real_array("points", points)
    if p.ndim != 2 or p.shape[1] != 3:
        raise ShapeError(f"points are (nc, 3), got the shape {p.shape}")
    if not np.isfinite(p).all():
        raise ArgumentError("points hold numbers that are not finite")
    centre = p.mean(axis=0) if len(p) else p
    reach = float(np.abs(p - centre).max(initial=0.0)) or 1.0  # moments are then as large as forces
    N = contact_normal((p - centre) / reach, np.broadcast_to(real_array("directions", directions), p.shape)).T
    kept = list(range(len(p)))
    for contact in range(len(p)):
        others = [k for k in kept if k != contact]
        cone, n = N[:, others], N[:, contact]
        # The element of the cone that is nearest to n: a least squares problem, which is complementary.
        nearest = cone @ solve_lcp(cone.T @ cone, -cone.T @ n).force
        if others and float(np.linalg.norm(nearest - n)) <= tolerance:
            kept = others
    return tuple(kept)


@own_errors
def disc_contacts(centre: Any, axis: Any, radius: float, *, tolerance: float) -> Array:
    """Return points p_k = c + r (cos(2 pi k / n) e_1 + sin(2 pi k / n) e_2) `(n, 3)` on the rim of a flat
    disc, which stand for its surface contact.

    n is such that r (1 - cos(pi / n)), by which the regular polygon is smaller than the disc, is within
    `tolerance` [m]; `centre` c `(3,)`, `axis (3,)` across the disc, `radius` r [m].

    Source: Featherstone 2008 section 11.6, Figure 11.7 (d).

    >>> da.textbook.disc_contacts([0.0, 0.0, 0.0], [0.0, 0.0, 1.0], 0.5, tolerance=0.01).shape
    (16, 3)
    """
    radius, tolerance = positive_number("radius", radius, "m"), positive_number("tolerance", tolerance, "m")
    if tolerance < MIN_TOLERANCE_RATIO * radius:
        raise ArgumentError(
            f"tolerance is {tolerance:.3g} m for a disc of {radius:.3g} m, which takes millions of points; "
            f"give at least {MIN_TOLERANCE_RATIO * radius:.3g} m"
        )
    n = max(3, int(np.ceil(np.pi / np.arccos(max(1.0 - tolerance / radius, -0.5)))))
    u, middle = real_array("axis", axis), real_array("centre", centre)
    if u.shape != (3,) or middle.shape != (3,):
        raise ShapeError(f"centre and axis have three numbers each, got the shapes {middle.shape}, {u.shape}")
    u = u / np.linalg.norm(u)
    first = np.cross(u, np.eye(3)[np.argmin(np.abs(u))])
    first /= np.linalg.norm(first)
    angle = 2.0 * np.pi * np.arange(n)[:, None] / n
    rim = np.cos(angle) * first + np.sin(angle) * np.cross(u, first)
    return np.asarray(middle + radius * rim)
