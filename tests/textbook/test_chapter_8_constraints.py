"""Featherstone 2008 chapter 8: loops and their properties, with the book's own numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dalembert as da
from dalembert.algorithms import aligned, bias_forces, forward_kinematics, jacobian
from dalembert.algorithms.constraints import (
    bias_with_loop_forces,
    closure_equations,
    constraint_equations,
    loop_active_forces,
    loop_active_torques,
    loop_rows,
    loop_state,
    stabilized,
)
from dalembert.model.clusters import loop_clusters
from dalembert.model.graph import ConnectivityGraph
from dalembert.model.library.random_trees import random_inertia, random_placement
from dalembert.scalar import atan2, cos, sin, sqrt
from dalembert.spatial import Mat3, Vec3

SOLID = da.RigidInertia(1.3, (0.1, 0.02, -0.03), (0.02, 0.03, 0.025))


def at(x, y=0.0, z=0.0):
    return da.Transform(Mat3.identity(), Vec3(x, y, z))


def planar_four_bar(closer=None, *, pin_in_tree=False):
    """Four bars about z, whose inertias reach out of the plane; the rocker's pin is chord or tree joint."""
    a, b, c, g = 0.3, 0.9, 0.7, 1.0
    reach = g - a
    inner = math.acos((reach**2 + b**2 - c**2) / (2 * reach * b))
    outer = math.pi - math.acos((reach**2 + c**2 - b**2) / (2 * reach * c))

    def turned(angle, x):
        return da.Transform(Mat3.of(np.array(da.spatial.rz(angle).to_list()).T.tolist()), Vec3(x, 0.0, 0.0))

    builder = da.ModelBuilder(gravity=(0.3, -9.0, 0.0))
    builder.add_body("crank", "world", da.Revolute(), inertia=SOLID)
    builder.add_body("coupler", "crank", da.Revolute(), placement=turned(inner, a), inertia=SOLID)
    if pin_in_tree:
        # The rocker hangs on the coupler's end; its frame stays on the ground pivot, turned by `outer`.
        there = turned(inner, a)
        pin = da.Transform(there.R.transpose() @ turned(outer, 0.0).R, Vec3(b, 0.0, 0.0))
        builder.add_body("rocker", "coupler", da.Revolute(), "pin", placement=pin, inertia=moved_rocker(c))
        builder.add_loop("pivot", "world", "rocker", closer or da.Revolute(), turned(outer, g), at(-c))
    else:
        builder.add_body("rocker", "world", da.Revolute(), "pivot", placement=turned(outer, g), inertia=SOLID)
        builder.add_loop("pin", "coupler", "rocker", closer or da.Revolute(), at(b), at(c))
    return builder.build()


def moved_rocker(length):
    """The rocker's inertia seen from a frame at its far end."""
    return at(length).apply(SOLID)


def closed_state(model, seed=0, scale=0.3):
    rng = np.random.default_rng(seed)
    q = da.integrate(model, model.neutral(), scale * rng.normal(size=model.nv))
    return da.close_loops(model, q, rng.normal(size=model.nv))


def test_k_is_the_difference_of_two_body_jacobians():
    """RBDA-8.2-LOOPJAC: J_L = J_s - J_p, eps in {-1, 0, 1} along the loop, K = T^T J_L, K v = T^T v_J."""
    rng = np.random.default_rng(3)
    model = da.models.random_tree(5, bodies=9, joints=("revolute", "universal", "helical"))
    builder = da.ModelBuilder()
    tips = [i for i in range(9) if i not in model.parents][:2]
    names = [model.bodies[i].name for i in tips]
    for body in model.bodies:
        parent = "world" if body.parent < 0 else model.bodies[body.parent].name
        builder.add_body(body.name, parent, body.joint, placement=body.placement, inertia=body.inertia)
    builder.add_loop("loop", *names, da.Universal(), random_placement(rng), random_placement(rng))
    model = builder.build()
    q, v = (x.tolist() for x in model.random_state(6))
    loop = model.loops["loop"]
    rows = loop_rows(model, loop, q, v)
    J = [np.array(jacobian(model, q, name, frame="world")) for name in names]
    X = forward_kinematics(model, q)[model.body(names[1])] @ loop.placement_successor
    T = np.array([X.inverse_apply(f).to_list() for f in rows.T])
    np.testing.assert_allclose(rows.K, T @ (J[1] - J[0]), atol=1e-12)
    np.testing.assert_allclose(rows.velocity_error, T @ (J[1] - J[0]) @ v, atol=1e-12)
    on_s, on_p = model.support(tips[1]), model.support(tips[0])
    for body in model.bodies:
        eps = (body.index in on_s) - (body.index in on_p)
        block = np.array(rows.K)[:, body.v_slice]
        S = [forward_kinematics(model, q)[body].inverse_apply(s).to_list() for s in body.jcalc(q).S]
        np.testing.assert_allclose(block, eps * T @ np.array(S).T, atol=1e-12)


