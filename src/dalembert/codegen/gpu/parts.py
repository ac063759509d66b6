"""Thread assignment of straight-line code: the worker and the stage of each instruction.

    cones     an instruction whose result has one use joins the cone of that use: a tree of a few instructions
    workers   cones are assigned to workers by graph partitioning, such that every slab of the program's depth
              is balanced and few values cross (`owners.py`)
    times     list scheduling: each worker takes the ready cone with the longest path to a result; a value of
              another worker arrives later by the delay of a barrier
    stages    every value that crosses needs a barrier between the end of its cone and the start of its use:
              the fewest points in time that hit all these intervals

Limbs of a tree come out as the parts. Several delays and balance options are tried. The division with the
least cost is taken: the sum over stages of the slowest worker's instructions, loads and stores of crossing
values included.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final, final

from dalembert.codegen.elementary import ELEMENTARY_OPS, function_of
from dalembert.codegen.gpu.owners import BalanceOptions, TaskGraph
from dalembert.codegen.schedule import Instructions

__all__ = ["Parts", "divide"]

WEIGHTS: Final = {"div": 10.0, "sqrt": 10.0, "floor": 6.0, "lookup": 12.0}
ELEMENTARY_COST: Final = 25.0
"""[instructions] The cost of an operation that takes more than one."""

BARRIER_COST: Final = 20.0
"""[instructions] The cost of a barrier between two stages."""

MAX_CONE_COST: Final = 24.0
"""[instructions] The largest cost of a cone."""

CROSSING_DELAYS: Final = (60.0, 150.0)
"""[instructions] The delays of a value that crosses to another worker; each is tried."""

BALANCE_OPTIONS: Final = (
    BalanceOptions(6, 2.0),
    BalanceOptions(8, 1.0),
    BalanceOptions(12, 2.0),
    BalanceOptions(6, 4.0),
    BalanceOptions(8, 0.5),
)
"""The balance options; each is tried."""

MAX_ASSIGNED_CONES: Final = 20_000
"""Cones to assign over all tries: for a long program fewer balance options are tried."""


@final
@dataclass(frozen=True, slots=True)
class Parts:
    """The thread assignment: `worker` and `stage` of each computed node, -1 for others; the number of
    `stages`; `cost`, the sum over stages of the cost of the slowest worker."""

    worker: list[int]
    stage: list[int]
    stages: int
    cost: float


@final
@dataclass(frozen=True, slots=True)
class _Cones:
    """The cones: `of` gives the cone of each node, -1 for leaves; `before` and `after` the cones that a cone
    depends on and that depend on it; `weight` its cost; `shared` the number of values that two cones
    exchange."""

    of: list[int]
    weight: list[float]
    before: list[list[int]]
    after: list[list[int]]
    shared: list[dict[int, int]]


def divide(program: Instructions, workers: int) -> Parts:
    """Divide the instructions among workers."""
    cones = _cones(program)
    order = _in_order(cones)
    tasks = TaskGraph(cones.weight, _depths(cones, order), cones.shared, workers)
    found = []
    for balance in BALANCE_OPTIONS[: max(1, MAX_ASSIGNED_CONES // max(1, len(cones.weight)))]:
        owner = tasks.assign_workers(balance)
        for delay in CROSSING_DELAYS:
            start = _start_times(cones, order, owner, workers, delay)
            found.append(_stages(program, cones, owner, start, workers))
    return min(found, key=lambda parts: parts.cost)


def _weight(op: str) -> float:
    return ELEMENTARY_COST if op in ELEMENTARY_OPS else WEIGHTS.get(op, 1.0)


def _cones(program: Instructions) -> _Cones:
    ops, args = program.ops, program.args
    users: dict[int, set[int]] = {node: set() for node in program.order}
    for node in program.order:
        for operand in args[node]:
            if operand in users:
                users[operand].add(node)
    roots = set(program.roots)
    of = [-1] * len(ops)
    weight: list[float] = []
    pairs: dict[tuple[str, tuple[int, ...]], int] = {}
    for node in reversed(program.order):
        own = _weight(ops[node])
        if ops[node] in ELEMENTARY_OPS:
            # Sine and cosine of an angle are one call.
            key = (function_of(ops[node]), args[node])
            if key not in pairs:
                pairs[key] = len(weight)
                weight.append(own)
            of[node] = pairs[key]
            continue
        if len(users[node]) == 1 and node not in roots:
            user = next(iter(users[node]))
            if ops[user] not in ELEMENTARY_OPS and weight[of[user]] + own <= MAX_CONE_COST:
                of[node] = of[user]
                weight[of[user]] += own
                continue
        of[node] = len(weight)
        weight.append(own)
    shared: list[dict[int, int]] = [{} for _ in weight]
    before: list[set[int]] = [set() for _ in weight]
    after: list[list[int]] = [[] for _ in weight]
    seen: set[tuple[int, int]] = set()
    for node in program.order:
        cone = of[node]
        for operand in args[node]:
            other = of[operand]
            if other < 0 or other == cone or (operand, cone) in seen:
                continue
            seen.add((operand, cone))
            shared[cone][other] = shared[other][cone] = shared[cone].get(other, 0) + 1
            if other not in before[cone]:
                before[cone].add(other)
                after[other].append(cone)
    return _Cones(of, weight, [sorted(needed) for needed in before], after, shared)


def _in_order(cones: _Cones) -> list[int]:
    """Return the cones in topological order."""
    waiting = [len(needed) for needed in cones.before]
    order = [cone for cone, count in enumerate(waiting) if not count]
    for cone in order:
        for other in cones.after[cone]:
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)
    return order


def _depths(cones: _Cones, order: list[int]) -> list[float]:
    """Return the depth of each cone in the program: the middle of its earliest and latest time."""
    head, tail = list(cones.weight), list(cones.weight)
    for cone in order:
        head[cone] += max((head[other] for other in cones.before[cone]), default=0.0)
    for cone in reversed(order):
        tail[cone] += max((tail[other] for other in cones.after[cone]), default=0.0)
    return [early - late for early, late in zip(head, tail)]


def _start_times(
    cones: _Cones, order: list[int], owner: list[int], workers: int, delay: float
) -> list[float]:
    """Return the start time of each cone by list scheduling, longest path to a result first."""
    tail = list(cones.weight)
    for cone in reversed(order):
        tail[cone] += max(
            (tail[other] + delay * (owner[other] != owner[cone]) for other in cones.after[cone]), default=0.0
        )
    waiting = [len(needed) for needed in cones.before]
    ready, start, free = [0.0] * len(tail), [0.0] * len(tail), [0.0] * workers
    coming: list[list[tuple[float, int]]] = [[] for _ in range(workers)]
    there: list[list[tuple[float, int]]] = [[] for _ in range(workers)]
    for cone, count in enumerate(waiting):
        if not count:
            heapq.heappush(coming[owner[cone]], (0.0, cone))
    for _ in tail:
        moments = [
            free[k] if there[k] else max(free[k], coming[k][0][0]) if coming[k] else float("inf")
            for k in range(workers)
        ]
        worker = min(range(workers), key=moments.__getitem__)
        now = moments[worker]
        while coming[worker] and coming[worker][0][0] <= now:
            cone = heapq.heappop(coming[worker])[1]
            heapq.heappush(there[worker], (-tail[cone], cone))
        cone = heapq.heappop(there[worker])[1]
        start[cone] = now
        free[worker] = now + cones.weight[cone]
        for other in cones.after[cone]:
            ready[other] = max(ready[other], free[worker] + delay * (owner[other] != worker))
            waiting[other] -= 1
            if not waiting[other]:
                heapq.heappush(coming[owner[other]], (ready[other], other))
    return start


def _stages(
    program: Instructions, cones: _Cones, owner: list[int], start: list[float], workers: int
) -> Parts:
    """Place as few barriers as possible, at starts of cones, and return the parts with their cost."""
    ends = [time + weight for time, weight in zip(start, cones.weight)]
    barriers: list[float] = []
    for cone in sorted(range(len(start)), key=start.__getitem__):
        foreign = [ends[other] for other in cones.before[cone] if owner[other] != owner[cone]]
        if foreign and (not barriers or max(foreign) > barriers[-1]):
            barriers.append(start[cone])
    stage_of = [bisect_right(barriers, time) for time in start]
    worker = [owner[cone] if cone >= 0 else -1 for cone in cones.of]
    stage = [stage_of[cone] if cone >= 0 else -1 for cone in cones.of]
    loads = [[0.0] * workers for _ in range(len(barriers) + 1)]
    for cone, weight in enumerate(cones.weight):
        loads[stage_of[cone]][owner[cone]] += weight
    stored: set[int] = set()
    fetched: set[tuple[int, int]] = set()
    for node in program.order:
        here = worker[node]
        for operand in program.args[node]:
            if worker[operand] < 0 or worker[operand] == here or (operand, here) in fetched:
                continue
            fetched.add((operand, here))
            loads[stage[node]][here] += 1.0
            if operand not in stored:
                stored.add(operand)
                loads[stage[operand]][worker[operand]] += 1.0
    cost = sum(map(max, loads)) + BARRIER_COST * len(barriers)
    return Parts(worker, stage, len(barriers) + 1, cost)
