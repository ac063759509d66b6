"""Time per sample beside Pinocchio: batches, single calls, threads. Run: `make bench` or `python
benchmarks/speed.py`.

Both sides run in this process, float64, on one thread, on the same states; their results are compared first.
A batch is 4096 row-major rows; the peer uses its batch functions, which write into a buffer, where it has
them. A single call allocates its result. Times are medians of interleaved rounds. `bar` is the least ratio
the project asks of itself.
"""

import argparse
import sys

from contest import ALGORITHMS, Contest, arm, humanoid, one_thread, pinocchio
from timing import interleaved_medians, machine, table

import dalembert as da

BATCH, LARGE_BATCH = 4096, 65_536

BARS = {
    ("6-joint arm", "forward dynamics", "batch, out="): 50.0,
    ("humanoid, nv 32", "forward dynamics", "batch, out="): 12.0,
    ("humanoid, nv 32", "inverse dynamics", "batch, out="): 8.0,
    ("humanoid, nv 32", "mass matrix", "batch, out="): 4.0,
    ("humanoid, nv 32", "inverse dynamics", "batch"): 7.0,
    ("humanoid, nv 32", "mass matrix", "batch"): 3.0,
    ("6-joint arm", "forward dynamics", "single f"): 3.0,
    ("6-joint arm", "inverse dynamics", "single f"): 3.0,
    ("6-joint arm", "mass matrix", "single f"): 2.0,
    ("humanoid, nv 32", "forward dynamics", "single f"): 2.0,
    ("humanoid, nv 32", "inverse dynamics", "single f"): 2.0,
    ("humanoid, nv 32", "mass matrix", "single f"): 2.0,
    **{
        (robot, algorithm, "single da"): 1.0
        for robot in ("6-joint arm", "humanoid, nv 32")
        for algorithm in ALGORITHMS
    },
}

HEADERS = ["robot", "computation", "call", "dalembert us", "Pinocchio us", "ratio", "bar", "difference"]


def main() -> int:
    """Print both tables; return 1 where a bar is missed or a result differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds (default: 9)")
    parser.add_argument(
        "--seconds", type=float, default=0.1, help="least duration of one turn (default: 0.1)"
    )
    options = parser.parse_args()
    if pinocchio() is None:
        print("speed.py needs the peer: pip install 'dalembert[pinocchio]'", file=sys.stderr)
        return 1

    print(f"Speed on {machine()}\n")
    rows: list[list[str]] = []
    missed: list[str] = []
    with one_thread():
        for contest in (arm(BATCH), humanoid(BATCH), humanoid(BATCH, random=False)):
            for algorithm in ALGORITHMS:
                rows += compare(contest, algorithm, options.rounds, options.seconds, missed)
    print(table(HEADERS, rows, names=3))
    print("\nbatch: 4096 rows; single f: f = da.compile(...); single da: da.forward_dynamics(model, ...)\n")
    threads(options.rounds, options.seconds, missed)
    print("\nEvery bar is met." if not missed else "\nMissed: " + "; ".join(missed))
    return int(bool(missed))


def compare(contest: Contest, algorithm, rounds: int, seconds: float, missed: list[str]) -> list[list[str]]:
    """Rows of the table for one robot and one computation."""
    peer = contest.peer
    difference = contest.error(algorithm)
    if difference > 1e-10:
        missed.append(f"{contest.name} {algorithm} differs by {difference:.0e}")
    batch = {
        "batch, out=": contest.batch(algorithm, out=True),
        "batch": contest.batch(algorithm, out=False),
        "peer": peer.batch(algorithm),
    }
    single = {
        "single f": contest.single(algorithm, compiled=True),
        "single da": contest.single(algorithm, compiled=False),
        "peer": peer.single(algorithm),
    }
    rows = []
    for timers, samples in ((batch, BATCH), (single, 1)):
        times = interleaved_medians(timers, rounds=rounds, seconds=seconds)
        theirs = times.pop("peer") / samples * 1e6
        for call, time in times.items():
            ours = time / samples * 1e6
            bar = BARS.get((contest.name, algorithm, call))
            if bar is not None and theirs / ours < bar:
                missed.append(f"{contest.name} {algorithm}, {call}: {theirs / ours:.1f}x of {bar:g}x")
            rows.append(
                [
                    contest.name,
                    algorithm,
                    call,
                    f"{ours:.3f}",
                    f"{theirs:.3f}",
                    f"{theirs / ours:.1f}x",
                    f"{bar:g}x" if bar is not None else "",
                    f"{difference:.0e}",
                ]
            )
    return rows


def threads(rounds: int, seconds: float, missed: list[str]) -> None:
    """Two threads against one on a large batch."""
    contest = humanoid(LARGE_BATCH)
    rows = []
    for algorithm in ALGORITHMS[:2]:
        timer = contest.batch(algorithm, out=True)
        times = interleaved_medians({1: Bound(timer, 1), 2: Bound(timer, 2)}, rounds=rounds, seconds=seconds)
        ratio = times[1] / times[2]
        if ratio < 1.7:
            missed.append(f"two threads, {algorithm}: {ratio:.2f}x of 1.7x")
        rows.append([algorithm, f"{times[1] * 1e3:.1f}", f"{times[2] * 1e3:.1f}", f"{ratio:.2f}x", "1.7x"])
    print(f"Threads: {contest.name}, {LARGE_BATCH} rows, milliseconds")
    print(table(["computation", "1 thread", "2 threads", "ratio", "bar"], rows))


class Bound:
    """A timer that runs under a given number of threads."""

    def __init__(self, timer, number_of_threads: int) -> None:
        self.timer, self.number_of_threads = timer, number_of_threads

    def timeit(self, number: int) -> float:
        before = da.get_num_threads()
        da.set_num_threads(self.number_of_threads)
        try:
            return self.timer.timeit(number)
        finally:
            da.set_num_threads(before)


if __name__ == "__main__":
    sys.exit(main())
