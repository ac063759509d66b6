"""The size of a program and its limits.

Every operation costs time and memory to compile, whether a program is one statement or many. A program
above the limit is refused before that is spent: while it is traced, once the graph has far more nodes than
such a program needs, or when its operations are counted.

    DALEMBERT_MAX_OPERATIONS    another limit than `MAX_OPERATIONS`
"""

from __future__ import annotations

import os
from typing import Final

from dalembert.errors import ArgumentError, ProgramSizeError
from dalembert.tracing.expression import Expression
from dalembert.tracing.program import Program, Straight

__all__ = [
    "MAX_OPERATIONS",
    "WEIGHTS",
    "check_count",
    "check_size",
    "max_nodes",
    "max_operations",
    "program_size",
]

ENVIRONMENT: Final = "DALEMBERT_MAX_OPERATIONS"

MAX_OPERATIONS: Final = 2_000_000
"""Operations of a program, at most. So many take three to four minutes and 3 GB to compile
(design/codegen.md)."""

NODES_PER_OPERATION: Final = 2
"""Nodes that a trace may have for each operation that a program may have. Traces of large contact scenes have
1.5; the rest are intermediate results that no output needs."""


WEIGHTS: Final = {"floor": 14, "lookup": 64}
"""Operations that such an operation is compiled to: the lines of LLVM text with 8 lanes."""


def max_operations(default: int = MAX_OPERATIONS) -> int:
    """Return the largest number of operations that a program may have: `default`, or what the user says."""
    given = os.environ.get(ENVIRONMENT, "").strip()
    if not given:
        return default
    if not given.isdecimal() or not int(given):
        raise ArgumentError(f"{ENVIRONMENT}={given!r}: expected a number of operations, such as 5000000")
    return int(given)


def max_nodes() -> int:
    """Return the largest number of nodes that a graph may have while a function is traced."""
    return NODES_PER_OPERATION * max_operations()


def check_size(program: Program, default: int = MAX_OPERATIONS) -> int:
    """Return the operations of a program, or raise where they are too many."""
    return check_count(program_size(program), default)


def check_count(operations: int, default: int = MAX_OPERATIONS) -> int:
    """Return a number of operations, or raise where it is too large."""
    limit = max_operations(default)
    if operations > limit:
        raise ProgramSizeError(f"{operations:,} operations to compile; at most {limit:,} are allowed")
    return operations


def program_size(program: Program) -> int:
    """Return the operations and stores to compile; those of a loop count once, however often it runs, those
    of `WEIGHTS` several times."""
    total = _operations([program.check]) if program.check is not None else 0
    for statement in program.statements:
        if isinstance(statement, Straight):
            total += len(statement.stores) + _operations(list(statement.values))
            continue
        for case in statement.cases:
            total += len(case) + _operations([store.value for store in case])
    return total


def _operations(stack: list[Expression]) -> int:
    """Return the number of operations that expressions depend on."""
    seen: set[int] = set()
    more = 0
    while stack:
        node = stack.pop()
        if node.args and node.index not in seen:
            seen.add(node.index)
            stack.extend(node.args)
            if node.op in WEIGHTS:
                more += WEIGHTS[node.op] - 1
    return len(seen) + more
