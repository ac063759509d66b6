"""Integration with steps as long as an error bound allows, known between them, and up to events."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import as_array
from dalembert.compiler.library import no_model
from dalembert.control.servo import Servo
from dalembert.errors import ArgumentError, DtypeError, OutOfRangeError, ShapeError, StateError
from dalembert.model.model import Model
from dalembert.simulation.controls import Policy
from dalembert.simulation.dormand_prince import Span, first_step, next_factor, stages
from dalembert.simulation.events import Event, EventFunction, Happening, Watches, events_of
from dalembert.simulation.flying_system import FlyingSystem
from dalembert.simulation.initial_state import require_closed_loops, require_finite
from dalembert.simulation.trajectory import Trajectory

__all__ = ["AdaptiveMotion", "integrate_adaptive"]

Array: TypeAlias = npt.NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class AdaptiveMotion:
    """A motion known at all times of an interval.

    `time (T+1,)` [s], `q (T+1, nq)`, `v (T+1, nv)`: the ends of the steps, `happenings` the events in order
    of time; `rejected` steps were taken again shorter; `evaluations` of the dynamics. `at(times)` is the
    motion between the frames, to the order of the method but one.
    """

    model: Model
    time: Array
    q: Array
    v: Array
    happenings: tuple[Happening, ...]
    rejected: int
    evaluations: int
    spans: tuple[Span, ...]
    system: FlyingSystem

    def __repr__(self) -> str:
        what = f'"{self.model.name}": {len(self.time)} frames, {self.time[-1] - self.time[0]:.6g} s'
        return f"<AdaptiveMotion of {what}, {len(self.happenings)} events>"

    def at(self, times: npt.ArrayLike) -> tuple[Array, Array]:
        """Return q `(…, nq)` and v `(…, nv)` at times `(…)` [s] between the first frame and the last."""
        wanted = as_array("times", times, ())
        flat = np.atleast_1d(wanted).ravel()
        if flat.size and not (self.time[0] <= flat.min() and flat.max() <= self.time[-1]):
            raise OutOfRangeError(
                f"the motion is known from {self.time[0]:.6g} s to {self.time[-1]:.6g} s; asked for "
                f"{flat.min():.6g} s to {flat.max():.6g} s"
            )
        q, v = np.empty((flat.size, self.model.nq)), np.empty((flat.size, self.model.nv))
        if not self.spans:
            q[:], v[:] = self.q[0], self.v[0]
        places = np.clip(np.searchsorted(self.time, flat, side="right") - 1, 0, len(self.spans) - 1)
        for place in np.unique(places) if self.spans else ():
            mine = places == place
            q[mine], v[mine] = self.system.from_centroidal(flat[mine], self.spans[place].at(flat[mine]))
        return q.reshape(*wanted.shape, self.model.nq), v.reshape(*wanted.shape, self.model.nv)

    def trajectory(self, times: npt.ArrayLike | None = None) -> Trajectory:
        """Return the motion as a `da.Trajectory`, at its own frames or at increasing times `(T+1,)` [s]."""
        frames = self.time if times is None else as_array("times", times, ())
        if frames.ndim != 1 or not frames.size or not np.all(np.diff(frames) > 0.0):
            raise ShapeError("trajectory: times must be one row of increasing numbers")
        q, v = (self.q, self.v) if times is None else self.at(frames)
        tau = self.system.torques(frames[:-1], q[:-1], v[:-1])
        return Trajectory(self.model, frames, q, v, tau)


def integrate_adaptive(
    model: Model,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    *,
    duration: float,
    tau: npt.ArrayLike | Policy | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    events: Event | EventFunction | Iterable[Event | EventFunction] | None = (),
    start: float = 0.0,
    max_step: float = math.inf,
    max_steps: int = 100_000,
) -> AdaptiveMotion:
    """Integrate the motion from (q, v) over `duration` [s] with an error per step of at most atol + rtol |x|.

    dx/dt = FD_x(x, tau + passive) by Dormand and Prince's method of order five, in the variables that
    `da.step` carries, on the configuration manifold. The estimated error of each variable in a step, at the
    order four, in the root mean square over all, keeps within the bound, and step lengths follow it (PI
    control). That bounds the truncation error of every step, not the error of the motion: a chaotic system
    amplifies it. Modelling errors are not covered.

    `tau`: None, `(nv,)` held, or a policy `f(model, t, q, v)` on generic scalars, evaluated at all times, not
    held. `events`: functions g(t, q, v) of one sample's arrays, or `Event`s; where g changes its sign, time
    and state are found on the polynomial through the step, and a terminal one ends the motion. `start` [s]:
    the time at the beginning. `max_step` [s] bounds the steps.

    Featherstone 2008 section 10.1.

    >>> model = da.models.pendulum(length=1.0)
    >>> bottom = da.simulation.Event(lambda t, q, v: q[0], terminal=True)
    >>> motion = da.simulation.integrate_adaptive(model, [0.01], [0.0], duration=2.0, events=bottom)
    >>> print(round(motion.time[-1], 4), round(np.pi / 2 / np.sqrt(9.81), 4))  # a quarter of a period
    0.5015 0.5015
    """
    if not isinstance(model, Model):
        raise no_model("integrate_adaptive", model)
    q0, v0 = _state(model, q, v)
    span, t = _number("duration", duration, least=0.0), _number("start", start)
    tolerances = _number("rtol", rtol, least=0.0), _number("atol", atol, least=0.0)
    if tolerances[0] < 1e-14 and tolerances[1] <= 0.0:
        raise ArgumentError(f"integrate_adaptive: rtol={rtol}, atol={atol} ask for more than rounding allows")
    longest = math.inf if max_step == math.inf else _number("max_step", max_step)
    if longest <= 0.0:
        raise ArgumentError(f"integrate_adaptive: max_step is {max_step} s; give a time greater than zero")
    if not isinstance(max_steps, int) or max_steps < 1:
        raise ArgumentError(f"integrate_adaptive: max_steps is {max_steps!r}; give a whole number from 1 on")
    if isinstance(tau, Servo):
        raise DtypeError(
            "integrate_adaptive: a Servo holds its forces during steps, and here steps have no fixed length; "
            "give a policy, or take da.rollout"
        )
    require_closed_loops(model, q0, v0, np.array(t))
    system = FlyingSystem.of(model, tau)
    watches = Watches(system, events_of(events), t, q0, v0)

    def error_scale(x: Array) -> Array:
        return np.maximum(tolerances[1] + tolerances[0] * np.abs(x), 1e-300)

    x, end = system.to_centroidal(q0, v0), t + span
    k1 = system.rate(t, x)
    if not np.isfinite(k1).all():
        raise StateError("integrate_adaptive: the accelerations of the start are not finite")
    h = min(longest, first_step(system.rate, t, x, k1, error_scale)) if span else 0.0
    evaluations, rejected, last = 2, 0, 1.0
    spans: list[Span] = []
    while t < end:
        if len(spans) + rejected >= max_steps:
            raise StateError(
                f"integrate_adaptive: {max_steps} steps were taken until t = {t:.6g} s; allow more with "
                'max_steps, allow greater errors, or take a method for stiff systems: da.step, "implicit"'
            )
        if h < 16.0 * np.spacing(max(abs(t), abs(end))):
            raise StateError(
                f"integrate_adaptive: no step is short enough at t = {t:.6g} s; the motion is singular "
                "there, or forces jump: make the jump an event, and go on from it"
            )
        length = end - t if h >= 0.999 * (end - t) else h
        new, error, K = stages(system.rate, t, x, k1, length)
        evaluations += 6
        sizes = error / np.maximum(error_scale(x), error_scale(new))
        measure = float(np.sqrt(np.mean(sizes**2))) if x.size else 0.0
        if not measure <= 1.0:
            rejected += 1
            h = length * min(1.0, next_factor(measure, 1.0))
            continue
        taken = Span(t, length, x, K)
        spans.append(taken)
        stop = watches.look(taken, end if length == end - t else t + length)
        t = end if length == end - t else t + length
        if stop is not None:
            t = stop
            break
        h, last = min(longest, length * next_factor(measure, last)), measure
        x, k1 = system.normalize_quaternions(new), K[6]
    return _motion(model, system, spans, t, (q0, v0), watches.happenings, rejected, evaluations)


def _motion(
    model: Model,
    system: FlyingSystem,
    spans: list[Span],
    end: float,
    start: tuple[Array, Array],
    happenings: list[Happening],
    rejected: int,
    evaluations: int,
) -> AdaptiveMotion:
    """Return the frames of all steps; the last one may end early."""
    if not spans:
        time, q, v = np.array([end]), start[0][np.newaxis], start[1][np.newaxis]
    else:
        time = np.array([*(span.start for span in spans), end])
        x = np.array([span.x for span in spans])
        q, v = system.from_centroidal(time, np.vstack([x, spans[-1].at(time[-1:])]))
        q[0], v[0] = start
    return AdaptiveMotion(model, time, q, v, tuple(happenings), rejected, evaluations, tuple(spans), system)


def _state(model: Model, q: npt.ArrayLike, v: npt.ArrayLike) -> tuple[Array, Array]:
    q0, v0 = as_array("q", q, (model.nq,)), as_array("v", v, (model.nv,))
    if q0.ndim != 1 or v0.ndim != 1:
        raise ShapeError(
            f"integrate_adaptive: q and v have the shapes {q0.shape} and {v0.shape}; every sample has "
            "steps of its own, so call it for one at a time"
        )
    require_finite("q", q0)
    require_finite("v", v0)
    return q0, v0


def _number(name: str, value: Any, least: float = -math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise DtypeError(f"integrate_adaptive: {name} is {value!r}; give a number")
    number = float(value)
    if not (math.isfinite(number) and number >= least):
        wanted = "a finite number" if least == -math.inf else f"a finite number of at least {least:g}"
        raise ArgumentError(f"integrate_adaptive: {name} is {value!r}; give {wanted}")
    return number
