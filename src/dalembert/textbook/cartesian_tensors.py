"""Inverse dynamics with Cartesian tensors (Balafoutis & Patel 1991), for trees, as Guenter & Rose 2000 print
it, with their misprints corrected.

Legend, all in the coordinates of body i: A turns coordinates of body i into those of its parent; omega,
omega' angular velocity and acceleration; Omega the tensor of tensors.py; s'' and r'' the accelerations of
the body's origin and centre of mass; s the body's origin in its parent, r its centre of mass from its own
origin; F, M net force and moment at the centre of mass; f, eta force and moment through the joint, at the
body's origin; z the joint's axis. Quantities without an index are those of body i, _p those of its parent.

    omega  = A^T omega_p + z q'                                                                     (1)
    omega' = A^T omega'_p + (A^T omega_p) x z q' + z q''                                            (2)
    Omega  = dual(omega') + dual(omega) dual(omega)                                                 (3)
    s''    = A^T (s''_p + Omega_p s)                                                                (4)
    r''    = s'' + Omega r                                                                          (5)
    F      = m r'',   dual(M) = Omega J - (Omega J)^T                                               (6)
    f      = F + sum over children of A f                                                           (7)
    eta    = r x F + M + sum over children of (A eta + s x A f)                                     (8)
    tau    = z . eta                                                                                (9)

The base stands still and s'' of it is -g: a link that is held up needs a force upward. The report prints
+g, the parent's indices in (3), and s x f without A in (8).

The report is for hinges. Any joint has the velocity (omega_J, u_J) = S q' and the acceleration (alpha_J,
b_J) = S q'' + c_J, for a hinge (z q', 0) and (z q'', 0). They take the place of z q' and z q'' in (1) and
(2); the origin moves relative to the parent, which adds to (4) Coriolis's and the joint's own acceleration,

    s''    = A^T (s''_p + Omega_p s) + (A^T omega_p + omega) x u_J + b_J                            (4')
    tau    = S^T (eta, f)                                                                           (9')
"""

from __future__ import annotations

from typing import NamedTuple, Unpack, overload

from dalembert.algorithms.applied_forces import Loads, body_forces
from dalembert.algorithms.kinematics import require_centers_of_mass
from dalembert.algorithms.open_tree import require_open_tree
from dalembert.model.body import Body, JointMotion
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars
from dalembert.spatial import Force, Mat3, Motion, Placement, RigidInertia, SymMat3, Vec3

# Cartesian tensors of rotation: the skew matrix of a vector, Euler's inertia tensor, the tensor of angular
# acceleration (Balafoutis & Patel 1991; Guenter & Rose 2000, section 1).
#
# With I_c the inertia about the centre of mass and omega the angular velocity of a body,
#
#     J_c   = 1/2 tr(I_c) 1 - I_c                      Euler's tensor, the integral of r r^T dm            (1)
#     Omega = dual(omega') + dual(omega) dual(omega)   r'' = Omega r of every vector r fixed in the body   (2)
#     dual(I_c omega' + omega x I_c omega) = Omega J_c - (Omega J_c)^T                                     (3)


@overload
def dual(x: Vec3) -> Mat3: ...
@overload
def dual(x: Mat3) -> Vec3: ...
def dual(x: Vec3 | Mat3) -> Mat3 | Vec3:
    """Return the skew matrix of a vector, dual(v) w = v x w, or the vector of a skew matrix."""
    if isinstance(x, Vec3):
        return x.skew()
    return Vec3(x.zy, x.xz, x.yx)


def euler_tensor(I_c: SymMat3) -> SymMat3:
    """Return J_c = 1/2 tr(I_c) 1 - I_c [kg m^2] (1)."""
    half = I_c.trace() * 0.5
    return SymMat3(half - I_c.xx, half - I_c.yy, half - I_c.zz, -I_c.xy, -I_c.xz, -I_c.yz)


def acceleration_tensor(omega: Vec3, omega_dot: Vec3) -> Mat3:
    """Return Omega = dual(omega') + dual(omega) dual(omega) [1/s^2] (2)."""
    squared: Mat3 = dual(omega) @ dual(omega)
    return dual(omega_dot) + squared


def acceleration_tensor_rate(omega: Vec3, d_omega: Vec3, d_omega_dot: Vec3) -> Mat3:
    """Return dOmega = dual(d omega') + dual(d omega) dual(omega) + (dual(d omega) dual(omega))^T."""
    turned: Mat3 = dual(d_omega) @ dual(omega)
    return dual(d_omega_dot) + turned + turned.transpose()


def moment_of(Omega: Mat3, J: SymMat3) -> Vec3:
    """Return M of dual(M) = Omega J - (Omega J)^T [N m] (3): Euler's equation, without a product of matrices.

    It is linear in Omega, so that it also takes dOmega to dM.
    """
    W = Omega
    return Vec3(
        J.yy * W.zy - J.zz * W.yz + J.yz * (W.zz - W.yy) + J.xy * W.zx - J.xz * W.yx,
        J.zz * W.xz - J.xx * W.zx + J.xz * (W.xx - W.zz) + J.yz * W.xy - J.xy * W.zy,
        J.xx * W.yx - J.yy * W.xy + J.xy * (W.yy - W.xx) + J.xz * W.yz - J.yz * W.xz,
    )


