"""Other recursions, Lagrange's equations, Cartesian quantities."""

from __future__ import annotations

from typing import Any

from tests.conformance.enrolling import POINT, Enrolled, algorithm, public

from dalembert import algorithms as al
from dalembert.algorithms import cartesian as ca
from dalembert.algorithms import dense
from dalembert.algorithms.inverse_dynamics import base_wrench
from dalembert.model.model import Model
from dalembert.spatial import Motion, SymMat3, Transform, Vec3
from dalembert.textbook import closed_form_equations as closed_form
from dalembert.textbook import lagrange as lg
from dalembert.textbook import local_recursion as liu_jain
from dalembert.textbook import vector_recursion as luh_walker_paul

INERTIA = SymMat3(0.3, 0.4, 0.5, 0.02, -0.03, 0.01)

SMALL = ("arm",)
"""For algorithms of the fourth order, whose result on a tree of every joint type is a matter of minutes."""


def two(x: Any) -> list[Any]:
    """Two numbers of a state, as coordinates of a system of their own."""
    return [x[0], x[-1]]


def points(q: Any) -> list[Vec3]:
    """Two particles somewhere in the configuration space."""
    return [Vec3(q[0] * q[-1], q[0] - 0.5, 2.0 * q[-1]), Vec3(q[-1] * q[-1], 1.0 + q[0], q[0] * 0.3)]


def energy(q: Any, qd: Any) -> Any:
    return lg.particle_kinetic_energy(points, (1.5, 0.7), q, qd)


def matrix(q: Any) -> Any:
    return lg.particle_mass_matrix(points, (1.5, 0.7), q)


def pose(q: Any, orientation: str = "exponential") -> Transform:
    return lg.body_pose(orientation)([q[0], 0.3, q[-1], 0.4 * q[-1], -0.2, 0.5 * q[0]])


def turned(q: Any) -> Transform:
    """The same by Euler angles, whose second derivatives are short as symbols."""
    return pose(q, "euler")


def motion(q: Any, v: Any) -> Motion:
    return Motion(Vec3(v[0], q[0], v[-1]), Vec3(q[-1], v[0], 0.4))


def vectors(m: Model, f: Any, start: int) -> list[Any]:
    """Three numbers a body, out of external forces."""
    return [row[start : start + 3] for row in f]


def symmetric(v: Any) -> list[list[Any]]:
    """A singular matrix: v v^T + 1, bordered by zeros."""
    x, y = two(v)
    return [[x * x + 1.0, x * y, 0.0], [x * y, y * y + 1.0, 0.0], [0.0, 0.0, 0.0]]


