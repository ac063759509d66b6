"""Featherstone 2008 chapter 8: loops and their properties, with the book's own numbers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.looped_models import moving
from tests.textbook.linkages import SOLID, planar_four_bar

import dalembert as da
from dalembert.algorithms import bias_forces, forward_kinematics, jacobian
from dalembert.algorithms.constraints import constraint_equations, loop_rows, stabilized_k
from dalembert.algorithms.loops.loop_forces import (
    bias_with_loop_forces,
    loop_active_forces,
    loop_active_torques,
    loop_state,
)
from dalembert.model.topology import ConnectivityGraph
from dalembert.models.random_trees import random_inertia, random_placement


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
    builder.add_loop("loop", *names, da.joints.Universal(), random_placement(rng), random_placement(rng))
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
    q, v = moving(model, 1)
    q, v = q + [1e-5, -2e-5, 3e-5], v + [1e-4, 0.0, -1e-4]
    equations = constraint_equations(model, q.tolist(), v.tolist())
    expected = np.array(equations.k) - 20.0 * np.array(equations.velocity_error)
    np.testing.assert_allclose(
        stabilized_k(equations, T), expected - 100.0 * np.array(equations.position_error)
    )
    # Any acceleration that fulfils the stabilised equation will do: here the one of least norm. The motion
    # is slow, since delta is taken in a frame that turns with it.
    q, v = moving(model, 1)
    q, v = q + [1e-6, -2e-6, 3e-6], 0.02 * v

    def rates(q, v):
        e = constraint_equations(model, q.tolist(), v.tolist())
        return v, np.linalg.pinv(np.array(e.K), rcond=1e-9) @ np.array(stabilized_k(e, T))

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
    q, v = moving(direct, seed)
    state = loop_state(direct, loop, q.tolist(), v.tolist())
    tau = np.array([0.7, 0.0, 0.2])
    a = da.forward_dynamics(direct, q, v, tau)
    full_q, full_v = np.array([*q, *state.q]), np.array([*v, *state.v])
    np.testing.assert_allclose(da.constraints.constraint_error(universal, full_q), 0.0, atol=1e-9)
    np.testing.assert_allclose(da.constraints.constraint_jacobian(universal, full_q) @ full_v, 0.0, atol=1e-9)
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
        ("first", "b", "d", da.joints.Universal((0.6, 0.8, 0.0), (0.0, 0.0, 1.0))),
        ("second", "world", "d", da.joints.Cylindrical((0.0, 0.6, 0.8))),
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
    q, v = moving(model, 4, shift=0.1)
    tau = np.random.default_rng(2).normal(size=model.nv)
    a = da.forward_dynamics(model, q, v, tau)
    forces = np.zeros((len(model.bodies), 6))
    poses = forward_kinematics(model, q.tolist())
    for loop, f in zip(model.loops, da.constraints.loop_forces(model, q, v, tau)):
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
    q, v = moving(chord, 2)
    pin = loop_state(chord, chord.loops["pin"], q.tolist(), v.tolist())
    stiffness, damping = 3.0, 0.4
    torque = -stiffness * pin.q[0] - damping * pin.v[0]
    forces = [f.to_list() for f in loop_active_forces(chord, q.tolist(), {"pin": [torque]})]
    a = da.forward_dynamics(chord, q, v, np.zeros(3), forces)
    q_tree = np.array([*q[:2], pin.q[0] - pin_at_rest(chord)])
    v_tree = np.array([*v[:2], pin.v[0]])
    np.testing.assert_allclose(da.constraints.constraint_error(tree, q_tree), 0.0, atol=1e-9)
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
