"""A recorded skeleton as a model, and its channels as position variables.

    channels                         rotations="quaternion"        rotations="euler"
    none                             Fixed                         Fixed
    one or two turns                 Revolute, Universal           Revolute, Universal
    three turns                      Spherical                     SphericalEuler in the joint's own order
    three positions, three turns     Free                          Composite(Translation, SphericalEuler)
    others with positions            Composite(Prismatic …, the joint of the turns)

Angles keep the file's values, order and signs (in radians).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import numpy.typing as npt

from dalembert.formats.mocap import Bone, Recording, free_name
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
from dalembert.model.system import WORLD_NAME
from dalembert.motion.anthropometry import segment_masses, segment_shapes, segments
from dalembert.spatial import Mat3, RigidInertia, Transform, Vec3
from dalembert.spatial.rotations import quaternion_product

__all__ = ["character", "configurations"]

Array = npt.NDArray[np.float64]
Rotations = Literal["quaternion", "euler"]

_UNIT = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def character(recording: Recording, *, scale: float, rotations: Rotations, mass: float) -> Model:
    """Build the model of a skeleton with z up: one body for each bone, one frame for each tip, `scale` [m per
    file unit].
    """
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
    start = 0
    for bone in recording.bones:
        own = recording.values[:, start : start + len(bone.channels)]
        start += len(bone.channels)
        column = dict(zip(bone.channels, own.T))
        moves = [column[f"t{axis}"] * scale for axis in _move_order(bone)]
        turns = [column[f"r{axis}"] for axis in bone.rotations]
        if rotations == "quaternion" and len(turns) == 3:
            turns = _quaternion(bone.rotations, turns)
        parts += [np.stack(moves + turns, axis=1)] if moves or turns else []
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(recording.time), 0))


def _move_order(bone: Bone) -> Iterable[str]:
    """Return the axes of the position channels in the joint's order: x, y, z if there are three."""
    return "xyz" if len(bone.positions) == 3 else bone.positions


def _joint(bone: Bone, rotations: Rotations) -> Joint:
    moves, turns = bone.positions, bone.rotations
    if len(moves) == 3 and len(turns) == 3 and rotations == "quaternion":
        return Free()
    joints: list[Joint] = [Translation()] if len(moves) == 3 else [Prismatic(_UNIT[axis]) for axis in moves]
    if len(turns) == 3:
        joints.append(Spherical() if rotations == "quaternion" else SphericalEuler("".join(turns)))
    elif len(turns) == 2:
        joints.append(Universal(_UNIT[turns[0]], _UNIT[turns[1]]))
    elif len(turns) == 1:
        joints.append(Revolute(_UNIT[turns[0]]))
    if not joints:
        return Fixed()
    return joints[0] if len(joints) == 1 else Composite(joints)


def _quaternion(axes: Iterable[str], angles: Iterable[Array]) -> list[Array]:
    """Return the quaternion of successive rotations about the frame's own axes."""
    q: list[Array] | None = None
    for axis, angle in zip(axes, angles):
        half = 0.5 * angle
        turn = [np.cos(half)] + [np.sin(half) * component for component in _UNIT[axis]]
        q = turn if q is None else quaternion_product(q, turn)
    assert q is not None
    return q
