"""Rollouts: many steps of a program in one call, with values carried from step to step.

    int64 kernel(ptr *inputs, int64 *input_strides, ptr *outputs, int64 *output_strides, int64 rows,
                 ptr tables, ptr scratch,
                 int64 steps, int64 first, int64 every, int64 *input_step_strides, int64 *output_step_strides)

    for each row, for step in 0 … steps - 1:
        carried inputs    the caller's array at the first step, then what the step before gave
        streams           the caller's array at `step` times its step stride
        other inputs      the caller's array, the same at every step
        outputs           written after `first` steps, then after every `every`, each a step stride further
    after the last step: the carried values

`outputs` are the program's, then one array for each carried input with the values that the last step gave,
then 64-bit integers: the first step at which the program's check held for the row, or -1. Final values may be
written where the initial ones stand. The kernel itself returns -1.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from dalembert.codegen.cpu import threads as batches
from dalembert.codegen.cpu.linking import SCRATCH
from dalembert.errors import ArgumentError, ShapeError, UnknownNameError
from dalembert.tracing.program import ArraySpec, Program

if TYPE_CHECKING:
    from dalembert.codegen.cpu.cpu_kernel import CpuKernel


ROLLOUT_TYPE: Final = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    *[ctypes.c_void_p] * 4,
    ctypes.c_int64,
    *[ctypes.c_void_p] * 2,
    *[ctypes.c_int64] * 3,
    *[ctypes.c_void_p] * 2,
)


@final
@dataclass(frozen=True, slots=True)
class Rollout:
    """The data flow between the steps of a program.

    `carried`: inputs, each with the number of the output that it becomes at the next step; `streams`: inputs
    that have a value for each step. All others are the same at every step.
    """

    carried: tuple[tuple[str, int], ...]
    streams: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Rollout:
        carried = tuple((str(name), int(number)) for name, number in data["carried"])
        return cls(carried, tuple(map(str, data["streams"])))

    def check(self, program: Program) -> None:
        """Raise where a program has no such arrays."""
        inputs = {spec.name: spec.size for spec in program.inputs}
        named = [*(name for name, _ in self.carried), *self.streams]
        for name in named:
            if name not in inputs:
                raise UnknownNameError.of("input", name, inputs)
        if len(set(named)) < len(named):
            raise ArgumentError(
                f"an input is carried, or a stream, or neither, once; given: {', '.join(named)}"
            )
        for name, number in self.carried:
            if not 0 <= number < len(program.outputs):
                raise ArgumentError(
                    f"{name} becomes output {number}, but there are {len(program.outputs)} outputs"
                )
            if program.outputs[number].size != inputs[name]:
                raise ShapeError(
                    f"{name} has {inputs[name]} numbers, but the output {program.outputs[number].name!r} "
                    f"that it becomes has {program.outputs[number].size}"
                )

    def more_outputs(self, program: Program) -> tuple[ArraySpec, ...]:
        """Return the outputs of a rollout kernel beside the program's; the rejected steps are not floats."""
        sizes = {spec.name: spec.size for spec in program.inputs}
        finals = [ArraySpec(f"final {name}", sizes[name]) for name, _ in self.carried]
        return (*finals, ArraySpec("refused step", 0))


@final
@dataclass(frozen=True, slots=True)
class StepArray:
    """Memory of an array: its address, the bytes between rows, the bytes between steps."""

    address: int
    row: int
    step: int = 0


def run_rollout(
    kernel: CpuKernel,
    inputs: Sequence[StepArray],
    outputs: Sequence[StepArray],
    rows: int,
    *,
    steps: int,
    first: int,
    every: int,
    threads: bool = True,
) -> None:
    """Compute `steps` steps of all rows; `outputs` include final values and refused steps.

    A block of rows takes all its steps before an interrupt is looked for: the caller bounds their number.
    """
    info = kernel.info
    if info.rollout is None:
        raise ArgumentError("this kernel takes one step; compile it with a rollout")
    wanted = (len(info.inputs), len(info.outputs) + len(info.rollout.carried) + 1)
    if (len(inputs), len(outputs)) != wanted:
        raise ShapeError(
            f"the kernel has {wanted[0]} inputs and {wanted[1]} outputs, final values and refused steps "
            f"among them; got {len(inputs)} and {len(outputs)}"
        )
    arrays = (*inputs, *outputs)
    bases = [array.address for array in arrays]
    strides = [array.row for array in arrays]
    step_strides = [array.step for array in arrays]
    work = info.work * max(steps, 1)
    if -(-rows // info.lanes) * work >= batches.WORTH_A_THREAD:
        batches.run_batch(
            kernel.address,
            bases,
            strides,
            inputs=len(inputs),
            rows=rows,
            lanes=info.lanes,
            work=work,
            tables=kernel.tables_address,
            scratch_bytes=info.scratch_bytes,
            steps=batches.StepCount(steps, first, every, step_strides),
            threads=threads,
        )
        return
    numbers = ctypes.c_int64 * len(arrays)
    places, row_bytes, step_bytes = numbers(*bases), numbers(*strides), numbers(*step_strides)
    at_outputs = 8 * len(inputs)
    scratch, _keep = SCRATCH.take(info.scratch_bytes)
    ROLLOUT_TYPE(kernel.address)(
        places,
        row_bytes,
        ctypes.byref(places, at_outputs),
        ctypes.byref(row_bytes, at_outputs),
        rows,
        kernel.tables_address,
        scratch,
        steps,
        first,
        every,
        step_bytes,
        ctypes.byref(step_bytes, at_outputs),
    )
