"""The arithmetic of a kernel: instructions in their planned order, for any processor.

Nothing here depends on where arrays live; `fetch` loads the value of a leaf, `store_result` takes each result
as it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias

from dalembert.codegen.elementary import ELEMENTARY_OPS
from dalembert.codegen.ir import Value, Writer
from dalembert.codegen.registers import BREAK_STEP, COMPUTE_STEP, LOAD_STEP, RELOAD_STEP, Plan
from dalembert.codegen.schedule import Instructions
from dalembert.errors import CompileError
from dalembert.tracing.size import WEIGHTS

__all__ = ["BLOCK_LENGTH", "Caller", "Memory", "emit_instructions", "operation"]

BLOCK_LENGTH: Final = 1000
"""Instructions in a basic block. The code generator's time grows faster than the length of a block; its
result gets worse in short ones, which share fewer constants and memory operands."""

SPLIT_BLOCK_LENGTH: Final = 300
"""Instructions in a basic block of a program that is split into functions: a stack of four boxes (88,000
operations) takes LLVM 3.3 s in place of 4.5, and runs as fast."""

Caller: TypeAlias = Callable[[Writer, str, list[Value]], dict[str, Value]]
"""Writes the call of an elementary function; its results by operation, as `elementary.call` does."""

_COMPARISONS: Final = {"lt": "olt", "le": "ole", "eq": "oeq"}


class Memory(Protocol):
    """Numbered places, as `memory.Place` has them."""

    def load(self, writer: Writer, position: int) -> Value: ...

    def store(self, writer: Writer, value: Value, position: int) -> None: ...


def emit_instructions(
    writer: Writer,
    program: Instructions,
    plan: Plan,
    *,
    fetch: Callable[[int], Value],
    store_result: Callable[[int, Value], None],
    spills: Memory,
    proceed: tuple[Value, str],
    look_up: Callable[[str, Value], Value],
    call: Caller,
    interleaved: Sequence[Callable[[], None]] = (),
    values: dict[int, Value] | None = None,
    cut: Callable[[], None] | None = None,
) -> dict[int, Value]:
    """Write the planned instructions and return the named values by node.

    `spills` are the spill slots. `proceed` is a condition that always holds, and the block to go to if it did
    not: a branch on it ends a basic block where the code generator would join plain ones. `look_up` loads an
    element of a named table, `call` returns the results of an elementary function. `interleaved` is work for
    the memory units, spread evenly over the arithmetic so that both overlap. `values`: named values from
    before, to which the new ones are added. `cut` ends a function where the plan has a break.
    """
    values = {} if values is None else values
    ops, args, data = program.ops, program.args, program.data
    pending: dict[tuple[str, tuple[int, ...]], Value] = {}
    steps, done = max(len(plan.steps), 1), 0
    block_length, in_block = (BLOCK_LENGTH if cut is None else SPLIT_BLOCK_LENGTH), 0
    for count, (action, node, slot) in enumerate(plan.steps, 1):
        if action == COMPUTE_STEP:
            op = ops[node]
            if op in ELEMENTARY_OPS:
                value = pending.pop((op, args[node]), "")
                if not value:
                    operands = [
                        writer.constant(data[item]) if ops[item] == "constant" else values[item]
                        for item in args[node]
                    ]
                    results = call(writer, op, operands)
                    value = results.pop(op)
                    pending = {(other, args[node]): each for other, each in results.items()}
            elif op == "lookup":
                value = look_up(data[node], values[args[node][0]])
            else:
                value = operation(
                    writer,
                    op,
                    [
                        writer.constant(data[item]) if ops[item] == "constant" else values[item]
                        for item in args[node]
                    ],
                )
            values[node] = value
            store_result(node, value)
        elif action == LOAD_STEP:
            values[node] = fetch(node)
        elif action == RELOAD_STEP:
            values[node] = spills.load(writer, slot)
        elif action == BREAK_STEP and cut is not None:
            values.clear()
            pending.clear()
            cut()
        else:
            spills.store(writer, values[node], slot)
        while done < len(interleaved) * count // steps:
            interleaved[done]()
            done += 1
        in_block += 1 if cut is None or action != COMPUTE_STEP else WEIGHTS.get(ops[node], 1)
        if in_block >= block_length:
            in_block = 0
            label = writer.label()
            writer.line(f"br i1 {proceed[0]}, label %{label}, label %{proceed[1]}")
            writer.begin(label)
    for task in interleaved[done:]:
        task()
    return values


def operation(writer: Writer, op: str, operands: list[Value]) -> Value:
    """Write one operation of the graph other than leaves and elementary functions."""
    plain = _PLAIN.get(op)
    if plain is not None:
        return plain(writer, *operands)
    if op in _COMPARISONS:
        return writer.compare(_COMPARISONS[op], *operands)
    if op in ("and", "or"):
        return writer.logic(op, *operands)
    if op == "min":
        return writer.select(writer.compare("olt", operands[0], operands[1]), *operands)
    if op == "max":
        return writer.select(writer.compare("olt", operands[1], operands[0]), *operands)
    raise CompileError(f"the operation {op!r} has no machine code; define it in codegen/body.py")


_PLAIN: Final[dict[str, Callable[..., Value]]] = {
    "add": Writer.add,
    "sub": Writer.sub,
    "mul": Writer.mul,
    "div": Writer.div,
    "neg": Writer.neg,
    "abs": Writer.abs,
    "sqrt": Writer.sqrt,
    "floor": Writer.floor,
    "select": Writer.select,
    "not": Writer.invert,
    "copy": lambda writer, a: a,
    "fma": Writer.fused_multiply_add,
    "fms": lambda writer, a, b, c: writer.fused_multiply_add(a, b, writer.neg(c)),
    "fnma": lambda writer, a, b, c: writer.fused_multiply_add(writer.neg(a), b, c),
    "fnms": lambda writer, a, b, c: writer.fused_multiply_add(writer.neg(a), b, writer.neg(c)),
}
