"""A system in contact between two events: its current and active contacts, and its motion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.open_tree import is_constrained
from dalembert.api import forward_dynamics, normalize, passive_forces
from dalembert.compiler.compiled import compile as compile_function
from dalembert.contact.rigid.equations import ContactEquations, inertia_response
from dalembert.contact.rigid.gaps import GapFunction
from dalembert.contact.rigid.lcp import independent_columns, solve_lcp
from dalembert.errors import ContactError
from dalembert.model import configuration
from dalembert.model.model import Model

__all__ = ["ContactSets"]

Array: TypeAlias = npt.NDArray[Any]
JointForces: TypeAlias = Callable[[float, Array, Array], Array]

FALL_ACCELERATION = 10.0
"""The acceleration [m/s^2] of a fall through the tolerance of a gap; the speed that it gives counts as
zero."""


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
        self._position_rate = compile_function(_position_rate, model)

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
        """Return the acceleration, and the forces lambda of all contacts (zero unless active), with active
        contacts kept."""
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
        response = inertia_response(self.model, q, T)
        M = T.T @ response
        return ContactEquations(T, (M + M.T) / 2, T.T @ free + bias, T.T @ v, bias, free, response)

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
        """Return the state without the residual separation velocity of active contacts, which is below
        `still`."""
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


def _position_rate(model: Model, q: Sequence[Any], v: Sequence[Any]) -> list[Any]:
    return configuration.position_rate(model, q, v)
