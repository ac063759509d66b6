"""Which layout a kernel gets where none is asked for: a rule from measurements (design/gpu.md).

The most 32-bit numbers alive at once decide. Few: the assembler's own choice, many small threads. Many: all
255 registers, the rest in shared memory, two warps for each of a processor's four parts. In between, and for
double precision, whose numbers take two registers each, more threads with fewer registers hide more latency
than the spills cost.
"""

from __future__ import annotations

from typing import Final

from dalembert.codegen.gpu.architectures import Architecture
from dalembert.codegen.gpu.arrays import gathered_columns
from dalembert.codegen.gpu.layout import Layout
from dalembert.codegen.rollout import Rollout
from dalembert.codegen.schedule import Instructions, schedule
from dalembert.tracing.expression import Expression, live
from dalembert.tracing.program import Loop, Program, Straight

__all__ = ["choices", "default_layout", "most_alive"]

FEW: Final = 110
"""Numbers alive that the assembler keeps in registers while many threads run."""

SOME: Final = 300
"""Numbers alive for which more threads with fewer registers are better than all of them."""

LONG: Final = 3000
"""Operations from which on spills are planned in programs with loops too: the assembler takes long to."""

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
    program: Program, *, bits: int, architecture: Architecture, rollout: Rollout | None = None
) -> Layout:
    """The layout by rule."""
    many = planned(architecture, bits, block=64, registers=255, blocks=4)
    if len(program.statements) != 1 or not isinstance(program.statements[0], Straight):
        size = sum(len(live(_values(statement))) for statement in program.statements)
        return many if size > LONG else Layout(block=128)
    gathered = gathered_columns(program)
    if gathered and rollout is None:
        taken = sum(spec.size for spec in program.inputs) + gathered
        for block, blocks in ((32, 5), (32, 4), (32, 3), (32, 2)):
            layout = planned(architecture, bits, block=block, registers=255, blocks=blocks)
            if taken * block * bits // 8 <= layout.shared:
                return layout
    instructions = schedule(list(dict.fromkeys(program.statements[0].values)), fma=True)
    alive = most_alive(instructions)
    if alive <= FEW:
        return Layout(block=128 if bits == 32 else 64)
    if bits == 32:
        return planned(architecture, bits, block=64, registers=168, blocks=6) if alive <= SOME else many
    if alive <= SOME:
        return many
    return planned(architecture, bits, block=64, registers=128, blocks=8)


def _values(statement: Straight | Loop) -> list[Expression]:
    if isinstance(statement, Straight):
        return list(statement.values)
    return [store.value for case in statement.cases for store in case]


def planned(architecture: Architecture, bits: int, *, block: int, registers: int, blocks: int) -> Layout:
    """A layout whose slots are planned so that `blocks` blocks share a processor."""
    return Layout(
        block=block,
        registers=registers,
        values=(registers - ASIDE) * 32 // bits,
        shared=min(architecture.sm_bytes // blocks - 1024, architecture.shared_bytes) // 128 * 128,
    )


def choices(architecture: Architecture, bits: int) -> list[Layout]:
    """Layouts worth measuring."""
    found = [Layout(block=block) for block in (64, 128, 256)]
    found += [Layout(block=block, staged=False) for block in (64, 128)]
    for block, registers, blocks in ((64, 255, 4), (128, 255, 2), (64, 200, 5), (64, 168, 6), (64, 128, 8)):
        layout = planned(architecture, bits, block=block, registers=registers, blocks=blocks)
        found += [layout, Layout(**{**layout.to_json(), "staged": False})]
    return found
