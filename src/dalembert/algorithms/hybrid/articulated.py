"""Hybrid dynamics by articulated bodies, in O(n) (Featherstone 2008 section 9.2, Tables 9.2 and 9.3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dalembert.algorithms.external_forces import ExternalForces, body_forces
from dalembert.algorithms.gears import articulated_accelerations
from dalembert.algorithms.hybrid.prescribed import prescribed_places
from dalembert.algorithms.velocity_products import velocity_products
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["hybrid_dynamics_articulated"]


def hybrid_dynamics_articulated(
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
) -> tuple[list[Scalar], list[Scalar]]:
    """Return (a, tau) of H a + C = tau with tau known at free joints and a at the prescribed ones.

    A prescribed joint leaves the equations without an elimination: I^a = I^A, c holds S a, and
    tau = S^T (I^A a + p^A) + armature a at the end (Eqs 9.9, 9.10). Coupled joints as in `gears`.
    """
    given = prescribed_places(tree, prescribed)
    f_x = body_forces(tree, q, external_forces, external_frame, time)
    moved = velocity_products(tree, q, v, f_x, time)
    motion = articulated_accelerations(tree, moved, tau, function="hybrid_dynamics", a=a, prescribed=given)
    return motion.a, [motion.tau[k] if k in given else tau[k] for k in range(tree.nv)]
