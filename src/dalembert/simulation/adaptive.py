"""Integration with steps as long as an error bound allows, known between them, and up to events."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.applied_forces import Loads
from dalembert.algorithms.integrators import CentroidalCoordinates, State, StepConditions
from dalembert.algorithms.open_tree import is_constrained
from dalembert.algorithms.stepping import T_STAB
from dalembert.api.calls import ForceFrame, force_options
from dalembert.call.arguments import Array, ArrayArgument, as_array
from dalembert.compiler.compiled import compile
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.library import no_model
from dalembert.compiler.lowering import Recipe
from dalembert.compiler.recording import kept_kernel
from dalembert.control import Actuators, Servo
from dalembert.errors import ArgumentError, DtypeError, OutOfRangeError, ShapeError, StateError
from dalembert.host import warn_renamed
from dalembert.model.model import Model
from dalembert.motion.clip import MAX_FRAMES, Frames, finite_array
from dalembert.simulation.drives import Policy, recorded_policy
from dalembert.simulation.initial_state import require_closed_loops, require_finite
from dalembert.simulation.trajectory import Trajectory

# The method of Dormand and Prince, of order five with an error estimate of order four.
#
# Seven stages, of which the last is the first of the next step; between the ends of a step a polynomial of
# degree four through the same stages. Dormand & Prince 1980; Shampine 1986 for the polynomial; Hairer,
# Norsett and Wanner, "Solving Ordinary Differential Equations I", sections II.4 to II.6, for step control.

Rate: TypeAlias = Callable[[float, Array], Array]
"""dx/dt of (t, x)."""

NODES: Final = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
STAGES: Final = tuple(
    np.array(row)
    for row in (
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    )
)
ERROR: Final = np.array([71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
DENSE: Final = np.array(
    [
        [1.0, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
        [0.0, 0.0, 0.0, 0.0],
        [0.0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
        [0.0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
        [0.0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
        [0.0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
        [0.0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
    ]
)
"""Weights of the stages for each power of the elapsed fraction of the step."""

STEP_SAFETY_FACTOR: Final = 0.9
"""Steps are this fraction of the length whose estimated error is the tolerance (Hairer et al., II.4)."""
INTEGRAL, PROPORTIONAL = 0.7 / 5.0, 0.4 / 5.0
"""Exponents of the error of this step and of the one before, after Gustafsson."""

SHRINK, GROW = 0.2, 8.0


@final
@dataclass(frozen=True, slots=True)
class Span:
    """A step that was taken: from `start` [s] for `length` [s], x there, and the seven rates."""

    start: float
    length: float
    x: Array
    rates: Array

    def at(self, times: Array) -> Array:
        """Return x `(n, size)` at times `(n,)` within the step."""
        s = (times - self.start) / self.length
        powers = np.stack([s, s**2, s**3, s**4])
        return self.x + self.length * ((DENSE @ powers).T @ self.rates)


def stages(rate: Rate, t: float, x: Array, k1: Array, h: float) -> tuple[Array, Array, Array]:
    """Return x after a step, its error estimate, and the rates `(7, size)`."""
    K = np.empty((7, x.size))
    K[0] = k1
    there = x
    for i, (node, weights) in enumerate(zip(NODES[1:], STAGES, strict=True), start=1):
        there = x + h * (weights @ K[:i])
        K[i] = rate(t + node * h, there)
    return there, h * (ERROR @ K), K


def next_factor(error: float, before: float) -> float:
    """Return the ratio of the next step to this one by its error, 1 at the tolerance, and that before it."""
    if error == 0.0:
        return GROW
    if not np.isfinite(error):
        return SHRINK
    factor = STEP_SAFETY_FACTOR * error**-INTEGRAL * max(before, 1e-4) ** PROPORTIONAL
    return float(min(GROW, max(SHRINK, factor)))


def first_step(rate: Rate, t: float, x: Array, k1: Array, allowed: Callable[[Array], Array]) -> float:
    """Return a step in which explicit Euler errs by about the tolerance (Hairer et al., section II.4)."""

    def size(values: Array) -> float:
        return float(np.sqrt(np.mean((values / allowed(x)) ** 2))) if x.size else 0.0

    d0, d1 = size(x), size(k1)
    h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
    d2 = size(rate(t + h0, x + h0 * k1) - k1) / h0
    steepest = max(d1, d2)
    h1 = max(1e-6, h0 * 1e-3) if steepest <= 1e-15 else (0.01 / steepest) ** 0.2
    return min(100.0 * h0, h1)


# A system as a first-order differential equation in the variables that integrators carry, compiled.


@final
class FlyingSystem:
    """A model under torques that are held, or under a policy: dx/dt of x = (y, w) of `CentroidalCoordinates`.

    Quaternions in x need not have unit norm. Passive forces act.
    """

    def __init__(
        self, model: Model, tau: npt.ArrayLike | Policy | None, forces: npt.ArrayLike | None, frame: str
    ) -> None:
        """`forces`: external forces in the frame `frame`, held; None for none."""
        self.model, self.held = model, np.zeros(model.nv)
        self.frame = force_options(forces, frame).get("external_frame")
        given = () if forces is None else (forces,)
        self._loads = [finite_array("external_forces", x, (len(model.bodies), 6)) for x in given]
        self.policy = recorded_policy(tau, model) if callable(tau) else None
        if tau is not None and not callable(tau):
            self.held = as_array("tau", tau, (model.nv,))
            if self.held.shape != (model.nv,):
                raise ShapeError(f"tau has the shape {self.held.shape}; give ({model.nv},), or a policy")
            if not np.isfinite(self.held).all():
                raise ArgumentError("tau holds numbers that are not finite")
        self._bodies = CentroidalCoordinates(model, None).bodies
        self._positions = sum(body.nq for body in self._bodies)
        functions = () if self.policy is None else (self.policy,)
        self._rates, self._there, self._back = kept_kernel(
            model, ("flying system", self.frame), functions, self._compile
        )

    def _compile(self) -> tuple[CompiledFunction, CompiledFunction, CompiledFunction]:
        """Compile the rates, the map to x and the map back."""
        model, policy, frame = self.model, self.policy, self.frame
        stabilization = T_STAB if is_constrained(model) and model.closure is None else None

        def now(time: Any) -> Any:
            return time if model.time_dependent else None

        def rates(model: Model, time: Any, y: Any, w: Any, tau: Any) -> Any:
            return loaded_rates(model, time, y, w, tau, None)

        def loaded_rates(model: Model, time: Any, y: Any, w: Any, tau: Any, external_forces: Any) -> Any:
            tree = aligned(model)
            coordinates = CentroidalCoordinates(tree, now(time))
            whole = coordinates.from_centroidal(State(list(y), list(w)), 0.0)
            forces = tau if policy is None else policy(model, time, whole.q, whole.v)
            loads: Loads = {"time": now(time)}
            if frame is not None:
                loads |= {"external_forces": external_forces, "external_frame": frame}
            conditions = StepConditions(tree, forces, loads, True, stabilization)
            found = coordinates.rates(whole, conditions.acceleration(whole.q, whole.v, 0.0))
            return found.q, found.v

        def there(model: Model, q: Any, v: Any) -> Any:
            found = CentroidalCoordinates(model, None).to_centroidal(State(list(q), list(v)))
            return found.q, found.v

        def back(model: Model, time: Any, y: Any, w: Any) -> Any:
            found = CentroidalCoordinates(model, now(time)).from_centroidal(State(list(y), list(w)), 0.0)
            return found.q, found.v

        shapes = {"y": self._positions, "w": sum(body.nv for body in self._bodies)}
        onward = compile(rates if frame is None else loaded_rates, model, inputs=shapes)
        return onward, compile(there, model), compile(back, model, inputs=shapes)

    def rate(self, t: float, x: Array) -> Array:
        """Return dx/dt."""
        return np.concatenate(self._rates(t, *np.split(x, [self._positions]), self.held, *self._loads))

    def to_centroidal(self, q: Array, v: Array) -> Array:
        """Return x of a state."""
        return np.concatenate(self._there(q, v))

    def from_centroidal(self, times: Array, x: Array) -> tuple[Array, Array]:
        """Return states `(n, nq)`, `(n, nv)` of x `(n, size)`."""
        parts = np.split(x, [self._positions], axis=1)
        q, v = self._back(times, *map(np.ascontiguousarray, parts))
        return q, v

    def normalize_quaternions(self, x: Array) -> Array:
        """Normalise the quaternions in x; the state stays the same."""
        place, new = 0, x.copy()
        for body in self._bodies:
            for part in body.joint.unit_quaternions:
                own = slice(place + part.start, place + part.stop)
                new[own] = x[own] / np.linalg.norm(x[own])
            place += body.nq
        return new

    def torques(self, times: Array, q: Array, v: Array) -> Array:
        """Return tau `(n, nv)` in states `(n, …)`."""
        model, policy = self.model, self.policy
        if policy is None:
            return np.tile(self.held, (len(times), 1))
        arguments = tuple(ArrayArgument(item.name, item.shape) for item in policy.trace.inputs)
        recipe = Recipe("torques", policy, model, arguments, traced=policy.trace)
        return np.asarray(
            kept_kernel(model, ("policy",), (policy,), lambda: CompiledFunction(recipe))(times, q, v)
        )


# Events of a motion between its steps: functions of the state that pass zero.

EventFunction: TypeAlias = Callable[[float, Array, Array], Any]

EVENT_SAMPLES: Final = np.array([0.25, 0.5, 0.75, 1.0])
"""Fractions of a step at which event functions are evaluated."""


@final
@dataclass(frozen=True, eq=False)
class Event:
    """An event, which occurs when `function(t, q, v)`, of one sample's arrays, becomes zero.

    `terminal`: the integration ends there. `direction`: 1 for crossings from below only, -1 from above, 0
    both.

    >>> def height(t, q, v):
    ...     return q[2]
    >>> da.simulation.Event(height, terminal=True, direction=-1).name
    'height'
    """

    function: EventFunction
    terminal: bool = False
    direction: int = 0

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise DtypeError(f"Event: {self.function!r} is not a function; give a function of (t, q, v)")
        if self.direction not in (-1, 0, 1):
            raise ArgumentError(f"Event: direction is {self.direction!r}; give -1, 0 or 1")

    @property
    def name(self) -> str:
        """The name of its function."""
        return str(getattr(self.function, "__name__", "event"))

    def value(self, t: float, q: Array, v: Array) -> float:
        """Return g, a finite number."""
        try:
            found = self.function(t, q, v)
            number = float(found)
        except (TypeError, ValueError) as cause:
            raise DtypeError(f'event "{self.name}" must return one number: {cause}') from cause
        if isinstance(found, bool | np.bool_):
            raise DtypeError(f'event "{self.name}" returned {found}; give a number that passes zero')
        if not math.isfinite(number):
            raise StateError(f'event "{self.name}" returned {number} at t = {t:.6g} s')
        return number

    def crossed(self, before: float, after: float) -> bool:
        """Return whether the function has passed zero; a function that begins at zero has not."""
        rises, falls = before < 0.0 <= after, before > 0.0 >= after
        return (rises and self.direction >= 0) or (falls and self.direction <= 0)


@final
@dataclass(frozen=True, eq=False)
class Happening:
    """An event that took place: when [s], and the state then."""

    event: Event
    time: float
    q: Array
    v: Array


@final
class Watches:
    """Events, their values at the end of the last step, and what has happened."""

    def __init__(self, system: FlyingSystem, events: Any, t: float, q: Array, v: Array) -> None:
        """`events`: one event or several, or functions of (t, q, v)."""
        self._system = system
        listed = [events] if callable(events) or isinstance(events, Event) else list(events or ())
        self._events = [item if isinstance(item, Event) else Event(item) for item in listed]
        self._values = [event.value(t, q, v) for event in self._events]
        self.happenings: list[Happening] = []

    def look(self, span: Span, end: float) -> float | None:
        """Find what happened in a step; the time of the first terminal event, if there is one."""
        if not self._events:
            return None
        times = span.start + EVENT_SAMPLES * (end - span.start)
        q, v = self._system.from_centroidal(times, span.at(times))
        found: list[Happening] = []
        for k, event in enumerate(self._events):
            before, since = self._values[k], span.start
            for time, own_q, own_v in zip(times.tolist(), q, v, strict=True):
                after = event.value(time, own_q, own_v)
                if event.crossed(before, after):
                    found.append(self._locate(event, span, since, before, time, after))
                before, since = after, time
            self._values[k] = before
        found.sort(key=lambda happening: happening.time)
        for happening in found:
            self.happenings.append(happening)
            if happening.event.terminal:
                return happening.time
        return None

    def _locate(self, event: Event, span: Span, a: float, g_a: float, b: float, g_b: float) -> Happening:
        """Locate the first zero from a to b: false position with halved weights (Illinois), or bisection."""

        def state(time: float) -> tuple[Array, Array]:
            q, v = self._system.from_centroidal(np.array([time]), span.at(np.array([time])))
            return q[0], v[0]

        side = 0
        for _ in range(100):
            if abs(b - a) <= 4.0 * np.spacing(max(abs(a), abs(b))):
                break
            middle = (a * g_b - b * g_a) / (g_b - g_a)
            if not min(a, b) < middle < max(a, b):
                middle = 0.5 * (a + b)
            g = event.value(middle, *state(middle))
            if g != 0.0 and (g > 0.0) == (g_a > 0.0):
                a, g_a = middle, g
                g_b = 0.5 * g_b if side == -1 else g_b
                side = -1
            else:
                b, g_b = middle, g
                g_a = 0.5 * g_a if side == 1 else g_a
                side = 1
        return Happening(event, b, *state(b))


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

    def __frames__(self, fps: float) -> Frames:
        start, end = self.time[0], self.time[-1]
        count = 1 + math.ceil(min((end - start) * fps, MAX_FRAMES + 1))
        return self.trajectory(np.unique(np.linspace(start, end, count))).__frames__(fps)


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
    external_forces: npt.ArrayLike | None = None,
    external_frame: ForceFrame = "body",
    time: float = 0.0,
    max_step: float = math.inf,
    max_steps: int = 100_000,
    start: float | None = None,
) -> AdaptiveMotion:
    """Integrate the motion from (q, v) over `duration` [s] with an error per step of at most atol + rtol |x|.

    dx/dt = FD_x(x, tau + passive) by Dormand and Prince's method of order five, in the variables that
    `da.step` carries, on the configuration manifold. The estimated error of each variable in a step, at the
    order four, in the root mean square over all, keeps within the bound, and step lengths follow it (PI
    control). That bounds the truncation error of every step, not the error of the motion: a chaotic system
    amplifies it. Modelling errors are not covered.

    `tau`: None, `(nv,)` held, or a policy `f(model, t, q, v)` on generic scalars, evaluated at all times, not
    held. `events`: functions g(t, q, v) of one sample's arrays, or `Event`s; where g changes its sign, time
    and state are found on the polynomial through the step, and a terminal one ends the motion.
    `external_forces` `(n_bodies, 6)` and `external_frame` as in `da.inverse_dynamics`, held. `time` [s]: that
    at the beginning. `max_step` [s] bounds the steps. `start` is the former name of `time`.

    Featherstone 2008 section 10.1.

    >>> model = da.models.pendulum(length=1.0)
    >>> bottom = da.simulation.Event(lambda t, q, v: q[0], terminal=True)
    >>> motion = da.simulation.integrate_adaptive(model, [0.01], [0.0], duration=2.0, events=bottom)
    >>> print(round(motion.time[-1], 4), round(np.pi / 2 / np.sqrt(9.81), 4))  # a quarter of a period
    0.5015 0.5015
    """
    if not isinstance(model, Model):
        raise no_model("integrate_adaptive", model)
    q0, v0 = as_array("q", q, (model.nq,)), as_array("v", v, (model.nv,))
    if q0.ndim != 1 or v0.ndim != 1:
        raise ShapeError(
            f"integrate_adaptive: q and v have the shapes {q0.shape} and {v0.shape}; every sample has "
            "steps of its own, so call it for one at a time"
        )
    require_finite("q", q0)
    require_finite("v", v0)
    span, t = _number("duration", duration, least=0.0), _number("time", time)
    if start is not None:
        t = _number("start", start)
        warn_renamed("integrate_adaptive", "start", "time")
    tolerances = _number("rtol", rtol, least=0.0), _number("atol", atol, least=0.0)
    if tolerances[0] < 1e-14 and tolerances[1] <= 0.0:
        raise ArgumentError(f"integrate_adaptive: rtol={rtol}, atol={atol} ask for more than rounding allows")
    longest = math.inf if max_step == math.inf else _number("max_step", max_step)
    if longest <= 0.0:
        raise ArgumentError(f"integrate_adaptive: max_step is {max_step} s; give a time greater than zero")
    if not isinstance(max_steps, int) or max_steps < 1:
        raise ArgumentError(f"integrate_adaptive: max_steps is {max_steps!r}; give a whole number from 1 on")
    if isinstance(tau, Servo | Actuators):
        raise DtypeError(
            f"integrate_adaptive: {type(tau).__name__} acts in steps of fixed length, which are not here; "
            "give a policy, or take da.rollout"
        )
    require_closed_loops(model, q0, v0, np.array(t))
    system = FlyingSystem(model, tau, external_forces, external_frame)
    watches = Watches(system, events, t, q0, v0)

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
    times, states, speeds = np.array([t]), q0[np.newaxis], v0[np.newaxis]
    if spans:  # the last one may end early
        times = np.array([*(span.start for span in spans), t])
        ends = np.vstack([*(span.x for span in spans), spans[-1].at(times[-1:])])
        states, speeds = system.from_centroidal(times, ends)
        states[0], speeds[0] = q0, v0
    happenings = tuple(watches.happenings)
    return AdaptiveMotion(
        model, times, states, speeds, happenings, rejected, evaluations, tuple(spans), system
    )


def _number(name: str, value: Any, least: float = -math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise DtypeError(f"integrate_adaptive: {name} is {value!r}; give a number")
    number = float(value)
    if not (math.isfinite(number) and number >= least):
        wanted = "a finite number" if least == -math.inf else f"a finite number of at least {least:g}"
        raise ArgumentError(f"integrate_adaptive: {name} is {value!r}; give {wanted}")
    return number
