"""Random states of a model, and derivatives by differences on its tangent space."""

from typing import Any

import numpy as np

import dalembert as da


def states(model: da.Model, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    q, v = (np.array(x) for x in zip(*(model.random_state(rng) for _ in range(count)), strict=True))
    return q, v, rng.normal(size=v.shape)


def differences(f: Any, model: da.Model, q: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """d f / dq on the tangent space by central differences; the last axis is nv."""
    columns = [
        (f(da.integrate(model, q, h * e)) - f(da.integrate(model, q, -h * e))) / (2.0 * h)
        for e in np.eye(model.nv)
    ]
    return np.stack(columns, axis=-1)
