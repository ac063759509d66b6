"""Nested loops of a GPU thread: each thread leaves them by itself, or the warps of a block iterate together.

A `Loop` with inner loops is one sequence of parts, by a table: a b b b c, a b b b c, … A thread that follows
the table must find for each part its number and whether to skip it. If the sequence is a repetition of single
parts and repeated parts, it is written as two nested loops instead. A `Repeat` has its inner loops inside.

The code of such loops is larger than the instruction caches. Warps that run it at different times fetch it
separately and stall on that; `together` the warps of a block begin each part at the same time, and run
another iteration as long as one of them needs it. A thread whose sample is done is idle in it. Only
iterations that the function itself has do so: all threads of a block come by. Loops inside of others do not:
each thread visits the rows that its own sample found, and their number differs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import Final

from dalembert.codegen.gpu.launch import BARRIER
from dalembert.codegen.ir import Value
from dalembert.codegen.memory import loop_addresses
from dalembert.codegen.statement_code import Context, emit_case, emit_item, emit_loop, emit_repeat, leave
from dalembert.tracing.expression import Address, Expression, replace_leaves
from dalembert.tracing.program import Append, Case, Loop, Program, Repeat, Straight

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
    with writer.loop(loop.count // sum(times for _, times in runs)) as (counter, _, after):
        done = None
        if together and loop.until is not None:
            done = _begin_round(context, loop.until, after)
        else:
            leave(context, loop.until, counter, after)
        for number, (case, times) in enumerate(runs):
            skip = loop.skips[case] if loop.skips else None
            over = writer.label()
            if done is not None:
                if number:
                    writer.line(BARRIER)
                writer.leave(done, over)
            if times == 1:
                leave(context, skip, counter, over)
                _write(context, program, loop, case, counter)
                writer.jump(over)
            else:
                context.entering(loop, -1)
                with writer.loop(times, after=over) as (inner_counter, *_):
                    leave(context, skip, inner_counter, over)
                    _write(context, program, loop, case, inner_counter)
            writer.begin(over)


def _write(context: Context, program: Program, loop: Loop, case: int, counter: Value) -> None:
    context.entering(loop, case)
    emit_case(context, program, loop, case, counter)


def emit_rows(context: Context, program: Program, repeat: Repeat, *, together: bool = False) -> None:
    """Write a loop over rows, or of iterations, and its inner loops; every thread has rows of its own."""
    if not together or repeat.until is None:
        emit_repeat(context, program, repeat)
        return
    writer, end = context.writer, context.writer.label()
    with writer.for_each(str(repeat.count)) as number:
        done = _begin_round(context, repeat.until, end)
        for k, item in enumerate(repeat.body):
            over = writer.label()
            if k:
                writer.line(BARRIER)
            writer.leave(done, over)
            emit_item(context, program, repeat, item, number)
            writer.enter(over)
    writer.enter(end)


def _begin_round(context: Context, until: Address, after: str) -> Value:
    """Write the beginning of a round of the whole block, which goes to `after` once all threads are done;
    return whether the thread's own sample is."""
    writer = context.writer
    value = context.places[until.array].load(writer, until.offset)
    done = writer.compare("une", value, writer.constant(0.0))
    writer.require(writer.let(f"call i1 @any(i1 {writer.invert(done)})"), after)
    return done


def estimated_runs(statements: Iterable[object], outer: int = 1) -> Iterator[tuple[str, int]]:
    """Yield the name of each loop over rows, or of iterations, and the estimated number of runs of its code;
    the loops around run `outer` times."""
    for statement in statements:
        if isinstance(statement, Repeat):
            runs = outer * ESTIMATED_ITERATIONS
            yield statement.name, runs
            yield from estimated_runs(statement.body, runs)


def _runs(program: Program, loop: Loop) -> Runs | None:
    """Return one period of the sequence as (case, times), or None if the sequence is not periodic."""
    if not loop.count or loop.reverse or any(address.scale for address in loop_addresses(loop)):
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


# Loops without exit tests in their steps, for a GPU thread.
#
# The step of a loop selects, for every carried value, the old value if the sample is done. The lanes of a CPU
# need that, because they leave the loop together. A thread leaves as soon as its own sample is done, so that
# inside the loop the exit flag is known to be zero.


def without_exit_tests(loop: Loop) -> Loop:
    """Return the loop with its exit flags replaced by zero, so that selects on them fold away."""
    cases = [_with_zeros(case, loop.flags(number)) for number, case in enumerate(loop.cases)]
    return dataclasses.replace(loop, cases=tuple(cases))


def _with_zeros(case: Case, flags: Collection[Address]) -> Case:
    """Return stores of the same values with zero in place of the elements `flags`."""

    def leaf(node: Expression) -> Expression:
        return node.graph.constant(0.0) if node.op == "load" and node.data in flags else node

    new = replace_leaves([value for store in case for value in store.values], leaf)
    return tuple(
        dataclasses.replace(
            store, value=new[store.value.index], row=None if store.row is None else new[store.row.index]
        )
        for store in case
    )


def without_row_exit_tests(repeat: Repeat, outer: tuple[Address, ...] = ()) -> Repeat:
    """Return a loop over rows, or of iterations, with its exit flags and those of the loops inside replaced
    by zero; `outer` are the flags of the loops around it."""
    flags = outer if repeat.until is None else (*outer, repeat.until)
    body: list[Straight | Repeat | Append] = []
    for item in repeat.body:
        if isinstance(item, Repeat):
            body.append(without_row_exit_tests(item, flags))
        else:
            body.append(Straight(_with_zeros(item.stores, flags)) if isinstance(item, Straight) else item)
    return dataclasses.replace(repeat, body=tuple(body))
