"""Contact constraints phi(q) >= 0 with their derivatives, and the states they can be in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import cached_property
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.call.arguments import real_array, short_repr
from dalembert.compiler.compiled import compile as compile_function
from dalembert.compiler.execution import CompiledFunction
from dalembert.contact.candidates import ContactPoint
from dalembert.contact.pairs import ContactPair, pairs_of
from dalembert.contact.points import contact_points, point_names
from dalembert.errors import (
    ArgumentError,
    DtypeError,
    ModelError,
    ShapeError,
    TracingError,
    items_of,
    own_errors,
)
from dalembert.model.model import Model, require_model
from dalembert.model.shapes import Box, ConvexMesh, Plane
from dalembert.model.system import WORLD_NAME
from dalembert.model.topology import WORLD
from dalembert.spatial import Vec3

__all__ = ["ContactState", "GapFunction", "contact_states", "shape_gaps"]

Array: TypeAlias = npt.NDArray[Any]
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

    >>> [state.value for state in da.contact.contact_states([0.1, 0.0, 0.0, 0.0], [-2.0, -2.0, 2.0, 0.0])]
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
    >>> gaps = da.contact.GapFunction(model, height)
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
        self._extent = (
            None if extent is None else compile_function(_require_list_result("extent", extent), model)
        )
        self._points = (
            None if points is None else compile_function(_require_list_result("points", points), model)
        )
        count = self.value(model.neutral()).shape[-1]
        given = [f"contact {i}" for i in range(count)] if names is None else items_of(names)
        if not all(isinstance(name, str) or _is_pair(name) for name in given):
            raise ArgumentError(
                f"names is {short_repr(names)}; give a name, or two of what touches, a contact"
            )
        self.pairs = tuple(
            (WORLD_NAME, name) if isinstance(name, str) else (name[0], name[1]) for name in given
        )
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
        return np.swapaxes(np.asarray(self._jacobian(q)), -1, -2)

    def rate(self, q: Any, v: Any) -> Array:
        """Return zeta = phi-dot = T^T v `(…, nc)` [m/s]."""
        return np.asarray(self._rate(q, v))

    def bias(self, q: Any, v: Any) -> Array:
        """Return dT/dt^T v `(…, nc)` [m/s^2]: phi-ddot where a = 0."""
        return np.asarray(self._bias(q, v, v))

    def extent(self, q: Any) -> Array:
        """Return numbers `(…, nc)`, positive where the features of a contact face each other; one for
        unbounded features."""
        return np.ones_like(self.value(q)) if self._extent is None else np.asarray(self._extent(q))

    def points(self, q: Any) -> tuple[Array, Array] | None:
        """Return positions and normals `(…, nc, 3)` of contacts in the world, or None if they were not
        given."""
        if self._points is None:
            return None
        both = np.asarray(self._points(q))
        return both[..., :3], both[..., 3:]

    @cached_property
    def _jacobian(self) -> CompiledFunction:
        return self._value.jacobian("q")

    @cached_property
    def _rate(self) -> CompiledFunction:
        return self._value.jvp("q")

    @cached_property
    def _bias(self) -> CompiledFunction:
        return self._rate.jvp("q")


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
    >>> _ = builder.add_shape("ball", da.Sphere(0.5))
    >>> model = builder.build().with_ground()
    >>> gaps = da.contact.shape_gaps(model)
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

    def gaps(tree: Model, q: Sequence[Any]) -> list[Any]:
        return [point.gap for point in nearest(tree, q)]

    def points(tree: Model, q: Sequence[Any]) -> list[Any]:
        return [[*point.position, *point.normal] for point in nearest(tree, q)]

    names = [
        name
        for pair in chosen
        for name in point_names(model, [pair])[:1] * (len(_corners(pair)) or len(point_names(model, [pair])))
    ]
    return GapFunction(model, gaps, points=points, names=names)


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


def _is_pair(name: object) -> bool:
    """Return whether `name` is a pair of names."""
    return isinstance(name, tuple | list) and len(name) == 2 and all(isinstance(part, str) for part in name)


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
                f"the function of gaps returned {what}; expected a list, one a contact"
            ) from None

    return values
