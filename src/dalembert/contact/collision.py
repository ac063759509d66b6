"""Contact points of a configuration, by loops over the pairs of shapes of each kind.

The code grows with the kinds of pairs, not with their number, and a pair that is far takes a few operations:
pairs whose bounding balls are near are collected; of those of boxes, cylinders, ellipsoids and meshes the
ones near by their bounding boxes; the nearest points of these are computed (`narrow_phase`), and the points
within reach are collected from all kinds. The balls have grown by what bodies may travel in the step, and a
point is within reach if its gap is no more than what its two bodies may travel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, final

import numpy as np
import numpy.typing as npt

from dalembert import scalar
from dalembert.contact.contacts import (
    BodyPairs,
    Contacts,
    for_bodies,
    friction_across,
    listed_contacts,
    stack_bodies,
    turning_friction,
)
from dalembert.contact.narrow_phase import point_count
from dalembert.contact.narrow_phase.boxes import best_face
from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP, ContactPoint, choose
from dalembert.contact.narrow_phase.closest import TABLE
from dalembert.contact.narrow_phase.convex_pairs import convex_convex, flat_flat, solid_pair
from dalembert.contact.narrow_phase.forms import (
    BoxForm,
    CornersForm,
    CylinderForm,
    EllipsoidForm,
    Form,
    MeshForm,
    RoundedForm,
    SphereForm,
)
from dalembert.contact.narrow_phase.grounds import (
    MAX_GROUND_VERTICES,
    points_above_plane,
    points_above_terrain,
)
from dalembert.contact.pairs import ContactPair, Placed, pair_names
from dalembert.contact.shape_rows import BOX_FORMS, Bodies, Key, ShapeRows, ShapeTable
from dalembert.model.model import Model
from dalembert.model.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    Ellipsoid,
    HeightField,
    Plane,
    Shape,
    Sphere,
)
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import (
    Family,
    Linked,
    Named,
    Row,
    Rows,
    Scalar,
    Source,
    Write,
    is_zero,
    logical_and,
    logical_not,
    select,
    sqrt,
)
from dalembert.scalar.row_sets import greatest
from dalembert.spatial import Motion, Transform, Vec3

T = TypeVar("T")
Numbers: TypeAlias = npt.NDArray[np.int64]

MAX_APPROACH_SPEED: Final = 10.0
"""The approach speed [m/s] that is assumed where velocities are not known."""

MAX_SPEED_GAIN: Final = 1.0
"""The speed [m/s] by which a body may exceed the greatest speed of all bodies in a step and be found to touch
in the same step: that of 10 ms at ten times the acceleration of free fall. Impacts pass speeds on; a body
that gains more is found in the next step."""


FAR_POINT: Final = ContactPoint(Vec3.zero(), Vec3.unit(2), ABSENT_POINT_GAP)
"""A point of two shapes that are far apart."""

# Kinds of pairs: the forms of two shapes, in the order of the narrow phase's table.

_FORMS_OF: Final[dict[type[Shape], tuple[type[Form], ...]]] = {
    Sphere: (SphereForm, RoundedForm),
    Capsule: (RoundedForm,),
    Box: (BoxForm,),
    Cylinder: (CylinderForm,),
    Ellipsoid: (EllipsoidForm,),
    ConvexMesh: (MeshForm,),
}
"""The forms that each shape has; of two shapes, the first ones that the table has together count."""

GROUNDS: Final = (Plane, HeightField)

Kind: TypeAlias = tuple[Key, Key]


def kind_of(a: Shape, b: Shape) -> tuple[Kind, bool]:
    """Return the forms of two shapes, and whether they are turned: the first form is that of b."""
    for ground, solid, turned in ((a, b, False), (b, a, True)):
        if isinstance(ground, GROUNDS):
            few = isinstance(solid, ConvexMesh) and len(solid.vertices) <= MAX_GROUND_VERTICES
            return (type(ground), CornersForm if few else _FORMS_OF[type(solid)][0]), turned
    for one in _FORMS_OF[type(a)]:
        for other in _FORMS_OF[type(b)]:
            if (one, other) in TABLE:
                return (one, other), False
            if (other, one) in TABLE:
                return (other, one), True
    raise AssertionError(f"nothing computes where a {a.kind} and a {b.kind} touch")


@final
@dataclass(frozen=True, eq=False)
class PairTable:
    """The pairs of one kind: `first` and `second` are rows of the tables of their forms, `sign` is -1 where a
    pair is turned. The points of a pair have numbers from `number` on, `counts` of them. `begin`: the number
    of the first pair among all pairs that are searched."""

    kind: Kind
    first: Sequence[int]
    second: Sequence[int]
    sign: Sequence[float]
    number: Numbers
    counts: Numbers
    begin: int = 0

    @property
    def is_searched(self) -> bool:
        """True if a search finds the nearest points of the pairs."""
        return TABLE.get(self.kind) in (convex_convex, flat_flat)

    def source(
        self, a: ShapeRows, b: ShapeRows, points: Rows, like: Any, known: KnownAxes | None
    ) -> tuple[Source, Callable[[Family[Vec3]], SeparatedPairs] | None]:
        """Return the code that names the points within reach, and for pairs of a search, where axes are
        `known` from the step before, what makes of its last axes those to remember."""
        pairs = scalar.rows(len(self.first), like=like)
        one, other = pairs.links(a.rows, self.first), pairs.links(b.rows, self.second)
        near, is_near = _collect(pairs, lambda i: _may_meet(a, one[i], b, other[i]))
        if _boxes_bound_better(*self.kind):
            rough = is_near
            near, is_near = _collect(
                near, lambda i: logical_and(rough[i], _boxes_may_meet(a, one[i], b, other[i]))
            )
        past: Family[Vec3] | None = None
        wide = near
        if known is not None and self.is_searched:
            past = known.of_pairs(pairs, near, self.begin)
            last, rough = past, is_near
            apart = near.each_where(
                rough.__getitem__, lambda i: _is_separated(a, one[i], b, other[i], last[i])
            )
            near, is_near = _collect(near, lambda i: logical_and(rough[i], logical_not(apart[i])))
        least, most = int(self.counts.min()), int(self.counts.max())
        rows = [
            pairs.links(points, (self.number + np.minimum(j, self.counts - 1)).tolist()) for j in range(most)
        ]
        sign, counts = pairs.numbers(self.sign), pairs.numbers(self.counts.tolist())

        searched: Family[list[ContactPoint]] | None = None
        if self.is_searched or self.kind == (Plane, MeshForm):

            def search(i: Row) -> list[ContactPoint]:
                reach = a.travel(one[i]) + b.travel(other[i])
                return _points_between(a, one[i], b, other[i], reach)[:most]

            searched = near.each_where(is_near.__getitem__, search)

        def name(i: Row) -> tuple[list[Named], Any]:
            # Samples of a block whose shapes are far apart search for nothing.
            reach = select(is_near[i], a.travel(one[i]) + b.travel(other[i]), -ABSENT_POINT_GAP)
            if searched is None:
                found = _points_between(a, one[i], b, other[i], reach)[:most]
            else:
                found = [choose(is_near[i], point, FAR_POINT) for point in searched[i]]
            named = []
            for j, point in enumerate(found):
                within = point.gap <= reach
                if j >= least:
                    within = logical_and(within, counts[i] > float(j))
                gap = select(within, point.gap, ABSENT_POINT_GAP)
                value = ContactPoint(point.position, point.normal * sign[i], gap)
                named.append(Named(rows[j][i], within, value))
            if past is None:
                return named, ()
            axis = a.frame(one[i]).R.transposed_times(found[0].normal)
            axis = axis * select(found[0].gap > reach, 1.0, 0.0)
            return named, choose(is_near[i], axis, past[i])

        def separated(axes: Family[Vec3]) -> SeparatedPairs:
            assert past is not None
            old = past
            writes = [Write(wide, lambda i: [(i, old[i])]), Write(near, lambda i: [(i, axes[i])])]
            keys = pairs.numbers([float(self.begin + k) for k in range(len(self.first))])
            return SeparatedPairs(wide, pairs.write(writes), keys)

        return Source(near, name), None if past is None else separated


# Axes along which two shapes are farther apart than they may travel end their search before it begins. Each
# sample remembers those of a step for the next one, in which they hardly change; they decide nothing else.

AXIS_NUMBERS: Final = 4
"""The count of numbers that are remembered of a pair: its number, -1 for none, and its axis."""


class SeparatedPairs(NamedTuple):
    """Pairs of one kind that were near; their axes in the frame of the first shape, zero for none; and their
    numbers among all pairs that are searched."""

    near: Rows
    axes: Family[Vec3]
    numbers: Family[Scalar]


class KnownAxes(NamedTuple):
    """The axes that a sample remembers: rows that have one, and the numbers of these."""

    filled: Rows
    values: Family[list[Scalar]]

    @staticmethod
    def of(remembered: Sequence[Sequence[Scalar]], like: Any) -> KnownAxes:
        """Return what the rows hold that a step remembered."""
        kept = scalar.rows(len(remembered), like=[remembered, like])
        values = kept.stack([list(row) for row in remembered])
        return KnownAxes(kept.where(lambda row: values[row][0] >= 0.0), values)

    def of_pairs(self, pairs: Rows, near: Rows, begin: int) -> Family[Vec3]:
        """Return the axes of near pairs of a kind, whose numbers begin with `begin`; zero for none."""
        values = self.values
        writes = [
            Write(near, lambda row: [(row, Vec3.zero())]),
            Write(self.filled, lambda row: [(values[row][0] - float(begin), Vec3(*values[row][1:]))]),
        ]
        return pairs.write(writes)


def remember_axes(kinds: Sequence[SeparatedPairs], size: int, like: Any) -> list[list[Scalar]]:
    """Return `size` rows with the axes of pairs of all kinds, as many as there is room for."""
    kept = scalar.rows(size, like=like)
    count: Scalar = 0.0
    writes = [Write(kept, lambda row: [(row, [-1.0, 0.0, 0.0, 0.0])])]

    def place(pairs: SeparatedPairs) -> Callable[[Scalar, Row], tuple[Scalar, Scalar]]:
        def step(so_far: Scalar, row: Row) -> tuple[Scalar, Scalar]:
            axis = pairs.axes[row]
            known = axis.dot(axis) > 0.5
            return so_far + select(known, 1.0, 0.0), select(known, so_far, -1.0)

        return step

    def write(pairs: SeparatedPairs, places: Family[Scalar]) -> Write:
        return Write(pairs.near, lambda row: [(places[row], [pairs.numbers[row], *pairs.axes[row]])])

    for pairs in kinds:
        count, places = pairs.near.scan(place(pairs), count)
        writes.append(write(pairs, places))
    memory = kept.write(writes)
    return memory.first(size)


def _is_separated(a: ShapeRows, i: Row, b: ShapeRows, k: Row, axis: Vec3) -> Scalar:
    """Return whether two shapes are farther apart than they travel, along an axis in the frame of one."""
    forms: tuple[Any, Any] = a.form(i), b.form(k)
    pair = solid_pair(forms[0], a.frame(i), forms[1], b.frame(k))
    separation = axis.dot(pair.extreme(-axis).w) - pair.a.margin - pair.b.margin
    return logical_and(axis.dot(axis) > 0.5, separation > a.travel(i) + b.travel(k))


def _collect(rows: Rows, condition: Callable[[Row], Scalar]) -> tuple[Rows, Family[Scalar]]:
    """Return the rows for which a condition holds in any sample, and whether it holds in each."""

    def name(i: Row) -> Iterator[Named]:
        holds = condition(i)
        yield Named(i, holds, holds)

    return rows.collect([Source(rows, name)])


def _may_meet(a: ShapeRows, i: Row, b: ShapeRows, k: Row) -> Scalar:
    """Return whether the balls around two shapes meet, or that around a solid meets the ground."""
    ball = b.balls[k]
    if a.form_type is HeightField:
        return a.may_reach(i, ball)
    if a.form_type is Plane:
        n, p = a.planes[i]
        return n.dot(ball.centre - p) < ball.radius + a.travel(i)
    own = a.balls[i]
    apart, reach = ball.centre - own.centre, ball.radius + own.radius
    return apart.dot(apart) < reach * reach


def _boxes_bound_better(a: Key, b: Key) -> bool:
    """Return whether boxes around shapes of two forms leave fewer pairs than balls do, where that is worth
    it: all but meshes are above a plane by a few operations."""
    if a in GROUNDS:
        return a is Plane and b is MeshForm
    return SphereForm not in (a, b) and (a in BOX_FORMS or b in BOX_FORMS)


def _boxes_may_meet(a: ShapeRows, i: Row, b: ShapeRows, k: Row) -> Scalar:
    """Return whether no face of the boxes around two shapes separates these by more than they may travel."""
    if a.form_type is Plane:
        n, p = a.planes[i]
        above = b.balls[k].centre - p
        return n.dot(above) - b.half_width(k, n) <= a.travel(i) + b.travel(k)
    R, p = a.frame(i).R.transpose() @ b.frame(k).R, a.from_centre(i, b.balls[k].centre)
    return best_face(p, R, a.half(i), b.half(k)).separation <= a.travel(i) + b.travel(k)


def _points_between(a: ShapeRows, i: Row, b: ShapeRows, k: Row, reach: Scalar) -> list[ContactPoint]:
    form, X = b.form(k), b.frame(k)
    if a.form_type is Plane:
        return points_above_plane(*a.planes[i], form, X, reach)
    if a.form_type is HeightField:
        return points_above_terrain(a.terrain(i), a.frame(i), form, X)
    between = TABLE[a.form_type, b.form_type]
    searched = {"reach": reach} if between in (convex_convex, flat_flat) else {}
    return between(a.form(i), a.frame(i), form, X, **searched)


# Scenes: what follows from the model and its pairs alone.


@final
@dataclass(frozen=True, eq=False)
class Scene:
    """The pairs of shapes of a model that may touch, by kind, and the pair of each point.

    >>> from dalembert.contact.collision import Scene
    >>> from dalembert.contact.pairs import pairs_of
    >>> model = da.models.humanoid().with_ground(friction=0.8)
    >>> scene = Scene.of(model, pairs_of(model, self_collision=False))
    >>> scene.point_count, len(scene.kinds)
    (53, 3)
    """

    pairs: tuple[ContactPair, ...]
    body_count: int
    shapes: Mapping[Key, ShapeTable]
    kinds: tuple[PairTable, ...]
    pair_of_point: Numbers

    @staticmethod
    def of(model: Model, pairs: Sequence[ContactPair]) -> Scene:
        """Return the scene of pairs, as `pairs_of` gives them."""
        # A scene of hundreds of bodies has as many pairs as the square of that: few operations for each.
        shapes: dict[Key, dict[tuple[int, int], int]] = {}
        placed: dict[Key, list[Placed]] = {}
        members: dict[Kind, tuple[list[int], list[int], list[int], list[float]]] = {}
        counts = np.zeros(len(pairs), np.int64)
        known: dict[tuple[Any, Any], tuple[Kind, bool, int]] = {}
        alike = {id(side.shape): _alike(side.shape) for pair in pairs for side in (pair.first, pair.second)}
        for number, pair in enumerate(pairs):
            a, b = pair.first, pair.second
            both = alike[id(a.shape)], alike[id(b.shape)]
            if both not in known:
                known[both] = (*kind_of(a.shape, b.shape), point_count(a.shape, b.shape))
            kind, turned, counts[number] = known[both]
            if kind not in members:
                members[kind] = [], [], [], []
            numbers, *rows, signs = members[kind]
            numbers.append(number)
            signs.append(-1.0 if turned else 1.0)
            for form, side, own in zip(kind, (b, a) if turned else (a, b), rows):
                places, key = shapes.setdefault(form, {}), (side.body, id(side.shape))
                if key not in places:
                    places[key] = len(places)
                    placed.setdefault(form, []).append(side)
                own.append(places[key])
        begins = np.cumsum(counts) - counts
        kinds: list[PairTable] = []
        for kind, (numbers, first, second, signs) in members.items():
            searched = sum(len(table.first) for table in kinds if table.is_searched)
            kinds.append(PairTable(kind, first, second, signs, begins[numbers], counts[numbers], searched))
        count = len(model.bodies)
        tables = {form: ShapeTable.of(form, found, count) for form, found in placed.items()}
        return Scene(tuple(pairs), count, tables, tuple(kinds), np.repeat(range(len(pairs)), counts))

    @property
    def point_count(self) -> int:
        """The number of points of all pairs."""
        return len(self.pair_of_point)

    @property
    def most_points(self) -> int:
        """The most points that a pair may have."""
        return max((int(pairs.counts.max()) for pairs in self.kinds), default=0)

    def names(self, model: Model) -> list[tuple[str, str]]:
        """Return the names of both objects at each point."""
        names = [pair_names(model, pair) for pair in self.pairs]
        return [names[number] for number in self.pair_of_point]

    @property
    def searched_pairs(self) -> int:
        """The number of pairs whose nearest points a search finds."""
        return sum(len(pairs.first) for pairs in self.kinds if pairs.is_searched)

    def contacts(
        self,
        poses: PerBody[Transform],
        velocities: PerBody[Motion] | None,
        dt: Scalar,
        like: Any,
        axes: Sequence[Sequence[Scalar]] = (),
        tree: Tree | None = None,
    ) -> Contacts:
        """Return the points within reach in a step of dt [s].

        `poses` of the bodies in the world, of those of the `tree` if one is given that stands for all;
        `velocities` in body coordinates, or None for `MAX_APPROACH_SPEED` between any two; `like`: scalars of
        the kind to compute with; `axes`: those that the step before remembered, which has as many rows for
        the next one.
        """
        if not self.pairs:
            return listed_contacts(self.body_count, (), ())
        bodies = self._bodies(tree or Tree(), poses, velocities, dt, like)
        shapes = {form: ShapeRows(table, bodies, like) for form, table in self.shapes.items()}
        points = scalar.rows(self.point_count, like=like)
        known = KnownAxes.of(axes, like) if axes else None
        sources = []
        for pairs in self.kinds:
            a, b = pairs.kind
            sources.append(pairs.source(shapes[a], shapes[b], points, like, known))
        near, found, axes_found = points.collect_each([source for source, _ in sources])
        separated = [
            separate(own)
            for (_, separate), own in zip(sources, axes_found, strict=True)
            if separate is not None
        ]
        between = self._bodies_of_pairs[self.pair_of_point]
        first, second = (
            points.links(bodies.rows, np.where(own == WORLD, self.body_count, own)) for own in between.T
        )
        pair_rows = scalar.rows(len(self.pairs), like=like)
        pairs_of_points = points.links(pair_rows, self.pair_of_point)

        def of_pairs(own: list[Any]) -> Family[Scalar]:
            known = all(isinstance(x, int | float) for x in own)
            return Linked(pairs_of_points, pair_rows.numbers(own) if known else pair_rows.stack(own))

        return Contacts(
            near,
            points,
            bodies.rows,
            first,
            second,
            of_pairs([pair.friction for pair in self.pairs]),
            of_pairs([pair.restitution for pair in self.pairs]),
            points.numbers(np.arange(self.point_count, dtype=np.float64)),
            found,
            BodyPairs.of(points, between, bodies.rows, self.body_count, like),
            any(not is_zero(pair.restitution) for pair in self.pairs),
            friction_across(self.pairs, of_pairs),
            turning_friction(self.pairs, of_pairs),
            remember_axes(separated, len(axes), like) if axes else (),
        )

    def _bodies(
        self, tree: Tree, poses: PerBody[Transform], velocities: PerBody[Motion] | None, dt: Scalar, like: Any
    ) -> Bodies:
        """Return the bodies and the world at their poses."""
        rows = scalar.rows(self.body_count + 1, like=like)
        frames = stack_bodies(tree, rows, [pose.as_transform() for pose in poses], Transform.identity())
        if velocities is None:
            way = 0.5 * MAX_APPROACH_SPEED * dt
            return Bodies(rows, frames, stack_bodies(tree, rows, [way] * len(poses), way))
        extents = for_bodies(tree, self._extents)
        speeds = (_greatest_speed(*own) for own in zip(velocities, extents, strict=True))
        way = (greatest(speeds, 0.0) + MAX_SPEED_GAIN) * dt
        return Bodies(rows, frames, stack_bodies(tree, rows, [way] * len(poses), 0.0))

    @cached_property
    def _extents(self) -> list[float]:
        """The distance from the origin of each body that its shapes reach [m]."""
        found = [0.0] * (self.body_count + 1)
        for table in self.shapes.values():
            for body, placement, centre, radius in zip(
                table.bodies, table.placements, table.centres, table.radii, strict=True
            ):
                middle = placement[:9].reshape(3, 3) @ centre + placement[9:]
                found[body] = max(found[body], float(np.linalg.norm(middle) + radius))
        return found[:-1]

    @cached_property
    def _bodies_of_pairs(self) -> Numbers:
        """The first and the second body of each pair."""
        found = [(pair.first.body, pair.second.body) for pair in self.pairs]
        return np.array(found, np.int64).reshape(-1, 2)


def _greatest_speed(velocity: Motion, extent: float) -> Scalar:
    """Return a bound of the speed of all points up to `extent` from a body's origin [m/s]."""
    linear, angular = velocity.linear, velocity.angular
    return sqrt(linear.dot(linear)) + sqrt(angular.dot(angular)) * extent


def _alike(shape: Shape) -> tuple[type[Shape], int]:
    """Return what is equal for shapes that make pairs of the same kind and with as many points: meshes differ
    by their vertices, where each of these may touch the ground."""
    count = len(shape.vertices) if isinstance(shape, ConvexMesh) else 0
    return type(shape), count if count <= MAX_GROUND_VERTICES else 0
