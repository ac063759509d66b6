"""Which elements of a program's outputs depend on which elements of its inputs, and what that saves.

Sets of input elements are carried through the statements in place of numbers, as bit masks. Columns of a
Jacobian that share no row can be had from one product with their sum: `coloured` puts them together.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.tracing.expression import Expression
from dalembert.tracing.local_derivatives import CONSTANT_OPS
from dalembert.tracing.program import Address, IndexedStore, Loop, Program, Straight

__all__ = ["coloured", "dependence"]


def dependence(program: Program, arguments: Sequence[str]) -> dict[str, list[int]]:
    """For each output the elements of the arguments that its elements depend on: bit k of a mask is element k
    of the arguments, one after the other.
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


def coloured(rows: Sequence[int], columns: int) -> list[list[int]]:
    """Columns in as few groups as a greedy choice finds, no two columns of a group with a row in common."""
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
    """Run a loop on sets."""
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
    """What a value depends on by a derivative: conditions and steps do not count."""
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
