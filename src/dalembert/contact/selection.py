"""Selection of the contact candidates of a step: enumerated pairs, and groups with only the nearest points.

Every enumerated point has code of its own, and every dynamic pair fills the matrix of the step: beyond some
number the nearest points of many pairs are cheaper, and sufficient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

from dalembert.contact.candidates import ABSENT_POINT_GAP, Candidate
from dalembert.contact.chosen_points import MAX_POINTS_PER_PAIR
from dalembert.contact.geometry import point_count
from dalembert.contact.geometry.sizes import form_of
from dalembert.contact.moving_pairs import DynamicPairs
from dalembert.contact.pairs import ContactPair
from dalembert.contact.points import contact_points, pair_names, point_names
from dalembert.contact.standing_pairs import StaticWorldPairs
from dalembert.model.model import Model
from dalembert.model.shapes import Box, Plane
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody
from dalembert.scalar import Scalar, minimum, select
from dalembert.spatial import Transform

__all__ = ["Selected", "Selection", "selection_of"]

MAX_ENUMERATED_POINTS = 100
"""The number of points of dynamic pairs up to which all of them are enumerated."""

NEAREST_POINTS_PER_FIGURE = 12
"""Beyond that, the number of nearest points for each figure that can touch others or itself."""

MAX_ENUMERATED_WORLD_POINTS = 128
"""The number of points between bodies and boxes of the world up to which all of them are enumerated."""

MAX_APPROACH_SPEED = 10.0
"""The approach speed [m/s]: pairs farther apart than a step at this speed are skipped in the step."""


class Selected(NamedTuple):
    """The candidates of a step, the ids of the active contacts, and the least gap [m] of the dropped
    points."""

    candidates: list[Candidate]
    point_ids: list[Scalar]
    least_dropped_gap: Scalar


@final
@dataclass(frozen=True)
class Selection:
    """Pairs that are always enumerated, and groups of pairs with only their nearest points."""

    always: tuple[ContactPair, ...]
    groups: tuple[DynamicPairs | StaticWorldPairs, ...] = ()

    @cached_property
    def pairs(self) -> tuple[ContactPair, ...]:
        """All pairs, enumerated and grouped."""
        return self.always + self._grouped_pairs

    @cached_property
    def counts(self) -> list[int]:
        """The number of points of each group."""
        return [group.count for group in self.groups]

    @property
    def active_count(self) -> int:
        """The number of active contacts of all groups; they come after the enumerated points."""
        return sum(self.counts)

    def names(self, model: Model) -> list[tuple[str, str]]:
        """Return the names of both objects at each enumerated point."""
        return point_names(model, self.always)

    def active_names(self, model: Model, point_id: int) -> tuple[str, str]:
        """Return the names of both objects at an active contact."""
        return pair_names(model, self._grouped_pairs[point_id // MAX_POINTS_PER_PAIR])

    def points(self, poses: PerBody[Transform], dt: Scalar) -> Selected:
        """Return the points of a step of dt [s]."""
        candidates, numbers = contact_points(poses, self.always), []
        left_out: Scalar = ABSENT_POINT_GAP
        first = 0
        for group in self.groups:
            found = group.points(poses, MAX_APPROACH_SPEED * dt)
            candidates += found.candidates
            numbers += [select(x < 0.0, -1.0, x + MAX_POINTS_PER_PAIR * first) for x in found.point_ids]
            left_out = minimum(left_out, found.least_dropped_gap)
            first += len(group.pairs)
        return Selected(candidates, numbers, left_out)

    @cached_property
    def _grouped_pairs(self) -> tuple[ContactPair, ...]:
        return tuple(pair for group in self.groups for pair in group.pairs)


def selection_of(model: Model, pairs: Sequence[ContactPair], nearest: int | None = None) -> Selection:
    """Enumerate all pairs, but group dynamic pairs, or pairs with boxes of the world, that have many points.

    `nearest`: the number of points of dynamic pairs, by default `NEAREST_POINTS_PER_FIGURE` a figure.
    """
    groups: list[DynamicPairs | StaticWorldPairs] = []
    dynamic = [
        pair for pair in pairs if WORLD not in (pair.first.body, pair.second.body) and _has_forms(pair)
    ]
    if _count_points(dynamic) > MAX_ENUMERATED_POINTS:
        groups.append(
            DynamicPairs(
                tuple(dynamic), nearest or NEAREST_POINTS_PER_FIGURE * _count_figures(model, dynamic)
            )
        )
    on_boxes = [pair for pair in pairs if _on_world(pair) and isinstance(pair.first.shape, Box)]
    if _count_points(on_boxes) > MAX_ENUMERATED_WORLD_POINTS:
        groups += _static_world_groups(pairs, on_boxes)
    grouped = {id(pair) for group in groups for pair in group.pairs}
    return Selection(tuple(pair for pair in pairs if id(pair) not in grouped), tuple(groups))


def _count_figures(model: Model, pairs: Sequence[ContactPair]) -> int:
    """Return the number of trees that the bodies belong to."""
    roots: list[int] = []
    for body in model.bodies:
        roots.append(body.index if body.parent == WORLD else roots[body.parent])
    return len({roots[side.body] for pair in pairs for side in (pair.first, pair.second)})


def _static_world_groups(
    pairs: Sequence[ContactPair], on_boxes: Sequence[ContactPair]
) -> list[StaticWorldPairs]:
    """Return a group for each shape that has several boxes, with its planes."""
    on_planes = [pair for pair in pairs if _on_world(pair) and isinstance(pair.first.shape, Plane)]
    groups: dict[tuple[int, int], list[ContactPair]] = {}
    for pair in (*on_boxes, *on_planes):
        groups.setdefault((pair.second.body, id(pair.second.shape)), []).append(pair)
    return [
        StaticWorldPairs(tuple(own))
        for own in groups.values()
        if sum(isinstance(pair.first.shape, Box) for pair in own) > 1
    ]


def _on_world(pair: ContactPair) -> bool:
    return pair.first.body == WORLD and form_of(pair.second.shape) is not None


def _has_forms(pair: ContactPair) -> bool:
    return form_of(pair.first.shape) is not None and form_of(pair.second.shape) is not None


def _count_points(pairs: Sequence[ContactPair]) -> int:
    return sum(point_count(pair.first.shape, pair.second.shape) for pair in pairs)
