"""A tree too large to unroll: each pass is traced once per *kind* of body and becomes a loop over tables.

Bodies of one kind share their joint type and the structure of their constants; the constants themselves stand
in a table, a row a body. A number that all bodies of a kind share stays a literal and folds. Owns live in
state arrays, a row a body. A carry is needed only until the last child has read it, and a gathered sum only
from the first child to the body itself: they live in few rows that are used again (*slots*), which stay in
the cache however large the tree. Of a carry, only the entries that are not the same literal everywhere are
kept. The algorithms do not know: they see the same passes and the same handles as on a `Model`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np

from dalembert.errors import TracingError
from dalembert.model.body import Body, Dependence
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, literal
from dalembert.spatial.value import leaves, rebuild
from dalembert.tracing.expression import Address, Expression, live
from dalembert.tracing.graph import Graph
from dalembert.tracing.program import ArraySpec, Case, Loop, Statement, Store, Straight

# Arrays of a tree too large to unroll, as the current body reads them: its own elements, by tables.


@final
@dataclass(frozen=True, slots=True)
class BodySlice:
    """The place in q or v of the current body's joint, `count` entries from its table's offset, or of the one
    variable that the joint follows (None)."""

    table: str
    count: int | None


@final
class BodyIndex(int):
    """The current body, as an index into per-body inputs; its value is the body's kind."""


@final
class InputTable:
    """An input array, read a joint or a body at a time."""

    def __init__(self, graph: Graph, name: str, width: int = 1) -> None:
        self._graph, self._name, self._width = graph, name, width

    def __getitem__(self, place: object) -> Any:
        if isinstance(place, BodySlice):
            if place.count is None:
                return self._graph.load(Address(self._name, place.table, 1, 0))
            return [self._graph.load(Address(self._name, place.table, 1, j)) for j in range(place.count)]
        if isinstance(place, BodyIndex):
            return [self._graph.load(Address(self._name, None, self._width, j)) for j in range(self._width)]
        raise TracingError(
            f"{self._name}[{place!r}]: in a system this large an algorithm reads arrays through its body only"
        )


@final
@dataclass(frozen=True, slots=True)
class TableVector:
    """A result in v order that a loop has already stored in the output array of this name."""

    array: str
    size: int


@final
class TableOwns(PerBody[Any]):
    """The results of a pass: for each kind a template and the nodes that load its leaves in a later loop."""

    __slots__ = ("_templates",)

    def __init__(self, templates: Sequence[tuple[Any, list[Any]]]) -> None:
        super().__init__(())
        self._templates = tuple(templates)

    def __getitem__(self, body: Body | int) -> Any:
        kind = body if isinstance(body, int) else body.index
        if not isinstance(kind, BodyIndex):
            raise TracingError(
                "in a system this large an algorithm visits bodies by passes over the tree only"
            )
        return rebuild(*self._templates[kind])


# The kinds of bodies: bodies of one kind differ in numbers only, which a table holds.


def _constants(body: Body) -> tuple[Any, ...]:
    return (body.placement, body.inertia, body.armature)


def structure_of(body: Body) -> Any:
    """Return what bodies of one kind have in common."""
    followed = -1 if body.dependence is None else len(body.dependence.terms)
    return type(body.joint), body.joint.structure(), _shape(_constants(body)), followed


def body_numbers(body: Body) -> list[float]:
    """Return all constants of a body that dynamics reads."""
    return [*body.joint.parameters(), *leaves(_constants(body)), *_ratios(body.dependence)]


def with_numbers(body: Body, values: list[Any]) -> Body:
    """Return a body with other constants, in the order of `body_numbers`."""
    split = len(body.joint.parameters())
    end = len(values) - len(_ratios(body.dependence))
    placement, inertia, armature = rebuild(_constants(body), values[split:end])
    joint = body.joint.with_parameters(values[:split])
    dependence = body.dependence
    if dependence is not None:
        offset, *ratios = values[end:]
        terms = ((q, v, ratio) for (q, v, _), ratio in zip(dependence.terms, ratios, strict=True))
        dependence = Dependence(tuple(terms), offset)
    return replace(
        body, joint=joint, placement=placement, inertia=inertia, armature=armature, dependence=dependence
    )


def _ratios(dependence: Dependence | None) -> list[float]:
    """Return the numbers of a coupling: its offset and the ratio of each term."""
    return [] if dependence is None else [dependence.offset, *(ratio for _, _, ratio in dependence.terms)]


