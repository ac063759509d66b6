"""The freedoms of the bundled linkages, and what `dalembert info` says of them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dalembert as da
from dalembert.cli import main

FREEDOMS = {"four_bar": 1, "slider_crank": 1, "five_bar": 2, "ladder": 3, "stewart": 6}


@pytest.mark.parametrize("name", FREEDOMS)
def test_bundled_linkages_have_their_freedoms_all_along(name):
    """RBDA-8.10-MOBILITY: at neutral and at random closed configurations."""
    model = getattr(da.models, name)()
    assert da.analysis.mobility(model).mobility == FREEDOMS[name]
    rng = np.random.default_rng(1)
    q = da.integrate(model, model.neutral(), 0.05 * rng.normal(size=(2, model.nv)))
    for closed in da.constraints.close_loops(model, q):
        found = da.analysis.mobility(model, closed)
        assert found.mobility == FREEDOMS[name] == found.counted + found.excess
        assert sum(part.mobility for part in found.clusters) == found.mobility


def test_info_prints_the_mobility_of_looped_models(tmp_path, capsys):
    file = tmp_path / "linkage.json"
    da.save(da.models.four_bar(), file)
    assert main(["info", str(file)]) == 0
    assert "at the neutral pose: mobility 1: n = 3, 5 constraints of rank 2" in capsys.readouterr().out
    assert main(["info", "--json", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["mobility"] == {
        "n": 3, "constraints": 5, "rank": 2, "mobility": 1
    }  # fmt: skip
    builder = da.ModelBuilder()
    builder.add_body("bar", inertia=da.RigidInertia(1.0, (0, 0, 0), (1, 1, 1)), joint=da.Free())
    builder.add_loop(
        "open", "world", "bar", da.Spherical(), da.Transform.from_rotation_translation(np.eye(3), (1, 0, 0))
    )
    da.save(builder.build(), file)
    assert main(["info", str(file)]) == 0
    assert "open by 1" in capsys.readouterr().out
    da.save(da.models.arm6(), file)
    assert main(["info", "--json", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["mobility"] is None
