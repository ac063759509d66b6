"""Models of recorded skeletons: their joints, their masses and shapes, and DeepMimic's character.

A skeleton's channels become joints and position variables:

    channels                         rotations="quaternion"        rotations="euler"
    none                             Fixed                         Fixed
    one or two turns                 Revolute, Universal           Revolute, Universal
    three turns                      Spherical                     SphericalEuler in the joint's own order
    three positions, three turns     Free                          Composite(Translation, SphericalEuler)
    others with positions            Composite(Prismatic …, the joint of the turns)

Angles keep the file's values, order and signs (in radians).

Skeletons have no masses. The name of a bone indicates its body part, and each part has a fraction of the
total mass (`PARTS`, rounded from the published anthropometry of adults, about Winter 2009 and de Leva 1996);
parts that the skeleton lacks leave theirs to the others. Within a part, mass is proportional to length. Bones
with other names get mass by volume: that of a rod of their length and proportional width, relative to the
volume of all bones. A body's mass lies in capsules from its joint to the next joints and tips, of the density
of the human body. A bone without length, as many files have at hips and collar, becomes a sphere.

The character of DeepMimic clips has 15 bodies and 45 kg, sizes and masses as published (Peng et al. 2018).
The file's x forward, y up, z right become our x forward, y left, z up: (x, y, z) -> (x, -z, y). So knees and
elbows, which turn about the file's z, turn about our -y.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dalembert.formats.mocap import Bone, Recording, free_name
from dalembert.formats.mocap.deepmimic import JOINTS, DeepMimicClip
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import (
    Composite,
    Fixed,
    Free,
    Joint,
    Prismatic,
    Revolute,
    Spherical,
    SphericalEuler,
    Translation,
    Universal,
)
from dalembert.model.model import Model
from dalembert.model.shapes import Box, Capsule, Solid, Sphere
from dalembert.model.topology import WORLD_NAME
from dalembert.spatial import Mat3, RigidInertia, Transform, Vec3
from dalembert.spatial.rotations import quaternion_product

Array = npt.NDArray[np.float64]

PARTS: Final = {
    "head": 7.0,
    "trunk": 43.6,
    "upper arm": 5.4,
    "forearm": 3.2,
    "hand": 1.2,
    "thigh": 28.2,
    "shank": 8.6,
    "foot": 2.8,
}
"""Percentages of the body mass, both sides together. The neck belongs to the head, collar and pelvis to the
trunk.
"""

BODY_DENSITY: Final = 1000.0
"""Mean density of the human body [kg/m^3]."""

MIN_RELATIVE_LENGTH: Final = 0.02
"""Least length of a bone relative to the total length, so that no bone has zero mass."""

MAX_ENDS: Final = 64
"""Ends of a bone that get a capsule; bounds the work on files with thousands of tips at one bone."""

MIN_END_DISTANCE: Final = 1e-3
"""Distance between two ends of a bone, relative to the longest bone, below which they count as one."""

# The first pattern found in a name gives its part. Names of bones, then of joints: "LeftShoulder" is a collar
# bone between "Spine" and "LeftArm", but carries the upper arm if an elbow follows it.
_BONE_NAMES: Final = (
    ("hand", r"hand|finger|thumb|index|middle|ring|pinky|little|palm"),
    ("foot", r"foot|toe|ball"),
    ("head", r"head|neck|skull|jaw|eye"),
    ("forearm", r"fore_?arm|lo?w(er)?_?arm|radius|ulna|wrist|elbow"),
    ("thigh", r"up(per)?_?leg|thigh|femur"),
    ("shank", r"leg|shin|calf|tibia|shank|knee"),
    (
        "trunk",
        r"hip|pelvis|root|spine|chest|thorax|back|torso|abdomen|belly|waist|clavicle|collar|shoulder|sternum",
    ),
    ("upper arm", r"arm|humerus"),
    ("foot", r"ankle"),
)
_JOINT_NAMES: Final = (
    ("hand", r"wrist"),
    ("foot", r"ankle"),
    ("forearm", r"elbow"),
    ("shank", r"knee"),
    ("upper arm", r"shoulder"),
    ("thigh", r"(left|right|^l|^r|[._ ]l|[._ ]r|l$|r$).*hip|hip.*(left|right|[._ ]l$|[._ ]r$)"),
)


def body_part(name: str, *, by_joints: bool) -> str | None:
    """Return the body part that a bone's name indicates; `by_joints`: bones are named after their joints."""
    lowered = name.lower()
    for part, pattern in (*_JOINT_NAMES, *_BONE_NAMES) if by_joints else _BONE_NAMES:
        if re.search(pattern, lowered):
            return part
    return None


