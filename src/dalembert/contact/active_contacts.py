"""Active contacts: the nearest points of many pairs, selected at run time, sample by sample.

A point has an id, from the index of its pair and its own index in the pair, by which its cached impulses are
found in the next step at any place in the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, final

from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.open_tree import velocity_places
from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP, Candidate, ContactPoint, choose
from dalembert.model.body import Body
from dalembert.model.joints.subspaces import combination
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, absolute, floor, is_zero, literal, lookup, minimum, select
from dalembert.spatial import Force, Motion, Transform, Vec3

# Joint axes in one common frame: world axes about a point near the figure.
#
# In this frame an axis is the same for every body that it carries, forces of bodies add up the tree, and so
# do the Hessians of contact: sums without transformations (Featherstone 2008 section 6.6 calls it the basic
# form). The point is the origin of the first body, so that numbers stay small wherever in the world the
# figure is.


@final
@dataclass(frozen=True, slots=True)
class JointAxes:
    """The poses of the bodies and, along world axes about `origin`, the axes S of every joint."""

    tree: Tree
    origin: Vec3
    poses: PerBody[Transform]
    S: PerBody[list[Motion]]

    def velocities(self, v: Sequence[Scalar]) -> PerBody[Motion]:
        """Return the spatial velocity of every body, v_i = v_lambda + S v_J, without rheonomic parts."""

        def step(body: Body, v_parent: Motion) -> tuple[Motion, Motion]:
            own = v_parent + combination(self.S[body], body.own_v(v))
            return own, own

        return self.tree.outward(step, Motion.zero())

    def generalized_forces(self, forces: dict[int, Force]) -> list[Scalar]:
        """Return J^T f `(nv,)` of forces on bodies: each joint takes S^T of the sum over all bodies it
        carries."""

        def step(body: Body, gathered: Force) -> tuple[Force, Sequence[Scalar]]:
            total = gathered + forces[body.index] if body.index in forces else gathered
            return total, [s.dot(total) for s in self.S[body]]

        per_body, _ = self.tree.inward(step, Force.zero())
        return self.tree.collect(per_body)

    def columns(self, first: int, second: int) -> list[tuple[list[tuple[int, float]], Motion]]:
        """Return the motion of body `second` relative to `first` as sum of columns: (places in v with ratios,
        axis).

        Joints that carry both move neither relative to the other and are left out.
        """
        carrying_first, carrying_second = self._path(first), self._path(second)
        columns = []
        for body in carrying_second:
            if body not in carrying_first:
                columns += list(zip(velocity_places(body), self.S[body], strict=True))
        for body in carrying_first:
            if body not in carrying_second:
                columns += [(places, -s) for places, s in zip(velocity_places(body), self.S[body])]
        return columns

    def _path(self, index: int) -> list[Body]:
        path = []
        while index != WORLD:
            body = self.tree.bodies[index]
            path.append(body)
            index = body.parent
        return path


def joint_axes(tree: Tree, q: Sequence[Scalar], *, time: Scalar | None = None) -> JointAxes:
    """Return the axes of all joints at q."""
    poses = forward_kinematics(tree, q, time=time)
    origin = poses[0].p if tree.bodies else Vec3.zero()

    def axes(body: Body) -> list[Motion]:
        R, arm = poses[body].R, poses[body].p - origin
        turned = [Motion(R @ s.angular, R @ s.linear) for s in body.jcalc(q, None, time).S]
        return [Motion(s.angular, s.linear + arm.cross(s.angular)) for s in turned]

    return JointAxes(tree, origin, poses, tree.outward(lambda body, _: ((), axes(body)), ()))


RUNTIME_BODY = -2
"""The body index that stands for a body known only at run time."""

MAX_POINTS_PER_PAIR = 8
"""The most points of one pair: those of two boxes."""

Rows: TypeAlias = tuple[tuple[tuple[tuple[int, float], ...], Vec3], ...]
"""Columns of the Jacobian of a point's velocity: (places in v with ratios, velocity for unit speed)."""


class IdentifiedPoint(NamedTuple):
    """A point with its id: `MAX_POINTS_PER_PAIR` times the index of its pair plus its own index in the pair;
    below zero for an absent point."""

    point_id: Scalar
    point: ContactPoint


class NearestPoints(NamedTuple):
    """The candidates of a step, the ids of those among them that are active contacts, and the least gap [m]
    of the points that were dropped."""

    candidates: list[Candidate]
    point_ids: list[Scalar]
    least_dropped_gap: Scalar


