"""Conversion between generalized and maximal velocities and forces (Liu & Jain section 6).

Maximal coordinates are those of engines that keep every body free: for each body (omega, v of its centre of
mass) and (torque about it, force), in world axes, angular first (the text has linear first).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dalembert.algorithms.declaration import NO_LOADS, public
from dalembert.algorithms.dense import (
    Matrix,
    PseudoInverse,
    dot,
    identity,
    plus,
    symmetric_pseudo_inverse,
    total,
    transpose,
    zeros,
)
from dalembert.algorithms.inverse_dynamics import joint_forces
from dalembert.algorithms.jacobians import all_jacobians, jacobian
from dalembert.algorithms.kinematics import body_velocities, forward_kinematics, require_centers_of_mass
from dalembert.algorithms.open_tree import add_block, has_couplings
from dalembert.errors import ArgumentError
from dalembert.model.body import Body, Frame, JointMotion
from dalembert.model.joints import Joint
from dalembert.model.joints.subspaces import combination
from dalembert.model.model import Model
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time, is_one, is_zero
from dalembert.spatial import ArticulatedInertia, Force, Mat3, Motion, RigidInertia, SymMat3, Transform, Vec3


@public("cartesian", "q v", method="tree")
def maximal_velocities(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> PerBody[Motion]:
    """Return the velocities V_k = (omega_k, v_k) = J_k v of all bodies `(…, n_bodies, 6)` [rad/s, m/s].

    v_k is the velocity of the body's centre of mass; both parts are in world axes, angular first. Engines
    that use maximal coordinates have these velocities, mostly with the linear part first. Liu & Jain Eqs 58
    and 60.

    >>> model = da.models.pendulum()
    >>> da.cartesian.maximal_velocities(model, [0.0], [2.0]).shape
    (1, 6)
    """
    require_centers_of_mass(tree, "maximal_velocities")
    poses = forward_kinematics(tree, q, time=time)
    velocities = body_velocities(tree, q, v, time=time)
    return PerBody(
        [at_center_of_mass(body.inertia.com, poses[body], velocities[body]) for body in tree.bodies]
    )


@public("cartesian", "q", method="tree")
def maximal_jacobians(model: Model, q: Scalars, *, time: Time = None) -> PerBody[Matrix]:
    """Return the Jacobians J_k(q) `(…, n_bodies, 6, nv)` with `maximal_velocities` = J v.

    The rows are those of J_omega, then of J_v at the body's centre of mass, in world axes. A torque and a
    force at that point contribute the generalized force J_k^T (torque, force). Liu & Jain Eq. 58.

    >>> model = da.models.two_link_arm()
    >>> J = da.cartesian.maximal_jacobians(model, [0.3, -0.8])
    >>> V = da.cartesian.maximal_velocities(model, [0.3, -0.8], [1.0, 2.0])
    >>> bool(np.allclose(J @ [1.0, 2.0], V))
    True
    """
    require_centers_of_mass(model, "maximal_jacobians")

    places = [Transform(Mat3.identity(), body.inertia.com) for body in model.bodies]
    centers = [Frame("center of mass", k, place) for k, place in enumerate(places)]
    return PerBody([jacobian(model, q, center, frame="world_aligned", time=time) for center in centers])


def at_center_of_mass(com: Vec3, pose: Transform, velocity: Motion) -> Motion:
    """Return (omega, v of the centre of mass) in world axes, from a spatial velocity in body coordinates."""
    return Motion(pose.R @ velocity.angular, pose.R @ velocity.at(com))


def from_maximal(com: Vec3, pose: Transform, V: Motion) -> Motion:
    """Return the spatial velocity in body coordinates of a body whose (omega, v) in world axes is V."""
    omega, v = pose.R.transposed_times(V.angular), pose.R.transposed_times(V.linear)
    return Motion(omega, v - omega.cross(com))


# Least squares over the velocities of a tree, in linear time.
#
# Which v makes the bodies' velocities J_k v come nearest to given ones? The normal equations are
#
#     (sum J_k^T W_k J_k + B) y = sum J_k^T p_k + Q                                                     (1)
#
# with a weight W_k on each body and B_k on each joint. They are the equations of motion of a tree at rest
# whose bodies have the inertias W_k and its joints the armature B_k, under the forces p_k and Q: the
# articulated-body algorithm solves them (Featherstone 2008 section 7.3), in one inward and one outward pass:
#
#     U = I^A S,  D = S^T U + B,  y_k = D^+ (S^T p^A + Q_k - U^T X v_p),  v_k = X v_p + S y_k
#     I^a = I^A - U D^+ U^T,  p^a = p^A - U D^+ (S^T p^A + Q_k)
#
# The weight of |omega_k|^2 + |v_k|^2, v_k at the centre of mass, is the inertia of a body of unit mass and
# unit inertia there. Where S loses rank, null(D) = null(S), and the pseudo-inverses of the joints' D are that
# of the whole matrix: nothing else moves no body. Where joints are coupled the matrix is formed and factored.


def is_regular(body: Body, q: Scalars, time: Time) -> bool:
    """Return whether S has full rank at every q, by the kind of joint."""
    return is_one(body.joint.singularity_measure(body.own_q(q), time))


def unit_weights(tree: Tree) -> PerBody[RigidInertia]:
    """Return the inertia whose energy is |omega|^2 + |velocity of the centre of mass|^2, for each body."""
    return PerBody([RigidInertia(1.0, body.inertia.com, SymMat3.identity()) for body in tree.bodies])


class NormalEquations(NamedTuple):
    """The weights W_k, p_k and Q of Eq. (1), None for zero; `turning`: B_k weighs |omega_J|^2."""

    weights: PerBody[RigidInertia]
    forces: PerBody[Force] | None = None
    Q: Scalars | None = None
    turning: bool = False


def least_squares(tree: Tree, q: Scalars, equations: NormalEquations, *, time: Time = None) -> list[Scalar]:
    """Return y `(nv,)` of Eq. (1), the shortest where it is not unique."""
    if has_couplings(tree):
        return _by_matrix(tree, q, equations, time)
    weights, forces, Q, turning = equations

    def inward(
        body: Body, beyond: tuple[ArticulatedInertia, Force]
    ) -> tuple[
        tuple[ArticulatedInertia, Force], tuple[JointMotion, list[Force], PseudoInverse, list[Scalar]]
    ]:
        joint = X, S, _, _ = body.jcalc(q, None, time)
        I_A = beyond[0] + weights[body]
        p_A = beyond[1] if forces is None else beyond[1] + forces[body]
        U = [I_A * s for s in S]
        D_k = [[s.dot(u) for u in U] for s in S]
        if turning:
            D_k = plus(D_k, [[s.angular.dot(other.angular) for other in S] for s in S])
        D = symmetric_pseudo_inverse(D_k, regular=is_regular(body, q, time))
        u = [s.dot(p_A) for s in S]
        if Q is not None:
            u = [x + own for x, own in zip(u, body.own_v(Q), strict=True)]
        I_a, p_a = _seen_from_parent(I_A, p_A, U, D, u)
        return (X.inverse_apply(I_a), X.inverse_apply(p_a)), (joint, U, D, u)

    gathered, _ = tree.inward(inward, (ArticulatedInertia.zero(), Force.zero()))

    def outward(body: Body, v_parent: Motion) -> tuple[Motion, list[Scalar]]:
        (X, S, _, _), U, D, u = gathered[body]
        carried = X.apply(v_parent)
        y = D.solve([x - f.dot(carried) for x, f in zip(u, U, strict=True)])
        return carried + combination(S, y), y

    return tree.collect(tree.outward(outward, Motion.zero()))


def _seen_from_parent(
    I_A: ArticulatedInertia, p_A: Force, U: Sequence[Force], D: PseudoInverse, u: Scalars
) -> tuple[ArticulatedInertia, Force]:
    """Return (I^a, p^a): the body with its joint free."""
    if not U:
        return I_A, p_A
    columns = [f.to_list() for f in U]
    K = [D.solve([column[r] for column in columns]) for r in range(6)]
    A = I_A.matrix()
    I_a = ArticulatedInertia.from_upper(lambda i, j: A[i][j] - dot(K[i], [column[j] for column in columns]))
    p = [x - dot(row, u) for x, row in zip(p_A.to_list(), K, strict=True)]
    return I_a, Force.of(p)


def _by_matrix(tree: Tree, q: Scalars, equations: NormalEquations, time: Time) -> list[Scalar]:
    """Solve Eq. (1) with its matrix formed from Jacobians in body coordinates."""
    weights, forces, Q, turning = equations
    n = tree.nv
    A, b = zeros(n, n), [0.0] * n if Q is None else list(Q)
    for body, J in zip(tree.bodies, all_jacobians(tree, q, time=time), strict=True):  # type: ignore[arg-type]
        columns = [Motion.of(column) for column in transpose(J)]
        momenta = [weights[body] * s for s in columns]
        for i, s in enumerate(columns):
            A[i] = [x + s.dot(h) for x, h in zip(A[i], momenta, strict=True)]
            b[i] = b[i] if forces is None else b[i] + s.dot(forces[body])
        if turning:
            axes = [s.angular for s in body.jcalc(q, None, time).S]
            add_block(A, body, body, [[a.dot(other) for other in axes] for a in axes])
    return symmetric_pseudo_inverse(A).solve(b)


# Generalized velocities from maximal ones: v = J^+ V, and the residual (Liu & Jain section 6.1).
#
# V holds (omega_k, v_k) of every body, in world axes, v_k of its centre of mass. The bodies of a tree cannot
# move as they like, so V = J v has more equations than unknowns:
#
#     v = J^+ V = (J^T J)^-1 J^T V                                                                (61)
#     residual = V - J v         zero if and only if V keeps the joints together
#
# Angles and lengths count alike, a radian as much as a metre. Rheonomic joints: V less what moves at v = 0.


class GeneralizedVelocity(NamedTuple):
    """v `(nv,)` and the residual V - J v `(n_bodies, 6)`, the part of V that the joints do not allow."""

    v: list[Scalar]
    residual: PerBody[Motion]


@public(
    "cartesian",
    "q body_velocities",
    method="least_squares",
    others=lambda: {
        "pseudo_inverse": generalized_velocity_by_pseudo_inverse,
        "joint_by_joint": generalized_velocity_joint_by_joint,
        "rotations_first": generalized_velocity_rotations_first,
    },
    returns="tuple[Array, Array]",
)
def generalized_velocity(
    tree: Tree, q: Scalars, body_velocities: Sequence[Scalars], *, time: Time = None
) -> GeneralizedVelocity:
    """Return v = J^+ V `(…, nv)` and the residual V - J v `(…, n_bodies, 6)` for given body velocities V.

    `body_velocities`: V `(…, n_bodies, 6)`, (omega, v of the centre of mass) of every body in world axes. The
    residual is zero if and only if V is compatible with the joints; otherwise v is the least-squares
    solution, with a radian weighted like a metre. At a singular joint it is the solution of least norm. Liu &
    Jain Eq. 61.

    `method`: "least_squares" (the default, in linear time), "pseudo_inverse" (the same by J^T J, as in the
    text), "joint_by_joint" (from each joint's relative velocity alone; the same if the residual is zero),
    "rotations_first" (Eq. 66: rotations, then translations; not for joints that chain parallel axes).

    >>> model = da.models.two_link_arm()
    >>> V = da.cartesian.maximal_velocities(model, [0.3, -0.8], [1.0, 2.0])
    >>> v, residual = da.cartesian.generalized_velocity(model, [0.3, -0.8], V)
    >>> v.round(6).tolist(), bool(abs(residual).max() < 1e-12)
    ([1.0, 2.0], True)
    """
    require_centers_of_mass(tree, "generalized_velocity")
    poses = forward_kinematics(tree, q, time=time)
    weights = unit_weights(tree)
    wanted = without_drift(tree, q, body_velocities, time)
    momenta = [
        weights[body] * from_maximal(body.inertia.com, poses[body], V)
        for body, V in zip(tree.bodies, wanted, strict=True)
    ]
    v = least_squares(tree, q, NormalEquations(weights, PerBody(momenta)), time=time)
    return GeneralizedVelocity(v, residual_of(tree, q, v, body_velocities, time))


def generalized_velocity_by_pseudo_inverse(
    model: Model, q: Scalars, body_velocities: Sequence[Scalars], *, time: Time = None
) -> GeneralizedVelocity:
    """Compute Eq. 61 literally: J of all bodies, J^T J, its pseudo-inverse."""
    return generalized_velocity_from_rows(model, q, body_velocities, range(6 * len(model.bodies)), time=time)


def generalized_velocity_from_rows(
    model: Model, q: Scalars, body_velocities: Sequence[Scalars], rows: Sequence[int], *, time: Time = None
) -> GeneralizedVelocity:
    """Return v from some rows of V = J v only, counted body by body, six each (the J' of section 6.1).

    Any rows of J that have the rank of J give the same v, if the joints allow V.
    """
    J = [row for matrix in maximal_jacobians(model, q, time=time) for row in matrix]
    V = [x for motion in without_drift(model, q, body_velocities, time) for x in motion.to_list()]
    columns = transpose([J[r] for r in rows])
    gram = [[dot(a, b) for b in columns] for a in columns]
    v = symmetric_pseudo_inverse(gram).solve([dot(column, [V[r] for r in rows]) for column in columns])
    return GeneralizedVelocity(v, residual_of(model, q, v, body_velocities, time))


def residual_of(
    tree: Tree, q: Scalars, v: Scalars, body_velocities: Sequence[Scalars], time: Time
) -> PerBody[Motion]:
    """Return V - J v."""
    found = maximal_velocities(tree, q, v, time=time)
    return PerBody([Motion.of(given) - V for given, V in zip(body_velocities, found, strict=True)])


def without_drift(tree: Tree, q: Scalars, body_velocities: Sequence[Scalars], time: Time) -> list[Motion]:
    """Return V less the velocities that rheonomic joints give the bodies at v = 0."""
    wanted = [Motion.of(given) for given in body_velocities]
    if time is None:
        return wanted
    drift = maximal_velocities(tree, q, [0.0] * tree.nv, time=time)
    return [V - own for V, own in zip(wanted, drift, strict=True)]


# Generalized velocities from relative ones, one joint at a time (Liu & Jain section 6.1, Eqs 62 to 66).
#
# D subtracts from every body its parent: 1 on the diagonal, -1 at the parent; R = blockdiag(R_p(k)).
#
#     omega^ = R^T D omega,    omega^_k = J^_omega,k v_k,    v_k = (J^_omega,k)^+ omega^_k            (65, 66)
#
# Each pseudo-inverse is of one joint's size. Rotations suffice where joints only turn. In mixed systems they
# are found first, and the translations of the joint from what they leave of its linear velocity. That asks
# for turning columns J^_omega whose rank is their number, which all joints have but those that chain parallel
# axes, as a `Composite` may. Taking the whole relative velocity at once admits every joint: v_k = S_k^+ (V_k
# - X V_p).
#
# Every v that the joints allow is recovered. Of one that they do not, each joint takes what it can of the
# given relative motion; `generalized_velocity` distributes the error over all of them.


def connectivity_matrix(parents: Sequence[int]) -> list[list[float]]:
    """Return D, each entry for a 3x3 block: 1 on the diagonal, -1 at the parent (Eq. 64)."""
    D = identity(len(parents))
    for k, parent in enumerate(parents):
        if parent >= 0:
            D[k][parent] = -1.0
    return D


def relative_angular_velocities(
    tree: Tree, q: Scalars, omegas: Sequence[Vec3], *, time: Time = None
) -> PerBody[Vec3]:
    """Return omega^ = R^T D omega: relative to the parents, in the parents' axes; omega in the world's."""
    poses = forward_kinematics(tree, q, time=time)
    return PerBody(
        [
            omegas[body.index]
            if body.parent < 0
            else poses[body.parent].R.transposed_times(omegas[body.index] - omegas[body.parent])
            for body in tree.bodies
        ]
    )


def joint_jacobian(body: Body, q: Scalars, *, time: Time = None) -> list[Motion]:
    """Return the columns (J^_omega, J^_v at the body's origin) of a joint, in the parent's axes (Eq. 52)."""
    X, S, _, _ = body.jcalc(q, None, time)
    return [Motion(X.rotate_to_parent(s.angular), X.rotate_to_parent(s.linear)) for s in S]


def turning_columns(joint: Joint) -> list[int]:
    """Return the columns of S that turn; the others only slide, at every position."""
    S = joint.subspace(joint.neutral(), 0.0 if joint.time_dependent else None)
    return [k for k, s in enumerate(S) if not all(is_zero(x) for x in s.angular)]


def generalized_velocity_joint_by_joint(
    tree: Tree, q: Scalars, body_velocities: Sequence[Scalars], *, time: Time = None
) -> GeneralizedVelocity:
    """Return v_k = S_k^+ (V_k - X V_p), for every joint type: m pseudo-inverses of constant size."""

    def own(body: Body, joint: JointMotion, v_J: Motion) -> list[Scalar]:
        gram = [[_six(a, b) for b in joint.S] for a in joint.S]
        inverse = symmetric_pseudo_inverse(gram, regular=is_regular(body, q, time))
        return inverse.solve([_six(s, v_J) for s in joint.S])

    return _each_joint(tree, q, body_velocities, time, own)


def generalized_velocity_rotations_first(
    tree: Tree, q: Scalars, body_velocities: Sequence[Scalars], *, time: Time = None
) -> GeneralizedVelocity:
    """Return v_k = (J^_omega)^+ omega^_k of columns that turn (66), then (J^_v)^+ of those that slide."""

    def own(body: Body, joint: JointMotion, v_J: Motion) -> list[Scalar]:
        omega_hat, u = joint.X.rotate_to_parent(v_J.angular), joint.X.rotate_to_parent(v_J.linear)
        J = joint_jacobian(body, q, time=time)
        turning = turning_columns(body.joint)
        sliding = [k for k in range(len(J)) if k not in turning]
        rates: list[Scalar] = [0.0] * len(J)
        for k, rate in zip(
            turning, _vectors_inverse([J[k].angular for k in turning], omega_hat), strict=True
        ):
            rates[k] = rate
            u = u - J[k].linear * rate
        for k, rate in zip(sliding, _vectors_inverse([J[k].linear for k in sliding], u), strict=True):
            rates[k] = rate
        return rates

    return _each_joint(tree, q, body_velocities, time, own)


def _each_joint(
    tree: Tree,
    q: Scalars,
    body_velocities: Sequence[Scalars],
    time: Time,
    own: Callable[[Body, JointMotion, Motion], list[Scalar]],
) -> GeneralizedVelocity:
    """Return v from `own(body, joint, S v)` of each joint by itself, and the residual velocities."""
    poses = forward_kinematics(tree, q, time=time)
    given = [
        from_maximal(body.inertia.com, poses[body], Motion.of(V))
        for body, V in zip(tree.bodies, body_velocities, strict=True)
    ]
    v: list[Scalar] = [0.0] * tree.nv
    for body in tree.bodies:
        if body.dependence is None:  # joints that follow others by couplings are ignored
            joint, v_J = body.jcalc(q, None, time), given[body.index]
            if body.parent >= 0:
                v_J = v_J - joint.X.apply(given[body.parent])
            v[body.v_slice] = own(
                body, joint, v_J - joint.v_J
            )  # without what a rheonomic joint does at v = 0
    return GeneralizedVelocity(v, residual_of(tree, q, v, body_velocities, time))


def _vectors_inverse(columns: Sequence[Vec3], x: Vec3) -> list[Scalar]:
    """Return the columns' pseudo-inverse times x."""
    gram = [[a.dot(b) for b in columns] for a in columns]
    return symmetric_pseudo_inverse(gram).solve([a.dot(x) for a in columns])


def _six(a: Motion, b: Motion) -> Scalar:
    """Return a^T b, both in the same coordinates."""
    return a.angular.dot(b.angular) + a.linear.dot(b.linear)


# Conversion between Cartesian and generalized forces (Liu & Jain section 6.2).
#
# Legend, in world axes: f_k a force on body k at the point r_k; tau'_k a torque on it, without the moment of
# f_k; x_k its centre of mass; tau_k = tau'_k + (r_k - x_k) x f_k. tau^_k is a torque of joint k, in the
# parent's axes: R_p tau^_k acts on body k and -R_p tau^_k on its parent. R and D as in `joint_by_joint`.
#
#     Q = sum J'_v,k^T f_k + J_omega,k^T tau'_k             J' at the point of application           (67)
#     tau' = (R^T D)^T tau^                                                                          (68)
#     Q = J'_v^T f + J^_omega^T tau^                                                                 (69)
#
# From Q to forces there are more unknowns than equations; the solution of least norm is chosen:
#
#     (tau, f) = (J^T)^+ Q = J (J^T J)^+ Q                   at the centres of mass                   (70)
#     tau^_k = (J^_omega,k^T)^+ Q_k                          no linear forces, joint by joint         (71)
#
# (J^T J)^+ Q is found in linear time, see `least_squares`: what J makes of it are velocities of the bodies,
# read as forces. The inverse of (69) with given points is the same with other weights: |velocity of the
# point|^2 for f_k and |omega^_k|^2 for tau^_k.

Vectors = Sequence[Scalars]
"""Three scalars a body."""


@public(
    "cartesian",
    "q",
    optional="forces points torques joint_torques time",
    method="tree",
    one_of=("forces", "torques", "joint_torques"),
)
def generalized_force(
    tree: Tree,
    q: Scalars,
    *,
    forces: Vectors | None = None,
    points: Vectors | None = None,
    torques: Vectors | None = None,
    joint_torques: Vectors | None = None,
    time: Time = None,
) -> list[Scalar]:
    """Compute Q = sum J'_v^T f_k + J_omega^T tau'_k + J^_omega^T tau^_k `(…, nv)` [N m or N].

    All arguments are `(…, n_bodies, 3)`. `forces`: f_k [N] at the world `points` r_k [m] (default: the
    centres of mass), in world axes. `torques`: tau'_k [N m] on the bodies, in world axes, without the moments
    of f_k. `joint_torques`: tau^_k [N m] in the axes of the parent body, on body k and reversed on its
    parent. Liu & Jain Eqs 67 and 69.

    >>> model = da.models.pendulum()
    >>> weight = model.total_mass * np.array([[0.0, 0.0, -9.81]])
    >>> Q = da.cartesian.generalized_force(model, [0.5], weight)
    >>> bool(np.allclose(Q, -da.gravity_forces(model, [0.5])))
    True
    """
    if forces is torques is joint_torques is None:
        raise ArgumentError("generalized_force needs forces, torques or joint_torques; none was given")
    if forces is None and points is not None:
        raise ArgumentError("generalized_force: points are where forces act, and no forces were given")
    if forces is not None and points is None:
        require_centers_of_mass(tree, "generalized_force")
    poses = forward_kinematics(tree, q, time=time)

    def acting(body: Body) -> Force:
        pose = poses[body]
        f = Vec3.zero() if forces is None else pose.R.transposed_times(Vec3.of(forces[body.index]))
        r = body.inertia.com if points is None else in_body(pose, points[body.index])
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


@public("cartesian", "q joint_torques", method="tree")
def body_torques(tree: Tree, q: Scalars, joint_torques: Vectors, *, time: Time = None) -> PerBody[Vec3]:
    """Return the torques tau' = (R^T D)^T tau^ `(…, n_bodies, 3)` [N m] of joint torques on the bodies.

    `joint_torques`: tau^_k `(…, n_bodies, 3)` [N m] in the axes of the parents. Each acts as R_p tau^_k on
    body k and reversed on its parent; the result is in world axes. Torques of joints between two bodies add
    up to zero. Liu & Jain Eq. 68.

    >>> model = da.models.two_link_arm()
    >>> da.cartesian.body_torques(model, [0.0, 0.0], [[0.0, 3.0, 0.0], [0.0, 1.0, 0.0]]).tolist()
    [[0.0, 2.0, 0.0], [0.0, 1.0, 0.0]]
    """
    poses = forward_kinematics(tree, q, time=time)

    def step(body: Body, reactions: Vec3) -> tuple[Vec3, Vec3]:
        tau = Vec3.of(joint_torques[body.index])
        if body.parent >= 0:
            tau = poses[body.parent].R @ tau
        return tau, tau - reactions

    # What a joint does to its body it does to the parent in reverse, and to no other body.
    return tree.inward(step, Vec3.zero())[0]


@public("cartesian", "q tau", method="least_squares", without=NO_LOADS)
def cartesian_forces(tree: Tree, q: Scalars, tau: Scalars, *, time: Time = None) -> PerBody[Force]:
    """Return torques and forces (tau_k, f_k) = (J^T)^+ Q on all bodies `(…, n_bodies, 6)` [N m, N].

    `tau`: generalized forces Q `(…, nv)`. Of all torques and forces at the centres of mass, in world axes,
    that do the same work, the result has the least norm. `generalized_force` with `forces` and `torques` maps
    it back to Q. Liu & Jain Eq. 70.

    >>> model = da.models.two_link_arm()
    >>> F = da.cartesian.cartesian_forces(model, [0.3, -0.8], [1.0, 2.0])
    >>> da.cartesian.generalized_force(model, [0.3, -0.8], F[:, 3:], torques=F[:, :3]).round(6).tolist()
    [1.0, 2.0]
    """
    require_centers_of_mass(tree, "cartesian_forces")
    poses = forward_kinematics(tree, q, time=time)
    y = least_squares(tree, q, NormalEquations(unit_weights(tree), Q=tau), time=time)
    moved = _velocities(tree, q, y, time)
    at_centers = [at_center_of_mass(body.inertia.com, poses[body], moved[body]) for body in tree.bodies]
    return PerBody([Force(V.angular, V.linear) for V in at_centers])


@public("cartesian", "q tau points", method="least_squares", without=NO_LOADS, returns="tuple[Array, Array]")
def cartesian_forces_at_points(
    tree: Tree, q: Scalars, tau: Scalars, points: Vectors, *, time: Time = None
) -> tuple[PerBody[Vec3], PerBody[Vec3]]:
    """Return forces f_k at given points and joint torques tau^_k `(…, n_bodies, 3)` [N, N m] that equal tau.

    They are the least-norm solution of Q = J'_v^T f + J^_omega^T tau^ (Liu & Jain Eq. 69), with forces in
    world axes at the world `points` `(…, n_bodies, 3)` [m] and joint torques in the axes of the parents.

    >>> model, q = da.models.two_link_arm(), [0.3, -0.8]
    >>> points = np.ones((2, 3))
    >>> f, torques = da.cartesian.cartesian_forces_at_points(model, q, [1.0, 2.0], points)
    >>> da.cartesian.generalized_force(model, q, f, points=points, joint_torques=torques).round(6).tolist()
    [1.0, 2.0]
    """
    poses = forward_kinematics(tree, q, time=time)
    local = [in_body(poses[body], points[body.index]) for body in tree.bodies]
    weights = PerBody([RigidInertia(1.0, r, SymMat3.zero()) for r in local])
    y = least_squares(tree, q, NormalEquations(weights, Q=tau, turning=True), time=time)
    moved = _velocities(tree, q, y, time)
    forces = [poses[body].R @ moved[body].at(r) for body, r in zip(tree.bodies, local, strict=True)]
    turned = [combination(joint_jacobian(body, q, time=time), body.own_v(y)).angular for body in tree.bodies]
    return PerBody(forces), PerBody(turned)


@public("cartesian", "q tau", method="joint_by_joint", without=NO_LOADS, returns="tuple[Array, Array]")
def joint_torques(
    tree: Tree, q: Scalars, tau: Scalars, *, time: Time = None
) -> tuple[PerBody[Vec3], list[Scalar]]:
    """Return the joint torques tau^_k = (J^_omega,k^T)^+ Q_k `(…, n_bodies, 3)` [N m] and the rest `(…, nv)`.

    Each torque is the shortest one that does the work of its joint's generalized forces, in the axes of the
    parent body. The rest Q - J^_omega^T tau^ holds the forces of translations, which torques cannot produce;
    it is zero for joints that only rotate. Liu & Jain Eq. 71.

    >>> model = da.models.two_link_arm()
    >>> torques, rest = da.cartesian.joint_torques(model, [0.3, -0.8], [1.0, 2.0])
    >>> np.linalg.norm(torques, axis=1).round(6).tolist(), rest.round(6).tolist()
    ([1.0, 2.0], [0.0, 0.0])
    """

    torques, rests = [], []
    for body in tree.bodies:
        J = [s.angular for s in joint_jacobian(body, q, time=time)]
        turning = turning_columns(body.joint)
        Q = list(tau[body.v_slice]) if body.dependence is None else [0.0]
        gram = [[J[i].dot(J[j]) for j in turning] for i in turning]
        y = symmetric_pseudo_inverse(gram).solve([Q[k] for k in turning])
        torque = total((J[k] * x for k, x in zip(turning, y, strict=True)), Vec3.zero())
        torques.append(torque)
        rests.append([Q_k - axis.dot(torque) for Q_k, axis in zip(Q, J, strict=True)])
    return PerBody(torques), tree.collect(rests)


def in_body(pose: Transform, point: Scalars) -> Vec3:
    """Return a point of the world in body coordinates."""
    return pose.R.transposed_times(Vec3.of(point) - pose.p)


def _velocities(tree: Tree, q: Scalars, y: Scalars, time: Time) -> PerBody[Motion]:
    """Return J_k y in body coordinates, without the motion of rheonomic joints of their own."""

    def step(body: Body, v_parent: Motion) -> tuple[Motion, Motion]:
        X, S, _, _ = body.jcalc(q, None, time)
        v = X.apply(v_parent) + combination(S, body.own_v(y))
        return v, v

    return tree.outward(step, Motion.zero())
