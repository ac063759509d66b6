"""Rays against planes, boxes and height fields: the way to the first surface.

A ray is o + t d with a unit vector d and 0 <= t <= reach. A ray that begins inside a solid has the way zero.
A height field is walked through triangle by triangle: from one crossing of a grid line or a diagonal to the
next, the surface below the ray is a plane.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from dalembert.contact.narrow_phase.grounds import Terrain
from dalembert.errors import ModelError
from dalembert.model.shapes import Box, HeightField, Plane, Shape
from dalembert.scalar import (
    Scalar,
    absolute,
    floor,
    logical_and,
    logical_or,
    loop,
    maximum,
    minimum,
    select,
)
from dalembert.spatial import Vec3

LEAST_COMPONENT: Final = 1e-12
"""Components of a direction below this count as this."""

CROSSING_MARGIN: Final = 1e-9
"""How far [cells] beyond a crossing the next triangle is looked up."""


def way_to(shapes: Sequence[Shape], o: Vec3, d: Vec3, reach: float) -> Scalar:
    """Return the way t [m] of a ray to the first of some shapes, `reach` where it meets nothing."""
    found: Scalar = reach
    for shape in shapes:
        X = shape.placement.as_transform()
        local = X.inverse_transform_point(o), X.rotate_to_child(d)
        found = minimum(found, _WAYS[type(shape)](shape, *local, reach))
    return found


def visible_shapes(shapes: Sequence[Shape]) -> list[Shape]:
    """Return the shapes of the world that rays meet: those that collide; refuse kinds that they cannot."""
    found = [shape for shape in shapes if shape.collision]
    for shape in found:
        if type(shape) not in _WAYS:
            raise ModelError(
                f'rays meet planes, boxes and height fields; the world has a {shape.kind} "{shape.name}": '
                "give it collision=False, or a box around it"
            )
    return found


def _plane(shape: Plane, o: Vec3, d: Vec3, reach: float) -> Scalar:
    down = maximum(-d.z, LEAST_COMPONENT)
    return select(o.z <= 0.0, 0.0, select(d.z < 0.0, minimum(o.z / down, reach), reach))


def _box(shape: Box, o: Vec3, d: Vec3, reach: float) -> Scalar:
    """Return the way to the last of the three slabs that is entered, if none was left before."""
    enters: Scalar = 0.0
    leaves: Scalar = reach
    for x, speed, edge in zip(o, d, shape.size, strict=True):
        inverse = 1.0 / _not_zero(speed)
        a, b = (-0.5 * edge - x) * inverse, (0.5 * edge - x) * inverse
        enters, leaves = maximum(enters, minimum(a, b)), minimum(leaves, maximum(a, b))
    return select(enters <= leaves, enters, reach)


def _height_field(shape: HeightField, o: Vec3, d: Vec3, reach: float) -> Scalar:
    terrain = Terrain.of(shape)
    per_x, per_y = (len(shape.heights[0]) - 1) / shape.size[0], (len(shape.heights) - 1) / shape.size[1]
    u0, v0 = (o.x + 0.5 * shape.size[0]) * per_x, (o.y + 0.5 * shape.size[1]) * per_y
    du, dv = d.x * per_x, d.y * per_y
    lines = [(u0, du), (v0, dv), (u0 - v0, du - dv)]
    most = math.ceil(2.0 * reach * (per_x + per_y)) + 3

    def walk(carry: list[Scalar]) -> list[Scalar]:
        """Look at the triangle that begins at t; the ray has met it, or goes on to the next."""
        t, met, _ = carry
        ahead = [(start + rate * t, rate) for start, rate in lines]
        follows = t + minimum(minimum(_crossing(*ahead[0]), _crossing(*ahead[1])), _crossing(*ahead[2]))
        follows = minimum(follows, reach)
        middle: Vec3 = o + d * (0.5 * (t + follows))
        n, distance = terrain.plane_under(o, middle)
        sinks = maximum(-n.dot(d), LEAST_COMPONENT)
        here = select(n.dot(d) < 0.0, distance / sinks, reach)
        under = distance + n.dot(d) * t <= 0.0
        way = select(under, t, here)
        meets = logical_and(terrain.has(middle), logical_or(under, way <= follows))
        done = select(logical_or(meets, follows >= reach), 1.0, 0.0)
        return [follows, select(meets, way, met), done]

    start: list[Scalar] = [0.0 * d.x, reach + 0.0 * d.x, 0.0 * d.x]
    return loop(most, walk, start, until=lambda carry: carry[2] > 0.0)[1]


def _crossing(x: Scalar, rate: Scalar) -> Scalar:
    """Return the way from x to the next whole number."""
    speed = absolute(rate)
    along = select(rate < 0.0, -x, x) + CROSSING_MARGIN
    return (floor(along) + 1.0 - along + CROSSING_MARGIN) / maximum(speed, LEAST_COMPONENT)


def _not_zero(x: Scalar) -> Scalar:
    return select(absolute(x) < LEAST_COMPONENT, LEAST_COMPONENT, x)


_WAYS: Final[dict[type[Shape], Callable[[Any, Vec3, Vec3, float], Scalar]]] = {
    Plane: _plane,
    Box: _box,
    HeightField: _height_field,
}
