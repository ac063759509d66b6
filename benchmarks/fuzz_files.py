"""Damaged model files: each is loaded or refused by an error of the library, soon, and nothing else happens.

The files are those of the packages that the tests compare; each trial damages one of them at a few random
places. Trials run in a process of their own, so that a crash is caught and its trial named; the same --seed
gives the same trials.
"""

import argparse
import multiprocessing
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.engines.file_table import MJCF_PACKAGES, URDF_PACKAGES, ModelFile, files_of

import dalembert as da
from dalembert.errors import DalembertError

LARGEST = 200_000
LIMIT = 10.0
"""Seconds that one file may take."""

BATCH = 100
NUMBER = re.compile(rb"-?\d+\.?\d*(?:e-?\d+)?")
ODD = (b"nan", b"inf", b"1e400", b"-1", b"0", b"", b"1,5", b"1e-320", b"1e300", b"x", b"99999999999999999999")


def main() -> int:
    """Run trials until the time is up; return 1 if any ended otherwise than loaded or refused."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="the first trial's number (default: 0)")
    parser.add_argument("--trial", type=int, help="run one trial here, with its traceback")
    chosen = parser.parse_args()
    files = corpus()
    if chosen.trial is not None:
        print(attempt(files, chosen.trial, explain=True))
        return 0
    end, first = time.monotonic() + chosen.seconds, chosen.seed
    outcomes: Counter[str] = Counter()
    faults: list[str] = []
    while time.monotonic() < end:
        for trial, outcome in batch(files, first).items():
            kind = outcome.split(":")[0]
            outcomes[kind] += 1
            if kind not in ("loaded", "refused"):
                faults.append(f"trial {trial}: {outcome}")
        first += BATCH
    print(f"{sum(outcomes.values())} trials: " + ", ".join(f"{n} {kind}" for kind, n in outcomes.items()))
    for line in faults:
        print(line)
    return int(bool(faults))


def corpus() -> list[ModelFile]:
    """Files of moderate size; those with includes fail early, and teach little."""
    files = [*files_of(URDF_PACKAGES, ".urdf"), *files_of(MJCF_PACKAGES, ".xml")]
    return [
        file
        for file in files
        if file.path.stat().st_size < LARGEST and b"<include" not in file.path.read_bytes()
    ]


def batch(files: Sequence[ModelFile], first: int) -> dict[int, str]:
    """The outcomes of some trials in a process of their own; its end, if it dies, is the last trial's."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=trials, args=(files, first, theirs))
    process.start()
    theirs.close()
    outcomes: dict[int, str] = {}
    try:
        while True:
            trial, outcome = ours.recv()
            outcomes[trial] = outcome
    except EOFError:
        process.join()
    if process.exitcode:
        outcomes[max(outcomes, default=first)] = f"crash: exit code {process.exitcode}"
    return outcomes


def trials(files: Sequence[ModelFile], first: int, pipe: Any) -> None:
    for trial in range(first, first + BATCH):
        pipe.send((trial, "crash: died"))
        pipe.send((trial, attempt(files, trial)))
    pipe.close()


def attempt(files: Sequence[ModelFile], trial: int, *, explain: bool = False) -> str:
    """Damage a file and load it."""
    rng = random.Random(trial)
    file = rng.choice(files)
    content = damaged(file.path.read_bytes(), rng)
    options = {"root": rng.choice([None, "floating"]), "inertia": rng.choice(["as_given", "repair"])}
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file.path.name
        path.write_bytes(content)
        try:
            da.load(path, roots=[file.root], **options)
            return "loaded"
        except DalembertError as error:
            return f"refused: {error}" if explain else "refused"
        except Exception as error:  # what this script is looking for
            if explain:
                traceback.print_exc()
            return f"escaped: {file.name}: {type(error).__name__}: {str(error)[:100]}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)


def _late(number: int, frame: Any) -> None:
    raise TimeoutError(f"not done after {LIMIT:g} s")


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The content with one to four random injuries."""
    for _ in range(rng.randint(1, 4)):
        content = rng.choice(INJURIES)(content, rng)
    return content


def flip(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(max(1, len(content)))
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def cut(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(max(1, len(content)))
    return content[:start] + content[start + rng.choice((1, 10, 200, 10**9)) :]


def repeat(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(max(1, len(content)))
    part = content[start : start + rng.choice((10, 200, 2000))]
    return content[:start] + part * rng.choice((2, 50)) + content[start + len(part) :]


def odd_number(content: bytes, rng: random.Random) -> bytes:
    places = list(NUMBER.finditer(content))
    if not places:
        return content
    place = rng.choice(places)
    return content[: place.start()] + rng.choice(ODD) + content[place.end() :]


def exchange(content: bytes, rng: random.Random) -> bytes:
    """Two lines change places."""
    lines = content.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


INJURIES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip,
    cut,
    repeat,
    odd_number,
    odd_number,
    exchange,
)


if __name__ == "__main__":
    sys.exit(main())
