"""Connectivity: parent arrays and the sets that follow from them (Featherstone 2008 section 4.1).

Bodies are numbered from 0 and the world is -1, one less than in the book. A *parent array* holds lambda(i)
for every body; it is *regular* if lambda(i) < i. No function here recurses, so that chains may be of any
length.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from dalembert.errors import ArgumentError, ModelError

__all__ = [
    "WORLD",
    "children",
    "depths",
    "expand_parents",
    "find_cycle",
    "is_regular",
    "joint_paths",
    "parent_array",
    "regular_order",
    "subtree",
    "support",
    "supports",
    "validate_numbering",
    "variable_support",
]

WORLD = -1
"""The number of the fixed base in parent arrays."""


def is_regular(parents: Sequence[int]) -> bool:
    """Return whether every body comes after its parent: -1 <= lambda(i) < i."""
    return all(WORLD <= parent < i for i, parent in enumerate(parents))


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
    """Return nu(i), the bodies of the subtree rooted at body i, itself included; the world's holds all
    bodies.
    """
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
    """Return the parent array of single velocity variables, and the index of each joint's last variable
    (Table 6.4).

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


def variable_support(parents: Sequence[int], dofs: Sequence[int], i: int) -> tuple[int, ...]:
    """Return the velocity variables that move body i, ascending: the columns of its Jacobian that are not
    zero.
    """
    first = [0]
    for n in dofs:
        first.append(first[-1] + n)
    return tuple(k for j in sorted(support(parents, i)) for k in range(first[j], first[j + 1]))
