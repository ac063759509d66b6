"""The operation counter, in the terms of Featherstone 2008 §10.3.

Multiplications include divisions, additions include subtractions, negation is free, and sines and cosines
are counted apart. Only live operations count: what no result depends on is never executed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Final, final

import numpy as np

from dalembert.tracing.expression import Expression, live
from dalembert.tracing.operations import LEAF_OPS
from dalembert.tracing.program import Program, Straight

__all__ = ["OperationCount", "count_operations", "count_program"]


@final
@dataclass(frozen=True, slots=True)
class OperationCount:
    """The number of operations of each kind; `divisions` are among the `multiplications` as well."""

    multiplications: int = 0
    additions: int = 0
    divisions: int = 0
    square_roots: int = 0
    trigonometric: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        """Multiplications, divisions, additions and subtractions: the book's floating-point operations."""
        return self.multiplications + self.additions

    def __add__(self, other: OperationCount) -> OperationCount:
        return OperationCount(*[getattr(self, f.name) + getattr(other, f.name) for f in fields(self)])

    def __mul__(self, times: int) -> OperationCount:
        return OperationCount(*[times * getattr(self, f.name) for f in fields(self)])

    __rmul__ = __mul__

    def __str__(self) -> str:
        divisions = f" (of which {self.divisions} divisions)" if self.divisions else ""
        text = f"{self.multiplications} m{divisions} + {self.additions} a"
        apart = {"sqrt": self.square_roots, "trigonometric": self.trigonometric, "other": self.other}
        return text + "".join(f", {number} {name}" for name, number in apart.items() if number)


_CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "mul": ("multiplications",),
    "div": ("multiplications", "divisions"),
    "add": ("additions",),
    "sub": ("additions",),
    "fma": ("multiplications", "additions"),
    "neg": (),
    "sqrt": ("square_roots",),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan2"), ("trigonometric",)),
}


def count_operations(outputs: Iterable[Expression]) -> OperationCount:
    """Return the operations that the outputs need, each shared one counted once."""
    found: Counter[str] = Counter()
    for node in live(outputs):
        if node.op not in LEAF_OPS:
            found.update(_CATEGORIES.get(node.op, ("other",)))
    return OperationCount(**found)


def count_program(program: Program) -> OperationCount:
    """Return the operations of one run: those of a loop's case as often as it is chosen; `check` is not
    counted."""
    total = OperationCount()
    for statement in program.statements:
        if isinstance(statement, Straight):
            total += count_operations(statement.values)
            continue
        for number, case in enumerate(statement.cases):
            times = statement.count
            if statement.kinds is not None:
                times = int(np.count_nonzero(program.tables[statement.kinds][: statement.count] == number))
            sums = OperationCount(additions=sum(store.accumulate for store in case))
            total += times * (count_operations(store.value for store in case) + sums)
    return total
