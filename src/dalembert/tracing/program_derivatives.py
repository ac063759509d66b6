"""Forward and reverse derivatives of whole programs, loops included.

*Forward mode*: every array that depends on the arguments gets an array of tangents, and every store is
followed by a store of its tangent. *Reverse mode*: statements run backwards with arrays of adjoints. A store
propagates the adjoint of its element to the operands of its value, and clears that adjoint unless it
accumulated. Values that a later store overwrites are saved on a tape, one row per iteration; all others are
recomputed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import numpy.typing as npt

from dalembert import scalar
from dalembert.errors import TracingError
from dalembert.tracing.differentiate import jvp, vjp
from dalembert.tracing.expression import Address, Expression, live, replace_leaves
from dalembert.tracing.graph import Graph
from dalembert.tracing.operations import CONSTANT_OPS
from dalembert.tracing.program import ArraySpec, Case, Loop, Program, Statement, Store, as_loop

# Activity analysis: the elements of a program's arrays that depend on the differentiated arguments.


def address_of(node: Expression) -> Address | None:
    """Return the address that a leaf reads, or None for operations and constants."""
    loaded: Address | None = node.data if node.op == "load" else None
    return Address.fixed(*node.data) if node.op == "input" else loaded


@final
class Activity:
    """The active elements: `address in activity` tells whether an element depends on the arguments.

    `arrays` names the arrays with active elements. Arrays that are accessed only at fixed positions are
    tracked element by element, all others as a whole.
    """

    def __init__(self, loops: Sequence[Loop], arguments: Collection[str]) -> None:
        cases = [case for loop in loops for case in loop.cases]
        nodes = [live([store.value for store in case]) for case in cases]
        self._arguments = frozenset(arguments)
        self._whole = {
            address.array
            for case, known in zip(cases, nodes, strict=True)
            for address in [*(store.address for store in case), *map(address_of, known)]
            if address is not None and address.scale
        }
        self._found: set[tuple[str, int | None]] = set()
        before = -1
        while before < len(self._found):
            before = len(self._found)
            for case, known in zip(cases, nodes, strict=True):
                self._pass(case, known)

    @property
    def arrays(self) -> set[str]:
        return {array for array, _ in self._found} | self._arguments

    def __contains__(self, address: Address | None) -> bool:
        return address is not None and (address.array in self._arguments or self._key(address) in self._found)

    def leaves(self, stores: Sequence[Store]) -> list[tuple[Expression, Address]]:
        """Return the active leaves that the values of stores depend on, with what they read."""
        nodes = live([store.value for store in stores])
        return [
            (node, address) for node in nodes if (address := address_of(node)) is not None and address in self
        ]

    def _key(self, address: Address) -> tuple[str, int | None]:
        return address.array, None if address.array in self._whole else address.offset

    def _pass(self, case: Case, nodes: Sequence[Expression]) -> None:
        active: set[int] = set()
        for node in nodes:
            passed_on = node.op not in CONSTANT_OPS and any(item.index in active for item in node.args)
            if passed_on or address_of(node) in self:
                active.add(node.index)
        self._found |= {self._key(store.address) for store in case if store.value.index in active}


# Dead-store elimination: stores that nothing reads, and states that nothing writes or reads, are removed.


def prune(program: Program) -> Program:
    """Return the program without the stores to states whose elements are never read."""
    loops = program.loops
    stores = -1
    while stores != (stores := sum(len(case) for loop in loops for case in loop.cases)):
        read = _read(program, loops)
        loops = [
            replace(
                loop,
                cases=tuple(
                    tuple(s for s in case if read[s.array][s.address.positions(program.tables, own)].any())
                    for case, own in loop.runs(program.tables)
                ),
            )
            for loop in loops
        ]
    written = {store.array for loop in loops for case in loop.cases for store in case}
    states = tuple(spec for spec in program.states if spec.name in written or read[spec.name].any())
    return replace(program, states=states, statements=tuple(loop for loop in loops if any(loop.cases)))


def _read(program: Program, loops: list[Loop]) -> dict[str, npt.NDArray[np.bool_]]:
    """Return masks of the state elements that some store reads; all elements of outputs count as read."""
    read = {spec.name: np.zeros(spec.size, bool) for spec in program.states}
    for loop in loops:
        for number, (case, own) in enumerate(loop.runs(program.tables)):
            for flag in loop.flags(number):
                read[flag.array][flag.positions(program.tables, own)] = True
            for node in live([store.value for store in case]):
                if node.op == "load" and node.data.array in read:
                    read[node.data.array][node.data.positions(program.tables, own)] = True
    read.update({spec.name: np.ones(spec.size, bool) for spec in program.outputs})
    return read


@final
@dataclass(frozen=True, slots=True)
class Frame:
    """Additions of a caller to a derivative program: more arrays, and statements before and after."""

    inputs: tuple[ArraySpec, ...] = ()
    states: tuple[ArraySpec, ...] = ()
    before: tuple[Statement, ...] = ()
    after: tuple[Statement, ...] = ()


def program_jvp(program: Program, graph: Graph, changes: Mapping[str, str], frame: Frame) -> Program:
    """Return the program of the outputs' tangents; `changes` names the tangent array of each argument."""
    loops = program.loops
    own = unused_prefix(program, "change")
    sizes = {spec.name: spec.size for spec in (*program.outputs, *program.states)}
    active = Activity(loops, changes)
    shadow = {name: f"{own} {name}" for name in active.arrays if name in sizes} | dict(changes)
    outputs = tuple(ArraySpec(f"{own} {spec.name}", spec.size) for spec in program.outputs)
    shadows = [ArraySpec(f"{own} {spec.name}", spec.size) for spec in program.states if spec.name in shadow]
    moved = [
        replace(loop, cases=tuple(_tangent_case(graph, case, active, shadow, frame) for case in loop.cases))
        for loop in loops
    ]
    return prune(
        replace(
            program,
            inputs=(*program.inputs, *frame.inputs),
            outputs=outputs,
            states=(*program.states, *program.outputs, *shadows, *frame.states),
            statements=tuple(map(as_loop, (*frame.before, *moved, *frame.after))),
        )
    )


