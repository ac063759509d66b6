"""The module of a GPU kernel: the function that calls its phases, and the PTX that LLVM makes of it.

Each thread calls the phases, with a barrier before each. (In the tests a phase is a loop over the threads of
a block on the CPU, and blocks follow one another.)

    for each block of rows:
        load
        one step:                  compute, store
        of a rollout, each step:   stream, compute, store if the step is due
        finish
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, final

import llvmlite.binding as llvm

from dalembert.codegen.gpu.gpu_function import PHASE_PARAMETERS
from dalembert.codegen.gpu.launch import ARCHITECTURES, TRIPLE, Architecture, GpuSource, gpu_target_machine
from dalembert.codegen.ir import TIME_AGAIN, TIME_DELIVER, TIME_STEP
from dalembert.codegen.target import KERNEL_NAME

# Branch-free quotients and square roots in float32.
#
# What the assembler makes of a division or a root has a branch to a slow path for extreme operands. It ends
# the basic block, so that no load begins before it and the chains of two quotients follow each other; code
# with hundreds of them waits more than it computes. Here operands beyond 2^100 or below 2^-100 are scaled by
# powers of two, and the same steps are taken for all (Markstein 1990):
#
#     y = 1/b:  y_1 = y_0 + y_0 (1 - b y_0)                 a/b:  q_1 = q_0 + y_1 (a - b q_0), twice
#     sqrt(x):  s_0 = x / sqrt(x), s_1 = s_0 + (x - s_0 s_0) / (2 sqrt(x))
#
# from the processor's approximations. The result is the correctly rounded one, as the assembler's own, but
# for a last place where it, or a divided by 2^100, is no normal number. 1 / sqrt(x) is one step, within one
# unit of the last place.

_QUOTIENT: Final = re.compile(r"= fdiv float (\S+), (\S+)$")
_ROOT: Final = re.compile(r"^(\S+) = call float @llvm\.sqrt\.f32\(float (\S+)\)$")
_ONE: Final = "0x3FF0000000000000"

_LARGE, _SMALL = "0x4630000000000000", "0x39B0000000000000"
"""2^100 and 2^-100."""

_UP, _DOWN = "0x43F0000000000000", "0x3BF0000000000000"
_HALF_UP, _HALF_DOWN = "0x41F0000000000000", "0x3DF0000000000000"
"""2^64, 2^-64, 2^32, 2^-32."""

_DEFINITIONS: Final = f"""
declare float @llvm.fabs.f32(float)
declare float @llvm.fma.f32(float, float, float)
define internal float @scale(float %b) alwaysinline nounwind {{
%size = call float @llvm.fabs.f32(float %b)
%large = fcmp ogt float %size, {_LARGE}
%small = fcmp olt float %size, {_SMALL}
%down = select i1 %large, float {_DOWN}, float {_ONE}
%factor = select i1 %small, float {_UP}, float %down
ret float %factor
}}
define internal float @reciprocal(float %given) alwaysinline nounwind {{
%factor = call float @scale(float %given)
%b = fmul float %given, %factor
%y0 = call float asm "rcp.approx.ftz.f32 $0, $1;", "=f,f"(float %b)
%minus = fneg float %b
%left = call float @llvm.fma.f32(float %minus, float %y0, float {_ONE})
%y1 = call float @llvm.fma.f32(float %y0, float %left, float %y0)
%good = fcmp ord float %y1, %y1
%y = select i1 %good, float %y1, float %y0
%result = fmul float %y, %factor
ret float %result
}}
define internal float @quotient(float %above, float %below) alwaysinline nounwind {{
%factor = call float @scale(float %below)
%b = fmul float %below, %factor
%a = fmul float %above, %factor
%y0 = call float asm "rcp.approx.ftz.f32 $0, $1;", "=f,f"(float %b)
%minus = fneg float %b
%left = call float @llvm.fma.f32(float %minus, float %y0, float {_ONE})
%y1 = call float @llvm.fma.f32(float %y0, float %left, float %y0)
%q0 = fmul float %a, %y1
%r0 = call float @llvm.fma.f32(float %minus, float %q0, float %a)
%q1 = call float @llvm.fma.f32(float %r0, float %y1, float %q0)
%r1 = call float @llvm.fma.f32(float %minus, float %q1, float %a)
%q2 = call float @llvm.fma.f32(float %r1, float %y1, float %q1)
%good = fcmp ord float %q2, %q2
%extreme = fmul float %a, %y0
%result = select i1 %good, float %q2, float %extreme
ret float %result
}}
define internal float @inverse_root(float %given) alwaysinline nounwind {{
%small = fcmp olt float %given, {_SMALL}
%up = select i1 %small, float {_UP}, float {_ONE}
%back = select i1 %small, float {_HALF_UP}, float {_ONE}
%x = fmul float %given, %up
%y0 = call float asm "rsqrt.approx.ftz.f32 $0, $1;", "=f,f"(float %x)
%s = fmul float %x, %y0
%half = fmul float %y0, 0x3FE0000000000000
%minus = fneg float %s
%left = call float @llvm.fma.f32(float %minus, float %y0, float {_ONE})
%y1 = call float @llvm.fma.f32(float %left, float %half, float %y0)
%good = fcmp ord float %y1, %y1
%y = select i1 %good, float %y1, float %y0
%result = fmul float %y, %back
ret float %result
}}
define internal float @root(float %given) alwaysinline nounwind {{
%small = fcmp olt float %given, {_SMALL}
%up = select i1 %small, float {_UP}, float {_ONE}
%down = select i1 %small, float {_HALF_DOWN}, float {_ONE}
%x = fmul float %given, %up
%y = call float asm "rsqrt.approx.ftz.f32 $0, $1;", "=f,f"(float %x)
%s0 = fmul float %x, %y
%half = fmul float %y, 0x3FE0000000000000
%minus = fneg float %s0
%left = call float @llvm.fma.f32(float %minus, float %s0, float %x)
%s1 = call float @llvm.fma.f32(float %left, float %half, float %s0)
%good = fcmp ord float %s1, %s1
%inside = fcmp oge float %given, 0.0
%extreme = select i1 %inside, float %given, float 0x7FF8000000000000
%s = fmul float %s1, %down
%result = select i1 %good, float %s, float %extreme
ret float %result
}}
"""


def without_branches(text: str) -> str:
    """Return the text of a float32 kernel with its quotients and roots replaced by calls of functions."""
    lines: list[str] = []
    under: dict[str, str] = {}
    for line in text.split("\n"):
        quotient, root = _QUOTIENT.search(line), _ROOT.search(line)
        if line.startswith("define"):
            under.clear()
        if root:
            under[root[1]] = root[2]
            line = f"{root[1]} = call float @root(float {root[2]})"
        elif quotient:
            start, above, below = line[: quotient.start()], quotient[1], quotient[2]
            if above == _ONE and below in under:
                line = f"{start}= call float @inverse_root(float {under[below]})"
            elif above == _ONE:
                line = f"{start}= call float @reciprocal(float {below})"
            else:
                line = f"{start}= call float @quotient(float {above}, float {below})"
        lines.append(line)
    return "\n".join(lines) + _DEFINITIONS


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
    walk = PhaseWalk(source)
    begin = [
        f"%{name} = addrspacecast ptr addrspace(1) %global.{name} to ptr"
        for kind, name in (item.split(" %") for item in source.parameters)
        if kind == "ptr"
    ]
    begin += [f"{name} = call i32 {register}()" for name, register in REGISTERS.items()]
    begin.append("%shared = addrspacecast ptr addrspace(3) @shared to ptr")
    if source.local_bytes:
        # With an offset that only the GPU knows to be zero; of a plain address LLVM would make variables.
        begin += [
            f"%local.start = alloca [{source.local_bytes} x i8], align 16",
            "%local.zero = lshr i64 %rows, 62",
            "%local = getelementptr i8, ptr %local.start, i64 %local.zero",
        ]
    else:
        begin.append("%local = inttoptr i64 0 to ptr")
    alone = not source.info.scratch_bytes

    def phase(name: str, arguments: str) -> None:
        if not (alone and walk.done == 0):
            walk.lines.append(f"call void {BARRIER}(i32 0)")
        walk.lines.append(f"call void @{name}({arguments})")

    walk.write(phase, begin, alone=alone)
    kernel = [item.replace("ptr %", "ptr addrspace(1) %global.") for item in source.parameters]
    workers = dispatch_workers(source, "compute", source.workers) if source.workers else []
    text = "\n".join([source.text, *workers])
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


def ptx_of(source: GpuSource, architecture: Architecture | None = None) -> str:
    """Return the PTX of a kernel."""
    machine = gpu_target_machine(architecture or ARCHITECTURES[source.info.architecture])
    module = llvm.parse_assembly(gpu_module(source))
    module.data_layout = str(machine.target_data)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(0)))
    return str(machine.emit_assembly(module))


def dispatch_workers(source: GpuSource, name: str, functions: Sequence[Sequence[str]]) -> list[str]:
    """Return the functions of the workers of a sample, and the phase that calls that of the thread's own."""
    parameters = ", ".join((*source.parameters, *PHASE_PARAMETERS))
    head = f"({parameters}) alwaysinline nounwind {{"
    text = []
    for k, lines in enumerate(functions):
        text += [f"define internal void @{name}.worker{k}{head}", *lines, "}"]
    text += [f"define internal void @{name}{head}", "entry:"]
    text.append(f"%part = udiv i32 %thread, {source.info.samples}")
    cases = " ".join(f"i32 {k}, label %part{k}" for k in range(1, len(functions)))
    text.append(f"switch i32 %part, label %part0 [ {cases} ]")
    for k in range(len(functions)):
        text += [f"part{k}:", f"call void @{name}.worker{k}({parameters})", "ret void"]
    return [*text, "}"]


@final
@dataclass(slots=True)
class PhaseWalk:
    """The writer of the sequence of phases; `label` is the basic block written to, `done` counts the phases,
    `compute` names the phases of the arithmetic."""

    source: GpuSource
    lines: list[str] = field(default_factory=list)
    compute: Sequence[str] = ("compute",)
    label: str = "entry"
    done: int = 0

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
        before = self.label
        if alone:
            self.lines.append("%block = add i32 %home, 0")
        else:
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
            self.lines += [
                "%block.next = add i32 %block, %grid",
                "%block.next.wide = zext i32 %block.next to i64",
                f"%block.next.row = mul i64 %block.next.wide, {self.source.info.samples}",
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
            *(line.replace("FIRST", "%first_kept") for line in TIME_STEP),
        ]
        self.label = "time.step"
        run("stream", now="%now")
        run("compute", now="%now")
        self.lines += TIME_DELIVER
        self.label = "time.deliver"
        run("store", written="%written")
        self._begin("time.again")
        self.lines += TIME_AGAIN
        self.label = "time.over"
        run("finish")
