"""Compliant contact: forces from positions, velocities and surfaces' states (Featherstone 2008 section 11.8).

At every candidate point the second body presses on the first with the gap as p and p' = n . (v_2 - v_1);
its `Surface` gives the normal force. Along the surface a patch at x, on a spring K_t and a damper D_t,
holds the body by friction:

    f_stick = - K_t x - D_t v                                                                          (11.78)
    f_t = f_stick, shortened to mu f_n where it is longer                                              (11.79)
    x' = - (K_t x + f_t) / D_t                                                                         (11.77)

x and v are vectors of the world in the plane of the normal. x is carried from normal to normal by projection,
so that there are no tangents that could jump, and no spring is stretched by it. Forces depend on nothing
that forward dynamics computes: any of its methods takes them as external forces.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from dalembert.contact.narrow_phase.candidates import Candidate
from dalembert.errors import ArgumentError, DtypeError, ShapeError, own_errors, short_repr
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody
from dalembert.scalar import Scalar, exp, literal, logical_and, maximum, minimum, select, sqrt
from dalembert.spatial import Force, Motion, Vec3

# Compliant surfaces: massless patches on springs and dampers (Featherstone 2008 section 11.8).
#
# A patch S of the surface, at z along the normal (0 where it rests, negative where it is pressed in), carries
# a body B at p. Without mass, the forces of spring and damper on it balance the contact force f on B:
#
#     K z + D z' + f = 0                                                                               (11.73)
#     f = 0 if p > z, else max(0, - K z - D p')                                                        (11.74)
#
# In other words: a free patch returns at the rate r(z) = - K z / D; under a body it moves with it, z' = p',
# as long as the body leaves no faster than that, and f = D (r(z) - p'). Nonlinear springs and dampers make K
# z and D functions of z, and change nothing else. Between two moving bodies p is their relative position.
#
# In simulated time the states are where patches would be if let go: `after` a step they have relaxed freely
# and exactly, however stiff they are, so that they never limit the step; a body found below pushes them to
# min(z, p), where the force is taken. Contact lasts from step to step with a margin of r(z) dt, not by p = z.

SLIDING_MARGIN = 1e-12
"""The part of the squared friction limit within which a force counts as that of a sliding body: its length
has a rounding error."""

States = Sequence[Scalar]


@own_errors
def patch_rate(K: Scalar, D: Scalar, z: Scalar, f: Scalar) -> Scalar:
    """Return z' = - (K z + f) / D [m/s] of a linear patch under the force f [N]: Eq. (11.73).

    >>> da.contact.patch_rate(1e4, 100.0, -0.002, 0.0)  # pressed 2 mm in and let go
    0.2
    """
    return -(K * z + f) / D


@own_errors
def relaxed(K: Scalar, D: Scalar, z: Scalar, time: Scalar) -> Scalar:
    """Return z = z0 exp(- K t / D) [m]: the position of a linear patch `time` seconds after the body left it
    at z.

    The time and position of the last loss of contact can thus replace the state z.

    >>> from dalembert.contact import relaxed
    >>> round(relaxed(1e4, 100.0, -0.002, 0.01), 6)
    -0.000736
    """
    return z * exp(-(K / D) * time)


class Surface(ABC):
    """A compliant surface. `z`: its states, `order` of them; `p` [m], `p_rate` [m/s]: those of the body."""

    @property
    def order(self) -> int:
        """The number of states."""
        return 1

    def pushed(self, z: States, p: Scalar) -> list[Scalar]:
        """Return the positions of the patches under a body at p."""
        return [minimum(z[0], p)]

    @abstractmethod
    def force(self, z: States, p: Scalar, p_rate: Scalar) -> Scalar:
        """Return the force f >= 0 [N] on the body."""

    def tangent(self, z: States, p: Scalar, p_rate: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """Return f, df/dp [N/m] and df/dp' [N s/m], by dual numbers."""

        def force(x: list[Scalar]) -> Scalar:
            return self.force(list(z), x[0], x[1])

        f, by_p = directional_derivative(force, [p, p_rate], [1.0, 0.0], z)
        return f, by_p, directional_derivative(force, [p, p_rate], [0.0, 1.0], z)[1]

    @abstractmethod
    def rate(self, z: States, p: Scalar, p_rate: Scalar) -> list[Scalar]:
        """Return dz/dt [m/s]."""

    @abstractmethod
    def after(self, z: States, p: Scalar, p_rate: Scalar, dt: Scalar) -> list[Scalar]:
        """Return z after dt [s], released from where the body at p has pushed it."""


