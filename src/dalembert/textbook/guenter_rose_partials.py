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

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Unpack, final

from dalembert.algorithms.applied_forces import Loads, body_center, body_forces
from dalembert.algorithms.dense import Matrix, zeros
from dalembert.algorithms.derivatives import joint_rates
from dalembert.algorithms.kinematics import require_centers_of_mass
from dalembert.algorithms.open_tree import require_open_tree, velocity_places
from dalembert.errors import ModelError
from dalembert.model import Model, ModelBuilder
from dalembert.model.body import Body, JointMotion, Limits
from dalembert.model.joints import Joint, Prismatic, Revolute
from dalembert.model.joints.subspaces import combination
from dalembert.model.surgery import builder_calls
from dalembert.model.topology import WORLD_NAME
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time, is_zero
from dalembert.spatial import Force, Motion, RigidInertia, Vec3
from dalembert.textbook.cartesian_tensors import (
    Carried,
    Moving,
    NetForce,
    acceleration_tensor_rate,
    across_joint,
    base_motion,
    carried_over,
    net_force,
)
from dalembert.textbook.lagrange import Places, add_at_places

# The derivatives of a joint's quantities with respect to its own position and velocity.
#
# Along velocity variable k of a joint, with S_k = (z, y) in the body's coordinates, the body turns and shifts
# by definition as
#
#     dA = A dual(z),    d(A^T) = -dual(z) A^T,    ds = A y                                            (1)
#
# For a hinge this is all. S, v_J and c_J of other joints may change too (`joint_rates`).


class JointPartial(NamedTuple):
    """Derivatives along one velocity variable of the joint, in the body's coordinates.

    By its position: `S_by_q` of each column of S, `v_J_by_q` of v_J = S v + sigma, `a_J_by_q` of a_J = S a +
    c_J, with v and a held. By its velocity: `a_J_by_v` of c_J.
    """

    S_by_q: tuple[Motion, ...]
    v_J_by_q: Motion
    a_J_by_q: Motion
    a_J_by_v: Motion


def joint_partials(body: Body, q: Scalars, v: Scalars, a: Scalars, time: Time = None) -> list[JointPartial]:
    """Return a `JointPartial` for each velocity variable of the body's joint; q on its tangent space."""
    own_a, rates = body.own_v(a), joint_rates(body, q, v, time)
    return [
        JointPartial(tuple(S), v_J, combination(S, own_a) + c_J, bias_by_v)
        for S, v_J, c_J, bias_by_v in zip(*rates, strict=True)
    ]


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
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]
) -> tuple[Matrix, Matrix, Matrix]:
    """Return (dtau/dq, dtau/dv, dtau/da) of tau = ID(q, v, a), `(nv, nv)` each; q on its tangent space.

    External forces stay constant in the frame in which they are given. dtau/da = M(q), armature on its
    diagonal. Elements of joints on different branches are literal zeros.
    """
    found = guenter_rose(tree, q, v, a, **given)
    return found.by_q, found.by_v, found.by_a


def guenter_rose(tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]) -> GuenterRose:
    """Return the derivatives of inverse dynamics with all intermediate ones, for every joint type."""
    require_open_tree(tree, "guenter_rose")
    require_centers_of_mass(tree, "guenter_rose")
    f_x = body_forces(tree, q, **given)
    links = _outward(tree, q, v, a, given.get("time"))
    turned = None if f_x is None else _turned_forces(tree, links, f_x, given.get("external_frame", "body"))
    forces = _inward(tree, links, f_x, turned)
    return GuenterRose(
        *_joint_forces(tree, links, forces),
        moving=PerBody([link.moving_partials for link in links]),
        net=PerBody([link.net_partials for link in links]),
        force=PerBody([partials for _, partials in forces]),
    )


