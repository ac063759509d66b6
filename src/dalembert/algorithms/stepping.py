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

A system whose closed loops are given explicitly, q = gamma(y), is carried by y and its rates alone
(Featherstone 2008 section 8.11): its loops cannot open. Other constraints are kept by their accelerations,
with stabilisation against drift (see `stabilization`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.flight import land, rates_in_flight, take_off, turned
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.open_tree import is_constrained
from dalembert.algorithms.passive_forces import passive_forces
from dalembert.algorithms.stabilization import Leap, Stabilization
from dalembert.errors import ArgumentError, UnknownNameError
from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, maximum

__all__ = ["INTEGRATORS", "State", "state_rate", "step"]

T_STAB = 0.1
"""The book's choice [s] for a large robot (Featherstone 2008 section 8.3)."""

FADING_STEPS = 5.0
"""In how many semi-implicit steps errors of position fade, unless a time is given."""


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
    stabilization: Scalar | None = None,
) -> State:
    """(dq/dt, dv/dt) = FD_x(x, tau): the state-space form that ODE solvers take (Eqs 3.8, 3.9)."""
    a = forward_dynamics(
        tree,
        q,
        v,
        tau,
        external_forces=external_forces,
        external_frame=external_frame,
        time=time,
        stabilization=stabilization,
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
    stabilization: Scalar | str | None = None,
) -> State:
    """The state after dt [s] under constant joint and external forces.

    `integrator`: "semi_implicit" (Euler: v from the accelerations, then q from the new v) or "rk4".
    `passive`: add springs, damping and dry friction to tau. `stabilization`: T_stab [s] of constraints, None:
    without, "automatic": 0.1 s, or five steps of the semi-implicit method.
    """
    if isinstance(dt, (int, float)) and not 0.0 < dt < float("inf"):
        raise ArgumentError(f"step: dt = {dt} s; give a finite step greater than zero")
    if integrator not in INTEGRATORS:
        raise UnknownNameError.of("integrator", integrator, INTEGRATORS)
    kept = _stabilization(tree, integrator, dt, stabilization)

    def acceleration(q: Sequence[Scalar], v: Sequence[Scalar], elapsed: Scalar) -> list[Scalar]:
        total = [t + p for t, p in zip(tau, passive_forces(tree, q, v), strict=True)] if passive else tau
        now = None if time is None else time + elapsed
        return forward_dynamics(
            tree,
            q,
            v,
            total,
            external_forces=external_forces,
            external_frame=external_frame,
            time=now,
            stabilization=kept,
        )

    return INTEGRATORS[integrator](Flight(tree, time), acceleration, State(list(q), list(v)), dt)


Acceleration = Callable[[Sequence[Scalar], Sequence[Scalar], Scalar], list[Scalar]]
"""dv/dt from q, v and the time since the step began."""


@final
@dataclass(frozen=True, slots=True)
class Flight:
    """The joints that a step carries, and the way from their variables (y, w) to the whole state and back."""

    tree: Tree
    time: Scalar | None

    @property
    def bodies(self) -> list[Body]:
        """Those whose joints are independent, in the order of their variables."""
        if self.tree.closure is None:
            return _independent(self.tree)
        by_name = {body.joint_name: body for body in self.tree.bodies}
        return [by_name[name] for name in self.tree.closure.independent]

    def take_off(self, state: State) -> State:
        """(y, w) of the whole state."""
        return _joined(take_off(b, b.own_q(state.q), b.own_v(state.v)) for b in self.bodies)

    def rates(self, state: State, a: Sequence[Scalar]) -> State:
        """(dy/dt, dw/dt) in the state, where dv/dt = a."""
        return _joined(
            rates_in_flight(b, b.own_q(state.q), b.own_v(state.v), b.own_v(a)) for b in self.bodies
        )

    def land(self, flying: State, elapsed: Scalar) -> State:
        """The whole state of (y, w); quaternions come out with unit norm."""
        landed = _joined(land(b, b.joint.normalize(y), w) for b, y, w in self.parts(flying))
        if self.tree.closure is None:
            return landed
        from dalembert.algorithms.constraints import closure_equations  # plain trees do without

        now = None if self.time is None else self.time + elapsed
        whole = closure_equations(self.tree, landed.q, landed.v, time=now)
        return State(whole.q, whole.v)

    def parts(self, flying: State) -> Iterator[tuple[Body, list[Scalar], list[Scalar]]]:
        """Body by body what the variables hold of it."""
        start_q = start_v = 0
        for body in self.bodies:
            end_q, end_v = start_q + body.nq, start_v + body.nv
            yield body, flying.q[start_q:end_q], flying.v[start_v:end_v]
            start_q, start_v = end_q, end_v


