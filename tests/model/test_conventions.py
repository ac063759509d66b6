"""States of other engines: round trips, and the engines themselves where they are installed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from dalembert.errors import ArgumentError, DtypeError, ModelError, ShapeError, StateError, UnknownNameError
from dalembert.model import Model, ModelBuilder
from dalembert.model.body import Body
from dalembert.model.conventions import ENGINES, convert_state
from dalembert.model.joints import Free, Planar, Revolute, SphereInCylinder, Spherical
from dalembert.models import humanoid
from dalembert.models.random_trees import random_inertia, random_placement
from dalembert.spatial import Motion, Transform, Vec3


def mixed() -> Model:
    """Free, spherical and planar joints at the root and inside the tree."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder()
    for name, parent, joint in (
        ("a", "world", Free()),
        ("b", "a", Revolute((0, 0, 1))),
        ("c", "b", Spherical()),
        ("d", "a", Planar()),
        ("e", "c", Free()),
        ("f", "e", Revolute((1, 0, 0))),
    ):
        placement = None if parent == "world" else random_placement(rng)
        builder.add_body(name, parent, joint, inertia=random_inertia(rng), placement=placement)
    return builder.build()


def batch(model: Model, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    states = [model.random_state(seed) for seed in range(int(np.prod(shape)))]
    q, v = (np.array(x).reshape(*shape, -1) for x in zip(*states))
    return q, v


def same_position(model: Model, q0: np.ndarray, q1: np.ndarray) -> None:
    """Equal up to the sign of quaternions."""
    from dalembert.model.configuration import unit_quaternions

    q1 = q1.copy()
    for part in unit_quaternions(model):
        sign = np.sign(np.sum(q0[..., part] * q1[..., part], axis=-1, keepdims=True))
        q1[..., part] *= sign
    np.testing.assert_allclose(q1, q0, atol=1e-12)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(ENGINES, repeat=2)))
def test_round_trips_return_the_state(source: str, target: str) -> None:
    model = mixed()
    q, v = batch(model, (3, 4))
    first = convert_state(model, q, v, source="dalembert", target=source)
    second = convert_state(model, *first, source=source, target=target)
    third = convert_state(model, *second, source=target, target="dalembert")
    assert second[1] is not None
    assert third[1] is not None
    assert second[1].shape == v.shape
    same_position(model, q, third[0])
    np.testing.assert_allclose(third[1], v, atol=1e-12)


def test_rows_of_a_batch_convert_as_they_do_alone() -> None:
    model = mixed()
    q, v = batch(model, (2, 3))
    for target in ENGINES:
        whole = convert_state(model, q, v, source="dalembert", target=target)
        for i, j in itertools.product(range(2), range(3)):
            alone = convert_state(model, q[i, j], v[i, j], source="dalembert", target=target)
            assert np.array_equal(whole[0][i, j], alone[0])
            assert np.array_equal(whole[1][i, j], alone[1])
        empty = convert_state(model, q[:0], v[:0], source="dalembert", target=target)
        assert empty[0].shape == (0, 3, whole[0].shape[-1])


def free_body() -> Model:
    builder = ModelBuilder()
    from dalembert.spatial import RigidInertia

    builder.add_body("a", "world", Free(), inertia=RigidInertia(2.0, (0.1, 0.2, 0.3), (1.0, 1.0, 1.0)))
    builder.add_body("b", "a", Spherical(), inertia=random_inertia(1))
    return builder.build()


def test_layouts_of_the_engines_that_are_not_installed() -> None:
    """Numbers read off Drake 1.51, DART 6.20 and PyBullet 3.2.7: quarter turns, so that axes are permuted.

    The rotation with quaternion (w, x, y, z) = (.5, .5, -.5, .5) takes (1, 2, 3) to (-2, -3, 1).
    """
    model = free_body()
    turn = [0.5, 0.5, -0.5, 0.5]
    q = np.array([10.0, 20.0, 30.0, *turn, *turn])
    v = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0, 2.0, 3.0])
    world_angular, world_linear, third = [-0.2, -0.3, 0.1], [-0.5, -0.6, 0.4], 2.0 * np.pi / 3.0
    rotation_vector = (third / np.sqrt(3.0) * np.array([1.0, -1.0, 1.0])).tolist()

    drake = convert_state(model, q, v, source="dalembert", target="drake")
    # R = [[0, -1, 0], [0, 0, -1], [1, 0, 0]]: pitch -90 degrees, where roll and yaw are not unique, so only
    # v here.
    np.testing.assert_allclose(drake[0][:7], [*turn, 10.0, 20.0, 30.0], atol=1e-15)
    np.testing.assert_allclose(drake[1], [*world_angular, *world_linear, -2.0, -3.0, 1.0], atol=1e-15)

    dart = convert_state(model, q, v, source="dalembert", target="dart")
    np.testing.assert_allclose(dart[0], [*rotation_vector, 10.0, 20.0, 30.0, *rotation_vector], atol=1e-14)
    np.testing.assert_allclose(dart[1], [*world_angular, *world_linear, 1.0, 2.0, 3.0], atol=1e-15)

    bullet = convert_state(model, q, v, source="dalembert", target="pybullet")
    xyzw = [0.5, -0.5, 0.5, 0.5]
    np.testing.assert_allclose(bullet[0], [9.8, 19.7, 30.1, *xyzw, *xyzw], atol=1e-14)
    # omega is parallel to the offset of the centre of mass, whose velocity is therefore that of the origin.
    np.testing.assert_allclose(bullet[1], [*world_linear, *world_angular, 1.0, 2.0, 3.0], atol=1e-15)


