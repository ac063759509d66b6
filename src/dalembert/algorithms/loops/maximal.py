"""The equations of all bodies and all joints, without a spanning tree (Featherstone 2008 §3.7, §8.13).

    [ I     B^T ] [   a    ]   [ f ]
    [ B      0  ] [ -lambda] = [ k ],      B = T^T P^T                            (3.74, 8.64)

a are the spatial accelerations of the bodies, each in its own coordinates. Row by row B is the constraint
subspace T of a joint at its successor less T at its predecessor: P has +1 at s(j) and -1 at p(j). Here the
unknowns are d = a - a^vp, what the joint accelerations add to the velocity-product accelerations, so that

    B d = 0 for tree joints,   B d = k of Eq. 8.16 for loop joints                (1)
    f_i = -(I_i a_i^vp + v_i x* I_i v_i) + weight + external + T_a tau            (2)
    a_j = T_a^T (d_s - d_p)    the joints' accelerations                          (3)

Armatures m add m w w^T to I, with w = T_a at s and -T_a at p. By (3) any equation between joint accelerations
is one between bodies: couplings, and users' constraints.

I must be regular, which that of a thin rod is not: it has no moment about itself. Then joints on the body
hold it: with (B^T w B) d = B^T w k added to the upper equation, which changes no solution, I + B^T w B is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack, final

import numpy as np

from dalembert.algorithms.dense import Matrix, dot, symmetric_product
from dalembert.algorithms.external_forces import Conditions, ExternalForces, body_forces
from dalembert.algorithms.kinematics import BodyMotion, body_motions
from dalembert.algorithms.loops.maximal_rows import (
    JointConstraint,
    Row,
    coupling_constraint,
    force_across,
    loop_constraint,
    user_constraints,
)
from dalembert.algorithms.small_solve import factor, factor_semidefinite
from dalembert.algorithms.stabilization import Stabilization
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, is_zero, literal
from dalembert.spatial import Force, Motion, Vec3

__all__ = [
    "MaximalSystem",
    "accelerations_by_maximal_coordinates",
    "connectivity",
    "maximal_system",
]

SINGULAR_EIGENVALUE_RATIO = 1e-9
"""Ratio of the least to the greatest eigenvalue up to which an inertia is singular."""


@final
@dataclass(frozen=True, slots=True)
class MaximalSystem:
    """I by blocks (bodies i, j: 6 x 6), f (6 a body), and the constraints; `active` gives (3) back."""

    inertia: dict[tuple[int, int], Matrix]
    force: list[list[Scalar]]
    constraints: list[JointConstraint]
    active: list[list[Row]]

    def joint_accelerations(self, tree: Tree, d: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """Compute (3) for the independent joints."""
        result: list[Scalar] = [0.0] * tree.nv
        for body in tree.bodies:
            if body.dependence is None:
                for place, row in zip(range(body.v_slice.start, body.v_slice.stop), self.active[body.index]):
                    result[place] = _times(row, d)
        return result


def connectivity(tree: Tree) -> list[list[int]]:
    """Return P, with a row for each body and a column for each joint (tree joints, then loop joints).

    +1 at the joint's successor, -1 at its predecessor, 0 elsewhere (Eq. 3.69).
    v_J = P^T v, f = P f_J (Eqs 3.67, 3.70).
    """
    ends = [(body.parent, body.index) for body in tree.bodies]
    ends += [(loop.predecessor, loop.successor) for loop in tree.loops]
    return [[(i == s) - (i == p) for p, s in ends] for i in range(len(tree.bodies))]


def accelerations_by_maximal_coordinates(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    **options: Unpack[Conditions],
) -> list[Scalar]:
    """Return a `(nv,)` of a system of any connectivity, a tree or not: Eq. 3.74 by dense matrices.

    B I^-1 B^T lambda = k - B I^-1 f first, then d = I^-1 (f + B^T lambda).
    """
    system = maximal_system(tree, q, v, tau, **options)
    n = 6 * len(tree.bodies)
    I: Matrix = [[0.0] * n for _ in range(n)]
    for (i, j), block in system.inertia.items():
        for r in range(6):
            for c in range(6):
                I[6 * i + r][6 * j + c] = block[r][c]
    B: Matrix = []
    k: list[Scalar] = []
    for constraint in system.constraints:
        k += constraint.k
        for row in constraint.rows:
            full: list[Scalar] = [0.0] * n
            for i, coefficient in row.items():
                full[6 * i : 6 * i + 6] = coefficient.to_list()
            B.append(full)
    f = [x for part in system.force for x in part]
    inverse = factor(I)
    columns = [inverse.solve(row) for row in B]
    free = inverse.solve(f)
    A = symmetric_product(B, columns)
    lam = factor_semidefinite(A).solve([k_i - dot(row, free) for row, k_i in zip(B, k, strict=True)])
    d = [x + sum((c[i] * y for c, y in zip(columns, lam, strict=True)), 0.0) for i, x in enumerate(free)]
    return system.joint_accelerations(tree, [d[6 * i : 6 * i + 6] for i in range(len(tree.bodies))])


def maximal_system(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    stabilization: Stabilization = None,
) -> MaximalSystem:
    """Return I, f and B of a system in motion,
    in a number of operations proportional to its bodies and joints."""
    motions = body_motions(tree, q, v, time=time)
    f_x = body_forces(tree, q, external_forces, external_frame, time)
    inertia = {(body.index, body.index): body.inertia.matrix() for body in tree.bodies}
    force = [_free_force(tree, body, motions[body], f_x) for body in tree.bodies]
    constraints: list[JointConstraint] = []
    active: list[list[Row]] = []
    for body in tree.bodies:
        own_q = body.own_q(q)
        X = body.link_transform(q, time)
        T = [force_across(body.index, body.parent, t, X) for t in body.joint.constraint_subspace(own_q, time)]
        T_a = [force_across(body.index, body.parent, t, X) for t in body.joint.active_subspace(own_q, time)]
        constraints.append(JointConstraint(body.joint_name, T, [0.0] * len(T)))
        active.append(T_a)
        for row, armature in zip(T_a, body.armature, strict=True):
            _add_armature(inertia, row, armature)
        if body.dependence is None:
            for row, t in zip(T_a, body.own_v(tau), strict=True):
                _push(force, row, t)
    constraints += [
        coupling_constraint(body, active, tree) for body in tree.bodies if body.dependence is not None
    ]
    for loop in tree.loops:
        constraints.append(loop_constraint(loop, motions, time, stabilization))
    _hold_thin_bodies(tree, inertia, force, constraints)
    constraints += user_constraints(tree, q, v, active, time, stabilization)
    return MaximalSystem(inertia, force, [c for c in constraints if c.rows], active)


def _hold_thin_bodies(
    tree: Tree,
    inertia: dict[tuple[int, int], Matrix],
    force: list[list[Scalar]],
    constraints: Sequence[JointConstraint],
) -> None:
    """Add B^T w B and B^T w k of all joints on bodies whose own inertia is singular."""
    weights = {body.index: weight for body in tree.bodies if (weight := _thinness(body)) > 0.0}
    for constraint in constraints:
        for row, k in zip(constraint.rows, constraint.k, strict=True):
            weight = max((weights.get(i, 0.0) for i in row), default=0.0)
            _add_armature(inertia, row, weight)
            if weight > 0.0 and not is_zero(k):
                _push(force, row, weight * k)


def _thinness(body: Body) -> float:
    """Return the largest entry of a singular inertia, else zero; unknown inertias count as regular."""
    numbers = [[literal(x) for x in row] for row in body.inertia.matrix()]
    known = [[x for x in row if x is not None] for row in numbers]
    if any(len(row) < 6 for row in known):
        return 0.0
    sizes = np.linalg.eigvalsh(np.array(known))
    if sizes[0] < -SINGULAR_EIGENVALUE_RATIO * np.abs(sizes).max():
        raise ModelError(
            f'forward_dynamics in maximal coordinates: body "{body.name}" has a negative inertia; '
            "give it one that a body can have, or use a method of the spanning tree"
        )
    if sizes[0] > SINGULAR_EIGENVALUE_RATIO * sizes[-1]:
        return 0.0
    return float(np.max(np.abs(known))) or 1.0


def _free_force(tree: Tree, body: Body, motion: BodyMotion, f_x: PerBody[Force] | None) -> list[Scalar]:
    """Return (2) without the terms of the joints."""
    fall = motion.acceleration - motion.pose.apply(Motion(Vec3.zero(), tree.gravity))
    total = -(body.inertia * fall + motion.velocity.cross(body.inertia * motion.velocity))
    if f_x is not None:
        total = total + f_x[body]
    return list(total.to_list())


def _add_armature(inertia: dict[tuple[int, int], Matrix], row: Row, armature: Scalar) -> None:
    if is_zero(armature):
        return
    for i, w_i in row.items():
        for j, w_j in row.items():
            old = inertia.get((i, j), [[0.0] * 6 for _ in range(6)])
            left, right = w_i.to_list(), w_j.to_list()
            inertia[i, j] = [[old[r][c] + armature * left[r] * right[c] for c in range(6)] for r in range(6)]


def _push(force: list[list[Scalar]], row: Row, size: Scalar) -> None:
    for i, direction in row.items():
        force[i] = [x + y * size for x, y in zip(force[i], direction.to_list(), strict=True)]


def _times(row: Row, d: Sequence[Sequence[Scalar]]) -> Scalar:
    total: Scalar = 0.0
    for i, force in row.items():
        total = total + dot(force.to_list(), d[i])
    return total
