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

SECONDS_PER_SAMPLE: Final = 2e-5
"""[s] The time for finding the first order, roughly."""

SAMPLES_PER_WINDOW: Final = 256
"""Samples among which neighbours are looked for, so that the time grows with the number of samples only."""


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
    known = np.unique(numbers[numbers >= 0.0])
    has = np.zeros((len(numbers), len(known) + 1), bool)
    sample = np.arange(len(numbers))[:, None]
    has[sample, np.where(numbers >= 0.0, np.searchsorted(known, numbers), len(known))] = True
    has = has[:, : len(known)]
    telling = np.argsort(np.abs(has.mean(axis=0) - 0.5), kind="stable")
    order = np.lexsort(has.T[telling[::-1]]) if len(known) else sample[:, 0]
    windows = np.split(order, range(SAMPLES_PER_WINDOW, len(order), SAMPLES_PER_WINDOW))
    return np.concatenate([window[_nearest_neighbours(has[window])] for window in windows]).astype(np.int64)


def _nearest_neighbours(has: Array) -> npt.NDArray[np.int64]:
    """Return the rows of a matrix of truth values, each but the first the nearest of those left."""
    bits, found = np.packbits(has, axis=1), np.zeros(len(has), np.int64)
    left, at = np.arange(len(has)), int(np.argmax(has.sum(axis=1)))
    for k in range(len(has)):
        found[k] = left[at]
        differences, left = bits[left] ^ bits[left[at]], np.delete(left, at)
        distances = np.delete(ONES_OF_BYTE[differences].sum(axis=1), at)
        at = int(np.argmin(distances)) if len(left) else 0
    return found