class Moving(NamedTuple):
    """omega, omega', Omega and s'' of a body, or their derivatives along one variable."""

    omega: Vec3
    omega_dot: Vec3
    Omega: Mat3
    s_ddot: Vec3


class Carried(NamedTuple):
    """The motion of the parent in child axes: A^T omega_p, A^T omega'_p, A^T (s''_p + Omega_p s)."""

    omega: Vec3
    omega_dot: Vec3
    s_ddot: Vec3


class NetForce(NamedTuple):
    """r'' of the centre of mass, and F and M there; or their derivatives along one variable."""

    r_ddot: Vec3
    F: Vec3
    M: Vec3

    def at_origin(self, r: Vec3) -> Force:
        """Return (r x F + M, F): the force at the body's origin, part of (7) and (8)."""
        return Force(r.cross(self.F) + self.M, self.F)


class BalafoutisPatel(NamedTuple):
    """tau `(nv,)`, and the vectors of each body in its own coordinates; `s_ddot` is less gravity."""

    tau: list[Scalar]
    moving: PerBody[Moving]
    net: PerBody[NetForce]
    f: PerBody[Vec3]
    eta: PerBody[Vec3]


def balafoutis_patel(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]
) -> BalafoutisPatel:
    """Solve M(q) a + b(q, v) = tau + external for tau `(nv,)` [N m or N], for trees of every joint type.

    Guenter & Rose 2000, "Recursive dynamics equations" and "Backward recursive equations", corrected;
    armature is ours.
    """
    require_open_tree(tree, "balafoutis_patel")
    require_centers_of_mass(tree, "balafoutis_patel")
    f_x = body_forces(tree, q, **given)

    def accelerate(body: Body, parent: Moving) -> tuple[Moving, tuple[JointMotion, Moving, NetForce]]:
        joint = body.jcalc(q, v, given.get("time"))
        a_J = combination(joint.S, body.own_v(a)) + joint.c_J
        moving = across_joint(carried_over(parent, joint.X), joint.v_J, a_J)
        return moving, (joint, moving, net_force(body.inertia, moving))

    moved = tree.outward(accelerate, base_motion(tree))

    def transmit(body: Body, children: Force) -> tuple[Force, tuple[list[Scalar], Force]]:
        joint, _, net = moved[body]
        force = net.at_origin(body.inertia.com) + children  # (7), (8)
        if f_x is not None:
            force = force - f_x[body]
        armatures = zip(joint.S, body.armature, body.own_v(a), strict=True)
        tau = [s.dot(force) + I * x for s, I, x in armatures]  # (9')
        return joint.X.inverse_apply(force), (tau, force)

    sent, _ = tree.inward(transmit, Force.zero())
    return BalafoutisPatel(
        tau=tree.collect([tau for tau, _ in sent]),
        moving=PerBody([moving for _, moving, _ in moved]),
        net=PerBody([net for _, _, net in moved]),
        f=PerBody([force.linear for _, force in sent]),
        eta=PerBody([force.angular for _, force in sent]),
    )


def base_motion(tree: Tree) -> Moving:
    """Return the motion of the base: at rest, and accelerated by -g."""
    return Moving(Vec3.zero(), Vec3.zero(), Mat3.zero(), -tree.gravity)


def carried_over(parent: Moving, X: Placement) -> Carried:
    """Return the parent's motion at the body's origin, in the body's axes; linear in the parent's motion."""
    A_T = X.rotate_to_child
    return Carried(A_T(parent.omega), A_T(parent.omega_dot), A_T(parent.s_ddot + parent.Omega @ X.p))


def across_joint(carried: Carried, v_J: Motion, a_J: Motion) -> Moving:
    """Return the body's motion from its parent's and the joint's: (1) to (4')."""
    omega = carried.omega + v_J.angular  # (1)
    omega_dot = carried.omega_dot + carried.omega.cross(v_J.angular) + a_J.angular  # (2)
    Omega = acceleration_tensor(omega, omega_dot)  # (3)
    s_ddot = carried.s_ddot + (carried.omega + omega).cross(v_J.linear) + a_J.linear  # (4')
    return Moving(omega, omega_dot, Omega, s_ddot)


def net_force(inertia: RigidInertia, moving: Moving) -> NetForce:
    """Return r'', F and M of a body in motion: (5) and (6); linear in Omega and s''."""
    r_ddot = moving.s_ddot + moving.Omega @ inertia.com  # (5)
    M = moment_of(moving.Omega, euler_tensor(inertia.inertia_at_com))
    return NetForce(r_ddot, r_ddot * inertia.mass, M)  # (6)
