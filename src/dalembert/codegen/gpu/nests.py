"""Loops with loops inside, as such.

A `Loop` with others inside is one sequence of parts, by a table: a b b b c, a b b b c, … A thread that goes
by the table asks for each part which it is and whether it is to be left out. Where the sequence is a repeated
one of single parts and repeated parts, it is written as two loops instead.

The code of such loops is larger than the instruction caches. Warps that run it each at its own time fetch it
each for itself, and wait for that alone; `together` the warps of a block begin each part at the same time,
and take another round as long as one of them needs it. A thread whose sample is done takes no part in it.
"""

from __future__ import annotations

from itertools import groupby
from typing import Final

from dalembert.codegen.context import Context
from dalembert.codegen.ir import Value
from dalembert.codegen.loops import emit_case, emit_loop, leave
from dalembert.tracing.expression import live
from dalembert.tracing.program import Address, Loop, Program

__all__ = ["emit_nest", "frequency"]

ITERATION: Final = 9
"""How often the code of a loop is thought to run."""

TRIAL: Final = 20
"""How often that of a loop inside another is."""

Runs = list[tuple[int, int]]


def frequency(loop: Loop, case: int) -> int:
    """How often a case is thought to run; -1: what is done before an inner loop."""
    return TRIAL if case >= 0 and loop.skips and loop.skips[case] is not None else ITERATION


def emit_nest(context: Context, program: Program, loop: Loop, *, together: bool = False) -> None:
    """Write a loop, and those inside it."""
    runs = _runs(program, loop)
    if runs is None:
        emit_loop(context, program, loop)
        return
    writer = context.writer
    context.entering(loop, -1)
    after = writer.label()
    tail, counter, head = _begin(context)
    done = None
    if together and loop.until is not None:
        done = _round(context, loop.until, after)
    else:
        leave(context, loop.until, counter, after)
    for number, (case, times) in enumerate(runs):
        skip = loop.skips[case] if loop.skips else None
        over = writer.label()
        if done is not None:
            if number:
                writer.line("call void @pace()")
            part = writer.label()
            writer.line(f"br i1 {done}, label %{over}, label %{part}")
            writer.begin(part)
        if times == 1:
            leave(context, skip, counter, over)
            _write(context, program, loop, case, counter)
            writer.line(f"br label %{over}")
        else:
            context.entering(loop, -1)
            inner_tail, inner_counter, inner_head = _begin(context)
            leave(context, skip, inner_counter, over)
            _write(context, program, loop, case, inner_counter)
            _end(context, inner_tail, inner_counter, inner_head, times, over)
        writer.begin(over)
    _end(context, tail, counter, head, loop.count // sum(times for _, times in runs), after)
    writer.begin(after)


def _round(context: Context, flag: Address, after: str) -> Value:
    """Go to the block `after` if all threads of the block are done; whether this one is."""
    writer = context.writer
    value = context.places[flag.array].load(writer, flag.offset)
    done = writer.compare("une", value, writer.constant(0.0))
    more = writer.let(f"call i1 @any(i1 {writer.invert(done)})")
    round_ = writer.label()
    writer.line(f"br i1 {more}, label %{round_}, label %{after}")
    writer.begin(round_)
    return done


def _write(context: Context, program: Program, loop: Loop, case: int, counter: Value) -> None:
    context.entering(loop, case)
    emit_case(context, program, loop, case, loop.cases[case], counter)


def _begin(context: Context) -> tuple[str, Value, str]:
    writer = context.writer
    before, head, tail = (writer.label() for _ in range(3))
    counter = f"%{head}.i"
    writer.line(f"br label %{before}")
    writer.begin(before)
    writer.line(f"br label %{head}")
    writer.begin(head)
    writer.line(f"{counter} = phi i64 [ 0, %{before} ], [ {counter}.next, %{tail} ]")
    return tail, counter, head


def _end(context: Context, tail: str, counter: Value, head: str, count: int, after: str) -> None:
    writer = context.writer
    writer.line(f"br label %{tail}")
    writer.begin(tail)
    writer.line(f"{counter}.next = add i64 {counter}, 1")
    more = writer.let(f"icmp ult i64 {counter}.next, {count}")
    writer.line(f"br i1 {more}, label %{head}, label %{after}")


def _runs(program: Program, loop: Loop) -> Runs | None:
    """One round of the sequence as (case, times); None where it cannot be written so."""
    if not loop.count or loop.reverse or not _is_fixed(loop):
        return None
    table = [0] * loop.count
    if loop.kinds is not None:
        table = [int(kind) for kind in program.tables[loop.kinds][: loop.count]]
    last = table[-1]
    length = table.index(last) + 1
    if loop.count % length or table != table[:length] * (loop.count // length):
        return None
    runs = [(case, len(list(group))) for case, group in groupby(table[:length])]
    if len({case for case, _ in runs}) < len(runs):
        return None
    for case, stores in enumerate(loop.cases):
        ends = any(store.address == loop.until for store in stores)
        if case != last and ends:
            return None
    return runs


def _is_fixed(loop: Loop) -> bool:
    stores = [store for case in loop.cases for store in case]
    addresses = [store.address for store in stores]
    addresses += [node.data for node in live([s.value for s in stores]) if node.op == "load"]
    return all(address.scale == 0 for address in addresses)
