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

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Unpack, final

from dalembert.algorithms.applied_forces import Loads, Stabilization, body_forces
from dalembert.algorithms.articulated import velocity_products
from dalembert.algorithms.dense import (
    Matrix,
    Rows,
    SymmetricFactor,
    Vector,
    dot,
    factor,
    factor_semidefinite,
    identity,
    minus,
    symmetric_from_lower,
    symmetric_product,
    times,
    transpose,
    zeros,
)
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.jacobians import jacobian, jacobian_rate_times_velocity
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.open_tree import has_couplings, require_open_tree, variable_parents
from dalembert.algorithms.sparse import factor_with_reciprocals, solve_l_transposed
from dalembert.errors import ModelError
from dalembert.model import Body, Frame, Model
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time, is_zero, literal, sqrt
from dalembert.spatial import ArticulatedInertia, Force, Motion, Placement, RigidInertia, Vec3

Forces = Sequence[Force]
Inertia = RigidInertia | ArticulatedInertia


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
        return self._accelerate(i, forces, self.b[i].to_list())

    def _accelerate(self, i: int, forces: Mapping[int, Force], a: Vector) -> Motion:
        """Return a + sum_j Phi_ij f_j."""
        for j, force in forces.items():
            change = self.response(i, j, force)
            a = a if change is None else [x + y for x, y in zip(a, change, strict=True)]
        return Motion.of(a)


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
        return [a_s.dot(s) - a_p.dot(p) for s, p in self._columns()]

    def _columns(self) -> Iterable[tuple[Force, Force]]:
        """Return the columns of T, each in the coordinates of both bodies."""
        return zip(self.T_successor, self.T_predecessor, strict=True)

    def _push(self, forces: Mapping[int, Force], f_s: Force, f_p: Force) -> dict[int, Force]:
        """Return forces with f on the successor and -f on the predecessor added, f in coordinates of both."""
        pushed = {**forces, self.successor: forces.get(self.successor, Force.zero()) + f_s}
        return {**pushed, self.predecessor: pushed.get(self.predecessor, Force.zero()) - f_p}


class ConnectedJoints(NamedTuple):
    """Joints that have been connected, with the factors that give their forces (2).

    `V`, by handle, has a vector L^-1 K_j^T for each of the six coordinates of a force; `z` = L^-1 y.
    """

    joints: tuple[HandleJoint, ...]
    L: Matrix
    reciprocals: Vector
    V: dict[int, list[Vector]]
    z: Vector


def single_body(handle: int, Phi: Matrix | None, b: Motion) -> ArticulatedBody:
    """Return one body as its own handle; Phi is None if no force can accelerate it, as for the world."""
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
    active: dict[int, Force] = {}
    for joint in joints:
        active = joint._push(active, joint.active_successor, joint.active_predecessor)
    b = {i: body.acceleration(i, active) for i in body.handles}
    pushes = [joint._push({}, s, p) for joint in joints for s, p in joint._columns()]
    K = [{i: body._accelerate(i, push, [0.0] * 6) for i in body.handles} for push in pushes]
    Y = transpose([[x for joint in joints for x in joint.across(column)] for column in K])
    for k, x in enumerate(x for joint in joints for x in joint.E):
        Y[k][k] = Y[k][k] + x
    y = [x - g for joint in joints for x, g in zip(joint.across(b), joint.gamma, strict=True)]
    repeating = any(joint.scale is not None for joint in joints)
    scale = [x for joint in joints for x in joint.scale or ()]
    factors = factor_semidefinite(Y, scale=scale) if repeating else factor(Y)
    z = factors.forward(y)
    V = {i: [factors.forward(row) for row in rows_of([column[i] for column in K])] for i in handles}
    weighted = {
        i: [[x * r for x, r in zip(row, factors.reciprocals, strict=True)] for row in V[i]] for i in handles
    }
    b_A = {i: b[i] - Motion.of([dot(row, z) for row in weighted[i]]) for i in handles}
    Phi: dict[tuple[int, int], Matrix] = {}
    for i, j in itertools.product(handles, handles):
        before = body.Phi.get((i, j)) or zeros(6, 6)
        if i == j:
            lower = [[before[c][r] - dot(V[i][c], weighted[i][r]) for c in range(r + 1)] for r in range(6)]
            Phi[i, i] = symmetric_from_lower(lower)
        elif i < j:
            Phi[i, j] = minus(before, [[dot(row, w) for w in weighted[j]] for row in V[i]])
    return ArticulatedBody(Phi, b_A), ConnectedJoints(tuple(joints), factors.L, factors.reciprocals, V, z)


