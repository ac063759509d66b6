"""Sparsity of Jacobians: the input elements that each output element depends on, and column colouring.

Sets of input elements are carried through the statements in place of numbers, as bit masks. Columns of a
Jacobian that share no row can be computed by one product with their sum: `colour_columns` groups them.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.tracing.expression import Expression
from dalembert.tracing.local_derivatives import CONSTANT_OPS
from dalembert.tracing.program import Address, IndexedStore, Loop, Program, Straight

__all__ = ["colour_columns", "dependence"]


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
    for statement in program.statements:
        if isinstance(statement, Straight):
            stores = tuple(
                IndexedStore(Address.fixed(s.array, s.position), s.value) for s in statement.stores
            )
            statement = Loop(1, False, None, (stores,))
        _pass(program, statement, masks)
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
    for number, case in enumerate(loop.cases):
        own = loop.own_iterations(program.tables, number)
        place = {int(i): k for k, i in enumerate(own)}
        stores = [
            (
                masks[store.address.array],
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
    """Return the addresses that a value depends on through a nonzero derivative: conditions and `floor` have
    none."""
    found: set[Address] = set()
    seen = {value.index}
    stack = [value]
    while stack:
        node = stack.pop()
        if node.op == "load":
            found.add(node.data)
        elif node.op == "input":
            found.add(Address.fixed(*node.data))
        elif node.op not in CONSTANT_OPS:
            for item in node.args:
                if item.index not in seen:
                    seen.add(item.index)
                    stack.append(item)
    return found
