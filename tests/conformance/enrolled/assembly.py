"""Subsystems put together."""

from __future__ import annotations

from typing import Any

from tests.conformance.enrolled.trees import last
from tests.conformance.enrolling import POINT, Enrolled, algorithm, public

from dalembert.algorithms.inverse_dynamics import bias_forces
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.model.model import Model
from dalembert.models.random_trees import random_inertia
from dalembert.spatial import ArticulatedInertia, Force, Motion
from dalembert.textbook import constrained_equations as chapter_3
from dalembert.textbook import handles
from dalembert.textbook import recursive_assembly as divide_and_conquer

PUSH = Force(POINT, POINT * 2.0)

SOLID = random_inertia(5)
"""An inertia that has an inverse, as those of textbook models often have not."""

SOLID_MODELS = ("arm", "branched")


def system(m: Model, q: Any, v: Any, tau: Any) -> chapter_3.Equations:
    return chapter_3.Equations(mass_matrix(m, q), bias_forces(m, q, v), list(tau))


def repeated_constraint(m: Model, q: Any, v: Any, tau: Any) -> Any:
    """Two constraints and one of them again, whose sizes are numbers and whose right sides agree."""
    rows = [[1.0 + 0.3 * k for k in range(m.nv)], [(-1.0) ** k for k in range(m.nv)]]
    k = [v[0], tau[-1]]
    chosen = rows[: min(2, m.nv)]
    equations = system(m, q, v, tau)
    K = [*chosen, chosen[0]]
    found = chapter_3.constrain(equations, K, [*k[: len(chosen)], k[0]])
    return found, chapter_3.constraint_matrix(equations.H, K)


def explicit(m: Model, q: Any, v: Any, tau: Any) -> Any:
    """One independent variable that all others follow."""
    G = [[1.0 + 0.3 * k] for k in range(m.nv)]
    g = [0.5 * x for x in v]
    equations = system(m, q, v, tau)
    return (
        chapter_3.constrain_explicitly(equations, G, g),
        chapter_3.project(equations, G, g),
        chapter_3.three_block_system(equations, G, g),
        chapter_3.dual_system(equations, G, g),
    )


def collected(m: Model, q: Any, v: Any, tau: Any) -> Any:
    body = chapter_3.body_equations(SOLID, PUSH, PUSH * 2.0)
    whole = chapter_3.collect([body, system(m, q, v, tau)])
    return whole, chapter_3.free_acceleration(whole)


def on_one_joint(m: Model, q: Any, v: Any) -> Any:
    """The last moving body as if its joint were on the ground, by three methods."""
    body = last(m)
    _, S, v_J, c = body.jcalc(q, v, None)
    T = body.joint.constraint_subspace(body.own_q(q))
    p = v_J.cross(SOLID * v_J)
    k = [c.dot(t) for t in T]
    return (
        chapter_3.apparent_inverse_inertia(SOLID, p, S, c),
        chapter_3.body_with_constraint_forces(SOLID, p, T, k, PUSH),
        chapter_3.body_in_joint_coordinates(SOLID, p, S, c, PUSH),
    )


def subspaces_of_joint(m: Model, q: Any, v: Any) -> Any:
    body = last(m)
    S = body.jcalc(q, v, None).S
    columns = [s.to_list() for s in S]
    T = chapter_3.dual_complement(columns, 6)
    inverse = [[*row] for row in chapter_3.dual_complement(T, 6)] if T else columns
    pushed = Motion(POINT * v[0], POINT * 2.0)
    return (
        T,
        chapter_3.decompose(pushed.to_list(), columns, chapter_3.dual_complement(inverse, 6)),
        [chapter_3.dimension(columns)],
        chapter_3.split_force(SOLID, S, PUSH),
    )


def handles_of_joint(m: Model, q: Any, v: Any, tau: Any) -> tuple[Any, ...]:
    """What assembly formulae take: the last moving body as both handles, its joint between them."""
    body = last(m)
    c = body.jcalc(q, v, None).c_J
    own_q = body.own_q(q)
    handle = ArticulatedInertia.from_rigid(SOLID)
    T, T_a = body.joint.constraint_subspace(own_q), body.joint.active_subspace(own_q)
    return handle, PUSH * v[0], T, T_a, c, body.own_v(tau)


def variants(m: Model, q: Any, v: Any, tau: Any) -> Any:
    handle, p, T, T_a, c, own = handles_of_joint(m, q, v, tau)
    Phi, b = handles.inverse_inertia(handle, p)
    return (
        handles.assemble_inverse(Phi, b, Phi, b, T, T_a, c, own),
        handles.assemble_in_constraint_space(handle, p, handle, p, T, T_a, c, own),
        handles.relative_acceleration(b, b * 2.0, c, T_a),
    )


