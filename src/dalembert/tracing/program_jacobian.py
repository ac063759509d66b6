"""Jacobians of programs with loops: forward accumulation, one column after the other inside every statement.

Each iteration of a loop becomes n + 1: for each of n directions the tangents of its stores, from the values
and tangents before the iteration, then the stores themselves. Arrays of tangents have one row per direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dalembert import scalar
from dalembert.scalar import Scalar
from dalembert.tracing.differentiate import jvp
from dalembert.tracing.expression import Address, Expression, replace_leaves
from dalembert.tracing.graph import Graph
from dalembert.tracing.operations import CONSTANT_OPS
from dalembert.tracing.program import ArraySpec, Case, Loop, Program, Store
from dalembert.tracing.program_derivatives import Activity, address_of, prune, unused_prefix


def program_jacobian(
    program: Program,
    graph: Graph,
    directions: Mapping[str, Sequence[Sequence[Scalar]]],
    prefix: str,
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
                    for address in _read(store.value)
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


def _read(value: Expression) -> set[Address]:
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
