"""Least squares over the velocities of a tree, in linear time.

Which v makes the bodies' velocities J_k v come nearest to given ones? The normal equations are

    (sum J_k^T W_k J_k + B) y = sum J_k^T p_k + Q                                                     (1)

with a weight W_k on each body and B_k on each joint. They are the equations of motion of a tree at rest whose
bodies have the inertias W_k and its joints the armature B_k, under the forces p_k and Q: the articulated-body
algorithm solves them (Featherstone 2008 section 7.3), in one inward and one outward pass:

    U = I^A S,  D = S^T U + B,  y_k = D^+ (S^T p^A + Q_k - U^T X v_p),  v_k = X v_p + S y_k
    I^a = I^A - U D^+ U^T,  p^a = p^A - U D^+ (S^T p^A + Q_k)

The weight of |omega_k|^2 + |v_k|^2, v_k at the centre of mass, is the inertia of a body of unit mass and unit
inertia there. Where S loses rank, null(D) = null(S), and the pseudo-inverses of the joints' D are that of the
whole matrix: nothing else moves no body. Where joints are coupled the matrix is formed and factored.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.dense import Matrix, dot
from dalembert.algorithms.jacobians import all_jacobians
from dalembert.algorithms.open_tree import has_couplings
from dalembert.algorithms.pseudo_inverse import PseudoInverse, symmetric_pseudo_inverse
from dalembert.algorithms.sparsity import velocity_places
from dalembert.model.body import Body, JointMotion
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, is_one
from dalembert.spatial import ArticulatedInertia, Force, Motion, RigidInertia, SymMat3

__all__ = ["least_squares", "unit_weights"]


def unit_weights(tree: Tree) -> PerBody[RigidInertia]:
    """Return the inertia whose energy is |omega|^2 + |velocity of the centre of mass|^2, for each body."""
    return PerBody([RigidInertia(1.0, body.inertia.com, SymMat3.identity()) for body in tree.bodies])


def least_squares(
    tree: Tree,
    q: Sequence[Scalar],
    weights: PerBody[RigidInertia],
    forces: PerBody[Force] | None,
    Q: Sequence[Scalar] | None,
    *,
    turning: bool = False,
    time: Scalar | None = None,
) -> list[Scalar]:
    """Return y `(nv,)` of Eq. (1), the shortest where it is not unique; `turning`: B_k weighs |omega_J|^2."""
    if has_couplings(tree):
        return _by_matrix(tree, q, weights, forces, Q, turning, time)

    def inward(
        body: Body, beyond: tuple[ArticulatedInertia, Force]
    ) -> tuple[
        tuple[ArticulatedInertia, Force], tuple[JointMotion, list[Force], PseudoInverse, list[Scalar]]
    ]:
        joint = X, S, _, _ = body.jcalc(q, None, time)
        I_A = beyond[0] + weights[body]
        p_A = beyond[1] if forces is None else beyond[1] + forces[body]
        U = [I_A * s for s in S]
        D = symmetric_pseudo_inverse(_joint_matrix(S, U, turning), regular=_regular(body, q, time))
        u = [s.dot(p_A) for s in S]
        if Q is not None:
            u = [x + own for x, own in zip(u, body.own_v(Q), strict=True)]
        I_a, p_a = _seen_from_parent(I_A, p_A, U, D, u)
        return (X.inverse_apply(I_a), X.inverse_apply(p_a)), (joint, U, D, u)

    gathered, _ = tree.inward(inward, (ArticulatedInertia.zero(), Force.zero()))

    def outward(body: Body, v_parent: Motion) -> tuple[Motion, list[Scalar]]:
        (X, S, _, _), U, D, u = gathered[body]
        carried = X.apply(v_parent)
        y = D.solve([x - f.dot(carried) for x, f in zip(u, U, strict=True)])
        return carried + combination(S, y), y

    return tree.collect(tree.outward(outward, Motion.zero()))


def _regular(body: Body, q: Sequence[Scalar], time: Scalar | None) -> bool:
    """Return whether S has full rank at every q, by the kind of joint."""
    return is_one(body.joint.singularity_measure(body.own_q(q), time))


def _joint_matrix(S: Sequence[Motion], U: Sequence[Force], turning: bool) -> Matrix:
    """Return D = S^T U + B."""
    return [
        [
            s.dot(u) + s.angular.dot(other.angular) if turning else s.dot(u)
            for u, other in zip(U, S, strict=True)
        ]
        for s in S
    ]


def _seen_from_parent(
    I_A: ArticulatedInertia, p_A: Force, U: Sequence[Force], D: PseudoInverse, u: Sequence[Scalar]
) -> tuple[ArticulatedInertia, Force]:
    """Return (I^a, p^a): the body with its joint free."""
    if not U:
        return I_A, p_A
    columns = [f.to_list() for f in U]
    K = [D.solve([column[r] for column in columns]) for r in range(6)]
    A = I_A.matrix()
    I_a = ArticulatedInertia.from_upper(lambda i, j: A[i][j] - dot(K[i], [column[j] for column in columns]))
    p = [x - dot(row, u) for x, row in zip(p_A.to_list(), K, strict=True)]
    return I_a, Force.of(p)


def _by_matrix(
    tree: Tree,
    q: Sequence[Scalar],
    weights: PerBody[RigidInertia],
    forces: PerBody[Force] | None,
    Q: Sequence[Scalar] | None,
    turning: bool,
    time: Scalar | None,
) -> list[Scalar]:
    """Solve Eq. (1) with its matrix formed from Jacobians in body coordinates."""
    n = tree.nv
    A: Matrix = [[0.0] * n for _ in range(n)]
    b: list[Scalar] = [0.0] * n if Q is None else list(Q)
    for body, J in zip(tree.bodies, all_jacobians(tree, q, time=time), strict=True):  # type: ignore[arg-type]
        columns = [Motion.of([row[j] for row in J]) for j in range(n)]
        momenta = [weights[body] * s for s in columns]
        for i, s in enumerate(columns):
            A[i] = [x + s.dot(h) for x, h in zip(A[i], momenta, strict=True)]
            b[i] = b[i] if forces is None else b[i] + s.dot(forces[body])
        for i, j, x in _turning(body, q, time) if turning else ():
            A[i][j] = A[i][j] + x
    return symmetric_pseudo_inverse(A).solve(b)


def _turning(body: Body, q: Sequence[Scalar], time: Scalar | None) -> list[tuple[int, int, Scalar]]:
    """Return the entries of B_k at their places in v."""
    S = body.jcalc(q, None, time).S
    own = [(places, s.angular) for places, s in zip(velocity_places(body), S, strict=True)]
    return [
        (i, j, a.dot(b) * (ratio_i * ratio_j))
        for places_i, a in own
        for places_j, b in own
        for i, ratio_i in places_i
        for j, ratio_j in places_j
    ]
