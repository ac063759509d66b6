"""Contact constraints phi(q) >= 0 with their derivatives, and the states they can be in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.call.arguments import real_array
from dalembert.compiler.compiled import compile as compile_function
from dalembert.contact.narrow_phase.candidates import ContactPoint
from dalembert.contact.pairs import ContactPair, contact_points, pairs_of, point_names
from dalembert.errors import (
    ArgumentError,
    DtypeError,
    ModelError,
    ShapeError,
    TracingError,
    items_of,
    own_errors,
    short_repr,
)
from dalembert.model.model import Model, require_model
from dalembert.model.shapes import Box, ConvexMesh, Plane
from dalembert.model.topology import WORLD, WORLD_NAME
from dalembert.scalar import minimum, sqrt
from dalembert.spatial import Transform, Vec3
from dalembert.textbook.complementarity import Array

OfConfiguration: TypeAlias = Callable[[Model, Sequence[Any]], Sequence[Any]]


@final
class ContactState(Enum):
    """The states of a constraint phi(q) >= 0, by the names that the book's Figure 11.4 gives them."""

    APART = "1"
    """phi > 0: no contact, no force."""
    COLLIDING = "2a"
    """phi = 0, phi-dot < 0: an impulse follows at once."""
    PARTING = "2b"
    """phi = 0, phi-dot > 0: just after an impulse or the loss of a face; apart in a moment."""
    TOUCHING = "3"
    """phi = 0, phi-dot = 0: lasting contact; phi-ddot >= 0 by a contact force."""


@own_errors
def contact_states(
    gap: Any, rate: Any, *, touching: float = 1e-8, still: float = 1e-6
) -> tuple[ContactState, ...]:
    """Return the state of each constraint phi(q) >= 0: 1, 2a, 2b or 3, from phi `(nc,)` [m] and phi-dot = t .
    v `(nc,)` [m/s].

    phi > `touching` is state 1; else phi-dot < -`still` is 2a, phi-dot > `still` 2b, and otherwise 3.

    Source: Featherstone 2008 section 11.4, Figure 11.4, Eqs 11.37 to 11.40.

    >>> [state.value for state in da.textbook.contact_states([0.1, 0.0, 0.0, 0.0], [-2.0, -2.0, 2.0, 0.0])]
    ['1', '2a', '2b', '3']
    """
    phi, phi_dot = np.atleast_1d(real_array("gap", gap), real_array("rate", rate))
    if phi.shape != phi_dot.shape:
        raise ShapeError(
            f"gap and rate have one number each for a contact, got {phi.shape} and {phi_dot.shape}"
        )

    def state(p: float, s: float) -> ContactState:
        if p > touching:
            return ContactState.APART
        if abs(s) <= still:
            return ContactState.TOUCHING
        return ContactState.COLLIDING if s < 0.0 else ContactState.PARTING

    return tuple(state(p, s) for p, s in zip(phi, phi_dot, strict=True))