def disconnect(
    connected: ConnectedJoints, forces: Mapping[int, Force]
) -> tuple[dict[int, Force], list[Vector]]:
    """Return the forces on all handles of the parts from those on the handles of the whole,
    and lambda of each joint (7.62).

    A handle that the whole has lost feels the joints alone, one that it has kept both.
    """
    joints, L, reciprocals, V, z = connected
    total = list(z)
    for i, rows in V.items():
        total = [t + dot(row, forces[i].to_list()) for t, row in zip(total, transpose(rows), strict=True)]
    x = SymmetricFactor(L, reciprocals).backward([-(r * t) for r, t in zip(reciprocals, total, strict=True)])
    found = dict(forces)
    multipliers: list[Vector] = []
    for joint in joints:
        own, x = x[: len(joint.gamma)], x[len(joint.gamma) :]
        f_s = joint.active_successor + combine(joint.T_successor, own)
        f_p = joint.active_predecessor + combine(joint.T_predecessor, own)
        found = joint._push(found, f_s, f_p)
        multipliers.append(own)
    return found, multipliers


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
    Phi_1: Matrix, b_1: Motion, Phi_2: Matrix, b_2: Motion, T: Forces, T_a: Forces, c: Motion, tau: Scalars
) -> tuple[Matrix, Motion]:
    """Return (Phi^A, b^A) of handle 1 with handle 2 jointed to it: variant 1.

    Y = T^T (Phi_1 + Phi_2) T,   z = T^T (c + b_1 - b_2 - (Phi_1 + Phi_2) T_a tau)
    Phi^A = Phi_1 - Phi_1 T Y^-1 T^T Phi_1,   b^A = b_1 - Phi_1 T_a tau - Phi_1 T Y^-1 z
    """
    active = combine(T_a, tau)
    joint = HandleJoint(1, 2, tuple(T), tuple(T), active, active, [c.dot(t) for t in T], [0.0] * len(T))
    parts = collect_parts([single_body(1, Phi_1, b_1), single_body(2, Phi_2, b_2)])
    whole, _ = connect(parts, [joint], [1])
    return whole.Phi[1, 1], whole.b[1]


def assemble_in_constraint_space(
    I_1: ArticulatedInertia,
    p_1: Force,
    I_2: ArticulatedInertia,
    p_2: Force,
    T: Forces,
    T_a: Forces,
    c: Motion,
    tau: Scalars,
) -> tuple[ArticulatedInertia, Force]:
    """Return (I^A, p^A) of handle 1 with handle 2 jointed to it: variant 2.

    Y = T^T I_2^-1 T,   z = T^T (c - I_2^-1 (T_a tau - p_2))
    I^A = I_1 + T Y^-1 T^T,   p^A = p_1 + T_a tau + T Y^-1 z
    """
    _, I_a, p_a = constraint_space_handle(I_2, p_2, T, [0.0] * len(T), combine(T_a, tau), c)
    return I_1 + I_a, p_1 + p_a


class ConstraintSpaceHandle(NamedTuple):
    """A body with all that it carries: the factors of its inertia and of Y, its bias force p, and z."""

    inertia: SymmetricFactor
    p: Force
    Y: SymmetricFactor
    z: Vector


def constraint_space_handle(
    I_2: ArticulatedInertia, p_2: Force, T: Forces, E: Scalars, active: Force, c: Motion
) -> tuple[ConstraintSpaceHandle, ArticulatedInertia, Force]:
    """Return handle 2 by variant 2, and I^a and p^a that handle 1 feels of it; Y has E on its diagonal."""
    inertia = factor(I_2.matrix())
    rows = rows_of(T)
    moved = [inertia.solve(t.to_list()) for t in T]  # the columns of I_2^-1 T
    lower = [[dot(t.to_list(), u) for u in moved[: i + 1]] for i, t in enumerate(T)]
    for i, x in enumerate(E):
        lower[i][i] = lower[i][i] + x
    Y = factor(lower)
    error = c - Motion.of(inertia.solve((active - p_2).to_list()))
    z = [error.dot(t) for t in T]
    weighted = [Y.solve(row) for row in rows]  # the rows of T Y^-1
    I_a = ArticulatedInertia.from_upper(lambda i, j: dot(weighted[i], rows[j]))
    p_a = active + Force.of([dot(w, z) for w in weighted])
    return ConstraintSpaceHandle(inertia, p_2, Y, z), I_a, p_a


def inverse_inertia(I_A: ArticulatedInertia, p_A: Force) -> tuple[Matrix, Motion]:
    """Return (Phi, b) of the same handle: Phi = I^-1, b = -Phi p (Eq. 7.3)."""
    inertia = factor(I_A.matrix())
    Phi = [inertia.solve(e) for e in identity(6)]
    return Phi, Motion.of(inertia.solve((-p_A).to_list()))


def relative_acceleration(a_1: Motion, a_2: Motion, c: Motion, T_a: Forces) -> list[Scalar]:
    """Return q̈ = T_a^T (a_2 - a_1 - c), which the variants do not give on their way (§7.4, footnote)."""
    across = a_2 - a_1 - c
    return [across.dot(t) for t in T_a]


