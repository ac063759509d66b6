"""Derivatives of the dynamics beside Pinocchio's, their size, and what compiling them takes.

Run: `python benchmarks/derivatives.py`. Both sides run in this process, float64, on one thread, on the same
states; results are compared first. A batch is 4096 rows: into given arrays (`out=`) and into new ones, which
costs the memory's time, since the three matrices of the humanoid take 24 kB a sample. The peer has no batch
functions for derivatives and is called row by row; a single call allocates its results. Times are the least
of interleaved rounds. `bar` is the least ratio, or the longest time, that the project asks of itself.

The second table compares the analytic recursion with differentiation of the traced graph, by operations; the
third holds the gradient of a scalar cost through forward dynamics, in reverse mode, against the cost itself.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from timeit import Timer
from typing import Any

import numpy as np
from contest import Contest, arm, humanoid, one_thread, pinocchio
from timing import machine, table

import dalembert as da
from dalembert.api import declared
from dalembert.compiler.library import function

BATCH = 4096
NAMES = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")
BARS = {"6-joint arm": 20.0, "humanoid, nv 32": 6.0}
GRADIENT = 5.0
"""What a gradient may cost, in times of its function."""

COLD, CACHED = 8.0, 0.15
"""Seconds to compile the derivatives of the humanoid's inverse dynamics, and to load them."""

COMPILE = """
import sys, time
from dalembert.api import declared
from contest import humanoid
contest = humanoid(16)
start = time.perf_counter()
getattr(declared, sys.argv[1])(contest.model, contest.q, contest.v, contest.a)
print(time.perf_counter() - start)
"""


def main() -> int:
    """Print the tables; return 1 where a bar is missed or a result differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=25, help="interleaved rounds (default: 25)")
    options = parser.parse_args()
    if pinocchio() is None:
        print("derivatives.py needs the peer: pip install 'dalembert[pinocchio]'", file=sys.stderr)
        return 1
    print(f"Derivatives on {machine()}\n")
    missed: list[str] = []
    rows = []
    with one_thread():
        for contest in (arm(BATCH), humanoid(BATCH)):
            for name in NAMES:
                rows += compare(contest, name, options.rounds, missed)
    headers = ["robot", "derivatives", "call", "dalembert us", "Pinocchio us", "ratio", "bar", "difference"]
    print(table(headers, rows, names=3))
    print()
    operations()
    print()
    with one_thread():
        gradients(options.rounds, missed)
    print()
    compile_times(missed)
    print("\nEvery bar is met." if not missed else "\nMissed: " + "; ".join(missed))
    return int(bool(missed))


def compare(contest: Contest, name: str, rounds: int, missed: list[str]) -> list[list[str]]:
    """Rows of the table for one robot and one function."""
    inverse = name.startswith("inverse")
    ours, peer = getattr(declared, name), contest.peer
    assert peer is not None
    states = (contest.q, contest.v, contest.a if inverse else contest.tau)
    peer_states = (peer.q, peer.v, peer.a if inverse else peer.tau)
    out = ours(contest.model, *states)
    difference = error(peer, out, inverse, peer_states)
    if difference > 1e-9:
        missed.append(f"{contest.name} {name} differs by {difference:.0e}")
    names: dict[str, Any] = {"f": ours, "model": contest.model, "out": out}
    names |= dict(zip("qvx", states)) | {f"{x}0": array[0].copy() for x, array in zip("qvx", states)}
    pin = pinocchio()
    theirs: dict[str, Any] = {
        "f": pin.computeRNEADerivatives if inverse else pin.computeABADerivatives,
        "model": peer.model,
        "data": peer.model.createData(),
        "rows": list(zip(*(list(array[:256]) for array in peer_states))),
    }
    theirs |= {f"{x}0": array[0].copy() for x, array in zip("qvx", peer_states)}
    times = least(
        {
            "batch, out=": (Timer("f(model, q, v, x, out=out)", globals=names), BATCH),
            "batch": (Timer("f(model, q, v, x)", globals=names), BATCH),
            "single": (Timer("for _ in range(64): f(model, q0, v0, x0)", globals=names), 64),
            "peer rows": (Timer("for row in rows: f(model, data, *row)", globals=theirs), 256),
            "peer single": (Timer("for _ in range(64): f(model, data, q0, v0, x0)", globals=theirs), 64),
        },
        rounds,
    )
    result = []
    for call, against in (("batch, out=", "peer rows"), ("batch", "peer rows"), ("single", "peer single")):
        ratio = times[against] / times[call]
        bar = {"batch, out=": BARS[contest.name], "single": 1.0}.get(call)
        if bar is not None and ratio < bar:
            missed.append(f"{contest.name} {name}, {call}: {ratio:.1f}x of {bar:g}x")
        result.append(
            [
                contest.name,
                "dID" if inverse else "dFD",
                call,
                f"{times[call]:.3f}",
                f"{times[against]:.3f}",
                f"{ratio:.1f}x",
                f"{bar:g}x" if bar else "",
                f"{difference:.0e}",
            ]
        )
    return result


def error(peer: Any, ours: Any, inverse: bool, states: Any, rows: int = 16) -> float:
    """The largest difference from the peer relative to its largest entry, over the first rows."""
    pin: Any = pinocchio()
    data, worst = peer.model.createData(), 0.0
    function = pin.computeRNEADerivatives if inverse else pin.computeABADerivatives
    for k, row in enumerate(zip(*(array[:rows] for array in states))):
        for mine, theirs in zip(ours, function(peer.model, data, *row)):
            back = peer.bridge.mass_matrix_back(mine[k])
            upper = np.triu(theirs)
            full = upper + np.triu(upper, 1).T if not np.tril(theirs, -1).any() else theirs
            worst = max(worst, float(np.abs(back - full).max() / np.abs(full).max()))
    return worst


def least(contestants: dict[str, tuple[Timer, int]], rounds: int) -> dict[str, float]:
    """Microseconds a sample: the least of interleaved turns."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, (timer, samples) in contestants.items():
            best[name] = min(best[name], timer.timeit(1) / samples * 1e6)
    return best


