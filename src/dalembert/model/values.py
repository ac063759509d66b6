"""The numbers of a model by name: reading, replacing, and passing them at run time.

    <body>.mass  .com  .inertia (3x3 at the centre of mass), also of a link that was merged into a body
    <joint>.placement (3x4, [R | p])  and the joint's own parameters, such as .axis or .pitch
    <joint>.armature  .damping  .friction  .stiffness  .rest  .lower  .upper  .velocity  .effort
    <spring>.stiffness  .damping  .rest_length (a number, or two)
    <shape, link or body>.contact_friction  .torsional_friction  .rolling_friction  .restitution
    gravity

Values of one-DoF joints are single numbers, others have one entry for each coordinate. The dry friction of a
joint is <joint>.joint_friction, too: where <joint>.friction could be meant as that of contact, that is
refused.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from dalembert.errors import ModelError, ShapeError, UnknownNameError
from dalembert.model.body import JOINT_VALUES, LIMITS, Body, Frame, Limits
from dalembert.model.force_elements import SPRING_VALUES, Spring
from dalembert.model.joints import Joint
from dalembert.model.joints.joint import flatten
from dalembert.model.shapes.shape import USUAL_FRICTION, Shape
from dalembert.model.topology import WORLD, WORLD_NAME
from dalembert.model.user_functions import TransferredFunction
from dalembert.scalar import Scalar
from dalembert.spatial import Mat3, Placement, RigidInertia, SymMat3, Transform, Vec3

if TYPE_CHECKING:
    from dalembert.model.model import Model


BODY_VALUES = ("mass", "com", "inertia")

JOINT_FRICTION = "joint_friction"
"""The name of the dry friction of a joint that no contact shares."""

Parts: TypeAlias = dict[str, tuple[str, Any]]
"""New values of a body by what they are, each with the name under which it was given."""


def value_names(model: Model) -> tuple[str, ...]:
    """Return every name that `value`, `with_values` and run-time parameters accept, body by body."""
    names = ["gravity"]
    for body in model.bodies:
        names += [f"{body.name}.{part}" for part in BODY_VALUES]
        for part in _joint_parts(body):
            shared = part == "friction" and shapes_of(model, body.joint_name)
            names.append(f"{body.joint_name}.{JOINT_FRICTION if shared else part}")
    for frame in model.frames:
        if frame.inertia is not None and frame.body != WORLD:
            names += [f"{frame.name}.{part}" for part in BODY_VALUES]
    names += [f"{spring.name}.{part}" for spring in model.springs for part in SPRING_VALUES]
    return (*names, *shape_value_names(model))


def value(model: Model, name: str) -> Any:
    """Return a named number or read-only array, such as "upper.mass" or "elbow.placement"."""
    if not isinstance(name, str):
        raise UnknownNameError.of("model value", name, value_names(model))
    if name == "gravity":
        return _frozen(model.gravity.to_list())
    owner, part = _locate(model, name)
    if isinstance(owner, Spring):
        return _spring_value(owner, part)
    if isinstance(owner, str):
        return shape_value(model, owner, part)
    if part in BODY_VALUES:
        inertia: Any = owner.inertia
        if part == "mass":
            return inertia.mass
        return _frozen((inertia.com if part == "com" else inertia.inertia_at_com).to_list())
    body: Any = owner
    if part == "placement":
        return _frozen(body.placement.homogeneous()[:3])
    if part in JOINT_VALUES:
        return _single(getattr(body.limits if part in LIMITS else body, part))
    return _single(body.joint.parameters()[_parameter_range(body.joint, part)])


def replace_values(model: Model, new: Mapping[str, Any]) -> Model:
    """Return the model with other values, any scalars, unchecked: axes must be of unit length.

    This is how run-time parameters enter a trace. A body's mass, centre of mass and inertia at the centre
    of mass are replaced independently of one another. Those of a link that was merged into a body change the
    body by the difference. `with_values` is the checked form.
    """
    return _replace_values(model, new, checked=False)


def with_values(
    model: Model, new: Mapping[str, Any], *, inertia: Literal["strict", "as_given"] = "strict"
) -> Model:
    """Return the model with other values under the given names, checked as by the builder; axes are
    normalised.
    """
    from dalembert.model.surgery import rebuild_checked

    return rebuild_checked(_replace_values(model, new, checked=True), inertia=inertia)


def rebuilt(model: Model, **parts: Any) -> Model:
    """Return the same model with the named parts of its content replaced."""
    from dalembert.model.model import Model

    return Model(**(model.content() | parts))


def _replace_values(model: Model, new: Mapping[str, Any], *, checked: bool) -> Model:
    gravity = _vector(new["gravity"], "gravity") if "gravity" in new else model.gravity
    # A constraint that surgery transferred still sees the geometry of the model it was written for.
    held = [item.name for item in model.constraints if isinstance(item.function, TransferredFunction)]
    changes: dict[int, Parts] = {}
    links: dict[str, Parts] = {}
    springs = {spring.name: spring for spring in model.springs}
    coefficients: dict[tuple[str, str], Scalar] = {}
    for name, given in new.items():
        if name == "gravity":
            continue
        owner, part = _locate(model, name)
        if isinstance(owner, Spring):
            springs[owner.name] = _with_spring_value(springs[owner.name], part, given, name)
            continue
        if isinstance(owner, str):
            coefficients[owner, part] = _entries(given, 1, name)[0]
            continue
        if isinstance(owner, Frame):
            links.setdefault(owner.name, {})[part] = (name, given)
            continue
        changes.setdefault(owner.index, {})[part] = (name, given)
        if held and part not in BODY_VALUES and part not in JOINT_VALUES:
            raise ModelError(
                f'"{name}" cannot be changed: constraint "{held[0]}" sees the model that it was added '
                "to, before joints were locked or models attached; change the value there"
            )
    bodies = list(model.bodies)
    for i, parts in changes.items():
        bodies[i] = _replace_body_values(bodies[i], parts, checked)
    world_shapes = model.world_shapes
    if coefficients:
        world_shapes = replace_shape_values(WORLD_NAME, world_shapes, coefficients, checked=checked)
        for i, body in enumerate(bodies):
            shapes = replace_shape_values(body.name, body.shapes, coefficients, checked=checked)
            bodies[i] = dataclasses.replace(body, shapes=shapes)
    frames = list(model.frames)
    for k, frame in enumerate(frames):
        if frame.name not in links or frame.inertia is None:
            continue
        body = bodies[frame.body]
        for part in BODY_VALUES:
            if part in changes.get(frame.body, ()):
                raise ModelError(
                    f'"{body.name}.{part}" includes link "{frame.name}", which is given too; give one of them'
                )
        inertia = _replace_inertia(frame.inertia, links[frame.name])
        change = frame.placement.as_transform().inverse_apply(inertia - frame.inertia)
        bodies[frame.body] = dataclasses.replace(body, inertia=body.inertia + change)
        frames[k] = dataclasses.replace(frame, inertia=inertia)
    return rebuilt(
        model,
        bodies=bodies,
        gravity=gravity,
        frames=frames,
        springs=springs.values(),
        world_shapes=world_shapes,
    )


def _locate(model: Model, name: str) -> tuple[Body | Frame | Spring | str, str]:
    """Return the body, the frame of a merged link, the spring or the name of the shapes that hold a value,
    and which part it is."""
    owner, _, part = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    if part in BODY_VALUES and model.bodies.has(owner):
        return model.bodies[owner], part
    if part in BODY_VALUES and model.frames.has(owner) and model.frames[owner].inertia is not None:
        if model.frames[owner].body == WORLD:
            raise UnknownNameError(
                f'link "{owner}" is fixed to the world, so that "{name}" has no effect; load the file with '
                'root="floating", or give the link a joint'
            )
        return model.frames[owner], part
    if is_shape_value(model, owner, part):
        return owner, part
    if model.joints.has(owner) and (body := model.joints[owner].body).nv and part == JOINT_FRICTION:
        return body, "friction"
    if model.joints.has(owner) and part in _joint_parts(model.joints[owner].body):
        if part == "friction" and shapes_of(model, owner):
            raise UnknownNameError(
                f'"{name}" may be the dry friction of joint "{owner}" or the friction of what touches '
                f'"{owner}"; give "{owner}.{JOINT_FRICTION}" or "{owner}.contact_friction"'
            )
        return model.joints[owner].body, part
    if part == "friction" and shapes_of(model, owner):
        raise UnknownNameError(f'"{name}": the friction of contact is called "{owner}.contact_friction"')
    if part in SPRING_VALUES and model.springs.has(owner):
        return model.springs[owner], part
    raise UnknownNameError.of("value", name, value_names(model))


def _joint_parts(body: Body) -> tuple[str, ...]:
    return ("placement", *body.joint.parameter_names, *(JOINT_VALUES if body.nv else ()))


def _spring_value(spring: Spring, part: str) -> Any:
    if part != "rest_length" or spring.rest_length is None:
        return getattr(spring, part)
    a, b = spring.rest_length
    return a if a == b else _frozen([a, b])


def _with_spring_value(spring: Spring, part: str, given: Any, name: str) -> Spring:
    """Return a spring with another number; a rest length of one number stays one."""
    if part != "rest_length":
        return dataclasses.replace(spring, **{part: _entries(given, 1, name)[0]})
    single = np.ndim(_spring_value(spring, part)) == 0
    ends = _entries(given, 1 if single else 2, name)
    return dataclasses.replace(spring, rest_length=(ends[0], ends[-1]))


def _replace_inertia(old: RigidInertia, parts: Parts) -> RigidInertia:
    """Return an inertia with the given ones of its mass, centre of mass and moments there replaced."""
    new = {part: parts[part][::-1] for part in BODY_VALUES if part in parts}
    mass = _entries(new["mass"][0], 1, new["mass"][1])[0] if "mass" in new else old.mass
    com = _vector(*new["com"]) if "com" in new else old.com
    moments = _symmetric(*new["inertia"]) if "inertia" in new else old.inertia_at_com
    return RigidInertia(mass, com, moments)


def _replace_body_values(body: Body, parts: Parts, checked: bool) -> Body:
    fields: dict[str, Any] = {}
    if any(part in parts for part in BODY_VALUES):
        fields["inertia"] = _replace_inertia(body.inertia, parts)
    for part, (name, given) in parts.items():
        if part == "placement":
            fields["placement"] = _placement(given, name)
        elif part in JOINT_VALUES:
            entries = _entries(given, getattr(body, JOINT_VALUES[part]), name)
            if part in LIMITS:
                limits: Limits = fields.get("limits", body.limits)
                fields["limits"] = dataclasses.replace(limits, **{part: entries})
            else:
                fields[part] = entries
        elif part not in BODY_VALUES:
            joint: Joint = fields.get("joint", body.joint)
            inside, flat, old = _parameter_range(joint, part), joint.parameters(), getattr(joint, part)
            flat[inside] = _entries(given, inside.stop - inside.start, name)
            if checked and isinstance(old, Vec3 | Real):  # the constructor checks and normalises
                value = Vec3(*flat[inside]) if isinstance(old, Vec3) else flat[inside.start]
                fields["joint"] = dataclasses.replace(joint, **{part: value})  # type: ignore[type-var]
            else:
                fields["joint"] = joint.with_parameters(flat)
    return dataclasses.replace(body, **fields)


def _parameter_range(joint: Joint, part: str) -> slice:
    """Return the slice of a field of the joint in its flat parameters."""
    start = 0
    for name in joint.parameter_names:
        stop = start + len(flatten(getattr(joint, name)))
        if name == part:
            return slice(start, stop)
        start = stop
    raise UnknownNameError.of("joint parameter", part, joint.parameter_names)


def _entries(given: Any, count: int, name: str) -> tuple[Scalar, ...]:
    """Return `count` scalars from a sequence, or from one scalar if `count` is 1."""
    if isinstance(given, Vec3):
        given = given.to_list()
    if isinstance(given, np.ndarray) and given.ndim == 1 and len(given) == count:
        given = given.tolist()
    if isinstance(given, (list, tuple)):
        if len(given) != count:
            raise ShapeError(f'value "{name}" has {len(given)} entries, {count} expected')
        return tuple(float(x) if isinstance(x, Real) else x for x in given)
    if count != 1:
        raise ShapeError(f'value "{name}" is a single {type(given).__name__}, {count} entries expected')
    return (float(given) if isinstance(given, Real) else given,)


def _vector(given: Any, name: str) -> Vec3:
    return given if isinstance(given, Vec3) else Vec3(*_entries(given, 3, name))


def _symmetric(given: Any, name: str) -> SymMat3:
    """Return the upper triangle of a 3x3 matrix after checking its symmetry."""
    if isinstance(given, SymMat3):
        return given
    xx, xy, xz, yx, yy, yz, zx, zy, zz = _entries(_flat(given, 9), 9, name)
    for a, b in ((xy, yx), (xz, zx), (yz, zy)):
        if type(a) is float and type(b) is float and abs(a - b) > 1e-9 * (abs(a) + abs(b)):
            raise ModelError(f'value "{name}" is not symmetric: {a} and {b} stand opposite each other')
    return SymMat3(xx, yy, zz, xy, xz, yz)


def _placement(given: Any, name: str) -> Placement:
    """Return a placement from a 3x4 matrix [R | p], its twelve entries by rows, or a pair (R, p)."""
    if isinstance(given, Placement):
        return given
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return Transform(Mat3(*_entries(_flat(given[0], 9), 9, name)), _vector(given[1], name))
    a, b, c, x, d, e, f, y, g, h, i, z = _entries(_flat(given, 12), 12, name)
    return Transform(Mat3(a, b, c, d, e, f, g, h, i), Vec3(x, y, z))


def _flat(given: Any, count: int) -> Any:
    """Return the entries of a matrix by rows; a flat list of `count` entries is returned unchanged."""
    if isinstance(given, (Mat3, SymMat3)):
        given = given.to_list()
    if isinstance(given, np.ndarray) and given.ndim == 2 and len(given) != count:
        given = given.tolist()
    if isinstance(given, (list, tuple)) and given and len(given) != count:
        return [x for row in given for x in (row if isinstance(row, (list, tuple, np.ndarray)) else [row])]
    return given


def _single(entries: Any) -> Any:
    return entries[0] if len(entries) == 1 else _frozen(list(entries))


def _frozen(entries: list[Any]) -> Any:
    """Return a read-only array of numbers; entries that are not numbers stay in their lists."""
    try:
        array = np.array(entries, dtype=np.float64)
    except (TypeError, ValueError):
        return entries
    array.flags.writeable = False
    return array


# Coefficients of contact: those of the shapes of a body, of a link or of the world, or of one shape.
#
# A name means every colliding shape that has it as its own, its link's or its body's; "world" is a body here.
# Torsional and rolling friction have names where a shape of the model has them (`condim` 4 and 6).

FRICTIONS: Final = ("contact_friction", "torsional_friction", "rolling_friction")
"""The coefficients in `Shape.friction`, in its order."""

CONDIMS_OF_FRICTIONS: Final = (3, 4, 6)
"""The least `condim` of a contact in which each of them acts."""


def shape_value_names(model: Model) -> Iterator[str]:
    """Yield the name of every coefficient that the colliding shapes of a name have in common."""
    owners = dict.fromkeys(
        name for carrier, shape in _colliding_shapes(model) for name in _names(carrier, shape)
    )
    parts = _parts(model)
    for owner in owners:
        shapes = shapes_of(model, owner)
        for part in parts:
            if len({_coefficient(shape, part) for shape in shapes}) == 1:
                yield f"{owner}.{part}"


def is_shape_value(model: Model, owner: str, part: str) -> bool:
    """Return whether shapes of that name have such a coefficient."""
    return part in _parts(model) and bool(shapes_of(model, owner))


def shapes_of(model: Model, owner: str) -> list[Shape]:
    """Return the colliding shapes that a name means."""
    return [shape for carrier, shape in _colliding_shapes(model) if owner in _names(carrier, shape)]


def shape_value(model: Model, owner: str, part: str) -> Any:
    """Return a coefficient that all shapes of a name have in common."""
    shapes = shapes_of(model, owner)
    found = _coefficient(shapes[0], part)
    if any(_coefficient(shape, part) != found for shape in shapes[1:]):
        raise ModelError(
            f'shapes of "{owner}" differ in {part}; name one of them, such as '
            f'"{_name_of(shapes, owner)}.{part}"'
        )
    return found


def replace_shape_values(
    carrier: str, shapes: Iterable[Shape], new: Mapping[tuple[str, str], Scalar], *, checked: bool
) -> tuple[Shape, ...]:
    """Return the shapes of a body with other coefficients, by name and part; unless `checked`, any
    scalars."""
    found = []
    for shape in shapes:
        names = _names(carrier, shape) if shape.collision else ()
        for (owner, part), value in new.items():
            if owner in names:
                shape = _with_coefficient(shape, part, value, checked)
        found.append(shape)
    return tuple(found)


def _with_coefficient(shape: Shape, part: str, value: Scalar, checked: bool) -> Shape:
    own: Any = value
    if part in FRICTIONS:
        field, numbers = "friction", list(USUAL_FRICTION if shape.friction is None else shape.friction)
        numbers[FRICTIONS.index(part)] = value
        own = tuple(numbers)
    else:
        field = part
    if checked:
        same = getattr(shape, field) is None and own == USUAL_FRICTION
        return shape if same else dataclasses.replace(shape, **{field: own})
    found = copy.copy(shape)
    object.__setattr__(found, field, own)
    return found


def _coefficient(shape: Shape, part: str) -> Scalar:
    """Return a coefficient of a shape; without friction of its own, that of two such shapes."""
    if part == "restitution":
        return shape.restitution
    return (USUAL_FRICTION if shape.friction is None else shape.friction)[FRICTIONS.index(part)]


def _parts(model: Model) -> list[str]:
    """Return the coefficients that act in any contact of a model."""
    condim = max((shape.condim for _, shape in _colliding_shapes(model)), default=0)
    acting = [name for name, least in zip(FRICTIONS, CONDIMS_OF_FRICTIONS, strict=True) if condim >= least]
    return [*acting, *["restitution"] * (condim > 0)]


def _colliding_shapes(model: Model) -> Iterator[tuple[str, Shape]]:
    """Yield the colliding shapes with the names of their bodies."""
    yield from ((WORLD_NAME, shape) for shape in model.world_shapes if shape.collision)
    yield from ((body.name, shape) for body in model.bodies for shape in body.shapes if shape.collision)


def _names(carrier: str, shape: Shape) -> tuple[str, ...]:
    return tuple(name for name in (carrier, shape.link, shape.name) if name)


def _name_of(shapes: Iterable[Shape], owner: str) -> str:
    """Return the name of a shape or of its link that is not the one of all."""
    own = (name for shape in shapes for name in (shape.name, shape.link) if name and name != owner)
    return next(own, "the name of a shape")
