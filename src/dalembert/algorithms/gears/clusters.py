"""Clusters: the bodies that couplings tie and that must be eliminated together.

A coupling makes one joint follow others, so that their freedoms cannot be taken out of the equations of
motion one at a time. Joints that share an independent variable form a group. All bodies of a group hang on
a common *base* body (or the world): the group's bodies and those on the ways to them from the base are a
cluster (constraint embedding, Jain 2011). Clusters that share a body are one. The clusters, each hanging on
a body of another cluster or on the world, are again a tree, in which an uncoupled body is a cluster of its
own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dalembert.algorithms.sparsity import velocity_places
from dalembert.model.body import Body
from dalembert.model.topology import WORLD
from dalembert.model.tree import Tree

__all__ = ["Cluster", "clusters_of"]


class Cluster(NamedTuple):
    """Bodies, parents first, that move together on the body of index `base` (-1 is the world).

    `variables`: the places in v of their independent velocities.
    """

    base: int
    bodies: tuple[Body, ...]
    variables: tuple[int, ...]


def clusters_of(tree: Tree) -> list[Cluster]:
    """Return the clusters of a tree in regular numbering, each after the one that carries it."""
    parents = tree.parents
    sets: list[set[int]] = []
    for group in _groups(tree):
        merged = _fill_to_base(parents, group)
        for other in [held for held in sets if held & merged]:
            sets.remove(other)
            merged |= other
        sets.append(merged)
    tied = set().union(*sets)
    sets += [{body.index} for body in tree.bodies if body.index not in tied]
    return [_cluster(tree, sorted(members)) for members in sorted(sets, key=min)]


def _groups(tree: Tree) -> list[set[int]]:
    """Return the groups of bodies whose joints depend on common variables."""
    by_place = {place: {body.index} for body in tree.bodies for place in _own_places(body)}
    for body in tree.bodies:
        if body.dependence is not None:
            joined = {body.index}.union(*(by_place[place] for _, place, _ in body.dependence.terms))
            places = [place for place, held in by_place.items() if held & joined]
            for place in places:
                joined = joined | by_place[place]
            for place in places:
                by_place[place] = joined
    found = {id(held): held for held in by_place.values() if len(held) > 1}
    return list(found.values())


def _own_places(body: Body) -> Iterator[int]:
    if body.dependence is None:
        yield from range(body.v_slice.start, body.v_slice.stop)


def _fill_to_base(parents: Sequence[int], group: set[int]) -> set[int]:
    """Return the group with the bodies between it and its base, the last body that carries all of it."""
    ways = [_way(parents, parents[i]) for i in group]
    base = max(set(ways[0]).intersection(*ways[1:]))
    filled = set(group)
    for i in group:
        while parents[i] != base:
            i = parents[i]
            filled.add(i)
    return filled


def _way(parents: Sequence[int], i: int) -> list[int]:
    """Return body i and all its ancestors, the world included."""
    way = [i]
    while way[-1] != WORLD:
        way.append(parents[way[-1]])
    return way


def _cluster(tree: Tree, members: list[int]) -> Cluster:
    bodies = tuple(tree.bodies[i] for i in members)
    base = min(body.parent for body in bodies)
    places = {place for body in bodies for row in velocity_places(body) for place, _ in row}
    return Cluster(base, bodies, tuple(sorted(places)))
