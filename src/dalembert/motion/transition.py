"""Spacetime optimisation: the motion between two states with the least torque energy.

The states at both ends are given; the motion between them minimises the integral of squared forces (Witkin
and Kass 1988; Rose, Guenter, Bodenheimer and Cohen 1996). It is sought among splines, by BFGS with the exact
gradient.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.open_tree import is_constrained
from dalembert.api.dynamics import inverse_dynamics
from dalembert.errors import ArgumentError, DtypeError, own_errors, whole_number
from dalembert.model.checks import is_finite
from dalembert.model.joints import Joint
from dalembert.model.model import Model
from dalembert.motion.bspline import MIN_KNOTS, SplinePoints, spline_points
from dalembert.motion.clip import Clip, Frames
from dalembert.motion.closed_energy import ClosedTorqueEnergy
from dalembert.motion.closed_path import ClosedPath
from dalembert.motion.configuration_spline import ConfigurationSpline, Controls
from dalembert.motion.descent import Callback, Progress, descend
from dalembert.motion.torque_energy import TorqueEnergy
from dalembert.motion.transition_ends import bounds, contacts_of, end_state, require_closed, root_places

__all__ = ["Transition", "transition"]

Array = npt.NDArray[np.float64]

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
    _check(model, duration, knots, iterations)
    _not_negative("tolerance", tolerance)
    spline = ConfigurationSpline(model)
    ends = end_state(model, start, "start", -1), end_state(model, end, "end", 0)
    if not (is_finite(frame_time) and frame_time > 0.0):
        raise ArgumentError(f"transition: frame_time is {frame_time!r}; give a positive time [s]")
    frames = max(math.ceil(duration / frame_time - 1e-6), 1)
    root = root_places(model)
    if fixed_root and not len(root):
        raise ArgumentError(
            "fixed_root: every joint has a motor and none is free, so there is no root to fix"
        )
    prices = np.ones(model.nv)
    prices[root] = 0.0 if fixed_root else _not_negative("root_weight", root_weight)
    flywheel = _not_negative("smoothness", smoothness)
    held = contacts_of(model, contacts, ends[0][0])
    controls = spline.between(knots, duration, *ends)
    free = np.zeros(controls.values.shape, bool)
    free[len(ends[0]) : len(free) - len(ends[1])] = True
    free[:, root] &= not fixed_root
    energy: TorqueEnergy | ClosedTorqueEnergy
    if held.names or is_constrained(model):
        for state, name in zip(ends, ("start", "end"), strict=True):
            require_closed(model, held, state, name)
        kept = np.isin(np.arange(model.nv), root) & fixed_root
        path = ClosedPath(spline, knots, duration, held, controls, free, kept)
        controls = path.controls
        energy = ClosedTorqueEnergy(path, knots, duration, prices=prices, smoothness=flywheel, unpowered=root)
    else:
        energy = TorqueEnergy(spline, knots, duration, prices=prices, smoothness=flywheel)
    lower, upper = bounds(spline, ends[0][0], ends[1][0], limits)
    low, high = (np.broadcast_to(x, free.shape)[free] for x in (lower, upper))
    controls.values[free] = np.clip(controls.values[free], low, high)

    def value(x: Array) -> tuple[Array, Array]:
        P, gradient = energy.with_gradient(_with(controls, free, x))
        return P, gradient[..., free]

    with Progress("transition", shown=progress) as line:

        def report(iteration: int, P: float, gradient_norm: float) -> None:
            line(iteration, P, gradient_norm)
            if callback is not None:
                callback(iteration, P, gradient_norm)

        found = descend(
            value,
            controls.values[free],
            low,
            high,
            iterations=iterations,
            tolerance=tolerance,
            callback=report,
        )
    best = _with(controls, free, found.x)
    points = spline_points(knots, duration, np.linspace(0.0, duration, frames + 1))
    clip, tau, pushes, gap = _motion(energy, best, points)
    own = len(model.loops)
    return Transition(
        clip=clip,
        energies=found.energies,
        gradient_norms=found.gradient_norms,
        torque_energy=energy.torque_energy(best),
        tau=tau,
        root=root,
        loop_forces=pushes[:, :own],
        contact_forces=pushes[:, own:],
        loop_error=gap,
        evaluations=found.evaluations,
        converged=found.converged,
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


def _with(controls: Controls, free: npt.NDArray[np.bool_], x: Array) -> Controls:
    values = np.tile(controls.values, (*x.shape[:-1], 1, 1))
    values[..., free] = x
    return Controls(values, controls.anchors)


def _motion(
    energy: TorqueEnergy | ClosedTorqueEnergy, controls: Controls, points: SplinePoints
) -> tuple[Clip, Array, Array, float]:
    """Return the clip at the points, the forces of joints and loops, and the largest loop error [rad or
    m].
    """
    model = energy.model
    if isinstance(energy, TorqueEnergy):
        clip = Clip(model, points.time, *energy.spline.sample(controls, points))
        return clip, inverse_dynamics(model, clip.q, clip.v, clip.a), np.zeros((len(clip), 0, 6)), 0.0
    path = energy.path
    closure = path.close(controls, points, path.directions(points))
    found = energy.motion(controls, points, closure)
    clip = Clip(model, points.time, found.q, found.v, found.a)
    return clip, found.forces, energy.loop_forces(found), float(closure.gap.max())


def _check(model: Any, duration: Any, knots: Any, iterations: Any) -> None:
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
    whole_number("transition: knots", knots, MIN_KNOTS, MAX_KNOTS)
    whole_number("transition: iterations", iterations, 0, MAX_ITERATIONS)


def _not_negative(name: str, value: Any) -> float:
    if not (is_finite(value) and value >= 0.0):
        raise ArgumentError(f"transition: {name} is {value!r}; give a number that is not negative")
    return float(value)
