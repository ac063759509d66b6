"""Equations of motion collected into those of a bigger system (Featherstone 2008 §3.2, Eq. 3.10).

    [H_1         ] [a_1]   [C_1]   [tau_1]
    [     H_2    ] [a_2] + [C_2] = [tau_2]
    [         ...] [...]   [...]   [ ... ]

A subsystem is a system in joint coordinates, H a + C = tau, or one body in spatial coordinates, I a + p = f:
Plücker coordinates are generalized coordinates, so that both may be mixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dalembert.algorithms.dense import Matrix, Vector
from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.inverse_dynamics import bias_forces
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.small_solve import factor
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import ArticulatedInertia, Force, RigidInertia

__all__ = ["Equations", "body_equations", "collect", "free_acceleration", "tree_equations"]


class Equations(NamedTuple):
    """H a + C = tau: `H` (n, n) symmetric and positive definite, `C` (n,), `tau` (n,)."""

    H: Matrix
    C: Vector
    tau: Vector


def body_equations(inertia: RigidInertia | ArticulatedInertia, p: Force, f: Force) -> Equations:
    """Return I a + p = f of one body in spatial coordinates: six equations (Eq. 2.69)."""
    return Equations(inertia.matrix(), p.to_list(), f.to_list())


def tree_equations(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> Equations:
    """Return H a + C = tau of a tree in joint coordinates (Eq. 3.1), external forces in C."""
    C = bias_forces(tree, q, v, external_forces=external_forces, external_frame=external_frame, time=time)
    return Equations(mass_matrix(tree, q, time=time), C, list(tau))


def collect(systems: Iterable[Equations]) -> Equations:
    """Return the equations of all systems as those of one (Eq. 3.10)."""
    held = list(systems)
    n = sum(len(system.C) for system in held)
    H: Matrix = []
    for system in held:
        before, own = len(H), len(system.C)
        H += [[0.0] * before + list(row) + [0.0] * (n - before - own) for row in system.H]
    return Equations(H, [x for s in held for x in s.C], [x for s in held for x in s.tau])


def free_acceleration(equations: Equations) -> Vector:
    """Return a = H^-1 (tau - C): the motion without further constraints."""
    H, C, tau = equations
    return factor(H).solve([t - c for t, c in zip(tau, C, strict=True)])
