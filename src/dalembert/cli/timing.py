"""Fair timing of contestants that share a process.

Contestants take turns, so that a change of clock frequency or a busy neighbour meets all of them, and the
median over the rounds is reported.
"""

import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from timeit import Timer

import numpy as np

__all__ = ["cores", "cpu_model", "interleaved_medians", "machine", "table"]


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


def machine() -> str:
    """Return one line that names the machine, for the head of a table."""
    return f"{cpu_model()}, {cores()} cores, Python {platform.python_version()}, NumPy {np.__version__}"


def cores() -> int:
    """Return how many processor cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system can bind a process to cores
        return os.cpu_count() or 1


def cpu_model() -> str:
    """Return the processor's name as the operating system gives it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1) -> str:
    """Return a text table: the first `names` columns aligned to the left, the others to the right."""
    cells = [list(headers), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    lines = [
        "  ".join(
            cell.ljust(width) if column < names else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)
