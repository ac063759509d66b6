"""Random Pinocchio models out of every joint class that it has, and random moving states of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin

Array = np.ndarray[Any, np.dtype[np.float64]]

CONTINUOUS_URDF = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="{} {} {}"/></joint></robot>"""


def random_axis(rng: np.random.Generator) -> Array:
    axis = rng.standard_normal(3)
    return axis / np.linalg.norm(axis)


def continuous_unaligned(rng: np.random.Generator) -> Any:
    """Pinocchio's Python class cannot be made with an axis; its URDF reader makes one."""
    return pin.buildModelFromXML(CONTINUOUS_URDF.format(*random_axis(rng))).joints[1].extract()


def composite(rng: np.random.Generator) -> Any:
    """Joints of constant and of varying subspace, some with velocities in another order, one nested."""
    inner = pin.JointModelComposite(pin.JointModelRX(), random_placement(rng))
    inner.addJoint(pin.JointModelPlanar(), random_placement(rng))
    outer = pin.JointModelComposite(pin.JointModelRUBY(), random_placement(rng))
    outer.addJoint(inner, random_placement(rng))
    outer.addJoint(pin.JointModelHX(0.4), random_placement(rng))
    return outer


def small_composite(rng: np.random.Generator) -> Any:
    joint = pin.JointModelComposite(pin.JointModelUniversal(random_axis(rng), random_axis(rng)))
    joint.addJoint(pin.JointModelSpherical(), random_placement(rng))
    return joint


def random_placement(rng: np.random.Generator) -> Any:
    quaternion = rng.standard_normal(4)
    return pin.SE3(pin.Quaternion(quaternion / np.linalg.norm(quaternion)).matrix(), rng.standard_normal(3))


def random_inertia(rng: np.random.Generator) -> Any:
    """Of four random point masses and a little ball, so that it is physical."""
    masses, points = rng.uniform(0.2, 1.0, 4), 0.3 * rng.standard_normal((4, 3))
    com = masses @ points / masses.sum()
    arms = points - com
    about_com = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, arms))
    return pin.Inertia(masses.sum(), com, about_com + 0.01 * np.eye(3))


JOINTS: dict[str, Callable[[np.random.Generator], Any]] = {
    "JointModelRX": lambda rng: pin.JointModelRX(),
    "JointModelRY": lambda rng: pin.JointModelRY(),
    "JointModelRZ": lambda rng: pin.JointModelRZ(),
    "JointModelRevoluteUnaligned": lambda rng: pin.JointModelRevoluteUnaligned(random_axis(rng)),
    "JointModelRUBX": lambda rng: pin.JointModelRUBX(),
    "JointModelRUBY": lambda rng: pin.JointModelRUBY(),
    "JointModelRUBZ": lambda rng: pin.JointModelRUBZ(),
    "JointModelRevoluteUnboundedUnaligned": continuous_unaligned,
    "JointModelPX": lambda rng: pin.JointModelPX(),
    "JointModelPY": lambda rng: pin.JointModelPY(),
    "JointModelPZ": lambda rng: pin.JointModelPZ(),
    "JointModelPrismaticUnaligned": lambda rng: pin.JointModelPrismaticUnaligned(random_axis(rng)),
    "JointModelHX": lambda rng: pin.JointModelHX(rng.uniform(-0.5, 0.5)),
    "JointModelHY": lambda rng: pin.JointModelHY(rng.uniform(-0.5, 0.5)),
    "JointModelHZ": lambda rng: pin.JointModelHZ(rng.uniform(-0.5, 0.5)),
    "JointModelHelicalUnaligned": lambda rng: pin.JointModelHelicalUnaligned(
        random_axis(rng), rng.uniform(-0.5, 0.5)
    ),
    "JointModelUniversal": lambda rng: pin.JointModelUniversal(random_axis(rng), random_axis(rng)),
    "JointModelEllipsoid": lambda rng: pin.JointModelEllipsoid(*rng.uniform(0.2, 1.0, 3)),
    "JointModelSpherical": lambda rng: pin.JointModelSpherical(),
    "JointModelSphericalZYX": lambda rng: pin.JointModelSphericalZYX(),
    "JointModelTranslation": lambda rng: pin.JointModelTranslation(),
    "JointModelPlanar": lambda rng: pin.JointModelPlanar(),
    "JointModelFreeFlyer": lambda rng: pin.JointModelFreeFlyer(),
    "JointModelComposite": composite,
}
"""Every class but the mimic joint, which is made out of another joint of its model."""


