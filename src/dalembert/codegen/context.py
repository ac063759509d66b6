"""The context that the statements of one kernel share while they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import final

from dalembert.codegen.body import Caller, Memory
from dalembert.codegen.elementary import call
from dalembert.codegen.ir import Value, Writer
from dalembert.codegen.memory import Place
from dalembert.codegen.outlining import (
    FUNCTION_INSTRUCTIONS,
    MIN_FUNCTION_INSTRUCTIONS,
    OutlinedFunction,
    Outliner,
    cut_points,
)
from dalembert.codegen.registers import Plan, allocate
from dalembert.codegen.schedule import Instructions, schedule
from dalembert.tracing.expression import Expression
from dalembert.tracing.program import Loop

__all__ = ["Context"]


@final
@dataclass(slots=True)
class Context:
    """The state of code generation for one kernel.

    `places` of all arrays and float tables; `spills`, the spill slots, and `slots`, their number; `proceed`,
    the condition and block that end long basic blocks (see `emit_instructions`); `call` writes elementary
    functions, `calls` tells whether they clobber registers; `homes` gives the slots of leaves, among the
    first `taken`, `share` whether results may take their slots (see `allocate`); `entering` is called with
    the case of a loop that is written next; `outliner` splits a large program into functions of about
    `function_instructions` instructions, None leaves it in one."""

    writer: Writer
    places: dict[str, Place]
    table_base: Value
    table_offsets: dict[str, int]
    table_lengths: dict[str, int]
    registers: int
    spills: Memory
    proceed: tuple[Value, str]
    slots: int = 0
    call: Caller = call
    calls: bool = True
    taken: int = 0
    share: bool = False
    homes: Callable[[Instructions], Mapping[int, int]] = lambda instructions: {}
    entering: Callable[[Loop, int], None] = lambda loop, case: None
    functions: set[str] = field(default_factory=set)
    outliner: Outliner | None = None
    function_instructions: int = FUNCTION_INSTRUCTIONS

    def schedule(self, values: list[Expression]) -> Instructions:
        instructions = schedule(values, fma=self.writer.fma)
        self.functions |= instructions.elementary_functions()
        return instructions

    def plan(
        self, instructions: Instructions, *, keep: Iterable[int] = (), eager: Iterable[int] = ()
    ) -> Plan:
        cuts = []
        if self._is_outlined(instructions):
            cuts = cut_points(instructions, self.function_instructions)
        plan = allocate(
            instructions,
            registers=self.registers,
            keep=keep,
            eager=eager,
            homes=self.homes(instructions),
            taken=self.taken,
            share=self.share,
            calls=self.calls,
            breaks=cuts,
        )
        self.slots = max(self.slots, plan.slots)
        return plan

    def begin_function(
        self, instructions: Instructions, tasks: Iterable[Callable[[], None]] = ()
    ) -> Callable[[], None] | None:
        """Begin a function for the code that follows, after the tasks, and return what ends it and begins
        another; None where the code stays in place and no task is done."""
        if self.outliner is None or not self._is_outlined(instructions):
            return None
        for task in tasks:
            task()
        self.outliner.open()
        return self.outliner.cut

    @property
    def outlined_functions(self) -> list[OutlinedFunction]:
        """The functions that code was outlined into."""
        return self.outliner.functions if self.outliner else []

    def cut_long(self) -> None:
        """Begin another function if the present one has grown long."""
        if self.outliner is not None:
            self.outliner.cut_long()

    def end_function(self) -> None:
        """End the function that was begun, if any."""
        if self.outliner is not None:
            self.outliner.close()

    def _is_outlined(self, instructions: Instructions) -> bool:
        return self.outliner is not None and len(instructions.order) >= MIN_FUNCTION_INSTRUCTIONS

    def reload(self, plan: Plan, node: int) -> Value:
        """Reload the value of a node that is kept in memory."""
        return self.spills.load(self.writer, plan.home[node])

    def look_up(self, table: str, index: Value) -> Value:
        """Load element floor(index) of a table of floats, clamped to its ends; the first element for NaN."""
        return self.places[table].look_up(self.writer, index, self.table_lengths[table])
