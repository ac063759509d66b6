"""Hybrid dynamics, floating bases and gears."""

from __future__ import annotations

from typing import Any

from tests.conformance.enrolling import Enrolled, algorithm, public

from dalembert.algorithms import articulated as velocity_products
from dalembert.algorithms import clusters, gears, hybrid
from dalembert.algorithms import floating_base as fb
from dalembert.algorithms.forward_dynamics import forward_dynamics_by_matrix
from dalembert.model.model import Model

FREE = ("branched", "geared")


def every_other(model: Model) -> list[str]:
    """Every other joint that follows none."""
    return [body.joint_name for body in model.bodies if body.dependence is None and body.nv][::2]


def articulated(model: Model, q: Any, v: Any, tau: Any) -> Any:
    moved = velocity_products.velocity_products(model, q, v, None, None)
    return clusters.articulated_accelerations(model, moved, tau, function="test")


def geared(model: Model, q: Any, v: Any, tau: Any) -> Any:
    """Gears from outside, on a matrix that is not the model's own."""
    n = model.nv
    H = [[2.0 + q[0] if i == j else 0.1 * q[0] for j in range(n)] for i in range(n)]
    G = [[1.0 if i == 0 else v[i] for _ in range(1)] for i in range(n)]
    return gears.gear_equations(H, v, tau, G, [0.0, *list(v[1:])])


ENROLLED: tuple[Enrolled, ...] = (
    algorithm(
        "hybrid_dynamics", "q v tau a",
        lambda m, *x: hybrid.hybrid_dynamics(m, *x, prescribed=every_other(m)), package="hybrid",
    ),
    algorithm(
        "hybrid_dynamics_articulated", "q v tau a",
        lambda m, *x: hybrid.hybrid_dynamics_articulated(m, *x, prescribed=every_other(m)), package="hybrid",
    ),
    algorithm(
        "hybrid_dynamics_by_matrix", "q v tau a",
        lambda m, *x: hybrid.hybrid_dynamics_by_matrix(m, *x, prescribed=every_other(m)), package="hybrid",
        models=("branched", "geared"),
    ),
    algorithm(
        "free_mass_matrix", "q",
        lambda m, q: hybrid.free_mass_matrix(m, q, prescribed=every_other(m)), package="hybrid",
        models=("branched", "geared"),
    ),
    algorithm(
        "hybrid_dynamics_constrained", "q v tau a",
        lambda m, *x: hybrid.hybrid_dynamics_constrained(m, *x, prescribed=every_other(m)[:1]),
        package="hybrid", models=("linkage",),
    ),
    algorithm(
        "prescribed_violation", "q v tau a",
        lambda m, *x: [hybrid.prescribed_violation(m, *x, prescribed=every_other(m)[:1])],
        package="hybrid", models=("linkage",),
    ),
    algorithm("articulated_accelerations", "q v tau", articulated, package="gears"),
    algorithm("cluster_inertias", "q", clusters.cluster_inertias, package="gears", models=("geared",)),
    algorithm("gear_equations geared_matrix", "q v tau", geared, package="gears", models=("arm",)),
    algorithm(
        "with_couplings", "q v tau", gears.with_couplings(forward_dynamics_by_matrix), package="gears",
        models=("geared",),
    ),
    algorithm("base_gravity", "q", fb.base_gravity, package="floating_base", models=FREE),
    algorithm("floating_base_inertia", "q", fb.floating_base_inertia, package="floating_base", models=FREE),
    algorithm("floating_base_bias", "q v", fb.floating_base_bias, package="floating_base", models=FREE),
    algorithm(
        "reduced_floating_base_equations rigid_acceleration", "q v",
        lambda m, q, v: fb.reduced_floating_base_equations(
            fb.floating_base_inertia(m, q), fb.floating_base_bias(m, q, v)
        ),
        package="floating_base", models=FREE,
    ),
    algorithm(
        "floating_base_forward_dynamics", "q v tau", fb.floating_base_forward_dynamics,
        package="floating_base", models=FREE,
    ),
    algorithm(
        "floating_base_forward_dynamics_by_matrix", "q v tau", fb.floating_base_forward_dynamics_by_matrix,
        package="floating_base", models=FREE,
    ),
    algorithm(
        "floating_base_inverse_dynamics", "q v a",
        lambda m, q, v, a: fb.floating_base_inverse_dynamics(m, q, v, a[6:]),
        package="floating_base", models=FREE,
    ),
    algorithm(
        "floating_base_momentum", "q v", fb.floating_base_momentum, package="floating_base", models=FREE
    ),
    algorithm(
        "floating_base_kinetic_energy", "q v", fb.floating_base_kinetic_energy,
        package="floating_base", models=FREE,
    ),
    algorithm(
        "floating_base_jacobian", "q", lambda m, q: fb.floating_base_jacobian(m, q, m.bodies[-1]),
        package="floating_base", models=FREE,
    ),
    public("hybrid_dynamics", broad=False),
    public("hybrid_dynamics", method="matrix", broad=False),
    public("hybrid_dynamics", models=FREE, prescribed=("root",)),
    public("floating_base_inverse_dynamics", models=FREE),
    public("floating_base_inverse_dynamics", gravity="acceleration", models=FREE),
    public("floating_base_equations", models=FREE),
    public("floating_base_jacobian", models=FREE, where="last", frame="body"),
    public("forward_dynamics", method="floating_base", models=FREE),
    public("forward_dynamics", method="aba", models=("geared",)),
    public("forward_dynamics", method="aba_multipliers", models=("arm", "geared")),
)  # fmt: skip

STRUCTURE: dict[str, str] = {
    "floating_base.floating_base": "finds the body that floats",
    "gears.clusters_of": "sorts bodies into clusters",
    "gears.default_method": "compares a depth with a number",
    "hybrid.merged_parents": "merges nodes of a parent array",
    "hybrid.prescribed_places": "looks up names",
    "hybrid.supported_bodies": "walks a parent array",
}
