"""Contact points: where the pairs of a model are nearest, for given poses of its bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalembert.contact.candidates import Candidate
from dalembert.contact.geometry import closest_points, point_count
from dalembert.contact.pairs import ContactPair, Placed
from dalembert.model.model import Model
from dalembert.model.system import WORLD_NAME
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody
from dalembert.spatial import Transform

__all__ = ["contact_points", "pair_names", "point_names", "poses_of"]


def contact_points(poses: PerBody[Transform], pairs: Sequence[ContactPair]) -> list[Candidate]:
    """Return the contact points of all pairs, in their order; `poses` of the bodies in the world.

    How many there are depends on the shapes alone: a point that does not exist has the gap
    `ABSENT_POINT_GAP`.
    """
    pose = poses_of(poses)
    return [
        Candidate(pair.first.body, pair.second.body, pair.friction, pair.restitution, point)
        for pair in pairs
        for point in closest_points(pair.first.shape, pose(pair.first), pair.second.shape, pose(pair.second))
    ]


def poses_of(poses: PerBody[Transform]) -> Callable[[Placed], Transform]:
    """Return the frames of shapes in the world from the poses of bodies, each computed once."""
    placed: dict[tuple[int, int], Transform] = {}

    def pose(item: Placed) -> Transform:
        key = item.body, id(item.shape)
        if key not in placed:
            on_body = Transform.identity() if item.body == WORLD else poses[item.body]
            placed[key] = on_body @ item.shape.placement
        return placed[key]

    return pose


def point_names(model: Model, pairs: Sequence[ContactPair]) -> list[tuple[str, str]]:
    """Return the names of both objects at each point of `contact_points`."""
    return [
        pair_names(model, pair)
        for pair in pairs
        for _ in range(point_count(pair.first.shape, pair.second.shape))
    ]


def pair_names(model: Model, pair: ContactPair) -> tuple[str, str]:
    """Return the names of both shapes or, where they have none, of their bodies."""
    return _name(model, pair.first), _name(model, pair.second)


def _name(model: Model, placed: Placed) -> str:
    if placed.shape.name:
        return placed.shape.name
    return WORLD_NAME if placed.body == WORLD else model.bodies[placed.body].name
