"""How much a stress test does: a short form in `make test`, the whole in `make stress`."""

import os

WHOLE = os.environ.get("DALEMBERT_STRESS", "") not in ("", "0")
"""Whether this is `make stress`."""


def amount(short: int, whole: int) -> int:
    """Return the number of trials: `short` in `make test`, `whole` in `make stress`."""
    return whole if WHOLE else short