def test_stabilisation_is_critically_damped():
    """RBDA-8.3-BAUMGARTE: K a = k + k_stab makes an error decay like (1 + t/T) exp(-t/T)."""
    model = planar_four_bar()
    T = 0.1
    q, v = closed_state(model, 1)
    q, v = q + [1e-5, -2e-5, 3e-5], v + [1e-4, 0.0, -1e-4]
    equations = constraint_equations(model, q.tolist(), v.tolist())
    expected = np.array(equations.k) - 20.0 * np.array(equations.velocity_error)
    np.testing.assert_allclose(
        stabilized(equations, T), expected - 100.0 * np.array(equations.position_error)
    )
    # Any acceleration that fulfils the stabilised equation will do: here the one of least norm. The motion
    # is slow, since delta is taken in a frame that turns with it.
    q, v = closed_state(model, 1)
    q, v = q + [1e-6, -2e-6, 3e-6], 0.02 * v

    def rates(q, v):
        e = constraint_equations(model, q.tolist(), v.tolist())
        return v, np.linalg.pinv(np.array(e.K), rcond=1e-9) @ np.array(stabilized(e, T))

    start = constraint_equations(model, q.tolist(), v.tolist())
    h, steps = 4e-3, 125
    history = []
    for _ in range(steps):
        history.append(constraint_equations(model, q.tolist(), v.tolist()).position_error[2:4])
        k1 = rates(q, v)
        k2 = rates(q + 0.5 * h * k1[0], v + 0.5 * h * k1[1])
        k3 = rates(q + 0.5 * h * k2[0], v + 0.5 * h * k2[1])
        k4 = rates(q + h * k3[0], v + h * k3[1])
        q, v = (x + h / 6.0 * (a + 2 * b + 2 * c + d) for x, a, b, c, d in zip((q, v), k1, k2, k3, k4))
    t = h * np.arange(steps)[:, None]
    e0, rate0 = np.array(start.position_error[2:4]), np.array(start.velocity_error[2:4])
    law = (e0 + (rate0 + e0 / T) * t) * np.exp(-t / T)
    np.testing.assert_allclose(history, law, atol=0.01 * np.abs(law).max())
    assert np.abs(law).max() > 2e-6
    assert np.abs(history[-1]).max() < 0.06 * np.abs(law).max()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_fixed_loop_joint_closes_any_loop(seed):
    """RBDA-8.3-UNIVERSAL: a massless body on the pin's joint, then a zero-DoF loop joint: the same motion."""
    direct = planar_four_bar()
    builder = da.ModelBuilder(gravity=direct.gravity)
    for body in direct.bodies:
        parent = "world" if body.parent < 0 else direct.bodies[body.parent].name
        builder.add_body(body.name, parent, body.joint, placement=body.placement, inertia=body.inertia)
    loop = direct.loops["pin"]
    builder.add_body("pin", "coupler", da.Revolute(), placement=loop.placement_predecessor)
    builder.add_loop("weld", "pin", "rocker", da.Fixed(), None, loop.placement_successor)
    universal = builder.build()
    q, v = closed_state(direct, seed)
    state = loop_state(direct, loop, q.tolist(), v.tolist())
    tau = np.array([0.7, 0.0, 0.2])
    a = da.forward_dynamics(direct, q, v, tau)
    full_q, full_v = np.array([*q, *state.q]), np.array([*v, *state.v])
    np.testing.assert_allclose(da.constraint_error(universal, full_q), 0.0, atol=1e-9)
    np.testing.assert_allclose(da.constraint_jacobian(universal, full_q) @ full_v, 0.0, atol=1e-9)
    b = da.forward_dynamics(universal, full_q, full_v, [*tau, 0.0], method="null_space")
    np.testing.assert_allclose(b[:3], a, rtol=1e-7, atol=1e-8)


