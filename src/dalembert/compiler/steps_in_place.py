"""Steps of samples whose state stays where it is: bound once, taken as often as wanted.

    x <- f(x, u, p)

The carried x lie in one block of memory. A call reads it, writes a second block, and copies this back in one
piece: an exception, whenever it comes, leaves what was reached before, and who looks at the arrays of x sees
the same memory from the first step to the last.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Final, final

import numpy as np
import numpy.typing as npt

from dalembert import codegen
from dalembert.call.arguments import Array, Rows
from dalembert.compiler.kernels import Kernels
from dalembert.compiler.refused_rows import refusal_of
from dalembert.compiler.rollout_execution import Pace

ALIGNED_NUMBERS: Final = 8
"""Numbers of a cache line; every array of a block begins with one."""


@final
class ArrayBlock:
    """Named arrays `(*batch, *shape)` of float64, side by side in one memory."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], batch: tuple[int, ...]) -> None:
        """`shapes`: those of one sample, by name."""
        self.batch, self.shapes = batch, dict(shapes)
        sizes = {name: math.prod((*batch, *shape)) for name, shape in shapes.items()}
        rounded = [-(-size // ALIGNED_NUMBERS) * ALIGNED_NUMBERS for size in sizes.values()]
        self.memory = np.zeros(sum(rounded))
        starts = np.cumsum([0, *rounded])
        self.arrays: dict[str, Array] = {
            name: self.memory[start : start + size].reshape((*batch, *shapes[name]))
            for (name, size), start in zip(sizes.items(), starts.tolist(), strict=False)
        }

    def like(self) -> ArrayBlock:
        """Return a block of the same arrays, zero."""
        return ArrayBlock(self.shapes, self.batch)


@final
class StepsInPlace:
    """Steps that carry the arrays of a block on.

    `outputs`: the results after the last step of a call, `(*batch, *shape)`. `seconds`: the time that
    steps have taken; `done`: how many were taken.
    """

    def __init__(
        self,
        kernels: Kernels,
        rollout: codegen.Rollout,
        carried: ArrayBlock,
        given: Mapping[str, Array],
        outputs: Sequence[Array] | None = None,
    ) -> None:
        recipe, self.batch = kernels.recipe, carried.batch
        self._kernels, self._carried, self._spare = kernels, carried, carried.like()
        self._count = math.prod(self.batch)
        if outputs is None:
            outputs = [np.zeros((*self.batch, *item.shape)) for item in kernels.results()]
        self.outputs = tuple(outputs)
        self._kernel = kernels.kernel("scalar" if self._count == 1 else "lanes")
        self._arrays = [
            carried.arrays[item.name] if item.name in carried.arrays else given[item.name]
            for item in (*recipe.signature, *recipe.parameters)
        ]
        self._refused = np.full(self.batch, -1, np.int64)
        written = [*self.outputs, *(self._spare.arrays[name] for name, _ in rollout.carried)]
        read, changed = (
            [codegen.StepArray(codegen.address_of(x), x.nbytes // max(self._count, 1)) for x in arrays]
            for arrays in (self._arrays, [*written, self._refused])
        )
        self._bound = codegen.BoundSteps(self._kernel, read, changed, self._count)
        self._pace = Pace(self._kernel, self._count)
        self._checks = self._kernel.info.has_check
        self.seconds, self.done = 0.0, 0

    @property
    def lanes(self) -> int:
        """The number of samples in a block, which goes through loops together."""
        return self._kernel.info.lanes

    @property
    def state(self) -> dict[str, Array]:
        """The carried arguments."""
        return self._carried.arrays

    @property
    def steps(self) -> int:
        """The number of steps that are expected in all: as many again as have been taken."""
        return 2 * self.done

    def form_blocks(self, order: npt.NDArray[np.int64]) -> None:
        """Let samples share blocks in this order from the next step on; results do not depend on it."""
        self._bound.form_blocks(order)

    def advance(self, steps: int, check: str = "raise") -> npt.NDArray[np.bool_] | None:
        """Take that many steps; return which samples were refused and stayed as they were, None for none.

        `check`: "raise" raises instead, before anything has changed; "off" does not look.
        """
        done, found = 0, None
        while done < steps and self._count:
            count = min(self._pace.steps, steps - done)
            begun = time.perf_counter()
            self._bound.take(count, first=steps - done, every=steps)
            if self._checks and check != "off" and self._refused.max() >= 0:
                found = self._refused >= 0
                if check == "raise":
                    raise self._refusal(int(np.argmax(found)))
                for name, array in self._carried.arrays.items():
                    self._spare.arrays[name][found] = array[found]
            self._carried.memory[:] = self._spare.memory
            passed = time.perf_counter() - begun
            self._pace.measure(count, passed)
            self.seconds += passed
            self.done += count
            done += count
        return found

    def _refusal(self, row: int) -> Exception:
        """Return why a sample is refused, which stays as it was."""
        matrices = tuple(array.reshape(self._count, -1) for array in self._arrays)
        rows = Rows(self.batch, self._count, matrices)
        return refusal_of(self._kernels.recipe, rows, row, self._kernels.dtype)