ENROLLED: tuple[Enrolled, ...] = (
    # other recursions
    algorithm("luh_walker_paul", "q v a", luh_walker_paul.luh_walker_paul, package="recursion"),
    algorithm("liu_jain", "q v a", liu_jain.liu_jain, package="recursion"),
    algorithm("local_motions", "q v a", liu_jain.local_motions, package="recursion"),
    algorithm(
        "local_newton_euler",
        "q v a",
        lambda m, q, v, a: liu_jain.local_newton_euler(
            m.bodies[-1].inertia, liu_jain.local_motions(m, q, v, a)[-1]
        ),
        package="recursion",
    ),
    algorithm("closed_form", "q", closed_form.closed_form, package="recursion", models=SMALL),
    algorithm(
        "inverse_dynamics_closed_form",
        "q v a",
        closed_form.inverse_dynamics_closed_form,
        package="recursion",
        models=SMALL,
    ),
    algorithm(
        "inverse_dynamics_common_frame",
        "q v a external_forces",
        lambda m, q, v, a, f: closed_form.inverse_dynamics_common_frame(m, q, v, a, external_forces=f),
        package="recursion",
    ),
    algorithm("base_wrench", "q v a", base_wrench, package="recursion"),
    # Lagrange's side
    algorithm(
        "particle_jacobians", "q", lambda m, q: lg.particle_jacobians(points, two(q)), package="lagrange"
    ),
    algorithm(
        "particle_forces",
        "q",
        lambda m, q: lg.particle_forces(points, [POINT, POINT * 2.0], two(q)),
        package="lagrange",
    ),
    algorithm("particle_mass_matrix", "q", lambda m, q: matrix(two(q)), package="lagrange"),
    algorithm(
        "particle_kinetic_energy",
        "q v",
        lambda m, q, v: energy(two(q), two(v)),
        package="lagrange",
    ),
    algorithm(
        "lagrange_equations",
        "q v a",
        lambda m, q, v, a: lg.lagrange_equations(energy, two(q), two(v), two(a)),
        package="lagrange",
    ),
    algorithm(
        "coriolis_vector mass_matrix_gradient mass_matrix_rate mass_matrix_gradient_times",
        "q v",
        lambda m, q, v: lg.coriolis_vector(matrix, two(q), two(v)),
        package="lagrange",
    ),
    algorithm(
        "accelerations_from forces_from",
        "q v tau",
        lambda m, q, v, tau: (
            lg.accelerations_from(al.mass_matrix(m, q), v, tau),
            lg.forces_from(al.mass_matrix(m, q), v, tau),
        ),
        package="lagrange",
    ),
    algorithm(
        "newton_euler rigid_body_momenta newton_euler_blocks world_inertia world_inertia_rate",
        "q v",
        lambda m, q, v: (
            lg.newton_euler(1.3, lg.world_inertia(pose(q).R, INERTIA), motion(q, v), motion(v, q)),
            lg.rigid_body_momenta(1.3, INERTIA, motion(q, v)),
            lg.newton_euler_blocks(1.3, INERTIA, motion(q, v).angular),
            lg.world_inertia_rate(motion(q, v).angular, INERTIA),
        ),
        package="lagrange",
    ),
    algorithm(
        "body_jacobian body_pose",
        "q",
        lambda m, q: lg.body_jacobian(pose, two(q)),
        package="lagrange",
    ),
    algorithm(
        "body_equations body_kinetic_energy",
        "q v",
        lambda m, q, v: (
            lg.body_equations(turned, 1.3, INERTIA, two(q), two(v)),
            lg.body_kinetic_energy(turned, 1.3, INERTIA, two(q), two(v)),
        ),
        package="lagrange",
    ),
    algorithm("tree_equations", "q v", lg.tree_equations, package="lagrange"),
    algorithm("mass_matrix_by_jacobians", "q", lg.mass_matrix_by_jacobians, package="lagrange"),
    algorithm("inverse_dynamics_by_jacobians", "q v a", lg.inverse_dynamics_by_jacobians, package="lagrange"),
    # Cartesian quantities
    algorithm("maximal_velocities", "q v", ca.maximal_velocities, package="cartesian"),
    algorithm("maximal_jacobians", "q", ca.maximal_jacobians, package="cartesian"),
    algorithm("generalized_velocity", "q external_forces", ca.generalized_velocity, package="cartesian"),
    algorithm(
        "generalized_velocity_by_pseudo_inverse",
        "q external_forces",
        ca.generalized_velocity_by_pseudo_inverse,
        package="cartesian",
        models=SMALL,
    ),
    algorithm(
        "generalized_velocity_from_rows",
        "q external_forces",
        lambda m, q, V: ca.generalized_velocity_from_rows(m, q, V, range(0, 6 * len(m.bodies), 2)),
        package="cartesian",
        models=SMALL,
    ),
    algorithm(
        "generalized_velocity_joint_by_joint",
        "q external_forces",
        ca.generalized_velocity_joint_by_joint,
        package="cartesian",
    ),
    algorithm(
        "generalized_velocity_rotations_first",
        "q external_forces",
        ca.generalized_velocity_rotations_first,
        package="cartesian",
    ),
    algorithm(
        "relative_angular_velocities",
        "q external_forces",
        lambda m, q, f: ca.relative_angular_velocities(m, q, [Vec3.of(w) for w in vectors(m, f, 0)]),
        package="cartesian",
    ),
    algorithm(
        "joint_jacobian", "q", lambda m, q: [ca.joint_jacobian(b, q) for b in m.bodies], package="cartesian"
    ),
    algorithm(
        "joint_forces",
        "q external_forces",
        lambda m, q, f: ca.joint_forces(m, q, al.body_forces(m, q, f)),
        package="cartesian",
    ),
    algorithm(
        "generalized_force",
        "q external_forces",
        lambda m, q, f: ca.generalized_force(
            m, q, forces=vectors(m, f, 0), points=vectors(m, f, 3), torques=vectors(m, f, 2)
        ),
        package="cartesian",
    ),
    algorithm(
        "body_torques",
        "q external_forces",
        lambda m, q, f: ca.body_torques(m, q, vectors(m, f, 0)),
        package="cartesian",
    ),
    algorithm("cartesian_forces", "q tau", ca.cartesian_forces, package="cartesian"),
    algorithm(
        "cartesian_forces_at_points",
        "q tau external_forces",
        lambda m, q, tau, f: ca.cartesian_forces_at_points(m, q, tau, vectors(m, f, 0)),
        package="cartesian",
    ),
    algorithm("joint_torques", "q tau", ca.joint_torques, package="cartesian"),
    algorithm(
        "symmetric_pseudo_inverse",
        "v",
        lambda m, v: dense.symmetric_pseudo_inverse(symmetric(v)).solve([v[0], v[-1], 1.0]),
        package="cartesian",
    ),
    # the public functions, with their methods and options
    public("inverse_dynamics", method="rnea_common_frame", broad=False),
    public("inverse_dynamics", method="luh_walker_paul", broad=False),
    public("inverse_dynamics", method="liu_jain", broad=False),
    public("inverse_dynamics", method="lagrange", broad=False),
    public("inverse_dynamics", method="closed_form", broad=False, models=SMALL),
    public("mass_matrix", method="jacobians", broad=False),
    public("maximal_velocities"),
    public("maximal_jacobians", broad=False),
    public("generalized_velocity", broad=False),
    public("generalized_velocity", method="pseudo_inverse", broad=False, models=SMALL),
    public("generalized_velocity", method="joint_by_joint", broad=False),
    public("generalized_velocity", method="rotations_first", broad=False),
    public("generalized_force", arrays=("forces", "points", "torques", "joint_torques"), broad=False),
    public("body_torques", broad=False),
    public("cartesian_forces", broad=False),
    public("cartesian_forces_at_points", broad=False),
    public("joint_torques", broad=False),
    public("base_wrench", broad=False),
)

STRUCTURE: dict[str, str] = {
    "cartesian.connectivity_matrix": "reads a parent array of integers",
}
