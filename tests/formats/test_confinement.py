"""What is examined is what is used: no name, encoding or format of a model file leads out of its folders."""

from __future__ import annotations

import json
import os
import pickle
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.formats.test_document import walk

import dalembert as da
from dalembert.errors import DalembertError, FileError
from dalembert.formats.mjcf.files import MAX_ASSET_BYTES, mjcf_text_of, read_source
from dalembert.model.shapes import Mesh
from dalembert.model.shapes.convex_hull import hull_of

DECOY, SECRET = 1.0, 2.0
"""Sizes of the tetrahedra that may, and may not, be read."""
DENSITY = 1000.0
BODY = '<body name="b"><joint/><geom type="mesh" mesh="m"/></body>'


def tetrahedron(size: float) -> bytes:
    """Return a binary STL file."""
    points = size * np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], "<f4")
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    records = (b"\0" * 12 + b"".join(points[i].tobytes() for i in face) + b"\0\0" for face in faces)
    return b"\0" * 80 + struct.pack("<I", len(faces)) + b"".join(records)


def mass(size: float) -> float:
    return DENSITY * size**3 / 6.0


def model(name: str, *, head: str = "", body: str = BODY) -> str:
    asset = f'<asset><mesh name="m" file="{name}"/></asset>'
    return f"<mujoco>{head}{asset}<worldbody>{body}</worldbody></mujoco>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of a model; the secret lies beside it."""
    (tmp_path / "secret.stl").write_bytes(tetrahedron(SECRET))
    (tmp_path / "model").mkdir()
    return tmp_path / "model"


def loaded_mass(file: Path) -> float | None:
    """Return the mass of the model's body; None where the file is refused."""
    try:
        return float(da.load(file).bodies["b"].inertia.mass)
    except DalembertError:
        return None


def test_text_that_other_parsers_see_is_not_what_is_compiled(folder: Path) -> None:
    """MuJoCo got the text after the last '?>' of a UTF-16 file."""
    evil = model(str(folder.parent / "secret.stl"))
    plain = '<worldbody><body name="b"><joint/><geom size="1" mass="3"/></body></worldbody>'
    text = f'<?xml version="1.0" encoding="utf-16"?><mujoco>{plain}<!-- ?>{evil}<!-x --></mujoco>'
    (folder / "a.xml").write_bytes(text.encode("utf-16"))
    assert loaded_mass(folder / "a.xml") == pytest.approx(3.0)


def test_utf_16_files_find_their_meshes(folder: Path) -> None:
    (folder / "m.stl").write_bytes(tetrahedron(DECOY))
    (folder / "a.xml").write_bytes(model("m.stl").encode("utf-16"))
    assert loaded_mass(folder / "a.xml") == pytest.approx(mass(DECOY))


@pytest.mark.skipif(sys.platform == "win32", reason="backslashes separate folders there")
def test_backslashes_separate_folders_whatever_files_are_called(folder: Path) -> None:
    (folder / "..\\secret.stl").write_bytes(tetrahedron(DECOY))
    (folder / "a.xml").write_text(model("..\\secret.stl"))
    with pytest.raises(FileError, match="leads to"):
        da.load(folder / "a.xml")
    (folder / "meshes").mkdir()
    (folder / "meshes" / "m.stl").write_bytes(tetrahedron(DECOY))
    (folder / "a.xml").write_text(model("meshes\\m.stl"))
    assert loaded_mass(folder / "a.xml") == pytest.approx(mass(DECOY))


