"""Analytic derivatives of the dynamics, with respect to q on its tangent space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Unpack, final

from dalembert.algorithms.applied_forces import Loads, body_center, body_forces
from dalembert.algorithms.articulated import joint_inertia
from dalembert.algorithms.dense import Matrix, plus, transpose, unit, zeros
from dalembert.algorithms.mass_matrix import inverse_from_factors
from dalembert.algorithms.open_tree import (
    add_block,
    add_symmetric,
    require_moving_mass,
    require_open_tree,
    variable_parents,
)
from dalembert.algorithms.sparse import ancestors, factor_with_reciprocals, solve_with_reciprocals
from dalembert.model.body import Body
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time, is_zero
from dalembert.spatial import Force, Mat3, Motion, RigidInertia, ScrewChain, Transform, Vec3
from dalembert.spatial.symmetric import times_symmetric

# The derivatives of a joint's velocity and bias with respect to its own position and velocity.
#
# A direction k of the tangent space moves the joint's position by dq = Q(q) e_k, which displaces the
# successor by the motion S_k. What else changes is what S and the bias c_J = S° v + sigma° have of q and v in
# successor coordinates. Of the joints whose S is constant everything here is a literal zero, so that it costs
# nothing.


class JointRates(NamedTuple):
    """The derivatives along the nv directions of one joint, in successor coordinates.

    `S[k][l]`: of column l of S by direction k of the position; `v_J[k]`: of v_J = S v + sigma, `c_J[k]`: of
    c_J, both at constant v; `bias_by_speed[k]`: of c_J by v_k.
    """

    S: list[list[Motion]]
    v_J: list[Motion]
    c_J: list[Motion]
    bias_by_speed: list[Motion]


def joint_rates(body: Body, q: Scalars, v: Scalars, time: Time = None) -> JointRates:
    """Return the rates of the joint of a body at the model's q and v, exact, by dual numbers."""
    joint, own_q, own_v = body.joint, body.own_q(q), body.own_v(v)
    directions = [unit(joint.nv, k) for k in range(joint.nv)]
    now = [] if time is None else [time]
    S, v_J, c_J, by_speed = [], [], [], []
    for direction in directions:
        step = joint.position_rate(own_q, direction)
        constants = [*own_v, *now]
        columns, bias = directional_derivative(
            lambda x: (list(joint.subspace(x, time)), joint.bias(x, own_v, time)), own_q, step, constants
        )[1]
        S.append(columns)
        c_J.append(bias)
        if joint.time_dependent:
            v_J.append(
                directional_derivative(lambda x: joint.velocity(x, own_v, time), own_q, step, constants)[1]
            )
        else:
            v_J.append(combination(columns, own_v))
        by_speed.append(
            directional_derivative(lambda x: joint.bias(own_q, x, time), own_v, direction, [*own_q, *now])[1]
        )
    return JointRates(S, v_J, c_J, by_speed)


# The motion of a tree and its first variations, in one coordinate system for all bodies.
#
# Everything is expressed in an inertial frame that now coincides with that of the tree's root: there the
# root's own S are coordinate directions and those of its children constants. For a direction k of joint
# j, with lambda the parent of j and v_lambda, a_lambda its motion (the world accelerates by -gravity),
#
#     psi = v_lambda x S_k + dv_J                             change of v with the position               (1)
#     chi = a_lambda x S_k + v_lambda x (psi + dv_J) + v_J x dv_J + dS a + dc_J           of a            (2)
#     phi = 2 v_lambda x S_k + v_J x S_k + dc_J/dv_k          change of a with the velocity               (3)
#
# where d is the change in successor coordinates (`joint_rates`), zero for a constant S. Seen by an observer
# who is displaced with the subtree of j, the force I a + v x* I v that a body of it needs changes by
#
#     I chi + 2 B psi     with the position,        I phi + 2 B S_k     with the velocity                 (4)
#
# 2 B m = v x* I m - I (v x m) + m x* I v takes 12 numbers, for it knows only the angular part of m: with
# P = v h^T + omega x J, the integral of r' r^T over the mass (J: Euler's tensor), and p the momentum,
#
#     2 B (w, .) = (D w, w x 2p),   D = 2 (tr(P) 1 - P),      and   v x* I v = B v                        (5)
#
# (1) to (4) for constant S: Singh, Russell, Wensing, Efficient analytical derivatives of rigid-body dynamics
# using spatial vector algebra (2022); Carpentier, Mansard, Analytical derivatives of rigid body dynamics
# algorithms (2018).


