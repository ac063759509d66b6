"""A Pinocchio model as ours, with maps for its arrays in both directions.

Body i of ours is joint i + 1 of Pinocchio's, whose joint 0 is the universe. Placements, inertias, gravity and
frames carry over as they are; q and v change their order (`pinocchio_joints`). Every velocity map is a
permutation, v = P v_pin, so that a = P a_pin and, by equal power, tau = P tau_pin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, Final, final

import numpy as np

from dalembert.errors import ArgumentError, MissingExtraError, ModelError
from dalembert.interop.coordinate_map import Array, CoordinateMap, Source, real_array, shift_sources
from dalembert.interop.pinocchio_joints import JointImage, image_of_joint, image_of_mimic, transform_of
from dalembert.model import Limits, Model, ModelBuilder
from dalembert.spatial import RigidInertia, SymMat3, Transform, Vec3

__all__ = ["PinocchioBridge", "from_pinocchio"]

MIN_INFINITE_LIMIT: Final = 1e300
"""A limit of this size or more means no limit: Pinocchio writes the largest float for it."""

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
    images = [_image(pin_model, index) for index in range(1, pin_model.njoints)]
    names = _body_names(pin, pin_model)
    builder = ModelBuilder(gravity=_gravity(pin_model), name=pin_model.name or "model")
    for index, (image, displacement) in enumerate(images, start=1):
        _add_body(builder, pin_model, index, image, displacement, names)
    _add_mimics(builder, pin_model)
    _add_frames(builder, pin_model, names)
    model = builder.build(inertia="as_given")
    positions: list[Source] = [0] * model.nq
    velocities: list[Source] = [0] * model.nv
    for joint, (image, _), theirs in zip(model.joints, images, list(pin_model.joints)[1:], strict=True):
        if theirs.shortname() != MIMIC:
            positions[joint.q_slice] = shift_sources(image.q, theirs.idx_q)
            velocities[joint.v_slice] = shift_sources(image.v, theirs.idx_v)
    return PinocchioBridge(
        model,
        CoordinateMap(tuple(positions), pin_model.nq),
        CoordinateMap(tuple(velocities), pin_model.nv),
    )


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
        return self.velocities.back(array[..., [3, 4, 5, 0, 1, 2], :], "J")

    def external_forces(self, f_pin: object) -> Array:
        """Return our external forces (…, n_bodies, 6), moment first, from Pinocchio's `fext`.

        `f_pin`: a list of `pinocchio.Force`, one a joint with the universe first, or the same as an array
        (…, njoints, 6), force first. Both are in the coordinates of the joint's (our body's) frame, at its
        origin.
        """
        if not isinstance(f_pin, np.ndarray) and isinstance(f_pin, (Sequence, _pinocchio().StdVec_Force)):
            f_pin = np.array([getattr(force, "vector", force) for force in f_pin])
        array = real_array("f_pin", f_pin, (len(self.model.bodies) + 1, 6))
        return array[..., 1:, [3, 4, 5, 0, 1, 2]]

    def external_forces_back(self, f: object) -> Array:
        """Return Pinocchio's `fext` as an array (…, njoints, 6), force first and zero on the universe, from
        ours.
        """
        array = real_array("f", f, (len(self.model.bodies), 6))
        result = np.zeros((*array.shape[:-2], array.shape[-2] + 1, 6), array.dtype)
        result[..., 1:, :] = array[..., [3, 4, 5, 0, 1, 2]]
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


def _image(pin_model: Any, index: int) -> tuple[JointImage, Transform]:
    joint = pin_model.joints[index]
    if joint.shortname() == MIMIC:
        return image_of_mimic(pin_model, index)
    return image_of_joint(joint, pin_model.names[index]), Transform.identity()


def _gravity(pin_model: Any) -> tuple[float, float, float]:
    if np.any(pin_model.gravity.angular):
        raise ModelError(
            f"Pinocchio's gravity has the angular part {pin_model.gravity.angular}; gravity is a linear "
            "acceleration, so set model.gravity.angular to zero"
        )
    x, y, z = map(float, pin_model.gravity.linear)
    return x, y, z


def _body_names(pin: Any, pin_model: Any) -> list[str]:
    """Return a name for every joint's body, the universe first: of the body frame on the joint itself, else
    the joint's.
    """
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
    I = np.asarray(inertia.inertia)
    return RigidInertia(
        float(inertia.mass),
        Vec3(*map(float, inertia.lever)),
        SymMat3(*(float(I[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))),
    )


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
    builder.add_body(
        names[index],
        parent=names[pin_model.parents[index]],
        joint=image.joint,
        joint_name=pin_model.names[index],
        placement=transform_of(pin_model.jointPlacements[index]) @ displacement,
        inertia=_inertia(pin_model.inertias[index]),
        limits=Limits() if mimics else _limits(builder, pin_model, index, image),
        armature=_losses(pin_model.armature, joint, image),
        damping=_losses(pin_model.damping, joint, image),
        friction=_losses(pin_model.upperDryFrictionLimit, joint, image),
    )


def _losses(values: Any, joint: Any, image: JointImage) -> tuple[float, ...] | float:
    """Return the joint's part of an array in v order; a mimic joint has none."""
    return 0.0 if joint.shortname() == MIMIC else tuple(float(values[joint.idx_v + i]) for i in image.v)


def _bound(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= MIN_INFINITE_LIMIT else float(value)


def _limits(builder: ModelBuilder, pin_model: Any, index: int, image: JointImage) -> Limits:
    """Return Pinocchio's limits; quaternions and (cos, sin) pairs have none, since their numbers are not
    coordinates.
    """
    joint = pin_model.joints[index]
    lower: list[float] = []
    upper: list[float] = []
    for source, coordinate in zip(image.q, image.joint.coordinates, strict=True):
        bounded = isinstance(source, int) and coordinate != "quaternion"
        place = joint.idx_q + (source if isinstance(source, int) else 0)
        lower.append(_bound(pin_model.lowerPositionLimit[place]) if bounded else -math.inf)
        upper.append(_bound(pin_model.upperPositionLimit[place]) if bounded else math.inf)
    places = [joint.idx_v + i for i in image.v]
    efforts = [(abs(pin_model.lowerEffortLimit[i]), abs(pin_model.upperEffortLimit[i])) for i in places]
    if any(low != high for low, high in efforts):
        builder.warn(
            f'joint "{pin_model.names[index]}": its lower and upper effort limits differ in size; '
            "the smaller one is used for both directions"
        )
    # Magnitudes: Pinocchio 4.1 leaves lowerVelocityLimit positive, its sample models lowerEffortLimit too.
    speed = tuple(_bound(abs(pin_model.upperVelocityLimit[i])) for i in places)
    return Limits(tuple(lower), tuple(upper), speed, tuple(_bound(min(pair)) for pair in efforts))


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
