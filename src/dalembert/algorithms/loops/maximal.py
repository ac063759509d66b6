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
from typing import NamedTuple, final

import numpy as np

from dalembert.algorithms.constraints.explicit import closure_rows, original_model
from dalembert.algorithms.constraints.user_rows import UserRows, user_rows
from dalembert.algorithms.dense import Matrix, dot
from dalembert.algorithms.external_forces import ExternalForces, body_forces
from dalembert.algorithms.kinematics import BodyMotion, body_motions
from dalembert.algorithms.small_solve import factor, factor_semidefinite
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.elements import Loop
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, is_zero, literal
from dalembert.spatial import Force, Motion, Transform, Vec3
from dalembert.spatial.structure import leaves, rebuild

__all__ = [
    "JointConstraint",
    "MaximalSystem",
    "accelerations_by_maximal_coordinates",
    "connectivity",
    "maximal_system",
]

SINGULAR = 1e-9
"""An inertia is singular if its least eigenvalue is this small beside its greatest."""

Row = dict[int, Force]
"""One row of B: what multiplies the acceleration of each body that it concerns."""


class JointConstraint(NamedTuple):
    """The rows of B that one joint, coupling or user's constraint gives, and their right sides; `by_user`:
    a coupling or user's constraint, of which the connectivity says nothing."""

    name: str
    rows: list[Row]
    k: list[Scalar]
    by_user: bool = False


