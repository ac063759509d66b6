"""Actuation: whether the actuators of a system control all its freedoms (Featherstone 2008 section 8.12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from dalembert.algorithms.constraints import constraint_equations
from dalembert.algorithms.loops import actuated_variables
from dalembert.analysis.configurations import one_configuration
from dalembert.analysis.mobility import RANK_TOLERANCE, mobility
from dalembert.api.calls import ArrayLike
from dalembert.model.model import Model

__all__ = ["Actuation", "actuation"]


@final
@dataclass(frozen=True, slots=True)
class Actuation:
    """The actuators of a system in one configuration: `mobility` n - r, `actuators` p, `rank` of G_u.

    >>> found = da.actuation(da.models.five_bar())
    >>> print(found.proper, found.underactuated, found.redundant)
    True False False
    """

    mobility: int
    actuators: int
    rank: int

    @property
    def underactuated(self) -> bool:
        """True if rank(G_u) < n - r: there are motions that the actuators do not control."""
        return self.rank < self.mobility

    @property
    def redundant(self) -> bool:
        """True if p > rank(G_u): many actuator forces produce the same motion."""
        return self.actuators > self.rank

    @property
    def proper(self) -> bool:
        """True if p = rank(G_u) = n - r: every motion has unique actuator forces."""
        return not self.underactuated and not self.redundant

    def __str__(self) -> str:
        kinds = ["underactuated"] * self.underactuated + ["redundantly actuated"] * self.redundant
        kind = " and ".join(kinds) or "properly actuated"
        return f"{kind}: {self.actuators} actuators of rank {self.rank}, mobility {self.mobility}"


def actuation(model: Model, q: ArrayLike | None = None, *, time: float | None = None) -> Actuation:
    """Compare the rank of G_u, the motions of the actuated joints, with the freedoms n - r of a system.

    G spans the motions that the constraints allow, v = G y', and G_u are its rows of the actuated joints
    (`model.actuated`); actuator forces u produce a motion if G_u^T u = G^T tau_ID. `q` `(nq,)`, by default
    neutral, must close the loops. Both ranks may change along a motion. Featherstone 2008 section 8.12, Eq.
    8.63.

    >>> print(da.actuation(da.models.stewart()))
    properly actuated: 6 actuators of rank 6, mobility 6
    """
    at = one_configuration(model, q, "actuation")
    freedoms = mobility(model, at, time=time).mobility
    K = constraint_equations(model, at.tolist(), [0.0] * model.nv, time=time).K
    matrix = np.array(K, dtype=np.float64).reshape(len(K), model.nv)
    motions = np.linalg.svd(np.vstack([matrix, np.zeros((1, model.nv))]))[2][model.nv - freedoms :]
    actuated = actuated_variables(model)
    reach = np.linalg.svd(motions[:, actuated], compute_uv=False) if actuated and freedoms else np.zeros(0)
    return Actuation(freedoms, len(actuated), int((reach > RANK_TOLERANCE).sum()))
