"""Conversion between Cartesian and generalized forces (Liu & Jain section 6.2).

Legend, in world axes: f_k a force on body k at the point r_k; tau'_k a torque on it, without the moment of
f_k; x_k its centre of mass; tau_k = tau'_k + (r_k - x_k) x f_k. tau^_k is a torque of joint k, in the
parent's axes: R_p tau^_k acts on body k and -R_p tau^_k on its parent. R and D as in `joint_by_joint`.

    Q = sum J'_v,k^T f_k + J_omega,k^T tau'_k             J' at the point of application           (67)
    tau' = (R^T D)^T tau^                                                                          (68)
    Q = J'_v^T f + J^_omega^T tau^                                                                 (69)

The other way the forces are more than the equations, and the shortest are chosen:

    (tau, f) = (J^T)^+ Q = J (J^T J)^+ Q                   at the centres of mass                   (70)
    tau^_k = (J^_omega,k^T)^+ Q_k                          no linear forces, joint by joint         (71)

(J^T J)^+ Q is found in linear time, see `least_squares`: what J makes of it are velocities of the bodies,
read as forces. The inverse of (69) with given points is the same with other weights: |velocity of the
point|^2 for f_k and |omega^_k|^2 for tau^_k.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.cartesian.body_forces import joint_forces
from dalembert.algorithms.cartesian.joint_by_joint import joint_jacobian, turning_columns
from dalembert.algorithms.cartesian.least_squares import least_squares, unit_weights
from dalembert.algorithms.cartesian.maximal import at_center_of_mass
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.mass_centers import require_centers_of_mass
from dalembert.algorithms.pseudo_inverse import symmetric_pseudo_inverse
from dalembert.model.body import Body
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, RigidInertia, SymMat3, Transform, Vec3

__all__ = [
    "body_torques",
    "cartesian_forces",
    "cartesian_forces_at_points",
    "generalized_force",
    "joint_torques",
]

Vectors = Sequence[Sequence[Scalar]]
"""Three scalars a body."""


def generalized_force(
    tree: Tree,
    q: Sequence[Scalar],
    *,
    forces: Vectors | None = None,
    points: Vectors | None = None,
    torques: Vectors | None = None,
    joint_torques: Vectors | None = None,
    time: Scalar | None = None,
) -> list[Scalar]:
    """Return Q `(nv,)` of forces f_k at the points r_k (default: the centres of mass),
    torques tau'_k and tau^_k."""
    if forces is not None and points is None:
        require_centers_of_mass(tree, "generalized_force")
    poses = forward_kinematics(tree, q, time=time)

    def acting(body: Body) -> Force:
        pose = poses[body]
        f = Vec3.zero() if forces is None else pose.R.transposed_times(Vec3.of(forces[body.index]))
        r = body.inertia.com
        if points is not None:
            r = pose.R.transposed_times(Vec3.of(points[body.index]) - pose.p)
        moment = r.cross(f)
        if torques is not None:
            moment = moment + pose.R.transposed_times(Vec3.of(torques[body.index]))
        return Force(moment, f)

    Q = joint_forces(tree, q, PerBody([acting(body) for body in tree.bodies]), time=time)  # (67)
    if joint_torques is None:
        return Q
    turning = [
        [s.angular.dot(Vec3.of(tau)) for s in joint_jacobian(body, q, time=time)]
        for body, tau in zip(tree.bodies, joint_torques, strict=True)
    ]
    return [a + b for a, b in zip(Q, tree.collect(turning), strict=True)]  # (69)


def body_torques(
    tree: Tree, q: Sequence[Scalar], joint_torques: Vectors, *, time: Scalar | None = None
) -> PerBody[Vec3]:
    """Return tau' = (R^T D)^T tau^ (Eq. 68), in world axes:
    the joint's on its body, its opposite on the parent."""
    poses = forward_kinematics(tree, q, time=time)

    def in_world(body: Body) -> Vec3:
        tau = Vec3.of(joint_torques[body.index])
        return tau if body.parent < 0 else poses[body.parent].R @ tau

    def step(body: Body, reactions: Vec3) -> tuple[Vec3, Vec3]:
        tau = in_world(body)
        return tau, tau - reactions

    # What a joint does to its body it does to the parent in reverse, and to no other body.
    return tree.inward(step, Vec3.zero())[0]


