"""Integration on the configuration manifold: order, conservation, agreement with another solver."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from tests.algorithms.trees import close, geared_chain, random_tree, state, vec

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.applied_forces import passive_forces
from dalembert.algorithms.energy_momentum import (
    center_of_mass,
    center_of_mass_velocity,
    kinetic_energy,
    momentum,
    potential_energy,
)
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.integrators import State, centroidal_rates, from_centroidal, to_centroidal
from dalembert.algorithms.stepping import INTEGRATORS, state_rate, step
from dalembert.errors import ArgumentError, UnknownNameError
from dalembert.model.builder import ModelBuilder
from dalembert.model.configuration import difference, normalize
from dalembert.model.joints import Free, Prismatic, Revolute, Spherical
from dalembert.spatial import RigidInertia


def simulate(model, start, dt, steps, integrator, tau=None, **options):
    now = State(*start)
    for _ in range(steps):
        now = step(model, now.q, now.v, tau or [0.0] * model.nv, dt, integrator=integrator, **options)
    return now


def top():
    """A heavy top: an off-centre body on a ball joint."""
    builder = ModelBuilder()
    inertia = RigidInertia(1.3, (0.05, -0.02, 0.3), (0.02, 0.03, 0.015))
    builder.add_body("top", parent="world", joint=Spherical(), inertia=inertia)
    return builder.build(), ([1.0, 0.0, 0.0, 0.0], [0.8, -0.5, 6.0])


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("kind", ["free", "planar"])
def test_thrown_spinning_body_keeps_its_momentum_to_rounding(kind, integrator):
    """ANIM-SIMLOOP, RBDA-4.4-PLANAR-QDOT: velocity g t and, under Runge-Kutta, the exact parabola, for a
    body whose centre is off its origin.
    """
    model = random_tree(3, 1, (kind,), armature=False)
    q, v, _, _ = state(model, 1)
    pose = np.array(model.bodies[0].placement.R.to_list())
    dt, steps = 0.01, 120

    def in_joint_axes(x):
        return (pose.T @ vec(x))[: 3 if kind == "free" else 2]

    g = in_joint_axes(model.gravity)
    c0, v0 = in_joint_axes(center_of_mass(model, q)), in_joint_axes(center_of_mass_velocity(model, q, v))
    end = simulate(model, (q, v), dt, steps, integrator)
    t = dt * steps
    close(in_joint_axes(center_of_mass_velocity(model, *end)), v0 + g * t, 1e-12)
    path = c0 + v0 * t + 0.5 * g * t * t
    sides = {"semi_implicit": 0.5, "midpoint": 0.5, "implicit": 0.5, "euler": -0.5}
    path = path + sides.get(integrator, 0.0) * g * t * dt  # sums of the velocities at one end of each step
    close(in_joint_axes(center_of_mass(model, end.q)), path, 1e-12)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_spinning_body_without_gravity_flies_straight(integrator):
    """A spinning body's centre stays on a straight line while its origin does not."""
    builder = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_body(
        "body", parent="world", joint=Free(), inertia=RigidInertia(2.0, (0.3, 0.1, -0.2), (0.1, 0.2, 0.25))
    )
    model = builder.build()
    q, v = [1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0], [3.0, -2.0, 5.0, 0.4, 0.1, -0.3]
    h = momentum(model, q, v)
    line, start = vec(center_of_mass_velocity(model, q, v)), vec(center_of_mass(model, q))
    end = simulate(model, (q, v), 0.01, 200, integrator)
    close(vec(momentum(model, *end).linear), vec(h.linear), 1e-12)
    close(vec(center_of_mass(model, end.q)), start + 2.0 * line, 1e-12)
    assert np.linalg.norm(np.array(end.q[:3]) - np.array(q[:3]) - 2.0 * line) > 1e-2


def test_runge_kutta_has_order_four_on_a_ball_joint():
    """RBDA-3.1-FDX, RBDA-3.1-QDFN: halving the step divides the error by sixteen."""
    model, start = top()
    reference = simulate(model, start, 0.2 / 1600, 1600, "rk4")
    errors = []
    for steps in (10, 20, 40, 80):
        end = simulate(model, start, 0.2 / steps, steps, "rk4")
        distance = difference(model, reference.q, end.q)
        errors.append(np.linalg.norm([*distance, *np.subtract(end.v, reference.v)]))
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert orders == pytest.approx([4.0, 4.0, 4.0], abs=0.25)


