"""The demonstration of `make demo`: a humanoid that stands, is pushed and falls."""

import runpy
from pathlib import Path

import pytest

run = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "demo.py"))["run"]


def test_the_demonstration_needs_a_folder(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SystemExit, match="cannot be a folder"):
        run(str(tmp_path / "file"))


def test_the_demonstration_stands_sways_steps_and_falls_and_does_so_every_time(capsys, tmp_path):
    """ANIM-PD: response motion of a figure on the ground."""
    assert run(str(tmp_path / "one")) == 0
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines() if line.startswith("     ")]
    state = {float(row[0]): row[-1] for row in rows}
    assert [state[time] for time in (2.3, 3.9, 5.9, 7.9, 9.5)] == ["stands"] * 3 + ["lies"] * 2
    (bears,) = (line for line in printed.splitlines() if "the ground bears" in line)
    force, weight = (float(word) for word in bears.split() if word[0].isdigit())
    assert force == pytest.approx(weight, rel=1e-3)
    assert (tmp_path / "one" / "demo.html").read_text().startswith("<!")
    assert run(str(tmp_path / "two")) == 0
    for name in ("demo.html", "demo.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
