"""Contact forces from outside the dynamics: lambda_c = contact_solver(q, v, tau), for any solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.api import forward_dynamics
from dalembert.call.arguments import positive_number, real_array
from dalembert.contact.rigid.equations import contact_equations
from dalembert.contact.rigid.gaps import ContactState, GapFunction, contact_states
from dalembert.contact.rigid.lcp import ComplementaritySolution, solve_lcp
from dalembert.contact.rigid.quadratic_programs import solve_force_qp
from dalembert.contact.rigid.starts import require_gaps, require_number
from dalembert.errors import DtypeError, ShapeError, StateError, require_choice
from dalembert.model.model import Model, require_model

__all__ = ["ContactSolver", "RigidSolver", "SpringDamper", "StepSolver", "contact_dynamics"]

Array: TypeAlias = npt.NDArray[Any]
ContactSolver: TypeAlias = Callable[[Array, Array, Array], Any]
Solution: TypeAlias = Callable[[Array, Array], ComplementaritySolution]

OVERLAP_CORRECTION_RATIO = 0.2
"""The fraction of an overlap that a step corrects: a full correction would throw bodies apart."""

SOLUTIONS: dict[str, Solution] = {"lcp": solve_lcp, "qp": solve_force_qp}


def contact_dynamics(
    model: Model, q: Any, v: Any, tau: Any, gaps: GapFunction, contact_solver: ContactSolver
) -> tuple[Array, Array]:
    """Return (a, lambda_c) with M a + c = tau + J^T lambda + J_c^T lambda_c, J a + dJ/dt v = 0, lambda_c =
    contact_solver(q, v, tau).

    J are the loops and other equality constraints of the model, J_c = dphi/dq the contacts of `gaps`; the
    solver may be one of `RigidSolver`, `StepSolver`, `SpringDamper`, or any function of (q, v, tau) that
    returns `(nc,)` forces [N].

    Source: Todorov, "Equality and inequality constraints".

    >>> builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    >>> solid = da.RigidInertia(2.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    >>> _ = builder.add_body("ball", "world", da.Prismatic(axis=(0, 0, 1)), inertia=solid)
    >>> model = builder.build()
    >>> floor = da.contact.GapFunction(model, lambda model, q: [q[0]])
    >>> solver = da.contact.RigidSolver(floor)
    >>> a, force = da.contact.contact_dynamics(model, [0.0], [0.0], [5.0], floor, solver)
    >>> print(a.round(9), force)
    [0.] [14.62]
    """
    require_model(model)
    require_gaps(gaps)
    if not callable(contact_solver):
        raise DtypeError(
            f"contact_solver is of type {type(contact_solver).__name__}; give a function of (q, v, tau), "
            "such as da.contact.RigidSolver(gaps)"
        )
    q, v, tau = real_array("q", q), real_array("v", v), real_array("tau", tau)
    for name, given, size in (("q", q, model.nq), ("v", v, model.nv), ("tau", tau, model.nv)):
        if given.shape[-1:] != (size,):
            raise ShapeError(f"{name}: expected {(size,)}, got {given.shape}")
    force = np.asarray(contact_solver(q, v, tau), dtype=np.float64)
    if force.shape != (len(gaps),):
        raise ShapeError(
            f"a contact solver returns {len(gaps)} forces, one a contact; got the shape {force.shape}"
        )
    if not np.isfinite(force).all():
        raise StateError(f"the contact solver returned forces that are not finite: {force}")
    return forward_dynamics(model, q, v, tau + gaps.normals(q) @ force), force


@final
@dataclass(frozen=True, eq=False)
class RigidSolver:
    """lambda of lasting contact: zeta-dot = M lambda + d >= 0, lambda >= 0, complementary, of the
    contacts that touch now.

    `solution`: "lcp" for a basic solution (`solve_lcp`), "qp" for the program in forces (`solve_force_qp`).
    Contacts that close need an impulse first (`da.contact.collide`): `StateError`.

    Source: Featherstone 2008 Eqs 11.41 to 11.43.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> stop = da.contact.GapFunction(model, lambda model, q: [2.0 * da.scalar.sin(q[0])])
    >>> solver = da.contact.RigidSolver(stop)
    >>> print(solver(np.zeros(1), np.zeros(1), np.array([-6.0])))  # 6 N m press on it, 2 m from the hinge
    [3.]
    """

    gaps: GapFunction
    solution: Literal["lcp", "qp"] = "lcp"

    def __post_init__(self) -> None:
        require_gaps(self.gaps)
        require_choice("solution", self.solution, SOLUTIONS)

    def __call__(self, q: Array, v: Array, tau: Array) -> Array:
        states = contact_states(self.gaps.value(q), self.gaps.rate(q, v))
        facing = self.gaps.extent(q) >= 0.0
        if any(state is ContactState.COLLIDING and on for state, on in zip(states, facing, strict=True)):
            raise StateError("contacts close: apply an impulse first (da.contact.collide)")
        touching = [i for i, state in enumerate(states) if state is ContactState.TOUCHING and facing[i]]
        equations = contact_equations(self.gaps.model, q, v, tau, self.gaps).of(touching)
        force = np.zeros(len(self.gaps))
        force[touching] = SOLUTIONS[self.solution](equations.M, equations.d).force
        return force


@final
@dataclass(frozen=True, eq=False)
class StepSolver:
    """lambda held for a step of dt: the velocities after it, zeta + dt (M lambda + d), leave no gap below
    zero.

    The forces minimise 1/2 lambda^T M lambda + lambda^T d', d' = d + (zeta + phi/dt)/dt, lambda >= 0: an
    optimisation at each time step, by an iterative solver. It covers impacts too, without bounce, so that
    semi-implicit steps v += dt a, q += dt v need no events. Corners that turn within a step sink in a
    little; a fifth of phi < 0 is corrected in each step. `solution`: "qp" or "lcp".

    Source: Todorov, "Equality and inequality constraints"; Featherstone 2008 Eq. 11.43.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> stop = da.contact.GapFunction(model, lambda model, q: [2.0 * da.scalar.sin(q[0])])
    >>> force = da.contact.StepSolver(stop, dt=0.01)(np.zeros(1), np.array([-1.0]), np.zeros(1))
    >>> print(force.round(6))  # stops 3 kg at 2 m/s within 0.01 s
    [600.]
    """

    gaps: GapFunction
    dt: float
    solution: Literal["lcp", "qp"] = "qp"

    def __post_init__(self) -> None:
        require_gaps(self.gaps)
        require_choice("solution", self.solution, SOLUTIONS)
        positive_number("dt", self.dt, "s")

    def __call__(self, q: Array, v: Array, tau: Array) -> Array:
        near = np.flatnonzero(self.gaps.extent(q) >= 0.0)
        equations = contact_equations(self.gaps.model, q, v, tau, self.gaps).of([int(i) for i in near])
        gap = self.gaps.value(q)[near]
        gap = np.maximum(gap, OVERLAP_CORRECTION_RATIO * gap)
        wanted = equations.d + (equations.velocity + gap / self.dt) / self.dt
        force = np.zeros(len(self.gaps))
        force[near] = SOLUTIONS[self.solution](equations.M, wanted).force
        return force


@final
@dataclass(frozen=True, eq=False)
class SpringDamper:
    """lambda = max(0, -K phi - D phi-dot) where phi < 0, else 0: a spring and a damper at each contact.

    `stiffness` K [N/m], `damping` D [N s/m]. Easy, and hard to tune: K must be great for the heaviest body
    not to sink in, m g / K, and small for the lightest one not to gain energy in each step, dt < 2 / sqrt(K
    / m) without damping in semi-implicit steps, with dt D < m besides. A great ratio of masses leaves no K
    that does both.

    Source: Todorov, "Equality and inequality constraints".

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> stop = da.contact.GapFunction(model, lambda model, q: [2.0 * da.scalar.sin(q[0])])
    >>> spring = da.contact.SpringDamper(stop, stiffness=1000.0, damping=10.0)
    >>> print(spring(np.array([-0.01]), np.array([-0.5]), np.zeros(1)).round(3))
    [29.999]
    """

    gaps: GapFunction
    stiffness: float
    damping: float = 0.0

    def __post_init__(self) -> None:
        require_gaps(self.gaps)
        positive_number("stiffness", self.stiffness, "N/m")
        require_number("damping", self.damping, positive=False)

    def __call__(self, q: Array, v: Array, tau: Array) -> Array:
        gap = self.gaps.value(q)
        force = np.maximum(-self.stiffness * gap - self.damping * self.gaps.rate(q, v), 0.0)
        return np.where((gap < 0.0) & (self.gaps.extent(q) >= 0.0), force, 0.0)
