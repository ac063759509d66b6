"""Mobility and actuation: the freedoms that constraints leave, and whether the actuators control them
(Featherstone 2008 sections 8.10 and 8.12).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.constraints import closing_equations, constraint_equations, loop_rows
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.loops import actuated_variables
from dalembert.analysis.numerical_error import RANK_TOLERANCE, constraint_matrix, one_configuration
from dalembert.api.calls import ArrayLike
from dalembert.call.arguments import as_array
from dalembert.errors import ArgumentError, ShapeError, StateError
from dalembert.model.coupling import loop_clusters
from dalembert.model.model import Model
from dalembert.spatial import Transform

Array = npt.NDArray[np.float64]

MAX_LOOP_ERROR = 1e-6
"""Loop error [rad or m] above which a loop is open, and the rank of K is not that of the mechanism."""


@final
@dataclass(frozen=True, slots=True)
class ClusterMobility:
    """One minimal loop cluster: its constraints, its joints, and n, n_c, r of its block of K."""

    constraints: tuple[str, ...]
    joints: tuple[str, ...]
    n: int
    n_c: int
    rank: int

    @property
    def mobility(self) -> int:
        """The mobility n - r of the cluster."""
        return self.n - self.rank


@final
@dataclass(frozen=True, slots=True)
class MobilityReport:
    """The freedoms of a system in one configuration.

    `n`: velocity variables of the tree; `n_c`: constraint equations; `rank`: r of K; `counted`: n_tot - 6
    N_L, the mobility if no constraint were redundant, n_tot the freedoms of all joints; `counted_planar`: the
    same in the plane, n_tot - 3 N_L, where all joints move in parallel to one; else None.

    >>> found = da.analysis.mobility(da.models.four_bar())
    >>> print(found.mobility, found.excess, found.counted, found.counted_planar)
    1 3 -2 1
    """

    n: int
    n_c: int
    rank: int
    counted: int
    counted_planar: int | None
    clusters: tuple[ClusterMobility, ...]
    singular_values: tuple[float, ...] = field(repr=False)

    @property
    def mobility(self) -> int:
        """The mobility n - r (Eq. 8.52)."""
        return self.n - self.rank

    @property
    def excess(self) -> int:
        """The number n_c - r of redundant constraints: mobility = counted + excess (Eq. 8.55)."""
        return self.n_c - self.rank

    @property
    def overconstrained(self) -> bool:
        """True if constraints are redundant, so that some of their forces are not determined."""
        return self.excess > 0

    def __str__(self) -> str:
        state = f"overconstrained by {self.excess}" if self.overconstrained else "properly constrained"
        planar = "" if self.counted_planar is None else f", {self.counted_planar} in the plane"
        lines = [
            f"mobility {self.mobility}: n = {self.n}, {self.n_c} constraints of rank {self.rank}, {state}",
            f"n_tot - 6 N_L = {self.counted}{planar}",
        ]
        for part in self.clusters:
            lines.append(
                f"  {', '.join(part.constraints)}: mobility {part.mobility} of {part.n} variables, "
                f"{part.n_c} constraints of rank {part.rank}"
            )
        return "\n".join(lines)


def mobility(model: Model, q: ArrayLike | None = None, *, time: float | None = None) -> MobilityReport:
    """Compute mobility = n - r, where r is the rank of K(q): the freedoms that constraints leave.

    `q` `(nq,)`, by default neutral; loops must be closed there (`close_loops`). r may change along a motion,
    so that a singular configuration has its own mobility. It is compared with the count n_tot - 6 N_L + (n_c
    - r) of Featherstone 2008 Eqs 8.52 to 8.55.

    >>> print(da.analysis.mobility(da.models.four_bar()))
    mobility 1: n = 3, 5 constraints of rank 2, overconstrained by 3
    n_tot - 6 N_L = -2, 1 in the plane
      rocker_pin: mobility 1 of 3 variables, 5 constraints of rank 2
    """
    at = one_configuration(model, q, "mobility")
    if time is None and model.time_dependent:
        raise ArgumentError("mobility: the model depends on time; pass time=…")
    if time is not None and as_array("time", time, (), follow=True).ndim:
        raise ShapeError(f"mobility takes one time, got shape {np.shape(time)}")
    position = at.tolist()
    gap = max(map(abs, closing_equations(model, position, time=time).gap), default=0.0)
    if gap > MAX_LOOP_ERROR:
        raise StateError(
            f"mobility: the loops are open by {gap:.3g} (rad or m) at this q; close them with "
            "da.constraints.close_loops"
        )
    equations = constraint_equations(model, position, [0.0] * model.nv, time=time)
    K = np.array(equations.K, dtype=np.float64).reshape(len(equations.K), model.nv)
    rank, values = _rank(K)
    clusters = []
    for part in loop_clusters(model):
        rows = [i for i, name in enumerate(equations.names) if name in part.constraints]
        own = _rank(K[np.ix_(rows, part.velocities)])[0]
        clusters.append(ClusterMobility(part.constraints, part.joints, len(part.velocities), len(rows), own))
    freedoms = model.nv + sum(loop.joint.nv for loop in model.loops)
    user = len(equations.k) - sum(6 - loop.joint.nv for loop in model.loops)
    return MobilityReport(
        model.nv,
        len(K),
        rank,
        freedoms - 6 * len(model.loops) - user,
        _counted_in_the_plane(model, position, time, user),
        tuple(clusters),
        values,
    )


def _rank(K: Array) -> tuple[int, tuple[float, ...]]:
    if K.size == 0:
        return 0, ()
    values = np.linalg.svd(K, compute_uv=False)
    return int((values > RANK_TOLERANCE * max(values[0], np.finfo(float).tiny)).sum()), tuple(values.tolist())


def _counted_in_the_plane(model: Model, q: list[float], time: float | None, user: int) -> int | None:
    """Return n minus the constraints that loop joints put on planar motions; None for spatial systems."""
    poses = forward_kinematics(model, q, time=time)
    motions = [
        poses[body].inverse_apply(column).to_list()
        for body in model.bodies
        for column in body.jcalc(q, None, time).S
    ]
    if not model.loops or user:
        return None
    basis = _plane(np.array(motions, dtype=np.float64).reshape(-1, 6))
    if basis is None:
        return None
    count = model.nv
    for loop in model.loops:
        rows = loop_rows(model, loop, q, [0.0] * model.nv, time=time)
        pose = Transform.identity() if loop.successor < 0 else poses[loop.successor]
        X = pose @ loop.placement_successor
        T = np.array([X.inverse_apply(force).to_list() for force in rows.T], dtype=np.float64).reshape(-1, 6)
        count -= _rank(T @ basis)[0]
    return count


def _plane(motions: Array) -> Array | None:
    """Return a basis (6, 3) of the plane's motions if all motions (rows) are planar, else None."""
    angular, linear = motions[:, :3], motions[:, 3:]
    turning = angular[np.linalg.norm(angular, axis=1) > 1e-9]
    if len(turning) == 0:
        return None
    normal = turning[0] / np.linalg.norm(turning[0])
    across = np.linalg.norm(np.cross(angular, normal), axis=1)
    if across.max(initial=0.0) > 1e-9 or np.abs(linear @ normal).max(initial=0.0) > 1e-9:
        return None
    first = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
    first /= np.linalg.norm(first)
    basis = np.zeros((6, 3))
    basis[:3, 0], basis[3:, 1], basis[3:, 2] = normal, first, np.cross(normal, first)
    return basis