def test_roll_pitch_yaw_of_drakes_ball_joint() -> None:
    """R = Rz(yaw) Ry(pitch) Rx(roll), as read off Drake's BallRpyJoint."""
    model = free_body()
    roll, pitch, yaw = 0.3, -0.4, 0.5
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, roll, pitch, yaw])
    ours, v = convert_state(model, q, np.arange(9.0), source="drake", target="dalembert")
    R = np.array(model.body("b").joint.transform(ours[7:].tolist()).R.to_list())

    def about(axis: int, angle: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        R = np.eye(3)
        i, j = [(1, 2), (2, 0), (0, 1)][axis]
        R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
        return R

    np.testing.assert_allclose(R, about(2, yaw) @ about(1, pitch) @ about(0, roll), atol=1e-15)
    np.testing.assert_allclose(v[6:], R.T @ [6.0, 7.0, 8.0], atol=1e-14)


def world_velocities(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[list[Any], list[Any]]:
    """Poses and body velocities by an outward pass on our model."""

    def step(body: Body, carry: tuple[Transform, Motion]) -> tuple[tuple[Transform, Motion], Any]:
        joint = body.jcalc(q.tolist(), v.tolist())
        here = carry[0] @ joint.X, joint.X.apply(carry[1]) + joint.v_J
        return here, here

    owns = list(model.outward(step, (Transform.identity(), Motion(Vec3.zero(), Vec3.zero()))))
    return [X for X, _ in owns], [m for _, m in owns]


def test_pinocchio_moves_every_body_alike_in_its_own_convention() -> None:
    """Same placements and velocities of all bodies in Pinocchio from the converted state."""
    pin = pytest.importorskip("pinocchio")
    model = mixed()
    theirs = pin.Model()
    ids = {"world": 0}
    kinds = {
        "free": pin.JointModelFreeFlyer,
        "spherical": pin.JointModelSpherical,
        "planar": pin.JointModelPlanar,
    }
    for body in model.bodies:
        if body.joint.kind == "revolute":
            joint = pin.JointModelRUBZ() if body.name == "b" else pin.JointModelRX()
        else:
            joint = kinds[body.joint.kind]()
        X = np.array(body.placement.homogeneous())
        parent = "world" if body.parent < 0 else model.bodies[body.parent].name
        ids[body.name] = theirs.addJoint(ids[parent], joint, pin.SE3(X[:3, :3], X[:3, 3]), body.name)
    data = theirs.createData()
    # Pinocchio numbers the joints as they are added here, so that the order is the same.
    for seed in range(3):
        q, v = model.random_state(seed)
        q_pin, v_pin = convert_state(model, q, v, source="dalembert", target="pinocchio", continuous=["b"])
        assert q_pin.shape == (theirs.nq,)
        pin.forwardKinematics(theirs, data, q_pin, v_pin)
        X, m = world_velocities(model, q, v)
        for body in model.bodies:
            placed = data.oMi[ids[body.name]]
            np.testing.assert_allclose(placed.homogeneous, X[body.index].homogeneous(), atol=1e-12)
            np.testing.assert_allclose(
                data.v[ids[body.name]].angular, list(m[body.index].angular), atol=1e-12
            )
            np.testing.assert_allclose(data.v[ids[body.name]].linear, list(m[body.index].linear), atol=1e-12)


def test_mujoco_moves_every_body_alike_in_its_own_convention() -> None:
    """Same poses and velocities in MuJoCo: a free body, a ball joint on it, and a hinge."""
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><worldbody><body name="a"><freejoint/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <body name="c" pos="0.1 0.2 0.3"><joint type="ball"/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <body name="f" pos="0.3 0.2 0.1"><joint type="hinge" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></body></body></worldbody></mujoco>"""
    theirs = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    builder = ModelBuilder()
    builder.add_body("a", "world", Free())
    shift = Transform.from_rotation_translation
    builder.add_body("c", "a", Spherical(), placement=shift(np.eye(3), (0.1, 0.2, 0.3)))
    builder.add_body("f", "c", Revolute((1, 0, 0)), placement=shift(np.eye(3), (0.3, 0.2, 0.1)))
    model = builder.build()
    for seed in range(3):
        q, v = model.random_state(seed)
        data.qpos[:], data.qvel[:] = convert_state(model, q, v, source="dalembert", target="mujoco")
        mujoco.mj_forward(theirs, data)
        X, m = world_velocities(model, q, v)
        for body in model.bodies:
            found = data.body(body.name)
            np.testing.assert_allclose(found.xpos, list(X[body.index].p), atol=1e-12)
            R = np.array(X[body.index].R.to_list())
            np.testing.assert_allclose(found.xmat.reshape(3, 3), R, atol=1e-12)
            velocity = np.zeros(6)
            mujoco.mj_objectVelocity(theirs, data, mujoco.mjtObj.mjOBJ_XBODY, found.id, velocity, 1)
            np.testing.assert_allclose(velocity, [*m[body.index].angular, *m[body.index].linear], atol=1e-12)


def test_order_of_joints_in_the_other_engine() -> None:
    model = mixed()
    q, v = model.random_state(3)
    names = ["e", "a", "f", "d", "c", "b"]
    there_q, there_v = convert_state(model, q, v, source="dalembert", target="mujoco", order=names)
    np.testing.assert_array_equal(there_q[:3], q[model.joint("e").position])
    np.testing.assert_array_equal(there_v[3:6], v[model.joint("e").angular])
    assert there_q[-1] == q[model.joint("b").q_slice.start]
    back = convert_state(model, there_q, there_v, source="mujoco", target="dalembert", order=names)
    np.testing.assert_allclose(back[0], q, atol=1e-14)
    np.testing.assert_allclose(back[1], v, atol=1e-14)


def test_the_humanoid_converts_and_v_may_be_left_out() -> None:
    model = humanoid()
    q, _ = model.random_state(1)
    for engine in ENGINES:
        there, nothing = convert_state(model, q, source="dalembert", target=engine)
        assert nothing is None
        same_position(model, q, convert_state(model, there, source=engine, target="dalembert")[0])


def test_float32_stays_float32_and_integers_become_float64() -> None:
    model = mixed()
    q, v = (x.astype(np.float32) for x in model.random_state(2))
    for engine in ENGINES:
        out = convert_state(model, q, v, source="dalembert", target=engine)
        assert out[0].dtype == out[1].dtype == np.float32
        back = convert_state(model, *out, source=engine, target="dalembert")
        np.testing.assert_allclose(back[1], v, atol=2e-5)
    builder = ModelBuilder()
    builder.add_body("a", "world", Revolute())
    assert convert_state(builder.build(), [1], [2], source="drake", target="dart")[0].dtype == np.float64


def test_nan_passes_through() -> None:
    model = free_body()
    q, v = batch(model, (3,))
    q[1, 4] = np.nan
    out, _ = convert_state(model, q, v, source="mujoco", target="pybullet")
    assert np.isnan(out[1]).any()
    assert np.isfinite(out[[0, 2]]).all()


def test_bad_arguments_are_refused() -> None:
    model = mixed()
    q, v = model.random_state(1)
    convert: Any = convert_state
    with pytest.raises(UnknownNameError, match=r'unknown engine "mujco".*nearest: "mujoco"'):
        convert(model, q, v, source="mujco", target="dalembert")
    with pytest.raises(ShapeError, match=r"q of dalembert has shape \(3,\), expected \(…, 23\)"):
        convert(model, q[:3], v, source="dalembert", target="drake")
    with pytest.raises(ShapeError, match="batch shape"):
        convert(model, np.stack([q, q]), v, source="dalembert", target="drake")
    with pytest.raises(DtypeError, match="complex128"):
        convert(model, q.astype(complex), v, source="dalembert", target="drake")
    swapped = convert(model, q, v, source="dalembert", target="mujoco")[0]
    swapped[3:7] *= 1.1
    with pytest.raises(StateError, match=r'joint "a".*has not unit norm'):
        convert(model, swapped, v, source="mujoco", target="dalembert")
    with pytest.raises(ModelError, match="only revolute joints are continuous"):
        convert(model, q, v, source="dalembert", target="pinocchio", continuous=["c"])
    with pytest.raises(ArgumentError, match=r'write \["b"\]'):
        convert(model, q, v, source="dalembert", target="pinocchio", continuous="b")
    with pytest.raises(ArgumentError, match=r"missing: \['f'\]"):
        convert(model, q, v, source="dalembert", target="pinocchio", order=list("abcde"))
    builder = ModelBuilder()
    builder.add_body("a", "world", SphereInCylinder())
    odd = builder.build()
    with pytest.raises(ModelError, match='joint "a" of kind sphere_in_cylinder has no counterpart in drake'):
        convert(odd, odd.neutral(), np.zeros(4), source="dalembert", target="drake")
