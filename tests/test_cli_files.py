"""`dalembert info`, `check` and `convert` on files: what they print and the status they exit with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    file = tmp_path / "arm.json"
    da.save(da.models.arm6(), file)
    return file


@pytest.fixture
def doubtful(tmp_path: Path) -> Path:
    """A model with one error, one warning and one note."""
    builder = da.ModelBuilder()
    inertia = da.RigidInertia(1.0, (1000.0, 0.0, 0.0), np.diag([1.0, 1.0, 3.0]))
    builder.add_body(
        "bar",
        parent="world",
        joint=da.Revolute(axis=(0, 0, 1)),
        inertia=inertia,
        limits=da.Limits(effort=0.0),
    )
    file = tmp_path / "doubtful.json"
    da.save(builder.build(inertia="as_given"), file)
    return file


def saved(tmp_path: Path, model: da.Model) -> str:
    da.save(model, tmp_path / "model.json")
    return str(tmp_path / "model.json")


# info


def test_info_draws_the_tree_and_adds_centre_of_mass_and_limits(arm: Path, capsys: Capture) -> None:
    model = da.models.arm6()
    assert main(["info", str(arm)]) == 0
    output = capsys.readouterr().out
    assert model.summary() in output
    centre = da.dynamics.center_of_mass(model, model.neutral())
    assert "centre of mass at the neutral pose: ({})".format(", ".join(f"{x:.4g}" for x in centre)) in output
    for joint in model.joints:
        assert f"\n{joint.name}" in output


def test_info_as_json_holds_every_body_and_only_finite_numbers(tmp_path: Path, capsys: Capture) -> None:
    model = da.models.humanoid().with_ground()
    assert main(["info", "--json", saved(tmp_path, model)]) == 0

    def no_constant(text: str) -> None:
        raise AssertionError(text)

    facts = json.loads(capsys.readouterr().out, parse_constant=no_constant)
    assert (facts["nq"], facts["nv"]) == (model.nq, model.nv)
    assert facts["total_mass"] == model.total_mass
    np.testing.assert_allclose(
        facts["center_of_mass"], da.dynamics.center_of_mass(model, model.neutral()), atol=1e-12
    )
    assert facts["world_shapes"] == ["plane"]
    assert ["left_forearm", "pelvis"] in facts["contact_exclusions"]
    assert facts["contact_pairs"] == []
    assert [body["name"] for body in facts["bodies"]] == list(model.bodies.names)
    for body, listed in zip(model.bodies, facts["bodies"]):
        assert listed["mass"] == body.inertia.mass
        assert listed["q"] == [body.q_slice.start, body.q_slice.stop]
        assert listed["parent"] == ("world" if body.parent < 0 else model.bodies[body.parent].name)
    assert facts["readable"]
    assert facts["motion"] is None


def test_limits_that_do_not_exist_are_dashes(tmp_path: Path, capsys: Capture) -> None:
    builder = da.ModelBuilder()
    inertia = da.RigidInertia(1.0, (0.0, 0.0, 0.0), np.eye(3))
    joint = da.Revolute(axis=(0, 0, 1))
    builder.add_body("bar", "world", joint, "hinge", inertia=inertia, limits=da.Limits(lower=-1.0))
    assert main(["info", saved(tmp_path, builder.build())]) == 0
    assert "hinge               -1      –         –       –\n" in capsys.readouterr().out


def test_info_names_loops_couplings_and_reports(tmp_path: Path, capsys: Capture) -> None:
    assert main(["info", "--json", saved(tmp_path, da.models.four_bar())]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [loop["name"] for loop in facts["loops"]] == list(da.models.four_bar().loops.names)


def test_info_of_a_model_without_mass_says_no_centre(tmp_path: Path, capsys: Capture) -> None:
    builder = da.ModelBuilder()
    builder.add_body("frame", parent="world", joint=da.Fixed(), inertia=da.RigidInertia.zero())
    file = saved(tmp_path, builder.build())
    assert main(["info", file]) == 0
    assert "centre of mass" not in capsys.readouterr().out
    assert main(["info", "--json", file]) == 0
    assert json.loads(capsys.readouterr().out)["center_of_mass"] is None


def test_names_in_a_file_do_not_steer_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    builder = da.ModelBuilder()
    builder.add_body("red\x1b[31m\udcff", parent="world", joint=da.Fixed(), inertia=da.RigidInertia.zero())
    file = tmp_path / "red.json"
    file.write_text(json.dumps(json.loads(builder.build().to_json())))  # a lone surrogate, as JSON allows
    assert main(["info", str(file)]) == 0
    output = capsys.readouterr().out
    assert "red\\x1b[31m" in output
    assert "\x1b" not in output


# files that cannot be read


@pytest.mark.parametrize("command", ["info", "check"])
def test_an_unreadable_file_exits_with_two_and_one_line(
    command: str, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "bad.json").write_text("{")
    for name, words in (
        ("bad.json", "not a saved model"),
        ("none.json", "cannot be read"),
        ("x.stl", "unknown"),
    ):
        assert main([command, str(tmp_path / name)]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("dalembert: ")
        assert captured.err.count("\n") == 1
        assert words in captured.err
        assert main([command, "--json", str(tmp_path / name)]) == 2
        report = json.loads(capsys.readouterr().out)
        assert not report["readable"]
        assert words in report["error"]


def test_halves_of_a_motion_and_too_many_files_are_refused(arm: Path, capsys: Capture) -> None:
    assert main(["info", "walk.amc"]) == 2
    assert "name the .asf and the .amc file" in capsys.readouterr().err
    assert main(["info", str(arm), str(arm)]) == 2
    assert "2 files were named" in capsys.readouterr().err


# check


def test_check_is_silent_about_sound_models(arm: Path, capsys: Capture) -> None:
    assert main(["check", "--strict", str(arm)]) == 0
    assert capsys.readouterr().out == f"{arm}: 6 bodies, nv = 6: no problems found\n"


def test_check_lists_findings_by_severity_and_exits_with_one(doubtful: Path, capsys: Capture) -> None:
    assert main(["check", str(doubtful)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines[:3]] == ["error", "warning", "note"]
    assert lines[0].startswith('error: body "bar": principal moments')
    assert lines[0].endswith("[inertia]")
    assert lines[-1].endswith("nv = 1: 1 error, 1 warning, 1 note")
    assert main(["check", "--json", str(doubtful)]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["counts"] == {"error": 1, "warning": 1, "note": 1}
    assert {finding["rule"] for finding in report["findings"]} == {"inertia", "far frame", "limits"}
    assert not report["ok"]


def test_notes_fail_only_where_strictness_is_asked_for(tmp_path: Path) -> None:
    inertia = da.RigidInertia(1.0, (0.0, 0.0, 0.0), np.eye(3))
    builder = da.ModelBuilder()
    builder.add_body(
        "bar",
        parent="world",
        joint=da.Revolute(axis=(0, 0, 1)),
        inertia=inertia,
        limits=da.Limits(effort=0.0),
    )
    file = saved(tmp_path, builder.build())
    assert main(["check", file]) == 0
    assert main(["check", "--strict", file]) == 1


# convert


def test_convert_writes_the_same_model_and_replaces_only_when_forced(
    arm: Path, tmp_path: Path, capsys: Capture
) -> None:
    target = tmp_path / "copy.json"
    assert main(["convert", str(arm), str(target)]) == 0
    assert capsys.readouterr().out == f"wrote {target}: 6 bodies, nq = 6, nv = 6, nothing lost\n"
    assert da.load(target) == da.models.arm6()
    target.write_text("mine")
    assert main(["convert", str(arm), str(target)]) == 1
    assert "exists; give another name, or --force" in capsys.readouterr().err
    assert target.read_text() == "mine"
    assert main(["convert", "--force", str(arm), str(target)]) == 0
    assert da.load(target) == da.models.arm6()


def test_names_of_files_do_not_steer_the_terminal(arm: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(["convert", str(arm), str(tmp_path / "\x1b[31m" / "b.json")]) == 1
    assert main(["info", "\x1b[31m.json"]) == 2
    error = capsys.readouterr().err
    assert "\\x1b[31m" in error
    assert "\x1b" not in error


def test_convert_tells_unreadable_from_unwritable(arm: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(["convert", str(tmp_path / "none.json"), str(tmp_path / "b.json")]) == 2
    assert main(["convert", str(arm), str(tmp_path / "b.stl")]) == 1
    assert main(["convert", str(arm), str(tmp_path / "missing" / "b.json")]) == 1
    capsys.readouterr()
    assert main(["convert", "--json", str(arm), str(tmp_path / "b.stl")]) == 1
    assert not json.loads(capsys.readouterr().out)["written"]
    assert sorted(item.name for item in tmp_path.iterdir()) == ["arm.json"]


def test_convert_prints_every_loss(
    arm: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(da, "save", lambda model, path, accept_losses: ("joint friction of 'a'", "colours"))
    assert main(["convert", str(arm), str(tmp_path / "b.urdf")]) == 0
    output = capsys.readouterr().out
    assert "lost: joint friction of 'a'\nlost: colours\n" in output
    assert "2 losses" in output
    assert main(["convert", "--json", str(arm), str(tmp_path / "b.urdf")]) == 0
    assert json.loads(capsys.readouterr().out)["losses"] == ["joint friction of 'a'", "colours"]


@pytest.mark.parametrize("command", ["info", "check", "convert"])
def test_help_explains_options_and_exit_status(command: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in ("exit status: 0 done; 1", "--root", "--inertia", "--allow", "--trust", "--json"):
        assert words in text


def test_the_command_works_as_a_process_of_its_own(doubtful: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dalembert", "check", str(doubtful)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stderr == ""
    assert "1 error, 1 warning, 1 note" in done.stdout


def test_bundled_models_are_known_by_their_names(capsys):
    """`info four_bar` needs no file; a name that is neither file nor model lists those that are."""
    assert main(["info", "four_bar"]) == 0
    assert "mobility 1" in capsys.readouterr().out
    assert main(["check", "stewart"]) == 0
    assert main(["info", "fourbar"]) == 2
    assert "four_bar" in capsys.readouterr().err
    assert main(["info", "random_tree"]) == 2
    assert "needs arguments" in capsys.readouterr().err
