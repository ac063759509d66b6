"""Model surgery: lock joints, attach systems, merge fixed bodies, drop constraints."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from dalembert.errors import ArgumentError, ModelError, ShapeError
from dalembert.model.body import Body, Limits
from dalembert.model.builder import ModelBuilder
from dalembert.model.checks import is_finite
from dalembert.model.joints import Fixed
from dalembert.model.model import Model
from dalembert.model.shapes import Plane, Shape
from dalembert.model.shapes.shape import USUAL_FRICTION
from dalembert.model.system import WORLD_NAME
from dalembert.model.user_constraints import transfer_constraint
from dalembert.model.values import rebuilt
from dalembert.spatial import Mat3, RigidInertia, Transform, Vec3
from dalembert.spatial.transform import Placement

Rename = Callable[[str], str]


def lock(model: Model, joints: Iterable[str], q: Sequence[float] | None = None) -> Model:
    """Return the model with the named joints fixed at the configuration q (nq,); default: neutral.

    The bodies remain, on `Fixed` joints (see `merge_fixed_bodies`). A joint to which couplings leave no
    freedom is locked too.
    """
    if isinstance(joints, str):
        raise ArgumentError(f'lock takes a list of joint names; write ["{joints}"]')
    names = {model.joint(name).name for name in joints}
    positions = _positions(model, q)
    couplings, names = _reduced_couplings(model, names, positions)
    builder = ModelBuilder(gravity=model.gravity, name=model.name)
    for body in model.bodies:
        if body.joint_name in names:
            if body.joint.time_dependent:
                raise ModelError(f'joint "{body.joint_name}" depends on time and cannot be locked')
            X_J = body.joint.transform(positions[body.joint_name])
            body = dataclasses.replace(
                body,
                joint=Fixed(),
                placement=body.placement.as_transform() @ X_J,
                armature=(),
                damping=(),
                friction=(),
                stiffness=(),
                rest=(),
                limits=Limits((), (), (), ()),
            )
        _add_body(builder, model, body, _same, None)
    _add_rest(builder, model, _same, couplings=False)
    for name, (terms, offset, dependent) in couplings.items():
        builder.add_coupling(name, terms, offset=offset, dependent=dependent)
    _add_constraints(
        builder,
        model,
        _same,
        lambda body: tuple(positions[body.joint_name]) if body.joint_name in names else None,
    )
    builder.set_actuated(name for name in model.actuated if name not in names)
    return builder.build(inertia="as_given")


def attach(
    model: Model, other: Model, at: str = WORLD_NAME, *, prefix: str = "", placement: Placement | None = None
) -> Model:
    """Return both systems as one model: the world of `other` becomes the frame `at`, moved by `placement`.

    The names of `other` get the prefix; gravity is this model's. The shapes of its world become those of the
    body that carries the frame: a ground of its own moves with that.
    """
    if not isinstance(other, Model):
        raise ArgumentError(f"attach takes a Model, {type(other).__name__} was given")
    frame = model.frame(at)
    root = WORLD_NAME if frame.body < 0 else model.bodies[frame.body].name
    base = frame.placement.as_transform()
    if placement is not None:
        base = base @ placement

    def rename(name: str) -> str:
        return prefix + name

    builder = ModelBuilder(gravity=model.gravity, name=model.name)
    for body in model.bodies:
        _add_body(builder, model, body, _same, None)
    for body in other.bodies:
        _add_body(builder, other, body, rename, (root, base))
    _add_rest(builder, model, _same)
    _add_rest(builder, other, rename, (root, base))
    _add_constraints(builder, model, _same)
    _add_constraints(builder, other, rename)
    builder.set_actuated([*model.actuated, *map(rename, other.actuated)])
    return builder.build(inertia="as_given")


def with_ground(
    model: Model, height: float, *, friction: float | None, restitution: float, name: str
) -> Model:
    """Return the model with a horizontal plane at z = height [m]."""
    if not is_finite(height):
        raise ArgumentError(f"with_ground: height is {height!r}; give a finite number [m]")
    if friction is not None and (not is_finite(friction) or friction < 0.0):
        raise ArgumentError(
            f"with_ground: friction is {friction!r}; give a finite number that is not negative, such as 0.8"
        )
    if not is_finite(restitution) or not 0.0 <= restitution <= 1.0:
        raise ArgumentError(f"with_ground: restitution is {restitution!r}; give a number from 0 to 1")
    ground = Plane(
        name=name,
        placement=Transform(Mat3.identity(), Vec3(0.0, 0.0, float(height))),
        friction=None if friction is None else (friction, *USUAL_FRICTION[1:]),
        restitution=restitution,
    )
    return rebuilt(model, world_shapes=(*model.world_shapes, ground))


def tree(model: Model) -> Model:
    """Return the model without its loop joints and other constraints."""
    return rebuilt(model, loops=(), constraints=(), closure=None)


def rebuild_checked(model: Model, *, inertia: Literal["strict", "as_given"]) -> Model:
    """Return the same model rebuilt through the builder's checks."""
    builder = ModelBuilder(gravity=model.gravity, name=model.name)
    for body in model.bodies:
        _add_body(builder, model, body, _same, None)
    _add_rest(builder, model, _same)
    for constraint in model.constraints:
        builder.add_constraint(constraint.function, constraint.kind, name=constraint.name)  # type: ignore[arg-type]
    if model.closure is not None:
        builder.set_loop_closure(model.closure.function, model.closure.independent)
    builder.set_actuated(model.actuated)
    return builder.build(inertia=inertia)


