"""The functions that share the rows of a batch among threads, as LLVM text, and the batch that they read.

A batch is an array of 64-bit words, made by the calling thread, which runs `dalembert_lead` on it while any
number of other threads run `dalembert_help`. See `threads` for what is proven of them.

    lead(batch, scratch):                              help(batch, scratch):
        gate = 0                                           while gate is CLOSED: leave, if it stays so
        repeat run_piece                                   gate += 1, if it is not CLOSED
            until none is left, or time is up              repeat run_piece
        gate |= CLOSED                                         until none is left, or gate is CLOSED
        wait until gate is CLOSED: all have left           gate -= 1
        return whether pieces are left

    run_piece(batch, scratch):
        number = next++;   if number >= pieces: none is left
        found = kernel(arrays, shifted by number * piece_rows, …)
        refused = min(refused, found + number * piece_rows) if found >= 0
"""

from __future__ import annotations

import sys
from typing import Final

__all__ = ["ARRAYS", "CLOSED", "FIELDS", "batch_text"]

FIELDS: Final = (
    "gate", "next", "refused",  # changed by several threads
    "pieces", "piece_rows", "rows", "kernel", "tables", "shifted", "streamed", "arrays", "inputs",
    "is_rollout", "steps", "first", "every",
    "now", "clock", "ticks", "sleep",
)  # fmt: skip
"""Words of a batch, before those of its arrays: all addresses, all row strides, all step strides.

gate: threads that run pieces beside the leader, plus CLOSED while no further one may begin. shifted: where in
scratch memory shifted addresses go. streamed: what the first word of scratch memory shall be, or -1 for no
such word. now, clock: the function that tells the time, and the number of its clock. ticks: its units until
the leader returns. sleep: the function by which a leader waits."""

ARRAYS: Final = len(FIELDS)

CLOSED: Final = 1 << 62

LEADER_SPINS: Final = 2000
"""Reads of the gate (15 to 40 ns each) before a waiting leader sleeps: about as long as waking up takes."""

HELPER_SPINS: Final = 2000
"""Reads of the gate (15 to 40 ns each) before a helper gives up on a leader that has not opened it yet."""

REST: Final = 0 if sys.platform == "win32" else 20
"""The argument of `sleep`. usleep: a few microseconds, which become about 70 by the system's own slack;
Sleep of Windows: no time, but another thread may run."""

_PAUSES: Final = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
"""The instruction that tells a processor that a loop only waits: its declaration and its call."""


def batch_text(triple: str) -> str:
    """Return `dalembert_lead` and `dalembert_help` as LLVM text."""
    machine = "aarch64" if triple.startswith(("aarch64", "arm64")) else "x86_64"
    declared, pause = _PAUSES[machine]
    replacements = {
        **{f"W_{field}": str(8 * k) for k, field in enumerate(FIELDS)},
        "AT_ARRAYS": str(8 * ARRAYS),
        "CLOSED": str(CLOSED),
        "SPINS": str(LEADER_SPINS),
        "REST": str(REST),
        "PATIENCE": str(HELPER_SPINS),
        "DECLARED": declared,
        "PAUSE": pause,
        "READ_CLOCK": _WINDOWS_CLOCK if sys.platform == "win32" else _POSIX_CLOCK,
        "TRIPLE": triple,
    }
    text = _BATCH
    for name in sorted(replacements, key=len, reverse=True):
        text = text.replace(name, replacements[name])
    return text


_POSIX_CLOCK: Final = """%unused = call i32 %f(i32 %id, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %nanoseconds.at = getelementptr i8, ptr %time, i64 8
  %nanoseconds = load i64, ptr %nanoseconds.at, align 8
  %whole = mul i64 %seconds, 1000000000
  %ticks = add i64 %whole, %nanoseconds"""
"""clock_gettime"""

_WINDOWS_CLOCK: Final = """%unused = call i32 %f(ptr %time)
  %ticks = load i64, ptr %time, align 8"""
"""QueryPerformanceCounter"""

