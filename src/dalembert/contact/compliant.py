"""Compliant contact: forces from positions, velocities and surfaces' states (Featherstone 2008 section 11.8).

At every candidate point the second body presses on the first with the gap as p and p' = n . (v_2 - v_1);
`compliant_surfaces` gives the normal force. Along the surface a patch at x, on a spring K_t and a damper D_t,
holds the body by friction:

    f_stick = - K_t x - D_t v                                                                          (11.78)
    f_t = f_stick, shortened to mu f_n where it is longer                                              (11.79)
    x' = - (K_t x + f_t) / D_t                                                                         (11.77)

x and v are vectors of the world in the plane of the normal. x is carried from normal to normal by projection,
so that there are no tangents that could jump, and no spring is stretched by it. Forces depend on nothing
that forward dynamics computes: any of its methods takes them as external forces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from dalembert.contact.compliant_surfaces import Surface
from dalembert.contact.geometry.candidates import Candidate
from dalembert.errors import DtypeError, ShapeError, own_errors, short_repr
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody
from dalembert.scalar import Scalar, exp, logical_and, select, sqrt
from dalembert.spatial import Force, Motion, Vec3


class PatchState(NamedTuple):
    """A patch of surface: `z` [m] along the normal, as many as the surface has states; `x` [m] across it."""

    z: list[Scalar]
    x: Vec3


class CompliantForces(NamedTuple):
    """Forces [N] on the second bodies of the candidates, world axes; on bodies, as `external_forces` in
    the frame "world" takes them; the rates of the patches' states."""

    points: list[Vec3]
    bodies: list[Force]
    rates: list[PatchState]


@final
@dataclass(frozen=True, slots=True)
class CompliantLaw:
    """The compliance of surfaces: `normal` to pressure; along them `friction_stiffness` K_t [N/m] and
    `friction_damping` D_t [N s/m]."""

    normal: Surface
    friction_stiffness: Scalar
    friction_damping: Scalar

    def __post_init__(self) -> None:
        if not isinstance(self.normal, Surface):
            raise DtypeError(f"CompliantLaw: normal is {short_repr(self.normal)}; give a Surface")


@own_errors
def friction_force(x: Vec3, v: Vec3, limit: Scalar, *, K: Scalar, D: Scalar) -> tuple[Vec3, Scalar]:
    """Return f_t = - K x - D v [N], within |f_t| <= `limit` = mu f_n, and whether the body sticks.

    Source: Featherstone 2008 Eqs 11.78, 11.79.

    >>> from dalembert.contact import friction_force
    >>> zero, slip = da.spatial.Vec3(0.0, 0.0, 0.0), da.spatial.Vec3(0.5, 0.0, 0.0)
    >>> force, sticks = friction_force(zero, slip, 3.0, K=1e4, D=100.0)
    >>> force.x, sticks
    (-3.0, False)
    """
    wanted = -(x * K + v * D)
    square = wanted.dot(wanted)
    sticks = square <= limit * limit
    return wanted * select(sticks, 1.0, limit / sqrt(select(sticks, 1.0, square))), sticks


@own_errors
def patches_at_rest(candidates: Sequence[Candidate], law: CompliantLaw) -> list[PatchState]:
    """Return the states of surfaces without load: z = 0, x = 0 at every candidate.

    >>> law = da.contact.CompliantLaw(da.contact.LinearSurface(1e4, 100.0), 1e4, 100.0)
    >>> da.contact.patches_at_rest([], law)
    []
    """
    return [PatchState([0.0] * law.normal.order, Vec3.zero()) for _ in candidates]


@own_errors
def compliant_forces(
    candidates: Sequence[Candidate],
    velocities: PerBody[Motion],
    states: Sequence[PatchState],
    law: CompliantLaw,
) -> CompliantForces:
    """Compute the forces at all candidates, and the rates of the states: Eqs (11.74) to (11.79).

    `candidates`: those of `contact.points.contact_points`; `velocities`: spatial velocities of the bodies
    in world coordinates, at the world's origin; `states`: one patch a candidate, at first `patches_at_rest`.
    Normal: f = max(0, - K z - D p'); friction: `friction_force`.

    >>> from dalembert.contact.geometry.candidates import Candidate, ContactPoint
    >>> from dalembert.model.tree import PerBody
    >>> from dalembert.spatial import Motion, Vec3
    >>> law = da.contact.CompliantLaw(da.contact.LinearSurface(1e4, 100.0), 1e4, 100.0)
    >>> where = ContactPoint(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 1.0), -0.002)  # 2 mm deep
    >>> touching, moving = [Candidate(-1, 0, 0.5, 0.0, where)], PerBody([Motion.zero()])
    >>> pressed = [da.contact.PatchState([-0.002], Vec3.zero())]
    >>> print(da.contact.compliant_forces(touching, moving, pressed, law).points[0].z)
    20.0
    """
    points, rates = [], []
    for item, state in _zip_states(candidates, states):
        now = _point_state(item, velocities, state, law)
        stretch = (now.x * law.friction_stiffness + now.f_t) / law.friction_damping
        points.append(item.point.normal * now.f_n + now.f_t)
        rates.append(PatchState(law.normal.rate(state.z, item.point.gap, now.p_rate), -stretch))
    forces = [Force.zero() for _ in velocities]
    for item, force in zip(candidates, points, strict=True):
        wrench = Force(item.point.position.cross(force), force)
        for body, acting in ((item.second, wrench), (item.first, -wrench)):
            if body != WORLD:
                forces[body] = forces[body] + acting
    return CompliantForces(points, forces, rates)


