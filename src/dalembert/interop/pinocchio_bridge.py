"""A Pinocchio model as ours, with maps for its arrays in both directions.

Body i of ours is joint i + 1 of Pinocchio's, whose joint 0 is the universe. Placements, inertias, gravity and
frames carry over as they are; q and v change their order. Every velocity map is a permutation, v = P v_pin,
so that a = P a_pin and, by equal power, tau = P tau_pin.

Pinocchio 4.1, verified numerically: a spherical joint's quaternion is (x, y, z, w) and its velocity the
angular one in the successor; a free flyer has q = (position, quaternion), v = (linear, angular) in the
successor; a planar joint has q = (x, y, cos, sin), v = (v_x, v_y, omega) in the successor; an unbounded
revolute joint has q = (cos, sin); every other joint has v = dq/dt. All differences from ours are a change of
order, but for the (cos, sin) pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np

from dalembert.call.arguments import Array
from dalembert.errors import (
    ArgumentError,
    DtypeError,
    MissingExtraError,
    ModelError,
    ShapeError,
    UnknownNameError,
)
from dalembert.model import Limits, Model, ModelBuilder, joints
from dalembert.model.joints import Joint, Revolute
from dalembert.spatial import Mat3, RigidInertia, SymMat3, Transform, Vec3

Source: TypeAlias = int | tuple[int, int]
"""Where one of our coordinates comes from: a place, or the places of the cosine and the sine of an angle."""

MIN_INFINITE_LIMIT: Final = 1e300
"""A limit of this size or more means no limit: Pinocchio writes the largest float for it."""
UNIT_TOLERANCE: Final = 1e-9
"""How far from 1 the length of an axis may be; beyond, Pinocchio's own transforms are not rotations."""
FORCE_ORDER: Final = [3, 4, 5, 0, 1, 2]
"""The places of a 6-vector with its linear and angular parts exchanged."""
MIMIC: Final = "JointModelMimic"


def from_pinocchio(pin_model: Any) -> PinocchioBridge:
    """Bring a `pinocchio.Model` over: `bridge.model` is ours; `bridge.q`, `bridge.v` … map its arrays.

    The bridge is a snapshot: later changes of `pin_model` do not reach it. Inertias are taken as given; those
    that no body can have are listed in `bridge.model.report`. Mimic joints become couplings, which our q and
    v leave out as Pinocchio's do. Armature is Pinocchio's `armature`; its algorithms do not look at rotor
    inertias and gear ratios.
    """
    pin = _pinocchio()
    if not isinstance(pin_model, pin.Model):
        raise ArgumentError(
            f"from_pinocchio needs a pinocchio.Model, got {type(pin_model).__name__}; "
            "read a file with pinocchio.buildModelFromUrdf(path) first"
        )
    if np.any(pin_model.gravity.angular):
        raise ModelError(
            f"Pinocchio's gravity has the angular part {pin_model.gravity.angular}; gravity is a linear "
            "acceleration, so set model.gravity.angular to zero"
        )
    images = [
        image_of_mimic(pin_model, index)
        if joint.shortname() == MIMIC
        else (image_of_joint(joint, pin_model.names[index]), Transform.identity())
        for index, joint in enumerate(pin_model.joints)
        if index
    ]
    names = _body_names(pin, pin_model)
    builder = ModelBuilder(
        gravity=[float(x) for x in pin_model.gravity.linear], name=pin_model.name or "model"
    )
    for index, (image, displacement) in enumerate(images, start=1):
        _add_body(builder, pin_model, index, image, displacement, names)
    _add_mimics(builder, pin_model)
    _add_frames(builder, pin_model, names)
    model = builder.build(inertia="as_given")
    positions: list[Source] = [0] * model.nq
    velocities: list[Source] = [0] * model.nv
    for joint, (image, _), theirs in zip(model.joints, images, list(pin_model.joints)[1:], strict=True):
        if theirs.shortname() != MIMIC:
            positions[joint.q_slice] = _shift_sources(image.q, theirs.idx_q)
            velocities[joint.v_slice] = _shift_sources(image.v, theirs.idx_v)
    maps = CoordinateMap(tuple(positions), pin_model.nq), CoordinateMap(tuple(velocities), pin_model.nv)
    return PinocchioBridge(model, *maps)


