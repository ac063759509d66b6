"""Constraint equations: loop joints, functions of the user's, explicit constraints."""

from __future__ import annotations

from typing import Any

from tests.conformance.enrolling import Enrolled, algorithm, public

from dalembert.algorithms import constraints as c
from dalembert.algorithms.loops.loop_forces import (
    bias_with_loop_forces,
    loop_active_forces,
    loop_active_torques,
    loop_state,
)
from dalembert.model.model import Model

LOOPS = ("linkage", "looped")
EVERY = ("looped", "cam_driven")


def numbers(equations: c.ConstraintEquations) -> Any:
    return equations[:4]


def torques(model: Model, v: Any) -> dict[str, list[Any]]:
    """Some torque at every loop joint."""
    return {loop.name: [v[i % model.nv] for i in range(loop.joint.nv)] for loop in model.loops}


def explicit(model: Model, q: Any, v: Any) -> Any:
    closure = model.closure
    assert closure is not None
    return c.closure_equations(model, [q[i] for i in closure.positions], [v[i] for i in closure.velocities])


ENROLLED: tuple[Enrolled, ...] = (
    algorithm(
        "constraint_equations", "q v", lambda m, q, v: numbers(c.constraint_equations(m, q, v)),
        package="constraints", models=EVERY,
    ),
    algorithm(
        "constraint_equations", "q v",
        lambda m, q, v: numbers(c.constraint_equations(m, q, v, coordinates="base")),
        suffix="-base", package="constraints", models=("looped",),
    ),
    algorithm(
        "stabilized_k", "q v dt",
        lambda m, q, v, T: c.stabilized_k(c.constraint_equations(m, q, v), 0.1 + T * T),
        package="constraints", models=LOOPS,
    ),
    algorithm(
        "loop_rows", "q v", lambda m, q, v: list(c.loop_rows(m, m.loops[0], q, v)),
        package="constraints", models=LOOPS,
    ),
    algorithm(
        "loop_state", "q v", lambda m, q, v: loop_state(m, m.loops[0], q, v),
        package="constraints", models=LOOPS,
    ),
    algorithm(
        "loop_active_forces loop_active_torques", "q v",
        lambda m, q, v: (
            loop_active_forces(m, q, torques(m, v)),
            loop_active_torques(m, q, torques(m, v))
        ),
        package="constraints", models=LOOPS,
    ),
    algorithm(
        "bias_with_loop_forces", "q v",
        lambda m, q, v: list(bias_with_loop_forces(m, q, v, torques(m, v))),
        package="constraints", models=LOOPS,
    ),
    algorithm("closing_equations", "q", c.closing_equations, package="constraints", models=EVERY),
    algorithm("closure_equations", "q v", explicit, package="constraints", models=("cam_driven",)),
    public("constraint_jacobian", models=EVERY),
    public("constraint_bias", models=EVERY),
    public("constraint_error", models=EVERY),
    public("constraint_velocity", models=("looped",)),
    public("closing_equations", models=("looped",)),
)  # fmt: skip

STRUCTURE: dict[str, str] = {
    "constraints.loop_paths": "walks a parent array of integers",
}
