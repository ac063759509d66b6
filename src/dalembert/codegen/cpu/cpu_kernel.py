"""Machine code in this process: compiled, loaded, and called on rows of arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple, final

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from dalembert.codegen.cpu import threads as batches
from dalembert.codegen.machine_code import load_symbols
from dalembert.codegen.memory import Rollout, decode_description
from dalembert.codegen.target import BITS, KERNEL_NAME, Target, host_levels, parse_module, target_machine
from dalembert.errors import ArgumentError, CompileError, ShapeError
from dalembert.tracing.program import Program

STREAMED_BATCH: Final = 1 << 24
"""[bytes] Results of this size would evict everything else from the caches, and themselves."""

_ROW_ARGUMENTS: Final = (*[ctypes.c_void_p] * 4, ctypes.c_int64, *[ctypes.c_void_p] * 2)
_STEP_ARGUMENTS: Final = (*[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 2)


@final
@dataclass(frozen=True, slots=True)
class KernelInfo:
    """The description of a kernel that its callers need.

    `work`: instructions for one block of `lanes` rows, roughly. `streamed_bytes`: bytes of a row's outputs
    that the kernel can write past the caches; if any, the first word of scratch memory tells whether it
    should. `rollout`: what is carried from step to step, if the kernel takes many.
    """

    dtype: str
    lanes: int
    level: str
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    scratch_bytes: int
    has_check: bool
    work: int
    streamed_bytes: int
    rollout: Rollout | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> KernelInfo:
        return cls(**decode_description(data))


def compile_object(
    program: Program, *, dtype: str, lanes: int, target: Target, rollout: Rollout | None = None
) -> tuple[KernelInfo, list[bytes], bytes]:
    """Return the kernel's description, its object code, a piece for each module, and its tables."""
    if target.level not in host_levels():
        raise CompileError(
            f"this machine cannot run code of level {target.level!r}, only of {', '.join(host_levels())}; "
            "codegen.assembly shows code for any level"
        )
    from dalembert.codegen.cpu.llvm_function import emit_program

    emitted = emit_program(program, bits=BITS[dtype], lanes=lanes, target=target, rollout=rollout)
    # One module after another: between them the interpreter raises what an interrupt asks for.
    try:
        machine = target_machine(target)
        codes = [bytes(machine.emit_object(parse_module(text))) for text in (emitted.text, *emitted.parts)]
    except RuntimeError as error:
        raise CompileError(
            f"LLVM {llvm.llvm_version_info} refused a kernel at level {target.level!r}: {error}"
        ) from error
    info = KernelInfo(
        dtype=dtype,
        lanes=lanes,
        level=target.level,
        inputs=tuple((spec.name, spec.size) for spec in program.inputs),
        outputs=tuple((spec.name, spec.size) for spec in program.outputs),
        scratch_bytes=emitted.scratch_bytes,
        has_check=program.check is not None,
        work=emitted.work,
        streamed_bytes=emitted.streamed_bytes,
        rollout=rollout,
    )
    return info, codes, emitted.tables


def load_object(
    info: KernelInfo, codes: Sequence[bytes], tables: bytes, *, extra: dict[str, Any] | None = None
) -> CpuKernel:
    """Make object code callable in this process."""
    engine, (address,) = load_symbols(codes[0], (KERNEL_NAME,), called=codes[1:])
    return CpuKernel(info, b"".join(codes), tables, engine, address, extra or {})


