"""A step from a discrete principle of least action: momenta are kept, and energy does not drift.

The action of a step is h L where it is half done, at the velocity that leads from one end to the other:

    L_d = h L(y_m, w_m),      w_m = xi / h,      y_0 = y_m exp(-xi/2),   y_1 = y_m exp(xi/2)            (1)

with exp a straight line, or the turn xi of a rotation. Its stationarity, with the work h f . dy_m of joint
and external forces, gives the momenta at both ends (Marsden & West 2001, sections 2.4 and 3.2): of straight
lines, and of a rotation by theta = xi/2 in each half, E = exp(theta), along the axes of its body,

    p_0 = p_m - h/2 f                          p_1 = p_0 + h f                                            (2)
    p_0 = E (pi - h/2 f)                       p_1 = E^T (E^T p_0 + h f)                                   (3)
    pi = (1 - C/A [theta]^2) (p_m + h/2 B theta x f)          A, B, C of `ExponentialCoefficients`         (4)

p_m and f are dL/dw and dL/dy there, see `slopes`; the bracket in (4) is the inverse of the even part of
exp's Jacobian. p_0 = M v is known. w_m is sought by Newton's method with the matrix M + h/2 D + h^2/4 K of
where the step begins, which leaves gyroscopic terms out: errors shrink by about h omega in each iteration,
to rounding. Then v at the end is M^-1 p_1. A step whose iteration fails is NaN; it was too long.

L_d does not change when the system is moved or turned as a whole, so that linear and angular momentum are
those of the start, but for what gravity and other forces add; the subtree of a free root is seen from its
centre of mass, which follows its parabola exactly (`relative_to_centers`). The map of (q, p) is symplectic
and symmetric in time: its order is two, and the energy error of conservative motion stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Unpack

from dalembert.algorithms.applied_forces import Loads, body_forces
from dalembert.algorithms.dense import dot, threshold, unit
from dalembert.algorithms.integrators import (
    Pair,
    State,
    StepConditions,
    from_centroidal,
    independent,
    resistances,
    to_centroidal,
)
from dalembert.algorithms.kinematics import body_motions
from dalembert.algorithms.mass_matrix import inertia_solver, mass_matrix
from dalembert.algorithms.open_tree import add_block, is_constrained, require_moving_mass, variable_parents
from dalembert.algorithms.sparse import factor_with_reciprocals, solve_with_reciprocals
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.joints import Composite, Free, Joint, Planar, SphereInCylinder, Spherical, UserDefined
from dalembert.model.joints.combined import DerivedJoint
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import Tree
from dalembert.scalar import (
    Scalar,
    Scalars,
    Time,
    is_zero,
    logical_and,
    logical_or,
    loop,
    maximum,
    select,
    sqrt,
)
from dalembert.spatial import Force, Mat3, Motion, Placement, Vec3
from dalembert.spatial.exponential import ExponentialCoefficients, so3_exp

# Free-floating systems, seen from their centre of mass.
#
# The centre of mass c of the subtree of a free root moves as if all mass and all outer forces were in it, and
# the motion about c does not depend on it: for an observer who falls with c, c is at rest and there is no
# weight.
#
#     u = dc/dt where the step begins        c' = c + h u + h^2/2 g + h P' / (2 m)        u' = u + h g     (1)
#
# P' is the momentum that other forces give in the step, seen by the observer. An integrator that takes the
# step for the observer needs to be exact for nothing but the motion about c; (1) does the rest, and momentum
# about c is kept as it is about a fixed point.


class _Center(NamedTuple):
    """The mass, centre and momentum of the subtree of a root, in the world, and the root's orientation."""

    mass: Scalar
    position: Vec3
    momentum: Vec3
    R: Mat3


def free_roots(conditions: StepConditions) -> list[Body]:
    """Return the bodies with free joints on the world whose steps a co-moving observer may take.

    That excludes joint forces that depend on velocity, external forces given in the world frame, and springs
    between points and fluids.
    """
    if conditions.passive and (conditions.tree.springs or conditions.tree.fluid):
        return []
    if (
        conditions.loads.get("external_forces") is not None
        and conditions.loads.get("external_frame") == "world"
    ):
        return []
    return [
        body
        for body in conditions.tree.bodies
        if body.parent < 0
        and isinstance(body.joint, Free)
        and all(is_zero(x) for x in body.armature)
        and not (
            conditions.passive
            and any(not is_zero(x) for x in (*body.damping, *body.friction, *body.stiffness))
        )
    ]


