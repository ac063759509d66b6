"""The plain-Python interpreter of programs: their definition, and the oracle of every compiler of them.

It runs on floats, on NumPy arrays (one sample an element), on complex numbers (derivatives by a complex
step), and on any other scalar that `dalembert.scalar` knows, including expressions of another graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dalembert.errors import ShapeError, UnknownNameError
from dalembert.scalar import Scalar, lookup
from dalembert.tracing.expression import Address, Expression, IndexTable, live
from dalembert.tracing.operations import OPERATIONS
from dalembert.tracing.program import Loop, Program


def interpret(program: Program, inputs: Mapping[str, Sequence[Scalar]]) -> dict[str, list[Scalar]]:
    """Run the program on one sample: the outputs by name, each a list of scalars. `check` is ignored."""
    arrays = _arrays(program, inputs)
    for loop in program.loops:
        _run_loop(loop, arrays, program.tables)
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
) -> list[Scalar]:
    """Return the values of expressions, given the arrays that they read, in one iteration of a loop."""
    values: dict[int, Scalar] = {}
    for node in live(list(outputs)):
        if node.op == "constant":
            value = node.data
        elif node.op == "input":
            array, position = node.data
            value = arrays[array][position]
        elif node.op == "load":
            array, position = node.data.array, node.data.position(tables or {}, iteration)
            value = arrays[array][position] if array in arrays else float((tables or {})[array][position])
        elif node.op == "lookup":
            value = lookup((tables or node.graph.tables)[node.data], values[node.args[0].index])
        else:
            value = OPERATIONS[node.op].evaluate(*[values[item.index] for item in node.args])
        values[node.index] = value
    return [values[node.index] for node in outputs]


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
