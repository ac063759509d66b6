"""The command line says what it did, and its exit status tells whether it worked."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dalembert as da
from dalembert.cli import doctor, main
from dalembert.cli.content import table
from dalembert.errors import ModelError


def test_table_aligns_its_columns() -> None:
    text = table(["robot", "us"], [["arm", "1.5"], ["humanoid", "12.25"]])
    assert text == "robot        us\n--------  -----\narm         1.5\nhumanoid  12.25"
    assert table(["a", "b"], [["x", "yy"], ["x", "y"]], names=2) == "a  b\n-  --\nx  yy\nx  y"


def test_version_is_the_packages() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dalembert", "--version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.strip() == f"dalembert {da.__version__}"


@pytest.mark.parametrize(
    "arguments", [["unknown"], ["count"], ["doctor", "--batch", "0"], ["count", "arm6", "--slow"], ["bench"]]
)
def test_a_misunderstood_command_line_exits_with_two(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "--help" in said


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_names_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 0
    assert {"info", "check", "convert", "simulate", "view", "count", "doctor"} <= set(
        re.findall(r"^    (\w+)", capsys.readouterr().out, re.MULTILINE)
    )


def test_an_error_of_the_library_is_one_line_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: object) -> int:
        raise ModelError("body 'x' has no mass; give one")

    monkeypatch.setattr(doctor, "run", refuse)
    assert main(["doctor"]) == 1
    captured = capsys.readouterr()
    assert captured.err == "dalembert: ModelError: body 'x' has no mass; give one\n"
    assert captured.out == ""


def test_doctor_reports_versions_lanes_cache_and_a_working_compiler(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    facts = report["facts"]
    assert report["problems"] == {}
    assert facts["dalembert"].startswith(da.__version__)
    assert re.fullmatch(r"\d+ float64, \d+ float32", facts["lanes"])
    double, single = map(int, re.findall(r"(\d+) float", facts["lanes"]))
    assert single == 2 * double
    assert {"Python", "NumPy", "llvmlite", "CPU", "instructions", "threads", "cache", "GPU"} <= set(facts)
    assert "agrees" in facts["self-test"]


def test_doctor_names_a_cache_that_cannot_be_written_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("DALEMBERT_CACHE_DIR", str(blocked))
    assert main(["doctor"]) == 1
    output = capsys.readouterr().out
    assert "problem: cache" in output
    assert "DALEMBERT_CACHE_DIR" in output


def test_doctor_fails_where_compiled_code_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    right = da.forward_dynamics
    monkeypatch.setattr(da, "forward_dynamics", lambda *arguments: 1.001 * right(*arguments))
    finding = doctor.findings()[-1]
    assert finding.name == "self-test"
    assert "differs" in finding.value
    assert finding.remedy
