"""Dynamic pairs: the nearest points between moving bodies, where there are many pairs.

All pairs are ranked by the gaps between their bounding capsules (`broad_phase`), pairs of the same two forms
together, since one piece of code then computes the points of any pair of two forms; the nearest of all points
are kept. The least gap of the dropped pairs is known, so that a missed contact is detected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias, final

from dalembert.contact.broad_phase import NearestNeighbours, bounding_volume, capsule_gap, nearest_neighbours
from dalembert.contact.candidates import ABSENT_POINT_GAP, Candidate, ContactPoint
from dalembert.contact.chosen_points import (
    MAX_POINTS_PER_PAIR,
    RUNTIME_BODY,
    IdentifiedPoint,
    NearestPoints,
    RuntimeBodies,
    empty_points,
    insert_by_gap,
    pair_number,
    table_entry,
)
from dalembert.contact.geometry import closest_points
from dalembert.contact.geometry.sizes import FORMS, Form, form_of, sizes_of
from dalembert.contact.pairs import ContactPair, Placed
from dalembert.contact.points import poses_of
from dalembert.model.tree import PerBody
from dalembert.scalar import Scalar, loop, minimum, select
from dalembert.spatial import Transform

__all__ = ["DynamicPairs"]

Forms: TypeAlias = tuple[type[Form], type[Form]]


@final
@dataclass(frozen=True, slots=True)
class DynamicPairs:
    """Pairs of moving bodies, of which the `count` nearest points are computed."""

    pairs: tuple[ContactPair, ...]
    count: int

    def points(self, poses: PerBody[Transform], reach: Scalar) -> NearestPoints:
        """Return the nearest points; pairs farther apart than `reach` [m] are skipped."""
        pose = poses_of(poses)
        kept, dropped_gaps = empty_points(self.count), []
        for forms, numbers in self._families().items():
            family = _Family(self.pairs, forms, tuple(numbers))
            near = family.nearest(pose, self.count)
            kept, dropped = family.insert(kept, near, pose, reach)
            dropped_gaps += [near.least_dropped_gap, dropped]
        return NearestPoints(
            [self._candidate(item) for item in kept],
            [item.point_id for item in kept],
            reduce(minimum, dropped_gaps),
        )

    def _candidate(self, kept: IdentifiedPoint) -> Candidate:
        number = pair_number(kept.point_id)
        bodies = RuntimeBodies(number, tuple((pair.first.body, pair.second.body) for pair in self.pairs))
        return Candidate(
            first=RUNTIME_BODY,
            second=RUNTIME_BODY,
            friction=table_entry([pair.friction for pair in self.pairs], number),
            restitution=table_entry([pair.restitution for pair in self.pairs], number),
            point=kept.point,
            runtime_bodies=bodies,
        )

    def _families(self) -> dict[Forms, list[int]]:
        """Return the indices of pairs by their forms."""
        found: dict[Forms, list[int]] = {}
        for number, pair in enumerate(self.pairs):
            found.setdefault(_forms(pair), []).append(number)
        return found


def _forms(pair: ContactPair) -> Forms:
    """Return the forms of both shapes, in the order of `FORMS`."""
    a, b = form_of(pair.first.shape), form_of(pair.second.shape)
    assert a is not None
    assert b is not None
    return (a, b) if FORMS.index(a) <= FORMS.index(b) else (b, a)


@final
@dataclass(frozen=True, slots=True)
class _Family:
    """Pairs of the same two forms, by their indices among all pairs."""

    pairs: tuple[ContactPair, ...]
    forms: Forms
    numbers: tuple[int, ...]

    def nearest(self, pose: Any, count: int) -> NearestNeighbours:
        """Return the places in `numbers` of the pairs whose capsules are nearest."""
        found = []
        for place, number in enumerate(self.numbers):
            a, b = (bounding_volume(item.shape, pose(item)) for item in self._sides(number))
            found.append((capsule_gap(a, b), float(place)))
        return nearest_neighbours(found, min(count, len(self.numbers)))

    def insert(
        self, kept: list[IdentifiedPoint], near: NearestNeighbours, pose: Any, reach: Scalar
    ) -> tuple[list[IdentifiedPoint], Scalar]:
        """Insert the points of these pairs among those kept; also return the least gap that was dropped."""

        def step(carry: Any) -> Any:
            gaps, places, kept, dropped = carry
            for point in self._points(places[0], pose):
                kept, out = insert_by_gap(kept, point)
                dropped = minimum(dropped, out)
            return [[*gaps[1:], ABSENT_POINT_GAP], [*places[1:], -1.0], kept, dropped]

        start: Any = [near.gaps, near.numbers, kept, ABSENT_POINT_GAP]
        end = loop(len(near.gaps), step, start, until=lambda carry: carry[0][0] > reach)
        return end[2], end[3]

    def _points(self, place: Scalar, pose: Any) -> list[IdentifiedPoint]:
        """Return the points of the pair at a place in `numbers`."""
        sides = [self._sides(number) for number in self.numbers]
        a, b = (self._form(form, [side[i] for side in sides], place) for i, form in enumerate(self.forms))
        X_a, X_b = (_frame([side[i] for side in sides], place, pose) for i in range(2))
        turned = [-1.0 if self._is_turned(number) else 1.0 for number in self.numbers]
        sign, number = table_entry(turned, place), table_entry([float(x) for x in self.numbers], place)
        return [
            IdentifiedPoint(
                number * MAX_POINTS_PER_PAIR + k,
                ContactPoint(point.position, point.normal * sign, point.gap),
            )
            for k, point in enumerate(closest_points(a, X_a, b, X_b))
        ]

    def _form(self, form: type[Form], items: Sequence[Placed], place: Scalar) -> Form:
        columns = zip(*(sizes_of(item.shape) for item in items), strict=True)
        return form(*[table_entry(column, place) for column in columns])

    def _sides(self, number: int) -> tuple[Placed, Placed]:
        """Return the two shapes in the order of the forms."""
        pair = self.pairs[number]
        return (pair.second, pair.first) if self._is_turned(number) else (pair.first, pair.second)

    def _is_turned(self, number: int) -> bool:
        return form_of(self.pairs[number].first.shape) is not self.forms[0]


def _frame(items: Sequence[Placed], place: Scalar, pose: Any) -> Transform:
    """Return the frame in the world of the shape at a place of the list."""
    keys = [(item.body, id(item.shape)) for item in items]
    different = list(dict.fromkeys(keys))
    frames = [pose(items[keys.index(key)]) for key in different]
    own = table_entry([float(different.index(key)) for key in keys], place)
    leaves = [frame.leaves() for frame in frames]
    selected = leaves[0]
    for k, other in enumerate(leaves[1:], start=1):
        selected = [select(own > k - 0.5, x, y) for x, y in zip(other, selected, strict=True)]
    found: Transform = frames[0].rebuilt(iter(selected))
    return found