@final
class GapFunction:
    """Contact constraints phi(q) >= 0 of a model: phi-dot = t^T v, phi-ddot = t^T a + dt/dt^T v, t =
    (dphi/dq)^T.

    `function(model, q)` returns phi [m], positive apart, negative overlapping, on generic scalars (it is
    compiled like any function and differentiated automatically). `extent(model, q)`, if given, returns a
    number for each contact that is positive where the two features face each other: a vertex over a face,
    two edges that cross. Where it is negative the constraint does not hold for any phi. `points(model,
    q)`, if given, returns position and normal of each contact, six numbers in the world, from which
    trajectories take where forces act. `names`: one or two names of the touching objects for each contact.

    Source: Featherstone 2008 section 11.4, Eqs 11.37 to 11.40; geometric contact loss in section 11.6.

    >>> model = da.models.pendulum(length=1.0)
    >>> def height(model, q):
    ...     return [1.5 - da.scalar.cos(q[0])]  # of the bob above a floor 1.5 m below the pivot
    >>> gaps = da.textbook.GapFunction(model, height)
    >>> print(gaps.value([0.0]), gaps.normals([np.pi / 2]), gaps.bias([0.0], [2.0]))  # v^2 cos q upward
    [0.5] [[1.]] [4.]
    """

    def __init__(
        self,
        model: Model,
        function: OfConfiguration,
        *,
        extent: OfConfiguration | None = None,
        points: OfConfiguration | None = None,
        names: Sequence[str | tuple[str, str]] | None = None,
    ) -> None:
        if require_model(model).time_dependent:
            raise ModelError(
                f'"{model.name}" depends on time, which gaps phi(q) >= 0 do not; da.rollout and '
                "da.simulation.integrate_adaptive know such models, without contact"
            )
        self.model = model
        self._value = compile_function(_require_list_result("function", function), model)
        self._extent, self._points = (
            None if given is None else compile_function(_require_list_result(what, given), model)
            for what, given in (("extent", extent), ("points", points))
        )
        count = self.value(model.neutral()).shape[-1]
        given = [f"contact {i}" for i in range(count)] if names is None else items_of(names)
        pairs = [(WORLD_NAME, name) if isinstance(name, str) else name for name in given]
        two_names = (isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs)
        if not all(two_names) or not all(isinstance(name, str) for pair in pairs for name in pair):
            raise ArgumentError(
                f"names is {short_repr(names)}; give a name, or two of what touches, a contact"
            )
        self.pairs = tuple((first, second) for first, second in pairs)
        self.names = tuple(name if isinstance(name, str) else " - ".join(name) for name in given)
        if len(self.names) != count or self.extent(model.neutral()).shape[-1] != count:
            raise ShapeError(f"there are {count} gaps; give as many names and extents")

    def __len__(self) -> int:
        return len(self.names)

    @property
    def has_extents(self) -> bool:
        """True if features are bounded, so that contacts have extents."""
        return self._extent is not None

    def __repr__(self) -> str:
        return f'<GapFunction of {len(self)} contacts of "{self.model.name}">'

    def value(self, q: Any) -> Array:
        """Return phi(q) `(…, nc)` [m]."""
        return np.asarray(self._value(q))

    def normals(self, q: Any) -> Array:
        """Return T `(…, nv, nc)`: the contact normals in joint space, columns t_i = (dphi_i/dq)^T."""
        return np.swapaxes(np.asarray(self._value.jacobian("q")(q)), -1, -2)

    def rate(self, q: Any, v: Any) -> Array:
        """Return zeta = phi-dot = T^T v `(…, nc)` [m/s]."""
        return np.asarray(self._value.jvp("q")(q, v))

    def bias(self, q: Any, v: Any) -> Array:
        """Return dT/dt^T v `(…, nc)` [m/s^2]: phi-ddot where a = 0."""
        return np.asarray(self._value.jvp("q").jvp("q")(q, v, v))

    def extent(self, q: Any) -> Array:
        """Return numbers `(…, nc)`, positive where the features of a contact face each other; one for
        unbounded features."""
        return np.ones_like(self.value(q)) if self._extent is None else np.asarray(self._extent(q))

    def points(self, q: Any) -> tuple[Array, Array] | None:
        """Return positions and normals `(…, nc, 3)` of contacts in the world, or None if not given."""
        if self._points is None:
            return None
        both = np.asarray(self._points(q))
        return both[..., :3], both[..., 3:]


