"""Trees of a model that are alike, such as loose bodies, as the rows of one tree.

Two trees from the root are alike if they differ in numbers only: masses, placements, limits. A `Forest` has
one tree for all that are alike, whose numbers and variables are wide (`scalar.Rows.every`): an algorithm runs
once on it, and becomes a loop over the trees. Trees that have no like stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar, final

from dalembert import scalar
from dalembert.compiler.tables import body_numbers, structure_of, with_numbers
from dalembert.contact.prescribed import PrescribedMotion
from dalembert.contact.step import root_trees
from dalembert.contact.step_terms import Motor
from dalembert.model.body import LIMITS, Body, Dependence, Limits, bounds_of
from dalembert.model.topology import WORLD
from dalembert.model.tree import StandingTree, Tree
from dalembert.scalar import Family, Row, Rows, Scalar, Write, literal
from dalembert.scalar.for_each import leaves, rebuild

T = TypeVar("T")

MIN_ALIKE_VARIABLES: Final = 36
"""The velocity variables that alike trees have together, from which on they become rows: those of six loose
bodies. Code for each of them is compiled in 0.25 s a body."""

KINDS: Final = ("q", "v", "bodies", "trees")
"""What a value may be given for: each position variable, each velocity variable, each body, each tree."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class AlikeTrees:
    """Trees that are alike, or one tree alone: for each of them the bodies, and of each of `KINDS` the
    numbers in the model; `rows` of those that are alike, else None."""

    members: tuple[tuple[int, ...], ...]
    numbers: dict[str, list[list[int]]]
    rows: Rows | None


def root_bodies(tree: Tree) -> list[list[int]]:
    """Return the bodies of each tree from the root, by numbers."""
    return [[body.index for body in bodies] for bodies in root_trees(tree)]


def alike_trees(
    tree: Tree, driven: Sequence[int] = (), given: frozenset[int] = frozenset()
) -> list[list[int]] | None:
    """Return the trees of each kind, by their numbers among `root_bodies`, or None where none become rows;
    `driven`: velocity variables with motors, which alike trees have in the same places; `given`: those of
    prescribed joints, whose trees have no like.

    There are none where user constraints, springs, a fluid or gears between trees act; a tree with a loop, or
    with a joint that depends on time, has no like.
    """
    if tree.constraints or tree.closure is not None or tree.springs or tree.fluid is not None:
        return None
    roots = root_bodies(tree)
    if any(_follows_another(tree, own) for own in roots):
        return None
    looped = {body for loop in tree.loops for body in (loop.predecessor, loop.successor)}
    kinds: dict[Any, list[int]] = {}
    for number, own in enumerate(roots):
        is_free = given.isdisjoint(_variables(tree, own, "v_slice")) and looped.isdisjoint(own)
        kind = _kind(tree, own, driven) if is_free else None
        kinds.setdefault((number,) if kind is None else kind, []).append(number)
    sizes = [sum(len(_variables(tree, roots[k], "v_slice")) for k in own) for own in kinds.values()]
    large = [len(own) > 1 and size >= MIN_ALIKE_VARIABLES for own, size in zip(kinds.values(), sizes)]
    if not any(large):
        return None
    found = [
        part
        for own, many in zip(kinds.values(), large, strict=True)
        for part in ([own] if many else [[k] for k in own])
    ]
    return sorted(found)


def _variables(tree: Tree, bodies: Sequence[int], order: str) -> list[int]:
    """Return the places of the variables of bodies in q or in v."""
    slices = [getattr(tree.bodies[k], order) for k in bodies if tree.bodies[k].dependence is None]
    return [place for own in slices for place in range(own.start, own.stop)]