@final
@dataclass(frozen=True, slots=True)
class LinearSurface(Surface):
    """The surface of the book: spring `stiffness` K [N/m] and damper `damping` D [N s/m], Eqs (11.73),
    (11.74).

    >>> from dalembert.contact import LinearSurface
    >>> surface = LinearSurface(stiffness=1e4, damping=100.0)
    >>> surface.force([-1e-3], -1e-3, -0.02)
    12.0
    >>> surface.force([-1e-3], -1e-3, 0.2)
    0.0
    """

    stiffness: Scalar
    damping: Scalar

    def __post_init__(self) -> None:
        _positive("LinearSurface", stiffness=self.stiffness, damping=self.damping)

    def force(self, z: States, p: Scalar, p_rate: Scalar) -> Scalar:
        K, D = self.stiffness, self.damping
        return select(p > z[0], 0.0, maximum(-(K * p) - D * p_rate, 0.0))

    def rate(self, z: States, p: Scalar, p_rate: Scalar) -> list[Scalar]:
        return [patch_rate(self.stiffness, self.damping, minimum(z[0], p), self.force(z, p, p_rate))]

    def after(self, z: States, p: Scalar, p_rate: Scalar, dt: Scalar) -> list[Scalar]:
        return [relaxed(self.stiffness, self.damping, minimum(z[0], p), dt)]


@final
@dataclass(frozen=True, slots=True)
class Hertz(Surface):
    """The Hunt-Crossley surface f = K d^(3/2) (1 - c p'), d = -z: Hertz's spring of a ball, with damping.

    `stiffness` K [N/m^(3/2)], `dissipation` c [s/m]. The damper is c times the spring, so that the force
    begins at zero in an impact; a free patch returns at 1/c.
    """

    stiffness: Scalar
    dissipation: Scalar

    def __post_init__(self) -> None:
        _positive("Hertz", stiffness=self.stiffness, dissipation=self.dissipation)

    def force(self, z: States, p: Scalar, p_rate: Scalar) -> Scalar:
        depth = maximum(-p, 0.0)
        pressed = self.stiffness * depth * sqrt(depth) * (1.0 - self.dissipation * p_rate)
        return select(p > z[0], 0.0, maximum(pressed, 0.0))

    def rate(self, z: States, p: Scalar, p_rate: Scalar) -> list[Scalar]:
        free = select(minimum(z[0], p) < 0.0, 1.0 / self.dissipation, 0.0)
        return [select(p > z[0], free, minimum(p_rate, free))]

    def after(self, z: States, p: Scalar, p_rate: Scalar, dt: Scalar) -> list[Scalar]:
        return [minimum(minimum(z[0], p) + dt / self.dissipation, 0.0)]


@final
@dataclass(frozen=True, slots=True)
class SeriesSpring(Surface):
    """A spring `outer` K_s [N/m] in series with the linear pair K, D: f = max(0, K_s (z - p)).

    z, by Eq. (11.73), is the place between the two. The force needs no velocity and does not jump in an
    impact; it tends to that of `LinearSurface` as the outer spring grows stiff.
    """

    stiffness: Scalar
    damping: Scalar
    outer: Scalar

    def __post_init__(self) -> None:
        _positive("SeriesSpring", stiffness=self.stiffness, damping=self.damping, outer=self.outer)

    def pushed(self, z: States, p: Scalar) -> list[Scalar]:
        return list(z)

    def force(self, z: States, p: Scalar, p_rate: Scalar) -> Scalar:
        return maximum(self.outer * (z[0] - p), 0.0)

    def rate(self, z: States, p: Scalar, p_rate: Scalar) -> list[Scalar]:
        return [patch_rate(self.stiffness, self.damping, z[0], self.force(z, p, p_rate))]

    def after(self, z: States, p: Scalar, p_rate: Scalar, dt: Scalar) -> list[Scalar]:
        """Return z under a body that moves steadily, exact where contact neither begins nor ends.

        D z' + (K + K_s) z = K_s (p + p' t) is solved by z = s (p + p' (t - T)), s = K_s / (K + K_s),
        T = D / (K + K_s), plus a part that decays with T.
        """
        K, D, K_s = self.stiffness, self.damping, self.outer
        ratio, T = K_s / (K + K_s), D / (K + K_s)
        steady = ratio * (p - p_rate * T)
        pressed = steady + ratio * p_rate * dt + (z[0] - steady) * exp(-(dt / T))
        return [select(p + 0.5 * p_rate * dt < z[0], pressed, relaxed(K, D, z[0], dt))]


