"""One step of simulated time on the configuration manifold.

The state is (q, v); q may hold quaternions, and dq/dt = Q(q) v (Featherstone 2008 Eq. 3.5). Free and planar
joints are carried through a step not by v, whose linear part is in body axes and so changes when a body
merely spins, but by the velocity of the body's own centre of mass c along the axes of the predecessor (the
world's, for a root):

    w  = R (v_O + omega x c)                                     y = p + R c                              (1)
    w' = R (a_O + alpha x c + omega x (v_O + omega x c))         y' = w                                   (2)

In free flight w' is gravity, constant: a thrown spinning body keeps its momentum, and its centre of mass
its parabola, to rounding under every integrator.

Runge-Kutta of order four is the classical one on these variables. Before the dynamics are evaluated,
quaternions are scaled to unit norm: that extends the vector field smoothly off the manifold, on which it is
tangent, so the order is full.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.flight import land, rates_in_flight, take_off, turned
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.passive_forces import passive_forces
from dalembert.errors import ArgumentError, UnknownNameError
from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["INTEGRATORS", "State", "state_rate", "step"]


class State(NamedTuple):
    """Position and velocity variables of the whole system."""

    q: list[Scalar]
    v: list[Scalar]


def state_rate(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> State:
    """(dq/dt, dv/dt) = FD_x(x, tau): the state-space form that ODE solvers take (Eqs 3.8, 3.9)."""
    a = forward_dynamics(
        tree, q, v, tau, external_forces=external_forces, external_frame=external_frame, time=time
    )
    q_rate: list[Scalar] = []
    for body in _independent(tree):
        q_rate += body.joint.position_rate(body.own_q(q), body.own_v(v))
    return State(q_rate, a)


def step(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    dt: Scalar,
    *,
    integrator: str = "semi_implicit",
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    passive: bool = False,
    time: Scalar | None = None,
) -> State:
    """The state after dt [s] under constant joint and external forces.

    `integrator`: "semi_implicit" (Euler: v from the accelerations, then q from the new v) or "rk4".
    `passive`: add springs, damping and dry friction to tau.
    """
    if isinstance(dt, (int, float)) and not 0.0 < dt < float("inf"):
        raise ArgumentError(f"step: dt = {dt} s; give a finite step greater than zero")
    if integrator not in INTEGRATORS:
        raise UnknownNameError.of("integrator", integrator, INTEGRATORS)

    def acceleration(q: Sequence[Scalar], v: Sequence[Scalar], elapsed: Scalar) -> list[Scalar]:
        total = [t + p for t, p in zip(tau, passive_forces(tree, q, v), strict=True)] if passive else tau
        now = None if time is None else time + elapsed
        return forward_dynamics(
            tree, q, v, total, external_forces=external_forces, external_frame=external_frame, time=now
        )

    return INTEGRATORS[integrator](tree, acceleration, State(list(q), list(v)), dt)


Acceleration = Callable[[Sequence[Scalar], Sequence[Scalar], Scalar], list[Scalar]]
"""dv/dt from q, v and the time since the step began."""


def _semi_implicit(tree: Tree, acceleration: Acceleration, start: State, dt: Scalar) -> State:
    """v2 = v + dt a(q, v), then q2 from v2.

    Where M is constant this is the symplectic Euler method, whose energy error stays bounded. Gyroscopic
    terms are explicit, so that a tumbling body gains energy, by a share of order (omega dt)^2 in each step:
    take small steps for fast spins, or "rk4".
    """
    a = acceleration(start.q, start.v, 0.0)
    q2: list[Scalar] = []
    v2: list[Scalar] = []
    for body in _independent(tree):
        own_q, own_v = body.own_q(start.q), body.own_v(start.v)
        y, w = take_off(body, own_q, own_v)
        _, w_rate = rates_in_flight(body, own_q, own_v, body.own_v(a))
        w = _advanced(w, w_rate, dt)
        y = body.joint.normalize(turned(body, y, [x * dt for x in w]))
        own_q, own_v = land(body, y, w)
        q2, v2 = q2 + own_q, v2 + own_v
    return State(q2, v2)


def _runge_kutta_4(tree: Tree, acceleration: Acceleration, start: State, dt: Scalar) -> State:
    """The classical method in the variables (y, w) of Eq. (1)."""
    flying = _take_off_all(tree, start)

    def rate(state: State, elapsed: Scalar) -> State:
        q, v = _land_all(tree, state)
        a = acceleration(q, v, elapsed)
        pairs = [rates_in_flight(b, b.own_q(q), b.own_v(v), b.own_v(a)) for b in _independent(tree)]
        return State([x for y, _ in pairs for x in y], [x for _, w in pairs for x in w])

    def moved(k: State, h: Scalar) -> State:
        return State(_advanced(flying.q, k.q, h), _advanced(flying.v, k.v, h))

    half = 0.5 * dt
    k1 = rate(flying, 0.0)
    k2 = rate(moved(k1, half), half)
    k3 = rate(moved(k2, half), half)
    k4 = rate(moved(k3, dt), dt)
    mean = State(_simpson(k1.q, k2.q, k3.q, k4.q), _simpson(k1.v, k2.v, k3.v, k4.v))
    return _land_all(tree, moved(mean, dt))


Integrator = Callable[[Tree, Acceleration, State, Scalar], State]

INTEGRATORS: dict[str, Integrator] = {"semi_implicit": _semi_implicit, "rk4": _runge_kutta_4}
"""Every integrator by the name that `step` knows it under."""


def _advanced(x: Sequence[Scalar], rate: Sequence[Scalar], h: Scalar) -> list[Scalar]:
    return [x_i + h * r for x_i, r in zip(x, rate, strict=True)]


def _simpson(
    k1: Sequence[Scalar], k2: Sequence[Scalar], k3: Sequence[Scalar], k4: Sequence[Scalar]
) -> list[Scalar]:
    """(k1 + 2 k2 + 2 k3 + k4) / 6."""
    return [(a + d + 2.0 * (b + c)) * (1.0 / 6.0) for a, b, c, d in zip(k1, k2, k3, k4, strict=True)]


def _take_off_all(tree: Tree, state: State) -> State:
    pairs = [take_off(body, body.own_q(state.q), body.own_v(state.v)) for body in _independent(tree)]
    return State([x for y, _ in pairs for x in y], [x for _, w in pairs for x in w])


def _land_all(tree: Tree, state: State) -> State:
    pairs = []
    for body in _independent(tree):
        y = body.joint.normalize(body.own_q(state.q))
        pairs.append(land(body, y, body.own_v(state.v)))
    return State([x for q, _ in pairs for x in q], [x for _, v in pairs for x in v])


def _independent(tree: Tree) -> list[Body]:
    return [body for body in tree.bodies if body.dependence is None]