@final
@dataclass(frozen=True, slots=True)
class RuntimeBodies:
    """The two bodies of a pair whose index is known at run time: an element of `bodies`, (first, second)."""

    number: Scalar
    bodies: tuple[tuple[int, int], ...]

    def rows(self, axes: JointAxes, arm: Vec3) -> Rows:
        """Return the Jacobian of the second body's velocity relative to the first, `arm` from the origin."""
        found = []
        for body in axes.tree.bodies:
            sign = self._sign(axes.tree, body.index)
            if not is_zero(sign):
                for places, s in zip(velocity_places(body), axes.S[body], strict=True):
                    found.append((tuple(places), (s.linear + s.angular.cross(arm)) * sign))
        return tuple(found)

    def sign_of(self, body: int) -> Scalar:
        """Return 1 for the second body, -1 for the first, 0 for all others."""
        return table_entry(
            [float(body == second) - float(body == first) for first, second in self.bodies], self.number
        )

    def total(self, values: Sequence[Scalar]) -> Scalar:
        """Return the sum of the values of both bodies."""
        if all(literal(x) is not None for x in values):
            numbers = [literal(x) or 0.0 for x in values]
            return table_entry(
                [numbers[first] + numbers[second] for first, second in self.bodies], self.number
            )
        total: Scalar = 0.0
        for body, value in enumerate(values):
            total = total + value * absolute(self.sign_of(body))
        return total

    def _sign(self, tree: Tree, joint: int) -> Scalar:
        """Return 1 if the joint of a body carries the second body alone, -1 for the first alone, else 0."""
        signs = [
            float(_carries(tree, joint, second)) - float(_carries(tree, joint, first))
            for first, second in self.bodies
        ]
        return table_entry(signs, self.number)


def sum_over_bodies(item: Candidate, values: Sequence[Scalar]) -> Scalar:
    """Return the sum of the values of a candidate's bodies; the world has no value."""
    if item.runtime_bodies is not None:
        return item.runtime_bodies.total(values)
    return sum((values[i] for i in (item.first, item.second) if i != WORLD), 0.0)


def body_signs(item: Candidate, bodies: int) -> list[tuple[int, Scalar]]:
    """Return the bodies of a candidate with their signs: 1 for the second, -1 for the first."""
    if item.runtime_bodies is None:
        return [(i, sign) for i, sign in ((item.second, 1.0), (item.first, -1.0)) if i != WORLD]
    signs = [(i, item.runtime_bodies.sign_of(i)) for i in range(bodies)]
    return [(i, sign) for i, sign in signs if not is_zero(sign)]


def _carries(tree: Tree, joint: int, body: int) -> bool:
    while body > joint:
        body = tree.bodies[body].parent
    return body == joint


def table_entry(numbers: Sequence[float], place: Scalar) -> Scalar:
    """Return an element of a list; a literal where all elements are the same."""
    return numbers[0] if all(x == numbers[0] for x in numbers) else lookup(numbers, place)


def pair_number(point_id: Scalar) -> Scalar:
    """Return the index of the pair of a point."""
    return floor(point_id * (1.0 / MAX_POINTS_PER_PAIR))


def empty_points(count: int) -> list[IdentifiedPoint]:
    """Return a list of `count` absent points."""
    return [
        IdentifiedPoint(-1.0, ContactPoint(Vec3.zero(), Vec3.unit(2), ABSENT_POINT_GAP)) for _ in range(count)
    ]


def identify_points(points: Iterable[ContactPoint], pair: Scalar) -> Iterator[IdentifiedPoint]:
    """Yield the points of a pair, given by its index, with their ids."""
    for k, point in enumerate(points):
        yield IdentifiedPoint(pair * MAX_POINTS_PER_PAIR + k, point)


def insert_points(
    kept: list[IdentifiedPoint], dropped: Scalar, points: Iterable[IdentifiedPoint]
) -> tuple[list[IdentifiedPoint], Scalar]:
    """Insert points into the list sorted by gap in ascending order; return the list, and the least gap of the
    points that were dropped, now or before."""
    for new in points:
        found = []
        for old in kept:
            nearer = new.point.gap < old.point.gap
            found.append(_choose_point(nearer, new, old))
            new = _choose_point(nearer, old, new)
        kept, dropped = found, minimum(dropped, new.point.gap)
    return kept, dropped


def _choose_point(condition: Scalar, a: IdentifiedPoint, b: IdentifiedPoint) -> IdentifiedPoint:
    position, normal = choose(condition, a.point[:2], b.point[:2])
    point_id = select(condition, a.point_id, b.point_id)
    return IdentifiedPoint(
        point_id, ContactPoint(position, normal, select(condition, a.point.gap, b.point.gap))
    )


def match_memory(
    point_ids: Sequence[Scalar],
    memory: Sequence[Sequence[Scalar]],
    fresh: Sequence[float],
    groups: Sequence[int],
) -> list[list[Scalar]]:
    """Return the memory rows of the current points, the last of which have the ids `point_ids`.

    A point takes the row with its id from the memory of the previous step, whose rows end with an id; a point
    without such a row takes `fresh`. Points stay in their group; `groups` has the size of each.
    """
    always = len(memory) - len(point_ids)
    found = [list(row[:-1]) for row in memory[:always]]
    first = 0
    for count in groups:
        rows = memory[always + first : always + first + count]
        for now in point_ids[first : first + count]:
            # A negative value marks the first step, for all points of a sample.
            own = [minimum(rows[0][k], 0.0) if x < 0.0 else x for k, x in enumerate(fresh)]
            for row in rows:
                same = absolute(now - row[-1]) < 0.5
                own = [select(same, x, y) for x, y in zip(row[:-1], own, strict=True)]
            found.append(own)
        first += count
    return found


def append_ids(memory: Sequence[Sequence[Scalar]], point_ids: Sequence[Scalar]) -> list[list[Scalar]]:
    """Return the memory for the next step: rows that end with the ids of the active contacts."""
    if not point_ids:
        return [list(row) for row in memory]
    numbers = [-1.0] * (len(memory) - len(point_ids)) + list(point_ids)
    return [[*row, number] for row, number in zip(memory, numbers, strict=True)]
