"""Mutated files of every format are loaded or refused by an error of the library, and nothing else happens.

`make stress` runs 100,000 trials; `make fuzz` goes on for as long as one likes.
"""

from __future__ import annotations

import pytest
from tests.stress.amounts import amount
from tests.stress.mutated_files import BATCH, Sample, attempt, batch, corpus
from tests.stress.mutations import MUTATIONS

BATCHES = amount(10, 1000)
FIRST = 3_000_000


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    return corpus()


@pytest.mark.timeout(3600)
def test_mutated_files_are_loaded_or_refused(samples: list[Sample]) -> None:
    faults: list[str] = []
    for first in range(FIRST, FIRST + BATCHES * BATCH, BATCH):
        outcomes = batch(samples, first)
        assert len(outcomes) == BATCH, f"batch {first} ended early"
        faults += [
            f"trial {trial}: {outcome}"
            for trial, outcome in outcomes.items()
            if outcome.split(":")[0] not in ("loaded", "refused")
        ]
    assert not faults, "\n".join(faults)


def test_trials_load_some_files_of_every_kind_and_refuse_some(samples: list[Sample]) -> None:
    """Mutations that always, or never, break a file would test little."""
    seen: set[str] = set()
    for trial in range(FIRST, FIRST + 60 * len(MUTATIONS)):
        kind = list(MUTATIONS)[trial % len(MUTATIONS)]
        if {f"loaded: {kind}", f"refused: {kind}"} - seen:
            seen.add(attempt(samples, trial))
    assert {f"{outcome}: {kind}" for outcome in ("loaded", "refused") for kind in MUTATIONS} <= seen


def test_a_foreign_exception_is_seen(samples: list[Sample], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("not ours")

    monkeypatch.setattr("tests.stress.mutated_files.USES", dict.fromkeys(MUTATIONS, fails))
    assert attempt(samples, FIRST).startswith("escaped")
    assert {outcome.split(":")[0] for outcome in batch(samples, FIRST).values()} == {"escaped"}