@own_errors
def patches_after(
    candidates: Sequence[Candidate],
    velocities: PerBody[Motion],
    states: Sequence[PatchState],
    law: CompliantLaw,
    dt: Scalar,
) -> list[PatchState]:
    """Return the states after dt [s] of steady motion, stable for any stiffness.

    Patches that stick move with the body, x = x + h v; others follow Eq. (11.77) exactly under the present
    friction.

    >>> from dalembert.contact.geometry.candidates import Candidate, ContactPoint
    >>> from dalembert.model.tree import PerBody
    >>> from dalembert.spatial import Motion, Vec3
    >>> law = da.contact.CompliantLaw(da.contact.LinearSurface(1e4, 100.0), 1e4, 100.0)
    >>> where = ContactPoint(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 1.0), -0.002)  # 2 mm deep
    >>> touching, moving = [Candidate(-1, 0, 0.5, 0.0, where)], PerBody([Motion.zero()])
    >>> pressed = [da.contact.PatchState([-0.002], Vec3.zero())]
    >>> after = da.contact.patches_after(touching, moving, pressed, law, 0.001)
    >>> print(round(after[0].z[0], 6))  # where the patch would be if it were let go
    -0.00181
    """
    decay = exp(-(law.friction_stiffness / law.friction_damping) * dt)
    found = []
    for item, state in _zip_states(candidates, states):
        now = _point_state(item, velocities, state, law)
        sticking = logical_and(now.sticks, now.f_n > 0.0)
        sliding = now.x * decay - now.f_t * ((1.0 - decay) / law.friction_stiffness)
        moved = now.x + now.slip * dt
        found.append(
            PatchState(
                law.normal.after(state.z, item.point.gap, now.p_rate, dt),
                Vec3(*(select(sticking, a, b) for a, b in zip(moved, sliding, strict=True))),
            )
        )
    return found


def point_velocity(item: Candidate, velocities: PerBody[Motion]) -> Vec3:
    """Return v_2 - v_1 [m/s] at the contact point, world axes."""
    total = Vec3.zero()
    for body, sign in ((item.second, 1.0), (item.first, -1.0)):
        if body != WORLD:
            motion = velocities[body]
            total = total + (motion.linear + motion.angular.cross(item.point.position)) * sign
    return total


class _PointState(NamedTuple):
    """The motion and forces of one candidate: p' [m/s]; the patch x [m] and its slip [m/s] across the normal;
    the forces [N]; whether it sticks."""

    p_rate: Scalar
    x: Vec3
    slip: Vec3
    f_n: Scalar
    f_t: Vec3
    sticks: Scalar


def _point_state(
    item: Candidate, velocities: PerBody[Motion], state: PatchState, law: CompliantLaw
) -> _PointState:
    """Return the motion of one candidate and the forces of its surface."""
    n, u = item.point.normal, point_velocity(item, velocities)
    p_rate = n.dot(u)
    x, slip = state.x - n * n.dot(state.x), u - n * p_rate
    f_n = law.normal.force(state.z, item.point.gap, p_rate)
    f_t, sticks = friction_force(
        x, slip, item.friction * f_n, K=law.friction_stiffness, D=law.friction_damping
    )
    return _PointState(p_rate, x, slip, f_n, f_t, sticks)


def _zip_states(
    candidates: Sequence[Candidate], states: Sequence[PatchState]
) -> zip[tuple[Candidate, PatchState]]:
    if len(candidates) != len(states):
        raise ShapeError(f"there are {len(candidates)} contact points and {len(states)} states of patches")
    return zip(candidates, states, strict=True)