@final
@dataclass(frozen=True, slots=True)
class PinocchioBridge:
    """Our model of a Pinocchio model, and the maps between their arrays and ours.

    Every map takes one sample or any leading batch shape. `model.report` lists what could not be taken over
    as it is.
    """

    model: Model
    positions: CoordinateMap
    velocities: CoordinateMap

    def q(self, q_pin: object) -> Array:
        """Return our q (…, nq) from theirs: quaternions scalar-first, an angle for each (cos, sin)."""
        return self.positions.forth(q_pin, "q_pin")

    def q_back(self, q: object) -> Array:
        """Return their q from ours."""
        return self.positions.back(q, "q")

    def v(self, v_pin: object) -> Array:
        """Return our v (…, nv) from theirs: angular before linear velocity in free and planar joints."""
        return self.velocities.forth(v_pin, "v_pin")

    def v_back(self, v: object) -> Array:
        """Return their v from ours."""
        return self.velocities.back(v, "v")

    def a(self, a_pin: object) -> Array:
        """Return our accelerations dv/dt (…, nv) from theirs: the map of v is constant."""
        return self.velocities.forth(a_pin, "a_pin")

    def a_back(self, a: object) -> Array:
        """Return their accelerations from ours."""
        return self.velocities.back(a, "a")

    def tau(self, tau_pin: object) -> Array:
        """Return our generalized forces (…, nv) from theirs."""
        return self.velocities.forth(tau_pin, "tau_pin")

    def tau_back(self, tau: object) -> Array:
        """Return their generalized forces from ours."""
        return self.velocities.back(tau, "tau")

    def mass_matrix_back(self, M: object) -> Array:
        """Return their joint-space inertia (…, nv, nv) from ours: P^T M P."""
        nv = self.model.nv
        rows = self.velocities.back(np.swapaxes(real_array("M", M, (nv, nv)), -1, -2), "M")
        return self.velocities.back(np.swapaxes(rows, -1, -2), "M")

    def jacobian_back(self, J: object) -> Array:
        """Return their Jacobian (…, 6, nv), linear first, from ours, angular first."""
        array = real_array("J", J, (6, self.model.nv))
        return self.velocities.back(array[..., FORCE_ORDER, :], "J")

    def external_forces(self, f_pin: object) -> Array:
        """Return our external forces (…, n_bodies, 6), moment first, from Pinocchio's `fext`.

        `f_pin`: a list of `pinocchio.Force`, one for each joint, the universe first, or the same as an array
        (…, njoints, 6), force first. Both are in the coordinates of the joint's (our body's) frame, at its
        origin.
        """
        if not isinstance(f_pin, np.ndarray) and isinstance(f_pin, (Sequence, _pinocchio().StdVec_Force)):
            f_pin = np.array([getattr(force, "vector", force) for force in f_pin])
        array = real_array("f_pin", f_pin, (len(self.model.bodies) + 1, 6))
        return array[..., 1:, FORCE_ORDER]

    def external_forces_back(self, f: object) -> Array:
        """Return Pinocchio's `fext` (…, njoints, 6), force first and zero on the universe, from ours."""
        array = real_array("f", f, (len(self.model.bodies), 6))
        result = np.zeros((*array.shape[:-2], array.shape[-2] + 1, 6), array.dtype)
        result[..., 1:, :] = array[..., FORCE_ORDER]
        return result


def _pinocchio() -> Any:
    try:
        import pinocchio
    except ImportError as cause:
        raise MissingExtraError(
            'Pinocchio is not installed; install it with: pip install "dalembert[pinocchio]" '
            "(its wheel is called pin)"
        ) from cause
    return pinocchio


def _body_names(pin: Any, pin_model: Any) -> list[str]:
    """Return a name for every joint's body, the universe first: of the body frame on it, else the joint's."""
    names = ["world"]
    used = {"world"}
    on_joint: dict[int, str] = {}
    for frame in pin_model.frames:
        if frame.type == pin.FrameType.BODY and frame.placement.isIdentity(0.0):
            on_joint.setdefault(int(frame.parentJoint), frame.name)
    for index in range(1, pin_model.njoints):
        joint_name = pin_model.names[index]
        names.append(_free_name(used, (on_joint.get(index, joint_name), joint_name), joint_name))
    return names


def _free_name(used: set[str], wanted: Sequence[str], stem: str) -> str:
    """Return the first wanted name that is not used, else the stem with a number, and mark it as used."""
    name = next(name for name in chain(wanted, (f"{stem}_{n}" for n in count(2))) if name not in used)
    used.add(name)
    return name