@pytest.mark.skipif(sys.platform == "win32", reason="no such names of files there")
@pytest.mark.parametrize("character", ["&#10;", "&#13;", "&#9;", "&#x85;", "&#x2028;"])
def test_line_breaks_in_names_are_refused(folder: Path, character: str) -> None:
    (folder / "a.xml").write_text(model(f"m{character}.stl"))
    with pytest.raises(FileError, match="control character"):
        da.load(folder / "a.xml")


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")
def test_a_link_and_back_is_refused(folder: Path) -> None:
    """The system takes `link/..` for the folder above the link's target, others for the link's own."""
    (folder / "deep" / "deeper").mkdir(parents=True)
    (folder / "deep" / "m.stl").write_bytes(tetrahedron(DECOY))
    (folder / "link").symlink_to(folder / "deep" / "deeper")
    (folder / "m.stl").symlink_to(folder.parent / "secret.stl")
    (folder / "a.xml").write_text(model("link/../m.stl"))
    with pytest.raises(FileError, match="symbolic link and back"):
        da.load(folder / "a.xml")


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names of files are Unicode there")
def test_names_in_latin_1_mean_the_file_that_was_examined(folder: Path) -> None:
    (folder / "m\u00e9.stl").write_bytes(tetrahedron(DECOY))
    os.symlink(bytes(folder.parent / "secret.stl"), bytes(folder) + b"/m\xe9.stl")
    text = '<?xml version="1.0" encoding="iso-8859-1"?>' + model("m\u00e9.stl")
    (folder / "a.xml").write_bytes(text.encode("latin-1"))
    assert loaded_mass(folder / "a.xml") == pytest.approx(mass(DECOY))


@pytest.mark.parametrize("tag", ["include", "Include", "INCLUDE"])
def test_includes_in_any_case_of_letters_are_confined(folder: Path, tag: str) -> None:
    part = f"<mujocoinclude>{BODY}</mujocoinclude>"
    (folder.parent / "part.xml").write_text(part)
    (folder / "m.stl").write_bytes(tetrahedron(DECOY))
    (folder / "a.xml").write_text(model("m.stl", body=f'<{tag} file="../part.xml"/>'))
    with pytest.raises(FileError, match="leads to"):
        da.load(folder / "a.xml")
    (folder / "part.xml").write_text(part)
    (folder / "a.xml").write_text(model("m.stl", body=f'<{tag} file="part.xml"/>'))
    assert loaded_mass(folder / "a.xml") == pytest.approx(mass(DECOY))


