"""The articulated-body algorithm (Featherstone 2008 Table 7.1), O(n), and the inertias that it is made of.

A handle obeys f = I^A a + p^A (Eq. 7.2): body i with all that it carries, seen from its joint of subspace S.

    I^A = I + sum of the children's X^T I^a X,   p^A = p + sum of the children's X^T p^a  (7.21, 7.22)
    U = I^A S,   D = S^T U + armature,   u = tau - S^T p^A,   K = U D^-1                  (7.43 to 7.45)
    I^a = I^A - K U^T,   p^a = p^A + I^a c + K u                                          (7.47, 7.48)
    dv/dt = D^-1 u - K^T a',   a = a' + S dv/dt,   a' = i_X_lambda a_lambda + c           (7.50)

Eq. 7.40 and Table 7.1 misprint I^A c for I^a c. The common case is that the columns of S are coordinate
directions and there is no armature. Then S^T K = 1 and S^T I^a = 0 hold exactly, entry by entry: in the
joint's own rows

    K = 1,   I^a = 0,   p^a = tau,   a = D^-1 u - (the other rows of K)^T a'             (*)

are written down, not computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from dalembert.algorithms.dense import SymmetricFactor, dot, factor, symmetric_from_lower, transpose
from dalembert.errors import ModelError
from dalembert.model.body import Body, JointMotion
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time, is_zero, literal
from dalembert.spatial import ArticulatedInertia, BodyAcceleration, Force, Motion, Vec3

# The three passes (Featherstone 2008 Table 7.1). The base accelerates by -gravity.

Moved = tuple[JointMotion, Motion, Force]
"""Pass 1, of each body: the joint's motion, the velocity-product acceleration c, the bias force p."""


def articulated_body_passes(tree: Tree, moved: PerBody[Moved], tau: Scalars) -> list[Scalar]:
    """Return dv/dt `(nv,)` by passes 2 and 3, from pass 1: `velocity_products` or its spatial form."""

    def eliminate(body: Body, carried: tuple[ArticulatedInertia, Force]) -> Any:
        (X, S, _, _), c, p = moved[body]
        I_A, p_A = carried[0] + body.inertia, carried[1] + p
        own_tau = body.own_v(tau)
        try:
            joint = eliminate_joint(I_A, S, body.armature)  # U, D, K, I^a
        except ZeroDivisionError:
            raise ModelError(
                f'forward_dynamics: joint "{body.joint_name}" has a freedom along which nothing with inertia '
                "moves; give what it carries mass and moments of inertia, or the joint an armature"
            ) from None
        u = joint.joint_force(own_tau, p_A)
        p_a = joint.bias_force(p_A, c, own_tau, u)
        return (X.inverse_apply(joint.I_a), X.inverse_apply(p_a)), (joint, u)

    joints, _ = tree.inward(eliminate, (ArticulatedInertia.zero(), Force.zero()))

    def accelerate(body: Body, a_parent: Motion) -> tuple[Motion, list[Scalar]]:
        (X, _, _, _), c, _ = moved[body]
        joint, u = joints[body]
        vdot, a = joint.accelerations(u, X.apply(a_parent) + c)
        return a, vdot

    return tree.collect(tree.outward(accelerate, Motion(Vec3.zero(), -tree.gravity)))


# Pass 1: what the velocities alone ask for. Two observers give the same equations of motion:
#
#     co-moving   c_i = the (alpha, linear) of body i when its parent has the angular velocity omega_lambda
#                 and no acceleration,   p_i = omega x* I omega - f_i^x;   linear velocities do not occur
#     spatial     c_i = c_J + v_i x v_J,   p_i = v_i x* I v_i - f_i^x


def velocity_products(
    tree: Tree, q: Scalars, v: Scalars, f_x: PerBody[Force] | None, time: Time
) -> PerBody[Moved]:
    """Return c and p relative to a co-moving observer."""
    still = Vec3.zero()

    def step(body: Body, parent: BodyAcceleration) -> tuple[BodyAcceleration, Moved]:
        joint = body.jcalc(q, v, time)
        A = parent.across_joint(joint.X, joint.v_J, joint.c_J)
        spin, I = BodyAcceleration(A.omega, still, still), body.inertia
        p = Force(A.omega.cross(I.inertia @ A.omega), spin.tensor @ I.h)  # omega x* I omega
        return spin, (joint, Motion(A.alpha, A.linear), p if f_x is None else p - f_x[body])

    return tree.outward(step, BodyAcceleration(still, still, still))