def test_active_loop_forces_are_external_forces_on_both_bodies():
    """RBDA-8.4-FORCES, RBDA-8.6-CTAUA: tau^a = J_L^T f^a; C - tau^a of Table 8.3, body 0 skipped."""
    rng = np.random.default_rng(4)
    builder = da.ModelBuilder(gravity=(0.3, -0.5, -9.0))
    for name, parent in (("a", "world"), ("b", "a"), ("c", "a"), ("d", "c")):
        builder.add_body(
            name, parent, da.Spherical(), placement=random_placement(rng), inertia=random_inertia(rng)
        )
    for name, p, s, joint in (
        ("first", "b", "d", da.Universal((0.6, 0.8, 0.0), (0.0, 0.0, 1.0))),
        ("second", "world", "d", da.Cylindrical((0.0, 0.6, 0.8))),
        ("third", "b", "world", da.Spherical()),
        ("passive", "c", "world", da.Revolute()),
    ):
        builder.add_loop(name, p, s, joint, random_placement(rng), random_placement(rng))
    model = builder.build()
    q, v = (x.tolist() for x in model.random_state(4))
    tau = {"first": [0.4, -0.7], "second": [1.1, 0.2], "third": [0.3, 0.6, -0.5]}
    forces = loop_active_forces(model, q, tau)
    expected = np.zeros(model.nv)
    for loop in model.loops:
        if loop.name not in tau:
            continue
        rows = loop_rows(model, loop, q, v)
        T_a = loop.joint.active_subspace(loop.joint.position_of(rows.X))
        # J_L, in the successor's loop frame, by finite motion of every joint.
        J = np.zeros((6, model.nv))
        for j in range(model.nv):
            unit = [1.0 if i == j else 0.0 for i in range(model.nv)]
            J[:, j] = loop_rows(model, loop, q, unit).velocity.to_list()
        f = sum(np.array(column.to_list()) * x for column, x in zip(T_a, tau[loop.name]))
        expected += J.T @ f
    np.testing.assert_allclose(loop_active_torques(model, q, tau), expected, atol=1e-12)
    modified = bias_with_loop_forces(model, q, v, tau)
    plain = np.array(bias_forces(model, q, v))
    np.testing.assert_allclose(modified.bias, plain - expected, atol=1e-11)
    np.testing.assert_allclose(bias_forces(model, q, v, external_forces=forces), modified.bias, atol=1e-11)
    np.testing.assert_allclose(bias_with_loop_forces(model, q, v, {}).bias, plain, atol=1e-11)
    # The by-product: accelerations at dv/dt = 0 give k of Eq. 8.15.
    still = [0.0] * model.nv
    a_vp = da.algorithms.body_accelerations(model, q, v, still)
    for mine, other in zip(modified.accelerations, a_vp):
        np.testing.assert_allclose(mine.to_list(), other.to_list(), atol=1e-12)
    with pytest.raises(da.errors.UnknownNameError, match="nearest"):
        loop_active_forces(model, q, {"frist": [1.0, 2.0]})
    with pytest.raises(da.errors.ShapeError, match="2 freedoms"):
        loop_active_forces(model, q, {"first": [1.0]})


@pytest.mark.parametrize("model", [da.models.stewart(), da.models.four_bar()], ids=lambda m: m.name)
def test_cut_bodies_move_alike_under_the_loop_forces(model):
    """RBDA-8.4-FORCES: with T lambda as external forces on both bodies, the cut tree has the same motion."""
    q, v = closed_state(model, 4, scale=0.1)
    tau = np.random.default_rng(2).normal(size=model.nv)
    a = da.forward_dynamics(model, q, v, tau)
    forces = np.zeros((len(model.bodies), 6))
    poses = forward_kinematics(model, q.tolist())
    for loop, f in zip(model.loops, da.loop_forces(model, q, v, tau)):
        on_s = loop.placement_successor.inverse_apply(da.spatial.Force.of(f.tolist()))
        forces[loop.successor] += on_s.to_list()
        on_p = poses[loop.predecessor].apply(poses[loop.successor].inverse_apply(on_s))
        forces[loop.predecessor] -= on_p.to_list()
    b = da.forward_dynamics(model.tree(), q, v, tau, forces)
    np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-8 * np.abs(a).max())
    assert np.abs(da.forward_dynamics(model.tree(), q, v, tau) - a).max() > 0.1


