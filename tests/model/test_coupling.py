"""Couplings: q, v and tau hold independent coordinates only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dalembert.errors import ModelError
from dalembert.model import Limits, Model, ModelBuilder, configuration
from dalembert.model.body import Body
from dalembert.model.joints import Free, Prismatic, Revolute
from dalembert.models.random_trees import random_inertia, random_placement
from dalembert.spatial import Motion, Vec3


def gripper(**options: Any) -> Model:
    """A floating hand with a motor that drives two fingers, one of them through the other.

    motor - 50 finger + 0.3 = 0,   finger + thumb = 0,   so that thumb = -(motor + 0.3) / 50.
    """
    rng = np.random.default_rng(0)
    builder = ModelBuilder()

    def add(name: str, parent: str, joint: Any, **data: Any) -> None:
        builder.add_body(
            name, parent, joint, placement=random_placement(rng), inertia=random_inertia(rng), **data
        )

    add("palm", "world", Free())
    add("thumb", "palm", Revolute((1, 0, 0)), limits=options.get("thumb"))
    add("motor", "palm", Revolute((0, 0, 1)), limits=options.get("motor"))
    add("finger", "palm", Prismatic((0, 1, 0)), limits=options.get("finger"))
    add("tip", "finger", Revolute((0, 1, 0)))
    builder.add_coupling("mirror", {"finger": 1.0, "thumb": 1.0})
    builder.add_coupling("gear", {"motor": 1.0, "finger": -50.0}, offset=0.3)
    return builder.build()


def test_counts_hold_independent_coordinates_only() -> None:
    model, full = gripper(), gripper().uncoupled()
    assert (model.nq, model.nv) == (9, 8)
    assert (full.nq, full.nv) == (11, 10)
    assert not full.couplings
    assert full.uncoupled() is full
    assert model.joint("finger").nq == model.joint("finger").nv == 0
    assert model.joint("motor").q_slice == slice(7, 8)
    assert model.joint("tip").v_slice == slice(7, 8)
    assert model.couplings["gear"].dependent == "finger"


def test_couplings_hold_at_every_expanded_state() -> None:
    model, full = gripper(), gripper().uncoupled()
    q, v = model.random_state(1)
    q_full, v_full = model.expand_q(q.tolist()), model.expand_v(v.tolist())
    assert (len(q_full), len(v_full)) == (full.nq, full.nv)
    at = {joint.name: joint for joint in full.joints}
    value = {name: q_full[at[name].q_slice.start] for name in ("motor", "finger", "thumb", "tip")}
    rate = {name: v_full[at[name].v_slice.start] for name in ("motor", "finger", "thumb", "tip")}
    assert value["motor"] - 50.0 * value["finger"] + 0.3 == pytest.approx(0.0, abs=1e-14)
    assert value["finger"] + value["thumb"] == pytest.approx(0.0, abs=1e-16)
    assert rate["motor"] - 50.0 * rate["finger"] == pytest.approx(0.0, abs=1e-14)
    assert rate["finger"] + rate["thumb"] == pytest.approx(0.0, abs=1e-16)
    assert value["tip"] == q[model.joint("tip").q_slice][0]


def test_expansion_is_the_matrix_of_the_expanded_state() -> None:
    """q_full = G q + g and v_full = G v, as the dynamics of couplings use them."""
    model = gripper()
    G, g = (np.array(x) for x in model.expansion())
    assert G.shape == (10, 8)
    q, v = model.random_state(2)
    np.testing.assert_allclose(G @ v, model.expand_v(v.tolist()), atol=1e-15)
    # Behind the free joint, whose q has one number more than its v, q maps as v does.
    np.testing.assert_allclose(G[6:, 6:] @ q[7:] + g[6:], model.expand_q(q.tolist())[7:], atol=1e-15)
    assert np.linalg.matrix_rank(G) == 8


def body_velocities(model: Model, q: list[float], v: list[float]) -> list[list[float]]:
    def step(body: Body, v_parent: Motion) -> tuple[Motion, list[float]]:
        joint = body.jcalc(q, v)
        here = joint.X.apply(v_parent) + joint.v_J
        return here, here.leaves()

    return list(model.outward(step, Motion(Vec3.zero(), Vec3.zero())))


def test_passes_over_the_coupled_model_equal_those_over_the_full_one() -> None:
    """A step sees its joint's own q and v; that the joint is dependent does not concern it."""
    model, full = gripper(), gripper().uncoupled()
    q, v = (x.tolist() for x in model.random_state(3))
    coupled = body_velocities(model, q, v)
    np.testing.assert_allclose(
        coupled, body_velocities(full, model.expand_q(q), model.expand_v(v)), atol=1e-13
    )