def body_parts(bones: Sequence[Bone]) -> list[str | None]:
    """Return the body parts of all bones; if a name contains elbow or knee, bones are named after joints."""
    by_joints = any(re.search("elbow|knee", bone.name.lower()) for bone in bones)
    return [body_part(bone.name, by_joints=by_joints) for bone in bones]


def segments(bones: Sequence[Bone]) -> list[list[Array]]:
    """Return for each bone the distinct end points in its frame: the joints that it carries, and its tips."""
    ends: list[list[Array]] = [[tip.offset for tip in bone.tips] for bone in bones]
    for bone in bones:
        if bone.parent >= 0:
            ends[bone.parent].append(bone.offset)
    longest = max((float(np.linalg.norm(end)) for own in ends for end in own), default=0.0)
    result: list[list[Array]] = []
    for own in ends:
        kept = [np.zeros(3)]
        for end in own[:MAX_ENDS]:
            if all(np.linalg.norm(end - other) > MIN_END_DISTANCE * longest for other in kept):
                kept.append(end)
        result.append(kept[1:])
    return result


def segment_masses(bones: Sequence[Bone], mass: float) -> list[float]:
    """Return the mass of every bone [kg]; the masses are positive and add up to `mass`."""
    lengths = np.array([sum(float(np.linalg.norm(end)) for end in own) for own in segments(bones)])
    total = float(lengths.sum())
    lengths = np.maximum(lengths, MIN_RELATIVE_LENGTH * total) if total > 0.0 else np.ones(len(bones))
    parts = body_parts(bones)
    volumes = lengths**3
    fraction = np.where([part is None for part in parts], volumes / volumes.sum(), 0.0)
    named = sorted({part for part in parts if part is not None})
    left, whole = 1.0 - float(fraction.sum()), sum(PARTS[part] for part in named)
    for part in named:
        own = np.array([other == part for other in parts])
        fraction[own] = left * PARTS[part] / whole * lengths[own] / lengths[own].sum()
    return [float(m) for m in mass * fraction / fraction.sum()]


def segment_shapes(ends: Sequence[Array], mass: float) -> list[Solid]:
    """Return capsules from the origin to the ends [m] that weigh `mass` [kg] at the body's density."""
    lengths = [float(np.linalg.norm(end)) for end in ends]
    if not sum(lengths) > 0.0:  # no ends, or lengths that underflow
        return [Sphere(math.cbrt(3.0 * mass / (4.0 * math.pi * BODY_DENSITY)))]
    return [
        Capsule.between(
            (0.0, 0.0, 0.0), end.tolist(), _capsule_radius(mass * own / sum(lengths) / BODY_DENSITY, own)
        )
        for end, own in zip(ends, lengths)
    ]


def stature(bones: Sequence[Bone]) -> float:
    """Return the height of the standing figure [file units].

    It is the length along the bones from the highest tip of the head to an ankle; if names do not indicate
    head and foot, the extent along z in the rest pose.
    """
    parts = body_parts(bones)
    poses: list[tuple[Array, Array, float]] = []  # rotation, place, and length along the bones from the root
    heights, head, ankle = list[float](), list[float](), list[float]()
    for bone, part, ends in zip(bones, parts, segments(bones)):
        R, p, reach = np.eye(3), np.zeros(3), 0.0
        if bone.parent >= 0:
            R, p, reach = poses[bone.parent]
            p, reach = p + R @ bone.offset, reach + float(np.linalg.norm(bone.offset))
        R = R @ bone.axes
        poses.append((R, p, reach))
        heights += [float((p + R @ end)[2]) for end in (np.zeros(3), *ends)]
        if part == "head":
            head.append(reach + max((float(np.linalg.norm(end)) for end in ends), default=0.0))
        if part == "foot" and (bone.parent < 0 or parts[bone.parent] != "foot"):
            ankle.append(reach)
    if head and ankle:
        return max(head) + max(ankle)
    return max(heights) - min(heights)


