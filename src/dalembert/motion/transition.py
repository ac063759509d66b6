"""Spacetime optimisation: the motion between two states with the least torque energy.

The states at both ends are given; the motion between them minimises the integral of squared forces (Witkin
and Kass 1988; Rose, Guenter, Bodenheimer and Cohen 1996). It is sought among splines, within bounds, by
SciPy's limited-memory BFGS with the exact gradient.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TextIO, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.open_tree import is_constrained
from dalembert.api.dynamics import normalize
from dalembert.errors import (
    ArgumentError,
    DtypeError,
    ShapeError,
    StateError,
    own_errors,
    positive_number,
    whole_number,
)
from dalembert.model.checks import is_finite
from dalembert.model.joints import Free, Joint
from dalembert.model.model import Model
from dalembert.motion.clip import Clip, ClipFrame, Frames, finite_array
from dalembert.motion.closed_path import ClosedPath, contacts_of, require_closed
from dalembert.motion.configuration_spline import MIN_KNOTS, ConfigurationSpline, Controls, Knots
from dalembert.motion.differentiation import Array, scipy_module
from dalembert.motion.torque_energy import ClosedTorqueEnergy, TorqueEnergy

MAX_KNOTS: Final = 10**5
"""The Hessian of a descent grows with the square of the number of knots."""
MAX_ITERATIONS: Final = 10**9
"""This many iterations take more than a day."""


@own_errors
def transition(
    model: Model,
    start: Any,
    end: Any,
    duration: float,
    *,
    knots: int = 12,
    fixed_root: bool = False,
    root_weight: float = 0.01,
    contacts: Sequence[str] | Mapping[str, Joint] = (),
    limits: bool | tuple[Any, Any] = True,
    smoothness: float = 0.05,
    frame_time: float = 1.0 / 60.0,
    iterations: int = 2000,
    tolerance: float = 1e-6,
    callback: Callback | None = None,
    progress: bool | None = None,
) -> Transition:
    """Find the motion from one state to another that minimises P = integral of sum_i tau_i^2 dt.

    start, end: q, or (q, v), or (q, v, a), or a clip, of which `start` uses the last frame and `end` the
        first. Without v a state is at rest; without a the acceleration is free.
    duration: of the motion [s]. knots: number of evenly spaced knots of each coordinate, both ends included;
        each adds one free parameter.
    root_weight: weight of the squared forces of joints without motor, the root's six. With
        `fixed_root=True` the root keeps its initial path, as straight and even as the ends allow, and its
        forces have no cost.
    contacts: names of frames that stay where they are at the start, tied to the world by loop joints: `Fixed`
        ones, or those of a mapping, {"left_toe_tip": da.Spherical()} for a point. The contact forces are
        chosen to minimise P; they also support the root as far as they can.
    limits: keep coordinates between the limits of their joints, or between two arrays `(lower, upper)` like q
        (widened to the two ends where these are outside); rotations and floating bodies have none.
    smoothness: a cost of accelerations, as of a flywheel of this inertia [kg m^2, kg] at each joint; 0.0 is
        the pure torque energy, in which a hand may flap for a negligible gain.
    frame_time: approximate time between frames of the resulting clip [s].
    iterations, tolerance: the search ends when the norm of the gradient is below tolerance times the root of
        the energy, or after this number of iterations.
    callback: called as `callback(iteration, energy, gradient_norm)` after each accepted iterate.
    progress: show a line on the terminal; None shows it if there is a terminal.

    Loops, of the model and of contacts, are closed at all times: the deviation from a spline follows from the
    loop equations at each time. Both ends must satisfy the loops and their rates.

    Coordinates are B-splines of the fifth degree, rotations cumulative ones on SO(3); both ends are met to
    rounding. The gradient is exact, one compiled function for all times: dP/dtheta = 2 integral of sum_i
    tau_i (dtau_i/dq dq/dtheta + dtau_i/dv dv/dtheta + dtau_i/da da/dtheta) dt. SciPy's L-BFGS-B minimises
    (extra `dalembert[motion]`). Rose, Guenter, Bodenheimer and Cohen 1996; Guenter and Rose 2000.

    >>> arm = da.models.two_link_arm()
    >>> move = da.motion.transition(arm, [0.0, 0.0], ([1.0, 0.5], [0.0, 1.0]), 0.8, knots=8)
    >>> print(move.clip, move.converged)
    <Clip of two_link_arm: 49 frames, 0.800 s> True
    >>> print(move.clip.q[-1], move.clip.v[-1], move.energies[-1] < move.energies[0])
    [1.  0.5] [0. 1.] True
    """
    if not isinstance(model, Model):
        raise DtypeError(f"transition takes a Model, got {type(model).__name__}")
    if model.time_dependent:
        raise ArgumentError("transition: joints or constraints of the model depend on time")
    if any(item.kind == "velocity" for item in model.constraints):
        raise ArgumentError(
            "transition: the model has constraints of velocity, which splines of positions cannot keep"
        )
    if not (is_finite(duration) and duration > 0.0):
        raise ArgumentError(f"transition: duration is {duration!r}; give a positive time [s]")
    for name, given in {"tolerance": tolerance, "root_weight": root_weight, "smoothness": smoothness}.items():
        if not (is_finite(given) and given >= 0.0):
            raise ArgumentError(f"transition: {name} is {given!r}; give a number that is not negative")
    whole_number("transition: knots", knots, MIN_KNOTS, MAX_KNOTS)
    whole_number("transition: iterations", iterations, 0, MAX_ITERATIONS)
    spline = ConfigurationSpline(model, Knots(knots, duration))
    ends = end_state(model, start, "start", -1), end_state(model, end, "end", 0)
    frame_time = positive_number("transition: frame_time", frame_time, "s")
    frames = max(math.ceil(duration / frame_time - 1e-6), 1)
    without_motor = [
        body.v_slice
        for body in model.bodies
        if (body.parent < 0 and isinstance(body.joint, Free)) or body.joint_name not in model.actuated
    ]
    root = np.array(sorted(k for own in without_motor for k in range(own.start, own.stop)), np.intp)
    if fixed_root and not len(root):
        raise ArgumentError(
            "fixed_root: every joint has a motor and none is free, so there is no root to fix"
        )
    prices = np.ones(model.nv)
    prices[root] = 0.0 if fixed_root else root_weight
    held = contacts_of(model, contacts, ends[0][0])
    controls = spline.between(*ends)
    free = np.zeros(controls.values.shape, bool)
    free[len(ends[0]) : len(free) - len(ends[1])] = True
    free[:, root] &= not fixed_root
    energy: TorqueEnergy | ClosedTorqueEnergy
    if held.names or is_constrained(model):
        for state, name in zip(ends, ("start", "end"), strict=True):
            require_closed(model, held, state, name)
        kept = np.isin(np.arange(model.nv), root) & fixed_root
        path = ClosedPath(spline, held, controls, free, kept)
        controls = path.controls
        energy = ClosedTorqueEnergy(path, prices=prices, smoothness=smoothness, unpowered=root)
    else:
        energy = TorqueEnergy(spline, prices=prices, smoothness=smoothness)
    lower, upper = spline.bounds(ends[0][0], ends[1][0], limits)
    low, high = (np.broadcast_to(x, free.shape)[free] for x in (lower, upper))
    controls.values[free] = np.clip(controls.values[free], low, high)

    def controls_at(x: Array) -> Controls:
        values = np.tile(controls.values, (*x.shape[:-1], 1, 1))
        values[..., free] = x
        return Controls(values, controls.anchors)

    def value(x: Array) -> tuple[Array, Array]:
        P, gradient = energy.with_gradient(controls_at(x))
        return P, gradient[..., free]

    with progress_line("transition", shown=progress) as show:

        def report(*iterate: Any) -> None:
            show(*iterate)
            if callback is not None:
                callback(*iterate)

        search = Descent(value, controls.values[free], low, high, iterations, tolerance, report)
        with _one_blas_thread():
            search.run()
    best = controls_at(search.x)
    points = spline.knots.points(np.linspace(0.0, duration, frames + 1))
    found = energy.sample(best, points)
    own = len(model.loops)
    return Transition(
        clip=Clip(model, points.time, found.q, found.v, found.a),
        energies=np.array(search.energies),
        gradient_norms=np.array(search.norms),
        torque_energy=energy.integrate_squares(energy.sample(best, energy.points).tau),
        tau=found.tau,
        root=root,
        loop_forces=found.wrenches[:, :own],
        contact_forces=found.wrenches[:, own:],
        loop_error=found.gap,
        evaluations=search.evaluations,
        converged=search.has_converged,
    )


@final
@dataclass(frozen=True, eq=False)
class Transition:
    """A motion between two states, and the course of its optimisation.

    `clip`: the motion. `energies (n,)`: the objective at the start and after each accepted iterate; it
    decreases monotonically. `gradient_norms (n,)`: norms of the gradient with respect to variables in which
    the Hessian is the identity, without components that push against limits; half the square is about the
    possible further decrease. `torque_energy` [N^2 m^2 s]: the integral of sum c tau^2 alone, for the result.
    `tau (T, nv)` [N m, N]: the forces of all joints along the clip, without those of loops. `root (m,)`: the
    indices of joints without motor, the root's. `contact_forces (T, contacts, 6)`: moment about the world's
    origin and force of the world on each frame in contact; `loop_forces (T, loops, 6)`: the same for the
    model's own loop joints, on their successors. `loop_error` [m, rad]: the largest error of a loop or
    contact. `evaluations`: of energy and gradient.

    >>> arm = da.models.two_link_arm()
    >>> move = da.motion.transition(arm, [0.0, 0.0], [1.0, 0.5], 0.8, knots=6)
    >>> bool(np.all(np.diff(move.energies) <= 0.0)), move.residual.shape
    (True, (49, 0))
    """

    clip: Clip
    energies: Array
    gradient_norms: Array
    torque_energy: float
    tau: Array
    root: npt.NDArray[np.intp]
    loop_forces: Array
    contact_forces: Array
    loop_error: float
    evaluations: int
    converged: bool

    def __frames__(self, fps: float) -> Frames:
        return Frames(self.clip.model, self.clip.time, self.clip.q, self.clip.v, self.tau)

    @property
    def iterations(self) -> int:
        """The number of accepted iterates."""
        return len(self.energies) - 1

    @property
    def gradient_norm(self) -> float:
        """The last of `gradient_norms`."""
        return float(self.gradient_norms[-1])

    @property
    def residual(self) -> Array:
        """The forces of the root along the clip `(T, m)` [N m, N], which no motor of the figure provides."""
        return self.tau[:, self.root]

    def __repr__(self) -> str:
        end = "converged" if self.converged else "not converged"
        return (
            f"<Transition of {self.clip.model.name}: {self.clip.duration:.3f} s, energy "
            f"{self.energies[0]:.6g} -> {self.energies[-1]:.6g} in {self.iterations} iterations, {end}>"
        )


def end_state(model: Model, given: Any, name: str, frame: int) -> tuple[Array, ...]:
    """Return (q, v) or (q, v, a) of one end of the transition."""
    if isinstance(given, Clip):
        if given.model != model:
            raise ArgumentError(f"transition: {name} is a clip of another model, {given.model!r}")
        given = given[frame]
    if isinstance(given, ClipFrame):
        given = given[1:]
    parts = list(given) if isinstance(given, tuple) else [given]
    if len(parts) == 1:
        parts.append(np.zeros(model.nv))
    if len(parts) > 3:
        raise ShapeError(f"transition: {name} has {len(parts)} parts; give q, (q, v), (q, v, a) or a clip")
    sizes = (model.nq, model.nv, model.nv)
    state = [
        finite_array(f"transition: {letter} of {name}", part, (size,))
        for letter, part, size in zip("qva", parts, sizes, strict=False)
    ]
    unit: Array = np.asarray(normalize(model, state[0]), float)
    if np.abs(unit - state[0]).max(initial=0.0) > 1e-6:
        raise StateError(
            f"transition: a quaternion of {name} is not of unit length; see da.dynamics.normalize(model, q)"
        )
    return (unit, *state[1:])


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


def _one_blas_thread() -> contextlib.AbstractContextManager[object]:
    """Limit BLAS to one thread, if threadpoolctl is installed.

    The matrices of BFGS are small: on a busy machine most of the time was spent waiting for other threads.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return contextlib.nullcontext()
    return threadpool_limits(1, "blas")  # type: ignore[no-any-return]


