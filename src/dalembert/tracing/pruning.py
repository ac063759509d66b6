"""Dead-store elimination: stores that nothing reads, and states that nothing writes or reads, are removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dalembert.tracing.expression import live
from dalembert.tracing.program import IndexedStore, Loop, Program

__all__ = ["prune"]


def prune(program: Program) -> Program:
    """Return the program without the stores to states whose elements are never read."""
    loops = [item for item in program.statements if isinstance(item, Loop)]
    while True:
        read = _read(program, loops)
        kept = [_prune_loop(program, loop, read) for loop in loops]
        if all(new is old for new, old in zip(kept, loops, strict=True)):
            break
        loops = kept
    written = {store.address.array for loop in loops for case in loop.cases for store in case}
    states = tuple(spec for spec in program.states if spec.name in written or read[spec.name].any())
    return replace(program, states=states, statements=tuple(loop for loop in loops if any(loop.cases)))


def _read(program: Program, loops: list[Loop]) -> dict[str, npt.NDArray[np.bool_]]:
    """Return masks of the state elements that some store reads; all elements of outputs count as read."""
    read = {spec.name: np.zeros(spec.size, bool) for spec in program.states}
    for loop in loops:
        for number, case in enumerate(loop.cases):
            own = loop.own_iterations(program.tables, number)
            for flag in loop.flags(number):
                read[flag.array][flag.positions(program.tables, own)] = True
            for node in live([store.value for store in case]):
                if node.op == "load" and node.data.array in read:
                    read[node.data.array][node.data.positions(program.tables, own)] = True
    read.update({spec.name: np.ones(spec.size, bool) for spec in program.outputs})
    return read


def _prune_loop(program: Program, loop: Loop, read: dict[str, npt.NDArray[np.bool_]]) -> Loop:
    def useful(store: IndexedStore, own: npt.NDArray[Any]) -> bool:
        return bool(read[store.address.array][store.address.positions(program.tables, own)].any())

    cases = []
    for number, case in enumerate(loop.cases):
        own = loop.own_iterations(program.tables, number)
        cases.append(tuple(store for store in case if useful(store, own)))
    changed = any(len(new) < len(old) for new, old in zip(cases, loop.cases, strict=True))
    return replace(loop, cases=tuple(cases)) if changed else loop
