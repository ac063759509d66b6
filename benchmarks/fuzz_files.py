"""Mutated files of every format: each is loaded or refused by an error of the library, soon, and nothing else
happens.

The engine is tests/stress/mutated_files.py; this script runs it for a time or a number of trials and prints a
table by format. The same --seed gives the same trials.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.stress.mutated_files import BATCH, attempt, batch, corpus

__all__ = ["BATCH", "attempt", "batch", "corpus", "main"]


def main() -> int:
    """Run trials until the time or the number is up; return 1 if any was neither loaded nor refused."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: 60)")
    parser.add_argument("--trials", type=int, default=10**9, help="how many (default: as time allows)")
    parser.add_argument("--seed", type=int, default=0, help="the first trial's number (default: 0)")
    parser.add_argument("--trial", type=int, help="run one trial here, with its traceback")
    chosen = parser.parse_args()
    files = corpus()
    if chosen.trial is not None:
        print(attempt(files, chosen.trial, explain=True))
        return 0
    end, first = time.monotonic() + chosen.seconds, chosen.seed
    outcomes: Counter[tuple[str, str]] = Counter()
    faults: list[str] = []
    while time.monotonic() < end and first < chosen.seed + chosen.trials:
        for trial, outcome in batch(files, first).items():
            name, kind, *_ = (part.strip() for part in outcome.split(":"))
            outcomes[kind, name] += 1
            if name not in ("loaded", "refused"):
                faults.append(f"trial {trial}: {outcome}")
        first += BATCH
    names = sorted({name for _, name in outcomes}, key=lambda name: (name not in ("loaded", "refused"), name))
    print(f"{'format':16}" + "".join(f"{name:>12}" for name in names))
    for kind in dict.fromkeys(kind for kind, _ in outcomes):
        print(f"{kind:16}" + "".join(f"{outcomes[kind, name]:12,}" for name in names))
    print(f"{outcomes.total():,} trials, {len(faults)} faults")
    for line in faults:
        print(line)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