def test_a_spring_at_the_chord_or_in_the_tree_gives_the_same_motion():
    """RBDA-8.6-PASSIVE, RBDA-8.6-CTAUA: the tree is chosen so that the spring's joint is in it, or not."""
    graph = ConnectivityGraph(
        {"crank": ("world", "crank"), "coupler": ("crank", "coupler"),
         "pivot": ("world", "rocker"), "pin": ("coupler", "rocker")}
    )  # fmt: skip
    assert graph.chords(graph.tree_with([])) == ("pin",)
    assert "pin" not in graph.chords(graph.tree_with(["pin"]))
    with pytest.raises(da.errors.ModelError, match="closes a loop"):
        graph.tree_with(["crank", "coupler", "pivot", "pin"])
    chord, tree = planar_four_bar(), planar_four_bar(pin_in_tree=True)
    q, v = closed_state(chord, 2)
    pin = loop_state(chord, chord.loops["pin"], q.tolist(), v.tolist())
    stiffness, damping = 3.0, 0.4
    torque = -stiffness * pin.q[0] - damping * pin.v[0]
    forces = [f.to_list() for f in loop_active_forces(chord, q.tolist(), {"pin": [torque]})]
    a = da.forward_dynamics(chord, q, v, np.zeros(3), forces)
    q_tree = np.array([*q[:2], pin.q[0] - pin_at_rest(chord)])
    v_tree = np.array([*v[:2], pin.v[0]])
    np.testing.assert_allclose(da.constraint_error(tree, q_tree), 0.0, atol=1e-9)
    b = da.forward_dynamics(tree, q_tree, v_tree, [0.0, 0.0, torque])
    np.testing.assert_allclose(b[:2], a[:2], rtol=1e-8, atol=1e-8)
    # Without the spring both move otherwise: the force matters.
    assert np.abs(da.forward_dynamics(chord, q, v, np.zeros(3)) - a).max() > 1e-2


def pin_at_rest(model):
    """The pin's angle at the neutral configuration, where the other tree has zero."""
    neutral = model.neutral().tolist()
    return loop_state(model, model.loops["pin"], neutral, [0.0] * model.nv).q[0]


def test_equations_far_away_are_exact_in_nearby_coordinates():
    """RBDA-8.7-ROUNDOFF: a loop 1e6 m from the origin: base coordinates lose digits, nearby ones do not."""

    def flying(distance):
        bars = planar_four_bar()
        builder = da.ModelBuilder()
        builder.add_body("craft", "world", da.Free(), inertia=SOLID)
        for body in bars.bodies:
            parent = "craft" if body.parent < 0 else bars.bodies[body.parent].name
            builder.add_body(body.name, parent, body.joint, placement=body.placement, inertia=body.inertia)
        loop = bars.loops["pin"]
        builder.add_loop(
            "pin", "coupler", "rocker", loop.joint, loop.placement_predecessor, loop.placement_successor
        )
        model = builder.build()
        q, v = (x.tolist() for x in model.random_state(2))
        q[:3] = [distance, -0.7 * distance, 0.4 * distance]
        return {c: constraint_equations(model, q, v, coordinates=c) for c in ("nearby", "base")}

    here, far = flying(0.0), flying(1e6)
    error = {
        c: max(np.abs(np.array(a) - np.array(b)).max() for a, b in zip(here["nearby"][:4], far[c][:4]))
        for c in ("nearby", "base")
    }
    assert error["nearby"] < 1e-13
    assert error["base"] > 1e-11


