"""SRDF files: named poses and links that never touch, given or found beside the URDF file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.formats.urdf_files import BOX, joint, link, robot

import dalembert as da
from dalembert.contact.pairs import pair_names, pairs_of
from dalembert.errors import ArgumentError, FileError

BALL = '<collision><geometry><sphere radius=".1"/></geometry></collision>'
BODY = f'<inertial><mass value="1"/>{BOX}</inertial>{BALL}'
SRDF = """<robot name="sample">
  <virtual_joint name="floor" type="floating" parent_frame="world" child_link="a"/>
  <group name="arm"><joint name="j1"/></group>
  <group_state name="home" group="arm"><joint name="j1" value="0.3"/>
    <joint name="floor" value="0 0 .5 0 0 1 0"/></group_state>
  <group_state name="home" group="hand"><joint name="j2" value="-0.2"/></group_state>
  <group_state name="home" group="other"><joint name="j2" value="0.7"/>
    <joint name="none" value="1"/></group_state>
  {pairs}</robot>"""
PAIR = '<disable_collisions link1="{}" link2="{}" reason="Never"/>'
CHAIN = tuple(link(name, BODY) for name in "abcd")
JOINTS = tuple(joint(f"j{k}", parent, child) for k, (parent, child) in enumerate(("ab", "bc", "cd")))


def write(folder: Path, pairs: str = "", *, where: str = "srdf/sample.srdf") -> Path:
    """A chain of four balls in urdf/chain.urdf, and its SRDF file."""
    for name, text in (("urdf/chain.urdf", robot(*CHAIN, *JOINTS)), (where, SRDF.format(pairs=pairs))):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder / "urdf" / "chain.urdf"


def touching(model: da.Model) -> set[str]:
    return {"".join(sorted(pair_names(model, pair))) for pair in pairs_of(model)}


def test_poses_of_one_name_are_joined_or_told_apart_by_their_groups(tmp_path: Path) -> None:
    model = da.load(write(tmp_path), root="floating")
    assert model.poses.names == ("home", "other:home")
    q = model.pose("home")
    np.testing.assert_array_equal(q, [0, 0, 0.5, 0, 0, 0, 1, 0, 0.3, -0.2])  # a quaternion (x, y, z, w)
    assert model.pose("other:home")[-1] == 0.7
    assert [line for line in model.report if 'pose "other:home"' in line and '"none"' in line]
    assert da.load(write(tmp_path)).pose("home").tolist() == [0.0, 0.3, -0.2]


def test_disabled_pairs_never_touch(tmp_path: Path) -> None:
    model = da.load(write(tmp_path, PAIR.format("a", "c") + PAIR.format("a", "gone")), root="floating")
    assert touching(model) == {"ad", "bd"}
    default = '<disable_default_collisions link="d"/><enable_collisions link1="d" link2="a"/>'
    assert touching(da.load(write(tmp_path, default), root="floating")) == {"ac", "ad"}


def test_a_file_is_found_by_the_name_of_the_file_or_of_the_robot(tmp_path: Path) -> None:
    urdf = write(tmp_path)
    assert da.load(urdf).poses
    assert not da.load(urdf, srdf=False).poses
    (tmp_path / "srdf" / "second.srdf").write_text(SRDF.format(pairs=""))
    assert not da.load(urdf).poses  # two files of that robot: neither is meant
    assert da.load(urdf, srdf=tmp_path / "srdf" / "second.srdf").poses
    (tmp_path / "srdf" / "chain.srdf").write_text(SRDF.format(pairs=PAIR.format("a", "c")))
    assert da.load(urdf).contact_exclusions
    (tmp_path / "b").mkdir()
    other = write(tmp_path / "b", where="srdf/x.srdf")
    (tmp_path / "b" / "srdf" / "x.srdf").write_text(SRDF.format(pairs="").replace("sample", "another"))
    assert not da.load(other).poses


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    urdf = write(tmp_path, where="secret.srdf")
    (tmp_path / "srdf").mkdir()
    (tmp_path / "srdf" / "chain.srdf").symlink_to(tmp_path / "secret.srdf")
    assert not da.load(urdf).poses


def test_broken_files_are_reported_when_found_and_refused_when_given(tmp_path: Path) -> None:
    urdf = write(tmp_path)
    file = tmp_path / "srdf" / "chain.srdf"
    for text, words in (
        ("<mujoco/>", "an SRDF file has <robot>"),
        ("<robot><group_state/></robot>", "'name'"),
    ):
        file.write_text(text)
        assert [
            line for line in da.load(urdf).report if line.startswith("warning: not used: ") and words in line
        ]
        with pytest.raises(FileError, match=words):
            da.load(urdf, srdf=file)
    with pytest.raises(ArgumentError, match="srdf is an option for URDF files"):
        da.load(tmp_path / "a.xml", srdf=file)
    with pytest.raises(FileError, match="No such file"):
        da.load(urdf, srdf=tmp_path / "missing.srdf")
