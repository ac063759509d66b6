"""Integrators that evaluate accelerations and nothing else.

euler           y' = y + h dy/dt,  w' = w + h dw/dt, both where the step begins               order 1
semi_implicit   w' = w + h dw/dt,  then y' from w'                      order 1; 2 for the spin of one body
heun            the mean of the rates at both ends, the far end as Euler's method finds it      order 2
rk4             the classical Runge–Kutta method                                                order 4
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dalembert.algorithms.flight import integrate_centroidal
from dalembert.algorithms.integrators.carried import CentroidalCoordinates, State
from dalembert.algorithms.integrators.circumstances import StepConditions
from dalembert.algorithms.open_tree import is_constrained
from dalembert.model.joints import Free, Spherical
from dalembert.model.topology import WORLD
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero, literal
from dalembert.spatial import SymMat3, Vec3

__all__ = [
    "Acceleration",
    "euler",
    "heun",
    "semi_implicit_update",
    "runge_kutta_4",
    "runge_kutta_step",
    "semi_implicit",
]

Acceleration = Callable[[Sequence[Scalar], Sequence[Scalar], Scalar], list[Scalar]]
"""dv/dt from q, v and the time since the step began."""


def euler(conditions: StepConditions, start: State, dt: Scalar) -> State:
    """Take a step of explicit Euler, for teaching: an oscillator gains (omega dt)^2 of its energy a step."""
    coordinates = conditions.coordinates
    centroidal = coordinates.to_centroidal(start)
    rate = coordinates.rates(start, conditions.acceleration(start.q, start.v, 0.0))
    moved = [
        integrate_centroidal(body, y, [x * dt for x in w]) for body, y, w in coordinates.parts(centroidal)
    ]
    return coordinates.from_centroidal(
        State([x for y in moved for x in y], _advance(centroidal.v, rate.v, dt)), dt
    )


def semi_implicit(conditions: StepConditions, start: State, dt: Scalar) -> State:
    """Take a step of semi-implicit Euler: v2 = v + dt a(q, v), then q2 from v2.

    Where M is constant this is the symplectic Euler method, whose energy error stays bounded. The
    velocity-product forces of jointed bodies are explicit, so that limbs that swing fast gain energy: take
    "midpoint" for them. The gyroscopic force of a body by itself is that in the middle of the step.
    """
    a = conditions.acceleration(start.q, start.v, 0.0)
    if not is_constrained(conditions.tree) and conditions.tree.closure is None:
        a = _with_middle_spin(conditions.tree, start.v, a, dt)
    return semi_implicit_update(conditions.coordinates, start, a, dt)


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


def semi_implicit_update(
    coordinates: CentroidalCoordinates,
    start: State,
    a: Sequence[Scalar],
    dt: Scalar,
    v: Sequence[Scalar] | None = None,
) -> State:
    """Return the state after a step with the acceleration a, in which positions follow the new velocities.

    `v`: the velocities at which a was computed, by default those at the start of the step.
    """
    centroidal = coordinates.to_centroidal(start)
    rate = coordinates.rates(start if v is None else State(start.q, list(v)), a)
    faster = State(centroidal.q, _advance(centroidal.v, rate.v, dt))
    moved = [integrate_centroidal(body, y, [x * dt for x in w]) for body, y, w in coordinates.parts(faster)]
    return coordinates.from_centroidal(State([x for y in moved for x in y], faster.v), dt)


def heun(conditions: StepConditions, start: State, dt: Scalar) -> State:
    """Take a step of the explicit trapezoidal rule (weights 1/2, 1/2; nodes 0, 1)."""
    centroidal = conditions.coordinates.to_centroidal(start)
    rate = _centroidal_rate(conditions.coordinates, conditions.acceleration)
    k1 = rate(centroidal, 0.0)
    k2 = rate(_advance_state(centroidal, k1, dt), dt)
    mean = State(*([(a + b) * 0.5 for a, b in zip(x, y, strict=True)] for x, y in zip(k1, k2, strict=True)))
    return conditions.coordinates.from_centroidal(_advance_state(centroidal, mean, dt), dt)


def runge_kutta_4(conditions: StepConditions, start: State, dt: Scalar) -> State:
    """Take a step of the classical Runge–Kutta method in the variables (y, w) of `stepping`, Eq. (1)."""
    return runge_kutta_step(conditions.coordinates, conditions.acceleration, start, dt)


def runge_kutta_step(
    coordinates: CentroidalCoordinates, acceleration: Acceleration, start: State, dt: Scalar
) -> State:
    """Take a classical Runge–Kutta step of any dv/dt = acceleration(q, v, time since the step began)."""
    centroidal = coordinates.to_centroidal(start)
    rate = _centroidal_rate(coordinates, acceleration)
    half = 0.5 * dt
    k1 = rate(centroidal, 0.0)
    k2 = rate(_advance_state(centroidal, k1, half), half)
    k3 = rate(_advance_state(centroidal, k2, half), half)
    k4 = rate(_advance_state(centroidal, k3, dt), dt)
    mean = State(_simpson(k1.q, k2.q, k3.q, k4.q), _simpson(k1.v, k2.v, k3.v, k4.v))
    return coordinates.from_centroidal(_advance_state(centroidal, mean, dt), dt)


def _centroidal_rate(
    coordinates: CentroidalCoordinates, acceleration: Acceleration
) -> Callable[[State, Scalar], State]:
    """Return the function (y, w), time since the step began -> (dy/dt, dw/dt)."""

    def rate(centroidal: State, elapsed: Scalar) -> State:
        whole = coordinates.from_centroidal(centroidal, elapsed)
        return coordinates.rates(whole, acceleration(whole.q, whole.v, elapsed))

    return rate


def _advance_state(centroidal: State, k: State, h: Scalar) -> State:
    return State(_advance(centroidal.q, k.q, h), _advance(centroidal.v, k.v, h))


def _advance(x: Sequence[Scalar], rate: Sequence[Scalar], h: Scalar) -> list[Scalar]:
    return [x_i + h * r for x_i, r in zip(x, rate, strict=True)]


def _simpson(
    k1: Sequence[Scalar], k2: Sequence[Scalar], k3: Sequence[Scalar], k4: Sequence[Scalar]
) -> list[Scalar]:
    """Return (k1 + 2 k2 + 2 k3 + k4) / 6."""
    return [(a + d + 2.0 * (b + c)) * (1.0 / 6.0) for a, b, c, d in zip(k1, k2, k3, k4, strict=True)]
