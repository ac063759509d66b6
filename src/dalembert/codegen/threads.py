"""Threads that share the rows of a large batch.

The pool is made when first needed and forgotten in a forked child, which has none of its parent's threads.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

from dalembert.errors import ArgumentError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["get_num_threads", "set_num_threads", "split_rows"]

ENVIRONMENT: Final = "DALEMBERT_NUM_THREADS"

WORTH_A_THREAD: Final = 400_000
"""Instructions (about 0.1 ms) below which another thread costs more than it saves."""

PIECES_PER_THREAD: Final = (4, 32)
"""More pieces than threads, at least and at most, so that a thread that was interrupted, or met rows that
take longer, does not hold up the others."""

WORTH_A_PIECE: Final = 2_000_000
"""Instructions (about 0.5 ms) beside which handing out a piece costs nothing."""


def get_num_threads() -> int:
    """The largest number of threads that a call may use.

    >>> da.get_num_threads() >= 1
    True
    """
    return _THREADS.limit


def set_num_threads(count: int) -> None:
    """Let calls use up to `count` threads. The results do not depend on it.

    >>> before = da.get_num_threads()
    >>> da.set_num_threads(2)
    >>> da.get_num_threads()
    2
    >>> da.set_num_threads(before)
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ArgumentError(f"set_num_threads({count!r}): expected a whole number of at least 1")
    _THREADS.limit = count


def split_rows(run: Callable[[int, int], int], rows: int, *, lanes: int, work: int) -> int:
    """Call `run(start, stop)` on pieces of the rows; the least result that is not negative, or -1.

    `work` is the number of instructions for one block of `lanes` rows. Pieces hold whole blocks.
    """
    blocks = -(-rows // lanes)
    threads = min(_THREADS.limit, blocks, 1 + blocks * work // WORTH_A_THREAD)
    if threads <= 1:
        return run(0, rows)
    least, most = PIECES_PER_THREAD
    pieces = min(blocks, threads * max(least, min(most, blocks * work // (threads * WORTH_A_PIECE))))
    bounds = [min(rows, blocks * k // pieces * lanes) for k in range(pieces + 1)]
    numbers = itertools.count()
    refused: list[int] = []

    def work_off() -> None:
        while (number := next(numbers)) < pieces:
            result = run(bounds[number], bounds[number + 1])
            if result >= 0:
                refused.append(result)

    helpers = [_THREADS.executor(threads - 1).submit(work_off) for _ in range(threads - 1)]
    try:
        work_off()
    finally:
        for helper in helpers:
            if not helper.cancel():
                helper.result()
    return min(refused, default=-1)


def _initial_limit() -> int:
    text = os.environ.get(ENVIRONMENT, "").strip()
    if text:
        if not text.isdecimal() or int(text) < 1:
            raise ArgumentError(f"{ENVIRONMENT}={text!r}: expected a whole number of at least 1")
        return int(text)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


@final
class _Threads:
    def __init__(self) -> None:
        self._limit = 0
        self.forget()

    @property
    def limit(self) -> int:
        if not self._limit:
            self._limit = _initial_limit()
        return self._limit

    @limit.setter
    def limit(self, count: int) -> None:
        self._limit = count

    def forget(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._size = 0
        self._lock = threading.Lock()

    def executor(self, count: int) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor  # small batches do without

        with self._lock:
            if self._pool is None or self._size < count:
                if self._pool is not None:
                    self._pool.shutdown(wait=False)
                self._pool = ThreadPoolExecutor(count, thread_name_prefix="dalembert")
                self._size = count
            return self._pool


_THREADS: Final = _Threads()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_THREADS.forget)
