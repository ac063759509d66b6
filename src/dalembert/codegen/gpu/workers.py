"""The code of workers, where several threads compute a sample, as functions for the GPU and for the host.

On the GPU each worker is one function that runs through all its stages, with barriers on the way, and a phase
calls that of the thread's worker. On the host, where a phase is a loop over threads, each stage is a phase of
its own: the same lines, cut at the barriers, and what a worker keeps in registers over one goes through the
thread's memory, by a store after its definition and a load at the start of the stages that use it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from dalembert.codegen.gpu.source import GpuSource

__all__ = ["BARRIER", "BEGIN", "NEVER", "dispatch_phase", "stage_by_stage"]

BARRIER: Final = "call void @pace()"
"""The line between two stages."""

BEGIN: Final = "; the stages"
"""The line after what all stages of a worker begin with."""

NEVER: Final = "never"
"""The block that ends the phase if a condition fails that always holds."""

_DEFINED: Final = re.compile(r"(%[\w.]+) = (.*)")
_USED: Final = re.compile(r"%[\w.]+")
_CONDITION: Final = re.compile(r"[fi]cmp |(?:and|or|xor) i1 ")


def dispatch_phase(source: GpuSource, phase_parameters: Sequence[str]) -> list[str]:
    """Return the phase for the GPU, which dispatches each thread to the code of its worker."""
    if not source.workers:
        return []
    return _phase(source, phase_parameters, "compute", list(source.workers))


def stage_by_stage(source: GpuSource, phase_parameters: Sequence[str]) -> tuple[list[str], int, int]:
    """Return the phases for the host, their number, and the bytes of a thread's memory."""
    if not source.workers:
        return [], 0, source.local_bytes
    start = -(-source.local_bytes // 8) * 8
    found = [_cut(lines, "float" if source.info.bits == 32 else "double", start) for lines in source.workers]
    count = len(found[0][0])
    text: list[str] = []
    for number in range(count):
        functions = [stages[number] for stages, _ in found]
        text += _phase(source, phase_parameters, f"compute.{number}", functions)
    return text, count, max(size for _, size in found)


def _phase(
    source: GpuSource, phase_parameters: Sequence[str], name: str, functions: Sequence[Sequence[str]]
) -> list[str]:
    """Return the functions of the workers, and one that calls the function of the thread's worker."""
    parameters = ", ".join((*source.parameters, *phase_parameters))
    text = []
    for k, lines in enumerate(functions):
        text.append(f"define internal void @{name}.worker{k}({parameters}) alwaysinline nounwind {{")
        text += [*lines, "}"]
    text += [f"define internal void @{name}({parameters}) alwaysinline nounwind {{", "entry:"]
    text.append(f"%part = udiv i32 %thread, {source.info.samples}")
    cases = " ".join(f"i32 {k}, label %part{k}" for k in range(1, len(functions)))
    text.append(f"switch i32 %part, label %part0 [ {cases} ]")
    for k in range(len(functions)):
        text += [f"part{k}:", f"call void @{name}.worker{k}({parameters})", "ret void"]
    return [*text, "}"]


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
