"""Models made from models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dalembert import models
from dalembert.errors import ArgumentError, ModelError, ShapeError, UnknownNameError
from dalembert.model import Model, ModelBuilder
from dalembert.model.body import Body
from dalembert.model.joints import Fixed, Free, Revolute, Spherical
from dalembert.model.shapes import Sphere
from dalembert.models import random_tree
from dalembert.models.random_trees import random_inertia, random_placement
from dalembert.spatial import Motion, Transform, Vec3


def frames_of(model: Model, q: Any) -> dict[str, np.ndarray]:
    """Every body and frame in the world."""
    owns = list(model.outward(lambda body, X: (X @ body.link_transform(list(q)),) * 2, Transform.identity()))
    placed = {body.name: X for body, X in zip(model.bodies, owns)}
    for frame in model.frames:
        base = Transform.identity() if frame.body < 0 else owns[frame.body]
        placed[frame.name] = base @ frame.placement
    return {name: np.array(X.homogeneous()) for name, X in placed.items()}


def energy(model: Model, q: Any, v: Any) -> float:
    """Kinetic energy, by an outward pass."""

    def step(body: Body, v_parent: Motion) -> tuple[Motion, float]:
        joint = body.jcalc(list(q), list(v))
        here = joint.X.apply(v_parent) + joint.v_J
        return here, body.inertia.kinetic_energy(here)

    return sum(model.outward(step, Motion(Vec3.zero(), Vec3.zero())))


def without(model: Model, names: list[str], q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kept = [joint for joint in model.joints if joint.name not in names]
    pick = lambda x, part: np.concatenate([np.zeros(0), *(x[getattr(joint, part)] for joint in kept)])
    return pick(q, "q_slice"), pick(v, "v_slice")


@pytest.mark.parametrize("seed", range(3))
def test_locked_joints_stay_where_q_puts_them(seed: int) -> None:
    """Same poses and kinetic energy as the whole model with the locked joints at rest."""
    model = random_tree(seed, bodies=12)
    names = [f"joint{i}" for i in (1, 4, 7, 8)]
    q, v = model.random_state(seed)
    for name in names:
        v[model.joint(name).v_slice] = 0.0
    locked = model.lock(names, q)
    q_kept, v_kept = without(model, names, q, v)
    assert locked.nq == len(q_kept)
    before, after = frames_of(model, q), frames_of(locked, q_kept)
    for name, X in before.items():
        np.testing.assert_allclose(after[name], X, atol=1e-12)
    assert energy(locked, q_kept, v_kept) == pytest.approx(energy(model, q, v), rel=1e-12)
    assert all(isinstance(locked.joint(name).joint, Fixed) for name in names)


def test_locking_normalises_quaternions_and_defaults_to_neutral() -> None:
    model = models.quadruped()
    q = model.random_state(1)[0]
    q[model.joint("root").quaternion] *= 1.5
    model.lock(["root"], q)
    assert model.lock(["root"]).body("trunk").placement == Transform.identity()
    assert "root" not in model.lock(["root"]).actuated


@pytest.mark.parametrize("seed", range(3))
def test_lumping_fixed_bodies_changes_no_motion(seed: int) -> None:
    model = random_tree(seed, bodies=20, joints=["revolute", "fixed", "fixed", "free", "universal"])
    lumped = model.lumped()
    moving = [body for body in model.bodies if body.nv]
    assert [body.name for body in lumped.bodies] == [body.name for body in moving]
    assert (lumped.nq, lumped.nv) == (model.nq, model.nv)
    q, v = model.random_state(seed)
    assert energy(lumped, q, v) == pytest.approx(energy(model, q, v), rel=1e-12)
    before, after = frames_of(model, q), frames_of(lumped, q)
    for name, X in before.items():
        np.testing.assert_allclose(after[name], X, atol=1e-12)


def test_lumping_carries_shapes_frames_and_loops() -> None:
    builder = ModelBuilder()
    builder.add_body("a", "world", Revolute(), inertia=random_inertia(1), shapes=[Sphere(0.1)])
    X, Y = random_placement(1), random_placement(2)
    builder.add_body(
        "b", "a", Fixed(), placement=X, inertia=random_inertia(2), shapes=[Sphere(0.2, placement=Y)]
    )
    builder.add_body("c", "b", Revolute(), placement=Y, inertia=random_inertia(3))
    builder.add_frame("mark", "b", Y)
    builder.add_loop("loop", "b", "world", Spherical(), Y, None)
    lumped = builder.build().lumped()
    assert lumped.body("a").shapes[1] == Sphere(0.2, placement=X @ Y, link="b")
    assert lumped.frame("mark").placement == X @ Y
    assert lumped.frame("b").placement == X
    assert lumped.loops["loop"].predecessor == 0
    np.testing.assert_allclose(
        lumped.loops["loop"].placement_predecessor.leaves(), (X @ Y).leaves(), atol=1e-15
    )
    assert lumped.body("c").placement == X @ Y


def test_attached_systems_stand_on_the_frame() -> None:
    arm, hand = models.arm6(), random_tree(5, bodies=6)
    Y = random_placement(3)
    both = arm.attach(hand, "tool", prefix="hand/", placement=Y)
    assert (both.nq, both.nv) == (arm.nq + hand.nq, arm.nv + hand.nv)
    assert both.gravity == arm.gravity
    q_arm, q_hand = arm.random_state(1)[0], hand.random_state(2)[0]
    placed = frames_of(both, np.concatenate([q_arm, q_hand]))
    tool = frames_of(arm, q_arm)["tool"]
    for name, X in frames_of(hand, q_hand).items():
        np.testing.assert_allclose(placed["hand/" + name], tool @ np.array(Y.homogeneous()) @ X, atol=1e-12)
    assert both.joint("hand/joint0").body.name == "hand/body0"
    assert both.actuated == (*arm.actuated, *("hand/" + name for name in hand.actuated))


def test_attaching_keeps_loops_on_both_worlds() -> None:
    linkage = models.four_bar()
    both = models.arm6().attach(linkage, "tool", prefix="second ")
    loop = both.loops["second rocker_pin"]
    assert both.bodies[loop.predecessor].name == "second coupler"
    assert both.body("second crank").parent == both.body("flange").index
    builder = ModelBuilder()
    builder.add_body("a", "world", Free())
    builder.add_loop("tether", "a", "world", Spherical(), None, random_placement(1))
    builder.add_frame("mark", "world", random_placement(2))
    tethered = models.pendulum().attach(builder.build(), "tip")
    assert tethered.loops["tether"].successor == tethered.body("bob").index
    tip = tethered.frame("tip").placement.as_transform()
    assert tethered.frame("mark").placement == tip @ random_placement(2)
    assert tethered.loops["tether"].placement_successor == tip @ random_placement(1)


def test_the_tree_of_a_linkage_has_no_loops() -> None:
    model = models.slider_crank()
    assert len(model.loops) == 1
    assert len(model.tree().loops) == 0
    assert model.tree().bodies.names == model.bodies.names
    assert model.tree() != model
    assert models.arm6().tree() == models.arm6()


def test_surgery_leaves_the_original_alone() -> None:
    model = models.humanoid()
    before = model.to_json()
    model.lock(["lumbar"])
    model.attach(models.pendulum(), "head")
    model.with_values({"head.mass": 9.0})
    model.lumped()
    assert model.to_json() == before


def test_surgery_refuses_bad_arguments() -> None:
    model = models.arm6()
    with pytest.raises(UnknownNameError, match=r'unknown joint "elbw".*nearest: "elbow"'):
        model.lock(["elbw"])
    with pytest.raises(ArgumentError, match=r'write \["elbow"\]'):
        model.lock("elbow")
    with pytest.raises(ShapeError, match=r"q has shape \(3,\), expected \(6,\)"):
        model.lock(["elbow"], [0.0, 0.0, 0.0])
    with pytest.raises(ArgumentError, match="not finite"):
        model.lock(["elbow"], [np.nan] * 6)
    with pytest.raises(UnknownNameError, match=r'unknown frame "tol".*nearest: "tool"'):
        model.attach(models.pendulum(), "tol")
    with pytest.raises(ModelError, match='body "turret" is added twice'):
        model.attach(models.arm6())
    with pytest.raises(ArgumentError, match="attach takes a Model, str was given"):
        model.attach("arm", "tool")  # type: ignore[arg-type]
