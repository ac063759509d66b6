"""Operation counts of a function of scalars, by tracing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dalembert.tracing.program import ArrayArgument, OperationCount, count_operations
from dalembert.tracing.trace import trace


def count(function: Callable[..., Any], **sizes: int | tuple[int, ...]) -> OperationCount:
    """The operations of function(**arrays), each argument an array of the given size."""
    inputs = [ArrayArgument(name, (size,) if isinstance(size, int) else size) for name, size in sizes.items()]
    return count_operations(trace(function, inputs).values)