@final
@dataclass(frozen=True, slots=True)
class ActuationReport:
    """The actuators of a system in one configuration: `mobility` n - r, `actuators` p, `rank` of G_u.

    >>> found = da.analysis.actuation(da.models.five_bar())
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


def actuation(model: Model, q: ArrayLike | None = None, *, time: float | None = None) -> ActuationReport:
    """Compare the rank of G_u, the motions of the actuated joints, with the freedoms n - r of a system.

    G spans the motions that the constraints allow, v = G y', and G_u are its rows of the actuated joints
    (`model.actuated`); actuator forces u produce a motion if G_u^T u = G^T tau_ID. `q` `(nq,)`, by default
    neutral, must close the loops. Both ranks may change along a motion. Featherstone 2008 section 8.12, Eq.
    8.63.

    >>> print(da.analysis.actuation(da.models.stewart()))
    properly actuated: 6 actuators of rank 6, mobility 6
    """
    at = one_configuration(model, q, "actuation")
    freedoms = mobility(model, at, time=time).mobility
    K = constraint_matrix(model, at, time)
    motions = np.linalg.svd(np.vstack([K, np.zeros((1, model.nv))]))[2][model.nv - freedoms :]
    actuated = actuated_variables(model)
    reach = np.linalg.svd(motions[:, actuated], compute_uv=False) if actuated and freedoms else np.zeros(0)
    return ActuationReport(freedoms, len(actuated), int((reach > RANK_TOLERANCE).sum()))