def relative_to_centers(conditions: StepConditions, roots: Sequence[Body], start: State) -> State:
    """Return the state relative to observers who move with the centres of mass."""
    v = list(start.v)
    for body, center in zip(roots, _centers(conditions, roots, start, 0.0), strict=True):
        own = slice(body.v_slice.start + 3, body.v_slice.stop)
        u = center.momentum * (1.0 / center.mass)
        v[own] = list(Vec3(*v[own]) - center.R.transposed_times(u))
    return State(list(start.q), v)


def add_center_motion(
    conditions: StepConditions, roots: Sequence[Body], start: State, seen: State, dt: Scalar
) -> State:
    """Return the state after a step from `start` that ended as `seen` for the observers; Eq. (1)."""
    q, v = list(seen.q), list(seen.v)
    before, after = (_centers(conditions, roots, start, 0.0), _centers(conditions, roots, seen, dt))
    g = conditions.tree.gravity
    for body, old, new in zip(roots, before, after, strict=True):
        u = old.momentum * (1.0 / old.mass)
        mean = u + g * (0.5 * dt) + new.momentum * (0.5 / new.mass)
        shift = body.placement.rotate_to_child(old.position + mean * dt - new.position)
        place = slice(body.q_slice.start, body.q_slice.start + 3)
        q[place] = list(Vec3(*q[place]) + shift)
        own = slice(body.v_slice.start + 3, body.v_slice.stop)
        v[own] = list(Vec3(*v[own]) + new.R.transposed_times(u + g * dt))
    return State(q, v)


def _centers(
    conditions: StepConditions, roots: Sequence[Body], state: State, elapsed: Scalar
) -> list[_Center]:
    tree = conditions.tree
    motions = body_motions(tree, state.q, state.v, time=conditions.at(elapsed))
    found = []
    for root in roots:
        mass: Scalar = 0.0
        moment, momentum = Vec3.zero(), Vec3.zero()
        for body in _subtree(tree, root):
            pose, velocity, _ = motions[body]
            mass = mass + body.inertia.mass
            moment = moment + (pose.R @ body.inertia.h + pose.p * body.inertia.mass)
            momentum = momentum + pose.R @ (body.inertia * velocity).linear
        found.append(_Center(mass, moment * (1.0 / mass), momentum, motions[root].pose.R))
    return found


def _subtree(tree: Tree, root: Body) -> list[Body]:
    """Return the root and all bodies that it carries."""
    found = {root.index}
    for body in tree.bodies:
        if body.parent in found:
            found.add(body.index)
    return [body for body in tree.bodies if body.index in found]


# Derivatives of the Lagrangian on the configuration manifold, without accelerations and mass matrices.
#
# In the variables (y, w) of `flight` every freedom is either a straight line (dy = w dt) or a rotation (w =
# omega in body axes). With the velocity V_i of each body, the momentum F_i and weight W_i of all that it
# carries, external forces included, zeta_k the motion of the body for w_k = 1 and V_lambda = V_i - v_J,
#
#     p_k = dL/dw_k = F_i . zeta_k                                                                        (1)
#     f_k = dL/dy_k = (W_i - V_lambda x* F_i) . zeta_k + F_i . d_k v_J                                     (2)
#
# d_k is the derivative along freedom k with w held, of a rotation along a turn in body axes. (2) is since
# moving the body along zeta changes the velocity that its parent gives it by V_lambda x zeta, and with it the
# momentum of all it carries. One pass outward and one inward.


class Slopes(NamedTuple):
    """p = dL/dw [kg m^2/s or kg m/s] and f = dL/dy with external forces [N m or N], in the order of v."""

    p: list[Scalar]
    f: list[Scalar]


