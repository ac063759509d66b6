"""Motion from one state to another with the least torque energy: spacetime constraints.

What is known is the state at both ends; the motion between them is the one whose forces are least over time
(Witkin and Kass 1988; Rose, Guenter, Bodenheimer and Cohen 1996). It is sought among splines, by BFGS on the
exact gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.open_tree import is_constrained
from dalembert.api.dynamics import inverse_dynamics
from dalembert.api.motion import normalize
from dalembert.errors import ArgumentError, DtypeError, ShapeError, StateError
from dalembert.model.checks import is_finite
from dalembert.model.joints import Free
from dalembert.model.model import Model
from dalembert.motion.bspline import LEAST_KNOTS, spline_points
from dalembert.motion.clip import Clip, ClipFrame
from dalembert.motion.configuration_spline import ConfigurationSpline, Controls
from dalembert.motion.descent import Callback, Progress, descend
from dalembert.motion.torque_energy import Contacts, TorqueEnergy, contact_forces, places_of

__all__ = ["Transition", "transition"]

Array = npt.NDArray[np.float64]

SAME_PLACE = 1e-6
"""Metres, and components of rotations, up to which a frame counts as in the same place at both ends."""


def transition(
    model: Model,
    start: Any,
    end: Any,
    duration: float,
    *,
    knots: int = 12,
    fixed_root: bool = False,
    root_weight: float = 0.01,
    contacts: Sequence[str] = (),
    contact_stiffness: float = 1e7,
    limits: bool | tuple[Any, Any] = True,
    smoothness: float = 0.05,
    frame_time: float = 1.0 / 60.0,
    iterations: int = 20000,
    tolerance: float = 1e-6,
    callback: Callback | None = None,
    progress: bool | None = None,
) -> Transition:
    """The motion from one state to another that minimises P = integral of sum_i tau_i^2 dt.

    start, end: q, or (q, v), or (q, v, a); a clip, of which `start` takes the last frame and `end` the first.
        Without v a state is at rest; without a the acceleration is free.
    duration: [s]. knots: of each coordinate, evenly spaced, both ends included; each adds one free number.
    root_weight: what the squares of the forces of joints without motor, the root's six, count. With
        `fixed_root=True` the root keeps to its first path, as straight and even as the ends allow, and its
        forces cost nothing.
    contacts: names of frames that stay in place, in the same place at both ends; the world holds them with
        whatever forces serve best. `contact_stiffness` [N^2] prices the integral of their squared offset.
    limits: keep coordinates between the limits of their joints, or between two arrays `(lower, upper)` like q
        (widened to the two ends where these are outside); rotations and floating bodies have none.
    smoothness: a price on accelerations, as if each joint had a flywheel of that inertia [kg m^2, kg]; 0.0 is
        the pure torque energy, whose least value may take very long to find.
    frame_time: about the time between frames of the resulting clip [s].
    iterations, tolerance: the search ends where the norm of the gradient is below tolerance times the root of
        the energy, or after so many iterations.
    callback: called as `callback(iteration, energy, gradient_norm)` after each accepted iterate.
    progress: a line on the terminal; None shows it where there is one.

    Coordinates are B-splines of the fifth degree, rotations cumulative ones on SO(3); both ends are met to
    rounding. The gradient is exact, one compiled function for all times: dP/dtheta = 2 integral of sum_i
    tau_i (dtau_i/dq dq/dtheta + dtau_i/dv dv/dtheta + dtau_i/da da/dtheta) dt. SciPy's L-BFGS-B minimises
    (extra `dalembert[motion]`). Rose, Guenter, Bodenheimer and Cohen 1996; Guenter and Rose 2000.

    Rows: GR-ENERGY, GR-SPACETIME.

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
    ends = _state(model, start, "start", -1), _state(model, end, "end", 0)
    if not (is_finite(frame_time) and frame_time > 0.0):
        raise ArgumentError(f"transition: frame_time is {frame_time!r}; give a positive time [s]")
    frames = max(math.ceil(duration / frame_time - 1e-6), 1)
    root = _root(model)
    if fixed_root and not len(root):
        raise ArgumentError(
            "fixed_root: every joint has a motor and none is free, so there is no root to fix"
        )
    prices = np.ones(model.nv)
    prices[root] = 0.0 if fixed_root else _not_negative("root_weight", root_weight)
    held = _contacts(model, contacts, ends[0][0], ends[1][0], contact_stiffness)
    energy = TorqueEnergy(
        spline,
        knots,
        duration,
        prices=prices,
        smoothness=_not_negative("smoothness", smoothness),
        contacts=held,
    )
    controls = spline.between(knots, duration, *ends)
    free = np.zeros(controls.values.shape, bool)
    free[len(ends[0]) : len(free) - len(ends[1])] = True
    free[:, root] &= not fixed_root
    lower, upper = _bounds(spline, ends[0][0], ends[1][0], limits)
    low, high = (np.broadcast_to(x, free.shape)[free] for x in (lower, upper))
    controls.values[free] = np.clip(controls.values[free], low, high)

    def value(x: Array) -> tuple[float, Array]:
        P, gradient = energy.with_gradient(_with(controls, free, x))
        return P, gradient[free]

    with Progress("transition", shown=progress) as line:

        def report(iteration: int, P: float, gradient_norm: float) -> None:
            line(iteration, P, gradient_norm)
            if callback is not None:
                callback(iteration, P, gradient_norm)

        found = descend(
            value,
            controls.values[free],
            energy.curvature(controls)[free],
            low,
            high,
            iterations=iterations,
            tolerance=tolerance,
            callback=report,
        )
    best = _with(controls, free, found.x)
    pure = TorqueEnergy(
        spline, knots, duration, prices=prices, contacts=held and held._replace(stiffness=0.0)
    )
    points = spline_points(knots, duration, np.linspace(0.0, duration, frames + 1))
    clip = Clip(model, points.time, *spline.sampled(best, points))
    names = tuple(contacts)
    tau, wrenches, offset = _forces(clip, names, prices)
    return Transition(
        clip=clip,
        energies=found.energies,
        gradient_norms=found.gradient_norms,
        torque_energy=pure(best),
        tau=tau,
        root=root,
        contact_forces=wrenches,
        contact_error=offset,
        evaluations=found.evaluations,
        converged=found.converged,
    )


