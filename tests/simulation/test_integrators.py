"""What every integrator promises: its order, momenta, energy, and stability where it is stiff."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from tests.algorithms.trees import JOINTS, close, inertia, place

import dalembert as da
from dalembert import scalar
from dalembert.errors import ModelError

ORDERS = {"euler": 1, "semi_implicit": 1, "midpoint": 1, "implicit": 1, "heun": 2, "variational": 2, "rk4": 4}


def swinging_top():
    """A ball joint with a hinge and a slide on it, with springs and dampers, under gravity."""
    builder = da.ModelBuilder()
    solid = da.RigidInertia(1.3, (0.05, -0.02, 0.3), (0.02, 0.03, 0.015))
    builder.add_body("top", "world", da.Spherical(), inertia=solid, damping=0.2, stiffness=0.5)
    out = da.Transform.from_rotation_translation(np.eye(3), (0.1, 0.0, 0.4))
    builder.add_body("arm", "top", da.Revolute((1, 0, 0)), placement=out, inertia=solid, damping=0.1)
    builder.add_body("bead", "arm", da.Prismatic((0, 0, 1)), inertia=solid, stiffness=30.0)
    return builder.build(), np.array([1.0, 0.0, 0.0, 0.0, 0.3, 0.1]), np.array([0.8, -0.5, 4.0, 1.0, 0.2])


def flying_tree(seed, kinds=("free", "spherical", "universal", "spherical_exponential", "revolute")):
    """Bodies in flight without gravity, on random joints."""
    rng = np.random.default_rng(seed)
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    for i, kind in enumerate(kinds):
        parent = "world" if i == 0 else f"b{rng.integers(i)}"
        builder.add_body(f"b{i}", parent, JOINTS[kind](rng), placement=place(rng), inertia=inertia(rng))
    return builder.build()


def momentum(model, q, v):
    """Angular momentum about the world's origin, and linear momentum."""
    h = da.dynamics.centroidal_momentum(model, q, v)
    moment = h[..., :3] + np.cross(da.dynamics.center_of_mass(model, q), h[..., 3:])
    return np.concatenate([moment, h[..., 3:]], axis=-1)


def ends(model, q, v, integrator, duration, counts):
    """(q, v) after some time, in different numbers of steps."""
    found = []
    for n in counts:
        run = da.rollout(model, q, v, steps=n, dt=duration / n, integrator=integrator, every=n)
        found.append((run.q[-1], run.v[-1]))
    return found


@pytest.mark.parametrize("integrator", ORDERS)
def test_order_by_refinement_on_a_ball_joint(integrator):
    """RBDA-3.1-FDX, RBDA-3.1-QDFN: halving the step divides the error by 2 to the order."""
    model, q, v = swinging_top()
    ((exact_q, exact_v),) = ends(model, q, v, "rk4", 0.2, [6400])
    errors = []
    for end_q, end_v in ends(model, q, v, integrator, 0.2, [20, 40, 80, 160]):
        errors.append(np.linalg.norm([*da.difference(model, exact_q, end_q), *(end_v - exact_v)]))
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert orders == pytest.approx([ORDERS[integrator]] * 3, abs=0.15)