def cluster_example():
    """The system of Figure 8.1, drawn from its description: 20 tree joints and 4 loop joints."""
    parents = {1: 0, 2: 1, 3: 2, 4: 3, 5: 2, 6: 5, 7: 6, 8: 2, 9: 8, 10: 9, 11: 10, 12: 9,
               13: 1, 14: 13, 15: 14, 16: 14, 17: 13, 18: 17, 19: 18, 20: 18}  # fmt: skip
    loops = {21: (4, 6), 22: (4, 7), 23: (11, 12), 24: (19, 20)}
    rng = np.random.default_rng(9)
    builder = da.ModelBuilder()
    for child, parent in parents.items():
        builder.add_body(
            f"b{child}", "world" if parent == 0 else f"b{parent}", da.Spherical(), f"j{child}",
            placement=random_placement(rng), inertia=random_inertia(rng),
        )  # fmt: skip
    for name, (p, s) in loops.items():
        builder.add_loop(f"j{name}", f"b{p}", f"b{s}", da.Spherical(), random_placement(rng))
    return builder.build()


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
    for q in (model.neutral(), closed_state(model, 3)[0]):
        found = da.mobility(model, q)
        assert (found.n, found.n_c, found.rank, found.mobility) == (3, 5, 2, 1)
        assert found.counted == 4 - 6
        assert found.mobility == found.counted + found.excess
        assert found.counted_planar == 4 - 3
        assert found.overconstrained
    assert da.mobility(da.models.stewart()).counted == 6
    assert da.mobility(da.models.stewart()).counted_planar is None
    assert not da.mobility(da.models.stewart()).overconstrained
    assert "mobility 1" in str(da.mobility(model))
    with pytest.raises(da.errors.StateError, match="close_loops"):
        da.mobility(model, [0.5, 0.0, 0.0])
    with pytest.raises(da.errors.ShapeError):
        da.mobility(model, np.zeros((2, 3)))


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
    left = da.mobility(model, configuration(0.6, (1.0, -1.0)))
    middle = da.mobility(model, configuration(0.0, (0.0, math.pi)))
    right = da.mobility(model, configuration(0.0, (0.8, 2.1)))
    assert [found.n for found in (left, middle, right)] == [5, 5, 5]
    assert [found.rank for found in (left, middle, right)] == [4, 2, 3]
    assert [found.mobility for found in (left, middle, right)] == [1, 3, 2]
    assert left.counted_planar == middle.counted_planar == 1
    # The approach is seen before the rank falls: two singular values go to zero with theta.
    near = [da.mobility(model, configuration(t, (1.0, -1.0))) for t in (0.1, 0.01, 0.001)]
    assert [found.rank for found in near] == [4, 4, 4]
    small = np.array([found.singular_values for found in near])[:, 2:4]
    np.testing.assert_allclose(small[1:] / small[:-1], 0.1, rtol=0.05)
    # Loops close through all three regimes, rank or not.
    near = configuration(0.0, (0.8, 2.1)) + 0.01 * np.random.default_rng(0).normal(size=(20, 5))
    closed = da.close_loops(model, near)
    np.testing.assert_allclose(da.constraint_error(model, closed), 0.0, atol=1e-10)


def test_configuration_ambiguity_is_kept_apart_by_q():
    """RBDA-8.10-AMBIGUITY: one crank angle, two assemblies; the start decides, q tells them apart."""
    model = planar_four_bar()
    crank = 0.6
    starts = np.array([[crank, 0.0, 0.0], [crank, -2.3, 1.7]])
    q = da.close_loops(model, starts, hold=["crank"])
    np.testing.assert_array_equal(q[:, 0], crank)
    np.testing.assert_allclose(da.constraint_error(model, q), 0.0, atol=1e-10)
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
    strong, weak = planar_four_bar(), planar_four_bar(da.SphereInCylinder((0.0, 0.0, 1.0)))
    before, after = da.mobility(strong), da.mobility(weak)
    assert (before.n_c, before.rank, after.n_c, after.rank) == (5, 2, 2, 2)
    assert before.overconstrained
    assert not after.overconstrained
    q, v = closed_state(strong, 5)
    tau = np.array([0.4, -0.2, 0.1])
    np.testing.assert_allclose(
        da.forward_dynamics(weak, q, v, tau), da.forward_dynamics(strong, q, v, tau), rtol=1e-8, atol=1e-8
    )


L1, L2 = 0.5, 0.8


def piston_arm(l1=L1, l2=L2):
    """Figure 8.3: arm B1, its actuator B2 (cylinder) and B3 (piston), forearm B4; y = (q1, q4)."""
    builder = da.ModelBuilder(gravity=(0.0, -9.81, 0.0))
    builder.add_body("B1", "world", da.Revolute(), "q1", inertia=SOLID)
    builder.add_body("B2", "world", da.Revolute(), "q2", placement=at(l1), inertia=SOLID)
    builder.add_body("B3", "B2", da.Prismatic((1, 0, 0)), "q3", inertia=SOLID)
    builder.add_body("B4", "B1", da.Revolute(), "q4", placement=at(1.2), inertia=SOLID)
    builder.add_loop("q5", "B1", "B3", da.Revolute(), at(l2))

    def gamma(model, y):
        swing = atan2(l2 * sin(y[0]), l2 * cos(y[0]) - l1)
        return [y[0], swing, sqrt(l1 * l1 + l2 * l2 - 2.0 * l1 * l2 * cos(y[0])), y[1]]

    builder.set_loop_closure(gamma, ["q1", "q4"])
    return builder.build()


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
