"""The nearest points of two convex solids, after Gilbert, Johnson and Keerthi 1988.

A triangle of extreme differences moves towards the origin: each step takes the extreme difference w against
the triangle's nearest point v, and the nearest of the three triangles that w makes with
two old corners. It ends where |v|^2 - v . w says that nothing is nearer, or where the origin is between the
old triangle and w: then the solids overlap.
"""

from __future__ import annotations

from typing import NamedTuple

from dalembert.contact.geometry.differences import Extreme, SolidPair, Triangle, choose_triangle
from dalembert.contact.geometry.directions import choose
from dalembert.contact.geometry.simplices import Nearest, holds_origin, nearer, nearest_on_triangle
from dalembert.scalar import Scalar, logical_or, loop, select
from dalembert.spatial import Vec3

__all__ = ["Search", "nearest_differences"]

MAX_GJK_ITERATIONS = 40
"""The most extreme differences that a search takes."""
GJK_TOLERANCE = 1e-11
"""The relative change of the squared distance below which the search has converged."""


class Search(NamedTuple):
    """A triangle of differences, its point nearest to the origin, the last corner tried, and the state:
    0 searching, 1 converged, 2 overlapping.
    """

    corners: Triangle
    nearest: Nearest
    apex: Extreme
    state: Scalar

    @property
    def overlaps(self) -> Scalar:
        return self.state > 1.5

    def on_a(self) -> Vec3:
        """Return the point of a that is nearest."""
        total = Vec3.zero()
        for corner, weight in zip(self.corners, self.nearest.weights, strict=True):
            total = total + corner.a * weight
        return total


def nearest_differences(pair: SolidPair, start: Vec3, scale: float = 1.0, skip: Scalar = False) -> Search:
    """Return the nearest differences of the cores, shrunk by `scale`; where `skip` holds, do not search."""
    first = pair.extreme(-start, scale)
    nearest = Nearest(first.w, first.w.dot(first.w), Vec3(1.0, 0.0, 0.0))
    begin = Search((first, first, first), nearest, first, select(skip, 2.0, 0.0))
    return loop(
        MAX_GJK_ITERATIONS,
        lambda search: _step(search, pair.extreme(-search.nearest.point, scale)),
        begin,
        until=lambda search: search.state > 0.5,
    )


def _step(search: Search, new: Extreme) -> Search:
    one, two, three = search.corners
    triangles: list[Triangle] = [(one, two, new), (two, three, new), (three, one, new)]
    closest, best = triangles[0], _nearest(triangles[0])
    for triangle in triangles[1:]:
        found = _nearest(triangle)
        closest = choose_triangle(found.square < best.square, triangle, closest)
        best = nearer(found, best)
    v, square = search.nearest.point, search.nearest.square
    found_it = logical_or(square - v.dot(new.w) <= GJK_TOLERANCE * square, best.square >= square)
    inside = holds_origin(one.w, two.w, three.w, new.w)
    stays = logical_or(found_it, inside)
    return Search(
        choose_triangle(stays, search.corners, closest),
        Nearest(
            choose(stays, v, best.point),
            select(stays, square, best.square),
            choose(stays, search.nearest.weights, best.weights),
        ),
        new,
        select(inside, 2.0, select(found_it, 1.0, 0.0)),
    )


def _nearest(triangle: Triangle) -> Nearest:
    one, two, three = triangle
    return nearest_on_triangle(one.w, two.w, three.w)
