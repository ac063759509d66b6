"""Distances between the shapes of a model, and their rates."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.kinematics import body_velocities, forward_kinematics
from dalembert.call.arguments import Array, ArrayArgument
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.library import source_digest
from dalembert.compiler.lowering import Recipe
from dalembert.contact.narrow_phase import nearest_point
from dalembert.contact.narrow_phase.candidates import ContactPoint
from dalembert.contact.options import PairChoice, select_pairs
from dalembert.contact.pairs import COEFFICIENTS, ContactPair, pair_names, poses_of
from dalembert.errors import own_errors
from dalembert.model.model import Model
from dalembert.model.topology import WORLD
from dalembert.model.tree import PerBody
from dalembert.scalar import Scalar
from dalembert.spatial import Transform


class Distances(NamedTuple):
    """The distances of n pairs of shapes: `gap` (…, n) [m], negative where they overlap; `normal` (…, n, 3),
    the unit vector from the first shape to the second; `position` (…, n, 3) [m] midway between the surfaces;
    all in world coordinates; `names` of both shapes, or of their bodies.
    """

    gap: Array
    normal: Array
    position: Array
    names: tuple[tuple[str, str], ...]


class GapRates(NamedTuple):
    """The rates d gap/dt (…, n) [m/s] and d normal/dt (…, n, 3) [1/s]; `names` as in `Distances`."""

    gap: Array
    normal: Array
    names: tuple[tuple[str, str], ...]


@own_errors
def distances(model: Model, q: npt.ArrayLike, *, pairs: PairChoice = None) -> Distances:
    """Compute phi = max over unit vectors n of (min over b of n . x - max over a of n . x): the signed
    distance of the shapes a and b of each pair, with that n, at configurations q `(…, nq)`.

    `pairs`: what `pairs_of` returns, or the names that its `only` takes; default: all that may touch.
    In closed form between planes, spheres, capsules and boxes; iterated to 1e-7 m or better between other
    solids, where a deep overlap may be given as deeper than it is. Height fields count as the planes
    of the triangles under the lowest points of a solid.

    Source: phi(q) of Featherstone 2008 §11.4, Eq. 11.37.

    >>> builder = da.ModelBuilder()
    >>> builder.add_shape("world", da.shapes.Plane(name="ground"))
    >>> builder.add_body("ball", "world", da.Free(), inertia=da.shapes.Sphere(0.1).inertia(mass=1.0))
    >>> builder.add_shape("ball", da.shapes.Sphere(0.1, name="skin"))
    >>> found = da.contact.distances(builder.build(), [0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0])
    >>> found.names, found.gap, found.normal
    ((('ground', 'skin'),), array([0.4]), array([[0., 0., 1.]]))
    """
    chosen = select_pairs(model, pairs, (), self_collision=True)
    names = tuple(pair_names(model, pair) for pair in chosen)
    if not chosen:
        shape = np.shape(q)[:-1]
        return Distances(np.zeros((*shape, 0)), np.zeros((*shape, 0, 3)), np.zeros((*shape, 0, 3)), names)
    gap, normal, position = _nearest(model, chosen)(q)
    return Distances(gap, normal, position, names)


@own_errors
def gap_rates(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, *, pairs: PairChoice = None) -> GapRates:
    """Compute d phi/dt = n . (v_b - v_a) at the nearest points, and dn/dt, while the model moves at v `(…,
    nv)`.

    dn/dt, the derivative of the normal of `distances`, tells how nearest points travel over curved surfaces,
    and jumps where they do. Between an ellipsoid or a cylinder's mantle and another general solid it is no
    more than an estimate: the iteration ends before its derivative has settled.

    Source: zeta and the term with n' of Featherstone 2008 §11.3, Eqs 11.23 and 11.36.

    >>> builder = da.ModelBuilder()
    >>> builder.add_shape("world", da.shapes.Sphere(1.0))
    >>> builder.add_body("ball", "world", da.Free(), inertia=da.shapes.Sphere(0.1).inertia(mass=1.0))
    >>> builder.add_shape("ball", da.shapes.Sphere(0.5))
    >>> q, v = [0.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 3.0, 0.0, -1.0]
    >>> rates = da.contact.gap_rates(builder.build(), q, v)
    >>> rates.gap, rates.normal
    (array([-1.]), array([[1.5, 0. , 0. ]]))
    """
    chosen = select_pairs(model, pairs, (), self_collision=True)
    names = tuple(pair_names(model, pair) for pair in chosen)
    if not chosen:
        shape = np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1])
        return GapRates(np.zeros((*shape, 0)), np.zeros((*shape, 0, 3)), names)
    _, normal, _ = _nearest(model, chosen).jvp("q")(q, v)
    return GapRates(_approach(model, chosen)(q, v), normal, names)


def compiled_for_pairs(
    model: Model,
    name: str,
    function: Callable[..., Any],
    shapes: Mapping[str, tuple[int, ...]],
    pairs: tuple[ContactPair, ...] = (),
    parameters: tuple[str, ...] = (),
) -> CompiledFunction:
    """Return `function(model, *arrays)`, compiled for arrays with these `shapes` and kept with the model;
    `name` and `pairs` identify it."""
    # Hashing the pairs of a large model takes milliseconds, so the same tuple is recognised by identity.
    at_once = (name, id(pairs), parameters)
    known, found = model.functions.get(at_once, (None, None))
    if known is not pairs or found is None:
        key = (name, pairs_key(pairs), parameters)
        found = model.functions.get(key)
        if found is None:
            text = f"{key} {model.digest} {source_digest()}"
            recipe = Recipe(
                name,
                function,
                model,
                tuple(ArrayArgument(*item) for item in shapes.items()),
                tuple(ArrayArgument(item, np.shape(model.value(item))) for item in parameters),
                identity=hashlib.sha256(text.encode()).hexdigest(),
            )
            found = model.functions[key] = CompiledFunction(recipe, dtype="float64")
        model.functions[at_once] = pairs, found
    made: CompiledFunction = found
    return made


def pairs_key(pairs: tuple[ContactPair, ...]) -> str:
    """Return a key that identifies a set of pairs of one model. A shape of many pairs is written once."""
    shapes = {id(side.shape): side.shape for pair in pairs for side in (pair.first, pair.second)}
    numbers = {key: number for number, key in enumerate(shapes)}
    values: dict[tuple[Any, ...], int] = {}
    sides = [
        (a.body, numbers[id(a.shape)], a.number, b.body, numbers[id(b.shape)], b.number)
        for a, b in ((pair.first, pair.second) for pair in pairs)
    ]
    given = [
        values.setdefault(tuple(getattr(pair, name) for name in COEFFICIENTS), len(values)) for pair in pairs
    ]
    known = hashlib.sha256(repr((list(shapes.values()), list(values))).encode())
    for listed in (sides, given):
        known.update(np.array(listed, np.int64).tobytes())
    return known.hexdigest()


def _nearest(model: Model, pairs: tuple[ContactPair, ...]) -> CompiledFunction:
    """Return gaps, normals and positions as a compiled function of q."""

    def nearest(tree: Model, q: Sequence[Scalar]) -> tuple[Any, ...]:
        found = _points(forward_kinematics(tree, q), pairs)
        normals, positions = (
            [list(point.normal) for point in found],
            [list(point.position) for point in found],
        )
        return [point.gap for point in found], normals, positions

    return compiled_for_pairs(model, "distances", nearest, {"q": (model.nq,)}, pairs)


def _approach(model: Model, pairs: tuple[ContactPair, ...]) -> CompiledFunction:
    """Return n . (v_b - v_a) as a compiled function of q and v."""

    def approach(tree: Model, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        poses, velocities = forward_kinematics(tree, q), body_velocities(tree, q, v)

        def normal_velocity(body: int, point: ContactPoint) -> Scalar:
            """Return the velocity along the normal of the body's material point at the contact."""
            if body == WORLD:
                return 0.0
            X, motion = poses[body], velocities[body]
            arm = X.inverse_transform_point(point.position)
            return X.R.transposed_times(point.normal).dot(motion.linear + motion.angular.cross(arm))

        return [
            normal_velocity(pair.second.body, point) - normal_velocity(pair.first.body, point)
            for pair, point in zip(pairs, _points(poses, pairs), strict=True)
        ]

    shapes = {"q": (model.nq,), "v": (model.nv,)}
    return compiled_for_pairs(model, "gap rates", approach, shapes, pairs)


def _points(poses: PerBody[Transform], pairs: tuple[ContactPair, ...]) -> list[ContactPoint]:
    pose = poses_of(poses)
    return [
        nearest_point(pair.first.shape, pose(pair.first), pair.second.shape, pose(pair.second))
        for pair in pairs
    ]
