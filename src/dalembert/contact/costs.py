"""What contact, limits and friction add to Gauss's cost: forces and curvatures as functions of velocities.

Every term is convex and piecewise quadratic in the velocity u that it opposes; `stiffness` is 1 / R of the
compliance R [1/kg] of its impulses [N s]. A point compares itself with the impulse that it `expected`, that
of the step before: what lasts is borne without any give, however soft R.

    normal      gamma_n = max(0, expected_n + (bound - u_n) / R_n)                                       (1)
    friction    gamma_t = the part of expected_t - u_t / R_t within |gamma_t| <= limit,                  (2)
                limit = mu gamma_n of an earlier iterate
    joint       (1) and (2) of one velocity variable: limits, dry friction, motors, with a given limit
    equality    gamma = (target - K v) / R                                                               (3)
    range       (1) of a row: the end of a range of a coordinate that several variables move

The curvature of (2) is 1 / R_t where it sticks, and less by the share that the limit leaves across the pull
where it slides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from dalembert.contact.chosen_points import Rows
from dalembert.scalar import Scalar, absolute, is_zero, maximum, minimum, select, sqrt
from dalembert.spatial import ArticulatedInertia, Force, Mat3, SymMat3, Vec3

__all__ = ["LEAST_SQUARE", "Equality", "JointDrive", "JointLimit", "Point", "PointForce", "RangeEnd", "dyad"]


LEAST_SQUARE = 1e-30
"""Pulls of less than 1e-15 N s have this square: one that single precision has too."""


class PointForce(NamedTuple):
    """The impulse [N s] on the second body at a point, and its normal part."""

    impulse: Vec3
    normal: Scalar


@final
@dataclass(frozen=True, slots=True)
class Point:
    """A place where two bodies may touch, `arm` from the common origin; `normal` from `first` to `second`.

    `bound`: the least normal velocity [m/s]; `expected`: the impulse [N s] along world axes that the point is
    thought to bear; `rows`: its Jacobian, where its bodies are known only as the program runs.
    """

    first: int
    second: int
    arm: Vec3
    normal: Vec3
    bound: Scalar
    friction: Scalar
    stiffness: Scalar
    friction_stiffness: Scalar
    expected: Vec3
    rows: Rows | None = None

    def pressing(self, u: Vec3) -> Scalar:
        """gamma_n without its bound."""
        return self.normal.dot(self.expected) + self.stiffness * (self.bound - self.normal.dot(u))

    def normal_impulse(self, u: Vec3) -> Scalar:
        """gamma_n of Eq. (1)."""
        return maximum(self.pressing(u), 0.0)

    def force(self, u: Vec3, held: Scalar) -> PointForce:
        """Eqs (1) and (2), with the friction that a normal impulse `held` allows."""
        gamma = self.normal_impulse(u)
        if is_zero(self.friction):
            return PointForce(self.normal * gamma, gamma)
        pull = self.pull(u)
        share = minimum(self._allowed(pull, held)[0], 1.0)
        return PointForce(self.normal * gamma + pull * share, gamma)

    def slides(self, u: Vec3, held: Scalar) -> Scalar:
        """Whether friction is less than half of what would stop the slip."""
        return self._allowed(self.pull(u), held)[0] < 0.5

    def pull(self, u: Vec3) -> Vec3:
        """The friction that would stop the slip."""
        wanted = self.expected - u * self.friction_stiffness
        slanted: Vec3 = wanted - self.normal * self.normal.dot(wanted)
        return slanted

    def curvature(self, u: Vec3, held: Scalar) -> SymMat3:
        """G: minus the derivative of the impulse by u."""
        n = self.normal
        active = select(self.pressing(u) > 0.0, self.stiffness, 0.0)
        if is_zero(self.friction):
            return dyad(n, active)
        pull = self.pull(u)
        allowed, reciprocal = self._allowed(pull, held)
        coefficient = minimum(allowed, 1.0) * self.friction_stiffness
        across = _plus(dyad(n, active - coefficient), coefficient)
        sliding = select(allowed < 1.0, coefficient * (reciprocal * reciprocal), 0.0)
        return across - dyad(pull, sliding)

    def _allowed(self, pull: Vec3, held: Scalar) -> tuple[Scalar, Scalar]:
        """The share of the pull that friction can give, 1 or more where it sticks, and 1 / |pull|."""
        reciprocal = 1.0 / sqrt(maximum(pull.dot(pull), LEAST_SQUARE))
        return self.friction * held * reciprocal, reciprocal

    def wrench(self, impulse: Vec3) -> Force:
        """The impulse about the common origin."""
        return Force(self.arm.cross(impulse), impulse)

    def inertia(self, G: SymMat3) -> ArticulatedInertia:
        """[[r x G r x^T, r x G], [., G]]: the curvature as a matrix on spatial velocities."""
        turned = self.arm.skew() @ Mat3(G.xx, G.xy, G.xz, G.xy, G.yy, G.yz, G.xz, G.yz, G.zz)
        columns = turned @ self.arm.skew().transpose()
        return ArticulatedInertia(
            SymMat3(columns.xx, columns.yy, columns.zz, columns.xy, columns.xz, columns.yz), turned, G
        )


@final
@dataclass(frozen=True, slots=True)
class JointLimit:
    """sign v[place] >= bound: one end of the range of a joint; `room`: how far it may still go there."""

    place: int
    sign: float
    bound: Scalar
    overlap: Scalar
    stiffness: Scalar
    room: Scalar = math.inf

    def impulse(self, u: Scalar) -> Scalar:
        """On v[place]; u = v[place]."""
        return self.stiffness * maximum(self.bound - u * self.sign, 0.0) * self.sign

    def curvature(self, u: Scalar) -> Scalar:
        return select(u * self.sign < self.bound, self.stiffness, 0.0)


@final
@dataclass(frozen=True, slots=True)
class JointDrive:
    """What pulls one velocity variable towards `target` with an impulse of `limit` at most.

    Dry friction: target 0, stiff. A motor under PD control: its gains, and its largest torque.
    """

    place: int
    target: Scalar
    stiffness: Scalar
    limit: Scalar

    def impulse(self, u: Scalar) -> Scalar:
        """On v[place]; u = v[place]."""
        wanted = (self.target - u) * self.stiffness
        return maximum(minimum(wanted, self.limit), -self.limit)

    def curvature(self, u: Scalar) -> Scalar:
        return select(absolute((self.target - u) * self.stiffness) < self.limit, self.stiffness, 0.0)


@final
@dataclass(frozen=True, slots=True)
class Equality:
    """K v = target, one row of a loop or another constraint; `gap` is mended by a displacement."""

    row: Sequence[Scalar]
    target: Scalar
    gap: Scalar
    stiffness: Scalar

    def velocity(self, v: Sequence[Scalar]) -> Scalar:
        """K v."""
        return _along(self.row, v)

    def impulse(self, u: Scalar) -> Scalar:
        """Along the row; u = K v."""
        return (self.target - u) * self.stiffness

    def add(self, gamma: Scalar, total: list[Scalar]) -> None:
        """total + K^T gamma, in place."""
        _add(self.row, gamma, total)


@final
@dataclass(frozen=True, slots=True)
class RangeEnd:
    """K v >= bound: one end of the range of a coordinate that several velocity variables move."""

    row: Sequence[Scalar]
    bound: Scalar
    overlap: Scalar
    stiffness: Scalar

    def velocity(self, v: Sequence[Scalar]) -> Scalar:
        """K v."""
        return _along(self.row, v)

    def impulse(self, u: Scalar) -> Scalar:
        """Along the row; u = K v."""
        return self.stiffness * maximum(self.bound - u, 0.0)

    def add(self, gamma: Scalar, total: list[Scalar]) -> None:
        """total + K^T gamma, in place."""
        _add(self.row, gamma, total)

    def held(self, reached: Scalar, target: Scalar) -> Equality:
        """K v = target where the end is reached, and nothing elsewhere."""
        return Equality(self.row, target, -self.overlap, select(reached, self.stiffness, 0.0))


def _along(row: Sequence[Scalar], v: Sequence[Scalar]) -> Scalar:
    """K v, without structural zeros."""
    total: Scalar = 0.0
    for k, x in zip(row, v, strict=True):
        if not is_zero(k):
            total = total + k * x
    return total


def _add(row: Sequence[Scalar], gamma: Scalar, total: list[Scalar]) -> None:
    for i, k in enumerate(row):
        if not is_zero(k):
            total[i] = total[i] + k * gamma


def dyad(a: Vec3, factor: Scalar) -> SymMat3:
    """factor a a^T."""
    x, y, z = a.x * factor, a.y * factor, a.z * factor
    return SymMat3(x * a.x, y * a.y, z * a.z, x * a.y, x * a.z, y * a.z)


def _plus(S: SymMat3, c: Scalar) -> SymMat3:
    """S + c 1."""
    return SymMat3(S.xx + c, S.yy + c, S.zz + c, S.xy, S.xz, S.yz)
