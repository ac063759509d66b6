"""The phases of a GPU kernel compiled for the CPU and run thread by thread over a grid.

The very text that becomes PTX is compiled for this machine. A block runs its first phase for all its
threads, then its second, as the barriers between them allow, on memory that stands for the block's shared
memory. It is filled with NaN before, so that a phase that relied on what it finds there would show.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final, final

import llvmlite.binding as llvm
import numpy as np

from dalembert.codegen.gpu.emit import GpuSource
from dalembert.codegen.target import target_for, target_machine

__all__ = ["HostKernel"]

HOST_NAME: Final = "dalembert_grid"


@final
class HostKernel:
    """A kernel's IR on the CPU; `run` takes what a launch takes."""

    def __init__(self, source: GpuSource) -> None:
        self.source = source
        module = llvm.parse_assembly(_module_text(source))
        machine = target_machine(target_for(None))
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        types = [ctypes.c_void_p if item.startswith("ptr") else ctypes.c_int64 for item in source.parameters]
        self.function = ctypes.CFUNCTYPE(None, *types, ctypes.c_int64, ctypes.c_void_p)(
            self.engine.get_function_address(HOST_NAME)
        )

    def run(self, arrays: Sequence[tuple[int, int]], rows: int) -> int:
        """Launch over `rows` rows; `arrays` are (address, bytes between rows) of inputs and outputs. The
        result is the first refused row, or -1."""
        info = self.source.info
        shared = np.full(info.shared_bytes // 8 + 8, np.nan)
        tables = np.frombuffer(self.source.tables.ljust(8, b"\0"), np.uint8).copy()
        refused = np.full(1, -1, np.int64)
        flat: list[Any] = [number for array in arrays for number in array]
        blocks = -(-rows // info.block)
        self.function(*flat, rows, tables.ctypes.data, refused.ctypes.data, blocks, shared.ctypes.data)
        return int(refused[0])


def _module_text(source: GpuSource) -> str:
    target = target_for(None)
    given = ", ".join((*source.parameters, "i32 %thread", "i32 %block", "ptr %shared"))
    lines = ["entry:", "br label %blocks", "blocks:"]
    last = f"end{len(source.phases) - 1}"
    lines.append(f"%block.wide = phi i64 [ 0, %entry ], [ %block.next, %{last} ]")
    lines.append("%block = trunc i64 %block.wide to i32")
    lines.append("br label %phase0")
    before = "blocks"
    for number, phase in enumerate(source.phases):
        lines += [
            f"phase{number}:",
            f"%thread{number} = phi i32 [ 0, %{before} ], [ %next{number}, %phase{number} ]",
            f"call void @{phase}({given.replace('%thread', f'%thread{number}')})",
            f"%next{number} = add i32 %thread{number}, 1",
            f"%more{number} = icmp ult i32 %next{number}, {source.info.block}",
            f"br i1 %more{number}, label %phase{number}, label %end{number}",
            f"end{number}:",
        ]
        if phase != source.phases[-1]:
            lines.append(f"br label %phase{number + 1}")
        before = f"end{number}"
    lines += [
        "%block.next = add i64 %block.wide, 1",
        "%more = icmp slt i64 %block.next, %blocks.all",
        "br i1 %more, label %blocks, label %over",
        "over:",
        "ret void",
    ]
    return "\n".join(
        [
            f'target triple = "{target.triple}"',
            *sorted(source.declared),
            "define internal void @pace() { ret void }",
            source.text,
            f"define void @{HOST_NAME}({', '.join(source.parameters)}, i64 %blocks.all, ptr %shared) {{",
            *lines,
            "}",
        ]
    )
