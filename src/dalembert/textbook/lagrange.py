"""Lagrange's side of the equations of motion (Liu & Jain sections 2 to 5): particles, one body, a tree.

Everything is differentiated exactly, by dual numbers, from functions on generic scalars: positions r(q),
poses (x(q), R(q)), kinetic energies T(q, qd) or mass matrices M(q).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar, Unpack, cast

from dalembert.algorithms.applied_forces import Loads, body_forces
from dalembert.algorithms.coriolis import require_scleronomic
from dalembert.algorithms.dense import Matrix, dot, factor, identity, plus, times, transpose, zeros
from dalembert.algorithms.inverse_dynamics import joint_forces
from dalembert.algorithms.jacobians import jacobian, jacobian_rate
from dalembert.algorithms.kinematics import forward_kinematics, require_centers_of_mass
from dalembert.algorithms.open_tree import require_open_tree, velocity_places
from dalembert.errors import require_choice
from dalembert.model import Body, Frame, Model
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import Force, Mat3, Motion, SymMat3, Transform, Vec3, rotations
from dalembert.spatial.exponential import so3_exp

# The velocity terms from the mass matrix alone (Liu & Jain Eq. 17 and the note after it).
#
# Lagrange's equations on T = qd^T M qd / 2 give M qdd + C with
#
#     C = M' qd - ((dM/dq) qd)^T qd / 2                                                             (17)
#
# The tensor dM/dq has dM/dq_k as its k-th matrix. Two different matrices come of it and qd:
#
#     M'            column j is sum_k (dM_:j/dq_k) qd_k      the rate of M
#     (dM/dq) qd    column j is (dM/dq_j) qd

Found = TypeVar("Found")
MassMatrix = Callable[[list[Scalar]], Sequence[Scalars]]
"""M(q), on generic scalars."""


def gradient(function: Callable[[list[Scalar]], Found], q: Scalars) -> list[Found]:
    """Return the derivatives df/dq_k of any function of q, by dual numbers."""
    return [directional_derivative(function, q, unit)[1] for unit in identity(len(q))]


def mass_matrix_gradient(mass_matrix: MassMatrix, q: Scalars) -> list[Matrix]:
    """Return dM/dq `(n, n, n)`: the k-th matrix is dM/dq_k."""
    return gradient(lambda x: [list(row) for row in mass_matrix(x)], q)


def mass_matrix_rate(gradient: Sequence[Matrix], qd: Scalars) -> Matrix:
    """Return M' = sum_k (dM/dq_k) qd_k `(n, n)`."""
    n = len(qd)
    return [[dot([dM[i][j] for dM in gradient], qd) for j in range(n)] for i in range(n)]


def mass_matrix_gradient_times(gradient: Sequence[Matrix], qd: Scalars) -> Matrix:
    """Return (dM/dq) qd `(n, n)`: column j is (dM/dq_j) qd. Not M'."""
    return transpose([times(dM, qd) for dM in gradient])


def coriolis_vector(mass_matrix: MassMatrix, q: Scalars, qd: Scalars) -> list[Scalar]:
    """Return C(q, qd) `(n,)` of Eq. 17: the velocity terms, quadratic in qd, without gravity."""
    gradient = mass_matrix_gradient(mass_matrix, q)
    rate = mass_matrix_rate(gradient, qd)
    slopes = mass_matrix_gradient_times(gradient, qd)
    return [dot(rate_i, qd) - 0.5 * dot([row[i] for row in slopes], qd) for i, rate_i in enumerate(rate)]


# Lagrange's equations, evaluated for any kinetic energy (Liu & Jain section 2).
#
# D'Alembert: for every virtual displacement sum_i (f_i - mu_i r_i'') . dr_i = 0. With dr_i = sum_j dr_i/dq_j
# dq_j the inertia forces belonging to dq_j are
#
#     mu r'' . dr/dq_j = d/dt (mu r' . dr/dq_j) - mu r' . d/dt (dr/dq_j)                            (5)
#     dr'/dqd_j = dr/dq_j,     d/dt (dr/dq_j) = dr'/dq_j                                            (7, 8)
#     mu r'' . dr/dq_j = d/dt d(mu r'^2/2)/dqd_j - d(mu r'^2/2)/dq_j                                (9, 11)
#
# and, since the dq_j are independent, with T = sum mu r'^2 / 2
#
#     d/dt (dT/dqd_j) - dT/dq_j = Q_j                                                               (13)
#
# d/dt follows (q, qd) along (qd, qdd). The variables must be rates of the coordinates, as for every joint but
# spherical, planar and free ones.