def _outward(tree: Tree, q: Scalars, v: Scalars, a: Scalars, time: Time) -> PerBody[_Link]:
    """Return the motion of every body and its derivatives along all joints that carry it: (1) to (6)."""

    Carry = tuple[Moving, dict[Along, Moving]]

    def move(body: Body, parent: Carry) -> tuple[Carry, _Link]:
        moving_p, partials_p = parent
        joint, own = body.jcalc(q, v, time), joint_partials(body, q, v, a, time)
        carried = carried_over(moving_p, joint.X)
        moving = across_joint(carried, joint.v_J, combination(joint.S, body.own_v(a)) + joint.c_J)
        starts = {x: (carried_over(d, joint.X), ZERO_MOTION, ZERO_MOTION) for x, d in partials_p.items()}
        starts |= _own_joint_partials(body, joint, own, moving_p, carried)
        partials = {x: _across_joint(carried, moving, joint.v_J, *start) for x, start in starts.items()}
        net = {x: net_force(body.inertia, d) for x, d in partials.items()}  # (5), (6)
        link = _Link(joint, own, net_force(body.inertia, moving), partials, net)
        return (moving, partials), link

    return tree.outward(move, (base_motion(tree), {}))


def _inward(
    tree: Tree, links: PerBody[_Link], f_x: PerBody[Force] | None, turned: PerBody[_Partials] | None
) -> PerBody[tuple[Force, _Partials]]:
    """Return the force (eta, f) through every joint, and its derivatives (d eta, d f): (7) and (8)."""

    Sent = tuple[Force, _Partials]

    def transmit(body: Body, children: Sent) -> tuple[Sent, Sent]:
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
    body: Body, joint: JointMotion, own: list[JointPartial], parent: Moving, carried: Carried
) -> dict[Along, tuple[Carried, Motion, Motion]]:
    """Return the derivatives of the arguments of `across_joint` along a body's joint: (10) to (13)."""
    A_T, A = joint.X.rotate_to_child, joint.X.rotate_to_parent
    nothing = Carried(Vec3.zero(), Vec3.zero(), Vec3.zero())
    found = {}
    for k, (s, d) in enumerate(zip(joint.S, own, strict=True)):
        z, y = s.angular, s.linear
        shift = A_T(parent.Omega @ A(y))
        turned = Carried(
            carried.omega.cross(z), carried.omega_dot.cross(z), carried.s_ddot.cross(z) + shift
        )  # dA^T x = -z x A^T x
        found[Along("q", body.index, k)] = (turned, d.v_J_by_q, d.a_J_by_q)
        found[Along("v", body.index, k)] = (nothing, s, d.a_J_by_v)
        found[Along("a", body.index, k)] = (nothing, ZERO_MOTION, s)
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


def _turned_forces(
    tree: Tree, links: PerBody[_Link], f_x: PerBody[Force], frame: str
) -> PerBody[_Partials] | None:
    """Return -d f_x of forces that are constant in the world:
    in a body that moves by s they turn by -s x* f, those at its centre of mass by its rotation about that."""
    if frame == "body":
        return None

    def step(body: Body, above: dict[Along, Motion]) -> tuple[dict[Along, Motion], _Partials]:
        joint = links[body].joint
        moved = {x: joint.X.apply(s) for x, s in above.items()}
        moved |= {Along("q", body.index, k): s for k, s in enumerate(joint.S)}
        turns = moved
        if frame == "center":
            center = body_center(body)
            turns = {x: Motion(s.angular, center.cross(s.angular)) for x, s in moved.items()}
        return moved, _Partials({x: s.cross(f_x[body]) for x, s in turns.items()})

    return tree.outward(step, {})


def _joint_forces(
    tree: Tree, links: PerBody[_Link], forces: PerBody[tuple[Force, _Partials]]
) -> tuple[Matrix, Matrix, Matrix]:
    """Return dtau = S^T (d eta, d f) + dS^T (eta, f), and armature (9); G^T (...) G under couplings."""
    places = [velocity_places(body) for body in tree.bodies]
    found = {by: zeros(tree.nv, tree.nv) for by in ("q", "v", "a")}

    def add(x: Along, row: Places, d_tau: Scalar) -> None:
        add_at_places(found[x.by], row, places[x.body][x.variable], d_tau)

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


# Joints of several freedoms as stacks of joints of one freedom, with links without mass between them: what
# the recursions of Guenter and Rose, written for hinges, need for the root and the ball joints of a human
# figure.

SLIDES: Final = tuple(Prismatic(Vec3.unit(k)) for k in range(3))
HINGES: Final = tuple(Revolute(Vec3.unit(k)) for k in range(3))

