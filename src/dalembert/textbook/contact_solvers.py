"""Contact forces from outside the dynamics: lambda_c = contact_solver(q, v, tau), for any solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

import numpy as np

from dalembert.algorithms.open_tree import is_constrained
from dalembert.api.dynamics import forward_dynamics, normalize, passive_forces
from dalembert.call.arguments import as_array
from dalembert.compiler.compiled import compile as compile_function
from dalembert.errors import ContactError, DtypeError, ShapeError, StateError, positive_number, require_choice
from dalembert.model import configuration
from dalembert.model.model import Model, require_model
from dalembert.textbook.complementarity import (
    Array,
    ComplementaritySolution,
    independent_columns,
    solve_force_qp,
    solve_lcp,
)
from dalembert.textbook.contact_forces import (
    ContactEquations,
    contact_equations,
    equations_of,
    inertia_response,
    require_gaps,
    require_number,
)
from dalembert.textbook.contact_gaps import ContactState, GapFunction, contact_states

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
    >>> floor = da.textbook.GapFunction(model, lambda model, q: [q[0]])
    >>> solver = da.textbook.RigidSolver(floor)
    >>> a, force = da.textbook.contact_dynamics(model, [0.0], [0.0], [5.0], floor, solver)
    >>> print(a.round(9), force)
    [0.] [14.62]
    """
    require_model(model)
    require_gaps(gaps)
    if not callable(contact_solver):
        raise DtypeError(
            f"contact_solver is of type {type(contact_solver).__name__}; give a function of (q, v, tau), "
            "such as da.textbook.RigidSolver(gaps)"
        )
    sized = (("q", q, model.nq), ("v", v, model.nv), ("tau", tau, model.nv))
    q, v, tau = (as_array(name, given, (size,)) for name, given, size in sized)
    force = np.asarray(contact_solver(q, v, tau), dtype=np.float64)
    if force.shape != (len(gaps),):
        raise ShapeError(
            f"a contact solver returns {len(gaps)} forces, one for each contact; got the shape {force.shape}"
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
    Contacts that close need an impulse first (`da.textbook.collide`): `StateError`.

    Source: Featherstone 2008 Eqs 11.41 to 11.43.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> stop = da.textbook.GapFunction(model, lambda model, q: [2.0 * da.scalar.sin(q[0])])
    >>> solver = da.textbook.RigidSolver(stop)
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
            raise StateError("contacts close: apply an impulse first (da.textbook.collide)")
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
    >>> stop = da.textbook.GapFunction(model, lambda model, q: [2.0 * da.scalar.sin(q[0])])
    >>> force = da.textbook.StepSolver(stop, dt=0.01)(np.zeros(1), np.array([-1.0]), np.zeros(1))
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
    >>> stop = da.textbook.GapFunction(model, lambda model, q: [2.0 * da.scalar.sin(q[0])])
    >>> spring = da.textbook.SpringDamper(stop, stiffness=1000.0, damping=10.0)
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


# A system in contact between two events: its current and active contacts, and its motion.

JointForces: TypeAlias = Callable[[float, Array, Array], Array]

FALL_ACCELERATION = 10.0
"""The acceleration [m/s^2] of a fall through the tolerance of a gap; the speed it gives counts as zero."""


@final
class ContactSets:
    """The current contacts (in state 3 with zeta-dot = 0) and the active ones: a basis of their normals
    that holds every contact whose force is positive (Featherstone 2008 section 11.5).

    The state is y = (q, v). Active contacts are equality constraints: K a = k with K = T_A^T, and their
    errors fade in `fading` seconds (Eq. 8.22). `floor` is the gap below which a collision is
    detected: below zero by `tolerance`, or by that much below the gap at which contact began.
    """

    def __init__(
        self, model: Model, gaps: GapFunction, joint_forces: JointForces, *, tolerance: float, fading: float
    ) -> None:
        self.model, self.gaps, self.joint_forces = model, gaps, joint_forces
        self.tolerance, self.fading = tolerance, fading
        self.still = float(np.sqrt(2.0 * FALL_ACCELERATION * tolerance))
        self.current: tuple[int, ...] = ()
        self.active: tuple[int, ...] = ()
        self.base = np.zeros(len(gaps))
        self.solved = 0
        self._position_rate = compile_function(configuration.position_rate, model)

    @property
    def floor(self) -> Array:
        """The gap [m] below which a collision is detected."""
        return self.base - self.tolerance

    def split(self, y: Array) -> tuple[Array, Array]:
        """Return (q, v) of a state, q on its manifold."""
        return normalize(self.model, y[: self.model.nq]), y[self.model.nq :]

    def rate(self, y: Array, t: float) -> Array:
        """Return dy/dt with the active contacts as equality constraints."""
        q, v = self.split(y)
        return np.concatenate([self._position_rate(q, v), self.motion(y, t)[0]])

    def motion(self, y: Array, t: float) -> tuple[Array, Array]:
        """Return a, and lambda of all contacts (zero unless active), with active contacts kept."""
        q, v = self.split(y)
        force = np.zeros(len(self.gaps))
        if not self.active:
            return self._free(q, v, t), force
        k = list(self.active)
        equations = self.equations(q, v, t).of(k)
        wanted = equations.d + self._fade(q, equations.velocity, k)
        force[k] = np.linalg.lstsq(equations.M, -wanted, rcond=1e-12)[0]
        return equations.acceleration(force[k]), force

    def equations(self, q: Array, v: Array, t: float) -> ContactEquations:
        """Return the equations of all contacts, touching or not."""
        T, bias, free = self.gaps.normals(q), self.gaps.bias(q, v), self._free(q, v, t)
        return equations_of(T, bias, v, free, inertia_response(self.model, q, T))

    def touching(self, q: Array) -> list[int]:
        """Return contacts that are closed or current and whose features face each other."""
        near = self.gaps.value(q) <= self.base + 10.0 * self.tolerance
        near[list(self.current)] = True
        return [int(i) for i in np.flatnonzero(near & (self.gaps.extent(q) >= 0.0))]

    def resolve(self, y: Array, t: float, *, pulling: Sequence[int] = ()) -> tuple[int, ...]:
        """Solve the complementarity problem of the touching contacts, and set the current and active
        contacts.

        `pulling`: contacts whose force has just become negative as an equality; they stay only if others
        make up for it. Returns contacts that no forces can keep from penetrating, which are let go until
        they have.
        """
        q, v = self.split(y)
        everything = self.equations(q, v, t)
        touching, gap = self.touching(q), self.gaps.value(q)
        candidates = [i for i in touching if everything.velocity[i] <= self.still]
        self.base = np.zeros(len(self.gaps))
        # A contact that parts must not collide where it is, and one that bounces must not sink in each time.
        self.base[touching] = np.minimum(gap[touching] + 0.999 * self.tolerance, 0.0)
        self.base[candidates] = np.minimum(gap[candidates], 0.0)
        hopeless: list[int] = []
        while True:
            equations = everything.of(candidates)
            self.solved += bool(candidates)
            try:
                solution = solve_lcp(equations.M, equations.d + self._fade(q, equations.velocity, candidates))
                break
            except ContactError as error:
                hopeless += [candidates[k] for k in error.contacts]
                candidates = [i for i in candidates if i not in hopeless]
        scale = 1e-9 * float(np.abs(equations.d).max(initial=1.0))
        closed = [k for k in range(len(candidates)) if solution.rate[k] <= scale]
        bearing = [k for k in closed if candidates[k] not in pulling or k in solution.active]
        basis = independent_columns(equations.M, solution.active, bearing)
        # A contact that pulled is kept where the basis holds it in any case.
        kept = [
            k
            for k in closed
            if k in bearing or len(independent_columns(equations.M, basis, [k])) == len(basis)
        ]
        self.current = tuple(candidates[k] for k in kept)
        self.active = tuple(candidates[k] for k in basis)
        return tuple(hopeless)

    def remove_separation_velocity(self, y: Array, t: float) -> Array:
        """Return the state without the separation velocity of active contacts, which is below `still`."""
        if not self.active:
            return y
        q, v = self.split(y)
        equations = self.equations(q, v, t).of(self.active)
        rest = np.linalg.lstsq(equations.M, -equations.velocity, rcond=1e-12)[0]
        return np.concatenate([q, v + equations.response @ rest])

    def _fade(self, q: Array, velocity: Array, chosen: list[int]) -> Array:
        """Return the stabilising term: the separation acceleration to subtract so that errors decay."""
        return np.asarray(
            2.0 / self.fading * velocity + self.gaps.value(q)[chosen] / self.fading / self.fading
        )

    def _free(self, q: Array, v: Array, t: float) -> Array:
        tau = self.joint_forces(t, q, v) + passive_forces(self.model, q, v)
        stabilization = self.fading if is_constrained(self.model) else None
        return forward_dynamics(self.model, q, v, tau, stabilization=stabilization)
