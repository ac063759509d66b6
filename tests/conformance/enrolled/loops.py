"""Closed loops."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from tests.conformance.enrolling import Enrolled, algorithm, public

from dalembert.algorithms import loops
from dalembert.algorithms.dense import factor_semidefinite
from dalembert.compiler.lowering import Recipe
from dalembert.model.model import Model

LINKAGE = ("linkage",)
CRANK = ("crank",)


def on_linkage(covers: str, arguments: str, function: Callable[..., Any], **options: Any) -> Enrolled:
    return algorithm(covers, arguments, function, package="loops", models=LINKAGE, **options)


def system(m: Model, q: Any, v: Any, tau: Any) -> loops.ConstrainedSystem:
    """With the two rows in the linkage's plane: only some scalars know the others to be zero by structure."""
    found = loops.constrained_system(m, q, v, tau, stabilization=0.2)
    planar = [found.rows.index(row) for row in (2, 3)]
    return found._replace(K=[found.K[i] for i in planar], k=[found.k[i] for i in planar], rows=(2, 3))


def explicit(m: Model, q: Any, v: Any, tau: Any, independent: Any = None) -> loops.ExplicitSolution:
    found = system(m, q, v, tau)
    return loops.explicit_solution(found.K, found.k, independent=independent)


def allowed(m: Model, q: Any, v: Any, tau: Any) -> loops.AllowedMotions:
    found = system(m, q, v, tau)
    return loops.allowed_motions(found.K, found.k, m.nv)


def shortest(m: Model, q: Any, v: Any, tau: Any) -> Any:
    """With a row given twice, so that one is dropped."""
    found = system(m, q, v, tau)
    doubled = found._replace(
        K=[*found.K, found.K[0]],
        k=[*found.k, found.k[0]],
        rows=(*found.rows, found.size),
        size=found.size + 1,
    )
    equation = loops.multiplier_equation(doubled)
    return loops.minimum_norm_solution(factor_semidefinite(equation.A), equation.b)


def maximal(m: Model, q: Any, v: Any, tau: Any) -> Any:
    found = loops.maximal_system(m, q, v, tau)
    rows = [force for item in found.constraints for row in item.rows for force in row.values()]
    return [list(found.inertia.values()), found.force, rows, [item.k for item in found.constraints]]


def unrefused(entry: Enrolled) -> Enrolled:
    """Without its refusals: the states of this list break the constraints."""

    def recipe(model: Model) -> Recipe:
        return dataclasses.replace(entry.recipe(model), refusals=())

    return dataclasses.replace(entry, recipe=recipe)


ENROLLED: tuple[Enrolled, ...] = (
    on_linkage("constrained_system", "q v tau", lambda *args: [list(x) for x in system(*args)[:4]]),
    on_linkage("multiplier_equation", "q v tau", lambda *args: loops.multiplier_equation(system(*args))),
    on_linkage("minimum_norm_solution", "q v tau", shortest),
    on_linkage("constrained_motion", "q v tau", lambda *args: loops.constrained_motion(system(*args))),
    on_linkage(
        "constrained_motion_directly",
        "q v tau",
        lambda *args: loops.constrained_motion_directly(system(*args)),
    ),
    on_linkage(
        "constrained_motion_from",
        "q v tau",
        lambda *args: loops.constrained_motion_from(system(*args), explicit(*args)),
    ),
    on_linkage("row_scales", "q v tau", lambda *args: loops.row_scales(system(*args).K)[0]),
    on_linkage("explicit_solution", "q v tau", explicit),
    on_linkage("allowed_motions", "q v tau", allowed),
    on_linkage(
        "explicit_solution", "q v tau", lambda *args: explicit(*args, independent=[0]), suffix="-chosen"
    ),
    on_linkage("gram_factor", "q v tau", lambda *args: loops.gram_factor(system(*args).K)[0].reciprocals),
    on_linkage("constrained_forward_dynamics", "q v tau", loops.constrained_forward_dynamics),
    on_linkage("accelerations_by_range_space", "q v tau", loops.accelerations_by_range_space),
    on_linkage("accelerations_by_elimination", "q v tau", loops.accelerations_by_elimination),
    on_linkage("accelerations_by_null_space", "q v tau", loops.accelerations_by_null_space),
    on_linkage("maximal_system", "q v tau", maximal),
    on_linkage("accelerations_by_maximal_coordinates", "q v tau", loops.accelerations_by_maximal_coordinates),
    on_linkage("accelerations_by_sparse_elimination", "q v tau", loops.accelerations_by_sparse_elimination),
    algorithm(
        "accelerations_by_closure", "q v tau", loops.accelerations_by_closure, package="loops", models=CRANK
    ),
    on_linkage("constraint_forces", "q v tau", loops.constraint_forces),
    on_linkage("loop_forces", "q v tau", loops.loop_forces),
    on_linkage("constrained_inverse_dynamics", "q v a", loops.constrained_inverse_dynamics),
    on_linkage("inverse_dynamics_by_null_space", "q v a", loops.inverse_dynamics_by_null_space),
    on_linkage("constraint_violation", "q v a", lambda *args: [loops.constraint_violation(*args)]),
    on_linkage("unreachable_share", "q v a", lambda *args: [loops.unreachable_share(*args)]),
    # the public functions, with their methods and options
    *(
        public("forward_dynamics", method=method, models=LINKAGE)
        for method in ("range_space", "direct", "null_space", "sparse", "maximal")
    ),
    public("forward_dynamics", method="loop_closure", models=CRANK),
    public("forward_dynamics", arrays=("external_forces", "stabilization"), models=LINKAGE),
    unrefused(public("inverse_dynamics", method="projection", models=LINKAGE)),
    unrefused(public("inverse_dynamics", method="null_space", models=LINKAGE)),
    public("step", arrays=("stabilization",), integrator="rk4", models=LINKAGE),
    public("constraint_forces", models=LINKAGE),
    public("loop_forces", models=LINKAGE),
)

STRUCTURE: dict[str, str] = {
    "loops.actuated_variables": "looks up where actuated joints stand",
    "loops.closure_of": "looks up the model's loop closure",
    "loops.connectivity": "an incidence matrix of integers",
    "loops.elimination_order": "orders the nodes of a graph",
    "loops.independent_variables": "picks elements of q and v",
    "loops.is_constrained": "asks what a model holds",
    "loops.on_trees": "wraps an algorithm in a question about the model",
    "loops.velocity_indices": "looks up where joints stand",
}