MatrixLike = Sequence[Scalars]
Energy = Callable[[list[Scalar], list[Scalar]], Scalar]
"""T(q, qd) on generic scalars; a Lagrangian T - V serves as well."""


def lagrange_equations(energy: Energy, q: Scalars, qd: Scalars, qdd: Scalars) -> list[Scalar]:
    """Return Q_j = d/dt (dT/dqd_j) - dT/dq_j `(n,)` for any T(q, qd) (Eq. 13), by nested dual numbers.

    With L = T - V for `energy`, V(q) a potential, Q is what acts besides the forces of V.
    """
    n = len(q)

    def momentum(x: list[Scalar], direction: Sequence[float]) -> Scalar:
        return directional_derivative(lambda rates: energy(x[:n], rates), x[n:], direction)[1]

    def force(direction: Sequence[float]) -> Scalar:
        rate = directional_derivative(lambda x: momentum(x, direction), [*q, *qd], [*qd, *qdd])[1]
        return rate - directional_derivative(lambda x: energy(x, list(qd)), q, direction, qd)[1]

    return [force(direction) for direction in identity(n)]


def accelerations_from(M: MatrixLike, C: Scalars, Q: Scalars) -> list[Scalar]:
    """Return qdd = M^-1 (Q - C) of M qdd + C = Q (Eq. 14), for simulation."""
    return factor(M).solve([Q_j - C_j for Q_j, C_j in zip(Q, C, strict=True)])


def forces_from(M: MatrixLike, C: Scalars, qdd: Scalars) -> list[Scalar]:
    """Return Q = M qdd + C (Eq. 14), for inverse dynamics."""
    return [C_j + dot(row, qdd) for row, C_j in zip(M, C, strict=True)]


# One rigid body in the world's axes, at its centre of mass (Liu & Jain section 3).
#
# Legend: m mass; v, omega velocity of the centre of mass and angular velocity; I_0 inertia about it in body
# axes, I_c = R I_0 R^T in the world's; P, L momentum and angular momentum about the centre of mass; f, tau
# net force and torque there. [a] is the matrix of a x: [a] b = -[b] a, [a]^T = -[a], -[a][a] = (a . a) 1 - a
# a^T.
#
#   P = m v,   L = I_c omega,   I_c = sum -mu [r'][r']                                             (18 to 21)
#     I_c' = [omega] I_c - I_c [omega]                  from I_c = R I_0 R^T and [omega] = R' R^T
#     f = m v',   tau = I_c omega' + omega x I_c omega                                               (22, 23)
#
# Both as one equation of six numbers, angular first:
#
#     [ I_c   0  ] [omega']   [ omega x I_c omega ]   [ tau ]
#     [ 0    m 1 ] [  v'  ] + [         0         ] = [  f  ]                                        (24)


class NewtonEulerBlocks(NamedTuple):
    """M_c `(6, 6)` = blockdiag(I_c, m 1) and the velocity terms `(6,)` of Eq. 24, angular first."""

    M_c: Matrix
    bias: list[Scalar]


def world_inertia(R: Mat3, inertia: SymMat3) -> SymMat3:
    """Return I_c = R I_0 R^T, R from body to world axes (Eq. 21)."""
    A = R @ inertia.to_mat3() @ R.transpose()
    return SymMat3(A.xx, A.yy, A.zz, A.xy, A.xz, A.yz)


def world_inertia_rate(omega: Vec3, I_c: SymMat3) -> SymMat3:
    """Return I_c' = [omega] I_c - I_c [omega], symmetric; omega in world axes."""
    W = omega.skew()
    A = W @ I_c.to_mat3() - I_c.to_mat3() @ W
    return SymMat3(A.xx, A.yy, A.zz, A.xy, A.xz, A.yz)


