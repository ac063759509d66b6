"""Several threads per sample: the workers of a straight statement, each with its own part, in stages.

The threads of a block are `parts` times its samples; thread t works on part t div samples of sample t mod
samples, so that a warp has one part of 32 samples. Values that cross to other workers are stored in columns
of the sample's shared row; a column is free again after the last stage that reads it. Barriers separate the
stages. A worker's own values stay in its registers across barriers, by a register plan of its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Set
from typing import Final, final

from dalembert.codegen.body import emit_instructions
from dalembert.codegen.context import Context
from dalembert.codegen.gpu.parts import divide
from dalembert.codegen.gpu.slots import SpillSlots
from dalembert.codegen.gpu.workers import BARRIER
from dalembert.codegen.ir import Value, Writer
from dalembert.codegen.memory import Place
from dalembert.codegen.registers import COMPUTE_STEP, SPILL_STEP, Plan, allocate
from dalembert.codegen.schedule import Instructions

__all__ = ["Team"]

FOREIGN: Final = "input"
"""The operation of another worker's value in the instructions of a worker that reads it: a leaf."""

Position = tuple[str, int]
Step = tuple[int, int, int]


@final
class Team:
    """The workers of a statement, with the instructions divided among them. `results` gives the node of each
    element that is stored; those of arrays that are `gathered` have columns for good."""

    def __init__(
        self,
        context: Context,
        instructions: Instructions,
        results: Mapping[Position, int],
        slots: SpillSlots,
        *,
        workers: int,
        gathered: Set[str],
    ) -> None:
        self.context = context
        self.instructions = instructions
        self.parts = divide(instructions, workers)
        self.workers = workers
        self.slots = slots
        self.gathered = {place: node for place, node in results.items() if place[0] in gathered}
        self.stored: dict[int, list[Position]] = {}
        for place, node in results.items():
            if place not in self.gathered:
                self.stored.setdefault(node, []).append(place)
        self.column = self._columns()
        self.conditions = self._conditions()
        self.own_slots = 0

    def _columns(self) -> dict[int, int]:
        """Return a column for each value that crosses, from the stage that computes it to the last that reads
        it."""
        worker, stage, program = self.parts.worker, self.parts.stage, self.instructions
        last = {node: self.parts.stages for node in self.gathered.values() if not program.is_leaf(node)}
        for node in program.order:
            for operand in program.args[node]:
                if worker[operand] not in (-1, worker[node]):
                    last[operand] = max(last.get(operand, 0), stage[node])
        column: dict[int, int] = {}
        used: list[tuple[int, int]] = []  # the last stage that reads it, and the column
        for node in sorted(last, key=lambda node: (stage[node], node)):
            if used and used[0][0] < stage[node]:
                column[node] = heapq.heappop(used)[1]
            else:
                column[node] = self.slots.taken
                self.slots.taken += 1
            heapq.heappush(used, (last[node], column[node]))
        return column

    def write_leaves(self) -> tuple[dict[Position, int], dict[Position, float]]:
        """Store results that are arguments or constants; return the columns of gathered results, and
        constants."""
        writer, program = self.context.writer, self.instructions
        for node in self.stored:
            if program.ops[node] == "constant":
                self._deliver(node, writer.constant(program.data[node]))
            elif program.is_leaf(node):
                self._deliver(node, self._fetch(node))
        constant = {
            place: program.data[node]
            for place, node in self.gathered.items()
            if program.ops[node] == "constant"
        }
        for node in self.gathered.values():
            if program.is_leaf(node) and program.ops[node] != "constant" and node not in self.column:
                self.column[node] = self.slots.taken
                self.slots.taken += 1
                self._row().store(writer, self._fetch(node), self.column[node])
        columns = {place: self.column[node] for place, node in self.gathered.items() if place not in constant}
        return columns, constant

    def write(self, worker: int) -> None:
        """Write the code of a worker."""
        context, writer, whole = self.context, self.context.writer, self.instructions
        own = self._own(worker)
        plan = allocate(own, registers=context.registers, calls=False)
        self.own_slots = max(self.own_slots, plan.slots)
        row, zero, one = self._row(), writer.constant(0.0), writer.constant(1.0)

        def store_result(node: int, value: Value) -> None:
            self._deliver(node, value)
            if node in self.column:
                row.store(
                    writer,
                    writer.select(value, one, zero) if whole.is_mask(node) else value,
                    self.column[node],
                )

        def fetch(node: int) -> Value:
            return self._fetch(node) if whole.is_leaf(node) else row.load(writer, self.column[node])

        values: dict[int, Value] = {}
        for stage, steps in enumerate(self._by_stage(plan.steps)):
            if stage:
                writer.line(BARRIER)
            for node in sorted(self.conditions.get((worker, stage), ())):
                values[node] = writer.compare("une", row.load(writer, self.column[node]), zero)
            emit_instructions(
                writer,
                own,
                Plan(steps, 0, {}),
                fetch=fetch,
                store_result=store_result,
                spills=_Slots(self.slots, worker, self.workers),
                proceed=context.proceed,
                look_up=context.look_up,
                call=context.call,
                values=values,
            )

    def place_slots(self) -> None:
        """Reserve the slots of all workers, once they are written."""
        self.slots.count = self.slots.homes + self.own_slots * self.workers

    def _row(self) -> Place:
        size = self.context.writer.type.size
        return Place("%mine", size, size)

    def _deliver(self, node: int, value: Value) -> None:
        for array, position in self.stored.get(node, ()):
            self.context.places[array].store(self.context.writer, value, position)

    def _fetch(self, node: int) -> Value:
        data = self.instructions.data[node]
        array, position = data if self.instructions.ops[node] == "input" else (data.array, data.offset)
        return self.context.places[array].load(self.context.writer, position)

    def _own(self, worker: int) -> Instructions:
        """Return the instructions of a worker, in the common order, by stages; other workers' values are
        leaves."""
        whole, parts = self.instructions, self.parts
        foreign = [owner not in (-1, worker) for owner in parts.worker]
        mine = [node for node in whole.order if parts.worker[node] == worker]
        return Instructions(
            ops=[
                FOREIGN if other and not whole.is_mask(node) else op
                for node, (op, other) in enumerate(zip(whole.ops, foreign))
            ],
            args=[() if other else args for args, other in zip(whole.args, foreign)],
            data=whole.data,
            roots=[],
            order=sorted(mine, key=parts.stage.__getitem__),
        )

    def _conditions(self) -> dict[tuple[int, int], set[int]]:
        """Return the conditions of other workers that a worker needs in a stage: they cross as numbers."""
        found: dict[tuple[int, int], set[int]] = {}
        worker, whole = self.parts.worker, self.instructions
        for node in whole.order:
            for operand in whole.args[node]:
                if worker[operand] not in (-1, worker[node]) and whole.is_mask(operand):
                    found.setdefault((worker[node], self.parts.stage[node]), set()).add(operand)
        return found

    def _by_stage(self, steps: list[Step]) -> list[list[Step]]:
        """Divide steps by stages: a load belongs to the computation that follows, a spill to the one
        before."""
        found: list[list[Step]] = [[] for _ in range(self.parts.stages)]
        before: list[Step] = []
        now = 0
        for step in steps:
            if step[0] == SPILL_STEP:
                found[now].append(step)
                continue
            before.append(step)
            if step[0] == COMPUTE_STEP:
                now = self.parts.stage[step[1]]
                found[now] += before
                before = []
        return found


@final
class _Slots:
    """The spill slots of one worker among those of all."""

    def __init__(self, slots: SpillSlots, worker: int, workers: int) -> None:
        self.slots = slots
        self.worker = worker
        self.workers = workers

    def load(self, writer: Writer, position: int) -> Value:
        return self.slots.load(writer, self._number(position))

    def store(self, writer: Writer, value: Value, position: int) -> None:
        self.slots.store(writer, value, self._number(position))

    def _number(self, position: int) -> int:
        return self.slots.homes + position * self.workers + self.worker