def _stabilization(
    tree: Tree, integrator: str, dt: Scalar, stabilization: Scalar | str | None
) -> Stabilization:
    """What `step` asks of the constraints, if there are any."""
    if stabilization is None or tree.closure is not None or not is_constrained(tree):
        return None
    automatic = isinstance(stabilization, str)
    if integrator != "semi_implicit":
        return T_STAB if automatic else stabilization
    return Leap(dt, FADING_STEPS * dt if automatic else maximum(stabilization, dt))


def _joined(pairs: Iterable[tuple[list[Scalar], list[Scalar]]]) -> State:
    listed = list(pairs)
    return State([x for y, _ in listed for x in y], [x for _, w in listed for x in w])


def _semi_implicit(flight: Flight, acceleration: Acceleration, start: State, dt: Scalar) -> State:
    """v2 = v + dt a(q, v), then q2 from v2.

    Where M is constant this is the symplectic Euler method, whose energy error stays bounded. Gyroscopic
    terms are explicit, so that a tumbling body gains energy, by a share of order (omega dt)^2 in each step:
    take small steps for fast spins, or "rk4".
    """
    flying = flight.take_off(start)
    rate = flight.rates(start, acceleration(start.q, start.v, 0.0))
    faster = State(flying.q, _advanced(flying.v, rate.v, dt))
    moved = [turned(body, y, [x * dt for x in w]) for body, y, w in flight.parts(faster)]
    return flight.land(State([x for y in moved for x in y], faster.v), dt)


def _runge_kutta_4(flight: Flight, acceleration: Acceleration, start: State, dt: Scalar) -> State:
    """The classical method in the variables (y, w) of Eq. (1)."""
    flying = flight.take_off(start)

    def rate(state: State, elapsed: Scalar) -> State:
        whole = flight.land(state, elapsed)
        return flight.rates(whole, acceleration(whole.q, whole.v, elapsed))

    def moved(k: State, h: Scalar) -> State:
        return State(_advanced(flying.q, k.q, h), _advanced(flying.v, k.v, h))

    half = 0.5 * dt
    k1 = rate(flying, 0.0)
    k2 = rate(moved(k1, half), half)
    k3 = rate(moved(k2, half), half)
    k4 = rate(moved(k3, dt), dt)
    mean = State(_simpson(k1.q, k2.q, k3.q, k4.q), _simpson(k1.v, k2.v, k3.v, k4.v))
    return flight.land(moved(mean, dt), dt)


Integrator = Callable[[Flight, Acceleration, State, Scalar], State]

INTEGRATORS: dict[str, Integrator] = {"semi_implicit": _semi_implicit, "rk4": _runge_kutta_4}
"""Every integrator by the name that `step` knows it under."""


def _advanced(x: Sequence[Scalar], rate: Sequence[Scalar], h: Scalar) -> list[Scalar]:
    return [x_i + h * r for x_i, r in zip(x, rate, strict=True)]


def _simpson(
    k1: Sequence[Scalar], k2: Sequence[Scalar], k3: Sequence[Scalar], k4: Sequence[Scalar]
) -> list[Scalar]:
    """(k1 + 2 k2 + 2 k3 + k4) / 6."""
    return [(a + d + 2.0 * (b + c)) * (1.0 / 6.0) for a, b, c, d in zip(k1, k2, k3, k4, strict=True)]


def _independent(tree: Tree) -> list[Body]:
    return [body for body in tree.bodies if body.dependence is None]
