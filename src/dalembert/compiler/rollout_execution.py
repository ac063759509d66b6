"""A compiled step, taken many times in one call: arrays in, trajectories out.

    x_0 given;   x_(t+1), y_t = f(x_t, u_t, p),   t = 0 … T - 1

x is *carried* from step to step, u is a *stream* with a value for each step, p is the same at every step. The
loop over t is in the kernel, each thread takes whole samples through all their steps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dalembert import codegen
from dalembert.call import arguments as result_memory
from dalembert.call.arguments import Array, ArrayArgument, Rows, as_rows
from dalembert.compiler.execution import CHECKS, bind, refusal_of
from dalembert.compiler.kernels import Kernels
from dalembert.compiler.lowering import Recipe
from dalembert.errors import require_choice, whole_number
from dalembert.host.foreign_arrays import rollout_bridge_of
from dalembert.host.process import require_memory
from dalembert.tracing.program import OperationCount, count_program

if TYPE_CHECKING:
    from dalembert.compiler.gpu_calls import GpuRollout

MAX_STEPS: Final = 2**63 - 1
"""Kernels count steps in 64-bit integers."""

SECONDS_UNTIL_INTERRUPT: Final = 0.04
"""[s] A block of rows takes no more steps in one call of the kernel, between which Python can handle signals:
not noticed by people, and long beside what a call costs."""

SECONDS_UNTIL_PROGRESS: Final = 0.1
"""[s] All rows together take no more steps until they are at the same step, which can be reported and is
where an interrupt leaves them. Bringing 1,024 humanoids there costs 0.4 ms."""

FIRST_STEPS_WORK: Final = 20_000_000
"""Instructions (about 5 ms) that the first steps of a block of rows may take, before time has been measured:
estimates may be several times off for programs with loops."""

FIRST_STEPS_WORK_IN_ALL: Final = 400_000_000
"""Instructions (about 0.1 s) that the first steps of all rows may take a thread."""

MAX_GROWTH: Final = 8.0
"""How many times more steps a call takes than the one before it, at most: short times are measured badly."""


@final
class Pace:
    """How many steps a call of a kernel takes, so that interrupts and progress are looked at in time.

    `steps`: those until all rows are at the same step, by the time of the steps before, or by the estimated
    work of the first ones.
    """

    __slots__ = ("_seconds", "steps")

    def __init__(self, kernel: codegen.CpuKernel, rows: int) -> None:
        blocks = -(-rows // kernel.info.lanes)
        a_thread = max(1, -(-blocks // codegen.get_num_threads()))
        work = min(FIRST_STEPS_WORK, FIRST_STEPS_WORK_IN_ALL // a_thread)
        self.steps = max(1, work // kernel.info.work)
        self._seconds = min(SECONDS_UNTIL_PROGRESS, SECONDS_UNTIL_INTERRUPT * a_thread)

    def measure(self, count: int, passed: float) -> None:
        """Choose the number of steps by the time [s] that `count` of them took."""
        self.steps = max(1, int(count * min(MAX_GROWTH, self._seconds / max(passed, 1e-9))))


def compile_rollout(
    recipe: Recipe, *, carried: Mapping[str, int], streams: Sequence[str] = (), dtype: str = "float64"
) -> CompiledRollout:
    """Compile a step for many steps in one call.

    `carried`: arguments of the step, each with the number of the result that it becomes at the next step;
    `streams`: arguments that have a value for each step. All others are the same at every step.
    """
    names = [item.name for item in (*recipe.signature, *recipe.parameters)]
    for name in (*carried, *streams):
        require_choice(f"argument of {recipe.name}", name, names)
    return CompiledRollout(recipe, codegen.Rollout(tuple(carried.items()), tuple(streams)), dtype)


@final
class CompiledRollout:
    """Many steps of a function of arrays, compiled for one model.

    `f(q, v, tau, dt, steps=100, every=10)`: arguments in the order of the step's, by place or by name, each
    for one sample or with any leading batch shape: initial values of what is carried, `(…, steps, n)` of
    streams, and constants. The results are written after every `every` steps.
    """

    __slots__ = ("_kernels", "_rollout", "dtype")

    def __init__(self, recipe: Recipe, rollout: codegen.Rollout, dtype: str) -> None:
        self.dtype = dtype
        self._rollout = rollout
        self._kernels = Kernels(recipe, dtype, rollout=rollout)

    @property
    def outputs(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the results of one step."""
        return {item.name: item.shape for item in self._kernels.results()}

    @property
    def operation_count(self) -> OperationCount:
        """The number of arithmetic operations per sample and step, after simplification."""
        return count_program(self._kernels.lower().program)

    def __call__(
        self,
        *args: object,
        steps: int,
        every: int = 1,
        parameters: Mapping[str, object] | None = None,
        check: str = "raise",
        progress: Callable[[int], None] | None = None,
        **named: object,
    ) -> RolloutRun:
        """Take all steps. `progress` is called with the number of steps done, several times a second.

        `check`: "raise" refuses a batch with a sample that is refused at some step, "flag" makes its results
        NaN from there on, "off" does not check.
        """
        require_choice("check", check, CHECKS)
        run = self.start(*args, steps=steps, every=every, parameters=parameters, unrecorded=(), **named)
        while run.done < run.steps:
            run.advance()
            if check == "raise":
                run.require_accepted()
            if progress is not None:
                progress(run.done)
        if check == "flag":
            run.flag()
        return run

    def drop_program(self) -> None:
        """Give back the traced step (77 MB for a humanoid with contact), which is needed again only for a
        kernel of another width, and traced again then."""
        self._kernels.drop_program()

    def on_gpu(self, values: Mapping[str, object], **options: Any) -> GpuRollout:
        """Launch all steps at once, with arguments by name, arrays on a GPU among them, and the options of
        `launch_rollout`."""
        bridge = rollout_bridge_of(values.values())
        found: GpuRollout = bridge.launch_rollout(self._kernels, self._rollout, values, **options)
        return found

    def in_place(
        self, carried: ArrayBlock, given: Mapping[str, Array], outputs: Sequence[Array] | None = None
    ) -> StepsInPlace:
        """Return steps that carry the arrays of a block on, with the other arguments by name, all for each
        sample; both are read at every call. `outputs`: where the results go."""
        return StepsInPlace(self._kernels, self._rollout, carried, given, outputs)

    def start(
        self,
        *args: object,
        steps: int,
        every: int = 1,
        parameters: Mapping[str, object] | None = None,
        unrecorded: Collection[str] = (),
        **named: object,
    ) -> RolloutRun:
        """Start a rollout to be taken piece by piece with `advance`; no step is done yet.

        `unrecorded`: carried arguments of which the state is wanted, and no frames.
        """
        recipe = self._kernels.recipe
        count, spacing = _whole("steps", steps, 0), _whole("every", every, 1)
        values = bind(recipe, args, named, parameters)
        signature = [
            ArrayArgument(item.name, (count, *item.shape)) if item.name in self._rollout.streams else item
            for item in (*recipe.signature, *recipe.parameters)
        ]
        rows = as_rows(signature, values, self.dtype)
        return RolloutRun(self._kernels, self._rollout, rows, count, spacing, unrecorded)


