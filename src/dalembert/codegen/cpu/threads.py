"""Threads that share the rows of a batch, and stop before the call ends.

A batch is cut into pieces, of which the calling thread (the leader) and helper threads take one after the
other. All that writes into the arrays of a call is machine code: `dalembert_lead` in the leader,
`dalembert_help` in the helpers. They meet in the gate of the batch, an atomic counter of the
helpers inside, with a bit CLOSED.

*No helper writes into a call's memory before `lead` begins or after it has returned:*

1. A batch is made CLOSED. Only `lead` opens it, and it closes it again before it returns.
2. A helper runs pieces only between its entry, an atomic gate += 1 which fails where the gate is CLOSED, and
   its exit, gate -= 1.
3. `lead` returns only after it has closed the gate and then seen gate = CLOSED, that is, nobody inside. By 2
   nobody enters after the closing. The exits release and the leader's look acquires, so that it sees all that
   helpers wrote.
4. Between entry and exit a helper runs no Python, takes no lock and allocates nothing: it leaves after its
   current piece, independent of the interpreter. So `lead` ends if kernels do.
5. Python handles signals, switches to finalizers and raises exceptions of other threads between bytecodes,
   never inside `lead`. An exception of any kind, at any bytecode of this module, thus comes
   before `lead` (nobody has entered), after it (nobody is inside) or between two calls of it (both).

Nothing of this depends on what Python code does after an exception; there is nothing to wait for or to clean
up. A helper that comes late finds its batch CLOSED and leaves; the batch, a few hundred bytes, lives as long
as somebody refers to it. What else may happen costs speed at most: a helper that dies is replaced, one that
cannot be started is done without, the leader alone being enough. There is no lock, so that a signal handler,
a finalizer or a forked child may call again at any time; a child has a queue of its own, and its parent's
helpers are not in it. Helpers are daemon threads, which still work in `atexit` handlers.

`lead` returns after `SECONDS_UNTIL_INTERRUPT` with pieces left, and is called again: so Ctrl-C ends a call of
any length, on one thread too. Arrays given as `out=` are then written in part.
"""

from __future__ import annotations

import _thread
import ctypes
import functools
import os
import sys
import threading
import time
from array import array
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dalembert.codegen.machine_code import load_helper
from dalembert.codegen.target import target_for
from dalembert.errors import ArgumentError

# The functions that share the rows of a batch among threads, as LLVM text, and the batch that they read.
#
# A batch is an array of 64-bit words, made by the calling thread, which runs `dalembert_lead` on it while any
# number of other threads run `dalembert_help`. See `threads` for what is proven of them.
#
#     lead(batch, scratch):                              help(batch, scratch):
#         gate = 0                                           while gate is CLOSED: leave, if it stays so
#         repeat run_piece                                   gate += 1, if it is not CLOSED
#             until none is left, or time is up              repeat run_piece
#         gate |= CLOSED                                         until none is left, or gate is CLOSED
#         wait until gate is CLOSED: all have left           gate -= 1
#         return whether pieces are left
#
#     run_piece(batch, scratch):
#         number = next++;   if number >= pieces: none is left
#         found = kernel(arrays, shifted by number * piece_rows, …)
#         refused = min(refused, found + number * piece_rows) if found >= 0

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


ENVIRONMENT: Final = "DALEMBERT_NUM_THREADS"

SECONDS_UNTIL_INTERRUPT: Final = 0.04
"""[s] Time after which Python gets a chance to handle signals: not noticed by people, and long beside the
0.3 ms that threads lose by stopping and starting together."""

WORTH_A_THREAD: Final = 400_000
"""Instructions (about 0.1 ms) below which another thread costs more than it saves. Batches that are smaller
in all are not cut into pieces: their kernel is called directly."""

MIN_PIECES_PER_THREAD: Final = 4
"""More pieces than threads, so that a thread that was interrupted, or met rows that take longer, does not
hold up the others."""

PIECE_INSTRUCTIONS: Final = 2_000_000
"""Instructions of a piece (about 0.5 ms): long beside the cost of taking a piece; threads stop only between
pieces."""

CACHE_LINE: Final = 64
"""[bytes]"""

NO_ROW: Final = 2**63 - 1
"""More than the number of any row."""


def get_num_threads() -> int:
    """Return the largest number of threads that a call may use.

    >>> da.get_num_threads() >= 1
    True
    """
    if not _LIMIT:
        _LIMIT.append(_initial_limit())
    return _LIMIT[-1]


