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

import functools
from typing import Any, Unpack

from dalembert.algorithms.applied_forces import Conditions, Leap, Loads, Stabilization
from dalembert.algorithms.declaration import CONSTRAINED_LOADS, JOINTS_ALONE, kernel, public
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.integrators import (
    GivenMotion,
    Integrator,
    JointForces,
    State,
    StepConditions,
    euler,
    heun,
    implicit,
    midpoint,
    runge_kutta_4,
    semi_implicit,
)
from dalembert.algorithms.open_tree import CAN_BE_NORMALIZED, HAS_INVERSE, is_constrained
from dalembert.algorithms.variational import variational
from dalembert.errors import ArgumentError, require_choice
from dalembert.model import configuration
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, Scalars, maximum

# Integrators on the configuration manifold, one module a family; `stepping.step` chooses one by its name.

INTEGRATORS: dict[str, Integrator] = {
    "semi_implicit": semi_implicit,
    "rk4": runge_kutta_4,
    "euler": euler,
    "heun": heun,
    "midpoint": midpoint,
    "implicit": implicit,
    "variational": variational,
}
"""Every integrator by the name that `step` knows it under."""

VELOCITY_FIRST = ("semi_implicit", "midpoint", "implicit")
"""The integrators that move positions by the new velocities; these keep constraints by a `Leap`."""


T_STAB = 0.1
"""The book's choice [s] for a large robot (Featherstone 2008 section 8.3)."""

POSITION_ERROR_DECAY_STEPS = 5.0
"""Semi-implicit steps in which position errors decay, unless a time is given."""


def state_rate(tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Conditions]) -> State:
    """Return (dq/dt, dv/dt) = FD_x(x, tau): the state-space form that ODE solvers take (Eqs 3.8, 3.9)."""
    return State(configuration.position_rate(tree, q, v), forward_dynamics(tree, q, v, tau, **given))


def step(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars | JointForces,
    dt: Scalar,
    *,
    integrator: str = "semi_implicit",
    passive: bool = False,
    stabilization: Scalar | str | None = None,
    prescribed: GivenMotion | None = None,
    **given: Unpack[Loads],
) -> State:
    """Return the state after dt [s] under constant external forces and joint forces, constant or a function
    of q, v and the time since the step began: "rk4", "heun" and "variational" evaluate it at every stage, the
    others where the step begins.

    `integrator`: "semi_implicit" (Euler: v from the accelerations, then q from the new v), "rk4", "euler",
    "heun", "midpoint" (velocity-product forces half a step on, damping implicit), "implicit" (springs too) or
    "variational"; see `integrators`.
    `passive`: add springs, damping and dry friction to tau. `stabilization`: T_stab [s] of constraints, None:
    without, "automatic": 0.1 s, or five steps of those that move positions by the new velocities.
    `prescribed`: joints whose accelerations are given, by hybrid dynamics; their tau is not read.
    """
    if isinstance(dt, (int, float)) and not 0.0 < dt < float("inf"):
        raise ArgumentError(f"step: dt = {dt} s; give a finite step greater than zero")
    require_choice("integrator", integrator, INTEGRATORS)
    kept = _stabilization_of(tree, dt, integrator, stabilization)
    conditions = StepConditions(tree, tau, given, passive, kept, prescribed)
    return INTEGRATORS[integrator](conditions, State(list(q), list(v)), dt)


def _stabilization_of(tree: Tree, dt: Scalar, integrator: str, given: Scalar | str | None) -> Stabilization:
    """Return how an integrator keeps the constraints, for the option `stabilization` of `step`."""
    if given is None or tree.closure is not None or not is_constrained(tree):
        return None
    automatic = isinstance(given, str)
    if integrator in VELOCITY_FIRST:
        return Leap(dt, POSITION_ERROR_DECAY_STEPS * dt if automatic else maximum(given, dt))
    return T_STAB if automatic else given


def prescribed_forces(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars | JointForces,
    dt: Scalar,
    *,
    integrator: str,
    prescribed: GivenMotion,
    **given: Unpack[Loads],
) -> list[Scalar]:
    """Return the joint forces where a step begins: tau, and at prescribed joints those that move them as
    given, against springs, damping and friction."""
    kept = _stabilization_of(tree, dt, integrator, "automatic")
    conditions = StepConditions(tree, tau, given, True, kept, prescribed)
    return conditions.prescribed_forces(State(list(q), list(v)))


@kernel(
    "q v tau dt",
    name="step",
    method="tree",
    optional=CONSTRAINED_LOADS,
    frame_free=True,
    preconditions=HAS_INVERSE,
)
def step_with_passive_forces(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, dt: Scalar, **options: Any
) -> State:
    """Return `step` with springs, damping and dry friction added to tau."""
    return step(tree, q, v, tau, dt, passive=True, **options)


# The configuration manifold, whose algorithms are those of the joints.

_on_manifold = functools.partial(public, "dynamics", method="manifold", without=JOINTS_ALONE)
_on_manifold("q dv")(configuration.integrate)
_on_manifold("q0 q1")(configuration.difference)
_on_manifold("q", preconditions=(CAN_BE_NORMALIZED,), unit_quaternions=False)(configuration.normalize)