def rigid_body_momenta(mass: Scalar, I_c: SymMat3, velocity: Motion) -> Force:
    """Return (L, P) = (I_c omega, m v), for velocity (omega, v) of the centre of mass (Eqs 18, 21)."""
    return Force(I_c @ velocity.angular, velocity.linear * mass)


def newton_euler(mass: Scalar, I_c: SymMat3, velocity: Motion, acceleration: Motion) -> Force:
    """Return (tau, f) = (I_c omega' + omega x I_c omega, m v'): the rates of (L, P) (Eqs 22, 23)."""
    omega = velocity.angular
    return Force(I_c @ acceleration.angular + omega.cross(I_c @ omega), acceleration.linear * mass)


def newton_euler_blocks(mass: Scalar, I_c: SymMat3, omega: Vec3) -> NewtonEulerBlocks:
    """Return the two terms of Eq. 24: (tau, f) = M_c (omega', v') + bias."""
    top = [[*row, 0.0, 0.0, 0.0] for row in I_c.to_list()]
    bottom = [[0.0, 0.0, 0.0, *(mass if i == j else 0.0 for j in range(3))] for i in range(3)]
    return NewtonEulerBlocks(top + bottom, [*omega.cross(I_c @ omega).to_list(), 0.0, 0.0, 0.0])


# One rigid body in generalized coordinates (Liu & Jain section 4).
#
# x(q) is the centre of mass and R(q) the orientation, any functions of q; V = (omega, v) = J qd, angular
# first:
#
#   J_v = dx/dq,      [j_j] = (dR/dq_j) R^T,   j_j column j of J_omega                             (28 to 31)
#     T = qd^T J^T M_c J qd / 2,      M_c = blockdiag(I_c, m 1)                                       (27, 32)
#     M = J^T M_c J,    C = (J^T M_c J' + J^T [omega~] M_c J) qd,    [omega~] = blockdiag([omega], 0)   (45)
#     Q = J_omega^T tau + J_v^T f                                                                     (48)
#
# Eq. 45 follows from Lagrange's equations on T, and by multiplying Newton-Euler (Eq. 24) with J^T. In the
# first way, of the five terms of Eq. 36 the third is + j_j . (omega x I_c omega), the fourth and the fifth
# are - that, the fourth with a minus before it: one of them remains.

Pose = Callable[[list[Scalar]], Transform]
"""q -> the pose (R(q), x(q)) of the centre of mass."""

ORIENTATIONS: Final[dict[str, Callable[[Scalars], Mat3]]] = {
    "euler": lambda angles: rotations.rotation_of_euler_angles("xyz", angles),
    "exponential": lambda phi: so3_exp(Vec3(phi[0], phi[1], phi[2])),
    "quaternion": lambda p: rotations.rotation_of_quaternion(rotations.quaternion_normalized(p)),
}
"""R of three Euler angles, of a rotation vector, of four numbers along a quaternion, of any norm."""


class BodyEquations(NamedTuple):
    """M `(n, n)` and C `(n,)` of M qdd + C = Q."""

    M: Matrix
    C: list[Scalar]


def body_pose(orientation: str) -> Pose:
    """Return the function q -> pose, with q = (x, y, z, numbers of the orientation).

    `ORIENTATIONS` has the orientations by name.
    """
    require_choice("orientation", orientation, ORIENTATIONS)
    rotation = ORIENTATIONS[orientation]
    return lambda q: Transform(rotation(q[3:]), Vec3(q[0], q[1], q[2]))


def body_jacobian(pose: Pose, q: Scalars) -> Matrix:
    """Return J `(6, n)`: J_omega over J_v, in world axes, of (dR/dq_j) R^T and dx/dq_j (Eqs 28 to 31)."""
    R_T = pose(list(q)).R.transpose()
    return transpose([[*(slope.R @ R_T).axial(), *slope.p] for slope in gradient(pose, q)])