def slopes(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    *,
    tau: Scalars | None = None,
    weightless: Sequence[int] = (),
    **given: Unpack[Loads],
) -> Slopes:
    """Compute Eqs (1) and (2); `tau`: to be added to f; `weightless`: roots that gravity leaves alone."""
    time = given.get("time")
    f_x = body_forces(tree, q, **given)

    def outward(body: Body, parent: tuple[Motion, Vec3]) -> tuple[tuple[Motion, Vec3], _Moving]:
        joint = body.jcalc(q, v, time)
        V_parent = joint.X.apply(parent[0])
        falls = Vec3.zero() if body.index in weightless else parent[1]
        V, g = V_parent + joint.v_J, joint.X.rotate_to_child(falls)
        W = Force(body.inertia.h.cross(g), g * body.inertia.mass)
        own = _Moving(joint.X, joint.S, V_parent, body.inertia * V, W if f_x is None else W + f_x[body])
        return (V, g), own

    moving = tree.outward(outward, (Motion.zero(), tree.gravity))

    def inward(body: Body, carried: tuple[Force, Force]) -> tuple[tuple[Force, Force], Slopes]:
        own = moving[body]
        F, W = own.momentum + carried[0], own.weight + carried[1]
        own_slopes = _joint_slopes(body, q, v, own.S, F, W - own.V_parent.cross(F), time)
        return (own.X.inverse_apply(F), own.X.inverse_apply(W)), own_slopes

    found = list(tree.inward(inward, (Force.zero(), Force.zero()))[0])
    p, f = tree.collect([own.p for own in found]), tree.collect([own.f for own in found])
    if tau is not None:
        f = [a + b for a, b in zip(f, forces_of_equal_power(tree, q, tau, from_centroidal), strict=True)]
    return Slopes(p, f)


def forces_of_equal_power(
    tree: Tree, q: Scalars, forces: Scalars, velocities: Callable[..., Pair]
) -> list[Scalar]:
    """Return J^T f of each joint, with J the map `velocities` to those along which the forces f act.

    `to_centroidal`: from forces along w to those along v; `from_centroidal`: the other way.
    """
    found = list(forces)
    for body in independent(tree):
        own_q, own = body.own_q(q), forces[body.v_slice]
        columns = (velocities(body, own_q, unit(body.nv, k))[1] for k in range(body.nv))
        found[body.v_slice] = [dot(own, column) for column in columns]
    return found


class _Moving(NamedTuple):
    X: Placement
    S: tuple[Motion, ...]
    V_parent: Motion
    momentum: Force
    weight: Force


def _joint_slopes(
    body: Body, q: Scalars, v: Scalars, S: tuple[Motion, ...], F: Force, W: Force, time: Time
) -> Slopes:
    """Compute (1) and (2) of one joint: F is the momentum it carries, W the factor of zeta in (2)."""
    own_q, own_v = body.own_q(q), body.own_v(v)
    w = to_centroidal(body, own_q, own_v)[1]
    rotor = [m * u for m, u in zip(body.armature, own_v, strict=True)]

    def motion(x: list[Scalar]) -> tuple[Motion, list[Scalar]]:
        now = from_centroidal(body, x, w)[1]
        return body.joint.velocity(x, now, time), now

    turning = _rotor_forces(body, own_v, rotor)
    p, f = [], []
    for k in range(body.nv):
        column = from_centroidal(body, own_q, unit(body.nv, k))[1]
        zeta = combination(S, column)
        along = body.joint.position_rate(own_q, column)
        _, (changed, faster) = directional_derivative(motion, own_q, along, constants=[*w])
        p.append(F.dot(zeta) + dot(rotor, column))
        f.append(W.dot(zeta) + F.dot(changed) + dot(rotor, faster) + dot(turning, column))
    return Slopes(p, f)


def _rotor_forces(body: Body, v: list[Scalar], rotor: list[Scalar]) -> list[Scalar]:
    """Return the forces that make armature m add only m dv/dt to the joint force, as in `mass_matrix`.

    Where v is not a rate of coordinates, the energy m v^2 / 2 would add gyroscopic forces, v x* (m v).
    """
    forces: list[Scalar] = [0.0] * body.nv
    if all(is_zero(x) for x in rotor):
        return forces
    if isinstance(body.joint, Planar):
        omega, x, y = v
        _, p_x, p_y = rotor
        return [x * p_y - y * p_x, -(omega * p_y), omega * p_x]
    if isinstance(body.joint, Free):
        motion = Motion(Vec3(*v[:3]), Vec3(*v[3:]))
        return motion.cross(Force(Vec3(*rotor[:3]), Vec3(*rotor[3:]))).to_list()
    for place in _rotations(body.joint, body):
        own = slice(place, place + 3)
        forces[own] = list(Vec3(*v[own]).cross(Vec3(*rotor[own])))
    return forces


