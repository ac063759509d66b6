"""The bundled models."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

from dalembert import models
from dalembert.errors import ArgumentError, ModelError, UnknownNameError
from dalembert.model import Model
from dalembert.model.body import Body
from dalembert.model.joints import Revolute, Spherical
from dalembert.models import random_tree
from dalembert.models.random_trees import MAKERS, random_inertia, random_joint
from dalembert.spatial import Motion, Transform, Vec3, physical_problems

EVERY = {
    "pendulum": models.pendulum,
    "double_pendulum": models.double_pendulum,
    "two_link_arm": models.two_link_arm,
    "cart_pole": models.cart_pole,
    "arm6": models.arm6,
    "arm7": models.arm7,
    "quadruped": models.quadruped,
    "humanoid": models.humanoid,
    "four_bar": models.four_bar,
    "slider_crank": models.slider_crank,
    "five_bar": models.five_bar,
    "ladder": lambda: models.ladder(4),
    "stewart": models.stewart,
    "gu": lambda: models.gu(5),
    "random_tree": lambda: models.random_tree(1),
}


def placed(model: Model, q: Any) -> dict[str, np.ndarray]:
    owns = list(model.outward(lambda body, X: (X @ body.link_transform(list(q)),) * 2, Transform.identity()))
    found = {body.name: np.array(X.homogeneous()) for body, X in zip(model.bodies, owns)}
    for frame in model.frames:
        found[frame.name] = np.array((owns[frame.body] @ frame.placement).homogeneous())
    return found


def kinetic_energy(model: Model, q: Any, v: Any) -> float:
    def step(body: Body, v_parent: Motion) -> tuple[Motion, float]:
        joint = body.jcalc(list(q), list(v))
        here = joint.X.apply(v_parent) + joint.v_J
        return here, body.inertia.kinetic_energy(here)

    return sum(model.outward(step, Motion(Vec3.zero(), Vec3.zero())))


def height(model: Model, q: Any) -> float:
    """Potential energy over g: sum of mass times height [kg m]."""
    X = placed(model, q)
    com = {body.name: [*body.inertia.com, 1.0] for body in model.bodies}
    return sum(body.inertia.mass * (X[body.name] @ com[body.name])[2] for body in model.bodies)


@pytest.mark.parametrize("name", list(EVERY))
def test_models_are_physical_repeatable_and_survive_a_round_trip(name: str) -> None:
    model = EVERY[name]()
    assert model == EVERY[name]()
    assert Model.from_json(model.to_json()) == model
    assert model.report == ()
    assert not any(physical_problems(body.inertia) for body in model.bodies)
    assert name in model.name or model.name.startswith(name)
    q, v = model.random_state(0)
    assert (q.shape, v.shape) == ((model.nq,), (model.nv,))
    assert len(model.summary()) > 100


def test_pendulum_follows_the_textbook() -> None:
    """T = m l^2 w^2 / 2, V = -m g l cos q."""
    model = models.pendulum(length=0.7, mass=1.3)
    assert kinetic_energy(model, [0.4], [2.0]) == pytest.approx(0.5 * 1.3 * 0.49 * 4.0)
    assert height(model, [0.4]) == pytest.approx(-1.3 * 0.7 * math.cos(0.4))
    np.testing.assert_allclose(
        placed(model, [0.4])["tip"][:3, 3], [-0.7 * math.sin(0.4), 0, -0.7 * math.cos(0.4)]
    )


def test_double_pendulum_follows_the_textbook() -> None:
    """With absolute angles a = q1, b = q1 + q2: T = (m1 + m2) l1^2 a'^2/2 + m2 l2^2 b'^2/2 + m2 l1 l2 a'b'
    cos(a-b).
    """
    (l1, l2), (m1, m2) = (0.7, 0.4), (1.3, 0.6)
    model = models.double_pendulum((l1, l2), (m1, m2))
    q, v = [0.3, -0.8], [1.1, 0.7]
    a, b, da, db = q[0], sum(q), v[0], sum(v)
    T = (
        0.5 * (m1 + m2) * (l1 * da) ** 2
        + 0.5 * m2 * (l2 * db) ** 2
        + m2 * l1 * l2 * da * db * math.cos(a - b)
    )
    assert kinetic_energy(model, q, v) == pytest.approx(T)
    assert height(model, q) == pytest.approx(-(m1 + m2) * l1 * math.cos(a) - m2 * l2 * math.cos(b))


def test_two_link_arm_reaches_where_plane_geometry_says() -> None:
    model = models.two_link_arm((0.5, 0.3), (2.0, 1.0))
    q = [0.4, 0.9]
    expected = [0.5 * math.cos(0.4) + 0.3 * math.cos(1.3), 0.0, 0.5 * math.sin(0.4) + 0.3 * math.sin(1.3)]
    np.testing.assert_allclose(placed(model, q)["tip"][:3, 3], expected, atol=1e-15)
    # The mass matrix of the textbook, from kinetic energies.
    c = math.cos(0.9)
    H11 = 2.0 * 0.25 / 3 + 1.0 * (0.25 + 0.09 / 3 + 0.15 * c)
    assert kinetic_energy(model, q, [1.0, 0.0]) == pytest.approx(0.5 * H11)
    assert kinetic_energy(model, q, [0.0, 1.0]) == pytest.approx(0.5 * 0.09 / 3)


def test_cart_pole_follows_the_textbook() -> None:
    """T = (M + m) x'^2 / 2 + m l x' w cos q + (m l^2 + I) w^2 / 2 with l half the pole's length."""
    M, m, L = 1.5, 0.2, 0.8
    model = models.cart_pole(M, m, L)
    q, v = [0.3, 0.5], [0.7, -1.2]
    half, inertia = L / 2, m * L**2 / 12
    T = (
        0.5 * (M + m) * v[0] ** 2
        + m * half * v[0] * v[1] * math.cos(q[1])
        + 0.5 * (m * half**2 + inertia) * v[1] ** 2
    )
    assert kinetic_energy(model, q, v) == pytest.approx(T)
    assert height(model, q) == pytest.approx(m * half * math.cos(q[1]))
    assert model.actuated == ("slider",)