@final
@dataclass(frozen=True, slots=True)
class VelocityProducts:
    """2 B of a body or a composite by (5): `matrix` D [kg m^2/s], `momentum` 2 p [kg m/s]."""

    matrix: Mat3
    momentum: Vec3

    @staticmethod
    def of(inertia: RigidInertia, v: Motion) -> VelocityProducts:
        """Return 2 B of a rigid body that moves with v; the factor 2 is in the velocity."""
        w, u, h = v.angular + v.angular, v.linear + v.linear, inertia.h
        P = u.outer(h) + times_symmetric(w, inertia.euler_tensor)
        t = P.trace()
        D = Mat3(t - P.xx, -P.xy, -P.xz, -P.yx, t - P.yy, -P.yz, -P.zx, -P.zy, t - P.zz)
        return VelocityProducts(D, u * inertia.mass + w.cross(h))

    def __add__(self, other: VelocityProducts) -> VelocityProducts:
        return VelocityProducts(self.matrix + other.matrix, self.momentum + other.momentum)

    def __mul__(self, m: Motion) -> Force:
        """Return 2 B m."""
        w = m.angular
        return Force(self.matrix @ w, w.cross(self.momentum))

    def row(self, s: Motion) -> Vec3:
        """Return r with s . (2 B m) = r . (the angular part of m)."""
        return self.matrix.transposed_times(s.angular) + self.momentum.cross(s.linear)


def turned_center_force(force: Force, center: Vec3) -> VelocityProducts:
    """Return Q, where Q m is the change of a force, given at a body's centre of mass c along fixed axes, as
    seen from the body that m displaces: Q (w, .) = (w x n_c + c x (w x f), w x f).
    """
    f, n = force.linear, force.about(center)
    t, P = center.dot(f), f.outer(center) + n.skew()
    Q = Mat3(t - P.xx, -P.xy, -P.xz, -P.yx, t - P.yy, -P.yz, -P.zx, -P.zy, t - P.zz)
    return VelocityProducts(Q, f)


class BodyState(NamedTuple):
    """One body in common coordinates: its motion without dv/dt, and what depends on q and v alone.

    `world`: the acceleration of the world, -gravity; `v_parent`, `v`: of the parent and of the body; `psi` by
    (1), `phi` by (3); `bias`: a - a_lambda at dv/dt = 0; `force`: v x* I v less the external force.
    """

    body: Body
    rates: JointRates
    pose: Transform
    world: Motion
    v_parent: Motion
    v: Motion
    S: list[Motion]
    psi: list[Motion]
    phi: list[Motion]
    bias: Motion
    inertia: RigidInertia
    products: VelocityProducts
    force: Force


def body_state(whole: Composites, body: Body) -> BodyState:
    """Return the state of a body from that of its parent."""
    q, v, f_x, time = whole.q, whole.v, whole.f_x, whole.time
    parent = whole.states.get(body.parent)
    joint = body.jcalc(q, v, time)
    if parent is None:
        pose, v_parent = Transform.identity(), Motion.zero()
        world = Motion(Vec3.zero(), joint.X.rotate_to_child(-whole.tree.gravity))
    else:
        pose, v_parent, world = parent.pose, parent.v, parent.world
        for screw in joint.X.factors if isinstance(joint.X, ScrewChain) else (joint.X,):
            pose = pose @ screw
    rates, own, to_common = joint_rates(body, q, v, time), body.own_v(v), pose.inverse_apply
    S = [to_common(s) for s in joint.S]
    carried = [v_parent.cross(s) for s in S]
    if body.joint.time_dependent:
        v_J = to_common(joint.v_J)
        drift = v_parent.cross(v_J)
    else:
        v_J, drift = combination(S, own), combination(carried, own)
    v_i = v_parent + v_J
    inertia = to_common(body.inertia)
    products = VelocityProducts.of(inertia, v_i)
    force = products * (v_i * 0.5)  # (5)
    along = body.nv == 1 and not body.joint.time_dependent  # v_J is along the one column of S: v_J x S = 0
    turning = [
        c if along else joint.v_J.cross(s) + c for s, c in zip(joint.S, rates.bias_by_speed, strict=True)
    ]
    return BodyState(
        body=body,
        rates=rates,
        pose=pose,
        world=world,
        v_parent=v_parent,
        v=v_i,
        S=S,
        psi=[x + to_common(d) for x, d in zip(carried, rates.v_J, strict=True)],  # (1)
        phi=[x + x + to_common(c) for x, c in zip(carried, turning, strict=True)],  # (3)
        bias=drift + to_common(joint.c_J),
        inertia=inertia,
        products=products,
        force=force if f_x is None else force - to_common(f_x[body]),
    )


