"""Fair timing of contestants that share a process.

Contestants take turns, so that a change of clock frequency or a busy neighbour meets all of them, and the
median over the rounds is reported.
"""

import statistics
from collections.abc import Mapping
from timeit import Timer

from dalembert.cli.content import table
from dalembert.cli.doctor import cores, machine

__all__ = ["cores", "interleaved_medians", "machine", "table"]


def interleaved_medians(
    contestants: Mapping[str, Timer], *, rounds: int = 7, seconds: float = 0.05
) -> dict[str, float]:
    """Return the median time of one call of each contestant, in seconds.

    `seconds` is the least duration of one contestant's turn; within a turn the call is repeated often enough
    to fill it. A `Timer` makes the call directly from its statement, without the cost of another Python
    function around it.
    """
    numbers = {name: _repetitions(timer, seconds) for name, timer in contestants.items()}
    turns: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, timer in contestants.items():
            turns[name].append(timer.timeit(numbers[name]) / numbers[name])
    return {name: statistics.median(times) for name, times in turns.items()}


def _repetitions(timer: Timer, seconds: float) -> int:
    timer.timeit(1)  # the first call may compile
    number = 1
    while (elapsed := timer.timeit(number)) < seconds:
        number = max(2 * number, int(number * 1.2 * seconds / elapsed)) if elapsed > 0.0 else 10 * number
    return number