@pytest.mark.parametrize("integrator", ORDERS)
def test_order_by_refinement_where_a_joint_moves_with_time(integrator):
    """RBDA-3.1-FDX: a pendulum on a shaken pivot, q'' = -(g + y'') sin q - d q', y = 0.1 sin 8 t."""
    shaken = da.joints.TimeDependent(
        da.Revolute((0, 1, 0)), driver=da.Prismatic((0, 0, 1)), motion=lambda t: [0.1 * scalar.sin(8.0 * t)]
    )
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    bob = da.RigidInertia(1.0, (0.0, 0.0, -1.0), np.zeros((3, 3)))
    builder.add_body("bob", "world", shaken, inertia=bob, damping=0.3)
    model = builder.build(inertia="as_given")

    def rate(t, x):
        return [x[1], -(9.81 - 6.4 * np.sin(8.0 * t)) * np.sin(x[0]) - 0.3 * x[1]]

    exact = solve_ivp(rate, (1.0, 1.5), [0.9, 0.4], method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    errors = []
    for n in (50, 100, 200):
        run = da.rollout(model, [0.9], [0.4], steps=n, dt=0.5 / n, time=1.0, integrator=integrator, every=n)
        errors.append(np.hypot(run.q[-1, 0] - exact[0], run.v[-1, 0] - exact[1]))
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert orders == pytest.approx([ORDERS[integrator]] * 2, abs=0.1)


@pytest.mark.parametrize("integrator", ORDERS)
def test_a_single_body_in_flight_keeps_its_linear_momentum(integrator):
    """ANIM-SIMLOOP: 1e-10 after ten thousand steps, spinning, centre off the origin."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    body = da.RigidInertia(2.0, (0.3, 0.1, -0.2), (0.1, 0.2, 0.25))
    builder.add_body("body", "world", da.Free(), inertia=body)
    model = builder.build()
    q, v = model.neutral(), np.array([3.0, -2.0, 5.0, 0.4, 0.1, -0.3])
    run = da.rollout(model, q, v, steps=10_000, dt=1e-3, integrator=integrator, every=1000)
    h = momentum(model, run.q, run.v)
    close(h[:, 3:], np.broadcast_to(h[0, 3:], (11, 3)), 1e-10)


@pytest.mark.parametrize("seed", range(2))
def test_the_variational_step_keeps_the_momentum_of_a_multibody(seed):
    """ANIM-SIMLOOP: linear and angular, about the world's origin and about the centre of mass, to 1e-10, at
    steps at which other integrators lose digits.
    """
    model = flying_tree(seed)
    q, v = model.random_state(seed)
    run = da.rollout(model, q, v, steps=1000, dt=0.005, integrator="variational", every=100)
    assert run.failed_at == -1
    h = momentum(model, run.q, run.v)
    assert np.linalg.norm(h[0, :3]) > 0.1
    close(h, np.broadcast_to(h[0], h.shape), 1e-10)
    about_center = da.dynamics.centroidal_momentum(model, run.q, run.v)
    close(about_center, np.broadcast_to(about_center[0], h.shape), 1e-10)
    other = da.rollout(model, q, v, steps=1000, dt=0.005, integrator="heun", every=1000)
    assert np.abs(momentum(model, other.q[-1], other.v[-1]) - h[0]).max() > 1e-6


def test_the_variational_step_throws_a_multibody_along_its_parabola():
    """ANIM-SIMLOOP: with torques inside the centre of mass moves as the weight says, and nothing turns the
    system; with a force on a body the motion is of order two.
    """
    model = flying_tree(2, ("free", "spherical", "universal", "revolute"))
    g = np.array([0.3, -0.2, -9.0])
    model = model.with_values({"gravity": g})
    q, v = model.random_state(2)
    tau = np.array([0.0] * 6 + [0.2, -0.1, 0.3, 0.1, 0.2, -0.4])
    run = da.rollout(model, q, v, tau, steps=200, dt=0.01, integrator="variational", every=20)
    t = run.time[:, np.newaxis]
    h = da.dynamics.centroidal_momentum(model, run.q, run.v)
    mass = sum(model.value(f"{body.name}.mass") for body in model.bodies)
    c = da.dynamics.center_of_mass(model, run.q)
    close(h[:, 3:], h[0, 3:] + mass * g * t, 1e-10)
    close(h[:, :3], np.broadcast_to(h[0, :3], (11, 3)), 1e-10)
    close(c, c[0] + h[0, 3:] / mass * t + 0.5 * g * t**2, 1e-10)
    push = np.zeros((4, 6))
    push[2] = [0.1, -0.3, 0.2, 0.5, 0.4, -0.6]
    errors = []
    fine = da.rollout(
        model, q, v, tau, steps=2000, dt=1e-4, integrator="rk4", external_forces=push, every=2000
    )
    for n in (20, 40, 80):
        found = da.rollout(
            model, q, v, tau, steps=n, dt=0.2 / n, integrator="variational", external_forces=push, every=n
        )
        errors.append(
            np.linalg.norm([*da.difference(model, fine.q[-1], found.q[-1]), *(found.v - fine.v)[-1]])
        )
    assert np.log2(np.array(errors[:-1]) / np.array(errors[1:])) == pytest.approx([2.0, 2.0], abs=0.15)


def test_the_variational_step_takes_ball_joints_wherever_they_are():
    """ANIM-SIMLOOP: after a slide in one joint, and in a cylinder; momentum to 1e-10, order two."""
    rng = np.random.default_rng(5)
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_body("trunk", "world", da.Free(), inertia=inertia(rng))
    arm = da.joints.Composite([da.Prismatic((1, 0, 0)), da.Spherical()])
    builder.add_body("arm", "trunk", arm, placement=place(rng), inertia=inertia(rng))
    tail = JOINTS["sphere_in_cylinder"](rng)
    builder.add_body("tail", "trunk", tail, placement=place(rng), inertia=inertia(rng))
    model = builder.build()
    q, v = model.random_state(5)
    run = da.rollout(model, q, v, steps=200, dt=0.005, integrator="variational", every=20)
    h = momentum(model, run.q, run.v)
    close(h, np.broadcast_to(h[0], h.shape), 1e-10)
    ((exact_q, exact_v),) = ends(model, q, v, "rk4", 0.2, [2000])
    errors = [
        np.linalg.norm([*da.difference(model, exact_q, end_q), *(end_v - exact_v)])
        for end_q, end_v in ends(model, q, v, "variational", 0.2, [40, 80])
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.15)


@pytest.mark.parametrize("integrator", [name for name in ORDERS if name != "variational"])
def test_momentum_of_a_multibody_converges_at_the_order(integrator):
    """ANIM-SIMLOOP: what other integrators lose of it shrinks as their errors do."""
    model = flying_tree(1)
    q, v = model.random_state(1)
    h = momentum(model, q, v)
    found = ends(model, q, v, integrator, 0.2, [20, 40, 80])
    losses = [np.linalg.norm(momentum(model, *end) - h) for end in found]
    orders = np.log2(np.array(losses[:-1]) / np.array(losses[1:]))
    assert np.all(orders > ORDERS[integrator] - 0.25)
    assert orders[-1] < ORDERS[integrator] + 1.3  # one more where leading terms cancel


def test_pendulum_energy_does_not_drift_in_a_million_steps():
    """ANIM-SIMLOOP: the variational step's energy error is the same at the end as at the beginning."""
    model = da.models.pendulum(length=1.0)
    steps = 1_000_000
    run = da.rollout(model, [2.0], [0.0], steps=steps, dt=0.01, integrator="variational", every=10)
    swing = np.ptp(da.dynamics.potential_energy(model, np.array([[0.0], [np.pi]])))
    error = (run.energy() - run.energy()[0]) / swing
    tenth = len(error) // 10
    first, last = error[:tenth], error[-tenth:]
    assert np.ptp(first) < 1e-3
    assert np.abs(last).max() < 1.01 * np.abs(first).max()
    assert abs(last.mean() - first.mean()) < 1e-3 * np.ptp(first)
    other = da.rollout(model, [2.0], [0.0], steps=10_000, dt=0.01, integrator="heun", every=10_000)
    assert (other.energy()[-1] - other.energy()[0]) / swing > 10.0 * np.ptp(first)


def test_the_variational_step_is_the_same_backwards():
    """The method is symmetric: from the end with velocities turned round it leads to the start."""
    model = flying_tree(3, ("free", "spherical", "planar", "universal", "helical"))
    model = model.with_values({"gravity": (0.3, -0.2, -9.0)})
    q, v = model.random_state(3)
    there = da.rollout(model, q, v, steps=50, dt=0.01, integrator="variational")
    back = da.rollout(model, there.q[-1], -there.v[-1], steps=50, dt=0.01, integrator="variational")
    close(da.difference(model, q, back.q[-1]), np.zeros(model.nv), 1e-10)
    close(back.v[-1], -v, 1e-10)
    assert np.abs(there.v[-1] - v).max() > 0.5


def symplectic_form(model, q, v):
    """dp_2 . eta_1 - dp_1 . eta_2 + p . [eta_1, eta_2] of two changes (eta, dp); the first three velocity
    variables are omega in body axes, the others rates.
    """
    n = model.nv
    p = da.mass_matrix(model, q) @ v
    bracket = np.zeros((n, n))
    bracket[:3, :3] = [[0.0, p[2], -p[1]], [-p[2], 0.0, p[0]], [p[1], -p[0], 0.0]]
    return np.block([[bracket, np.eye(n)], [-np.eye(n), np.zeros((n, n))]])


def test_the_variational_step_is_symplectic():
    """The map of (q, p) keeps the symplectic form of the cotangent bundle of SO(3) x R, by differences; the
    step is so long that methods which keep momentum alone would show.
    """
    builder = da.ModelBuilder()
    solid = da.RigidInertia(1.3, (0.05, -0.02, 0.3), (0.02, 0.03, 0.015))
    builder.add_body("top", "world", da.Spherical(), inertia=solid)
    builder.add_body("arm", "top", da.Revolute((1, 0, 0)), inertia=solid)
    model = builder.build()
    q, v = np.array([1.0, 0.0, 0.0, 0.0, 0.3]), np.array([0.8, -0.5, 5.0, 1.0])
    dt, h = 0.05, 1e-5
    M = da.mass_matrix(model, q)

    def end(change):
        start = da.integrate(model, q, change[:4])
        p = M @ v + change[4:]
        return da.step(
            model, start, np.linalg.solve(da.mass_matrix(model, start), p), np.zeros(4), dt,
            integrator="variational",
        )  # fmt: skip

    end_q, end_v = end(np.zeros(8))
    columns = []
    for direction in np.eye(8):
        (q_1, v_1), (q_0, v_0) = end(h * direction), end(-h * direction)
        eta = da.difference(model, end_q, q_1) - da.difference(model, end_q, q_0)
        dp = da.mass_matrix(model, q_1) @ v_1 - da.mass_matrix(model, q_0) @ v_0
        columns.append(np.concatenate([eta, dp]) / (2.0 * h))
    D = np.array(columns).T
    assert np.abs(D - np.eye(8)).max() > 0.1
    close(D.T @ symplectic_form(model, end_q, end_v) @ D, symplectic_form(model, q, v), 1e-7)


def test_stiff_joints_come_to_rest_at_any_step():
    """RBDA-3.1-FDX: springs and dampers a thousand times too stiff for explicit steps; the motion ends where
    springs hold the weight.
    """
    builder = da.ModelBuilder()
    rod = da.RigidInertia(1.0, (0.0, 0.0, -0.5), np.diag([1 / 12, 1 / 12, 1e-2]))
    stiff = {"inertia": rod, "stiffness": 1e4, "damping": 1e4}
    below = da.Transform.from_rotation_translation(np.eye(3), (0.0, 0.0, -1.0))
    builder.add_body("ball", "world", da.Spherical(), **stiff)
    builder.add_body("hinge", "ball", da.Revolute((0, 1, 0)), placement=below, rest=0.8, **stiff)
    model = builder.build()
    q, v = da.integrate(model, model.neutral(), [0.4, 0.2, 0.1, 0.5]), np.array([1.0, 2.0, 3.0, -2.0])
    run = da.rollout(model, q, v, steps=3000, dt=0.01, integrator="implicit", every=10)
    assert run.failed_at == -1
    close(run.v[-1], np.zeros(4), 1e-6)
    close(da.gravity_forces(model, run.q[-1]), da.passive_forces(model, run.q[-1], run.v[-1]), 1e-6)
    with pytest.warns(RuntimeWarning, match="failed"):
        explicit = da.rollout(model, q, v, steps=3000, dt=0.01, every=3000, integrator="semi_implicit")
    assert explicit.failed_at >= 0
    # The variational step takes forces at the middle: stable, but a stiff joint rings for long.
    middle = da.rollout(model, q, v, steps=3000, dt=0.01, integrator="variational", every=10)
    assert middle.failed_at == -1
    assert 1e-5 < np.abs(middle.v[-1]).max() < 1e-2


def test_a_stiff_spring_without_a_damper_by_hand():
    """RBDA-3.1-FDX: (m + h^2 k) v' = m v - h k x, on a spring a thousand times too stiff for the step."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    block = da.RigidInertia(2.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    builder.add_body("block", "world", da.Prismatic((1, 0, 0)), inertia=block, stiffness=1e6)
    run = da.rollout(builder.build(), [0.1], [0.3], steps=50, dt=0.1, integrator="implicit")
    v = (2.0 * 0.3 - 0.1 * 1e6 * 0.1) / (2.0 + 0.01 * 1e6)
    assert run.v[1, 0] == pytest.approx(v, rel=1e-12)
    assert run.q[1, 0] == pytest.approx(0.1 + 0.1 * v, rel=1e-9)
    assert np.abs(run.q[-1]).max() < 1e-6


def test_dry_friction_stops_a_joint_without_chatter():
    """RBDA-3.1-FDX: implicit steps bring a block with friction to rest, and never turn it round."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    block = da.RigidInertia(2.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    builder.add_body("block", "world", da.Prismatic((1, 0, 0)), inertia=block, friction=4.0)
    model = builder.build()
    run = da.rollout(model, [0.0], [1.0], steps=200, dt=0.01, integrator="implicit")
    v = run.v[:, 0]
    assert np.all(v >= 0.0)
    assert v[-1] < 1e-9
    assert run.q[-1, 0] == pytest.approx(1.0 / (2.0 * 2.0), rel=0.02)  # v^2 / (2 f/m)


@pytest.mark.parametrize("integrator", ["midpoint", "implicit"])
def test_implicit_damping_with_the_terms_of_mujoco(tmp_path, integrator):
    """(M + h D) (v' - v) / h = - b(q, v_m) - D v, with M, b and the prediction v_m - v of MuJoCo, whose Euler
    step is implicit in damping, too; a hundred steps of a chain of hinges.
    """
    mujoco = pytest.importorskip("mujoco")
    link = '<body pos="0 0 -0.5"><joint type="hinge" axis="{}" damping="{}" armature="0.01"/>{}{}</body>'
    geom = '<geom type="capsule" fromto="0 0 0 0 0.1 -0.5" size="0.05" mass="1"/>'
    inner = link.format("1 0 0", 20, geom, "")
    middle = link.format("0 1 0.3", 5, geom, inner)
    outer = link.format("0 1 0", 0.3, geom, middle)
    option = '<option timestep="0.005" integrator="Euler"><flag contact="disable"/></option>'
    file = tmp_path / "chain.xml"
    file.write_text(f"<mujoco>{option}<worldbody>{outer}</worldbody></mujoco>")
    theirs = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(theirs)
    model = da.load(file)
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(2, 3))
    h, D, M = 0.005, np.diag([0.3, 5.0, 20.0]), np.empty((3, 3))
    for _ in range(100):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_step(theirs, data)
        v_m = v + 0.5 * (data.qvel - v)
        data.qpos[:], data.qvel[:] = q, v_m
        mujoco.mj_forward(theirs, data)
        for column in range(3):
            mujoco.mj_mulM(theirs, data, M[column], np.eye(3)[column])
        end = v + h * np.linalg.solve(M + h * D, -data.qfrc_bias - D @ v)
        q, v = da.step(model, q, v, np.zeros(3), h, integrator=integrator)
        close(v, end, 1e-9)


