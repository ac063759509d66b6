"""Broad phase: nearest neighbours among many pairs by the gaps of their bounding capsules.

The gap between the bounding capsules of two shapes is at most that between the shapes, and the same where
both are spheres or capsules.
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

__all__ = [
    "BoundingCapsule",
    "NearestNeighbours",
    "bounding_volume",
    "capsule_dimensions",
    "capsule_gap",
    "nearest_neighbours",
    "insert",
]


class BoundingCapsule(NamedTuple):
    """A capsule in the world: the middle and unit direction of its axis, half its length, its radius."""

    middle: Vec3
    axis: Vec3
    half: float
    radius: float


class NearestNeighbours(NamedTuple):
    """The least gaps [m] in ascending order, the indices of their pairs, and the least gap that is
    dropped."""

    gaps: list[Scalar]
    numbers: list[Scalar]
    least_dropped_gap: Scalar


def capsule_dimensions(shape: Shape) -> tuple[int, float, float]:
    """Return the axis index, the half length and the radius of the bounding capsule of a shape.

    For an ellipsoid, a >= b >= c: radius b, half length a - b.
    """
    sizes = sizes_of(shape)
    if form_of(shape) is RoundedForm:
        return 2, 0.5 * sizes[1], sizes[0]
    axis = max(range(3), key=lambda i: sizes[i])
    others = [sizes[i] for i in range(3) if i != axis]
    if isinstance(shape, Box):
        return axis, 0.5 * sizes[axis], 0.5 * math.hypot(*others)
    return axis, sizes[axis] - max(others), max(others)


def bounding_volume(shape: Shape, X: Transform) -> BoundingCapsule:
    """Return the bounding capsule of a shape whose frame is at X."""
    axis, half, radius = capsule_dimensions(shape)
    return BoundingCapsule(X.p, X.R.column(axis), half, radius)


def capsule_gap(a: BoundingCapsule, b: BoundingCapsule) -> Scalar:
    """Return the distance [m] between two capsules, negative where they overlap."""
    offset = b.middle - a.middle
    s, t = nearest_on_segments(offset, a.axis, a.half, b.axis, b.half)
    apart = offset + b.axis * t - a.axis * s
    return sqrt(apart.dot(apart)) - (a.radius + b.radius)


def nearest_neighbours(found: Iterable[tuple[Scalar, Scalar]], count: int) -> NearestNeighbours:
    """Return the `count` least of (gap, number), in ascending order."""
    near = NearestNeighbours([ABSENT_POINT_GAP] * count, [-1.0] * count, ABSENT_POINT_GAP)
    for gap, number in found:
        near = insert(near, gap, number)
    return near


def insert(near: NearestNeighbours, gap: Scalar, number: Scalar) -> NearestNeighbours:
    """Insert one pair into the sorted list by its gap."""
    gaps, numbers = [], []
    for own_gap, own_number in zip(near.gaps, near.numbers, strict=True):
        nearer = gap < own_gap
        numbers.append(select(nearer, number, own_number))
        gaps.append(minimum(gap, own_gap))
        gap, number = maximum(gap, own_gap), select(nearer, own_number, number)
    return NearestNeighbours(gaps, numbers, minimum(near.least_dropped_gap, gap))
