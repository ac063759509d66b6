"""Feedback linearisation: the closed loop is the spring and damper that was asked for."""

import numpy as np
import pytest
from tests.algorithms.test_couplings import geared
from tests.algorithms.trees import close, random_tree

import dalembert as da
from dalembert.algorithms import control_laws
from dalembert.errors import ArgumentError, ModelError, ShapeError, StateError

COORDINATES = ("revolute", "prismatic", "helical", "cylindrical", "spherical_euler", "universal", "composite")


@pytest.mark.parametrize("seed", range(2))
def test_closed_loop_is_linear(seed):
    """TOD-FBLIN: with gravity, q'' - a_ref + B (v - v_ref) + K (q - q_ref) = 0 exactly, joint by joint."""
    model = random_tree(seed, 3, COORDINATES)
    rng = np.random.default_rng(seed)
    q, v = model.random_state(seed)
    q_ref, v_ref, a_ref = rng.normal(size=(3, model.nv))
    K, B = rng.uniform(1.0, 30.0, (2, model.nv))
    tau = da.control.feedback_linearization(model, q, v, q_ref, v_ref, a_ref, stiffness=K, damping=B)
    a = da.forward_dynamics(model, q, v, tau)
    close(a, a_ref - B * (v - v_ref) - K * (q - q_ref), 1e-8)


def test_damping_is_critical_unless_given():
    """TOD-FBLIN: B = 2 sqrt(K), on a batch, at rest in the reference."""
    model = da.models.two_link_arm()
    q, v, q_ref = np.random.default_rng(0).normal(size=(3, 5, 2))
    tau = da.control.feedback_linearization(model, q, v, q_ref, stiffness=[9.0, 16.0])
    close(da.forward_dynamics(model, q, v, tau), -np.array([6.0, 8.0]) * v - [9.0, 16.0] * (q - q_ref), 1e-11)


def ball_arm():
    builder = da.ModelBuilder(gravity=(0.4, -0.3, -9.0))
    solid = da.RigidInertia(1.5, (0.1, 0.2, -0.1), (0.2, 0.3, 0.4))
    builder.add_body("root", "world", da.Free(), inertia=solid)
    builder.add_body("ball", "root", da.Spherical(), inertia=solid)
    builder.add_body("plate", "ball", da.joints.Planar(), inertia=solid)
    return builder.build()


@pytest.mark.parametrize("moving", [False, True])
def test_closed_loop_is_linear_on_quaternions(moving):
    """TOD-FBLIN: e = difference(q_ref, q) obeys e'' + B e' + K e = 0 exactly where q holds quaternions, for a
    reference at rest and one that moves; e' and e'' by differences along both motions.
    """
    model = ball_arm()
    q, v = model.random_state(0)
    rng = np.random.default_rng(3)
    q_ref = da.integrate(model, q, 0.4 * rng.normal(size=model.nv))
    v_ref, a_ref = rng.normal(size=(2, model.nv)) * moving
    K, B = rng.uniform(1.0, 9.0, (2, model.nv))
    tau = da.control.feedback_linearization(model, q, v, q_ref, v_ref, a_ref, stiffness=K, damping=B)
    a = da.forward_dynamics(model, q, v, tau)
    h = 1e-3

    def later(q, v, a, t, pieces=16):
        """q after t with dv/dt = a, in many small turns."""
        step = t / pieces
        for k in range(pieces):
            q = da.integrate(model, q, step * (v + (k + 0.5) * step * a))
        return q

    e = np.array(
        [da.difference(model, later(q_ref, v_ref, a_ref, t), later(q, v, a, t)) for t in (-h, 0.0, h)]
    )
    e_rate, e_second = (e[2] - e[0]) / (2 * h), (e[2] - 2 * e[1] + e[0]) / h**2
    assert np.abs(e[1]).max() > 0.1
    close(e_second, -B * e_rate - K * e[1], 1e-5)


def test_error_of_a_quaternion_may_be_zero():
    """TOD-FBLIN: on the reference itself the law is inverse dynamics of a_ref."""
    model = ball_arm()
    q, v = model.random_state(1)
    a = np.random.default_rng(0).normal(size=model.nv)
    tau = da.control.feedback_linearization(model, q, v, q, v, a, stiffness=5.0)
    close(tau, da.inverse_dynamics(model, q, v, a), 1e-11)
    alone = da.control.feedback_linearization(model, q.astype(np.float32), v.astype(np.float32),
                                              q.astype(np.float32), stiffness=5.0)  # fmt: skip
    assert alone.dtype == np.float32


