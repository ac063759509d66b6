"""Benchmarks time contestants fairly, and compare results before they time them."""

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))  # scripts there import each other by name
import bench
import contest
import gpu_layouts
import timing

from dalembert.codegen.gpu import ARCHITECTURES


class Scripted:
    """A timer whose turns take given times; it notes when it is asked."""

    def __init__(self, name: str, turns: list[float], log: list[str]) -> None:
        self.name, self.turns, self.log = name, iter(turns), log

    def timeit(self, number: int) -> float:
        self.log.append(self.name)
        return number * next(self.turns)


def test_medians_ignore_an_outlier_and_contestants_take_turns() -> None:
    log: list[str] = []
    contestants = {
        "a": Scripted("a", [9.0, 1.0, 1.0, 50.0, 2.0], log),
        "b": Scripted("b", [9.0, 3.0, 4.0, 3.0, 5.0], log),
    }
    medians = timing.interleaved_medians(contestants, rounds=3, seconds=0.5)  # type: ignore[arg-type]
    assert medians == {"a": 2.0, "b": 4.0}
    assert log[4:] == ["a", "b"] * 3  # after two calls each that warm up and calibrate


def test_a_turn_is_repeated_until_it_fills_its_time() -> None:
    log: list[str] = []
    contestants = {"a": Scripted("a", [1e-3] * 40, log)}
    assert timing.interleaved_medians(contestants, rounds=3, seconds=0.5)["a"] == pytest.approx(1e-3)  # type: ignore[arg-type]
    assert len(log) < 12


def test_bench_compares_results_before_it_times_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "BATCH_SIZE", 16)
    monkeypatch.setattr(bench, "humanoid", contest.arm)
    monkeypatch.setattr(bench, "interleaved_medians", lambda timers, **_: dict.fromkeys(timers, 1.0))
    assert bench.main(["--quick", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {m["algorithm"] for m in report["measurements"]} == set(contest.ALGORITHMS)
    if contest.pinocchio() is not None:
        assert all(m["error"] < 1e-10 for m in report["measurements"])

    monkeypatch.setattr(contest.Contest, "error", lambda *_: 1e-3)
    assert bench.main(["--quick"]) == (1 if contest.pinocchio() is not None else 0)


def test_layouts_worth_measuring_are_different() -> None:
    found = gpu_layouts.choices(ARCHITECTURES["sm_90"], 32)
    assert len(set(found)) == len(found) > 10