def _inertia(inertia: Any) -> RigidInertia:
    I = np.asarray(inertia.inertia)[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    return RigidInertia(float(inertia.mass), Vec3(*map(float, inertia.lever)), SymMat3(*map(float, I)))


def _add_body(
    builder: ModelBuilder,
    pin_model: Any,
    index: int,
    image: JointImage,
    displacement: Transform,
    names: Sequence[str],
) -> None:
    joint = pin_model.joints[index]
    mimics = joint.shortname() == MIMIC

    def per_freedom(values: Any) -> tuple[float, ...] | float:
        return 0.0 if mimics else tuple(float(values[joint.idx_v + i]) for i in image.v)

    builder.add_body(
        names[index],
        parent=names[pin_model.parents[index]],
        joint=image.joint,
        joint_name=pin_model.names[index],
        placement=transform_of(pin_model.jointPlacements[index]) @ displacement,
        inertia=_inertia(pin_model.inertias[index]),
        limits=Limits() if mimics else _limits(builder, pin_model, index, image),
        armature=per_freedom(pin_model.armature),
        damping=per_freedom(pin_model.damping),
        friction=per_freedom(pin_model.upperDryFrictionLimit),
    )


def _limits(builder: ModelBuilder, pin_model: Any, index: int, image: JointImage) -> Limits:
    """Return Pinocchio's limits; the numbers of quaternions and (cos, sin) pairs have none."""
    joint = pin_model.joints[index]

    def bound(value: float) -> float:
        return math.copysign(math.inf, value) if abs(value) >= MIN_INFINITE_LIMIT else float(value)

    lower, upper = [-math.inf] * len(image.q), [math.inf] * len(image.q)
    for k, (source, coordinate) in enumerate(zip(image.q, image.joint.coordinates, strict=True)):
        if isinstance(source, int) and coordinate != "quaternion":
            lower[k] = bound(pin_model.lowerPositionLimit[joint.idx_q + source])
            upper[k] = bound(pin_model.upperPositionLimit[joint.idx_q + source])
    places = [joint.idx_v + i for i in image.v]
    efforts = [(abs(pin_model.lowerEffortLimit[i]), abs(pin_model.upperEffortLimit[i])) for i in places]
    if any(low != high for low, high in efforts):
        builder.warn(
            f'joint "{pin_model.names[index]}": its lower and upper effort limits differ in size; '
            "the smaller one is used for both directions"
        )
    # Magnitudes: Pinocchio 4.1 leaves lowerVelocityLimit positive, its sample models lowerEffortLimit too.
    speed = tuple(bound(abs(pin_model.upperVelocityLimit[i])) for i in places)
    return Limits(tuple(lower), tuple(upper), speed, tuple(bound(min(pair)) for pair in efforts))


def _add_mimics(builder: ModelBuilder, pin_model: Any) -> None:
    """Add q_follower = scaling * q_leader + offset as couplings.

    The leader is the joint with whose variables the follower computes. The list `mimicked_joints` is of no
    use: after `transformJointIntoMimic` its order may differ from that of `mimicking_joints`.
    """
    joints = list(pin_model.joints)
    leaders = {joint.idx_v + k: index for index, joint in enumerate(joints) if index for k in range(joint.nv)}
    for index, joint in enumerate(joints):
        if joint.shortname() != MIMIC:
            continue
        leader, follower = leaders[joint.idx_v], pin_model.names[index]
        if joints[leader].nv != 1:
            raise ModelError(
                f'Pinocchio joint "{follower}" mimics "{pin_model.names[leader]}", which has '
                f"{joints[leader].nv} degrees of freedom; only a joint with one can be mimicked"
            )
        own = joint.extract()
        if own.scaling != 0.0:
            terms = {follower: 1.0, pin_model.names[leader]: -float(own.scaling)}
            builder.add_coupling(follower, terms, offset=-float(own.offset), dependent=follower)


def _add_frames(builder: ModelBuilder, pin_model: Any, names: Sequence[str]) -> None:
    """Add every frame of Pinocchio's but those that are a body of ours under the same name."""
    used = set(names)
    for frame in pin_model.frames:
        body = names[frame.parentJoint]
        if frame.name == body and frame.placement.isIdentity(0.0):
            continue
        stem = f"{frame.name}_{frame.type.name.lower()}"
        name = _free_name(used, (frame.name, stem), stem)
        if name != frame.name:
            builder.warn(
                f'frame "{frame.name}" of type {frame.type.name} is called "{name}": the name is taken'
            )
        builder.add_frame(name, body, transform_of(frame.placement))


# Joints: each class of Pinocchio's with our joint and the places of its coordinates


class JointImage(NamedTuple):
    """Our joint for one of Pinocchio's; where our q and v come from, counted from the joint's first place."""

    joint: Joint
    q: tuple[Source, ...]
    v: tuple[int, ...]


def transform_of(placement: Any) -> Transform:
    """Return a `pinocchio.SE3` as our transform: both place the child in the parent."""
    rotation, translation = np.asarray(placement.rotation), np.asarray(placement.translation)
    return Transform(Mat3(*map(float, rotation.ravel())), Vec3(*map(float, translation)))


def image_of_joint(joint: Any, name: str) -> JointImage:
    """Return our joint for any `pinocchio.JointModel` but a mimic joint, for which see `image_of_mimic`."""
    kind = joint.shortname()
    image = IMAGES.get(kind.removeprefix("JointModel"))
    if image is None:
        known = [f"JointModel{known}" for known in IMAGES]
        raise UnknownNameError.of(f'class of the Pinocchio joint "{name}",', kind, known)
    return image if isinstance(image, JointImage) else image(joint, joint.extract(), name)


def image_of_mimic(model: Any, index: int) -> tuple[JointImage, Transform]:
    """Return the joint that mimics another one, without its coupling, and a displacement to add to its
    placement.

    Pinocchio does not say which joint it is that mimics, but its velocity does: ratio * S v of a joint with
    one coordinate. (Its own S lacks the pitch of a screw.) A joint that follows with ratio zero does not
    move; it stands where the coupling's offset puts it.
    """
    joint, name = model.joints[index], model.names[index]
    ratio = float(joint.extract().scaling)
    data = _at_unit_rate(joint)
    if ratio == 0.0:
        return JointImage(joints.Fixed(), (), ()), transform_of(data.M)
    linear, angular = np.asarray(data.v.linear) / ratio, np.asarray(data.v.angular) / ratio
    if not angular.any():
        image = _on_axis(joints.Prismatic, linear, name)
    elif not linear.any():
        image = _on_axis(Revolute, angular, name)
    else:
        image = _on_axis(joints.Helical, angular, name, float(linear @ angular))
    return image, Transform.identity()


def _at_unit_rate(joint: Any) -> Any:
    """Return Pinocchio's data of a joint with one freedom, at unit rate and with (cos, sin) at angle zero."""
    data = joint.createData()
    q, v = np.zeros(joint.idx_q + 2), np.zeros(joint.idx_v + 1)
    q[joint.idx_q] = v[joint.idx_v] = 1.0
    joint.calc(data, q, v)
    return data


def _unit(axis: Any, name: str) -> tuple[float, float, float]:
    x, y, z = (float(component) for component in np.asarray(axis).ravel())
    length = math.hypot(x, y, z)
    if not abs(length - 1.0) <= UNIT_TOLERANCE:
        raise ModelError(
            f'Pinocchio joint "{name}": its axis ({x:g}, {y:g}, {z:g}) has length {length:g}; '
            "Pinocchio's joints need unit axes, so normalise it where the joint is made"
        )
    return x, y, z


def _on_axis(
    kind: Callable[..., Joint], axis: Any, name: str, *more: float, q: tuple[Source, ...] = (0,)
) -> JointImage:
    """Return the image of a joint with one freedom along or about an axis."""
    return JointImage(kind(_unit(axis, name), *more), q, (0,))


def _helical(joint: Any, own: Any, name: str, axis: Any = None) -> JointImage:
    return _on_axis(joints.Helical, own.axis if axis is None else axis, name, float(own.pitch))


def _composite(joint: Any, own: Any, name: str) -> JointImage:
    members: list[Joint] = []
    q: list[Source] = []
    v: list[int] = []
    nq = nv = 0
    for number, inner in enumerate(own.joints):
        image = image_of_joint(inner, f"{name}, part {number}")
        members.append(image.joint)
        q += _shift_sources(image.q, nq)
        v += [place + nv for place in image.v]
        nq, nv = nq + inner.nq, nv + inner.nv
    placements = [transform_of(placement) for _, placement in zip(members, own.jointPlacements)]
    return JointImage(joints.Composite(members, placements), tuple(q), tuple(v))


_TURN: Final = ((0, 1),)
"""An angle that comes as its cosine and sine."""
_TWO: Final = (0, 1)
_THREE: Final = (0, 1, 2)
_AXES: Final = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}