def rotation_places(tree: Tree) -> list[int]:
    """Return the first index in v of each angular velocity that is not a rate of coordinates."""
    found = []
    for body in independent(tree):
        if isinstance(body.joint, Free):
            found.append(body.v_slice.start)
        elif not isinstance(body.joint, Planar):
            found += [body.v_slice.start + place for place in _rotations(body.joint, body)]
    return found


def _rotations(joint: Joint, body: Body) -> list[int]:
    """Return the rotation places of one joint, relative to its first variable."""
    if isinstance(joint, (Spherical, SphereInCylinder)):
        return [0]
    if isinstance(joint, DerivedJoint):
        return _rotations(joint.joint, body)
    if isinstance(joint, Composite):
        places, start = [], 0
        for member in joint.joints:
            places += [start + place for place in _rotations(member, body)]
            start += member.nv
        return places
    own_way = isinstance(joint, UserDefined) and any(name == "integrate" for name, _ in joint.functions)
    if own_way or isinstance(joint, (Free, Planar)):
        raise ModelError(
            f'integrator "variational": joint "{body.joint_name}" ({body.joint.kind}) has velocities that '
            "are neither rates of its coordinates nor a quaternion's angular velocity; use another joint "
            'there, or another integrator, such as "rk4"'
        )
    return []


MAX_NEWTON_ITERATIONS: Final = 60
"""Limit of Newton iterations; each at least halves the error, or the step is too long."""

CONVERGED_CHANGE: Final = (4e-30, 1e-13)
"""Change of velocities, squared and relative, that is rounding; in double and single precision."""

STALLED_CHANGE: Final = (1e-24, 1e-10)
"""Change, likewise, that counts as rounding if it no longer decreases."""

FAILED_CHANGE: Final = (1e-14, 1e-6)
"""Change, likewise, above which the iteration has failed."""


class _Search(NamedTuple):
    """w_m, and the last two changes of it, squared in the norm of kinetic energy."""

    w: list[Scalar]
    change: Scalar
    before: Scalar


def variational(conditions: StepConditions, start: State, dt: Scalar) -> State:
    """Take a variational step; free roots are stepped relative to their centres of mass."""
    if is_constrained(conditions.tree):
        names = ", ".join(f'"{name}"' for name in conditions.tree.loop_names)
        raise ModelError(
            f'integrator "variational" is for trees, and this model has loops or other constraints ({names});'
            ' use "semi_implicit" or "rk4", which keep them closed'
        )
    require_moving_mass(conditions.tree, 'integrator "variational"')
    roots = free_roots(conditions)
    if not roots:
        return _least_action_step(conditions, start, dt, ())
    seen = relative_to_centers(conditions, roots, start)
    end = _least_action_step(conditions, seen, dt, [body.index for body in roots])
    return add_center_motion(conditions, roots, start, end, dt)


