"""Recursive inverse dynamics in local frames (Liu & Jain, section 7): every vector at the centres of mass.

Legend, all in the local frame of link k, whose origin is the joint to its parent p: v_k, v_k' velocity and
true acceleration of the centre of mass; omega_k, omega_k'; c_k the centre of mass; f_k, tau_k force and
torque that the link receives from its parent at its origin. In the parent's frame: R_k the link's rotation,
d_k the place of its origin, omega^_k = J^_omega q_k' its relative angular velocity, d_k' and d_k'' the rates
of d_k as the parent sees them.

    omega_k  = R^T (omega_p + omega^_k)                                                            (78)
    v_k      = R^T (v_p + omega_p x (d_k - c_p) + d_k') + omega_k x c_k                            (76, 83)
    omega_k' = R^T (omega_p' + d omega^_k/dt + omega_p x omega^_k)                                 (80)
    v_k'     = R^T (v_p' + omega_p' x (d_k - c_p) + omega_p x (omega_p x (d_k - c_p))
                    + 2 omega_p x d_k' + d_k'') + omega_k x (omega_k x c_k) + omega_k' x c_k       (79, 84)
    m v_k'   = f_k + f_k^x - sum over children of R_i f_i                                          (72)
    I omega_k' + omega_k x I omega_k
             = tau_k + n_k^x - c_k x (f_k + f_k^x) - sum (R_i tau_i + (d_i - c_k) x R_i f_i)       (73)

Eq. 84 of the text lists for a translational joint the rates of local components. The acceleration that the
next link needs is the second derivative of R_p (d_k + R_k c_k), taken in the world: with R' = R [omega],

    d/dt  (R_p d_k)  = R_p (omega_p x d_k + d_k')
    d2/dt2 (R_p d_k) = R_p (omega_p' x d_k + omega_p x (omega_p x d_k) + 2 omega_p x d_k' + d_k'')

which puts 2 omega_p x d_k' + d_k'' into (79). For R_k = 1 and d_k = q_k, c_k and d_k share their terms and
v_k' = v_p' + omega_p' x (c_k + q_k - c_p) + omega_p x (omega_p x (c_k + q_k - c_p)) + 2 omega_p x q_k' +
q_k''.

The root's parent is the world, with v_p = omega_p = 0 and c_p = 0; v_p' = -g stands for gravity (Eqs 81,
85). A joint of any type gives omega^_k = R omega_J and d_k' = R u_J from v_J = (omega_J, u_J), and d_k'' =
R (b_J + omega_J x u_J) from its acceleration (alpha_J, b_J) = S a + c_J.
"""

from __future__ import annotations

from typing import NamedTuple, Unpack

from dalembert.algorithms.applied_forces import Loads, body_forces
from dalembert.algorithms.kinematics import require_centers_of_mass
from dalembert.algorithms.open_tree import require_open_tree
from dalembert.model.body import Body
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import Force, RigidInertia, Vec3


class LocalMotion(NamedTuple):
    """v and v' of a link's centre of mass, omega and omega', in the link's own axes."""

    v: Vec3
    omega: Vec3
    v_dot: Vec3
    omega_dot: Vec3


class LiuJain(NamedTuple):
    """Generalized forces, the motion of each link (v' offset by -g) and (tau_k, f_k) that it receives."""

    tau: list[Scalar]
    motions: PerBody[LocalMotion]
    transmitted: PerBody[Force]


def liu_jain(tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]) -> LiuJain:
    """Solve M(q) a + b(q, v) = tau + external for tau: each link visited once in either pass (section 7)."""
    time = given.get("time")
    require_open_tree(tree, "liu_jain")
    require_centers_of_mass(tree, "liu_jain")
    f_x = body_forces(tree, q, **given)
    motions = local_motions(tree, q, v, a, base_acceleration=-tree.gravity, time=time)

    def receive(body: Body, children: Force) -> tuple[Force, tuple[list[Scalar], Force]]:
        # `children` is the sum of (R_i tau_i + d_i x R_i f_i, R_i f_i): what the children take
        X, S, _, _ = body.jcalc(q, None, time)
        c = body.inertia.com
        f_net, tau_net = local_newton_euler(body.inertia, motions[body])
        n_x, p_x = (Vec3.zero(), Vec3.zero()) if f_x is None else (f_x[body].angular, f_x[body].linear)
        f = f_net + children.linear - p_x  # (72)
        tau = tau_net + c.cross(f + p_x) + children.angular - c.cross(children.linear) - n_x  # (73)
        force = Force(tau, f)
        own = [s.dot(force) + I * x for s, I, x in zip(S, body.armature, body.own_v(a), strict=True)]
        f_p = X.rotate_to_parent(f)
        return Force(X.rotate_to_parent(tau) + X.p.cross(f_p), f_p), (own, force)

    received, _ = tree.inward(receive, Force.zero())
    tau = tree.collect([own for own, _ in received])
    return LiuJain(tau, motions, PerBody([force for _, force in received]))


def local_newton_euler(inertia: RigidInertia, motion: LocalMotion) -> tuple[Vec3, Vec3]:
    """Return (m v', I omega' + omega x I omega): the left sides of Eqs 72 and 73, at the centre of mass."""
    I = inertia.inertia_at_com
    return motion.v_dot * inertia.mass, I @ motion.omega_dot + motion.omega.cross(I @ motion.omega)


def local_motions(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    a: Scalars,
    *,
    base_acceleration: Vec3 | None = None,
    time: Time = None,
) -> PerBody[LocalMotion]:
    """Run pass 1: the motion of every link in its own axes, root to leaves (Eqs 74 to 85).

    `base_acceleration`: of the world, in world axes; zero gives true accelerations, -g those of pass 2.
    """
    rest = LocalMotion(Vec3.zero(), Vec3.zero(), base_acceleration or Vec3.zero(), Vec3.zero())

    def step(body: Body, carry: tuple[LocalMotion, Vec3]) -> tuple[tuple[LocalMotion, Vec3], LocalMotion]:
        (v_p, omega_p, v_p_dot, omega_p_dot), c_p = carry
        X, S, v_J, c_J = body.jcalc(q, v, time)
        a_J = combination(S, body.own_v(a)) + c_J
        R, RT, c, arm = X.rotate_to_parent, X.rotate_to_child, body.inertia.com, X.p - c_p
        omega_hat, omega_hat_dot = R(v_J.angular), R(a_J.angular)
        d_dot, d_ddot = R(v_J.linear), R(a_J.linear + v_J.angular.cross(v_J.linear))
        omega_k = RT(omega_p + omega_hat)  # (78)
        omega_k_dot = RT(omega_p_dot + omega_hat_dot + omega_p.cross(omega_hat))  # (80)
        v_k = RT(v_p + omega_p.cross(arm) + d_dot) + omega_k.cross(c)  # (76, 83)
        origin = v_p_dot + omega_p_dot.cross(arm) + omega_p.cross(omega_p.cross(arm))
        origin = origin + omega_p.cross(d_dot) * 2.0 + d_ddot
        v_k_dot = RT(origin) + omega_k.cross(omega_k.cross(c)) + omega_k_dot.cross(c)  # (79, 84)
        motion = LocalMotion(v_k, omega_k, v_k_dot, omega_k_dot)
        return (motion, c), motion

    return tree.outward(step, (rest, Vec3.zero()))