def _shape(value: Any) -> Any:
    """Return the nesting of a value without its numbers; the axis of a screw belongs to the structure."""
    if isinstance(value, (tuple, list)):
        return tuple(_shape(item) for item in value)
    return (
        type(value),
        getattr(value, "axis", None),
        tuple(_shape(item) for item in getattr(value, "factors", ())),
    )


# Rows that a pass over a large tree uses again: *slots*, allotted to bodies like registers.
#
# What a body hands to its children is needed until the last of them has read it, and the sum of what a body's
# children hand to it from the first contribution until the body reads it. So values of bodies that are never
# needed at the same time share a slot, and the few slots stay in the cache however large the tree.
#
# Parents come before their children: `parents[i] < i`, with -1 for the world, whose slot is always 0.

Slots = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], int]
"""The slot of each body, that of its parent, and how many there are; the world's is 0."""


def carry_slots(parents: Sequence[int]) -> Slots:
    """Assign slots outward: a body takes a slot after reading its parent's, which the last child frees."""
    last_child = {parent: child for child, parent in enumerate(parents)}
    slots, free, used = {-1: 0}, list[int](), 1
    for body, parent in enumerate(parents):
        if last_child[parent] == body:
            free.append(slots[parent])
        if not free:
            free.append(used)
            used += 1
        slots[body] = free.pop()
        if body not in last_child:
            free.append(slots[body])
    return _slot_tables(parents, slots, used)


def sum_slots(parents: Sequence[int]) -> Slots:
    """Assign slots inward: a body's last child, which comes first, takes its slot, the body frees it."""
    slots, free, used = {-1: 0}, list[int](), 1
    for body in reversed(range(len(parents))):
        for needy in (body, parents[body]):
            if needy not in slots:
                if not free:
                    free.append(used)
                    used += 1
                slots[needy] = free.pop()
            if needy == body:
                free.append(slots[body])
    return _slot_tables(parents, slots, used)


def _slot_tables(parents: Sequence[int], slots: dict[int, int], used: int) -> Slots:
    own = np.array([slots[body] for body in range(len(parents))], np.int64)
    return own, np.array([slots[parent] for parent in parents], np.int64), used


NUMBERS: Final = "body numbers"
OWN: Final = "own"
CARRY: Final = ("carry slot", "parent's carry slot")
SUM: Final = ("sum slot", "parent's sum slot")
KINDS: Final = "kind"
OFFSETS: Final = {"q": "q offset", "v": "v offset"}
FOLLOWED: Final = "place in {} of term {}"


Step: TypeAlias = Callable[[Body, Any], tuple[Any, Any]]


class _Passing(NamedTuple):
    """The entries of a state that the bodies of a pass exchange: each a literal or None, and for each kind of
    body those sent on and the own result."""

    array: str
    literals: list[float | None]
    sent: list[list[Any]]
    owns: list[Any]

    @property
    def entries(self) -> list[int]:
        """The entries that are no literals."""
        return [j for j, number in enumerate(self.literals) if number is None]

    def address(self, row: str, entry: int) -> Address:
        return Address(self.array, row, len(self.literals), entry)


