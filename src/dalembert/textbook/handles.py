"""Articulated bodies with several handles, connected by several joints (Featherstone 2008 §7.5).

    a_i = sum_j Phi_ij f_j + b_i        over the handles i, j of an articulated body               (7.57)

Handle i is a body of it, vectors of handle i are in that body's coordinates. Joint k pushes its successor s
with f_k and its predecessor p with -f_k, each in its own coordinates:

    f_k = f_a + T lambda,     T^T (a_s - a_p) + E lambda = gamma                              (7.60, 7.61)

f_a is the active force, gamma = T^T c, and E is zero but for armature (see `joint_forces`). With the effects
of the active forces put into b, as the book does, and the columns of all joints side by side,

    K_i = Phi_is T - Phi_ip T,   Y = T^T (K_s - K_p) + E,   y = T^T (b_s - b_p) - gamma            (1)
    lambda = -Y^-1 (y + sum_j K_j^T f_j)                                                        (7.62)
    Phi_ij^A = Phi_ij - K_i Y^-1 K_j^T,   b_i^A = b_i - K_i Y^-1 y                              (7.63)

For two parts with one joint these are the book's Phi_1^A = Phi_1 - Phi_12 W Phi_21, Phi_14^A = Phi_12 W
Phi_34, b_4^A = b_4 + Phi_43 W beta and so on, since a handle of one part does not feel forces on the other.
Handle sets, joints within one part and several joints at once need no other formula. A handle may outlive
the joint: other joints can be connected to the same body. Y = L diag(d) L^T; V_j = L^-1 K_j^T is kept:

    Phi_ij^A = Phi_ij - V_i^T d^-1 V_j,   lambda = -L^-T d^-1 (L^-1 y + sum_j V_j f_j)             (2)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from dalembert.algorithms.applied_forces import ExternalForces, body_forces
from dalembert.algorithms.articulated import joint_inertia, velocity_products
from dalembert.algorithms.dense import (
    Matrix,
    Rows,
    Vector,
    dot,
    factor,
    factor_semidefinite,
    identity,
    minus,
    plus,
    reduce_rows,
    solve,
    symmetric_product,
    times,
    transpose,
    unit,
)
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.inverse_dynamics import bias_forces
from dalembert.algorithms.jacobians import jacobian, jacobian_rate_times_velocity
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.open_tree import variable_parents
from dalembert.algorithms.sparse import factor_with_reciprocals, solve_l_transposed
from dalembert.errors import ArgumentError, ModelError
from dalembert.model.body import Body, Frame
from dalembert.model.model import Model
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, is_zero, literal, sqrt
from dalembert.spatial import ArticulatedInertia, Force, Motion, RigidInertia
from dalembert.spatial.transform import Placement


@final
@dataclass(frozen=True, slots=True)
class ArticulatedBody:
    """a_i = sum_j Phi_ij f_j + b_i: `b` by handle; `Phi` by pairs of handles i <= j, absent where zero."""

    Phi: Mapping[tuple[int, int], Matrix]
    b: Mapping[int, Motion]

    @property
    def handles(self) -> tuple[int, ...]:
        """The handles, in order."""
        return tuple(sorted(self.b))

    def response(self, i: int, j: int, force: Force) -> Vector | None:
        """Return Phi_ij f, the acceleration of handle i by a force on handle j; None for zero."""
        block = self.Phi.get((min(i, j), max(i, j)))
        if block is None:
            return None
        return times(block if i <= j else transpose(block), force.to_list())

    def acceleration(self, i: int, forces: Mapping[int, Force]) -> Motion:
        """Return a_i, under forces on the handles (Eq. 7.57)."""
        total = self.b[i].to_list()
        for j, force in forces.items():
            total = _sum(total, self.response(i, j, force))
        return Motion.of(total)


class HandleJoint(NamedTuple):
    """A joint between two handles: T, and the active force, once in the coordinates of each.

    `gamma` = T^T c and `E`, a diagonal, have one number for each column of T. `scale`, where joints may
    repeat constraints, is what the diagonal of Y would be if both bodies were free: a bound on the numbers
    whose difference a vanishing diagonal is.
    """

    predecessor: int
    successor: int
    T_predecessor: tuple[Force, ...]
    T_successor: tuple[Force, ...]
    active_predecessor: Force
    active_successor: Force
    gamma: list[Scalar]
    E: list[Scalar]
    scale: list[Scalar] | None = None

    def across(self, motions: Mapping[int, Motion]) -> Vector:
        """Return T^T (a_s - a_p) for motions of the handles."""
        a_s, a_p = motions[self.successor], motions[self.predecessor]
        return [a_s.dot(s) - a_p.dot(p) for s, p in zip(self.T_successor, self.T_predecessor, strict=True)]


class ConnectedJoints(NamedTuple):
    """Joints that have been connected, with the factors that give their forces (2)."""

    joints: tuple[HandleJoint, ...]
    L: Matrix
    reciprocals: Vector
    V: dict[int, list[Vector]]
    z: Vector


def single_body(handle: int, Phi: Matrix | None, b: Motion) -> ArticulatedBody:
    """Return one body as its own handle; Phi is None for a body that no force can accelerate,
    such as the world."""
    return ArticulatedBody({} if Phi is None else {(handle, handle): Phi}, {handle: b})


def collect_parts(parts: Iterable[ArticulatedBody]) -> ArticulatedBody:
    """Return several articulated bodies as one: their equations side by side (Eq. 3.10)."""
    Phi: dict[tuple[int, int], Matrix] = {}
    b: dict[int, Motion] = {}
    for part in parts:
        Phi |= part.Phi
        b |= part.b
    return ArticulatedBody(Phi, b)


def connect(
    body: ArticulatedBody, joints: Sequence[HandleJoint], handles: Sequence[int]
) -> tuple[ArticulatedBody, ConnectedJoints]:
    """Return the articulated body with the joints connected, seen at the given handles (Eqs 7.62, 7.63)."""
    b = {i: _with_active_forces(body, joints, i) for i in body.handles}
    K = {i: _columns(body, joints, i) for i in body.handles}
    columns = range(sum(len(joint.gamma) for joint in joints))
    moved = [{i: Motion.of(K[i][column]) for i in K} for column in columns]
    Y_columns = [[x for joint in joints for x in joint.across(moved[column])] for column in columns]
    E = [x for joint in joints for x in joint.E]
    Y = [[Y_columns[j][i] + (E[i] if i == j else 0.0) for j in range(i + 1)] for i in columns]
    y = [x - g for joint in joints for x, g in zip(joint.across(b), joint.gamma, strict=True)]
    if any(joint.scale is not None for joint in joints):
        L, reciprocals = _factors(Y, [x for joint in joints for x in joint.scale or ()])
    else:
        L, reciprocals = _factors(Y, None)
    V = {i: _forward(L, K[i]) for i in handles}
    z = [row[0] for row in _forward(L, [[x] for x in y])]
    Phi: dict[tuple[int, int], Matrix] = {}
    for i in handles:
        for j in handles:
            if i <= j:
                Phi[i, j] = _reduced_response(body.Phi.get((i, j)), V[i], V[j], reciprocals, i == j)
    weighted = [r * x for r, x in zip(reciprocals, z, strict=True)]
    b_A = {
        i: Motion.of([x - dot(column, weighted) for x, column in zip(b[i].to_list(), _six_columns(V[i]))])
        for i in handles
    }
    return ArticulatedBody(Phi, b_A), ConnectedJoints(tuple(joints), L, reciprocals, V, z)


def disconnect(
    connected: ConnectedJoints, forces: Mapping[int, Force]
) -> tuple[dict[int, Force], list[Vector]]:
    """Return the forces on all handles of the parts from those on the handles of the whole,
    and lambda of each joint (7.62).

    A handle that the whole has lost feels the joints alone, one that it has kept both.
    """
    total = list(connected.z)
    for i, rows in connected.V.items():
        total = [t + dot(row, forces[i].to_list()) for t, row in zip(total, rows, strict=True)]
    x = [-(r * t) for r, t in zip(connected.reciprocals, total, strict=True)]
    for i in reversed(range(len(x))):
        for j in range(i + 1, len(x)):
            x[i] = x[i] - connected.L[j][i] * x[j]
    found = dict(forces)
    multipliers: list[Vector] = []
    for joint in connected.joints:
        own, x = x[: len(joint.gamma)], x[len(joint.gamma) :]
        push, pull = joint.active_successor, joint.active_predecessor
        for factor_, s, p in zip(own, joint.T_successor, joint.T_predecessor, strict=True):
            push, pull = push + s * factor_, pull + p * factor_
        found[joint.successor] = found.get(joint.successor, Force.zero()) + push
        found[joint.predecessor] = found.get(joint.predecessor, Force.zero()) - pull
        multipliers.append(own)
    return found, multipliers


def _with_active_forces(body: ArticulatedBody, joints: Sequence[HandleJoint], i: int) -> Motion:
    """Return b_i with the active forces of the joints as external ones."""
    total = body.b[i].to_list()
    for joint in joints:
        total = _sum(total, body.response(i, joint.successor, joint.active_successor))
        total = _sum(total, body.response(i, joint.predecessor, -joint.active_predecessor))
    return Motion.of(total)


def _columns(body: ArticulatedBody, joints: Sequence[HandleJoint], i: int) -> list[Vector]:
    """Return the columns of K_i (1)."""
    columns = []
    for joint in joints:
        for s, p in zip(joint.T_successor, joint.T_predecessor, strict=True):
            column = _sum([0.0] * 6, body.response(i, joint.successor, s))
            columns.append(_sum(column, body.response(i, joint.predecessor, -p)))
    return columns


def _factors(Y: Matrix, scale: Vector | None) -> tuple[Matrix, Vector]:
    found = factor(Y) if scale is None else factor_semidefinite(Y, scale=scale)
    return found.L, found.reciprocals


def _forward(L: Matrix, rows: Sequence[Sequence[Scalar]]) -> list[Vector]:
    """Return L^-1 B, row by row, for a unit lower-triangular L."""
    found: list[Vector] = []
    for i, row in enumerate(rows):
        own = list(row)
        for j in range(i):
            if not is_zero(L[i][j]):
                own = [x - L[i][j] * y for x, y in zip(own, found[j], strict=True)]
        found.append(own)
    return found


def _reduced_response(
    block: Matrix | None, V_i: list[Vector], V_j: list[Vector], reciprocals: Vector, symmetric: bool
) -> Matrix:
    """Return Phi_ij - V_i^T d^-1 V_j (2), of which a symmetric block is computed once."""
    left = _six_columns(V_i)
    right = _six_columns([[r * x for x in row] for r, row in zip(reciprocals, V_j, strict=True)])

    def entry(r: int, c: int) -> Scalar:
        change = dot(left[r], right[c])
        return -change if block is None else block[r][c] - change

    if not symmetric:
        return [[entry(r, c) for c in range(6)] for r in range(6)]
    upper = [[entry(r, c) if c >= r else 0.0 for c in range(6)] for r in range(6)]
    return [[upper[min(r, c)][max(r, c)] for c in range(6)] for r in range(6)]


def _six_columns(V: list[Vector]) -> list[Vector]:
    """Return the six columns of V, which has a row for each force variable, or no rows."""
    return [[row[c] for row in V] for c in range(6)]


def _sum(total: Vector, change: Vector | None) -> Vector:
    return total if change is None else [x + y for x, y in zip(total, change, strict=True)]


# Alternative assembly formulae: two handles connected by a joint (Featherstone 2008 §7.4, Table 7.2).
#
#     standard    f = I^A a_1 + p^A    from I_i, p_i, S          `articulated.assemble`
#     variant 1   a_1 = Phi^A f + b^A  from Phi_i, b_i, T, T_a   `assemble_inverse`
#     variant 2   f = I^A a_1 + p^A    from I_i, p_i, T, T_a     `assemble_in_constraint_space`
#
# with the joint's implicit constraint T^T (a_2 - a_1 - c) = 0 and its force f_2 = T_a tau + T lambda.
# Inertias exist for handles with six freedoms only; variant 1 asks no more than that T^T (Phi_1 + Phi_2) T
# can be inverted: that the joint repeats no constraint. All vectors are in one coordinate system.


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


# The force that a tree joint transmits, with armature (Featherstone 2008 §3.5).
#
#     f_J = T_a tau + T lambda,     T^T (a_i - a_lambda - c) = 0,     q̈ = T_a^T (a_i - a_lambda - c)    (1)
#
# Armature R takes R q̈ of the force before it reaches the body, f_J = T_a (tau - R q̈) + T lambda. With
# w = R^1/2 q̈ that is the same form with more columns,
#
#     f_J = T_a tau + T' lambda',   T' = [T  T_a R^1/2],   lambda' = [lambda; -w]                       (2)
#     T'^T (a_i - a_lambda - c) + E lambda' = 0,   E = diag(0, 1)                                       (3)
#
# a joint that yields where it has armature. Columns without armature are left out by structure.

MIN_DETERMINANT_RATIO = 1e-12
"""Ratio of det(I) to tr(I)^3 up to which a body has no inertia about some axis."""


class JointForces(NamedTuple):
    """The terms of a joint and its body in the equations of motion, in body coordinates.

    `X` the body placed in its parent; `T` the columns of T' and `E` their diagonal (2, 3); `T_a`, and the
    active force `active` = T_a tau; `c` the velocity-product acceleration; `p` the body's bias force.
    """

    X: Placement
    T: tuple[Force, ...]
    E: list[Scalar]
    T_a: tuple[Force, ...]
    active: Force
    c: Motion
    p: Force


def joint_forces(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> PerBody[JointForces]:
    """Return the joint forces of every body."""
    moved = velocity_products(tree, q, v, body_forces(tree, q, external_forces, external_frame, time), time)

    def step(body: Body, _: tuple[()]) -> tuple[tuple[()], JointForces]:
        joint, c, p = moved[body]
        own_q = body.own_q(q)
        T = body.joint.constraint_subspace(own_q, time)
        T_a = body.joint.active_subspace(own_q, time)
        rotor = [t * sqrt(m) for t, m in zip(T_a, body.armature, strict=True) if not is_zero(m)]
        E = [0.0] * len(T) + [1.0] * len(rotor)
        active = active_force(T_a, body.own_v(tau))
        return (), JointForces(joint.X, (*T, *rotor), E, T_a, active, c, p)

    return tree.outward(step, ())


def require_invertible_inertias(tree: Tree, function: str) -> None:
    """Refuse a body that has no mass, or no moment of inertia about some axis through its centre of mass."""
    for body in tree.bodies:
        numbers = [literal(x) for x in body.inertia.leaves()]
        if any(x is None for x in numbers):
            continue
        moments = body.inertia.inertia_at_com
        size = moments.trace()
        if numbers[0] == 0.0 or moments.to_mat3().determinant() <= MIN_DETERMINANT_RATIO * size * size * size:
            raise ModelError(
                f'{function}: body "{body.name}" has no inverse inertia, since it lacks mass or a moment of '
                "inertia about some axis; give it one, or use the default method"
            )


# Vector subspaces as the ranges of matrices (Featherstone 2008 §3.3).
#
# A subspace is given by its columns, n numbers each. A motion subspace S and its orthogonal complement S^⊥
# lie in spaces that are dual to each other: the columns of S are motions, those of S^⊥ forces, and S^T f = 0
# is no power. Euclidean orthogonality has no meaning here, since it adds squares of metres and radians.
#
#     dim S + dim S^⊥ = n,     S_1 ⊕ S_2^⊥ = U  exactly where  S_1^T S_2  can be inverted     (Table 3.1)

Columns = Sequence[Sequence[Scalar]]
"""The columns of the matrix of a subspace."""


def decompose(v: Sequence[Scalar], *subspaces: Columns) -> list[Vector]:
    """Return the parts v_1 + v_2 + … = v of a vector in subspaces whose direct sum is the whole space.

    [alpha_1; alpha_2] = [S_1 S_2]^-1 v (Eqs 3.26, 3.27); v_i = S_i alpha_i does not depend on the bases.
    """
    columns = [column for S in subspaces for column in S]
    if len(columns) != len(v):
        raise ArgumentError(
            f"decompose: the subspaces have {len(columns)} columns together and the vector has {len(v)} "
            "numbers; a direct sum needs one column for each"
        )
    alpha = [row[0] for row in solve(transpose(columns), [[x] for x in v])]
    parts: list[Vector] = []
    for S in subspaces:
        own, alpha = alpha[: len(S)], alpha[len(S) :]
        parts.append(times(transpose(S), own) if S else [0.0] * len(v))
    return parts


def dual_complement(S: Columns, n: int) -> Matrix:
    """Return columns that span S^⊥ in the dual space: n - dim S of them, with S^T T = 0, for S of full rank.

    Elimination finds an invertible A with A S = [1; 0]; the last rows of A are the columns of S^⊥.
    """
    rows = [[column[i] for column in S] + unit(n, i) for i in range(n)]
    return [row[len(S) :] for row in reduce_rows(rows, len(S))[len(S) :]]


def dimension(S: Columns) -> Scalar:
    """Return dim(span S), as a scalar: how many columns have a part outside the span of those before them.

    From the pivots of the columns' Gram matrix, which `factor_semidefinite` keeps or drops.
    """
    total: Scalar = 0.0
    for one in factor_semidefinite([[dot(a, b) for b in S] for a in S]).independent_rows:
        total = total + one
    return total


def split_force(
    inertia: RigidInertia | ArticulatedInertia, S: Sequence[Motion], f: Force
) -> tuple[Force, Force]:
    """Return (f_a, f_c) with f = f_a + f_c: f_a accelerates a body that may move in S, bearings oppose f_c.

    f_a = I S (S^T I S)^-1 S^T f lies in I S, f_c in S^⊥; F^6 is their direct sum for any basis of S
    (Example 3.1, Eq. 3.28). The acceleration is S (S^T I S)^-1 S^T f.
    """
    U = [inertia * s for s in S]
    alpha = factor(joint_inertia(S, U, [0.0] * len(S))).solve([s.dot(f) for s in S])
    accelerating = Force.zero()
    for u, x in zip(U, alpha, strict=True):
        accelerating = accelerating + u * x
    return accelerating, f - accelerating


# Equations of motion collected into those of a bigger system (Featherstone 2008 §3.2, Eq. 3.10).
#
#     [H_1         ] [a_1]   [C_1]   [tau_1]
#     [     H_2    ] [a_2] + [C_2] = [tau_2]
#     [         ...] [...]   [...]   [ ... ]
#
# A subsystem is a system in joint coordinates, H a + C = tau, or one body in spatial coordinates, I a + p =
# f: Plücker coordinates are generalized coordinates, so that both may be mixed.


class Equations(NamedTuple):
    """H a + C = tau: `H` (n, n) symmetric and positive definite, `C` (n,), `tau` (n,)."""

    H: Matrix
    C: Vector
    tau: Vector


def body_equations(inertia: RigidInertia | ArticulatedInertia, p: Force, f: Force) -> Equations:
    """Return I a + p = f of one body in spatial coordinates: six equations (Eq. 2.69)."""
    return Equations(inertia.matrix(), p.to_list(), f.to_list())


def tree_equations(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> Equations:
    """Return H a + C = tau of a tree in joint coordinates (Eq. 3.1), external forces in C."""
    C = bias_forces(tree, q, v, external_forces=external_forces, external_frame=external_frame, time=time)
    return Equations(mass_matrix(tree, q, time=time), C, list(tau))


def collect(systems: Iterable[Equations]) -> Equations:
    """Return the equations of all systems as those of one (Eq. 3.10)."""
    held = list(systems)
    n = sum(len(system.C) for system in held)
    H: Matrix = []
    for system in held:
        before, own = len(H), len(system.C)
        H += [[0.0] * before + list(row) + [0.0] * (n - before - own) for row in system.H]
    return Equations(H, [x for s in held for x in s.C], [x for s in held for x in s.tau])


def free_acceleration(equations: Equations) -> Vector:
    """Return a = H^-1 (tau - C): the motion without further constraints."""
    H, C, tau = equations
    return factor(H).solve([t - c for t, c in zip(tau, C, strict=True)])


# Articulated-body and operational-space inertias by projection (Featherstone 2008 section 7.2.1).
#
# The equation of motion of the whole system, projected onto the motion of one or more handles with the
# stacked Jacobian J:
#
#     a = Phi f + b,     Phi = J M^-1 J^T,     b = J' v + J M^-1 (tau - C)                 (7.8 to 7.10)
#     f = I a + p,       I = Phi^-1,           p = -I b                                    (7.11 to 7.13)
#
# f are the forces on the handles beside everything in C and tau. Phi is positive semidefinite of the rank of
# J; I exists where J has full row rank, and is then also called the operational-space inertia.

Handle = str | Body | Frame


def handle_inverse_inertia(
    model: Model,
    q: Sequence[Scalar],
    handles: Sequence[Handle],
    *,
    frame: str = "body",
    time: Scalar | None = None,
) -> Matrix:
    """Return Phi `(6 h, 6 h)` of h handles (Eqs 7.4, 7.9): with Y = L^-T J^T, Phi = Y^T D^-1 Y."""
    lam = variable_parents(model)
    L, reciprocals = factor_with_reciprocals(mass_matrix(model, q, time=time), lam)
    rows = [row for handle in handles for row in jacobian(model, q, handle, frame=frame, time=time)]
    Y = [solve_l_transposed(L, lam, row, unit=True) for row in rows]
    W = [[y_k * r for y_k, r in zip(y, reciprocals, strict=True)] for y in Y]
    return symmetric_product(Y, W)


def handle_bias_acceleration(
    model: Model,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    handles: Sequence[Handle],
    *,
    frame: str = "body",
    time: Scalar | None = None,
) -> list[Scalar]:
    """Return b `(6 h,)`: the acceleration of the handles without forces on them (Eq. 7.10, with tau)."""
    a = forward_dynamics(model, q, v, tau, time=time)
    b: list[Scalar] = []
    for handle in handles:
        rate = jacobian_rate_times_velocity(model, q, v, handle, frame=frame, time=time)
        J = jacobian(model, q, handle, frame=frame, time=time)
        b += [dot(row, a) + r for row, r in zip(J, rate, strict=True)]
    return b


def handle_inertia(Phi: Sequence[Sequence[Scalar]]) -> Matrix:
    """Return I = Phi^-1, of handles that can move in every direction (Eq. 7.12)."""
    inverse = factor(Phi)
    n = len(Phi)
    columns = [inverse.solve(unit(n, i)) for i in range(n)]
    return transpose(columns)
