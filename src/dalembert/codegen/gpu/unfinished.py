"""Loops without exit tests in their steps, for a GPU thread.

The step of a loop selects, for every carried value, the old value if the sample is done. The lanes of a CPU
need that, because they leave the loop together. A thread leaves as soon as its own sample is done, so that
inside the loop the exit flag is known to be zero.
"""

from __future__ import annotations

import dataclasses

from dalembert.tracing.expression import Expression, live
from dalembert.tracing.program import Loop

__all__ = ["without_exit_tests"]


def without_exit_tests(loop: Loop) -> Loop:
    """Return the loop with its exit flags replaced by zero, so that selects on them fold away."""
    cases = []
    for number, case in enumerate(loop.cases):
        flags = loop.flags(number)
        known: dict[int, Expression] = {}
        for node in live([store.value for store in case]):
            if node.op == "load" and node.data in flags:
                known[node.index] = node.graph.constant(0.0)
            elif any(item.index in known for item in node.args):
                known[node.index] = node.graph.with_arguments(
                    node, [known.get(item.index, item) for item in node.args]
                )
        cases.append(
            tuple(
                dataclasses.replace(store, value=known.get(store.value.index, store.value)) for store in case
            )
        )
    return dataclasses.replace(loop, cases=tuple(cases))
