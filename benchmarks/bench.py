"""Time per sample of the three central computations on this machine, beside Pinocchio's if it is installed.

Forward dynamics, inverse dynamics and the mass matrix of an arm and a humanoid run on one thread, in a batch
of 4096 rows and in single calls. Pinocchio runs in the same process on the same robots; results are compared
before they are timed. Run: `python benchmarks/bench.py --quick`.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from timeit import Timer

from contest import ALGORITHMS, Algorithm, Contest, arm, humanoid, one_thread, pinocchio
from timing import interleaved_medians, machine, table

from dalembert import __version__

BATCH_SIZE = 4096
"""Rows of a batch; the overhead of a call is then negligible."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 where a result disagrees with Pinocchio's, else 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: about twenty seconds")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    options = parser.parse_args(arguments)
    rounds, seconds = (3, 0.02) if options.quick else (9, 0.1)
    measurements = []
    with one_thread():
        for contest in (arm(BATCH_SIZE), humanoid(BATCH_SIZE)):
            for algorithm in ALGORITHMS:
                measurements += _measure(contest, algorithm, rounds=rounds, seconds=seconds)
    print(_json(measurements) if options.json else _text(measurements))
    return int(any(m.error is not None and m.error > 1e-10 for m in measurements))


@dataclass(frozen=True, slots=True)
class Measurement:
    """Microseconds per sample; `peer` and `error` are None where Pinocchio is not installed."""

    robot: str
    algorithm: Algorithm
    call: str
    ours: float
    peer: float | None
    error: float | None


def _measure(contest: Contest, algorithm: Algorithm, *, rounds: int, seconds: float) -> list[Measurement]:
    rows = len(contest.q)
    error = contest.error(algorithm) if contest.peer is not None else None
    batch: dict[str, Timer] = {
        f"batch of {rows}, out=": contest.batch(algorithm, out=True),
        f"batch of {rows}": contest.batch(algorithm, out=False),
    }
    single: dict[str, Timer] = {
        "single, compiled": contest.single(algorithm, compiled=True),
        "single": contest.single(algorithm, compiled=False),
    }
    found = []
    for calls, samples in ((batch, rows), (single, 1)):
        timers = dict(calls)
        if contest.peer is not None:
            timers["peer"] = contest.peer.batch(algorithm) if samples > 1 else contest.peer.single(algorithm)
        times = interleaved_medians(timers, rounds=rounds, seconds=seconds)
        peer = times["peer"] / samples * 1e6 if "peer" in times else None
        found += [
            Measurement(contest.name, algorithm, call, times[call] / samples * 1e6, peer, error)
            for call in calls
        ]
    return found


def _text(measurements: list[Measurement]) -> str:
    headers = ["", "call", "dalembert", "Pinocchio", "ratio", "difference"]
    blocks = [f"dalembert {__version__} on {machine()}", "float64, one thread, microseconds per sample"]
    for robot in dict.fromkeys(m.robot for m in measurements):
        rows = [[m.algorithm, m.call, f"{m.ours:.3f}", *_beside(m)] for m in measurements if m.robot == robot]
        blocks.append(f"{robot}\n{table(headers, rows, names=2)}")
    if pinocchio() is None:
        blocks.append("Pinocchio is not installed: pip install 'dalembert[pinocchio]' to see it beside.")
    return "\n\n".join(blocks)


def _beside(m: Measurement) -> list[str]:
    if m.peer is None or m.error is None:
        return ["-", "-", "-"]
    return [f"{m.peer:.3f}", f"{m.peer / m.ours:.1f}x", f"{m.error:.0e}"]


def _json(measurements: list[Measurement]) -> str:
    return json.dumps(
        {"dalembert": __version__, "machine": machine(), "measurements": [asdict(m) for m in measurements]},
        indent=2,
    )


if __name__ == "__main__":
    sys.exit(main())
