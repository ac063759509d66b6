"""ASF/AMC files: the same motion as BVH is the same motion, and bad files are refused."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.motion.figures import (
    ACCLAIM_BONES,
    FRAMES,
    acclaim_as_bvh,
    acclaim_rows,
    acclaim_texts,
    evaluate_acclaim,
    loaded_places,
    saved,
    z_up,
)

from dalembert.errors import ArgumentError, FileError
from dalembert.motion import load_motion

LEAVES = ("foot", "head")


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    asf, amc = acclaim_texts(acclaim_rows())
    return saved(tmp_path, "own.asf", asf), saved(tmp_path, "own.amc", amc)


@pytest.mark.parametrize("rotations", ["quaternion", "euler"])
def test_bones_stand_where_matrices_put_them(pair: tuple[Path, Path], rotations: str) -> None:
    model, clip = load_motion(pair, rotations=rotations, scale=1.0)
    places = loaded_places(model, clip.q)
    for k, row in enumerate(acclaim_rows()):
        ends = evaluate_acclaim(row)
        for name in ("root", *ACCLAIM_BONES):
            np.testing.assert_allclose(places[name][k], z_up(ends[name][0]), atol=1e-9)
        for name in LEAVES:
            np.testing.assert_allclose(places[f"{name}_end"][k], z_up(ends[name][1]), atol=1e-9)


def test_the_same_motion_as_bvh_is_the_same(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    model, clip = load_motion(pair, scale=1.0, frame_time=0.01)
    other, same = load_motion(saved(tmp_path, "own.bvh", acclaim_as_bvh(acclaim_rows())))
    a, b = loaded_places(model, clip.q), loaded_places(other, same.q)
    assert set(a) == set(b)
    for name in a:
        np.testing.assert_allclose(a[name], b[name], atol=1e-9)
    np.testing.assert_allclose(clip.time, same.time)
    np.testing.assert_allclose(
        [body.inertia.mass for body in model.bodies],
        [other.body(body.name).inertia.mass for body in model.bodies],
        rtol=1e-9,
    )


def test_joints_follow_the_degrees_of_freedom(pair: tuple[Path, Path]) -> None:
    model, clip = load_motion(pair, up="z")
    kinds = {joint.name: joint.kind for joint in model.joints}
    assert kinds == {
        "root": "free", "hip": "fixed", "femur": "spherical", "tibia": "revolute", "foot": "universal",
        "back": "spherical", "head": "universal",
    }  # fmt: skip
    knee = [row["tibia"][0] for row in acclaim_rows()]
    np.testing.assert_allclose(np.degrees(clip.q[:, model.joint("tibia").q_slice][:, 0]), knee, atol=1e-9)
    euler = load_motion(pair, rotations="euler", up="z")[0]
    assert euler.joint("femur").joint.order == "zyx"  # x first, about fixed axes


def test_units_and_frame_time_are_reported(pair: tuple[Path, Path]) -> None:
    model, clip = load_motion(pair)
    assert clip.frame_time == pytest.approx(1.0 / 120.0)
    assert any("1/120 s" in line for line in model.report)
    assert any("0.0254 m" in line for line in model.report)
    assert any(line.startswith("ignored: limits") for line in model.report)
    length = pair[0].read_text().replace("length 1.0", "length 0.45")
    small = load_motion((saved(pair[0].parent, "cmu.asf", length), pair[1]))[0]
    step = small.body("tibia").placement.p.norm()
    assert step == pytest.approx(0.5 * 0.0254 / 0.45)


def test_radians_are_as_good_as_degrees(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    rows = acclaim_rows()
    turned = [
        {name: values[:3] + np.radians(values[3:]).tolist() if name == "root" else np.radians(values).tolist()
         for name, values in row.items()} for row in rows
    ]  # fmt: skip
    _, amc = acclaim_texts(turned)
    path = saved(tmp_path, "rad.amc", amc.replace(":DEGREES", ":RADIANS"))
    a, b = load_motion(pair)[1], load_motion((path, pair[0]))[1]
    np.testing.assert_allclose(a.q, b.q, atol=1e-12)


ASF_BAD = {
    "no section": (":hierarchy", "#:hierarchy", ":hierarchy|outside a bone"),
    "unknown section": (":hierarchy", ":hierachy", "nearest: .hierarchy"),
    "text first": ("# made by hand", "hello", "begins with a section"),
    "unknown bone": ("hip femur", "hip fermur", 'nearest: "femur"'),
    "two parents": ("tibia foot", "tibia foot head", "two parents"),
    "no parent": ("back head\n", "", 'bone "head" has no parent'),
    "cycle": ("root hip back", "root hip\nhead back", "cycle"),
    "root as child": ("hip femur", "hip femur root", "cannot be the child"),
    "same name": ("name tibia", "name femur", "has the name of the one in line"),
    "no name": ("name tibia\n", "", "no name"),
    "no direction": ("direction 0.6 -0.8 0.0", "direction 0.6 -0.8", "2 numbers; 3"),
    "zero direction": ("direction 0.6 -0.8 0.0", "direction 0 0 0", "direction zero"),
    "negative length": ("length 0.45", "length -0.45", "cannot be negative"),
    "nan": ("length 0.45", "length nan", "finite"),
    "bad axis": ("axis 5.0 6.0 7.0 XYZ", "axis 5.0 6.0 7.0 XYX", "order of the axis"),
    "changing length": ("dof rx ry rz", "dof rx ry l", "change their length"),
    "dof twice": ("dof rx rz", "dof rx rx", "twice"),
    "root on a rail": ("order TX TY TZ", "order TX TY", "all of them"),
    "angle": ("angle deg", "angle gon", "deg or rad"),
    "unit": ("length 1.0", "length -1", "positive"),
    "unknown entry": ("dof rx rz", "dofs rx rz", 'nearest: "dof"'),
    "end missing": ("end\n:hierarchy", ":hierarchy", "no end"),
    "nul": ("name tibia", "name ti\0bia", "NUL"),
}
AMC_BAD = {
    "wrong width": ("\ntibia ", "\ntibia 1.0 ", '"tibia", has 2 numbers; 1 are'),
    "nan": ("\ntibia ", "\ntibia nan\n#", "finite"),
    "unknown bone": ("\ntibia ", "\ntibai ", 'nearest: "tibia"'),
    "bone without dof": ("\ntibia ", "\nhip ", "unknown bone with degrees of freedom"),
    "bone twice": ("\ntibia ", "\nroot 0 0 0 0 0 0\ntibia ", 'frame 1 has bone "root" twice'),
    "bone missing": ("\ntibia ", "\n# ", 'no values for bone "tibia"'),
    "order of frames": ("\n3\n", "\n4\n", "frame 4 follows frame 2"),
    "no frame number": ("\n1\n", "\n", "frame number is expected"),
    "option": (":DEGREES", ":GRADES", "unknown option"),
    "word": ("\n3\n", "\nthree\n", "not 'three'"),
}


@pytest.mark.parametrize("case", ASF_BAD)
def test_bad_skeletons_are_refused_with_line_and_reason(pair: tuple[Path, Path], case: str) -> None:
    old, new, message = ASF_BAD[case]
    text = pair[0].read_text()
    assert old in text
    pair[0].write_text(text.replace(old, new, 1))
    with pytest.raises(FileError, match=rf"own\.asf line \d+: .*({message})"):
        load_motion(pair)


@pytest.mark.parametrize("case", AMC_BAD)
def test_bad_motions_are_refused_with_line_and_reason(pair: tuple[Path, Path], case: str) -> None:
    old, new, message = AMC_BAD[case]
    text = pair[1].read_text()
    assert old in text
    pair[1].write_text(text.replace(old, new, 1))
    with pytest.raises(FileError, match=rf"own\.amc line \d+: .*({message})"):
        load_motion(pair)


def test_truncated_motion_is_refused(pair: tuple[Path, Path]) -> None:
    lines = pair[1].read_text().splitlines()
    pair[1].write_text("\n".join(lines[:-2]))
    with pytest.raises(FileError, match=f"frame {FRAMES} has no values.*truncated"):
        load_motion(pair)
    pair[1].write_text("\n".join(lines[:3]))
    with pytest.raises(FileError, match="no frames"):
        load_motion(pair)


def test_one_of_the_two_files_alone_is_refused(pair: tuple[Path, Path]) -> None:
    with pytest.raises(ArgumentError, match="two files"):
        load_motion(pair[0])


def test_mutated_files_never_escape_as_other_errors(pair: tuple[Path, Path]) -> None:
    rng = np.random.default_rng(6)
    texts = [path.read_bytes() for path in pair]
    for trial in range(200):
        which = trial % 2
        content = bytearray(texts[which])
        for _ in range(rng.integers(1, 5)):
            where = int(rng.integers(len(content)))
            if rng.random() < 0.5:
                content[where] = int(rng.integers(256))
            else:
                del content[where : where + int(rng.integers(1, 60))]
        pair[which].write_bytes(bytes(content))
        with suppress(FileError):
            load_motion(pair)
        pair[which].write_bytes(texts[which])
