"""Model surgery: lock joints, attach systems, merge fixed bodies, drop constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from dalembert.errors import ArgumentError, ModelError, ShapeError
from dalembert.model.body import LOOP_PLACEMENTS, PER_VELOCITY
from dalembert.model.force_elements import renamed_path
from dalembert.model.joints import Fixed
from dalembert.model.shapes import Shape
from dalembert.model.topology import WORLD_NAME
from dalembert.model.user_functions import transfer_constraint
from dalembert.spatial import Placement, Transform

if TYPE_CHECKING:
    from dalembert.model.builder import ModelBuilder
    from dalembert.model.model import Model

BODY_ARGUMENTS: Final = (
    *("joint_name", "joint", "placement", "inertia", "rest", "limits", "shapes"),
    *PER_VELOCITY,
)
"""The arguments of `ModelBuilder.add_body`, beside both names, that a body holds under the same names."""

Call: TypeAlias = tuple[str, dict[str, Any]]
"""The name of a method of the builder and its arguments by name."""


def builder_calls(model: Model) -> Iterator[Call]:
    """Yield the calls of a builder that make the model again, but for its functions and its motors."""
    names = (*model.bodies.names, WORLD_NAME)  # so that -1 is the world
    for body in model.bodies:
        own = {name: getattr(body, name) for name in BODY_ARGUMENTS}
        yield "add_body", {"name": body.name, "parent": names[body.parent], **own}
    for frame in model.frames:
        own = {} if frame.inertia is None else {"inertia": frame.inertia}
        place = {"name": frame.name, "body": names[frame.body], "placement": frame.placement}
        yield "add_frame", place | own
    for loop in model.loops:
        ends = {"predecessor": names[loop.predecessor], "successor": names[loop.successor]}
        own = {name: getattr(loop, name) for name in ("name", "joint", *LOOP_PLACEMENTS)}
        yield "add_loop", own | ends
    for coupling in model.couplings:
        own = {name: getattr(coupling, name) for name in ("name", "offset", "dependent")}
        yield "add_coupling", own | {"coefficients": dict(coupling.coefficients)}
    for shape in model.world_shapes:
        yield "add_shape", {"body": WORLD_NAME, "shape": shape}
    for first, second in model.contact_exclusions:
        yield "exclude_contact", {"body": first, "other": second}
    for pair in model.contact_pairs:
        yield "add_contact_pair", asdict(pair)
    for pose in model.poses:
        yield "add_pose", {"name": pose.name, "positions": dict(pose.positions)}
    for actuator in model.actuators:
        own = {name: getattr(actuator, name) for name in ("name", "gain", "bias", "control", "force")}
        yield "add_actuator", own | {"joints": dict(actuator.joints)}
    for spring in model.springs:
        own = {part.name: getattr(spring, part.name) for part in fields(spring)}
        yield "add_spring", own | {"joints": dict(spring.joints)}
    if model.fluid is not None:
        medium = model.fluid
        own = {"density": medium.density, "viscosity": medium.viscosity, "wind": tuple(medium.wind)}
        yield "set_fluid", own
        for part_of_body in model.fluid.shapes:
            yield "add_drag_shape", {x.name: getattr(part_of_body, x.name) for x in fields(part_of_body)}


Rename = Callable[[str], str]
"""The new name for an old one; `str` itself keeps every name."""


def lock(model: Model, joints: Iterable[str], q: Sequence[float] | None = None) -> Model:
    """Return the model with the named joints fixed at the configuration q (nq,); default: neutral.

    The bodies remain, on `Fixed` joints (see `merge_fixed_bodies`). A joint to which couplings leave no
    freedom is locked too.
    """
    if isinstance(joints, str):
        raise ArgumentError(f'lock takes a list of joint names; write ["{joints}"]')
    names = {model.joint(name).name for name in joints}
    configuration = model.neutral() if q is None else np.asarray(q, dtype=np.float64)
    if configuration.shape != (model.nq,):
        raise ShapeError(f"q has shape {configuration.shape}, expected ({model.nq},)")
    if not np.all(np.isfinite(configuration)):
        raise ArgumentError("q holds a number that is not finite; joints lock at finite positions only")
    flat = configuration.tolist()
    positions = {body.joint_name: body.joint.normalize(body.own_q(flat)) for body in model.bodies}
    couplings, names = _reduced_couplings(model, names, positions)

    def locked_call(call: Call) -> Call:
        method, arguments = call
        if method != "add_body" or arguments["joint_name"] not in names:
            return call
        name, joint, placement = (arguments[key] for key in ("joint_name", "joint", "placement"))
        if joint.time_dependent:
            raise ModelError(f'joint "{name}" depends on time and cannot be locked')
        kept = {key: arguments[key] for key in ("name", "parent", "joint_name", "inertia", "shapes")}
        X = placement.as_transform() @ joint.transform(positions[name])
        return method, kept | {"joint": Fixed(), "placement": X}

    calls = [
        locked_call(kept)
        for call in builder_calls(model)
        if call[0] != "add_coupling"
        for kept in _without_joints(call, names, positions)
    ]
    builder = _builder(model, [*calls, *(("add_coupling", arguments) for arguments in couplings)])
    _add_constraints(builder, model, str, {name: tuple(positions[name]) for name in names})
    builder.set_actuated(name for name in model.actuated if name not in names)
    return builder.build(inertia="as_given")


def _without_joints(
    call: Call, locked: Iterable[str], positions: Mapping[str, Sequence[float]]
) -> Iterator[Call]:
    """Yield the call without locked joints where it is about poses, actuators or paths over joints, nothing
    if none is left."""
    method, given = call
    key = {"add_pose": "positions", "add_actuator": "joints", "add_spring": "joints"}.get(method, "")
    if not given.get(key):
        yield call
        return
    changed: dict[str, Any] = {key: {joint: x for joint, x in given[key].items() if joint not in locked}}
    if method != "add_pose":
        length = sum(k * positions[joint][0] for joint, k in given[key].items() if joint in locked)
        if method == "add_actuator":
            b0, b1, b2 = given["bias"]
            changed["bias"] = (b0 + b1 * length, b1, b2)
        else:
            changed |= {part: tuple(x - length for x in given[part]) for part in ("rest_length", "limits")}
    if changed[key]:
        yield method, given | changed


def attach(
    model: Model, other: Model, at: str = WORLD_NAME, *, prefix: str = "", placement: Placement | None = None
) -> Model:
    """Return both systems as one model: the world of `other` becomes the frame `at`, moved by `placement`.

    The names of `other` get the prefix; gravity is this model's. The shapes of its world become those of the
    body that carries the frame: a ground of its own moves with that.
    """
    if not isinstance(other, type(model)):
        raise ArgumentError(f"attach takes a Model, {type(other).__name__} was given")
    frame = model.frame(at)
    root = WORLD_NAME if frame.body < 0 else model.bodies[frame.body].name
    base = frame.placement.as_transform()
    if placement is not None:
        base = base @ placement

    def rename(name: str) -> str:
        return prefix + name

    def home(name: str) -> tuple[str, Transform | None]:
        return (root, base) if name == WORLD_NAME else (rename(name), None)

    moved = (_relocate(call, rename, home) for call in builder_calls(other))
    builder = _builder(model, [*builder_calls(model), *moved])
    _add_constraints(builder, model, str)
    _add_constraints(builder, other, rename)
    builder.set_actuated([*model.actuated, *map(rename, other.actuated)])
    return builder.build(inertia="as_given")


def rebuild_checked(model: Model, *, inertia: Literal["strict", "as_given"]) -> Model:
    """Return the same model rebuilt through the builder's checks."""
    builder = _builder(model, builder_calls(model))
    for constraint in model.constraints:
        builder.add_constraint(constraint.function, constraint.kind, name=constraint.name)  # type: ignore[arg-type]
    if model.closure is not None:
        builder.set_loop_closure(model.closure.function, model.closure.independent)
    builder.set_actuated(model.actuated)
    return builder.build(inertia=inertia)


