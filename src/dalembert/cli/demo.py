"""`dalembert demo`: the bundled humanoid, its dynamics both ways, and how fast."""

from collections.abc import Callable
from time import perf_counter
from timeit import Timer

import numpy as np

import dalembert as da
from dalembert.cli.contest import Contest, humanoid, pinocchio, random_states
from dalembert.cli.timing import cores, interleaved_medians, machine, table

__all__ = ["run"]

TOLERANCE = 1e-9


def run(*, batch: int) -> int:
    """Print the demonstration; return 1 where the two directions do not invert each other, else 0."""
    model = da.models.humanoid()
    print(f"dalembert {da.__version__} on {machine()}\n")
    print(model.summary())

    q, v = random_states(model, batch)
    a = np.random.default_rng(0).standard_normal((batch, model.nv))
    print(f"\n{batch} random moving states, float64:")
    tau = _timed("tau = da.inverse_dynamics(model, q, v, a)", lambda: da.inverse_dynamics(model, q, v, a))
    back = _timed(
        "a'  = da.forward_dynamics(model, q, v, tau)", lambda: da.forward_dynamics(model, q, v, tau)
    )
    error = float((np.linalg.norm(back - a, axis=-1) / np.linalg.norm(a, axis=-1)).max())
    inverted = error < TOLERANCE
    verdict = "they invert each other" if inverted else "WRONG: they do not invert each other"
    print(f"  largest |a' - a| / |a|: {error:.1e} ({verdict})")

    print("\nSamples per second:")
    rows = [*_rates(Contest("bundled humanoid", model, q, v, a, tau, None))]
    if pinocchio() is None:
        note = "Pinocchio is not installed; with it (pip install pin) its figures stand beside ours."
    else:
        rows += _rates(humanoid(batch))
        note = "Second robot: Pinocchio's own sample humanoid, the same states on both sides."
    print(table(["", "inverse dynamics", "forward dynamics"], rows))
    print(f"\n{note}")
    return 0 if inverted else 1


def _timed(label: str, call: Callable[[], np.ndarray]) -> np.ndarray:
    start = perf_counter()
    result = call()
    first = perf_counter() - start
    start = perf_counter()
    call()
    print(f"  {label:<45}first call {first:6.2f} s, then {(perf_counter() - start) * 1e3:7.2f} ms")
    return result


def _rates(contest: Contest) -> list[list[str]]:
    """One table row a contestant and number of threads: samples per second in each direction."""
    before, rates = da.get_num_threads(), {}
    try:
        for threads in sorted({1, cores()}):
            da.set_num_threads(threads)
            label = f"{contest.name}, dalembert, {threads} thread{'s' if threads > 1 else ''}"
            rates[label] = _both(
                contest.batch("inverse dynamics", out=True), contest.batch("forward dynamics", out=True)
            )
    finally:
        da.set_num_threads(before)
    if contest.peer is not None:
        rates[f"{contest.name}, Pinocchio, 1 thread"] = _both(
            contest.peer.batch("inverse dynamics"), contest.peer.batch("forward dynamics")
        )
    samples = len(contest.q)
    return [[label, *(f"{samples / time:,.0f}" for time in times)] for label, times in rates.items()]


def _both(inverse: Timer, forward: Timer) -> tuple[float, float]:
    times = interleaved_medians({"inverse": inverse, "forward": forward}, rounds=5, seconds=0.05)
    return times["inverse"], times["forward"]
