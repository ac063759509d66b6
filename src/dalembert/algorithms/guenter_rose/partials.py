"""Derivatives of inverse dynamics by recursion, O(n d) for n joints in a tree of depth d (Guenter & Rose
2000, "The recursive partials"), with the report's misprints corrected.

Legend as in balafoutis_patel.py; d is the derivative by one variable x of joint j: a position q_j, a
velocity q'_j or an acceleration q''_j. Bodies that joint j carries (beyond j itself) move by

    d omega  = A^T d omega_p                                                                          (1)
    d omega' = A^T d omega'_p + (A^T d omega_p) x z q'                                                (2)
    d Omega  = dual(d omega') + dual(d omega) dual(omega) + (dual(d omega) dual(omega))^T             (3)
    d s''    = A^T (d s''_p + d Omega_p s)                                                            (4)
    d r''    = d s'' + d Omega r                                                                      (5)
    d F      = m d r'',   dual(d M) = d Omega J - (d Omega J)^T                                       (6)
    d f      = d F + sum over children of (A d f + dA f)                                              (7)
    d eta    = r x d F + d M + sum over children of (A d eta + dA eta + s x (A d f + dA f))           (8)
    d tau    = z . d eta                                                                              (9)

where dA is not zero for the child j and x = q_j only. The recursion starts at body j with

               x = q_j                                      x = q'_j             x = q''_j
    d omega    dA^T omega_p                                 z                    0                    (10)
    d omega'   dA^T omega'_p + (dA^T omega_p) x z q'        (A^T omega_p) x z    z                    (11)
    d s''      dA^T (s''_p + Omega_p s)                     0                    0                    (12)

The report has omega' for omega in the second term of (11), forgets a tilde there, loses dots in (4), (5) and
(12), and writes f for the child's f in (7). For the base, omega_p and omega'_p are zero and s''_p is -g.

That is for hinges, dA^T = -dual(z) A^T. Every other joint obeys one formula with them: the derivative of

    omega = c + omega_J,  omega' = c' + c x omega_J + alpha_J,  s'' = c'' + (c + omega) x u_J + b_J   (13)

with (c, c', c'') = (A^T omega_p, A^T omega'_p, A^T (s''_p + Omega_p s)) of the parent and (omega_J, u_J),
(alpha_J, b_J) of the joint; ds = A y adds A^T Omega_p A y to d c'', y x f to (8) at the child j, and where S
depends on q, dS^T (eta, f) to (9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, final

from dalembert.algorithms.dense import Matrix, zeros
from dalembert.algorithms.external_forces import ExternalForces, body_forces
from dalembert.algorithms.guenter_rose.balafoutis_patel import (
    Carried,
    Moving,
    NetForce,
    across_joint,
    base_motion,
    carried_over,
    net_force,
)
from dalembert.algorithms.guenter_rose.joint_partials import JointPartial, joint_partials
from dalembert.algorithms.guenter_rose.tensors import acceleration_tensor_rate
from dalembert.algorithms.mass_centers import require_centers_of_mass
from dalembert.algorithms.open_tree import require_open_tree
from dalembert.algorithms.sparsity import velocity_places
from dalembert.model.body import Body, JointMotion
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Vec3

__all__ = ["Along", "GuenterRose", "guenter_rose", "inverse_dynamics_partials"]


ZERO_MOTION: Final = Motion.zero()
"""A joint's velocity and acceleration do not depend on other joints."""


class Along(NamedTuple):
    """The variable of a derivative: "q", "v" or "a" of the joint of a body (its index), component k."""

    by: str
    body: int
    variable: int


class GuenterRose(NamedTuple):
    """dtau/dq, dtau/dv and dtau/da, `(nv, nv)` each, and the derivatives that led there.

    By body: `moving`, `net` hold those along the joints that carry it; `force` the (d eta, d f), along those
    and the joints that it carries. What they do not hold is zero.
    """

    by_q: Matrix
    by_v: Matrix
    by_a: Matrix
    moving: PerBody[Mapping[Along, Moving]]
    net: PerBody[Mapping[Along, NetForce]]
    force: PerBody[Mapping[Along, Force]]


