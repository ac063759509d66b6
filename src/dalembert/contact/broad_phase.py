"""Broad phase: nearest neighbours among many pairs by the gaps of their bounding capsules.

The gap between the bounding capsules of two shapes is at most that between the shapes, and the same where
both are spheres or capsules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any, Final, NamedTuple, TypeAlias, final

from dalembert.contact.active_contacts import (
    MAX_POINTS_PER_PAIR,
    RUNTIME_BODY,
    IdentifiedPoint,
    NearestPoints,
    RuntimeBodies,
    empty_points,
    identify_points,
    insert_points,
    pair_number,
    table_entry,
)
from dalembert.contact.narrow_phase import closest_points, point_count
from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP, Candidate
from dalembert.contact.narrow_phase.forms import (
    FORMED,
    FORMS,
    BoxForm,
    EllipsoidForm,
    Form,
    RoundedForm,
    form_of,
)
from dalembert.contact.narrow_phase.rounded_shapes import (
    ball_against_box,
    half_lengths,
    nearest_on_axis,
    nearest_on_segments,
)
from dalembert.contact.pairs import ContactPair, Placed, contact_points, pair_names, point_names, poses_of
from dalembert.model.model import Model
from dalembert.model.shapes import Box, Plane, Shape
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody
from dalembert.scalar import Scalar, loop, maximum, minimum, select, sqrt
from dalembert.spatial import Transform, Vec3


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
    form = form_of(shape)
    if isinstance(form, RoundedForm):
        return 2, 0.5 * form.length, form.radius
    axis = max(range(3), key=lambda i: form[i])
    others = [form[i] for i in range(3) if i != axis]
    if isinstance(form, BoxForm):
        return axis, 0.5 * form[axis], 0.5 * math.hypot(*others)
    return axis, form[axis] - max(others), max(others)


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


def insert_nearest(
    kept: list[IdentifiedPoint],
    dropped: Scalar,
    near: NearestNeighbours,
    reach: Scalar,
    points_at: Callable[[Scalar], Iterable[IdentifiedPoint]],
) -> tuple[list[IdentifiedPoint], Scalar]:
    """Insert the points of the nearest pairs up to `reach` [m] among those kept; return these, and the least
    gap that was dropped. `points_at(number)`: the points of a pair."""

    def step(carry: Any) -> Any:
        gaps, numbers, kept, dropped = carry
        kept, dropped = insert_points(kept, dropped, points_at(numbers[0]))
        return [[*gaps[1:], ABSENT_POINT_GAP], [*numbers[1:], -1.0], kept, dropped]

    start: Any = [near.gaps, near.numbers, kept, dropped]
    end = loop(len(near.gaps), step, start, until=lambda carry: carry[0][0] > reach)
    return end[2], end[3]


def active_candidate(
    pairs: Sequence[ContactPair], kept: IdentifiedPoint, first: int, second: int
) -> Candidate:
    """Return the candidate of a point of one of the pairs; its bodies may be `RUNTIME_BODY`."""
    number = pair_number(kept.point_id)
    bodies = None
    if second == RUNTIME_BODY:
        bodies = RuntimeBodies(number, tuple((pair.first.body, pair.second.body) for pair in pairs))
    friction = table_entry([pair.friction for pair in pairs], number)
    restitution = table_entry([pair.restitution for pair in pairs], number)
    return Candidate(first, second, friction, restitution, kept.point, bodies)


# Dynamic pairs: the nearest points between moving bodies, where there are many pairs.
#
# All pairs are ranked by the gaps between their bounding capsules (`broad_phase`), pairs of the same two
# forms together, since one piece of code then computes the points of any pair of two forms; the nearest of
# all points are kept. The least gap of the dropped pairs is known, so that a missed contact is detected.

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
            points_at = partial(family.points, pose)
            kept, dropped = insert_nearest(kept, ABSENT_POINT_GAP, near, reach, points_at)
            dropped_gaps += [near.least_dropped_gap, dropped]
        candidates = [active_candidate(self.pairs, item, RUNTIME_BODY, RUNTIME_BODY) for item in kept]
        return NearestPoints(candidates, [item.point_id for item in kept], reduce(minimum, dropped_gaps))

    def _families(self) -> dict[Forms, list[int]]:
        """Return the indices of pairs by their forms."""
        found: dict[Forms, list[int]] = {}
        for number, pair in enumerate(self.pairs):
            found.setdefault(_forms(pair), []).append(number)
        return found


def _forms(pair: ContactPair) -> Forms:
    """Return the forms of both shapes, in the order of `FORMS`."""
    a, b = type(form_of(pair.first.shape)), type(form_of(pair.second.shape))
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

    def points(self, pose: Any, place: Scalar) -> list[IdentifiedPoint]:
        """Return the points of the pair at a place in `numbers`."""
        sides = [self._sides(number) for number in self.numbers]
        a, b = (self._form(form, [side[i] for side in sides], place) for i, form in enumerate(self.forms))
        X_a, X_b = (_frame([side[i] for side in sides], place, pose) for i in range(2))
        turned = [-1.0 if self._is_turned(number) else 1.0 for number in self.numbers]
        sign, number = table_entry(turned, place), table_entry([float(x) for x in self.numbers], place)
        found = identify_points(closest_points(a, X_a, b, X_b), number)
        return [item._replace(point=item.point._replace(normal=item.point.normal * sign)) for item in found]

    def _form(self, form: type[Form], items: Sequence[Placed], place: Scalar) -> Form:
        columns = zip(*(form_of(item.shape) for item in items), strict=True)
        return form(*[table_entry(column, place) for column in columns])

    def _sides(self, number: int) -> tuple[Placed, Placed]:
        """Return the two shapes in the order of the forms."""
        pair = self.pairs[number]
        return (pair.second, pair.first) if self._is_turned(number) else (pair.first, pair.second)

    def _is_turned(self, number: int) -> bool:
        return not isinstance(form_of(self.pairs[number].first.shape), self.forms[0])


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


# Static-world pairs: the nearest points between one shape of a body and many boxes of the world.
#
# A loop over the boxes ranks them by their gaps to the bounding capsule of the shape; another loop computes
# the points of the nearest boxes, and the nearest of all points, including those of planes, are kept. Their
# body is known, so that they are like any points between a body and the world.

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
        return POINTS_PER_FORM[type(form_of(self.pairs[0].second.shape))]

    def points(self, poses: PerBody[Transform], reach: Scalar) -> NearestPoints:
        """Return the nearest points; boxes farther away than `reach` [m] are skipped."""
        boxes = [pair for pair in self.pairs if isinstance(pair.first.shape, Box)]
        pose = poses_of(poses)
        own, X = self.pairs[0].second.shape, pose(self.pairs[0].second)
        world = _Boxes([pair.first.shape for pair in boxes])
        kept, dropped = empty_points(self.count), ABSENT_POINT_GAP
        for number, pair in enumerate(self.pairs[len(boxes) :], start=len(boxes)):
            points = closest_points(pair.first.shape, pose(pair.first), own, X)
            kept, dropped = insert_points(kept, dropped, identify_points(points, float(number)))
        near = world.nearest(bounding_volume(own, X))

        def points_at(number: Scalar) -> Iterable[IdentifiedPoint]:
            return identify_points(closest_points(*world.at(number), form_of(own), X), number)

        kept, dropped = insert_nearest(kept, dropped, near, reach, points_at)
        candidates = [active_candidate(self.pairs, item, WORLD, self.pairs[0].second.body) for item in kept]
        return NearestPoints(
            candidates, [item.point_id for item in kept], minimum(near.least_dropped_gap, dropped)
        )


@final
class _Boxes:
    """Boxes of the world, by their indices."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self._numbers = [[*form_of(shape), *shape.placement.leaves()] for shape in shapes]

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


