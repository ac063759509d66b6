"""The nearest points between one shape of a body and boxes that stand in the world, where there are many.

A loop over the boxes ranks them by their gaps to the capsule around the shape; another one computes the
points of the nearest boxes, and of all points, those of planes among them, the nearest are kept. Their body
is known, so that they are like any points between a body and the world.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from dalembert.contact.broad_phase import Around, Nearest, around, put
from dalembert.contact.candidates import ABSENT_POINT_GAP, Candidate, ContactPoint
from dalembert.contact.chosen_points import (
    PER_PAIR,
    Found,
    KeptPoint,
    entry,
    inserted,
    none_kept,
    pair_number,
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

__all__ = ["StandingPairs"]

BOXES: Final = 4
"""So many boxes of the world one shape may touch at a time."""

POINTS: Final[dict[type[Form], int]] = {RoundedForm: 4, BoxForm: 6, EllipsoidForm: 2}
"""At so many points."""


@final
@dataclass(frozen=True, slots=True)
class StandingPairs:
    """Pairs of shapes of the world and one shape of a body; boxes of the world first."""

    pairs: tuple[ContactPair, ...]

    @property
    def count(self) -> int:
        """The number of points."""
        form = form_of(self.pairs[0].second.shape)
        assert form is not None
        return POINTS[form]

    def points(self, poses: PerBody[Transform], reach: Scalar) -> Found:
        """The nearest points; boxes that are farther away than `reach` [m] have none."""
        boxes = [pair for pair in self.pairs if isinstance(pair.first.shape, Box)]
        pose = poses_of(poses)
        own, X = self.pairs[0].second.shape, pose(self.pairs[0].second)
        world = _Boxes([pair.first.shape for pair in boxes])
        kept, fallen = none_kept(self.count), ABSENT_POINT_GAP
        for number, pair in enumerate(self.pairs[len(boxes) :], start=len(boxes)):
            points = closest_points(pair.first.shape, pose(pair.first), own, X)
            kept, fallen = _insert(kept, fallen, points, float(number))
        near = world.nearest(around(own, X))
        kept, fallen = self._insert_nearest(kept, fallen, near, world, own, X, reach)
        candidates = [self._candidate(item) for item in kept]
        return Found(candidates, [item.which for item in kept], minimum(near.left_out, fallen))

    def _insert_nearest(
        self,
        kept: list[KeptPoint],
        fallen: Scalar,
        near: Nearest,
        world: _Boxes,
        own: Shape,
        X: Transform,
        reach: Scalar,
    ) -> tuple[list[KeptPoint], Scalar]:
        def step(carry: Any) -> Any:
            gaps, numbers, kept, fallen = carry
            box, X_box = world.at(numbers[0])
            kept, fallen = _insert(kept, fallen, closest_points(box, X_box, _own_form(own), X), numbers[0])
            return [[*gaps[1:], ABSENT_POINT_GAP], [*numbers[1:], -1.0], kept, fallen]

        start: Any = [near.gaps, near.numbers, kept, fallen]
        end = loop(len(near.gaps), step, start, until=lambda carry: carry[0][0] > reach)
        return end[2], end[3]

    def _candidate(self, kept: KeptPoint) -> Candidate:
        number = pair_number(kept.which)
        return Candidate(
            first=WORLD,
            second=self.pairs[0].second.body,
            friction=entry([pair.friction for pair in self.pairs], number),
            restitution=entry([pair.restitution for pair in self.pairs], number),
            point=kept.point,
        )


@final
class _Boxes:
    """Boxes that stand in the world, by their numbers."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self._numbers = [[*_sizes(shape), *shape.placement.leaves()] for shape in shapes]

    def at(self, number: Scalar) -> tuple[BoxForm, Transform]:
        x, y, z, *frame = (entry(column, number) for column in zip(*self._numbers, strict=True))
        return BoxForm(x, y, z), Transform.identity().rebuilt(iter(frame))

    def nearest(self, capsule: Around) -> Nearest:
        """The boxes that are nearest to a capsule."""

        def step(carry: Any) -> Any:
            number, near = carry
            box, X = self.at(number)
            return [number + 1.0, put(near, _gap(capsule, box, X), number)]

        count = min(BOXES, len(self._numbers))
        start: Any = [0.0, Nearest([ABSENT_POINT_GAP] * count, [-1.0] * count, ABSENT_POINT_GAP)]
        found: Nearest = loop(len(self._numbers), step, start)[1]
        return found


def _sizes(shape: Shape) -> list[float]:
    assert isinstance(shape, Box)
    return list(shape.size)


def _gap(capsule: Around, box: BoxForm, X: Transform) -> Scalar:
    """The distance [m] of a capsule and a box."""
    p, u = X.inverse_transform_point(capsule.middle), X.R.transposed_times(capsule.axis)
    t = nearest_on_axis(p, u, capsule.half, half_lengths(box))
    return ball_against_box(capsule.middle + capsule.axis * t, p + u * t, capsule.radius, box, X).gap


def _own_form(shape: Shape) -> Form:
    form = form_of(shape)
    assert form is not None
    return form(*sizes_of(shape))


def _insert(
    kept: list[KeptPoint], fallen: Scalar, points: Sequence[ContactPoint], number: Scalar
) -> tuple[list[KeptPoint], Scalar]:
    for k, point in enumerate(points):
        kept, out = inserted(kept, KeptPoint(number * PER_PAIR + k, point))
        fallen = minimum(fallen, out)
    return kept, fallen
