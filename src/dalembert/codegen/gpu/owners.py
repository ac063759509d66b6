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

from dataclasses import dataclass
from typing import Final, final

__all__ = ["BalanceOptions", "TaskGraph"]

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
