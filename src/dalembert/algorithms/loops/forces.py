"""The forces that constraints exert: lambda, and the spatial forces across loop joints.

Whatever method gave a, the constraint force is what the motion lacks (Featherstone 2008 Eq. 8.34):

    K^T lambda = M a + C - tau                                                   (1)
    lambda = (K K^T)^+ K (M a + C - tau)                                         (2)

Where constraints depend on each other many lambda fulfil (1), and (2) is the shortest. A loop joint pushes
its successor with T lambda (Eqs 8.28 to 8.33), and its predecessor with the opposite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from dalembert.algorithms.constraints import loop_rows
from dalembert.algorithms.dense import Matrix, dot, symmetric_product, times
from dalembert.algorithms.external_forces import Conditions
from dalembert.algorithms.loops.constrained_dynamics import constrained_forward_dynamics
from dalembert.algorithms.loops.explicit import row_scales
from dalembert.algorithms.loops.system import ConstrainedSystem, constrained_system
from dalembert.algorithms.open_tree import is_constrained
from dalembert.algorithms.pseudo_inverse import minimum_norm_solution
from dalembert.algorithms.small_solve import SymmetricFactor, factor_semidefinite
from dalembert.errors import ModelError
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero
from dalembert.spatial import Force

__all__ = ["constraint_forces", "gram_factor", "loop_forces"]


def constraint_forces(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    **options: Unpack[Conditions],
) -> list[Scalar]:
    """Return lambda `(nc,)` of the constraint forces K^T lambda, row by row of K,
    in the motion that tau produces.

    N for rows that hold distances, N m for rows that hold angles; of loop joints the components along the
    columns of T. The shortest one where constraints are redundant: the forces across a planar loop vanish.
    """
    _require_constraints(tree, "constraint_forces")
    system = constrained_system(tree, q, v, tau, **options)
    a = constrained_forward_dynamics(tree, q, v, tau, **options)
    lacking = [dot(row, a) - f for row, f in zip(system.M, system.force, strict=True)]  # (1)
    return system.spread(_shortest(system, lacking))


def loop_forces(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    **options: Unpack[Conditions],
) -> list[Force]:
    """Return T lambda of each loop joint: the moment and force on its successor,
    in the successor's loop frame.

    That frame is `loop.placement_successor` on the successor body; the predecessor feels the opposite. The
    forces of a joint in the motion that tau produces (section 8.4).
    """
    if not tree.loop_names:
        raise ModelError("loop_forces: the model has no loop joints")
    lam = constraint_forces(tree, q, v, tau, **options)
    forces = []
    start = 0
    for loop in tree.loops:
        T = loop_rows(tree, loop, q, v, time=options.get("time")).T
        total = Force.zero()
        for column, x in zip(T, lam[start : start + len(T)], strict=True):
            total = total + column * x
        forces.append(total)
        start += len(T)
    return forces


def gram_factor(K: Matrix) -> tuple[SymmetricFactor, Matrix]:
    """Return the factors of K K^T, its rows scaled to a largest entry of one, and the scaled K."""
    scales, _ = row_scales(K)
    scaled = [[x if is_zero(x) else x * s for x in row] for row, s in zip(K, scales, strict=True)]
    return factor_semidefinite(symmetric_product(scaled, scaled)), scaled


def _shortest(system: ConstrainedSystem, f: Sequence[Scalar]) -> list[Scalar]:
    """Compute the shortest lambda: (2)."""
    K = system.K
    return minimum_norm_solution(factor_semidefinite(symmetric_product(K, K)), times(K, f))


def _require_constraints(tree: Tree, function: str) -> None:
    if not is_constrained(tree):
        raise ModelError(f"{function}: the model has no loops or other constraints")
