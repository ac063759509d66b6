"""Hybrid dynamics of systems with loop joints and other constraints.

With free variables (1) and prescribed ones (2), H a + C = tau + K^T lambda and K a = k become

    H_11 a_1 = tau_1 - C_1 - H_12 a_2 + K_1^T lambda,     K_1 a_1 = k - K_2 a_2                        (1)
    tau_2 = H_21 a_1 + H_22 a_2 + C_2 - K_2^T lambda                                                   (2)

(1) has the form of forward dynamics with fewer unknowns and is solved as such (section 8.5). Prescribed
motions that the constraints do not allow break them, by what `prescribed_violation` measures.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from dalembert.algorithms.dense import dot
from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.hybrid.prescribed import merged_parents, prescribed_places
from dalembert.algorithms.loops.inverse_dynamics import constraint_violation
from dalembert.algorithms.loops.range_space import constrained_motion
from dalembert.algorithms.loops.system import ConstrainedSystem, constrained_system
from dalembert.algorithms.open_tree import is_constrained
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero

__all__ = ["hybrid_dynamics_constrained", "prescribed_violation"]


def hybrid_dynamics_constrained(
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
) -> tuple[list[Scalar], list[Scalar]]:
    """Return (a, tau) of H a + C = tau + K^T lambda, K a = k,
    with tau known at free joints and a at the others.

    `stabilization`: T_stab [s] of Eq. 8.22 for k; None: without.
    """
    given = prescribed_places(tree, prescribed)
    free = [i for i in range(tree.nv) if i not in given]
    whole = constrained_system(
        tree,
        q,
        v,
        [0.0] * tree.nv,
        external_forces=external_forces,
        external_frame=external_frame,
        time=time,
        stabilization=stabilization,
    )
    part, kept = _free_part(whole, tau, a, free, given)
    motion = constrained_motion(part)
    found = dict(zip(free, motion.a, strict=True))
    a = [found[i] if i in found else a[i] for i in range(tree.nv)]
    K = [whole.K[i] for i in kept]
    multipliers = [motion.multipliers[part.rows[n]] for n in range(len(kept))]
    need = [
        dot(whole.M[i], a) - whole.force[i] - dot([row[i] for row in K], multipliers)  # (2)
        if i in given
        else tau[i]
        for i in range(tree.nv)
    ]
    return a, need


def prescribed_violation(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    a: Sequence[Scalar],
    *,
    prescribed: Collection[str] = (),
    time: Scalar | None = None,
    stabilization: Scalar | None = None,
    **forces: Any,
) -> Scalar:
    """Return how far the motion violates the constraints, in the measure of `constraint_violation`.

    Zero where nothing is prescribed, or nothing constrained.
    """
    if not prescribed or not is_constrained(tree):
        return 0.0
    found, _ = hybrid_dynamics_constrained(
        tree, q, v, tau, a, prescribed=prescribed, time=time, stabilization=stabilization, **forces
    )
    return constraint_violation(tree, q, v, found, time=time, stabilization=stabilization)


def _free_part(
    whole: ConstrainedSystem,
    tau: Sequence[Scalar],
    a: Sequence[Scalar],
    free: Sequence[int],
    given: frozenset[int],
) -> tuple[ConstrainedSystem, list[int]]:
    """Compute (1), and the rows of K that bind free variables."""
    second = sorted(given)
    kept = [n for n, row in enumerate(whole.K) if not all(is_zero(row[i]) for i in free)]
    prescribed = [a[i] for i in second]
    return (
        whole._replace(
            M=[[whole.M[i][j] for j in free] for i in free],
            force=[tau[i] + whole.force[i] - dot([whole.M[i][j] for j in second], prescribed) for i in free],
            K=[[whole.K[n][i] for i in free] for n in kept],
            k=[whole.k[n] - dot([whole.K[n][j] for j in second], prescribed) for n in kept],
            rows=tuple(whole.rows[n] for n in kept),
            parents=merged_parents(whole.parents, free)[0],
        ),
        kept,
    )