@final
class CpuKernel:
    """A compiled program; `extra` is what was stored with it.

    Calls run without the interpreter's lock and may come from many threads at once. A kernel of many steps is
    called by `BoundSteps` alone.
    """

    def __init__(
        self, info: KernelInfo, code: bytes, tables: bytes, engine: Any, address: int, extra: dict[str, Any]
    ) -> None:
        self.info = info
        self.extra = extra
        self.code = code
        self._engine = engine
        self.address = address
        arguments = _ROW_ARGUMENTS if info.rollout is None else (*_ROW_ARGUMENTS, *_STEP_ARGUMENTS)
        self.function: Any = ctypes.CFUNCTYPE(ctypes.c_int64, *arguments)(address)
        more = 0 if info.rollout is None else len(info.rollout.carried) + 2
        self.numbers = ctypes.c_int64 * (len(info.inputs) + len(info.outputs) + more)
        self._tables = batches.aligned_buffer(max(len(tables), 1))
        self._tables[: len(tables)] = np.frombuffer(tables, dtype=np.uint8)
        self.tables_address = int(self._tables.ctypes.data)

    def run(
        self,
        inputs: Sequence[tuple[int, int]],
        outputs: Sequence[tuple[int, int]],
        rows: int,
        *,
        threads: bool = True,
    ) -> int:
        """Compute rows from and to (address, bytes between rows); return the first rejected row, or -1.

        When the call ends, also by an exception, no thread writes into the outputs any more (`threads`).
        """
        info, count = self.info, len(inputs)
        if info.rollout is not None:
            raise ArgumentError("this kernel takes many steps in one call; codegen.BoundSteps calls it")
        bases = [address for address, _ in (*inputs, *outputs)]
        strides = [stride for _, stride in (*inputs, *outputs)]
        streamed = self.streams_results(rows)
        if -(-rows // info.lanes) * info.work >= batches.WORTH_A_THREAD:
            return batches.run_batch(
                self,
                bases,
                strides,
                inputs=count,
                rows=rows,
                work=info.work,
                streamed=streamed,
                steps=None,
                threads=threads,
            )
        places, row_bytes = self.numbers(*bases), self.numbers(*strides)
        scratch, _keep = batches.SCRATCH.take(info.scratch_bytes)
        if streamed >= 0:
            ctypes.c_int64.from_address(scratch).value = streamed
        found: int = self.function(
            places,
            row_bytes,
            ctypes.byref(places, 8 * count),
            ctypes.byref(row_bytes, 8 * count),
            rows,
            self.tables_address,
            scratch,
        )
        return found

    def streams_results(self, rows: int) -> int:
        """Return the first word of scratch memory: whether results bypass the caches; -1 for none."""
        return int(rows * self.info.streamed_bytes >= STREAMED_BATCH) if self.info.streamed_bytes else -1


class StepArray(NamedTuple):
    """Memory of an array: its address, the bytes between rows, the bytes between steps."""

    address: int
    row: int
    step: int = 0


@final
class BoundSteps:
    """A kernel of many steps and the rows that take them: what every call needs is written down once.

    `outputs` include final values and refused steps. The arrays must live as long as this object.
    """

    def __init__(
        self, kernel: CpuKernel, inputs: Sequence[StepArray], outputs: Sequence[StepArray], rows: int
    ) -> None:
        info, count = kernel.info, len(inputs)
        if info.rollout is None:
            raise ArgumentError("this kernel takes one step; compile it with a rollout")
        wanted = (len(info.inputs), len(info.outputs) + len(info.rollout.carried) + 1)
        if (count, len(outputs)) != wanted:
            raise ShapeError(
                f"the kernel has {wanted[0]} inputs and {wanted[1]} outputs, final values and refused steps "
                f"among them; got {count} and {len(outputs)}"
            )
        self._kernel, self._inputs, self._rows = kernel, count, rows
        self._farther = np.zeros(rows, np.int64)
        order = StepArray(int(self._farther.ctypes.data), self._farther.itemsize)
        self._bases, self._row_bytes, self._step_bytes = zip(*inputs, *outputs, order, strict=True)
        self._streamed = kernel.streams_results(rows)
        bases, by_row, by_step = (
            kernel.numbers(*numbers) for numbers in (self._bases, self._row_bytes, self._step_bytes)
        )
        self._arrays = (
            *(bases, by_row, ctypes.byref(bases, 8 * count), ctypes.byref(by_row, 8 * count)),
            *(ctypes.c_int64(rows), ctypes.c_void_p(kernel.tables_address)),
        )
        self._over_steps = (by_step, ctypes.byref(by_step, 8 * count))

    def form_blocks(self, order: npt.NDArray[np.int64] | None) -> None:
        """Let rows form blocks in this order, by default as they lie; results do not depend on it."""
        self._farther[...] = 0 if order is None else order - np.arange(self._rows)

    def take(self, steps: int, *, first: int, every: int, threads: bool = True) -> None:
        """Take `steps` steps of all rows; write results after the `first` steps, then after each `every`.

        A block of rows takes all its steps before an interrupt is looked for: the caller bounds their number.
        """
        kernel, info = self._kernel, self._kernel.info
        blocks = -(-self._rows // info.lanes)
        work = info.work * max(steps, 1)
        if blocks > 1 and blocks * work >= batches.WORTH_A_THREAD:
            batches.run_batch(
                kernel,
                self._bases,
                self._row_bytes,
                inputs=self._inputs,
                rows=self._rows,
                work=work,
                streamed=self._streamed,
                steps=batches.StepCount(steps, first, every, self._step_bytes),
                threads=threads,
            )
            return
        scratch, _keep = batches.SCRATCH.take(info.scratch_bytes)
        if self._streamed >= 0:
            ctypes.c_int64.from_address(scratch).value = self._streamed
        kernel.function(*self._arrays, scratch, steps, first, every, *self._over_steps)
