"""Featherstone 2008 sections 8.9 to 8.11: clusters, mobility and loop closure, with the book's numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.looped_models import moving
from tests.textbook.linkages import (
    L1,
    L2,
    SOLID,
    at,
    cluster_example,
    piston_arm,
    planar_four_bar,
)

import dalembert as da
from dalembert.algorithms import aligned, forward_kinematics
from dalembert.algorithms.constraints import closure_equations, constraint_equations
from dalembert.model.coupling import loop_clusters
from dalembert.spatial import Vec3


def test_loop_clusters_of_the_figure():
    """RBDA-8.9-CLUSTERS: loops {1, 2}, {3}, {4} have joints 3-7, 10-12, 19-20; K is block-diagonal."""
    model = cluster_example()
    clusters = loop_clusters(model)
    assert model.loop_clusters() == (("j21", "j22"), ("j23",), ("j24",))
    assert [c.joints for c in clusters] == [
        tuple(f"j{i}" for i in range(3, 8)),
        tuple(f"j{i}" for i in range(10, 13)),
        ("j19", "j20"),
    ]
    q, v = (x.tolist() for x in model.random_state(1))
    equations = constraint_equations(model, q, v)
    K = np.array(equations.K)
    for cluster in clusters:
        rows = [i for i, name in enumerate(equations.names) if name in cluster.constraints]
        others = np.setdiff1d(np.arange(model.nv), cluster.velocities)
        assert np.abs(K[np.ix_(rows, cluster.velocities)]).max() > 0.0
        assert not K[np.ix_(rows, others)].any()
    # G, block by block, spans what the whole K leaves free.
    G = np.zeros((model.nv, 0))
    for cluster in clusters:
        rows = [i for i, name in enumerate(equations.names) if name in cluster.constraints]
        block = K[np.ix_(rows, cluster.velocities)]
        _, s, Vt = np.linalg.svd(block)
        null = Vt[(s > 1e-9).sum() :].T
        G = np.hstack([G, np.eye(model.nv)[:, list(cluster.velocities)] @ null])
    unlooped = np.setdiff1d(np.arange(model.nv), [i for c in clusters for i in c.velocities])
    G = np.hstack([G, np.eye(model.nv)[:, unlooped]])
    rank = np.linalg.matrix_rank(K)
    assert G.shape[1] == np.linalg.matrix_rank(G) == model.nv - rank
    np.testing.assert_allclose(K @ G, 0.0, atol=1e-12)
    free = model.nv - rank
    assert (G == 0.0).sum() >= free * (free - 1)


def test_mobility_of_the_planar_four_bar():
    """RBDA-8.10-MOBILITY: n = 3, n_c = 5, r = 2, mobility 1 = n_tot - 6 N_L + 3, and 4 - 3 in the plane."""
    model = planar_four_bar()
    for q in (model.neutral(), moving(model, 3)[0]):
        found = da.analysis.mobility(model, q)
        assert (found.n, found.n_c, found.rank, found.mobility) == (3, 5, 2, 1)
        assert found.counted == 4 - 6
        assert found.mobility == found.counted + found.excess
        assert found.counted_planar == 4 - 3
        assert found.overconstrained
    assert da.analysis.mobility(da.models.stewart()).counted == 6
    assert da.analysis.mobility(da.models.stewart()).counted_planar is None
    assert not da.analysis.mobility(da.models.stewart()).overconstrained
    assert "mobility 1" in str(da.analysis.mobility(model))
    with pytest.raises(da.errors.StateError, match="close_loops"):
        da.analysis.mobility(model, [0.5, 0.0, 0.0])
    with pytest.raises(da.errors.ShapeError):
        da.analysis.mobility(model, np.zeros((2, 3)))


def two_arms(length=0.7):
    """Figure 8.2(a): a crank from O to C and a ground pivot E, |OC| = |OE| = 1, carry two arms of two bars.

    The bars of an arm start at C and at E and are pinned together at their ends. At theta = 0, C is on E and
    the arms turn about it as they like.
    """
    builder = da.ModelBuilder()
    builder.add_body("crank", "world", da.Revolute(), inertia=SOLID)
    for arm in ("1", "2"):
        builder.add_body("c" + arm, "crank", da.Revolute(), placement=at(1.0), inertia=SOLID)
        builder.add_body("e" + arm, "world", da.Revolute(), placement=at(1.0), inertia=SOLID)
        builder.add_loop("d" + arm, "c" + arm, "e" + arm, da.Revolute(), at(length), at(length))
    model = builder.build()

    def configuration(theta, directions):
        """Both ends on the bisector of C and E, outward or inward; at theta = 0 along given directions."""
        q = model.neutral()
        q[model.joint("crank").q_slice] = theta
        C, E = np.array([math.cos(theta), math.sin(theta)]), np.array([1.0, 0.0])
        for arm, direction in zip(("1", "2"), directions):
            if theta == 0.0:
                toward_c = toward_e = np.array([math.cos(direction), math.sin(direction)])
            else:
                half, along = math.sin(0.5 * theta), np.array([math.cos(0.5 * theta), math.sin(0.5 * theta)])
                D = 0.5 * (C + E) + direction * math.sqrt(length**2 - half**2) * along
                toward_c, toward_e = D - C, D - E
            q[model.joint("c" + arm).q_slice] = math.atan2(toward_c[1], toward_c[0]) - theta
            q[model.joint("e" + arm).q_slice] = math.atan2(toward_e[1], toward_e[0])
        return q

    return model, configuration


def test_variable_mobility_of_the_figure():
    """RBDA-8.10-VARIABLE: n = 5; r = 4, 2, 3, so mobility 1, 3 (for an instant) and 2, along one motion."""
    model, configuration = two_arms()
    left = da.analysis.mobility(model, configuration(0.6, (1.0, -1.0)))
    middle = da.analysis.mobility(model, configuration(0.0, (0.0, math.pi)))
    right = da.analysis.mobility(model, configuration(0.0, (0.8, 2.1)))
    assert [found.n for found in (left, middle, right)] == [5, 5, 5]
    assert [found.rank for found in (left, middle, right)] == [4, 2, 3]
    assert [found.mobility for found in (left, middle, right)] == [1, 3, 2]
    assert left.counted_planar == middle.counted_planar == 1
    # The approach is seen before the rank falls: two singular values go to zero with theta.
    near = [da.analysis.mobility(model, configuration(t, (1.0, -1.0))) for t in (0.1, 0.01, 0.001)]
    assert [found.rank for found in near] == [4, 4, 4]
    small = np.array([found.singular_values for found in near])[:, 2:4]
    np.testing.assert_allclose(small[1:] / small[:-1], 0.1, rtol=0.05)
    # Loops close through all three regimes, rank or not.
    near = configuration(0.0, (0.8, 2.1)) + 0.01 * np.random.default_rng(0).normal(size=(20, 5))
    closed = da.constraints.close_loops(model, near)
    np.testing.assert_allclose(da.constraints.constraint_error(model, closed), 0.0, atol=1e-10)


def test_configuration_ambiguity_is_kept_apart_by_q():
    """RBDA-8.10-AMBIGUITY: one crank angle, two assemblies; the start decides, q tells them apart."""
    model = planar_four_bar()
    crank = 0.6
    starts = np.array([[crank, 0.0, 0.0], [crank, -2.3, 1.7]])
    q = da.constraints.close_loops(model, starts, hold=["crank"])
    np.testing.assert_array_equal(q[:, 0], crank)
    np.testing.assert_allclose(da.constraints.constraint_error(model, q), 0.0, atol=1e-10)
    wrapped = np.abs(np.angle(np.exp(1j * (q[0] - q[1]))))
    assert wrapped[1:].min() > 0.3
    # The two are mirror images in the diagonal from the crank's end to the ground pivot.
    tip = np.array([0.3 * math.cos(crank), 0.3 * math.sin(crank)])
    ends = []
    for one in q:
        pose = forward_kinematics(model, one.tolist())[model.body("coupler")]
        ends.append(np.array(pose.transform_point(Vec3(0.9, 0.0, 0.0)).to_list())[:2])
    diagonal = np.array([1.0, 0.0]) - tip
    normal = np.array([-diagonal[1], diagonal[0]]) / np.linalg.norm(diagonal)
    heights = [(end - tip) @ normal for end in ends]
    assert heights[0] == pytest.approx(-heights[1], abs=1e-9)


def test_a_weaker_loop_joint_removes_the_overconstraint():
    """RBDA-8.10-OVERCON: sphere-in-cylinder instead of revolute: n_c 5 -> 2 = r, the same accelerations."""
    strong, weak = planar_four_bar(), planar_four_bar(da.joints.SphereInCylinder((0.0, 0.0, 1.0)))
    before, after = da.analysis.mobility(strong), da.analysis.mobility(weak)
    assert (before.n_c, before.rank, after.n_c, after.rank) == (5, 2, 2, 2)
    assert before.overconstrained
    assert not after.overconstrained
    q, v = moving(strong, 5)
    tau = np.array([0.4, -0.2, 0.1])
    np.testing.assert_allclose(
        da.forward_dynamics(weak, q, v, tau), da.forward_dynamics(strong, q, v, tau), rtol=1e-8, atol=1e-8
    )


def test_worked_example_of_a_loop_closure_function():
    """RBDA-8.11-WORKED: G and g of the cylinder-piston arm are the figure's u1 to u4, and solve the loop."""
    model = piston_arm()
    order = [model.joint(name).v_slice.start for name in ("q1", "q2", "q3", "q4")]
    for y1, y2, w1, w2 in ((0.7, 0.3, 1.1, -0.4), (2.5, -1.0, -0.6, 0.9), (-1.3, 0.2, 0.5, 0.1)):
        found = closure_equations(model, [y1, y2], [w1, w2])
        d = math.sqrt(L1**2 + L2**2 - 2 * L1 * L2 * math.cos(y1))
        u1 = (L2**2 - L1 * L2 * math.cos(y1)) / d**2
        u2 = L1 * L2 * math.sin(y1) / d
        u3 = (L1**2 - L2**2) * L1 * L2 * math.sin(y1) * w1**2 / d**4
        u4 = (L1 * L2 * math.cos(y1) - u2**2) * w1**2 / d
        theta2 = math.atan2(L2 * math.sin(y1), L2 * math.cos(y1) - L1)
        np.testing.assert_allclose(np.array(found.q)[order], [y1, theta2, d, y2], atol=1e-14)
        G, g = np.array(found.G)[order], np.array(found.g)[order]
        np.testing.assert_allclose(G, [[1, 0], [u1, 0], [u2, 0], [0, 1]], atol=1e-14)
        np.testing.assert_allclose(g, [0, u3, u4, 0], atol=1e-13)
        np.testing.assert_allclose(np.array(found.v)[order], G @ [w1, w2], atol=1e-14)
        # They are a solution of the loop's own equations, and all of it: n - r = 2.
        rows = constraint_equations(model, found.q, found.v)
        np.testing.assert_allclose(rows.position_error, 0.0, atol=1e-14)
        K = np.array(rows.K)
        np.testing.assert_allclose(K @ np.array(found.G), 0.0, atol=1e-13)
        np.testing.assert_allclose(K @ np.array(found.g), rows.k, atol=1e-13)
        assert np.linalg.matrix_rank(K) == 2
    structure = (np.abs(np.array(found.G)[order]) > 0.0).tolist()
    assert structure == [[True, False], [True, False], [True, False], [False, True]]
    # Of equal lengths, C excludes y1 = 0: the piston's rate jumps there.
    slopes = [closure_equations(piston_arm(0.5, 0.5), [y, 0.0], [1.0, 0.0]).v for y in (1e-6, -1e-6)]
    assert abs(sum(slope[2] for slope in slopes)) < 1e-6 < 0.1 < max(abs(slope[2]) for slope in slopes)
    for tree in (model, aligned(model)):
        assert (
            closure_equations(tree, [0.7, 0.3], [1.0, 0.0]).q
            == closure_equations(model, [0.7, 0.3], [1.0, 0.0]).q
        )