def merge_fixed_bodies(model: Model) -> Model:
    """Return the model with every body on a `Fixed` joint merged into its parent: equal dynamics, fewer
    bodies.

    A merged body's frame remains under the body's name, and its exclusions from contact hold for the whole;
    bodies fixed to the world lose their inertia, and their shapes become the world's.
    """
    # For each body, the name of the body that carries its frame, and the frame's placement there.
    home: dict[int, tuple[str, Transform]] = {-1: (WORLD_NAME, Transform.identity())}
    kept: dict[str, Body] = {}
    frames: list[tuple[str, str, Placement]] = []
    merged: list[tuple[str, Shape]] = []
    for body in model.bodies:
        name, at_parent = home[body.parent]
        at = at_parent @ body.placement
        if not isinstance(body.joint, Fixed):
            home[body.index] = (body.name, Transform.identity())
            kept[body.name] = dataclasses.replace(body, placement=at)
            continue
        home[body.index] = (name, at)
        frames.append((body.name, name, at))
        merged += [(name, _move_shape(shape, at)) for shape in body.shapes]
        if name in kept:
            whole: RigidInertia = kept[name].inertia + at.inverse_apply(body.inertia)
            kept[name] = dataclasses.replace(kept[name], inertia=whole)
    builder = ModelBuilder(gravity=model.gravity, name=model.name)
    for body in kept.values():
        _add_plain(builder, body, home[body.parent][0], _same)
    for shape in model.world_shapes:
        builder.add_shape(WORLD_NAME, shape)
    for carrier, shape in merged:
        builder.add_shape(carrier, shape)
    add_contact(builder, model, lambda name: home[model.frame(name).body][0], _same)
    for frame in frames:
        builder.add_frame(*frame)
    for item in model.frames:
        carrier, at = home[item.body]
        builder.add_frame(item.name, carrier, at @ item.placement)
    for loop in model.loops:
        p, at_p = home[loop.predecessor]
        s, at_s = home[loop.successor]
        builder.add_loop(
            loop.name, p, s, loop.joint, at_p @ loop.placement_predecessor, at_s @ loop.placement_successor
        )
    for coupling in model.couplings:
        builder.add_coupling(
            coupling.name, dict(coupling.coefficients), offset=coupling.offset, dependent=coupling.dependent
        )
    _add_constraints(builder, model, _same)
    moving = {body.joint_name for body in kept.values()}
    builder.set_actuated(name for name in model.actuated if name in moving)
    return builder.build(inertia="as_given")


def _positions(model: Model, q: Sequence[float] | None) -> dict[str, list[float]]:
    """Return every joint's own position at a configuration of the model."""
    configuration = model.neutral() if q is None else np.asarray(q, dtype=np.float64)
    if configuration.shape != (model.nq,):
        raise ShapeError(f"q has shape {configuration.shape}, expected ({model.nq},)")
    if not np.all(np.isfinite(configuration)):
        raise ArgumentError("q holds a number that is not finite; joints lock at finite positions only")
    flat = configuration.tolist()
    return {body.joint_name: body.joint.normalize(body.own_q(flat)) for body in model.bodies}


def _reduced_couplings(
    model: Model, names: set[str], positions: Mapping[str, Sequence[float]]
) -> tuple[dict[str, tuple[dict[str, float], float, str | None]], set[str]]:
    """Return the couplings with locked joints moved into the offsets, and all joints that end up locked."""
    locked = set(names)
    while True:
        reduced: dict[str, tuple[dict[str, float], float, str | None]] = {}
        forced: set[str] = set()
        for coupling in model.couplings:
            free = {joint: k for joint, k in coupling.coefficients if joint not in locked}
            fixed = sum(k * positions[joint][0] for joint, k in coupling.coefficients if joint in locked)
            if len(free) == 1:
                forced |= set(free)
            elif free:
                dependent = coupling.dependent if coupling.dependent in free else None
                reduced[coupling.name] = (free, coupling.offset + fixed, dependent)
        if not forced:
            return reduced, locked
        locked |= forced


