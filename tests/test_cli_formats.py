"""`dalembert info`, `check` and `convert` on the formats of others: URDF, MJCF, BVH, DeepMimic."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert.cli import main

Capture = pytest.CaptureFixture[str]

# the formats of others


URDF = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"/>
  <link name="upper">
    <inertial><origin xyz="0 0 0.2"/><mass value="2"/>
      <inertia ixx="0.03" iyy="0.03" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><mesh filename="upper.stl"/></geometry></visual>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="2" effort="3"/>
  </joint>
  <transmission name="motor"/>
</robot>
"""

MJCF = """<mujoco model="swing">
  <worldbody><body name="bob"><joint name="hinge" axis="0 1 0"/>
    <geom type="sphere" size="0.1" mass="1" pos="0 0 -1"/></body></worldbody>
</mujoco>
"""

BVH = """HIERARCHY
ROOT Hips
{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Chest
  {
    OFFSET 0 30 0
    CHANNELS 3 Zrotation Xrotation Yrotation
    End Site
    {
      OFFSET 0 40 0
    }
  }
}
MOTION
Frames: 3
Frame Time: 0.05
0 90 0 0 0 0 0 0 0
0 91 0 1 2 3 4 5 6
0 92 0 2 4 6 8 10 12
"""


def test_urdf_shows_masses_limits_and_what_was_ignored(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "arm.urdf"
    file.write_text(URDF)
    assert main(["info", str(file)]) == 0
    output = capsys.readouterr().out
    assert f"{file}: URDF" in output
    assert "ignored: <transmission> in <robot>, line 13" in output
    assert "shoulder            -1      1         2       3" in output
    assert "centre of mass at the neutral pose: (0, 0, 0.2) m" in output
    assert main(["info", "--root", "floating", "--json", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["nv"] == 7


def test_a_name_outside_the_folder_needs_trust_or_an_allowed_folder(tmp_path: Path, capsys: Capture) -> None:
    folder, other = tmp_path / "model", tmp_path / "other" / "package"
    folder.mkdir()
    other.mkdir(parents=True)
    (other / "upper.stl").write_text("solid")
    file = folder / "arm.urdf"
    file.write_text(URDF.replace("upper.stl", str(other / "upper.stl")))
    assert main(["info", str(file)]) == 2
    assert "is an absolute path" in capsys.readouterr().err
    assert main(["info", "--trust", str(file)]) == 0
    file.write_text(URDF.replace("upper.stl", "package://package/upper.stl"))
    capsys.readouterr()
    assert main(["info", str(file)]) == 0
    assert "does not exist; looked below" in capsys.readouterr().out
    assert main(["info", "--allow", str(tmp_path / "other"), str(file)]) == 0
    assert "does not exist" not in capsys.readouterr().out


def test_a_link_that_hangs_on_nothing_cannot_be_read(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "two.urdf"
    file.write_text(URDF.replace("<transmission", '<link name="lost"/><transmission'))
    assert main(["check", str(file)]) == 2
    error = capsys.readouterr().err
    assert '"lost"' in error
    assert "line" in error


def test_check_uses_repairs_when_asked_to(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "arm.urdf"
    file.write_text(URDF.replace('izz="0.001"', 'izz="0.1"'))
    assert main(["check", str(file)]) == 1
    assert "triangle inequality" in capsys.readouterr().out
    assert main(["check", "--inertia", "strict", str(file)]) == 2
    capsys.readouterr()
    assert main(["check", "--inertia", "repair", str(file)]) == 1
    output = capsys.readouterr().out
    assert "error" not in output
    assert "warning: file: repaired: line 4" in output


@pytest.mark.parametrize("ending", [".json", ".urdf", ".xml"])
def test_conversions_keep_the_dynamics(ending: str, tmp_path: Path) -> None:
    source, target = tmp_path / "arm.urdf", tmp_path / f"copy{ending}"
    source.write_text(URDF.replace('<mesh filename="upper.stl"/>', '<box size="0.1 0.1 0.4"/>'))
    assert main(["convert", str(source), str(target)]) == 0
    first, second = da.load(source), da.load(target)
    q, v, tau = [0.4], [1.2], [0.3]
    np.testing.assert_allclose(
        da.forward_dynamics(second, q, v, tau), da.forward_dynamics(first, q, v, tau), rtol=1e-12
    )


def test_mjcf_is_a_model_too(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("mujoco")
    file = tmp_path / "swing.xml"
    file.write_text(MJCF)
    assert main(["info", "--json", str(file)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["format"] == "MJCF"
    assert facts["nv"] == 1
    np.testing.assert_allclose(facts["center_of_mass"], [0.0, 0.0, -1.0], atol=1e-12)


def test_a_motion_file_shows_its_skeleton_and_its_frames(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "walk.bvh"
    file.write_text(BVH)
    assert main(["info", "--scale", "0.01", "--mass", "60", str(file)]) == 0
    output = capsys.readouterr().out
    assert "Chest" in output
    assert "motion: 3 frames, one each 0.05 s, 0.1 s in all" in output
    assert main(["info", "--scale", "0.01", "--mass", "60", "--json", str(file)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["total_mass"] == pytest.approx(60.0)
    assert facts["motion"]["frames"] == 3
    assert facts["motion"]["frame_time"] == pytest.approx(0.05)


def test_frames_at_the_beginning_can_be_left_out(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "walk.bvh"
    file.write_text(BVH)
    assert main(["info", "--skip", "1", str(file)]) == 0
    assert "motion: 2 frames" in capsys.readouterr().out
    assert main(["info", "--skip", "3", str(file)]) == 2
    assert "leaves none" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["info", "--skip", "-1", str(file)])


def test_converting_a_motion_file_says_that_the_motion_is_lost(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "walk.bvh"
    file.write_text(BVH)
    assert main(["convert", str(file), str(tmp_path / "walk.json")]) == 0
    assert "lost: the motion of 3 frames" in capsys.readouterr().out


def test_a_deepmimic_clip_is_told_from_a_model(tmp_path: Path, capsys: Capture) -> None:
    quaternion = [1.0, 0.0, 0.0, 0.0]
    pose = [0.0, 0.9, 0.0, *quaternion, *quaternion * 3, 0.1, *quaternion * 2, 0.2, *quaternion, 0.1]
    pose += [*quaternion * 2, 0.2]
    frames = [[0.03, *pose], [0.03, *pose]]
    for name in ("clip.json", "clip.txt"):
        (tmp_path / name).write_text(json.dumps({"Loop": "none", "Frames": frames}))
        assert main(["info", "--json", str(tmp_path / name)]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["format"] == "DeepMimic clip"
        assert facts["motion"]["frames"] == 2