def _kind(tree: Tree, bodies: Sequence[int], driven: Sequence[int]) -> Any:
    """Return what alike trees have in common; None for a tree that has no like."""
    places = {name: _variables(tree, bodies, f"{name}_slice") for name in "qv"}
    found: list[Any] = [tuple(places["v"].index(k) for k in driven if k in places["v"])]
    for k in bodies:
        body = tree.bodies[k]
        if body.joint.time_dependent:
            return None
        parent = -1 if body.parent == WORLD else bodies.index(body.parent)
        bounded = tuple(literal(x) is None or math.isfinite(x) for x in leaves(_ends(body)))
        zeros = tuple(scalar.is_zero(x) for x in leaves((body.armature, _resistances(body))))
        found.append((parent, structure_of(body), _relative(body, places), bounded, zeros))
    return tuple(found)


def _relative(body: Body, places: dict[str, list[int]]) -> tuple[Any, ...]:
    """Return the terms of a coupling by the places of their variables in the tree."""
    terms = () if body.dependence is None else body.dependence.terms
    return tuple((places["q"].index(q), places["v"].index(v), ratio) for q, v, ratio in terms)


def _follows_another(tree: Tree, bodies: Sequence[int]) -> bool:
    """Return whether a joint of a tree follows joints of another tree."""
    own = set(_variables(tree, bodies, "v_slice"))
    followed = (tree.bodies[k].dependence for k in bodies)
    return any(v not in own for item in followed if item is not None for _, v, _ in item.terms)


def _resistances(body: Body) -> tuple[Any, ...]:
    return (body.damping, body.friction, body.stiffness)


def _ends(body: Body) -> tuple[Any, ...]:
    return tuple(bounds_of(body, part) for part in LIMITS)


def _numbers(body: Body) -> list[Scalar]:
    """Return all numbers of a body that a step reads."""
    return [*body_numbers(body), *leaves((_resistances(body), body.rest, _ends(body)))]


def _with_numbers(body: Body, values: list[Scalar]) -> Body:
    """Return a body with other numbers, in the order of `_numbers`."""
    split, form = len(body_numbers(body)), (_resistances(body), body.rest, _ends(body))
    (damping, friction, stiffness), rest, ends = rebuild(form, values[split:])
    own = with_numbers(body, values[:split])
    return replace(
        own, damping=damping, friction=friction, stiffness=stiffness, rest=rest, limits=Limits(*ends)
    )