def _least_action_step(
    conditions: StepConditions, start: State, dt: Scalar, weightless: Sequence[int]
) -> State:
    """Take a step of Eqs (1) to (4)."""
    tree = conditions.tree
    coordinates, rotations = conditions.coordinates, rotation_places(tree)
    centroidal = coordinates.to_centroidal(start)
    half = 0.5 * dt
    time = conditions.loads.get("time")
    M = mass_matrix(tree, start.q, time=time)
    p_0 = slopes(tree, start.q, start.v, time=time).p

    def state_after(w: Scalars, h: Scalar) -> State:
        """Return (q, v) after h seconds at the velocity w."""
        y = coordinates.positions_after(State(centroidal.q, list(w)), h)
        return coordinates.from_centroidal(State(y, list(w)), h)

    def middle(w: Scalars) -> tuple[Slopes, State]:
        there = state_after(w, half)
        found = slopes(
            tree,
            there.q,
            there.v,
            tau=conditions.joint_forces(there.q, there.v, half),
            weightless=weightless,
            **conditions.loads_at(half),
        )
        return found, there

    lam = variable_parents(tree)
    matrix = _matrix(conditions, M, start.v, dt)
    lagging = conditions.passive and any(not is_zero(f) for body in tree.bodies for f in body.friction)
    factors = factor_with_reciprocals(matrix, lam)
    along_v = forces_of_equal_power(tree, start.q, p_0, to_centroidal)
    scale = dot(along_v, start.v) + sum(M[i][i] for i in range(tree.nv))
    scale = maximum(scale, 1e-30)

    def newton_step(search: _Search) -> _Search:
        found, there = middle(search.w)
        error = [a - b for a, b in zip(p_0, _first_momenta(found, search.w, half, rotations), strict=True)]
        along_v = forces_of_equal_power(tree, start.q, error, to_centroidal)
        L, reciprocals = factors
        if lagging:
            L, reciprocals = factor_with_reciprocals(_matrix(conditions, M, there.v, dt), lam)
        dv = solve_with_reciprocals(L, reciprocals, lam, along_v)
        dw = [x for b in coordinates.bodies for x in to_centroidal(b, b.own_q(start.q), b.own_v(dv))[1]]
        w = [a + b for a, b in zip(search.w, dw, strict=True)]
        return _Search(w, dot(along_v, dv), search.change)

    def done(search: _Search) -> Scalar:
        stalled = logical_and(
            search.change < threshold(STALLED_CHANGE, scale) * scale, search.before <= 4.0 * search.change
        )
        return logical_or(search.change <= threshold(CONVERGED_CHANGE, scale) * scale, stalled)

    far = 1e30 * scale
    found = loop(MAX_NEWTON_ITERATIONS, newton_step, _Search(centroidal.v, far, far), until=done)
    p_1 = _last_momenta(p_0, middle(found.w)[0].f, found.w, dt, rotations)
    end = state_after(found.w, dt)
    # sqrt(-1) makes a step NaN whose iteration has failed; NaN changes compare as failed, too.
    sound = sqrt(select(found.change <= threshold(FAILED_CHANGE, scale) * scale, 1.0, -1.0))
    return State([x * sound for x in end.q], [x * sound for x in _velocities(conditions, end.q, p_1, dt)])


def _matrix(conditions: StepConditions, M: list[list[Scalar]], v: Scalars, dt: Scalar) -> list[list[Scalar]]:
    """Return M + h/2 D + h^2/4 K, with D at the velocity v."""
    A = [list(row) for row in M]
    if not conditions.passive:
        return A
    half = 0.5 * dt
    for body in conditions.tree.bodies:
        D = resistances(body, body.own_v(v))
        gains = [half * (d + half * k) for d, k in zip(D, body.stiffness, strict=True)]
        add_block(
            A, body, body, [[g if i == j else 0.0 for j in range(body.nv)] for i, g in enumerate(gains)]
        )
    return A


def _first_momenta(middle: Slopes, w: Scalars, half: Scalar, rotations: Sequence[int]) -> list[Scalar]:
    """Return p_0 of Eqs (2), (3)."""
    p = [a - half * f for a, f in zip(middle.p, middle.f, strict=True)]
    for place in rotations:
        own = slice(place, place + 3)
        theta, f = Vec3(*w[own]) * half, Vec3(*middle.f[own]) * half
        k = ExponentialCoefficients(theta.dot(theta))
        pi = Vec3(*middle.p[own]) + theta.cross(f) * k.B
        pi = pi - theta.cross(theta.cross(pi)) * (k.C / k.A)
        p[own] = list(so3_exp(theta) @ (pi - f))
    return p


def _last_momenta(p_0: Scalars, f: Scalars, w: Scalars, dt: Scalar, rotations: Sequence[int]) -> list[Scalar]:
    """Return p_1 of Eqs (2), (3)."""
    p = [a + dt * b for a, b in zip(p_0, f, strict=True)]
    for place in rotations:
        own = slice(place, place + 3)
        E = so3_exp(Vec3(*w[own]) * (0.5 * dt))
        p[own] = list(E.transposed_times(E.transposed_times(Vec3(*p_0[own])) + Vec3(*f[own]) * dt))
    return p


def _velocities(conditions: StepConditions, q: Scalars, p: Scalars, dt: Scalar) -> list[Scalar]:
    """Return v with the momenta p along w, at the end of the step."""
    tree, time = conditions.tree, conditions.at(dt)
    solve = inertia_solver(tree, q, time=time)
    if time is not None:
        at_rest = slopes(tree, q, [0.0] * tree.nv, time=time).p
        p = [a - b for a, b in zip(p, at_rest, strict=True)]
    return solve(forces_of_equal_power(tree, q, p, to_centroidal))