@final
@dataclass(frozen=True, eq=False)
class Transition:
    """A motion between two states, and how it was found.

    `clip`: the motion. `energies (n,)`: what was minimised, at the start and after each accepted iterate;
    it falls throughout. `gradient_norms (n,)`: of the gradient by variables in units of their curvature,
    without parts that push against limits; half its square is about what could still be gained.
    `torque_energy` [N^2 m^2 s]: the integral of sum c tau^2 alone, of the result. `tau (T, nv)` [N m, N]: the
    forces of all joints along the clip, those of the world at contacts taken out. `root (m,)`: which of them
    are the root's. `contact_forces (T, contacts, 6)`: moment about the world's origin and force of the world
    on each frame in contact. `contact_error` [m]: how far one of them was from its place. `evaluations`: of
    energy and gradient.

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
    contact_forces: Array
    contact_error: float
    evaluations: int
    converged: bool

    @property
    def iterations(self) -> int:
        """Accepted iterates."""
        return len(self.energies) - 1

    @property
    def gradient_norm(self) -> float:
        """The last of `gradient_norms`."""
        return float(self.gradient_norms[-1])

    @property
    def residual(self) -> Array:
        """The forces of the root along the clip `(T, m)` [N m, N]: what no motor of the figure gives."""
        return self.tau[:, self.root]

    def __repr__(self) -> str:
        end = "converged" if self.converged else "not converged"
        return (
            f"<Transition of {self.clip.model.name}: {self.clip.duration:.3f} s, energy "
            f"{self.energies[0]:.6g} -> {self.energies[-1]:.6g} in {self.iterations} iterations, {end}>"
        )


def _with(controls: Controls, free: npt.NDArray[np.bool_], x: Array) -> Controls:
    values = controls.values.copy()
    values[free] = x
    return Controls(values, controls.anchors)


def _check(model: Any, duration: Any, knots: Any, iterations: Any) -> None:
    if not isinstance(model, Model):
        raise DtypeError(f"transition takes a Model, got {type(model).__name__}")
    if is_constrained(model) or model.time_dependent:
        raise ArgumentError(
            "transition: the model has loops or other constraints, or joints that depend on time; take "
            "model.tree(), and contacts=… for frames that stay in place"
        )
    if not (is_finite(duration) and duration > 0.0):
        raise ArgumentError(f"transition: duration is {duration!r}; give a positive time [s]")
    if not isinstance(knots, int | np.integer) or knots < LEAST_KNOTS:
        raise ArgumentError(f"transition: knots is {knots!r}; give a whole number, at least {LEAST_KNOTS}")
    if not isinstance(iterations, int | np.integer) or iterations < 0:
        raise ArgumentError(f"transition: iterations is {iterations!r}; give a whole number, not negative")


def _not_negative(name: str, value: Any) -> float:
    if not (is_finite(value) and value >= 0.0):
        raise ArgumentError(f"transition: {name} is {value!r}; give a number that is not negative")
    return float(value)


def _state(model: Model, given: Any, name: str, frame: int) -> tuple[Array, ...]:
    """(q, v) or (q, v, a) of an end."""
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
    sizes = (("q", model.nq), ("v", model.nv), ("a", model.nv))
    state = []
    for part, (letter, size) in zip(parts, sizes, strict=False):
        array = np.array(part, float)
        if array.shape != (size,):
            raise ShapeError(
                f"transition: {letter} of {name} has the shape {array.shape}; ({size},) is expected"
            )
        if not np.isfinite(array).all():
            raise ArgumentError(f"transition: {letter} of {name} holds numbers that are not finite")
        state.append(array)
    unit: Array = np.asarray(normalize(model, state[0]), float)
    if np.abs(unit - state[0]).max(initial=0.0) > 1e-6:
        raise StateError(
            f"transition: a quaternion of {name} is not of unit length; see da.normalize(model, q)"
        )
    return (unit, *state[1:])


def _root(model: Model) -> npt.NDArray[np.intp]:
    """Places in v of the joints without motor, and of bodies that float freely in the world."""
    places: list[int] = []
    for body in model.bodies:
        floats = body.parent < 0 and isinstance(body.joint, Free)
        if floats or body.joint_name not in model.actuated:
            places.extend(range(body.v_slice.start, body.v_slice.stop))
    return np.array(sorted(places), np.intp)


def _contacts(
    model: Model, names: Sequence[str], start: Array, end: Array, stiffness: float
) -> Contacts | None:
    if isinstance(names, str):
        raise DtypeError(f'contacts is a sequence of names of frames, for instance ["{names}"]')
    if not names:
        return None
    for name in names:
        if model.frame(name).body < 0:
            raise ArgumentError(f'contacts: "{name}" is a frame of the world, which does not move')
    if len(set(names)) < len(names):
        raise ArgumentError(f"contacts: a frame is named twice in {list(names)}")
    places = places_of(model, np.stack([start, end]), names)
    apart = np.abs(places[1] - places[0]).max(axis=1)
    for name, distance in zip(names, apart, strict=True):
        if distance > SAME_PLACE:
            raise ArgumentError(
                f'contacts: "{name}" must be in one place in both end states; it is off by {distance:.3g}'
            )
    return Contacts(tuple(names), places[0], _not_negative("contact_stiffness", stiffness))


def _bounds(
    spline: ConfigurationSpline, start: Array, end: Array, limits: bool | tuple[Any, Any]
) -> tuple[Array, Array]:
    """Limits (nv,) of control values, between which the spline then stays; none where rotations are."""
    model = spline.model
    lower, upper = np.full(model.nv, -np.inf), np.full(model.nv, np.inf)
    if limits is False:
        return lower, upper
    low, high = np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
    if limits is True:
        for body in model.bodies:
            if body.q_slice.stop > body.q_slice.start:
                low[body.q_slice], high[body.q_slice] = body.limits.lower, body.limits.upper
    else:
        given = [np.asarray(bound, float) for bound in limits]
        if [bound.shape for bound in given] != [(model.nq,)] * 2:
            raise ShapeError(f"transition: limits are True, False or two arrays of the shape ({model.nq},)")
        low, high = given
        if not (low <= high).all():
            raise ArgumentError("transition: a lower limit is not below its upper limit")
    lower[spline.plain] = np.minimum(low, np.minimum(start, end))[spline.plain_q]
    upper[spline.plain] = np.maximum(high, np.maximum(start, end))[spline.plain_q]
    return lower, upper


def _forces(clip: Clip, contacts: tuple[str, ...], prices: Array) -> tuple[Array, Array, float]:
    """tau, the forces at contacts, and how far contacts are from their places at the start [m]."""
    model = clip.model
    if not contacts:
        return inverse_dynamics(model, clip.q, clip.v, clip.a), np.zeros((len(clip), 0, 6)), 0.0
    wrenches = contact_forces(model, contacts, prices, clip.q, clip.v, clip.a)
    external = np.zeros((len(clip), len(model.bodies), 6))
    for k, name in enumerate(contacts):
        external[:, model.frame(name).body] += wrenches[:, k]
    tau = inverse_dynamics(model, clip.q, clip.v, clip.a, external, external_frame="world")
    places = places_of(model, clip.q, contacts)
    return tau, wrenches, float(np.abs(places - places[0]).max())
