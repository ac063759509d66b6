"""DeepMimic clips: frames of 44 numbers become the published character's motion."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.motion.figures import loaded_places, saved, turn

from dalembert.errors import ArgumentError, FileError
from dalembert.formats.mocap.deepmimic import JOINTS
from dalembert.motion import load_motion

FRAME_TIME = 1.0 / 60.0

# Where each joint sits in its parent's frame, in file axes.
TREE = {
    "chest": ("root", (0, 0.236151, 0)),
    "neck": ("chest", (0, 0.223894, 0)),
    "right_hip": ("root", (0, 0, 0.084887)),
    "right_knee": ("right_hip", (0, -0.421546, 0)),
    "right_ankle": ("right_knee", (0, -0.40987, 0)),
    "right_shoulder": ("chest", (-0.02405, 0.2435, 0.18311)),
    "right_elbow": ("right_shoulder", (0, -0.274788, 0)),
    "right_wrist": ("right_elbow", (0, -0.258947, 0)),
    "left_hip": ("root", (0, 0, -0.084887)),
    "left_knee": ("left_hip", (0, -0.421546, 0)),
    "left_ankle": ("left_knee", (0, -0.40987, 0)),
    "left_shoulder": ("chest", (-0.02405, 0.2435, -0.18311)),
    "left_elbow": ("left_shoulder", (0, -0.274788, 0)),
    "left_wrist": ("left_elbow", (0, -0.258947, 0)),
}


def rows(frames: int = 8) -> list[list[float]]:
    rng = np.random.default_rng(1)
    start, speed = rng.normal(size=43), rng.normal(size=43)
    result = []
    for k in range(frames):
        values, row, i = start + 0.05 * k * speed, [FRAME_TIME], 0
        for size in JOINTS.values():
            own = values[i : i + size].copy()
            if size > 1:
                own[-4:] /= np.linalg.norm(own[-4:])
            row += own.tolist()
            i += size
        result.append(row)
    return result


def matrix(q: list[float]) -> np.ndarray:
    w, x, y, z = q
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2.0 * w * K + 2.0 * K @ K


def evaluate(row: list[float]) -> dict[str, np.ndarray]:
    own, i = {}, 1
    for joint, size in JOINTS.items():
        own[joint] = row[i : i + size]
        i += size
    place = {"root": np.array(own["root"][:3])}
    R = {"root": matrix(own["root"][3:])}
    for name, (parent, offset) in TREE.items():
        place[name] = place[parent] + R[parent] @ offset
        numbers = own.get(name, [0.0])
        R[name] = R[parent] @ (matrix(numbers) if len(numbers) == 4 else turn("z", np.degrees(numbers[0])))
    return place


def clip_text(frames: object, **more: object) -> str:
    return json.dumps({"Loop": "wrap", "Frames": frames, **more})


def test_joints_stand_where_matrices_put_them(tmp_path: Path) -> None:
    model, clip = load_motion(saved(tmp_path, "walk.txt", clip_text(rows())))
    places = loaded_places(model, clip.q)
    for k, row in enumerate(rows()):
        for name, (x, y, z) in evaluate(row).items():
            np.testing.assert_allclose(places[name][k], [x, -z, y], atol=1e-9)
    assert clip.loop
    np.testing.assert_allclose(clip.time, FRAME_TIME * np.arange(8))
    assert model.nq == 43


def test_the_character_weighs_what_is_published_unless_told(tmp_path: Path) -> None:
    path = saved(tmp_path, "walk.json", clip_text(rows(), LeftJoints=[1]))
    model, _ = load_motion(path)
    assert sum(body.inertia.mass for body in model.bodies) == pytest.approx(45.0)
    assert any("LeftJoints" in line for line in model.report)
    large, clip = load_motion(path, mass=90.0, scale=2.0)
    assert sum(body.inertia.mass for body in large.bodies) == pytest.approx(90.0)
    np.testing.assert_allclose(clip.q[0, :3], 2.0 * load_motion(path)[1].q[0, :3])


def edited(change: object) -> str:
    frames = rows()
    change(frames)  # type: ignore[operator]
    return clip_text(frames)


BAD = {
    "not JSON": (lambda: "{", "line 1 column 2: not JSON"),
    "empty": (lambda: " ", "not JSON|empty"),
    "no frames": (lambda: clip_text([]), "not empty"),
    "no object": (lambda: "[1]", "an object with"),
    "frames no list": (lambda: clip_text("x"), '"Frames"'),
    "width": (lambda: edited(lambda f: f[2].pop()), "frame 3 is 43 numbers; .* 44"),
    "word": (lambda: edited(lambda f: f[2].__setitem__(5, "x")), "frame 3 holds 'x'"),
    "truth": (lambda: edited(lambda f: f[2].__setitem__(5, True)), "frame 3 holds"),
    "nan": (lambda: edited(lambda f: f[2].__setitem__(5, float("nan"))), "NaN"),
    "overflow": (lambda: clip_text(rows()).replace("0.0166", "1e999", 1), "finite|JSON"),
    "huge whole number": (lambda: edited(lambda f: f[2].__setitem__(5, 10**400)), "finite"),
    "endless whole number": (lambda: clip_text(rows()).replace("0.016", "9" * 9000, 1), "not JSON"),
    "duration": (lambda: edited(lambda f: f[1].__setitem__(0, 0.0)), "frame 2 lasts 0.0 s"),
    "quaternion": (lambda: edited(lambda f: f[4].__setitem__(slice(4, 8), [0] * 4)), 'frame 5, joint "root"'),
    "loop": (lambda: clip_text(rows()).replace("wrap", "often"), "Loop"),
    "deep": (lambda: "[" * 100_000, "lists inside lists|not JSON"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_clips_are_refused(tmp_path: Path, case: str) -> None:
    make, message = BAD[case]
    with pytest.raises(FileError, match=message):
        load_motion(saved(tmp_path, "bad.json", make()))


def test_euler_angles_are_not_in_these_files(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="quaternions"):
        load_motion(saved(tmp_path, "walk.txt", clip_text(rows())), rotations="euler")
