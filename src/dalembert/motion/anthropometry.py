"""Masses, shapes and inertias for a skeleton without any.

The name of a bone indicates its body part. Each part has a fraction of the total mass (`PARTS`, rounded from
the published anthropometry of adults, about Winter 2009 and de Leva 1996); parts that the skeleton lacks
leave theirs to the others. Within a part, mass is proportional to length. Bones with other names get mass by
volume: that of a rod of their length and proportional width, relative to the volume of all bones.

A body's mass lies in capsules from its joint to the next joints and tips, of the density of the human body. A
bone without length, as many files have at hips and collar, becomes a sphere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from dalembert.formats.mocap import Bone
from dalembert.model.shapes import Capsule, Solid, Sphere

__all__ = ["body_part", "segment_masses", "segment_shapes", "stature"]

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
    """Return the part of the body that a bone's name indicates; `by_joints` if bones are named after their
    joints.
    """
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
    """Return, for each bone, the distinct end points in its frame: the joints that it carries, and its
    tips.
    """
    ends: list[list[Array]] = [[tip.offset for tip in bone.tips] for bone in bones]
    for bone in bones:
        if bone.parent >= 0:
            ends[bone.parent].append(bone.offset)
    longest = max((float(np.linalg.norm(end)) for own in ends for end in own), default=0.0)
    result = []
    for own in ends:
        kept: list[Array] = []
        for end in own[:64]:
            apart = all(np.linalg.norm(end - other) > 1e-3 * longest for other in kept)
            if apart and float(np.linalg.norm(end)) > 1e-3 * longest:
                kept.append(end)
        result.append(kept)
    return result


def segment_masses(bones: Sequence[Bone], mass: float) -> list[float]:
    """Return the mass of every bone [kg]; the masses are positive and add up to `mass`."""
    lengths = np.array([sum(float(np.linalg.norm(end)) for end in own) for own in segments(bones)])
    total = float(lengths.sum())
    lengths = np.maximum(lengths, MIN_RELATIVE_LENGTH * total) if total > 0.0 else np.ones(len(bones))
    parts = body_parts(bones)
    volumes = lengths**3
    share = np.where([part is None for part in parts], volumes / volumes.sum(), 0.0)
    named = sorted({part for part in parts if part is not None})
    left, whole = 1.0 - float(share.sum()), sum(PARTS[part] for part in named)
    for part in named:
        own = np.array([other == part for other in parts])
        share[own] = left * PARTS[part] / whole * lengths[own] / lengths[own].sum()
    return [float(m) for m in mass * share / share.sum()]


def segment_shapes(ends: Sequence[Array], mass: float) -> list[Solid]:
    """Return capsules from the origin to the ends [m] that together weigh `mass` [kg] at the body's
    density.
    """
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
    ends = segments(bones)
    reach = np.zeros(len(bones))  # along the bones from the root to the joint
    place = np.zeros((len(bones), 3))
    turn = np.zeros((len(bones), 3, 3))
    heights: list[float] = []
    for i, bone in enumerate(bones):
        R, p = (turn[bone.parent], place[bone.parent]) if bone.parent >= 0 else (np.eye(3), np.zeros(3))
        offset = bone.offset if bone.parent >= 0 else np.zeros(3)
        reach[i] = (reach[bone.parent] if bone.parent >= 0 else 0.0) + float(np.linalg.norm(offset))
        place[i], turn[i] = p + R @ offset, R @ bone.axes
        heights += [float((place[i] + turn[i] @ end)[2]) for end in (np.zeros(3), *ends[i])]
    head: list[float] = [
        float(reach[i]) + max((float(np.linalg.norm(end)) for end in ends[i]), default=0.0)
        for i in range(len(bones))
        if parts[i] == "head"
    ]
    ankle = [
        float(reach[i])
        for i, bone in enumerate(bones)
        if parts[i] == "foot" and (bone.parent < 0 or parts[bone.parent] != "foot")
    ]
    if head and ankle:
        return max(head) + max(ankle)
    return max(heights) - min(heights)


def _capsule_radius(volume: float, length: float) -> float:
    """Solve pi r^2 (length + 4/3 r) = volume for r by Newton's method from above, where it converges
    monotonically.
    """
    r = min(math.sqrt(volume / (math.pi * length)), math.cbrt(3.0 * volume / (4.0 * math.pi)))
    for _ in range(60):
        excess = math.pi * r * r * (length + 4.0 / 3.0 * r) - volume
        step = excess / (2.0 * math.pi * r * length + 4.0 * math.pi * r * r)
        r -= step
        if abs(step) <= 1e-15 * r:
            break
    return r
