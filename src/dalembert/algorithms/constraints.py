"""The equations K(q) a = k of loop joints and of constraints that users define."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dalembert.algorithms.aligned import original_model
from dalembert.algorithms.applied_forces import Stabilization, stabilized_row
from dalembert.algorithms.declaration import kernel, public
from dalembert.algorithms.dense import Matrix, identity, unit, zeros
from dalembert.algorithms.open_tree import velocity_places
from dalembert.errors import ArgumentError, ModelError, require_choice
from dalembert.model import configuration
from dalembert.model.body import Body, JointMotion, Loop
from dalembert.model.joints import Joint
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.joints.subspaces import combination
from dalembert.model.model import Model
from dalembert.model.tree import StandingTree, Tree
from dalembert.model.user_functions import Constraint, LoopClosure
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import Force, Motion, Transform, Vec3
from dalembert.spatial.exponential import so3_log
from dalembert.spatial.value import leaves, rebuild

# K and k of loop joints: Featherstone 2008 sections 8.2 and 8.7 (Table 8.4), for any joint.
#
# Joint k closes a loop between bodies p and s; T (successor coordinates) spans its constraint forces, sigma
# is what of its velocity is prescribed. With ° the rate of the components in the successor's own frame,
#
#     T^T (v_J - sigma) = 0,     v_J = v_s - v_p                                          (8.7, 3.38)
#     v_J° = a_s - a_p + v_s x v_p                                                        (1)
#     k = -T^T (a_s^vp - a_p^vp + v_s x v_p - sigma°) - T°^T (v_J - sigma)                (2)
#     K_j = eps_j T^T S_j,  eps_j = +1 on the way to s, -1 on the way to p                (8.20)
#
# (2) is Eq. 8.47 with the parenthesis that its last line lost, and with the terms of T° and sigma, which the
# book takes as zero; they are exact derivatives along the motion of the successor frame in the predecessor
# frame. v_J and its components depend on the joints between the loop's root and the two bodies alone, so that
# the root may count as fixed: nothing above it is computed.

COORDINATES = ("nearby", "base")
"""The coordinates in which the vectors of a loop may be combined: see `loop_rows`."""


class LoopRows(NamedTuple):
    """The rows of one loop joint, and what they are made of.

    `K` (nc, nv), `k` (nc), `velocity_error` = T^T (v_J - sigma), `position_error` = delta of Table 8.1; `X`
    the successor frame placed in the predecessor frame; `T` and `velocity` = v_J in successor coordinates.
    """

    K: Matrix
    k: list[Scalar]
    velocity_error: list[Scalar]
    position_error: list[Scalar]
    X: Transform
    T: tuple[Force, ...]
    velocity: Motion


def loop_rows(
    tree: Tree, loop: Loop, q: Scalars, v: Scalars, *, time: Time = None, coordinates: str = "nearby"
) -> LoopRows:
    """Return K, k, T^T (v_J - sigma) and delta of one loop joint; Eqs 8.15, 8.20, 8.23.

    `coordinates`: "nearby" combines the vectors at the loop joint itself, along the axes of the loop's root;
    "base" in the world's coordinates, as Table 8.4 does, which costs digits far from the world's origin
    (section 8.7, the rounding-error problem).
    """
    require_choice("coordinates of a loop's equations", coordinates, COORDINATES)
    nearby = coordinates == "nearby"
    to_p, to_s = (_links(path, q, v, time) for path in loop_paths(tree, loop, to_root=nearby))
    X_p = _end(to_p) @ loop.placement_predecessor
    X_s = _end(to_s) @ loop.placement_successor
    origin = X_s.p if nearby else Vec3.zero()
    columns_p, columns_s = _columns(to_p, origin), _columns(to_s, origin)
    v_p, a_p = _motion(to_p, columns_p, v, origin)
    v_s, a_s = _motion(to_s, columns_s, v, origin)
    placed = Transform(X_s.R, X_s.p - origin)
    v_J = placed.apply(v_s - v_p)
    a_J = placed.apply(a_s - a_p + v_s.cross(v_p))  # (1)
    X = X_p.inverse() @ X_s
    T, k, slip = loop_bias(loop.joint, X, v_J, a_J, time)
    T_root = [placed.inverse_apply(f) for f in T]
    K: Matrix = [[0.0] * tree.nv for _ in T]
    _add_columns(K, T_root, to_p, columns_p, -1.0)
    if to_s and nearby:
        # The successor's own joint moves the frame that T stands in: its columns are constant where S is.
        own = [tuple(loop.placement_successor.apply(s) for s in to_s[-1].joint.S)]
        _add_columns(K, T, to_s[-1:], own, 1.0)
        to_s, columns_s = to_s[:-1], columns_s[:-1]
    _add_columns(K, T_root, to_s, columns_s, 1.0)
    return LoopRows(K, k, [slip.dot(f) for f in T], loop.joint.closure_error(X, time), X, T, v_J)


def loop_bias(
    joint: Joint, X: Transform, v_J: Motion, a_J: Motion, time: Time
) -> tuple[tuple[Force, ...], list[Scalar], Motion]:
    """Return T, k by (2), and v_J - sigma of a loop joint with v_J° = a_J at dv/dt = 0."""
    (T, sigma), (T_rate, sigma_rate) = subspace_with_rate(joint, X, v_J, time)
    k = [-(a_J - sigma_rate).dot(f) - (v_J - sigma).dot(f_rate) for f, f_rate in zip(T, T_rate)]  # (2)
    return T, k, v_J - sigma


def loop_paths(tree: Tree, loop: Loop, *, to_root: bool = True) -> tuple[list[Body], list[Body]]:
    """Return the bodies from the loop's root (excluded) to the predecessor and to the successor, outward.

    Two pointers step toward the base, the higher-numbered first, until they meet at the nearest common
    ancestor (Table 8.4). `to_root=False`: all the way from the world.
    """
    to_p: list[Body] = []
    to_s: list[Body] = []
    i, j = loop.predecessor, loop.successor
    while i != j:
        if i > j:
            to_p.append(tree.bodies[i])
            i = tree.parents[i]
        else:
            to_s.append(tree.bodies[j])
            j = tree.parents[j]
    while i >= 0 and not to_root:
        to_p.append(tree.bodies[i])
        to_s.append(tree.bodies[i])
        i = tree.parents[i]
    return to_p[::-1], to_s[::-1]


class _Link(NamedTuple):
    """A body on the way, its pose in the frame where the way starts, and its joint."""

    body: Body
    pose: Transform
    joint: JointMotion

    def at(self, origin: Vec3) -> Transform:
        """Return the pose relative to another origin."""
        return Transform(self.pose.R, self.pose.p - origin)


def _links(path: Sequence[Body], q: Scalars, v: Scalars, time: Time) -> list[_Link]:
    links: list[_Link] = []
    for body in path:
        joint = body.jcalc(q, v, time)
        links.append(_Link(body, _end(links) @ joint.X, joint))
    return links


def _end(links: Sequence[_Link]) -> Transform:
    return links[-1].pose if links else Transform.identity()


def _columns(links: Sequence[_Link], origin: Vec3) -> list[tuple[Motion, ...]]:
    """Return S of every joint on the path, at the origin and along the axes of the start of the path."""
    return [tuple(link.at(origin).inverse_apply(s) for s in link.joint.S) for link in links]


def _motion(
    links: Sequence[_Link], columns: Sequence[tuple[Motion, ...]], v: Scalars, origin: Vec3
) -> tuple[Motion, Motion]:
    """Return v and a^vp at the end of the path: v_i = v_lambda + v_J, a_i = a_lambda + c_J + v_i x v_J."""
    velocity, acceleration = Motion.zero(), Motion.zero()
    for link, S in zip(links, columns, strict=True):
        _, own_S, own_v_J, c_J = link.joint
        v_J = combination(S, link.body.own_v(v))
        if link.body.joint.time_dependent:
            v_J = v_J + link.at(origin).inverse_apply(own_v_J - combination(own_S, link.body.own_v(v)))
        acceleration = acceleration + link.at(origin).inverse_apply(c_J) + velocity.cross(v_J)
        velocity = velocity + v_J
    return velocity, acceleration


Subspace = tuple[tuple[Force, ...], Motion]


def subspace_with_rate(joint: Joint, X: Transform, v_J: Motion, time: Time) -> tuple[Subspace, Subspace]:
    """Return (T, sigma) and (T°, sigma°) as X moves with v_J: R' = R omega x, p' = R v."""

    def subspace(x: Scalars) -> Subspace:
        placed, now = rebuild(X, x[:12]), x[12] if joint.time_dependent else None
        T = joint.constraint_subspace_at(placed, now)
        if not joint.time_dependent:
            return T, Motion.zero()
        return T, joint.velocity(joint.position_of(placed, now), [0.0] * joint.nv, now)

    rate = Transform(X.R @ v_J.angular.skew(), X.R @ v_J.linear)
    point, direction = leaves(X), leaves(rate)
    if joint.time_dependent:
        if time is None:
            raise ArgumentError("a loop joint depends on time and none was given; pass time=…")
        return directional_derivative(subspace, [*point, time], [*direction, 1.0])
    return directional_derivative(subspace, point, direction)


def _add_columns(
    K: Matrix, T: Sequence[Force], links: Sequence[_Link], columns: Sequence[tuple[Motion, ...]], sign: float
) -> None:
    """Add K_j = eps_j T^T S_j (8.20); the columns of dependent joints go to the places that they follow."""
    for link, S in zip(links, columns, strict=True):
        for places, s in zip(velocity_places(link.body), S, strict=True):
            for place, ratio in places:
                for row, f in zip(K, T, strict=True):
                    row[place] = row[place] + sign * ratio * s.dot(f)


# K and k of constraints that users define, by exact derivatives along the motion.
#
#     position  phi(q, t) = 0     K e_j = phi's rate along dq/dt = Q(q) e_j,  phi' = K v + phi_t,  k = -phi''
#     velocity  psi(q, v, t) = 0  K e_j = d psi / d v_j,                                           k = -psi'
#
# with dv/dt = 0 in k (Featherstone 2008 section 3.4: holonomic and nonholonomic, scleronomic and rheonomic).
# dq/dt = Q(q) v keeps quaternions on their sphere, so that K has one column for each velocity variable.


class UserRows(NamedTuple):
    """The rows of one constraint, as in `ConstraintEquations`."""

    K: Matrix
    k: list[Scalar]
    velocity_error: list[Scalar]
    position_error: list[Scalar]


def rows_of_users(
    tree: Tree, q: Scalars, v: Scalars, time: Time, kind: str = ""
) -> list[tuple[str, UserRows]]:
    """Return the rows of the users' constraints, of one kind if it is given, each with its name.

    A loop closure beside loops or constraints solves them and adds no rows; alone it is the constraint.
    """
    rows = [
        (item.name, user_rows(original_model(tree), item, q, v, time))
        for item in tree.constraints
        if kind in ("", item.kind)
    ]
    if tree.closure is not None and not tree.loops and not tree.constraints:
        rows.append(("loop closure", closure_rows(tree, q, v, time)))
    return rows


def moving_derivative(model: Model, function: Any, q: Scalars, v: Scalars, time: Time) -> tuple[Any, Any]:
    """Return (f, df/dt) of f(q, time) as q moves with v, and time, if there is one, passes."""
    rate = configuration.position_rate(model, q, v)
    if time is None:
        return directional_derivative(lambda x: function(x, None), q, rate, v)
    return directional_derivative(lambda x: function(x[:-1], x[-1]), [*q, time], [*rate, 1.0], v)


def user_rows(model: Model, constraint: Constraint, q: Scalars, v: Scalars, time: Time = None) -> UserRows:
    """Return K, k and the errors of one user constraint."""
    of_velocity = constraint.kind == "velocity"

    def residual(x: Scalars, now: Scalar | None) -> list[Scalar]:
        """Return phi or psi in the position x; phi does not depend on velocities."""
        return constraint.residual(model, x, v if of_velocity else [0.0] * model.nv, now)

    def rate(x: Scalars, now: Scalar | None) -> list[Scalar]:
        derivative: list[Scalar] = moving_derivative(model, residual, x, v, now)[1]
        return derivative

    error, k = moving_derivative(model, residual if of_velocity else rate, q, v, time)
    if of_velocity:
        columns = [
            _partial(lambda x: constraint.residual(model, q, x, time), v, slice(j, j + 1), [1.0], [*q, time])
            for j in range(model.nv)
        ]
    else:
        columns = _position_columns(model, lambda x: residual(x, time), q, [time])
    K = [[column[row] for column in columns] for row in range(constraint.size)]
    position_error = [0.0] * constraint.size if of_velocity else residual(q, time)
    return UserRows(K, [-x for x in k], error, position_error)


def _position_columns(
    model: Model, function: Callable[[list[Scalar]], list[Scalar]], q: Scalars, constants: Scalars
) -> Matrix:
    """Return the rate of a function of q along every velocity variable, joint by joint."""
    columns = []
    for body in model.bodies:
        if body.dependence is None:
            own = body.own_q(q)
            for j in range(body.nv):
                rate = body.joint.position_rate(own, unit(body.nv, j))
                columns.append(_partial(function, q, body.q_slice, rate, constants))
    return columns


def _partial(
    function: Callable[[list[Scalar]], list[Scalar]],
    x: Scalars,
    part: slice,
    rate: Scalars,
    constants: Scalars = (),
) -> list[Scalar]:
    """Return the derivative along a rate of some arguments; the others are constant, which costs less."""
    before, after = list(x[: part.start]), list(x[part.stop :])
    return directional_derivative(
        lambda own: function([*before, *own, *after]), x[part], rate, [*before, *after, *constants]
    )[1]


# Explicit constraints q = gamma(y): Featherstone 2008 section 8.11, Eqs 8.56 to 8.60.
#
#     v = G(y) dy/dt + (d gamma / dt),     a = G d²y/dt² + g
#
# G and g are exact derivatives of gamma along the motion; rows of independent joints are unit rows.


class ClosureEquations(NamedTuple):
    """q (nq), v (nv), G (nv, ny) and g (nv) of a system that moves with y: v = G ydot, a = G ydd + g."""

    q: list[Scalar]
    v: list[Scalar]
    G: Matrix
    g: list[Scalar]


def closure_equations(tree: Tree, y: Scalars, ydot: Scalars, *, time: Time = None) -> ClosureEquations:
    """Return q = gamma(y), v = G ydot, and G, g of a = G ydd + g.

    `y`: the positions, `ydot`: the velocity variables of `closure.independent`, joint by joint. Where gamma
    depends on time, v and g hold its part as well.
    """
    model, closure = _closure(tree)
    dependent = [i for i in range(model.nv) if i not in closure.velocities]
    places = _positions_of(model, dependent)

    def gamma(x: Scalars, now: Scalar | None) -> list[Scalar]:
        q = closure.configuration(model, x, now)
        return [q[i] for i in places]

    def rate(x: Scalars, now: Scalar | None) -> list[Scalar]:
        derivative: list[Scalar] = _along(model, closure, gamma, x, ydot, now, 1.0)[1]
        return derivative

    ny = len(ydot)
    columns = [_along(model, closure, gamma, y, unit, time, 0.0)[1] for unit in identity(ny)]
    first, second = _along(model, closure, rate, y, ydot, time, 1.0)
    (v, g), G = zeros(2, model.nv), zeros(model.nv, ny)
    for j, place in enumerate(closure.velocities):
        v[place] = ydot[j]
        G[place][j] = 1.0
    for row, place in enumerate(dependent):
        v[place], g[place] = first[row], second[row]
        G[place] = [column[row] for column in columns]
    return ClosureEquations(closure.configuration(model, y, time), v, G, g)


def closure_rows(tree: Tree, q: Scalars, v: Scalars, time: Time = None) -> UserRows:
    """Return the implicit form of q = gamma(y): one row q_d - gamma_d(y) = 0 for each dependent variable."""
    model, closure = _closure(tree)
    y, ydot = [q[i] for i in closure.positions], [v[i] for i in closure.velocities]
    found = closure_equations(tree, y, ydot, time=time)
    dependent = [i for i in range(model.nv) if i not in closure.velocities]
    K = [unit(model.nv, i) for i in dependent]
    for row, i in zip(K, dependent, strict=True):
        for place, entry in zip(closure.velocities, found.G[i], strict=True):
            row[place] = -entry
    errors = [q[i] - found.q[i] for i in _positions_of(model, dependent)]
    return UserRows(K, [found.g[i] for i in dependent], [v[i] - found.v[i] for i in dependent], errors)


def _closure(tree: Tree) -> tuple[Model, LoopClosure]:
    if tree.closure is None:
        raise ModelError("the model has no loop closure; give it one with builder.set_loop_closure")
    return original_model(tree), tree.closure


def _positions_of(model: Model, velocities: Sequence[int]) -> list[int]:
    """Return the places in q of velocity variables that are rates of positions."""
    offsets = {i: b.q_slice.start - b.v_slice.start for b in model.bodies for i in range(model.nv)[b.v_slice]}
    return [i + offsets[i] for i in velocities]


def _along(
    model: Model, closure: LoopClosure, function: Any, y: Scalars, ydot: Scalars, time: Time, clock: float
) -> tuple[Any, Any]:
    """Return (f, df/dt) of f(y, time); y moves with ydot and time, if gamma has it, at the rate `clock`."""
    rate: list[Scalar] = []
    start_q = start_v = 0
    for name in closure.independent:
        joint = model.joint(name).joint
        own_y, own_v = y[start_q : start_q + joint.nq], ydot[start_v : start_v + joint.nv]
        rate += joint.position_rate(own_y, own_v)
        start_q, start_v = start_q + joint.nq, start_v + joint.nv
    if not closure.time_dependent:
        return directional_derivative(lambda x: function(x, None), y, rate, ydot)
    if time is None:
        raise ArgumentError("the loop closure depends on time; pass time=…")
    return directional_derivative(lambda x: function(x[:-1], x[-1]), [*y, time], [*rate, clock], ydot)


# The constraint equations K(q) a = k(q, v) of a whole system (Featherstone 2008 Eqs 8.4, 8.16, 8.21).


class ConstraintEquations(NamedTuple):
    """K a = k, row by row: loop joints in order, then user constraints; `names`: whose row it is.

    `K` (nc, nv); `k` (nc); `velocity_error` = K v minus what is prescribed, zero in a motion that keeps the
    constraints; `position_error` = delta of Table 8.1 or the residual, zero for constraints of velocity.
    """

    K: Matrix
    k: list[Scalar]
    velocity_error: list[Scalar]
    position_error: list[Scalar]
    names: tuple[str, ...]


def constraint_equations(
    tree: Tree, q: Scalars, v: Scalars, *, time: Time = None, coordinates: str = "nearby"
) -> ConstraintEquations:
    """Return K(q) a = k(q, v), without stabilisation; Featherstone 2008 Eqs 8.14 to 8.20 and Table 8.4.

    A loop closure q = gamma(y) beside loops or user constraints solves them and adds no rows; alone it is the
    constraint. `coordinates`: where loops are computed, "nearby" or "base"; see `loop_rows`.
    """
    if not isinstance(tree, StandingTree):
        original_model(tree)  # refuses trees without constraints of their own
    parts: list[tuple[str, LoopRows | UserRows]] = [
        (loop.name, loop_rows(tree, loop, q, v, time=time, coordinates=coordinates)) for loop in tree.loops
    ]
    parts += rows_of_users(tree, q, v, time)
    return ConstraintEquations(
        [row for _, part in parts for row in part.K],
        [x for _, part in parts for x in part.k],
        [x for _, part in parts for x in part.velocity_error],
        [x for _, part in parts for x in part.position_error],
        tuple(name for name, part in parts for _ in part.k),
    )


def stabilized_k(equations: ConstraintEquations, stabilization: Stabilization) -> list[Scalar]:
    """Return k + k_stab = k - 2 alpha K v - beta^2 delta, alpha = beta = 1 / T_stab (Eqs 8.21 and 8.22).

    An error then decays like (1 + t/T) exp(-t/T). T_stab [s]: about the time between two pictures that
    would not miss anything of the motion; 0.1 s for a large robot. A factor of two changes little. What else
    `stabilization` may be is in the module of that name.
    """
    return [
        stabilized_row(k, e_v, e_p, stabilization)
        for k, e_v, e_p in zip(equations.k, equations.velocity_error, equations.position_error, strict=True)
    ]


# The residual of the constraints of a configuration, in a form without spurious roots.
#
# delta of Table 8.1 is made for small errors: its sines vanish at half a turn as well. Here the error of a
# loop joint is the whole displacement from where its successor ought to be, at `position_of`, to where it is,
#
#     d = (log(R_err), R_err^T p_err),     X_err = X_J(q_J)^-1 X,     residual = T^T d
#
# which agrees with delta to first order and vanishes, all of d, only where the loop is closed.


class ClosingEquations(NamedTuple):
    """residual (n) and its Jacobian K (n, nv), to first order, of all constraints of position; `gap`: numbers
    that are all zero where the constraints hold, and only there.
    """

    residual: list[Scalar]
    K: Matrix
    gap: list[Scalar]


@public("constraints", "q", method="nearby", frame_free=True)
def constraint_jacobian(tree: Tree, q: Scalars, *, time: Scalar | None = None) -> Matrix:
    """Compute the constraint Jacobian K(q) `(…, nc, nv)` of K v = 0 (or a prescribed rate) and K a = k.

    Loop joints come in order, with 6 - nv rows T^T J_L each in the loop joint's successor frame, then the
    user constraints (Featherstone 2008 Eqs 8.18 to 8.20).

    >>> model = da.models.four_bar()
    >>> K = da.constraints.constraint_jacobian(model, model.neutral())
    >>> print(K.shape, np.linalg.matrix_rank(K))
    (5, 3) 2
    """
    return constraint_equations(tree, q, [0.0] * tree.nv, time=time).K


@public("constraints", "q v", method="nearby", frame_free=True)
def constraint_bias(tree: Tree, q: Scalars, v: Scalars, *, time: Scalar | None = None) -> list[Scalar]:
    """Compute the velocity-product term k(q, v) = -K' v `(…, nc)` of K a = k.

    Without stabilisation. k_l = -T^T (a_s - a_p + v_s x v_p) - T°^T (v_s - v_p), at dv/dt = 0 (Featherstone
    2008 Eqs 8.15 and 8.47).

    >>> model = da.models.four_bar()
    >>> q, v = da.constraints.close_loops(model, model.neutral(), [1.0, 0.0, 0.0])
    >>> a = da.forward_dynamics(model, q, v, np.zeros(3))
    >>> error = da.constraints.constraint_jacobian(model, q) @ a - da.constraints.constraint_bias(model, q, v)
    >>> print(np.abs(error).max() < 1e-12)
    True
    """
    return constraint_equations(tree, q, v, time=time).k


@public("constraints", "q", method="nearby", frame_free=True)
def constraint_error(tree: Tree, q: Scalars, *, time: Scalar | None = None) -> list[Scalar]:
    """Compute the position error delta(q) `(…, nc)` [rad or m] of loops and user constraints.

    delta = T^T d of Featherstone 2008 Table 8.1, where d is the small displacement of a loop joint's
    successor from its admissible to its actual place; zero for velocity constraints.

    >>> model = da.models.four_bar()
    >>> print(np.abs(da.constraints.constraint_error(model, model.neutral())).max() < 1e-15)
    True
    >>> print(da.constraints.constraint_error(model, [0.1, 0.0, 0.0]).round(3))
    [ 0.     0.    -0.096 -0.057  0.   ]
    """
    return constraint_equations(tree, q, [0.0] * tree.nv, time=time).position_error


@kernel("q", method="nearby", frame_free=True)
def constraint_velocity(tree: Tree, q: Scalars, *, time: Scalar | None = None) -> tuple[Matrix, list[Scalar]]:
    """Return K and the velocity error at rest, for which K v + error must vanish."""
    equations = constraint_equations(tree, q, [0.0] * tree.nv, time=time)
    return equations.K, equations.velocity_error


@kernel("q", method="nearby", frame_free=True)
def closing_equations(tree: Tree, q: Scalars, *, time: Time = None) -> ClosingEquations:
    """Return the equations K dq = -residual of a Gauss-Newton step toward closed loops."""
    at_rest: list[Scalar] = [0.0] * tree.nv
    residual: list[Scalar] = []
    K: Matrix = []
    gap: list[Scalar] = []
    for loop in tree.loops:
        rows = loop_rows(tree, loop, q, at_rest, time=time)
        X_J = loop.joint.transform(loop.joint.position_of(rows.X, time), time).as_transform()
        error = X_J.inverse() @ rows.X
        d = Motion(so3_log(error.R), error.R.transposed_times(error.p))
        residual += [d.dot(force) for force in rows.T]
        K += rows.K
        gap += d.to_list() if rows.T else []
    for _, part in rows_of_users(tree, q, at_rest, time, kind="position"):
        residual += part.position_error
        K += part.K
        gap += part.position_error
    return ClosingEquations(residual, K, gap)
