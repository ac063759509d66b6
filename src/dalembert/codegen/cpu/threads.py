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
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dalembert.codegen.ir import RecordWriter, Writer, function_text
from dalembert.codegen.machine_code import load_helper
from dalembert.codegen.target import target_for
from dalembert.errors import ArgumentError

if TYPE_CHECKING:
    from dalembert.codegen.cpu.cpu_kernel import CpuKernel

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
    declared, pause = _PAUSES["aarch64" if triple.startswith(("aarch64", "arm64")) else "x86_64"]
    functions = (_read_clock_text(), _run_piece_text(), _lead_text(pause), _help_text(pause))
    return "\n".join([f'target triple = "{triple}"', declared, *functions])


def _function(writer: Writer, result: str, name: str, *, exported: bool = False) -> str:
    parameters = "ptr %batch, ptr %scratch"
    return function_text(result, name, parameters, writer.lines, "nounwind", exported=exported)


def _read_clock_text() -> str:
    """Write the time of `clock_gettime` in nanoseconds, or of Windows' `QueryPerformanceCounter`."""
    w = RecordWriter(FIELDS, "%batch")
    time_at, now = w.let("alloca [2 x i64], align 8"), w.word("now", "ptr")
    if sys.platform == "win32":
        w.let(f"call i32 {now}(ptr {time_at})")
        ticks = w.read("i64", time_at)
    else:
        clock = w.let(f"trunc i64 {w.word('clock')} to i32")
        w.let(f"call i32 {now}(i32 {clock}, ptr {time_at})")
        seconds = w.let(f"mul i64 {w.read('i64', time_at)}, 1000000000")
        ticks = w.let(f"add i64 {seconds}, {w.read('i64', time_at, 8)}")
    w.line(f"ret i64 {ticks}")
    return _function(w, "i64", "read_clock")


def _run_piece_text() -> str:
    w = RecordWriter(FIELDS, "%batch")
    number = w.let(f"atomicrmw add ptr {w.at('next')}, i64 1 monotonic")
    w.require(w.let(f"icmp slt i64 {number}, {w.word('pieces')}"), "none")
    piece_rows = w.word("piece_rows")
    start = w.let(f"mul i64 {number}, {piece_rows}")
    left = w.let(f"sub i64 {w.word('rows')}, {start}")
    last = w.let(f"icmp slt i64 {left}, {piece_rows}")
    count = w.let(f"select i1 {last}, i64 {left}, i64 {piece_rows}")
    arrays = w.word("arrays")
    bases, size = w.address("%batch", 8 * ARRAYS), w.let(f"shl i64 {arrays}, 3")
    strides = w.address(bases, size)
    shifted = w.address("%scratch", w.word("shifted"))
    with w.for_each(arrays) as k:
        at = w.let(f"shl i64 {k}, 3")
        distance = w.let(f"mul i64 {start}, {w.read('i64', strides, at)}")
        w.write("i64", w.let(f"add i64 {w.read('i64', bases, at)}, {distance}"), shifted, at)
    streamed = w.word("streamed")
    with w.when(w.let(f"icmp sge i64 {streamed}, 0")):
        w.write("i64", streamed, "%scratch")
    kernel, tables, outputs = w.word("kernel", "ptr"), w.word("tables", "ptr"), w.word("inputs")
    outputs = w.let(f"shl i64 {outputs}, 3")
    given = f"ptr {shifted}, ptr {strides}, ptr {w.address(shifted, outputs)}, "
    given += f"ptr {w.address(strides, outputs)}, i64 {count}, ptr {tables}, ptr %scratch"
    w.branch(w.let(f"icmp eq i64 {w.word('is_rollout')}, 0"), "one", "many", then="one")
    found_one = w.let(f"call i64 {kernel}({given})")
    w.jump("called", then="many")
    steps = ", ".join(f"i64 {w.word(field)}" for field in ("steps", "first", "every"))
    step_strides = w.address(strides, size)
    found_many = w.let(
        f"call i64 {kernel}({given}, {steps}, ptr {step_strides}, ptr {w.address(step_strides, outputs)})"
    )
    w.enter("called")
    found = w.let(f"phi i64 [ {found_one}, %one ], [ {found_many}, %many ]")
    with w.when(w.let(f"icmp sge i64 {found}, 0")):
        w.let(f"atomicrmw min ptr {w.at('refused')}, i64 {w.let(f'add i64 {found}, {start}')} monotonic")
    w.line("ret i1 true")
    w.begin("none")
    w.line("ret i1 false")
    return _function(w, "i1", "run_piece")


_RUN_PIECE: Final = "call i1 @run_piece(ptr %batch, ptr %scratch)"
_READ_CLOCK: Final = "call i64 @read_clock(ptr %batch, ptr %scratch)"


