"""Machine code in this process: compiled, loaded, and called on rows of arrays."""

from __future__ import annotations

import ctypes
import functools
import itertools
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, final

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from dalembert.codegen.rollout import Rollout
from dalembert.codegen.target import KERNEL_NAME, Target, host_levels, initialize, target_for, target_machine
from dalembert.codegen.threads import split_rows
from dalembert.errors import ArgumentError, CompileError, ShapeError
from dalembert.tracing.program import Program

__all__ = ["CpuKernel", "KernelInfo", "compile_object", "load_object"]

_BITS: Final = {"float64": 64, "float32": 32}

STREAMED_BATCH: Final = 1 << 24
"""Results of this many bytes would push everything else out of the caches, and themselves."""

KEPT_SCRATCH: Final = 1 << 26
"""Scratch memory up to this size is kept by a thread for its next call."""

ROWS_TYPE: Final = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_void_p,
)


@final
@dataclass(frozen=True, slots=True)
class KernelInfo:
    """What a caller of a kernel must know.

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
        pairs = {
            side: tuple((str(name), int(size)) for name, size in data[side]) for side in ("inputs", "outputs")
        }
        rollout = Rollout.from_json(data["rollout"]) if data.get("rollout") else None
        return cls(**{**data, **pairs, "rollout": rollout})


def compile_object(
    program: Program, *, dtype: str, lanes: int, target: Target, rollout: Rollout | None = None
) -> tuple[KernelInfo, bytes, bytes]:
    """The kernel's description, its object code, and its tables."""
    if target.level not in host_levels():
        raise CompileError(
            f"this machine cannot run code of level {target.level!r}, only of {', '.join(host_levels())}; "
            "codegen.assembly shows code for any level"
        )
    from dalembert.codegen.emit_llvm import emit_program  # kernels from the disk cache do without

    emitted = emit_program(program, bits=_BITS[dtype], lanes=lanes, target=target, rollout=rollout)
    machine = target_machine(target)
    try:
        module = llvm.parse_assembly(emitted.text)
        code = machine.emit_object(module)
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
    return info, code, emitted.tables


def load_object(
    info: KernelInfo, code: bytes, tables: bytes, *, extra: dict[str, Any] | None = None
) -> CpuKernel:
    """Make object code callable in this process."""
    engine, (address,) = load_symbols(code, (KERNEL_NAME,))
    return CpuKernel(info, code, tables, engine, address, extra or {})


def load_symbols(code: bytes, names: tuple[str, ...]) -> tuple[Any, list[int]]:
    """Map object code; the library that owns it, and the addresses of functions.

    All sections of a library stand side by side, so that code reaches its constants by 32-bit offsets however
    scattered the process's memory is. (MCJIT maps sections one by one, and aborts where they are too far
    apart.)
    """
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name in names:
        builder.export_symbol(name)
    with _linking:
        library = builder.link(_linker(), f"dalembert {next(_library_numbers)}")
    return library, [library[name] for name in names]


_linking = threading.Lock()
_library_numbers = itertools.count()


@functools.cache
def _linker() -> Any:
    """The linker of this process; on Windows JITLink does not know every relocation."""
    initialize()
    return llvm.create_lljit_compiler(target_machine(target_for(None)), use_jit_link=sys.platform != "win32")


def aligned_buffer(size: int) -> npt.NDArray[np.uint8]:
    """Uninitialised bytes at an address that is a multiple of 64."""
    raw = np.empty(size + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


@final
class _Scratch(threading.local):
    """Memory of one thread, kept for its next call unless it is large."""

    size = -1
    address = 0
    buffer: npt.NDArray[np.uint8] | None = None

    def take(self, size: int) -> tuple[int, object]:
        """The address of `size` bytes, and what keeps them alive."""
        if size <= self.size:
            return self.address, self.buffer
        buffer = aligned_buffer(size)
        address = int(buffer.ctypes.data)
        if size <= KEPT_SCRATCH:
            self.size, self.address, self.buffer = size, address, buffer
        return address, buffer


SCRATCH: Final = _Scratch()


def _refuse_one_step(*_: object) -> int:
    raise ArgumentError("this kernel takes many steps in one call; codegen.run_rollout calls it")


@final
class CpuKernel:
    """A compiled program; `extra` is what was stored with it.

    Calls run without the interpreter's lock and may come from many threads at once. A kernel of many steps is
    called by `rollout.run_rollout` alone.
    """

    def __init__(
        self, info: KernelInfo, code: bytes, tables: bytes, engine: Any, address: int, extra: dict[str, Any]
    ) -> None:
        self.info = info
        self.extra = extra
        self.code = code
        self.tables = tables
        self._engine = engine
        self.address = address
        self._function: Any = ROWS_TYPE(self.address) if info.rollout is None else _refuse_one_step
        self._numbers = ctypes.c_int64 * (len(info.inputs) + len(info.outputs))
        self._tables = aligned_buffer(max(len(tables), 1))
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
        """Compute rows from and to (address, bytes between rows); the first refused row, or -1."""
        bases = [address for address, _ in (*inputs, *outputs)]
        steps = [step for _, step in (*inputs, *outputs)]
        count = len(inputs)
        numbers = self._numbers
        strides = numbers(*steps)
        output_strides = ctypes.byref(strides, 8 * count)
        streamed = rows * self.info.streamed_bytes
        function, tables, size = self._function, self.tables_address, self.info.scratch_bytes

        def run_piece(start: int, stop: int) -> int:
            moved = numbers(*[base + start * step for base, step in zip(bases, steps, strict=True)])
            scratch, _keep = SCRATCH.take(size)
            if streamed:
                ctypes.c_int64.from_address(scratch).value = streamed >= STREAMED_BATCH
            found: int = function(
                moved, strides, ctypes.byref(moved, 8 * count), output_strides, stop - start, tables, scratch
            )
            return found + start if found >= 0 else -1

        if not threads:
            return run_piece(0, rows)
        return split_rows(run_piece, rows, lanes=self.info.lanes, work=self.info.work)

    def run_arrays(
        self, inputs: Sequence[npt.NDArray[Any]], outputs: Sequence[npt.NDArray[Any]], *, threads: bool = True
    ) -> int:
        """Compute from arrays (rows, size), which must have the kernel's type and adjacent elements."""
        rows = {len(array) for array in (*inputs, *outputs)}
        if len(rows) != 1:
            raise ShapeError(f"arrays of a batch need the same number of rows, got {sorted(rows)}")
        for array, (name, size) in zip(
            (*inputs, *outputs), self.info.inputs + self.info.outputs, strict=True
        ):
            if array.dtype != self.info.dtype or array.shape[1:] != (size,):
                raise ShapeError(
                    f"array {name!r}: expected (rows, {size}) of {self.info.dtype}, "
                    f"got {array.shape} of {array.dtype}"
                )
            if size > 1 and array.strides[1] != array.itemsize:
                raise ShapeError(
                    f"array {name!r}: elements of a row must be adjacent, got strides {array.strides}"
                )
        return self.run(
            [(array.ctypes.data, array.strides[0]) for array in inputs],
            [(array.ctypes.data, array.strides[0]) for array in outputs],
            rows.pop(),
            threads=threads,
        )