def test_humanoid_is_a_person() -> None:
    model = models.humanoid()
    assert model.bodies[0].joint.kind == "free"
    assert model.nv - 6 >= 30
    assert (model.nq, model.nv) == (46, 43)
    assert model.total_mass == pytest.approx(75.0)
    X = placed(model, model.neutral())
    sole = X["left_sole"][2, 3]
    assert X["head_top"][2, 3] - sole == pytest.approx(1.75, abs=0.01)
    assert X["left_sole"][1, 3] > 0.0
    np.testing.assert_allclose(X["left_sole"][:3, 3] * [1, -1, 1], X["right_sole"][:3, 3], atol=1e-15)
    # The centre of mass of a standing man is at about 56 per cent of his height.
    com = height(model, model.neutral()) / 75.0 - sole
    assert 0.53 < com / 1.75 < 0.59
    for body in model.bodies:
        assert body.shapes
        radius = math.sqrt(
            max(np.linalg.eigvalsh(np.array(body.inertia.inertia_at_com.to_list()))) / body.inertia.mass
        )
        assert 0.01 < radius < 0.25
    limited = [joint for joint in model.joints if joint.kind != "free" and joint.kind != "spherical"]
    assert all(
        np.isfinite(joint.limits.lower).all() and np.isfinite(joint.limits.upper).all() for joint in limited
    )
    assert all(min(joint.damping) > 0.0 for joint in model.joints if joint.kind != "free")
    assert "root" not in model.actuated
    assert len(model.actuated) == len(model.bodies) - 1


def test_humanoid_joints_bend_the_way_people_do() -> None:
    model = models.humanoid()

    def moved(joint: str, angle: float, frame: str) -> np.ndarray:
        q = model.neutral()
        q[model.joint(joint).q_slice.start] = angle
        return (placed(model, q)[frame] - placed(model, model.neutral())[frame])[:3, 3]

    assert moved("left_elbow", 1.0, "left_palm")[0] > 0.1  # the hand comes forward
    assert moved("right_knee", 1.0, "right_sole")[0] < -0.1  # the foot goes back
    assert moved("left_hip", -1.0, "left_sole")[0] > 0.1  # flexion is negative: the leg goes forward
    assert moved("lumbar", 0.5, "head_top")[0] > 0.1  # bending forward
    assert moved("right_toe", 0.5, "right_toe_tip")[2] > 0.01  # the toes rise


