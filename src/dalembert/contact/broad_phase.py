"""Which of many pairs are nearest: each shape in a capsule, the gaps of the capsules, the least of them.

The gap between the capsules around two shapes is at most that between the shapes, and the same where both
are spheres or capsules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from dalembert.contact.candidates import ABSENT_POINT_GAP
from dalembert.contact.geometry.rounded import nearest_on_segments
from dalembert.contact.geometry.sizes import RoundedForm, form_of, sizes_of
from dalembert.model.shapes import Box, Shape
from dalembert.scalar import Scalar, maximum, minimum, select, sqrt
from dalembert.spatial import Transform, Vec3

__all__ = ["Around", "Nearest", "around", "bounding_capsule", "gap_of", "nearest_of", "put"]


class Around(NamedTuple):
    """A capsule in the world: the middle and unit direction of its axis, half its length, its radius."""

    middle: Vec3
    axis: Vec3
    half: float
    radius: float


class Nearest(NamedTuple):
    """The least numbers of many and whose they are, in order, and the least of those that are left out."""

    gaps: list[Scalar]
    numbers: list[Scalar]
    left_out: Scalar


def bounding_capsule(shape: Shape) -> tuple[int, float, float]:
    """Along which of its own axes, half the length, and the radius of a capsule around a shape.

    That of an ellipsoid, a >= b >= c: radius b, half length a - b.
    """
    sizes = sizes_of(shape)
    if form_of(shape) is RoundedForm:
        return 2, 0.5 * sizes[1], sizes[0]
    axis = max(range(3), key=lambda i: sizes[i])
    others = [sizes[i] for i in range(3) if i != axis]
    if isinstance(shape, Box):
        return axis, 0.5 * sizes[axis], 0.5 * math.hypot(*others)
    return axis, sizes[axis] - max(others), max(others)


def around(shape: Shape, X: Transform) -> Around:
    """The capsule around a shape whose frame is at X."""
    axis, half, radius = bounding_capsule(shape)
    return Around(X.p, X.R.column(axis), half, radius)


def gap_of(a: Around, b: Around) -> Scalar:
    """The distance [m] between two capsules, negative where they overlap."""
    offset = b.middle - a.middle
    s, t = nearest_on_segments(offset, a.axis, a.half, b.axis, b.half)
    apart = offset + b.axis * t - a.axis * s
    return sqrt(apart.dot(apart)) - (a.radius + b.radius)


def nearest_of(found: Iterable[tuple[Scalar, Scalar]], count: int) -> Nearest:
    """The `count` least of (gap, number), the least first."""
    near = Nearest([ABSENT_POINT_GAP] * count, [-1.0] * count, ABSENT_POINT_GAP)
    for gap, number in found:
        near = put(near, gap, number)
    return near


def put(near: Nearest, gap: Scalar, number: Scalar) -> Nearest:
    """One more put in its place."""
    gaps, numbers = [], []
    for own_gap, own_number in zip(near.gaps, near.numbers, strict=True):
        nearer = gap < own_gap
        numbers.append(select(nearer, number, own_number))
        gaps.append(minimum(gap, own_gap))
        gap, number = maximum(gap, own_gap), select(nearer, own_number, number)
    return Nearest(gaps, numbers, minimum(near.left_out, gap))
