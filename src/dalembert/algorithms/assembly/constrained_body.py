"""One body on a joint, solved in three ways (Featherstone 2008 §3.6).

    f + f_c = I a + p,     v in S,  f_c in S^⊥,     a = S q̈ + c,  c = S' q'           (3.45, 3.46, 3.49)

`I` the inertia, `p` the bias force v x* I v - f_g, `f` the applied force, `S` the joint's motion subspace and
`T` its constraint-force subspace, all in one coordinate system.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.articulated import joint_inertia
from dalembert.algorithms.assembly.collecting import Equations, body_equations
from dalembert.algorithms.assembly.implicit import constrain
from dalembert.algorithms.dense import Matrix, symmetric_product, times, transpose, zeros
from dalembert.algorithms.small_solve import factor
from dalembert.scalar import Scalar
from dalembert.spatial import ArticulatedInertia, Force, Motion, RigidInertia

__all__ = ["apparent_inverse_inertia", "body_in_joint_coordinates", "body_with_constraint_forces"]

Inertia = RigidInertia | ArticulatedInertia


def apparent_inverse_inertia(
    inertia: Inertia, p: Force, S: Sequence[Motion], c: Motion
) -> tuple[Matrix, Motion]:
    """Return (Phi, b) of a = Phi f + b by method 1: Phi = S (S^T I S)^-1 S^T, b = c - Phi (I c + p).

    Phi has the range S, the null space S^⊥ and the rank of S (Eqs 3.53 to 3.55).
    """
    own = factor(joint_inertia(S, [inertia * s for s in S], [0.0] * len(S)))
    columns = [s.to_list() for s in S]
    rows = transpose(columns) or zeros(6, 0)
    weighted = [own.solve(row) for row in rows]  # the rows of S (S^T I S)^-1
    Phi = symmetric_product(weighted, rows)
    return Phi, c - Motion.of(times(Phi, (inertia * c + p).to_list()))


def body_with_constraint_forces(
    inertia: Inertia, p: Force, T: Sequence[Force], k: Sequence[Scalar], f: Force
) -> tuple[Motion, list[Scalar]]:
    """Return (a, lambda) by method 2: [I T; T^T 0] [a; -lambda] = [f - p; k],
    k = -T'^T v = T^T c (Eq. 3.60)."""
    a, multipliers = constrain(body_equations(inertia, p, f), [t.to_list() for t in T], k)
    return Motion.of(a), multipliers


def body_in_joint_coordinates(
    inertia: Inertia, p: Force, S: Sequence[Motion], c: Motion, f: Force
) -> Equations:
    """Return H q̈ + C = tau by method 3: H = S^T I S, C = S^T (I c + p), tau = S^T f (Eqs 3.61 to 3.64)."""
    H = joint_inertia(S, [inertia * s for s in S], [0.0] * len(S))
    bias = inertia * c + p
    return Equations(H, [s.dot(bias) for s in S], [s.dot(f) for s in S])