def _lead_text(pause: str) -> str:
    w = RecordWriter(FIELDS, "%batch")
    gate, ticks, sleep = w.at("gate"), w.word("ticks"), w.word("sleep", "ptr")
    begun = w.let(_READ_CLOCK)
    w.line(f"store atomic i64 0, ptr {gate} release, align 8")
    w.enter("work")
    w.require(w.let(_RUN_PIECE), "close")
    passed = w.let(f"sub i64 {w.let(_READ_CLOCK)}, {begun}")
    w.branch(w.let(f"icmp sge i64 {passed}, {ticks}"), "close", "work", then="close")
    w.let(f"atomicrmw or ptr {gate}, i64 {CLOSED} acq_rel")
    w.enter("wait")
    w.line("%spin = phi i64 [ 0, %close ], [ %spin.next, %pause ], [ %spin, %rest ]")
    inside = w.let(f"load atomic i64, ptr {gate} acquire, align 8")
    w.leave(w.let(f"icmp eq i64 {inside}, {CLOSED}"), "end")
    w.branch(w.let(f"icmp ult i64 %spin, {LEADER_SPINS}"), "pause", "rest", then="pause")
    w.line(pause)
    w.line("%spin.next = add i64 %spin, 1")
    w.jump("wait", then="rest")
    w.let(f"call i32 {sleep}(i32 {REST})")
    w.jump("wait", then="end")
    taken = w.let(f"load atomic i64, ptr {w.at('next')} monotonic, align 8")
    left = w.let(f"icmp slt i64 {taken}, {w.word('pieces')}")
    w.line(f"ret i64 {w.let(f'zext i1 {left} to i64')}")
    return _function(w, "i64", "dalembert_lead", exported=True)


def _help_text(pause: str) -> str:
    w = RecordWriter(FIELDS, "%batch")
    gate, following, pieces = w.at("gate"), w.at("next"), w.word("pieces")
    w.enter("knock")
    w.line("%look = phi i64 [ 0, %entry ], [ %look.next, %again ], [ %look, %open ]")
    seen = w.let(f"load atomic i64, ptr {gate} monotonic, align 8")
    w.branch(w.let(f"icmp uge i64 {seen}, {CLOSED}"), "shut", "open", then="shut")
    taken = w.let(f"load atomic i64, ptr {following} monotonic, align 8")
    some_left = w.let(f"icmp slt i64 {taken}, {pieces}")
    patient = w.let(f"icmp ult i64 %look, {HELPER_SPINS}")
    w.branch(w.let(f"and i1 {some_left}, {patient}"), "again", "leave", then="again")
    w.line(pause)
    w.line("%look.next = add i64 %look, 1")
    w.jump("knock", then="open")
    more = w.let(f"add i64 {seen}, 1")
    pair = w.let(f"cmpxchg ptr {gate}, i64 {seen}, i64 {more} acquire monotonic")
    w.branch(w.let(f"extractvalue {{ i64, i1 }} {pair}, 1"), "test", "knock", then="test")
    state = w.let(f"load atomic i64, ptr {gate} monotonic, align 8")
    w.leave(w.let(f"icmp uge i64 {state}, {CLOSED}"), "exit")
    w.branch(w.let(_RUN_PIECE), "test", "exit", then="exit")
    w.let(f"atomicrmw sub ptr {gate}, i64 1 release")
    w.enter("leave")
    w.line("ret void")
    return _function(w, "void", "dalembert_help", exported=True)


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
        text, affinity = os.environ.get(ENVIRONMENT, "").strip(), getattr(os, "sched_getaffinity", None)
        if text and (not text.isdecimal() or int(text) < 1):
            raise ArgumentError(f"{ENVIRONMENT}={text!r}: expected a whole number of at least 1")
        here = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
        _LIMIT.append(int(text) if text else here)
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
    kernel: CpuKernel,
    bases: Sequence[int],
    strides: Sequence[int],
    *,
    inputs: int,
    rows: int,
    work: int,
    streamed: int,
    steps: StepCount | None,
    threads: bool,
) -> int:
    """Run a kernel on all rows; return the first refused row, or -1.

    `bases`, `strides`: addresses and bytes between rows of the arrays, `inputs` input arrays first. `work`:
    instructions for one block of rows. `streamed`: the first word of scratch memory, -1 if it has none.
    """
    lanes = kernel.info.lanes
    blocks = -(-rows // lanes)
    total = blocks * work
    count = min(get_num_threads(), blocks, 1 + total // WORTH_A_THREAD) if threads else 1
    pieces = max(count * MIN_PIECES_PER_THREAD, total // PIECE_INSTRUCTIONS)
    piece_rows = max(1, blocks // pieces) * lanes
    native = _native_functions()
    shifted = -(-kernel.info.scratch_bytes // CACHE_LINE) * CACHE_LINE
    size = shifted + 8 * len(bases)
    walk = (0, 0, 0, 0) if steps is None else (1, steps.steps, steps.first, steps.every)
    batch = array(
        "q",
        (
            *(CLOSED, 0, NO_ROW, -(-rows // piece_rows), piece_rows, rows),
            *(kernel.address, kernel.tables_address, shifted, streamed),
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
    if sys.platform == "win32":
        kernel32 = ctypes.WinDLL("kernel32")
        frequency = ctypes.c_int64()
        kernel32.QueryPerformanceFrequency(ctypes.byref(frequency))
        now, clock, second, sleep = kernel32.QueryPerformanceCounter, 0, frequency.value, kernel32.Sleep
    else:
        library = ctypes.CDLL(None)
        now, clock, second, sleep = library.clock_gettime, time.CLOCK_MONOTONIC, 10**9, library.usleep
    return _Native(
        engine,
        ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(lead),
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(help_with),
        ctypes.cast(now, ctypes.c_void_p).value or 0,
        clock,
        int(SECONDS_UNTIL_INTERRUPT * second),
        ctypes.cast(sleep, ctypes.c_void_p).value or 0,
    )
