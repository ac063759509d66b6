"""Every MJCF file inside two packages agrees with MuJoCo or is refused for a reason that is named here.

The mass matrix, the bias and passive forces and the forward dynamics of the open tree at 20 random moving
states. `python benchmarks/files.py` prints the same as a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

mujoco = pytest.importorskip("mujoco")

from tests.engines import file_mujoco  # noqa: E402
from tests.engines.file_table import (  # noqa: E402
    MJCF_PACKAGES,
    ModelFile,
    Row,
    by_compiled_functions,
    files_of,
)

import dalembert as da  # noqa: E402
from dalembert.errors import FileError  # noqa: E402

FILES = files_of(MJCF_PACKAGES, ".xml")
NAMES = [file.name for file in FILES]

EXPECTED_REFUSALS: dict[str, str] = {}
"""Files that MuJoCo loads and we do not, with the reason that we give."""

EMPTY = dict.fromkeys(
    (
        "dm-control/common.xml",
        "dm-control/composer/arena.xml",
        "dm-control/drosophila_defaults.xml",
        "dm-control/materials.xml",
        "dm-control/skybox.xml",
        "dm-control/visual.xml",
    ),
    "there is no body in the file",
)
"""Parts of other files, which include them."""

BROKEN = {
    "dm-control/assets/model_with_assets.xml": '"included.xml" does not exist',
    "dm-control/attribute_test_schema.xml": "the root element is <element>",
    "dm-control/build_fruitfly/floor.xml": '"head_body.msh" does not exist',
    "dm-control/build_fruitfly/fruitfly.xml": '"head_body.msh" does not exist',
    "dm-control/drosophila.xml": '"assets/head_body.msh" does not exist',
    "dm-control/included_with_invalid_filenames.xml": '"meshes/invalid_mesh_name.stl" does not exist',
    "dm-control/model_with_invalid_filenames.xml": '"invalid_included_name.xml" does not exist',
    "dm-control/scene.xml": "repeated name 'grid' in texture",
    "dm-control/schema.xml": "the root element is <element>",
    "dm-control/test_model.xml": "mass and inertia of moving bodies must be larger than mjMINVAL",
}
"""Files that neither engine loads, with the reason that we give."""

COMPILED = (
    "dm-control/model_with_ball_joints.xml",
    "dm-control/suite/humanoid.xml",
    "dm-control/cheetah.xml",
    "gymnasium/ant.xml",
    "gymnasium/pusher_v5.xml",
)
"""Hinges, slides, balls and free joints, several joints a body, springs, dampers and armature."""


@pytest.fixture(scope="module")
def comparison() -> Iterator[Callable[..., Row]]:
    """`file_mujoco.row` in a process of its own: both engines take 0.5 GB for the largest files, which the
    process of the tests would add to what it has."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        yield lambda *given: process.submit(file_mujoco.row, *given).result()


def file_called(name: str) -> ModelFile:
    return FILES[NAMES.index(name)]


REFUSED = {**EXPECTED_REFUSALS, **EMPTY, **BROKEN}


def test_packages_hold_the_files_that_are_counted() -> None:
    assert len(FILES) >= 79
    assert len(set(NAMES)) == len(NAMES)
    assert {*REFUSED, *COMPILED} <= set(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in REFUSED])
def test_file_agrees(comparison: Callable[..., Row], name: str) -> None:
    row = comparison(file_called(name))
    assert row.kind == "agrees", row.verdict


@pytest.mark.parametrize("name", REFUSED)
def test_file_is_refused_with_its_reason(comparison: Callable[..., Row], name: str) -> None:
    row = comparison(file_called(name))
    kinds = {"refused": EXPECTED_REFUSALS, "empty": EMPTY, "peer refuses": BROKEN}
    assert name in kinds.get(row.kind, ()), row.verdict
    assert REFUSED[name] in str(row.refusal)


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_functions_agree(comparison: Callable[..., Row], name: str) -> None:
    row = comparison(file_called(name), by_compiled_functions)
    assert row.kind == "agrees", row.verdict


def test_files_outside_the_folder_are_refused_unless_their_root_is_named() -> None:
    file = file_called("dm-control/dog_v2/dog.xml")
    with pytest.raises(FileError, match=r"dog_assets.*roots="):
        da.load(file.path)
    assert da.load(file.path, roots=[file.root]).nv == 79


def test_no_order_of_compilers_leads_out_of_the_folder(tmp_path: Path) -> None:
    """MuJoCo takes the mesh folder that stands last once includes are expanded, here the main file's."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.obj").write_text(
            "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
        )
    asset = '<compiler meshdir="."/><asset><mesh name="a" file="a.obj"/></asset>'
    (inside / "part.xml").write_text(f"<mujoco>{asset}</mujoco>")
    body = '<body><freejoint/><geom type="mesh" mesh="a" mass="1"/></body>'
    main = '<mujoco><include file="part.xml"/>{}<worldbody>{}</worldbody></mujoco>'
    (inside / "good.xml").write_text(main.format("", body))
    (inside / "bad.xml").write_text(main.format('<compiler meshdir="../outside"/>', body))
    assert da.load(inside / "good.xml").nv == 6
    with pytest.raises(FileError, match="leads to"):
        da.load(inside / "bad.xml")
    assert da.load(inside / "bad.xml", roots=[outside]).nv == 6


@pytest.mark.parametrize("name", ["dm-control/manipulator.xml", "dm-control/quadruped.xml"])
def test_wrong_couplings_are_seen(name: str) -> None:
    """The comparison of couplings can fail: a model with another ratio is not MuJoCo's."""
    file = file_called(name)
    model, theirs = da.load(file.path, roots=[file.root]), file_mujoco.read(file.path)
    assert file_mujoco.constraint_error(model, theirs) <= 1e-12
    theirs.tendon_length0[:] += 1e-3
    assert file_mujoco.constraint_error(model, theirs) >= 1e-4


def test_a_millionth_of_a_damping_is_seen() -> None:
    file = file_called("dm-control/cheetah.xml")
    model, theirs = da.load(file.path), file_mujoco.read(file.path)
    assert file_mujoco.compare(model, theirs).agrees
    theirs.dof_damping[:] *= 1.0 + 1e-6
    assert not file_mujoco.compare(model, theirs).agrees
