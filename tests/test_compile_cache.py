"""Machine code on disk: another process finds it, and a damaged file costs time and nothing else."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.compiler import kernels, lowering

PROGRAM = """
import json, sys
import numpy as np
import dalembert as da
from dalembert.compiler import kernels
from dalembert.compiler import lowering
traces, real = [], lowering.lower
def counted(*args):
    traces.append(args[0].name)
    return real(*args)
kernels.lower = counted
model = da.models.{model}()
q, v = model.random_state(1)
single = da.forward_dynamics(model, q, v, v)
batch = da.forward_dynamics(model, np.tile(q, (9, 1)), v, v)
own = da.compile(lambda m, q: [2.0 * x for x in q], model)(q)
stepped = da.step(model, q, v, v, 0.01)
print(json.dumps({{"traces": traces, "single": single.tolist(), "batch": batch.tolist(), "own": own.tolist(),
                  "step": [x.tolist() for x in stepped]}}))
"""


def run(folder: Path, model: str = "two_link_arm") -> dict[str, Any]:
    """A fresh interpreter with its cache in the folder: its results, and the functions it had to trace."""
    environment = {**os.environ, "DALEMBERT_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(model=model)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_second_process_needs_no_trace_and_damaged_files_are_made_anew(tmp_path: Path):
    """The same bits from a cold cache, a warm one, and one with truncated, scrambled and empty files."""
    first = run(tmp_path)
    assert set(first["traces"]) == {"forward_dynamics", "step", "<lambda>"}
    files = sorted(tmp_path.glob("*.kernel"))
    assert len(files) >= 4
    second = run(tmp_path)
    assert set(second["traces"]) == {"<lambda>"}  # known by its graph, so it is traced
    assert sorted(tmp_path.glob("*.kernel")) == files
    for k, file in enumerate(files):
        content = file.read_bytes()
        damaged = (
            b"",
            content[: len(content) // 2],
            content[:100] + bytes([content[100] ^ 1]) + content[101:],
        )
        file.write_bytes(damaged[k % 3])
    third = run(tmp_path)
    for key in ("single", "batch", "own", "step"):
        assert second[key] == first[key]
        assert third[key] == first[key]
    assert set(third["traces"]) == set(first["traces"])
    assert run(tmp_path)["traces"] == second["traces"]


def test_unusable_folder_is_done_without(tmp_path: Path):
    """A file where the folder should be: everything compiles, nothing is kept."""
    place = tmp_path / "taken"
    place.write_text("not a folder")
    result = run(place, "pendulum")
    assert np.all(np.isfinite(result["single"]))
    assert place.read_text() == "not a folder"


def test_other_model_values_are_other_entries(monkeypatch: pytest.MonkeyPatch):
    """A cache by name alone would give the first pendulum's answer for the second."""
    light, heavy = da.models.pendulum(mass=1.0), da.models.pendulum(mass=2.0)
    assert da.mass_matrix(light, [0.0]) == pytest.approx(1.0)
    assert da.mass_matrix(heavy, [0.0]) == pytest.approx(2.0)
    traced = []
    real = lowering.lower

    def counted(recipe: lowering.Recipe, dtype: str) -> lowering.Lowered:
        traced.append(recipe.name)
        return real(recipe, dtype)

    monkeypatch.setattr("dalembert.compiler.kernels.lower", counted)
    assert da.mass_matrix(da.models.pendulum(mass=2.0), [0.0]) == pytest.approx(2.0)
    assert traced == []
    assert da.mass_matrix(da.models.pendulum(mass=3.0), [0.0]) == pytest.approx(3.0)
    assert traced == ["mass_matrix"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_slow_compilations_are_announced_and_counted_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO]
) -> None:
    shown = stream()
    monkeypatch.setattr(kernels, "ANNOUNCE_AFTER_SECONDS", 0.01)
    monkeypatch.setattr(kernels, "COUNT_EVERY_SECONDS", 0.01)
    monkeypatch.setattr(sys, "stderr", shown)
    with kernels._announce_slow_compilation("compiling this"):
        time.sleep(0.2)
    counted = shown.getvalue().count("\r")
    assert (counted > 2) == shown.isatty()
    assert shown.getvalue().startswith("dalembert: compiling this …")
    assert re.search(r"done in 0\.[2-9] s\n$", shown.getvalue())
