"""What the bridge carries over from a Pinocchio model, and what it refuses."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")

from tests.engines import pinocchio_models  # noqa: E402

from dalembert import algorithms  # noqa: E402
from dalembert.errors import ArgumentError, DtypeError, MissingExtraError, ModelError, ShapeError  # noqa: E402
from dalembert.interop import from_pinocchio  # noqa: E402
from dalembert.interop import pinocchio_bridge as bridge_module  # noqa: E402
from dalembert.model.conventions import convert_state  # noqa: E402


def arm() -> pin.Model:
    return pinocchio_models.tree(
        np.random.default_rng(2),
        [pin.JointModelFreeFlyer(), pin.JointModelRX(), pin.JointModelRUBY(), pin.JointModelPlanar()],
    )


def test_importing_interop_loads_no_engine() -> None:
    code = "import sys, dalembert.interop; print(sorted({'pinocchio', 'mujoco', 'scipy'} & set(sys.modules)))"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert shown.stdout.strip() == "[]"


def test_names_placements_and_frames_carry_over() -> None:
    """RBDA-4.6-MODEL"""
    theirs = arm()
    model = from_pinocchio(theirs).model
    assert [joint.name for joint in model.joints] == list(theirs.names)[1:]
    assert list(model.parents) == [parent - 1 for parent in list(theirs.parents)[1:]]
    assert [body.name for body in model.bodies] == [f"body{i}" for i in range(4)]
    assert model.name == "random"
    np.testing.assert_array_equal(list(model.gravity), theirs.gravity.linear)
    for body, placement in zip(model.bodies, list(theirs.jointPlacements)[1:]):
        np.testing.assert_array_equal(
            np.array(body.placement.homogeneous(), dtype=float), placement.homogeneous
        )
    tip = theirs.frames[theirs.getFrameId("tip2")]
    np.testing.assert_array_equal(
        np.array(model.frame("tip2").placement.homogeneous(), dtype=float), tip.placement.homogeneous
    )
    assert model.frame("joint2").body == 2
    assert model.frame("universe").body == -1


def test_limits_and_joint_losses_carry_over_in_our_order() -> None:
    theirs = arm()
    rng = np.random.default_rng(0)
    theirs.damping = rng.uniform(0.0, 1.0, theirs.nv)
    theirs.upperDryFrictionLimit = rng.uniform(0.0, 1.0, theirs.nv)
    theirs.lowerDryFrictionLimit = -theirs.upperDryFrictionLimit
    theirs.upperEffortLimit = rng.uniform(1.0, 2.0, theirs.nv)
    theirs.lowerEffortLimit = -theirs.upperEffortLimit
    theirs.lowerPositionLimit = rng.uniform(-2.0, -1.0, theirs.nq)
    theirs.upperPositionLimit = rng.uniform(1.0, 2.0, theirs.nq)
    bridge = from_pinocchio(theirs)
    assert not bridge.model.report
    for name, expected in (
        ("armature", theirs.armature),
        ("damping", theirs.damping),
        ("friction", theirs.upperDryFrictionLimit),
    ):
        ours = np.concatenate([getattr(body, name) for body in bridge.model.bodies])
        np.testing.assert_array_equal(bridge.v_back(ours), expected)
    effort = np.concatenate([body.limits.effort for body in bridge.model.bodies])
    np.testing.assert_array_equal(bridge.v_back(effort), theirs.upperEffortLimit)
    free, hinge, continuous, planar = (body.limits.lower for body in bridge.model.bodies)
    np.testing.assert_array_equal(free, [*theirs.lowerPositionLimit[:3], *[-np.inf] * 4])
    np.testing.assert_array_equal(hinge, theirs.lowerPositionLimit[7:8])
    np.testing.assert_array_equal(continuous, [-np.inf])
    np.testing.assert_array_equal(planar, [*theirs.lowerPositionLimit[10:12], -np.inf])


def test_limits_of_different_size_are_reported() -> None:
    theirs = arm()
    theirs.lowerEffortLimit = np.full(theirs.nv, -2.0)
    theirs.upperEffortLimit = np.full(theirs.nv, 3.0)
    model = from_pinocchio(theirs).model
    assert any("effort limits differ" in line for line in model.report)
    assert model.bodies[1].limits.effort == (2.0,)


def test_an_inertia_that_no_body_has_is_used_and_reported() -> None:
    theirs = arm()
    theirs.inertias[2] = pin.Inertia(1.0, np.zeros(3), np.diag([1.0, 1.0, 5.0]))
    bridge = from_pinocchio(theirs)
    assert any("body1" in line and "triangle" in line for line in bridge.model.report)
    assert float(bridge.model.bodies[1].inertia.inertia_at_com.zz) == 5.0


def test_frames_whose_name_is_taken_are_renamed_and_reported() -> None:
    theirs = arm()
    theirs.addFrame(pin.Frame("body1", 2, 0, pin.SE3.Random(), pin.FrameType.SENSOR))
    model = from_pinocchio(theirs).model
    assert model.frame("body1_sensor").body == 1
    assert any("body1_sensor" in line for line in model.report)


def test_maps_take_any_batch_shape_and_keep_float32() -> None:
    bridge = from_pinocchio(arm())
    q = np.random.default_rng(0).standard_normal((2, 3, bridge.positions.size))
    assert bridge.q(q).shape == (2, 3, bridge.model.nq)
    np.testing.assert_array_equal(bridge.q(q)[1, 2], bridge.q(q[1, 2]))
    assert bridge.q(q.astype(np.float32)).dtype == np.float32
    assert bridge.v(list(range(bridge.model.nv))).dtype == np.float64
    assert bridge.q(q[:0]).shape == (0, 3, bridge.model.nq)
    forces = pin.StdVec_Force([pin.Force(np.arange(6.0))] * bridge_njoints(bridge))
    np.testing.assert_array_equal(bridge.external_forces(forces)[2], [3.0, 4.0, 5.0, 0.0, 1.0, 2.0])
    np.testing.assert_array_equal(bridge.external_forces(list(forces)), bridge.external_forces(forces))


def bridge_njoints(bridge: bridge_module.PinocchioBridge) -> int:
    return len(bridge.model.bodies) + 1


def test_wrong_arrays_are_refused_by_name() -> None:
    bridge = from_pinocchio(arm())
    with pytest.raises(ShapeError, match=r"q_pin: expected \(14,\) .* got \(13,\)"):
        bridge.q(np.zeros(13))
    with pytest.raises(DtypeError, match="v_pin has type complex128"):
        bridge.v(np.zeros(bridge.model.nv, complex))
    with pytest.raises(ShapeError, match="f_pin"):
        bridge.external_forces(np.zeros((3, 6)))


def test_wrong_models_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"needs a pinocchio\.Model, got str"):
        from_pinocchio("robot.urdf")
    long_axis = pin.Model()
    long_axis.addJoint(
        0, pin.JointModelRevoluteUnaligned(np.array([1.0, 2.0, 0.0])), pin.SE3.Identity(), "elbow"
    )
    with pytest.raises(ModelError, match=r'"elbow": its axis \(1, 2, 0\) has length 2\.23'):
        from_pinocchio(long_axis)
    part_of_ball = pin.Model()
    part_of_ball.addJoint(0, pin.JointModelSpherical(), pin.SE3.Identity(), "ball")
    mimic = pinocchio_models.follower(part_of_ball, 1, 1.0, 0.0, pin.JointModelPX())
    part_of_ball.addJoint(1, mimic, pin.SE3.Identity(), "finger")
    with pytest.raises(ModelError, match='"finger" mimics "ball", which has 3 degrees of freedom'):
        from_pinocchio(part_of_ball)
    turning = arm()
    turning.gravity.angular = np.ones(3)
    with pytest.raises(ModelError, match="angular part"):
        from_pinocchio(turning)


def test_without_pinocchio_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pinocchio", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dalembert\[pinocchio\]"'):
        from_pinocchio(object())


def test_maps_agree_with_convert_state() -> None:
    rng = np.random.default_rng(8)
    classes = [name for name in pinocchio_models.JOINTS if name != "JointModelComposite"]
    theirs = pinocchio_models.tree(rng, [pinocchio_models.JOINTS[name](rng) for name in classes])
    bridge = from_pinocchio(theirs)
    q, v, _ = pinocchio_models.states(theirs, rng, 3)
    turning = [f"joint{i}" for i, name in enumerate(classes) if "RUB" in name or "Unbounded" in name]
    q_ours, v_ours = convert_state(
        bridge.model, q, v, source="pinocchio", target="dalembert", continuous=turning
    )
    np.testing.assert_allclose(bridge.q(q), q_ours, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(bridge.v(v), v_ours)


def test_mimic_joints_become_couplings() -> None:
    theirs = pinocchio_models.with_mimics(np.random.default_rng(0))
    model = from_pinocchio(theirs).model
    assert (model.nq, model.nv) == (theirs.nq - 1 - 1, theirs.nv)  # one (cos, sin), one planar joint
    followers = {coupling.dependent: dict(coupling.coefficients) for coupling in model.couplings}
    assert followers["joint3"] == {"joint3": 1.0, "joint1": -0.7}
    assert model.joint("joint8").kind == "fixed"  # follows with ratio zero


def test_leaders_are_found_where_pinocchio_lists_them_in_another_order() -> None:
    theirs = pin.Model()
    for number in range(8):
        theirs.addJoint(number, pin.JointModelRX(), pin.SE3.Random(), f"joint{number + 1}")
    for leader, follower in ((4, 7), (3, 8)):
        theirs = pin.transformJointIntoMimic(theirs, leader, follower, 2.0, 0.0)
    assert list(zip(theirs.mimicked_joints, theirs.mimicking_joints)) == [(3, 7), (4, 8)]
    couplings = from_pinocchio(theirs).model.couplings
    assert dict(couplings["joint7"].coefficients) == {"joint7": 1.0, "joint4": -2.0}
    assert dict(couplings["joint8"].coefficients) == {"joint8": 1.0, "joint3": -2.0}


def test_a_screw_that_mimics_keeps_its_pitch() -> None:
    """Poses and velocities only: Pinocchio's dynamics forget the pitch of a helical follower."""
    theirs = pin.Model()
    rng = np.random.default_rng(4)
    theirs.addJoint(0, pin.JointModelHX(0.2), pinocchio_models.random_placement(rng), "leader")
    mimic = pinocchio_models.follower(theirs, 1, 0.4, 0.3, None)
    theirs.addJoint(1, mimic, pinocchio_models.random_placement(rng), "follower")
    bridge = from_pinocchio(theirs)
    data = theirs.createData()
    q, v = np.array([0.7]), np.array([-1.3])
    pin.forwardKinematics(theirs, data, q, v)
    pose = algorithms.forward_kinematics(bridge.model, bridge.q(q))[1]
    velocity = algorithms.body_velocities(bridge.model, bridge.q(q), bridge.v(v))[1]
    np.testing.assert_allclose(
        np.array(pose.homogeneous(), float), data.oMi[2].homogeneous, rtol=0, atol=1e-14
    )
    np.testing.assert_allclose(list(velocity.linear), data.v[2].linear, rtol=0, atol=1e-14)
    np.testing.assert_allclose(list(velocity.angular), data.v[2].angular, rtol=0, atol=1e-14)
