"""The order of samples in blocks: those with the same contact points side by side.

The samples of a block go through loops together, so that a block visits the contact points of all its
samples. In a batch of figures that lie as they fell these are four times as many as those of one.
"""

from __future__ import annotations

import time
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.compiler.rollout_execution import RolloutRun, StepsInPlace

Array = npt.NDArray[Any]

MAX_TIME_RATIO: Final = 0.03
"""The most time for finding an order, as a fraction of the time of the steps since the last one."""

SECONDS_PER_SAMPLE: Final = 6e-6
"""[s] The time for finding the first order, roughly."""

SAMPLES_PER_WINDOW: Final = 256
"""Samples among which neighbours are looked for, so that the time grows with the number of samples only."""


WORD_BYTES: Final = 8
"""[bytes] Truth values are compared as words."""

ONES_OF_BYTE: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(
    axis=1, dtype=np.int64
)
"""The number of ones in a byte. Products of matrices would be threads that keep a processor busy for a while
after."""


@final
class BlockOrder:
    """The order of the samples of a rollout, found anew whenever steps have taken long enough."""

    def __init__(self, run: RolloutRun | StepsInPlace) -> None:
        self._run, self._found_at = run, 0.0
        self._cost = SECONDS_PER_SAMPLE * len(_numbers(run))

    def update(self) -> None:
        """Find the order again if that is worth its time."""
        run = self._run
        rate = run.seconds / max(run.done, 1)
        ahead = rate * (run.steps - run.done)
        passed = run.seconds - self._found_at if self._found_at else ahead
        if self._cost > MAX_TIME_RATIO * min(passed, ahead) or len(_numbers(run)) <= run.lanes:
            return
        begun = time.perf_counter()
        run.form_blocks(alike_order(_numbers(run)))
        self._cost, self._found_at = time.perf_counter() - begun, run.seconds


def _numbers(run: RolloutRun | StepsInPlace) -> Array:
    """Return the numbers of the contact points that each sample remembers, -1 for none."""
    memory = run.state["memory"]
    rows: Array = memory.reshape(-1, *memory.shape[-2:])[:, :, 0]
    return rows


def alike_order(numbers: Array) -> npt.NDArray[np.int64]:
    """Return the samples in an order in which neighbours have many of these numbers in common; negative ones
    do not count.

    Samples are sorted by the numbers that about half of them have; in each window the next one is that which
    differs in the fewest numbers from the one before.

    >>> from dalembert.simulation.alike_samples import alike_order
    >>> print(alike_order(np.array([[3.0, 7.0], [5.0, -1.0], [7.0, 3.0], [5.0, -1.0]])))
    [0 2 1 3]
    """
    whole = numbers.astype(np.int64)
    has = np.zeros((len(whole), max(int(whole.max(initial=-1)), 0) + 2), bool)
    has[np.arange(len(whole))[:, None], np.where(whole >= 0, whole, -1)] = True
    has = has[:, :-1]
    has = has[:, has.any(axis=0) & ~has.all(axis=0)]
    telling = np.argsort(np.abs(has.mean(axis=0) - 0.5), kind="stable")[: 8 * WORD_BYTES]
    order = np.argsort(_words(has[:, telling])[:, 0].byteswap(), kind="stable")
    windows = np.split(order, range(SAMPLES_PER_WINDOW, len(order), SAMPLES_PER_WINDOW))
    return np.concatenate([window[_nearest_neighbours(has[window])] for window in windows]).astype(np.int64)


def _nearest_neighbours(has: Array) -> npt.NDArray[np.int64]:
    """Return the rows of a matrix of truth values, each but the first the nearest of those left."""
    distances = np.zeros((len(has), len(has)), np.int64)
    for word in _words(has).T:
        distances += _count_ones(word[:, None] ^ word)
    found, at = np.zeros(len(has), np.int64), int(np.argmax(has.sum(axis=1)))
    for k in range(len(has)):
        found[k] = at
        distances[:, at] = has.shape[1] + 1
        at = int(np.argmin(distances[at]))
    return found


def _words(has: Array) -> npt.NDArray[np.uint64]:
    """Return rows of truth values as bits of words, one word at least; the first is the first word's lowest
    byte's highest bit."""
    bits = np.packbits(has, axis=1)
    size = max(-(-bits.shape[1] // WORD_BYTES), 1) * WORD_BYTES
    padded = np.zeros((len(bits), size), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view("<u8")


def _count_ones(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the number of ones in each word."""
    if hasattr(np, "bitwise_count"):
        ones: npt.NDArray[np.int64] = np.bitwise_count(words).astype(np.int64)
    else:
        ones = ONES_OF_BYTE[words.view(np.uint8).reshape(*words.shape, WORD_BYTES)].sum(axis=-1)
    return ones
