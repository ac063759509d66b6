"""Integrators that evaluate accelerations and nothing else.

euler           y' = y + h dy/dt,  w' = w + h dw/dt, both where the step begins               order 1
semi_implicit   w' = w + h dw/dt,  then y' from w'                                              order 1
heun            the mean of the rates at both ends, the far end as Euler's method finds it      order 2
rk4             Runge and Kutta's classical method                                              order 4
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalembert.algorithms.flight import turned
from dalembert.algorithms.integrators.carried import Flight, State
from dalembert.algorithms.integrators.circumstances import Circumstances
from dalembert.scalar import Scalar

__all__ = ["Acceleration", "euler", "heun", "leapt", "runge_kutta_4", "runge_kutta_step", "semi_implicit"]

Acceleration = Callable[[Sequence[Scalar], Sequence[Scalar], Scalar], list[Scalar]]
"""dv/dt from q, v and the time since the step began."""


def euler(around: Circumstances, start: State, dt: Scalar) -> State:
    """Explicit Euler, for teaching: an oscillator gains energy, by a share (omega dt)^2 in every step."""
    flight = around.flight
    flying = flight.take_off(start)
    rate = flight.rates(start, around.acceleration(start.q, start.v, 0.0))
    moved = [turned(body, y, [x * dt for x in w]) for body, y, w in flight.parts(flying)]
    return flight.land(State([x for y in moved for x in y], _advanced(flying.v, rate.v, dt)), dt)


def semi_implicit(around: Circumstances, start: State, dt: Scalar) -> State:
    """v2 = v + dt a(q, v), then q2 from v2.

    Where M is constant this is the symplectic Euler method, whose energy error stays bounded. Gyroscopic
    terms are explicit, so that a tumbling body gains energy, by a share of order (omega dt)^2 in each step:
    take small steps for fast spins, or "rk4".
    """
    return leapt(around.flight, start, around.acceleration(start.q, start.v, 0.0), dt)


def leapt(flight: Flight, start: State, a: Sequence[Scalar], dt: Scalar) -> State:
    """The state after a step with the acceleration a, in which positions follow the new velocities."""
    flying = flight.take_off(start)
    rate = flight.rates(start, a)
    faster = State(flying.q, _advanced(flying.v, rate.v, dt))
    moved = [turned(body, y, [x * dt for x in w]) for body, y, w in flight.parts(faster)]
    return flight.land(State([x for y in moved for x in y], faster.v), dt)


def heun(around: Circumstances, start: State, dt: Scalar) -> State:
    """The explicit trapezoidal rule (weights 1/2, 1/2; nodes 0, 1)."""
    flying = around.flight.take_off(start)
    rate = _rate_in_flight(around.flight, around.acceleration)
    k1 = rate(flying, 0.0)
    k2 = rate(_moved(flying, k1, dt), dt)
    mean = State(*([(a + b) * 0.5 for a, b in zip(x, y, strict=True)] for x, y in zip(k1, k2, strict=True)))
    return around.flight.land(_moved(flying, mean, dt), dt)


def runge_kutta_4(around: Circumstances, start: State, dt: Scalar) -> State:
    """The classical method in the variables (y, w) of `stepping`, Eq. (1)."""
    return runge_kutta_step(around.flight, around.acceleration, start, dt)


def runge_kutta_step(flight: Flight, acceleration: Acceleration, start: State, dt: Scalar) -> State:
    """The classical step of any dv/dt = acceleration(q, v, time since the step began)."""
    flying = flight.take_off(start)
    rate = _rate_in_flight(flight, acceleration)
    half = 0.5 * dt
    k1 = rate(flying, 0.0)
    k2 = rate(_moved(flying, k1, half), half)
    k3 = rate(_moved(flying, k2, half), half)
    k4 = rate(_moved(flying, k3, dt), dt)
    mean = State(_simpson(k1.q, k2.q, k3.q, k4.q), _simpson(k1.v, k2.v, k3.v, k4.v))
    return flight.land(_moved(flying, mean, dt), dt)


def _rate_in_flight(flight: Flight, acceleration: Acceleration) -> Callable[[State, Scalar], State]:
    """(dy/dt, dw/dt) as a function of (y, w) and of the time since the step began."""

    def rate(flying: State, elapsed: Scalar) -> State:
        whole = flight.land(flying, elapsed)
        return flight.rates(whole, acceleration(whole.q, whole.v, elapsed))

    return rate


def _moved(flying: State, k: State, h: Scalar) -> State:
    return State(_advanced(flying.q, k.q, h), _advanced(flying.v, k.v, h))


def _advanced(x: Sequence[Scalar], rate: Sequence[Scalar], h: Scalar) -> list[Scalar]:
    return [x_i + h * r for x_i, r in zip(x, rate, strict=True)]


def _simpson(
    k1: Sequence[Scalar], k2: Sequence[Scalar], k3: Sequence[Scalar], k4: Sequence[Scalar]
) -> list[Scalar]:
    """(k1 + 2 k2 + 2 k3 + k4) / 6."""
    return [(a + d + 2.0 * (b + c)) * (1.0 / 6.0) for a, b, c, d in zip(k1, k2, k3, k4, strict=True)]
