"""Connectivity: parent arrays and the sets that follow from them (Featherstone 2008 section 4.1).

Bodies are numbered from 0 and the world is -1, one less than in the book. A *parent array* holds lambda(i)
for every body; it is *regular* if lambda(i) < i. No function here recurses, so that chains may be of any
length.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from dalembert.errors import ArgumentError, ModelError, require_choice

WORLD = -1
"""The number of the fixed base in parent arrays."""

WORLD_NAME = "world"
"""The name of the fixed base, as a parent and as a frame."""


def validate_numbering(parents: Sequence[int]) -> None:
    """Refuse a parent array that is not regular, naming the first body out of order."""
    for i, parent in enumerate(parents):
        if not WORLD <= parent < i:
            raise ModelError(
                f"body {i} has parent {parent}; in a regular numbering a parent has a lower number than its "
                "child (-1 is the world): renumber the bodies, for instance with regular_order"
            )


def parent_array(predecessors: Sequence[int], successors: Sequence[int], bodies: int) -> tuple[int, ...]:
    """Return lambda(i) = min(p(i), s(i)) of the tree joints 0 ... bodies - 1, Eq. 4.2.

    Joints beyond those close loops. Joint i connects body i to its parent, in either direction.
    """
    parents = []
    for i in range(bodies):
        p, s = predecessors[i], successors[i]
        if max(p, s) != i:
            raise ModelError(
                f"joint {i} connects bodies {p} and {s}, but tree joint i must connect body i to its parent"
            )
        parents.append(min(p, s))
    validate_numbering(parents)
    return tuple(parents)


def regular_order(parents: Sequence[int]) -> list[int]:
    """Return the bodies in the regular order that is nearest to the given one.

    `parents` may name bodies that come later. Of all bodies whose parent is placed, the first in the given
    order follows next. A body that no path joins to the world is an error.
    """
    below: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for i, parent in enumerate(parents):
        if not WORLD <= parent < len(parents):
            raise ArgumentError(
                f"body {i} has parent {parent}; parents lie between -1 and {len(parents) - 1}"
            )
        below[parent].append(i)
    ready = list(below[WORLD])
    heapq.heapify(ready)
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for child in below[i]:
            heapq.heappush(ready, child)
    if len(order) != len(parents):
        loop = " -> ".join(str(i) for i in find_cycle(parents))
        raise ModelError(f"the bodies {loop} form a cycle without a path to the world")
    return order


def find_cycle(parents: Sequence[int]) -> list[int]:
    """Return the bodies of one cycle, the first repeated at the end; empty for a tree."""
    state = [0] * len(parents)  # 0 new, otherwise the number of the walk that met the body
    for start in range(len(parents)):
        i = start
        while i != WORLD and state[i] == 0:
            state[i] = start + 1
            i = parents[i]
        if i != WORLD and state[i] == start + 1:
            cycle, j = [i], parents[i]
            while j != i:
                cycle.append(j)
                j = parents[j]
            return [*cycle, i]
    return []


def support(parents: Sequence[int], i: int) -> frozenset[int]:
    """Return kappa(i), the joints on the path from the world to body i."""
    path = set()
    while i != WORLD:
        path.add(i)
        i = parents[i]
    return frozenset(path)


def children(parents: Sequence[int], i: int) -> frozenset[int]:
    """Return mu(i), the children of body i, or of the world."""
    return frozenset(j for j, parent in enumerate(parents) if parent == i)


def subtree(parents: Sequence[int], i: int) -> frozenset[int]:
    """Return nu(i), the bodies of the subtree at body i, itself included, or of the world."""
    inside = {i}
    for j in range(max(i, 0), len(parents)):
        if parents[j] in inside:
            inside.add(j)
    return frozenset(inside)


def supports(parents: Sequence[int], i: int, j: int) -> int:
    """Return epsilon_ij, which is 1 if joint j supports body i, else 0 (Eq. 4.5)."""
    while i > j:
        i = parents[i]
    return int(i == j)


def depths(parents: Sequence[int]) -> tuple[int, ...]:
    """Return the number of joints between the world and every body, #kappa(i)."""
    found: list[int] = []
    for parent in parents:
        found.append(1 if parent == WORLD else found[parent] + 1)
    return tuple(found)


