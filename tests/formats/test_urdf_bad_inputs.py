"""URDF files that are wrong: each is refused, or reported, in words that say what and where."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest
from tests.formats.urdf_files import BOX, arm, joint, link, menagerie, mutated, robot

import dalembert as da
from dalembert.errors import DalembertError, FileError, UnknownNameError
from dalembert.formats.urdf import load_urdf
from dalembert.formats.urdf.elements import letters_apart
from dalembert.model import Model

AXIS = '<axis xyz="0 0 1"/>'
LIMIT = '<limit lower="-1" upper="1" velocity="2" effort="3"/>'
SHOULDER = joint("shoulder", "base", "upper")


def load(text: str, **options: Any) -> Model:
    return load_urdf(text.encode(), name="bad.urdf", **options)


def refused(text: str, words: str, *, line: int | None = None) -> None:
    with pytest.raises(FileError, match=words) as raised:
        load(text)
    message = str(raised.value)
    assert message.startswith("bad.urdf line ")
    assert line is None or message.startswith(f"bad.urdf line {line} ")


def reported(text: str, words: str) -> Model:
    model = load(text)
    assert any(words in line for line in model.report), model.report
    return model


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("<sdf version='1.6'/>", "SDF, which is not supported; convert it to URDF"),
        ("<mujoco/>", r"this is MJCF; give the file the ending \.xml"),
        ("<html/>", "the root element is <html>; a URDF file has <robot>"),
        (
            '<robot xmlns:xacro="x"><xacro:include filename="a"/></robot>',
            "xacro macro.*expand the file first",
        ),
        ("<robot name='x'/>", "there is no <link>"),
        (robot(link("a")), 'no link moves.*root="floating"'),
    ],
)
def test_files_that_hold_another_thing_name_the_right_tool(content: str, words: str) -> None:
    refused(content, words)


@pytest.mark.parametrize("ending", [".xacro", ".sdf", ".bvh", ".amc"])
def test_endings_of_other_formats_name_the_right_tool(tmp_path: Path, ending: str) -> None:
    with pytest.raises(FileError, match=r"run: xacro x.xacro > x.urdf|convert|load_motion"):
        da.load(tmp_path / f"x{ending}")
    with pytest.raises(FileError, match=r"run: xacro a.urdf.xacro > a.urdf, and load a.urdf"):
        da.load(tmp_path / "a.urdf.xacro")


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        (arm(link("upper")), 'a second link "upper"; the first is on line 4', 8),
        (arm(joint("elbow", "base", "lower")), 'a second joint "elbow"; the first is on line 7', 8),
        (arm(joint("x", "base", "lower")), 'child of two joints, "elbow" .line 7. and "x".*add_loop', 8),
        (arm(link("a"), link("b")), 'the links "base" .line 3., "a" .line 8., "b" .* one root', 8),
        (
            arm(link("a"), link("b"), joint("ab", "a", "b"), joint("ba", "b", "a")),
            '"a" -> "b" -> "a" form a cycle|"b" -> "a" -> "b" form a cycle',
            None,
        ),
        (
            robot(link("a"), link("b"), joint("ab", "a", "b"), joint("ba", "b", "a")),
            "form a cycle; URDF holds trees only",
            None,
        ),
        (arm(link("a"), joint("j", "uper", "a")), 'names parent link "uper", which.*nearest: "upper"', 9),
        (arm(joint("j", "upper", "lowr")), 'names child link "lowr", which.*nearest: "lower"', 8),
        (arm(link("a"), joint("j", "a", "a")), 'joint "j" connects link "a" to itself', 9),
        (arm(link("")), "attribute 'name' is empty", 8),
        (arm("<link/>"), "attribute 'name' is missing", 8),
        (arm(link("a"), joint("", "lower", "a")), "attribute 'name' is empty", 9),
        (
            arm(link("a"), joint("j", "lower", "a", "hinge")),
            'unknown type of joint "j", "hinge"; valid: "revolute"',
            9,
        ),
        (arm(link("a"), joint("j", "lower", "a", "prismatc")), 'nearest: "prismatic"', 9),
        (
            arm(link("a"), '<joint name="j" type="fixed"><parent link="lower"/></joint>'),
            'joint "j" has no <child>',
            9,
        ),
        (arm(link("a"), '<joint name="j"><child link="lower"/></joint>'), "attribute 'type' is missing", 9),
        (arm(link("a"), joint("j", "lower", "a", more=AXIS + LIMIT * 2)), "a second <limit>", 9),
    ],
)
def test_trees_that_are_none_are_refused(text: str, words: str, line: int | None) -> None:
    refused(text, words, line=line)


@pytest.mark.parametrize(
    ("kind", "mimic", "words"),
    [
        ("revolute", '<mimic joint="wrist"/>', 'joint "wrist" mimics itself'),
        ("revolute", '<mimic joint="elbw"/>', 'mimics "elbw", which does not exist; nearest: "elbow"'),
        (
            "revolute",
            '<mimic joint="follower"/>',
            '"wrist" -> "follower" -> "wrist" mimic each other in a cycle',
        ),
        ("revolute", '<mimic joint="float"/>', 'mimics "float", a floating joint'),
        ("planar", '<mimic joint="elbow"/>', "a planar joint cannot mimic"),
        ("revolute", "<mimic/>", "attribute 'joint' is missing"),
    ],
)
def test_mimics_of_nothing_are_refused(kind: str, mimic: str, words: str) -> None:
    text = arm(
        link("a"),
        joint("wrist", "lower", "a", kind, AXIS + LIMIT + mimic),
        link("b"),
        joint("follower", "lower", "b", "revolute", AXIS + LIMIT + '<mimic joint="wrist"/>'),
        link("c"),
        joint("float", "lower", "c", "floating", ""),
    )
    refused(text, words, line=11 if "cycle" in words else 9)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('xyz="0.1 -0.05 0.2"', 'xyz="nan 0 0"', "attribute xyz holds 'nan'; give a finite number"),
        ('xyz="0.1 -0.05 0.2"', 'xyz="-inf 0 0"', "holds '-inf'; give a finite number"),
        ('xyz="0.1 -0.05 0.2"', 'xyz="1e400 0 0"', "'1e400', which is too large"),
        ('value="1.5"', 'value="1,5"', "holds '1,5'; decimals are written with a point"),
        ('value="1.5"', 'value="1.5kg"', "holds '1.5kg'; give a number"),
        ('value="1.5"', 'value="1_5"', "holds '1_5'"),
        ('value="1.5"', 'value="${mass}"', "xacro expression"),
        ('value="1.5"', 'value=""', "holds 0 numbers"),
        ('value="1.5"', "", "attribute 'value' is missing"),
        ('value="1.5"', 'value="-1.5"', "the mass is -1.5 kg; it must not be negative"),
        ('xyz="0.1 -0.05 0.2"', 'xyz="0.1 0.2"', "xyz holds 2 numbers, '0.1 0.2'; give 3 numbers"),
        ('rpy="0.3 -0.4 0.5"', 'rpy="1 2 3 4"', "rpy holds 4 numbers"),
        ('xyz="0 0 1"', 'xyz="0 0 0"', "the axis is zero; give a direction"),
        ('lower="-1" upper="1"', 'lower="1" upper="-1"', "lower 1 is above upper -1; exchange them"),
        ('velocity="2"', 'velocity="-2"', "velocity is -2; it must not be negative"),
        ('<mass value="1.5"/>', "", "there is no <mass>"),
        (BOX, "", "there is no <inertia>"),
        ('ixy="0.001"', "", "attribute 'ixy' is missing"),
        ("</inertial>", "</inertial><visual/>", "there is no <geometry>"),
        ('rpy="0.1 -0.2 0.3"', 'quat_xyzw="0 0 0 0"', "length 0; a rotation has length 1"),
        ("</joint>", '<dynamics damping="-1"/></joint>', "damping is -1; it must not be negative"),
    ],
)  # fmt: skip
def test_numbers_that_are_none_are_refused(old: str, new: str, words: str) -> None:
    assert old in arm()
    refused(arm().replace(old, new, 1), words)


@pytest.mark.parametrize(
    ("geometry", "words"),
    [
        ('<box size="1 0 1"/>', "give a finite positive number"),
        ('<sphere radius="-1"/>', "give a finite positive number"),
        ('<sphere radius="0"/>', "give a finite positive number"),
        ('<cylinder radius="1"/>', "attribute 'length' is missing"),
        ('<capsule radius="1" length="0"/>', "give a finite positive number"),
        ('<mesh filename=""/>', "filename is empty"),
        ('<mesh filename="a.stl" scale="0 1 1"/>', "none zero"),
        ('<box size="1 1 1"/><sphere radius="1"/>', "a second geometry"),
    ],
)
@pytest.mark.parametrize("tag", ["visual", "collision"])
def test_sizes_that_are_none_are_refused(tag: str, geometry: str, words: str) -> None:
    shape = f"<{tag}><geometry>{geometry}</geometry></{tag}>"
    refused(arm(link("a", shape), joint("f", "lower", "a", "fixed", "")), words, line=8)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("<inertial>", "<inertail>", "unknown tag <inertail> looks like a misspelling of 'inertial'"),
        ("<mass ", "<mas ", "misspelling of 'mass'"),
        ("<limit ", "<limits ", "misspelling of 'limit'"),
        ("<axis ", "<Axis ", "misspelling of 'axis'"),
        ("lower=", "lowre=", "attribute 'lowre' looks like a misspelling of 'lower'"),
        ("rpy=", "rpi=", "misspelling of 'rpy'"),
        ("</joint>", "<dynamic damping='1'/></joint>", "misspelling of 'dynamics'"),
        ("</joint>", "<dynamics dampling='1'/></joint>", "misspelling of 'damping'"),
        ("<link ", "<Link ", "misspelling of 'link'"),
    ],
)
def test_misspellings_of_what_matters_are_refused(old: str, new: str, words: str) -> None:
    text = arm().replace(old, new, 1)
    if new.startswith(("<inertail", "<Link")):
        close = f"</{old.strip('<> ')}>"
        text = text.replace(close, f"</{new.strip('<> ')}>", 1)
    refused(text, words)


def test_misspellings_of_looks_are_only_listed() -> None:
    visual = '<visual><materiel/><geometry><box size="1 1 1"/></geometry></visual>'
    reported(arm(link("a", visual), joint("f", "lower", "a", "fixed", "")), "ignored: <materiel> in <visual>")


def test_letters_are_counted_as_edits() -> None:
    for a, b, n in (("mass", "mass", 0), ("mass", "mas", 1), ("lower", "lowre", 1), ("axis", "axes", 1)):
        assert letters_apart(a, b, 2) == letters_apart(b, a, 2) == n
    assert letters_apart("link", "sensor", 2) == 3
    assert letters_apart("", "abc", 2) == 3
    assert letters_apart("ab", "ba", 2) == 1


def test_numbers_that_are_finite_one_by_one_only_are_refused() -> None:
    huge = arm().replace('value="1.5"', 'value="1e308"', 1).replace('xyz="0.1 -0.05 0.2"', 'xyz="100 0 0"', 1)
    refused(huge, "every number of a model must be finite")


def test_doubtful_values_are_reported_and_used() -> None:
    assert load(arm()).report == ()
    model = reported(
        arm().replace('xyz="0 0 1"', 'xyz="0 3 4"', 1), "the axis 0 3 4 has length 5; it is normalised"
    )
    assert [*model.body("upper").joint.axis] == pytest.approx([0.0, 0.6, 0.8])  # type: ignore[attr-defined]
    reported(arm().replace(LIMIT, "", 1), "a revolute joint without <limit>")
    reported(arm().replace('lower="-1" upper="1" ', "", 1), "neither lower nor upper is given")
    reported(arm().replace('lower="-1"', 'lower="0.5"', 1), "the neutral position is outside the limits")
    tall = '<visual><geometry><box size="0.001 0.001 0.001"/></geometry></visual>'
    inertial = f'<inertial><mass value="0.001"/>{BOX}</inertial>'
    reported(arm(link("a", inertial + tall), joint("j", "lower", "a")), "check the units of its inertia")
    reported(
        arm(link("a", ""), joint("j", "lower", "a", "continuous", AXIS + LIMIT)),
        "lower limit of a continuous",
    )


@pytest.mark.parametrize("body", ["", f'<inertial><mass value="0"/>{BOX.replace("0.0", "0.")}</inertial>'])
def test_a_weightless_moving_leaf_loads_and_stops_forward_dynamics(body: str) -> None:
    if body:
        body = (
            '<inertial><mass value="0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>'
        )
    model = reported(arm(link("tip", body), joint("wrist", "lower", "tip")), "its acceleration is undefined")
    with pytest.raises(DalembertError, match="wrist"):
        da.forward_dynamics(model, model.neutral(), [0.0] * 3, [0.0] * 3)
    reported(
        arm(
            link("a", ""), joint("wrist", "lower", "a"), link("b", ""), joint("end", "a", "b", "floating", "")
        ),
        'joint "wrist" moves link "a", which has no mass and carries none',
    )


def test_options_that_are_none_are_named() -> None:
    with pytest.raises(UnknownNameError, match=r'unknown root "free".*"floating"'):
        load(arm(), root="free")
    with pytest.raises(UnknownNameError, match=r'unknown inertia option "fix".*"repair"'):
        load(arm(), inertia="fix")


def with_mesh(filename: str) -> str:
    visual = f'<visual><geometry><mesh filename="{filename}"/></geometry></visual>'
    return arm(link("a", visual), joint("f", "lower", "a", "fixed", ""))


@pytest.mark.parametrize(
    "filename",
    [
        "/etc/hostname",
        "file:///etc/hostname",
        "~/x.stl",
        "http://a/b.stl",
        "https://a/b.stl",
        "package://../../x.stl",
    ],
)
def test_meshes_in_forbidden_places_are_refused(tmp_path: Path, filename: str) -> None:
    file = tmp_path / "x.urdf"
    file.write_text(with_mesh(filename), encoding="utf-8")
    with pytest.raises(FileError, match=r"x\.urdf line 8 .*mesh: "):
        da.load(file)


@pytest.mark.parametrize(
    "filename", ["a.stl", "package://arm/a.stl", "package:///arm/a.stl", "../meshes/a.stl"]
)
def test_meshes_that_are_not_there_are_reported(tmp_path: Path, filename: str) -> None:
    file = tmp_path / "x.urdf"
    file.write_text(with_mesh(filename), encoding="utf-8")
    model = da.load(file)
    assert any("x.urdf line 8" in line and "mesh: " in line for line in model.report)
    assert model.body("lower").shapes[0].path == filename  # type: ignore[attr-defined]


def test_hostile_files_are_refused_soon() -> None:
    """Long names, many unknown tags, long rings of mimics: linear work, and short messages."""
    start = time.perf_counter()
    refused(robot(link("a"), joint("j", "x" * 60_000, "a")), "does not exist")
    for word in ("1" * 60_000 + "x", "1." * 30_000, "1e" * 30_000, "1," * 30_000):
        refused(arm().replace('value="1.5"', f'value="{word}"', 1), "attribute value holds '1")
    model = load(arm(*(f"<tag{i}/>" for i in range(3000))))
    assert len(model.report) < 300
    followers = []
    for i in range(300):
        followers.append(link(f"f{i}"))
        mimic = f'<mimic joint="{f"g{i - 1}" if i else "elbow"}"/>'
        followers.append(joint(f"g{i}", "lower", f"f{i}", "revolute", AXIS + LIMIT + mimic))
    assert load(arm(*followers)).nv == 2
    print(f"{time.perf_counter() - start:.2f} s")


@pytest.mark.parametrize("seed", range(6))
def test_injured_files_raise_only_our_own_errors(seed: int) -> None:
    rng = random.Random(seed)
    sources = (menagerie(), arm(), menagerie("0.6 0 -0.8"))
    messages = []
    for _ in range(50):
        content = mutated(rng.choice(sources), rng)
        root, inertia = rng.choice([None, "floating"]), rng.choice(["as_given", "strict", "repair"])
        try:
            load_urdf(content, name="injured.urdf", root=root, inertia=inertia)  # type: ignore[arg-type]
            messages.append("")
        except DalembertError as error:
            messages.append(str(error))
    assert 0 < messages.count("") < len(messages)
    assert all("injured.urdf" in message for message in messages if message)
