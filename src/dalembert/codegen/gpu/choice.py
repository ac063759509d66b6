"""The default launch layout of a kernel: a rule from measurements (design/gpu.md).

The number of operations and the largest number of live values decide. Long programs, whose code is larger
than the instruction cache, use four threads per sample, each with a part of the code; so do shorter ones with
low register pressure when divided among four threads. Together their registers hold all live values: 128 per
thread if that is enough, else 168 or 255. A small batch, which leaves most of the GPU idle, then takes half
the time, and a large one loses nothing.

Other programs, results in pieces and loops use one thread per sample. With few live values the assembler
chooses: many threads with few registers. With many, a thread has all 255 registers and spills to shared
memory, with two warps per scheduler of a multiprocessor. In between, and for double precision, whose values
take two registers each, higher occupancy with fewer registers hides more latency than the spills cost.

Rollouts whose code is far larger than the instruction caches use larger blocks, whose warps run it in phase:
the code is fetched once for all of them. (Four threads per sample are in phase anyway.)

Loops over rows read and write scratch memory, whose latency is most of their time. Shared memory and the
cache of a multiprocessor are one memory, so such programs leave it to the cache, in small blocks.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from dalembert.codegen.gpu.launch import WARP_SIZE, Architecture, Layout
from dalembert.codegen.gpu.shared_memory import STAGED_RESULTS, Arrays, gathered_columns
from dalembert.codegen.ir import LaneType
from dalembert.codegen.memory import Rollout, only_straight, stored_values
from dalembert.codegen.schedule import Instructions, schedule
from dalembert.tracing.expression import live
from dalembert.tracing.program import Program

MAX_ASSEMBLER_LIVE_VALUES: Final = 110
"""Live values up to which the assembler keeps all in registers at high occupancy."""

MAX_HIGH_OCCUPANCY_LIVE_VALUES: Final = 300
"""Live values up to which, with one thread per sample, more threads with fewer registers are faster than
threads with all registers."""

THREADS_PER_SAMPLE: Final = 4
"""Threads per sample: as many as most robots have limbs, and a multiprocessor has schedulers."""

INSTRUCTION_CACHE_OPERATIONS: Final = 5000
"""Operations from which on the code exceeds the instruction cache: four threads per sample are then faster
for batches of nearly every size."""

MIN_MULTITHREAD_OPERATIONS: Final = 3000
"""Operations from which on four threads are faster if their register pressure is low, and from which on
spills are planned in programs with loops, for which the assembler takes long."""

LOW_REGISTER_PRESSURE: Final = 0.6
"""Live values over planned registers, up to which the register pressure counts as low."""

MAX_REGISTER_PRESSURE: Final = 1.1
"""Live values over planned registers, at most, for four threads per sample."""

LARGE_ROLLOUT_OPERATIONS: Final = 12_000
"""Operations from which on the code of a rollout is fetched again at every step."""

ROLLOUT_BARRIERS: Final = 8
"""Barriers in such code, where the warps of a block wait for each other and stay in phase."""

ROW_SHARED_BYTES: Final = 4096
"""Shared memory of a block in programs with loops over rows: with 16 kB a step of rigid contact (A1, 4,096
samples) took 1.13 times as long, with 57 kB 1.38 times."""

RESERVED_REGISTERS: Final = 25
"""Registers of a thread that hold no planned value: addresses and operands in flight."""


def max_live_values(instructions: Instructions) -> int:
    """Return the largest number of computed values that are live at once."""
    last = {
        operand: time for time, node in enumerate(instructions.order) for operand in instructions.args[node]
    }
    live_values = most = 0
    for time, node in enumerate(instructions.order):
        live_values += node in last
        most = max(most, live_values)
        live_values -= sum(
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
    """Return the layout by rule; `alone`: with one thread per sample."""
    plan = partial(planned_layout, architecture, bits)
    many = plan(block=64, registers=255, blocks=4)
    size = sum(len(live(stored_values(statement))) for statement in program.statements)
    large = rollout is not None and size > LARGE_ROLLOUT_OPERATIONS
    together = replace(plan(block=128, registers=255, blocks=2), barriers=ROLLOUT_BARRIERS)
    if program.has_rows and size > MIN_MULTITHREAD_OPERATIONS:
        return replace(many, shared=ROW_SHARED_BYTES, barriers=ROLLOUT_BARRIERS if large else 0)
    statement = only_straight(program)
    if statement is None:
        return together if large else many if size > MIN_MULTITHREAD_OPERATIONS else Layout(block=128)
    instructions = schedule(list(dict.fromkeys(statement.values)), fma=True)
    live_values, operations = max_live_values(instructions), len(instructions.order)
    gathered = gathered_columns(program) if rollout is None else 0
    in_pieces = not gathered and any(spec.size > STAGED_RESULTS for spec in program.outputs)
    taken = (sum(spec.size for spec in program.inputs) + gathered) * WARP_SIZE * bits // 8
    for registers, blocks in ((128, 4), (168, 3), (255, 2)):
        parts = THREADS_PER_SAMPLE
        layout = plan(block=WARP_SIZE * parts, registers=registers, blocks=blocks, parts=parts)
        pressure = live_values / (parts * (layout.values or 1))
        if taken <= layout.shared and pressure <= MAX_REGISTER_PRESSURE:
            break
    long = operations >= INSTRUCTION_CACHE_OPERATIONS or (
        operations >= MIN_MULTITHREAD_OPERATIONS
        and live_values > MAX_ASSEMBLER_LIVE_VALUES
        and pressure <= LOW_REGISTER_PRESSURE
    )
    held = not Arrays(program, rollout, LaneType(bits, 1), layout).scratch_elements
    if long and held and not alone and not (in_pieces and rollout is None):
        return layout
    if large:
        return together
    for blocks in (5, 4, 3, 2) if gathered else ():
        layout = plan(block=WARP_SIZE, registers=255, blocks=blocks)
        if taken <= layout.shared:
            return layout
    if live_values <= MAX_ASSEMBLER_LIVE_VALUES:
        return Layout(block=128 if bits == 32 else 64)
    high_occupancy = live_values <= MAX_HIGH_OCCUPANCY_LIVE_VALUES
    if bits == 32:
        return plan(block=64, registers=168, blocks=6) if high_occupancy else many
    return many if high_occupancy else plan(block=64, registers=128, blocks=8)


def planned_layout(
    architecture: Architecture, bits: int, *, block: int, registers: int, blocks: int, parts: int = 1
) -> Layout:
    """Return a layout whose spill slots are planned so that `blocks` blocks share a multiprocessor."""
    return Layout(
        block=block,
        registers=registers,
        values=(registers - RESERVED_REGISTERS) * 32 // bits,
        shared=min(architecture.sm_bytes // blocks - 1024, architecture.shared_bytes) // 128 * 128,
        parts=parts,
    )