@final
class Forest(StandingTree):
    """The trees of a model, one for all that are alike; `groups` are those of each of its trees."""

    __slots__ = (
        *("_bodies", "_standing", "bodies", "gravity", "groups", "loop_names", "loops"),
        *("nq", "nv", "original", "parents"),
    )

    original: Tree
    groups: list[AlikeTrees]

    def __init__(self, tree: Tree, kinds: Sequence[Sequence[int]], like: Any) -> None:
        """`kinds`: the trees of each kind by their numbers; `like`: scalars of the kind to compute with."""
        self.original, self.gravity = tree, tree.gravity
        roots = root_bodies(tree)
        self.groups = [_group(tree, roots, own, like) for own in kinds]
        self._bodies: list[Body] = []
        self.bodies = self._bodies
        self._standing: dict[int, int] = {}
        self.nq = self.nv = 0
        for group in self.groups:
            self._append(group)
        self.parents = tuple(body.parent for body in self.bodies)
        self.loop_names = tree.loop_names
        self.loops = [
            replace(
                loop,
                predecessor=self.standing_for(loop.predecessor),
                successor=self.standing_for(loop.successor),
            )
            for loop in tree.loops
        ]

    def _append(self, group: AlikeTrees) -> None:
        """Append the bodies of the tree for a group."""
        start, first = len(self.bodies), group.members[0]
        at = {
            name: {k: place for place, k in enumerate(group.numbers[name][0], start=base)}
            for name, base in (("q", self.nq), ("v", self.nv))
        }
        for place, number in enumerate(first):
            members = [self.original.bodies[own[place]] for own in group.members]
            body = members[0]
            self._standing |= {item.index: start + place for item in members}
            if group.rows is not None:
                body = _with_numbers(body, _join(group.rows, [_numbers(item) for item in members]))
            dependence, slices = body.dependence, {}
            for name, own in (("q", body.q_slice), ("v", body.v_slice)):
                begin = at[name].get(own.start, 0)
                slices[name] = slice(begin, begin + own.stop - own.start)
            if dependence is not None:
                terms = tuple((at["q"][q], at["v"][v], ratio) for q, v, ratio in dependence.terms)
                dependence = Dependence(terms, dependence.offset)
            parent = WORLD if body.parent == WORLD else self._standing[self.original.bodies[number].parent]
            self._bodies.append(
                replace(
                    body,
                    index=start + place,
                    parent=parent,
                    q_slice=slices["q"],
                    v_slice=slices["v"],
                    dependence=dependence,
                )
            )
        self.nq, self.nv = self.nq + len(at["q"]), self.nv + len(at["v"])

    def gather(self, values: Sequence[T], kind: str) -> list[T]:
        """Return values that are given for each of a kind in the model (`KINDS`) for each in the forest."""
        found: list[T] = []
        for group in self.groups:
            numbers = group.numbers[kind]
            if group.rows is None:
                found += [values[k] for k in numbers[0]]
            elif numbers[0]:
                family = group.rows.stack([[values[k] for k in own] for own in numbers])
                found += family[group.rows.every]
        return found

    def gather_alone(self, values: Sequence[T], own: Sequence[T], kind: str) -> list[T]:
        """Return `values` of the forest with those of trees that have no like from `own`, given for the
        model."""
        found: list[T] = []
        for group in self.groups:
            numbers = group.numbers[kind][0]
            more = values[len(found) : len(found) + len(numbers)]
            found += more if group.rows is not None else [own[k] for k in numbers]
        return found

    def gather_prescribed(self, motion: PrescribedMotion) -> PrescribedMotion:
        """Return the motion of prescribed joints, which are in trees that have no like."""
        variables = self.gather_alone([-1] * self.nv, range(self.original.nv), "v")
        places = frozenset(k for k, variable in enumerate(variables) if variable in motion.places)
        earlier, velocity, v = (
            self.gather_alone([0.0] * self.nv, own, "v")
            for own in (motion.earlier, motion.velocity, motion.v)
        )
        q = self.gather_alone([0.0] * self.nq, motion.q, "q")
        return PrescribedMotion(places, earlier, velocity, q, v)

    def gather_motors(self, motors: Sequence[Motor]) -> list[Motor]:
        """Return the motors of the forest; alike trees have them at the same places."""
        found: list[Motor] = []
        first = 0
        for group in self.groups:
            numbers = group.numbers["v"]
            own = [[motor for motor in motors if motor.place in places] for places in numbers]
            for many in zip(*own, strict=True):
                values = [list(motor[1:]) for motor in many]
                if group.rows is not None:
                    values = [group.rows.stack(values)[group.rows.every]]
                found.append(Motor(first + numbers[0].index(many[0].place), *values[0]))
            first += len(numbers[0])
        return found

    def flatten(self, values: Sequence[Scalar], kind: str) -> list[Scalar]:
        """Return numbers that are given for each of a kind in the forest for each in the model."""
        found: dict[int, Scalar] = {}
        place = 0
        for group in self.groups:
            numbers = group.numbers[kind]
            own = list(values[place : place + len(numbers[0])])
            place += len(own)
            if group.rows is None or all(literal(x) is not None for x in own):
                found |= {k: x for member in numbers for k, x in zip(member, own, strict=True)}
            elif own:
                family = group.rows.each(partial(_at_any, own))
                for member, held in zip(numbers, family.first(len(numbers)), strict=True):
                    found |= dict(zip(member, held, strict=True))
        return [found[k] for k in range(len(found))]

    def stack(self, rows: Rows, values: Sequence[T], last: T) -> Family[T]:
        known = [literal(x) for value in (*values, last) for x in leaves(value)]
        if all(x is not None for x in known):
            listed: list[Any] = [*(values[self._standing[k]] for k in range(len(self._standing))), last]
            return rows.numbers(listed) if isinstance(last, float) else rows.stack(listed)
        world, writes = len(self._standing), []
        alone = [(world, last)]
        for group, bodies in self._bodies_of():
            if group.rows is None:
                alone += [(k, values[b]) for k, b in zip(group.members[0], bodies, strict=True)]
                continue
            links = [group.rows.links(rows, [own[j] for own in group.members]) for j in range(len(bodies))]
            writes.append(Write(group.rows, partial(_pairs, links, [values[b] for b in bodies])))
        one = scalar.rows(1, like=[x for value in values for x in leaves(value)])
        places = [one.links(rows, [k]) for k, _ in alone]
        writes.append(Write(one, partial(_pairs, places, [value for _, value in alone])))
        return rows.write(writes)

    def at(self, rows: Rows, family: Family[T], body: int) -> T:
        for group, bodies in self._bodies_of():
            if body in bodies:
                own = [members[bodies.index(body)] for members in group.members]
                if group.rows is None:
                    return family.at(own[0])
                return family[group.rows.links(rows, own)[group.rows.every]]
        raise AssertionError(f"no body {body} in a forest of {len(self.bodies)}")

    def of_bodies(self, values: Sequence[T]) -> list[T]:
        return self.gather(values, "bodies")

    def standing_for(self, body: int) -> int:
        return self._standing.get(body, WORLD)

    def _bodies_of(self) -> Iterator[tuple[AlikeTrees, range]]:
        start = 0
        for group in self.groups:
            yield group, range(start, start + len(group.members[0]))
            start += len(group.members[0])


