"""Contacts between vertices, faces and edges of polyhedra, as gap functions with extents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.call.arguments import real_array, short_repr
from dalembert.contact.rigid.gaps import GapFunction
from dalembert.errors import ArgumentError, DtypeError, ShapeError, items_of
from dalembert.model.model import Model, require_model
from dalembert.model.system import WORLD_NAME
from dalembert.scalar import minimum, sqrt
from dalembert.spatial import Transform, Vec3

__all__ = ["EdgeEdge", "Feature", "VertexFace", "feature_gaps"]

Point: TypeAlias = Sequence[float]


class FeatureContact(NamedTuple):
    """The gap phi [m]; an extent that is positive where the features face each other; the nearest position
    and the normal there, in the world.
    """

    gap: Any
    extent: Any
    position: Vec3
    normal: Vec3


class Feature(ABC):
    """Two features of polyhedra, on two bodies, that can touch at one point."""

    @abstractmethod
    def measure(self, poses: dict[str, Transform]) -> FeatureContact:
        """Return gap, extent, position and normal for these body poses."""

    @property
    @abstractmethod
    def bodies(self) -> tuple[str, str]:
        """The names of the bodies, the second of which the normal points to."""


@final
@dataclass(frozen=True)
class VertexFace(Feature):
    """A vertex of one body over a flat face of another: phi = n . (vertex - face), n the face's normal.

    `vertex` [m] in coordinates of `body`; `face`, three points or more in order, counter-clockwise seen
    from outside, in coordinates of `on`, a convex polygon. The extent is the distance of the vertex from
    the nearest edge, measured along the face, positive inside.

    Source: Featherstone 2008 section 11.6, Figure 11.6.

    >>> table = [(0.0, 0.0, 1.0), (2.0, 0.0, 1.0), (2.0, 1.0, 1.0), (0.0, 1.0, 1.0)]
    >>> model = da.models.cart_pole()
    >>> corner = da.contact.VertexFace("cart", (0.0, 0.5, 1.2), on="world", face=table)
    >>> gaps = da.contact.feature_gaps(model, [corner])
    >>> print(gaps.value([0.0, 0.0]).round(6), gaps.extent([[1.7, 0.0], [2.1, 0.0]]).round(6).tolist())
    [0.2] [[0.3], [-0.1]]
    """

    body: str
    vertex: Point
    on: str
    face: Sequence[Point]

    def __post_init__(self) -> None:
        _require_body_names(self)
        _require_points("vertex", [self.vertex])
        _require_points("face", self.face)
        if len(self.face) < 3:
            raise ArgumentError(f"a face has three corners or more, got {len(self.face)}")

    @property
    def bodies(self) -> tuple[str, str]:
        return self.on, self.body

    def measure(self, poses: dict[str, Transform]) -> FeatureContact:
        own = poses[self.on]
        at = own.inverse().transform_point(poses[self.body].transform_point(Vec3.of(self.vertex)))
        corners = [Vec3.of(corner) for corner in self.face]
        normal = _unit((corners[1] - corners[0]).cross(corners[2] - corners[1]))
        inside = [
            normal.cross(_unit(end - start)).dot(at - start)
            for start, end in pairwise([*corners, corners[0]])
        ]
        vertex, outward = own.transform_point(at), own.R @ normal
        return FeatureContact(normal.dot(at - corners[0]), reduce(minimum, inside), vertex, outward)


@final
@dataclass(frozen=True)
class EdgeEdge(Feature):
    """Two straight edges that cross: phi is their distance along the common perpendicular.

    `edge` and `other`: two ends each [m] in coordinates of `body` and `on`; the perpendicular is (end -
    start of `other`) x (end - start of `edge`), so the order of the ends says which way is out, from `on`
    to `body`. The extent is the distance of the crossing from the nearest of the four ends, positive on
    both edges.

    Source: Featherstone 2008 section 11.6, Figure 11.6.

    >>> model = da.models.cart_pole()
    >>> edges = da.contact.EdgeEdge(
    ...     "cart", [(0.0, -1.0, 0.3), (0.0, 1.0, 0.3)], on="world", other=[(-1.0, 0.0, 0.0), (0.5, 0.0, 0.0)]
    ... )
    >>> gaps = da.contact.feature_gaps(model, [edges])
    >>> print(gaps.value([0.0, 0.0]).round(6), gaps.extent([[0.4, 0.0], [0.6, 0.0]]).round(6).tolist())
    [0.3] [[0.1], [-0.1]]
    """

    body: str
    edge: Sequence[Point]
    on: str
    other: Sequence[Point]

    def __post_init__(self) -> None:
        _require_body_names(self)
        for name, ends in (("edge", self.edge), ("other", self.other)):
            _require_points(name, ends)
            if len(ends) != 2:
                raise ArgumentError(f"an edge has two ends, got {len(ends)} for {name}")

    @property
    def bodies(self) -> tuple[str, str]:
        return self.on, self.body

    def measure(self, poses: dict[str, Transform]) -> FeatureContact:
        c, d = (poses[self.body].transform_point(Vec3.of(end)) for end in self.edge)
        a, b = (poses[self.on].transform_point(Vec3.of(end)) for end in self.other)
        along, across, apart = b - a, d - c, c - a
        perpendicular = along.cross(across)
        square = perpendicular.dot(perpendicular)
        s = (
            apart.cross(across).dot(perpendicular) / square
        )  # where the crossing is: a + s along, c + u across
        u = apart.cross(along).dot(perpendicular) / square
        length, width = sqrt(along.dot(along)), sqrt(across.dot(across))
        inside = reduce(minimum, [s * length, (1.0 - s) * length, u * width, (1.0 - u) * width])
        normal = perpendicular * (1.0 / sqrt(square))
        return FeatureContact(normal.dot(apart), inside, a + along * s, normal)


def feature_gaps(model: Model, features: Sequence[Feature]) -> GapFunction:
    """Return phi(q) = n . (r_second - r_first) and extents of pairs of features: vertices on faces, crossing
    edges.

    Every state of contact of two polyhedra is a set of such point contacts. Where an extent becomes
    negative a vertex has left its face or an edge another, and the contact is lost, which no equation of
    motion can tell.

    Source: Featherstone 2008 section 11.6, Figure 11.6.

    >>> table = [(0.0, 0.0, 1.0), (2.0, 0.0, 1.0), (2.0, 1.0, 1.0), (0.0, 1.0, 1.0)]
    >>> model = da.models.cart_pole()
    >>> corners = [da.contact.VertexFace("cart", (x, 0.5, 1.0), on="world", face=table) for x in (-0.2, 0.2)]
    >>> print(da.contact.feature_gaps(model, corners).extent([1.9, 0.0]).round(6))  # one is past the edge
    [ 0.3 -0.1]
    """
    require_model(model)
    features = items_of(features)
    if not all(isinstance(feature, Feature) for feature in features):
        raise DtypeError("features are not VertexFace or EdgeEdge; give a list of these")
    wanted = {name for feature in features for name in feature.bodies}
    indices = {name: model.body(name).index for name in wanted if name != WORLD_NAME}

    def measure(tree: Model, q: Sequence[Any]) -> list[FeatureContact]:
        found = forward_kinematics(tree, q)
        poses = {name: found[index] for name, index in indices.items()}
        poses[WORLD_NAME] = Transform.identity()
        return [feature.measure(poses) for feature in features]

    def gaps(tree: Model, q: Sequence[Any]) -> list[Any]:
        return [contact.gap for contact in measure(tree, q)]

    def extents(tree: Model, q: Sequence[Any]) -> list[Any]:
        return [contact.extent for contact in measure(tree, q)]

    def points(tree: Model, q: Sequence[Any]) -> list[Any]:
        return [[*contact.position, *contact.normal] for contact in measure(tree, q)]

    names = [feature.bodies for feature in features]
    return GapFunction(model, gaps, extent=extents, points=points, names=names)


def _require_body_names(feature: Feature) -> None:
    for name in feature.bodies:
        if not isinstance(name, str):
            raise DtypeError(f"{short_repr(name)} is not the name of a body; give two bodies of the model")


def _require_points(name: str, points: object) -> None:
    """Raise an error unless `points` is a list of points with three coordinates each."""
    if not isinstance(points, Sequence | np.ndarray):
        raise DtypeError(f"{name} is of type {type(points).__name__}; give a list of points")
    shape = real_array(name, points).shape
    if len(shape) != 2 or shape[1] != 3:
        raise ShapeError(f"{name}: points have three coordinates each, got the shape {shape}")


def _unit(x: Vec3) -> Vec3:
    unit: Vec3 = x * (1.0 / sqrt(x.dot(x)))
    return unit
