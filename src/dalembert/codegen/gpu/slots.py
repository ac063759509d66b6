"""Where a thread keeps the values that find no register.

Slots below the number of staged inputs are the columns of these inputs, free after their last use. The next
are columns of shared memory beyond inputs and results, as far as there is room, and the rest local memory.
How many of them there are is known only when all code is written; the addresses are filled in then.
"""

from __future__ import annotations

from typing import Final, final

from dalembert.codegen.ir import LaneType, Value, Writer

__all__ = ["ThreadSlots"]

MARK: Final = "from slot "
INTO: Final = "into slot "


@final
class ThreadSlots:
    """`homes`: slots that are columns of inputs; `taken`: columns of shared memory that arrays have; `count`:
    slots in all. Slots asked to be kept have the columns after those."""

    def __init__(self, lane_type: LaneType, homes: int, taken: int) -> None:
        self.type = lane_type
        self.homes = homes
        self.taken = taken
        self.count = 0
        self.kept: dict[int, int] = {}
        self.shared = 0
        self.column: dict[int, int] = {}
        self.local: dict[int, int] = {}

    def load(self, writer: Writer, position: int) -> Value:
        return writer.let(f"{MARK}{position}")

    def store(self, writer: Writer, value: Value, position: int) -> None:
        writer.line(f"{value} {INTO}{position}")

    def keep(self, slots: set[int]) -> None:
        """Have these in shared memory after the phase."""
        own = sorted(slot for slot in slots if slot >= self.homes)
        self.kept = {slot: self.taken + k for k, slot in enumerate(own)}
        self.taken += len(own)

    def kept_column(self, slot: int) -> int:
        return self.kept.get(slot, slot)

    def constant(self, writer: Writer, number: float) -> int:
        """A new column that holds a number; the column."""
        self.taken += 1
        place = writer.address("%mine", (self.taken - 1) * self.type.size)
        writer.store(writer.constant(number), place, 0, self.type.size)
        return self.taken - 1

    def place(self, columns: int) -> int:
        """Decide where the slots are, in rows of at most `columns`; the columns that are taken then."""
        free = [slot for slot in range(self.homes, self.count) if slot not in self.kept]
        self.shared = max(min(len(free), columns - self.taken), 0)
        self.column = {slot: self.taken + k for k, slot in enumerate(free[: self.shared])} | self.kept
        self.column |= {slot: slot for slot in range(self.homes)}
        self.local = {slot: k for k, slot in enumerate(free[self.shared :])}
        return self.taken + self.shared

    def resolved(self, lines: list[str]) -> list[str]:
        """The lines with loads and stores of slots filled in."""
        found: list[str] = []
        for line in lines:
            if MARK in line:
                name, slot = line.split(f" = {MARK}")
                place = self._address(found, int(slot))
                found.append(f"{name} = load {self.type.text}, ptr {place}, align {self.type.size}")
            elif INTO in line:
                value, slot = line.split(f" {INTO}")
                place = self._address(found, int(slot))
                found.append(f"store {self.type.text} {value}, ptr {place}, align {self.type.size}")
            else:
                found.append(line)
        return found

    def _address(self, lines: list[str], slot: int) -> Value:
        base, place = ("%local", self.local[slot]) if slot in self.local else ("%mine", self.column[slot])
        name = f"%slot.{len(lines)}"
        lines.append(f"{name} = getelementptr i8, ptr {base}, i64 {place * self.type.size}")
        return name
