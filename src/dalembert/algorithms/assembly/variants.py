"""Alternative assembly formulae: two handles connected by a joint (Featherstone 2008 §7.4, Table 7.2).

    standard    f = I^A a_1 + p^A    from I_i, p_i, S          `articulated.assemble`
    variant 1   a_1 = Phi^A f + b^A  from Phi_i, b_i, T, T_a   `assemble_inverse`
    variant 2   f = I^A a_1 + p^A    from I_i, p_i, T, T_a     `assemble_in_constraint_space`

with the joint's implicit constraint T^T (a_2 - a_1 - c) = 0 and its force f_2 = T_a tau + T lambda. Inertias
exist for handles with six freedoms only; variant 1 asks no more than that T^T (Phi_1 + Phi_2) T can be
inverted: that the joint repeats no constraint. All vectors are in one coordinate system.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.dense import Matrix, Rows, dot, identity, minus, plus, times
from dalembert.algorithms.small_solve import factor
from dalembert.scalar import Scalar
from dalembert.spatial import ArticulatedInertia, Force, Motion

__all__ = [
    "assemble_in_constraint_space",
    "assemble_inverse",
    "inverse_inertia",
    "relative_acceleration",
]


def assemble_inverse(
    Phi_1: Rows,
    b_1: Motion,
    Phi_2: Rows,
    b_2: Motion,
    T: Sequence[Force],
    T_a: Sequence[Force],
    c: Motion,
    tau: Sequence[Scalar],
) -> tuple[Matrix, Motion]:
    """Return (Phi^A, b^A) of handle 1 with handle 2 jointed to it: variant 1.

    Y = T^T (Phi_1 + Phi_2) T,   z = T^T (c + b_1 - b_2 - (Phi_1 + Phi_2) T_a tau)
    Phi^A = Phi_1 - Phi_1 T Y^-1 T^T Phi_1,   b^A = b_1 - Phi_1 T_a tau - Phi_1 T Y^-1 z
    """
    active = active_force(T_a, tau).to_list()
    both = plus(Phi_1, Phi_2)
    columns = [t.to_list() for t in T]
    Y = factor([[dot(t, times(both, u)) for u in columns] for t in columns])
    error = c + b_1 - b_2 - Motion.of(times(both, active))
    K = [times(Phi_1, t) for t in columns]  # the columns of Phi_1 T
    rows = [[column[i] for column in K] for i in range(6)]
    weighted = [Y.solve(row) for row in rows]  # the rows of Phi_1 T Y^-1
    Phi_A = minus(Phi_1, [[dot(w, row) for row in rows] for w in weighted])
    z = [error.dot(t) for t in T]
    b_A = b_1 - Motion.of(times(Phi_1, active)) - Motion.of([dot(w, z) for w in weighted])
    return Phi_A, b_A


def assemble_in_constraint_space(
    I_1: ArticulatedInertia,
    p_1: Force,
    I_2: ArticulatedInertia,
    p_2: Force,
    T: Sequence[Force],
    T_a: Sequence[Force],
    c: Motion,
    tau: Sequence[Scalar],
) -> tuple[ArticulatedInertia, Force]:
    """Return (I^A, p^A) of handle 1 with handle 2 jointed to it: variant 2.

    Y = T^T I_2^-1 T,   z = T^T (c - I_2^-1 (T_a tau - p_2))
    I^A = I_1 + T Y^-1 T^T,   p^A = p_1 + T_a tau + T Y^-1 z
    """
    inertia_2 = factor(I_2.matrix())
    active = active_force(T_a, tau)
    columns = [t.to_list() for t in T]
    moved = [inertia_2.solve(t) for t in columns]  # the columns of I_2^-1 T
    Y = factor([[dot(t, u) for u in moved] for t in columns])
    error = c - Motion.of(inertia_2.solve((active - p_2).to_list()))
    rows = [[t[i] for t in columns] for i in range(6)]
    weighted = [Y.solve(row) for row in rows]  # the rows of T Y^-1
    I_a = ArticulatedInertia.from_upper(lambda i, j: dot(weighted[i], rows[j]))
    z = [error.dot(t) for t in T]
    return I_1 + I_a, p_1 + active + Force.of([dot(w, z) for w in weighted])


def inverse_inertia(I_A: ArticulatedInertia, p_A: Force) -> tuple[Matrix, Motion]:
    """Return (Phi, b) of the same handle: Phi = I^-1, b = -Phi p (Eq. 7.3)."""
    inertia = factor(I_A.matrix())
    Phi = [inertia.solve(e) for e in identity(6)]
    return Phi, Motion.of(inertia.solve((-p_A).to_list()))


def relative_acceleration(a_1: Motion, a_2: Motion, c: Motion, T_a: Sequence[Force]) -> list[Scalar]:
    """Return q̈ = T_a^T (a_2 - a_1 - c), which the variants do not give on their way (§7.4, footnote)."""
    across = a_2 - a_1 - c
    return [across.dot(t) for t in T_a]


def active_force(T_a: Sequence[Force], tau: Sequence[Scalar]) -> Force:
    """Return T_a tau."""
    total = Force.zero()
    for t, x in zip(T_a, tau, strict=True):
        total = total + t * x
    return total
