"""Closing loops: positions by Gauss-Newton on the manifold, velocities in the metric of kinetic energy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.constraints.closed_trees import CLOSERS, TIME, closed_model

import dalembert as da
from dalembert.algorithms.constraints import closing_equations, constraint_equations


@pytest.mark.parametrize("name", ["universal", "driven_revolute", "sphere_in_cylinder", "user_defined"])
def test_loops_of_any_joint_close(name):
    """RBDA-8.3-DELTA: from a disturbed state back to closed loops and a motion that keeps them."""
    model, q, v = closed_model(CLOSERS[name], ("arm2", "leg2"), seed=3)
    rng = np.random.default_rng(1)
    start = da.integrate(model, np.array(q), 0.1 * rng.normal(size=(3, 4, model.nv)))
    closed, moving = da.constraints.close_loops(model, start, np.array(v), time=TIME)
    assert closed.shape == (3, 4, model.nq)
    assert moving.shape == (3, 4, model.nv)
    for one, velocity in zip(closed.reshape(-1, model.nq), moving.reshape(-1, model.nv)):
        gap = closing_equations(model, one.tolist(), time=TIME).gap
        assert max(map(abs, gap)) < 1e-10
        equations = constraint_equations(model, one.tolist(), velocity.tolist(), time=TIME)
        np.testing.assert_allclose(equations.velocity_error, 0.0, atol=1e-9)
    np.testing.assert_array_equal(da.constraints.close_loops(model, start[1, 2], time=TIME), closed[1, 2])


def test_velocities_are_the_nearest_in_kinetic_energy():
    """M (v' - v) is an impulse of the constraints alone: it lies in the range of K^T."""
    model = da.models.stewart()
    rng = np.random.default_rng(2)
    q = da.integrate(model, model.neutral(), 0.1 * rng.normal(size=model.nv))
    v = rng.normal(size=model.nv)
    q, moving = da.constraints.close_loops(model, q, v)
    K, M = da.constraints.constraint_jacobian(model, q), da.mass_matrix(model, q)
    np.testing.assert_allclose(K @ moving, 0.0, atol=1e-9)
    impulse = M @ (moving - v)
    multipliers = np.linalg.lstsq(K.T, impulse, rcond=None)[0]
    np.testing.assert_allclose(K.T @ multipliers, impulse, atol=1e-9)
    energies = [da.dynamics.kinetic_energy(model.tree(), q, x) for x in (moving, v, v - moving)]
    assert energies[0] + energies[2] == pytest.approx(energies[1])
    again, same = da.constraints.close_loops(model, q, moving)
    np.testing.assert_allclose(again, q, atol=1e-9)
    np.testing.assert_allclose(same, moving, atol=1e-9)


def test_held_joints_stay_and_massless_loops_close():
    model = da.models.stewart()
    lengths = [f"slide{i}" for i in range(6)]
    q = model.neutral()
    places = [model.joint(name).q_slice.start for name in lengths]
    rates = [model.joint(name).v_slice.start for name in lengths]
    rng = np.random.default_rng(3)
    q[places] = 0.05 * rng.normal(size=6)
    v = np.zeros(model.nv)
    v[rates] = rng.normal(size=6)
    closed, moving = da.constraints.close_loops(
        model, q, v, hold=lengths
    )  # the direct kinematics of the platform
    np.testing.assert_array_equal(closed[places], q[places])
    np.testing.assert_array_equal(moving[rates], v[rates])
    np.testing.assert_allclose(da.constraints.constraint_jacobian(model, closed) @ moving, 0.0, atol=1e-9)
    four_bar = da.models.four_bar()
    builder = da.ModelBuilder()
    for body in four_bar.bodies:
        parent = "world" if body.parent < 0 else four_bar.bodies[body.parent].name
        inertia = None if body.name == "rocker" else body.inertia
        builder.add_body(body.name, parent, body.joint, placement=body.placement, inertia=inertia)
    loop = four_bar.loops[0]
    builder.add_loop(
        "pin", "coupler", "rocker", loop.joint, loop.placement_predecessor, loop.placement_successor
    )
    light = builder.build()
    q, v = da.constraints.close_loops(light, [0.4, 0.0, 0.0], [1.0, 0.0, 0.0])
    np.testing.assert_allclose(da.constraints.constraint_jacobian(light, q) @ v, 0.0, atol=1e-9)


def test_half_a_turn_is_not_closed():
    """RBDA-8.3-DELTA: delta of Table 8.1 vanishes at half a turn too; such a root is left or refused."""
    builder = da.ModelBuilder()
    solid = da.RigidInertia(1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    builder.add_body("ball", "world", da.Spherical(), inertia=solid)
    builder.add_loop("weld", "world", "ball", da.Fixed())
    model = builder.build()
    flipped = np.array([0.0, 1.0, 0.0, 0.0])
    np.testing.assert_allclose(da.constraints.constraint_error(model, flipped), 0.0, atol=1e-15)
    q = da.constraints.close_loops(model, flipped)
    assert abs(q[0]) == pytest.approx(1.0, abs=1e-12)
    # About one axis alone it cannot be left: then it is refused.
    builder = da.ModelBuilder()
    builder.add_body("bar", "world", da.Prismatic(), inertia=solid)
    half = da.Transform.from_rotation_translation(np.diag([1.0, -1.0, -1.0]), (0.0, 0.0, 0.0))
    builder.add_loop("hinge", "world", "bar", da.joints.Cylindrical(), half)
    stuck = builder.build()
    np.testing.assert_allclose(da.constraints.constraint_error(stuck, [0.3]), 0.0, atol=1e-12)
    with pytest.raises(da.errors.StateError, match=r"stay open.*3\.14"):
        da.constraints.close_loops(stuck, [0.3])


def test_samples_that_cannot_close_are_named():
    model = da.models.four_bar(crank=0.6, coupler=0.5, rocker=0.6)  # the crank cannot turn all the way
    angles = np.array([[0.0, 0.1], [3.0, 2.8]])
    q = np.zeros((2, 2, 3))
    q[..., 0] = angles
    with pytest.raises(
        da.errors.StateError, match=r"2 of 4 samples stay open.*\(1, 0\) by .*\(1, 1\) by"
    ) as error:
        da.constraints.close_loops(model, q, hold=["crank_pivot"])
    assert "max_iterations" in str(error.value)
    with pytest.raises(da.errors.StateError, match="the state by"):
        da.constraints.close_loops(model, q[1, 0], hold=["crank_pivot"])
    da.constraints.close_loops(model, q[0], hold=["crank_pivot"])


def test_arguments_are_checked():
    model = da.models.four_bar()
    q = model.neutral()
    for wrong, words in (
        ({"hold": "crank_pivot"}, r'\["crank_pivot"\]'),
        ({"tolerance": 0.0}, "tolerance"),
        ({"max_iterations": 0}, "max_iterations"),
    ):
        with pytest.raises(da.errors.ArgumentError, match=words):
            da.constraints.close_loops(model, q, **wrong)
    with pytest.raises(da.errors.UnknownNameError, match="nearest"):
        da.constraints.close_loops(model, q, hold=["crank_pivo"])
    with pytest.raises(da.errors.ShapeError, match="q"):
        da.constraints.close_loops(model, [0.0])
    with pytest.raises(da.errors.ShapeError, match="broadcast"):
        da.constraints.close_loops(model, np.zeros((2, 3)), np.zeros((4, 3)))
    with pytest.raises(da.errors.DalembertError, match="Model"):
        da.constraints.close_loops(None, q)
    assert da.constraints.close_loops(model, np.zeros((0, 3))).shape == (0, 3)


def test_a_row_that_is_no_number_stays_its_own():
    model = da.models.four_bar()
    q = np.array([[0.3, 0.0, 0.0], [np.nan, 0.0, 0.0], [0.5, 0.0, 0.0]])
    closed, moving = da.constraints.close_loops(model, q, np.ones(3))
    assert np.isnan(closed[1]).any()
    assert np.isnan(moving[1]).all()
    alone = da.constraints.close_loops(model, q[2], np.ones(3))
    np.testing.assert_array_equal(closed[2], alone[0])
    np.testing.assert_allclose(moving[2], alone[1], rtol=1e-14)
    light = model.with_values({"rocker.mass": 0.0, "rocker.inertia": np.zeros((3, 3))})
    assert np.isfinite(da.constraints.close_loops(light, q, np.ones(3))[1][[0, 2]]).all()


def test_a_tree_has_nothing_to_close():
    model = da.models.arm6()
    q, v = model.random_state(1)
    closed, moving = da.constraints.close_loops(model, q, v)
    np.testing.assert_array_equal(closed, q)
    np.testing.assert_array_equal(moving, v)
    assert da.constraints.constraint_jacobian(model, np.zeros((5, 6))).shape == (5, 0, 6)
    assert da.constraints.constraint_bias(model, q, v).shape == (0,)
    assert da.constraints.constraint_error(model, q).shape == (0,)
    np.testing.assert_array_equal(da.constraints.close_loops(model, [q, q * np.nan])[0], q)