def acceleration(state: BodyState, a_parent: Motion, a: Scalars | None) -> Motion:
    """Return a_i at dv/dt = a of the model; None for zero."""
    a_i = a_parent + state.bias
    return a_i if a is None else a_i + combination(state.S, state.body.own_v(a))


def changes_of_acceleration(state: BodyState, a_parent: Motion, a: Scalars) -> list[Motion]:
    """Return chi of (2) for each direction of a joint, at dv/dt = a of the model."""
    own, rates, to_common = state.body.own_v(a), state.rates, state.pose.inverse_apply
    v_J = state.v - state.v_parent
    result = []
    for k, s in enumerate(state.S):
        dv_J = to_common(rates.v_J[k])
        inside = to_common(combination(rates.S[k], own) + rates.c_J[k])
        result.append(
            a_parent.cross(s) + state.v_parent.cross(state.psi[k] + dv_J) + v_J.cross(dv_J) + inside
        )
    return result


# Derivatives of inverse dynamics on the tangent space, in O(n d).
#
# With composites summed over subtrees, I^c, 2 B^c and f^c, and the changes psi, chi, phi above,
# joint i and its ancestors j have
#
#   dtau_i/dq_j = S_i . (I_i^c chi_j + 2 B_i^c psi_j)     dtau_i/dv_j = S_i . (I_i^c phi_j + 2 B_i^c S_j)  (1)
#     dtau_j/dq_i = S_j . (I_i^c chi_i + 2 B_i^c psi_i + S_i x* f_i^c)
#     dtau_j/dv_i = S_j . (I_i^c phi_i + 2 B_i^c S_i)       dtau_j/da_i = S_j . I_i^c S_i                  (2)
#
# and i = j as (1), with dS_l/dq_k . f_i^c besides where S moves. All other entries are zero.


class Derivatives(NamedTuple):
    """Three matrices `(nv, nv)`: by q on the tangent space, by v, and by a or tau."""

    by_q: Matrix
    by_v: Matrix
    by_last: Matrix


def inverse_dynamics_derivatives(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]
) -> Derivatives:
    """Return (dtau/dq, dtau/dv, dtau/da) of tau = ID(q, v, a); dtau/da = M, armature included."""
    require_open_tree(tree, "inverse_dynamics_derivatives")
    return spanning_tree_derivatives(tree, q, v, a, **given)


def spanning_tree_derivatives(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]
) -> Derivatives:
    """Return `inverse_dynamics_derivatives` of the tree alone, without its loops and other constraints."""
    f_x = body_forces(tree, q, **given)
    whole = Composites(tree, q, v, f_x, given.get("time"))
    forces = JointForces(whole, a)
    pairs = PairwiseChanges(forces, a, given.get("external_frame", "body"))
    visit_depth_first(tree, whole, forces, pairs)
    return Derivatives(pairs.by_q, pairs.by_v, whole.M)


class Pass(Protocol):
    """A pass of which `enter` goes outward, and `leave` inward."""

    def enter(self, body: Body) -> None: ...
    def leave(self, body: Body) -> None: ...


def visit_depth_first(tree: Tree, *passes: Pass) -> None:
    """Run passes together, each body's entries when it is left: the order of memory, not of mathematics.

    Depth first, only the columns of a body's ancestors need be at hand, which the first-level cache holds
    (design/derivatives.md).
    """
    children: dict[int, list[Body]] = {}
    for body in tree.bodies:
        children.setdefault(body.parent, []).append(body)
    pending = [(root, True) for root in reversed(children.get(-1, []))]
    while pending:
        body, entering = pending.pop()
        for each in passes:
            (each.enter if entering else each.leave)(body)
        if entering:
            pending.append((body, False))
            pending += [(child, True) for child in reversed(children.get(body.index, []))]


