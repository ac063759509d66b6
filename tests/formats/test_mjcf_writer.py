"""MJCF written and read back: the dynamics are the same, and what the text does not hold is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert import algorithms
from dalembert.formats.mjcf import load_mjcf
from dalembert.formats.mjcf.mjcf_writer import mjcf_text
from dalembert.model.joints import (
    Composite,
    Cylindrical,
    Fixed,
    Free,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
)
from dalembert.model.shapes import Box, Capsule, Mesh, Plane, Sphere

pytest.importorskip("mujoco")

KINDS = (
    "revolute",
    "prismatic",
    "cylindrical",
    "universal",
    "spherical_euler",
    "translation",
    "spherical",
    "composite",
    "fixed",
)

BUNDLED = (
    "pendulum",
    "double_pendulum",
    "two_link_arm",
    "cart_pole",
    "arm6",
    "arm7",
    "quadruped",
    "humanoid",
)

ROD = da.RigidInertia(1.5, (0.1, 0.2, -0.3), [[0.3, 0.01, 0.02], [0.01, 0.25, -0.03], [0.02, -0.03, 0.2]])

ASIDE = da.Transform.from_rotation_translation(
    np.array([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]]), (0.1, -0.2, 0.3)
)


def read_back(model: da.Model, folder: Path) -> tuple[da.Model, list[str]]:
    text, losses = mjcf_text(model, folder=folder)
    file = folder / "written.xml"
    file.write_text(text, encoding="utf-8")
    return load_mjcf(file), losses


def places(model: da.Model, again: da.Model) -> tuple[list[int], list[int]]:
    """Where the coordinates of the model read back stand in q and v of the model written."""
    q: list[int] = []
    v: list[int] = []
    for name in dict.fromkeys(joint.name.split(":")[0] for joint in again.joints if joint.nv):
        joint = model.joint(name)
        q += range(joint.q_slice.start, joint.q_slice.stop)
        v += range(joint.v_slice.start, joint.v_slice.stop)
    return q, v


def assert_same_dynamics(model: da.Model, again: da.Model) -> None:
    """M, bias, acceleration and passive forces at random moving states, to 1e-12."""
    model, again = model.tree(), again.tree()
    at_q, at_v = places(model, again)
    rng = np.random.default_rng(model.nv)
    for seed in range(3):
        q, v = model.random_state(seed)
        tau = rng.uniform(-1.0, 1.0, model.nv)
        state = q.tolist(), v.tolist()
        other = q[at_q].tolist(), v[at_v].tolist()
        pairs: list[tuple[Any, Any]] = [
            (
                np.array(algorithms.mass_matrix(model, state[0]))[np.ix_(at_v, at_v)],
                algorithms.mass_matrix(again, other[0]),
            ),
            (
                np.array(algorithms.inverse_dynamics(model, *state, [0.0] * model.nv))[at_v],
                algorithms.inverse_dynamics(again, *other, [0.0] * model.nv),
            ),
            (
                np.array(algorithms.forward_dynamics(model, *state, tau.tolist()))[at_v],
                algorithms.forward_dynamics(again, *other, tau[at_v].tolist()),
            ),
            (
                np.array(algorithms.passive_forces(model, *state))[at_v],
                algorithms.passive_forces(again, *other),
            ),
        ]
        for ours, theirs in pairs:
            scale = max(float(np.abs(ours).max()), 1e-3)
            np.testing.assert_allclose(theirs, ours, atol=1e-12 * scale, rtol=0.0)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_models_come_back(name: str, tmp_path: Path) -> None:
    model = getattr(da.models, name)()
    again, _ = read_back(model, tmp_path)
    assert_same_dynamics(model, again)


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_come_back(seed: int, tmp_path: Path) -> None:
    model = da.models.random_tree(seed, bodies=9, joints=KINDS)
    again, losses = read_back(model, tmp_path)
    assert_same_dynamics(model, again)
    moves = [joint.name for joint in model.joints if joint.nv]
    order = list(dict.fromkeys(joint.name.split(":")[0] for joint in again.joints if joint.nv))
    assert (order == moves) == (not any("another order" in loss for loss in losses))


def test_joint_data_come_back(tmp_path: Path) -> None:
    builder = da.ModelBuilder(gravity=(1.0, 2.0, 3.0), name="a <name> & more")
    builder.add_body(
        'first "one"',
        "world",
        Revolute((0.6, 0.0, 0.8)),
        "hinge",
        placement=ASIDE,
        inertia=ROD,
        limits=da.Limits(-1.0, float("inf"), float("inf"), 30.0),
        armature=0.3,
        damping=0.4,
        friction=0.5,
        stiffness=6.0,
        rest=0.7,
    )
    builder.add_body(
        "second", 'first "one"', Spherical(), "ball", placement=ASIDE, inertia=ROD, stiffness=2.0
    )
    builder.add_frame("tip", "second", ASIDE)
    model = builder.build()
    again, losses = read_back(model, tmp_path)
    assert losses == []
    assert again.name == model.name
    assert_same_dynamics(model, again)
    body = again.body('first "one"')
    assert (body.armature, body.damping, body.friction, body.stiffness) == ((0.3,), (0.4,), (0.5,), (6.0,))
    assert body.limits == model.body('first "one"').limits
    np.testing.assert_allclose(list(again.frame("tip").placement.R), list(ASIDE.R), atol=1e-15)


def test_massless_bodies_are_stacked(tmp_path: Path) -> None:
    """Joint after joint without mass between, turned and shifted against each other."""
    builder = da.ModelBuilder()
    parent = "world"
    for k, joint in enumerate((Prismatic((0.6, 0.8, 0.0)), Revolute((0, 1, 0)), Cylindrical())):
        builder.add_body(f"empty{k}", parent, joint, placement=ASIDE)
        parent = f"empty{k}"
    builder.add_body("full", parent, Revolute((1, 0, 0)), placement=ASIDE, inertia=ROD)
    builder.add_frame("lost", "empty1")
    model = builder.build()
    again, losses = read_back(model, tmp_path)
    assert_same_dynamics(model, again)
    assert [loss for loss in losses if 'frame "lost"' in loss]


@pytest.mark.parametrize("at", ["world", "under"])
def test_free_joints_come_back(at: str, tmp_path: Path) -> None:
    """A free joint that MJCF does not have is three slides and a ball: equal at equal motions."""
    builder = da.ModelBuilder()
    builder.add_body("base", "world", Revolute(), inertia=ROD)
    if at == "world":
        builder.add_body("body", "world", Free(), "root", inertia=ROD)
        model = builder.build()
        again, losses = read_back(model, tmp_path)
        assert losses == []
        assert_same_dynamics(model, again)
        return
    builder.add_body("body", "base", Free(), "root", placement=ASIDE, inertia=ROD)
    model = builder.build()
    again, losses = read_back(model, tmp_path)
    assert "three slides and a ball" in losses[0]
    q, v = model.random_state(0)
    R = np.array(model.body("body").joint.transform(q[1:].tolist()).R.to_list())
    v_again = np.concatenate([v[:1], R @ v[4:], v[1:4]])
    ours = algorithms.kinetic_energy(model, q.tolist(), v.tolist())
    theirs = algorithms.kinetic_energy(again, q.tolist(), v_again.tolist())
    assert theirs == pytest.approx(ours, rel=1e-12)


def test_planar_joints_come_back_as_slides(tmp_path: Path) -> None:
    builder = da.ModelBuilder()
    builder.add_body("body", "world", Planar(), "plane", placement=ASIDE, inertia=ROD, damping=0.5)
    model = builder.build()
    again, losses = read_back(model, tmp_path)
    assert "two slides and a hinge" in losses[0]
    q, v = model.random_state(0)
    c, s = np.cos(q[2]), np.sin(q[2])
    v_again = [c * v[1] - s * v[2], s * v[1] + c * v[2], v[0]]
    ours = algorithms.kinetic_energy(model, q.tolist(), v.tolist())
    assert algorithms.kinetic_energy(again, q.tolist(), v_again) == pytest.approx(ours, rel=1e-12)


def test_loops_and_couplings_come_back(tmp_path: Path) -> None:
    builder = da.ModelBuilder()
    for name in "abcd":
        builder.add_body(name, "world", Revolute((0.0, 1.0, 0.0)), inertia=ROD, placement=ASIDE)
    builder.add_loop("ball", "a", "world", Spherical(), ASIDE, ASIDE)
    builder.add_loop("weld", "b", "c", Fixed(), ASIDE, ASIDE)
    builder.add_coupling("pair", {"a": 2.0, "b": -3.0}, offset=0.4)
    builder.add_coupling("three", {"a": 1.0, "c": 2.0, "d": 4.0}, offset=-0.3)
    model = builder.build()
    again, losses = read_back(model, tmp_path)
    assert losses == []
    assert [(loop.name, loop.joint.kind) for loop in again.loops] == [
        ("ball", "spherical"),
        ("weld", "fixed"),
    ]
    for ours, theirs in zip(model.loops, again.loops, strict=True):
        np.testing.assert_allclose(
            list(theirs.placement_successor.p), list(ours.placement_successor.p), atol=1e-15
        )
        np.testing.assert_allclose(list(theirs.placement_predecessor.R), list(ASIDE.R), atol=1e-15)
    full = dict(zip("abcd", again.expand_q([0.7, -0.2]), strict=True))
    assert 2.0 * full["a"] - 3.0 * full["b"] + 0.4 == pytest.approx(0.0, abs=1e-14)
    assert full["a"] + 2.0 * full["c"] + 4.0 * full["d"] - 0.3 == pytest.approx(0.0, abs=1e-14)


def test_hinges_close_loops_by_two_points(tmp_path: Path) -> None:
    again, losses = read_back(da.models.four_bar(), tmp_path)
    assert any("two connected points" in loss for loss in losses)
    assert [loop.joint.kind for loop in again.loops] == ["spherical", "spherical"]


def test_shapes_come_back(tmp_path: Path) -> None:
    (tmp_path / "m.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    )
    builder = da.ModelBuilder()
    shapes = (
        Sphere(0.2, name="s", placement=ASIDE, friction=(0.3, 0.2, 0.1), collision=False),
        Capsule(0.1, 0.4, visual=False),
        Box((0.1, 0.2, 0.3), rgba=(1.0, 0.0, 0.5, 1.0)),
        Mesh(str(tmp_path / "m.obj"), (1.0, 2.0, 3.0), placement=ASIDE),
        Mesh("package://else/m.obj"),
        Plane(),
    )
    builder.add_body("b", "world", Revolute(), inertia=ROD, shapes=shapes)
    builder.add_body("ground", "world", Fixed(), shapes=(Plane(name="floor"),))
    again, losses = read_back(builder.build(), tmp_path)
    assert len(losses) == 2
    assert "package://else" in losses[0]
    assert "planes can only stand still" in losses[1]
    back = again.body("b").shapes
    for ours, theirs in zip(shapes[:4], back, strict=True):
        assert type(ours) is type(theirs)
        assert (ours.visual, ours.collision, ours.friction) == (
            theirs.visual,
            theirs.collision,
            theirs.friction,
        )
        np.testing.assert_allclose(list(theirs.placement.p), list(ours.placement.p), atol=1e-6)
        np.testing.assert_allclose(list(theirs.placement.R), list(ours.placement.R), atol=1e-6)
    assert isinstance(back[1], Capsule)
    assert (back[1].radius, back[1].length) == (0.1, 0.4)
    assert again.world_shapes[0].name == "floor"


def test_actuated_joints_come_back(tmp_path: Path) -> None:
    builder = da.ModelBuilder()
    builder.add_body("a", "world", Free(), inertia=ROD)
    builder.add_body("b", "a", Revolute(), inertia=ROD)
    builder.set_actuated(["b"])
    assert read_back(builder.build(), tmp_path)[0].actuated == ("b",)


def test_losses_are_said(tmp_path: Path) -> None:
    builder = da.ModelBuilder()
    limits = da.Limits(0.5, 0.5, 3.0, float("inf"))
    builder.add_body("a", "world", Revolute(), inertia=ROD, limits=limits)
    builder.add_body("b", "a", Prismatic(), inertia=da.RigidInertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    _, losses = read_back(builder.build(), tmp_path)
    text = "\n".join(losses)
    for words in ("limits of velocity", "a range of no width", "moments of inertia are raised"):
        assert words in text


def test_limits_and_springs_of_composites_keep_their_places(tmp_path: Path) -> None:
    builder = da.ModelBuilder()
    joint = Composite((Prismatic(), Cylindrical()))
    options: dict[str, Any] = {"limits": ((-1.0, -2.0, -3.0), (4.0, 5.0, 6.0)), "rest": (0.1, 0.2, 0.3)}
    builder.add_body("a", "world", joint, "j", inertia=ROD, stiffness=(7.0, 8.0, 9.0), **options)
    model = builder.build()
    again, _ = read_back(model, tmp_path)
    bodies = [body for body in again.bodies if body.nv]
    assert [body.rest for body in bodies] == [(0.1,), (0.2,), (0.3,)]
    assert [body.limits.lower for body in bodies] == [(-1.0,), (-2.0,), (-3.0,)]
    assert [body.stiffness for body in bodies] == [(7.0,), (8.0,), (9.0,)]


@pytest.mark.parametrize(
    ("ball", "ground"), [(None, 0.3), (0.2, None), (None, None), (0.2, 0.3), (None, 0.0)]
)
def test_friction_of_one_shape_alone_holds_in_mujoco_too(
    ball: float | None, ground: float | None, tmp_path: Path
) -> None:
    mujoco = pytest.importorskip("mujoco")
    builder = da.ModelBuilder()
    builder.add_body("ball", "world", Free(), inertia=ROD)
    builder.add_shape("ball", Sphere(0.1, friction=None if ball is None else (ball, 0.0, 0.0)))
    model = builder.build().with_ground(friction=ground)
    da.save(model, tmp_path / "m.xml")
    m = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    (touching,) = data.contact
    theirs = float(touching.friction[0]) if touching.dim > 1 else 0.0
    (ours,) = da.contact.pairs_of(model)
    assert theirs == pytest.approx(ours.friction, abs=2e-5)  # MuJoCo's least friction is 1e-5
    (back,) = da.contact.pairs_of(da.load(tmp_path / "m.xml"))
    assert back.friction == ours.friction