def tree(rng: np.random.Generator, joints: list[Any]) -> Any:
    """A random tree with these joints, with armature and two frames a body.

    Numbered depth first, limb by limb: with other regular numberings Pinocchio's crba is silently wrong.
    """
    model = pin.Model()
    model.name = "random"
    model.gravity.linear = rng.standard_normal(3) * 5.0
    for number, joint in enumerate(joints):
        limb = list(model.supports[model.njoints - 1])
        parent = int(rng.choice(limb[-4:]))
        index = model.addJoint(parent, joint, random_placement(rng), f"joint{number}")
        model.appendBodyToJoint(index, random_inertia(rng), random_placement(rng))
        model.addJointFrame(index, 0)
        model.addBodyFrame(f"body{number}", index, pin.SE3.Identity(), 0)
        model.addFrame(pin.Frame(f"tip{number}", index, 0, random_placement(rng), pin.FrameType.OP_FRAME))
    model.armature = rng.uniform(0.0, 0.5, model.nv)
    return model


def states(model: Any, rng: np.random.Generator, count: int) -> tuple[Array, Array, Array]:
    """(q, v, a), one moving state a row."""
    q = np.array(
        [pin.integrate(model, pin.neutral(model), rng.uniform(-1.2, 1.2, model.nv)) for _ in range(count)]
    )
    return q, rng.standard_normal((count, model.nv)), rng.standard_normal((count, model.nv))


def sample_model(name: str) -> Any:
    """A robot that Pinocchio brings along; its random humanoid has 32 velocity variables."""
    if name == "humanoid_random":
        pin.seed(0)
        return pin.buildSampleModelHumanoidRandom()
    return {"manipulator": pin.buildSampleModelManipulator, "humanoid": pin.buildSampleModelHumanoid}[name]()


def with_mimics(rng: np.random.Generator) -> Any:
    """A tree in which revolute, prismatic and continuous followers follow four leaders.

    Spared is what Pinocchio 4.1 has wrong: helical followers, whose subspace it gives no pitch, and joints
    with several variables between a leader and its follower, where its crba differs from its rnea.
    """
    model = pin.Model()
    model.gravity.linear = rng.standard_normal(3) * 5.0
    plan: tuple[tuple[int, Any], ...] = (
        (0, pin.JointModelFreeFlyer()),
        (1, pin.JointModelRX()),
        (2, pin.JointModelPrismaticUnaligned(random_axis(rng))),
        (3, (2, 0.7, 0.2, None)),
        (4, (3, -1.5, 0.3, None)),
        (3, (2, 1.2, 0.1, pin.JointModelRevoluteUnaligned(random_axis(rng)))),
        (2, pin.JointModelRUBY()),
        (7, (7, 2.0, -0.4, None)),
        (8, (2, 0.0, 0.6, None)),
        (9, pin.JointModelSpherical()),
        (7, pin.JointModelHX(0.2)),
        (1, (11, 0.4, 0.3, pin.JointModelRZ())),
        (12, (2, -1.1, 0.2, pin.JointModelPY())),
        (13, pin.JointModelPlanar()),
    )
    for number, (parent, joint) in enumerate(plan):
        if isinstance(joint, tuple):
            joint = follower(model, *joint)
        index = model.addJoint(parent, joint, random_placement(rng), f"joint{number}")
        model.appendBodyToJoint(index, random_inertia(rng), random_placement(rng))
    model.armature = rng.uniform(0.0, 0.5, model.nv)
    return model


def follower(model: Any, leader: int, ratio: float, offset: float, kind: Any) -> Any:
    """A mimic joint of the leader's own kind (None) or of another one."""
    mimicked = model.joints[leader]
    if kind is not None:
        places = (leader, mimicked.idx_q, mimicked.idx_v, mimicked.idx_vExtended)
        mimicked = pin.JointModel(kind)
        mimicked.setIndexes(*places)
    return pin.JointModelMimic(mimicked, ratio, offset)


TREES = 6

SINGLE_JOINTS = tuple(JOINTS)
RANDOM_TREES = tuple(f"tree{seed}" for seed in range(TREES))
SAMPLES = ("manipulator", "humanoid", "humanoid_random")
MIMICS = ("mimics0", "mimics1")
OPEN_MODELS = SINGLE_JOINTS + RANDOM_TREES + SAMPLES
ALL_MODELS = OPEN_MODELS + MIMICS


@cache
def peer_model(name: str) -> Any:
    """The Pinocchio model of that name, always the same one."""
    if name in SAMPLES:
        return sample_model(name)
    rng = np.random.default_rng(ALL_MODELS.index(name))
    if name in MIMICS:
        return with_mimics(rng)
    if name in SINGLE_JOINTS:
        return tree(rng, [JOINTS[name](rng)])
    # Eight classes a tree, in cyclic order, so that the trees together hold every class twice.
    classes = list(JOINTS.values())
    start = 8 * RANDOM_TREES.index(name)
    joints = [classes[(start + i) % len(classes)](rng) for i in range(8)]
    joints.append(small_composite(rng))
    return tree(rng, [joints[i] for i in rng.permutation(len(joints))])
