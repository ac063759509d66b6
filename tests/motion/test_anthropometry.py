"""Masses and inertias by the anthropometric rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.motion.figures import MIXED_ORDERS, acclaim_rows, acclaim_texts, bvh_text, saved, smooth_rows

import dalembert as da
from dalembert.motion import load_motion
from dalembert.motion.characters import PARTS, body_part, segment_shapes
from dalembert.spatial import physical_problems

BY_BONES = {
    "Hips": "trunk", "LHipJoint": "trunk", "LeftUpLeg": "thigh", "LeftLeg": "shank", "LeftFoot": "foot",
    "LeftToeBase": "foot", "Spine1": "trunk", "Neck1": "head", "Head": "head", "LeftShoulder": "trunk",
    "LeftArm": "upper arm", "LeftForeArm": "forearm", "LeftHandIndex1": "hand", "LThumb": "hand",
    "lfemur": "thigh", "rtibia": "shank", "lhumerus": "upper arm", "lradius": "forearm", "lwrist": "forearm",
    "rclavicle": "trunk", "lowerback": "trunk", "thorax": "trunk", "Tail": None,
}  # fmt: skip
BY_JOINTS = {
    "Hips": "trunk", "LeftHip": "thigh", "right_hip": "thigh", "LeftKnee": "shank", "left_ankle": "foot",
    "LeftCollar": "trunk", "RightShoulder": "upper arm", "left_elbow": "forearm", "RightWrist": "hand",
    "Chest": "trunk",
}  # fmt: skip


def test_names_tell_parts() -> None:
    assert {name: body_part(name, by_joints=False) for name in BY_BONES} == BY_BONES
    assert {name: body_part(name, by_joints=True) for name in BY_JOINTS} == BY_JOINTS


def test_shares_add_up_to_the_whole() -> None:
    assert sum(PARTS.values()) == pytest.approx(100.0)


def test_masses_add_up_and_every_body_is_physical(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.bvh", bvh_text(MIXED_ORDERS, smooth_rows(28)))
    model, _ = load_motion(path, mass=62.0, height=1.7)
    assert sum(body.inertia.mass for body in model.bodies) == pytest.approx(62.0)
    for body in model.bodies:
        assert body.inertia.mass > 0.0
        assert physical_problems(body.inertia) == []
    assert model.body("LeftUpLeg").inertia.mass > model.body("LeftLeg").inertia.mass
    heads = model.body("Head").inertia.mass / model.body("LeftLeg").inertia.mass
    assert heads == pytest.approx(PARTS["head"] / PARTS["shank"])


def test_a_skeleton_of_unknown_names_weighs_by_volume(tmp_path: Path) -> None:
    hierarchy = "HIERARCHY\nROOT a\n{\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\nJOINT b\n{\nOFFSET 0 1 0\n"
    hierarchy += "CHANNELS 1 Xrotation\nEnd Site\n{\nOFFSET 0 2 0\n}\n}\n}\nMOTION\n"
    model, _ = load_motion(saved(tmp_path, "a.bvh", bvh_text(hierarchy, np.zeros((3, 2)))), mass=9.0)
    assert [body.inertia.mass for body in model.bodies] == pytest.approx([1.0, 8.0])


def test_unknown_bones_take_their_part_by_volume_and_leave_the_rest_to_the_body(tmp_path: Path) -> None:
    hierarchy = (
        "HIERARCHY\nROOT LeftUpLeg\n{\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\nEnd Site\n{\nOFFSET 0 1 0\n}\n"
    )
    hierarchy += (
        "JOINT tail\n{\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\nEnd Site\n{\nOFFSET 0 2 0\n}\n}\n}\nMOTION\n"
    )
    model, _ = load_motion(saved(tmp_path, "a.bvh", bvh_text(hierarchy, np.zeros((3, 2)))), mass=9.0)
    assert [body.inertia.mass for body in model.bodies] == pytest.approx([1.0, 8.0])


def test_capsules_have_the_density_of_the_body_and_weigh_what_they_should() -> None:
    shapes = segment_shapes([np.array([0.0, 0.3, 0.4]), np.array([0.1, 0.0, 0.0])], 6.0)
    assert sum(shape.volume for shape in shapes) == pytest.approx(6.0 / 1000.0)
    assert shapes[0].volume == pytest.approx(5.0 / 1000.0)
    ball = segment_shapes([], 3.0)
    assert ball[0].volume == pytest.approx(3.0 / 1000.0)


def test_the_ground_force_of_a_clip_accelerates_its_centre_of_mass(tmp_path: Path) -> None:
    """Newton's law on a loaded clip: what the root must be pushed with is mass (acceleration - gravity)."""
    asf, amc = acclaim_texts(acclaim_rows(60))
    pair = saved(tmp_path, "a.asf", asf), saved(tmp_path, "a.amc", amc)
    model, clip = load_motion(pair, mass=50.0, frame_time=0.01, scale=0.02)
    tau = da.inverse_dynamics(model, clip.q, clip.v, clip.a)
    assert tau.shape == clip.v.shape
    R = da.forward_kinematics(model, clip.q)["root"].rotation
    push = np.einsum("tij,tj->ti", R, tau[:, model.joint("root").linear])
    com = da.dynamics.center_of_mass(model, clip.q)
    acceleration = (com[2:] - 2.0 * com[1:-1] + com[:-2]) / 0.01**2
    np.testing.assert_allclose(push[1:-1], 50.0 * (acceleration + [0.0, 0.0, 9.81]), rtol=2e-3, atol=0.5)
