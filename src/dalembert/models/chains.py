"""The book's general unbranched chains GU(n)."""

from __future__ import annotations

import math

import numpy as np

from dalembert.errors import ArgumentError, own_errors
from dalembert.model.dh import DHRow, dh_chain
from dalembert.model.model import Model
from dalembert.models.random_trees import random_inertia

__all__ = ["gu"]

FIRST_SEED = 2008
"""Link i draws its numbers from seed FIRST_SEED + i, so that GU(n) begins with GU(n - 1)."""


@own_errors
def gu(n: int) -> Model:
    """Return GU(n), a chain of n revolute joints with general DH parameters and inertias (Featherstone 2008
    section 10.3).

    Body frames are Denavit-Hartenberg frames with theta = 0 at q = 0.
    """
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise ArgumentError(f"gu(n) needs a whole number of joints, 1 or more; got {n!r}")
    rows, inertias = [], []
    for i in range(n):
        rng = np.random.default_rng(FIRST_SEED + i)
        rows.append(
            DHRow(
                a=float(rng.uniform(0.1, 0.4)),
                alpha=float(rng.choice((-1.0, 1.0)) * rng.uniform(0.2, math.pi / 2.0 - 0.2)),
                d=float(rng.choice((-1.0, 1.0)) * rng.uniform(0.1, 0.4)),
            )
        )
        inertias.append(random_inertia(rng))
    return dh_chain(rows, inertias, name=f"gu{n}")
