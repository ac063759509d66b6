"""`dalembert convert` keeps the meshes of a model, or says which it cannot keep and writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.formats.urdf_files import BOX, joint, link, robot

import dalembert as da
from dalembert.cli import main
from dalembert.formats import meshes
from dalembert.formats.meshes import read_mesh
from dalembert.model.shapes import Mesh

TETRAHEDRON = "v 0 0 0\nv 0.3 0 0\nv 0 0.2 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"


@pytest.fixture
def arm(tmp_path: Path) -> Callable[..., str]:
    """A function that writes a URDF file with meshes of these names, two of one name in two folders."""

    def write(*names: str) -> str:
        shapes = ""
        for name in names:
            path = tmp_path / "source" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(TETRAHEDRON)
            shapes += f'<collision><geometry><mesh filename="{name}"/></geometry></collision>'
        body = f'<inertial><mass value="1"/>{BOX}</inertial>{shapes}'
        text = robot(link("base", ""), link("rod", body), joint("hinge", "base", "rod"))
        (tmp_path / "source" / "arm.urdf").write_text(text)
        return str(tmp_path / "source" / "arm.urdf")

    return write


def kept(file: Path) -> list[np.ndarray]:
    """The corners of the meshes of a written model, which lie beside the file."""
    if file.suffix == ".xml":
        pytest.importorskip("mujoco")
    found = []
    for shape in da.load(file).bodies["rod"].shapes:
        assert isinstance(shape, Mesh)
        assert shape.readable
        assert Path(shape.path).is_relative_to(file.parent)
        found.append(read_mesh(shape.path).corners)
    return found


@pytest.mark.parametrize("ending", [".json", ".urdf", ".xml"])
def test_meshes_are_copied_beside_the_file(
    ending: str, arm: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / f"arm{ending}"
    assert main(["convert", arm("a.obj", "more/a.obj"), str(target)]) == 0
    assert "copied 2 meshes" in capsys.readouterr().out
    corners = kept(target)
    assert len(corners) == 2
    for own in corners:
        np.testing.assert_array_equal(own, [[0, 0, 0], [0.3, 0, 0], [0, 0.2, 0], [0, 0, 0.1]])
    assert main(["convert", arm("a.obj"), str(tmp_path / "out" / "arm.json"), "--force"]) == 0


def test_meshes_below_the_folder_stay_where_they_are(arm: Callable[..., str], tmp_path: Path) -> None:
    assert main(["convert", arm("a.obj"), str(tmp_path / "arm.json")]) == 0
    assert not (tmp_path / "arm_meshes").exists()
    assert len(kept(tmp_path / "arm.json")) == 1


def test_meshes_that_cannot_be_kept_are_an_error(
    arm: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    target, source = tmp_path / "out" / "arm.xml", arm("a.obj", "b.dae", "c.dae")
    assert main(["convert", source, str(target)]) == 1
    said = capsys.readouterr().err
    assert "cannot keep the mesh b.dae" in said
    assert "(2 meshes like this); --accept-losses" in said
    assert not [*(tmp_path / "out").iterdir()]
    assert main(["convert", "--accept-losses", source, str(target)]) == 0
    assert len(kept(target)) == 1
    (tmp_path / "source" / "a.obj").unlink()
    assert main(["convert", source, str(tmp_path / "out" / "b.json")]) == 1
    assert "was not found when the model was loaded" in capsys.readouterr().err


def test_readable_meshes_become_obj_files_where_the_format_is_not_known(
    arm: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(meshes.READERS, ".dae", meshes.READERS[".obj"])
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "arm.xml"
    assert main(["convert", arm("b.dae", "more/b.dae"), str(target)]) == 0
    assert sorted(path.name for path in (tmp_path / "out" / "arm_meshes").iterdir()) == ["b.obj", "b_2.obj"]
    for own in kept(target):
        np.testing.assert_array_equal(own, [[0, 0, 0], [0.3, 0, 0], [0, 0.2, 0], [0, 0, 0.1]])


def test_nothing_is_left_of_a_conversion_that_fails(arm: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "out" / "arm.json").mkdir(parents=True)  # a folder in the place of the file
    assert main(["convert", "--force", arm("a.obj"), str(tmp_path / "out" / "arm.json")]) == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["arm.json"]
