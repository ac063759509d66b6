"""Who computes what: tasks that exchange values are dealt out to workers, evenly and with few exchanges.

A graph is halved again and again by joining the two tasks that have most in common; the few clusters that are
left are dealt out, and on the way back clusters, their halves, and so on to single tasks change hands where
that lowers

    J = evenness sum_s sum_w load(w, s)^2 / mean_s  +  4 values that cross,

s the slabs of the program's depth: a worker with much to do early and nothing later would keep the others
waiting. (The multilevel method of Karypis and Kumar, "Multilevel k-way partitioning scheme for irregular
graphs", 1998, with slabs for balance.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

__all__ = ["Deal", "Tasks"]

Graph = list[dict[int, int]]
Loads = list[dict[int, float]]

CROSSING: Final = 4.0
"""What a value that crosses counts."""

CLUSTERS: Final = 6
"""Clusters of a worker to begin with."""

ROUNDS: Final = 4
"""At most so many, over all tasks, of changing hands."""


@final
@dataclass(frozen=True, slots=True)
class Deal:
    """What is to be even: `slabs` of the program's depth, and how much that counts."""

    slabs: int
    evenness: float


@final
class Tasks:
    """Tasks and what they have in common, joined two by two to ever fewer clusters.

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
        limit = self.total / (workers * CLUSTERS)
        while len(self.graphs[-1]) > workers * CLUSTERS:
            joined = _join(self.graphs[-1], weight, limit)
            if max(joined) + 1 > 0.95 * len(weight):
                break
            merged, heavier = _merged(joined, self.graphs[-1], weight)
            self.graphs.append(merged)
            self.joined.append(joined)
            weight = heavier

    def owners(self, deal: Deal) -> list[int]:
        """The worker of each task."""
        loads = [self._loads(deal.slabs)]
        for joined in self.joined:
            loads.append([{} for _ in range(max(joined) + 1)])
            for task, cluster in enumerate(joined):
                mine = loads[-1][cluster]
                for slab, weight in loads[-2][task].items():
                    mine[slab] = mine.get(slab, 0.0) + weight
        table = _Table(self.workers, deal, loads[0])
        graph, load = self.graphs[-1], loads[-1]
        owner = [-1] * len(graph)
        for task in sorted(range(len(graph)), key=lambda task: -sum(load[task].values())):
            table.improve(task, graph[task], load[task], owner)
        _exchange(table, graph, load, owner)
        for done in reversed(range(len(self.joined))):
            owner = [owner[cluster] for cluster in self.joined[done]]
            _exchange(table, self.graphs[done], loads[done], owner)
        return owner

    def _loads(self, slabs: int) -> Loads:
        loads: Loads = [{} for _ in self.weight]
        done = 0.0
        for task in self.by_depth:
            loads[task] = {min(int(slabs * done / self.total), slabs - 1): self.weight[task]}
            done += self.weight[task]
        return loads


def _exchange(table: _Table, graph: Graph, loads: Loads, owner: list[int]) -> None:
    for _ in range(ROUNDS):
        if not sum([table.improve(task, graph[task], loads[task], owner) for task in range(len(graph))]):
            return


def _join(graph: Graph, weight: list[float], limit: float) -> list[int]:
    """For each task the number of the pair it goes to, or of its own if it finds no other."""
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


def _merged(joined: list[int], graph: Graph, weight: list[float]) -> tuple[Graph, list[float]]:
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
class _Table:
    """What the workers have to do, by slabs."""

    def __init__(self, workers: int, deal: Deal, loads: Loads) -> None:
        self.workers = range(workers)
        self.load = [[0.0] * deal.slabs for _ in self.workers]
        sums = [0.0] * deal.slabs
        for load in loads:
            for slab, weight in load.items():
                sums[slab] += weight
        self.scale = [deal.evenness * workers / max(each, 1.0) for each in sums]

    def improve(self, task: int, near: dict[int, int], load: dict[int, float], owner: list[int]) -> bool:
        """Give a task to the worker where it is best, and say whether that was another one."""
        here, common = owner[task], [0] * len(self.workers)
        for other, count in near.items():
            if owner[other] >= 0:
                common[owner[other]] += count
        if here >= 0:
            if common[here] == sum(common):
                return False
            self._add(here, load, -1.0)
        worths = [
            CROSSING * common[worker]
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