def merge_fixed_bodies(model: Model) -> Model:
    """Return an equivalent model with every body on a `Fixed` joint merged into its parent."""
    calls = merge_fixed(builder_calls(model))
    builder = _builder(model, calls)
    _add_constraints(builder, model, str)
    moving = {arguments["joint_name"] for method, arguments in calls if method == "add_body"}
    builder.set_actuated(name for name in model.actuated if name in moving)
    return builder.build(inertia="as_given")


def merge_fixed(calls: Iterable[Call]) -> list[Call]:
    """Return calls of a builder, parents first, with every body on a `Fixed` joint merged into its parent.

    A merged body's frame remains under the body's name, with its inertia, and its shapes keep the name as
    that of their link. The inertia of bodies fixed to the world has no effect, and their shapes become the
    world's.
    """
    # For each body, the name of the body that carries its frame, and where the frame is placed there, if it
    # is not the carrier's own.
    home: dict[str, tuple[str, Transform | None]] = {WORLD_NAME: (WORLD_NAME, None)}
    kept: dict[str, dict[str, Any]] = {}
    frames: list[Call] = []
    shapes: list[Call] = []
    rest: list[Call] = []
    for method, arguments in calls:
        if method == "exclude_contact":  # merged bodies remain the links of their shapes
            carriers = {home.get(arguments[key], (arguments[key], None))[0] for key in ("body", "other")}
            rest += [(method, arguments)] * (len(carriers) == 2)
            continue
        if method != "add_body":
            rest.append(_relocate((method, arguments), str, home.__getitem__))
            continue
        name, inertia = arguments["name"], arguments["inertia"]
        carrier, at_parent = home[arguments["parent"]]
        at = arguments["placement"].as_transform()
        if at_parent is not None:
            at = at_parent @ at
        if not isinstance(arguments["joint"], Fixed):
            home[name] = (name, None)
            kept[name] = arguments | {"parent": carrier, "placement": at}
            continue
        home[name] = (carrier, None if at == Transform.identity() else at)
        frames.append(("add_frame", {"name": name, "body": carrier, "placement": at, "inertia": inertia}))
        for shape in arguments["shapes"]:
            moved = replace(_move(shape, at), link=shape.link or name)
            shapes.append(("add_shape", {"body": carrier, "shape": moved}))
        if carrier in kept and any(inertia.leaves()):
            kept[carrier]["inertia"] = kept[carrier]["inertia"] + at.inverse_apply(inertia)
    bodies = [("add_body", arguments) for arguments in kept.values()]
    return [*bodies, *frames, *rest, *shapes]


