"""The builder: what it accepts in any order, and what it refuses with which words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dalembert.errors import DalembertError, InertiaError, ModelError, UnknownNameError
from dalembert.model import Limits, Model, ModelBuilder
from dalembert.model.joints import Fixed, Free, Planar, Prismatic, Revolute, Spherical
from dalembert.model.library import random_inertia, random_tree
from dalembert.model.shapes import Sphere
from dalembert.spatial import Mat3, RigidInertia, Transform, Vec3

NAN, INF = math.nan, math.inf


def two_bodies(**second: Any) -> ModelBuilder:
    builder = ModelBuilder()
    builder.add_body("upper", "world", Revolute(), "shoulder", inertia=random_inertia(1))
    builder.add_body("lower", "upper", **({"joint": Revolute(), "joint_name": "elbow"} | second))
    return builder


def test_bodies_may_come_in_any_order() -> None:
    """RBDA-4.1-NUMBER, RBDA-4.6-MODEL: parents that come later; the numbering is regular."""
    source = random_tree(1, bodies=30)
    order = np.random.default_rng(2).permutation(30)
    builder = ModelBuilder(gravity=source.gravity, name=source.name)
    for i in order:
        body = source.bodies[int(i)]
        parent = "world" if body.parent < 0 else source.bodies[body.parent].name
        builder.add_body(
            body.name, parent, body.joint, body.joint_name, placement=body.placement, inertia=body.inertia
        )
    model = builder.build()
    assert all(parent < i for i, parent in enumerate(model.parents))
    for body in model.bodies:
        twin = source.body(body.name)
        assert (body.placement, body.inertia, body.joint) == (twin.placement, twin.inertia, twin.joint)
        parents = [
            None if b.parent < 0 else m.bodies[b.parent].name for b, m in ((body, model), (twin, source))
        ]
        assert parents[0] == parents[1]
    assert (model.nq, model.nv) == (source.nq, source.nv)
    # Where a joint stands in q follows the numbering: slices tile q and v without gaps.
    assert [body.q_slice.start for body in model.bodies] == [
        sum(b.nq for b in model.bodies[:i]) for i in range(30)
    ]
    assert model.bodies[-1].v_slice.stop == model.nv


def test_a_chain_of_5000_links_builds_without_recursion() -> None:
    """Added from the tip to the root, the hardest order; twice the depth of Python's recursion limit and
    more.
    """
    builder = ModelBuilder()
    inertia = random_inertia(1)
    for i in reversed(range(5000)):
        builder.add_body(f"link{i}", f"link{i - 1}" if i else "world", Revolute(), inertia=inertia)
    model = builder.build()
    assert model.parents == tuple(range(-1, 4999))
    assert model.bodies[4999].name == "link4999"


def test_defaults() -> None:
    model = two_bodies().build()
    lower = model.body("lower")
    assert (lower.damping, lower.armature, lower.friction, lower.stiffness) == ((0.0,),) * 4
    assert lower.limits == Limits((-INF,), (INF,), (INF,), (INF,))
    assert lower.placement == Transform.identity()
    assert model.gravity == Vec3(0.0, 0.0, -9.81)
    assert model.actuated == ("shoulder", "elbow")
    named = ModelBuilder()
    named.add_body("only", "world", Revolute())
    assert named.build().joint("only").name == "only"


def test_one_number_stands_for_every_coordinate() -> None:
    builder = ModelBuilder()
    builder.add_body(
        "a", "world", Free(), damping=2, armature=[1, 2, 3, 4, 5, 6], limits=Limits(-1.0, 1.0, 3.0, 4.0)
    )
    body = builder.build().body("a")
    assert body.damping == (2.0,) * 6
    assert body.armature == (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    assert (len(body.limits.lower), len(body.limits.velocity)) == (7, 6)
    assert body.rest == (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)


def test_limits_as_a_pair() -> None:
    builder = two_bodies(limits=(-1, 2))
    assert builder.build().body("lower").limits.upper == (2.0,)


@pytest.mark.parametrize("name", ["größe", "left hand", "a/b/c", "1.5", "…"])
def test_names_of_all_kinds_are_accepted(name: str) -> None:
    builder = ModelBuilder()
    builder.add_body(name, "world", Revolute())
    model = builder.build()
    assert model.body(name).name == name
    assert model.value(f"{name}.mass") == 0.0


def body(**data: Any) -> Callable[[], Model]:
    return lambda: two_bodies(**data).build()


def rod(a: float, b: float, c: float, mass: float = 1.0, com: Any = (0.0, 0.0, 0.0)) -> RigidInertia:
    return RigidInertia(mass, com, (a, b, c))


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


def test_nonphysical_inertias_are_taken_as_given_on_request() -> None:
    model = two_bodies(inertia=rod(1, 2, 4)).build(inertia="as_given")
    assert model.value("lower.inertia")[2, 2] == 4.0
    assert any('body "lower"' in line and "triangle inequality" in line for line in model.report)


@pytest.mark.parametrize("moments", [(0, 0, 0), (1, 1, 0), (1, 2, 3), (1, 1, 1)])
def test_point_masses_rods_and_plates_are_physical(moments: tuple[float, float, float]) -> None:
    """The boundary of the physical inertias belongs to them, wherever the body's origin is."""
    R = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    for com in ((10.0, -20.0, 30.0), (1000.1, -2000.3, 3000.7)):
        inertia = RigidInertia(3.0, com, (R @ np.diag(moments) @ R.T).tolist())
        two_bodies(inertia=inertia).build()


def test_the_report_names_massless_leaves_and_limits_off_the_neutral_position() -> None:
    report = two_bodies(limits=(0.5, 1.0)).build().report
    assert any('body "lower" moves, has no mass' in line for line in report)
    assert any('joint "elbow": the neutral position is outside the limits' in line for line in report)
    assert two_bodies(inertia=random_inertia(2)).build().report == ()
    assert two_bodies(joint=Fixed()).build().report == ()


def test_the_builder_can_go_on_after_building() -> None:
    builder = two_bodies()
    first = builder.build()
    builder.add_body("hand", "lower", Revolute())
    assert (len(first.bodies), len(builder.build().bodies)) == (2, 3)
