"""The equations of motion of a constrained system, and the preconditions of every solution method.

    M a = tau' + K^T lambda,     K a = k                                (Featherstone 2008 Eqs 8.34 to 8.36)

with tau' = tau - C, the book's H written M, and k with its stabilisation if there is one. Rows of K that are
zero by structure, as the constraints across the plane of a planar loop often are, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.constraints import constraint_equations, stabilized
from dalembert.algorithms.dense import Matrix
from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.inverse_dynamics import bias_forces
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.sparsity import variable_parents
from dalembert.algorithms.stabilization import Stabilization
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero

__all__ = ["ConstrainedSystem", "constrained_system"]


class ConstrainedSystem(NamedTuple):
    """M (nv, nv), tau' (nv), K (nr, nv) and k (nr) of the rows that are not zero by structure.

    `rows` are the places of these in all nc constraints, `size` is nc; `parents` is lambda' of the velocity
    variables, which says where M has its zeros.
    """

    M: Matrix
    force: list[Scalar]
    K: Matrix
    k: list[Scalar]
    rows: tuple[int, ...]
    size: int
    parents: list[int]

    def spread(self, multipliers: Sequence[Scalar]) -> list[Scalar]:
        """Return lambda (nc) from the multipliers of the kept rows, with zeros for the others."""
        result: list[Scalar] = [0.0] * self.size
        for row, value in zip(self.rows, multipliers, strict=True):
            result[row] = value
        return result


def constrained_system(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    stabilization: Stabilization = None,
) -> ConstrainedSystem:
    """Return M, tau', K and k of a system in motion. `stabilization`: T_stab [s] of Eq. 8.22, or None."""
    C = bias_forces(tree, q, v, external_forces=external_forces, external_frame=external_frame, time=time)
    equations = constraint_equations(tree, q, v, time=time)
    k = equations.k if stabilization is None else stabilized(equations, stabilization)
    rows = tuple(i for i, row in enumerate(equations.K) if not all(is_zero(x) for x in row))
    return ConstrainedSystem(
        M=mass_matrix(tree, q, time=time),
        force=[t - c for t, c in zip(tau, C, strict=True)],
        K=[equations.K[i] for i in rows],
        k=[k[i] for i in rows],
        rows=rows,
        size=len(k),
        parents=variable_parents(tree),
    )
