"""A tree too large to unroll: each pass is traced once per *kind* of body and becomes a loop over tables.

Bodies of one kind share their joint type and the structure of their constants; the constants themselves stand in a
table, a row a body. A number that all bodies of a kind share stays a literal and folds. Carries and owns live in state
arrays, a row a body; of a carry, only the entries that are not the same literal everywhere are kept. The
algorithms do not know: they see the same passes and the same handles as on a `Model`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np

from dalembert.errors import TracingError
from dalembert.model.body import Body
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Vec3
from dalembert.spatial.structure import leaves, rebuild
from dalembert.spatial.value import literal
from dalembert.tracing.expression import Expression, Graph
from dalembert.tracing.program import Address, ArraySpec, IndexedStore, Loop, Statement, Store, Straight

__all__ = ["BodySlice", "InputTable", "TableTree", "TableVector"]

NUMBERS: Final = "body numbers"
PARENTS: Final = "parent row"
KINDS: Final = "kind"
OFFSETS: Final = {"q": "q offset", "v": "v offset"}


@final
@dataclass(frozen=True, slots=True)
class BodySlice:
    """Where the joint of the body in hand stands in q or v: `count` entries from its table's offset."""

    table: str
    count: int


@final
class BodyIndex(int):
    """The body in hand, as an index into per-body inputs; its value is the body's kind."""


@final
class InputTable:
    """An input array, read a joint or a body at a time."""

    def __init__(self, graph: Graph, name: str, width: int = 1) -> None:
        self._graph, self._name, self._width = graph, name, width

    def __getitem__(self, place: object) -> list[Expression]:
        if isinstance(place, BodySlice):
            return [self._graph.load(Address(self._name, place.table, 1, j)) for j in range(place.count)]
        if isinstance(place, BodyIndex):
            return [self._graph.load(Address(self._name, None, self._width, j)) for j in range(self._width)]
        raise TracingError(
            f"{self._name}[{place!r}]: in a system this large an algorithm reads arrays through its body handle only"
        )


@final
@dataclass(frozen=True, slots=True)
class TableVector:
    """A result in v order that a loop has already stored in the output array of this name."""

    array: str
    size: int


@final
class TableOwns(PerBody[Any]):
    """The owns of a pass: for each kind a template and the nodes that load its leaves in a later loop."""

    __slots__ = ("_templates",)

    def __init__(self, templates: Sequence[tuple[Any, list[Any]]]) -> None:
        super().__init__(())
        self._templates = tuple(templates)

    def __getitem__(self, body: Body | int) -> Any:
        kind = body if isinstance(body, int) else body.index
        return rebuild(*self._templates[kind])


@final
class Handles(tuple[Body, ...]):
    """One handle a kind, with the length of the whole tree."""

    _length: int

    def __new__(cls, handles: Sequence[Body], length: int) -> Handles:
        self = super().__new__(cls, handles)
        self._length = length
        return self

    def __len__(self) -> int:
        return self._length