@final
class TableTree(Tree):
    """The tree's passes as loops; `statements`, `states`, `outputs` and `tables` become its Program's."""

    def __init__(
        self, tree: Tree, graph: Graph, needed: frozenset[tuple[str, int, int]] | None = None
    ) -> None:
        """`needed`: what an earlier trace of the function found to be read of the owns; None: all."""
        self._tree = tree
        self._needed = needed
        self.graph = graph
        self.statements: list[Statement] = []
        self.states: list[ArraySpec] = []
        self.outputs: list[ArraySpec] = []
        self.tables: dict[str, np.ndarray[Any, Any]] = {}
        self._slots: dict[str, int] = {}
        self.parents, self.gravity = tree.parents, tree.gravity
        self.nq, self.nv = tree.nq, tree.nv
        self.loops, self.loop_names = tree.loops, tree.loop_names
        self.constraints, self.closure = tree.constraints, tree.closure
        self._handles = self._tabulate()
        self.bodies = tree.bodies

    def outward(self, step: Step, base: Any) -> PerBody[Any]:
        own_row, parent_row = CARRY
        passing = self._trace_kinds(step, base, "carry", parent_row)
        start = leaves(base)
        self.statements.append(
            Straight(tuple(Store.fixed(passing.array, j, self._node(start[j])) for j in passing.entries))
        )
        stores = [
            tuple(Store(passing.address(own_row, j), self._node(values[j])) for j in passing.entries)
            for values in passing.sent
        ]
        return self._loop(stores, passing.owns, reverse=False)

    def inward(self, step: Step, zero: Any) -> tuple[PerBody[Any], Any]:
        own_row, parent_row = SUM
        passing = self._trace_kinds(step, zero, "gathered", own_row)
        # A body has read its sum: the slot is cleared for its next user, which may be the parent at once.
        cleared = [Store(passing.address(own_row, j), self._node(0.0)) for j in passing.entries]
        stores = [
            (
                *cleared,
                *(
                    Store(passing.address(parent_row, j), self._node(values[j]), accumulate=True)
                    for j in passing.entries
                ),
            )
            for values in passing.sent
        ]
        result = self._loop(stores, passing.owns, reverse=True)
        world = [
            self.graph.load(Address.fixed(passing.array, j)) if number is None else number
            for j, number in enumerate(passing.literals)
        ]
        return result, rebuild(zero, world)

    def collect(self, per_body: PerBody[Sequence[Scalar]] | Sequence[Sequence[Scalar]]) -> Any:
        array = f"collected {len(self.outputs)}"
        self.outputs.append(ArraySpec(array, self.nv))
        coupled = any(body.dependence is not None for body in self._handles)
        cases = []
        for body in self._handles:
            values = leaves(per_body[body.index])
            if body.dependence is None:
                places = [(Address(array, OFFSETS["v"], 1, j), leaf) for j, leaf in enumerate(values)]
            else:  # a joint that follows others stores G^T tau at their places
                places = [
                    (Address(array, place.table, 1, 0), ratio * values[0])  # type: ignore[attr-defined]
                    for _, place, ratio in body.dependence.terms
                ]
            cases.append(tuple(Store(at, self._node(leaf), accumulate=coupled) for at, leaf in places))
        self._append(cases, reverse=False)
        return TableVector(array, self.nv)

    def per_joint(self, array: str, order: str, step: Callable[[Body], Sequence[Scalar]]) -> Loop:
        """Return a loop that stores `step` of each independent joint at its places in q or in v."""
        cases = [
            tuple(
                Store(Address(array, OFFSETS[order], 1, j), self._node(leaf))
                for j, leaf in enumerate(step(body) if body.dependence is None else ())
            )
            for body in self._handles
        ]
        return self._over_bodies(cases, reverse=False)

    def leaves_read(self) -> frozenset[tuple[str, int, int]]:
        """Return (state, kind, leaf) of the stored results that some later pass reads."""
        own_states = {state.name for state in self.states if state.name.startswith(OWN)}
        stored = [
            (kind, store)
            for statement in self.statements
            if isinstance(statement, Loop)
            for kind, case in enumerate(statement.cases)
            for store in case
        ]
        while True:
            read = {
                (node.data.array, kind, node.data.offset)
                for kind in range(len(self._handles))
                for node in live([store.value for of, store in stored if of == kind])
                if node.op == "load" and node.data.array in own_states
            }
            kept = [
                (kind, store)
                for kind, store in stored
                if store.array not in own_states or (store.array, kind, store.address.offset) in read
            ]
            if len(kept) == len(stored):
                return frozenset(read)
            stored = kept

    def _trace_kinds(self, step: Step, start: Any, role: str, row: str) -> _Passing:
        """Trace every kind of body on what it reads in a row of a new state; an entry that all kinds pass on
        as the literal that it was at the start stays that literal."""
        literals = [literal(leaf) for leaf in leaves(start)]
        width = len(literals)
        array = self._state(role, width * self._slots[row])
        while True:
            results = []
            for body in self._handles:
                received = [
                    self.graph.load(Address(array, row, width, j)) if number is None else number
                    for j, number in enumerate(literals)
                ]
                results.append(step(body, rebuild(start, received)))
            sent = [leaves(carry) for carry, _ in results]
            settled = [
                number
                if number is not None and all(literal(values[j]) == number for values in sent)
                else None
                for j, number in enumerate(literals)
            ]
            if settled == literals:
                return _Passing(array, literals, sent, [own for _, own in results])
            literals = settled

    def _loop(self, passed: Sequence[Case], owns: list[Any], *, reverse: bool) -> PerBody[Any]:
        """Append the loop that passes carries on and keeps what later passes read of the owns."""
        name = f"{OWN} {len(self.states)}"
        places = [self._places(name, kind, own) for kind, own in enumerate(owns)]
        width = max((max(place.values(), default=-1) + 1 for place in places), default=0)
        if width:
            self._state(OWN, width * len(self._tree.bodies))
        cases = []
        templates = []
        for own, place, carries in zip(owns, places, passed, strict=True):
            later = leaves(own)
            keep = tuple(
                Store(Address(name, None, width, at), self._node(later[k])) for k, at in place.items()
            )
            cases.append((*carries, *keep))
            for k, at in place.items():
                later[k] = self.graph.load(Address(name, None, width, at))
            templates.append((own, later))
        self._append(cases, reverse=reverse)
        return TableOwns(templates)

    def _places(self, state: str, kind: int, own: Any) -> dict[int, int]:
        """Return which leaves of a result are stored, in which column: all at first, then those needed.

        Literals, constants of the tables and inputs can be had again in any loop.
        """
        stored = {item.name for item in self.states}
        kept = [
            k
            for k, leaf in enumerate(leaves(own))
            if literal(leaf) is None and (leaf.op != "load" or leaf.data.array in stored)
        ]
        if self._needed is None:
            return {k: k for k in kept}
        return {k: at for at, k in enumerate(k for k in kept if (state, kind, k) in self._needed)}

    def _append(self, cases: Sequence[Case], *, reverse: bool) -> None:
        if any(cases):
            self.statements.append(self._over_bodies(cases, reverse=reverse))

    def _over_bodies(self, cases: Sequence[Case], *, reverse: bool) -> Loop:
        kinds = KINDS if len(cases) > 1 else None
        return Loop(len(self._tree.bodies), reverse, kinds, tuple(cases))

    def _node(self, leaf: Any) -> Expression:
        return leaf if isinstance(leaf, Expression) else self.graph.constant(float(leaf))

    def _state(self, role: str, size: int) -> str:
        name = f"{role} {len(self.states)}"
        self.states.append(ArraySpec(name, size))
        return name

    def _tabulate(self) -> tuple[Body, ...]:
        """Sort the bodies into kinds, write the tables, and make one handle a kind."""
        bodies = self._tree.bodies
        members: dict[Any, list[Body]] = {}
        for body in bodies:
            if body.joint.time_dependent:
                raise TracingError(f"joint {body.joint_name!r}: time-dependent joints are not tabulated")
            members.setdefault(structure_of(body), []).append(body)
        rows = {body.index: body_numbers(body) for body in bodies}
        width = max(len(row) for row in rows.values())
        numbers = np.zeros((len(bodies), width))
        kinds = np.zeros(len(bodies), np.int64)
        for number, group in enumerate(members.values()):
            for body in group:
                numbers[body.index, : len(rows[body.index])] = rows[body.index]
                kinds[body.index] = number
        self.tables[NUMBERS] = numbers.ravel()
        for names, assign in ((CARRY, carry_slots), (SUM, sum_slots)):
            self.tables[names[0]], self.tables[names[1]], count = assign(self._tree.parents)
            self._slots |= dict.fromkeys(names, count)
        self.tables[OFFSETS["q"]] = np.asarray([body.q_slice.start for body in bodies], np.int64)
        self.tables[OFFSETS["v"]] = np.asarray([body.v_slice.start for body in bodies], np.int64)
        # For each term of a coupling the places in q and in v of the variables that it follows.
        terms = [() if body.dependence is None else body.dependence.terms for body in bodies]
        for k in range(max(map(len, terms), default=0)):
            for which, array in enumerate("qv"):
                places = [own[k][which] if k < len(own) else 0 for own in terms]
                self.tables[FOLLOWED.format(array, k)] = np.asarray(places, np.int64)
        if len(members) > 1:
            self.tables[KINDS] = kinds
        return tuple(
            self._handle(number, group[0], numbers[kinds == number])
            for number, group in enumerate(members.values())
        )

    def _handle(self, kind: int, template: Body, numbers: np.ndarray[Any, Any]) -> Body:
        """Return a body whose constants are loads of the tables, and literals where its kind agrees."""
        shared = np.all(numbers == numbers[0], axis=0)
        width = numbers.shape[1]
        values: list[Any] = [
            float(numbers[0, j]) if shared[j] else self.graph.load(Address(NUMBERS, None, width, j))
            for j in range(len(body_numbers(template)))
        ]
        dependence = template.dependence
        if dependence is not None:
            terms = tuple(
                (*(BodySlice(FOLLOWED.format(array, k), None) for array in "qv"), ratio)
                for k, (_, _, ratio) in enumerate(dependence.terms)
            )
            dependence = replace(dependence, terms=terms)  # type: ignore[arg-type]
        return with_numbers(
            replace(
                template,
                dependence=dependence,
                index=BodyIndex(kind),
                q_slice=BodySlice(OFFSETS["q"], template.nq),  # type: ignore[arg-type]
                v_slice=BodySlice(OFFSETS["v"], template.nv),  # type: ignore[arg-type]
            ),
            values,
        )