IMAGES: Final[dict[str, JointImage | Callable[[Any, Any, str], JointImage]]] = {
    **{f"R{x}": _on_axis(Revolute, axis, x) for x, axis in _AXES.items()},
    **{f"RUB{x}": _on_axis(Revolute, axis, x, q=_TURN) for x, axis in _AXES.items()},
    **{f"P{x}": _on_axis(joints.Prismatic, axis, x) for x, axis in _AXES.items()},
    **{f"H{x}": partial(_helical, axis=axis) for x, axis in _AXES.items()},
    "HelicalUnaligned": _helical,
    "RevoluteUnaligned": lambda joint, own, name: _on_axis(Revolute, own.axis, name),
    "PrismaticUnaligned": lambda joint, own, name: _on_axis(joints.Prismatic, own.axis, name),
    # Pinocchio's Python class hides its axis.
    "RevoluteUnboundedUnaligned": lambda joint, own, name: _on_axis(
        Revolute, _at_unit_rate(joint).v.angular, name, q=_TURN
    ),
    "Universal": lambda joint, own, name: JointImage(
        joints.Universal(_unit(own.axis1, name), _unit(own.axis2, name)), _TWO, _TWO
    ),
    "Ellipsoid": lambda joint, own, name: JointImage(
        joints.EllipsoidJoint(*(float(getattr(own, f"radius_{x}")) for x in "xyz")), _THREE, _THREE
    ),
    "Spherical": JointImage(joints.Spherical(), (3, 0, 1, 2), _THREE),
    "SphericalZYX": JointImage(joints.SphericalEuler("zyx"), _THREE, _THREE),
    "Translation": JointImage(joints.Translation(), _THREE, _THREE),
    "Planar": JointImage(joints.Planar(), (0, 1, (2, 3)), (2, 0, 1)),
    "FreeFlyer": JointImage(joints.Free(), (0, 1, 2, 6, 3, 4, 5), (3, 4, 5, 0, 1, 2)),
    "Composite": _composite,
}
"""Images by Pinocchio's class, after "JointModel", or their makers from joint, extracted joint and name."""


