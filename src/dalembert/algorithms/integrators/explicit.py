"""Integrators that evaluate accelerations and nothing else.

euler           y' = y + h dy/dt,  w' = w + h dw/dt, both where the step begins               order 1
semi_implicit   w' = w + h dw/dt,  then y' from w'                      order 1; 2 for the spin of one body
heun            the mean of the rates at both ends, the far end as Euler's method finds it      order 2
rk4             Runge and Kutta's classical method                                              order 4
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dalembert.algorithms.flight import turned
from dalembert.algorithms.integrators.carried import Flight, State
from dalembert.algorithms.integrators.circumstances import Circumstances
from dalembert.algorithms.open_tree import is_constrained
from dalembert.model.joints import Free, Spherical
from dalembert.model.topology import WORLD
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero, literal
from dalembert.spatial import SymMat3, Vec3

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

    Where M is constant this is the symplectic Euler method, whose energy error stays bounded. The
    velocity-product forces of jointed bodies are explicit, so that limbs that swing fast gain energy: take
    "midpoint" for them. The gyroscopic force of a body by itself is that in the middle of the step.
    """
    a = around.acceleration(start.q, start.v, 0.0)
    if not is_constrained(around.tree) and around.tree.closure is None:
        a = _with_middle_spin(around.tree, start.v, a, dt)
    return leapt(around.flight, start, a, dt)


def _with_middle_spin(tree: Tree, v: Sequence[Scalar], a: Sequence[Scalar], dt: Scalar) -> list[Scalar]:
    """Return dv/dt with mid-step gyroscopic forces on bodies by themselves, on free or ball joints.

    I alpha' = I alpha + omega x I omega - omega_m x I omega_m,      omega_m = omega + h alpha / 2

    I about the centre of mass, or about a ball joint. At omega itself the force would add (h omega)^2 of the
    energy in every step. A free body's centre keeps its acceleration.
    """
    result = list(a)
    for body in tree.bodies:
        free = isinstance(body.joint, Free)
        alone = body.parent == WORLD and body.index not in tree.parents and body.dependence is None
        if not alone or not (free or isinstance(body.joint, Spherical)):
            continue
        I = body.inertia.inertia_at_com if free else body.inertia.inertia
        if any(not is_zero(m) for m in body.armature) or not _is_invertible(I):
            continue
        own_v, own_a = body.own_v(v), body.own_v(a)
        omega, alpha = Vec3(*own_v[:3]), Vec3(*own_a[:3])
        middle = omega + alpha * (0.5 * dt)
        more = I.inverse() @ (omega.cross(I @ omega) - middle.cross(I @ middle))
        linear = [*(Vec3(*own_a[3:]) - more.cross(body.inertia.com))] if free else []
        result[body.v_slice] = [*(alpha + more), *linear]
    return result


def _is_invertible(I: SymMat3) -> bool:
    """Return whether an inertia is that of a solid; one that is a run-time parameter counts as such."""
    values = [[literal(x) for x in row] for row in I.to_list()]
    if any(x is None for row in values for x in row):
        return True
    smallest, _, largest = np.linalg.eigvalsh(np.array(values, float))
    return bool(smallest > 1e-12 * largest)


def leapt(
    flight: Flight, start: State, a: Sequence[Scalar], dt: Scalar, v: Sequence[Scalar] | None = None
) -> State:
    """Return the state after a step with the acceleration a, in which positions follow the new velocities;
    `v`: where a holds, by default the velocities where the step begins."""
    flying = flight.take_off(start)
    rate = flight.rates(start if v is None else State(start.q, list(v)), a)
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
