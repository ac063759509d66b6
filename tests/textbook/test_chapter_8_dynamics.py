"""Featherstone 2008 chapter 8: the dynamics of closed loops, with the book's examples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.looped_models import closed_velocity
from tests.textbook.linkages import L1, L2, piston_arm, piston_positions

import dalembert as da
from dalembert.algorithms import loops
from dalembert.errors import StateError
from dalembert.models.random_trees import random_inertia, random_placement
from dalembert.spatial import Mat3, RigidInertia, Vec3

U = tuple[float, float]


def shares(y1: float) -> U:
    """(u1, u2) of the figure."""
    d2 = L1**2 + L2**2 - 2.0 * L1 * L2 * math.cos(y1)
    return (L2**2 - L1 * L2 * math.cos(y1)) / d2, L1 * L2 * math.sin(y1) / math.sqrt(d2)


@pytest.mark.parametrize(("y1", "y2"), [(0.7, 0.3), (2.2, -1.0), (-1.1, 0.4)])
def test_actuator_forces_of_example_8_2(y1: float, y2: float) -> None:
    """RBDA-8.12-EX: u = [1/u2 u1/u2 1 0; 0 0 0 1] tau_ID; u is not the generalized force of y."""
    model = piston_arm(actuated=["q3", "q4"], closure=False)
    q = np.array(piston_positions([y1, y2]))
    v = closed_velocity(model, q, np.array([0.9, -0.4, 0.3, 1.3]))
    a = da.forward_dynamics(model, q, v, np.array([0.0, 0.0, 12.0, -3.0]))
    tau_ID = da.inverse_dynamics(model.tree(), q, v, a)
    u1, u2 = shares(y1)
    expected = np.array([[1.0 / u2, u1 / u2, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]) @ tau_ID
    found = da.inverse_dynamics(model, q, v, a)
    np.testing.assert_allclose(found, [0.0, 0.0, *expected], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(expected, [12.0, -3.0], rtol=1e-8)
    ydot = v[[0, 3]]
    power = found @ v
    assert abs(expected @ ydot - power) > 1e-2 * abs(power)  # u is not conjugate to y'
    assert expected @ v[[2, 3]] == pytest.approx(power)


def test_where_the_example_needs_its_actuators() -> None:
    """RBDA-8.12-EX, RBDA-8.12-ID: actuators at joint 4 and one of joints 1 to 3 are proper; no other pair."""
    q = np.array(piston_positions([0.7, 0.3]))
    for one in ("q1", "q2", "q3"):
        assert da.analysis.actuation(piston_arm(actuated=[one, "q4"], closure=False), q).proper
        for other in {"q1", "q2", "q3"} - {one}:
            found = da.analysis.actuation(piston_arm(actuated=[one, other], closure=False), q)
            assert found.underactuated
            assert found.redundant
    model = piston_arm(actuated=["q1", "q3"], closure=False)
    v = closed_velocity(model, q, np.array([0.9, -0.4, 0.3, 1.3]))
    a = da.forward_dynamics(model, q, v, np.array([0.0, 0.0, 0.0, 1.0]))
    with pytest.raises(StateError, match="cannot produce this motion"):
        da.inverse_dynamics(model, q, v, a)


def test_the_closure_function_gives_the_implicit_motion() -> None:
    """RBDA-8.11-GAMMA: the piston arm by q = piston_positions(y) and by its loop joint: one trajectory."""
    explicit, implicit = piston_arm(), piston_arm(closure=False)
    q = np.array(piston_positions([0.7, 0.3]))
    v = closed_velocity(implicit, q, np.array([0.9, -0.4, 0.3, 1.3]))
    tau = np.array([1.0, -0.5, 20.0, 0.7])
    a = da.forward_dynamics(explicit, q, v, tau, method="loop_closure")
    np.testing.assert_allclose(a, da.forward_dynamics(implicit, q, v, tau), rtol=1e-8)
    states = {}
    for model in (explicit, implicit):
        x, w = q, v
        for _ in range(300):
            x, w = da.step(model, x, w, tau, 1e-3, integrator="rk4", stabilization=0.1)
        states[model is explicit] = x, w
    np.testing.assert_allclose(states[True][0], states[False][0], atol=1e-7)
    np.testing.assert_allclose(states[True][1], states[False][1], atol=1e-6)
    assert np.abs(states[True][0] - q).max() > 0.05
    assert np.abs(da.constraints.constraint_error(explicit, states[True][0])).max() < 1e-14


def ring(cut: int) -> tuple[da.Model, np.ndarray]:
    """Seven bodies and eight joints in a ring from the ground to the ground, one of the hinges as the chord.

    Bodies, joints and inertias are the same whichever joint is cut; (model, q at which all fits).
    """
    rng = np.random.default_rng(90)
    joints = [random_placement(rng) for _ in range(8)]  # the joints' frames in the world, axes z
    inertias = [random_inertia(rng) for _ in range(7)]
    # Body k stands between joints k and k + 1, its frame at joint k while all angles are zero.
    builder = da.ModelBuilder(gravity=(0.2, -0.4, -9.6))
    z = da.Revolute((0.0, 0.0, 1.0))
    for k in range(cut):
        parent = "world" if k == 0 else f"body{k - 1}"
        place = joints[k] if k == 0 else joints[k - 1].inverse() @ joints[k]
        builder.add_body(f"body{k}", parent, z, f"hinge{k}", placement=place, inertia=inertias[k])
    for k in range(7, cut, -1):  # from the other end: body k - 1 is the successor of joint k, frames there
        parent = "world" if k == 7 else f"body{k}"
        place = joints[k] if k == 7 else joints[k + 1].inverse() @ joints[k]
        shifted = (joints[k - 1].inverse() @ joints[k]).apply(inertias[k - 1])
        builder.add_body(f"body{k - 1}", parent, z, f"hinge{k}", placement=place, inertia=shifted)
    before = "world" if cut == 0 else f"body{cut - 1}"
    after = "world" if cut == 7 else f"body{cut}"
    at_before = joints[cut] if cut == 0 else joints[cut - 1].inverse() @ joints[cut]
    at_after = joints[cut] if cut == 7 else joints[cut + 1].inverse() @ joints[cut]
    builder.add_loop(f"hinge{cut}", before, after, z, at_before, at_after)
    model = builder.build()
    return model, model.neutral()


def test_the_motion_does_not_depend_on_the_spanning_tree() -> None:
    """RBDA-8.1-EOM: a spatial ring of eight hinges cut at any of them: the bodies accelerate the same."""
    reference: dict[str, np.ndarray] | None = None
    for cut in (0, 3, 5, 7):
        model, q = ring(cut)
        assert model.nv == 7
        assert da.analysis.mobility(model, q).mobility == 2
        # The same two freedoms of motion: body velocities of hinges 1 and 2 given, the others follow.
        K = da.constraints.constraint_jacobian(model, q)
        rates = {f"hinge{k}": None for k in range(8)}
        G = np.linalg.svd(K)[2][5:].T
        wanted = [("hinge1", 0.8), ("hinge2", -0.5)]
        rows = np.array([G[model.joint(name).v_slice.start] for name, _ in wanted])
        signs = [direction(model, name, cut) for name, _ in wanted]
        v = G @ np.linalg.solve(rows, [s * rate for s, (_, rate) in zip(signs, wanted)])
        v = closed_velocity(model, q, v)
        a = da.forward_dynamics(model, q, v, np.zeros(7))
        found = {
            name: direction(model, name, cut) * a[model.joint(name).v_slice.start]
            for name in rates
            if name != f"hinge{cut}"
        }
        energy = float(da.dynamics.kinetic_energy(model, q, v))
        found["energy"] = energy
        if reference is None:
            reference = found
        for name in found.keys() & reference.keys():
            assert found[name] == pytest.approx(reference[name], rel=1e-7, abs=1e-7), (cut, name)
        assert len(found.keys() & reference.keys()) >= 6


def direction(model: da.Model, name: str, cut: int) -> float:
    """Whether a hinge turns the body that follows it, or from the other end the one before it."""
    return 1.0 if int(name.removeprefix("hinge")) < cut else -1.0


def test_a_revolute_closure_is_a_ball_and_a_slot() -> None:
    """RBDA-8.1-EOM: a hinge as loop joint, or two balls on its axis, which are redundant by one row."""
    model, q = ring(4)
    builder = da.ModelBuilder(gravity=model.gravity.to_list())
    for body in model.bodies:
        parent = model.bodies[body.parent].name if body.parent >= 0 else "world"
        builder.add_body(
            body.name, parent, body.joint, body.joint_name, placement=body.placement, inertia=body.inertia
        )
    loop = model.loops[0]
    names = [*model.bodies.names, "world"]
    for number, height in enumerate((0.0, 0.4)):
        up = da.Transform(Mat3.identity(), Vec3(0.0, 0.0, height))
        places = (loop.placement_predecessor @ up, loop.placement_successor @ up)
        builder.add_loop(
            f"ball{number}", names[loop.predecessor], names[loop.successor], da.Spherical(), *places
        )
    balls = builder.build()
    v = closed_velocity(model, q, np.random.default_rng(5).normal(size=7))
    tau = np.random.default_rng(6).normal(size=7)
    a = da.forward_dynamics(model, q, v, tau)
    for method in ("range_space", "null_space", "direct", "sparse"):
        found = loops.METHODS[method](balls, q.tolist(), v.tolist(), tau.tolist())
        np.testing.assert_allclose(found, a, rtol=0.0, atol=1e-8 * np.abs(a).max(), err_msg=method)
    found = da.analysis.mobility(balls, q)
    assert (found.n_c, found.rank, found.excess) == (6, 5, 1)


def test_the_equation_of_motion_is_that_of_the_whole_system() -> None:
    """RBDA-8.1-EOM: n and n_c are counted; loop forces are internal, so that momentum is kept."""
    rng = np.random.default_rng(7)
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_body("base", "world", da.Free(), inertia=random_inertia(rng))
    base = da.models.four_bar()
    for body in base.bodies:
        parent = base.bodies[body.parent].name if body.parent >= 0 else "base"
        heavy = RigidInertia(1.0, (0.2, 0.0, 0.1), (0.1, 0.1, 0.1))
        builder.add_body(body.name, parent, body.joint, placement=body.placement, inertia=heavy)
    loop = base.loops[0]
    builder.add_loop(
        "pin", "coupler", "rocker", loop.joint, loop.placement_predecessor, loop.placement_successor
    )
    model = builder.build()
    q, v = model.neutral(), closed_velocity(model, model.neutral(), rng.normal(size=9))
    assert (model.nv, len(da.constraints.constraint_error(model, q))) == (9, 5)
    before = da.dynamics.centroidal_momentum(model, q, v)
    for _ in range(200):
        q, v = da.step(model, q, v, np.zeros(9), 1e-3, integrator="rk4")
    np.testing.assert_allclose(da.dynamics.centroidal_momentum(model, q, v), before, atol=1e-8)
    assert np.abs(da.constraints.constraint_error(model, q)).max() < 1e-8