def body_kinetic_energy(pose: Pose, mass: Scalar, inertia: SymMat3, q: Scalars, qd: Scalars) -> Scalar:
    """Return T = qd^T J^T M_c J qd / 2 (Eq. 32); `inertia` about the centre of mass, in body axes."""
    V = times(body_jacobian(pose, q), qd)
    M_c, _ = newton_euler_blocks(mass, world_inertia(pose(list(q)).R, inertia), Vec3(V[0], V[1], V[2]))
    return 0.5 * dot(V, times(M_c, V))


def body_equations(pose: Pose, mass: Scalar, inertia: SymMat3, q: Scalars, qd: Scalars) -> BodyEquations:
    """Return M and C of Eq. 45: Newton-Euler at the centre of mass, projected by J^T."""
    J, J_rate = directional_derivative(lambda x: body_jacobian(pose, x), q, qd)
    I_c = world_inertia(pose(list(q)).R, inertia)
    return _project(J, times(J, qd), times(J_rate, qd), mass, I_c)


def _project(J: Matrix, V: Scalars, V_bias: Scalars, mass: Scalar, I_c: SymMat3) -> BodyEquations:
    """Return J^T M_c J and J^T (M_c V_bias + bias), for V = J qd and V_bias = J' qd of a centre of mass."""
    M_c, bias = newton_euler_blocks(mass, I_c, Vec3(V[0], V[1], V[2]))
    columns = transpose(J)
    momenta = [times(M_c, column) for column in columns]
    f = [x + b for x, b in zip(times(M_c, V_bias), bias, strict=True)]
    M = [[dot(column, momentum) for momentum in momenta] for column in columns]
    return BodyEquations(M, [dot(column, f) for column in columns])


# A system of particles r_i(q) in generalized coordinates (Liu & Jain section 2).
#
# A virtual displacement is dr_i = sum_j (dr_i/dq_j) dq_j, so that forces f_i do the virtual work Q . dq with
#
#     Q = sum_i J_i^T f_i,        J_i = [dr_i/dq_1 … dr_i/dq_n]                              (1 to 3)
#     M(q) = sum_i mu_i J_i^T J_i,    T = qd^T M qd / 2                                       (15, 16)
#
# The columns of J_i are exact derivatives of the function r(q), by dual numbers.

Positions = Callable[[list[Scalar]], Sequence[Vec3]]
"""r(q): the positions of all particles, in the world; of r(q, t) the function at one time."""


def particle_jacobians(positions: Positions, q: Scalars) -> list[Matrix]:
    """Return J_i `(3, nq)` of every particle: column j is dr_i/dq_j."""
    columns = gradient(lambda x: list(positions(x)), q)
    return [transpose([slope.to_list() for slope in slopes]) for slopes in zip(*columns, strict=True)]


def particle_forces(positions: Positions, forces: Sequence[Vec3], q: Scalars) -> list[Scalar]:
    """Return Q `(nq,)` = sum J_i^T f_i of one force a particle (Eq. 3): Q . qd = sum f_i . r_i'."""
    Q: list[Scalar] = [0.0] * len(q)
    for J, f in zip(particle_jacobians(positions, q), forces, strict=True):
        Q = [Q_j + dot(column, f.to_list()) for Q_j, column in zip(Q, transpose(J), strict=True)]
    return Q


def particle_mass_matrix(positions: Positions, masses: Scalars, q: Scalars) -> Matrix:
    """Return M(q) `(nq, nq)` = sum mu_i J_i^T J_i (Eq. 16)."""
    M = zeros(len(q), len(q))
    for J, mass in zip(particle_jacobians(positions, q), masses, strict=True):
        columns = transpose(J)
        M = plus(M, [[mass * dot(a, b) for b in columns] for a in columns])
    return M


def particle_kinetic_energy(positions: Positions, masses: Scalars, q: Scalars, qd: Scalars) -> Scalar:
    """Return T = sum mu_i |r_i'|^2 / 2 (Eq. 10), with r_i' the derivative of r_i along qd."""
    total: Scalar = 0.0
    velocities = directional_derivative(lambda x: list(positions(x)), q, qd)[1]
    for mass, velocity in zip(masses, velocities, strict=True):
        total = total + 0.5 * mass * velocity.dot(velocity)
    return total


