"""The geometry of configuration space, and control."""

from __future__ import annotations

from typing import Any

from tests.conformance.enrolling import Enrolled, algorithm, public

from dalembert import scalar
from dalembert.algorithms import control_laws as laws
from dalembert.algorithms import coriolis, mass_matrix
from dalembert.algorithms import geometry as ge
from dalembert.model.model import Model

COMPILED = ("arm", "branched")
"""For what is long as formulas, or is not for joints without motors, as the textbook models have them."""

SMALL = ("arm",)
"""For algorithms whose public functions run on everything else."""

RESTS = ((0.36, 0.48, -0.8), (-0.8, 0.6, 0.0), (0.48, 0.64, 0.6))
"""A rotation of literals."""


def tip(m: Model) -> str:
    return m.bodies[-1].name


def first_row(m: Model, q: Any) -> Any:
    """One constraint on M, which is independent of the model's own."""
    return [[1.0 + 0.1 * k + 0.3 * scalar.sin(q[0]) for k in range(m.nv)]]


def curved(q: Any) -> Any:
    return [scalar.sin(q[0]) * q[-1], q[0] * q[0] + scalar.cos(q[-1])]


def by_blocks(m: Model, q: Any, v: Any, tau: Any) -> Any:
    """Coordinates y with v = J y: one of them."""
    J = [[x] for x in first_row(m, q)[0]]
    return [
        ge.explicit_dynamics_by_blocks(mass_matrix(m, q), tau, J, v),
        ge.explicit_dynamics(mass_matrix(m, q), tau, J, v),
        ge.transformed_force(tau, J),
        ge.transformed_inertia(mass_matrix(m, q), J),
    ]


def field(m: Any, q: Any) -> Any:
    return [scalar.sin(q[0]) + k * q[-1] * q[0] for k in range(m.nv)]


def gains(m: Model) -> dict[str, Any]:
    return {"stiffness": [4.0 + k for k in range(m.nv)], "damping": [1.0 + 0.5 * k for k in range(m.nv)]}


def along(m: Model, q: Any, v: Any, a: Any) -> Any:
    """A moving reference near q."""
    return laws.feedback_linearization(m, q, v, m.neutral().tolist(), a, v, **gains(m))


def pose_task(m: Model, q: Any, v: Any) -> laws.Task:
    return laws.frame_task(
        m,
        q,
        v,
        tip(m),
        position=[0.1, -0.2, 0.3],
        rotation=RESTS,
        velocity=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        stiffness=[3.0] * 6,
    )


def held(m: Model, q: Any, v: Any, tau: Any) -> Any:
    """Every row has weight, so that rows that depend on others are no matter of rounding."""
    return laws.operational_space(m, q, v, [pose_task(m, q, v)], null_space=tau, regularization=0.1)


def followed(m: Model, q: Any, v: Any, tau: Any) -> Any:
    """PD with limits that some joints reach."""
    kp, kd = gains(m).values()
    return laws.pd_forces(m, q, v, m.neutral().tolist(), tau, kp=kp, kd=kd, effort=[1.5] * m.nv)


def held_still(m: Model, q: Any, v: Any, tau: Any, dt: Any) -> Any:
    kp, kd = gains(m).values()
    return laws.stable_pd_forces(m, q, v, m.neutral().tolist(), dt, tau, kp=kp, kd=kd)


