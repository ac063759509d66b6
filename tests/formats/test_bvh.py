"""BVH files: the channels mean what an evaluation with matrices alone says, and bad files are refused."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.motion.figures import (
    FRAME_TIME,
    FRAMES,
    MIXED_ORDERS,
    bvh_text,
    evaluate_bvh,
    loaded_places,
    saved,
    smooth_rows,
    z_up,
)

from dalembert.errors import ArgumentError, FileError, UnknownNameError
from dalembert.motion import load_motion

WIDTH = 6 + 3 + 3 + 6 + 2 + 0 + 3 + 1 + 4


@pytest.fixture
def text() -> str:
    return bvh_text(MIXED_ORDERS, smooth_rows(WIDTH))


@pytest.mark.parametrize("rotations", ["quaternion", "euler"])
@pytest.mark.parametrize(("up", "scale"), [("y", 1.0), ("z", 0.25)])
def test_joint_positions_are_those_of_the_channels(
    tmp_path: Path, text: str, rotations: str, up: str, scale: float
) -> None:
    model, clip = load_motion(saved(tmp_path, "figure.bvh", text), rotations=rotations, up=up, scale=scale)
    places = loaded_places(model, clip.q)
    expected = evaluate_bvh(text)
    assert len(clip) == len(expected) == FRAMES
    assert set(places) == set(expected[0])
    for k, frame in enumerate(expected):
        for name, point in frame.items():
            there = scale * (z_up(point) if up == "y" else point)
            np.testing.assert_allclose(places[name][k], there, atol=1e-9 * max(1.0, np.abs(there).max()))


def test_joints_follow_the_channels(tmp_path: Path, text: str) -> None:
    path = saved(tmp_path, "figure.bvh", text)
    kinds = {joint.name: joint.kind for joint in load_motion(path)[0].joints}
    assert kinds == {
        "Hips": "free", "Spine": "spherical", "Head": "spherical", "Left Arm": "free",
        "LeftForeArm": "universal", "LeftHand": "fixed",
        "LeftUpLeg": "spherical", "LeftLeg": "revolute", "LeftFoot": "composite",
    }  # fmt: skip
    model, clip = load_motion(path, rotations="euler", up="z")
    assert model.joint("Spine").joint.order == "yxz"
    angles = clip.q[:, model.joint("Spine").q_slice]
    np.testing.assert_allclose(np.degrees(angles), smooth_rows(WIDTH)[:, 6:9], atol=1e-9)


def test_frames_are_at_the_files_frame_time(tmp_path: Path, text: str) -> None:
    path = saved(tmp_path, "figure.bvh", text)
    clip = load_motion(path)[1]
    np.testing.assert_allclose(clip.time, FRAME_TIME * np.arange(FRAMES), rtol=1e-15)
    assert load_motion(path, frame_time=0.5)[1].duration == pytest.approx(0.5 * (FRAMES - 1))


def test_positions_may_replace_the_offset(tmp_path: Path, text: str) -> None:
    path = saved(tmp_path, "figure.bvh", text)
    added, clip = load_motion(path)
    replaced, other = load_motion(path, positions="replace")
    shift = loaded_places(added, clip.q)["Hips"] - loaded_places(replaced, other.q)["Hips"]
    np.testing.assert_allclose(shift, np.tile(z_up(np.array([0.1, -0.2, 0.3])), (FRAMES, 1)), atol=1e-12)
    assert any("2 inner joints" in line for line in added.report)


def test_a_file_without_units_is_taken_in_metres_and_the_unit_is_guessed(tmp_path: Path, text: str) -> None:
    hierarchy = MIXED_ORDERS.replace("-0.42", "-42").replace("-0.45", "-45").replace("0.5", "90")
    large = bvh_text(hierarchy, smooth_rows(WIDTH))
    assert any("cm (scale=0.01)" in line for line in load_motion(saved(tmp_path, "a.bvh", large))[0].report)
    model, _ = load_motion(saved(tmp_path, "b.bvh", text), height=1.8)
    small, _ = load_motion(saved(tmp_path, "b.bvh", text), height=0.9)
    ratio = model.body("LeftLeg").placement.p.z / small.body("LeftLeg").placement.p.z
    assert ratio == pytest.approx(2.0)


def test_a_rest_pose_at_the_beginning_is_pointed_out_and_can_be_skipped(tmp_path: Path) -> None:
    rows = smooth_rows(WIDTH)
    plain, clip = load_motion(saved(tmp_path, "a.bvh", bvh_text(MIXED_ORDERS, rows)))
    path = saved(tmp_path, "b.bvh", bvh_text(MIXED_ORDERS, np.vstack([0.0 * rows[0], rows])))
    jumping, _ = load_motion(path)
    assert any("skip=1" in line for line in jumping.report)
    assert not any("skip=1" in line for line in plain.report)
    model, same = load_motion(path, skip=1)
    assert model.report == plain.report
    for name in ("time", "q", "v", "a"):
        np.testing.assert_allclose(getattr(same, name), getattr(clip, name), atol=1e-9)


def test_jumps_of_euler_angles_are_pointed_out(tmp_path: Path) -> None:
    rows = smooth_rows(WIDTH)
    y, x, z = rows[6:, 6:9].T
    rows[6:, 6:9] = np.stack([y + 180.0, 180.0 - x, z + 180.0], axis=1)  # the same rotation by other angles
    path = saved(tmp_path, "a.bvh", bvh_text(MIXED_ORDERS, rows))
    assert any(
        '"Spine" jump after frame 6' in line for line in load_motion(path, rotations="euler")[0].report
    )
    model, clip = load_motion(path)
    assert not any("jump" in line for line in model.report)
    smooth = load_motion(saved(tmp_path, "b.bvh", bvh_text(MIXED_ORDERS, smooth_rows(WIDTH))))[1]
    np.testing.assert_allclose(clip.v, smooth.v, atol=1e-9)


def test_several_encodings_and_line_ends(tmp_path: Path, text: str) -> None:
    reference = load_motion(saved(tmp_path, "a.bvh", text))[1].q
    for content in (
        text.replace("\n", "\r\n").encode(),
        text.encode("utf-16"),
        b"\xef\xbb\xbf" + text.encode(),
    ):
        path = tmp_path / "b.bvh"
        path.write_bytes(content)
        np.testing.assert_array_equal(load_motion(path)[1].q, reference)


BAD = {
    "frame count too high": (f"Frames: {FRAMES}", "Frames: 99", "promises 99 frames.* holds 12; .*truncated"),
    "frame count too low": (f"Frames: {FRAMES}", "Frames: 3", "promises 3 frames, the file holds 12"),
    "frame count huge": (f"Frames: {FRAMES}", "Frames: 99999999999", "promises 99999999999 frames"),
    "frame count not whole": (f"Frames: {FRAMES}", "Frames: 1.5", "Frames is 1.5"),
    "no frames": (f"Frames: {FRAMES}", "Frames: 0", "at least one"),
    "frame time zero": ("Frame Time: 0.01", "Frame Time: 0", "must be positive"),
    "frame time negative": ("Frame Time: 0.01", "Frame Time: -0.01", "must be positive"),
    "frame time missing": ("Frame Time: 0.01\n", "", '"Frame Time: …" is expected'),
    "decimal comma": ("Frame Time: 0.01", "Frame Time: 0,01", "with a point"),
    "nan": ("OFFSET 0.3 0 0", "OFFSET nan 0 0", "finite"),
    "infinite": ("OFFSET 0.3 0 0", "OFFSET 1e400 0 0", "finite"),
    "two numbers": ("OFFSET 0.3 0 0", "OFFSET 0.3 0", "2 numbers; 3 are expected"),
    "underscore": ("OFFSET 0.3 0 0", "OFFSET 1_0 0 0", "finite numbers|not a number"),
    "channel count": ("CHANNELS 2 Yrotation", "CHANNELS 3 Yrotation", "CHANNELS says 3 but names 2"),
    "unknown channel": ("CHANNELS 1 Xrotation", "CHANNELS 1 Wrotation", "unknown channel 'Wrotation'"),
    "channel twice": ("CHANNELS 2 Yrotation Zrotation", "CHANNELS 2 Yrotation Yrotation", "twice"),
    "name twice": ("JOINT LeftLeg", "JOINT Spine", 'joint "Spine" has the name of the one in line 6'),
    "no name": ("JOINT LeftLeg", "JOINT", "without a name"),
    "brace missing": ("JOINT LeftLeg\n    {", "JOINT LeftLeg", 'expected after JOINT "LeftLeg"'),
    "not closed": ("}\nMOTION", "MOTION", 'joint "Hips" of line 2 is open'),
    "closed twice": ("}\nMOTION", "}\n}\nMOTION", "too many"),
    "no motion": ("MOTION", "NOTION", "NOTION"),
    "no hierarchy": ("HIERARCHY", "SKELETON", "begins with HIERARCHY"),
    "no offset": ("OFFSET 0.1 0 0\n    CHANNELS", "CHANNELS", 'joint "LeftUpLeg" has no OFFSET'),
    "nul": ("JOINT LeftLeg", "JOINT Left\0Leg", "NUL"),
    "joint in end site": ("End Site { OFFSET 0 0.2 0 }", "End Site { JOINT x { } }", "inside an End Site"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_with_line_and_reason(tmp_path: Path, text: str, case: str) -> None:
    old, new, message = BAD[case]
    assert text.count(old) >= 1
    with pytest.raises(FileError, match=rf"bad\.bvh line \d+: .*({message})"):
        load_motion(saved(tmp_path, "bad.bvh", text.replace(old, new, 1)))


def test_rows_of_wrong_width_and_bad_numbers_are_named(tmp_path: Path, text: str) -> None:
    lines = text.splitlines()
    lines[-3] += " 1.0"
    with pytest.raises(FileError, match=rf"line {len(lines) - 2}: frame 10 has 29 numbers.* 28 channels"):
        load_motion(saved(tmp_path, "a.bvh", "\n".join(lines)))
    lines[-3] = lines[-3].rsplit(" ", 2)[0] + " NaN"
    with pytest.raises(FileError, match=rf"line {len(lines) - 2}: frame 10 holds 'NaN'; give finite"):
        load_motion(saved(tmp_path, "a.bvh", "\n".join(lines)))


@pytest.mark.parametrize("fraction", [0.02, 0.1, 0.3, 0.5, 0.9, 0.999])
def test_truncated_files_are_refused(tmp_path: Path, text: str, fraction: float) -> None:
    with pytest.raises(FileError, match="line"):
        load_motion(
            saved(tmp_path, "a.bvh", text[: int(fraction * len(text))].rstrip().rstrip("0123456789."))
        )


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        load_motion(tmp_path / "none.bvh")
    (tmp_path / "folder.bvh").mkdir()
    with pytest.raises(FileError, match="folder"):
        load_motion(tmp_path / "folder.bvh")
    with pytest.raises(FileError, match="empty"):
        load_motion(saved(tmp_path, "a.bvh", "  \n"))
    (tmp_path / "random.bvh").write_bytes(np.random.default_rng(0).bytes(4000))
    with pytest.raises(FileError):
        load_motion(tmp_path / "random.bvh")
    with pytest.raises(UnknownNameError, match="motion file format"):
        load_motion(saved(tmp_path, "a.c3d", "x"))
    with pytest.raises(ArgumentError, match="takes a path"):
        load_motion(3)  # type: ignore[arg-type]


def test_a_file_larger_than_the_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.bvh"
    with path.open("wb") as stream:
        stream.truncate(64 * 1024 * 1024 + 1)
    with pytest.raises(FileError, match="bytes"):
        load_motion(path)


def test_a_deep_chain_loads(tmp_path: Path) -> None:
    depth = 3000
    joints = "".join(f"JOINT j{i}\n{{\nOFFSET 0 0.1 0\nCHANNELS 1 Xrotation\n" for i in range(depth))
    hierarchy = f"HIERARCHY\nROOT r\n{{\nOFFSET 0 0 0\nCHANNELS 0\n{joints}{'}' * depth}\n}}\nMOTION\n"
    model, clip = load_motion(saved(tmp_path, "a.bvh", bvh_text(hierarchy, np.zeros((2, depth)))))
    assert model.nv == depth
    assert clip.q.shape == (2, depth)


def test_mutated_files_never_escape_as_other_errors(tmp_path: Path, text: str) -> None:
    rng = np.random.default_rng(5)
    path = tmp_path / "a.bvh"
    for _ in range(200):
        content = bytearray(text.encode())
        for _ in range(rng.integers(1, 6)):
            where = int(rng.integers(len(content)))
            if rng.random() < 0.5:
                content[where] = int(rng.integers(256))
            else:
                del content[where : where + int(rng.integers(1, 60))]
        path.write_bytes(bytes(content))
        with suppress(FileError):
            load_motion(path)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"up": "x"}, UnknownNameError),
        ({"rotations": "matrix"}, UnknownNameError),
        ({"positions": "both"}, UnknownNameError),
        ({"scale": 0.0}, ArgumentError),
        ({"mass": float("nan")}, ArgumentError),
        ({"frame_time": -1.0}, ArgumentError),
        ({"skip": FRAMES}, ArgumentError),
        ({"skip": -1}, ArgumentError),
        ({"mass": "heavy"}, ArgumentError),
        ({"cutoff": "low"}, ArgumentError),
        ({"scale": 1.0, "height": 1.8}, ArgumentError),
        ({"cutoff": 50.0}, ArgumentError),
    ],
)
def test_bad_options_are_refused(
    tmp_path: Path, text: str, options: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        load_motion(saved(tmp_path, "a.bvh", text), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("HIERARCHY\n" + "\n" * 4_000_001, "more than 4000000 lines"),
        (
            "HIERARCHY\nROOT r\n{\nOFFSET 0 0 0\nCHANNELS 0" + " Xrotation" * 10_000,
            "more than 4096 characters",
        ),
        ("HIERARCHY\nROOT r\n{\nOFFSET 0 0 0\n" + "End Site { OFFSET 0 0 1 }\n" * 10_001, "10000 end sites"),
        ("HIERARCHY\nROOT r\n{\n" + "".join(f"JOINT j{i} {{\n" for i in range(10_000)), "10000 joints"),
    ],
    ids=["lines", "long line", "end sites", "joints"],
)
def test_files_beyond_the_limits_are_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        load_motion(saved(tmp_path, "a.bvh", content))
