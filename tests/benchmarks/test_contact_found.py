"""What a step finds to touch on random states is what all pairs of shapes, and coal, find: a short form of
`benchmarks/contact_found.py`."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

pytest.importorskip("coal")
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))  # scripts there import each other by name
import contact_found


@pytest.mark.parametrize(
    ("name", "package"), [("ant", "gymnasium"), ("stacker", "dm_control"), ("go2", "example-robot-data")]
)
def test_a_step_finds_what_all_pairs_and_coal_find(name: str, package: str) -> None:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    model = contact_found.load(name)
    found = contact_found.findings(model, contact_found.step_of(model), 150)
    assert found.overlaps > 300
    assert found.missed == found.coal_missed == found.only_ours == 0
    assert found.difference <= contact_found.SAME_DEPTH
    assert found.depths[int(0.95 * len(found.depths))] < 1e-4
