"""Featherstone 2008 chapter 8: what its methods are made of, each part beside a second way to it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.algorithms.counting import count
from tests.algorithms.loops.looped import random_looped, textbook_accelerations
from tests.textbook.linkages import cluster_example, piston_arm
from tests.textbook.test_catalogue_rows import CRANK, ROD, slider_crank

import dalembert as da
from dalembert.algorithms import loops, sparse
from dalembert.algorithms.constraints import closure_equations, constraint_equations
from dalembert.algorithms.loops.loop_forces import bias_with_loop_forces, loop_active_forces, loop_state
from dalembert.compiler.library import function
from dalembert.model.coupling import loop_clusters


def test_method_two_with_the_factors_of_the_book() -> None:
    """RBDA-8.5-M2: the six steps with M = L^T L: Y = L^-T K^T, z = L^-T tau', A = Y^T Y, b = k - Y^T z, as
    with M = L^T D L; and lambda may have any part of the null space of A where rows repeat others.
    """
    model, q, v = random_looped(17, (da.joints.Universal(), da.Spherical()))
    tau = np.random.default_rng(3).normal(size=model.nv)
    system = loops.constrained_system(model, q.tolist(), v.tolist(), tau.tolist())
    parents, force, K = system.parents, np.array(system.force, float), np.array(system.K, float)
    L = sparse.factor_ltl(system.M, parents)
    Y = np.array([sparse.solve_l_transposed(L, parents, row) for row in system.K], float).T
    z = np.array(sparse.solve_l_transposed(L, parents, system.force), float)
    A, b = Y.T @ Y, np.array(system.k, float) - Y.T @ z
    equation = loops.multiplier_equation(system)
    np.testing.assert_allclose(equation.A, A, atol=1e-10 * np.abs(A).max())
    np.testing.assert_allclose(equation.b, b, atol=1e-10 * np.abs(b).max())
    expected = textbook_accelerations(model, q, v, tau)
    a = sparse.solve_ltl(L, parents, (force + K.T @ np.linalg.solve(A, b)).tolist())
    np.testing.assert_allclose(a, expected, atol=1e-8 * np.abs(expected).max())
    # Eq. 8.41 with the last row repeated: A^+ b + (1 - A^+ A) z for any z.
    twice = np.vstack([K, K[-1]])
    wide = np.pad(A, (0, 1), mode="edge")
    inverse, right = np.linalg.pinv(wide, rcond=1e-10), np.append(b, b[-1])
    for anything in np.random.default_rng(4).normal(size=(3, len(right))):
        lam = inverse @ right + (np.eye(len(right)) - inverse @ wide) @ anything
        a = sparse.solve_ltl(L, parents, (force + twice.T @ lam).tolist())
        np.testing.assert_allclose(a, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize(
    "closers", [(da.Spherical(),), (da.Revolute(), da.joints.Universal())], ids=["ball", "two"]
)
def test_method_three_with_the_independent_variables_of_the_book(
    closers: tuple[da.joints.Joint, ...],
) -> None:
    """RBDA-8.5-M3, RBDA-8.8-GG: a = G y'' + g with the y that complete pivoting finds, or with the projector
    on all motions that the loops allow: the motion of the equation as a whole.
    """
    model, q, v = random_looped(23, closers)
    tau = np.random.default_rng(5).normal(size=model.nv)
    expected = textbook_accelerations(model, q, v, tau)
    system = loops.constrained_system(model, q.tolist(), v.tolist(), tau.tolist())
    solution = loops.explicit_solution(system.K, system.k)
    assert sum(solution.independent) == model.nv - np.linalg.matrix_rank(np.array(system.K, float))
    a = loops.constrained_motion_from(system, solution)
    np.testing.assert_allclose(a, expected, atol=1e-9 * np.abs(expected).max())
    a = loops.accelerations_by_null_space(model, q.tolist(), v.tolist(), tau.tolist())
    np.testing.assert_allclose(a, expected, atol=1e-9 * np.abs(expected).max())


def test_g_is_found_block_by_block() -> None:
    """RBDA-8.9-CLUSTERS: G has a block for each cluster of Figure 8.1 and ones for the joints of none, and
    is the G of K as a whole; (n - r)(n - r - 1) of its entries at least are zeros, literally.
    """
    model = cluster_example()
    q, v = (x.tolist() for x in model.random_state(1))
    rows = constraint_equations(model, q, v).K
    K = np.array(rows, float)
    k = K @ np.random.default_rng(3).normal(size=model.nv)  # some rows of one cluster depend on each other
    found = loops.explicit_solution(rows, k.tolist())
    chosen = [j for j, x in enumerate(found.independent) if x > 0.5]
    G, g = np.array(found.G, float)[:, chosen], np.array(found.g, float)
    free = len(chosen)
    assert free == model.nv - np.linalg.matrix_rank(K) == np.linalg.matrix_rank(G)
    np.testing.assert_allclose(K @ G, 0.0, atol=1e-9)
    np.testing.assert_allclose(K @ g, k, atol=1e-9)
    clusters = [set(cluster.velocities) for cluster in loop_clusters(model)]
    clusters += [{j} for j in range(model.nv) if not any(j in cluster for cluster in clusters)]
    for cluster in clusters:
        outside = [i for i in range(model.nv) if i not in cluster]
        assert not G[np.ix_(outside, [c for c, j in enumerate(chosen) if j in cluster])].any()
    assert (G == 0.0).sum() >= free * (free - 1)
    # Rows mixed with each other have the same solutions and no blocks.
    mix = np.random.default_rng(2).normal(size=(len(K), len(K)))
    whole = loops.explicit_solution((mix @ K).tolist(), (mix @ k).tolist(), independent=chosen)
    np.testing.assert_allclose(np.array(whole.G, float)[:, chosen], G, atol=1e-7)
    np.testing.assert_allclose(whole.g, g, atol=1e-7)


def test_clusters_cost_what_they_cost_alone() -> None:
    """RBDA-8.9-CLUSTERS: G of two clusters, and method 3 on two linkages, take twice the operations of one;
    that they are numbered alternately makes no difference.
    """

    def alone(K, k):
        return loops.explicit_solution(K, k).G

    def both(K, k, J, j):
        rows = [[x for y in row for x in (y, 0.0)] for row in K] + [
            [x for y in row for x in (0.0, y)] for row in J
        ]
        return loops.explicit_solution(rows, [*k, *j]).G

    one, two = count(alone, K=(2, 4), k=2), count(both, K=(2, 4), k=2, J=(2, 4), j=2)
    assert one.total < two.total <= 2 * one.total
    linkage = da.models.four_bar()
    pair = linkage.attach(linkage, prefix="other ")
    one, two = (
        function(model, "forward_dynamics", "null_space").operation_count for model in (linkage, pair)
    )
    assert two.total <= 2 * one.total


@pytest.mark.parametrize("branch", [1.0, -1.0])
def test_a_closure_function_names_the_assembly(branch: float) -> None:
    """RBDA-8.10-AMBIGUITY: the slider stands before the crank or behind it, for the same crank angle; y -> q
    is unique once gamma says which, and the motion is that of the loop joint in the same assembly.
    """
    implicit, explicit = slider_crank(explicit=False), slider_crank(explicit=True, branch=branch)
    angle, speed = 0.6, 2.0
    found = closure_equations(explicit, [angle], [speed])
    reach = branch * math.sqrt(ROD**2 - (CRANK * math.sin(angle)) ** 2)
    assert found.q[2] == pytest.approx(CRANK * math.cos(angle) + reach - CRANK - ROD)
    q, v, tau = np.array(found.q), np.array(found.v), np.array([0.5, 0.0, -0.3])
    np.testing.assert_allclose(da.constraints.constraint_error(implicit, q), 0.0, atol=1e-12)
    np.testing.assert_allclose(da.constraints.constraint_jacobian(implicit, q) @ v, 0.0, atol=1e-12)
    a = da.forward_dynamics(explicit, q, v, tau)
    np.testing.assert_allclose(a, da.forward_dynamics(implicit, q, v, tau), rtol=1e-7, atol=1e-9)
    # From nearby, the loop joint alone finds the same assembly.
    near = da.constraints.close_loops(implicit, q + [0.0, 0.05, 0.02], hold=["crank_pivot"])
    np.testing.assert_allclose(np.exp(1j * near), np.exp(1j * q), atol=1e-8)


def test_worked_example_by_differences_and_by_elimination() -> None:
    """RBDA-8.11-WORKED: G and g of the cylinder-piston arm are derivatives of gamma, and what elimination
    makes of K and k with y = (q1, q4).
    """
    model = piston_arm()
    y, w, h = np.array([0.7, 0.3]), np.array([1.1, -0.4]), 1e-5

    def at(y: np.ndarray) -> da.algorithms.constraints.ClosureEquations:
        return closure_equations(model, y.tolist(), w.tolist())

    found = at(y)
    for j, step in enumerate(h * np.eye(2)):
        slope = (np.array(at(y + step).q) - at(y - step).q) / (2.0 * h)
        np.testing.assert_allclose(np.array(found.G)[:, j], slope, atol=1e-9)
    rate = (np.array(at(y + h * w).v) - at(y - h * w).v) / (2.0 * h)
    np.testing.assert_allclose(found.g, rate, atol=1e-9)
    rows = constraint_equations(model, found.q, found.v)
    chosen = [model.joint(name).v_slice.start for name in ("q1", "q4")]
    solved = loops.explicit_solution(rows.K, rows.k, independent=chosen)
    np.testing.assert_allclose(np.array(solved.G)[:, chosen], found.G, atol=1e-12)
    np.testing.assert_allclose(solved.g, found.g, atol=1e-12)


def test_a_spring_along_a_guide_in_the_tree_or_at_the_chord() -> None:
    """RBDA-8.6-PASSIVE, RBDA-8.6-CTAUA: a slider-crank cut at the slider's pin, with the guide's spring in
    the tree, or at the guide, with the spring as an active force of the loop joint; one motion.
    """
    in_tree = slider_crank(explicit=False)
    crank, rod, slider = in_tree.bodies
    pin = in_tree.loops["slider_pin"]
    builder = da.ModelBuilder(gravity=in_tree.gravity.to_list())
    builder.add_body("crank", "world", crank.joint, inertia=crank.inertia)
    builder.add_body("rod", "crank", rod.joint, placement=rod.placement, inertia=rod.inertia)
    builder.add_body("slider", "rod", pin.joint, placement=pin.placement_predecessor, inertia=slider.inertia)
    # The guide slides along its own z, which stands along x of the slider and of the world.
    turned = da.Transform.from_rotation_translation([[0, 0, 1], [0, 1, 0], [-1, 0, 0]], [0.0, 0.0, 0.0])
    guide = da.Prismatic((0.0, 0.0, 1.0))
    builder.add_loop("guide", "world", "slider", guide, slider.placement.as_transform() @ turned, turned)
    at_chord = builder.build()
    q, v = da.constraints.close_loops(in_tree, [0.7, -0.9, 0.0], [2.0, 0.0, 0.0], hold=["crank_pivot"])
    q_chord, v_chord = da.constraints.close_loops(
        at_chord, [*q[:2], 0.2], [*v[:2], 0.0], hold=["crank", "rod"]
    )
    found = loop_state(at_chord, at_chord.loops["guide"], q_chord.tolist(), v_chord.tolist())
    np.testing.assert_allclose([found.q[0], found.v[0]], [q[2], v[2]], atol=1e-9)
    spring = -30.0 * found.q[0] - 2.0 * found.v[0]
    tau = np.array([0.3, -0.2, 0.0])
    expected = da.forward_dynamics(in_tree, q, v, tau + [0.0, 0.0, spring])
    forces = [f.to_list() for f in loop_active_forces(at_chord, q_chord.tolist(), {"guide": [spring]})]
    a = da.forward_dynamics(at_chord, q_chord, v_chord, tau, forces)
    np.testing.assert_allclose(a[:2], expected[:2], rtol=1e-8)
    bias = bias_with_loop_forces(at_chord, q_chord.tolist(), v_chord.tolist(), {"guide": [spring]}).bias
    K, k = (
        da.constraints.constraint_jacobian(at_chord, q_chord),
        da.constraints.constraint_bias(at_chord, q_chord, v_chord),
    )
    M = da.mass_matrix(at_chord.tree(), q_chord)
    whole = np.block([[M, K.T], [K, np.zeros((len(K), len(K)))]])
    solved = np.linalg.lstsq(whole, np.concatenate([tau - bias, k]), rcond=1e-11)[0]
    np.testing.assert_allclose(solved[:2], expected[:2], rtol=1e-8)
    assert np.abs(da.forward_dynamics(in_tree, q, v, tau) - expected).max() > 1.0
