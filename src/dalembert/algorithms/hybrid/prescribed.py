"""Prescribed joints, the bodies that the other joints support, and the reduced tree (§9.1).

fd is the set of joints whose forces are known and whose accelerations are wanted; the others are prescribed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dalembert.errors import ModelError, require_choice, require_names
from dalembert.model.tree import Tree

__all__ = ["merged_parents", "prescribed_places", "supported_bodies"]


def prescribed_places(tree: Tree, prescribed: Collection[str]) -> frozenset[int]:
    """Return the places in v of the named joints."""
    prescribed = require_names("hybrid_dynamics: prescribed", prescribed)
    bodies = {body.joint_name: body for body in tree.bodies}
    places: set[int] = set()
    for name in prescribed:
        require_choice("joint", name, bodies)
        body = bodies[name]
        if body.dependence is not None:
            places_of = {place for _, place, _ in body.dependence.terms}
            leaders = [b.joint_name for b in tree.bodies if places_of & _own_places(b.v_slice)]
            raise ModelError(
                f'hybrid_dynamics: joint "{name}" follows others by a coupling and has no place in v; '
                f"prescribe {', '.join(leaders)} instead"
            )
        places |= _own_places(body.v_slice)
    return frozenset(places)


def _own_places(v_slice: slice) -> set[int]:
    return set(range(v_slice.start, v_slice.stop))


def supported_bodies(parents: Sequence[int], free: Collection[int]) -> list[bool]:
    """Return which bodies are in nu(fd), the bodies that joints of fd support (Eq. 9.5);
    bodies and joints share their numbers, and -1 is the world.
    """
    supported: list[bool] = []
    for i, parent in enumerate(parents):
        supported.append(i in free or (parent >= 0 and supported[parent]))
    return supported


def merged_parents(parents: Sequence[int], free: Collection[int]) -> tuple[list[int], list[int]]:
    """Return (lambda', map): the graph with the nodes at both ends of every prescribed joint merged
    (Fig. 9.1).

    map[i] is the new number of node i, -1 for what merges with the world. The same for nodes that are bodies
    and for nodes that are velocity variables, in which joints of several freedoms are expanded.
    """
    merged: list[int] = []
    number: list[int] = []
    for i, parent in enumerate(parents):
        below = number[parent] if parent >= 0 else -1
        if i in free:
            merged.append(below)
            number.append(len(merged) - 1)
        else:
            number.append(below)
    return merged, number
