"""Random moving trees that one joint of any kind closes, assembled at a given state."""

from __future__ import annotations

import numpy as np
from tests.looped_models import add_closed_loop, poses_at

from dalembert.model.builder import ModelBuilder
from dalembert.model.configuration import integrate
from dalembert.model.joints import (
    Composite,
    Cylindrical,
    EllipsoidJoint,
    Fixed,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    RackPinion,
    Reversed,
    Revolute,
    SphereInCylinder,
    Spherical,
    SphericalEuler,
    SphericalExponential,
    TimeDependent,
    Translation,
    Universal,
    UserDefined,
)
from dalembert.model.model import Model
from dalembert.models.random_trees import random_inertia, random_placement
from dalembert.scalar import atan2, cos, sin
from dalembert.spatial import Mat3, Transform, Vec3

TIME = 0.4


def screw_joint() -> UserDefined:
    """A helical joint that a user defines by its placement and its position at a placement."""

    def place(q):
        c, s = cos(q[0]), sin(q[0])
        return Transform(Mat3(c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0), Vec3(0.0, 0.0, 0.3 * q[0]))

    return UserDefined(
        "screw", 1, 1, place, position_of=lambda X: [atan2(X.R.to_list()[1][0], X.R.to_list()[0][0])]
    )


def driven(joint: Joint) -> TimeDependent:
    """The joint on a stand that slides and turns with time."""
    return TimeDependent(
        joint,
        driver=Cylindrical((0.6, 0.0, 0.8)),
        motion=lambda t: [0.7 * sin(2.0 * t), 0.2 * t * t],
    )


CLOSERS: dict[str, Joint] = {
    "fixed": Fixed(),
    "revolute": Revolute((0.48, -0.6, 0.64)),
    "revolute_z": Revolute(),
    "prismatic": Prismatic((0.48, -0.6, 0.64)),
    "helical": Helical((0.0, 1.0, 0.0), 0.3),
    "cylindrical": Cylindrical((0.48, -0.6, 0.64)),
    "planar": Planar(),
    "spherical": Spherical(),
    "spherical_euler": SphericalEuler("zyx"),
    "spherical_exponential": SphericalExponential(),
    "universal": Universal((0.48, -0.6, 0.64), (0.6, 0.8, 0.0)),
    "universal_xy": Universal(),
    "translation": Translation(),
    "free": Free(),
    "rack_pinion": RackPinion(0.4),
    "sphere_in_cylinder": SphereInCylinder((0.48, -0.6, 0.64)),
    "ellipsoid": EllipsoidJoint(0.7, 1.1, 1.6),
    "composite": Composite(
        [Fixed(), Universal()],
        [random_placement(np.random.default_rng(1)), random_placement(np.random.default_rng(2))],
    ),
    "reversed": Reversed(Helical((0.0, 0.0, 1.0), 0.3)),
    "user_defined": screw_joint(),
    "driven_revolute": driven(Revolute((0.0, 1.0, 0.0))),
    "driven_spherical": driven(Spherical()),
    "driven_fixed": driven(Fixed()),
    "driven_universal": driven(Universal()),
}

ENDS = (("world", "arm2"), ("arm2", "world"), ("arm2", "leg2"), ("trunk", "leg2"), ("leg2", "head"))
"""(predecessor, successor): the world on either side, two branches, one above the other."""


def tree(rng: np.random.Generator) -> ModelBuilder:
    """A moving base with two arms of mixed joints, one of which a prescribed motion carries."""
    builder = ModelBuilder()
    bodies: list[tuple[str, str, Joint]] = [
        ("trunk", "world", Free()),
        ("arm1", "trunk", Revolute((0.0, 0.0, 1.0))),
        ("arm2", "arm1", Helical((0.36, 0.48, 0.8), 0.2)),
        ("leg1", "trunk", driven(Revolute((1.0, 0.0, 0.0)))),
        ("leg2", "leg1", Universal()),
        ("head", "trunk", Spherical()),
    ]
    for name, parent, joint in bodies:
        builder.add_body(
            name, parent=parent, joint=joint, placement=random_placement(rng), inertia=random_inertia(rng)
        )
    return builder


def closed_model(closer: Joint, ends: tuple[str, str], seed: int) -> tuple[Model, list[float], list[float]]:
    """(model, q, v): the loop is closed at q and TIME; v is random and breaks the loop."""
    rng = np.random.default_rng(seed)
    bare = tree(rng).build()
    q, v = bare.random_state(seed)
    poses = poses_at(bare, q.tolist(), TIME)
    while True:
        q_J = closer.random(rng)
        if closer.nv == 0 or closer.singularity_measure(q_J, TIME) > 0.3:
            break
    builder = tree(np.random.default_rng(seed))
    add_closed_loop(builder, "closer", closer, ends, poses, rng, q=q_J, time=TIME)
    return builder.build(), q.tolist(), v.tolist()


def moved(model: Model, q: list[float], v: list[float], h: float) -> list[float]:
    """The configuration that the velocity v reaches after a time h."""
    return [float(x) for x in integrate(model, q, [h * x for x in v])]