@final
@dataclass(frozen=True, slots=True)
class TwoSurfaces(Surface):
    """Two linear surfaces pressed on each other, each with its state: z_1 + z_2 = p in contact.

    One force f acts on both patches; that they stay together, z_1' + z_2' = p', gives

        f = - (p' + K_1 z_1 / D_1 + K_2 z_2 / D_2) / (1 / D_1 + 1 / D_2)                                  (1)
    """

    first: LinearSurface
    second: LinearSurface

    def __post_init__(self) -> None:
        for name, surface in (("first", self.first), ("second", self.second)):
            if not isinstance(surface, LinearSurface):
                raise DtypeError(f"TwoSurfaces: {name} is {short_repr(surface)}; give a LinearSurface")

    @property
    def order(self) -> int:
        return 2

    def pushed(self, z: States, p: Scalar) -> list[Scalar]:
        """Return the patches, which give way where they overlap the body, each in inverse ratio to its
        damper."""
        over = maximum(z[0] + z[1] - p, 0.0)
        ratio = self.second.damping / (self.first.damping + self.second.damping)
        return [z[0] - over * ratio, z[1] - over * (1.0 - ratio)]

    def force(self, z: States, p: Scalar, p_rate: Scalar) -> Scalar:
        a, b = self.pushed(z, p)
        yielding = 1.0 / self.first.damping + 1.0 / self.second.damping
        free = (
            -(self.first.stiffness * a / self.first.damping) - self.second.stiffness * b / self.second.damping
        )
        return select(p > z[0] + z[1], 0.0, maximum((free - p_rate) / yielding, 0.0))

    def rate(self, z: States, p: Scalar, p_rate: Scalar) -> list[Scalar]:
        f = self.force(z, p, p_rate)
        pair = zip((self.first, self.second), self.pushed(z, p), strict=True)
        return [patch_rate(surface.stiffness, surface.damping, x, f) for surface, x in pair]

    def after(self, z: States, p: Scalar, p_rate: Scalar, dt: Scalar) -> list[Scalar]:
        pair = zip((self.first, self.second), self.pushed(z, p), strict=True)
        return [relaxed(surface.stiffness, surface.damping, x, dt) for surface, x in pair]


@own_errors
def lumped(first: LinearSurface, second: LinearSurface) -> LinearSurface:
    """Return one surface that replaces two with the same K / D, springs and dampers in series:
    1/K = 1/K_1 + 1/K_2, 1/D = 1/D_1 + 1/D_2.

    >>> from dalembert.contact import LinearSurface, lumped
    >>> lumped(LinearSurface(stiffness=2e4, damping=200.0), LinearSurface(stiffness=3e4, damping=300.0))
    LinearSurface(stiffness=12000.0, damping=120.0)
    """
    ratios = [literal(surface.stiffness / surface.damping) for surface in (first, second)]
    if None not in ratios and abs(ratios[0] - ratios[1]) > 1e-9 * abs(ratios[0]):  # type: ignore[operator,arg-type]
        raise ArgumentError(
            f"lumped: K/D is {ratios[0]:.6g} 1/s of one surface and {ratios[1]:.6g} 1/s of the other; "
            "only surfaces with the same ratio lump together: use TwoSurfaces"
        )
    return LinearSurface(
        first.stiffness * second.stiffness / (first.stiffness + second.stiffness),
        first.damping * second.damping / (first.damping + second.damping),
    )


def _positive(name: str, **values: Scalar) -> None:
    for key, value in values.items():
        try:
            known = literal(value)
        except OverflowError:  # an int beyond all floats
            known = float("inf")
        if known is not None and not 0.0 < known < float("inf"):
            raise ArgumentError(
                f"{name}: {key} is {short_repr(value)}; give a finite number greater than zero"
            )


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

    >>> from dalembert.contact.narrow_phase.candidates import Candidate, ContactPoint
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

    >>> from dalembert.contact.narrow_phase.candidates import Candidate, ContactPoint
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
    K, D = law.friction_stiffness, law.friction_damping
    found = []
    for item, state in _zip_states(candidates, states):
        now = _point_state(item, velocities, state, law)
        found.append(
            PatchState(
                law.normal.after(state.z, item.point.gap, now.p_rate, dt),
                moved_patch(now.x, now.slip, now.f_t, item.friction * now.f_n, dt, K=K, D=D),
            )
        )
    return found


def moved_patch(x: Vec3, slip: Vec3, f_t: Vec3, limit: Scalar, dt: Scalar, *, K: Scalar, D: Scalar) -> Vec3:
    """Return the patch after dt [s] under the friction f_t, within `limit` = mu f_n: with the body where it
    sticks, else by Eq. (11.77), exactly."""
    decay = exp(-(K / D) * dt)
    sticking = logical_and(f_t.dot(f_t) < limit * limit * (1.0 - SLIDING_MARGIN), limit > 0.0)
    sliding, moved = x * decay - f_t * ((1.0 - decay) / K), x + slip * dt
    return Vec3(*(select(sticking, a, b) for a, b in zip(moved, sliding, strict=True)))


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
