"""Of the files that the other engine loads and that hold a body, nineteen in twenty agree."""

from __future__ import annotations

import pytest

pytest.importorskip("pinocchio")
pytest.importorskip("mujoco")

from tests.engines import test_files_mjcf, test_files_urdf


def test_nineteen_in_twenty_agree() -> None:
    urdf = len(test_files_urdf.FILES) - len(test_files_urdf.BROKEN)
    mjcf = len(test_files_mjcf.FILES) - len(test_files_mjcf.BROKEN) - len(test_files_mjcf.EMPTY)
    refused = len(test_files_urdf.EXPECTED_REFUSALS) + len(test_files_mjcf.EXPECTED_REFUSALS)
    assert urdf + mjcf - refused >= 0.95 * (urdf + mjcf)
