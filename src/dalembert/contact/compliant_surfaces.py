"""Compliant surfaces: massless patches on springs and dampers (Featherstone 2008 section 11.8).

A patch S of the surface, at z along the normal (0 where it rests, negative where it is pressed in), carries a
body B at p. Without mass, the forces of spring and damper on it balance the contact force f on B:

    K z + D z' + f = 0                                                                                 (11.73)
    f = 0 if p > z, else max(0, - K z - D p')                                                          (11.74)

In other words: a free patch returns at the rate r(z) = - K z / D; under a body it moves with it, z' = p', as
long as the body leaves no faster than that, and f = D (r(z) - p'). Nonlinear springs and dampers make K z
and D functions of z, and change nothing else. Between two moving bodies p is their relative position.

In simulated time the states are where patches would be if let go: `after` a step they have relaxed freely and
exactly, however stiff they are, so that they never limit the step; a body found below pushes them to
min(z, p), where the force is taken. Contact lasts from step to step with a margin of r(z) dt, not by p = z.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.errors import ArgumentError, DtypeError, own_errors, short_repr
from dalembert.scalar import Scalar, exp, literal, maximum, minimum, select, sqrt

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
