"""The functions that run the phases of a kernel: one for the GPU, one for the host.

Both have the same shape. On the GPU each thread calls the phases, with a barrier before each; on the host a
phase is a loop over the threads of a block, and blocks follow one another.

    for each block of rows:
        load
        one step:                  compute, store
        of a rollout, each step:   stream, compute, store if the step is due
        finish
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from dalembert.codegen.gpu.architectures import TRIPLE
from dalembert.codegen.gpu.emit import PHASE_PARAMETERS
from dalembert.codegen.gpu.quotients import without_branches
from dalembert.codegen.gpu.source import GpuSource
from dalembert.codegen.gpu.workers import dispatch_phase, stage_by_stage
from dalembert.codegen.target import KERNEL_NAME, target_for

__all__ = ["HOST_NAME", "gpu_module", "host_module"]

HOST_NAME: Final = "dalembert_grid"

VOTE: Final = "@llvm.nvvm.barrier.cta.red.or.aligned.all"
BARRIER: Final = "@llvm.nvvm.barrier.cta.sync.aligned.all"
REGISTERS: Final = {
    "%thread": "@llvm.nvvm.read.ptx.sreg.tid.x",
    "%home": "@llvm.nvvm.read.ptx.sreg.ctaid.x",
    "%grid": "@llvm.nvvm.read.ptx.sreg.nctaid.x",
}


def gpu_module(source: GpuSource) -> str:
    """Return the module of a kernel for the GPU."""
    layout = source.info.layout
    attributes = [f'"nvvm.maxntid"="{layout.block}"']
    if layout.registers is not None:
        attributes.append(f'"nvvm.maxnreg"="{layout.registers}"')
    walk = _Walk(source)
    begin: list[str] = []
    for item in source.parameters:
        if item.startswith("ptr"):
            name = item.split()[1]
            begin.append(f"{name} = addrspacecast ptr addrspace(1) %global.{name[1:]} to ptr")
    begin += [f"{name} = call i32 {register}()" for name, register in REGISTERS.items()]
    begin.append("%shared = addrspacecast ptr addrspace(3) @shared to ptr")
    if source.local_bytes:
        # With an offset that only the GPU knows to be zero; of a plain address LLVM would make variables.
        begin.append(f"%local.start = alloca [{source.local_bytes} x i8], align 16")
        begin.append("%local.zero = lshr i64 %rows, 62")
        begin.append("%local = getelementptr i8, ptr %local.start, i64 %local.zero")
    else:
        begin.append("%local = inttoptr i64 0 to ptr")
    alone = not source.info.scratch_bytes

    def phase(name: str, arguments: str) -> None:
        if not (alone and walk.done == 0):
            walk.lines.append(f"call void {BARRIER}(i32 0)")
        walk.lines.append(f"call void @{name}({arguments})")

    walk.write(phase, begin, alone=alone)
    kernel = [item.replace("ptr %", "ptr addrspace(1) %global.") for item in source.parameters]
    text = "\n".join([source.text, *dispatch_phase(source, PHASE_PARAMETERS)])
    declared = source.declared
    if source.info.bits == 32:
        text = without_branches(text)
        declared -= {line for line in text.split("\n") if line.startswith("declare")}
    return "\n".join(
        [
            f'target triple = "{TRIPLE}"',
            *sorted(declared),
            f"declare void {BARRIER}(i32) convergent",
            *(f"declare i32 {register}()" for register in REGISTERS.values()),
            "@shared = external addrspace(3) global [0 x i8], align 16",
            f"define internal void @pace() alwaysinline convergent {{ call void {BARRIER}(i32 0) ret void }}",
            f"declare i1 {VOTE}(i32, i1) convergent",
            "define internal i1 @any(i1 %own) alwaysinline convergent {",
            f"%one = call i1 {VOTE}(i32 0, i1 %own)",
            "ret i1 %one",
            "}",
            text,
            f"define ptx_kernel void @{KERNEL_NAME}({', '.join(kernel)}) {' '.join(attributes)} {{",
            *walk.lines,
            "}",
        ]
    )


def host_module(source: GpuSource) -> str:
    """Return the same phases for this machine: the kernel's parameters, then the grid, shared and local
    memory."""
    stages, count, local_bytes = stage_by_stage(source, PHASE_PARAMETERS)
    walk = _Walk(source)

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


@final
class _Walk:
    """The writer of the sequence of phases; `label` is the basic block written to, `done` counts the
    phases."""

    def __init__(self, source: GpuSource) -> None:
        self.source = source
        self.lines: list[str] = []
        self.compute = ["compute"]
        self.label = "entry"
        self.done = 0

    def write(self, phase: Callable[[str, str], None], begin: list[str], *, alone: bool) -> None:
        """Write the phases in order: `phase` writes one, `begin` are lines before the first; `alone`: a block
        of the grid has one block of rows."""
        given = ", ".join((*self.source.parameters, *PHASE_PARAMETERS))

        def run(name: str, *, now: str = "0", written: str = "0") -> None:
            if name in self.source.phases:
                for each in self.compute if name == "compute" else [name]:
                    phase(each, given.replace("%now", now).replace("%written", written))
                    self.done += 1

        self.lines += ["entry:", *begin]
        if alone:
            self.lines.append("%block = add i32 %home, 0")
        else:
            before = self.label
            self._begin("rows.next")
            self.lines.append(f"%block = phi i32 [ %home, %{before} ], [ %block.next, %rows.more ]")
        run("load")
        if self.source.info.rollout is None:
            for name in self.source.phases:
                if name != "load":
                    run(name)
        else:
            self._steps(run)
        if not alone:
            self._begin("rows.more")
            block = self.source.info.samples
            self.lines += [
                "%block.next = add i32 %block, %grid",
                "%block.next.wide = zext i32 %block.next to i64",
                f"%block.next.row = mul i64 %block.next.wide, {block}",
                "%block.again = icmp slt i64 %block.next.row, %rows",
                "br i1 %block.again, label %rows.next, label %rows.over",
                "rows.over:",
            ]
            self.label = "rows.over"
        self.lines.append("ret void")

    def _begin(self, label: str) -> None:
        """Go to a new basic block."""
        self.lines += [f"br label %{label}", f"{label}:"]
        self.label = label

    def _steps(self, run: Callable[..., None]) -> None:
        self._begin("time.enter")
        self.lines += [
            "%any.step = icmp sgt i64 %steps, 0",
            "br i1 %any.step, label %time.step, label %time.over",
            "time.step:",
            "%now = phi i64 [ 0, %time.enter ], [ %now.next, %time.again ]",
            "%wait = phi i64 [ %first_kept, %time.enter ], [ %wait.next, %time.again ]",
            "%written = phi i64 [ 0, %time.enter ], [ %written.next, %time.again ]",
        ]
        self.label = "time.step"
        run("stream", now="%now")
        run("compute", now="%now")
        self.lines += [
            "%wait.less = sub i64 %wait, 1",
            "%due = icmp eq i64 %wait.less, 0",
            "br i1 %due, label %time.deliver, label %time.again",
            "time.deliver:",
        ]
        self.label = "time.deliver"
        run("store", written="%written")
        self._begin("time.again")
        self.lines += [
            "%wait.next = select i1 %due, i64 %every, i64 %wait.less",
            "%written.more = zext i1 %due to i64",
            "%written.next = add i64 %written, %written.more",
            "%now.next = add i64 %now, 1",
            "%again = icmp slt i64 %now.next, %steps",
            "br i1 %again, label %time.step, label %time.over",
            "time.over:",
        ]
        self.label = "time.over"
        run("finish")
