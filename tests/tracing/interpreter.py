"""The plain-Python interpreter of programs: their definition, and the oracle of every compiler of them.

It runs on floats, on NumPy arrays (one sample an element), on complex numbers (derivatives by a complex
step), and on any other scalar that `dalembert.scalar` knows, including expressions of another graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dalembert.errors import ShapeError, UnknownNameError
from dalembert.scalar import Scalar, lookup
from dalembert.tracing.expression import Address, Expression, IndexTable, RowIndex, live
from dalembert.tracing.operations import OPERATIONS
from dalembert.tracing.program import Append, Loop, Program, Repeat, as_loop


def interpret(program: Program, inputs: Mapping[str, Sequence[Scalar]]) -> dict[str, list[Scalar]]:
    """Run the program on one sample: the outputs by name, each a list of scalars. `check` is ignored."""
    arrays = _arrays(program, inputs)
    lists: dict[str, list[int]] = {}
    for statement in program.statements:
        if isinstance(statement, Repeat):
            _repeat(program, statement, arrays, lists, {})
        else:
            _run_loop(as_loop(statement), arrays, program.tables)
    return {spec.name: arrays[spec.name] for spec in program.outputs}


def refused(program: Program, inputs: Mapping[str, Sequence[Scalar]]) -> Scalar:
    """Return whether `check` holds for the sample (NumPy: for each sample), so that its row is rejected."""
    if program.check is None:
        return False
    return evaluate([program.check], _arrays(program, inputs), tables=program.tables)[0]


def evaluate(
    outputs: Sequence[Expression],
    arrays: Mapping[str, Sequence[Scalar]],
    *,
    tables: Mapping[str, IndexTable] | None = None,
    iteration: int = 0,
    indices: Mapping[RowIndex, int] | None = None,
) -> list[Scalar]:
    """Return the values of expressions, given the arrays that they read, in one iteration of a loop, or at
    the rows of the loops around."""
    values: dict[int, Scalar] = {}
    for node in live(list(outputs)):
        if node.op == "constant":
            value = node.data
        elif node.op == "input":
            array, position = node.data
            value = arrays[array][position]
        elif node.op == "load":
            array, position = node.data.array, _position(node.data, tables or {}, iteration, indices)
            value = arrays[array][position] if array in arrays else float((tables or {})[array][position])
        elif node.op == "lookup":
            value = lookup((tables or node.graph.tables)[node.data], values[node.args[0].index])
        else:
            value = OPERATIONS[node.op].evaluate(*[values[item.index] for item in node.args])
        values[node.index] = value
    return [values[node.index] for node in outputs]


def _position(
    address: Address, tables: Mapping[str, IndexTable], iteration: int, indices: Mapping[RowIndex, int] | None
) -> int:
    index = iteration if address.index is None or not address.scale else (indices or {})[address.index]
    return address.position(tables, index)


def _repeat(
    program: Program,
    repeat: Repeat,
    arrays: dict[str, list[Scalar]],
    lists: dict[str, list[int]],
    outer: Mapping[RowIndex, int],
) -> None:
    """Visit the rows of a set as they are when the loop begins, or take so many iterations."""
    for name in repeat.empties:
        lists[name] = []
    listed: Sequence[int] = lists[repeat.rows] if repeat.rows in lists else range(repeat.count)
    first = 0
    if repeat.bounds is not None:
        first, count = (_position(entry, program.tables, 0, outer) for entry in repeat.bounds)
        listed = range(count)
    for number in range(len(listed)):
        if _all_done(repeat.until, arrays, program.tables, 0):
            break
        indices = {**outer}
        level, place = repeat.rows, first + number
        while level is not None:
            indices[RowIndex(repeat.name, level)] = place
            if (parent := program.rows[level].parent) is not None:
                place = lists[level][place]
            level = parent
        for item in repeat.body:
            if isinstance(item, Repeat):
                _repeat(program, item, arrays, lists, indices)
            elif isinstance(item, Append):
                _append(program, item, arrays, lists, indices)
            else:
                case = item.stores
                values = evaluate([x.value for x in case], arrays, tables=program.tables, indices=indices)
                numbers = [x.value if x.row is None else x.row for x in case]
                rows = evaluate(numbers, arrays, tables=program.tables, indices=indices)
                for store, value, row in zip(case, values, rows, strict=True):
                    array = arrays[store.array]
                    if store.row is None:
                        position = _position(store.address, program.tables, 0, indices)
                        array[position] = array[position] + value if store.accumulate else value
                        continue
                    last = len(array) // store.address.scale - 1
                    place = int(row) if 0.0 <= row < last else last
                    array[place * store.address.scale + store.address.offset] = value


def _append(
    program: Program,
    append: Append,
    arrays: dict[str, list[Scalar]],
    lists: dict[str, list[int]],
    indices: Mapping[RowIndex, int],
) -> None:
    if not np.any(arrays[append.condition.array][append.condition.offset]):
        return
    rows = lists[append.to]
    for target, source in append.values:
        place = len(rows) * target.scale + target.offset
        arrays[target.array][place] = arrays[source.array][source.offset]
    rows.append(_position(append.entry, program.tables, 0, indices))


def _run_loop(loop: Loop, arrays: dict[str, list[Scalar]], tables: Mapping[str, IndexTable]) -> None:
    for iteration in loop.iterations:
        if _all_done(loop.until, arrays, tables, iteration):
            break
        kind = 0 if loop.kinds is None else int(tables[loop.kinds][iteration])
        if loop.skips and _all_done(loop.skips[kind], arrays, tables, iteration):
            continue
        case = loop.cases[kind]
        values = evaluate([store.value for store in case], arrays, tables=tables, iteration=iteration)
        for store, value in zip(case, values, strict=True):
            array = arrays[store.array]
            position = store.address.position(tables, iteration)
            array[position] = array[position] + value if store.accumulate else value


def _all_done(
    flag: Address | None,
    arrays: Mapping[str, Sequence[Scalar]],
    tables: Mapping[str, IndexTable],
    iteration: int,
) -> bool:
    """Return whether the flag is set for every sample; a symbolic flag counts as not set."""
    value = False if flag is None else arrays[flag.array][flag.position(tables, iteration)]
    return isinstance(value, int | float | complex | np.ndarray | np.generic) and bool(np.all(value))


def _arrays(program: Program, inputs: Mapping[str, Sequence[Scalar]]) -> dict[str, list[Scalar]]:
    arrays: dict[str, list[Scalar]] = {
        spec.name: [0.0] * spec.size for spec in (*program.outputs, *program.states)
    }
    for name in inputs:
        if name not in {spec.name for spec in program.inputs}:
            raise UnknownNameError.of("input", name, [spec.name for spec in program.inputs])
    for spec in program.inputs:
        if spec.name not in inputs:
            raise UnknownNameError(f'input "{spec.name}" is missing')
        given = list(inputs[spec.name])
        if len(given) != spec.size:
            raise ShapeError(f"input {spec.name!r}: expected ({spec.size},), got ({len(given)},)")
        arrays[spec.name] = [item.item() if getattr(item, "ndim", None) == 0 else item for item in given]
    return arrays
