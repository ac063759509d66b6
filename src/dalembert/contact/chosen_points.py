"""Contact points of pairs that are chosen as a simulation runs, sample by sample: the nearest of many.

A point is kept with the number of its pair and its own number in it, so that what it bore is found again in
the next step, wherever it then stands in the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, final

from dalembert.algorithms.sparsity import velocity_places
from dalembert.contact.candidates import ABSENT_POINT_GAP, Candidate, ContactPoint
from dalembert.contact.joint_axes import JointAxes
from dalembert.model.topology import WORLD
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, absolute, floor, is_zero, literal, lookup, minimum, select
from dalembert.spatial import Vec3

__all__ = [
    "CHOSEN",
    "BodiesChosen",
    "Found",
    "KeptPoint",
    "Rows",
    "entry",
    "inserted",
    "none_kept",
    "of_both",
    "pair_number",
    "remembered",
    "signs_of",
    "with_which",
]

CHOSEN = -2
"""In place of the number of a body that is known only as the program runs."""

PER_PAIR = 8
"""Points of one pair, at most: those of two boxes."""

Rows: TypeAlias = tuple[tuple[tuple[tuple[int, float], ...], Vec3], ...]
"""Columns of the Jacobian of a point's velocity: (places in v with ratios, velocity for unit speed)."""


class KeptPoint(NamedTuple):
    """A point, and which of all points it is: `PER_PAIR` times the number of its pair, and its own; below
    zero where there is none."""

    which: Scalar
    point: ContactPoint


class Found(NamedTuple):
    """Points, which ones they are, and the least gap [m] of what was left out."""

    candidates: list[Candidate]
    which: list[Scalar]
    left_out: Scalar


@final
@dataclass(frozen=True, slots=True)
class BodiesChosen:
    """The two bodies of a pair known by its number: an element of `bodies`, (first, second)."""

    number: Scalar
    bodies: tuple[tuple[int, int], ...]

    def rows(self, axes: JointAxes, arm: Vec3) -> Rows:
        """The velocity of the second body relative to the first, `arm` from the origin of the axes."""
        found = []
        for body in axes.tree.bodies:
            sign = self._sign(axes.tree, body.index)
            if not is_zero(sign):
                for places, s in zip(velocity_places(body), axes.S[body], strict=True):
                    found.append((tuple(places), (s.linear + s.angular.cross(arm)) * sign))
        return tuple(found)

    def sign_of(self, body: int) -> Scalar:
        """1 for the second body, -1 for the first, 0 for all others."""
        return entry(
            [float(body == second) - float(body == first) for first, second in self.bodies], self.number
        )

    def total(self, values: Sequence[Scalar]) -> Scalar:
        """The sum of the values of both bodies."""
        if all(literal(x) is not None for x in values):
            numbers = [literal(x) or 0.0 for x in values]
            return entry([numbers[first] + numbers[second] for first, second in self.bodies], self.number)
        total: Scalar = 0.0
        for body, value in enumerate(values):
            total = total + value * absolute(self.sign_of(body))
        return total

    def _sign(self, tree: Tree, joint: int) -> Scalar:
        """1 where the joint of a body carries the second one alone, -1 the first one alone, else 0."""
        signs = [
            float(_carries(tree, joint, second)) - float(_carries(tree, joint, first))
            for first, second in self.bodies
        ]
        return entry(signs, self.number)


def of_both(item: Candidate, values: Sequence[Scalar]) -> Scalar:
    """The sum of the values of the bodies of a candidate; the world has none."""
    if item.chosen is not None:
        return item.chosen.total(values)
    return sum((values[i] for i in (item.first, item.second) if i != WORLD), 0.0)


def signs_of(item: Candidate, bodies: int) -> list[tuple[int, Scalar]]:
    """The bodies of a candidate: 1 for the second one, -1 for the first."""
    if item.chosen is None:
        return [(i, sign) for i, sign in ((item.second, 1.0), (item.first, -1.0)) if i != WORLD]
    signs = [(i, item.chosen.sign_of(i)) for i in range(bodies)]
    return [(i, sign) for i, sign in signs if not is_zero(sign)]


def _carries(tree: Tree, joint: int, body: int) -> bool:
    while body > joint:
        body = tree.bodies[body].parent
    return body == joint


def entry(numbers: Sequence[float], place: Scalar) -> Scalar:
    """An element of a list; a literal where all of them are the same."""
    return numbers[0] if all(x == numbers[0] for x in numbers) else lookup(numbers, place)


def pair_number(which: Scalar) -> Scalar:
    """The number of the pair of a point."""
    return floor(which * (1.0 / PER_PAIR))


def none_kept(count: int) -> list[KeptPoint]:
    """Places for so many points."""
    return [KeptPoint(-1.0, ContactPoint(Vec3.zero(), Vec3.unit(2), ABSENT_POINT_GAP)) for _ in range(count)]


def inserted(kept: Sequence[KeptPoint], new: KeptPoint) -> tuple[list[KeptPoint], Scalar]:
    """The list with a point put where its gap says, the least first, and the gap that then falls out."""
    found = []
    for old in kept:
        nearer = new.point.gap < old.point.gap
        found.append(_chosen(nearer, new, old))
        new = _chosen(nearer, old, new)
    return found, new.point.gap


def _chosen(condition: Scalar, a: KeptPoint, b: KeptPoint) -> KeptPoint:
    def both(x: Scalar, y: Scalar) -> Scalar:
        return select(condition, x, y)

    position = Vec3(*map(both, a.point.position, b.point.position))
    normal = Vec3(*map(both, a.point.normal, b.point.normal))
    return KeptPoint(both(a.which, b.which), ContactPoint(position, normal, both(a.point.gap, b.point.gap)))


def remembered(
    which: Sequence[Scalar],
    memory: Sequence[Sequence[Scalar]],
    fresh: Sequence[float],
    groups: Sequence[int],
) -> list[list[Scalar]]:
    """The memory of the points of now, the last of which are the points `which`: what each of them has in the
    memory of the step before, whose rows end with which point they are; `fresh` if it was not there. Points
    stay in their group, of `groups` points each."""
    always = len(memory) - len(which)
    found = [list(row[:-1]) for row in memory[:always]]
    first = 0
    for count in groups:
        rows = memory[always + first : always + first + count]
        for now in which[first : first + count]:
            # What says that there was no step yet holds for all points of a sample.
            own = [minimum(rows[0][k], 0.0) if x < 0.0 else x for k, x in enumerate(fresh)]
            for row in rows:
                same = absolute(now - row[-1]) < 0.5
                own = [select(same, x, y) for x, y in zip(row[:-1], own, strict=True)]
            found.append(own)
        first += count
    return found


def with_which(memory: Sequence[Sequence[Scalar]], which: Sequence[Scalar]) -> list[list[Scalar]]:
    """The memory for the next step: rows that end with which points the chosen ones are."""
    if not which:
        return [list(row) for row in memory]
    numbers = [-1.0] * (len(memory) - len(which)) + list(which)
    return [[*row, number] for row, number in zip(memory, numbers, strict=True)]
