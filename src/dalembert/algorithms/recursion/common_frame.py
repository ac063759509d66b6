"""Inverse dynamics with every vector in world coordinates, external forces in either frame.

The basic equations of recursive Newton-Euler (Featherstone 2008 Eqs 5.7 to 5.11) are `rnea_common_frame`. An
external force enters them linearly, so that it takes J^T f^x from tau wherever it is expressed.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.cartesian.body_forces import joint_forces
from dalembert.algorithms.external_forces import ExternalForces, body_forces
from dalembert.algorithms.inverse_dynamics import rnea_common_frame
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["inverse_dynamics_common_frame"]


def inverse_dynamics_common_frame(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> list[Scalar]:
    """Solve M(q) a + b(q, v) = tau + external for tau, in world coordinates (Eqs 5.7 to 5.11)."""
    tau = rnea_common_frame(tree, q, v, a, time=time)
    f_x = body_forces(tree, q, external_forces, external_frame, time)
    if f_x is None:
        return tau
    return [t - Q for t, Q in zip(tau, joint_forces(tree, q, f_x, time=time), strict=True)]
