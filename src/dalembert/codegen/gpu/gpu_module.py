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

from dalembert.codegen.elementary import plain_definition
from dalembert.codegen.gpu.gpu_function import PHASE_PARAMETERS
from dalembert.codegen.gpu.launch import ARCHITECTURES, TRIPLE, Architecture, GpuSource, gpu_target_machine
from dalembert.codegen.ir import TIME_AGAIN, TIME_DELIVER, TIME_STEP, LaneType, Value, Writer
from dalembert.codegen.target import KERNEL_NAME, parse_module

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
_ONE: Final = LaneType(32, 1).constant(1.0)
_INLINED: Final = "alwaysinline nounwind"

_NEAR_OVERFLOW, _NEAR_UNDERFLOW = 2.0**100, 2.0**-100


def _approximate(w: Writer, function: str, x: Value) -> Value:
    """Write the processor's approximation of 1 / x ("rcp") or 1 / sqrt(x) ("rsqrt")."""
    return w.let(f'call float asm "{function}.approx.ftz.f32 $0, $1;", "=f,f"(float {x})')


def _unless_nan(w: Writer, value: Value, otherwise: Value) -> Value:
    return w.select(w.compare("ord", value, value), value, otherwise)


def _near_one(w: Writer, b: Value) -> Value:
    """Write the power of two by which an extreme b is multiplied."""
    size, one = w.abs(b), w.constant(1.0)
    large = w.compare("ogt", size, w.constant(_NEAR_OVERFLOW))
    small = w.compare("olt", size, w.constant(_NEAR_UNDERFLOW))
    return w.select(small, w.constant(2.0**64), w.select(large, w.constant(2.0**-64), one))


def _inverse(w: Writer, b: Value) -> tuple[Value, Value, Value]:
    """Write -b, y_0 and y_1."""
    y0, minus = _approximate(w, "rcp", b), w.neg(b)
    rest = w.fused_multiply_add(minus, y0, w.constant(1.0))
    return minus, y0, w.fused_multiply_add(y0, rest, y0)


def _reciprocal(w: Writer, given: Value) -> Value:
    factor = _near_one(w, given)
    _, y0, y1 = _inverse(w, w.mul(given, factor))
    return w.mul(_unless_nan(w, y1, y0), factor)


def _quotient(w: Writer, above: Value, below: Value) -> Value:
    factor = _near_one(w, below)
    b, a = w.mul(below, factor), w.mul(above, factor)
    minus, y0, y1 = _inverse(w, b)
    q = w.mul(a, y1)
    for _ in range(2):
        q = w.fused_multiply_add(w.fused_multiply_add(minus, q, a), y1, q)
    return _unless_nan(w, q, w.mul(a, y0))


def _scaled_root(w: Writer, given: Value, back: float) -> tuple[Value, Value, Value, Value, Value]:
    """Write the factor `back` of a root whose operand x was scaled, x, y = 1 / sqrt(x), s_0 and y / 2."""
    small, one = w.compare("olt", given, w.constant(_NEAR_UNDERFLOW)), w.constant(1.0)
    up, factor = w.select(small, w.constant(2.0**64), one), w.select(small, w.constant(back), one)
    x = w.mul(given, up)
    y = _approximate(w, "rsqrt", x)
    return factor, x, y, w.mul(x, y), w.mul(y, w.constant(0.5))


def _inverse_root(w: Writer, given: Value) -> Value:
    back, _, y0, s, half = _scaled_root(w, given, 2.0**32)
    rest = w.fused_multiply_add(w.neg(s), y0, w.constant(1.0))
    return w.mul(_unless_nan(w, w.fused_multiply_add(rest, half, y0), y0), back)


def _root(w: Writer, given: Value) -> Value:
    down, x, _, s0, half = _scaled_root(w, given, 2.0**-32)
    s1 = w.fused_multiply_add(w.fused_multiply_add(w.neg(s0), s0, x), half, s0)
    inside = w.compare("oge", given, w.constant(0.0))
    extreme = w.select(inside, given, w.constant(float("nan")))
    return w.select(w.compare("ord", s1, s1), w.mul(s1, down), extreme)


_WITHOUT_BRANCHES: Final[dict[str, tuple[Callable[..., Value], int]]] = {
    "reciprocal": (_reciprocal, 1),
    "quotient": (_quotient, 2),
    "inverse_root": (_inverse_root, 1),
    "root": (_root, 1),
}


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
    declared: set[str] = set()
    definitions = [
        plain_definition(Writer(LaneType(32, 1), fma=True, declared=declared), name, *body, _INLINED)
        for name, body in _WITHOUT_BRANCHES.items()
    ]
    return "\n".join([*lines, *sorted(declared), *definitions])


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
    module = parse_module(gpu_module(source))
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
