"""Nested loops of a GPU thread.

A `Loop` with inner loops is one sequence of parts, by a table: a b b b c, a b b b c, … A thread that follows
the table must find for each part its number and whether to skip it. If the sequence is a repetition of single
parts and repeated parts, it is written as two nested loops instead.

The code of such loops is larger than the instruction caches. Warps that run it at different times fetch it
separately and stall on that; `together` the warps of a block begin each part at the same time, and run
another iteration as long as one of them needs it. A thread whose sample is done is idle in it.
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

ESTIMATED_ITERATIONS: Final = 9
"""The estimated number of iterations of a loop, for the choice of the most used slots."""

ESTIMATED_INNER_ITERATIONS: Final = 20
"""The estimated number of runs of the code of an inner loop."""

Runs = list[tuple[int, int]]


def frequency(loop: Loop, case: int) -> int:
    """Return the estimated number of runs of a case; -1: the code before an inner loop."""
    return (
        ESTIMATED_INNER_ITERATIONS
        if case >= 0 and loop.skips and loop.skips[case] is not None
        else ESTIMATED_ITERATIONS
    )


def emit_nest(context: Context, program: Program, loop: Loop, *, together: bool = False) -> None:
    """Write a loop and its inner loops."""
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
    """Branch to the block `after` if all threads of the block are done; return whether this thread is."""
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
    """Return one period of the sequence as (case, times), or None if the sequence is not periodic."""
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
