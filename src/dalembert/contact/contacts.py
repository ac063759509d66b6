"""The contact points of a step as rows: places where bodies may touch, as geometry hands them to the laws.

What a law remembers of a point from one step to the next, such as its impulse, goes with the point's number:
`recall` finds what a sample remembers of the points of this step, `remember` lists it for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dalembert.contact.friction import Turning
from dalembert.contact.narrow_phase.candidates import ABSENT_POINT_GAP, Candidate, ContactPoint
from dalembert.contact.pairs import ContactPair
from dalembert.contact.prescribed import TreeAtTime
from dalembert.model.topology import WORLD
from dalembert.model.tree import StandingTree, Tree
from dalembert.scalar import Family, Linked, Row, Rows, Scalar, Write, is_zero, rows, select
from dalembert.spatial import Vec3

# Bodies as rows: all of a system and, last, the world. A tree may stand for others that are alike.

T = TypeVar("T")


def stack_bodies(tree: Tree, rows: Rows, values: Sequence[T], last: T) -> Family[T]:
    """Return as rows a value of each body of a tree, and `last` for the world."""
    tree = _standing(tree)
    if isinstance(tree, StandingTree):
        return tree.stack(rows, values, last)
    listed: list[Any] = [*values, last]
    return rows.numbers(listed) if all(isinstance(x, float) for x in listed) else rows.stack(listed)


def of_body(tree: Tree, rows: Rows, family: Family[T], body: int) -> T:
    """Return the value that a body of a tree has in a family of such rows."""
    tree = _standing(tree)
    return tree.at(rows, family, body) if isinstance(tree, StandingTree) else family.at(body)


def for_bodies(tree: Tree, values: Sequence[T]) -> list[T]:
    """Return for the bodies of a tree what is given for those of the whole system."""
    tree = _standing(tree)
    return tree.of_bodies(values) if isinstance(tree, StandingTree) else list(values)


def standing_for(tree: Tree, body: int) -> int:
    """Return the body of a tree that stands for one of the whole system."""
    tree = _standing(tree)
    return tree.standing_for(body) if isinstance(tree, StandingTree) else body


def _standing(tree: Tree) -> Tree:
    return tree.original if isinstance(tree, TreeAtTime) else tree


class TurningFriction(NamedTuple):
    """The coefficients [m] of friction against turning of each point: `spin` about the normal, `roll` across
    it."""

    spin: Family[Scalar]
    roll: Family[Scalar]

    def law(self, row: Row, stiffness: Scalar, warm_start: Vec3) -> Turning:
        """Return friction against turning of a point."""
        return Turning(self.spin[row], self.roll[row], stiffness, warm_start)


class BodyPairs(NamedTuple):
    """The pairs of bodies that may touch, (first, second) in `names`: their rows, the bodies of each, and the
    pair of each point."""

    names: tuple[tuple[int, int], ...]
    rows: Rows
    first: Family[Row]
    second: Family[Row]
    of_point: Family[Row]

    @staticmethod
    def of(every: Rows, of_points: npt.NDArray[np.int64], bodies: Rows, count: int, like: Any) -> BodyPairs:
        """Return the pairs of all points, by the bodies of each; `bodies`: all `count` and the world."""
        both = np.where(of_points == WORLD, count, of_points) @ [count + 1, 1]
        _, begins, number = np.unique(both, return_index=True, return_inverse=True)
        order = np.argsort(begins)  # that of the points
        names, place = of_points[begins[order]], np.argsort(order)
        found = rows(len(names), like=like)
        first, second = (found.links(bodies, np.where(own == WORLD, count, own)) for own in names.T)
        return BodyPairs(
            tuple(map(tuple, names.tolist())), found, first, second, every.links(found, place[number])
        )


class Contacts(NamedTuple):
    """Contact points: `near` are those that are near in any sample, of `every` point that there may be.

    `bodies`: all bodies and, last, the world; `first` and `second` of a point. `friction`: Coulomb's mu;
    `restitution`: e of Featherstone 2008 Eq. 11.64; `number`: that of the point among `every`; `body_pairs`:
    the pairs of bodies that points may have; `rebounds`: whether any point has a restitution.
    `across`: mu along the second direction of the surface (`friction.Ellipse`), and `turning`: friction
    against turning, each None where no pair has it. `axes`: what a sample remembers of separated pairs
    (`collision.KnownAxes`).
    """

    near: Rows
    every: Rows
    bodies: Rows
    first: Family[Row]
    second: Family[Row]
    friction: Family[Scalar]
    restitution: Family[Scalar]
    number: Family[Scalar]
    points: Family[ContactPoint]
    body_pairs: BodyPairs
    rebounds: bool
    across: Family[Scalar] | None = None
    turning: TurningFriction | None = None
    axes: Sequence[Sequence[Scalar]] = ()


def listed_contacts(count: int, candidates: Sequence[Candidate], like: Any) -> Contacts:
    """Return contacts of `count` bodies at all the candidates, near or not."""
    every, bodies = rows(len(candidates), like=like), rows(count + 1, like=like)
    first, second = (
        every.links(bodies, [count if k == WORLD else k for k in own])
        for own in ([item.first for item in candidates], [item.second for item in candidates])
    )
    return Contacts(
        near=every,
        every=every,
        bodies=bodies,
        first=first,
        second=second,
        friction=every.stack([item.friction for item in candidates]),
        restitution=every.stack([item.restitution for item in candidates]),
        number=every.numbers([float(k) for k in range(len(candidates))]),
        points=every.stack([item.point for item in candidates]),
        body_pairs=BodyPairs.of(
            every,
            np.array([(item.first, item.second) for item in candidates], np.int64).reshape(-1, 2),
            bodies,
            count,
            like,
        ),
        rebounds=any(not is_zero(item.restitution) for item in candidates),
        across=friction_across(candidates, every.stack),
        turning=turning_friction(candidates, every.stack),
    )


def with_coefficients(
    contacts: Contacts, pairs: Sequence[ContactPair], pair_of_point: npt.NDArray[np.int64], like: Any
) -> Contacts:
    """Return contacts with the coefficients of these pairs; `pair_of_point`: the number of each point's
    pair."""
    table = rows(len(pairs), like=like)
    links = contacts.every.links(table, pair_of_point)

    def of_pairs(own: list[Any]) -> Family[Any]:
        return Linked(links, table.stack(own))

    return contacts._replace(
        friction=of_pairs([pair.friction for pair in pairs]),
        restitution=of_pairs([pair.restitution for pair in pairs]),
        rebounds=any(not is_zero(pair.restitution) for pair in pairs),
        across=friction_across(pairs, of_pairs),
        turning=turning_friction(pairs, of_pairs),
    )


def friction_across(
    given: Sequence[Candidate | ContactPair], family: Callable[[list[Any]], Family[Scalar]]
) -> Family[Scalar] | None:
    """Return the second coefficient of sliding friction, or None if all have the same in all directions;
    `family` makes a family of one value for each given item."""
    if all(item.across is None for item in given):
        return None
    return family([item.friction if item.across is None else item.across for item in given])


def turning_friction(
    given: Sequence[Candidate | ContactPair], family: Callable[[list[Any]], Family[Scalar]]
) -> TurningFriction | None:
    """Return friction against turning, or None if nothing resists it."""
    if all(is_zero(x) for item in given for x in (item.torsion, item.rolling)):
        return None
    return TurningFriction(family([item.torsion for item in given]), family([item.rolling for item in given]))


# What a sample remembers of points: rows that begin with the number of a point, -1 for none.


def recall(
    contacts: Contacts, remembered: Sequence[Sequence[Scalar]], fresh: Sequence[Scalar], *, unless: Scalar
) -> Family[list[Scalar]]:
    """Return what is remembered of the near points, `fresh` for points of which nothing is, and for all
    points where `unless` holds.

    All near points are made fresh first, and then each remembered point writes its own: what the others left
    in memory is never read. A point that is near in other samples of the block only is fresh too.
    """
    kept = rows(len(remembered), like=[remembered, fresh])
    given = kept.stack([list(row) for row in remembered])
    filled = kept.where(lambda row: given[row][0] >= 0.0)
    memory = contacts.every.write(
        [
            Write(contacts.near, lambda row: [(row, list(fresh))]),
            Write(filled, lambda row: [(select(unless, -1.0, given[row][0]), given[row][1:])]),
        ]
    )

    def values(row: Row) -> list[Scalar]:
        is_near = contacts.points[row].gap < ABSENT_POINT_GAP
        return [select(is_near, x, y) for x, y in zip(memory[row], fresh, strict=True)]

    return contacts.near.each(values)


def remember(
    contacts: Contacts,
    values: Family[list[Scalar]],
    lasting: Callable[[Row], Scalar],
    size: tuple[int, int],
    like: Any,
) -> tuple[list[list[Scalar]], Scalar]:
    """Return rows of what is to be remembered, a number and the values for each point that is `lasting`, and
    how many such points there are, which may be more than the rows; `size`: those of rows and of values."""
    kept = rows(size[0], like=like)

    def place(count: Scalar, row: Row) -> tuple[Scalar, Scalar]:
        stays = lasting(row)
        return count + select(stays, 1.0, 0.0), select(stays, count, -1.0)

    count, places = contacts.near.scan(place, 0.0)
    memory = kept.write(
        [
            Write(kept, lambda row: [(row, [-1.0] + [0.0] * size[1])]),
            Write(contacts.near, lambda row: [(places[row], [contacts.number[row], *values[row]])]),
        ]
    )
    return memory.first(size[0]), count
