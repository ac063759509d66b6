"""Configurations from named poses and from the positions of joints by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ArgumentError, ModelError, ShapeError, UnknownNameError


def figure() -> da.Model:
    builder = da.ModelBuilder()
    solid = da.RigidInertia(1.0, (0.1, 0.0, 0.0), (1.0, 1.0, 1.0))
    builder.add_body("trunk", "world", da.Free(), "root", inertia=solid)
    builder.add_body("thigh", "trunk", da.Spherical(), "hip", inertia=solid)
    builder.add_body("shin", "thigh", da.Revolute((0, 1, 0)), "knee-joint", inertia=solid)
    builder.add_body("foot", "shin", da.Revolute((0, 1, 0)), "ankle", inertia=solid)
    builder.add_coupling("flat", {"knee-joint": 1.0, "ankle": 1.0}, dependent="ankle")
    builder.add_pose("stand", {"root": (0.0, 0.0, 0.9, 1.0, 0.0, 0.0, 0.0), "knee-joint": 0.2, "ankle": 5.0})
    builder.add_pose("stand", {"hip": (2.0, 0.0, 0.0, 0.0)})
    return builder.build()


def test_poses_set_the_joints_that_they_name() -> None:
    model = figure()
    q = model.pose("stand")
    np.testing.assert_array_equal(q, [0, 0, 0.9, 1, 0, 0, 0, 1, 0, 0, 0, 0.2])  # quaternions are normalised
    assert model.pose().tolist() == model.pose("neutral").tolist() == model.neutral().tolist()
    bent = model.pose("stand", {"knee-joint": 0.7}, hip=(0.0, 3.0, 0.0, 4.0))
    np.testing.assert_allclose(bent, [0, 0, 0.9, 1, 0, 0, 0, 0, 0.6, 0, 0.8, 0.7])
    np.testing.assert_array_equal(model.pose(q, {"knee-joint": 0.2}), q)
    assert model.pose("stand")[11] == 0.2  # nothing was changed in place


def test_positions_that_do_not_fit_are_refused() -> None:
    model = figure()
    with pytest.raises(UnknownNameError, match='unknown pose "sit"; valid: "neutral", "stand"'):
        model.pose("sit")
    with pytest.raises(UnknownNameError, match='unknown joint "knee"'):
        model.pose(knee=0.1)
    with pytest.raises(ShapeError, match='joint "hip" has 4 positions, 1 are given'):
        model.pose(hip=0.1)
    with pytest.raises(ShapeError, match="the base has the shape"):
        model.pose([0.0])
    with pytest.raises(ArgumentError, match='"ankle" follows "knee-joint"'):
        model.pose(ankle=0.1)
    with pytest.raises(ModelError, match="finite numbers"):
        model.pose(None, {"knee-joint": np.inf})
    builder = da.ModelBuilder()
    builder.add_pose("a", {"j": 1.0})
    with pytest.raises(ModelError, match='pose "a" is added twice, each time with joint "j"'):
        builder.add_pose("a", {"j": 2.0})


def test_surgery_and_storage_keep_poses() -> None:
    model = figure()
    assert da.Model.from_json(model.to_json()) == model
    locked = model.lock(["hip"], model.pose("stand"))
    np.testing.assert_array_equal(locked.pose("stand"), np.delete(model.pose("stand"), range(7, 11)))
    both = model.attach(figure(), "shin", prefix="other/")
    assert both.poses.names == ("stand", "other/stand")
    np.testing.assert_array_equal(both.pose("other/stand")[both.joint("other/knee-joint").q_slice], [0.2])
    assert "poses: stand" in model.summary()


def test_mjcf_files_bring_their_initial_pose_and_keyframes(tmp_path: Path) -> None:
    """The oracle is MuJoCo's own `qpos0` and `key_qpos`."""
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><worldbody><body name="b" pos="0 0 .75" euler="0 0 30"><freejoint/><geom size=".1"/>
      <body><joint name="h" ref="20"/><geom size=".1"/></body></body></worldbody>
      <keyframe><key name="up" qpos="1 2 3 0 1 0 0 .5"/><key qpos="0 0 1 1 0 0 0 .1"/></keyframe></mujoco>"""
    (tmp_path / "a.xml").write_text(text)
    model, m = da.load(tmp_path / "a.xml"), mujoco.MjModel.from_xml_path(str(tmp_path / "a.xml"))
    assert model.poses.names == ("qpos0", "up", "key_1")
    np.testing.assert_allclose(model.pose("qpos0"), m.qpos0, atol=1e-15)
    np.testing.assert_allclose(model.pose("up"), m.key_qpos[0], atol=1e-15)
    np.testing.assert_allclose(model.pose("key_1"), m.key_qpos[1], atol=1e-15)
    assert model.neutral()[2] == 0.0