@final
@dataclass(frozen=True, slots=True)
class MaximalSystem:
    """I by blocks (bodies i, j: 6 x 6), f (6 a body), and the constraints; `active` gives (3) back."""

    inertia: dict[tuple[int, int], Matrix]
    force: list[list[Scalar]]
    constraints: list[JointConstraint]
    active: list[list[Row]]

    def joint_accelerations(self, tree: Tree, d: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """(3), for the independent joints."""
        result: list[Scalar] = [0.0] * tree.nv
        for body in tree.bodies:
            if body.dependence is None:
                for place, row in zip(range(body.v_slice.start, body.v_slice.stop), self.active[body.index]):
                    result[place] = _times(row, d)
        return result


def connectivity(tree: Tree) -> list[list[int]]:
    """P: a row for each body, a column for each joint (tree joints, then loop joints); +1 at the joint's
    successor, -1 at its predecessor, 0 elsewhere (Eq. 3.65). v_J = P^T v, f = P f_J.
    """
    ends = [(body.parent, body.index) for body in tree.bodies]
    ends += [(loop.predecessor, loop.successor) for loop in tree.loops]
    return [[(i == s) - (i == p) for p, s in ends] for i in range(len(tree.bodies))]


def accelerations_by_maximal_coordinates(
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
    """a `(nv,)` of a system of any connectivity, a tree or not: Eq. 3.74 by dense matrices.

    B I^-1 B^T lambda = k - B I^-1 f first, then d = I^-1 (f + B^T lambda).
    """
    system = maximal_system(
        tree,
        q,
        v,
        tau,
        external_forces=external_forces,
        external_frame=external_frame,
        time=time,
        stabilization=stabilization,
    )
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
    A = [[dot(B[max(i, j)], columns[min(i, j)]) for j in range(len(B))] for i in range(len(B))]
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
    stabilization: Scalar | None = None,
) -> MaximalSystem:
    """I, f and B of a system in motion, in a number of operations proportional to its bodies and joints."""
    motions = body_motions(tree, q, v, time=time)
    f_x = body_forces(tree, q, external_forces, external_frame, time)
    inertia = {(body.index, body.index): body.inertia.matrix() for body in tree.bodies}
    force = [_free_force(tree, body, motions[body], f_x) for body in tree.bodies]
    constraints: list[JointConstraint] = []
    active: list[list[Row]] = []
    for body in tree.bodies:
        own_q = body.own_q(q)
        X = body.link_transform(q, time)
        T = [_between(body.index, body.parent, t, X) for t in body.joint.constraint_subspace(own_q, time)]
        T_a = [_between(body.index, body.parent, t, X) for t in body.joint.active_subspace(own_q, time)]
        constraints.append(JointConstraint(body.joint_name, T, [0.0] * len(T)))
        active.append(T_a)
        for row, armature in zip(T_a, body.armature, strict=True):
            _add_armature(inertia, row, armature)
        if body.dependence is None:
            for row, t in zip(T_a, body.own_v(tau), strict=True):
                _push(force, row, t)
    constraints += [_coupling(body, active, tree) for body in tree.bodies if body.dependence is not None]
    for loop in tree.loops:
        constraints.append(_loop(loop, motions, time, stabilization))
    _hold_thin_bodies(tree, inertia, force, constraints)
    constraints += _user_constraints(tree, q, v, active, time, stabilization)
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
    """The largest entry of an inertia that is singular, else zero; unknown ones count as regular."""
    numbers = [[literal(x) for x in row] for row in body.inertia.matrix()]
    known = [[x for x in row if x is not None] for row in numbers]
    if any(len(row) < 6 for row in known):
        return 0.0
    sizes = np.linalg.eigvalsh(np.array(known))
    if sizes[0] < -SINGULAR * np.abs(sizes).max():
        raise ModelError(
            f'forward_dynamics in maximal coordinates: body "{body.name}" has a negative inertia; '
            "give it one that a body can have, or use a method of the spanning tree"
        )
    if sizes[0] > SINGULAR * sizes[-1]:
        return 0.0
    return float(np.max(np.abs(known))) or 1.0


def _free_force(tree: Tree, body: Body, motion: BodyMotion, f_x: PerBody[Force] | None) -> list[Scalar]:
    """(2) without the joints' share."""
    fall = motion.acceleration - motion.pose.apply(Motion(Vec3.zero(), tree.gravity))
    total = -(body.inertia * fall + motion.velocity.cross(body.inertia * motion.velocity))
    if f_x is not None:
        total = total + f_x[body]
    return list(total.to_list())


def _between(successor: int, predecessor: int, force: Force, X: object) -> Row:
    """A force across a joint, in the coordinates of both bodies; none on the world."""
    row: Row = {} if successor < 0 else {successor: force}
    if predecessor >= 0:
        row[predecessor] = -X.inverse_apply(force)  # type: ignore[attr-defined]
    return row


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


def _coupling(body: Body, active: Sequence[Sequence[Row]], tree: Tree) -> JointConstraint:
    """The acceleration of a dependent joint less those it follows, by (3)."""
    assert body.dependence is not None
    weights = {place: -ratio for _, place, ratio in body.dependence.terms}
    row = _combined([(active[body.index][0], 1.0), *_weighted(tree, active, weights)])
    return JointConstraint(f"coupling of {body.joint_name}", [row], [0.0], by_user=True)


def _weighted(
    tree: Tree, active: Sequence[Sequence[Row]], weights: dict[int, Scalar]
) -> list[tuple[Row, Scalar]]:
    """The rows of (3) for places in v, with their weights."""
    found = []
    for body in tree.bodies:
        if body.dependence is None:
            for place, row in zip(range(body.v_slice.start, body.v_slice.stop), active[body.index]):
                if place in weights:
                    found.append((row, weights[place]))
    return found


def _combined(parts: Sequence[tuple[Row, Scalar]]) -> Row:
    total: Row = {}
    for row, weight in parts:
        for i, force in row.items():
            total[i] = total[i] + force * weight if i in total else force * weight
    return total


def _loop(
    loop: Loop, motions: PerBody[BodyMotion], time: Scalar | None, stabilization: Scalar | None
) -> JointConstraint:
    """A loop joint: T at both ends, and k from the motions of its two bodies alone (Eqs 8.14 to 8.19)."""
    rest = BodyMotion(Transform.identity(), Motion.zero(), Motion.zero())
    at_s, at_p = (motions[i] if i >= 0 else rest for i in (loop.successor, loop.predecessor))
    X_s, X_p = loop.placement_successor.as_transform(), loop.placement_predecessor.as_transform()
    X = (at_p.pose @ X_p).inverse() @ (at_s.pose @ X_s)
    v_s, v_p = X_s.apply(at_s.velocity), X.apply(X_p.apply(at_p.velocity))
    a_s, a_p = X_s.apply(at_s.acceleration), X.apply(X_p.apply(at_p.acceleration))
    v_J, a_J = v_s - v_p, a_s - a_p + v_s.cross(v_p)
    joint = loop.joint

    def subspace(x: Sequence[Scalar]) -> tuple[tuple[Force, ...], Motion]:
        placed, now = rebuild(X, x[:12]), x[12] if joint.time_dependent else None
        T = joint.constraint_subspace_at(placed, now)
        if not joint.time_dependent:
            return T, Motion.zero()
        return T, joint.velocity(joint.position_of(placed, now), [0.0] * joint.nv, now)

    moving = [*leaves(Transform(X.R @ v_J.angular.skew(), X.R @ v_J.linear))]
    point = leaves(X)
    if joint.time_dependent:
        point, moving = [*point, time], [*moving, 1.0]
    (T, sigma), (T_rate, sigma_rate) = directional_derivative(subspace, point, moving)
    k = [-(a_J - sigma_rate).dot(t) - (v_J - sigma).dot(rate) for t, rate in zip(T, T_rate, strict=True)]
    if stabilization is not None:
        rate = 1.0 / stabilization
        errors = zip(k, T, joint.closure_error(X, time), strict=True)
        k = [x - 2.0 * rate * (v_J - sigma).dot(t) - rate * rate * delta for x, t, delta in errors]
    rows: list[Row] = []
    for t in T:
        row: Row = {loop.successor: X_s.inverse_apply(t)} if loop.successor >= 0 else {}
        if loop.predecessor >= 0:
            row[loop.predecessor] = -X_p.inverse_apply(X.inverse_apply(t))
        rows.append(row)
    return JointConstraint(loop.name, rows, k)


def _user_constraints(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    active: Sequence[Sequence[Row]],
    time: Scalar | None,
    stabilization: Scalar | None,
) -> list[JointConstraint]:
    found: list[tuple[str, UserRows]] = []
    for item in tree.constraints:
        found.append((item.name, user_rows(original_model(tree), item, q, v, time)))
    if tree.closure is not None and not tree.constraints and not tree.loops:
        found.append(("loop closure", closure_rows(tree, q, v, time)))
    result = []
    for name, rows in found:
        k = rows.k
        if stabilization is not None:
            rate = 1.0 / stabilization
            errors = zip(k, rows.velocity_error, rows.position_error, strict=True)
            k = [x - 2.0 * rate * e - rate * rate * delta for x, e, delta in errors]
        for number, row in enumerate(rows.K):
            weights = {place: x for place, x in enumerate(row) if not is_zero(x)}
            if weights:
                combined = _combined(_weighted(tree, active, weights))
                result.append(JointConstraint(f"{name}[{number}]", [combined], [k[number]], by_user=True))
    return result


def _times(row: Row, d: Sequence[Sequence[Scalar]]) -> Scalar:
    total: Scalar = 0.0
    for i, force in row.items():
        total = total + dot(force.to_list(), d[i])
    return total
