"""States to compute with."""

from __future__ import annotations

from typing import Any

import numpy as np


def states(model: Any, rows: int, dtype: str = "float64") -> list[np.ndarray]:
    """q, v and a third array of nv numbers of moving states."""
    rng = np.random.default_rng(7)
    q = np.stack([model.random_state(rng)[0] for _ in range(rows)])
    return [x.astype(dtype) for x in (q, *rng.standard_normal((2, rows, model.nv)))]