def test_humanoids_scale() -> None:
    model = models.humanoid(height=1.60, mass=55.0)
    X = placed(model, model.neutral())
    assert X["head_top"][2, 3] - X["left_sole"][2, 3] == pytest.approx(1.60, abs=0.01)
    assert model.total_mass == pytest.approx(55.0)
    with pytest.raises(ArgumentError, match="positive height"):
        models.humanoid(height=-1.0)


def test_quadruped_stands_on_four_feet() -> None:
    model = models.quadruped()
    assert (model.nq, model.nv, len(model.actuated)) == (19, 18, 12)
    assert model.total_mass == pytest.approx(12.0)
    X = placed(model, model.neutral())
    feet = [X[frame.name][:3, 3] for frame in model.frames]
    np.testing.assert_allclose([foot[2] for foot in feet], -0.42, atol=1e-12)
    assert len({tuple(np.sign(foot[:2])) for foot in feet}) == 4


def test_arms_have_spherical_wrists_and_distinct_joints() -> None:
    for model, n in ((models.arm6(), 6), (models.arm7(), 7)):
        assert model.nv == n
        X = placed(model, model.random_state(1)[0])
        last = [body.name for body in model.bodies][-2:]
        np.testing.assert_allclose(X[last[0]][:3, 3], X[last[1]][:3, 3], atol=1e-12)
        assert "tool" in model.frames
        assert all(math.isfinite(joint.limits.effort[0]) for joint in model.joints)


LINKAGES = {
    models.four_bar: (3, 1, 1),
    models.slider_crank: (3, 1, 1),
    models.five_bar: (4, 1, 2),
    models.ladder: (9, 3, 9),
    models.stewart: (24, 6, 6),
}
"""Each with its number of tree variables, of loops, and of motors."""


@pytest.mark.parametrize("make", LINKAGES)
def test_linkages_are_closed_at_neutral(make: Any) -> None:
    model = make()
    X = placed(model, model.neutral())
    for loop in model.loops:
        ends = [
            X[model.bodies[body].name] @ np.array(placement.homogeneous())
            for body, placement in (
                (loop.predecessor, loop.placement_predecessor),
                (loop.successor, loop.placement_successor),
            )
        ]
        np.testing.assert_allclose(ends[0][:3, 3], ends[1][:3, 3], atol=1e-12)
    assert (model.nv, len(model.loops), len(model.actuated)) == LINKAGES[make]
    assert all(body.shapes for body in model.bodies)


def test_stewart_platform_stands_where_its_pose_says() -> None:
    """The explicit constraint leads every leg from its foot to the platform's anchor."""
    model = models.stewart(closure=True)
    rng = np.random.default_rng(1)
    p = np.array([1.0, *(0.1 * rng.normal(size=3))])
    y = [*(0.05 * rng.normal(size=3)), *(p / np.linalg.norm(p))]
    assert model.closure is not None
    X = placed(model, model.closure.configuration(model, y))
    for loop in model.loops:
        top = X["platform"] @ np.array(loop.placement_successor.homogeneous())
        rod = X[model.bodies[loop.predecessor].name]
        np.testing.assert_allclose(rod[:3, 3], top[:3, 3], atol=1e-12)
    assert models.stewart() != model
    with pytest.raises(ModelError, match="positive"):
        models.stewart(height=0.0)
    upright = models.stewart(base_radius=0.5, platform_radius=0.5, spread=math.pi / 6.0)
    np.testing.assert_allclose(placed(upright, upright.neutral())["rod0"][:3, 2], [0.0, 0.0, 1.0])


def test_linkages_that_cannot_be_are_refused() -> None:
    with pytest.raises(ModelError, match="cannot meet"):
        models.five_bar(ground=2.0)
    with pytest.raises(ModelError, match="one or more"):
        models.ladder(0)