def _gap(capsule: BoundingCapsule, box: BoxForm, X: Transform) -> Scalar:
    """Return the distance [m] of a capsule and a box."""
    p, u = X.inverse_transform_point(capsule.middle), X.R.transposed_times(capsule.axis)
    t = nearest_on_axis(p, u, capsule.half, half_lengths(box))
    return ball_against_box(capsule.middle + capsule.axis * t, p + u * t, capsule.radius, box, X).gap


# Selection of the contact candidates of a step: enumerated pairs, and groups with only the nearest points.
#
# Every enumerated point has code of its own, and every dynamic pair fills the matrix of the step: beyond some
# number the nearest points of many pairs are cheaper, and sufficient.

MAX_ENUMERATED_POINTS = 100
"""The number of points of dynamic pairs up to which all of them are enumerated."""

NEAREST_POINTS_PER_FIGURE = 12
"""Beyond that, the number of nearest points for each figure that can touch others or itself."""

MAX_ENUMERATED_WORLD_POINTS = 128
"""The number of points between bodies and boxes of the world up to which all of them are enumerated."""

MAX_APPROACH_SPEED = 10.0
"""The approach speed [m/s]: pairs farther apart than a step at this speed are skipped in the step."""


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

    def points(self, poses: PerBody[Transform], dt: Scalar) -> NearestPoints:
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
        return NearestPoints(candidates, numbers, left_out)

    @cached_property
    def _grouped_pairs(self) -> tuple[ContactPair, ...]:
        return tuple(pair for group in self.groups for pair in group.pairs)


def selection_of(model: Model, pairs: Sequence[ContactPair], nearest: int | None = None) -> Selection:
    """Enumerate all pairs, but group dynamic pairs, or pairs with boxes of the world, that have many points.

    `nearest`: the number of points of dynamic pairs, by default `NEAREST_POINTS_PER_FIGURE` a figure.
    """
    groups: list[DynamicPairs | StaticWorldPairs] = []
    dynamic = [
        pair
        for pair in pairs
        if all(side.body != WORLD and isinstance(side.shape, FORMED) for side in (pair.first, pair.second))
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
    return pair.first.body == WORLD and isinstance(pair.second.shape, FORMED)


def _count_points(pairs: Sequence[ContactPair]) -> int:
    return sum(point_count(pair.first.shape, pair.second.shape) for pair in pairs)
