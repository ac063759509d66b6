"""`da.stand`: a figure lifted or lowered until its lowest point touches the ground."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dalembert.api.kinematics import forward_kinematics
from dalembert.call.arguments import Array, as_array
from dalembert.errors import ArgumentError, ModelError
from dalembert.formats.meshes import mesh_of
from dalembert.model.body import Body
from dalembert.model.joints import Free, Prismatic, Translation
from dalembert.model.model import Model, require_model
from dalembert.model.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    Ellipsoid,
    Mesh,
    Plane,
    Shape,
    Sphere,
)

MAX_TILT: Final = 1e-9
"""Sine of the angle up to which an axis counts as vertical and a plane as horizontal: rounding."""

# How far a solid reaches from its origin along unit vectors d (…, 3) of its own coordinates

REACH: Final[dict[type[Shape], Callable[[Any, Array], Array]]] = {
    Sphere: lambda shape, d: np.full(d.shape[:-1], shape.radius),
    Box: lambda shape, d: np.abs(d) @ (0.5 * np.array(shape.size)),
    Capsule: lambda shape, d: shape.radius + 0.5 * shape.length * np.abs(d[..., 2]),
    Cylinder: lambda shape, d: (
        shape.radius * np.hypot(d[..., 0], d[..., 1]) + 0.5 * shape.length * np.abs(d[..., 2])
    ),
    Ellipsoid: lambda shape, d: np.linalg.norm(d * np.array(shape.radii), axis=-1),
    ConvexMesh: lambda shape, d: (d @ np.array(shape.vertices, dtype=np.float64).T).max(axis=-1),
    Mesh: lambda shape, d: (d @ mesh_of(shape).corners.T).max(axis=-1),
}


def stand(model: Model, q: npt.ArrayLike) -> Array:
    """Return q `(…, nq)` with the figure lifted or lowered along z until its lowest point is on the ground.

    The ground is the highest horizontal plane of the world, as of `model.with_ground()`, or z = 0 without
    one. All shapes that collide count, meshes included; other geometry of the world does not. `stand` moves
    the first joint of each figure that lifts it: a free joint, a translation or a vertical slide.

    >>> model = da.models.humanoid().with_ground()
    >>> q = da.stand(model, model.neutral())
    >>> below = da.contact.pairs_of(model, self_collision=False)
    >>> print(round(float(da.contact.distances(model, q, pairs=below).gap.min()), 9))
    0.0
    """
    found = as_array("q", q, (require_model(model).nq,)).copy()
    poses = forward_kinematics(model, found, time=0.0 if model.time_dependent else None)
    lifters = [body for root in model.bodies if root.parent < 0 for body in _lifter(model, root)]
    if not lifters:
        raise ModelError(
            f'model "{model.name}" stands on a fixed base, so that nothing lifts it; load its file with '
            'root="floating", or build it on a Free joint'
        )
    moved = sorted(frozenset[int]().union(*(model.subtree(body) for body in lifters)))
    lowest = lowest_points(model, moved, poses.rotation, poses.translation).min(axis=-1)
    if np.isinf(lowest).any():
        raise ModelError(
            f'model "{model.name}" has no shape that collides on a body that moves up and down; add one with '
            "ModelBuilder.add_shape"
        )
    lift = _ground(model) - lowest
    for body in lifters:
        rotation = np.eye(3)
        if body.parent >= 0:
            rotation = poses.rotation[..., body.parent, :, :]
        up = _up(body, rotation)
        places = slice(body.q_slice.start, body.q_slice.start + up.shape[-1])
        found[..., places] += lift[..., np.newaxis] * up
    if not np.isfinite(found).all():
        raise ArgumentError("stand: q holds numbers that are not finite")
    return found


def lowest_points(model: Model, bodies: Sequence[int], rotation: Array, translation: Array) -> Array:
    """Return the heights `(…, len(bodies))` [m] of the lowest points of bodies, of their shapes that collide;
    infinite for a body without. Poses `(…, n_bodies, 3, 3)` and `(…, n_bodies, 3)` are those of all bodies.
    """
    found = np.full((*translation.shape[:-2], len(bodies)), np.inf)
    for column, index in enumerate(bodies):
        R, p = rotation[..., index, :, :], translation[..., index, :]
        found[..., column] = lowest_of(model.bodies[index].shapes, R, p)
    return found


def lowest_of(shapes: Iterable[Shape], R: Array, p: Array) -> Array:
    """Return the height `(…,)` [m] of the lowest point of shapes that collide, on a body with these poses."""
    found = np.full(p.shape[:-1], np.inf)
    for shape in shapes:
        if type(shape) in REACH and shape.collision:
            found = np.minimum(found, _lowest_point(shape, R, p))
    return found


def _lifter(model: Model, root: Body) -> Iterator[Body]:
    """Yield the first body of a figure whose joint lifts it with all its shapes, if there is one."""
    body: Body | None = root
    while body is not None and body.dependence is None:
        if _lifts(model, body):
            yield body
            return
        below = sorted(model.children(body))
        body = model.bodies[below[0]] if len(below) == 1 and not body.shapes else None


def _lifts(model: Model, body: Body) -> bool:
    """Return whether a joint moves its body up and down, in every configuration of the joints before it."""
    if isinstance(body.joint, Free | Translation):
        return True
    if not isinstance(body.joint, Prismatic):
        return False
    axis = body.placement.as_transform().R @ body.joint.axis
    turned = False
    while body.parent >= 0:
        body = model.bodies[body.parent]
        turned = turned or not isinstance(body.joint, Prismatic)
        axis = body.placement.as_transform().R @ axis
    return not turned and bool(np.hypot(float(axis.x), float(axis.y)) <= MAX_TILT)


def _up(body: Body, rotation: Array) -> Array:
    """Return the change of the joint's positions `(…, 3)` or `(…, 1)` that lifts its body by one; `rotation`
    is that of its parent."""
    placed = rotation @ np.array(body.placement.as_transform().R.to_list(), dtype=np.float64)
    up = placed[..., 2, :]  # z of the world in the frame in which the joint moves
    if isinstance(body.joint, Prismatic):
        return np.asarray(up @ np.array(body.joint.axis.to_list(), dtype=np.float64))[..., np.newaxis]
    return np.asarray(up)


def _lowest_point(shape: Shape, R: Array, p: Array) -> Array:
    """Return z of the lowest point of a shape on a body with these poses."""
    X = shape.placement.as_transform()
    origin = p + R @ np.array(X.p.to_list(), dtype=np.float64)
    down = -(R @ np.array(X.R.to_list(), dtype=np.float64))[..., 2, :]
    return np.asarray(origin[..., 2] - REACH[type(shape)](shape, down))


def _ground(model: Model) -> float:
    """Return the height of the highest horizontal plane of the world; 0 without one."""
    heights = []
    for shape in model.world_shapes:
        X = shape.placement.as_transform()
        level = np.hypot(float(X.R.xz), float(X.R.yz)) <= MAX_TILT and float(X.R.zz) > 0.0
        if isinstance(shape, Plane) and shape.collision and level:
            heights.append(float(X.p.z))
    return max(heights, default=0.0)