def test_a_four_bar_that_cannot_close_is_refused() -> None:
    with pytest.raises(ModelError, match="cannot meet"):
        models.four_bar(coupler=0.1, rocker=0.1)


def test_random_trees_hold_the_joints_asked_for() -> None:
    kinds = [body.joint.kind for body in random_tree(2, bodies=len(MAKERS), joints=list(MAKERS)).bodies]
    assert sorted(kinds) == sorted(MAKERS)
    mixed = random_tree(3, bodies=12, joints=[Revolute, "prismatic", Spherical()])
    assert {body.joint.kind for body in mixed.bodies} == {"revolute", "prismatic", "spherical"}
    assert random_tree(1, bodies=8, branching=0.0).parents == tuple(range(-1, 7))
    assert random_tree(1) == random_tree(1)
    assert random_tree(1) != random_tree(2)
    spread = random_tree(4, bodies=200, branching=1.0)
    assert max(len(spread.children(i)) for i in range(-1, 200)) > 3
    limited = random_tree(5, bodies=20, limits=True, armature=0.3)
    q = limited.random_state(1)[0]
    for joint in limited.joints:
        own = q[joint.q_slice]
        assert all(low <= x <= high for low, x, high in zip(joint.limits.lower, own, joint.limits.upper))
        assert all(0.0 <= a <= 0.3 for a in joint.armature)


def test_random_trees_refuse_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="one body or more"):
        random_tree(1, bodies=0)
    with pytest.raises(ArgumentError, match="branching is 2"):
        random_tree(1, branching=2)
    with pytest.raises(ArgumentError, match="joints is empty"):
        random_tree(1, joints=[])
    with pytest.raises(
        UnknownNameError, match=r'unknown kind of random joint "revolut".*nearest: "revolute"'
    ):
        random_tree(1, joints=["revolut"])


def test_random_inertias_are_physical_and_general() -> None:
    for seed in range(200):
        inertia = random_inertia(seed)
        assert not physical_problems(inertia)
        assert all(x != 0.0 for x in inertia.leaves())
    for kind in MAKERS:
        assert random_joint(1, kind) == random_joint(1, kind)


@pytest.mark.parametrize(
    ("make", "argument", "wrong"),
    [
        (models.pendulum, "length", "a"),
        (models.pendulum, "mass", None),
        (models.double_pendulum, "lengths", 1.0),
        (models.double_pendulum, "masses", (1.0, 2.0, 3.0)),
        (models.two_link_arm, "lengths", (1.0,)),
        (models.two_link_arm, "masses", "ab"),
        (models.cart_pole, "cart_mass", "a"),
        (models.cart_pole, "pole_length", [1.0]),
        (models.four_bar, "crank", "a"),
        (models.four_bar, "ground", 10**400),
        (models.four_bar, "density", math.nan),
        (models.slider_crank, "rod", 1j),
        (models.five_bar, "distal", None),
        (models.ladder, "rungs", 2.5),
        (models.ladder, "width", "a"),
        (models.stewart, "height", "a"),
        (models.stewart, "leg_mass", math.inf),
        (models.humanoid, "mass", [75.0]),
        (models.gu, "n", "a"),
        (functools.partial(models.random_tree, 0), "bodies", "a"),
        (functools.partial(models.random_tree, 0), "branching", "a"),
        (functools.partial(models.random_tree, 0), "armature", "a"),
        (functools.partial(models.random_tree, 0), "joints", 3),
        (functools.partial(models.random_tree, 0), "joints", "revolute"),
        (models.random_tree, "seed", "a"),
        (models.random_tree, "seed", -1),
    ],
)
def test_arguments_of_a_wrong_type_are_named(make, argument, wrong) -> None:
    with pytest.raises(ArgumentError, match=rf"\b{argument}\b"):
        make(**{argument: wrong})


def test_numbers_of_numpy_are_numbers() -> None:
    assert models.four_bar(crank=np.float64(0.25), density=np.float32(2.0)).nv == 3
    assert models.two_link_arm(np.array([1.0, 2.0])).nv == 2
    assert len(models.ladder(np.int64(2)).loops) == 2
