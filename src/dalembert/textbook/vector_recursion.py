"""Recursive Newton-Euler as it was first published, on 3-D vectors (Luh, Walker & Paul 1980; Featherstone
2008 Table 5.2).

Legend, all in the coordinates of F_i: omega_i, omega_i' angular velocity and acceleration of body i; v_i'
the acceleration of the origin of F_i; F_i, N_i net force and moment at the centre of mass c_i; f_i, n_i
force and moment through joint i, at the origin; E = i_E_lambda, r the origin of F_i in F_lambda, z the
joint's axis. The linear velocity v_i appears nowhere.

    omega_i  = E omega + omega_J                                                                    (1)
    omega_i' = E omega' + alpha_J + (E omega) x omega_J                                             (2)
    v_i'     = E (v' + omega' x r + omega x (omega x r)) + 2 (E omega) x u_J + omega_J x u_J + b_J  (3)
    F_i      = m (v_i' + omega_i' x c + omega_i x (omega_i x c))                                    (4)
    N_i      = I omega_i' + omega_i x I omega_i                                                     (5)
    f_i      = F_i - f_i^x + sum over children of E^T f_j                                           (6)
    n_i      = N_i + c x F_i - n_i^x + sum over children of (E^T n_j + r_j x E^T f_j)               (7)

The table is for revolute joints: omega_J = z q', alpha_J = z q'', u_J = b_J = 0, tau = z . n. Prismatic
joints have omega_J = alpha_J = 0, u_J = z q', b_J = z q'', tau = z . f. Both are v_J = (omega_J, u_J) and S
a + c_J = (alpha_J, b_J) of any joint: u_J is the velocity of F_i's origin as seen from body lambda, its
rate as seen from there is omega_J x u_J + b_J, and the frame that turns with omega adds 2 omega x u_J. So
(1) to (7) hold for every joint type, with tau = S^T (n, f).

Term by term, Table 5.1 has v = (omega, v), a = (omega', v' - omega x v), f^B = (N + c x F, F), f = (n, f).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.applied_forces import ExternalForces, body_forces
from dalembert.algorithms.kinematics import require_centers_of_mass
from dalembert.algorithms.open_tree import require_open_tree
from dalembert.model.body import Body, JointMotion
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Vec3


class LuhWalkerPaul(NamedTuple):
    """The results of Table 5.2: tau, and the vectors of each body in its own coordinates.

    `v_dot` is the acceleration of the body's origin less gravity, since the base rises with -g.
    """

    tau: list[Scalar]
    omega: PerBody[Vec3]
    omega_dot: PerBody[Vec3]
    v_dot: PerBody[Vec3]
    F: PerBody[Vec3]
    N: PerBody[Vec3]
    f: PerBody[Vec3]
    n: PerBody[Vec3]


class _Moving(NamedTuple):
    """omega, omega' and v' of one body."""

    omega: Vec3
    omega_dot: Vec3
    v_dot: Vec3


def luh_walker_paul(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> LuhWalkerPaul:
    """Solve M(q) a + b(q, v) = tau + external for tau, on 3-D vectors: Table 5.2, for every joint type."""
    require_open_tree(tree, "luh_walker_paul")
    require_centers_of_mass(tree, "luh_walker_paul")
    f_x = body_forces(tree, q, external_forces, external_frame, time)

    def accelerate(body: Body, parent: _Moving) -> tuple[_Moving, tuple[JointMotion, _Moving, Vec3, Vec3]]:
        joint = body.jcalc(q, v, time)
        moving = _next(parent, joint, combination(joint.S, body.own_v(a)) + joint.c_J)
        m, c, I = body.inertia.mass, body.inertia.com, body.inertia.inertia_at_com
        omega, omega_dot, v_dot = moving
        F = (v_dot + omega_dot.cross(c) + omega.cross(omega.cross(c))) * m  # (4)
        N = I @ omega_dot + omega.cross(I @ omega)  # (5)
        return moving, (joint, moving, F, N)

    moved = tree.outward(accelerate, _Moving(Vec3.zero(), Vec3.zero(), -tree.gravity))

    def transmit(
        body: Body, children: tuple[Vec3, Vec3]
    ) -> tuple[tuple[Vec3, Vec3], tuple[list[Scalar], Vec3, Vec3]]:
        joint, _, F, N = moved[body]
        n_children, f_children = children
        f = F + f_children  # (6)
        n = N + body.inertia.com.cross(F) + n_children  # (7)
        if f_x is not None:
            f, n = f - f_x[body].linear, n - f_x[body].angular
        tau = [s.dot(Force(n, f)) for s in joint.S]
        tau = [t + I * x for t, I, x in zip(tau, body.armature, body.own_v(a), strict=True)]
        f_parent = joint.X.rotate_to_parent(f)
        return (joint.X.rotate_to_parent(n) + joint.X.p.cross(f_parent), f_parent), (tau, f, n)

    sent, _ = tree.inward(transmit, (Vec3.zero(), Vec3.zero()))
    return LuhWalkerPaul(
        tau=tree.collect([tau for tau, _, _ in sent]),
        omega=PerBody([moving.omega for _, moving, _, _ in moved]),
        omega_dot=PerBody([moving.omega_dot for _, moving, _, _ in moved]),
        v_dot=PerBody([moving.v_dot for _, moving, _, _ in moved]),
        F=PerBody([F for _, _, F, _ in moved]),
        N=PerBody([N for _, _, _, N in moved]),
        f=PerBody([f for _, f, _ in sent]),
        n=PerBody([n for _, _, n in sent]),
    )


def _next(parent: _Moving, joint: JointMotion, a_J: Motion) -> _Moving:
    """Propagate across a joint with velocity (omega_J, u_J) and acceleration (alpha_J, b_J)."""
    E, r = joint.X.rotate_to_child, joint.X.p
    omega_J, u_J = joint.v_J.angular, joint.v_J.linear
    omega, omega_dot, v_dot = parent
    carried = E(omega)
    origin = E(v_dot + omega_dot.cross(r) + omega.cross(omega.cross(r)))
    return _Moving(
        carried + omega_J,  # (1)
        E(omega_dot) + a_J.angular + carried.cross(omega_J),  # (2)
        origin + carried.cross(u_J) * 2.0 + omega_J.cross(u_J) + a_J.linear,  # (3)
    )