def test_the_compiler_is_given_no_name_that_it_could_open(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file in the text is an asset, and files of the same names where the process runs are not read."""
    (folder / "meshes").mkdir()
    (folder / "meshes" / "m.stl").write_bytes(tetrahedron(DECOY))
    (folder / "arm.xml").write_text(model("meshes/m.stl").replace('name="b"', 'name="x"'))
    head = (
        '<compiler meshdir="meshes" texturedir="pictures" strippath="false"/>'
        '<asset><texture name="t" type="2d" file="p.png"/><material name="q" texture="t"/>'
        '<model name="arm" file="arm.xml"/></asset>'
    )
    (folder / "pictures").mkdir()
    (folder / "pictures" / "p.png").write_bytes(b"no picture at all")
    body = BODY + '<frame><attach model="arm" body="x" prefix="l/"/></frame>'
    (folder / "a.xml").write_text(model("m.stl", head=head, body=body))
    source = read_source(folder / "a.xml", [], trusted=False)
    texts = [source.text.xml, *(text.decode() for name, text in source.assets.items() if "model_" in name)]
    named = [piece.split('"')[0] for text in texts for piece in text.split('file="')[1:]]
    assert len(named) == 3
    assert set(named) == set(source.assets)
    assert not any(word in text for text in texts for word in ("dir=", "strippath", ".png", "include"))
    decoys = folder.parent / "decoys"
    decoys.mkdir()
    for name in named:
        (decoys / name).write_bytes(tetrahedron(SECRET))
    monkeypatch.chdir(decoys)
    for inertia in ("as_given", "repair"):
        loaded = da.load(folder / "a.xml", inertia=inertia)
        assert [float(body.inertia.mass) for body in loaded.bodies] == pytest.approx([mass(DECOY)] * 2)


def test_assets_of_the_same_file_name_are_not_mixed_up(folder: Path) -> None:
    """MuJoCo keeps decoded meshes by name, also from one model to the next."""
    for size in (1.0, 2.0, 1.0):
        (folder / "m.stl").write_bytes(tetrahedron(size))
        (folder / "a.xml").write_text(model("m.stl"))
        assert loaded_mass(folder / "a.xml") == pytest.approx(mass(size))


def test_the_text_is_the_tree_that_was_examined(folder: Path) -> None:
    """Odd characters in attributes reach MuJoCo as they are; comments, texts and instructions do not."""
    name = "a&amp;b&lt;c&gt;&quot;d&apos;&#10;e&#9;f \u00e9 \U0001f600"
    text = f'<mujoco><?x <include file="y"/> ?><!-- <plugin/> -->some text<worldbody><body name="{name}">'
    text += '<joint/><geom size="1"/></body></worldbody></mujoco>'
    (folder / "a.xml").write_text(text, encoding="utf-8")
    assert [body.name for body in da.load(folder / "a.xml").bodies] == ["a&b<c>\"d'\ne\tf \u00e9 \U0001f600"]
    written = read_source(folder / "a.xml", [], trusted=False).text.xml
    assert not any(word in written for word in ("include", "plugin", "text"))


def test_messages_of_the_compiler_name_the_lines_of_the_files(folder: Path) -> None:
    (folder / "part.xml").write_text('<mujocoinclude>\n\n\n<body>\n<geom type="box"/></body></mujocoinclude>')
    (folder / "a.xml").write_text('<mujoco>\n<worldbody>\n<include file="part.xml"/></worldbody></mujoco>')
    with pytest.raises(FileError, match=r"part\.xml line 5"):
        da.load(folder / "a.xml")
    (folder / "m.stl").write_bytes(b"solid nonsense")
    (folder / "a.xml").write_text(model("m.stl"))
    with pytest.raises(FileError, match=r"m\.stl"):
        da.load(folder / "a.xml")


def test_sums_of_sizes_are_bounded_before_reading(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (folder / "m.stl").open("wb") as file:
        file.truncate(MAX_ASSET_BYTES // 2 + 1)  # sparse: it takes no room
    twice = '<mesh name="n" file="m.stl"/>'
    (folder / "a.xml").write_text(model("m.stl").replace("<asset>", f"<asset>{twice}"))
    monkeypatch.setattr("dalembert.formats.mjcf.files.read_regular_file", lambda *_, **__: b"")
    with pytest.raises(FileError, match="bytes are read for one model"):
        da.load(folder / "a.xml")


def test_pictures_of_heights_are_bounded_before_they_are_unpacked(folder: Path) -> None:
    header = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 60_000, 60_000) + b"\x10\0\0\0\0"
    (folder / "h.png").write_bytes(header)
    (folder / "a.xml").write_text(
        '<mujoco><asset><hfield name="h" file="h.png" size="1 1 1 1"/></asset></mujoco>'
    )
    with pytest.raises(FileError, match="60000 x 60000 samples"):
        da.load(folder / "a.xml")


@pytest.mark.parametrize("ending", [".zip", ".mjz", ".xml", ""])
def test_only_meshes_reach_the_decoders(folder: Path, ending: str) -> None:
    (folder / f"m{ending}").write_bytes(b"PK")
    (folder / "a.xml").write_text(model(f"m{ending}"))
    with pytest.raises(FileError, match="not a mesh that MuJoCo reads"):
        da.load(folder / "a.xml")


def with_mesh(path: str) -> da.Model:
    builder = da.ModelBuilder()
    inertia = da.RigidInertia(1.0, (0.0, 0.0, 0.0), ((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    builder.add_body("b", "world", da.Revolute((0, 0, 1)), inertia=inertia)
    builder.add_shape("b", Mesh(path))
    return builder.build()


def embeds(motion: object, folder: Path) -> bool:
    """Return whether a recording holds a mesh."""
    return '"kind":"mesh"' in da.viewer.record(motion, folder / "page.html").read_text()


def test_meshes_of_saved_models_obey_the_same_folders(folder: Path) -> None:
    secret = str(folder.parent / "secret.stl")
    assert embeds(with_mesh(secret), folder), "the test sees a mesh that is embedded"
    (folder / "a.json").write_text(with_mesh(secret).to_json())
    with pytest.raises(FileError, match="absolute path"):
        da.load(folder / "a.json")
    for name in ("../secret.stl", "file://" + secret, "http://x/secret.stl", "~/secret.stl"):
        (folder / "a.json").write_text(with_mesh(name).to_json())
        with pytest.raises(FileError, match='mesh of "b"'):
            da.load(folder / "a.json")
    (folder / "a.json").write_text(with_mesh(secret).to_json())
    assert embeds(da.load(folder / "a.json", roots=[folder.parent]), folder)
    assert embeds(da.load(folder / "a.json", trusted=True), folder)


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")
def test_links_and_pipes_in_saved_models_are_refused(folder: Path) -> None:
    (folder / "link.stl").symlink_to(folder.parent / "secret.stl")
    os.mkfifo(folder / "pipe.stl")
    for name in ("link.stl", "pipe.stl", str(folder / "link.stl")):
        (folder / "a.json").write_text(with_mesh(name).to_json())
        with pytest.raises(FileError):
            da.load(folder / "a.json")


def test_a_model_and_its_meshes_move_together(folder: Path) -> None:
    (folder / "m.stl").write_bytes(tetrahedron(DECOY))
    saved = with_mesh(str((folder / "m.stl").resolve()))
    da.save(saved, folder / "a.json")
    assert da.load(folder / "a.json") == saved
    moved = folder.rename(folder.parent / "moved")
    shape = da.load(moved / "a.json").bodies["b"].shapes[0]
    assert isinstance(shape, Mesh)
    assert Path(shape.path) == (moved / "m.stl").resolve()


def test_a_file_cannot_say_that_its_mesh_may_be_read(folder: Path) -> None:
    content = json.loads(with_mesh("../secret.stl").to_json())
    content["bodies"][0]["shapes"][0]["readable"] = True
    with pytest.raises(DalembertError, match="readable"):
        da.Model.from_json(json.dumps(content))


def test_meshes_of_trajectories_are_read_in_the_same_folders_only(folder: Path) -> None:
    found = with_mesh(str(folder.parent / "secret.stl"))
    q = np.zeros((3, 1))
    da.Trajectory(found, np.arange(3.0), q, q, q[1:]).save(folder / "a.npz")
    back = da.Trajectory.load(folder / "a.npz")
    assert back.model == found
    assert any("secret.stl" in line for line in back.model.report)
    assert not embeds(back, folder)
    with pytest.raises(FileError, match="outside the folders"):
        hull_of(back.model.bodies["b"].shapes[0])  # type: ignore[arg-type]
    assert embeds(da.Trajectory.load(folder / "a.npz", roots=[folder.parent]), folder)
    assert embeds(da.Trajectory.load(folder / "a.npz", trusted=True), folder)


def test_a_mesh_that_climbs_out_of_the_folder_is_never_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """URDF files with `../meshes` load without their meshes, wherever the process runs."""
    (folder / "a.urdf").write_text(
        '<robot name="r"><link name="a"/><link name="b"><visual><geometry><mesh filename="../secret.stl"/>'
        '</geometry></visual><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" '
        'iyz="0"/></inertial></link><joint name="j" type="continuous"><parent link="a"/><child link="b"/>'
        "</joint></robot>"
    )
    monkeypatch.chdir(folder)
    loaded = da.load(folder / "a.urdf")
    assert not embeds(loaded, folder)
    assert not embeds(loaded.with_values({"b.mass": 2.0}), folder)
    assert not embeds(pickle.loads(pickle.dumps(loaded)), folder)
    assert embeds(da.load(folder / "a.urdf", roots=[folder.parent]), folder)


def test_environment_names_folders_of_packages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = folder.parent / "share" / "arm"
    package.mkdir(parents=True)
    (package / "m.stl").write_bytes(tetrahedron(DECOY))
    (folder / "a.json").write_text(with_mesh("package://arm/m.stl").to_json())
    shape = da.load(folder / "a.json").bodies["b"].shapes[0]
    assert isinstance(shape, Mesh)
    assert not shape.readable
    for name, value in (("ROS_PACKAGE_PATH", package.parent), ("AMENT_PREFIX_PATH", folder.parent)):
        with monkeypatch.context() as environment:
            environment.setenv(name, str(value))
            shape = da.load(folder / "a.json").bodies["b"].shapes[0]
            assert isinstance(shape, Mesh)
            assert shape.readable
            assert Path(shape.path) == (package / "m.stl").resolve()


def test_written_text_of_a_tree_reads_back(folder: Path) -> None:
    from dalembert.formats.document import read_document

    text = '<a x="1 &amp; 2&#10;"><b/><c y="&quot;"><d/></c></a>'
    tree = read_document(text.encode(), name="x")
    written = mjcf_text_of(tree)
    again = read_document(written.xml.encode(), name="x")
    assert [(e.tag, e.attributes) for e in walk(again)] == [(e.tag, e.attributes) for e in walk(tree)]
    assert [element.tag for element in written.lines] == ["a", "b", "c", "d", "c", "a"]
