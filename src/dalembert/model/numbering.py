"""Resolution of names to numbers: bodies in a regular numbering, and frames, loops and contacts on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dalembert.errors import ModelError
from dalembert.model import checks, topology
from dalembert.model.body import Body, Placement
from dalembert.model.elements import Frame, Loop, ShapePair
from dalembert.model.joints import Joint
from dalembert.model.shapes import Shape
from dalembert.model.shapes.shape import checked_friction, checked_restitution
from dalembert.model.system import WORLD_NAME

__all__ = [
    "PendingLoop",
    "checked_exclusions",
    "checked_pair",
    "checked_pairs",
    "number_bodies",
    "place_frames",
    "place_loops",
    "with_shapes",
]


@dataclass(frozen=True, slots=True)
class PendingLoop:
    """A loop joint whose bodies are not numbered yet."""

    predecessor: str
    successor: str
    joint: Joint
    placement_predecessor: Placement
    placement_successor: Placement


def number_bodies(pending: Mapping[str, tuple[str, Body]]) -> list[Body]:
    """Return the bodies in a regular numbering, from their names and the names of their parents."""
    names = list(pending)
    position = {WORLD_NAME: topology.WORLD} | {name: i for i, name in enumerate(names)}
    parents = [
        checks.require_known(position, parent, f'body "{name}"') for name, (parent, _) in pending.items()
    ]
    cycle = topology.find_cycle(parents)
    if cycle:
        loop = " -> ".join(f'"{names[i]}"' for i in reversed(cycle))
        raise ModelError(
            f"the bodies {loop} form a cycle that is not connected to the world; "
            "attach one of them to the world and close the loop with add_loop"
        )
    order = topology.regular_order(parents)
    number = {topology.WORLD: topology.WORLD} | {old: new for new, old in enumerate(order)}
    return [
        replace(pending[names[old]][1], index=new, parent=number[parents[old]])
        for new, old in enumerate(order)
    ]


def with_shapes(bodies: Sequence[Body], added: Mapping[str, Sequence[Shape]]) -> list[Body]:
    """Return the bodies with the shapes that were added to them by name."""
    names = {WORLD_NAME: None} | {body.name: None for body in bodies}
    for name in added:
        checks.require_known(names, name, "add_shape")
    return [
        replace(body, shapes=(*body.shapes, *added[body.name])) if body.name in added else body
        for body in bodies
    ]


def place_frames(frames: Mapping[str, tuple[str, Placement]], index: Mapping[str, int]) -> list[Frame]:
    """Return the frames on numbered bodies."""
    placed = []
    for name, (body, placement) in frames.items():
        if name in index:
            raise ModelError(
                f'frame "{name}" has the name of a body, whose own frame that is; choose another'
            )
        placed.append(Frame(name, checks.require_known(index, body, f'frame "{name}"'), placement))
    return placed


def place_loops(loops: Mapping[str, PendingLoop], index: Mapping[str, int]) -> list[Loop]:
    """Return the loop joints between numbered bodies."""
    return [
        Loop(
            name,
            checks.require_known(index, loop.predecessor, f'loop "{name}"'),
            checks.require_known(index, loop.successor, f'loop "{name}"'),
            loop.joint,
            loop.placement_predecessor,
            loop.placement_successor,
        )
        for name, loop in loops.items()
    ]


def checked_exclusions(
    pairs: Iterable[tuple[str, str]], index: Mapping[str, int]
) -> tuple[tuple[str, str], ...]:
    """Return the pairs of bodies that never touch, each once."""
    found: dict[frozenset[str], tuple[str, str]] = {}
    for pair in pairs:
        for body in pair:
            checks.require_known(index, body, "exclude_contact")
        found.setdefault(frozenset(pair), pair)
    return tuple(found.values())


def checked_pair(
    first: str, second: str, friction: Sequence[float] | None, restitution: float | None
) -> ShapePair:
    """Return a pair of shapes that may touch, after checking its coefficients."""
    what = f'add_contact_pair of "{first}" and "{second}"'
    for name in (first, second):
        checks.valid_name(name, "add_contact_pair: the name of a shape")
    if first == second:
        raise ModelError(f"{what} names one shape twice; a pair is two shapes")
    return ShapePair(
        first,
        second,
        None if friction is None else checked_friction(friction, what),
        None if restitution is None else checked_restitution(restitution, what),
    )


def checked_pairs(pairs: Iterable[ShapePair], shapes: Iterable[Shape]) -> tuple[ShapePair, ...]:
    """Return the pairs of shapes that may touch, after checking that each name belongs to one shape."""
    count = Counter(shape.name for shape in shapes if shape.name)
    for pair in pairs:
        for name in (pair.first, pair.second):
            if checks.require_known(count, name, "add_contact_pair", "shape") > 1:
                raise ModelError(
                    f'add_contact_pair: {count[name]} shapes are called "{name}"; give each its own name'
                )
    return tuple(pairs)
