"""The order in which bodies are assembled: structure only, no scalars (Featherstone 2008 §3.2, §7.5).

Joint i connects body i to its parent; loop joint l is joint N + l, as in chapter 8. Each body is a part; a
step connects parts by joints into a new part. Handles of a part are its bodies to which joints outside it
are still to be connected. Joints to the world are applied to their body before it meets others: the world
cannot move, so that it needs no handle.

    one_by_one       body by body from the leaves to the root: the articulated-body algorithm's order
    in_pairs         halves of halves: ceil(log2 N) levels for a chain of N bodies; parts of one level do
                     not depend on each other
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dalembert.model.topology import WORLD
from dalembert.model.tree import Tree

__all__ = ["AssemblyPlan", "AssemblyStep", "plan_in_pairs", "plan_one_by_one"]


class AssemblyStep(NamedTuple):
    """Parts connected by joints: part k < N is body k, part N + k the result of step k.

    `with_world`: some of the joints go to the world; `handles`: the bodies through which the new part will
    meet others; `level`: one more than the highest of its parts', if they are two.
    """

    parts: tuple[int, ...]
    joints: tuple[int, ...]
    with_world: bool
    handles: tuple[int, ...]
    level: int


class AssemblyPlan(NamedTuple):
    """The steps of an assembly, each after those it depends on, and the number of `levels`."""

    steps: tuple[AssemblyStep, ...]
    levels: int


def plan_one_by_one(tree: Tree, *, handles: Iterable[int] = ()) -> AssemblyPlan:
    """Plan the assembly from the leaves inward, one body at a time; `handles`:
    bodies that stay handles to the end."""
    order = _Order(tree, handles)
    for joint in reversed(order.spanning):
        order.connect(joint)
    return order.plan()


def plan_in_pairs(tree: Tree, *, handles: Iterable[int] = ()) -> AssemblyPlan:
    """Plan the assembly in halves: each part is cut where its halves are most alike in size.

    A part with three handles is cut between them, so that none has more, but for the ends of further
    loops: the work for each step is bounded, and the whole is O(N). A chain has ceil(log2 N) levels.
    `handles`: bodies that stay handles to the end.
    """
    order = _Order(tree, handles)
    for component in _components(len(tree.bodies), order.spanning_edges()):
        _cut(component, order)
    return order.plan()


class _Edge(NamedTuple):
    """A joint between two bodies."""

    joint: int
    predecessor: int
    successor: int


class _Order:
    """The parts so far: which bodies each holds, and the joints that are not yet connected."""

    def __init__(self, tree: Tree, kept: Iterable[int]) -> None:
        n = len(tree.bodies)
        self.kept = set(kept)
        edges = [_Edge(i, parent, i) for i, parent in enumerate(tree.parents)]
        edges += [_Edge(n + k, loop.predecessor, loop.successor) for k, loop in enumerate(tree.loops)]
        self.size = n
        self.open = {edge.joint: edge for edge in edges}
        self.part_of = list(range(n))
        self.bodies: list[tuple[int, ...]] = [(i,) for i in range(n)]
        self.level = [0] * n
        self.steps: list[AssemblyStep] = []
        self.spanning = _spanning_joints(n, edges)
        for body in range(n):
            grounded = [e for e in edges if body in (e.predecessor, e.successor) and WORLD in e[1:]]
            if grounded:
                self._step((body,), grounded)

    def spanning_edges(self) -> list[_Edge]:
        return [self.open[joint] for joint in self.spanning]

    def handles(self, bodies: Iterable[int]) -> tuple[int, ...]:
        """Return the bodies that joints from others are still to be connected to, and those that are kept."""
        inside = set(bodies)
        ends = {end for e in self.open.values() if not inside.issuperset(e[1:]) for end in e[1:]}
        return tuple(sorted((ends | self.kept) & inside))

    def connect(self, joint: int) -> None:
        """Connect the two parts at a joint, and close the loops that this completes."""
        edge = self.open[joint]
        parts = (self.part_of[edge.predecessor], self.part_of[edge.successor])
        between = [e for e in self.open.values() if {self.part_of[x] for x in e[1:]} <= set(parts)]
        self._step(parts, sorted(between, key=lambda e: (e.joint != joint, e.joint)))

    def _step(self, parts: tuple[int, ...], edges: Iterable[_Edge]) -> None:
        for edge in edges:
            del self.open[edge.joint]
        bodies = tuple(sorted(body for part in parts for body in self.bodies[part]))
        level = max(self.level[part] for part in parts) + (len(parts) > 1)
        for body in bodies:
            self.part_of[body] = len(self.bodies)
        self.bodies.append(bodies)
        self.level.append(level)
        with_world = any(WORLD in edge[1:] for edge in edges)
        joints = tuple(edge.joint for edge in edges)
        self.steps.append(AssemblyStep(parts, joints, with_world, self.handles(bodies), level))

    def plan(self) -> AssemblyPlan:
        return AssemblyPlan(tuple(self.steps), max(self.level, default=0))


def _spanning_joints(n: int, edges: Iterable[_Edge]) -> list[int]:
    """Return joints that connect all bodies that can be reached from one another, without the world."""
    root = list(range(n))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    chosen = []
    for edge in edges:
        if WORLD not in edge[1:] and find(edge.predecessor) != find(edge.successor):
            root[find(edge.predecessor)] = find(edge.successor)
            chosen.append(edge.joint)
    return chosen


def _components(n: int, edges: Iterable[_Edge]) -> list[tuple[set[int], list[_Edge]]]:
    """Return the trees of a forest: bodies and edges of each."""
    neighbours: list[list[_Edge]] = [[] for _ in range(n)]
    for edge in edges:
        neighbours[edge.predecessor].append(edge)
        neighbours[edge.successor].append(edge)
    seen: set[int] = set()
    components = []
    for start in range(n):
        if start in seen:
            continue
        bodies, own, pending = {start}, [], [start]
        while pending:
            body = pending.pop()
            for edge in neighbours[body]:
                other = edge.successor if edge.predecessor == body else edge.predecessor
                if other not in bodies:
                    bodies.add(other)
                    own.append(edge)
                    pending.append(other)
        seen |= bodies
        components.append((bodies, own))
    return components


def _cut(component: tuple[set[int], list[_Edge]], order: _Order) -> None:
    """Assemble the halves of a component, then connect them."""
    bodies, edges = component
    if not edges:
        return
    handles = set(order.handles(tuple(bodies)))
    beyond = _beyond(bodies, edges)
    choices = edges
    if len(handles) > 2:
        choices = [e for e in edges if 0 < len(beyond[e.joint] & handles) < len(handles)]
    edge = min(choices, key=lambda e: abs(2 * len(beyond[e.joint]) - len(bodies)))
    far = beyond[edge.joint]
    for half in (bodies - far, far):
        _cut((half, [e for e in edges if e is not edge and e.successor in half]), order)
    order.connect(edge.joint)


def _beyond(bodies: set[int], edges: Iterable[_Edge]) -> dict[int, set[int]]:
    """Return for each edge of a tree of bodies the bodies beyond it, seen from the first body."""
    outward: list[tuple[_Edge, int, int]] = []
    reached, pending = {min(bodies)}, [min(bodies)]
    while pending:
        body = pending.pop()
        for edge in edges:
            if body in edge[1:]:
                other = edge.successor if edge.predecessor == body else edge.predecessor
                if other not in reached:
                    reached.add(other)
                    pending.append(other)
                    outward.append((edge, body, other))
    below = {body: {body} for body in bodies}
    for _, near, far in reversed(outward):
        below[near] |= below[far]
    return {edge.joint: below[far] for edge, _, far in outward}
