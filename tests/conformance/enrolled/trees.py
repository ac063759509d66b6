"""Kinematic trees: kinematics, inverse and forward dynamics, matrices, energy and momentum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.conformance.enrolling import POINT, Enrolled, algorithm, public

from dalembert import algorithms as al
from dalembert.model.body import Body
from dalembert.model.model import Model
from dalembert.spatial import ArticulatedInertia, Force, Vec3


def last(model: Model) -> Body:
    """The last body that moves relative to its parent."""
    return next(body for body in reversed(model.bodies) if body.nv)


def tip(model: Model) -> str:
    return model.bodies[-1].name


def last_motion(m: Model, q: Any, v: Any, a: Any) -> al.BodyMotion:
    return al.body_motions(m, q, v, a)[m.bodies[-1]]


def inertia_matrix(m: Model, q: Any) -> tuple[list[list[Any]], list[int]]:
    return al.mass_matrix(m, q), al.variable_parents(m)


def with_ltl(m: Model, q: Any, use: Callable[..., Any], *x: Any) -> Any:
    H, lam = inertia_matrix(m, q)
    return use(al.factor_ltl(H, lam), lam, *x)


def with_ltdl(m: Model, q: Any, v: Any) -> Any:
    H, lam = inertia_matrix(m, q)
    L, D = al.factor_ltdl(H, lam)
    return al.solve_ltdl(L, D, lam, v)


def with_reciprocals(m: Model, q: Any, v: Any) -> Any:
    H, lam = inertia_matrix(m, q)
    L, reciprocals = al.factor_with_reciprocals(H, lam)
    return al.solve_with_reciprocals(L, reciprocals, lam, v)


def unit_products(m: Model, q: Any, v: Any) -> Any:
    """The products and solves that do not read the diagonal of L."""
    H, lam = inertia_matrix(m, q)
    L, _ = al.factor_ltdl(H, lam)
    uses = (al.multiply_l, al.multiply_l_transposed, al.solve_l, al.solve_l_transposed)
    return [use(L, lam, v, unit=True) for use in uses]


def eliminated(m: Model, q: Any) -> al.JointElimination:
    body = last(m)
    S = body.jcalc(q, None, None).S
    return al.eliminate_joint(ArticulatedInertia.from_rigid(body.inertia), S, body.armature)


def own_inertia(m: Model, q: Any) -> Any:
    body = last(m)
    S = body.jcalc(q, None, None).S
    return al.joint_inertia(S, [body.inertia * s for s in S], body.armature)


def assembled(m: Model, q: Any, v: Any, tau: Any) -> Any:
    """Two handles of the last joint connected; the bias forces are those of rest, so that nothing is zero."""
    body = last(m)
    motion = body.jcalc(q, v, None)
    handle = ArticulatedInertia.from_rigid(body.inertia)
    p = Force(POINT, POINT * 2.0)
    return al.assemble(handle, p, handle, p, motion.S, motion.c_J, body.own_v(tau))


def pushed(m: Model, q: Any, v: Any) -> Any:
    """A force that moves with the state, so that every scalar of it is a symbol in a trace."""
    force = Vec3(v[0], 2.0 * v[-1], v[0] * v[-1])
    return al.force_at_point(al.forward_kinematics(m, q)[m.bodies[-1]], POINT, force)


ENROLLED: tuple[Enrolled, ...] = (
    # kinematics
    algorithm("forward_kinematics", "q", al.forward_kinematics),
    algorithm("body_velocities", "q v", al.body_velocities),
    algorithm("body_motions", "q v a", al.body_motions),
    algorithm("body_accelerations", "q v a", al.body_accelerations),
    algorithm("point_motion", "q v a", lambda m, q, v, a: al.point_motion(last_motion(m, q, v, a), POINT)),
    algorithm("placed_motion", "q v a", lambda m, q, v, a: al.placed_motion(last_motion(m, q, v, a))),
    algorithm(
        "relative_motion",
        "q v a",
        lambda m, q, v, a: al.relative_motion(last_motion(m, q, v, a), m.bodies[-1].placement.as_transform()),
    ),
    algorithm("jacobian", "q", lambda m, q: [al.jacobian(m, q, tip(m), frame=frame) for frame in al.FRAMES]),
    algorithm("point_jacobian", "q", lambda m, q: al.point_jacobian(m, q, tip(m), POINT.to_list())),
    algorithm("all_jacobians", "q", al.all_jacobians),
    algorithm(
        "jacobian_rate",
        "q v",
        lambda m, q, v: [al.jacobian_rate(m, q, v, tip(m), frame=frame) for frame in al.FRAMES],
    ),
    algorithm(
        "jacobian_rate_times_velocity",
        "q v",
        lambda m, q, v: al.jacobian_rate_times_velocity(m, q, v, tip(m)),
    ),
    algorithm("subspace_rate", "q v", lambda m, q, v: [al.subspace_rate(b, q, v) for b in m.bodies]),
    # inverse dynamics
    algorithm("inverse_dynamics", "q v a", al.inverse_dynamics),
    algorithm(
        "aligned", "q v a", lambda m, q, v, a: al.inverse_dynamics(al.aligned(m), q, v, a)
    ),
    algorithm("bias_forces", "q v", al.bias_forces),
    algorithm("coriolis_forces", "q v", al.coriolis_forces),
    algorithm("gravity_forces", "q", al.gravity_forces),
    algorithm("rnea_spatial", "q v a", al.rnea_spatial),
    algorithm("rnea_common_frame", "q v a", al.rnea_common_frame),
    algorithm("differential_inverse_dynamics", "q a", al.differential_inverse_dynamics),
    algorithm(
        "body_forces", "q external_forces", lambda m, q, f: al.body_forces(m, q, f, "world")
    ),
    algorithm("force_at_point", "q v", pushed),
    algorithm("passive_forces", "q v", al.passive_forces),
    algorithm("spring_energy", "q", al.spring_energy),
    public("spring_lengths", models=("muscled",)),
    public("actuator_forces", models=("muscled",)),
    public("fluid_forces", models=("muscled",)),
    # the mass matrix and its factors
    algorithm("mass_matrix", "q", al.mass_matrix),
    algorithm("mass_matrix_by_columns", "q", al.mass_matrix_by_columns),
    algorithm("crba_common_frame", "q", al.crba_common_frame),
    algorithm("composite_inertias", "q", al.composite_inertias),
    algorithm("inverse_mass_matrix", "q", al.inverse_mass_matrix),
    algorithm("factor_ltl", "q", lambda m, q: al.factor_ltl(*inertia_matrix(m, q))),
    algorithm("factor_ltdl", "q", lambda m, q: al.factor_ltdl(*inertia_matrix(m, q))),
    algorithm("multiply_h", "q v", lambda m, q, v: al.multiply_h(*inertia_matrix(m, q), v)),
    algorithm("multiply_l", "q v", lambda m, q, v: with_ltl(m, q, al.multiply_l, v)),
    algorithm("multiply_l_transposed", "q v", lambda m, q, v: with_ltl(m, q, al.multiply_l_transposed, v)),
    algorithm("solve_l", "q v", lambda m, q, v: with_ltl(m, q, al.solve_l, v)),
    algorithm("solve_l_transposed", "q v", lambda m, q, v: with_ltl(m, q, al.solve_l_transposed, v)),
    algorithm("solve_l", "q v", unit_products, suffix="-unit"),
    algorithm("solve_ltl", "q v", lambda m, q, v: with_ltl(m, q, al.solve_ltl, v)),
    algorithm("solve_ltdl", "q v", with_ltdl),
    algorithm("factor_with_reciprocals", "q", lambda m, q: al.factor_with_reciprocals(*inertia_matrix(m, q))),
    algorithm("solve_with_reciprocals", "q v", with_reciprocals),
    # forward dynamics
    algorithm("forward_dynamics", "q v tau", al.forward_dynamics),
    algorithm("forward_dynamics_by_matrix", "q v tau", al.forward_dynamics_by_matrix),
    algorithm("forward_dynamics_spatial", "q v tau", al.forward_dynamics_spatial),
    algorithm("articulated_inertias", "q", al.articulated_inertias),
    algorithm("eliminate_joint", "q", eliminated),
    algorithm("joint_inertia", "q", own_inertia),
    algorithm("assemble", "q v tau", assembled),
    algorithm(
        "handle_inverse_inertia", "q", lambda m, q: al.handle_inverse_inertia(m, q, [tip(m), m.bodies[0]])
    ),
    algorithm(
        "handle_bias_acceleration",
        "q v tau",
        lambda m, q, v, tau: al.handle_bias_acceleration(m, q, v, tau, [tip(m)], frame="world_aligned"),
    ),
    algorithm("handle_inertia", "q", lambda m, q: al.handle_inertia(al.mass_matrix(m, q))),
    algorithm("state_rate", "q v tau", al.state_rate),
    algorithm("step", "q v tau dt", al.step),
    # energy and momentum
    algorithm("total_mass", "q", lambda m, q: q[0] * al.total_mass(m)),
    algorithm("kinetic_energy", "q v", al.kinetic_energy),
    algorithm("potential_energy", "q", al.potential_energy),
    algorithm("momentum", "q v", al.momentum),
    algorithm("center_of_mass", "q", al.center_of_mass),
    algorithm("center_of_mass_velocity", "q v", al.center_of_mass_velocity),
    algorithm("center_of_mass_acceleration", "q v a", al.center_of_mass_acceleration),
    algorithm("centroidal_momentum", "q v", al.centroidal_momentum),
    algorithm("centroidal_momentum_rate", "q v a", al.centroidal_momentum_rate),
    algorithm("centroidal_momentum_matrix", "q", al.centroidal_momentum_matrix),
    algorithm("centroidal_momentum_rate_matrix", "q v", al.centroidal_momentum_rate_matrix),
    # the public functions, with their methods and options
    public("inverse_dynamics"),
    public("inverse_dynamics", method="rnea_spatial", broad=False),
    public("inverse_dynamics", arrays=("external_forces",), external_frame="body", broad=False),
    public("inverse_dynamics", arrays=("external_forces",), external_frame="world", broad=False),
    public("forward_dynamics"),
    public("forward_dynamics", method="crba", broad=False),
    public("forward_dynamics", method="aba_spatial", broad=False),
    public("forward_dynamics", arrays=("external_forces",), external_frame="body", broad=False),
    public("forward_dynamics", arrays=("external_forces",), external_frame="world", broad=False),
    public("mass_matrix", broad=False),
    public("mass_matrix", method="rnea_columns", broad=False),
    public("mass_matrix", method="crba_common_frame", broad=False),
    public("inverse_mass_matrix", broad=False),
    public("bias_forces", broad=False),
    public("gravity_forces"),
    public("inertial_forces"),
    public("coriolis_forces", broad=False),
    public("passive_forces"),
    public("forward_kinematics"),
    public("jacobian", where="last", frame="body"),
    public("jacobian", where="last", frame="world", broad=False),
    public("jacobian", where="last", frame="world_aligned", broad=False),
    public("jacobian_rate", where="last", frame="body", broad=False),
    public("jacobian_rate", where="last", frame="world", broad=False),
    public("jacobian_rate", where="last", frame="world_aligned"),
    public("point_motion", where="last", broad=False),
    public("kinetic_energy", broad=False),
    public("potential_energy", broad=False),
    public("center_of_mass", broad=False),
    public("centroidal_momentum"),
    public("centroidal_momentum_matrix", broad=False),
    public("integrate"),
    public("difference"),
    public("normalize"),
    public("step", integrator="semi_implicit", broad=False),
    public("step", integrator="rk4", broad=False),
    public("step", integrator="euler", broad=False),
    public("step", integrator="heun", broad=False),
    public("step", integrator="implicit", broad=False),
    public("step", integrator="variational", models=("arm", "branched")),
)  # fmt: skip

STRUCTURE = {
    "ancestors": "walks a parent array of integers",
    "coordinate_rows": "says which columns are coordinate directions",
    "depths": "counts the variables above each",
    "expanded_parents": "expands a parent array",
    "frame_of": "looks up a name",
    "matrix_density": "counts the nonzero entries",
    "operation_sums": "counts operations from a parent array",
    "variable_parents": "expands the parent array of a tree",
}
"""Functions of `dalembert.algorithms` that compute with no scalar, and why; they have tests of their own."""
