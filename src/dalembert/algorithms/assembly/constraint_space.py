"""The articulated-body algorithm by constraint forces (Featherstone 2008 §7.4, variant 2 of Table 7.2).

Seen from its parent, body i with all that it carries is, in terms of its joint's T' and E (`joint_forces`),

    Y = T'^T (I^A)^-1 T' + E,   z = T'^T (c - (I^A)^-1 (T_a tau - p^A))                              (1)
    I^a = T' Y^-1 T'^T,   p^a = T_a tau + T' Y^-1 z                                                  (2)

and once the parent's acceleration a' = X a_lambda is known,

    lambda' = Y^-1 (z + T'^T a'),   f = T_a tau + T' lambda',   a = (I^A)^-1 (f - p^A)               (3)
    q̈ = T_a^T (a - a' - c)                                                                           (4)

Dearer than the standard formulae where joints have few freedoms, and cheaper where they have many: Y is of
the size of the constraints, D of that of the freedoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.assembly.joint_forces import joint_forces, require_invertible_inertias
from dalembert.algorithms.assembly.variants import relative_acceleration
from dalembert.algorithms.dense import Vector, dot
from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.open_tree import has_couplings, require_open_tree
from dalembert.algorithms.small_solve import SymmetricFactor, factor
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import ArticulatedInertia, Force, Motion, Vec3

__all__ = ["forward_dynamics_in_constraint_space"]

FUNCTION = 'forward_dynamics with method="aba_constraint_space"'


class _Handle(NamedTuple):
    """A body with what it carries: the factors of I^A and Y, p^A and z."""

    inertia: SymmetricFactor
    p: Force
    Y: SymmetricFactor
    z: Vector


def forward_dynamics_in_constraint_space(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    stabilization: Scalar | None = None,
) -> list[Scalar]:
    """Solve M a + b = tau + external for a `(nv,)` by variant 2 of the assembly formulae.

    `stabilization` is for constraints, which this method does not take.
    """
    require_open_tree(tree, FUNCTION)
    require_invertible_inertias(tree, FUNCTION)
    if has_couplings(tree):
        raise ModelError(f'{FUNCTION}: this model couples joints; use method="aba" or model.uncoupled()')
    joints = joint_forces(
        tree, q, v, tau, external_forces=external_forces, external_frame=external_frame, time=time
    )

    def inward(
        body: Body, gathered: tuple[ArticulatedInertia, Force]
    ) -> tuple[tuple[ArticulatedInertia, Force], _Handle]:
        X, T, E, _, active, c, p = joints[body]
        I_A, p_A = gathered[0] + body.inertia, gathered[1] + p
        inertia = factor(I_A.matrix())
        columns = [t.to_list() for t in T]
        moved = [inertia.solve(t) for t in columns]
        lower = [[dot(columns[i], moved[j]) for j in range(i + 1)] for i in range(len(T))]
        for i, x in enumerate(E):
            lower[i][i] = lower[i][i] + x
        Y = factor(lower)
        error = c - Motion.of(inertia.solve((active - p_A).to_list()))
        z = [error.dot(t) for t in T]  # (1)
        rows = [[t[i] for t in columns] for i in range(6)]
        weighted = [Y.solve(row) for row in rows]
        I_a = ArticulatedInertia.from_upper(lambda i, j: dot(weighted[i], rows[j]))
        p_a = active + Force.of([dot(w, z) for w in weighted])  # (2)
        return (X.inverse_apply(I_a), X.inverse_apply(p_a)), _Handle(inertia, p_A, Y, z)

    handles, _ = tree.inward(inward, (ArticulatedInertia.zero(), Force.zero()))

    def outward(body: Body, a_parent: Motion) -> tuple[Motion, list[Scalar]]:
        X, T, _, T_a, active, c, _ = joints[body]
        inertia, p_A, Y, z = handles[body]
        a_prime = X.apply(a_parent)
        multipliers = Y.solve([z_k + a_prime.dot(t) for z_k, t in zip(z, T, strict=True)])
        f = active
        for t, x in zip(T, multipliers, strict=True):
            f = f + t * x
        a = Motion.of(inertia.solve((f - p_A).to_list()))  # (3)
        return a, relative_acceleration(a_prime, a, c, T_a)  # (4)

    return tree.collect(tree.outward(outward, Motion(Vec3.zero(), -tree.gravity)))