# Coordinates of one engine in the order of another


def _shift_sources(sources: Sequence[Source], start: int) -> tuple[Source, ...]:
    """Return the same places in an array where the joint begins at `start`."""
    return tuple(
        source + start if isinstance(source, int) else (source[0] + start, source[1] + start)
        for source in sources
    )


def real_array(name: str, value: object, inner: tuple[int, ...]) -> Array:
    """Return the value as float64 (float32 stays), with `inner` as its last axes."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise DtypeError(f"{name} has type {array.dtype}; expected real numbers")
    depth = len(inner)
    if array.ndim < depth or array.shape[array.ndim - depth :] != inner:
        batch = ", ".join(map(str, inner))
        raise ShapeError(f"{name}: expected {inner} or a batch (…, {batch}), got {array.shape}")
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


@final
@dataclass(frozen=True, slots=True)
class CoordinateMap:
    """Our coordinates from another engine's and back: `sources[i]` tells where our coordinate i comes from.

    `size` is the length of the other engine's array. Angles come in (-pi, pi]; the way back gives unit (cos,
    sin).
    """

    sources: tuple[Source, ...]
    size: int

    def forth(self, theirs: object, name: str) -> Array:
        """Map (…, size) of the other engine to (…, len(sources)) of ours."""
        array = real_array(name, theirs, (self.size,))
        result = np.empty((*array.shape[:-1], len(self.sources)), array.dtype)
        for i, source in enumerate(self.sources):
            if isinstance(source, int):
                result[..., i] = array[..., source]
            else:
                result[..., i] = np.arctan2(array[..., source[1]], array[..., source[0]])
        return result

    def back(self, ours: object, name: str) -> Array:
        """Map (…, len(sources)) of ours to (…, size) of the other engine."""
        array = real_array(name, ours, (len(self.sources),))
        result = np.empty((*array.shape[:-1], self.size), array.dtype)
        for i, source in enumerate(self.sources):
            if isinstance(source, int):
                result[..., source] = array[..., i]
            else:
                result[..., source[0]], result[..., source[1]] = np.cos(array[..., i]), np.sin(array[..., i])
        return result