# The equations of motion of a tree from the Jacobians of its bodies (Liu & Jain section 5.3).
#
#     M = sum_k J_k^T M_ck J_k                                                                       (59)
#     C = sum_k (J_k^T M_ck J_k' + J_k^T [omega~_k] M_ck J_k) v
#
# J_k `(6, nv)` in world axes at the centre of mass of body k, angular first; M_ck = blockdiag(I_ck, m_k 1).
# For every joint that does not depend on time. v need not be a rate of coordinates: Newton-Euler of each body
# and J^T alone lead here, without Lagrange's equations. Gravity is the force m_k g at each centre of mass.


def mass_matrix_by_jacobians(tree: Tree, q: Scalars, *, time: Time = None) -> Matrix:
    """Return M = sum J_k^T M_ck J_k `(nv, nv)`, armature included on the diagonal (Eq. 59)."""
    return _sum_over_bodies(tree, q, None, time).M


def tree_equations(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> BodyEquations:
    """Return M and the velocity terms C of Eq. 59, without gravity."""
    require_scleronomic(tree, "tree_equations")
    return _sum_over_bodies(tree, q, v, time)


def inverse_dynamics_by_jacobians(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, **given: Unpack[Loads]
) -> list[Scalar]:
    """Return tau = M a + C - sum J_k^T (weight and external force of body k), by Jacobians (Eqs 14, 59)."""
    time = given.get("time")
    require_open_tree(tree, "inverse_dynamics_by_jacobians")
    M, C = tree_equations(tree, q, v, time=time)
    f_x = body_forces(tree, q, **given)
    poses = forward_kinematics(tree, q, time=time)

    def acting(body: Body, _: object) -> tuple[tuple[()], Force]:
        weight = body.inertia * poses[body].apply(Motion(Vec3.zero(), tree.gravity))
        return (), weight if f_x is None else weight + f_x[body]

    Q = joint_forces(tree, q, tree.outward(acting, ()), time=time)
    return [t - Q_j for t, Q_j in zip(forces_from(M, C, a), Q, strict=True)]


def _sum_over_bodies(tree: Tree, q: Scalars, v: Scalars | None, time: Time) -> BodyEquations:
    """Sum Eq. 59 over the bodies; C is zero unless v is given."""
    require_centers_of_mass(tree, "tree_equations")
    M, C = zeros(tree.nv, tree.nv), [0.0] * tree.nv
    poses = forward_kinematics(tree, q, time=time)
    model = cast("Model", tree)
    for body in tree.bodies:
        center = Frame("center of mass", body.index, Transform(Mat3.identity(), body.inertia.com))
        J, V, V_bias = jacobian(model, q, center, time=time), [0.0] * 6, [0.0] * 6
        if v is not None:
            V, V_bias = times(J, v), times(jacobian_rate(model, q, v, center, time=time), v)
        I_c = world_inertia(poses[body].R, body.inertia.inertia_at_com)
        own = _project(J, V, V_bias, body.inertia.mass, I_c)
        M, C = plus(M, own.M), [c + x for c, x in zip(C, own.C, strict=True)]
    add_armature(tree, M)
    return BodyEquations(M, C)


Places = Sequence[tuple[int, float]]
"""Places of one velocity variable in v, each with a ratio; see `velocity_places`."""


def add_at_places(M: Matrix, rows: Places, columns: Places, x: Scalar) -> None:
    """Add an element at the places of two velocity variables: G^T (...) G where joints are coupled."""
    for i, ratio_i in rows:
        for j, ratio_j in columns:
            M[i][j] = M[i][j] + x * (ratio_i * ratio_j)


def add_armature(tree: Tree, M: Matrix) -> None:
    """Add the armature of every joint to the mass matrix."""
    for body in tree.bodies:
        for places, armature in zip(velocity_places(body), body.armature, strict=True):
            add_at_places(M, places, places, armature)