def spinning_box(sizes=(0.1, 0.2, 0.3)):
    """A free box without weight."""
    x, y, z = sizes
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_body(
        "box", "world", da.Free(), inertia=da.RigidInertia(1.0, (0.05, -0.02, 0.1), _cuboid(x, y, z))
    )
    return builder.build()


def _cuboid(x, y, z, mass=1.0):
    return np.diag([y * y + z * z, x * x + z * z, x * x + y * y]) * (mass / 12.0)


def ball_top():
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    solid = da.RigidInertia(1.0, (0.02, 0.03, 0.2), _cuboid(0.1, 0.2, 0.3))
    builder.add_body("top", "world", da.Spherical(), inertia=solid)
    return builder.build()


def brick_chain():
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    solid = da.RigidInertia(1.0, (0.0, 0.0, 0.0), _cuboid(0.1, 0.2, 0.3))
    up = da.Transform.from_rotation_translation(np.eye(3), (0.0, 0.0, 0.2))
    builder.add_body("a", "world", da.Free(), inertia=solid)
    builder.add_body("b", "a", da.Revolute((0, 1, 0)), placement=up, inertia=solid)
    builder.add_body("c", "b", da.Revolute((1, 0, 0)), placement=up, inertia=solid)
    return builder.build()


def spun(model, turn, dt, count=32):
    """Starts that turn by `turn` [rad] in a step, about random axes."""
    rng = np.random.default_rng(0)
    axis = rng.normal(size=(count, 3))
    v = np.zeros((count, model.nv))
    v[:, :3] = turn / dt * axis / np.linalg.norm(axis, axis=1, keepdims=True)
    return np.tile(model.neutral(), (count, 1)), v


