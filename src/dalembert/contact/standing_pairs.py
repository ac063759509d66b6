"""Static-world pairs: the nearest points between one shape of a body and many boxes of the world.

A loop over the boxes ranks them by their gaps to the bounding capsule of the shape; another loop computes the
points of the nearest boxes, and the nearest of all points, including those of planes, are kept. Their body
is known, so that they are like any points between a body and the world.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from dalembert.contact.broad_phase import BoundingCapsule, NearestNeighbours, bounding_volume, insert
from dalembert.contact.candidates import ABSENT_POINT_GAP, Candidate, ContactPoint
from dalembert.contact.chosen_points import (
    MAX_POINTS_PER_PAIR,
    IdentifiedPoint,
    NearestPoints,
    empty_points,
    insert_by_gap,
    pair_number,
    table_entry,
)
from dalembert.contact.geometry import closest_points
from dalembert.contact.geometry.box_rounded import ball_against_box, half_lengths, nearest_on_axis
from dalembert.contact.geometry.sizes import BoxForm, EllipsoidForm, Form, RoundedForm, form_of, sizes_of
from dalembert.contact.pairs import ContactPair
from dalembert.contact.points import poses_of
from dalembert.model.shapes import Box, Shape
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody
from dalembert.scalar import Scalar, loop, minimum
from dalembert.spatial import Transform

__all__ = ["StaticWorldPairs"]

MAX_BOXES_PER_SHAPE: Final = 4
"""The number of boxes of the world that one shape may touch at a time."""

POINTS_PER_FORM: Final[dict[type[Form], int]] = {RoundedForm: 4, BoxForm: 6, EllipsoidForm: 2}
"""The number of points of one shape with the world, by the form of the shape."""


@final
@dataclass(frozen=True, slots=True)
class StaticWorldPairs:
    """Pairs of shapes of the world and one shape of a body; boxes of the world first."""

    pairs: tuple[ContactPair, ...]

    @property
    def count(self) -> int:
        """The number of points."""
        form = form_of(self.pairs[0].second.shape)
        assert form is not None
        return POINTS_PER_FORM[form]

    def points(self, poses: PerBody[Transform], reach: Scalar) -> NearestPoints:
        """Return the nearest points; boxes farther away than `reach` [m] are skipped."""
        boxes = [pair for pair in self.pairs if isinstance(pair.first.shape, Box)]
        pose = poses_of(poses)
        own, X = self.pairs[0].second.shape, pose(self.pairs[0].second)
        world = _Boxes([pair.first.shape for pair in boxes])
        kept, dropped = empty_points(self.count), ABSENT_POINT_GAP
        for number, pair in enumerate(self.pairs[len(boxes) :], start=len(boxes)):
            points = closest_points(pair.first.shape, pose(pair.first), own, X)
            kept, dropped = _insert(kept, dropped, points, float(number))
        near = world.nearest(bounding_volume(own, X))
        kept, dropped = self._insert_nearest(kept, dropped, near, world, own, X, reach)
        candidates = [self._candidate(item) for item in kept]
        return NearestPoints(
            candidates, [item.point_id for item in kept], minimum(near.least_dropped_gap, dropped)
        )

    def _insert_nearest(
        self,
        kept: list[IdentifiedPoint],
        dropped: Scalar,
        near: NearestNeighbours,
        world: _Boxes,
        own: Shape,
        X: Transform,
        reach: Scalar,
    ) -> tuple[list[IdentifiedPoint], Scalar]:
        def step(carry: Any) -> Any:
            gaps, numbers, kept, dropped = carry
            box, X_box = world.at(numbers[0])
            kept, dropped = _insert(kept, dropped, closest_points(box, X_box, _own_form(own), X), numbers[0])
            return [[*gaps[1:], ABSENT_POINT_GAP], [*numbers[1:], -1.0], kept, dropped]

        start: Any = [near.gaps, near.numbers, kept, dropped]
        end = loop(len(near.gaps), step, start, until=lambda carry: carry[0][0] > reach)
        return end[2], end[3]

    def _candidate(self, kept: IdentifiedPoint) -> Candidate:
        number = pair_number(kept.point_id)
        return Candidate(
            first=WORLD,
            second=self.pairs[0].second.body,
            friction=table_entry([pair.friction for pair in self.pairs], number),
            restitution=table_entry([pair.restitution for pair in self.pairs], number),
            point=kept.point,
        )


@final
class _Boxes:
    """Boxes of the world, by their indices."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self._numbers = [[*_sizes(shape), *shape.placement.leaves()] for shape in shapes]

    def at(self, number: Scalar) -> tuple[BoxForm, Transform]:
        x, y, z, *frame = (table_entry(column, number) for column in zip(*self._numbers, strict=True))
        return BoxForm(x, y, z), Transform.identity().rebuilt(iter(frame))

    def nearest(self, capsule: BoundingCapsule) -> NearestNeighbours:
        """Return the boxes that are nearest to a capsule."""

        def step(carry: Any) -> Any:
            number, near = carry
            box, X = self.at(number)
            return [number + 1.0, insert(near, _gap(capsule, box, X), number)]

        count = min(MAX_BOXES_PER_SHAPE, len(self._numbers))
        start: Any = [0.0, NearestNeighbours([ABSENT_POINT_GAP] * count, [-1.0] * count, ABSENT_POINT_GAP)]
        found: NearestNeighbours = loop(len(self._numbers), step, start)[1]
        return found


def _sizes(shape: Shape) -> list[float]:
    assert isinstance(shape, Box)
    return list(shape.size)


def _gap(capsule: BoundingCapsule, box: BoxForm, X: Transform) -> Scalar:
    """Return the distance [m] of a capsule and a box."""
    p, u = X.inverse_transform_point(capsule.middle), X.R.transposed_times(capsule.axis)
    t = nearest_on_axis(p, u, capsule.half, half_lengths(box))
    return ball_against_box(capsule.middle + capsule.axis * t, p + u * t, capsule.radius, box, X).gap


def _own_form(shape: Shape) -> Form:
    form = form_of(shape)
    assert form is not None
    return form(*sizes_of(shape))


def _insert(
    kept: list[IdentifiedPoint], dropped: Scalar, points: Sequence[ContactPoint], number: Scalar
) -> tuple[list[IdentifiedPoint], Scalar]:
    for k, point in enumerate(points):
        kept, out = insert_by_gap(kept, IdentifiedPoint(number * MAX_POINTS_PER_PAIR + k, point))
        dropped = minimum(dropped, out)
    return kept, dropped
