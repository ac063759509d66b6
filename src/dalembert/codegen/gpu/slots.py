"""Where a thread keeps the values that find no register.

Slots below the number of staged inputs are the columns of these inputs, free after their last use. The next
are columns of shared memory beyond inputs and results, as far as there is room, and the rest variables of the
thread, which the assembler keeps in registers or local memory. How many of them there are is known only when
all code is written; the addresses are filled in then.
"""

from __future__ import annotations

from typing import Final, final

from dalembert.codegen.ir import LaneType, Value, Writer

__all__ = ["ThreadSlots"]

MARK: Final = "slot:"


@final
class ThreadSlots:
    """`homes`: slots that are columns of inputs; `taken`: columns of shared memory that arrays have."""

    def __init__(self, lane_type: LaneType, homes: int, taken: int) -> None:
        self.type = lane_type
        self.homes = homes
        self.taken = taken
        self.shared = 0
        self.local = 0

    def load(self, writer: Writer, position: int) -> Value:
        address = writer.let(f"{MARK}{position}")
        return writer.let(f"load {self.type.text}, ptr {address}, align {self.type.size}")

    def store(self, writer: Writer, value: Value, position: int) -> None:
        address = writer.let(f"{MARK}{position}")
        writer.line(f"store {self.type.text} {value}, ptr {address}, align {self.type.size}")

    def place(self, count: int, columns: int) -> int:
        """Decide where `count` slots are, in rows of at most `columns`; the columns that they add."""
        own = max(count - self.homes, 0)
        self.shared = max(min(own, columns - self.taken), 0)
        self.local = own - self.shared
        return self.shared

    def opening(self) -> list[str]:
        """Lines that reserve local memory."""
        if not self.local:
            return []
        return [f"%local = alloca [{self.local} x {self.type.text}], align {self.type.size}"]

    def resolved(self, lines: list[str]) -> list[str]:
        """The lines with the addresses of slots filled in."""
        return [self._resolve(line) if MARK in line else line for line in lines]

    def _resolve(self, line: str) -> str:
        name, number = line.split(f" = {MARK}")
        slot = int(number)
        base, column = "%mine", slot
        if slot >= self.homes:
            own = slot - self.homes
            base, column = ("%mine", self.taken + own) if own < self.shared else ("%local", own - self.shared)
        return f"{name} = getelementptr i8, ptr {base}, i64 {column * self.type.size}"
