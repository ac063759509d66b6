"""Line search along a direction of Newton's method: to where the slope of the cost is nearly zero.

Along v + alpha d the velocity of a point is u + alpha y, and all that its force needs is a few numbers:

    gamma_n = max(0, g - alpha k s),    s = n . y,    g: gamma_n at alpha = 0, unlimited                   (1)
    |pull|^2 = P . P - alpha k_t (2 P . y - alpha k_t y_t . y_t),    P: the pull at alpha = 0              (2)
    y . f = s gamma_n + min(1, limit / |pull|) (P . y - alpha k_t y_t . y_t)                               (3)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dalembert.contact.costs import MIN_SQUARED_PULL, Equality, Point, RangeEnd
from dalembert.contact.gauss import GaussProblem
from dalembert.scalar import (
    Scalar,
    absolute,
    is_zero,
    logical_and,
    logical_or,
    loop,
    maximum,
    minimum,
    select,
    sqrt,
)
from dalembert.spatial import Vec3

__all__ = ["line_search"]

MAX_TRIAL_STEPS = 12
"""The most trial steps after the full step."""

TARGET_SLOPE_RATIO = 0.1
"""The ratio of the slope of the cost to its initial slope at which the search ends."""


class _Along(NamedTuple):
    """The data of a point along the line: g, s, k s, P . P, P . y, k_t y_t . y_t, k_t and the limit of its
    friction."""

    pressing: Scalar
    opening: Scalar
    relief: Scalar
    square: Scalar
    work: Scalar
    bend: Scalar
    stiffness: Scalar
    limit: Scalar

    def power(self, alpha: Scalar) -> Scalar:
        """Return y . f of Eq. (3)."""
        normal = self.opening * maximum(self.pressing - alpha * self.relief, 0.0)
        if is_zero(self.limit):
            return normal
        work = self.work - alpha * self.bend
        square = self.square - alpha * (self.stiffness * (self.work + work))
        ratio = minimum(self.limit / sqrt(maximum(square, MIN_SQUARED_PULL)), 1.0)
        return normal + ratio * work


def _along(point: Point, u: Vec3, y: Vec3, friction_bound: Scalar) -> _Along:
    opening, pull = point.normal.dot(y), point.pull(u)
    across = y - point.normal * opening
    return _Along(
        point.pressing(u),
        opening,
        point.stiffness * opening,
        pull.dot(pull),
        pull.dot(across),
        point.friction_stiffness * across.dot(across),
        point.friction_stiffness,
        point.friction * friction_bound,
    )


def line_search(
    problem: GaussProblem,
    v: Sequence[Scalar],
    d: Sequence[Scalar],
    u: Sequence[Vec3],
    change: Sequence[Vec3],
    friction_bounds: Sequence[Scalar],
    start: Scalar,
    slope: Scalar,
    bend: Scalar,
) -> Scalar:
    """Return the alpha at which the slope of the cost along d is nearly zero.

    The slope is slope + alpha bend - sum of y . f, `start` < 0 at zero, and grows with alpha; `change` are
    the y. Where it is positive after the full step, its zero is found by false position (Illinois).
    """
    lines = [
        _along(point, x, y, h)
        for point, x, y, h in zip(problem.points, u, change, friction_bounds, strict=True)
    ]
    rates = [(joint, v[joint.place], d[joint.place]) for joint in problem.joints]
    constraints: list[Equality | RangeEnd] = [*problem.equalities, *problem.ranges]
    rows = [(e, e.velocity(v), e.velocity(d)) for e in constraints]

    def slope_at(alpha: Scalar) -> Scalar:
        total = slope + alpha * bend
        for line in lines:
            total = total - line.power(alpha)
        for joint, x, y in rates:
            total = total - y * joint.impulse(x + alpha * y)
        for equality, x, y in rows:
            total = total - y * equality.impulse(x + alpha * y)
        return total

    enough = absolute(start) * TARGET_SLOPE_RATIO

    def trial(carry: Any) -> Any:
        low, at_low, high, at_high, _, _, side = carry
        gap = at_high - at_low
        alpha = low - (high - low) * (at_low / select(gap > 0.0, gap, 1.0))
        found = slope_at(alpha)
        rising = found > 0.0
        # Illinois rule: halve the value of an end that stays for a second time, or it would stay for ever.
        at_low = select(side > 0.0, 0.5 * at_low, at_low)
        at_high = select(side < 0.0, 0.5 * at_high, at_high)
        return [
            select(rising, low, alpha),
            select(rising, at_low, found),
            select(rising, alpha, high),
            select(rising, found, at_high),
            alpha,
            found,
            select(rising, 1.0, -1.0),
        ]

    def flat(carry: Any) -> Any:
        alpha, found = carry[4], carry[5]
        return logical_or(absolute(found) <= enough, logical_and(alpha >= 1.0, found <= 0.0))

    whole = slope_at(1.0)
    low, _, _, _, alpha, found, _ = loop(
        MAX_TRIAL_STEPS, trial, [0.0, start, 1.0, whole, 1.0, whole, 0.0], until=flat
    )
    return select(logical_and(found > enough, low > 0.0), low, alpha)
