"""Rows that a pass over a large tree uses again: *slots*, allotted to bodies like registers.

What a body hands to its children is needed until the last of them has read it, and the sum of what a body's
children hand to it from the first contribution until the body reads it. So values of bodies that are never
needed at the same time share a slot, and the few slots stay in the cache however large the tree.

Parents come before their children: `parents[i] < i`, with -1 for the world, whose slot is always 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["Slots", "carry_slots", "sum_slots"]

Slots = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], int]
"""The slot of each body, that of its parent, and how many there are; the world's is 0."""


def carry_slots(parents: Sequence[int]) -> Slots:
    """Assign slots outward: a body takes a slot after reading its parent's, which the last child frees."""
    last_child = {parent: child for child, parent in enumerate(parents)}
    slots, free, used = {-1: 0}, list[int](), 1
    for body, parent in enumerate(parents):
        if last_child[parent] == body:
            free.append(slots[parent])
        if not free:
            free.append(used)
            used += 1
        slots[body] = free.pop()
        if body not in last_child:
            free.append(slots[body])
    return _slot_tables(parents, slots, used)


def sum_slots(parents: Sequence[int]) -> Slots:
    """Assign slots inward: a body's slot is taken by its last child, which comes first, and freed by the
    body.
    """
    slots, free, used = {-1: 0}, list[int](), 1
    for body in reversed(range(len(parents))):
        for needy in (body, parents[body]):
            if needy not in slots:
                if not free:
                    free.append(used)
                    used += 1
                slots[needy] = free.pop()
            if needy == body:
                free.append(slots[body])
    return _slot_tables(parents, slots, used)


def _slot_tables(parents: Sequence[int], slots: dict[int, int], used: int) -> Slots:
    own = np.array([slots[body] for body in range(len(parents))], np.int64)
    return own, np.array([slots[parent] for parent in parents], np.int64), used
