"""Readable Python source of a program: the source-code emitter of Featherstone 2008 §10.4.

A value used once is written where it is used, while the line stays short; every other gets a name. The
order of operations is the program's, so that results are those of the interpreter bit for bit.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Container
from typing import Final

from dalembert.errors import ArgumentError
from dalembert.tracing.expression import Address, Expression, live
from dalembert.tracing.operations import OPERATIONS
from dalembert.tracing.program import Case, Loop, Program, Repeat, Straight

LONGEST_EXPRESSION: Final = 80
INDENT: Final = "    "

_PRECEDENCE: Final = {"+": 12, "-": 12, "*": 13, "/": 13, "<": 6, "<=": 6, "==": 6}
"""Precedence of the operators, as in Python's grammar."""

_ATOM: Final = 20
_NEGATION: Final = 14

_RESERVED: Final = frozenset({"i", "lookup", *(operation.text for operation in OPERATIONS.values())})


def python_source(program: Program, *, name: str = "function") -> str:
    """Return a Python function of the input arrays that returns the output arrays as lists of scalars.

    One output is returned bare, several as a tuple. Division is `/`, which raises on a float zero.
    """
    arguments = [_identifier(spec.name) for spec in program.inputs]
    arrays = [spec.name for spec in (*program.inputs, *program.outputs, *program.states)]
    taken: dict[str, str] = {}
    for given in (name, *arrays, *program.tables):
        other = taken.setdefault(_identifier(given), given)
        if other != given:
            raise ArgumentError(
                f"{other!r} and {given!r} are both {_identifier(given)} in Python source; rename one"
            )
    used: set[str] = set()
    lines = [f"{_identifier(array)} = {table.tolist()!r}" for array, table in sorted(program.tables.items())]
    lines += ["", "", f"def {_identifier(name)}({', '.join(arguments)}):"]
    own = (*program.outputs, *program.states)
    lines += [f"{INDENT}{_identifier(spec.name)} = [0.0] * {spec.size}" for spec in own]
    for statement in program.statements:
        if isinstance(statement, Straight):
            lines += _block(statement.stores, INDENT, taken, used)
        elif isinstance(statement, Repeat):
            raise ArgumentError(f"{name}: loops over rows known at run time are not written as Python source")
        else:
            lines += _loop(statement, taken, used)
    lines.append(f"{INDENT}return {', '.join(_identifier(spec.name) for spec in program.outputs)}")
    head = [f"from dalembert.scalar import {', '.join(sorted(used - {'fma'}))}"] if used - {"fma"} else []
    if "fma" in used:
        head.append("from dalembert.tracing.operations import fused_multiply_add as fma")
    return "\n".join(head + lines).strip("\n") + "\n"


def _loop(loop: Loop, taken: Container[str], used: set[str]) -> list[str]:
    backwards = ", -1, -1" if loop.reverse else ""
    lines = [f"{INDENT}for i in range({loop.count - 1 if loop.reverse else loop.count}{backwards}):"]
    for number, case in enumerate(loop.cases):
        indent = INDENT * 2
        if loop.kinds is not None:
            lines.append(f"{indent}if {_identifier(loop.kinds)}[i] == {number}:")
            indent += INDENT
        lines += _block(case, indent, taken, used) or [f"{indent}pass"]
    return lines


def _block(stores: Case, indent: str, taken: Container[str], used: set[str]) -> list[str]:
    """Return the lines that compute the values and then store them."""
    values = [store.value for store in stores]
    nodes = live(values)
    uses = Counter(item.index for node in nodes for item in node.args)
    uses.update(value.index for value in values)
    results = {value.index for value in values}
    stored = {store.array for store in stores}
    lines: list[str] = []
    text: dict[int, tuple[str, int]] = {}
    for node in nodes:
        written, precedence = _write(node, text, used)
        loads_what_is_stored = node.op == "load" and node.data.array in stored
        leaf = not node.args and not loads_what_is_stored
        short = len(written) <= LONGEST_EXPRESSION or node.index in results
        if leaf or (uses[node.index] == 1 and short and not loads_what_is_stored):
            text[node.index] = (written, precedence)
        else:
            local = f"t{len(lines)}"
            while local in taken:
                local += "_"
            lines.append(f"{indent}{local} = {written}")
            text[node.index] = (local, _ATOM)
    for store in stores:
        place, result = _address(store.address), text[store.value.index]
        # Not +=, which would write into a NumPy array that another element may share.
        added = f"{place} + {_within(result, 13)}" if store.accumulate else result[0]
        lines.append(f"{indent}{place} = {added}")
    return lines


def _write(node: Expression, known: dict[int, tuple[str, int]], used: set[str]) -> tuple[str, int]:
    """Return a node in terms of its arguments' text, and the precedence of the result."""
    if node.op == "constant":
        return _number(node.data)
    if node.op == "input":
        return f"{_identifier(node.data[0])}[{node.data[1]}]", _ATOM
    if node.op == "load":
        return _address(node.data), _ATOM
    arguments = [known[item.index] for item in node.args]
    if node.op == "neg":
        return f"-{_within(arguments[0], _NEGATION)}", _NEGATION
    text = "lookup" if node.op == "lookup" else OPERATIONS[node.op].text
    if text in _PRECEDENCE:
        precedence = _PRECEDENCE[text]
        left, right = arguments
        if node.op == "mul" and node.args[1].op == "constant":
            left, right = right, left
        return f"{_within(left, precedence)} {text} {_within(right, precedence + 1)}", precedence
    used.add(text)
    if node.op == "lookup":
        arguments.insert(0, (_identifier(node.data), _ATOM))
    return f"{text}({', '.join(argument for argument, _ in arguments)})", _ATOM


def _number(value: float) -> tuple[str, int]:
    written = repr(value)
    if written in ("inf", "-inf", "nan"):
        return f'float("{written}")', _ATOM
    return written, _NEGATION if value < 0.0 else _ATOM


def _within(argument: tuple[str, int], precedence: int) -> str:
    written, own = argument
    return written if own >= precedence else f"({written})"


def _address(address: Address) -> str:
    array = _identifier(address.array)
    index = "i" if address.table is None else f"{_identifier(address.table)}[i]"
    if address.scale == 0:
        return f"{array}[{address.offset}]"
    scaled = index if address.scale == 1 else f"{address.scale} * {index}"
    return f"{array}[{scaled} + {address.offset}]" if address.offset else f"{array}[{scaled}]"


def _identifier(name: str) -> str:
    """Return a name as a Python identifier, "upper.mass" as `upper_mass`, with `_` after words in use."""
    word = re.sub(r"\W", "_", name)
    if not word.isidentifier():
        word = f"_{word}"
    return f"{word}_" if keyword.iskeyword(word) or word in _RESERVED else word
