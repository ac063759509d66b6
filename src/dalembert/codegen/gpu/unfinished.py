"""Loops of a thread: it leaves one as soon as its own sample is done.

A step of a loop says for every value it carries "what it was, where the sample is done". The lanes of a CPU
need that, since they leave together. A thread that is still inside knows that its sample is not done.
"""

from __future__ import annotations

import dataclasses

from dalembert.tracing.expression import Expression, live
from dalembert.tracing.program import Loop

__all__ = ["unfinished"]


def unfinished(loop: Loop) -> Loop:
    """The loop without the questions whose answers are known inside it."""
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
