"""Real model files, damaged at random places: loaded, or refused by an error of the library, and soon."""

from __future__ import annotations

import pytest
from benchmarks.fuzz_files import BATCH, batch, corpus


@pytest.mark.parametrize("first", range(0, 6 * BATCH, BATCH))
def test_damaged_files_are_loaded_or_refused(first: int) -> None:
    """`make fuzz` goes on from here for as long as one likes."""
    outcomes = batch(corpus(), 1_000_000 + first)
    assert len(outcomes) == BATCH
    others = {
        trial: said for trial, said in outcomes.items() if said.split(":")[0] not in ("loaded", "refused")
    }
    assert not others