@final
class _Partials(dict[Along, Force]):
    """Derivatives of a force; sums are over the variables of both."""

    def __add__(self, other: _Partials) -> _Partials:
        total = _Partials(self)
        for x, force in other.items():
            total[x] = total[x] + force if x in total else force
        return total


class _Link(NamedTuple):
    """The results of the outward pass for one body."""

    joint: JointMotion
    own: list[JointPartial]
    net: NetForce
    moving_partials: dict[Along, Moving]
    net_partials: dict[Along, NetForce]


def inverse_dynamics_partials(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> tuple[Matrix, Matrix, Matrix]:
    """Return (dtau/dq, dtau/dv, dtau/da) of tau = ID(q, v, a), `(nv, nv)` each; q on its tangent space.

    External forces stay constant in the frame in which they are given. dtau/da = M(q), armature on its
    diagonal. Elements of joints on different branches are literal zeros.
    """
    found = guenter_rose(
        tree, q, v, a, external_forces=external_forces, external_frame=external_frame, time=time
    )
    return found.by_q, found.by_v, found.by_a


def guenter_rose(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> GuenterRose:
    """Return the derivatives of inverse dynamics with all intermediate ones,
    for trees of every joint type."""
    require_open_tree(tree, "guenter_rose")
    require_centers_of_mass(tree, "guenter_rose")
    f_x = body_forces(tree, q, external_forces, external_frame, time)
    links = _outward(tree, q, v, a, time)
    turned = _turned_forces(tree, links, f_x) if f_x is not None and external_frame == "world" else None
    forces = _inward(tree, links, f_x, turned)
    return GuenterRose(
        *_joint_forces(tree, links, forces),
        moving=PerBody([link.moving_partials for link in links]),
        net=PerBody([link.net_partials for link in links]),
        force=PerBody([partials for _, partials in forces]),
    )


def _outward(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], a: Sequence[Scalar], time: Scalar | None
) -> PerBody[_Link]:
    """Return the motion of every body and its derivatives along all joints that carry it: (1) to (6)."""

    def move(
        body: Body, parent: tuple[Moving, dict[Along, Moving]]
    ) -> tuple[tuple[Moving, dict[Along, Moving]], _Link]:
        moving_p, partials_p = parent
        joint, own = body.jcalc(q, v, time), joint_partials(body, q, v, a, time)
        carried = carried_over(moving_p, joint.X)
        moving = across_joint(carried, joint.v_J, combination(joint.S, body.own_v(a)) + joint.c_J)
        partials = {
            x: _across_joint(carried, moving, joint.v_J, carried_over(d_p, joint.X), ZERO_MOTION, ZERO_MOTION)
            for x, d_p in partials_p.items()
        }
        partials |= _own_joint_partials(body, joint, own, moving_p, carried, moving)
        net = {x: net_force(body.inertia, d) for x, d in partials.items()}  # (5), (6)
        link = _Link(joint, own, net_force(body.inertia, moving), partials, net)
        return (moving, partials), link

    return tree.outward(move, (base_motion(tree), {}))


def _inward(
    tree: Tree, links: PerBody[_Link], f_x: PerBody[Force] | None, turned: PerBody[_Partials] | None
) -> PerBody[tuple[Force, _Partials]]:
    """Return the force (eta, f) through every joint, and its derivatives (d eta, d f): (7) and (8)."""

    def transmit(
        body: Body, children: tuple[Force, _Partials]
    ) -> tuple[tuple[Force, _Partials], tuple[Force, _Partials]]:
        link, r = links[body], body.inertia.com
        force = link.net.at_origin(r) + children[0]
        partials = _Partials({x: d.at_origin(r) for x, d in link.net_partials.items()}) + children[1]
        if f_x is not None:
            force = force - f_x[body]
        if turned is not None:
            partials = partials + turned[body]
        sent = _Partials(partials)
        for k, s in enumerate(link.joint.S):
            x = Along("q", body.index, k)
            sent[x] = sent[x] + s.cross(force)  # dA eta, dA f, and y x f
        to_parent = link.joint.X.inverse_apply
        return (to_parent(force), _Partials({x: to_parent(d) for x, d in sent.items()})), (force, partials)

    forces, _ = tree.inward(transmit, (Force.zero(), _Partials()))
    return forces


def _own_joint_partials(
    body: Body,
    joint: JointMotion,
    own: list[JointPartial],
    parent: Moving,
    carried: Carried,
    moving: Moving,
) -> dict[Along, Moving]:
    """Return the derivatives along a body's joint: (10) to (12), and (13) for other joints than hinges."""
    A_T, A = joint.X.rotate_to_child, joint.X.rotate_to_parent
    nothing = Carried(Vec3.zero(), Vec3.zero(), Vec3.zero())
    found = {}
    for k, (s, d) in enumerate(zip(joint.S, own, strict=True)):
        z, y = s.angular, s.linear
        shift = A_T(parent.Omega @ A(y))
        turned = Carried(
            carried.omega.cross(z), carried.omega_dot.cross(z), carried.s_ddot.cross(z) + shift
        )  # dA^T x = -z x A^T x
        for by, starts in (
            ("q", (turned, d.v_J_by_q, d.a_J_by_q)),
            ("v", (nothing, s, d.a_J_by_v)),
            ("a", (nothing, ZERO_MOTION, s)),
        ):
            found[Along(by, body.index, k)] = _across_joint(carried, moving, joint.v_J, *starts)
    return found


def _across_joint(
    carried: Carried, moving: Moving, v_J: Motion, d_carried: Carried, d_v_J: Motion, d_a_J: Motion
) -> Moving:
    """Return the derivative of `across_joint`, from those of its three arguments:
    (13), with (1) to (4) as its case for bodies that joint j carries, where the last two are zero.
    """
    d_omega = d_carried.omega + d_v_J.angular
    d_omega_dot = (
        d_carried.omega_dot
        + d_carried.omega.cross(v_J.angular)
        + carried.omega.cross(d_v_J.angular)
        + d_a_J.angular
    )
    d_Omega = acceleration_tensor_rate(moving.omega, d_omega, d_omega_dot)  # (3)
    d_s_ddot = (
        d_carried.s_ddot
        + (d_carried.omega + d_omega).cross(v_J.linear)
        + (carried.omega + moving.omega).cross(d_v_J.linear)
        + d_a_J.linear
    )
    return Moving(d_omega, d_omega_dot, d_Omega, d_s_ddot)


def _turned_forces(tree: Tree, links: PerBody[_Link], f_x: PerBody[Force]) -> PerBody[_Partials]:
    """Return -d f_x of forces that are constant in the world:
    in a body that moves by s they turn by -s x* f."""

    def step(body: Body, above: dict[Along, Motion]) -> tuple[dict[Along, Motion], _Partials]:
        joint = links[body].joint
        moved = {x: joint.X.apply(s) for x, s in above.items()}
        moved |= {Along("q", body.index, k): s for k, s in enumerate(joint.S)}
        return moved, _Partials({x: s.cross(f_x[body]) for x, s in moved.items()})

    return tree.outward(step, {})


def _joint_forces(
    tree: Tree, links: PerBody[_Link], forces: PerBody[tuple[Force, _Partials]]
) -> tuple[Matrix, Matrix, Matrix]:
    """Return dtau = S^T (d eta, d f) + dS^T (eta, f), and armature (9);
    G^T (...) G where joints are coupled."""
    places = [velocity_places(body) for body in tree.bodies]
    found = {by: zeros(tree.nv, tree.nv) for by in ("q", "v", "a")}

    def add(x: Along, row: list[tuple[int, float]], d_tau: Scalar) -> None:
        for i, ratio_i in row:
            for j, ratio_j in places[x.body][x.variable]:
                found[x.by][i][j] = found[x.by][i][j] + d_tau * (ratio_i * ratio_j)

    for body in tree.bodies:
        joint, own = links[body].joint, links[body].own
        force, partials = forces[body]
        for k, row in enumerate(places[body.index]):
            for x, d in partials.items():
                add(x, row, joint.S[k].dot(d))
            for l, d_own in enumerate(own):
                add(Along("q", body.index, l), row, d_own.S_by_q[k].dot(force))
            add(Along("a", body.index, k), row, body.armature[k])
    return found["q"], found["v"], found["a"]
