"""Which pairs a step always looks at, and of which only the nearest points.

Every point that is always looked at is code of its own, and every pair of moving bodies fills the matrix of
the step: beyond some number the nearest points of many are cheaper, and enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from dalembert.contact.candidates import ABSENT_POINT_GAP, Candidate
from dalembert.contact.chosen_points import PER_PAIR
from dalembert.contact.geometry import point_count
from dalembert.contact.geometry.sizes import form_of
from dalembert.contact.moving_pairs import MovingPairs
from dalembert.contact.pairs import ContactPair
from dalembert.contact.points import contact_points, pair_names, point_names
from dalembert.contact.standing_pairs import StandingPairs
from dalembert.model.model import Model
from dalembert.model.shapes import Box, Plane
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody
from dalembert.scalar import Scalar, minimum, select
from dalembert.spatial import Transform

__all__ = ["Selected", "Selection", "selection_of"]

MANY = 100
"""So many points between moving bodies are looked at one by one."""

NEAREST = 12
"""Beyond that, so many of the nearest for each figure that touches others or itself."""

MANY_STANDING = 128
"""Likewise between bodies and boxes of the world."""

FASTEST_APPROACH = 10.0
"""Pairs farther apart than a step at this speed [m/s] are left for later."""


class Selected(NamedTuple):
    """The candidates of a step, which points the chosen ones are, and the least gap of what is left out."""

    candidates: list[Candidate]
    which: list[Scalar]
    left_out: Scalar


@final
@dataclass(frozen=True, slots=True)
class Selection:
    """Pairs that are always looked at, and groups of pairs of which the nearest points are."""

    always: tuple[ContactPair, ...]
    groups: tuple[MovingPairs | StandingPairs, ...] = ()

    @property
    def pairs(self) -> tuple[ContactPair, ...]:
        """All of them."""
        return self.always + self._grouped

    @property
    def counts(self) -> list[int]:
        """The number of points of each group."""
        return [group.count for group in self.groups]

    @property
    def chosen(self) -> int:
        """The number of points that are chosen; they come after all others."""
        return sum(self.counts)

    def names(self, model: Model) -> list[tuple[str, str]]:
        """The names of what meets at the points that are always there."""
        return point_names(model, self.always)

    def chosen_names(self, model: Model, which: int) -> tuple[str, str]:
        """The names of what meets at a chosen point."""
        return pair_names(model, self._grouped[which // PER_PAIR])

    def points(self, poses: PerBody[Transform], dt: Scalar) -> Selected:
        """The points of a step of dt [s]."""
        candidates, numbers = contact_points(poses, self.always), []
        left_out: Scalar = ABSENT_POINT_GAP
        first = 0
        for group in self.groups:
            found = group.points(poses, FASTEST_APPROACH * dt)
            candidates += found.candidates
            numbers += [select(x < 0.0, -1.0, x + PER_PAIR * first) for x in found.which]
            left_out = minimum(left_out, found.left_out)
            first += len(group.pairs)
        return Selected(candidates, numbers, left_out)

    @property
    def _grouped(self) -> tuple[ContactPair, ...]:
        return tuple(pair for group in self.groups for pair in group.pairs)


def selection_of(model: Model, pairs: Sequence[ContactPair], nearest: int | None = None) -> Selection:
    """All pairs always, unless those of moving bodies, or with boxes of the world, have many points: of these
    the nearest; `nearest` between moving bodies, by default `NEAREST` a figure."""
    groups: list[MovingPairs | StandingPairs] = []
    moving = [pair for pair in pairs if WORLD not in (pair.first.body, pair.second.body) and _formed(pair)]
    if _count(moving) > MANY:
        groups.append(MovingPairs(tuple(moving), nearest or NEAREST * _figures(model, moving)))
    on_boxes = [pair for pair in pairs if _on_world(pair) and isinstance(pair.first.shape, Box)]
    if _count(on_boxes) > MANY_STANDING:
        groups += _standing(pairs, on_boxes)
    grouped = {id(pair) for group in groups for pair in group.pairs}
    return Selection(tuple(pair for pair in pairs if id(pair) not in grouped), tuple(groups))


def _figures(model: Model, pairs: Sequence[ContactPair]) -> int:
    """The number of trees that the bodies belong to."""
    roots: list[int] = []
    for body in model.bodies:
        roots.append(body.index if body.parent == WORLD else roots[body.parent])
    return len({roots[side.body] for pair in pairs for side in (pair.first, pair.second)})


def _standing(pairs: Sequence[ContactPair], on_boxes: Sequence[ContactPair]) -> list[StandingPairs]:
    """A group for each shape that has several boxes, with its planes."""
    on_planes = [pair for pair in pairs if _on_world(pair) and isinstance(pair.first.shape, Plane)]
    groups: dict[tuple[int, int], list[ContactPair]] = {}
    for pair in (*on_boxes, *on_planes):
        groups.setdefault((pair.second.body, id(pair.second.shape)), []).append(pair)
    return [
        StandingPairs(tuple(own))
        for own in groups.values()
        if sum(isinstance(pair.first.shape, Box) for pair in own) > 1
    ]


def _on_world(pair: ContactPair) -> bool:
    return pair.first.body == WORLD and form_of(pair.second.shape) is not None


def _formed(pair: ContactPair) -> bool:
    return form_of(pair.first.shape) is not None and form_of(pair.second.shape) is not None


def _count(pairs: Sequence[ContactPair]) -> int:
    return sum(point_count(pair.first.shape, pair.second.shape) for pair in pairs)