@final
class TableTree(Tree):
    """The tree's passes as loops; `statements`, `states`, `outputs` and `tables` become its Program's."""

    __slots__ = ("_bodies", "_tree", "graph", "outputs", "statements", "states", "tables")

    def __init__(self, tree: Tree, graph: Graph) -> None:
        self._tree = tree
        self.graph = graph
        self.statements: list[Statement] = []
        self.states: list[ArraySpec] = []
        self.outputs: list[ArraySpec] = []
        self.tables: dict[str, np.ndarray[Any, Any]] = {}
        self._bodies = self._tabulate()

    @property
    def bodies(self) -> Sequence[Body]:
        """As many as there are; visited one by one they are the handles of the kinds."""
        return Handles(self._bodies, len(self._tree.bodies))

    @property
    def parents(self) -> tuple[int, ...]:
        return self._tree.parents

    @property
    def gravity(self) -> Vec3:
        return self._tree.gravity

    @property
    def nq(self) -> int:
        return self._tree.nq

    @property
    def nv(self) -> int:
        return self._tree.nv

    def outward(self, step: Callable[[Body, Any], tuple[Any, Any]], base: Any) -> PerBody[Any]:
        carry = self._state("carry", len(leaves(base)), extra=1)
        width = len(leaves(base))

        def received(kept: list[Any]) -> Any:
            return rebuild(base, [self._either(leaf, Address(carry, PARENTS, width, j)) for j, leaf in enumerate(kept)])

        kept, sent, owns = self._settle(step, leaves(base), received)
        self.statements.append(
            Straight(tuple(Store(carry, j, self._node(leaf)) for j, leaf in enumerate(leaves(base)) if kept[j] is None))
        )
        carries = [
            tuple(
                IndexedStore(Address(carry, None, width, width + j), self._node(leaf))
                for j, leaf in enumerate(values)
                if kept[j] is None
            )
            for values in sent
        ]
        return self._loop(carries, owns, reverse=False)

    def inward(self, step: Callable[[Body, Any], tuple[Any, Any]], zero: Any) -> tuple[PerBody[Any], Any]:
        width = len(leaves(zero))
        sums = self._state("gathered", width, extra=1)

        def received(kept: list[Any]) -> Any:
            addresses = [Address(sums, None, width, width + j) for j in range(width)]
            return rebuild(zero, [self._either(leaf, address) for leaf, address in zip(kept, addresses, strict=True)])

        kept, sent, owns = self._settle(step, leaves(zero), received)
        contributions = [
            tuple(
                IndexedStore(Address(sums, PARENTS, width, j), self._node(leaf), accumulate=True)
                for j, leaf in enumerate(values)
                if kept[j] is None
            )
            for values in sent
        ]
        result = self._loop(contributions, owns, reverse=True)
        world = [self._either(leaf, Address.fixed(sums, j)) for j, leaf in enumerate(kept)]
        return result, rebuild(zero, world)

    def collect(self, per_body: PerBody[Sequence[Scalar]] | Sequence[Sequence[Scalar]]) -> Any:
        array = f"collected {len(self.outputs)}"
        self.outputs.append(ArraySpec(array, self.nv))
        cases = tuple(
            tuple(
                IndexedStore(Address(array, OFFSETS["v"], 1, j), self._node(leaf))
                for j, leaf in enumerate(leaves(per_body[body.index]))
            )
            for body in self._bodies
        )
        self._append(cases, reverse=False)
        return TableVector(array, self.nv)

    def _settle(
        self,
        step: Callable[[Body, Any], tuple[Any, Any]],
        start: list[Any],
        received: Callable[[list[Any]], Any],
    ) -> tuple[list[Any], list[list[Any]], list[Any]]:
        """Trace every kind; an entry of the carry stays a literal while all kinds pass on the same literal."""
        kept = [literal(leaf) for leaf in start]
        while True:
            results = [step(body, received(kept)) for body in self._bodies]
            sent = [leaves(carry) for carry, _ in results]
            settled = [
                number if number is not None and all(literal(values[j]) == number for values in sent) else None
                for j, number in enumerate(kept)
            ]
            if settled == kept:
                return kept, sent, [own for _, own in results]
            kept = settled

    def _loop(self, passed: list[tuple[IndexedStore, ...]], owns: list[Any], *, reverse: bool) -> PerBody[Any]:
        """Append the loop that passes carries on and keeps what later passes read of the owns."""
        stored = [[leaf for leaf in leaves(own) if self._must_keep(leaf)] for own in owns]
        width = max((len(items) for items in stored), default=0)
        state = self._state("own", width, extra=0) if width else ""
        cases = []
        templates = []
        for own, items, carries in zip(owns, stored, passed, strict=True):
            place = {id(leaf): Address(state, None, width, k) for k, leaf in enumerate(items)}
            keep = tuple(IndexedStore(place[id(leaf)], self._node(leaf)) for leaf in items)
            cases.append((*carries, *keep))
            later = [self.graph.load(place[id(leaf)]) if id(leaf) in place else leaf for leaf in leaves(own)]
            templates.append((own, later))
        self._append(tuple(cases), reverse=reverse)
        return TableOwns(templates)

    def _append(self, cases: tuple[tuple[IndexedStore, ...], ...], *, reverse: bool) -> None:
        if any(cases):
            kinds = KINDS if len(cases) > 1 else None
            self.statements.append(Loop(len(self._tree.bodies), reverse, kinds, cases))

    def _must_keep(self, leaf: Any) -> bool:
        """Literals, constants of the tables and inputs can be had again in any loop; the rest is stored."""
        if literal(leaf) is not None:
            return False
        return not (leaf.op == "load" and leaf.data.array not in {state.name for state in self.states})

    def _either(self, number: float | None, address: Address) -> Any:
        return self.graph.load(address) if number is None else number

    def _node(self, leaf: Any) -> Expression:
        return leaf if isinstance(leaf, Expression) else self.graph.constant(float(leaf))

    def _state(self, role: str, width: int, *, extra: int) -> str:
        name = f"{role} {len(self.states)}"
        self.states.append(ArraySpec(name, width * (len(self._tree.bodies) + extra)))
        return name

    def _tabulate(self) -> tuple[Body, ...]:
        """Sort the bodies into kinds, write the tables, and make one handle a kind."""
        bodies = self._tree.bodies
        members: dict[Any, list[Body]] = {}
        for body in bodies:
            if body.dependence is not None or body.joint.time_dependent:
                raise TracingError(f"joint {body.joint_name!r}: couplings and time-dependent joints are not tabulated")
            members.setdefault(_kind(body), []).append(body)
        rows = {body.index: _numbers(body) for body in bodies}
        width = max(len(row) for row in rows.values())
        numbers = np.zeros((len(bodies), width))
        kinds = np.zeros(len(bodies), np.int64)
        for kind, group in enumerate(members.values()):
            for body in group:
                numbers[body.index, : len(rows[body.index])] = rows[body.index]
                kinds[body.index] = kind
        self.tables[NUMBERS] = numbers.ravel()
        self.tables[PARENTS] = np.asarray(self._tree.parents, np.int64) + 1
        self.tables[OFFSETS["q"]] = np.asarray([body.q_slice.start for body in bodies], np.int64)
        self.tables[OFFSETS["v"]] = np.asarray([body.v_slice.start for body in bodies], np.int64)
        if len(members) > 1:
            self.tables[KINDS] = kinds
        return tuple(
            self._handle(kind, group[0], numbers[kinds == kind]) for kind, group in enumerate(members.values())
        )

    def _handle(self, kind: int, template: Body, numbers: np.ndarray[Any, Any]) -> Body:
        """A body whose constants are loads of the tables, and literals where its kind agrees."""
        shared = np.all(numbers == numbers[0], axis=0)
        width = numbers.shape[1]
        values: list[Any] = [
            float(numbers[0, j]) if shared[j] else self.graph.load(Address(NUMBERS, None, width, j))
            for j in range(len(_numbers(template)))
        ]
        return _with_numbers(
            replace(
                template,
                index=BodyIndex(kind),
                q_slice=BodySlice(OFFSETS["q"], template.nq),  # type: ignore[arg-type]
                v_slice=BodySlice(OFFSETS["v"], template.nv),  # type: ignore[arg-type]
            ),
            values,
        )




def _constants(body: Body) -> tuple[Any, ...]:
    return (body.placement, body.inertia, body.armature)


def _numbers(body: Body) -> list[float]:
    """All constants of a body that dynamics reads."""
    return [*body.joint.parameters(), *leaves(_constants(body))]


def _with_numbers(body: Body, values: list[Any]) -> Body:
    split = len(body.joint.parameters())
    placement, inertia, armature = rebuild(_constants(body), values[split:])
    joint = body.joint.with_parameters(values[:split])
    return replace(body, joint=joint, placement=placement, inertia=inertia, armature=armature)


def _kind(body: Body) -> Any:
    """Bodies of equal kind differ in numbers only."""
    return type(body.joint), body.joint.structure(), _shape(_constants(body))


def _shape(value: Any) -> Any:
    """The nesting of a value without its numbers; the axis of a screw belongs to the structure."""
    if isinstance(value, (tuple, list)):
        return tuple(_shape(item) for item in value)
    return type(value), getattr(value, "axis", None), tuple(_shape(item) for item in getattr(value, "factors", ()))