@final
@dataclass(slots=True, eq=False)
class Composites:
    """I^c and 2 B^c of every body, and M: the terms that depend on q and v alone."""

    tree: Tree
    q: Scalars
    v: Scalars
    f_x: PerBody[Force] | None
    time: Time
    states: dict[int, BodyState] = field(default_factory=dict)
    inertia: dict[int, RigidInertia] = field(default_factory=dict)
    products: dict[int, VelocityProducts] = field(default_factory=dict)
    M: Matrix = field(default_factory=list)

    def __post_init__(self) -> None:
        self.M = zeros(self.tree.nv, self.tree.nv)

    def enter(self, body: Body) -> None:
        self.states[body.index] = state = body_state(self, body)
        self.inertia[body.index], self.products[body.index] = state.inertia, state.products

    def leave(self, body: Body) -> None:
        I, S = self.inertia[body.index], self.states[body.index].S
        if body.parent >= 0:
            self.inertia[body.parent] += I
            self.products[body.parent] += self.products[body.index]
        F = [I * s for s in S]
        add_symmetric(self.M, body, body, joint_inertia(S, F, body.armature))
        for j in self.ancestors(body):
            add_symmetric(self.M, body, j, [[s.dot(f) for s in self.states[j.index].S] for f in F])

    def ancestors(self, body: Body) -> Iterator[Body]:
        """Yield the ancestors of a body that have freedoms, nearest first."""
        while body.parent >= 0:
            body = self.tree.bodies[body.parent]
            if body.nv:
                yield body


@final
@dataclass(slots=True, eq=False)
class JointForces:
    """a_lambda(i), a_i, and f_i^c, the force that each joint transmits, at dv/dt = a; None for zero."""

    whole: Composites
    a: Scalars | None
    before: dict[int, Motion] = field(default_factory=dict)
    after: dict[int, Motion] = field(default_factory=dict)
    force: dict[int, Force] = field(default_factory=dict)

    def enter(self, body: Body) -> None:
        i, state = body.index, self.whole.states[body.index]
        self.before[i] = state.world if body.parent < 0 else self.after[body.parent]
        self.after[i] = acceleration(state, self.before[i], self.a)
        self.force[i] = state.inertia * self.after[i] + state.force

    def leave(self, body: Body) -> None:
        if body.parent >= 0:
            self.force[body.parent] += self.force[body.index]

    def joint_forces(self) -> list[Scalar]:
        """Return tau without armature: S . f^c of every joint."""
        tree, states = self.whole.tree, self.whole.states
        return tree.collect([[s.dot(self.force[b.index]) for s in states[b.index].S] for b in tree.bodies])


@final
@dataclass(slots=True, eq=False)
class PairwiseChanges:
    """dtau/dq and dtau/dv at dv/dt = a, of every joint and its ancestors.

    `frame`: that in which external forces are constant. Seen from the displaced subtree, those of the world
    change by -S x* f (`held_force` f), those at centres of mass by -Q S (`held_turn` Q).
    """

    forces: JointForces
    a: Scalars
    frame: str = "body"
    chi: dict[int, list[Motion]] = field(default_factory=dict)
    held_force: dict[int, Force] = field(default_factory=dict)
    held_turn: dict[int, VelocityProducts] = field(default_factory=dict)
    by_q: Matrix = field(default_factory=list)
    by_v: Matrix = field(default_factory=list)

    def __post_init__(self) -> None:
        n = self.forces.whole.tree.nv
        self.by_q, self.by_v = zeros(n, n), zeros(n, n)

    def enter(self, body: Body) -> None:
        state = self.forces.whole.states[body.index]
        self.chi[body.index] = changes_of_acceleration(state, self.forces.before[body.index], self.a)
        f_x, pose, zero = self.forces.whole.f_x, state.pose, Force.zero()
        held = zero if f_x is None or self.frame == "body" else pose.inverse_apply(f_x[body])
        at_center = self.frame == "center"
        center = pose.transform_point(body_center(body)) if at_center else Vec3.zero()
        self.held_force[body.index] = zero if at_center else held
        self.held_turn[body.index] = turned_center_force(held if at_center else zero, center)

    def leave(self, body: Body) -> None:
        i, whole = body.index, self.forces.whole
        state, I, B, f = whole.states[i], whole.inertia[i], whole.products[i], self.forces.force[i]
        held, Q = self.held_force[i], self.held_turn[i]
        if body.parent >= 0:
            self.held_force[body.parent] += held
            self.held_turn[body.parent] += Q
        S = state.S
        inner = [I * x + B * y for x, y in zip(self.chi[i], state.psi, strict=True)]
        by_position = [x + s.cross(f + held) + Q * s for x, s in zip(inner, S, strict=True)]
        by_speed = [I * x + B * s for x, s in zip(state.phi, S, strict=True)]
        I_rows, B_rows = [I * s for s in S], [B.row(s) for s in S]
        held_rows = [-s.cross(held) + Force(Q.row(s), Vec3.zero()) for s in S]
        moved = [[state.pose.inverse_apply(s) for s in columns] for columns in state.rates.S]
        own = [
            [s.dot(inner[k]) + moved[k][l].dot(f) + held_rows[l].dot(S[k]) for k in range(len(S))]
            for l, s in enumerate(S)
        ]
        add_block(self.by_q, body, body, own)
        add_block(self.by_v, body, body, [[s.dot(x) for x in by_speed] for s in S])
        for j in whole.ancestors(body):
            up = whole.states[j.index]
            add_block(self.by_q, j, body, [[s.dot(x) for x in by_position] for s in up.S])  # (2)
            add_block(self.by_v, j, body, [[s.dot(x) for x in by_speed] for s in up.S])
            turned = [[x.dot(s) for s in up.S] for x in held_rows]
            add_block(
                self.by_q, body, j, plus(_rows(I_rows, B_rows, self.chi[j.index], up.psi), turned)
            )  # (1)
            add_block(self.by_v, body, j, _rows(I_rows, B_rows, up.phi, up.S))