def _capsule_radius(volume: float, length: float) -> float:
    """Solve pi r^2 (length + 4/3 r) = volume by Newton's method from above, where it is monotonic."""
    r = min(math.sqrt(volume / (math.pi * length)), math.cbrt(3.0 * volume / (4.0 * math.pi)))
    for _ in range(60):
        excess = math.pi * r * r * (length + 4.0 / 3.0 * r) - volume
        step = excess / (2.0 * math.pi * r * length + 4.0 * math.pi * r * r)
        r -= step
        if abs(step) <= 1e-15 * r:
            break
    return r


Rotations = Literal["quaternion", "euler"]

_UNIT = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def character(recording: Recording, *, scale: float, rotations: Rotations, mass: float) -> Model:
    """Build the model of a skeleton with z up, a body per bone, a frame per tip, `scale` [m per unit]."""
    bones = recording.bones
    builder = ModelBuilder(name=recording.file)
    masses = segment_masses(bones, mass)
    taken = {bone.name for bone in bones} | {WORLD_NAME}
    for bone, ends, own_mass in zip(bones, segments(bones), masses):
        shapes = segment_shapes([end * scale for end in ends], own_mass)
        inertia = RigidInertia.zero()
        for shape in shapes:
            inertia = inertia + shape.inertia(mass=own_mass * shape.volume / sum(s.volume for s in shapes))
        builder.add_body(
            bone.name,
            parent=bones[bone.parent].name if bone.parent >= 0 else WORLD_NAME,
            joint=_joint(bone, rotations),
            placement=Transform(Mat3.of(bone.axes.tolist()), Vec3(*(bone.offset * scale).tolist())),
            inertia=inertia,
            shapes=shapes,
        )
        for tip in bone.tips:
            name = free_name(tip.name, taken)
            taken.add(name)
            builder.add_frame(
                name, bone.name, Transform(Mat3.identity(), Vec3(*(tip.offset * scale).tolist()))
            )
    builder.set_actuated(bone.name for bone in bones if bone.parent >= 0)
    for line in recording.report.lines():
        builder.warn(line)
    return builder.build()


def configurations(recording: Recording, *, scale: float, rotations: Rotations) -> Array:
    """Return q (T, nq) of every frame, in the order of the bones, which is that of the model's bodies."""
    parts: list[Array] = []
    for bone, values in bone_columns(recording):
        column = dict(zip(bone.channels, values.T))
        # Three position channels are a Translation, x, y, z in the order of the file.
        axes = "xyz" if len(bone.positions) == 3 else bone.positions
        moves = [column[f"t{axis}"] * scale for axis in axes]
        turns = [column[f"r{axis}"] for axis in bone.rotations]
        if rotations == "quaternion" and len(turns) == 3:
            quaternions = [
                [np.cos(0.5 * angle), *(np.sin(0.5 * angle) * component for component in _UNIT[axis])]
                for axis, angle in zip(bone.rotations, turns)
            ]
            turns = functools.reduce(quaternion_product, quaternions)  # about the frame's own axes
        parts += [np.stack(moves + turns, axis=1)] if moves or turns else []
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(recording.time), 0))


def bone_columns(recording: Recording) -> Iterator[tuple[Bone, Array]]:
    """Yield every bone with the view (T, channels) of its values."""
    ends = np.cumsum([len(bone.channels) for bone in recording.bones])
    yield from zip(recording.bones, np.split(recording.values, ends, axis=1))


def _joint(bone: Bone, rotations: Rotations) -> Joint:
    moves, turns = bone.positions, bone.rotations
    if len(moves) == 3 and len(turns) == 3 and rotations == "quaternion":
        return Free()
    parts: list[Joint] = [Translation()] if len(moves) == 3 else [Prismatic(_UNIT[axis]) for axis in moves]
    if len(turns) == 3:
        parts.append(Spherical() if rotations == "quaternion" else SphericalEuler("".join(turns)))
    elif turns:
        axes = [_UNIT[axis] for axis in turns]
        parts.append(Universal(*axes) if len(axes) == 2 else Revolute(*axes))
    if not parts:
        return Fixed()
    return parts[0] if len(parts) == 1 else Composite(parts)


Point = tuple[float, float, float]


class Part(NamedTuple):
    """A body in file axes [m]: its joint in the parent, its shape's centre and size, its mass [kg].

    Sizes: (radius,) of a ball, (radius, length) of an upright capsule, three edges of a box.
    """

    parent: str
    at: Point
    centre: Point
    size: tuple[float, ...]
    mass: float