def combine(T: Forces, x: Scalars) -> Force:
    """Return T x, such as the active force T_a tau."""
    total = Force.zero()
    for t, x_i in zip(T, x, strict=True):
        total = total + t * x_i
    return total


def rows_of(columns: Sequence[Motion | Force]) -> Matrix:
    """Return the 6 x n matrix with these columns."""
    return transpose([column.to_list() for column in columns]) or zeros(6, 0)


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
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Loads]
) -> PerBody[JointForces]:
    """Return the joint forces of every body."""
    time = given.get("time")
    moved = velocity_products(tree, q, v, body_forces(tree, q, **given), time)

    def step(body: Body, _: tuple[()]) -> tuple[tuple[()], JointForces]:
        joint, c, p = moved[body]
        own_q = body.own_q(q)
        T = body.joint.constraint_subspace(own_q, time)
        T_a = body.joint.active_subspace(own_q, time)
        rotor = [t * sqrt(m) for t, m in zip(T_a, body.armature, strict=True) if not is_zero(m)]
        E = [0.0] * len(T) + [1.0] * len(rotor)
        active = combine(T_a, body.own_v(tau))
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


# The articulated-body algorithm by constraint forces (Featherstone 2008 §7.4, variant 2 of Table 7.2).
#
# Seen from its parent, body i with all that it carries is, in terms of its joint's T' and E (`joint_forces`),
#
#     Y = T'^T (I^A)^-1 T' + E,   z = T'^T (c - (I^A)^-1 (T_a tau - p^A))                              (1)
#     I^a = T' Y^-1 T'^T,   p^a = T_a tau + T' Y^-1 z                                                  (2)
#
# and once the parent's acceleration a' = X a_lambda is known,
#
#     lambda' = Y^-1 (z + T'^T a'),   f = T_a tau + T' lambda',   a = (I^A)^-1 (f - p^A)               (3)
#     q̈ = T_a^T (a - a' - c)                                                                           (4)
#
# Dearer than the standard formulae where joints have few freedoms, and cheaper where they have many: Y is of
# the size of the constraints, D of that of the freedoms.

FUNCTION = 'forward_dynamics with method="aba_constraint_space"'


def forward_dynamics_in_constraint_space(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    *,
    stabilization: Stabilization = None,
    **given: Unpack[Loads],
) -> list[Scalar]:
    """Solve M a + b = tau + external for a `(nv,)` by variant 2 of the assembly formulae.

    `stabilization` is for constraints, which this method does not take.
    """
    require_open_tree(tree, FUNCTION)
    require_invertible_inertias(tree, FUNCTION)
    if has_couplings(tree):
        raise ModelError(f'{FUNCTION}: this model couples joints; use method="aba" or model.uncoupled()')
    joints = joint_forces(tree, q, v, tau, **given)

    def inward(
        body: Body, children: tuple[ArticulatedInertia, Force]
    ) -> tuple[tuple[ArticulatedInertia, Force], ConstraintSpaceHandle]:
        X, T, E, _, active, c, p = joints[body]
        I_A, p_A = children[0] + body.inertia, children[1] + p
        handle, I_a, p_a = constraint_space_handle(I_A, p_A, T, E, active, c)  # (1), (2)
        return (X.inverse_apply(I_a), X.inverse_apply(p_a)), handle

    handles, _ = tree.inward(inward, (ArticulatedInertia.zero(), Force.zero()))

    def outward(body: Body, a_parent: Motion) -> tuple[Motion, list[Scalar]]:
        X, T, _, T_a, active, c, _ = joints[body]
        inertia, p_A, Y, z = handles[body]
        a_prime = X.apply(a_parent)
        multipliers = Y.solve([z_k + a_prime.dot(t) for z_k, t in zip(z, T, strict=True)])
        f = active + combine(T, multipliers)
        a = Motion.of(inertia.solve((f - p_A).to_list()))  # (3)
        return a, relative_acceleration(a_prime, a, c, T_a)  # (4)

    return tree.collect(tree.outward(outward, Motion(Vec3.zero(), -tree.gravity)))


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
    model: Model, q: Scalars, handles: Sequence[Handle], *, frame: str = "body", time: Time = None
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
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    handles: Sequence[Handle],
    *,
    frame: str = "body",
    time: Time = None,
) -> list[Scalar]:
    """Return b `(6 h,)`: the acceleration of the handles without forces on them (Eq. 7.10, with tau)."""
    a = forward_dynamics(model, q, v, tau, time=time)
    b: list[Scalar] = []
    for handle in handles:
        rate = jacobian_rate_times_velocity(model, q, v, handle, frame=frame, time=time)
        J = jacobian(model, q, handle, frame=frame, time=time)
        b += [dot(row, a) + r for row, r in zip(J, rate, strict=True)]
    return b


def handle_inertia(Phi: Rows) -> Matrix:
    """Return I = Phi^-1, of handles that can move in every direction (Eq. 7.12)."""
    inverse = factor(Phi)
    return [inverse.solve(e) for e in identity(len(Phi))]
