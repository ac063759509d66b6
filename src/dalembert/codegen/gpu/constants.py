"""Numbers of double precision in constant memory.

An instruction of a GPU holds a constant of 32 bits. Other numbers would be put together from halves by two
more instructions at every use, a quarter of the code of a humanoid's forward dynamics. From constant memory
they take one.
"""

from __future__ import annotations

import re
from typing import Final, final

__all__ = ["ConstantMemory"]

NAME: Final = "@numbers"
MOST: Final = 7000
"""Numbers that fit: constant memory has 64 kB."""

_NUMBER: Final = re.compile(r"0x[0-9A-F]{16}")
_ARITHMETIC: Final = re.compile(r"= (?:f(?:add|sub|mul|div) double |call double @llvm\.fma\.f64\()")


@final
class ConstantMemory:
    """Collects the numbers of lines that it goes over."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def replaced(self, lines: list[str]) -> list[str]:
        """The lines, with operands of arithmetic loaded from constant memory where they have more bits than
        an instruction holds."""
        found: list[str] = []
        for line in lines:
            if _ARITHMETIC.search(line):
                line = _NUMBER.sub(lambda match: self._load(match[0], found), line)
            found.append(line)
        return found

    def _load(self, number: str, lines: list[str]) -> str:
        if number.endswith("00000000") or (number not in self.places and len(self.places) >= MOST):
            return number
        place = self.places.setdefault(number, len(self.places))
        name = f"%number.{len(lines)}"
        address = f"getelementptr (i8, ptr addrspace(4) {NAME}, i64 {8 * place})"
        lines.append(f"{name} = load double, ptr addrspace(4) {address}, align 8")
        return name

    def definition(self) -> list[str]:
        """The memory. It is no constant to LLVM, which would put the numbers back into the instructions."""
        if not self.places:
            return []
        numbers = ", ".join(f"double {number}" for number in self.places)
        return [f"{NAME} = internal addrspace(4) global [{len(self.places)} x double] [{numbers}], align 8"]
