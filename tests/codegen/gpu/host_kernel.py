"""The phases of a GPU kernel compiled for the CPU and run thread by thread over a grid.

The very text that becomes PTX is compiled for this machine. A block runs its first phase for all its threads,
then its second, as the barriers between them allow, on memory that stands for the block's shared memory. It
is filled with NaN before, so that a phase that relied on what it finds there would show.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence

import llvmlite.binding as llvm
import numpy as np

from dalembert.codegen.gpu.gpu_module import PhaseWalk, dispatch_workers
from dalembert.codegen.gpu.launch import BARRIER, BEGIN, GpuSource
from dalembert.codegen.gpu.shared_memory import VECTOR_LOAD_BYTES
from dalembert.codegen.ir import NEVER
from dalembert.codegen.target import target_for, target_machine
from dalembert.errors import CompileError

HOST_NAME = "dalembert_grid"

GUARD_NUMBERS = 4096
"""Float64 numbers behind the shared memory that must not change: they detect writes out of bounds."""


class HostKernel:
    """A kernel's phases on the CPU."""

    def __init__(self, source: GpuSource) -> None:
        self.source = source
        module = llvm.parse_assembly(host_module(source))
        self.engine = llvm.create_mcjit_compiler(module, target_machine(target_for(None)))
        self.engine.finalize_object()
        self.local_bytes = stage_by_stage(source)[2]
        types = [ctypes.c_void_p if item.startswith("ptr") else ctypes.c_int64 for item in source.parameters]
        self.function = ctypes.CFUNCTYPE(None, *types, ctypes.c_int32, *[ctypes.c_void_p] * 2)(
            self.engine.get_function_address(HOST_NAME)
        )
        self.tables = np.frombuffer(source.tables.ljust(8, b"\0"), np.uint8).copy()

    def launch(self, arguments: Sequence[int], grid: int) -> None:
        """Run a grid; `arguments` are the addresses and numbers of the kernel's parameters in order."""
        size = self.source.info.shared_bytes
        shared = np.full(size // 8 + GUARD_NUMBERS, np.nan)
        before = shared.tobytes()[size:]
        local = np.full(self.source.info.block * self.local_bytes // 8 + 2, np.nan)
        aligned = -(-local.ctypes.data // VECTOR_LOAD_BYTES) * VECTOR_LOAD_BYTES
        self.function(*arguments, grid, shared.ctypes.data, aligned)
        if shared.tobytes()[size:] != before:
            raise CompileError(f"the kernel writes behind the {size} bytes of its shared memory")

    def run(self, arrays: Sequence[tuple[int, int]], rows: int, *, grid: int | None = None) -> int:
        """Run all rows, one step; `arrays` are (address, bytes between rows) of inputs and outputs. The
        result is the first refused row, or -1. `scratch` is then what threads have left in their memory."""
        info = self.source.info
        refused = np.full(1, -1, np.int64)
        grid = -(-rows // info.samples) if grid is None else grid
        self.scratch = scratch = np.full(grid * info.block * info.scratch_bytes // 8 + 1, np.nan)
        more = [scratch.ctypes.data] if info.scratch_bytes else []
        flat = [number for array in arrays for number in array]
        self.launch([*flat, rows, self.tables.ctypes.data, refused.ctypes.data, *more], grid)
        return int(refused[0])


def host_module(source: GpuSource) -> str:
    """Return the same phases for this machine: the kernel's parameters, then the grid, shared and local
    memory."""
    stages, count, local_bytes = stage_by_stage(source)
    walk = PhaseWalk(source)

    def number_thread(arguments: str, number: int) -> str:
        """Insert the thread's number and memory, in the loop of a phase."""
        for name in ("i32 %thread", "ptr %local"):
            arguments = arguments.replace(name, f"{name}{number}")
        return arguments

    def phase(name: str, arguments: str) -> None:
        number, before = walk.done, walk.label
        walk.lines += [
            f"br label %phase{number}",
            f"phase{number}:",
            f"%thread{number} = phi i32 [ 0, %{before} ], [ %next{number}, %phase{number} ]",
            f"%wide{number} = zext i32 %thread{number} to i64",
            f"%at{number} = mul i64 %wide{number}, {local_bytes}",
            f"%local{number} = getelementptr i8, ptr %locals, i64 %at{number}",
            f"call void @{name}({number_thread(arguments, number)})",
            f"%next{number} = add i32 %thread{number}, 1",
            f"%more{number} = icmp ult i32 %next{number}, {source.info.block}",
            f"br i1 %more{number}, label %phase{number}, label %done{number}",
            f"done{number}:",
        ]
        walk.label = f"done{number}"

    parameters = ", ".join((*source.parameters, "i32 %grid", "ptr %shared", "ptr %locals"))
    begin = ["br label %homes", "homes:", "%home = phi i32 [ 0, %entry ], [ %home.next, %home.over ]"]
    walk.label = "homes"
    if source.workers:
        walk.compute = [f"compute.{number}" for number in range(count)]
    walk.write(phase, begin, alone=not source.info.scratch_bytes)
    return "\n".join(
        [
            f'target triple = "{target_for(None).triple}"',
            *sorted(source.declared),
            "define internal void @pace() { ret void }",
            "define internal i1 @any(i1 %own) alwaysinline { ret i1 %own }",
            source.text,
            *stages,
            f"define void @{HOST_NAME}({parameters}) {{",
            *[line for line in walk.lines if line != "ret void"],
            "br label %home.over",
            "home.over:",
            "%home.next = add i32 %home, 1",
            "%home.more = icmp ult i32 %home.next, %grid",
            "br i1 %home.more, label %homes, label %end",
            "end:",
            "ret void",
            "}",
        ]
    )


# On the GPU each worker is one function that runs through all its stages, with barriers on the way. Here a
# phase is a loop over threads, and each stage is a phase of its own: the same lines, cut at the barriers, and
# what a worker keeps in registers over one goes through the thread's memory, by a store after its definition
# and a load at the start of the stages that use it.

_DEFINED = re.compile(r"(%[\w.]+) = (.*)")
_USED = re.compile(r"%[\w.]+")
_CONDITION = re.compile(r"[fi]cmp |(?:and|or|xor) i1 ")


def stage_by_stage(source: GpuSource) -> tuple[list[str], int, int]:
    """Return the phases for the host, their number, and the bytes of a thread's memory."""
    if not source.workers:
        return [], 0, source.local_bytes
    start = -(-source.local_bytes // 8) * 8
    found = [_cut(lines, "float" if source.info.bits == 32 else "double", start) for lines in source.workers]
    count = len(found[0][0])
    text: list[str] = []
    for number in range(count):
        functions = [stages[number] for stages, _ in found]
        text += dispatch_workers(source, f"compute.{number}", functions)
    return text, count, max(size for _, size in found)


def _cut(lines: Sequence[str], kind: str, start: int) -> tuple[list[list[str]], int]:
    """Return the stages of a worker as functions, and the end of the thread's memory. Values that outlive a
    stage are in the thread's memory from byte `start` on."""
    opening = lines.index(BEGIN)
    stages: list[list[str]] = [[]]
    for line in lines[opening + 1 :]:
        if line == BARRIER:
            stages[-1] += ["ret void", f"{NEVER}:", "ret void"]
            stages.append([])
        else:
            stages[-1].append(line)
    known: dict[str, str] = {}
    places: dict[str, int] = {}
    brought: list[list[str]] = []
    for stage in stages:
        own = {match[1]: match[2] for line in stage if (match := _DEFINED.match(line))}
        used = {name for line in stage for name in _USED.findall(line)}
        brought.append(sorted((used & known.keys()) - own.keys()))
        for name in brought[-1]:
            places.setdefault(name, start + 8 * len(places))
        known |= own

    def reach(name: str) -> tuple[str, str]:
        """Return the line that computes the address of a kept value, and its type."""
        line = f"{name}.home = getelementptr i8, ptr %local, i64 {places[name]}"
        return line, "i1" if _CONDITION.match(known[name]) else kind

    found = []
    for stage, names in zip(stages, brought):
        text = list(lines[:opening])
        for name in names:
            place, its = reach(name)
            text += [place, f"{name} = load {its}, ptr {name}.home, align 8"]
        for line in stage:
            text.append(line)
            match = _DEFINED.match(line)
            if match and match[1] in places:
                place, its = reach(match[1])
                text += [place, f"store {its} {match[1]}, ptr {match[1]}.home, align 8"]
        found.append(text)
    return found, start + 8 * len(places)