_TRUNK: Final = {
    "root": Part(WORLD_NAME, (0.0, 0.0, 0.0), (0.0, 0.07, 0.0), (0.09,), 6.0),
    "chest": Part("root", (0.0, 0.236151, 0.0), (0.0, 0.12, 0.0), (0.11,), 14.0),
    "neck": Part("chest", (0.0, 0.223894, 0.0), (0.0, 0.175, 0.0), (0.1025,), 2.0),
}
_LIMBS: Final = {
    "hip": Part("root", (0.0, 0.0, 0.084887), (0.0, -0.21, 0.0), (0.055, 0.30), 4.5),
    "knee": Part("hip", (0.0, -0.421546, 0.0), (0.0, -0.20, 0.0), (0.05, 0.31), 3.0),
    "ankle": Part("knee", (0.0, -0.40987, 0.0), (0.045, -0.0225, 0.0), (0.177, 0.055, 0.09), 1.0),
    "shoulder": Part("chest", (-0.02405, 0.2435, 0.18311), (0.0, -0.14, 0.0), (0.045, 0.18), 1.5),
    "elbow": Part("shoulder", (0.0, -0.274788, 0.0), (0.0, -0.12, 0.0), (0.04, 0.135), 1.0),
    "wrist": Part("elbow", (0.0, -0.258947, 0.0), (0.0, 0.0, 0.0), (0.04,), 0.5),
}
"""The limbs at the right side; at the left, z changes its sign."""

_JOINT_OF_SIZE: Final = {0: Fixed(), 1: Revolute((0.0, -1.0, 0.0)), 4: Spherical(), 7: Free()}
"""The joint that has this many numbers in a frame of the file."""

PUBLISHED_MASS: Final = 45.0
"""Mass of the character [kg]."""
PUBLISHED_HEIGHT: Final = 0.421546 + 0.40987 + 0.05 + 0.236151 + 0.223894 + 0.175 + 0.1025
"""Height of the standing character from the soles to the top of the head [m]."""


def deepmimic_humanoid(clip: DeepMimicClip, *, scale: float, mass: float) -> Model:
    """Build the character, `scale` times the published size, of `mass` [kg]; wrists are fixed to forearms."""
    parts = dict(_TRUNK)
    for side, sign in (("right", 1.0), ("left", -1.0)):
        for name, limb in _LIMBS.items():
            parent = limb.parent if limb.parent in _TRUNK else f"{side}_{limb.parent}"
            x, y, z = limb.at
            parts[f"{side}_{name}"] = limb._replace(parent=parent, at=(x, y, sign * z))
    builder = ModelBuilder(name=clip.file)
    for name, part in parts.items():
        shape = _part_shape(part, scale)
        builder.add_body(
            name,
            parent=part.parent,
            joint=_JOINT_OF_SIZE[JOINTS.get(name, 0)],
            placement=_placement(part.at, scale),
            inertia=shape.inertia(mass=part.mass * (mass / PUBLISHED_MASS)),
            shapes=[shape],
        )
    builder.set_actuated(name for name in JOINTS if name != "root")
    for line in clip.report.lines():
        builder.warn(line)
    return builder.build()


def deepmimic_configurations(clip: DeepMimicClip, *, scale: float) -> Array:
    """Return q (T, nq) with positions and quaternions in our axes; joints are in the file's order."""
    q = clip.values.copy()
    q[:, :3] = scale * _to_model_axes(q[:, :3])  # the root's position comes first
    stop = 0
    for size in JOINTS.values():
        stop += size
        if size > 1:
            q[:, stop - 3 : stop] = _to_model_axes(q[:, stop - 3 : stop])
    return q


def _part_shape(part: Part, scale: float) -> Solid:
    placement = _placement(part.centre, scale)
    sizes = [scale * size for size in part.size]
    if len(sizes) == 1:
        return Sphere(sizes[0], placement=placement)
    if len(sizes) == 2:
        return Capsule(sizes[0], sizes[1], placement=placement)
    return Box((sizes[0], sizes[2], sizes[1]), placement=placement)


def _placement(point: Point, scale: float) -> Transform:
    x, y, z = point
    return Transform(Mat3.identity(), Vec3(scale * x, -scale * z + 0.0, scale * y))


def _to_model_axes(vectors: Array) -> Array:
    """Return the vectors in our axes, (x, y, z) -> (x, -z, y)."""
    return np.stack([vectors[:, 0], -vectors[:, 2], vectors[:, 1]], axis=1)
