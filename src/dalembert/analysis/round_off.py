"""Rounding errors of the algorithms, measured against extended precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from dalembert import algorithms
from dalembert.algorithms.aligned import aligned
from dalembert.analysis.configurations import instant, require_model
from dalembert.errors import ArgumentError, own_errors, require_choice, whole_number
from dalembert.model.model import Model
from dalembert.model.tree import Tree

__all__ = ["RoundOff", "round_off"]

Array = npt.NDArray[np.float64]

METHODS: dict[str, Callable[..., Any]] = {
    "rnea": algorithms.inverse_dynamics,
    "aba": algorithms.forward_dynamics,
    "crba": algorithms.forward_dynamics_by_matrix,
    "rnea_spatial": lambda *arguments, **clock: algorithms.rnea_spatial(*arguments, **clock).tau,
    "aba_spatial": algorithms.forward_dynamics_spatial,
}
"""The algorithms whose rounding can be measured; each takes q, v, and a or tau."""

MAX_SAMPLES: Final = 10**6
"""More samples do not improve the median."""
MAX_SEED: Final = 2**128 - 1
"""NumPy's generators use 128 bits of a seed."""


@final
@dataclass(frozen=True, slots=True)
class RoundOff:
    """The rounding error of a method in a float type.

    `error`: the median over samples of max|x - x_exact| / max|x_exact|; `digits`: the number of correct
    figures of the largest entries.
    """

    method: str
    dtype: str
    error: float

    @property
    def digits(self) -> float:
        """The number -log10(error) of correct digits."""
        return float(-np.log10(self.error)) if self.error else float("inf")


@own_errors
def round_off(
    model: Model,
    *,
    methods: Sequence[str] = ("rnea", "aba", "crba"),
    dtypes: Sequence[str] = ("float64", "float32"),
    samples: int = 20,
    seed: int = 0,
    frames: Literal["aligned", "model"] = "aligned",
    time: float | None = None,
) -> list[RoundOff]:
    """Measure error = max|x - x_exact| / max|x_exact| of the dynamics, by method and float type.

    x is tau for "rnea" and "rnea_spatial", and the accelerations for "aba", "crba" (mass matrix, factors,
    solve) and "aba_spatial"; x_exact comes from the same model in extended precision, which the machine must
    support. States are drawn within the limits; velocities and forces (or accelerations) are random.
    `frames`: "aligned", which the compiled functions use, or "model". Each entry is one NumPy array over all
    samples, so that nothing is compiled. `time` [s]: for models with time-dependent joints. For trees.

    Source: Featherstone 2008 section 10.1: the three algorithms stay accurate for thousands of bodies, and
    the articulated-body algorithm is the more accurate of the two for forward dynamics.

    >>> import dalembert as da
    >>> for found in da.analysis.round_off(da.models.gu(12), methods=("aba", "crba")):
    ...     print(f"{found.method:5}{found.dtype}: {found.digits:.0f} digits")
    aba  float64: 16 digits
    aba  float32: 7 digits
    crba float64: 15 digits
    crba float32: 6 digits
    """
    require_model(model, "round_off")
    if np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps:
        raise ArgumentError("round_off needs extended precision (numpy.longdouble), which this machine lacks")
    for method in methods:
        require_choice("method of round_off", method, METHODS)
    require_choice("frames of round_off", frames, ("aligned", "model"))
    tree = aligned(model) if frames == "aligned" else model
    samples = whole_number("round_off: samples", samples, 1, MAX_SAMPLES)
    seed = whole_number("round_off: seed", seed, 0, MAX_SEED)
    state = _states(model, samples, seed)
    at = instant(time, "round_off")
    clock = {} if at is None else {"time": np.full(samples, at, np.float32)}
    found = []
    for method in methods:
        exact = _evaluate(tree, method, state, clock, "longdouble")
        size = np.abs(exact).max(axis=0)
        for dtype in dtypes:
            difference = np.abs(_evaluate(tree, method, state, clock, dtype) - exact).max(axis=0)
            found.append(RoundOff(method, dtype, float(np.median(difference / size))))
    return found


def _states(model: Model, samples: int, seed: int) -> list[Array]:
    """Return random q, v and tau, (n, samples) each, that float32 represents exactly."""
    rng = np.random.default_rng(seed)
    q = np.array([model.random_state(rng)[0] for _ in range(samples)]).T
    v, tau = rng.standard_normal((2, model.nv, samples))
    return [x.astype(np.float32).astype(np.float64) for x in (q, v, 5.0 * tau)]


def _evaluate(tree: Tree, method: str, state: Sequence[Array], clock: dict[str, Any], dtype: str) -> Any:
    arguments = [list(x.astype(dtype)) for x in state]
    entries = METHODS[method](tree, *arguments, **{name: x.astype(dtype) for name, x in clock.items()})
    return np.array([np.broadcast_to(x, state[0].shape[1:]) for x in entries], dtype=np.longdouble)