def program_vjp(
    program: Program,
    graph: Graph,
    weights: Mapping[str, str],
    adjoints: Mapping[str, str],
    outputs: Sequence[ArraySpec],
    frame: Frame,
) -> Program:
    """Return the program of the gradient of the outputs, weighted with the arrays that `weights` names.

    `adjoints` names for each argument the array that gathers its gradient: one of the new `outputs`, or a
    state that the statements after read.
    """
    loops = program.loops
    own = unused_prefix(program, "adjoint")
    sizes = {spec.name: spec.size for spec in (*program.outputs, *program.states)}
    active = Activity(loops, adjoints)
    names = {name: f"{own} {name}" for name in sizes if name in active.arrays} | dict(adjoints)
    seeds = []
    for spec in program.outputs:
        if spec.name in names:
            weight = graph.load(Address(weights[spec.name], None, 1, 0))
            seed = Store(Address(names[spec.name], None, 1, 0), weight)
            seeds.append(Loop(spec.size, False, None, ((seed,),)))
    passing = set(sizes) - _lasting(loops, set(sizes))
    forward: list[Loop] = []
    reverse: list[Loop] = []
    tapes: list[ArraySpec] = []
    for number, loop in enumerate(loops):
        tape = _Tape(f"{unused_prefix(program, 'tape')} {number}", passing)
        backs = [_back(program, loop, k, active, names) for k in range(len(loop.cases))]
        columns = [tape.columns(back) for back in backs]
        ending = any(loop.flags(k) for k in range(len(loop.cases)))
        width = max(map(len, columns), default=0) + ending
        tapes += [ArraySpec(tape.name, width * loop.count)] if width else []
        kept = tuple(
            (*case, *(Store(Address(tape.name, None, width, at), x) for at, x in enumerate(loads)))
            for case, loads in zip(loop.cases, columns, strict=True)
        )
        read = tuple(tape.read(back, loads, width) for back, loads in zip(backs, columns, strict=True))
        back = Loop(loop.count, not loop.reverse, loop.kinds, read)
        if ending:  # iterations that are skipped forward are skipped in reverse
            omitted = Address(tape.name, None, width, width - 1)
            once, never = (Store(omitted, graph.constant(x)) for x in (0.0, 1.0))
            forward.append(Loop(loop.count, False, None, ((never,),)))
            kept = tuple((*case, once) for case in kept)
            back = replace(back, skips=(omitted,) * len(read))
        forward.append(replace(loop, cases=kept))
        reverse.append(back)
    states = [ArraySpec(name, sizes[of]) for of, name in names.items() if of in sizes]
    return prune(
        replace(
            program,
            inputs=(*program.inputs, *frame.inputs),
            outputs=tuple(outputs),
            states=(*program.states, *program.outputs, *states, *tapes, *frame.states),
            statements=tuple(
                map(as_loop, (*forward, *frame.before, *seeds, *reversed(reverse), *frame.after))
            ),
        )
    )