def test_collected_forces_do_the_same_work() -> None:
    """tau . v = tau_full . v_full: collect is G^T."""
    model = gripper()
    rng = np.random.default_rng(4)
    forces = [rng.standard_normal(body.nv).tolist() for body in model.bodies]
    _, v = model.random_state(4)
    power = np.dot(model.collect(forces), v)
    assert power == pytest.approx(np.dot(np.concatenate(forces), model.expand_v(v.tolist())), rel=1e-13)
    G, _ = model.expansion()
    np.testing.assert_allclose(model.collect(forces), np.array(G).T @ np.concatenate(forces), atol=1e-14)


def test_a_coupling_of_three_joints_and_a_chosen_dependent() -> None:
    builder = ModelBuilder()
    for i, name in enumerate("abc"):
        builder.add_body(name, "abc"[i - 1] if i else "world", Revolute(), inertia=random_inertia(i))
    builder.add_coupling("differential", {"a": 2.0, "b": 1.0, "c": -4.0}, offset=1.0, dependent="b")
    model = builder.build()
    assert model.expand_q([0.5, 0.25]) == [0.5, -2.0 * 0.5 + 4.0 * 0.25 - 1.0, 0.25]
    assert model.expansion() == ([[1.0, 0.0], [-2.0, 4.0], [0.0, 1.0]], [0.0, -1.0, 0.0])


def test_random_states_respect_the_limits_of_dependent_joints() -> None:
    model = gripper(finger=Limits(0.0, 0.02), motor=Limits(-10.0, 10.0))
    finger = model.body("finger")
    positions = [finger.own_q(model.random_state(seed)[0].tolist())[0] for seed in range(200)]
    assert 0.0 <= min(positions) < 0.002
    assert 0.018 < max(positions) <= 0.02
    mirrored = gripper(finger=Limits(-1.0, 0.02), thumb=Limits(-0.01, 0.0))
    positions = [mirrored.body("thumb").own_q(mirrored.random_state(s)[0].tolist())[0] for s in range(200)]
    assert -0.01 <= min(positions) < -0.009
    assert -0.001 < max(positions) <= 0.0


def test_the_configuration_space_is_that_of_the_independent_joints() -> None:
    model = gripper()
    q, v = (x.tolist() for x in model.random_state(5))
    assert len(configuration.neutral(model)) == model.nq
    q2 = configuration.integrate(model, q, v)
    np.testing.assert_allclose(configuration.difference(model, q, q2), v, atol=1e-12)
    assert len(configuration.position_rate(model, q, v)) == model.nq


def test_locking_moves_a_joint_into_the_offset() -> None:
    builder = ModelBuilder()
    for i, name in enumerate("abc"):
        builder.add_body(name, "abc"[i - 1] if i else "world", Revolute(), inertia=random_inertia(i))
    builder.add_coupling("differential", {"a": 2.0, "b": 1.0, "c": -4.0}, offset=1.0)
    model = builder.build()
    q = [0.3, 0.7]
    c = (1.0 + 2.0 * 0.3 + 0.7) / 4.0
    locked = model.lock(["a"], q)
    assert locked.nq == 1
    assert locked.couplings["differential"].offset == pytest.approx(1.0 + 2.0 * 0.3)
    assert locked.expand_q([0.7]) == pytest.approx([0.7, c])
    dependent = model.lock(["c"], q)
    assert dependent.expand_q([0.3]) == pytest.approx([0.3, 0.7])
    assert model.lock(["a", "b"], q).nq == 0


def test_locking_the_motor_locks_what_it_drives() -> None:
    model = gripper()
    q = model.random_state(6)[0]
    locked = model.lock(["motor"], q)
    assert [joint.name for joint in locked.joints if joint.nv] == ["palm", "tip"]
    assert not locked.couplings
    kept = np.delete(q, model.joint("motor").q_slice)
    np.testing.assert_allclose(
        [X.p.to_list() for X in placements(locked, kept)],
        [X.p.to_list() for X in placements(model, q)],
        atol=1e-13,
    )


def placements(model: Model, q: Any) -> list[Any]:
    from dalembert.spatial import Transform

    return list(
        model.outward(lambda body, X: (X @ body.link_transform(q.tolist()),) * 2, Transform.identity())
    )


def test_prefixes_rename_couplings_too() -> None:
    both = gripper().attach(gripper(), prefix="second ")
    assert both.nq == 18
    assert both.couplings["second gear"].coefficients == (("second motor", 1.0), ("second finger", -50.0))


def test_a_joint_may_lead_several_followers() -> None:
    builder = ModelBuilder()
    for name in ("lead", "one", "two"):
        builder.add_body(name, "world", Revolute(), inertia=random_inertia(1))
    builder.add_coupling("k1", {"lead": 1.0, "one": -1.0})
    builder.add_coupling("k2", {"lead": 1.0, "two": 2.0})
    model = builder.build()
    assert model.expand_v([4.0]) == [4.0, 4.0, -2.0]
    assert model.collect([[1.0], [10.0], [100.0]]) == [1.0 + 10.0 - 50.0]


def test_views_of_dependent_joints_have_no_parts() -> None:
    with pytest.raises(ModelError):
        gripper().joint("finger").angular