def operations() -> None:
    """Operations a sample of the recursion and of the differentiated graph."""
    rows = []
    for name, model in (
        ("arm6", da.models.arm6()),
        ("arm7", da.models.arm7()),
        ("sample arm", arm(2).model),
        ("quadruped", da.models.quadruped()),
        ("sample humanoid", humanoid(2).model),
        ("humanoid", da.models.humanoid()),
    ):
        analytic = function(model, "inverse_dynamics_derivatives").operation_count.total
        graph = function(model, "inverse_dynamics", by=("q", "v", "a")).operation_count.total
        forward = function(model, "forward_dynamics_derivatives").operation_count.total
        plain = function(model, "inverse_dynamics").operation_count.total
        rows.append(
            [
                name,
                str(model.nv),
                str(plain),
                str(analytic),
                str(graph),
                f"{graph / analytic:.2f}",
                str(forward),
            ]
        )
    print(table(["model", "nv", "ID", "dID", "dID by graph", "ratio", "dFD"], rows))


def cost(model: da.Model, q: Any, v: Any, tau: Any) -> Any:
    """Half the square of the accelerations."""
    return 0.5 * sum((x * x for x in da.algorithms.forward_dynamics(model, q, v, tau)), 0.0)


def gradients(rounds: int, missed: list[str]) -> None:
    """What the gradient of a cost by q, v and tau takes, in times of the cost."""
    rows = []
    for contest in (arm(BATCH), humanoid(BATCH)):
        f = da.compile(cost, contest.model)
        g = f.vjp("q", "v", "tau")
        state = (contest.q, contest.v, contest.tau)
        one = [x[0] for x in state]
        weights, unit = np.ones(BATCH), np.array(1.0)
        f(*state), g(*state, weights), f(*one), g(*one, unit)
        times = least(
            {
                "f": (Timer(lambda: f(*state)), BATCH),  # noqa: B023
                "g": (Timer(lambda: g(*state, weights)), BATCH),  # noqa: B023
                "f one": (Timer(lambda: f(*one)), 1),  # noqa: B023
                "g one": (Timer(lambda: g(*one, unit)), 1),  # noqa: B023
            },
            rounds,
        )
        counted = [c.multiplications + c.additions for c in (f.operation_count, g.operation_count)]
        ratios = [counted[1] / counted[0], times["g"] / times["f"], times["g one"] / times["f one"]]
        if max(ratios) > GRADIENT:
            missed.append(f"gradient of {contest.name}: {max(ratios):.1f} times the function")
        rows.append([contest.name, *(f"{x:.2f}" for x in ratios), f"{GRADIENT:g}"])
    print("gradient of a cost through forward dynamics by q, v and tau, in times of the cost")
    print(table(["robot", "operations", "batch", "single call", "bar"], rows))


def compile_times(missed: list[str]) -> None:
    """Seconds until the first batch of the humanoid, with an empty cache and with a filled one."""
    rows = []
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            runs = [
                float(
                    subprocess.run(
                        [sys.executable, "-c", COMPILE, name],
                        env={**os.environ, "DALEMBERT_CACHE_DIR": folder},
                        cwd=Path(__file__).parent,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL,
                        check=True,
                        text=True,
                    ).stdout
                )
                for _ in range(2)
            ]
        bars = (COLD, CACHED) if name == NAMES[0] else (None, None)
        for run, bar in zip(runs, bars):
            if bar is not None and run > bar:
                missed.append(f"compiling {name}: {run:.2f} s of {bar:g} s")
        shown = [f"{bar:g}" if bar else "" for bar in bars]
        rows.append([name, f"{runs[0]:.2f}", shown[0], f"{runs[1]:.3f}", shown[1]])
    print("humanoid, nv 32: seconds to the first result of a batch")
    print(table(["function", "cold", "bar", "from cache", "bar"], rows))


if __name__ == "__main__":
    sys.exit(main())