def _at_any(values: T, _: Row) -> T:
    return values


def _pairs(links: Sequence[Family[Row]], values: Sequence[T], row: Row) -> list[tuple[Row, T]]:
    return [(link[row], value) for link, value in zip(links, values, strict=True)]


def _group(tree: Tree, roots: Sequence[Sequence[int]], own: Sequence[int], like: Any) -> AlikeTrees:
    members = tuple(tuple(roots[k]) for k in own)
    numbers = {
        "q": [_variables(tree, bodies, "q_slice") for bodies in members],
        "v": [_variables(tree, bodies, "v_slice") for bodies in members],
        "bodies": [list(bodies) for bodies in members],
        "trees": [[k] for k in own],
    }
    return AlikeTrees(members, numbers, scalar.rows(len(own), like=like) if len(own) > 1 else None)


def _join(rows: Rows, members: Sequence[Sequence[Scalar]]) -> list[Scalar]:
    """Return numbers of alike bodies: those that all share, and wide ones where they differ."""
    found: list[Scalar] = []
    columns = list(zip(*members, strict=True))
    known = [[literal(x) for x in column] for column in columns]
    differ = [k for k, own in enumerate(known) if None not in own and any(x != own[0] for x in own)]
    tables = rows.columns([[float(known[k][m]) for k in differ] for m in range(len(members))])  # type: ignore[arg-type]
    wide = dict(zip(differ, tables, strict=True))
    for k, own in enumerate(known):
        if k in wide:
            found.append(wide[k][rows.every])
        elif None in own:
            found.append(rows.stack([[x] for x in columns[k]])[rows.every][0])
        else:
            found.append(columns[k][0])
    return found


def forest_of(tree: Tree, like: Any, driven: Sequence[int] = (), given: frozenset[int] = frozenset()) -> Tree:
    """Return the tree itself, or a forest where enough of its trees are alike; `driven` and `given` as in
    `alike_trees`."""
    kinds = alike_trees(tree, driven, given)
    return tree if kinds is None else Forest(tree, kinds, like)
