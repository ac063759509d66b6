"""The character of DeepMimic clips: 15 bodies, 45 kg, sizes and masses as published (Peng et al. 2018).

The file's x forward, y up, z right become our x forward, y left, z up: (x, y, z) -> (x, -z, y). So knees and
elbows, which turn about the file's z, turn about our -y.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dalembert.formats.mocap.deepmimic import JOINTS, DeepMimicClip
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Fixed, Free, Joint, Revolute, Spherical
from dalembert.model.model import Model
from dalembert.model.shapes import Box, Capsule, Solid, Sphere
from dalembert.model.system import WORLD_NAME
from dalembert.spatial import Mat3, Transform, Vec3

__all__ = ["PUBLISHED_HEIGHT", "PUBLISHED_MASS", "deepmimic_configurations", "deepmimic_humanoid"]

Array = npt.NDArray[np.float64]
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


_ROOT: Final = Part(WORLD_NAME, (0.0, 0.0, 0.0), (0.0, 0.07, 0.0), (0.09,), 6.0)
_CHEST: Final = Part("root", (0.0, 0.236151, 0.0), (0.0, 0.12, 0.0), (0.11,), 14.0)
_NECK: Final = Part("chest", (0.0, 0.223894, 0.0), (0.0, 0.175, 0.0), (0.1025,), 2.0)
_LIMBS: Final = {
    "hip": Part("root", (0.0, 0.0, 0.084887), (0.0, -0.21, 0.0), (0.055, 0.30), 4.5),
    "knee": Part("hip", (0.0, -0.421546, 0.0), (0.0, -0.20, 0.0), (0.05, 0.31), 3.0),
    "ankle": Part("knee", (0.0, -0.40987, 0.0), (0.045, -0.0225, 0.0), (0.177, 0.055, 0.09), 1.0),
    "shoulder": Part("chest", (-0.02405, 0.2435, 0.18311), (0.0, -0.14, 0.0), (0.045, 0.18), 1.5),
    "elbow": Part("shoulder", (0.0, -0.274788, 0.0), (0.0, -0.12, 0.0), (0.04, 0.135), 1.0),
    "wrist": Part("elbow", (0.0, -0.258947, 0.0), (0.0, 0.0, 0.0), (0.04,), 0.5),
}
"""The limbs at the right side; at the left, z changes its sign."""

PUBLISHED_MASS: Final = 45.0
"""Mass of the character [kg]."""
PUBLISHED_HEIGHT: Final = 0.421546 + 0.40987 + 0.05 + 0.236151 + 0.223894 + 0.175 + 0.1025
"""Height of the standing character from the soles to the top of the head [m]."""


def deepmimic_humanoid(clip: DeepMimicClip, *, scale: float, mass: float) -> Model:
    """Build the character, `scale` times the published size and of `mass` [kg]; wrists are fixed to the
    forearms.
    """
    builder = ModelBuilder(name=clip.file)
    _add(builder, "root", _ROOT, scale, mass / PUBLISHED_MASS)
    _add(builder, "chest", _CHEST, scale, mass / PUBLISHED_MASS)
    _add(builder, "neck", _NECK, scale, mass / PUBLISHED_MASS)
    for side, sign in (("right", 1.0), ("left", -1.0)):
        for name, limb in _LIMBS.items():
            parent = limb.parent if limb.parent in ("root", "chest") else f"{side}_{limb.parent}"
            x, y, z = limb.at
            part = limb._replace(parent=parent, at=(x, y, sign * z))
            _add(builder, f"{side}_{name}", part, scale, mass / PUBLISHED_MASS)
    builder.set_actuated(name for name in JOINTS if name != "root")
    for line in clip.report.lines():
        builder.warn(line)
    return builder.build()


def deepmimic_configurations(clip: DeepMimicClip, *, scale: float) -> Array:
    """Return q (T, nq) with positions and quaternions in our axes; the model has its joints in the file's
    order.
    """
    q = clip.values.copy()
    start = 0
    for size in JOINTS.values():
        if size == 7:
            q[:, start : start + 3] = scale * _to_model_axes(q[:, start : start + 3])
        if size > 1:
            vector = slice(start + size - 3, start + size)
            q[:, vector] = _to_model_axes(q[:, vector])
        start += size
    return q


def _add(builder: ModelBuilder, name: str, part: Part, scale: float, mass_factor: float) -> None:
    shape = _shape(part, scale)
    builder.add_body(
        name,
        parent=part.parent,
        joint=_joint(name),
        placement=Transform(Mat3.identity(), _place(part.at, scale)),
        inertia=shape.inertia(mass=part.mass * mass_factor),
        shapes=[shape],
    )


def _joint(name: str) -> Joint:
    if name not in JOINTS:
        return Fixed()
    if JOINTS[name] == 1:
        return Revolute((0.0, -1.0, 0.0))
    return Free() if name == "root" else Spherical()


def _shape(part: Part, scale: float) -> Solid:
    placement = Transform(Mat3.identity(), _place(part.centre, scale))
    sizes = [scale * size for size in part.size]
    if len(sizes) == 1:
        return Sphere(sizes[0], placement=placement)
    if len(sizes) == 2:
        return Capsule(sizes[0], sizes[1], placement=placement)
    return Box((sizes[0], sizes[2], sizes[1]), placement=placement)


def _place(point: Point, scale: float) -> Vec3:
    x, y, z = point
    return Vec3(scale * x, -scale * z + 0.0, scale * y)


def _to_model_axes(vectors: Array) -> Array:
    """Return the vectors in our axes, (x, y, z) -> (x, -z, y)."""
    return np.stack([vectors[:, 0], -vectors[:, 2], vectors[:, 1]], axis=1)
