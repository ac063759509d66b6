"""Minimisation within bounds by SciPy's limited-memory BFGS, with a record of the iterates.

BFGS is fast where the Hessian is near the identity, but here it is ill-conditioned. So BFGS works in
variables y in which the Hessian is the identity at the start. With the Hessian H there, by differences of
gradients,

    x = x_0 + T y,    T^T H T = 1                                                                    (1)

and the squared norm of the gradient with respect to y is about twice the possible decrease. Bounds must
remain bounds of single variables. So the variables b that are at bounds, or have crossed them, are only
scaled, and the others f follow them according to H,

    x_b = D y_b,    x_f = L^-T y_f - H_ff^-1 H_fb x_b,    L L^T = H_ff                               (2)

H is recomputed after a number of iterations.
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

Function: TypeAlias = Callable[[Array], tuple[Any, Array]]
"""Values (…) and gradients (…, n) at points (…, n)."""

BFGS_MEMORY = 20
"""Number of position and gradient changes that L-BFGS stores."""

ITERATIONS_PER_HESSIAN = 50
"""Iterations after which H is recomputed."""

DIFFERENCE_STEP = 1e-5
"""Step of the finite differences [rad, m]."""

POINTS_PER_CALL = 32
"""Points of the finite differences that are evaluated in one call."""

EXTRAPOLATION_FACTOR = 1.0
"""Extrapolation of a run, relative to its length, to find the bounds that it would cross."""

MIN_EIGENVALUE = 1e-6
"""Least eigenvalue of H scaled to a unit diagonal; smaller ones are raised to it."""


class Descent(NamedTuple):
    """The result of a descent.

    `x`; `energies` and `gradient_norms` of all accepted iterates and of the start; the number of
    `evaluations`; whether it `converged`.
    """

    x: Array
    energies: Array
    gradient_norms: Array
    evaluations: int
    converged: bool


def descend(
    function: Function,
    x: Array,
    lower: Array,
    upper: Array,
    *,
    iterations: int,
    tolerance: float,
    callback: Callback,
) -> Descent:
    """Minimise a function that returns its value and gradient, from x on, within bounds.

    It has converged when the norm of the gradient with respect to y, without components that push against
    bounds, is at most tolerance times the root of the value. It also ends when BFGS finds no lower value.
    """
    with _one_thread():
        return _descend(
            _Search(function, np.clip(x, lower, upper), lower, upper, iterations, tolerance, callback),
            lower,
            upper,
        )


def _descend(search: _Search, lower: Array, upper: Array) -> Descent:
    bounded = np.zeros(len(search.x), bool)
    H = search.hessian()
    fresh = 0
    while True:
        bounded |= (search.x <= lower) | (search.x >= upper)
        variables = _Variables(H, search.x, bounded, lower, upper)
        if not search.energies:
            search.accept_iterate(search.x, variables)
        if search.is_over():
            break
        before = len(search.energies)
        crossed = search.run(variables)
        accepted = len(search.energies) - before
        if search.is_over() or not (accepted or crossed.any() or fresh):
            break
        bounded |= crossed
        fresh += accepted
        if not crossed.any() or fresh >= ITERATIONS_PER_HESSIAN:
            H, fresh = search.hessian(), 0
    energies, norms = np.array(search.energies), np.array(search.norms)
    return Descent(search.x, energies, norms, search.evaluations, search.has_converged())


@final
class _Search:
    """The current iterate of a descent and its history."""

    def __init__(
        self,
        function: Function,
        x: Array,
        lower: Array,
        upper: Array,
        iterations: int,
        tolerance: float,
        callback: Callback,
    ) -> None:
        self._function, self._lower, self._upper = function, lower, upper
        self._iterations, self._tolerance, self._callback = iterations, tolerance, callback
        self._minimize = _optimizer().minimize
        self._last = x
        self.energies: list[float] = []
        self.norms: list[float] = []
        self.evaluations = 0
        self.x = x
        self.value, self.gradient = self.evaluate(x)

    def evaluate(self, x: Array) -> tuple[float, Array]:
        """Evaluate the value and the gradient at x."""
        self.evaluations += 1
        value, gradient = self._function(x)
        self._last, self._found = x, (float(value), gradient)
        return self._found

    def accept_iterate(self, x: Array, variables: _Variables) -> None:
        """Move to x and record its value and gradient norm."""
        self.value, self.gradient = self._found if np.array_equal(x, self._last) else self.evaluate(x)
        self.x = x
        self.energies.append(self.value)
        self.norms.append(variables.norm(x, self.gradient))
        self._callback(len(self.energies) - 1, self.value, self.norms[-1])

    def has_converged(self) -> bool:
        return self.norms[-1] <= self._tolerance * math.sqrt(max(self.energies[-1], 0.0))

    def is_over(self) -> bool:
        return self.has_converged() or len(self.energies) > self._iterations

    def run(self, variables: _Variables) -> npt.NDArray[np.bool_]:
        """Run BFGS until it ends or an unbounded variable crosses its bounds; return a mask of these
        variables.
        """
        crossed = np.zeros(len(self.x), bool)
        before = self.x

        def evaluate_scaled(y: Array) -> tuple[float, Array]:
            value, gradient = self.evaluate(variables.x(y))
            return value, variables.T.T @ gradient

        def each(intermediate_result: Any) -> None:
            x = variables.x(intermediate_result.x)
            if ((x < self._lower) | (x > self._upper)).any():
                ahead = x + EXTRAPOLATION_FACTOR * (x - before)
                crossed[:] = (ahead < self._lower) | (ahead > self._upper)
                raise StopIteration
            self.accept_iterate(x, variables)
            if self.is_over():
                raise StopIteration

        options = {
            "maxcor": BFGS_MEMORY,
            "maxiter": ITERATIONS_PER_HESSIAN,
            "maxfun": 20 * ITERATIONS_PER_HESSIAN,
            "ftol": 0.0,
            "gtol": 0.0,
        }
        start = np.zeros(len(self.x))
        self._minimize(
            evaluate_scaled,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=variables.bounds,
            callback=each,
            options=options,
        )
        return crossed

    def hessian(self) -> Array:
        """Return H by differences of gradients, made positive definite: absolute eigenvalues, at least
        `MIN_EIGENVALUE`.
        """
        H = np.empty((len(self.x), len(self.x)))
        for first in range(0, len(H), POINTS_PER_CALL):
            rows = np.arange(first, min(first + POINTS_PER_CALL, len(H)))
            moved = np.tile(self.x, (len(rows), 1))
            moved[range(len(rows)), rows] += DIFFERENCE_STEP
            H[rows] = (self._function(moved)[1] - self.gradient) / DIFFERENCE_STEP
        self.evaluations += len(H)
        H = 0.5 * (H + H.T)
        unit = np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-12 * np.abs(H).max(initial=1e-300)))
        sizes, ways = np.linalg.eigh(H / np.outer(unit, unit))
        positive: Array = (ways * np.maximum(np.abs(sizes), MIN_EIGENVALUE)) @ ways.T * np.outer(unit, unit)
        return positive


@final
class _Variables:
    """The variables y of (1) and (2), zero at x_0."""

    def __init__(
        self, H: Array, x: Array, bounded: npt.NDArray[np.bool_], lower: Array, upper: Array
    ) -> None:
        self._x, self._bounded, self._lower, self._upper = x, bounded, lower, upper
        b, f = np.flatnonzero(bounded), np.flatnonzero(~bounded)
        self.T = np.zeros_like(H)
        follow = np.linalg.solve(H[np.ix_(f, f)], H[np.ix_(f, b)]) if len(f) else np.zeros((0, len(b)))
        own = np.diag(H)[b] - np.einsum("fb,fb->b", follow, H[np.ix_(f, b)])
        unit = 1.0 / np.sqrt(own)
        self.T[b, b] = unit
        self.T[np.ix_(f, b)] = -follow * unit
        if len(f):
            self.T[np.ix_(f, f)] = np.linalg.inv(np.linalg.cholesky(H[np.ix_(f, f)])).T
        self.bounds = np.full((len(x), 2), (-np.inf, np.inf))
        self.bounds[b] = np.stack([(lower - x)[b] / unit, (upper - x)[b] / unit], axis=1)

    def x(self, y: Array) -> Array:
        """Return x for y; bounded variables keep their bounds exactly."""
        x = self._x + self.T @ y
        return np.where(self._bounded, np.clip(x, self._lower, self._upper), x)

    def norm(self, x: Array, gradient: Array) -> float:
        """Return the norm of the gradient with respect to y, without components that push against bounds."""
        slope = self.T.T @ gradient
        pushing = ((x <= self._lower) & (slope > 0.0)) | ((x >= self._upper) & (slope < 0.0))
        return float(np.linalg.norm(np.where(pushing & self._bounded, 0.0, slope)))


@final
class Progress:
    """A line on a terminal that shows the progress of a descent; `with Progress(…) as progress`."""

    def __init__(self, what: str, *, shown: bool | None, stream: TextIO | None = None) -> None:
        """Show progress if `shown`; None shows it if the stream is a terminal."""
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
    """Limit BLAS to one thread, if threadpoolctl is installed.

    The matrices of BFGS are small: on a busy machine most of the time was spent waiting for other threads.
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