def shape_gaps(model: Model, pairs: Sequence[ContactPair] | None = None) -> GapFunction:
    """Return phi(q) = n . (r_second - r_first) of the shapes of a model: the distance of every pair that may
    touch, negative where they overlap.

    `pairs`: those of `da.contact.pairs_of(model)` by default. Round shapes have smooth normals and roll
    without impacts; boxes and other polyhedra touch a plane with all their corners, and strike it with each
    in turn. Of polyhedra that touch each other the nearest points jump; describe those by `feature_gaps`
    where it matters.

    Source: Featherstone 2008 sections 11.4 and 11.6.

    >>> builder = da.ModelBuilder()
    >>> solid = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    >>> _ = builder.add_body("ball", "world", da.Free(), inertia=solid)
    >>> _ = builder.add_shape("ball", da.shapes.Sphere(0.5))
    >>> model = builder.build().with_ground()
    >>> gaps = da.textbook.shape_gaps(model)
    >>> print(gaps.names, gaps.value([0.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0]))
    ('ground - ball',) [1.5]
    """
    require_model(model)
    chosen = pairs_of(model) if pairs is None else tuple(items_of(pairs))
    if not all(isinstance(pair, ContactPair) for pair in chosen):
        raise DtypeError("pairs are not ContactPair; give some of da.contact.pairs_of(model)")
    if not chosen:
        raise ModelError(f'no shapes of "{model.name}" can touch; give bodies shapes, and the world a ground')

    def nearest(tree: Model, q: Sequence[Any]) -> list[ContactPoint]:
        poses = forward_kinematics(tree, q)
        return [point for pair in chosen for point in _points_of(poses, pair)]

    names = []
    for pair in chosen:
        own = point_names(model, [pair])
        names += own[:1] * (len(_corners(pair)) or len(own))
    return _gaps_of_points(model, nearest, names)


def _gaps_of_points(
    model: Model, measure: OfConfiguration, names: Sequence[tuple[str, str]], *, bounded: bool = False
) -> GapFunction:
    """Return the gaps of contacts with `gap`, `position` and `normal`, and with `extent` if `bounded`."""
    return GapFunction(
        model,
        lambda tree, q: [contact.gap for contact in measure(tree, q)],
        extent=(lambda tree, q: [contact.extent for contact in measure(tree, q)]) if bounded else None,
        points=lambda tree, q: [[*contact.position, *contact.normal] for contact in measure(tree, q)],
        names=names,
    )


def _points_of(poses: Any, pair: ContactPair) -> list[ContactPoint]:
    """Return the points of a pair. A polyhedron over a plane has all of its corners as points: the four
    nearest of a box would be others after it has rolled over, and their gaps would jump.
    """
    corners = _corners(pair)
    if not corners:
        return [found.point for found in contact_points(poses, [pair])]
    upright = isinstance(pair.first.shape, Plane)
    plane, solid = (pair.first, pair.second) if upright else (pair.second, pair.first)
    X_plane, X_solid = (
        item.shape.placement if item.body == WORLD else poses[item.body] @ item.shape.placement
        for item in (plane, solid)
    )
    up = X_plane.R @ Vec3(0.0, 0.0, 1.0)
    found = []
    for corner in corners:
        at = X_solid.transform_point(corner)
        gap = up.dot(at - X_plane.p)
        found.append(ContactPoint(at - up * (0.5 * gap), up if upright else up * -1.0, gap))
    return found


def _corners(pair: ContactPair) -> list[Vec3]:
    """Return the corners of the polyhedron of a pair with a plane; no corners for other pairs."""
    shapes = pair.first.shape, pair.second.shape
    if any(isinstance(shape, Plane) for shape in shapes):
        for shape in shapes:
            if isinstance(shape, Box):
                x, y, z = (0.5 * side for side in shape.size)
                return [Vec3(a * x, b * y, c * z) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]
            if isinstance(shape, ConvexMesh):
                return [Vec3.of(vertex) for vertex in shape.vertices]
    return []


def _require_list_result(what: str, function: OfConfiguration) -> OfConfiguration:
    if not callable(function):
        raise DtypeError(f"{what} is of type {type(function).__name__}; give a function of (model, q)")

    def values(model: Model, q: Sequence[Any]) -> list[Any]:
        found: Any = function(model, q)
        try:
            return list(found)
        except (TypeError, TracingError):
            what = "None" if found is None else "one number"
            raise DtypeError(
                f"the function of gaps returned {what}; expected a list, one gap for each contact"
            ) from None

    return values


