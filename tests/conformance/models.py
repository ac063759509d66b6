"""Small models that between them hold every joint type, branches, a free root, armature and springs."""

from __future__ import annotations

import functools

import numpy as np

import dalembert as da
from dalembert.models.random_trees import random_inertia, random_placement

KINDS = (
    "revolute", "prismatic", "helical", "cylindrical", "planar", "spherical", "spherical_euler",
    "spherical_exponential", "universal", "translation", "free", "rack_pinion", "sphere_in_cylinder",
    "ellipsoid", "composite", "reversed", "fixed",
)  # fmt: skip


@functools.cache
def arm() -> da.Model:
    """A fixed base, two joints of one freedom about general axes, and a fixed hand."""
    rng = np.random.default_rng(3)
    builder = da.ModelBuilder(gravity=(0.3, -0.2, -9.7))
    joints = (da.Revolute((0.0, 0.0, 1.0)), da.Revolute((0.2, 0.9, -0.3)), da.Fixed())
    for k, joint in enumerate(joints):
        builder.add_body(
            f"link{k}",
            "world" if k == 0 else f"link{k - 1}",
            joint,
            placement=random_placement(rng),
            inertia=random_inertia(rng),
            armature=0.1 * k * (joint.nv > 0),
            damping=0.4 * (joint.nv > 0),
            stiffness=1.5 * k * (joint.nv > 0),
        )
    return builder.build()


@functools.cache
def branched() -> da.Model:
    """A free root that carries a ball joint on one branch and a screw on another."""
    rng = np.random.default_rng(4)
    builder = da.ModelBuilder(gravity=(0.3, -0.2, -9.7))
    places = (
        ("root", "world", da.Free()),
        ("ball", "root", da.Spherical()),
        ("screw", "root", da.joints.Helical((0.5, -0.1, 0.8), 0.2)),
    )
    for name, parent, joint in places:
        builder.add_body(
            name,
            parent,
            joint,
            placement=random_placement(rng),
            inertia=random_inertia(rng),
            friction=0.3 if joint.nv == 1 else 0.0,
        )
    return builder.build()  # fmt: skip


@functools.cache
def every_joint() -> da.Model:
    """A branching tree with one joint of every kind."""
    return da.models.random_tree(11, bodies=len(KINDS), joints=KINDS, armature=0.2)


@functools.cache
def textbook(name: str) -> da.Model:
    """One of the bundled models whose equations fit on a line."""
    model: da.Model = getattr(da.models, name)()
    return model


@functools.cache
def geared() -> da.Model:
    """A free root with an arm whose rotor and finger follow other joints, across branches."""
    rng = np.random.default_rng(5)
    builder = da.ModelBuilder(gravity=(0.3, -0.2, -9.7))
    places = (
        ("root", "world", da.Free()),
        ("arm", "root", da.Revolute((0.1, 0.9, 0.2))),
        ("rotor", "root", da.Revolute((0.0, 0.0, 1.0))),
        ("wrist", "arm", da.Revolute((0.7, -0.2, 0.4))),
        ("finger", "wrist", da.Prismatic((0.0, 1.0, 0.0))),
    )
    for name, parent, joint in places:
        builder.add_body(
            name,
            parent,
            joint,
            placement=random_placement(rng),
            inertia=random_inertia(rng),
            armature=0.2 if name == "wrist" else 0.0,
        )
    builder.add_coupling("gear", {"arm": 3.0, "rotor": -1.0}, offset=0.2)
    builder.add_coupling("tendon", {"arm": 0.3, "wrist": 0.5, "finger": -1.0})
    return builder.build()  # fmt: skip