def set_num_threads(count: int) -> None:
    """Let calls use up to `count` threads. The results do not depend on it.

    Calls that are under way in other threads keep the number that they began with.

    >>> before = da.get_num_threads()
    >>> da.set_num_threads(2)
    >>> da.get_num_threads()
    2
    >>> da.set_num_threads(before)
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ArgumentError(f"set_num_threads({count!r}): expected a whole number of at least 1")
    _LIMIT[:] = [count]


_LIMIT: Final[list[int]] = []
"""The limit, once it is known."""


def _initial_limit() -> int:
    text = os.environ.get(ENVIRONMENT, "").strip()
    if text:
        if not text.isdecimal() or int(text) < 1:
            raise ArgumentError(f"{ENVIRONMENT}={text!r}: expected a whole number of at least 1")
        return int(text)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


# Scratch memory of a thread: kept from one call to the next.

MAX_KEPT_BYTES: Final = 1 << 26
"""Larger scratch memory is given back after the call: 64 MB a thread is more than any bundled model needs."""


def aligned_buffer(size: int) -> npt.NDArray[np.uint8]:
    """Return uninitialised bytes at an address that is a multiple of 64."""
    raw = np.empty(size + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


@final
class _Scratch(threading.local):
    """Memory of one thread."""

    # One attribute, so that no interrupt can leave the size of one buffer beside the address of another.
    kept: tuple[int, int, object] = (-1, 0, None)

    def take(self, size: int) -> tuple[int, object]:
        """Return the address of `size` bytes, and the object that keeps them alive."""
        kept_size, address, buffer = self.kept
        if size <= kept_size:
            return address, buffer
        fresh = aligned_buffer(size)
        address = int(fresh.ctypes.data)
        if size <= MAX_KEPT_BYTES:
            self.kept = (size, address, fresh)
        return address, fresh


SCRATCH: Final = _Scratch()


class StepCount(NamedTuple):
    """The arguments of a kernel of many steps (`rollout`) beside those of a kernel of one."""

    steps: int
    first: int
    every: int
    strides: Sequence[int]


def run_batch(
    kernel: int,
    bases: Sequence[int],
    strides: Sequence[int],
    *,
    inputs: int,
    rows: int,
    lanes: int,
    work: int,
    tables: int,
    scratch_bytes: int,
    streamed: int = -1,
    steps: StepCount | None = None,
    threads: bool = True,
) -> int:
    """Run the kernel at an address on all rows; return the first refused row, or -1.

    `bases`, `strides`: addresses and bytes between rows of the arrays, `inputs` input arrays first. `work`:
    instructions for one block of `lanes` rows. `streamed`: the first word of scratch memory, if it has one.
    """
    blocks = -(-rows // lanes)
    total = blocks * work
    count = min(get_num_threads(), blocks, 1 + total // WORTH_A_THREAD) if threads else 1
    pieces = max(count * MIN_PIECES_PER_THREAD, total // PIECE_INSTRUCTIONS)
    piece_rows = max(1, blocks // pieces) * lanes
    native = _native_functions()
    shifted = -(-scratch_bytes // CACHE_LINE) * CACHE_LINE
    size = shifted + 8 * len(bases)
    walk = (0, 0, 0, 0) if steps is None else (1, steps.steps, steps.first, steps.every)
    batch = array(
        "q",
        (
            *(CLOSED, 0, NO_ROW, -(-rows // piece_rows), piece_rows, rows, kernel, tables, shifted, streamed),
            *(len(bases), inputs, *walk, native.now, native.clock, native.ticks, native.sleep),
            *bases,
            *strides,
            *(() if steps is None else steps.strides),
        ),
    )
    address, _ = batch.buffer_info()
    scratch, _keep = SCRATCH.take(size)
    lead = native.lead
    while True:
        if count > 1:
            _HELPERS.ask(count - 1, _Request(batch, address, size))
        if not lead(address, scratch):
            break
    refused = batch[REFUSED]
    return refused if refused < NO_ROW else -1


REFUSED: Final = FIELDS.index("refused")


class _Request(NamedTuple):
    """A batch that helpers may join, its address, and the scratch memory that each of them needs."""

    batch: array[int]
    address: int
    scratch_bytes: int


@final
class _Helpers:
    """Threads that wait for requests."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin without helpers."""
        self._requests: SimpleQueue[_Request] = SimpleQueue()
        self._running: dict[int, object] = {}

    def ask(self, count: int, request: _Request) -> None:
        """Ask `count` helpers to join a batch, and start those that do not exist yet."""
        requests, running = self._requests, self._running
        for number in range(count):
            if number not in running:
                try:
                    _thread.start_new_thread(_serve, (requests, running, number))
                except RuntimeError:  # no more threads, or the interpreter is about to end
                    break
        # While all helpers are busy with other calls, requests that nobody needs any more would pile up.
        for _ in range(min(count, 4 * count - requests.qsize())):
            requests.put(request)


def _serve(requests: SimpleQueue[_Request], running: dict[int, object], number: int) -> None:
    """Join one batch after the other, as helper `number`, unless there is another of that number."""
    own = object()
    if running.setdefault(number, own) is not own:
        return
    try:
        help_with = _native_functions().help_with
        while True:
            request = requests.get()
            try:
                scratch, _keep = SCRATCH.take(request.scratch_bytes)
            except MemoryError:
                continue
            help_with(request.address, scratch)
            del request, _keep  # while this thread waits, their memory is free
    finally:
        if running.get(number) is own:
            del running[number]


_HELPERS: Final = _Helpers()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_HELPERS.forget)


class _Native(NamedTuple):
    """The machine code of `batch_text`, and the operating system's functions that it calls."""

    engine: Any
    lead: Any
    help_with: Any
    now: int
    clock: int
    ticks: int
    sleep: int


@functools.cache
def _native_functions() -> _Native:
    """Return the functions, from the disk cache or compiled."""
    engine, (lead, help_with) = load_helper(
        "batches", batch_text(target_for(None).triple), ("dalembert_lead", "dalembert_help")
    )
    now, clock, frequency, sleep = _system_functions()
    return _Native(
        engine,
        ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(lead),
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(help_with),
        now,
        clock,
        int(SECONDS_UNTIL_INTERRUPT * frequency),
        sleep,
    )


def _system_functions() -> tuple[int, int, int, int]:
    """Return the function that tells the time, the number of its clock, its ticks a second, and the function
    that sleeps."""
    if sys.platform == "win32":
        kernel32 = ctypes.WinDLL("kernel32")
        frequency = ctypes.c_int64()
        kernel32.QueryPerformanceFrequency(ctypes.byref(frequency))
        return (
            _address(kernel32.QueryPerformanceCounter),
            0,
            frequency.value,
            _address(kernel32.Sleep),
        )
    library = ctypes.CDLL(None)
    return (
        _address(library.clock_gettime),
        time.CLOCK_MONOTONIC,
        1_000_000_000,
        _address(library.usleep),
    )


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