STACKS: Final[dict[str, Callable[[Any], tuple[Joint, ...]]]] = {
    "cylindrical": lambda joint: (Revolute(joint.axis), Prismatic(joint.axis)),
    "universal": lambda joint: (Revolute(joint.axis1), Revolute(joint.axis2)),
    "translation": lambda joint: SLIDES,
    "spherical_euler": lambda joint: tuple(HINGES["xyz".index(letter)] for letter in joint.order),
    "planar": lambda joint: (SLIDES[0], SLIDES[1], HINGES[2]),
    "spherical": lambda joint: HINGES,
    "spherical_exponential": lambda joint: HINGES,
    "free": lambda joint: (*SLIDES, *HINGES),
}
OTHER_COORDINATES: Final = ("planar", "spherical", "spherical_exponential", "free")
"""Joints whose stacks have coordinates of their own: x, y, z [m] in the parent, angles [rad] about x, y and z
in turn. The stacks of the others have their q and v."""


def stacked_hinges(model: Model) -> Model:
    """Return the same system with joints of one freedom only; a stack has a massless link between two joints.

    Body "thigh" on joint "hip" of three freedoms: joints "hip_1", "hip_2" carry bodies of these names, "hip"
    carries "thigh". Where a stack has the joint's own coordinates (cylindrical, universal, translation,
    Euler angles), q, v and tau keep their meaning. A ball turns about x, y and z in turn, a free body first
    slides along x, y and z of its parent; their limits, springs, damping and friction have no meaning there
    and are left out, and the stack is singular where its second angle is a quarter turn. Joints with one
    freedom or none stay as they are, others are refused.
    """
    require_open_tree(model, "stacked_hinges")
    builder = ModelBuilder(gravity=model.gravity, name=model.name)
    actuated: list[str] = []
    for body in model.bodies:
        parent = WORLD_NAME if body.parent < 0 else model.bodies[body.parent].name
        joints = _add_stack(builder, body, parent)
        actuated += joints if body.joint_name in model.actuated else []
    for method, arguments in builder_calls(model):
        if method != "add_body":
            getattr(builder, method)(**arguments)
    for body in model.bodies:
        if body.nv > 1 and body.parent >= 0:  # the ends of a stack are no longer parent and child
            builder.exclude_contact(model.bodies[body.parent].name, body.name)
    builder.set_actuated(actuated)
    return builder.build(inertia="as_given")


def _add_stack(builder: ModelBuilder, body: Body, parent: str) -> list[str]:
    """Add a body on the stack of its joint, whose last joint carries mass and shapes; return the names."""
    stack = _stack_of(body)
    names = [f"{body.joint_name}_{k + 1}" for k in range(len(stack) - 1)] + [body.joint_name]
    for k, (joint, own) in enumerate(stack):
        own["placement"] = body.placement if k == 0 else None
        if k < len(stack) - 1:
            builder.add_body(names[k], parent, joint, names[k], inertia=RigidInertia.zero(), **own)
            parent = names[k]
        else:
            own |= {"inertia": body.inertia, "shapes": body.shapes}
            builder.add_body(body.name, parent, joint, names[k], **own)
    return names


def _stack_of(body: Body) -> list[tuple[Joint, dict[str, Any]]]:
    """Return the joints of one freedom that make up a body's joint, each with its parameters."""
    joint, kind = body.joint, body.joint.kind
    if body.nv <= 1:
        return [(joint, _numbers(body, slice(None)))]
    if kind not in STACKS:
        raise ModelError(
            f'stacked_hinges: joint "{body.joint_name}" is {kind} with {body.nv} freedoms, for which there '
            f"is no stack of joints of one freedom; there are stacks for {', '.join(STACKS)}"
        )
    parts = STACKS[kind](joint)
    if kind not in OTHER_COORDINATES:
        return [(part, _numbers(body, slice(k, k + 1))) for k, part in enumerate(parts)]
    if any(not is_zero(x) for x in body.armature):
        raise ModelError(
            f'stacked_hinges: joint "{body.joint_name}" is {kind} and has armature, along velocities that '
            "are not those of a stack; set it to zero first"
        )
    return [(part, {}) for part in parts]


def _numbers(body: Body, part: slice) -> dict[str, Any]:
    """Return the parameters that a joint with v = dq/dt has for each coordinate, for some coordinates."""
    limits = body.limits
    bounds = (limits.lower, limits.upper, limits.velocity, limits.effort)
    limited = Limits(*(bound[part] if isinstance(bound, tuple) else bound for bound in bounds))
    names = ("armature", "damping", "friction", "stiffness", "rest")
    return {"limits": limited} | {name: getattr(body, name)[part] for name in names}