def _rows(
    I_rows: Sequence[Force], B_rows: Sequence[Vec3], x: Sequence[Motion], y: Sequence[Motion]
) -> Matrix:
    """Return S . (I x + 2 B y) for each row of S and each direction."""
    return [
        [f.dot(x_k) + b.dot(y_k.angular) for x_k, y_k in zip(x, y, strict=True)]
        for f, b in zip(I_rows, B_rows, strict=True)
    ]


# Derivatives of forward dynamics on the tangent space, from those of inverse dynamics.
#
# tau = ID(q, v, a) holds along every change of a = FD(q, v, tau), so that
#
#     M da/dq = -dID/dq,   M da/dv = -dID/dv,   da/dtau = M^-1            at a = FD(q, v, tau)            (1)
#
# (Carpentier & Mansard 2018). The composites give M, which is factored once, M = L^T D L without fill
# (Featherstone 2008 section 6.5), and serves a, all columns of (1), and M^-1.


def forward_dynamics_derivatives(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Loads]
) -> Derivatives:
    """Return (da/dq, da/dv, da/dtau) of a = FD(q, v, tau); da/dtau = M^-1."""
    require_open_tree(tree, "forward_dynamics_derivatives")
    require_moving_mass(tree, "forward_dynamics_derivatives")
    f_x = body_forces(tree, q, **given)
    whole = Composites(tree, q, v, f_x, given.get("time"))
    bias = JointForces(whole, None)
    visit_depth_first(tree, whole, bias)
    lam = variable_parents(tree)
    L, reciprocals = factor_with_reciprocals(whole.M, lam)
    push = [t - b for t, b in zip(tau, bias.joint_forces(), strict=True)]
    a = solve_with_reciprocals(L, reciprocals, lam, push)
    forces = JointForces(whole, a)
    pairs = PairwiseChanges(forces, a, given.get("external_frame", "body"))
    visit_depth_first(tree, forces, pairs)
    by_q, by_v = solved_columns(L, reciprocals, lam, pairs.by_q, pairs.by_v)
    return Derivatives(by_q, by_v, inverse_from_factors(L, reciprocals, lam))


def solved_columns(L: Matrix, reciprocals: Scalars, lam: Sequence[int], *sides: Matrix) -> list[Matrix]:
    """Return -M^-1 B for each B, column by column; zeros of B cost nothing.

    Columns of the same number advance side by side: a triangular solution is one chain of dependent
    operations, and a processor that waits for one can work on the other.
    """
    solutions: list[list[list[Scalar]]] = [[] for _ in sides]
    for columns in zip(*(transpose(B) for B in sides), strict=True):
        ys = [[-x for x in column] for column in columns]
        for i in reversed(range(len(lam))):
            for j in ancestors(lam, i):
                for y in ys:
                    if not is_zero(y[i]):
                        y[j] = y[j] - L[i][j] * y[i]
        ys = [[x * r for x, r in zip(y, reciprocals, strict=True)] for y in ys]
        for i in range(len(lam)):
            for j in ancestors(lam, i):
                for y in ys:
                    y[i] = y[i] - L[i][j] * y[j]
        for solution, y in zip(solutions, ys, strict=True):
            solution.append(y)
    return [transpose(solution) for solution in solutions]
