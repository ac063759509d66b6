"""MJCF files that must not be loaded, or not without a word: each with its message."""

from __future__ import annotations

import builtins
import os
from pathlib import Path
from typing import Any

import pytest

from dalembert.errors import FileError, MissingExtraError, UnknownNameError
from dalembert.formats.mjcf import load_mjcf

pytest.importorskip("mujoco")

BODY = '<body name="b"><joint name="j" axis="0 1 0"/><geom size=".1" pos=".1 0 0"/></body>'
SECOND = '<body name="c" pos="1 0 0"><joint name="k"/><geom size=".1"/></body>'


def write(folder: Path, text: str, name: str = "model.xml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def model(bodies: str = BODY, rest: str = "", head: str = "") -> str:
    return f"<mujoco>{head}<worldbody>{bodies}</worldbody>{rest}</mujoco>"


def spring(attributes: str) -> str:
    return BODY.replace('axis="0 1 0"', attributes)


TENDON = '<tendon><fixed name="t" {}><joint joint="j" coef="1"/></fixed></tendon>'

REFUSED = {
    "muscle": (model(rest='<actuator>\n<muscle name="m" joint="j"/></actuator>'), "line 2 column 1"),
    "general muscle": (
        model(
            rest='<actuator><general name="m" joint="j" biastype="muscle" lengthrange="0 1" '
            'biasprm=".75 1.05 -1 200 .5 1.6 1.5 1.3 1.2"/></actuator>'
        ),
        'actuator "m" is a muscle',
    ),
    "plugin": (model(head='<extension><plugin plugin="mujoco.pid"/></extension>'), "<extension> is not supp"),
    "flex": (model('<flexcomp name="f" type="grid" count="3 3 1" dim="2"/>'), "<flexcomp> is not supported"),
    "nonlinear spring": (model(spring('stiffness="1 2 0"')), 'joint "j" has a nonlinear spring'),
    "nonlinear damping": (model(spring('damping="1 2 0"')), 'joint "j" has nonlinear damping'),
    "plastic spring": (model(spring('stiffness="1" springyield="1"')), "plastic spring"),
    "tendon stiffness": (model(rest=TENDON.format('stiffness="1 2 0"')), 'tendon "t" has a nonlinear spr'),
    "tendon damping": (model(rest=TENDON.format('damping="1 2 0"')), 'tendon "t" has nonlinear damping'),
    "tendon armature": (model(rest=TENDON.format('armature="2"')), 'tendon "t" has armature'),
    "tendon friction": (model(rest=TENDON.format('frictionloss="2"')), 'tendon "t" has dry friction'),
    "polynomial": (
        model(BODY + SECOND, '<equality><joint joint1="j" joint2="k" polycoef="0 1 2 0 0"/></equality>'),
        "only a0 + a1 x",
    ),
    "spatial tendon equality": (
        model(
            BODY + SECOND + '<site name="p"/><site name="q" pos="1 0 0"/>',
            '<tendon><spatial name="t"><site site="p"/><site site="q"/></spatial></tendon>'
            '<equality><tendon tendon1="t"/></equality>',
        ),
        'the spatial tendon "t"',
    ),
    "gravity compensation of one": (
        model(BODY.replace('name="b"', 'name="b" gravcomp="1"') + SECOND),
        'worldbody/body[b]: body "b" has gravcomp',
    ),
    "no body": (model(""), "there is no body in the file"),
    "unknown class": (model('<body><joint class="x"/><geom size=".1"/></body>'), "unknown default class"),
    "keyframe": (model(rest='<keyframe><key qpos="1 2"/></keyframe>'), "invalid qpos size"),
    "replicate": (
        model(
            f'<replicate count="1000" offset="1 0 0"><replicate count="1000">{BODY}</replicate></replicate>'
        ),
        "makes 1e+06 copies",
    ),
    "texture": (
        model(
            head='<asset><texture name="t" type="2d" builtin="flat" width="100000" height="100000"/></asset>'
        ),
        "has 1e+10 samples",
    ),
    "doctype": ('<!DOCTYPE mujoco [<!ENTITY a "b">]>' + model(), "DOCTYPE"),
    "urdf": ('<robot name="r"/>', "this is URDF"),
    "sdf": ("<sdf/>", "this is SDF"),
    "truncated": (model()[:-20], "truncated"),
    "empty": ("", "is empty"),
    "no xml": ("mass = 3", "not XML"),
    "joint held and coupled": (
        model(
            BODY + SECOND,
            '<equality><joint joint1="j" joint2="k"/><joint joint1="j"/></equality>',
        ),
        "both held still and coupled",
    ),
    "coupled twice": (
        model(
            BODY + SECOND,
            '<equality><joint joint1="j" joint2="k"/><joint joint1="j" joint2="k"/></equality>',
        ),
        'both make joint "j" dependent',
    ),
    "missing mesh": (model(head='<asset><mesh file="no.stl"/></asset>'), "does not exist"),
    "mesh on the network": (model(head='<asset><mesh file="http://x/y.stl"/></asset>'), "on the network"),
    "absolute mesh": (model(head='<asset><mesh file="/etc/passwd"/></asset>'), "is an absolute path"),
    "mesh of another folder": (model(head='<asset><mesh file="../../y.stl"/></asset>'), "leads to"),
    "mesh folder outside": (
        model(head='<compiler meshdir="../.."/><asset><mesh file="y.stl"/></asset>'),
        "leads to",
    ),
    "absolute asset folder": (
        model(head='<compiler assetdir="/etc"/><asset><texture type="2d" file="passwd"/></asset>'),
        "is an absolute path",
    ),
    "cube texture": (
        model(head='<asset><texture name="t" type="cube" fileright="../../x.png"/></asset>'),
        "leads to",
    ),
    "include outside": (model(rest='<include file="../../x.xml"/>'), "leads to"),
    "include of itself": (model(rest='<include file="model.xml"/>'), "includes itself"),
    "include without a name": (model(rest="<include/>"), "is empty"),
    "attached model outside": (model(head='<asset><model file="../../x.xml"/></asset>'), "leads to"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_file_is_refused_with_its_reason(name: str, tmp_path: Path) -> None:
    text, message = REFUSED[name]
    file = write(tmp_path, text)
    with pytest.raises(FileError) as caught:
        load_mjcf(file)
    assert message in str(caught.value)
    assert "model.xml" in str(caught.value)


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="No such file"):
        load_mjcf(tmp_path / "none.xml")
    with pytest.raises(FileError, match="is a folder"):
        load_mjcf(tmp_path)


def test_devices_and_pipes_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.stl")
    file = write(tmp_path, model(head='<asset><mesh file="pipe.stl"/></asset>'))
    with pytest.raises(FileError, match="not a regular file"):
        load_mjcf(file)


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    secret = write(tmp_path, "<mujocoinclude><worldbody/></mujocoinclude>", "secret.xml")
    (tmp_path / "inside" / "link.xml").symlink_to(secret)
    file = write(tmp_path / "inside", model(rest='<include file="link.xml"/>'))
    with pytest.raises(FileError, match="leads to"):
        load_mjcf(file)
    assert load_mjcf(file, roots=[tmp_path]).nv == 1
    assert load_mjcf(file, trusted=True).nv == 1


def test_includes_are_followed_and_checked(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    write(tmp_path / "parts", f"<mujocoinclude>{BODY}</mujocoinclude>", "arm.xml")
    file = write(tmp_path, model('<include file="parts/arm.xml"/>'))
    assert load_mjcf(file).nv == 1
    write(tmp_path / "parts", '<mujocoinclude>\n<flex name="x"/></mujocoinclude>', "arm.xml")
    with pytest.raises(FileError, match=r"arm.xml line 2 column 1: mujocoinclude/flex"):
        load_mjcf(file)


def test_ring_of_attached_models_ends(tmp_path: Path) -> None:
    """MuJoCo itself crashes on it."""
    file = write(tmp_path, model(head='<asset><model name="m" file="other.xml"/></asset>'))
    write(tmp_path, model(head='<asset><model name="m" file="model.xml"/></asset>'), "other.xml")
    with pytest.raises(FileError, match=r"model.xml attaches itself"):
        load_mjcf(file)


def test_models_that_attach_each_other_twice_and_again_end(tmp_path: Path) -> None:
    for k in range(12):
        twice = "".join(f'<model name="{n}" file="m{k + 1}.xml"/>' for n in "ab")
        write(tmp_path, model(head=f"<asset>{twice}</asset>"), f"m{k}.xml")
    write(tmp_path, model(), "m12.xml")
    with pytest.raises(FileError, match="more than 500 models"):
        load_mjcf(tmp_path / "m0.xml")


def test_attached_models_are_loaded(tmp_path: Path) -> None:
    write(tmp_path, model(), "arm.xml")
    head = '<asset><model name="arm" file="arm.xml"/></asset>'
    file = write(
        tmp_path, model('<frame><attach model="arm" body="b" prefix="l/"/></frame>' + SECOND, head=head)
    )
    assert set(load_mjcf(file).joints.names) >= {"l/j", "k"}


def test_inertia_that_no_body_has_is_refused_or_repaired(tmp_path: Path) -> None:
    text = '<body name="b"><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 5"/></body>'
    file = write(tmp_path, model(text))
    with pytest.raises(FileError, match='inertia="repair"'):
        load_mjcf(file)
    assert load_mjcf(file, inertia="repair").body("b").inertia.mass == 1.0


def test_defaults_of_refused_elements_do_not_matter(tmp_path: Path) -> None:
    head = '<default><muscle ctrllimited="false"/></default>'
    assert load_mjcf(write(tmp_path, model(head=head))).nv == 1


def test_options_are_checked(tmp_path: Path) -> None:
    file = write(tmp_path, model())
    with pytest.raises(UnknownNameError, match="floating"):
        load_mjcf(file, root="float")
    with pytest.raises(UnknownNameError, match="as_given"):
        load_mjcf(file, inertia="given")


def test_root_that_cannot_float_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="joints of its own"):
        load_mjcf(write(tmp_path, model()), root="floating")
    with pytest.raises(FileError, match="there are 2"):
        load_mjcf(write(tmp_path, model(BODY + SECOND)), root="floating")


def test_wide_characters_are_read(tmp_path: Path) -> None:
    file = tmp_path / "model.xml"
    file.write_bytes(('<?xml version="1.0" encoding="UTF-16"?>' + model()).encode("utf-16"))
    assert load_mjcf(file).nv == 1


def test_names_may_be_missing_or_odd(tmp_path: Path) -> None:
    text = """<body><joint/><joint axis="1 0 0"/><geom size=".1"/><site/><site name="é /x"/>
      <body name="joint_0" pos="0 0 1"><joint name="body_1"/><geom size=".1"/></body></body>"""
    loaded = load_mjcf(write(tmp_path, model(text)))
    assert loaded.nv == 3
    assert loaded.frames.has("é /x")


def test_absent_compiler_is_named_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name == "mujoco":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'dalembert\[mjcf\]'"):
        load_mjcf(write(tmp_path, model()))