@pytest.mark.parametrize("integrator", [None, "semi_implicit", "midpoint", "implicit"])
@pytest.mark.parametrize("make", [spinning_box, ball_top])
def test_the_energy_of_spin_is_kept(make, integrator):
    """ANIM-SIMLOOP: to 1 % in a thousand steps of 0.1 rad; with gyroscopic forces of where a step begins it
    would double at least."""
    model = make()
    q, v = spun(model, 0.1, 0.005)
    run = da.rollout(model, q, v, steps=1000, dt=0.005, every=1000, integrator=integrator)
    start, end = (da.dynamics.kinetic_energy(model, run.q[:, k], run.v[:, k]) for k in (0, -1))
    assert np.abs(end / start - 1.0).max() < 0.01
    assert not run.energy_gain.any()


@pytest.mark.parametrize("make", [spinning_box, ball_top])
def test_midpoint_steps_are_of_order_two_for_what_turns(make):
    """ANIM-INTEG: without weight, halving the step divides the error of the angular velocity by four."""
    model = make()
    q, v = spun(model, 0.02, 0.005, count=1)
    exact = da.rollout(model, q[0], v[0], steps=4000, dt=1e-4, every=4000, integrator="rk4").v[-1]
    errors = []
    for n in (100, 200, 400):
        run = da.rollout(model, q[0], v[0], steps=n, dt=0.4 / n, every=n)
        errors.append(np.linalg.norm(run.v[-1, :3] - exact[:3]))
    assert np.log2(np.array(errors[:-1]) / np.array(errors[1:])) == pytest.approx([2.0, 2.0], abs=0.1)


