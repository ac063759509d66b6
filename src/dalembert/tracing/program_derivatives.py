"""Forward and reverse derivatives of whole programs, loops included, and their Jacobians.

*Forward mode*: every array that depends on the arguments gets an array of tangents, and every store is
followed by a store of its tangent. *Reverse mode*: statements run backwards with arrays of adjoints. A store
propagates the adjoint of its element to the operands of its value, and clears that adjoint unless it
accumulated. Values that a later store overwrites are saved on a tape, one row per iteration; all others are
recomputed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dalembert import scalar
from dalembert.errors import TracingError
from dalembert.scalar import Scalar
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


# Jacobians of programs with loops: forward accumulation, one column after the other inside every statement.
#
# Each iteration of a loop becomes n + 1: for each of n directions the tangents of its stores, from the values
# and tangents before the iteration, then the stores themselves. Arrays of tangents have one row per
# direction.


def program_jacobian(
    program: Program, graph: Graph, directions: Mapping[str, Sequence[Sequence[Scalar]]], prefix: str
) -> Program:
    """Return the derivatives of all outputs along directions of arguments.

    `directions` gives for each argument the rates of its elements along each direction. The results are, for
    each argument, one array for each output of the program: element (k, direction), row-major; their names
    begin with `prefix`.
    """
    loops = program.loops
    columns = _Columns(program, graph, Activity(loops, directions), sum(map(len, directions.values())))
    start = 0
    seeds, results, outputs = [], [], []
    for name, rates in directions.items():
        size = columns.sizes[name]
        seeds += [
            Store.fixed(columns.shadow(name), (start + c) * size + i, graph.coerce(rate))
            for c, row in enumerate(rates)
            for i, rate in enumerate(row)
            if not scalar.is_zero(rate)
        ]
        for spec in program.outputs:
            outputs.append(ArraySpec(f"{prefix} {spec.name} by {name}", spec.size * len(rates)))
            if spec.name in columns.activity.arrays:
                results.append(columns.copy_columns(spec, outputs[-1].name, start, len(rates)))
        start += len(rates)
    moved = [columns.tangent_loop(loop, number) for number, loop in enumerate(loops)]
    shadows = [ArraySpec(columns.shadow(name), columns.count * columns.sizes[name]) for name in columns.named]
    return prune(
        replace(
            program,
            outputs=tuple(outputs),
            states=(*program.states, *program.outputs, *shadows),
            statements=(Loop(1, False, None, (tuple(seeds),)), *moved, *results),
            tables={**program.tables, **columns.tables},
        )
    )


@final
class _Columns:
    """The tangents of a program's arrays along `count` directions."""

    def __init__(self, program: Program, graph: Graph, activity: Activity, count: int) -> None:
        self.program = program
        self.graph = graph
        self.activity = activity
        self.count = count
        specs = (*program.inputs, *program.outputs, *program.states)
        self.sizes = {spec.name: spec.size for spec in specs}
        self.named = [spec.name for spec in specs if spec.name in activity.arrays]
        self.tables: dict[str, npt.NDArray[np.int64]] = {}
        self._own = unused_prefix(program, "columns")

    def shadow(self, name: str) -> str:
        """Return the name of the tangent array of an array."""
        return f"{self._own} {name}"

    def copy_columns(self, spec: ArraySpec, target: str, start: int, count: int) -> Loop:
        """Return a loop over directions that copies the tangents of an output into the Jacobian `target`."""
        array, size = self.shadow(spec.name), spec.size
        stores = tuple(
            Store(
                Address(target, None, 1, k * count),
                self.graph.load(Address(array, None, size, start * size + k)),
            )
            for k in range(size)
        )
        return Loop(count, False, None, (stores,))

    def tangent_loop(self, loop: Loop, number: int) -> Loop:
        """Return a loop that computes the tangents along all directions before each iteration of `loop`."""
        if not any(store.address in self.activity for case in loop.cases for store in case):
            return loop
        each = self.count + 1
        iterations = np.repeat(np.array(loop.iterations, dtype=np.int64), each)
        columns = np.tile(np.arange(each), loop.count)
        kinds = np.zeros(len(iterations), np.int64)
        if loop.kinds is not None:
            kinds = np.asarray(self.program.tables[loop.kinds], np.int64)[iterations]
        kinds[columns == self.count] += len(loop.cases)
        at = _Places(self, f"{self._own} {number}", iterations, np.minimum(columns, self.count - 1))
        known = [replace_leaves([store.value for store in case], at.leaf) for case in loop.cases]
        changes = tuple(self._change(case, at, new) for case, new in zip(loop.cases, known, strict=True))
        own = tuple(
            tuple(replace(s, address=at.value(s.address), value=new[s.value.index]) for s in case)
            for case, new in zip(loop.cases, known, strict=True)
        )
        table = at.table("kind", kinds)
        skips = tuple(None if flag is None else at.value(flag) for flag in loop.skips)
        return Loop(len(iterations), False, table, (*changes, *own), loop.until, skips * 2)

    def _change(self, case: Case, at: _Places, known: Mapping[int, Expression]) -> Case:
        """Return the stores of the tangents along one direction."""
        leaves = self.activity.leaves(case)
        tangents = [self.graph.load(at.change(address)) for _, address in leaves]
        stores = [store for store in case if store.address in self.activity]
        changes = jvp(
            [known[store.value.index] for store in stores], [known[x.index] for x, _ in leaves], tangents
        )
        return tuple(
            replace(store, address=at.change(store.address), value=self.graph.coerce(change))
            for store, change in zip(stores, changes, strict=True)
            if not (store.accumulate and scalar.is_zero(change))
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """The addresses in a loop over the iterations of another loop and over directions."""

    _columns: _Columns
    _name: str
    _iterations: npt.NDArray[np.int64]
    _directions: npt.NDArray[np.int64]

    def table(self, name: str, entries: npt.NDArray[Any]) -> str:
        """Add an index table of the loop and return its name."""
        name = f"{self._name} {name}"
        self._columns.tables.setdefault(name, entries.astype(np.int64))
        return name

    def value(self, address: Address) -> Address:
        """Return the address of a value in the longer loop."""
        if address.scale == 0:
            return address
        return replace(address, table=self.table(f"of {address.table}", self._entries(address)))

    def leaf(self, node: Expression) -> Expression:
        """Return a leaf of the loop in the longer loop."""
        return node.graph.load(self.value(node.data)) if node.op == "load" else node

    def change(self, address: Address) -> Address:
        """Return the address of a value's tangent in the longer loop."""
        size = self._columns.sizes[address.array]
        rows = self._directions * size + self._entries(address) * address.scale
        table = self.table(f"of {address.table} {address.scale} {size}", rows)
        return Address(self._columns.shadow(address.array), table, 1, address.offset)

    def _entries(self, address: Address) -> npt.NDArray[np.int64]:
        if address.table is None or address.scale == 0:
            return self._iterations
        entries: npt.NDArray[np.int64] = self._columns.program.tables[address.table][self._iterations]
        return entries.astype(np.int64)


# Sparsity of Jacobians: the input elements that each output element depends on, and column colouring.
#
# Sets of input elements are carried through the statements in place of numbers, as bit masks. Columns of a
# Jacobian that share no row can be computed by one product with their sum: `colour_columns` groups them.


def dependence(program: Program, arguments: Sequence[str]) -> dict[str, list[int]]:
    """Return, for each element of each output, a mask of the argument elements that it depends on: bit k is
    element k of the concatenated arguments.
    """
    masks: dict[str, list[int]] = {
        spec.name: [0] * spec.size for spec in (*program.inputs, *program.outputs, *program.states)
    }
    start = 0
    for name in arguments:
        size = len(masks[name])
        masks[name] = [1 << k for k in range(start, start + size)]
        start += size
    for loop in program.loops:
        _pass(program, loop, masks)
    return {spec.name: masks[spec.name] for spec in program.outputs}


def colour_columns(rows: Sequence[int], columns: int) -> list[list[int]]:
    """Group columns by greedy colouring, so that no two columns of a group share a row."""
    reached = [0] * columns
    for place, row in enumerate(rows):
        while row:
            lowest = row & -row
            reached[lowest.bit_length() - 1] |= 1 << place
            row ^= lowest
    groups: list[list[int]] = []
    taken: list[int] = []
    for column in sorted(range(columns), key=lambda k: -reached[k].bit_count()):
        free = next((k for k, used in enumerate(taken) if not used & reached[column]), len(groups))
        if free == len(groups):
            groups.append([])
            taken.append(0)
        groups[free].append(column)
        taken[free] |= reached[column]
    return groups


def _pass(program: Program, loop: Loop, masks: dict[str, list[int]]) -> None:
    """Propagate dependence masks through a loop."""
    cases = []
    for case, own in loop.runs(program.tables):
        place = {int(i): k for k, i in enumerate(own)}
        stores = [
            (
                masks[store.array],
                store.address.positions(program.tables, own).tolist(),
                store.accumulate,
                [
                    (masks[address.array], address.positions(program.tables, own).tolist())
                    for address in _addresses_of(store.value)
                    if address.array not in program.tables
                ],
            )
            for store in case
        ]
        cases.append((place, stores))
    kinds = None if loop.kinds is None else program.tables[loop.kinds].tolist()
    for i in loop.iterations:
        place, stores = cases[0 if kinds is None else kinds[i]]
        k = place[i]
        found = []
        for _, _, _, sources in stores:
            mask = 0
            for array, positions in sources:
                mask |= array[positions[k]]
            found.append(mask)
        for (array, positions, accumulate, _), mask in zip(stores, found, strict=True):
            array[positions[k]] = array[positions[k]] | mask if accumulate else mask


def _addresses_of(value: Expression) -> set[Address]:
    """Return the addresses that a value depends on through a nonzero derivative."""
    found: set[Address] = set()
    seen = {value.index}
    stack = [value]
    while stack:
        node = stack.pop()
        address = address_of(node)
        if address is not None:
            found.add(address)
        elif node.op not in CONSTANT_OPS:
            for item in node.args:
                if item.index not in seen:
                    seen.add(item.index)
                    stack.append(item)
    return found
