"""Generalized velocities from relative ones, one joint at a time (Liu & Jain section 6.1, Eqs 62 to 66).

D subtracts from every body its parent: 1 on the diagonal, -1 at the parent; R = blockdiag(R_p(k)).

    omega^ = R^T D omega,    omega^_k = J^_omega,k v_k,    v_k = (J^_omega,k)^+ omega^_k            (65, 66)

Each pseudo-inverse is of one joint's size. Rotations suffice where joints only turn. In mixed systems they
are found first, and the translations of the joint from what they leave of its linear velocity. That asks
for turning columns J^_omega whose rank is their number, which all joints have but those that chain parallel
axes, as a `Composite` may. Taking the whole relative velocity at once admits every joint: v_k = S_k^+ (V_k
- X V_p).

Every v that the joints allow is recovered. Of one that they do not, each joint takes what it can of the
given relative motion; `generalized_velocity` distributes the error over all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dalembert.algorithms.cartesian.maximal import from_maximal
from dalembert.algorithms.cartesian.velocities import GeneralizedVelocity, residual_of
from dalembert.algorithms.dense import identity
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.pseudo_inverse import symmetric_pseudo_inverse
from dalembert.model.body import Body, JointMotion
from dalembert.model.joints import Joint
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, is_one, is_zero
from dalembert.spatial import Motion, Transform, Vec3

__all__ = [
    "connectivity_matrix",
    "generalized_velocity_joint_by_joint",
    "generalized_velocity_rotations_first",
    "joint_jacobian",
    "relative_angular_velocities",
    "turning_columns",
]


def connectivity_matrix(parents: Sequence[int]) -> list[list[float]]:
    """Return D `(n_bodies, n_bodies)`, each entry for a 3x3 block:
    1 on the diagonal, -1 at the parent (Eq. 64)."""
    count = len(parents)
    D = identity(count)
    for k, parent in enumerate(parents):
        if parent >= 0:
            D[k][parent] = -1.0
    return D


def relative_angular_velocities(
    tree: Tree, q: Sequence[Scalar], omegas: Sequence[Vec3], *, time: Scalar | None = None
) -> PerBody[Vec3]:
    """Return omega^ = R^T D omega: relative to the parents, in the parents' axes; omega in the world's."""
    poses = forward_kinematics(tree, q, time=time)

    def relative(body: Body) -> Vec3:
        if body.parent < 0:
            return omegas[body.index]
        return poses[body.parent].R.transposed_times(omegas[body.index] - omegas[body.parent])

    return PerBody([relative(body) for body in tree.bodies])


def joint_jacobian(body: Body, q: Sequence[Scalar], *, time: Scalar | None = None) -> list[Motion]:
    """Return the columns (J^_omega, J^_v) of a joint:
    its motion per unit of v, in the parent's axes (Eq. 52).

    The linear part is the velocity of the body's origin relative to the parent.
    """
    X, S, _, _ = body.jcalc(q, None, time)
    return [Motion(X.rotate_to_parent(s.angular), X.rotate_to_parent(s.linear)) for s in S]


def turning_columns(joint: Joint) -> list[int]:
    """Return the columns of S that turn; the others only slide.
    The choice does not depend on the position."""
    S = joint.subspace(joint.neutral(), 0.0 if joint.time_dependent else None)
    return [k for k, s in enumerate(S) if not all(is_zero(x) for x in s.angular)]


def generalized_velocity_joint_by_joint(
    tree: Tree,
    q: Sequence[Scalar],
    body_velocities: Sequence[Sequence[Scalar]],
    *,
    time: Scalar | None = None,
) -> GeneralizedVelocity:
    """Return v_k = S_k^+ (V_k - X V_p), for every joint type: m pseudo-inverses of constant size."""

    def own(body: Body, joint: JointMotion, v_J: Motion) -> list[Scalar]:
        gram = [[_six(a, b) for b in joint.S] for a in joint.S]
        regular = is_one(body.joint.singularity_measure(body.own_q(q), time))
        return symmetric_pseudo_inverse(gram, regular=regular).solve([_six(s, v_J) for s in joint.S])

    return _each_joint(tree, q, body_velocities, time, own)


def generalized_velocity_rotations_first(
    tree: Tree,
    q: Sequence[Scalar],
    body_velocities: Sequence[Sequence[Scalar]],
    *,
    time: Scalar | None = None,
) -> GeneralizedVelocity:
    """Return v_k = (J^_omega)^+ omega^_k of the columns that turn (Eq. 66),
    then (J^_v)^+ of those that slide."""

    def own(body: Body, joint: JointMotion, v_J: Motion) -> list[Scalar]:
        omega_hat, u = joint.X.rotate_to_parent(v_J.angular), joint.X.rotate_to_parent(v_J.linear)
        J = joint_jacobian(body, q, time=time)
        turning = turning_columns(body.joint)
        sliding = [k for k in range(len(J)) if k not in turning]
        rates: list[Scalar] = [0.0] * len(J)
        for k, rate in zip(
            turning, _vectors_inverse([J[k].angular for k in turning], omega_hat), strict=True
        ):
            rates[k] = rate
            u = u - J[k].linear * rate
        for k, rate in zip(sliding, _vectors_inverse([J[k].linear for k in sliding], u), strict=True):
            rates[k] = rate
        return rates

    return _each_joint(tree, q, body_velocities, time, own)


def _each_joint(
    tree: Tree,
    q: Sequence[Scalar],
    body_velocities: Sequence[Sequence[Scalar]],
    time: Scalar | None,
    own: Callable[[Body, JointMotion, Motion], list[Scalar]],
) -> GeneralizedVelocity:
    """Return v from `own(body, joint, S v)` of each joint by itself, and the residual velocities."""
    poses = forward_kinematics(tree, q, time=time)
    given = _in_body_coordinates(tree, poses, body_velocities)
    per_body = []
    for body in tree.bodies:
        joint = body.jcalc(q, None, time)
        per_body.append(own(body, joint, _across(body, joint, given)))
    v = _independent(tree, per_body)
    return GeneralizedVelocity(v, residual_of(tree, q, v, body_velocities, time))


def _in_body_coordinates(
    tree: Tree, poses: PerBody[Transform], body_velocities: Sequence[Sequence[Scalar]]
) -> PerBody[Motion]:
    return PerBody(
        [
            from_maximal(body.inertia.com, poses[body], Motion.of(V))
            for body, V in zip(tree.bodies, body_velocities, strict=True)
        ]
    )


def _across(body: Body, joint: JointMotion, given: PerBody[Motion]) -> Motion:
    """Return the joint velocity S v = V_k - X V_p, less the motion of a rheonomic joint at v = 0."""
    relative = given[body] if body.parent < 0 else given[body] - joint.X.apply(given[body.parent])
    return relative - joint.v_J


def _independent(tree: Tree, per_body: Sequence[list[Scalar]]) -> list[Scalar]:
    """Return v from the independent joints; joints that follow them by couplings are ignored."""
    v: list[Scalar] = [0.0] * tree.nv
    for body, values in zip(tree.bodies, per_body, strict=True):
        if body.dependence is None:
            v[body.v_slice] = values
    return v


def _vectors_inverse(columns: Sequence[Vec3], x: Vec3) -> list[Scalar]:
    """Return the columns' pseudo-inverse times x."""
    gram = [[a.dot(b) for b in columns] for a in columns]
    return symmetric_pseudo_inverse(gram).solve([a.dot(x) for a in columns])


def _six(a: Motion, b: Motion) -> Scalar:
    """Return a^T b, both in the same coordinates."""
    return a.angular.dot(b.angular) + a.linear.dot(b.linear)
