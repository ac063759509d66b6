"""The nearest points between moving bodies, where there are many pairs of them.

All pairs are ranked by the gaps between capsules around their shapes (`broad_phase`), those of two forms
together, as one piece of code then computes the points of any pair of two forms; and of all points the
nearest are kept. What could be missed so is known: a pair that was left out although it may touch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias, final

from dalembert.contact.broad_phase import Nearest, around, gap_of, nearest_of
from dalembert.contact.candidates import ABSENT_POINT_GAP, Candidate, ContactPoint
from dalembert.contact.chosen_points import (
    CHOSEN,
    PER_PAIR,
    BodiesChosen,
    Found,
    KeptPoint,
    entry,
    inserted,
    none_kept,
    pair_number,
)
from dalembert.contact.geometry import closest_points
from dalembert.contact.geometry.sizes import FORMS, Form, form_of, sizes_of
from dalembert.contact.pairs import ContactPair, Placed
from dalembert.contact.points import poses_of
from dalembert.model.tree import PerBody
from dalembert.scalar import Scalar, loop, minimum, select
from dalembert.spatial import Transform

__all__ = ["MovingPairs"]

Forms: TypeAlias = tuple[type[Form], type[Form]]


@final
@dataclass(frozen=True, slots=True)
class MovingPairs:
    """Pairs of moving bodies of which the `count` nearest points are looked for."""

    pairs: tuple[ContactPair, ...]
    count: int

    def points(self, poses: PerBody[Transform], reach: Scalar) -> Found:
        """The nearest points; pairs that are farther apart than `reach` [m] have none."""
        pose = poses_of(poses)
        kept, left_out = none_kept(self.count), []
        for forms, numbers in self._families().items():
            family = _Family(self.pairs, forms, tuple(numbers))
            near = family.nearest(pose, self.count)
            kept, fallen = family.insert(kept, near, pose, reach)
            left_out += [near.left_out, fallen]
        return Found(
            [self._candidate(item) for item in kept],
            [item.which for item in kept],
            reduce(minimum, left_out),
        )

    def _candidate(self, kept: KeptPoint) -> Candidate:
        number = pair_number(kept.which)
        bodies = BodiesChosen(number, tuple((pair.first.body, pair.second.body) for pair in self.pairs))
        return Candidate(
            first=CHOSEN,
            second=CHOSEN,
            friction=entry([pair.friction for pair in self.pairs], number),
            restitution=entry([pair.restitution for pair in self.pairs], number),
            point=kept.point,
            chosen=bodies,
        )

    def _families(self) -> dict[Forms, list[int]]:
        """The numbers of pairs by their forms."""
        found: dict[Forms, list[int]] = {}
        for number, pair in enumerate(self.pairs):
            found.setdefault(_forms(pair), []).append(number)
        return found


def _forms(pair: ContactPair) -> Forms:
    """The forms of both shapes, in the order of `FORMS`."""
    a, b = form_of(pair.first.shape), form_of(pair.second.shape)
    assert a is not None
    assert b is not None
    return (a, b) if FORMS.index(a) <= FORMS.index(b) else (b, a)


@final
@dataclass(frozen=True, slots=True)
class _Family:
    """Pairs of the same two forms, by their numbers among all."""

    pairs: tuple[ContactPair, ...]
    forms: Forms
    numbers: tuple[int, ...]

    def nearest(self, pose: Any, count: int) -> Nearest:
        """Places in `numbers` of the pairs whose capsules are nearest."""
        found = []
        for place, number in enumerate(self.numbers):
            a, b = (around(item.shape, pose(item)) for item in self._sides(number))
            found.append((gap_of(a, b), float(place)))
        return nearest_of(found, min(count, len(self.numbers)))

    def insert(
        self, kept: list[KeptPoint], near: Nearest, pose: Any, reach: Scalar
    ) -> tuple[list[KeptPoint], Scalar]:
        """The points of these pairs put among those kept, and the least gap that fell out."""

        def step(carry: Any) -> Any:
            gaps, places, kept, fallen = carry
            for point in self._points(places[0], pose):
                kept, out = inserted(kept, point)
                fallen = minimum(fallen, out)
            return [[*gaps[1:], ABSENT_POINT_GAP], [*places[1:], -1.0], kept, fallen]

        start: Any = [near.gaps, near.numbers, kept, ABSENT_POINT_GAP]
        end = loop(len(near.gaps), step, start, until=lambda carry: carry[0][0] > reach)
        return end[2], end[3]

    def _points(self, place: Scalar, pose: Any) -> list[KeptPoint]:
        """Those of the pair at a place in `numbers`."""
        sides = [self._sides(number) for number in self.numbers]
        a, b = (self._form(form, [side[i] for side in sides], place) for i, form in enumerate(self.forms))
        X_a, X_b = (_frame([side[i] for side in sides], place, pose) for i in range(2))
        turned = [-1.0 if self._is_turned(number) else 1.0 for number in self.numbers]
        sign, number = entry(turned, place), entry([float(x) for x in self.numbers], place)
        return [
            KeptPoint(
                number * PER_PAIR + k,
                ContactPoint(point.position, point.normal * sign, point.gap),
            )
            for k, point in enumerate(closest_points(a, X_a, b, X_b))
        ]

    def _form(self, form: type[Form], items: Sequence[Placed], place: Scalar) -> Form:
        columns = zip(*(sizes_of(item.shape) for item in items), strict=True)
        return form(*[entry(column, place) for column in columns])

    def _sides(self, number: int) -> tuple[Placed, Placed]:
        """The two shapes in the order of the forms."""
        pair = self.pairs[number]
        return (pair.second, pair.first) if self._is_turned(number) else (pair.first, pair.second)

    def _is_turned(self, number: int) -> bool:
        return form_of(self.pairs[number].first.shape) is not self.forms[0]


def _frame(items: Sequence[Placed], place: Scalar, pose: Any) -> Transform:
    """The frame in the world of the shape at a place of the list."""
    keys = [(item.body, id(item.shape)) for item in items]
    different = list(dict.fromkeys(keys))
    frames = [pose(items[keys.index(key)]) for key in different]
    own = entry([float(different.index(key)) for key in keys], place)
    leaves = [frame.leaves() for frame in frames]
    chosen = leaves[0]
    for k, other in enumerate(leaves[1:], start=1):
        chosen = [select(own > k - 0.5, x, y) for x, y in zip(other, chosen, strict=True)]
    found: Transform = frames[0].rebuilt(iter(chosen))
    return found
