"""Motion on the configuration manifold, and through time."""

from __future__ import annotations

from typing import Literal, cast

import numpy as np

from dalembert.api.calls import Array, ArrayLike, Check, result, results
from dalembert.arguments import as_array
from dalembert.errors import ArgumentError
from dalembert.model.model import Model

__all__ = [
    "difference",
    "integrate",
    "normalize",
    "step",
]


def integrate(
    model: Model, q: ArrayLike, dv: ArrayLike, *, out: Array | None = None, check: Check = "raise"
) -> Array:
    """The configuration `(…, nq)` reached from q in unit time at constant velocity dv: pass `v * dt`."""
    return result(model, "integrate", (q, dv), {}, None, {}, out, check)


def difference(
    model: Model, q0: ArrayLike, q1: ArrayLike, *, out: Array | None = None, check: Check = "raise"
) -> Array:
    """The displacement `(…, nv)` at q0 with `integrate(model, q0, difference(model, q0, q1)) = q1`."""
    return result(model, "difference", (q0, q1), {}, None, {}, out, check)


def normalize(model: Model, q: ArrayLike, *, out: Array | None = None) -> Array:
    """q `(…, nq)` with its quaternions scaled to unit norm."""
    return result(model, "normalize", (q,), {}, None, {}, out, "off")


def step(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    dt: float,
    *,
    integrator: Literal["semi_implicit", "rk4"] = "semi_implicit",
    external_forces: ArrayLike | None = None,
    time: ArrayLike | None = None,
    check: Check = "raise",
) -> tuple[Array, Array]:
    """(q, v) after one step of dt [s] with tau held, on the configuration manifold.

    Passive joint forces are added to tau. The linear velocity of a free joint is carried in world axes, so
    that a thrown spinning body keeps its momentum to rounding.
    """
    span = as_array("dt", dt, ())
    if not np.all(np.isfinite(span) & (span > 0.0)):
        raise ArgumentError(f"dt must be positive and finite, got {dt}")
    arrays = {"external_forces": external_forces, "time": time}
    return cast(
        "tuple[Array, Array]",
        results(model, "step", (q, v, tau, dt), arrays, None, {"integrator": integrator}, None, check),
    )