@final
@dataclass
class Descent:
    """The minimisation of a function that returns its value and gradient, from x on, within bounds.

    It has converged when the norm of the gradient with respect to y, without components that push against
    bounds, is at most tolerance times the root of the value. It also ends when BFGS finds no lower value.
    `x` is the current iterate; `energies` and gradient `norms` are those of the start and of all accepted
    iterates.
    """

    function: Function
    x: Array
    lower: Array
    upper: Array
    iterations: int
    tolerance: float
    callback: Callback
    energies: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    evaluations: int = 0

    def __post_init__(self) -> None:
        self.x = np.clip(self.x, self.lower, self.upper)
        self.value, self.gradient = self._evaluate(self.x)

    def run(self) -> None:
        """Run BFGS again and again, in variables of a new Hessian or with more bounds."""
        bounded = np.zeros(len(self.x), bool)
        H = self._hessian()
        fresh = 0
        while True:
            bounded |= (self.x <= self.lower) | (self.x >= self.upper)
            variables = _Variables(H, self.x, bounded, self.lower, self.upper)
            if not self.energies:
                self._accept_iterate(self.x, variables)
            if self._is_over():
                return
            before = len(self.energies)
            crossed = self._minimize(variables)
            accepted = len(self.energies) - before
            if self._is_over() or not (accepted or crossed.any() or fresh):
                return
            bounded |= crossed
            fresh += accepted
            if not crossed.any() or fresh >= ITERATIONS_PER_HESSIAN:
                H, fresh = self._hessian(), 0

    def _evaluate(self, x: Array) -> tuple[float, Array]:
        self.evaluations += 1
        value, gradient = self.function(x)
        self._last, self._found = x, (float(value), gradient)
        return self._found

    def _accept_iterate(self, x: Array, variables: _Variables) -> None:
        """Move to x and record its value and gradient norm."""
        self.value, self.gradient = self._found if np.array_equal(x, self._last) else self._evaluate(x)
        self.x = x
        self.energies.append(self.value)
        self.norms.append(variables.norm(x, self.gradient))
        self.callback(len(self.energies) - 1, self.value, self.norms[-1])

    @property
    def has_converged(self) -> bool:
        return self.norms[-1] <= self.tolerance * math.sqrt(max(self.energies[-1], 0.0))

    def _is_over(self) -> bool:
        return self.has_converged or len(self.energies) > self.iterations

    def _minimize(self, variables: _Variables) -> npt.NDArray[np.bool_]:
        """Run BFGS until it ends or unbounded variables cross their bounds; return a mask of them."""
        crossed = np.zeros(len(self.x), bool)
        before = self.x

        def evaluate_scaled(y: Array) -> tuple[float, Array]:
            value, gradient = self._evaluate(variables.x(y))
            return value, variables.T.T @ gradient

        def each(intermediate_result: Any) -> None:
            x = variables.x(intermediate_result.x)
            if ((x < self.lower) | (x > self.upper)).any():
                ahead = x + EXTRAPOLATION_FACTOR * (x - before)
                crossed[:] = (ahead < self.lower) | (ahead > self.upper)
                raise StopIteration
            self._accept_iterate(x, variables)
            if self._is_over():
                raise StopIteration

        options = {"maxcor": BFGS_MEMORY, "maxiter": ITERATIONS_PER_HESSIAN, "ftol": 0.0, "gtol": 0.0}
        scipy_module("optimize", "transitions are found").minimize(
            evaluate_scaled,
            np.zeros(len(self.x)),
            jac=True,
            method="L-BFGS-B",
            bounds=variables.bounds,
            callback=each,
            options=options | {"maxfun": 20 * ITERATIONS_PER_HESSIAN},
        )
        return crossed

    def _hessian(self) -> Array:
        """Return H by differences of gradients, with absolute eigenvalues of at least `MIN_EIGENVALUE`."""
        H = np.empty((len(self.x), len(self.x)))
        for first in range(0, len(H), POINTS_PER_CALL):
            rows = np.arange(first, min(first + POINTS_PER_CALL, len(H)))
            moved = np.tile(self.x, (len(rows), 1))
            moved[range(len(rows)), rows] += DIFFERENCE_STEP
            H[rows] = (self.function(moved)[1] - self.gradient) / DIFFERENCE_STEP
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
        follow = np.linalg.solve(H[np.ix_(f, f)], H[np.ix_(f, b)])
        own = np.diag(H)[b] - np.einsum("fb,fb->b", follow, H[np.ix_(f, b)])
        unit = 1.0 / np.sqrt(own)
        self.T[b, b] = unit
        self.T[np.ix_(f, b)] = -follow * unit
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


@contextlib.contextmanager
def progress_line(what: str, *, shown: bool | None, stream: TextIO | None = None) -> Iterator[Callback]:
    """Yield a callback that shows the progress of a descent on one line; None: if there is a terminal."""
    stream = sys.stderr if stream is None else stream
    shown = stream.isatty() if shown is None else shown
    lines = 0

    def show(iteration: int, energy: float, gradient_norm: float) -> None:
        nonlocal lines
        if shown and iteration % 25 == 0:
            lines += 1
            stream.write(
                f"\r{what}: {iteration} iterations, energy {energy:.6g}, gradient {gradient_norm:.2e} "
            )
            stream.flush()

    try:
        yield show
    finally:
        stream.write("\n" if lines else "")