def cartesian_forces(
    tree: Tree, q: Sequence[Scalar], tau: Sequence[Scalar], *, time: Scalar | None = None
) -> PerBody[Force]:
    """Return (tau_k, f_k) of every body, in world axes at its centre of mass:
    the shortest solution of Eq. 70."""
    require_centers_of_mass(tree, "cartesian_forces")
    poses = forward_kinematics(tree, q, time=time)
    y = least_squares(tree, q, unit_weights(tree), None, tau, time=time)
    moved = _velocities(tree, q, y, time)

    def as_force(body: Body) -> Force:
        V = at_center_of_mass(body.inertia.com, poses[body], moved[body])
        return Force(V.angular, V.linear)

    return PerBody([as_force(body) for body in tree.bodies])


def cartesian_forces_at_points(
    tree: Tree, q: Sequence[Scalar], tau: Sequence[Scalar], points: Vectors, *, time: Scalar | None = None
) -> tuple[PerBody[Vec3], PerBody[Vec3]]:
    """Return (f_k at the points r_k in world axes, tau^_k in the parents' axes):
    the shortest solution of Eq. 69."""
    poses = forward_kinematics(tree, q, time=time)
    local = [_local(poses[body], Vec3.of(points[body.index])) for body in tree.bodies]
    weights = PerBody([RigidInertia(1.0, r, SymMat3.zero()) for r in local])
    y = least_squares(tree, q, weights, None, tau, turning=True, time=time)
    moved = _velocities(tree, q, y, time)
    forces = [poses[body].R @ moved[body].at(r) for body, r in zip(tree.bodies, local, strict=True)]
    turned = [combination(joint_jacobian(body, q, time=time), body.own_v(y)).angular for body in tree.bodies]
    return PerBody(forces), PerBody(turned)


def joint_torques(
    tree: Tree, q: Sequence[Scalar], tau: Sequence[Scalar], *, time: Scalar | None = None
) -> tuple[PerBody[Vec3], list[Scalar]]:
    """Return tau^_k = (J^_omega,k^T)^+ Q_k in the parents' axes (Eq. 71), and Q - J^_omega^T tau^.

    The rest is the share of the joints' sliding, which torques cannot do; zero where joints only turn.
    """

    def own(body: Body) -> tuple[Vec3, list[Scalar]]:
        J = [s.angular for s in joint_jacobian(body, q, time=time)]
        turning = turning_columns(body.joint)
        Q = list(tau[body.v_slice]) if body.dependence is None else [0.0]
        gram = [[J[i].dot(J[j]) for j in turning] for i in turning]
        y = symmetric_pseudo_inverse(gram).solve([Q[k] for k in turning])
        torque = Vec3.zero()
        for k, x in zip(turning, y, strict=True):
            torque = torque + J[k] * x
        return torque, [Q_k - axis.dot(torque) for Q_k, axis in zip(Q, J, strict=True)]

    solved = [own(body) for body in tree.bodies]
    return PerBody([torque for torque, _ in solved]), tree.collect([rest for _, rest in solved])


def _local(pose: Transform, point: Vec3) -> Vec3:
    """Return a point of the world in body coordinates."""
    return pose.R.transposed_times(point - pose.p)


def _velocities(tree: Tree, q: Sequence[Scalar], y: Sequence[Scalar], time: Scalar | None) -> PerBody[Motion]:
    """Return J_k y in body coordinates, without the motion of rheonomic joints of their own."""

    def step(body: Body, v_parent: Motion) -> tuple[Motion, Motion]:
        X, S, _, _ = body.jcalc(q, None, time)
        v = X.apply(v_parent) + combination(S, body.own_v(y))
        return v, v

    return tree.outward(step, Motion.zero())