@pytest.mark.parametrize("seed", [1, 4])
def test_runge_kutta_has_order_four_on_mixed_trees(seed):
    """The order holds for free, planar, ball, Euler-angle and exponential-map joints together."""
    kinds = (
        "free",
        "planar",
        "spherical",
        "spherical_euler",
        "spherical_exponential",
        "revolute",
        "reversed_spherical",
    )
    model = random_tree(seed, 4, kinds)
    q, v, tau, f = state(model, seed)
    v = [0.3 * x for x in v]
    options = {"tau": tau, "external_forces": f}
    reference = simulate(model, (q, v), 0.05 / 320, 320, "rk4", **options)
    errors = []
    for steps in (10, 20, 40):
        end = simulate(model, (q, v), 0.05 / steps, steps, "rk4", **options)
        distance = difference(model, reference.q, end.q)
        errors.append(np.linalg.norm([*distance, *np.subtract(end.v, reference.v)]))
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert np.all(orders > 3.6)


@pytest.mark.parametrize("seed", [0, 3, 4, 5, 8])
def test_variational_step_errs_by_the_cube_of_its_length_on_every_joint(seed):
    """RBDA-3.1-FDX: one step and one of half the length, against Runge-Kutta, for joints of every type with
    armature, springs, dampers, joint and external forces.
    """
    model = random_tree(seed, 5)
    frictionless = {f"{b.joint_name}.joint_friction": [0.0] * b.nv for b in model.bodies if b.nv > 1}
    frictionless |= {f"{b.joint_name}.joint_friction": 0.0 for b in model.bodies if b.nv == 1}
    model = model.with_values(frictionless)
    q, v, tau, f = state(model, seed)
    options = {"tau": tau, "external_forces": f, "passive": True}
    errors = []
    for dt in (4e-4, 2e-4):
        exact = simulate(model, (q, v), dt / 4, 4, "rk4", **options)
        found = simulate(model, (q, v), dt, 1, "variational", **options)
        distance = difference(model, exact.q, found.q)
        errors.append(np.linalg.norm([*distance, *np.subtract(found.v, exact.v)]))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(3.0, abs=0.2)


@pytest.mark.parametrize(("integrator", "power"), [("variational", 3.0), ("implicit", 2.0), ("heun", 3.0)])
def test_geared_joints_in_one_step(integrator, power):
    """RBDA-3.1-FDX: couplings are inside of what is implicit: a damped, geared chain."""
    model = geared_chain(2)
    model = model.with_values({f"{b.joint_name}.damping": 0.7 for b in model.bodies})
    model = model.with_values({f"{b.joint_name}.stiffness": 3.0 for b in model.bodies})
    q, v, tau, f = state(model, 2)
    options = {"tau": tau, "external_forces": f, "passive": True}
    errors = []
    for dt in (4e-4, 2e-4):
        exact = simulate(model, (q, v), dt / 4, 4, "rk4", **options)
        found = simulate(model, (q, v), dt, 1, integrator, **options)
        errors.append(np.linalg.norm(np.subtract(found.v, exact.v)))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(power, abs=0.1)


