"""Connectivity graphs of systems with loops, their spanning trees and numberings (Featherstone 2008 section
4.1).

Nodes are bodies, arcs are joints, one node is the fixed base. Enumerations are lazy and meant for small
systems: a graph may have exponentially many spanning trees and numberings.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from dalembert.errors import ModelError, require_choice

__all__ = ["ConnectivityGraph", "Numbering"]


def _tree_parents(graph: ConnectivityGraph, tree: frozenset[str]) -> dict[str, tuple[str, str]] | None:
    """Return (parent, joint) of every body in breadth-first order; None if the joints do not reach every
    body.
    """
    found: dict[str, tuple[str, str]] = {}
    queue = deque([graph.base])
    while queue:
        node = queue.popleft()
        for joint, other in graph.neighbours[node]:
            if joint in tree and other != graph.base and other not in found:
                found[other] = (node, joint)
                queue.append(other)
    return found if len(found) == len(graph.bodies) else None


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
        reached = {self.base}
        queue = deque([self.base])
        if self.base not in self.neighbours:
            raise ModelError(f'no joint connects to the base "{self.base}"; connect one body to it')
        while queue:
            for _, other in self.neighbours[queue.popleft()]:
                if other not in reached:
                    reached.add(other)
                    queue.append(other)
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
            tree = frozenset(chosen)
            if _tree_parents(self, tree) is not None:
                yield tree

    def minimum_depth_tree(self) -> frozenset[str]:
        """Return a spanning tree of least depth, by breadth-first search from the base."""
        parents = _tree_parents(self, frozenset(self.joints))
        assert parents is not None  # the constructor has found the graph connected
        return frozenset(joint for _, joint in parents.values())

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
        """Yield every regular numbering that a spanning tree admits; loop joints keep the order of the
        graph.
        """
        parents = self._parents(tree)
        stack: list[tuple[str, ...]] = [()]
        while stack:
            order = stack.pop()
            if len(order) == len(parents):
                yield self._arrays(tree, order, parents)
                continue
            ready = [b for b, (p, _) in parents.items() if b not in order and (p == self.base or p in order)]
            stack.extend((*order, body) for body in reversed(ready))

    def _parents(self, tree: frozenset[str]) -> dict[str, tuple[str, str]]:
        parents = _tree_parents(self, tree) if len(tree) == len(self.bodies) else None
        if parents is None:
            raise ModelError(f"joints {sorted(tree)} are not a spanning tree of bodies {list(self.bodies)}")
        return parents

    def _arrays(
        self, tree: frozenset[str], order: tuple[str, ...], parents: Mapping[str, tuple[str, str]]
    ) -> Numbering:
        number = {self.base: -1} | {body: i for i, body in enumerate(order)}
        joints = (*(parents[body][1] for body in order), *self.chords(tree))
        p = tuple(number[self.joints[joint][0]] for joint in joints)
        s = tuple(number[self.joints[joint][1]] for joint in joints)
        return Numbering(order, joints, p, s, tuple(number[parents[body][0]] for body in order))