def _reduced_couplings(
    model: Model, names: set[str], positions: Mapping[str, Sequence[float]]
) -> tuple[list[dict[str, Any]], set[str]]:
    """Return the couplings with locked joints moved into the offsets, and all joints that end up locked."""
    locked = set(names)
    while True:
        reduced: list[dict[str, Any]] = []
        forced: set[str] = set()
        for coupling in model.couplings:
            free = {joint: k for joint, k in coupling.coefficients if joint not in locked}
            fixed = sum(k * positions[joint][0] for joint, k in coupling.coefficients if joint in locked)
            if len(free) == 1:
                forced |= set(free)
            elif free:
                dependent = coupling.dependent if coupling.dependent in free else None
                own = {"name": coupling.name, "coefficients": free, "dependent": dependent}
                reduced.append(own | {"offset": coupling.offset + fixed})
        if not forced:
            return reduced, locked
        locked |= forced


def _add_constraints(
    builder: ModelBuilder, model: Model, rename: Rename, locked: Mapping[str, tuple[float, ...]] = {}
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


def _builder(model: Model, calls: Iterable[Call]) -> ModelBuilder:
    """Return a builder with the model's gravity and name, after these calls."""
    from dalembert.model.builder import ModelBuilder

    builder = ModelBuilder(gravity=model.gravity, name=model.name)
    for method, arguments in calls:
        getattr(builder, method)(**arguments)
    return builder


PLACES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "add_body": (("parent", "placement"),),
    "add_frame": (("body", "placement"),),
    "add_loop": (("predecessor", "placement_predecessor"), ("successor", "placement_successor")),
    "add_shape": (("body", "shape"),),
    "add_drag_shape": (("body", "placement"),),
    "exclude_contact": (("body", ""), ("other", "")),
}
"""The arguments of the builder's methods that name a body, each with the argument that is placed on it."""


def _relocate(call: Call, rename: Rename, home: Callable[[str], tuple[str, Transform | None]]) -> Call:
    """Return the call with other names; `home` gives the new carrier of a body's frame, and where it is."""
    method, given = call
    arguments = dict(given)
    for key in ("name", "joint_name", "dependent", "first", "second"):
        if key in given:
            arguments[key] = rename(given[key])
    for key in ("coefficients", "positions", "joints"):
        if key in given:
            arguments[key] = {rename(joint): k for joint, k in given[key].items()}
    if "shapes" in given:
        arguments["shapes"] = [_rename_shape(shape, rename) for shape in given["shapes"]]
    if "shape" in given:
        arguments["shape"] = _rename_shape(given["shape"], rename)
    if method == "add_spring":
        arguments["points"] = renamed_path(given["points"], home)
    for key, placed in PLACES.get(method, ()):
        arguments[key], X = home(given[key])
        if X is not None and placed:
            arguments[placed] = _move(arguments[placed], X)
    if method == "add_frame" and WORLD_NAME == given["body"] != arguments["body"]:
        arguments.pop("inertia", None)  # that of what was fixed to the world is in no body
    return method, arguments


def _rename_shape(shape: Shape, rename: Rename) -> Shape:
    """Return the shape under its new names; an unnamed shape stays unnamed."""
    own, link = (rename(name) if name else "" for name in (shape.name, shape.link))
    return shape if (own, link) == (shape.name, shape.link) else replace(shape, name=own, link=link)


def _move(placed: Any, X: Transform) -> Any:
    """Return a placement, or a shape, with X applied before it."""
    if isinstance(placed, Shape):
        return replace(placed, placement=X @ placed.placement)
    return X @ placed
