"""Impulses and collisions in a system of bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dalembert.api.kinematics import jacobian
from dalembert.call.arguments import real_array
from dalembert.errors import ArgumentError, DtypeError, ShapeError, StateError, own_errors
from dalembert.model.model import Model, require_model
from dalembert.textbook.complementarity import Array, solve_lcp
from dalembert.textbook.contact_forces import (
    ContactEquations,
    Contacts,
    PointContact,
    contact_equations,
    inertia_matrix,
    inertia_response,
    spatial_vector,
)

# Impulses on rigid bodies, and collisions of two of them.
#
# Spatial vectors are arrays of six numbers, angular first, all in one frame, as in `bodies`.


@final
@dataclass(frozen=True, eq=False)
class Collision:
    """The result of a collision: `velocities`, (v1, v2) afterwards, `(6,)` each; `impulse (6,)` on the second
    body, its opposite on the first; `multiplier`, the impulse's size along each of the directions it may
    have [N s].
    """

    velocities: tuple[Array, Array]
    impulse: Array
    multiplier: Array


@own_errors
def body_impulse(inertia: Any, velocity_change: Any) -> Array:
    """Return iota = I dv `(6,)`: the impulse that changes a body's velocity by dv, and so its momentum.

    An impulse is the limit of great forces over short times; velocity-dependent forces do not contribute.
    `inertia`: a `RigidInertia`, or a 6 x 6 matrix, which may be an articulated-body inertia I^A of a handle
    (iota = I^A dv); `velocity_change (6,)`. The change that an impulse makes is `np.linalg.solve(I, iota)`.

    Source: Featherstone 2008 section 11.7, Eqs 11.52 to 11.56.

    >>> ball = da.RigidInertia(2.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    >>> print(da.textbook.body_impulse(ball, [3.0, 0.0, 0.0, 0.0, 0.0, 1.5]))
    [0.3 0.  0.  0.  0.  3. ]
    """
    return inertia_matrix(inertia) @ spatial_vector("velocity_change", velocity_change)


@own_errors
def collide_bodies(
    inertia1: Any, velocity1: Any, inertia2: Any, velocity2: Any, normal: Any, *, restitution: float = 0.0
) -> Collision:
    """Collide two bodies without friction: lambda = -(1 + e) n . (v2 - v1) / (n . (I1^-1 + I2^-1) n).

    dv1 = -I1^-1 n lambda, dv2 = I2^-1 n lambda, so that zeta = n . (v2 - v1) becomes -e zeta. Linear and
    angular momentum are kept, energy too if e = 1; otherwise the fraction 1 - e^2 of the
    energy that could be lost is lost.

    `inertia1`, `inertia2`: a `RigidInertia`, a 6 x 6 matrix (of the handle of an articulated body, I^A,
    too), or None for a body that nothing moves; `velocity1`, `velocity2 (6,)`; `normal` n `(6,)` from the
    first body to the second (`contact_normal`); all in one frame. `restitution` e from 0 to 1. Bodies that
    move apart (zeta > 0) do not collide: `StateError`.

    Source: Featherstone 2008 section 11.7, Eqs 11.60 to 11.65.

    >>> ball = da.RigidInertia(2.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    >>> n = da.textbook.contact_normal([0.0, 0.0, 0.0], [1.0, 0.0, 0.0])  # the centres are on this line
    >>> fast, still = np.array([0.0, 0.0, 0.0, 3.0, 0.0, 0.0]), np.zeros(6)
    >>> after = da.textbook.collide_bodies(ball, fast, ball, still, n, restitution=1.0)
    >>> print(after.velocities[0][3], after.velocities[1][3], after.multiplier)  # equal balls change places
    0.0 3.0 [6.]
    """
    N = spatial_vector("normal", normal).reshape(6, 1)
    return _collide(inertia1, velocity1, inertia2, velocity2, N, restitution)


@own_errors
def collide_bodies_sticking(
    inertia1: Any, velocity1: Any, inertia2: Any, velocity2: Any, normals: Any, *, restitution: float = 0.0
) -> Collision:
    """Collide two bodies with friction that stops all sliding:
    lambda = -(N^T (I1^-1 + I2^-1) N)^-1 (1 + E) N^T (v2 - v1), E = diag(0, 0, e).

    After the impact the velocities at the point differ by -e zeta_z along the normal alone. `normals` N =
    [n_x, n_y, n_z] `(6, 3)`: unit forces through the point of contact along two tangents and, last, the
    normal (`contact_normal`); the other arguments as in `collide_bodies`.

    This model leaves out: slip that does not stop within the impact, friction about the normal
    (torsional), tangential and torsional restitution, waves through solids and bearings. With e > 0 it can
    create energy where tangential and normal directions are coupled: a rod that strikes the ground
    obliquely. With e = 0 it never does.

    Source: Featherstone 2008 section 11.7, Eqs 11.66 to 11.72.

    >>> ball = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (0.4, 0.4, 0.4))  # a solid sphere of radius 1 m
    >>> N = da.textbook.contact_normal([0.0, 0.0, -1.0], np.eye(3)).T
    >>> sliding = [0.0, 0.0, 0.0, 7.0, 0.0, -1.0]
    >>> after = da.textbook.collide_bodies_sticking(None, np.zeros(6), ball, sliding, N).velocities[1]
    >>> print(after[[1, 3]])  # 5/7 of its speed is left, and it rolls
    [5. 5.]
    """
    N = real_array("normals", normals)
    if N.shape != (6, 3):
        raise ShapeError(f"normals are two tangents and the normal, (6, 3); got the shape {N.shape}")
    return _collide(inertia1, velocity1, inertia2, velocity2, N, restitution)


def checked_restitution(given: Any, count: int) -> Array:
    """Return a coefficient of restitution from 0 to 1 for each contact, from one number or one for each."""
    e: Array = real_array("restitution", given)
    if not np.all((e >= 0.0) & (e <= 1.0)):
        raise ArgumentError(f"restitution is from 0 to 1, got {e}")
    if e.shape not in ((), (count,)):
        raise ShapeError(
            f"restitution has the shape {e.shape}; give one number, or {count}, one for each contact"
        )
    return np.broadcast_to(e, (count,))


def _collide(inertia1: Any, velocity1: Any, inertia2: Any, velocity2: Any, N: Array, e: float) -> Collision:
    """Return the impulse along the columns of N, the last of which is the normal."""
    v1, v2 = spatial_vector("velocity1", velocity1), spatial_vector("velocity2", velocity2)
    if inertia1 is None and inertia2 is None:
        raise ArgumentError("one of the two bodies must be able to move; both inertias are None")
    inverse1, inverse2 = (
        np.zeros((6, 6)) if inertia is None else np.linalg.inv(inertia_matrix(inertia))
        for inertia in (inertia1, inertia2)
    )
    multiplier = _stopping_impulse(N.T @ (inverse1 + inverse2) @ N, N.T @ (v2 - v1), e)
    impulse = N @ multiplier
    return Collision((v1 - inverse1 @ impulse, v2 + inverse2 @ impulse), impulse, multiplier)


def _stopping_impulse(M: Array, zeta: Array, e: float) -> Array:
    """Return lambda of M lambda = -(1 + E) zeta, whose last entry is along the normal (Eq. 11.71)."""
    if zeta[-1] > 0.0:
        raise StateError(f"the bodies move apart at {zeta[-1]:.3g} m/s along the normal; they do not collide")
    wanted = -zeta  # change of zeta: tangential motion stops, …
    wanted[-1] *= 1.0 + checked_restitution(e, 1)[0]  # … normal motion turns back
    # A mechanism may be unable to move along some direction, in which it then does not slide either.
    return np.asarray(np.linalg.lstsq(M, wanted, rcond=1e-12)[0])


MAX_IMPACT_ROUNDS = 30
"""The number of successive impacts at one instant after which the remaining ones do not bounce."""


@final
@dataclass(frozen=True, eq=False)
class Impact:
    """`velocity (nv,)` after an impact; `impulse` lambda `(nc,)` [N s] of each contact; `joint_impulse` u
    `(nv,)`, all of them in joint space; `separation` zeta `(nc,)` [m/s] afterwards.
    """

    velocity: Array
    impulse: Array
    joint_impulse: Array
    separation: Array


@own_errors
def apply_impulse(model: Model, q: Any, body: str, impulse: Any) -> tuple[Array, Array]:
    """Return (dq-dot, dv_i), the effect of an impulse on body i: u = J_i^T iota, H dq-dot = u, dv_i =
    J_i dq-dot.

    `impulse` iota `(6,)`: (moment about the body's origin, force) [N m s, N s] in body coordinates, as
    external forces are given. Loops and other constraints hold: H^-1 is then the inverse under them.
    Velocity-dependent forces and gravity do not contribute to an impulse.

    Source: Featherstone 2008 section 11.7, Eqs 11.57 to 11.59.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> change, of_body = da.textbook.apply_impulse(model, [0.0], "bob", [0.0, 1.2, 0.0, 0.0, 0.0, 0.0])
    >>> print((change * 12.0).round(6))  # m l^2 = 12 kg m^2 about the hinge
    [1.2]
    """
    J = jacobian(model, real_array("q", q), body, frame="body")
    iota = spatial_vector("impulse", impulse)
    change = inertia_response(model, q, (J.T @ iota)[:, None])[:, 0]
    return change, J @ change


@own_errors
def body_mobility(model: Model, q: Any, body: str, other: str | None = None) -> Array:
    """Return Phi^A = J_i H^-1 J_i^T `(6, 6)`: the inverse of the articulated-body inertia of body i as a
    handle, dv_i = Phi^A iota.

    In body coordinates; with `other` = j the cross term J_i H^-1 J_j^T, the change of v_i by an impulse on
    j. It exists where I^A does not, if joints hold the body back.

    Source: Featherstone 2008 section 11.7, Eq. 11.56, and section 7.1.

    >>> model = da.models.two_link_arm()
    >>> Phi = da.textbook.body_mobility(model, [0.2, 0.5], "lower")
    >>> impulse = [0.0, 0.1, 0.0, 0.2, 0.0, 0.3]
    >>> change, of_body = da.textbook.apply_impulse(model, [0.2, 0.5], "lower", impulse)
    >>> print(np.allclose(of_body, Phi @ impulse))
    True
    """
    q = real_array("q", q)
    J = jacobian(model, q, body, frame="body")
    F = J if other is None else jacobian(model, q, other, frame="body")
    return np.asarray(J @ inertia_response(model, q, F.T))


@own_errors
def collide(model: Model, q: Any, v: Any, contacts: Contacts, *, restitution: Any = 0.0) -> Impact:
    """Solve a frictionless impact at all contacts at once: zeta+ = zeta + M lambda, lambda >= 0, zeta+ >= -e
    zeta, and lambda . (zeta+ + e zeta) = 0, with M = T^T H^-1 T.

    With one contact lambda = -(1 + e) zeta / M, the book's formula with Phi^A for I^-1. Contacts that open
    take no part, and collide in turn where the impact closes them. Energy never grows; it is kept if e = 1
    and no contact rested. `contacts`: those that touch now (a sequence of `PointContact`, or a `GapFunction`
    all of whose gaps are zero); `restitution` e from 0 to 1, one number or one for each. Loops of the model
    hold.

    Rigid bodies alone: waves through solids and bearings, which real impacts send through a mechanism, are
    left out.

    Source: Featherstone 2008 section 11.7, Eqs 11.56 to 11.65.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> wall = da.textbook.GapFunction(model, lambda model, q: [2.0 * da.scalar.sin(q[0])])
    >>> print(da.textbook.collide(model, [0.0], [-1.5], wall, restitution=0.5).velocity)
    [0.75]
    """
    require_model(model)
    v = real_array("v", v)
    equations = contact_equations(model, q, v, np.zeros(model.nv), contacts)
    e = checked_restitution(restitution, len(equations.velocity))
    return _impact(equations, v, impact_impulses(equations.M, equations.velocity, e))


@own_errors
def collide_sticking(
    model: Model, q: Any, v: Any, contact: PointContact, *, restitution: float = 0.0
) -> Impact:
    """Solve an impact at one point with friction that stops all sliding: lambda = -M^-1 (1 + E) zeta, E =
    diag(0, 0, e).

    M = N^T (J_2 - J_1) H^-1 (J_2 - J_1)^T N of two tangents and the normal; `impulse (3,)` and `separation
    (3,)` are along these. With e > 0 energy may grow, as in `collide_bodies_sticking`.

    Source: Featherstone 2008 section 11.7, Eqs 11.66 to 11.72.

    >>> model = da.models.two_link_arm()
    >>> q, v = [0.3, -0.6], [-1.0, 0.5]
    >>> tip = da.forward_kinematics(model, q)["tip"].translation
    >>> ground = da.textbook.PointContact("lower", tip, (0.0, 0.0, 1.0))
    >>> after = da.textbook.collide_sticking(model, q, v, ground)
    >>> print((da.jacobian(model, q, "tip")[3:] @ after.velocity).round(9) + 0.0)
    [0. 0. 0.]
    """
    require_model(model)
    v = real_array("v", v)
    if not isinstance(contact, PointContact):
        raise DtypeError(f"contact is of type {type(contact).__name__}; give a da.textbook.PointContact")
    normal = real_array("the normal of contact", contact.normal)
    across = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    axes = [across, np.cross(normal, across), normal]
    three = [PointContact(contact.second, contact.point, axis, contact.first) for axis in axes]
    equations = contact_equations(model, q, v, np.zeros(model.nv), three)
    return _impact(equations, v, _stopping_impulse(equations.M, equations.velocity, restitution))


def _impact(equations: ContactEquations, v: Array, lam: Array) -> Impact:
    """Return the effect of the contact impulses lambda on the velocity v."""
    after = v + equations.response @ lam
    return Impact(after, lam, equations.T @ lam, equations.T.T @ after)


def impact_impulses(M: Array, zeta: Array, e: Array) -> Array:
    """Return lambda `(nc,)` of an impact, in rounds: contacts that open take no part in a round, and collide
    in the next one if it closes them. So no round adds energy: 1/2 lambda . (zeta+ + zeta) = 1/2 (1 - e)
    lambda . zeta.
    """
    zero = 1e-9 * float(np.abs(zeta).max(initial=0.0))
    total = np.zeros(len(zeta))
    for _ in range(MAX_IMPACT_ROUNDS):
        now = zeta + M @ total
        if now.min(initial=0.0) >= -zero:
            return total
        k = np.flatnonzero(now <= zero)
        wanted = np.where(now[k] < -zero, (1.0 + e[k]) * now[k], 0.0)
        total[k] += solve_lcp(M[np.ix_(k, k)], wanted).force
    return np.asarray(total + solve_lcp(M, zeta + M @ total).force)  # bounces without end: one without bounce
