"""Work partition: tasks that exchange values are assigned to workers, with balanced loads and few exchanges.

The graph is coarsened repeatedly by matching the two tasks that share most values; the few clusters of the
coarsest graph are assigned to workers. During uncoarsening, clusters, then their halves, down to single
tasks, move to another worker where that lowers

    J = balance.weight sum_s sum_w load(w, s)^2 / mean_s  +  4 values that cross,

s the slabs of the program's depth, because a worker with much work early and none later would keep the others
waiting. (The multilevel method of Karypis and Kumar, "Multilevel k-way partitioning scheme for irregular
graphs", 1998, with slabs for balance.)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, final

from dalembert.codegen.ir import LaneType, Value, Writer

Graph = list[dict[int, int]]
Loads = list[dict[int, float]]

CROSSING_COST: Final = 4.0
"""The weight of a value that crosses from one worker to another, in the objective J."""

CLUSTERS_PER_WORKER: Final = 6
"""Clusters per worker at which coarsening ends."""

MAX_REFINEMENT_ROUNDS: Final = 4
"""Passes over all tasks in one refinement, at most."""


@final
@dataclass(frozen=True, slots=True)
class BalanceOptions:
    """Options of load balance: the number of `slabs` of the program's depth, and the `weight` of balance in
    J."""

    slabs: int
    weight: float


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

    def assign_workers(self, balance: BalanceOptions) -> list[int]:
        """Return the worker of each task."""
        loads = [self._loads(balance.slabs)]
        for joined in self.joined:
            loads.append([{} for _ in range(max(joined) + 1)])
            for task, cluster in enumerate(joined):
                mine = loads[-1][cluster]
                for slab, weight in loads[-2][task].items():
                    mine[slab] = mine.get(slab, 0.0) + weight
        worker_loads = _WorkerLoads(self.workers, balance, loads[0])
        graph, load = self.graphs[-1], loads[-1]
        owner = [-1] * len(graph)
        for task in sorted(range(len(graph)), key=lambda task: -sum(load[task].values())):
            worker_loads.improve(task, graph[task], load[task], owner)
        _refine(worker_loads, graph, load, owner)
        for done in reversed(range(len(self.joined))):
            owner = [owner[cluster] for cluster in self.joined[done]]
            _refine(worker_loads, self.graphs[done], loads[done], owner)
        return owner

    def _loads(self, slabs: int) -> Loads:
        """Return the load of each task in its slab; slabs divide the work, sorted by depth, into equal
        parts."""
        loads: Loads = [{} for _ in self.weight]
        done = 0.0
        for task in self.by_depth:
            loads[task] = {min(int(slabs * done / self.total), slabs - 1): self.weight[task]}
            done += self.weight[task]
        return loads


def _refine(worker_loads: _WorkerLoads, graph: Graph, loads: Loads, owner: list[int]) -> None:
    """Move tasks to better workers until no move improves J."""
    for _ in range(MAX_REFINEMENT_ROUNDS):
        if not sum(
            [worker_loads.improve(task, graph[task], loads[task], owner) for task in range(len(graph))]
        ):
            return


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

    def __init__(self, workers: int, balance: BalanceOptions, loads: Loads) -> None:
        self.workers = range(workers)
        self.load = [[0.0] * balance.slabs for _ in self.workers]
        sums = [0.0] * balance.slabs
        for load in loads:
            for slab, weight in load.items():
                sums[slab] += weight
        self.scale = [balance.weight * workers / max(each, 1.0) for each in sums]

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


# Spill slots of a thread: memory for spilled values and for the states of loops.
#
# Slots below the number of staged inputs are the columns of these inputs, free after their last use. The next
# slots are columns of shared memory beyond inputs and results, as far as there is room, and the rest are in
# local memory. Their number is known only when all code is written; the addresses are inserted then. A *cell*
# is an element of a state. The slots and cells with most uses, in loops weighted by `weight`, get the columns
# of shared memory; the others are in local memory in the order in which the most frequent code loads them, so
# that one instruction loads several neighbours.

LOAD_MARK: Final = "from slot "
STORE_MARK: Final = "into slot "

VECTOR_LOAD_BYTES: Final = 16
"""[bytes] The widest load of a thread."""

VECTOR_LOAD_WINDOW: Final = 60
"""[lines] Neighbours that are loaded within so many lines are loaded by one instruction."""

NEVER_LOADED: Final = (1, 0)
"""The sort key of a slot that is never loaded: behind all others."""

FIRST_CELL: Final = 1_000_000
"""The number of the first cell, above the numbers of all slots."""


@final
class SpillSlots:
    """The spill slots of a thread.

    `homes`: slots that are columns of inputs; `taken`: columns of shared memory that arrays have; `count`:
    all slots; `weight`: the estimated number of runs of the code that is being written. Slots to keep have
    the columns after those of arrays."""

    def __init__(self, lane_type: LaneType, homes: int, taken: int) -> None:
        self.type = lane_type
        self.homes = homes
        self.taken = taken
        self.count = 0
        self.cells = FIRST_CELL
        self.weight = 1
        self.uses: Counter[int] = Counter()
        self.first: dict[int, tuple[int, int]] = {}
        self.kept: dict[int, int] = {}
        self.shared = 0
        self.column: dict[int, int] = {}
        self.local: dict[int, int] = {}

    def state(self, size: int) -> Cells:
        """Return cells for the elements of a state."""
        self.cells += size
        return Cells(self, self.cells - size)

    def load(self, writer: Writer, position: int) -> Value:
        self.uses[position] += self.weight
        when = (-self.weight, len(self.first))
        self.first[position] = min(self.first.get(position, when), when)
        return writer.let(f"{LOAD_MARK}{position}")

    def store(self, writer: Writer, value: Value, position: int) -> None:
        self.uses[position] += self.weight
        writer.line(f"{value} {STORE_MARK}{position}")

    def keep(self, slots: set[int]) -> None:
        """Keep these slots in shared memory after the phase."""
        own = sorted(slot for slot in slots if slot >= self.homes)
        self.kept = {slot: self.taken + k for k, slot in enumerate(own)}
        self.taken += len(own)

    def kept_column(self, slot: int) -> int:
        return self.kept.get(slot, slot)

    def constant(self, writer: Writer, number: float) -> int:
        """Store a number in a new column and return the column."""
        self.taken += 1
        place = writer.address("%mine", (self.taken - 1) * self.type.size)
        writer.store(writer.constant(number), place, 0, self.type.size)
        return self.taken - 1

    def place(self, columns: int) -> int:
        """Place the slots in rows of at most `columns` columns; return the number of columns that are
        taken."""
        free = [slot for slot in range(self.homes, self.count) if slot not in self.kept]
        if self.cells > FIRST_CELL:
            free = [*free, *(cell for cell in range(FIRST_CELL, self.cells) if self.uses[cell])]
            free.sort(key=lambda slot: -self.uses[slot])
        self.shared = max(min(len(free), columns - self.taken), 0)
        self.column = {slot: self.taken + k for k, slot in enumerate(free[: self.shared])} | self.kept
        self.column |= {slot: slot for slot in range(self.homes)}
        local = free[self.shared :]
        if self.cells > FIRST_CELL:
            local.sort(key=lambda slot: self.first.get(slot, NEVER_LOADED))
        self.local = {slot: k for k, slot in enumerate(local)}
        return self.taken + self.shared

    def insert_addresses(self, lines: list[str]) -> list[str]:
        """Return the lines with the addresses of slots inserted; neighbours in local memory that are loaded
        soon after one another are loaded by one instruction."""
        found: list[str] = []
        together: dict[int, tuple[str, int]] = {}
        for number, line in enumerate(lines):
            if LOAD_MARK in line:
                name, slot = line.split(f" = {LOAD_MARK}")
                if number not in together:
                    self._load_wide(found, lines, number, int(slot), together)
                if number in together:
                    wide, k = together[number]
                    found.append(f"{name} = extractelement {self._wide} {wide}, i32 {k}")
                    continue
                place = self._address(found, int(slot))
                found.append(f"{name} = load {self.type.text}, ptr {place}, align {self.type.size}")
            elif STORE_MARK in line:
                value, slot = line.split(f" {STORE_MARK}")
                place = self._address(found, int(slot))
                found.append(f"store {self.type.text} {value}, ptr {place}, align {self.type.size}")
            else:
                found.append(line)
        return found

    @property
    def local_bytes(self) -> int:
        """[bytes] The local memory of a thread."""
        return -(-len(self.local) * self.type.size // VECTOR_LOAD_BYTES) * VECTOR_LOAD_BYTES

    @property
    def _wide(self) -> str:
        return f"<{VECTOR_LOAD_BYTES // self.type.size} x {self.type.text}>"

    def _load_wide(
        self, found: list[str], lines: list[str], number: int, slot: int, together: dict[int, tuple[str, int]]
    ) -> None:
        """Load the neighbours of a slot with it, if some of them are loaded soon."""
        count = VECTOR_LOAD_BYTES // self.type.size
        if slot not in self.local or self.cells == FIRST_CELL:
            return
        group = self.local[slot] // count
        wanted = {}
        for at in range(number, min(number + VECTOR_LOAD_WINDOW, len(lines))):
            line = lines[at]
            if line.endswith(":") or line.startswith("br "):
                break
            if LOAD_MARK in line or STORE_MARK in line:
                other = int(line.rpartition(" ")[2])
                if self.local.get(other, -1) // count != group:
                    continue
                if STORE_MARK in line:
                    break
                wanted[at] = self.local[other] % count
        if len(set(wanted.values())) < 2:
            return
        name = f"%wide.{len(found)}"
        found.append(f"{name}.at = getelementptr i8, ptr %local, i64 {group * VECTOR_LOAD_BYTES}")
        found.append(f"{name} = load {self._wide}, ptr {name}.at, align {VECTOR_LOAD_BYTES}")
        together |= {at: (name, k) for at, k in wanted.items()}

    def _address(self, lines: list[str], slot: int) -> Value:
        base, place = ("%local", self.local[slot]) if slot in self.local else ("%mine", self.column[slot])
        name = f"%slot.{len(lines)}"
        lines.append(f"{name} = getelementptr i8, ptr {base}, i64 {place * self.type.size}")
        return name


@final
class Cells:
    """A state whose elements are cells: what `memory.Place` is for arrays, at fixed positions alone."""

    base: Final = ""
    scattered: Final = True

    def __init__(self, slots: SpillSlots, first: int) -> None:
        self._slots = slots
        self._first = first

    def load(self, writer: Writer, position: int) -> Value:
        return self._slots.load(writer, self._first + position)

    def load_at(self, writer: Writer, base: Value, position: int) -> Value:
        return self.load(writer, position)

    def store(self, writer: Writer, value: Value, position: int) -> None:
        self._slots.store(writer, value, self._first + position)

    def store_at(self, writer: Writer, value: Value, base: Value, position: int) -> None:
        self.store(writer, value, position)
