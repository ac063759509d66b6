"""Least values within bounds, by SciPy's limited-memory BFGS, with what happened on the way.

Variables are measured in units of their own curvature, y = (x - x_0) sqrt(H), so that a step along one of
them counts as much as along another, and the squared norm of the gradient by y is about twice what is left
to gain.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, TextIO, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import MissingExtraError

__all__ = ["Descent", "Progress", "descend"]

Array = npt.NDArray[np.float64]
Callback: TypeAlias = Callable[[int, float, float], object]
"""Called with the number of the accepted iterate, its energy and the norm of its gradient."""

MEMORY = 20
"""Pairs of changes of position and gradient that BFGS remembers."""


class Descent(NamedTuple):
    """Where a descent ended.

    `x`, `energies` and `gradient_norms` of all accepted iterates and of the start, the number of
    `evaluations`, whether it `converged`.
    """

    x: Array
    energies: Array
    gradient_norms: Array
    evaluations: int
    converged: bool


def descend(
    function: Callable[[Array], tuple[float, Array]],
    x: Array,
    curvature: Array,
    lower: Array,
    upper: Array,
    *,
    iterations: int,
    tolerance: float,
    callback: Callback,
) -> Descent:
    """Minimise a function that gives its value and gradient, from x on, within bounds.

    It has converged where the norm of the gradient by the scaled variables, without the parts that push
    against bounds, is at most tolerance times the root of the value.
    """
    minimize = _optimizer().minimize
    unit = 1.0 / np.sqrt(curvature)
    low, high = (lower - x) / unit, (upper - x) / unit
    seen: dict[str, Any] = {}
    energies: list[float] = []
    norms: list[float] = []

    def scaled(y: Array) -> tuple[float, Array]:
        value, gradient = function(x + unit * y)
        seen.update(y=y.copy(), gradient=unit * gradient)
        return value, seen["gradient"]

    def accepted(y: Array, value: float) -> None:
        gradient = seen["gradient"] if np.array_equal(y, seen["y"]) else scaled(y)[1]
        pushing = ((y <= low) & (gradient > 0.0)) | ((y >= high) & (gradient < 0.0))
        energies.append(value)
        norms.append(float(np.linalg.norm(np.where(pushing, 0.0, gradient))))
        callback(len(energies) - 1, value, norms[-1])

    def is_over() -> bool:
        return norms[-1] <= tolerance * math.sqrt(max(energies[-1], 0.0))

    def each(intermediate_result: Any) -> None:
        accepted(intermediate_result.x, float(intermediate_result.fun))
        if is_over():
            raise StopIteration

    y = np.clip(np.zeros_like(x), low, high)
    accepted(y, scaled(y)[0])
    evaluations = 1
    if not is_over() and iterations > 0:
        options = {
            "maxcor": MEMORY,
            "maxiter": iterations,
            "maxfun": 20 * iterations,
            "ftol": 0.0,
            "gtol": 0.0,
        }
        bounds = np.stack([low, high], axis=1)
        with _one_thread():
            found = minimize(
                scaled, y, jac=True, method="L-BFGS-B", bounds=bounds, callback=each, options=options
            )
        y = found.x
        evaluations += int(found.nfev)
    return Descent(
        np.clip(x + unit * y, lower, upper), np.array(energies), np.array(norms), evaluations, is_over()
    )


@final
class Progress:
    """One line on a terminal that says how far a descent is; `with Progress(…) as progress`."""

    def __init__(self, what: str, *, shown: bool | None, stream: TextIO | None = None) -> None:
        """`shown`: None where the stream is a terminal."""
        self._what = what
        self._stream = sys.stderr if stream is None else stream
        self._shown = self._stream.isatty() if shown is None else shown
        self._said = False

    def __enter__(self) -> Progress:
        return self

    def __call__(self, iteration: int, energy: float, gradient_norm: float) -> None:
        if self._shown and iteration % 25 == 0:
            self._said = True
            self._stream.write(
                f"\r{self._what}: {iteration} iterations, energy {energy:.6g}, gradient {gradient_norm:.2e} "
            )
            self._stream.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._said:
            self._stream.write("\n")


def _one_thread() -> contextlib.AbstractContextManager[Any]:
    """BLAS on one thread, where threadpoolctl is there to say so.

    The matrices of BFGS are small: waiting for other threads took most of the time on a busy machine.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return contextlib.nullcontext()
    limits: contextlib.AbstractContextManager[Any] = threadpool_limits(1, "blas")
    return limits


def _optimizer() -> Any:
    try:
        import scipy.optimize
    except ImportError as error:
        raise MissingExtraError(
            "transitions are found with SciPy, which is not installed; pip install 'dalembert[motion]' "
            "or pip install scipy"
        ) from error
    return scipy.optimize
