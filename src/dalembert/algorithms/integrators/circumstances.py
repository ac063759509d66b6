"""The conditions of a step: the forces on a system, and the accelerations that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.integrators.carried import CentroidalCoordinates, State
from dalembert.algorithms.passive_forces import passive_forces
from dalembert.algorithms.stabilization import Stabilization
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["StepConditions", "Integrator"]


@final
@dataclass(frozen=True, slots=True)
class StepConditions:
    """The system and the forces on it: `tau` and external forces are constant during the step.

    `passive`: springs, damping and dry friction of the joints act too. `time` [s]: start of the step,
    for models that depend on it.
    """

    tree: Tree
    tau: Sequence[Scalar]
    external_forces: ExternalForces = None
    external_frame: str = "body"
    passive: bool = False
    time: Scalar | None = None
    stabilization: Stabilization = None

    @property
    def coordinates(self) -> CentroidalCoordinates:
        """Return the coordinates in which the step is taken."""
        return CentroidalCoordinates(self.tree, self.time)

    def at(self, elapsed: Scalar) -> Scalar | None:
        """Return the time [s] at `elapsed` after the start of the step."""
        return None if self.time is None else self.time + elapsed

    def joint_forces(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> Sequence[Scalar]:
        """Return tau, with the passive forces if these act."""
        if not self.passive:
            return self.tau
        return [t + p for t, p in zip(self.tau, passive_forces(self.tree, q, v), strict=True)]

    def acceleration(self, q: Sequence[Scalar], v: Sequence[Scalar], elapsed: Scalar) -> list[Scalar]:
        """Return dv/dt in a state, `elapsed` [s] after the start of the step."""
        return self.acceleration_under(self.tree, q, v, self.joint_forces(q, v), elapsed)

    def acceleration_under(
        self,
        tree: Tree,
        q: Sequence[Scalar],
        v: Sequence[Scalar],
        tau: Sequence[Scalar],
        elapsed: Scalar,
    ) -> list[Scalar]:
        """Return dv/dt under joint forces tau; the tree may differ in its armatures."""
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


Integrator = Callable[[StepConditions, State, Scalar], State]
"""The state after a step of dt [s]."""