@functools.cache
def muscled() -> da.Model:
    """A free root with two hinges, a tendon between points, one over joints, actuators, and water around."""
    rng = np.random.default_rng(7)
    builder = da.ModelBuilder(gravity=(0.3, -0.2, -9.7))
    for name, parent, joint in (
        ("root", "world", da.Free()),
        ("knee", "root", da.Revolute((0.1, 0.9, 0.2))),
        ("ankle", "knee", da.Revolute((0.7, -0.2, 0.4))),
    ):
        builder.add_body(name, parent, joint, placement=random_placement(rng), inertia=random_inertia(rng))
    builder.add_spring(
        "muscle",
        [("world", (0.1, 2.0, 0.3)), ("root", (0.2, -0.1, 0.3)), ("ankle", (0.1, 0.2, -0.4))],
        stiffness=3.0,
        damping=0.4,
        rest_length=0.2,
    )
    builder.add_spring("tie", joints={"knee": 0.5, "ankle": -0.7}, stiffness=2.0, damping=0.1)
    builder.add_actuator("motor", {"knee": 2.0}, gain=1.5, bias=(0.1, -0.2, -0.3))
    builder.add_actuator("pull", {"muscle": 1.0}, gain=0.7, bias=(0.0, -0.1, -0.2))
    builder.set_fluid(density=1000.0, viscosity=0.1, wind=(0.3, -0.2, 0.1))
    builder.add_drag_shape("plate", "root", (0.2, 0.1, 0.05))
    builder.add_drag_shape("foot", "ankle", (0.1, 0.05, 0.04), coefficients=(0.5, 0.25, 1.5, 1.0, 0.8))
    return builder.build()


@functools.cache
def linkage() -> da.Model:
    """The bundled four-bar linkage: three bars and a loop joint."""
    return da.models.four_bar()


@functools.cache
def crank() -> da.Model:
    """A slider-crank linkage whose loop is closed by its formula: the rod's angle and the slider's place."""
    base = da.models.slider_crank()
    builder = da.ModelBuilder(name="crank")
    for body in base.bodies:
        builder.add_body(
            body.name,
            base.bodies[body.parent].name if body.parent >= 0 else "world",
            body.joint,
            body.joint_name,
            placement=body.placement,
            inertia=body.inertia,
        )
    loop = base.loops[0]
    builder.add_loop("pin", "rod", "slider", loop.joint, loop.placement_predecessor)

    def closed(model: da.Model, y: list[object]) -> list[object]:
        sine = 0.25 / 0.8 * da.scalar.sin(y[0])
        cosine = da.scalar.sqrt(1.0 - sine * sine)
        slide = 0.25 * da.scalar.cos(y[0]) + 0.8 * cosine - 1.05
        return [y[0], -y[0] - da.scalar.atan2(sine, cosine), slide]

    builder.set_loop_closure(closed, ["crank_pivot"])
    return builder.build()


@functools.cache
def looped() -> da.Model:
    """A free root and two arms, loops of several joints, one to the world, and constraints of both kinds."""
    rng = np.random.default_rng(5)
    builder = da.ModelBuilder(gravity=(0.3, -0.2, -9.7))
    places = (
        ("root", "world", da.Free()),
        ("left", "root", da.Revolute((0.2, 0.9, -0.3))),
        ("right", "root", da.Spherical()),
    )
    for name, parent, joint in places:
        builder.add_body(name, parent, joint, placement=random_placement(rng), inertia=random_inertia(rng))
    for name, p, s, joint in (
        ("fork", "left", "right", da.joints.Universal((0.6, 0.8, 0.0), (0.0, 0.0, 1.0))),
        ("guide", "world", "right", da.joints.SphereInCylinder((0.0, 0.6, 0.8))),
    ):
        builder.add_loop(name, p, s, joint, random_placement(rng), random_placement(rng))
    builder.add_constraint(_circle)
    builder.add_constraint(_blade, "velocity")
    return builder.build()


def _circle(model, q):
    return [q[0] * q[0] + q[1] * q[2] - 0.4]


def _blade(model, q, v):
    return [v[4] + 0.3 * v[2] + da.scalar.sin(q[7]) * v[6]]


@functools.cache
def cam_driven() -> da.Model:
    """An arm whose second joint follows the others by an explicit constraint q = gamma(y)."""
    rng = np.random.default_rng(6)
    builder = da.ModelBuilder()
    for name, parent in (("a", "world"), ("b", "a"), ("c", "a")):
        builder.add_body(
            name, parent, da.Revolute(), placement=random_placement(rng), inertia=random_inertia(rng)
        )
    builder.set_loop_closure(_cam, ["a", "c"])
    return builder.build()


def _cam(model, y):
    return [y[0], 0.5 * y[0] + 0.2 * da.scalar.sin(y[0] + y[1]), y[1]]