def test_semi_implicit_euler_has_order_one_and_bounded_energy():
    """ANIM-INTEG: velocities first, then positions from the new ones; energy stays bounded."""
    builder = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_body(
        "mass", parent="world", joint=Prismatic((1.0, 0.0, 0.0)), stiffness=4.0,
        inertia=RigidInertia(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    )  # fmt: skip
    model = builder.build()
    q, v = [1.0], [0.0]
    energies = []
    for _ in range(5000):
        q, v = step(model, q, v, [0.0], 0.05, passive=True)
        energies.append(0.5 * v[0] ** 2 + 2.0 * q[0] ** 2)
    assert max(energies) < 2.3
    assert min(energies[-200:]) > 1.7
    first = step(model, [1.0], [0.5], [0.0], 0.05, passive=True)
    assert first.v[0] == pytest.approx(0.5 - 0.05 * 4.0, abs=1e-15)
    assert first.q[0] == pytest.approx(1.0 + 0.05 * first.v[0], abs=1e-15)


def test_spinning_top_keeps_its_energy():
    """RBDA-3.1-FDX, ANIM-SIMLOOP: energy drift of Runge-Kutta over four seconds."""
    model, (q, v) = top()
    before = kinetic_energy(model, q, v) + potential_energy(model, q)
    end = simulate(model, (q, v), 0.005, 800, "rk4")
    assert kinetic_energy(model, *end) + potential_energy(model, end.q) == pytest.approx(before, rel=1e-6)


def test_state_rate_drives_an_ordinary_solver():
    """RBDA-3.1-FDX: scipy integrates x' = FD_x(x, tau); quaternions keep their norm, and Runge-Kutta
    agrees.
    """
    model, (q, v) = top()

    def rate(t, x):
        q_rate, v_rate = state_rate(model, x[:4].tolist(), x[4:].tolist(), [0.1, 0.0, -0.2])
        return np.array([*q_rate, *v_rate], dtype=float)

    x = solve_ivp(rate, (0.0, 0.4), [*q, *v], rtol=1e-11, atol=1e-12).y[:, -1]
    assert np.linalg.norm(x[:4]) == pytest.approx(1.0, abs=1e-9)
    end = simulate(model, (q, v), 0.002, 200, "rk4", tau=[0.1, 0.0, -0.2])
    close(difference(model, normalize(model, x[:4].tolist()), end.q), np.zeros(3), 1e-7)
    close(x[4:], end.v, 1e-7)


def test_pendulum_swings_with_its_period():
    """ANIM-SIMLOOP: a small swing of a point mass takes 2 pi sqrt(l/g)."""
    builder = ModelBuilder(gravity=(0.0, 0.0, -9.81))
    builder.add_body(
        "bob",
        parent="world",
        joint=Revolute((0.0, 1.0, 0.0)),
        inertia=RigidInertia(1.0, (0.0, 0.0, -0.5), (0.0, 0.0, 0.0)),
    )
    model = builder.build(inertia="as_given")
    period = 2.0 * np.pi * np.sqrt(0.5 / 9.81)
    end = simulate(model, ([0.001], [0.0]), period / 400, 400, "rk4")
    close(end.q, [0.001], 1e-8)
    close(end.v, [0.0], 1e-8)


@pytest.mark.parametrize("kind", ["free", "planar", "spherical", "universal"])
def test_carried_variables_lead_there_and_back(kind):
    """The centre's velocity along fixed axes and v along body axes are the same motion, and so are their
    rates.
    """
    model = random_tree(9, 2, (kind,), branching=0.0)
    q, v, a, _ = state(model, 9)
    body = model.bodies[1]
    own = body.own_q(q), body.own_v(v)
    y, w = to_centroidal(body, *own)
    back = from_centroidal(body, y, w)
    close(back[0], own[0], 1e-13)
    close(back[1], own[1], 1e-13)
    h = 1e-6
    y_rate, w_rate = centroidal_rates(body, *own, body.own_v(a))
    ends = []
    for s in (h, -h):
        there = body.joint.integrate(own[0], [s * x for x in own[1]])
        ends.append(to_centroidal(body, there, [x + s * z for x, z in zip(own[1], body.own_v(a))]))
    close(np.subtract(ends[0][0], ends[1][0]) / (2 * h), y_rate, 1e-7)
    close(np.subtract(ends[0][1], ends[1][1]) / (2 * h), w_rate, 1e-7)


def test_one_step_of_each_integrator_by_hand():
    """The definitions, on one hinge; passive forces only when asked for."""
    model = random_tree(0, 1, ("revolute",), armature=False)
    q, v, tau = [0.3], [0.7], [0.2]
    a = forward_dynamics(model, q, v, tau)
    assert step(model, q, v, tau, 0.1).v == pytest.approx([v[0] + 0.1 * a[0]])
    total = [tau[0] + passive_forces(model, q, v)[0]]
    a = forward_dynamics(model, q, v, total)
    assert step(model, q, v, tau, 0.1, passive=True).v == pytest.approx([v[0] + 0.1 * a[0]])


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("seed", range(3))
def test_aligned_frames_change_no_step(seed, integrator):
    """Joints without an axis keep their frames, so that the variables a step carries are the same."""
    model = random_tree(seed, 8)
    q, v, tau, f = state(model, seed)
    options = {"integrator": integrator, "external_forces": f, "passive": True}
    expected = step(model, q, v, tau, 1e-3, **options)
    found = step(aligned(model), q, v, tau, 1e-3, **options)
    close(found.q, expected.q, 1e-10)
    close(found.v, expected.v, 1e-9)


def test_bad_steps_are_refused():
    """dt must be finite and positive; the integrator must exist."""
    model, (q, v) = top()
    for dt in (0.0, -0.1, float("inf"), float("nan")):
        with pytest.raises(ArgumentError, match="dt"):
            step(model, q, v, [0.0] * 3, dt)
    with pytest.raises(UnknownNameError, match="rk4"):
        step(model, q, v, [0.0] * 3, 0.1, integrator="rk5")