# Contacts between vertices, faces and edges of polyhedra, as gap functions with extents.

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
    """Two features of polyhedra, on the bodies `body` and `on`, that can touch at one point."""

    body: str
    on: str

    @abstractmethod
    def measure(self, poses: dict[str, Transform]) -> FeatureContact:
        """Return gap, extent, position and normal for these body poses."""

    @property
    def bodies(self) -> tuple[str, str]:
        """The names of the bodies, the second of which the normal points to."""
        return self.on, self.body


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
    >>> corner = da.textbook.VertexFace("cart", (0.0, 0.5, 1.2), on="world", face=table)
    >>> gaps = da.textbook.feature_gaps(model, [corner])
    >>> print(gaps.value([0.0, 0.0]).round(6), gaps.extent([[1.7, 0.0], [2.1, 0.0]]).round(6).tolist())
    [0.2] [[0.3], [-0.1]]
    """

    body: str
    vertex: Point
    on: str
    face: Sequence[Point]

    def __post_init__(self) -> None:
        _require_features(self, vertex=[self.vertex], face=self.face)
        if len(self.face) < 3:
            raise ArgumentError(f"a face has three corners or more, got {len(self.face)}")

    def measure(self, poses: dict[str, Transform]) -> FeatureContact:
        own = poses[self.on]
        at = own.inverse().transform_point(poses[self.body].transform_point(Vec3.of(self.vertex)))
        corners = [Vec3.of(corner) for corner in self.face]
        sides = [end - start for start, end in pairwise([*corners, corners[0]])]
        along = [side * (1.0 / side.norm()) for side in sides]
        normal = sides[0].cross(sides[1])
        normal = normal * (1.0 / normal.norm())
        inside = [normal.cross(x).dot(at - start) for x, start in zip(along, corners, strict=True)]
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
    >>> edges = da.textbook.EdgeEdge(
    ...     "cart", [(0.0, -1.0, 0.3), (0.0, 1.0, 0.3)], on="world", other=[(-1.0, 0.0, 0.0), (0.5, 0.0, 0.0)]
    ... )
    >>> gaps = da.textbook.feature_gaps(model, [edges])
    >>> print(gaps.value([0.0, 0.0]).round(6), gaps.extent([[0.4, 0.0], [0.6, 0.0]]).round(6).tolist())
    [0.3] [[0.1], [-0.1]]
    """

    body: str
    edge: Sequence[Point]
    on: str
    other: Sequence[Point]

    def __post_init__(self) -> None:
        _require_features(self, edge=self.edge, other=self.other)
        for name, ends in (("edge", self.edge), ("other", self.other)):
            if len(ends) != 2:
                raise ArgumentError(f"an edge has two ends, got {len(ends)} for {name}")

    def measure(self, poses: dict[str, Transform]) -> FeatureContact:
        c, d = (poses[self.body].transform_point(Vec3.of(end)) for end in self.edge)
        a, b = (poses[self.on].transform_point(Vec3.of(end)) for end in self.other)
        along, across, apart = b - a, d - c, c - a
        perpendicular = along.cross(across)
        square = perpendicular.dot(perpendicular)
        # The edges cross at a + s along and c + u across.
        s = apart.cross(across).dot(perpendicular) / square
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
    >>> corners = [da.textbook.VertexFace("cart", (x, 0.5, 1.0), on="world", face=table) for x in (-0.2, 0.2)]
    >>> print(da.textbook.feature_gaps(model, corners).extent([1.9, 0.0]).round(6))  # one is past the edge
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

    return _gaps_of_points(model, measure, [feature.bodies for feature in features], bounded=True)


def _require_features(feature: Feature, **features: object) -> None:
    """Raise an error unless both bodies have names and each feature is a list of points."""
    for name in feature.bodies:
        if not isinstance(name, str):
            raise DtypeError(f"{short_repr(name)} is not the name of a body; give two bodies of the model")
    for name, points in features.items():
        if not isinstance(points, Sequence | np.ndarray):
            raise DtypeError(f"{name} is of type {type(points).__name__}; give a list of points")
        shape = real_array(name, points).shape
        if len(shape) != 2 or shape[1] != 3:
            raise ShapeError(f"{name}: points have three coordinates each, got the shape {shape}")
