"""What acts on a system during a step, and the accelerations that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.integrators.carried import Flight, State
from dalembert.algorithms.passive_forces import passive_forces
from dalembert.algorithms.stabilization import Stabilization
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["Circumstances", "Integrator"]


@final
@dataclass(frozen=True, slots=True)
class Circumstances:
    """The system and the forces on it: `tau` and external forces are held for the step.

    `passive`: springs, damping and dry friction of the joints act too. `time` [s]: when the step begins, of
    models that depend on it.
    """

    tree: Tree
    tau: Sequence[Scalar]
    external_forces: ExternalForces = None
    external_frame: str = "body"
    passive: bool = False
    time: Scalar | None = None
    stabilization: Stabilization = None

    @property
    def flight(self) -> Flight:
        """The variables that are carried."""
        return Flight(self.tree, self.time)

    def at(self, elapsed: Scalar) -> Scalar | None:
        """The time after a part of the step."""
        return None if self.time is None else self.time + elapsed

    def joint_forces(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> Sequence[Scalar]:
        """tau, with the passive forces if these act."""
        if not self.passive:
            return self.tau
        return [t + p for t, p in zip(self.tau, passive_forces(self.tree, q, v), strict=True)]

    def acceleration(self, q: Sequence[Scalar], v: Sequence[Scalar], elapsed: Scalar) -> list[Scalar]:
        """dv/dt in a state, some time after the step began."""
        return self.acceleration_under(self.tree, q, v, self.joint_forces(q, v), elapsed)

    def acceleration_under(
        self,
        tree: Tree,
        q: Sequence[Scalar],
        v: Sequence[Scalar],
        tau: Sequence[Scalar],
        elapsed: Scalar,
    ) -> list[Scalar]:
        """dv/dt under joint forces tau; the tree may differ in its armatures."""
        return forward_dynamics(
            tree,
            q,
            v,
            tau,
            external_forces=self.external_forces,
            external_frame=self.external_frame,
            time=self.at(elapsed),
            stabilization=self.stabilization,
        )


Integrator = Callable[[Circumstances, State, Scalar], State]
"""The state after a step of dt [s]."""
