"""What the builder refuses, with the fact and the place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.model.small_builders import rod, two_bodies

from dalembert.errors import DalembertError, InertiaError, ModelError, UnknownNameError
from dalembert.model import Limits, Model, ModelBuilder
from dalembert.model.joints import Planar, Prismatic, Revolute, Spherical
from dalembert.model.shapes import Sphere
from dalembert.spatial import Mat3, Transform, Vec3

NAN, INF = math.nan, math.inf


def body(**data: Any) -> Callable[[], Model]:
    return lambda: two_bodies(**data).build()


TILTED = Transform(Mat3(1.0, 0.0, 0.0, 0.0, 1.0, 0.1, 0.0, 0.0, 1.0), Vec3.zero())

MIRROR = Transform(Mat3(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, -1.0), Vec3.zero())


def with_loop(*args: Any) -> Callable[[], Model]:
    def build() -> Model:
        builder = two_bodies()
        builder.add_loop(*args)
        return builder.build()

    return build


def with_coupling(terms: Any, joint: Any = None, **options: Any) -> Callable[[], Model]:
    def build() -> Model:
        builder = two_bodies(**({} if joint is None else {"joint": joint}))
        builder.add_coupling("gear", terms, **options)
        return builder.build()

    return build


def cycle() -> Model:
    builder = two_bodies()
    builder.add_body("a", "c", Revolute())
    builder.add_body("b", "a", Revolute())
    builder.add_body("c", "b", Revolute())
    return builder.build()


def twice() -> Model:
    builder = two_bodies()
    builder.add_body("lower", "world", Revolute())
    return builder.build()


def frame(name: str, on: str, placement: Any = None) -> Callable[[], Model]:
    def build() -> Model:
        builder = two_bodies()
        builder.add_frame("tool", "lower")
        builder.add_frame(name, on, placement)
        return builder.build()

    return build


def actuated(names: Any) -> Callable[[], Model]:
    def build() -> Model:
        builder = two_bodies()
        builder.set_actuated(names)
        return builder.build()

    return build


def named(name: Any) -> Callable[[], Model]:
    def build() -> Model:
        builder = two_bodies()
        builder.add_body(name, "world", Revolute())
        return builder.build()

    return build


BAD: list[tuple[str, Callable[[], Any], type[DalembertError], str]] = [
    ("no bodies", lambda: ModelBuilder().build(), ModelError, "no bodies; add one with add_body"),
    ("gravity nan", lambda: ModelBuilder(gravity=(0, 0, NAN)), ModelError, "three finite numbers"),
    ("gravity two", lambda: ModelBuilder(gravity=(0, 0)), ModelError, "three finite numbers"),
    ("gravity text", lambda: ModelBuilder(gravity="abc"), ModelError, "three finite numbers"),
    ("empty name", named(""), ModelError, "a body's name is empty"),
    ("blank name", named("  "), ModelError, "a body's name is empty"),
    ("number as name", named(3), ModelError, "a body's name must be a string, int was given"),
    ("world as name", named("world"), ModelError, '"world" is the fixed base'),
    ("duplicate body", twice, ModelError, 'body "lower" is added twice.*add_loop'),
    ("duplicate joint", body(joint_name="shoulder"), ModelError, 'already belongs to body "upper"'),
    ("empty joint name", body(joint_name=""), ModelError, "joint_name is empty"),
    (
        "unknown parent",
        lambda: two_bodies_on("uper"),
        UnknownNameError,
        'body "hand": unknown body "uper".*nearest: "upper"',
    ),
    ("own parent", lambda: two_bodies_on("hand"), ModelError, 'joint "hand" connects it to itself'),
    (
        "cycle",
        cycle,
        ModelError,
        '"[abc]" -> "[abc]" -> "[abc]" -> "[abc]" form a cycle that is not connected',
    ),
    ("no joint", body(joint=None), ModelError, 'body "lower" has no joint; give joint=…, Fixed'),
    (
        "joint class",
        body(joint=Revolute),
        ModelError,
        r"joint is the class Revolute; make one, as in Revolute\(\)",
    ),
    ("joint text", body(joint="revolute"), ModelError, "joint must be a Joint .* not str"),
    ("zero axis", lambda: Revolute((0, 0, 0)), ModelError, "the axis is zero"),
    ("nan axis", lambda: Prismatic((0, NAN, 0)), ModelError, "not finite"),
    (
        "nan in joint",
        body(joint=Revolute().with_parameters([0.0, NAN, 1.0])),
        ModelError,
        "revolute joint holds nan",
    ),
    ("mass nan", body(inertia=rod(1, 1, 1, NAN)), ModelError, 'body "lower": inertia holds nan'),
    ("com inf", body(inertia=rod(1, 1, 1, com=(INF, 0, 0))), ModelError, "must be finite"),
    ("mass negative", body(inertia=rod(1, 1, 1, -2)), InertiaError, r"mass is negative: -2 kg.*as_given"),
    ("moment negative", body(inertia=rod(1, 1, -0.5)), InertiaError, r"-0.5, 1, 1 kg.*none may be negative"),
    ("triangle", body(inertia=rod(1, 2, 4)), InertiaError, r"1, 2, 4 kg.*triangle inequality.*as_given"),
    ("massless moments", body(inertia=rod(1, 1, 1, 0)), InertiaError, "mass is zero, but the inertia is not"),
    (
        "inertia list",
        body(inertia=[1, 2]),
        ModelError,
        r"inertia must be RigidInertia\(mass, com, inertia_at_com\)",
    ),
    ("placement list", body(placement=[1]), ModelError, "placement must be a Transform, list was given"),
    (
        "placement nan",
        body(placement=Transform(Mat3.identity(), Vec3(NAN, 0.0, 0.0))),
        ModelError,
        "placement holds nan",
    ),
    ("placement skewed", body(placement=TILTED), ModelError, "R is not a rotation, R.T R differs .* by 0.1"),
    ("placement mirrored", body(placement=MIRROR), ModelError, "reflection"),
    (
        "limits reversed",
        body(limits=(2, -2)),
        ModelError,
        'joint "elbow": lower limit 2.0 is above upper limit -2.0',
    ),
    ("limits nan", body(limits=(NAN, 1)), ModelError, "lower limit holds nan"),
    ("limits three", body(limits=(1, 2, 3)), ModelError, r"pair \(lower, upper\), 3 items"),
    (
        "limits length",
        body(limits=Limits((0, 0), (1, 1))),
        ModelError,
        "lower limit has 2 numbers, the joint needs 1",
    ),
    ("limits nowhere", body(limits=(INF, INF)), ModelError, "leave no position"),
    ("speed negative", body(limits=Limits(velocity=-1)), ModelError, "velocity limit -1.0 is negative"),
    ("damping negative", body(damping=-1), ModelError, "damping is -1.0; it must not be negative"),
    ("damping nan", body(damping=NAN), ModelError, "damping holds nan"),
    ("damping length", body(damping=[1, 2]), ModelError, "damping has 2 numbers, the joint needs 1"),
    (
        "armature length",
        body(joint=Spherical(), armature=[1, 2]),
        ModelError,
        "armature has 2 numbers, the joint needs 3",
    ),
    ("armature text", body(armature="x"), DalembertError, "armature must be a number or a sequence"),
    ("friction inf", body(friction=INF), ModelError, "friction holds inf"),
    ("stiffness negative", body(stiffness=-1e-9), ModelError, "stiffness is -1e-09"),
    ("rest length", body(joint=Planar(), rest=[0, 0]), ModelError, "rest has 2 numbers, the joint needs 3"),
    ("shape", body(shapes=[1]), ModelError, "shapes: int is no shape; use Box"),
    ("shape radius", lambda: Sphere(0.0), ModelError, "sphere: radius is 0.0; give a finite positive number"),
    ("frame twice", frame("tool", "upper"), ModelError, 'frame "tool" is added twice'),
    ("frame of body name", frame("upper", "lower"), ModelError, "has the name of a body"),
    (
        "frame unknown body",
        frame("t", "lowr"),
        UnknownNameError,
        'frame "t": unknown body "lowr".*nearest: "lower"',
    ),
    ("frame placement", frame("t", "lower", 3), ModelError, 'frame "t": placement must be a Transform'),
    (
        "loop to itself",
        with_loop("l", "upper", "upper", Revolute()),
        ModelError,
        'connects body "upper" to itself',
    ),
    (
        "loop unknown",
        with_loop("l", "uper", "lower", Revolute()),
        UnknownNameError,
        'loop "l": unknown body "uper"',
    ),
    ("loop name", with_loop("elbow", "upper", "world", Revolute()), ModelError, 'already a joint "elbow"'),
    ("loop joint", with_loop("l", "upper", "world", 1), ModelError, 'loop "l": joint must be a Joint'),
    (
        "coupling unknown",
        with_coupling({"shoulder": 1, "elbo": 1}),
        UnknownNameError,
        'unknown joint "elbo".*"elbow"',
    ),
    (
        "coupling single",
        with_coupling({"elbow": 1}),
        ModelError,
        "needs two joints or more, 1 given; .*model.lock",
    ),
    (
        "coupling zero",
        with_coupling({"shoulder": 1, "elbow": 0}),
        ModelError,
        'joint "elbow" is 0; .*not zero',
    ),
    ("coupling nan", with_coupling({"shoulder": NAN, "elbow": 1}), ModelError, 'joint "shoulder" is nan'),
    ("coupling offset", with_coupling({"shoulder": 1, "elbow": 1}, offset=INF), ModelError, "offset is inf"),
    (
        "coupling ball",
        with_coupling({"shoulder": 1, "elbow": 1}, Spherical()),
        ModelError,
        "spherical with 3 degrees",
    ),
    (
        "coupling dependent",
        with_coupling({"shoulder": 1, "elbow": 1}, dependent="wrist"),
        UnknownNameError,
        'unknown dependent joint "wrist"',
    ),
    (
        "actuated unknown",
        actuated(["elbw"]),
        UnknownNameError,
        'set_actuated: unknown joint "elbw".*nearest: "elbow"',
    ),
    ("actuated text", actuated("elbow"), ModelError, r'write \["elbow"\]'),
    (
        "inertia option",
        lambda: two_bodies().build(inertia="lax"),
        UnknownNameError,
        'unknown inertia option "lax"',
    ),  # type: ignore[arg-type]
]


def two_bodies_on(parent: str) -> Model:
    builder = two_bodies()
    builder.add_body("hand", parent, Revolute())
    return builder.build()


@pytest.mark.parametrize(
    ("build", "kind", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_input_is_refused_with_fact_and_place(
    build: Callable[[], Any], kind: type[DalembertError], message: str
) -> None:
    """RBDA-4.6-MODEL: validation errors."""
    with pytest.raises(kind, match=message):
        build()


def test_two_couplings_may_not_fight_over_a_joint_nor_chase_each_other() -> None:
    builder = two_bodies()
    builder.add_body("hand", "lower", Revolute(), "wrist")
    builder.add_coupling("first", {"shoulder": 1.0, "wrist": 1.0})
    builder.add_coupling("second", {"elbow": 1.0, "wrist": 1.0})
    with pytest.raises(ModelError, match='couplings "first" and "second" both make joint "wrist" dependent'):
        builder.build()
    builder = two_bodies()
    builder.add_coupling("first", {"shoulder": 1.0, "elbow": 1.0})
    builder.add_coupling("second", {"elbow": 1.0, "shoulder": 2.0})
    with pytest.raises(ModelError, match='couplings "first", "second" depend on each other in a cycle'):
        builder.build()
