"""Simulation of rigid contact from event to event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

import numpy as np

from dalembert.call.arguments import real_array
from dalembert.errors import (
    ArgumentError,
    ContactError,
    DtypeError,
    ShapeError,
    StateError,
    own_errors,
    require_choice,
    short_repr,
)
from dalembert.host.process import require_memory
from dalembert.model.model import Model
from dalembert.motion.clip import Frames
from dalembert.simulation.initial_state import require_finite
from dalembert.textbook.complementarity import Array
from dalembert.textbook.contact_forces import checked_start, require_number
from dalembert.textbook.contact_gaps import GapFunction
from dalembert.textbook.contact_solvers import ContactSets, JointForces
from dalembert.textbook.impacts import checked_restitution, impact_impulses

if TYPE_CHECKING:
    from dalembert.simulation.trajectory import Trajectory


# Integration steps that can be interpolated: a polynomial p(t) fitted to dy/dt over the step.

Rate: TypeAlias = Callable[[Array, float], Any]
Method: TypeAlias = Literal["euler", "heun", "heun3"]

METHODS: dict[str, tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]] = {
    "euler": ((0.0,), ((),)),
    "heun": ((0.0, 2 / 3), ((), (2 / 3,))),
    "heun3": ((0.0, 1 / 3, 2 / 3), ((), (1 / 3,), (0.0, 2 / 3))),
}
"""Nodes c_j, as fractions of the step, and the weights of earlier slopes in each stage."""


@final
@dataclass(frozen=True, eq=False)
class DenseStep:
    """A step of size `h` from `y0` at `t0`, known at every time in it: y(t) = y0 + integral of p from t0 to
    t.

    `slopes` k_j: the values of the polynomial p at the `nodes` (t - t0)/h. It may be shortened after the
    fact.
    """

    t0: float
    h: float
    y0: Array
    slopes: tuple[Array, ...]
    nodes: tuple[float, ...]
    part: float = 1.0

    @property
    def t1(self) -> float:
        """The time at which the step ends."""
        return self.t0 + self.part * self.h

    @property
    def y1(self) -> Array:
        """y at the end of the step."""
        return self.at(self.part)

    def at(self, delta: float) -> Array:
        """Return y at t0 + delta h, delta from 0 to 1 (Eq. 11.46)."""
        weights = _weights(self.nodes) @ (delta ** np.arange(1, len(self.nodes) + 1))
        y = self.y0.astype(np.float64)
        for weight, slope in zip(weights, self.slopes, strict=True):
            y = y + self.h * weight * slope
        return y

    def shortened(self, delta: float) -> DenseStep:
        """Return the same step, ended at t0 + delta h."""
        if not 0.0 <= delta <= 1.0:
            raise ArgumentError(f"a step is shortened to a part of it from 0 to 1, got {delta}")
        return replace(self, part=delta)


def dense_step(rate: Rate, y0: Any, t0: float, h: float, *, method: Method = "heun") -> DenseStep:
    """Take one step of dy/dt = f(y, t) that can be evaluated at every time in it.

    "euler": y(delta) = y0 + h k delta, of order 1. "heun": k2 at 2/3 of the step, y(delta) = y0 + h ((delta
    - 3/4 delta^2) k1 + 3/4 delta^2 k2), of order 2. "heun3": the parabola through slopes at 0, 1/3, 2/3, of
    order 3. `rate(y, t)`: f; `y0`: an array; `h` the step, `t0` its start, delta = (t - t0)/h.

    Source: Featherstone 2008 section 11.5, Eqs 11.45 to 11.51.

    >>> step = da.textbook.dense_step(lambda y, t: np.array([2.0 * t]), [1.0], 0.0, 3.0)  # y = 1 + t^2
    >>> print(step.y1, step.at(1 / 3), step.shortened(2 / 3).t1)
    [10.] [2.] 2.0
    """
    require_choice("method", method, METHODS)
    if not callable(rate):
        raise DtypeError(f"rate is of type {type(rate).__name__}; give a function of (y, t)")
    y, t0, h = real_array("y0", y0), _number("t0", t0), _number("h", h)
    nodes, stages = METHODS[method]
    slopes: list[Array] = []
    for node, stage in zip(nodes, stages, strict=True):
        there = y + h * sum((part * k for part, k in zip(stage, slopes, strict=True)), np.zeros_like(y))
        slopes.append(np.asarray(rate(there, t0 + node * h), dtype=np.float64))
    return DenseStep(t0, h, y, tuple(slopes), nodes)


@own_errors
def fitted_step(y0: Any, t0: float, h: float, slopes: Sequence[Any], nodes: Sequence[float]) -> DenseStep:
    """Return the step whose p(t) is the polynomial through given slopes: y(t) = y0 + integral of p(t) dt.

    `slopes` k_j of dy/dt at t0 + nodes_j h, of any method that fits a polynomial: with nodes 0, -1, -2 the
    method of Adams and Bashforth of order three, from slopes of steps before.

    Source: Featherstone 2008 section 11.5, Eqs 11.45 and 11.46.

    >>> k = [np.array([3.0 * t * t]) for t in (2.0, 1.0, 0.0)]  # of y = t^3
    >>> step = da.textbook.fitted_step([8.0], 2.0, 1.0, k, nodes=(0.0, -1.0, -2.0))
    >>> print(step.y1.round(12), step.at(0.5).round(12))
    [27.] [15.625]
    """
    start, t0, h = real_array("y0", y0), _number("t0", t0), _number("h", h)
    places = tuple(_number("a node", node) for node in nodes)
    if len(slopes) != len(places) or len(set(places)) != len(places) or not places:
        raise ArgumentError(f"a slope for each node, all of them different; got {len(slopes)} and {places}")
    values = tuple(real_array("a slope", k) for k in slopes)
    return DenseStep(t0, h, start, values, places)


def _number(name: str, value: object) -> float:
    """Return one finite number, of either sign."""
    number = real_array(name, value)
    if number.shape != () or not np.isfinite(number):
        raise ArgumentError(f"{name} is {short_repr(value)}; give a finite number")
    return float(number)


@cache
def _weights(nodes: tuple[float, ...]) -> Array:
    """Return the weights; row j: coefficients of delta, delta^2, … in the integral of Lagrange's polynomial j
    from 0 to delta."""
    powers = np.vander(nodes, increasing=True)  # row j: 1, c_j, c_j^2 …
    polynomials = np.linalg.inv(powers).T  # row j: coefficients of L_j
    return np.asarray(polynomials / np.arange(1, len(nodes) + 1))


Kind: TypeAlias = Literal["collision", "contact gain", "contact loss", "negative force", "no solution"]

MAX_EVENTS_PER_STEP = 300
"""The number of events in one time step beyond which the simulation has failed to tell them apart."""

MAX_STEPS = 2.0**53
"""The greatest number of steps: a float is exact up to it."""

MIN_IMPACT_SPEED = 1e-6
"""The closing speed [m/s] below which a contact has no impact."""


@final
@dataclass(frozen=True, eq=False)
class ContactEvent:
    """An event that changed the contacts: its `kind`, its time, the `contacts` concerned, and its effect.

    "collision" (the bodies did not touch before), "contact gain" (they did, elsewhere), "contact loss" (a
    vertex left its face, an edge another), "negative force" (a contact would have to pull), "no solution"
    (no forces keep these contacts from penetrating, and they are left to penetrate a little). `v_before`,
    `v_after (nv,)` and `impulse (nc,)` [N s] differ from each other and zero at impacts; `active`: contacts
    that bear afterwards.
    """

    kind: Kind
    time: float
    contacts: tuple[int, ...]
    q: Array
    v_before: Array
    v_after: Array
    impulse: Array
    active: tuple[int, ...]


@final
@dataclass(frozen=True, eq=False)
class EventDrivenMotion:
    """`trajectory`, with frames at every time step and every event (after it) and "gap" and "contact_force"
    `(T+1, nc)` in `observed`, and `contacts` where the gaps know their points; `events` in order; `solved`:
    how often a complementarity problem was solved.
    """

    trajectory: Trajectory
    events: tuple[ContactEvent, ...]
    solved: int

    def __frames__(self, fps: float) -> Frames:
        return self.trajectory.__frames__(fps)


def simulate_events(
    model: Model,
    q: Any,
    v: Any,
    gaps: GapFunction,
    *,
    duration: float,
    step: float,
    tau: Any = None,
    restitution: Any = 0.0,
    rest_velocity: float = 1e-3,
    method: Method = "heun",
    tolerance: float = 1e-9,
    stabilization: float = 0.1,
) -> EventDrivenMotion:
    """Integrate frictionless motion with contacts, H a + C = tau + T lambda with phi(q) >= 0, from event to
    event.

    1. Integrate with active contacts as equality constraints, ignoring others. 2. Watch for gaps that
    close, features that no longer face each other, and negative forces. 3. Interpolate back to the
    earliest. 4. Where a contact is gained, apply the impulse of an impact, zeta+ >= -e zeta; 5. where one
    is lost, drop it; 6. solve the complementarity problem of the touching contacts for the new current and
    active contacts; 7. go on.

    `q (nq,)`, `v (nv,)`; `gaps`: phi(q); `duration`, `step` [s]; `tau`: joint forces `(nv,)`, or a function
    (t, q, v) of them; passive joint forces are added. `restitution` e, one number or one for each contact;
    impacts slower than `rest_velocity` [m/s] do not bounce, so that a ball comes to rest after finitely
    many. `method`: that of `dense_step`. `tolerance` [m]: gaps this far below zero count as closed.
    `stabilization` [s]: the time in which errors of lasting contacts fade, five steps at least.

    Source: Featherstone 2008 section 11.5, Table 11.1.

    >>> builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    >>> solid = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    >>> _ = builder.add_body("ball", "world", da.Prismatic(axis=(0, 0, 1)), inertia=solid)
    >>> model = builder.build()
    >>> floor = da.textbook.GapFunction(model, lambda model, q: [q[0]])
    >>> motion = da.textbook.simulate_events(
    ...     model, [1.0], [0.0], floor, duration=1.5, step=0.01, restitution=0.5
    ... )
    >>> for event in motion.events[:2]:  # it falls for sqrt(2 h / g), and then flies as long
    ...     print(event.kind, round(event.time, 5), event.v_before.round(3), event.v_after.round(3))
    collision 0.45152 [-4.429] [2.215]
    collision 0.90305 [-2.215] [1.107]
    """
    y = checked_start(model, q, v, gaps)
    forces = _joint_forces(model, tau)
    numbers = {"duration": duration, "step": step, "tolerance": tolerance, "stabilization": stabilization}
    for name, number in numbers.items():
        require_number(name, number, positive=True)
    require_number("rest_velocity", rest_velocity, positive=False)
    require_choice("method", method, METHODS)
    steps = min(float(duration) / float(step), MAX_STEPS)
    require_memory(
        f"simulate_events: the frames of {steps:.3g} steps",
        int(steps) * 8 * (1 + y.size + len(gaps)),
        "give a shorter duration or a longer step",
    )
    sets = ContactSets(model, gaps, forces, tolerance=tolerance, fading=max(stabilization, 5.0 * step))
    deepest = np.where(gaps.extent(y[: model.nq]) >= 0.0, gaps.value(y[: model.nq]), 0.0)
    if deepest.min(initial=0.0) < -1e-6:
        worst = int(np.argmin(deepest))
        raise StateError(
            f'"{gaps.names[worst]}" (contact {worst}) overlap by {-deepest[worst]:.3g} m at the start; '
            "lift them apart"
        )
    e = checked_restitution(restitution, len(gaps))
    simulation = _Simulation(sets, y, e, rest_velocity, method)
    for number in range(1, int(np.ceil(duration / step - 1e-9)) + 1):
        simulation.advance(min(number * step, duration))
    return simulation.result()


@final
class _Simulation:
    """A run of Table 11.1."""

    def __init__(self, sets: ContactSets, y: Array, e: Array, rest_velocity: float, method: Method) -> None:
        self.sets, self.y, self.t, self.method = sets, y, 0.0, method
        self.e, self.rest_velocity = e, rest_velocity
        self.events: list[ContactEvent] = []
        self.frames: list[tuple[float, Array, Array]] = []
        q, v = sets.split(y)
        closing = tuple(i for i in sets.touching(q) if sets.gaps.rate(q, v)[i] < -sets.still)
        if closing:
            self._handle("collision", closing)
        else:
            self._report_hopeless(sets.resolve(y, 0.0))
        self._record()

    def advance(self, until: float) -> None:
        """Integrate to a time, through all events before it."""
        for _ in range(MAX_EVENTS_PER_STEP):
            if self.t >= until - 1e-14 * max(1.0, until):
                self.t = until
                return
            step = dense_step(self.sets.rate, self.y, self.t, until - self.t, method=self.method)
            found = self._earliest(step)
            if found is not None:
                step = step.shortened(found[0])
            self.y, self.t = np.concatenate(self.sets.split(step.y1)), step.t1
            if found is not None:
                self._handle(found[1], found[2])
            self._record()
        raise ContactError(
            f"more than {MAX_EVENTS_PER_STEP} events at {self.t:.6g} s: contacts that no step can tell apart"
        )

    def result(self) -> EventDrivenMotion:
        from dalembert.simulation.trajectory import ContactRecord, Trajectory

        times, states, forces = (np.array(column) for column in zip(*self.frames, strict=True))
        model, gaps = self.sets.model, self.sets.gaps
        q, v = states[:, : model.nq], states[:, model.nq :]
        taus = [self.sets.joint_forces(*frame) for frame in zip(times[:-1], q[:-1], v[:-1], strict=True)]
        tau = np.array(taus).reshape(len(times) - 1, model.nv)
        observed = {"gap": gaps.value(q), "contact_force": forces}
        points, contacts = gaps.points(q[:-1]), None
        if points is not None:
            position, normal = points
            force = forces[:-1, :, None] * normal
            contacts = ContactRecord(gaps.pairs, force, position, observed["gap"][:-1])
        trajectory = Trajectory(model, times, q, v, tau, contacts=contacts, observed=observed)
        return EventDrivenMotion(trajectory, tuple(self.events), self.sets.solved)

    def _earliest(self, step: DenseStep) -> tuple[float, Kind, tuple[int, ...]] | None:
        """Return the first event within a step: the fraction of the step, the kind, the contacts."""
        sets, gaps = self.sets, self.sets.gaps
        # A gap closes only from above: a vertex below a table that moves under it does not touch its top.
        ignored = gaps.has_extents & (gaps.value(sets.split(step.y0)[0]) < sets.floor - sets.tolerance)
        ignored[list(sets.current)] = False
        ignored[list(sets.active)] = True

        def depths(delta: float) -> Array:
            q = sets.split(step.at(delta))[0]
            return np.where(ignored | (gaps.extent(q) < 0.0), 1.0, gaps.value(q) - sets.floor)

        def closing() -> tuple[float, tuple[int, ...]] | None:
            while (found := _first_below(depths)) is not None:
                from_below = depths(found[0]) < -sets.tolerance
                if not (gaps.has_extents and from_below.any()):
                    break
                ignored[from_below] = True
            return found

        def extents(delta: float) -> Array:
            margin = np.ones(len(gaps))
            margin[list(sets.current)] = gaps.extent(sets.split(step.at(delta))[0])[list(sets.current)]
            return margin

        def pushes(delta: float) -> Array:
            force = sets.motion(step.at(delta), step.t0 + delta * step.h)[1]
            return np.asarray(force + 1e-9 * np.abs(force).max(initial=1.0))

        found: list[tuple[Kind, tuple[float, tuple[int, ...]] | None]] = [("collision", closing())]
        if sets.current:
            found.append(("contact loss", _first_below(extents)))
        if sets.active:
            found.append(("negative force", _first_below(pushes)))
        events = [(where[0], kind, where[1]) for kind, where in found if where is not None]
        return min(events, key=lambda event: event[0], default=None)

    def _handle(self, kind: Kind, contacts: tuple[int, ...]) -> None:
        """Perform steps 4 to 6 of the table."""
        sets = self.sets
        q, before = sets.split(self.y)
        together = {sets.gaps.names[i] for i in sets.current}
        if kind == "collision" and any(sets.gaps.names[i] in together for i in contacts):
            kind = "contact gain"
        sets.base[list(contacts)] = np.minimum(sets.gaps.value(q)[list(contacts)], 0.0)
        impulse = self._impact(q, before)
        hopeless = sets.resolve(self.y, self.t, pulling=contacts if kind == "negative force" else ())
        self.y = sets.remove_separation_velocity(self.y, self.t)
        self._report(kind, contacts, before, impulse)
        self._report_hopeless(hopeless)

    def _report(self, kind: Kind, contacts: tuple[int, ...], before: Array, impulse: Array) -> None:
        q, after = self.sets.split(self.y)
        event = ContactEvent(kind, self.t, contacts, q, before, after.copy(), impulse, self.sets.active)
        self.events.append(event)

    def _impact(self, q: Array, v: Array) -> Array:
        """Apply the impulse of the contacts that close, and return the impulse of each contact."""
        impulse = np.zeros(len(self.sets.gaps))
        touching = self.sets.touching(q)
        equations = self.sets.equations(q, v, self.t).of(touching)
        zeta = equations.velocity
        if zeta.min(initial=0.0) < -MIN_IMPACT_SPEED:
            e = np.where(zeta < -self.rest_velocity, self.e[touching], 0.0)
            lam = impact_impulses(equations.M, zeta, e)
            impulse[touching] = lam
            self.y = np.concatenate([q, v + equations.response @ lam])
        return impulse

    def _report_hopeless(self, contacts: tuple[int, ...]) -> None:
        if contacts:
            v = self.sets.split(self.y)[1].copy()
            self._report("no solution", contacts, v, np.zeros(len(self.sets.gaps)))

    def _record(self) -> None:
        self.frames.append((self.t, self.y.copy(), self.sets.motion(self.y, self.t)[1]))


def _first_below(margin: Callable[[float], Array]) -> tuple[float, tuple[int, ...]] | None:
    """Return where in a step the first of some margins falls below zero, and which; None if all end above."""
    if (margin(1.0) >= 0.0).all():
        return None
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if (margin(middle) < 0.0).any() else (middle, high)
    return high, tuple(int(i) for i in np.flatnonzero(margin(high) < 0.0))


def _joint_forces(model: Model, tau: Any) -> JointForces:
    if callable(tau):

        def evaluate_tau(t: float, q: Array, v: Array) -> Array:
            found = np.asarray(tau(t, q, v), dtype=np.float64)
            if not np.isfinite(found).all():
                raise StateError(f"tau is not finite at t = {t:.6g} s: {found}")
            return found

        return evaluate_tau
    constant = np.zeros(model.nv) if tau is None else real_array("tau", tau)
    if constant.shape != (model.nv,):
        raise ShapeError(
            f"tau has {model.nv} numbers, or is a function (t, q, v); got the shape {constant.shape}"
        )
    require_finite("tau", constant)
    return lambda t, q, v: constant