def _tangent_case(
    graph: Graph, case: Case, active: Activity, shadow: Mapping[str, str], frame: Frame
) -> Case:
    """Return the stores of a case, followed by the stores of their tangents."""
    inputs = {spec.name for spec in frame.inputs}
    leaves = active.leaves(case)
    tangents = []
    for node, place in leaves:
        other = replace(place, array=shadow[place.array])
        tangents.append(
            graph.input(other.array, other.offset)
            if node.op == "input" and other.array in inputs
            else graph.load(other)
        )
    changes = jvp([store.value for store in case], [node for node, _ in leaves], tangents)
    return case + tuple(
        replace(store, address=replace(store.address, array=shadow[store.array]), value=graph.coerce(d))
        for store, d in zip(case, changes, strict=True)
        if store.address in active and not (store.accumulate and scalar.is_zero(d))
    )


def _back(program: Program, loop: Loop, number: int, active: Activity, names: Mapping[str, str]) -> Case:
    """Return the adjoint of a case: its stores in reverse, from the adjoints before the iteration."""
    case = loop.cases[number]
    stores = [store for store in case if store.address in active]
    if not stores:
        return ()
    graph = stores[0].value.graph
    leaves = active.leaves(stores)
    _require_apart(program, loop, number, stores)
    weights = [graph.load(replace(s.address, array=names[s.address.array])) for s in stores]
    shares = vjp([store.value for store in stores], [node for node, _ in leaves], weights)
    cleared = [
        replace(store, address=replace(store.address, array=names[store.array]), value=graph.constant(0.0))
        for store in stores
        if not store.accumulate
    ]
    given = [
        Store(replace(place, array=names[place.array]), graph.coerce(share), accumulate=True)
        for (_, place), share in zip(leaves, shares, strict=True)
        if not scalar.is_zero(share)
    ]
    return (*cleared, *given)


def _require_apart(program: Program, loop: Loop, number: int, stores: Sequence[Store]) -> None:
    """Raise if a store overwrites an earlier one of its iteration: all adjoints are read at once."""
    _, own = list(loop.runs(program.tables))[number]
    for k, later in enumerate(stores):
        if later.accumulate:
            continue
        for earlier in stores[:k]:
            if earlier.array != later.array or scalar.is_zero(earlier.value):
                continue
            places = [store.address.positions(program.tables, own) for store in (earlier, later)]
            if np.any(places[0] == places[1]):
                raise TracingError(
                    f"an iteration stores {later.address} over {earlier.address}: no reverse derivative"
                )


@final
@dataclass(frozen=True, slots=True)
class _Tape:
    """The tape of a loop, which saves values of the arrays `passing`, since they change later."""

    name: str
    passing: set[str]

    def columns(self, back: Case) -> list[Expression]:
        """Return the loads of a case that must be saved."""
        nodes = live([store.value for store in back])
        return [node for node in nodes if node.op == "load" and node.data.array in self.passing]

    def read(self, back: Case, loads: Sequence[Expression], width: int) -> Case:
        """Return the case with these loads replaced by loads from the tape."""
        saved = {
            node.index: node.graph.load(Address(self.name, None, width, at)) for at, node in enumerate(loads)
        }
        new = replace_leaves([store.value for store in back], lambda leaf: saved.get(leaf.index, leaf))
        return tuple(replace(store, value=new[store.value.index]) for store in back)


def _lasting(loops: Sequence[Loop], names: set[str]) -> set[str]:
    """Return the arrays that one loop writes and only later loops read, so that they last in reverse."""
    writers: dict[str, set[int]] = {name: set() for name in names}
    readers: dict[str, set[int]] = {name: set() for name in names}
    for number, loop in enumerate(loops):
        for case in loop.cases:
            for store in case:
                writers[store.array].add(number)
            for node in live([store.value for store in case]):
                if node.op == "load" and node.data.array in names:
                    readers[node.data.array].add(number)
    return {
        name
        for name in names
        if len(writers[name]) <= 1 and min(readers[name], default=len(loops)) > max(writers[name], default=-1)
    }


def unused_prefix(program: Program, word: str) -> str:
    """Return a prefix for array names that no array of the program has."""
    taken = [spec.name for spec in (*program.inputs, *program.outputs, *program.states)]
    return next(
        f"{word} {k} of"
        for k in range(len(taken) + 1)
        if not any(t.startswith(f"{word} {k} of") for t in taken)
    )