class _Input(NamedTuple):
    """An argument of a rollout, with the bytes from one sample to the next and from one step to the next."""

    name: str
    matrix: Array
    row: int
    step: int


class _Reached(NamedTuple):
    """How far a rollout is; `spare` are the arrays into which the next steps write the state."""

    done: int
    state: dict[str, Array]
    spare: dict[str, Array]
    refused: npt.NDArray[np.int64]


@final
class RolloutRun:
    """A rollout under way, or done.

    `outputs`: for each result an array `(…, steps // every, *shape)`, of which the first `done // every` are
    computed; it has no frames for what is not recorded. `state`: the carried arguments after `done` steps.
    `refused`: for each sample the first step whose arguments were refused, or -1. `seconds`: the time that
    steps have taken.

    Steps read one set of state arrays and write another, and then `done`, `state` and `refused` change
    together, by one assignment: an interrupt, whenever it comes, leaves what was reached before.
    """

    def __init__(
        self,
        kernels: Kernels,
        rollout: codegen.Rollout,
        rows: Rows,
        steps: int,
        every: int,
        unrecorded: Collection[str] = (),
    ) -> None:
        """`rows` hold the arguments, streams with all their steps; `unrecorded`: carried arguments that have
        no frames."""
        recipe = kernels.recipe
        self._kernels = kernels
        self._rollout = rollout
        self._rows = rows
        self.steps = steps
        self.every = every
        self._pace: Pace | None = None
        self._order: npt.NDArray[np.int64] | None = None
        self.seconds = 0.0
        number_bytes = np.dtype(kernels.dtype).itemsize
        carried = dict(rollout.carried)
        state: dict[str, Array] = {}
        self._inputs: list[_Input] = []
        for item, matrix in zip((*recipe.signature, *recipe.parameters), rows.matrices, strict=True):
            row, step = matrix.strides[0] if len(matrix) > 1 else 0, 0
            if item.name in carried:
                own = np.empty((rows.count, item.size), kernels.dtype)
                own[...], row = matrix, own.strides[0]
                state[item.name] = own.reshape(rows.batch + item.shape)
            elif item.name in rollout.streams:
                step = item.size * number_bytes
            self._inputs.append(_Input(item.name, matrix, row, step))
        results, slots = kernels.results(), steps // every
        self._unrecorded = {number: name for name, number in rollout.carried if name in unrecorded}
        self._frame_bytes = [
            0 if k in self._unrecorded else item.size * number_bytes for k, item in enumerate(results)
        ]
        require_memory(
            f"{recipe.name}: the results of {slots} frames of {rows.count} samples",
            rows.count * slots * sum(self._frame_bytes),
            "take fewer steps or samples, or keep fewer frames, such as every=100",
        )
        self.outputs = tuple(
            result_memory.empty(
                (*rows.batch, 0 if k in self._unrecorded else slots, *item.shape), kernels.dtype
            )
            for k, item in enumerate(results)
        )
        spare = {name: np.empty_like(array) for name, array in state.items()}
        self._reached = _Reached(0, state, spare, np.full(rows.batch, -1, np.int64))

    @property
    def done(self) -> int:
        """The number of steps taken."""
        return self._reached.done

    @property
    def state(self) -> dict[str, Array]:
        """The carried arguments after `done` steps."""
        return self._reached.state

    @property
    def refused_at(self) -> npt.NDArray[np.int64]:
        """The first step of each sample whose arguments were refused, or -1."""
        return self._reached.refused

    def advance(self, steps: int | None = None) -> None:
        """Take `steps` more steps, by default as many as take about 0.1 s; at most all that are left."""
        left = self.steps - self.done
        wanted = left if steps is None else min(left, _whole("steps", steps, 0))
        if not self._rows.count:
            self._reached = self._reached._replace(done=self.steps)
            return
        kernel = self._kernels.kernel("scalar" if self._rows.count == 1 else "lanes")
        end = self.done + wanted
        if self._pace is None:
            self._pace = Pace(kernel, self._rows.count)
        while self.done < end:
            count = min(self._pace.steps, end - self.done)
            begun = time.perf_counter()
            self._reached = self._after(kernel, count)
            passed = time.perf_counter() - begun
            self._pace.measure(count, passed)
            self.seconds += passed
            if steps is None:
                return

    @property
    def lanes(self) -> int:
        """The number of samples in a block, which goes through loops together."""
        return self._kernels.kernel("scalar" if self._rows.count == 1 else "lanes").info.lanes

    def form_blocks(self, order: npt.NDArray[np.int64]) -> None:
        """Let samples share blocks in this order from the next step on: those that do alike work should be
        neighbours. Results do not depend on it."""
        self._order = order

    def _after(self, kernel: codegen.CpuKernel, count: int) -> _Reached:
        """Take `count` steps from what was reached; return what is reached then."""
        rows = self._rows.count
        done, state, spare, refused_before = self._reached
        inputs = []
        for name, matrix, row, step in self._inputs:
            address = codegen.address_of(state.get(name, matrix))
            inputs.append(codegen.StepArray(address + done * step, row, step))
        written, slots = done // self.every, self.steps // self.every
        final = {
            name: codegen.StepArray(codegen.address_of(spare[name]), spare[name].nbytes // rows)
            for name, _ in self._rollout.carried
        }
        outputs = []
        for k, (array, step) in enumerate(zip(self.outputs, self._frame_bytes, strict=True)):
            address = codegen.address_of(array) + written * step
            frames = codegen.StepArray(address, slots * step, step)
            outputs.append(final[self._unrecorded[k]] if k in self._unrecorded else frames)
        outputs += final.values()
        refused = np.empty(rows, np.int64)
        outputs.append(codegen.StepArray(codegen.address_of(refused), refused.itemsize))
        first = self.every - done % self.every
        bound = codegen.BoundSteps(kernel, inputs, outputs, rows)
        if self._order is not None:
            bound.form_blocks(self._order)
        bound.take(count, first=first, every=self.every)
        now = refused.reshape(refused_before.shape)
        newly = (refused_before < 0) & (now >= 0)
        return _Reached(done + count, spare, state, np.where(newly, now + done, refused_before))

    def require_accepted(self) -> None:
        """Raise if a sample has been refused: the one of the earliest step."""
        refused = self.refused_at.ravel()
        if not np.any(refused >= 0):
            return
        step = int(refused[refused >= 0].min())
        raise self._refusal(int(np.argmax(refused == step)), step)

    def flag(self) -> None:
        """Make the results of refused samples NaN, from the refused step on."""
        for place in map(tuple, np.argwhere(self.refused_at >= 0)):
            for array in self.outputs:
                array[place][self.refused_at[place] // self.every :] = np.nan
            for array in self.state.values():
                array[place] = np.nan

    def _refusal(self, row: int, step: int) -> Exception:
        """Return why a row is refused at a step: the steps before it are taken again, alone."""
        matrices = [matrix[min(row, len(matrix) - 1)][np.newaxis] for matrix in self._rows.matrices]
        alone = Rows((), 1, tuple(matrices))
        again = RolloutRun(self._kernels, self._rollout, alone, self.steps, self.steps + 1)
        again.advance(step)
        there = []
        for name, matrix, _, step_bytes in again._inputs:
            array = again.state.get(name, matrix).reshape(1, -1)
            size = step_bytes // array.itemsize
            there.append(array[:, step * size : (step + 1) * size] if size else array)
        rows = Rows(self._rows.batch, self._rows.count, tuple(there))
        return refusal_of(self._kernels.recipe, rows, row, self._kernels.dtype, step=step)


# Steps of samples whose state stays where it is: bound once, taken as often as wanted.
#
# The carried arrays lie in one block of memory. A call reads it, writes a second block, and copies this back
# in one piece: an exception, whenever it comes, leaves what was reached before, and who looks at the arrays
# sees the same memory from the first step to the last.


@final
class ArrayBlock:
    """Named arrays `(*batch, *shape)` of float64, side by side in one memory."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], batch: tuple[int, ...]) -> None:
        """`shapes`: those of one sample, by name."""
        self.batch, self.shapes = batch, dict(shapes)
        sizes = {name: math.prod((*batch, *shape)) for name, shape in shapes.items()}
        self.memory = np.zeros(sum(sizes.values()))
        starts = np.cumsum([0, *sizes.values()])
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
        own = {number: self._spare.arrays[name] for name, number in rollout.carried}
        self.outputs = tuple(
            own[k] if k in own else np.zeros((*self.batch, *item.shape)) if outputs is None else outputs[k]
            for k, item in enumerate(kernels.results())
        )
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


def _whole(name: str, value: Any, least: int) -> int:
    return whole_number(name, value, least, MAX_STEPS)
