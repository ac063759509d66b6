"""`dalembert count` prints what the algorithms cost, beside the published counts."""

import json
import re

import pytest

import dalembert as da
from dalembert.cli import main


def report(arguments, capsys):
    assert main(["count", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_chain_stands_beside_table_10_1(capsys):
    """RBDA-10.3-CROSSOVER: every line of the table, the totals of both methods, and ours."""
    found = report(["gu", "-n", "4"], capsys)
    assert (found["model"], found["nv"], found["bodies"]) == ("gu4", 4, 4)
    assert len(found["table_10_1"]) == 14
    whole = found["table_10_1"][-1]
    assert (whole["algorithm"], whole["book"]["total"]) == ("RNEA + CRBA + F&S", 959)
    best = next(line for line in found["table_10_1"] if line["algorithm"] == "ABA")
    assert (best["book"]["multiplications"], best["book"]["additions"]) == (637, 572)
    ours = da.compile(da.forward_dynamics, da.models.gu(4)).operation_count
    assert best["ours"]["total"] == ours.total
    assert best["ratio"] == pytest.approx(ours.total / 1209)
    counted = {(row["function"], row["method"]) for row in found["methods"] if row["count"]}
    assert {("inverse_dynamics", "rnea"), ("mass_matrix", "crba"), ("forward_dynamics", "crba")} <= counted
    assert found["factor_and_solve"]["total"] == 54


def test_a_tree_stands_beside_the_cost_of_branches(capsys):
    """RBDA-10.3-BRANCH, RBDA-10.3-BINARY: D0 and D1 by kind of transform, Eq. 10.12 and ours."""
    found = report(["binary_tree", "-n", "7"], capsys)
    sums = found["sums"]
    assert (sums["D0"], sums["D0_dh"], sums["D0_general"]) == (6, 3, 3)
    assert (sums["D1"], sums["D1_dh"], sums["D1_general"], sums["depth"]) == (10, 5, 5, 3)
    crba = found["branches"][0]
    assert crba["book"]["multiplications"] == 3 * 32 + 3 * 47 + 5 * 20 + 5 * 24
    assert crba["ours"]["total"] < crba["book"]["total"]
    assert found["table_10_1"] is None


def test_series_show_where_the_methods_cross(capsys):
    """RBDA-10.3-CROSSOVER: of the chains up to ten joints, ABA is the cheaper one from nine on."""
    found = report(["gu", "--up-to", "10"], capsys)
    assert found["totals"]["8"]["book"]["matrix"] == 2921
    assert found["crossovers"]["book"]["aba_cheaper"] == 9
    assert found["crossovers"]["ours"]["aba_cheaper"] == 9
    assert main(["count", "gu", "--up-to", "4"]) == 0
    assert "ABA is never cheaper" in capsys.readouterr().out


def test_text_names_methods_and_what_is_not_for_the_model(capsys):
    assert main(["count", "four_bar"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^forward_dynamics +range_space +\d+ +\d+ +\d+", text, re.M)
    assert "not for this model: " in text
    assert main(["count", "pendulum"]) == 0
    assert "Table 10.1" not in capsys.readouterr().out
    assert main(["count", "two_link_arm"]) == 0
    assert "Table 10.1 of Featherstone 2008 for n = 2" in capsys.readouterr().out


def test_a_file_is_counted(tmp_path, capsys):
    path = tmp_path / "arm.json"
    da.save(da.models.double_pendulum(), path)
    found = report([str(path)], capsys)
    assert found["model"] == str(path)
    assert found["nv"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], 'unknown file or bundled model "nonsense"'),
        (["humaniod"], 'nearest: "humanoid"'),
        (["missing.urdf"], "missing.urdf"),
        (["arm6", "-n", "3"], "has one size"),
        (["arm6", "--up-to", "3"], "families"),
        (["random_tree"], "needs arguments"),
    ],
)
def test_what_is_not_understood_exits_with_two(arguments, message, capsys):
    assert main(["count", *arguments]) == 2
    assert message in capsys.readouterr().err
