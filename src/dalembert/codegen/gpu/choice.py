"""Which layout a kernel gets where none is asked for: a rule from measurements (design/gpu.md).

How many operations there are and how many numbers are alive at once decides. Long programs, whose code is
larger than the instruction cache, have four threads a sample, each with a part of them; and so have shorter
ones whose numbers four threads hold with ease. Their registers together hold what is alive, 128 each if that
is enough, or 168 or 255. A small batch, which leaves most of the GPU idle, then has its results in half the
time, and a large one loses nothing.

Other programs, results in pieces and loops have one thread a sample. Few numbers alive: the assembler's own
choice, many small threads. Many: all 255 registers, the rest in shared memory, two warps for each of a
processor's four parts. In between, and for double precision, whose numbers take two registers each, more
threads with fewer registers hide more latency than the spills cost.

Rollouts of code far larger than the instruction caches have larger blocks, whose warps run it in phase:
fetched once, it serves them all. (Four threads a sample are in phase anyway.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dalembert.codegen.gpu.architectures import Architecture
from dalembert.codegen.gpu.arrays import STAGED_RESULTS, Arrays, gathered_columns
from dalembert.codegen.gpu.layout import WARP, Layout
from dalembert.codegen.ir import LaneType
from dalembert.codegen.rollout import Rollout
from dalembert.codegen.schedule import Instructions, schedule
from dalembert.tracing.expression import Expression, live
from dalembert.tracing.program import Loop, Program, Straight

__all__ = ["choices", "default_layout", "most_alive"]

FEW: Final = 110
"""Numbers alive that the assembler keeps in registers while many threads run."""

SOME: Final = 300
"""Numbers alive for which, with one thread a sample, more threads with fewer registers are better than all of
them."""

PARTS: Final = 4
"""Threads of a sample: the limbs of most robots, and the schedulers of a processor."""

LONGEST: Final = 5000
"""Operations whose code is larger than the instruction cache: four threads a sample are better for batches of
nearly every size."""

LONG: Final = 3000
"""Operations from which on four threads are, too, where their registers hold all numbers with ease; and from
which on spills are planned in programs with loops: the assembler takes long to."""

EASE: Final = 0.6
"""Numbers alive over those planned to be in registers, where these hold them with ease."""

MORE: Final = 1.1
"""The same, at most."""

VAST: Final = 12_000
"""Operations from which on the code of a rollout is fetched anew at every step."""

PAUSES: Final = 8
"""Places in such code where the warps of a block wait for each other."""

ASIDE: Final = 25
"""Registers of a thread that hold no planned value: addresses, operands under way."""


def most_alive(instructions: Instructions) -> int:
    """The most computed values that are needed later, over all moments."""
    last = {
        operand: time for time, node in enumerate(instructions.order) for operand in instructions.args[node]
    }
    alive = most = 0
    for time, node in enumerate(instructions.order):
        alive += node in last
        most = max(most, alive)
        alive -= sum(
            last[operand] == time and not instructions.is_leaf(operand)
            for operand in set(instructions.args[node])
        )
    return most


def default_layout(
    program: Program,
    *,
    bits: int,
    architecture: Architecture,
    rollout: Rollout | None = None,
    alone: bool = False,
) -> Layout:
    """The layout by rule; `alone`: with one thread a sample."""
    many = planned(architecture, bits, block=64, registers=255, blocks=4)
    size = sum(len(live(_values(statement))) for statement in program.statements)
    vast = rollout is not None and size > VAST
    together = in_phase(architecture, bits, block=128, blocks=2)
    if len(program.statements) != 1 or not isinstance(program.statements[0], Straight):
        return together if vast else many if size > LONG else Layout(block=128)
    instructions = schedule(list(dict.fromkeys(program.statements[0].values)), fma=True)
    alive, operations = most_alive(instructions), len(instructions.order)
    gathered = gathered_columns(program) if rollout is None else 0
    in_pieces = not gathered and any(spec.size > STAGED_RESULTS for spec in program.outputs)
    taken = (sum(spec.size for spec in program.inputs) + gathered) * WARP * bits // 8
    for registers, blocks in ((128, 4), (168, 3), (255, 2)):
        block = WARP * PARTS
        layout = planned(architecture, bits, block=block, registers=registers, blocks=blocks, parts=PARTS)
        filled = alive / (PARTS * (layout.values or 1))
        if taken <= layout.shared and filled <= MORE:
            break
    long = operations >= LONGEST or (operations >= LONG and alive > FEW and filled <= EASE)
    held = not Arrays(program, rollout, LaneType(bits, 1), layout).scratch_elements
    if long and held and not alone and not (in_pieces and rollout is None):
        return layout
    return together if vast else _one_thread(program, alive, bits, architecture, rollout)


def _one_thread(
    program: Program, alive: int, bits: int, architecture: Architecture, rollout: Rollout | None
) -> Layout:
    """The layout of a straight program with one thread a sample."""
    many = planned(architecture, bits, block=64, registers=255, blocks=4)
    gathered = gathered_columns(program)
    if gathered and rollout is None:
        taken = sum(spec.size for spec in program.inputs) + gathered
        for blocks in (5, 4, 3, 2):
            layout = planned(architecture, bits, block=WARP, registers=255, blocks=blocks)
            if taken * WARP * bits // 8 <= layout.shared:
                return layout
    if alive <= FEW:
        return Layout(block=128 if bits == 32 else 64)
    if bits == 32:
        return planned(architecture, bits, block=64, registers=168, blocks=6) if alive <= SOME else many
    return many if alive <= SOME else planned(architecture, bits, block=64, registers=128, blocks=8)


def _values(statement: Straight | Loop) -> list[Expression]:
    if isinstance(statement, Straight):
        return list(statement.values)
    return [store.value for case in statement.cases for store in case]


def planned(
    architecture: Architecture, bits: int, *, block: int, registers: int, blocks: int, parts: int = 1
) -> Layout:
    """A layout whose slots are planned so that `blocks` blocks share a processor."""
    return Layout(
        block=block,
        registers=registers,
        values=(registers - ASIDE) * 32 // bits,
        shared=min(architecture.sm_bytes // blocks - 1024, architecture.shared_bytes) // 128 * 128,
        parts=parts,
    )


def in_phase(architecture: Architecture, bits: int, *, block: int, blocks: int) -> Layout:
    """Such a layout with all registers, whose warps wait for each other now and then."""
    layout = planned(architecture, bits, block=block, registers=255, blocks=blocks)
    return replace(layout, barriers=PAUSES)


def choices(architecture: Architecture, bits: int) -> list[Layout]:
    """Layouts worth measuring."""
    found = [Layout(block=block) for block in (64, 128, 256)]
    found += [Layout(block=block, staged=False) for block in (64, 128)]
    for block, registers, blocks in ((64, 255, 4), (128, 255, 2), (64, 200, 5), (64, 168, 6), (64, 128, 8)):
        layout = planned(architecture, bits, block=block, registers=registers, blocks=blocks)
        found += [layout, Layout(**{**layout.to_json(), "staged": False})]
    for parts, registers, blocks in (
        (2, 255, 4),
        (4, 128, 4),
        (4, 168, 3),
        (4, 255, 2),
        (8, 128, 2),
        (8, 255, 1),
    ):
        found.append(
            planned(architecture, bits, block=WARP * parts, registers=registers, blocks=blocks, parts=parts)
        )
    found += [in_phase(architecture, bits, block=128, blocks=2)]
    return [*found, in_phase(architecture, bits, block=256, blocks=1)]
