"""Threads that share the rows of a batch, and stop before the call ends.

A batch is cut into pieces, of which the calling thread (the leader) and helper threads take one after the
other. All that writes into the arrays of a call is machine code: `dalembert_lead` in the leader,
`dalembert_help` in the helpers (`batch_code`). They meet in the gate of the batch, an atomic counter of the
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
import time
from array import array
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any, Final, NamedTuple, final

import llvmlite.binding as llvm

from dalembert.codegen.batch_code import CLOSED, FIELDS, batch_text
from dalembert.codegen.cache import cache_key, load_entry, store_entry
from dalembert.codegen.linking import load_symbols
from dalembert.codegen.scratch import SCRATCH
from dalembert.codegen.target import target_for, target_machine
from dalembert.errors import ArgumentError

__all__ = ["StepCount", "get_num_threads", "run_batch", "set_num_threads"]

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
    """The machine code of `batch_code`, and the operating system's functions that it calls."""

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
    text = batch_text(target_for(None).triple)
    key = cache_key("batches", text=text)
    entry = load_entry(key)
    if entry is None:
        code = target_machine(target_for(None)).emit_object(llvm.parse_assembly(text))
        store_entry(key, {}, [code])
    else:
        code = entry[1][0]
    engine, (lead, help_with) = load_symbols(code, ("dalembert_lead", "dalembert_help"))
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
