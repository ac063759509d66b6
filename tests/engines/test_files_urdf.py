"""Every URDF file inside three packages agrees with Pinocchio or is refused for a reason that is named here.

The mass matrix, the bias forces and the forward dynamics at 20 random moving states, with a fixed and with a
floating root. `python benchmarks/files.py` prints the same as a table.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pin = pytest.importorskip("pinocchio")

from tests.engines import file_pinocchio  # noqa: E402
from tests.engines.file_table import (  # noqa: E402
    URDF_PACKAGES,
    ModelFile,
    by_compiled_functions,
    files_of,
)

import dalembert as da  # noqa: E402
from dalembert.model.shapes import Mesh  # noqa: E402

FILES = files_of(URDF_PACKAGES, ".urdf")
NAMES = [file.name for file in FILES]

EXPECTED_REFUSALS = {
    "example-robot-data/alex_psyonic_hands.urdf": 'mimics "index_q1", which does not exist',
    "example-robot-data/romeo_laas_small.urdf": "is a file: address",
}
"""Files that Pinocchio loads and we do not, with the reason that we give."""

BROKEN = {
    "example-robot-data/falcon.urdf": "Z_propeller",
    "example-robot-data/ur3.urdf": "there is no <link>",
}
"""Files that neither engine loads, with the reason that we give."""

LOADED = [name for name in NAMES if name not in {*EXPECTED_REFUSALS, *BROKEN}]

COMPILED = (
    "example-robot-data/baxter.urdf",
    "example-robot-data/double_pendulum_continuous.urdf",
    "example-robot-data/panda.urdf",
    "example-robot-data/solo12.urdf",
    "upkie-description/upkie.urdf",
)
"""Fixed and mimic joints, continuous ones, general axes, both roots."""


def file_called(name: str) -> ModelFile:
    return FILES[NAMES.index(name)]


def test_packages_hold_the_files_that_are_counted() -> None:
    assert len(FILES) >= 80
    assert len(set(NAMES)) == len(NAMES)
    assert {*EXPECTED_REFUSALS, *BROKEN, *COMPILED} <= set(NAMES)


@pytest.mark.parametrize("name", LOADED)
def test_file_agrees(name: str) -> None:
    row = file_pinocchio.row(file_called(name))
    assert row.kind == "agrees", row.verdict


@pytest.mark.parametrize("name", EXPECTED_REFUSALS)
def test_file_is_refused_with_its_reason(name: str) -> None:
    row = file_pinocchio.row(file_called(name))
    assert row.kind == "refused", row.verdict
    assert EXPECTED_REFUSALS[name] in str(row.refusal)


@pytest.mark.parametrize("name", BROKEN)
def test_broken_file_is_refused_by_both(name: str) -> None:
    row = file_pinocchio.row(file_called(name))
    assert row.kind == "peer refuses", row.verdict
    assert BROKEN[name] in str(row.refusal)


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_functions_agree(name: str) -> None:
    row = file_pinocchio.row(file_called(name), by_compiled_functions)
    assert row.kind == "agrees", row.verdict


@pytest.mark.parametrize("name", [name for name in LOADED if name.startswith("example-robot-data/")])
def test_meshes_are_found_where_the_file_lies(name: str) -> None:
    """Every name of the package is the file below the folder "share", without `roots=`."""
    file = file_called(name)
    model = da.load(file.path, root="floating")
    shapes = [shape for body in model.bodies for shape in body.shapes if isinstance(shape, Mesh)]
    share = next(folder for folder in file.path.parents if folder.name == "share")
    text = re.sub("<!--.*?-->", "", file.path.read_text(), flags=re.DOTALL)
    named = {(share / path).resolve() for path in re.findall('"package:/+([^"]+)"', text)}
    assert {Path(shape.path) for shape in shapes} == named
    assert all(shape.readable for shape in shapes)


def test_trusted_file_agrees() -> None:
    """Its meshes have addresses of another computer, which are of no consequence for the dynamics."""
    file = file_called("example-robot-data/romeo_laas_small.urdf")
    model = da.load(file.path, root="floating", trusted=True)
    assert file_pinocchio.compare(model, file_pinocchio.reader("floating")(file.path)).agrees


def test_what_cannot_be_drawn_is_reported() -> None:
    """Upkie marks a link without a body by a box of size zero."""
    model = da.load(file_called("upkie-description/upkie.urdf").path, root="floating")
    assert any("link[base]" in line and "nothing to draw" in line for line in model.report)


def test_a_millionth_of_a_mass_is_seen() -> None:
    file = file_called("example-robot-data/solo12.urdf")
    model = da.load(file.path, root="floating")
    body = model.bodies[0].name
    heavier = model.with_values({f"{body}.mass": (1.0 + 1e-6) * model.value(f"{body}.mass")})
    peer = file_pinocchio.reader("floating")(file.path)
    assert file_pinocchio.compare(model, peer).agrees
    assert not file_pinocchio.compare(heavier, peer).agrees