_BATCH: Final = """
target triple = "TRIPLE"
DECLARED

define internal i64 @word(ptr %batch, i64 %offset) nounwind {
  %at = getelementptr i8, ptr %batch, i64 %offset
  %value = load i64, ptr %at, align 8
  ret i64 %value
}

define internal i64 @read_clock(ptr %batch) nounwind {
  %time = alloca [2 x i64], align 8
  %address = call i64 @word(ptr %batch, i64 W_now)
  %f = inttoptr i64 %address to ptr
  %clock = call i64 @word(ptr %batch, i64 W_clock)
  %id = trunc i64 %clock to i32
  READ_CLOCK
  ret i64 %ticks
}

define internal i1 @run_piece(ptr %batch, ptr %scratch) nounwind {
entry:
  %next.at = getelementptr i8, ptr %batch, i64 W_next
  %number = atomicrmw add ptr %next.at, i64 1 monotonic
  %pieces = call i64 @word(ptr %batch, i64 W_pieces)
  %some = icmp slt i64 %number, %pieces
  br i1 %some, label %shift, label %none
none:
  ret i1 false

shift:
  %piece.rows = call i64 @word(ptr %batch, i64 W_piece_rows)
  %rows = call i64 @word(ptr %batch, i64 W_rows)
  %start = mul i64 %number, %piece.rows
  %left = sub i64 %rows, %start
  %last = icmp slt i64 %left, %piece.rows
  %count = select i1 %last, i64 %left, i64 %piece.rows
  %arrays = call i64 @word(ptr %batch, i64 W_arrays)
  %bases = getelementptr i8, ptr %batch, i64 AT_ARRAYS
  %strides = getelementptr i64, ptr %bases, i64 %arrays
  %step.strides = getelementptr i64, ptr %strides, i64 %arrays
  %shifted.offset = call i64 @word(ptr %batch, i64 W_shifted)
  %shifted = getelementptr i8, ptr %scratch, i64 %shifted.offset
  br label %array.test
array.test:
  %k = phi i64 [ 0, %shift ], [ %k.next, %array ]
  %more.arrays = icmp ult i64 %k, %arrays
  br i1 %more.arrays, label %array, label %stream
array:
  %base.at = getelementptr i64, ptr %bases, i64 %k
  %base = load i64, ptr %base.at, align 8
  %stride.at = getelementptr i64, ptr %strides, i64 %k
  %stride = load i64, ptr %stride.at, align 8
  %distance = mul i64 %start, %stride
  %moved = add i64 %base, %distance
  %moved.at = getelementptr i64, ptr %shifted, i64 %k
  store i64 %moved, ptr %moved.at, align 8
  %k.next = add i64 %k, 1
  br label %array.test

stream:
  %streamed = call i64 @word(ptr %batch, i64 W_streamed)
  %has.word = icmp sge i64 %streamed, 0
  br i1 %has.word, label %tell, label %call
tell:
  store i64 %streamed, ptr %scratch, align 8
  br label %call

call:
  %kernel.address = call i64 @word(ptr %batch, i64 W_kernel)
  %kernel = inttoptr i64 %kernel.address to ptr
  %tables.address = call i64 @word(ptr %batch, i64 W_tables)
  %tables = inttoptr i64 %tables.address to ptr
  %inputs = call i64 @word(ptr %batch, i64 W_inputs)
  %outputs = getelementptr i64, ptr %shifted, i64 %inputs
  %output.strides = getelementptr i64, ptr %strides, i64 %inputs
  %is.rollout.word = call i64 @word(ptr %batch, i64 W_is_rollout)
  %is.rollout = icmp ne i64 %is.rollout.word, 0
  br i1 %is.rollout, label %many.steps, label %one.step
one.step:
  %found.one = call i64 %kernel(
      ptr %shifted, ptr %strides, ptr %outputs, ptr %output.strides, i64 %count, ptr %tables, ptr %scratch)
  br label %called
many.steps:
  %steps = call i64 @word(ptr %batch, i64 W_steps)
  %first = call i64 @word(ptr %batch, i64 W_first)
  %every = call i64 @word(ptr %batch, i64 W_every)
  %output.steps = getelementptr i64, ptr %step.strides, i64 %inputs
  %found.many = call i64 %kernel(
      ptr %shifted, ptr %strides, ptr %outputs, ptr %output.strides, i64 %count, ptr %tables, ptr %scratch,
      i64 %steps, i64 %first, i64 %every, ptr %step.strides, ptr %output.steps)
  br label %called
called:
  %found = phi i64 [ %found.one, %one.step ], [ %found.many, %many.steps ]
  %refuses = icmp sge i64 %found, 0
  br i1 %refuses, label %refuse, label %done
refuse:
  %row = add i64 %found, %start
  %refused.at = getelementptr i8, ptr %batch, i64 W_refused
  %unused = atomicrmw min ptr %refused.at, i64 %row monotonic
  br label %done
done:
  ret i1 true
}

define i64 @dalembert_lead(ptr %batch, ptr %scratch) nounwind {
entry:
  %gate.at = getelementptr i8, ptr %batch, i64 W_gate
  %ticks = call i64 @word(ptr %batch, i64 W_ticks)
  %sleep.address = call i64 @word(ptr %batch, i64 W_sleep)
  %sleep = inttoptr i64 %sleep.address to ptr
  %begun = call i64 @read_clock(ptr %batch)
  store atomic i64 0, ptr %gate.at release, align 8
  br label %work
work:
  %some = call i1 @run_piece(ptr %batch, ptr %scratch)
  br i1 %some, label %look, label %close
look:
  %now = call i64 @read_clock(ptr %batch)
  %passed = sub i64 %now, %begun
  %late = icmp sge i64 %passed, %ticks
  br i1 %late, label %close, label %work
close:
  %before = atomicrmw or ptr %gate.at, i64 CLOSED acq_rel
  br label %wait
wait:
  %spin = phi i64 [ 0, %close ], [ %spin.next, %pause ], [ %spin, %rest ]
  %gate = load atomic i64, ptr %gate.at acquire, align 8
  %alone = icmp eq i64 %gate, CLOSED
  br i1 %alone, label %end, label %busy
busy:
  %short = icmp ult i64 %spin, SPINS
  br i1 %short, label %pause, label %rest
pause:
  PAUSE
  %spin.next = add i64 %spin, 1
  br label %wait
rest:
  %unused = call i32 %sleep(i32 REST)
  br label %wait
end:
  %next.at = getelementptr i8, ptr %batch, i64 W_next
  %next = load atomic i64, ptr %next.at monotonic, align 8
  %pieces = call i64 @word(ptr %batch, i64 W_pieces)
  %left = icmp slt i64 %next, %pieces
  %result = zext i1 %left to i64
  ret i64 %result
}

define void @dalembert_help(ptr %batch, ptr %scratch) nounwind {
entry:
  %gate.at = getelementptr i8, ptr %batch, i64 W_gate
  %next.at = getelementptr i8, ptr %batch, i64 W_next
  %pieces = call i64 @word(ptr %batch, i64 W_pieces)
  br label %knock
knock:
  %look = phi i64 [ 0, %entry ], [ %look.next, %again ], [ %look, %open ]
  %gate = load atomic i64, ptr %gate.at monotonic, align 8
  %shut = icmp uge i64 %gate, CLOSED
  br i1 %shut, label %stay, label %open
stay:
  %next = load atomic i64, ptr %next.at monotonic, align 8
  %some.left = icmp slt i64 %next, %pieces
  %patient = icmp ult i64 %look, PATIENCE
  %again.yes = and i1 %some.left, %patient
  br i1 %again.yes, label %again, label %leave
again:
  PAUSE
  %look.next = add i64 %look, 1
  br label %knock
open:
  %more = add i64 %gate, 1
  %pair = cmpxchg ptr %gate.at, i64 %gate, i64 %more acquire monotonic
  %entered = extractvalue { i64, i1 } %pair, 1
  br i1 %entered, label %test, label %knock

test:
  %state = load atomic i64, ptr %gate.at monotonic, align 8
  %ended = icmp uge i64 %state, CLOSED
  br i1 %ended, label %exit, label %work
work:
  %some = call i1 @run_piece(ptr %batch, ptr %scratch)
  br i1 %some, label %test, label %exit
exit:
  %unused = atomicrmw sub ptr %gate.at, i64 1 release
  ret void
leave:
  ret void
}
"""