def spatial_velocity_products(
    tree: Tree, q: Scalars, v: Scalars, f_x: PerBody[Force] | None, time: Time
) -> PerBody[Moved]:
    """Return c and p with spatial velocities in body coordinates, as in the book."""

    def step(body: Body, v_parent: Motion) -> tuple[Motion, Moved]:
        joint = body.jcalc(q, v, time)
        v_i = joint.X.apply(v_parent) + joint.v_J
        p = v_i.cross(body.inertia * v_i)
        return v_i, (joint, joint.c_J + v_i.cross(joint.v_J), p if f_x is None else p - f_x[body])

    return tree.outward(step, Motion.zero())


# One joint taken out of the equations of motion: Eqs 7.43 to 7.50.


def eliminate_joint(I_A: ArticulatedInertia, S: Sequence[Motion], armature: Scalars) -> JointElimination:
    """Factor the joint's own inertia D and form K and I^a (Eqs 7.43 to 7.47)."""
    rows = coordinate_rows(S, armature)
    U_columns = [I_A * s for s in S]
    D = factor(joint_inertia(S, U_columns, armature))
    U = transpose([column.to_list() for column in U_columns]) if S else [[]] * 6
    K = [[float(row == r) for row in rows] if r in rows else D.solve(U[r]) for r in range(6)]
    A = I_A.matrix()

    def entry(i: int, j: int) -> Scalar:
        if i in rows or j in rows:
            return 0.0  # (*)
        x = A[i][j]
        for K_ik, U_jk in zip(K[i], U[j], strict=True):
            x = x - K_ik * U_jk
        return x

    return JointElimination(tuple(S), D, K, ArticulatedInertia.from_upper(entry), rows)


def joint_inertia(S: Sequence[Motion], U: Sequence[Force], armature: Scalars) -> list[list[Scalar]]:
    """Return S^T U + diag(armature) for U = I S; each product of the lower triangle is formed once."""
    lower = [[S[j].dot(U[i]) for j in range(i + 1)] for i in range(len(S))]
    for i, m in enumerate(armature):
        lower[i][i] = lower[i][i] + m
    return symmetric_from_lower(lower)


def coordinate_rows(S: Sequence[Motion], armature: Scalars) -> tuple[int, ...]:
    """Return the coordinate along which each column of S points; empty unless all do, without armature."""
    if not all(is_zero(m) for m in armature):
        return ()
    rows = []
    for s in S:
        values = [literal(x) for x in s.to_list()]
        if values.count(0.0) != 5 or values.count(1.0) != 1:
            return ()
        rows.append(values.index(1.0))
    return tuple(rows)


@final
@dataclass(frozen=True, slots=True)
class JointElimination:
    """A joint taken out of the equations of motion: what its parent sees, and later its acceleration."""

    S: tuple[Motion, ...]
    D: SymmetricFactor
    K: list[list[Scalar]]
    I_a: ArticulatedInertia
    rows: tuple[int, ...]

    def joint_force(self, tau: Scalars, p_A: Force) -> list[Scalar]:
        """Return u = tau - S^T p^A (Eq. 7.45)."""
        return [t - s.dot(p_A) for t, s in zip(tau, self.S, strict=True)]

    def bias_force(self, p_A: Force, c: Motion, tau: Scalars, u: Scalars) -> Force:
        """Return p^a = p^A + I^a c + K u (Eq. 7.48)."""
        total = (p_A + self.I_a * c).to_list()
        p_a = [x + dot(self.K[r], u) if u else x for r, x in enumerate(total)]
        for t, r in zip(tau, self.rows, strict=bool(self.rows)):
            p_a[r] = t
        return Force.of(p_a)

    def accelerations(self, u: Scalars, a_prime: Motion) -> tuple[list[Scalar], Motion]:
        """Return dv/dt of the joint and a of the body (Eq. 7.50), from a' = i_X_lambda a_lambda + c."""
        e = self.D.solve(u)
        a = a_prime.to_list()
        for r, x in enumerate(a):
            if r not in self.rows:
                e = [e_k - k * x for e_k, k in zip(e, self.K[r], strict=True)]
        if not self.rows:
            for s, x in zip(self.S, e, strict=True):
                a_prime = a_prime + s * x
            return e, a_prime
        vdot = [e_k - a[r] for e_k, r in zip(e, self.rows, strict=True)]
        for e_k, r in zip(e, self.rows, strict=True):
            a[r] = e_k
        return vdot, Motion.of(a)


def assemble(
    I_1: ArticulatedInertia,
    p_1: Force,
    I_2: ArticulatedInertia,
    p_2: Force,
    S: Sequence[Motion],
    c: Motion,
    tau: Scalars,
) -> tuple[ArticulatedInertia, Force]:
    """Return (I^A, p^A) of handle 1 with handle 2 jointed to it (Eqs 7.19, 7.20), in one frame."""
    joint = eliminate_joint(I_2, S, [0.0] * len(S))
    u = joint.joint_force(tau, p_2)
    return I_1 + joint.I_a, p_1 + joint.bias_force(p_2, c, tau, u)