def test_simulated_error_decays_as_designed():
    """TOD-FBLIN: a critically damped error follows e(t) = (1 + w t) exp(-w t) e(0) on the arm."""
    model = da.models.two_link_arm()
    q_ref = np.array([0.5, -0.7])
    q, v = q_ref + [0.6, -0.4], np.zeros(2)
    dt, w = 0.002, 4.0
    for _ in range(250):
        tau = da.control.feedback_linearization(model, q, v, q_ref, stiffness=w * w)
        q, v = da.step(model, q, v, tau, dt, integrator="rk4")
    t = 250 * dt
    close(q - q_ref, (1.0 + w * t) * np.exp(-w * t) * np.array([0.6, -0.4]), 2e-3)


def test_coupled_joints_are_controlled_by_their_independent_ones():
    """TOD-FBLIN: on a model with gears the law holds in the independent coordinates."""
    model = geared()
    q, v = model.random_state(2)
    a_ref = np.random.default_rng(1).normal(size=model.nv)
    tau = da.control.feedback_linearization(model, q, v, q, 0.0 * v, a_ref, stiffness=4.0, damping=0.0)
    close(da.forward_dynamics(model, q, v, tau), a_ref, 1e-9)


def test_linkages_hold_and_follow():
    """TOD-FBLIN: a four-bar with one motor stays where gravity compensation holds it, and a law for all its
    joints moves it as near as its loop allows.
    """
    model = da.models.four_bar()
    q, v = da.constraints.close_loops(model, *model.random_state(3))
    rest = np.zeros(model.nv)
    hold = da.control.gravity_compensation(model, q)
    close(da.forward_dynamics(model, q, rest, hold), rest, 1e-9)
    tau = da.control.feedback_linearization(model, q, v, q, v, stiffness=9.0)
    a = da.forward_dynamics(model, q, v, tau)
    K, k = da.constraints.constraint_jacobian(model, q), da.constraints.constraint_bias(model, q, v)
    close(K @ a, k, 1e-9)
    assert model.actuated == ("crank_pivot",)
    close(tau[1:], np.zeros(2), 1e-12)


def test_gravity_compensation_holds():
    """TOD-FBLIN: tau = g(q) leaves a resting arm at rest."""
    model = da.models.arm6()
    q, v = model.random_state(0)
    a = da.forward_dynamics(model, q, 0.0 * v, da.control.gravity_compensation(model, q))
    close(a, np.zeros(model.nv), 1e-10)


def test_laws_work_inside_functions_of_the_user():
    """TOD-FBLIN: the generic law in a compiled function of one's own, differentiated by the gain."""
    model = da.models.two_link_arm()

    def law(model, q, v, gain):
        return control_laws.feedback_linearization(
            model, q, v, [0.1, 0.2], stiffness=[gain, gain], damping=[1.0, 1.0]
        )

    compiled = da.compile(law, model, inputs={"gain": ()})
    q, v = np.array([0.4, -0.3]), np.array([1.0, 2.0])
    expected = da.control.feedback_linearization(model, q, v, [0.1, 0.2], stiffness=7.0, damping=1.0)
    close(compiled(q, v, 7.0), expected, 1e-13)
    close(compiled.jacobian("gain")(q, v, 7.0), -da.mass_matrix(model, q) @ (q - [0.1, 0.2]), 1e-13)


def test_wrong_gains_and_models_without_motors_are_refused():
    model = da.models.two_link_arm()
    q = np.zeros(2)
    with pytest.raises(ArgumentError, match="negative"):
        da.control.feedback_linearization(model, q, q, q, stiffness=-1.0)
    with pytest.raises(ShapeError, match="one number or 2"):
        da.control.feedback_linearization(model, q, q, q, stiffness=[1.0, 2.0, 3.0])
    cart = da.models.cart_pole()
    with pytest.raises(ModelError, match="hinge"):
        da.control.feedback_linearization(cart, q, q, q, stiffness=1.0)


def test_references_off_unit_norm_are_refused():
    model = ball_arm()
    q, v = model.random_state(1)
    wrong = q.copy()
    wrong[3:7] *= 1.1
    with pytest.raises(StateError, match="q_ref"):
        da.control.feedback_linearization(model, q, v, wrong, stiffness=5.0)
