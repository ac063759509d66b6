"""Minimal loop clusters: loops that share no joint with other loops (Featherstone 2008 section 8.9).

K of the whole system is block-diagonal by clusters, up to the order of its rows and columns, and so is G.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dalembert.model.model import Model

__all__ = ["LoopCluster", "loop_clusters"]


class LoopCluster(NamedTuple):
    """Loop joints and user constraints that belong together, and the tree joints that take part in them.

    `bodies`: the bodies of those joints, in order; `velocities`: the indices in v, with couplings followed to
    the joints that drive them; `constraints`: names, in the order of the rows of K.
    """

    constraints: tuple[str, ...]
    joints: tuple[str, ...]
    bodies: tuple[int, ...]
    velocities: tuple[int, ...]


def loop_clusters(model: Model) -> tuple[LoopCluster, ...]:
    """Return the minimal loop clusters in the order of their first loops.

    A loop's joints are those on the paths from its root to its two bodies. Two loops that a coupling links
    are in one cluster. A user constraint may involve any joint, so it is treated as a function of every joint
    of the model and merges all clusters.
    """
    parts: list[tuple[list[str], set[int]]] = []
    for name, bodies in _rows(model):
        touched = [part for part in parts if _places(model, part[1]) & _places(model, bodies)]
        merged = ([*(n for part in touched for n in part[0]), name], bodies.union(*(p[1] for p in touched)))
        where = parts.index(touched[0]) if touched else len(parts)
        parts = [part for part in parts if part not in touched]
        parts.insert(where, merged)
    order = {name: i for i, (name, _) in enumerate(_rows(model))}
    return tuple(
        LoopCluster(
            tuple(sorted(names, key=order.__getitem__)),
            tuple(model.bodies[i].joint_name for i in sorted(bodies)),
            tuple(sorted(bodies)),
            tuple(sorted(_places(model, bodies))),
        )
        for names, bodies in parts
    )


def _rows(model: Model) -> list[tuple[str, set[int]]]:
    """Return each constraint and the bodies whose joints take part in it."""
    rows = [
        (loop.name, set(model.support(loop.predecessor) ^ model.support(loop.successor)))
        for loop in model.loops
    ]
    everything = {body.index for body in model.bodies if body.nv}
    return rows + [(item.name, set(everything)) for item in model.constraints]


def _places(model: Model, bodies: set[int]) -> set[int]:
    """Return the indices in v of the joints, or of the joints that they follow."""
    places: set[int] = set()
    for i in bodies:
        body = model.bodies[i]
        if body.dependence is not None:
            places |= {place for _, place, _ in body.dependence.terms}
        else:
            places |= set(range(body.v_slice.start, body.v_slice.stop))
    return places