def test_jointed_bricks_keep_the_energy_of_their_spin():
    """ANIM-SIMLOOP: limp joints, 0.03 rad a step; semi-implicit steps blow up."""
    model = brick_chain()
    q, v = spun(model, 0.03, 0.005)
    run = da.rollout(model, q, v, steps=1000, dt=0.005, every=1000)
    start, end = (da.dynamics.kinetic_energy(model, run.q[:, k], run.v[:, k]) for k in (0, -1))
    assert np.abs(end / start - 1.0).max() < 0.02


@pytest.mark.parametrize("name", ["arm6", "arm7", "humanoid", "quadruped", "two_link_arm"])
def test_damped_models_do_not_blow_up_in_long_steps(name):
    """ANIM-SIMLOOP: the bundled models with their own damping at 5 ms, limp."""
    model = getattr(da.models, name)()
    q, v = model.random_state(1)
    run = da.rollout(model, q, v, steps=600, dt=0.005, every=20)
    assert run.failed_at == -1
    energy = run.energy()
    assert energy.max() < energy[0] + 0.02 * abs(np.ptp(energy)) + 1.0


def test_energy_that_no_work_explains_is_reported():
    """ANIM-SIMLOOP: a box that turns by a radian in a step gains energy, and the trajectory says so."""
    model = spinning_box()
    q, v = spun(model, 1.0, 0.05)
    with pytest.warns(RuntimeWarning, match="gained energy that no work explains"):
        run = da.rollout(model, q, v, steps=100, dt=0.05)
    energy = da.dynamics.kinetic_energy(model, run.q, run.v)
    gained = energy[:, :-8].max(axis=1) > 1.02 * energy[:, 0]
    assert gained.sum() > 5
    assert np.all(run.energy_gain[gained] > 0.0)


def test_what_the_variational_step_cannot_do_is_said():
    """Loops and joints of other velocities are refused by name; a step that is too long fails its sample."""
    loop = da.models.four_bar()
    q = loop.neutral()
    with pytest.raises(ModelError, match="is for trees, and this model has loops"):
        da.step(loop, q, q, q, 0.01, integrator="variational")
    builder = da.ModelBuilder()
    solid = da.RigidInertia(1.0, (0.1, 0.0, 0.0), (0.1, 0.2, 0.25))
    builder.add_body("body", "world", da.Free().reversed(), inertia=solid)
    backwards = builder.build()
    with pytest.raises(ModelError, match=r'joint "body" \(reversed\) has velocities'):
        da.step(backwards, backwards.neutral(), np.zeros(6), np.zeros(6), 0.01, integrator="variational")
    model = flying_tree(0)
    q, v = model.random_state(0)
    with pytest.warns(RuntimeWarning):
        run = da.rollout(model, [q, q], [v, 300.0 * v], steps=5, dt=0.01, integrator="variational")
    assert run.failed_at[0] == -1
    assert run.failed_at[1] >= 0
