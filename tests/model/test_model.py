"""The frozen model: names, views, equality, copies, threads."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from dalembert import models
from dalembert.errors import ArgumentError, DalembertError, ModelError, OutOfRangeError, UnknownNameError
from dalembert.model import Frame, Model, ModelBuilder
from dalembert.model.joints import Free, Revolute, Spherical, UserDefined
from dalembert.models import random_tree
from dalembert.models.random_trees import random_inertia
from dalembert.spatial import Transform, Vec3


def turning(q: Any) -> Transform:
    from dalembert.scalar import cos, sin
    from dalembert.spatial import Mat3

    c, s = cos(q[0]), sin(q[0])
    return Transform(Mat3(c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0), Vec3.zero())


def digest_elsewhere(model: Model, queue: Any) -> None:
    queue.put((model.digest, model.random_state(1)[0].tolist()))


def test_where_a_joint_stands_in_q_and_v() -> None:
    """RBDA-4.6-MODEL: offsets of q_i and v_i in the stacked vectors."""
    model = models.humanoid()
    q, v = np.arange(model.nq), np.arange(model.nv)
    root = model.joint("root")
    assert q[root.position].tolist() == [0, 1, 2]
    assert q[root.quaternion].tolist() == [3, 4, 5, 6]
    assert v[root.angular].tolist() == [0, 1, 2]
    assert v[root.linear].tolist() == [3, 4, 5]
    shoulder = model.joint("left_shoulder")
    assert shoulder.quaternion == shoulder.q_slice
    assert shoulder.angular == shoulder.v_slice
    elbow = model.joint("left_elbow")
    assert (elbow.nq, elbow.nv, elbow.kind) == (1, 1, "revolute")
    with pytest.raises(ModelError, match='joint "left_elbow" is of kind revolute and has no quaternion part'):
        elbow.quaternion
    with pytest.raises(ModelError, match="has no position part"):
        shoulder.position
    assert sum(joint.nq for joint in model.joints) == model.nq


def test_unknown_names_are_answered_with_valid_and_nearest_ones() -> None:
    model = models.double_pendulum()
    with pytest.raises(
        UnknownNameError, match='unknown body "uper"; valid: "upper", "lower"; nearest: "upper"'
    ):
        model.body("uper")
    with pytest.raises(UnknownNameError, match=r'unknown joint "elbo".*nearest: "elbow"'):
        model.joint("elbo")
    with pytest.raises(UnknownNameError, match=r'unknown frame "tipp"; valid: .*"world"; nearest: "tip"'):
        model.frame("tipp")
    with pytest.raises(UnknownNameError, match="a name is a string, but 3 of type int"):
        model.body(3)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="nearest"):
        model.bodies["uppr"]
    with pytest.raises(KeyError):
        model.joints["none"]
    with pytest.raises(OutOfRangeError, match="there is no body 2; they are numbered 0 to 1"):
        model.bodies[2]
    with pytest.raises(OutOfRangeError, match="there is no spring 0; the model has none"):
        model.springs[0]
    with pytest.raises(ArgumentError, match="there is no body 2; bodies are 0 to 1"):
        model.subtree(2)


def test_a_body_is_a_frame_and_so_is_the_world() -> None:
    model = models.double_pendulum()
    assert model.frame("lower") == Frame("lower", 1, Transform.identity())
    assert model.frame("world").body == -1
    assert model.frame("tip").body == 1
    assert list(model.frame("tip").placement.p) == [0.0, 0.0, -1.0]


def test_sequences_answer_to_numbers_names_and_slices() -> None:
    model = models.double_pendulum()
    assert model.joints["elbow"] is model.joints[1] is model.joint("elbow")
    assert [joint.name for joint in model.joints] == ["shoulder", "elbow"] == list(model.joints.names)
    assert "elbow" in model.joints
    assert "knee" not in model.joints
    assert [b.name for b in model.bodies[:1]] == ["upper"]
    assert [b.name for b in reversed(model.bodies)] == ["lower", "upper"]


@pytest.mark.parametrize("attribute", ["nq", "gravity", "bodies", "name", "anything"])
def test_attributes_cannot_be_set(attribute: str) -> None:
    model = models.pendulum()
    with pytest.raises((DalembertError, AttributeError), match="frozen"):
        setattr(model, attribute, 1)
    with pytest.raises((DalembertError, AttributeError)):
        delattr(model, attribute)
    with pytest.raises(AttributeError):
        model.bodies[0].name = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        model.bodies[0] = model.bodies[0]  # type: ignore[index]


def test_arrays_that_are_handed_out_do_not_reach_the_model() -> None:
    model = models.arm6()
    for name in ("forearm.com", "forearm.inertia", "elbow.placement", "elbow.axis", "gravity"):
        with pytest.raises(ValueError, match="read-only"):
            model.value(name)[0] = 1.0
    before = model.digest
    q, v = model.random_state(1)
    q[:], v[:] = 0.0, 0.0
    model.neutral()[:] = 7.0
    assert Model.from_json(model.to_json()).digest == before


def test_equality_is_by_content() -> None:
    assert models.arm6() == models.arm6()
    assert hash(models.arm6()) == hash(models.arm6())
    assert models.arm6() != models.arm7()
    assert models.arm6() != models.arm6().with_values({"forearm.mass": 7.500001})
    assert models.arm6() != models.arm6().with_values({"elbow.damping": 1.0})
    assert models.arm6() != "arm6"
    assert len({models.pendulum(), models.pendulum(), models.cart_pole()}) == 2


def test_the_digest_covers_names_limits_shapes_frames_loops_and_couplings() -> None:
    def build(change: str) -> str:
        builder = ModelBuilder(name="n2" if change == "name" else "n")
        builder.add_body("a", "world", Revolute(), inertia=random_inertia(1))
        builder.add_body(
            "b",
            "a",
            Revolute(),
            "other" if change == "joint_name" else "b",
            inertia=random_inertia(1),
            limits=(-1, 2) if change == "limits" else None,
            rest=0.5 if change == "rest" else None,
            shapes=[models.humanoid().body("head").shapes[0]] if change == "shapes" else [],
        )
        builder.add_body("c", "b", Revolute(), inertia=random_inertia(2))
        if change == "frame":
            builder.add_frame("f", "b")
        if change == "loop":
            builder.add_loop("l", "c", "world", Spherical())
        if change == "coupling":
            builder.add_coupling("k", {"a": 1.0, "c": 1.0})
        if change == "actuated":
            builder.set_actuated(["a"])
        return builder.build().digest

    changes = ["", "name", "joint_name", "limits", "rest", "shapes", "frame", "loop", "coupling", "actuated"]
    assert len({build(change) for change in changes}) == len(changes)


@pytest.mark.parametrize("make", [models.humanoid, models.four_bar, lambda: random_tree(3, bodies=20)])
def test_copies_and_pickles_are_equal(make: Any) -> None:
    model = make()
    assert copy.copy(model) is model
    assert copy.deepcopy(model) is model
    restored = pickle.loads(pickle.dumps(model))
    assert restored == model
    assert restored is not model
    assert restored.loops.names == model.loops.names
    q, v = model.random_state(1)
    assert [list(b.jcalc(q.tolist(), v.tolist()).v_J.angular) for b in restored.bodies] == [
        list(b.jcalc(q.tolist(), v.tolist()).v_J.angular) for b in model.bodies
    ]


def test_user_defined_joints_have_a_digest_and_a_pickle_but_no_text() -> None:
    def build(function: Any) -> Model:
        builder = ModelBuilder()
        builder.add_body("a", "world", UserDefined("turn", 1, 1, function), inertia=random_inertia(1))
        return builder.build()

    model = build(turning)
    assert model == build(turning)
    assert model != build(lambda q: turning(q))
    assert pickle.loads(pickle.dumps(model)) == model
    with pytest.raises(ModelError, match=r'joint "a".*turning.* cannot be saved as data'):
        model.to_json()


def test_a_forked_process_sees_the_same_model() -> None:
    model = models.humanoid()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=digest_elsewhere, args=(model, queue))
    process.start()
    digest, q = queue.get(timeout=60)
    process.join()
    assert digest == model.digest
    assert q == model.random_state(1)[0].tolist()


def test_threads_share_a_model() -> None:
    model = random_tree(4, bodies=40)
    alone = random_tree(4, bodies=40)

    def work(seed: int) -> tuple[str, list[float]]:
        q, _ = model.random_state(seed)
        owns = model.outward(lambda body, X: (X @ body.link_transform(q.tolist()),) * 2, Transform.identity())
        return model.digest, [x for X in owns for x in X.p]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, [0, 1] * 16))
    assert len({digest for digest, _ in results}) == 1
    assert results[0][0] == alone.digest
    assert all(result == results[i % 2] for i, result in enumerate(results))


def test_total_mass_and_time_dependence() -> None:
    from dalembert.model.joints import Fixed, Prismatic, TimeDependent

    assert models.humanoid(mass=80.0).total_mass == pytest.approx(80.0, rel=1e-12)
    builder = ModelBuilder()
    motion = lambda t: [0.1 * t]
    builder.add_body("a", "world", TimeDependent(Fixed(), Prismatic((1, 0, 0)), motion))
    builder.add_body("b", "a", Free(), inertia=random_inertia(1))
    model = builder.build()
    assert model.time_dependent
    assert not models.humanoid().time_dependent
    assert model.bodies[0].jcalc([0.0] * 7, [0.0] * 6, 2.0).v_J.linear.x == pytest.approx(0.1)
    with pytest.raises(ModelError, match='joint "a" depends on time and cannot be locked'):
        model.lock(["a"])