def by_blocks(m: Model, q: Any, v: Any, tau: Any) -> Any:
    handle, p, T, T_a, c, own = handles_of_joint(m, q, v, tau)
    S = last(m).jcalc(q, v, None).S
    Phi, b = handles.inverse_inertia(handle, p)
    equations = (
        chapter_3.standard_equations(handle, p, handle, p, S, c, own),
        chapter_3.variant_1_equations(Phi, b, Phi, b, T, T_a, c, own),
        chapter_3.variant_2_equations(handle, p, handle, p, T, T_a, c, own),
    )
    return [list(chapter_3.solve_composite(equation)[0]) for equation in equations]


def two_handles(m: Model, q: Any, v: Any, tau: Any) -> Any:
    """Two bodies connected, seen at both; then taken apart under forces on both."""
    handle, p, T, _, c, _ = handles_of_joint(m, q, v, tau)
    Phi, b = handles.inverse_inertia(handle, p)
    parts = handles.collect_parts([handles.single_body(0, Phi, b), handles.single_body(1, Phi, b * 0.5)])
    gamma = [c.dot(t) for t in T]
    joint = handles.HandleJoint(0, 1, T, T, PUSH, PUSH, gamma, [0.0] * len(T))
    whole, connected = handles.connect(parts, [joint], (0, 1))
    forces, multipliers = handles.disconnect(connected, {0: PUSH, 1: PUSH * v[0]})
    return list(whole.Phi.values()), list(whole.b.values()), list(forces.values()), multipliers


def end_handles(m: Model, q: Any, v: Any, tau: Any) -> Any:
    """The first and the last body as handles of the whole system."""
    whole = divide_and_conquer.handle_equations(m, q, v, tau, (0, len(m.bodies) - 1))
    return list(whole.Phi.values()), list(whole.b.values())


ENROLLED: tuple[Enrolled, ...] = (
    # chapter 3
    algorithm(
        "collect body_equations tree_equations free_acceleration", "q v tau", collected, package="assembly"
    ),
    algorithm(
        "constrain constraint_matrix",
        "q v tau",
        repeated_constraint,
        package="assembly",
        models=SOLID_MODELS,
    ),
    algorithm(
        "constrain_explicitly project three_block_system dual_system", "q v tau", explicit, package="assembly"
    ),
    algorithm(
        "dual_complement decompose dimension split_force", "q v", subspaces_of_joint, package="assembly"
    ),
    algorithm(
        "apparent_inverse_inertia body_with_constraint_forces body_in_joint_coordinates",
        "q v",
        on_one_joint,
        package="assembly",
    ),
    algorithm("projected_equations", "q v tau", chapter_3.projected_equations, package="assembly"),
    # chapter 7
    algorithm(
        "assemble_inverse assemble_in_constraint_space inverse_inertia relative_acceleration",
        "q v tau",
        variants,
        package="assembly",
    ),
    algorithm(
        "solve_composite standard_equations variant_1_equations variant_2_equations",
        "q v tau",
        by_blocks,
        package="assembly",
    ),
    algorithm("connect disconnect collect_parts single_body", "q v tau", two_handles, package="assembly"),
    algorithm(
        "divide_and_conquer forward_dynamics_by_plan",
        "q v tau",
        divide_and_conquer.divide_and_conquer,
        package="assembly",
        models=SOLID_MODELS,
    ),
    algorithm("handle_equations", "q v tau", end_handles, package="assembly", models=SOLID_MODELS),
    algorithm(
        "forward_dynamics_by_inverse_inertias",
        "q v tau",
        divide_and_conquer.forward_dynamics_by_inverse_inertias,
        package="assembly",
        models=SOLID_MODELS,
    ),
    algorithm(
        "forward_dynamics_in_constraint_space",
        "q v tau",
        handles.forward_dynamics_in_constraint_space,
        package="assembly",
        models=SOLID_MODELS,
    ),
    algorithm(
        "forward_dynamics_by_projection",
        "q v tau",
        chapter_3.forward_dynamics_by_projection,
        package="assembly",
    ),
    # public methods
    public("forward_dynamics", method="divide_and_conquer", models=SOLID_MODELS),
    public("forward_dynamics", method="aba_inverse", models=SOLID_MODELS),
    public("forward_dynamics", method="aba_constraint_space", models=SOLID_MODELS),
    public("forward_dynamics", method="projection", broad=False),
)

STRUCTURE: dict[str, str] = {
    "assembly.plan_in_pairs": "orders the bodies of a tree",
    "assembly.plan_one_by_one": "orders the bodies of a tree",
}
