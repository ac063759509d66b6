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

from typing import NamedTuple, Unpack

from dalembert.algorithms.applied_forces import Loads, body_forces
from dalembert.algorithms.kinematics import require_centers_of_mass
from dalembert.algorithms.open_tree import require_open_tree
from dalembert.model.body import Body, JointMotion
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars
from dalembert.spatial import Force, Vec3


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


def luh_walker_paul(tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]) -> LuhWalkerPaul:
    """Solve M(q) a + b(q, v) = tau + external for tau, on 3-D vectors: Table 5.2, for every joint type."""
    require_open_tree(tree, "luh_walker_paul")
    require_centers_of_mass(tree, "luh_walker_paul")
    f_x = body_forces(tree, q, **given)

    Moving = tuple[Vec3, Vec3, Vec3]

    def accelerate(body: Body, parent: Moving) -> tuple[Moving, tuple[JointMotion, Moving, Vec3, Vec3]]:
        joint = X, S, v_J, c_J = body.jcalc(q, v, given.get("time"))
        a_J = combination(S, body.own_v(a)) + c_J
        E, r, omega_J, u_J = X.rotate_to_child, X.p, v_J.angular, v_J.linear
        omega_p, omega_p_dot, v_p_dot = parent
        carried = E(omega_p)
        omega = carried + omega_J  # (1)
        omega_dot = E(omega_p_dot) + a_J.angular + carried.cross(omega_J)  # (2)
        origin = E(v_p_dot + omega_p_dot.cross(r) + omega_p.cross(omega_p.cross(r)))
        v_dot = origin + carried.cross(u_J) * 2.0 + omega_J.cross(u_J) + a_J.linear  # (3)
        m, c, I = body.inertia.mass, body.inertia.com, body.inertia.inertia_at_com
        F = (v_dot + omega_dot.cross(c) + omega.cross(omega.cross(c))) * m  # (4)
        N = I @ omega_dot + omega.cross(I @ omega)  # (5)
        moving = omega, omega_dot, v_dot
        return moving, (joint, moving, F, N)

    moved = tree.outward(accelerate, (Vec3.zero(), Vec3.zero(), -tree.gravity))

    def transmit(body: Body, children: Force) -> tuple[Force, tuple[list[Scalar], Force]]:
        (X, S, _, _), _, F, N = moved[body]
        force = Force(N + body.inertia.com.cross(F), F) + children  # (6), (7)
        if f_x is not None:
            force = force - f_x[body]
        tau = [s.dot(force) + I * x for s, I, x in zip(S, body.armature, body.own_v(a), strict=True)]
        f_p = X.rotate_to_parent(force.linear)
        return Force(X.rotate_to_parent(force.angular) + X.p.cross(f_p), f_p), (tau, force)

    sent, _ = tree.inward(transmit, Force.zero())
    return LuhWalkerPaul(
        tau=tree.collect([tau for tau, _ in sent]),
        omega=PerBody([omega for _, (omega, _, _), _, _ in moved]),
        omega_dot=PerBody([omega_dot for _, (_, omega_dot, _), _, _ in moved]),
        v_dot=PerBody([v_dot for _, (_, _, v_dot), _, _ in moved]),
        F=PerBody([F for _, _, F, _ in moved]),
        N=PerBody([N for _, _, _, N in moved]),
        f=PerBody([force.linear for _, force in sent]),
        n=PerBody([force.angular for _, force in sent]),
    )
