"""Several threads per sample: the workers of a straight statement, each with its own part, in stages.

The threads of a block are `parts` times its samples; thread t works on part t div samples of sample t mod
samples, so that a warp has one part of 32 samples. Values that cross to other workers are stored in columns
of the sample's shared row; a column is free again after the last stage that reads it. Barriers separate the
stages. A worker's own values stay in its registers across barriers, by a register plan of its own.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Final, final

from dalembert.codegen.elementary import ELEMENTARY_OPS, function_of
from dalembert.codegen.gpu.launch import BARRIER
from dalembert.codegen.gpu.shared_memory import SlotView, SpillSlots
from dalembert.codegen.ir import Value
from dalembert.codegen.memory import Place
from dalembert.codegen.schedule import COMPUTE_STEP, SPILL_STEP, Instructions, Step, allocate
from dalembert.codegen.statement_code import Context, Position, emit_instructions

# Work partition: tasks that exchange values are assigned to workers, with balanced loads and few exchanges.
#
# The graph is coarsened repeatedly by matching the two tasks that share most values; the few clusters of the
# coarsest graph are assigned to workers. During uncoarsening, clusters, then their halves, down to single
# tasks, move to another worker where that lowers
#
#     J = balance sum_s sum_w load(w, s)^2 / mean_s  +  4 values that cross,
#
# s the slabs of the program's depth, because a worker with much work early and none later would keep the
# others waiting. (The multilevel method of Karypis and Kumar, "Multilevel k-way partitioning scheme for
# irregular graphs", 1998, with slabs for balance.)

Graph = list[dict[int, int]]
Loads = list[dict[int, float]]

CROSSING_COST: Final = 4.0
"""The weight of a value that crosses from one worker to another, in the objective J."""

CLUSTERS_PER_WORKER: Final = 6
"""Clusters per worker at which coarsening ends."""

MAX_REFINEMENT_ROUNDS: Final = 4
"""Passes over all tasks in one refinement, at most."""


@final
class TaskGraph:
    """A graph of tasks and the values that they share, coarsened by matching pairs of tasks into clusters.

    `weight` and `depth` of each task; `shared`: for each task the others that it exchanges values with, and
    how many.
    """

    def __init__(self, weight: list[float], depth: list[float], shared: Graph, workers: int) -> None:
        self.weight = weight
        self.by_depth = sorted(range(len(weight)), key=depth.__getitem__)
        self.workers = workers
        self.graphs = [shared]
        self.joined: list[list[int]] = []
        self.total = sum(weight)
        limit = self.total / (workers * CLUSTERS_PER_WORKER)
        while len(self.graphs[-1]) > workers * CLUSTERS_PER_WORKER:
            joined = _match(self.graphs[-1], weight, limit)
            if max(joined) + 1 > 0.95 * len(weight):
                break
            merged, heavier = _merge(joined, self.graphs[-1], weight)
            self.graphs.append(merged)
            self.joined.append(joined)
            weight = heavier

    def assign_workers(self, slabs: int, balance: float) -> list[int]:
        """Return the worker of each task. Slabs divide the work, sorted by depth, into equal parts."""
        loads: list[Loads] = [[{} for _ in self.weight]]
        done = 0.0
        for task in self.by_depth:
            loads[0][task] = {min(int(slabs * done / self.total), slabs - 1): self.weight[task]}
            done += self.weight[task]
        for joined in self.joined:
            loads.append([{} for _ in range(max(joined) + 1)])
            for task, cluster in enumerate(joined):
                mine = loads[-1][cluster]
                for slab, weight in loads[-2][task].items():
                    mine[slab] = mine.get(slab, 0.0) + weight
        worker_loads = _WorkerLoads(self.workers, slabs, balance, loads[0])
        graph, load = self.graphs[-1], loads[-1]
        owner = [-1] * len(graph)
        for task in sorted(range(len(graph)), key=lambda task: -sum(load[task].values())):
            worker_loads.improve(task, graph[task], load[task], owner)
        worker_loads.refine(graph, load, owner)
        for level in reversed(range(len(self.joined))):
            owner = [owner[cluster] for cluster in self.joined[level]]
            worker_loads.refine(self.graphs[level], loads[level], owner)
        return owner


def _match(graph: Graph, weight: list[float], limit: float) -> list[int]:
    """Match tasks in pairs; return the cluster of each task, which is a pair or the task alone."""
    mate = [-1] * len(graph)
    for task in sorted(range(len(graph)), key=weight.__getitem__):
        if mate[task] >= 0:
            continue
        best, most = -1, 0.0
        for other, count in graph[task].items():
            if mate[other] < 0 and weight[task] + weight[other] <= limit:
                closeness = count / (min(weight[task], weight[other]) + max(weight[task], weight[other]) / 4)
                if closeness > most:
                    best, most = other, closeness
        if best >= 0:
            mate[task], mate[best] = best, task
    joined, count = [-1] * len(graph), 0
    for task in range(len(graph)):
        if joined[task] < 0:
            joined[task] = count
            if mate[task] >= 0:
                joined[mate[task]] = count
            count += 1
    return joined


def _merge(joined: list[int], graph: Graph, weight: list[float]) -> tuple[Graph, list[float]]:
    count = max(joined) + 1
    merged: Graph = [{} for _ in range(count)]
    heavier = [0.0] * count
    for task, cluster in enumerate(joined):
        heavier[cluster] += weight[task]
        mine = merged[cluster]
        for other, common in graph[task].items():
            if joined[other] != cluster:
                mine[joined[other]] = mine.get(joined[other], 0) + common
    return merged, heavier


@final
class _WorkerLoads:
    """The load of each worker, by slabs."""

    def __init__(self, workers: int, slabs: int, balance: float, loads: Loads) -> None:
        self.workers = range(workers)
        self.load = [[0.0] * slabs for _ in self.workers]
        sums = [0.0] * slabs
        for load in loads:
            for slab, weight in load.items():
                sums[slab] += weight
        self.scale = [balance * workers / max(each, 1.0) for each in sums]

    def refine(self, graph: Graph, loads: Loads, owner: list[int]) -> None:
        """Move tasks to better workers until no move improves J."""
        for _ in range(MAX_REFINEMENT_ROUNDS):
            if not sum([self.improve(k, graph[k], loads[k], owner) for k in range(len(graph))]):
                return

    def improve(self, task: int, near: dict[int, int], load: dict[int, float], owner: list[int]) -> bool:
        """Assign a task to the best worker and return whether the worker changed."""
        here, common = owner[task], [0] * len(self.workers)
        for other, count in near.items():
            if owner[other] >= 0:
                common[owner[other]] += count
        if here >= 0:
            if common[here] == sum(common):
                return False
            self._add(here, load, -1.0)
        worths = [
            CROSSING_COST * common[worker]
            - sum(
                self.scale[slab] * weight * (2.0 * self.load[worker][slab] + weight)
                for slab, weight in load.items()
            )
            for worker in self.workers
        ]
        best = max(self.workers, key=worths.__getitem__)
        if here >= 0 and worths[best] <= worths[here] + 1e-9:
            best = here
        self._add(best, load, 1.0)
        owner[task] = best
        return best != here

    def _add(self, worker: int, load: dict[int, float], sign: float) -> None:
        mine = self.load[worker]
        for slab, weight in load.items():
            mine[slab] += sign * weight


# Thread assignment of straight-line code: the worker and the stage of each instruction.
#
#   cones     an instruction whose result has one use joins the cone of that use: a tree of a few instructions
#   workers   cones are assigned to workers by graph partitioning, such that every slab of the program's depth
#               is balanced and few values cross (`TaskGraph`)
#   times     list scheduling: each worker takes the ready cone with the longest path to a result; a value of
#               another worker arrives later by the delay of a barrier
#     stages    every value that crosses needs a barrier between the end of its cone and the start of its use:
#               the fewest points in time that hit all these intervals
#
# Limbs of a tree come out as the parts. Several delays and balance options are tried. The division with the
# least cost is taken: the sum over stages of the slowest worker's instructions, loads and stores of crossing
# values included.

WEIGHTS: Final = {"div": 10.0, "sqrt": 10.0, "floor": 6.0, "lookup": 12.0}
ELEMENTARY_COST: Final = 25.0
"""[instructions] The cost of an operation that takes more than one."""

BARRIER_COST: Final = 20.0
"""[instructions] The cost of a barrier between two stages."""

MAX_CONE_COST: Final = 24.0
"""[instructions] The largest cost of a cone."""

CROSSING_DELAYS: Final = (60.0, 150.0)
"""[instructions] The delays of a value that crosses to another worker; each is tried."""

BALANCE_OPTIONS: Final = ((6, 2.0), (8, 1.0), (12, 2.0), (6, 4.0), (8, 0.5))
"""The number of slabs of the program's depth, and the weight of balance in J; each pair is tried."""

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
    waiting = [len(needed) for needed in cones.before]
    order = [cone for cone, count in enumerate(waiting) if not count]  # topological
    for cone in order:
        for other in cones.after[cone]:
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)
    head, tail = list(cones.weight), _path_lengths(cones, order, [0] * len(order), 0.0)
    for cone in order:
        head[cone] += max((head[other] for other in cones.before[cone]), default=0.0)
    depth = [early - late for early, late in zip(head, tail)]  # the middle of earliest and latest time
    tasks = TaskGraph(cones.weight, depth, cones.shared, workers)
    found = []
    for slabs, balance in BALANCE_OPTIONS[: max(1, MAX_ASSIGNED_CONES // max(1, len(cones.weight)))]:
        owner = tasks.assign_workers(slabs, balance)
        for delay in CROSSING_DELAYS:
            start = _start_times(cones, order, owner, workers, delay)
            found.append(_stages(program, cones, owner, start, workers))
    return min(found, key=lambda parts: parts.cost)


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
        own = ELEMENTARY_COST if ops[node] in ELEMENTARY_OPS else WEIGHTS.get(ops[node], 1.0)
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


def _path_lengths(cones: _Cones, order: list[int], owner: list[int], delay: float) -> list[float]:
    """Return the longest path from each cone to a result; `delay` for each change of the worker."""
    tail = list(cones.weight)
    for cone in reversed(order):
        tail[cone] += max(
            (tail[other] + delay * (owner[other] != owner[cone]) for other in cones.after[cone]), default=0.0
        )
    return tail


def _start_times(
    cones: _Cones, order: list[int], owner: list[int], workers: int, delay: float
) -> list[float]:
    """Return the start time of each cone by list scheduling, longest path to a result first."""
    tail = _path_lengths(cones, order, owner, delay)
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
    for operand, node in _crossings(program, worker):
        here = worker[node]
        if (operand, here) not in fetched:
            fetched.add((operand, here))
            loads[stage[node]][here] += 1.0
            if operand not in stored:
                stored.add(operand)
                loads[stage[operand]][worker[operand]] += 1.0
    cost = sum(map(max, loads)) + BARRIER_COST * len(barriers)
    return Parts(worker, stage, len(barriers) + 1, cost)


def _crossings(program: Instructions, worker: list[int]) -> Iterator[tuple[int, int]]:
    """Yield (operand, node) for the operands that another worker computes than the node's."""
    for node in program.order:
        for operand in program.args[node]:
            if worker[operand] not in (-1, worker[node]):
                yield operand, node


FOREIGN: Final = "input"
"""The operation of another worker's value in the instructions of a worker that reads it: a leaf."""


@final
class Team:
    """The workers of a statement, with the instructions divided among them. `results` gives the node of each
    element that is stored; those of arrays that are `gathered` have columns for good."""

    def __init__(
        self,
        context: Context,
        instructions: Instructions,
        results: Mapping[Position, int],
        slots: SpillSlots,
        *,
        workers: int,
        gathered: Set[str],
    ) -> None:
        self.context = context
        self.instructions = instructions
        self.workers = workers
        self.parts = divide(instructions, workers)
        self.slots = slots
        self.gathered = {place: node for place, node in results.items() if place[0] in gathered}
        self.stored: dict[int, list[Position]] = {}
        for place, node in results.items():
            if place not in self.gathered:
                self.stored.setdefault(node, []).append(place)
        self.column = self._columns()
        self.conditions = self._conditions()
        self.own_slots = 0

    def _columns(self) -> dict[int, int]:
        """Return the columns of values that cross, each from the stage that computes it to its last use."""
        worker, stage, program = self.parts.worker, self.parts.stage, self.instructions
        last = {node: self.parts.stages for node in self.gathered.values() if not program.is_leaf(node)}
        for operand, node in _crossings(program, worker):
            last[operand] = max(last.get(operand, 0), stage[node])
        column: dict[int, int] = {}
        used: list[tuple[int, int]] = []  # the last stage that reads it, and the column
        for node in sorted(last, key=lambda node: (stage[node], node)):
            if used and used[0][0] < stage[node]:
                column[node] = heapq.heappop(used)[1]
            else:
                column[node] = self.slots.taken
                self.slots.taken += 1
            heapq.heappush(used, (last[node], column[node]))
        return column

    def write_leaves(self) -> tuple[dict[Position, int], dict[Position, float]]:
        """Store results that are leaves; return the columns of gathered results, and constants."""
        writer, program = self.context.writer, self.instructions
        for node in self.stored:
            if program.ops[node] == "constant":
                self._deliver(node, writer.constant(program.data[node]))
            elif program.is_leaf(node):
                self._deliver(node, self.context.fetch(program, node))
        constant = {
            place: program.data[node]
            for place, node in self.gathered.items()
            if program.ops[node] == "constant"
        }
        for node in self.gathered.values():
            if program.is_leaf(node) and program.ops[node] != "constant" and node not in self.column:
                self.column[node] = self.slots.taken
                self.slots.taken += 1
                self._row().store(writer, self.context.fetch(program, node), self.column[node])
        columns = {place: self.column[node] for place, node in self.gathered.items() if place not in constant}
        return columns, constant

    def write(self, worker: int) -> None:
        """Write the code of a worker."""
        context, writer, whole = self.context, self.context.writer, self.instructions
        own = self._own(worker)
        plan = allocate(own, registers=context.registers, calls=False)
        self.own_slots = max(self.own_slots, plan.slots)
        row, zero, one = self._row(), writer.constant(0.0), writer.constant(1.0)

        def store_result(node: int, value: Value) -> None:
            self._deliver(node, value)
            if node in self.column:
                number = writer.select(value, one, zero) if whole.is_mask(node) else value
                row.store(writer, number, self.column[node])

        def fetch(node: int) -> Value:
            return context.fetch(whole, node) if whole.is_leaf(node) else row.load(writer, self.column[node])

        values: dict[int, Value] = {}
        for stage, steps in enumerate(self._by_stage(plan.steps)):
            if stage:
                writer.line(BARRIER)
            for node in sorted(self.conditions.get((worker, stage), ())):
                values[node] = writer.compare("une", row.load(writer, self.column[node]), zero)
            emit_instructions(
                context,
                own,
                steps,
                fetch=fetch,
                store_result=store_result,
                spills=SlotView(self.slots, self.slots.homes + worker, self.workers),
                values=values,
            )

    def _row(self) -> Place:
        size = self.context.writer.type.size
        return Place("%mine", size, size)

    def _deliver(self, node: int, value: Value) -> None:
        for array, position in self.stored.get(node, ()):
            self.context.places[array].store(self.context.writer, value, position)

    def _own(self, worker: int) -> Instructions:
        """Return the instructions of a worker by stages; other workers' values are leaves."""
        whole, parts = self.instructions, self.parts
        foreign = [owner not in (-1, worker) for owner in parts.worker]
        mine = [node for node in whole.order if parts.worker[node] == worker]
        return Instructions(
            ops=[
                FOREIGN if other and not whole.is_mask(node) else op
                for node, (op, other) in enumerate(zip(whole.ops, foreign))
            ],
            args=[() if other else args for args, other in zip(whole.args, foreign)],
            data=whole.data,
            roots=[],
            order=sorted(mine, key=parts.stage.__getitem__),
        )

    def _conditions(self) -> dict[tuple[int, int], set[int]]:
        """Return the conditions of other workers that a worker needs in a stage: they cross as numbers."""
        found: dict[tuple[int, int], set[int]] = {}
        worker, whole = self.parts.worker, self.instructions
        for operand, node in _crossings(whole, worker):
            if whole.is_mask(operand):
                found.setdefault((worker[node], self.parts.stage[node]), set()).add(operand)
        return found

    def _by_stage(self, steps: list[Step]) -> list[list[Step]]:
        """Divide steps by stages: loads belong to the computation that follows, spills to the one before."""
        found: list[list[Step]] = [[] for _ in range(self.parts.stages)]
        before: list[Step] = []
        now = 0
        for step in steps:
            if step[0] == SPILL_STEP:
                found[now].append(step)
                continue
            before.append(step)
            if step[0] == COMPUTE_STEP:
                now = self.parts.stage[step[1]]
                found[now] += before
                before = []
        return found
