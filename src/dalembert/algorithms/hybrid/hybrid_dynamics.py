"""Hybrid dynamics: forces are given at some joints, accelerations at the others; both are completed."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.hybrid.articulated import hybrid_dynamics_articulated
from dalembert.algorithms.hybrid.constrained import hybrid_dynamics_constrained
from dalembert.algorithms.hybrid.matrix import hybrid_dynamics_by_matrix
from dalembert.algorithms.open_tree import require_regular_inertia
from dalembert.errors import require_choice
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["hybrid_dynamics"]

METHODS = {"articulated": hybrid_dynamics_articulated, "matrix": hybrid_dynamics_by_matrix}


def hybrid_dynamics(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    a: Sequence[Scalar],
    *,
    prescribed: Collection[str] = (),
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    stabilization: Scalar | None = None,
    method: str = "articulated",
) -> tuple[list[Scalar], list[Scalar]]:
    """Return (a, tau) of M(q) a + b(q, v) = tau + external, both complete.

    tau is read at free joints and a at the joints named in `prescribed`; what stands elsewhere is not looked
    at. None prescribed: forward dynamics; all: inverse dynamics. `method`: "articulated" (Table 9.3, O(n)) or
    "matrix" (section 9.1). Loop joints and other constraints are satisfied, with T_stab `stabilization` [s].
    """
    require_choice("method of hybrid_dynamics", method, METHODS)
    if tree.loop_names:
        return hybrid_dynamics_constrained(
            tree,
            q,
            v,
            tau,
            a,
            prescribed=prescribed,
            external_forces=external_forces,
            external_frame=external_frame,
            time=time,
            stabilization=stabilization,
        )
    require_regular_inertia(tree, "hybrid_dynamics", prescribed)
    return METHODS[method](
        tree,
        q,
        v,
        tau,
        a,
        prescribed=prescribed,
        external_forces=external_forces,
        external_frame=external_frame,
        time=time,
    )