ENROLLED: tuple[Enrolled, ...] = (
    algorithm("coriolis_matrix", "q v", coriolis.coriolis_matrix, package="geometry", models=SMALL),
    algorithm("coriolis_product", "q v a", coriolis.coriolis_product, package="geometry", models=SMALL),
    algorithm("mass_matrix_rate", "q v", coriolis.mass_matrix_rate, package="geometry", models=SMALL),
    algorithm("structure_constants", "q", coriolis.structure_constants, package="geometry", models=COMPILED),
    algorithm("momentum_coordinates", "q v", ge.momentum_coordinates, package="geometry", models=SMALL),
    algorithm("velocity_coordinates", "q tau", ge.velocity_coordinates, package="geometry", models=SMALL),
    algorithm("hamiltonian", "q tau", ge.hamiltonian, package="geometry", models=SMALL),
    algorithm("hamiltonian_rates", "q v tau", ge.hamiltonian_rates, package="geometry", models=SMALL),
    algorithm(
        "forward_dynamics_hamiltonian",
        "q v tau",
        ge.forward_dynamics_hamiltonian,
        package="geometry",
        models=SMALL,
    ),
    algorithm(
        "forward_dynamics_gauss", "q v tau", ge.forward_dynamics_gauss, package="geometry", models=SMALL
    ),
    algorithm("inner_product", "q v a", ge.inner_product, package="geometry", models=SMALL),
    algorithm("connection_term", "q v a", ge.connection_term, package="geometry", models=SMALL),
    algorithm(
        "covariant_derivative",
        "q v",
        lambda m, q, v: ge.covariant_derivative(m, field, q, v),
        package="geometry",
    ),
    algorithm("geodesic_acceleration", "q v", ge.geodesic_acceleration, package="geometry", models=SMALL),
    algorithm("geodesic_step", "q v dt", ge.geodesic_step, package="geometry", models=SMALL),
    algorithm("map_motion", "q", lambda m, q: coriolis.map_motion(curved, q, q), package="geometry"),
    algorithm(
        "implicit_dynamics implicit_dynamics_kkt",
        "q tau",
        lambda m, q, tau: [
            law(mass_matrix(m, q), tau, first_row(m, q), [q[0]])
            for law in (ge.implicit_dynamics, ge.implicit_dynamics_kkt)
        ],
        package="geometry",
    ),
    algorithm(
        "constrained_inverse_inertia penalized_inverse_inertia",
        "q",
        lambda m, q: [
            ge.constrained_inverse_inertia(mass_matrix(m, q), first_row(m, q)),
            ge.penalized_inverse_inertia(mass_matrix(m, q), first_row(m, q), 10.0),
        ],
        package="geometry", models=COMPILED,
    ),
    algorithm(
        "gauss_acceleration nearest_acceleration",
        "q a",
        lambda m, q, a: ge.gauss_acceleration(mass_matrix(m, q), a, first_row(m, q), [q[0]]),
        package="geometry", models=COMPILED,
    ),
    algorithm(
        "explicit_dynamics explicit_dynamics_by_blocks transformed_force transformed_inertia",
        "q v tau",
        by_blocks,
        package="geometry", models=COMPILED,
    ),
    algorithm("christoffel_symbols", "q", coriolis.christoffel_symbols, package="geometry", models=SMALL),
    algorithm(
        "christoffel_symbols_by_derivatives",
        "q",
        lambda m, q: coriolis.christoffel_symbols_by_derivatives(m, q, kind="second"),
        package="geometry",
        models=SMALL,
    ),
    # control
    algorithm(
        "gravity_compensation", "q", laws.gravity_compensation, package="control_laws", models=COMPILED
    ),
    algorithm(
        "feedback_linearization tracking_acceleration",
        "q v a",
        along,
        package="control_laws",
        models=COMPILED,
    ),
    algorithm(
        "posture_forces critical_damping",
        "q v",
        lambda m, q, v: laws.posture_forces(m, q, v, m.neutral().tolist(), stiffness=[3.0] * m.nv),
        package="control_laws", models=COMPILED,
    ),
    algorithm("pd_forces", "q v tau", followed, package="control_laws", models=COMPILED),
    algorithm("stable_pd_forces", "q v tau dt", held_still, package="control_laws", models=COMPILED),
    algorithm(
        "frame_task", "q v", lambda m, q, v: pose_task(m, q, v), package="control_laws", models=COMPILED
    ),
    algorithm("operational_space commanded_forces", "q v tau", held, package="control_laws", models=COMPILED),
    algorithm(
        "operational_inertia consistent_inverse",
        "q",
        lambda m, q: [
            law(m, q, tip(m), position=False)
            for law in (laws.operational_inertia, laws.consistent_inverse)
        ],
        package="control_laws",
        models=("branched",),
    ),
    # the public functions
    public("coriolis_matrix", broad=False),
    public("coriolis_product", broad=False),
    public("mass_matrix_rate", broad=False),
    public("christoffel_symbols", kind="first", models=SMALL),
    public("christoffel_symbols", kind="second", models=SMALL),
    public("christoffel_symbols", method="derivatives", models=SMALL),
    public("hamiltonian", broad=False),
    public("hamiltonian_rates", broad=False),
    public("momentum_coordinates", broad=False),
    public("velocity_coordinates", broad=False),
    public("inner_product", space="tangent", broad=False),
    public("inner_product", space="cotangent", broad=False),
    public("connection_term", broad=False),
    public("geodesic_acceleration", broad=False),
    public("geodesic_step", models=SMALL),
    public("forward_dynamics", method="hamiltonian", broad=False),
    public("forward_dynamics", method="gauss", broad=False),
    public("gravity_compensation", models=COMPILED),
    public("feedback_linearization", arrays=("v_ref", "a_ref", "damping"), models=COMPILED),
    public("posture_forces", arrays=("damping",), models=COMPILED),
    public("pd", arrays=("v_ref",), models=COMPILED),
    public("stable_pd", arrays=("effort",), models=COMPILED),
    public(
        "operational_space",
        where="last",
        arrays=("position", "damping", "null_space"),
        models=("branched",),
    ),
    public("operational_inertia", where="last", models=("branched",)),
    public("consistent_inverse", where="last", models=("branched",)),
)  # fmt: skip

STRUCTURE: dict[str, str] = {
    "geometry.require_scleronomic": "asks whether joints depend on time",
    "control_laws.require_actuation": "asks which joints have motors",
}