def joint_paths(parents: Sequence[int], i: int, j: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the joints from their nearest common ancestor out to body i and out to body j.

    The one-chord loop of a loop joint between i and j runs through exactly these joints.
    """
    to_i, to_j = [], []
    while i != j:
        if i > j:
            to_i.append(i)
            i = parents[i]
        else:
            to_j.append(j)
            j = parents[j]
    return tuple(reversed(to_i)), tuple(reversed(to_j))


def expand_parents(parents: Sequence[int], dofs: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the parents of single velocity variables, and each joint's last variable (Table 6.4).

    A joint of n_i variables becomes a chain of n_i. A joint without variables is passed over: its place is
    that of its parent, a case which the table leaves out.
    """
    validate_numbering(parents)
    if len(dofs) != len(parents):
        raise ArgumentError(f"{len(parents)} parents but {len(dofs)} joint freedoms; give one freedom a body")
    expanded: list[int] = []
    last: list[int] = []
    for parent, n in zip(parents, dofs):
        tip = WORLD if parent == WORLD else last[parent]
        for _ in range(n):
            expanded.append(tip)
            tip = len(expanded) - 1
        last.append(tip)
    return tuple(expanded), tuple(last)


# Connectivity graphs of systems with loops, their spanning trees and numberings (Featherstone 2008 section
# 4.1).
#
# Nodes are bodies, arcs are joints, one node is the fixed base. Enumerations are lazy and meant for small
# systems: a graph may have exponentially many spanning trees and numberings.


@dataclass(frozen=True)
class Numbering:
    """A regular numbering: bodies and joints in order, and arrays p, s, lambda (base -1, bodies from 0)."""

    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    predecessors: tuple[int, ...]
    successors: tuple[int, ...]
    parents: tuple[int, ...]


@dataclass(frozen=True)
class ConnectivityGraph:
    """Joints by name, each from its predecessor body to its successor body; `base` is the fixed body.

    The graph must be connected; a body without a joint to the rest gets a 6-DoF joint to the base (section
    4.1).
    """

    joints: Mapping[str, tuple[str, str]]
    base: str = "world"

    def __post_init__(self) -> None:
        for name, (predecessor, successor) in self.joints.items():
            if predecessor == successor:
                raise ModelError(
                    f'joint "{name}" connects body "{predecessor}" to itself; a joint needs two bodies'
                )
        if self.base not in self.neighbours:
            raise ModelError(f'no joint connects to the base "{self.base}"; connect one body to it')
        reached = self._reach(self.joints)
        apart = [body for body in self.bodies if body not in reached]
        if apart:
            raise ModelError(
                f'bodies {", ".join(apart)} are not connected to the base "{self.base}"; '
                "add a joint, of six degrees of freedom for a body that floats"
            )

    @property
    def neighbours(self) -> dict[str, list[tuple[str, str]]]:
        """(joint, other body) for every joint at a body, in the order of the joints."""
        found: dict[str, list[tuple[str, str]]] = {}
        for name, (p, s) in self.joints.items():
            found.setdefault(p, []).append((name, s))
            found.setdefault(s, []).append((name, p))
        return found

    @property
    def bodies(self) -> tuple[str, ...]:
        """The moving bodies, in the order in which the joints name them."""
        return tuple(node for node in self.neighbours if node != self.base)

    @property
    def loop_count(self) -> int:
        """N_L = N_J - N_B, the number of independent kinematic loops (Eq. 4.1)."""
        return len(self.joints) - len(self.bodies)

    def spanning_trees(self) -> Iterator[frozenset[str]]:
        """Yield every spanning tree as the set of its joints."""
        for chosen in combinations(self.joints, len(self.bodies)):
            if len(self._reach(chosen)) == len(self.bodies):
                yield frozenset(chosen)

    def minimum_depth_tree(self) -> frozenset[str]:
        """Return a spanning tree of least depth, by breadth-first search from the base."""
        return frozenset(joint for _, joint in self._reach(self.joints).values())

    def tree_with(self, joints: Iterable[str]) -> frozenset[str]:
        """Return a spanning tree that contains the given joints, so that none of them is a loop joint.

        If these are the joints with motors or springs, the loop joints are passive and their active forces
        tau^a vanish (section 8.6). The other bodies are joined as near to the base as possible.
        """
        wanted = list(joints)
        for name in wanted:
            require_choice("joint", name, self.joints)
        shallow = self.minimum_depth_tree()
        rest = [name for name in self.joints if name in shallow]
        group = {node: node for node in (self.base, *self.bodies)}

        def root(node: str) -> str:
            while group[node] != node:
                node = group[node]
            return node

        tree: set[str] = set()
        for name in [*wanted, *rest, *self.joints]:
            p, s = map(root, self.joints[name])
            if p != s:
                group[p] = s
                tree.add(name)
            elif name in wanted and name not in tree:
                raise ModelError(
                    f'joint "{name}" closes a loop of the joints before it in the list {wanted}; '
                    "one joint of every loop must stay out of the tree"
                )
        return frozenset(tree)

    def chords(self, tree: frozenset[str]) -> tuple[str, ...]:
        """Return the loop joints that remain beside a spanning tree."""
        return tuple(name for name in self.joints if name not in tree)

    def loop(self, tree: frozenset[str], chord: str) -> frozenset[str]:
        """Return the joints of the one-chord cycle that a chord closes, itself included."""
        parents = self._parents(tree)
        require_choice("joint", chord, self.joints)

        def path(body: str) -> set[str]:
            joints = set()
            while body != self.base:
                body, joint = parents[body]
                joints.add(joint)
            return joints

        predecessor, successor = self.joints[chord]
        return frozenset(path(predecessor) ^ path(successor)) | {chord}

    def numberings(self, tree: frozenset[str]) -> Iterator[Numbering]:
        """Yield every regular numbering of a spanning tree; loop joints keep the order of the graph."""
        parents = self._parents(tree)
        stack: list[tuple[str, ...]] = [()]
        while stack:
            order = stack.pop()
            if len(order) == len(parents):
                number = {self.base: -1} | {body: i for i, body in enumerate(order)}
                joints = (*(parents[body][1] for body in order), *self.chords(tree))
                p, s = (tuple(number[self.joints[joint][end]] for joint in joints) for end in (0, 1))
                yield Numbering(order, joints, p, s, tuple(number[parents[body][0]] for body in order))
                continue
            ready = [b for b, (p, _) in parents.items() if b not in order and (p == self.base or p in order)]
            stack.extend((*order, body) for body in reversed(ready))

    def _reach(self, joints: Collection[str]) -> dict[str, tuple[str, str]]:
        """Return (parent, joint) of each body that the joints reach from the base, breadth first."""
        found: dict[str, tuple[str, str]] = {}
        queue, neighbours = deque([self.base]), self.neighbours
        while queue:
            node = queue.popleft()
            for joint, other in neighbours[node]:
                if joint in joints and other != self.base and other not in found:
                    found[other] = (node, joint)
                    queue.append(other)
        return found

    def _parents(self, tree: frozenset[str]) -> dict[str, tuple[str, str]]:
        parents = self._reach(tree)
        if not len(tree) == len(parents) == len(self.bodies):
            raise ModelError(f"joints {sorted(tree)} are not a spanning tree of bodies {list(self.bodies)}")
        return parents