def _add_constraints(
    builder: ModelBuilder,
    model: Model,
    rename: Rename,
    locked: Callable[[Body], tuple[float, ...] | None] = lambda body: None,
) -> None:
    """Add the constraints of a model, whose functions go on seeing that model's own q and v.

    A loop closure is a function of the old joints: it is dropped where loops say the same.
    """
    for item in model.constraints:
        function = transfer_constraint(item, model, rename, locked)
        builder.add_constraint(function, item.kind, name=rename(item.name))  # type: ignore[arg-type]
    if model.closure is not None:
        if not (model.loops or model.constraints):
            raise ModelError(
                "the loop closure q = gamma(y) belongs to this model's joints and cannot go into another; "
                "build the new model and give it its own with set_loop_closure"
            )
        builder.warn("the loop closure q = gamma(y) was left behind; loops are solved by their equations")


def _same(name: str) -> str:
    return name


def add_contact(builder: ModelBuilder, model: Model, body: Rename = _same, shape: Rename = _same) -> None:
    """Add the exclusions and pairs of a model, its bodies and shapes under their new names."""
    for pair in model.contact_exclusions:
        first, second = map(body, pair)
        if first != second:
            builder.exclude_contact(first, second)
    for item in model.contact_pairs:
        builder.add_contact_pair(
            shape(item.first), shape(item.second), friction=item.friction, restitution=item.restitution
        )


def _add_body(
    builder: ModelBuilder, model: Model, body: Body, rename: Rename, base: tuple[str, Transform] | None
) -> None:
    """Add a body of a model under its new name; `base` stands in for the model's world."""
    if body.parent >= 0:
        _add_plain(builder, body, rename(model.bodies[body.parent].name), rename)
    elif base is None:
        _add_plain(builder, body, WORLD_NAME, rename)
    else:
        moved = dataclasses.replace(body, placement=base[1] @ body.placement)
        _add_plain(builder, moved, base[0], rename)


def _add_plain(builder: ModelBuilder, body: Body, parent: str, rename: Rename) -> None:
    builder.add_body(
        rename(body.name),
        parent,
        body.joint,
        rename(body.joint_name),
        placement=body.placement,
        inertia=body.inertia,
        limits=body.limits,
        damping=body.damping,
        armature=body.armature,
        friction=body.friction,
        stiffness=body.stiffness,
        rest=body.rest,
        shapes=[_rename_shape(shape, rename) for shape in body.shapes],
    )


def _rename_shape(shape: Shape, rename: Rename) -> Shape:
    """Return the shape under its new name; an unnamed shape stays unnamed."""
    own = rename(shape.name) if shape.name else ""
    return shape if own == shape.name else dataclasses.replace(shape, name=own)


def _move_shape(shape: Shape, X: Transform | None) -> Shape:
    """Return the shape with X applied before its placement."""
    return shape if X is None else dataclasses.replace(shape, placement=X @ shape.placement)


def _add_rest(
    builder: ModelBuilder,
    model: Model,
    rename: Rename,
    base: tuple[str, Transform] | None = None,
    *,
    couplings: bool = True,
) -> None:
    """Add the frames, loops and couplings of a model, what stands on its world, and what may touch."""
    root, X = base if base is not None else (WORLD_NAME, None)

    def place(body: int, placement: Placement) -> tuple[str, Any]:
        if body >= 0:
            return rename(model.bodies[body].name), placement
        return root, placement if X is None else X @ placement

    for shape in model.world_shapes:
        builder.add_shape(root, _move_shape(_rename_shape(shape, rename), X))
    add_contact(builder, model, lambda name: root if name == WORLD_NAME else rename(name), rename)
    for frame in model.frames:
        builder.add_frame(rename(frame.name), *place(frame.body, frame.placement))
    for loop in model.loops:
        p, X_P = place(loop.predecessor, loop.placement_predecessor)
        s, X_S = place(loop.successor, loop.placement_successor)
        builder.add_loop(rename(loop.name), p, s, loop.joint, X_P, X_S)
    for coupling in model.couplings if couplings else ():
        terms = {rename(joint): k for joint, k in coupling.coefficients}
        builder.add_coupling(
            rename(coupling.name), terms, offset=coupling.offset, dependent=rename(coupling.dependent)
        )
