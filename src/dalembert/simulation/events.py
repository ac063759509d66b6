"""Events of a motion between its steps: functions of the state that pass zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, DtypeError, StateError
from dalembert.simulation.dormand_prince import Span
from dalembert.simulation.flying_system import FlyingSystem

__all__ = ["Event", "EventFunction", "Happening", "Watches", "events_of"]

Array: TypeAlias = npt.NDArray[Any]
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


def events_of(events: Any) -> list[Event]:
    """Return a list of events: one event or several, or functions of (t, q, v)."""
    listed = [events] if callable(events) or isinstance(events, Event) else list(events or ())
    return [item if isinstance(item, Event) else Event(item) for item in listed]


@final
class Watches:
    """Events, their values at the end of the last step, and what has happened."""

    def __init__(self, system: FlyingSystem, events: Sequence[Event], t: float, q: Array, v: Array) -> None:
        self._system = system
        self._events = events
        self._values = [event.value(t, q, v) for event in events]
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
        """Locate the first zero between a and b: false position with halved weights (Illinois), else
        bisection.
        """

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
