"""Double-precision constants in constant memory.

A GPU instruction has an immediate operand of 32 bits. Other constants would be assembled from halves by two
more instructions at every use, a quarter of the code of a humanoid's forward dynamics. A load from constant
memory takes one.
"""

from __future__ import annotations

import re
from typing import Final, final

__all__ = ["ConstantMemory"]

NAME: Final = "@numbers"
MAX_CONSTANTS: Final = 7000
"""Constants that fit: constant memory has 64 kB."""

_NUMBER: Final = re.compile(r"0x[0-9A-F]{16}")
_ARITHMETIC: Final = re.compile(r"= (?:f(?:add|sub|mul|div) double |call double @llvm\.fma\.f64\()")


@final
class ConstantMemory:
    """The constants collected from lines of LLVM text."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def load_constants(self, lines: list[str]) -> list[str]:
        """Return the lines with arithmetic operands loaded from constant memory if they have more bits than
        an immediate operand."""
        found: list[str] = []
        for line in lines:
            if _ARITHMETIC.search(line):
                line = _NUMBER.sub(lambda match: self._load(match[0], found), line)
            found.append(line)
        return found

    def _load(self, number: str, lines: list[str]) -> str:
        if number.endswith("00000000") or (number not in self.places and len(self.places) >= MAX_CONSTANTS):
            return number
        place = self.places.setdefault(number, len(self.places))
        name = f"%number.{len(lines)}"
        address = f"getelementptr (i8, ptr addrspace(4) {NAME}, i64 {8 * place})"
        lines.append(f"{name} = load double, ptr addrspace(4) {address}, align 8")
        return name

    def definition(self) -> list[str]:
        """Return the definition of the memory. LLVM does not know it as constant, or it would fold the
        loads."""
        if not self.places:
            return []
        numbers = ", ".join(f"double {number}" for number in self.places)
        return [f"{NAME} = internal addrspace(4) global [{len(self.places)} x double] [{numbers}], align 8"]
