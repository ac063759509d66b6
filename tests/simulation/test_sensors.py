"""Sensors against closed forms: statics, falls, bounces, the laws of random numbers."""

import math

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ArgumentError, DtypeError, ModelError, UnknownNameError
from dalembert.simulation.sensing import stream_keys, uniform_pair
from dalembert.simulation.sensors import (
    ContactForce,
    FootAirTime,
    FramePose,
    FrameVelocity,
    Imu,
    JointState,
    JointWrench,
    Reading,
    Sensor,
    Touch,
)

GRAVITY = 9.81


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def ball(restitution=0.0):
    builder = da.ModelBuilder()
    sphere = da.shapes.Sphere(0.1, name="skin", restitution=restitution)
    builder.add_body("ball", joint=da.Free(), inertia=sphere.inertia(mass=1.5), shapes=[sphere])
    return builder.build().with_ground()


def chain():
    """Two rods that hang from a hinge each, 1 kg and 2 kg."""
    builder = da.ModelBuilder()
    place = da.Transform.from_rotation_translation(np.eye(3), (0.0, 0.0, -1.0))
    for name, parent, mass in (("upper", "world", 1.0), ("lower", "upper", 2.0)):
        rod = da.RigidInertia(mass, (0.0, 0.0, -0.5), (mass / 3, mass / 3, 0.01 * mass))
        where = {} if parent == "world" else {"placement": place}
        builder.add_body(name, parent, da.Revolute((0, 1, 0)), f"{name}_hinge", inertia=rod, **where)
    return builder.build()


def test_a_chain_at_rest_hangs_by_its_weight_and_turned_it_holds_its_moment():
    model = chain()
    hanging = da.Simulation(model, sensors=[JointWrench()], dt=1e-4)
    hanging.step(steps=10)
    np.testing.assert_allclose(
        hanging.sensors["joint_wrench"],
        [[0, 0, 0, 0, 0, 3 * GRAVITY], [0, 0, 0, 0, 0, 2 * GRAVITY]],
        atol=1e-9,
    )
    q = [0.5, 0.3]
    tau = da.gravity_forces(model, q)
    held = da.Simulation(model, q, sensors=[JointWrench("lower_hinge"), JointState("torque")], dt=1e-4)
    held.step(tau)
    moment = held.sensors["joint_wrench"][0, 1]
    assert moment == pytest.approx(2.0 * GRAVITY * 0.5 * math.sin(0.8), rel=1e-6)
    assert moment == pytest.approx(tau[1], rel=1e-6)
    assert same(held.sensors["joint_state"], tau)


def test_no_wrench_holds_a_free_body_whatever_pushes_it():
    """The ground presses, an external force too, and the sum is the motion of the body itself."""
    model = ball()
    q = model.neutral()
    q[2] = 0.1
    push = [[0.3, 0.0, 0.1, 4.0, 1.0, -2.0]]
    for frame in ("body", "world", "center"):
        simulation = da.Simulation(model, q, contact="rigid", sensors=[JointWrench()], external_frame=frame)
        simulation.step(steps=3, external_forces=push)
        assert np.abs(simulation.v).max() > 1e-3
        assert np.abs(simulation.sensors["joint_wrench"]).max() < 2e-3
        assert np.abs(simulation.contacts.force).max() > 10.0


def test_an_imu_at_rest_feels_the_ground_and_in_flight_nothing():
    model = ball()
    q = model.neutral()
    q[2], q[3:] = 0.1, [math.cos(0.3), math.sin(0.3), 0.0, 0.0]
    resting = da.Simulation(model, q, contact="rigid", sensors=[Imu("ball")])
    resting.step(steps=50)
    turned = GRAVITY * np.array([math.sin(0.0), math.sin(0.6), math.cos(0.6)])
    np.testing.assert_allclose(resting.sensors["imu"], [0, 0, 0, *turned], atol=1e-3)
    q[2] = 5.0
    flying = da.Simulation(model, q, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], contact="rigid", sensors=[Imu("ball")])
    flying.step(steps=20)
    np.testing.assert_allclose(flying.sensors["imu"], [1, 2, 3, 0, 0, 0], atol=1e-6)


def test_contact_forces_and_touch_of_a_ball_that_slides():
    model = ball()
    q = model.neutral()
    q[2] = 0.1
    sensors = [
        ContactForce(["ball", "skin", "ground"]),
        Touch("ball"),
        FrameVelocity("ball"),
        FramePose("ball"),
    ]
    simulation = da.Simulation(model, q, [0, 0, 0, 3.0, 0, 0], contact="rigid", dt=0.001, sensors=sensors)
    simulation.step(steps=20)
    force = simulation.sensors["contact_force"]
    assert force[0, 2] == pytest.approx(1.5 * GRAVITY, rel=1e-3)
    assert force[0, 0] < -1.0  # friction
    assert same(force[0], force[1])
    assert np.array_equal(force[2], -force[0])
    assert simulation.sensors["touch"][0] == pytest.approx(force[0, 2])
    np.testing.assert_allclose(force[0], simulation.contacts.force.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(simulation.sensors["frame_pose"][:3], simulation.q[:3], atol=1e-12)
    assert simulation.sensors["frame_velocity"][4] == pytest.approx(0.0, abs=1e-9)
    assert 0.0 < simulation.sensors["frame_velocity"][3] < 3.0


def test_air_time_is_that_of_a_fall_and_of_a_bounce():
    model = ball(restitution=1.0)
    q = model.neutral()
    height, dt = 0.5, 1e-3
    q[2] = 0.1 + height
    fall = math.sqrt(2.0 * height / GRAVITY)
    simulation = da.Simulation(model, q, contact="rigid", dt=dt, sensors=[FootAirTime("ball")])
    simulation.step(steps=round(0.9 * fall / dt))
    now, last = simulation.sensors["foot_air_time"][0]
    assert now == pytest.approx(0.9 * fall, abs=dt)
    assert last == 0.0
    simulation.step(steps=round(0.3 * fall / dt))
    now, last = simulation.sensors["foot_air_time"][0]
    assert last == pytest.approx(fall, abs=2 * dt)
    assert now == pytest.approx(0.2 * fall, abs=4 * dt)
    simulation.step(steps=round(2.0 * fall / dt))
    assert simulation.sensors["foot_air_time"][0, 1] == pytest.approx(2.0 * fall, abs=4 * dt)
    simulation.reset()
    simulation.step()
    assert simulation.sensors["foot_air_time"][0] == pytest.approx([dt, 0.0])


def height_and_speed(end):
    here = end.motion("ball")
    return [[here.pose.p.z, here.velocity.linear.norm()], [end.controls[3], end.time]]


def test_a_reading_of_your_own_has_the_state_the_controls_and_the_contact():
    model = ball()
    q = model.neutral()
    q[2] = 0.1
    factor = [2.0]
    sensors = {
        "mine": Reading(height_and_speed),
        "up": Reading(lambda end: factor[0] * end.contact_wrenches[0].linear.z),
    }
    simulation = da.Simulation(model, q, contact="rigid", dt=0.002, sensors=sensors, time=1.0)
    u = [0, 0, 0, 5.0, 0, 0]
    simulation.step(u, steps=10)
    mine = simulation.sensors["mine"]
    expected = [[simulation.q[2], np.linalg.norm(simulation.v[3:])], [5.0, 1.02]]
    np.testing.assert_allclose(mine, expected, rtol=1e-9)
    assert simulation.sensors["up"] == pytest.approx(2.0 * 1.5 * GRAVITY, rel=5e-3)
    factor[0] = 3.0  # what a function reads is noticed
    again = da.Simulation(model, q, contact="rigid", dt=0.002, sensors=sensors)
    again.step(u, steps=10)
    assert again.sensors["up"] == pytest.approx(3.0 * 1.5 * GRAVITY, rel=5e-3)


@pytest.mark.parametrize("batch", [(), (5,)])
def test_readings_of_a_rollout_are_those_of_a_simulation_and_change_no_step(batch):
    model = ball(restitution=0.6)
    q = np.tile(model.neutral(), (*batch, 1)) if batch else model.neutral()
    q[..., 2] = 0.15
    v = np.random.default_rng(0).normal(size=(*batch, 6))
    sensors = {
        "imu": Imu("ball", gyro_noise=0.1, accelerometer_walk=0.2),
        "air": FootAirTime("ball"),
        "noisy": JointState(noise=0.01),
        "height": Reading(lambda end: end.q[2]),
    }
    options = {"contact": "rigid", "dt": 0.003}
    watched = da.rollout(model, q, v, steps=60, every=20, observe=[sensors, "energy"], seed=7, **options)
    plain = da.rollout(model, q, v, steps=60, every=20, **options)
    assert same(watched.q, plain.q)
    simulation = da.Simulation(model, q, v, sensors=sensors, seed=7, **options)
    for frame in range(1, 4):
        simulation.step(steps=20)
        for name in sensors:
            at = (*(slice(None),) * len(batch), frame)
            assert same(simulation.sensors[name], watched.observed[name][at]), name
    assert np.isnan(watched.observed["height"][..., 0]).all()
    assert same(simulation.sensors["height"], simulation.q[..., 2])
    simulation.reset()
    assert np.all(simulation.sensors["air"] == 0.0)


def test_noise_is_normal_and_its_own_for_each_sample_and_reading():
    model = ball()
    samples = 4000
    q = np.tile(model.neutral(), (samples, 1))
    q[:, 2] = 50.0
    sensor = Imu("ball", gyro_noise=0.2, accelerometer_noise=0.5)
    simulation = da.Simulation(model, q, dt=0.001, sensors=[sensor], seed=3)
    found = []
    for _ in range(10):
        simulation.step()
        found.append(simulation.sensors["imu"].copy())
    noise = np.array(found) / [0.2, 0.2, 0.2, 0.5, 0.5, 0.5]
    flat = np.sort(noise.ravel())
    expected = np.array([0.5 * (1.0 + math.erf(x / math.sqrt(2.0))) for x in flat[::10]])
    steps = np.arange(len(flat))[::10] / len(flat)
    assert np.abs(expected - steps).max() < 1.63 / math.sqrt(flat.size)  # Kolmogorov and Smirnov, 1 %
    rows = noise.transpose(0, 2, 1).reshape(60, samples)
    bound = 4.5 / math.sqrt(samples)
    assert np.abs(np.corrcoef(rows) - np.eye(60)).max() < bound
    columns = noise.transpose(1, 0, 2).reshape(samples, 60)
    assert np.abs(np.corrcoef(columns[:100]) - np.eye(100)).max() < 5.0 / math.sqrt(60)


def test_random_numbers_do_not_depend_on_the_batch_nor_on_resets():
    model = ball()
    q = np.tile(model.neutral(), (6, 1))
    q[:, 2] = 5.0
    sensors = [JointState("velocity", noise=1.0)]
    simulation = da.Simulation(model, q, sensors=sensors, seed=11)
    simulation.step()
    first = simulation.sensors["joint_state"].copy()
    simulation.reset()
    simulation.step()
    assert not np.any(simulation.sensors["joint_state"] == first)
    again = da.Simulation(model, q.reshape(2, 3, 7), sensors=sensors, seed=11)
    again.step()
    assert same(again.sensors["joint_state"].reshape(6, 6), first)
    own = da.Simulation(model, q, sensors=sensors, seed=[5, 6, 7, 5, 6, 7])
    own.step()
    assert same(own.sensors["joint_state"][:3], own.sensors["joint_state"][3:])
    alone = da.Simulation(model, q[1], sensors=sensors, seed=np.array(6))
    state = own.state()["stream"]
    assert state.shape == (6, 2)
    assert alone.batch == ()
    with pytest.raises(ArgumentError, match="seed"):
        da.Simulation(model, q, sensors=sensors, seed=-1)


def test_a_bias_walks_with_the_square_root_of_time():
    model = ball()
    samples = 3000
    q = np.tile(model.neutral(), (samples, 1))
    q[:, 2] = 500.0
    simulation = da.Simulation(model, q, dt=0.01, sensors=[Imu("ball", gyro_walk=0.3)])
    spread = []
    for _ in range(2):
        simulation.step(steps=100)
        spread.append(simulation.sensors["imu"][:, :3].std())
    assert spread[0] == pytest.approx(0.3, rel=0.03)
    assert spread[1] == pytest.approx(0.3 * math.sqrt(2.0), rel=0.03)


def test_words_are_even_in_pairs_of_neighbours():
    count, classes = 1 << 18, 64
    counter = np.arange(count, dtype=float)
    floors = np.vectorize(lambda key: key)  # the stream of another sample
    keys = [tuple(floors(key)) for key in stream_keys(5, (2,))]

    def evenness(x, y):
        table = np.histogram2d(x, y, bins=classes, range=[[0, 1], [0, 1]])[0]
        mean = count / classes**2
        return ((table - mean) ** 2 / mean).sum() / (classes**2 - 1)

    a, b = uniform_pair(keys[0], counter, 0)
    c, _ = uniform_pair(keys[0], counter, 1)
    d, _ = uniform_pair(keys[1], counter, 0)
    for x, y in ((a, b), (a[:-1], a[1:]), (b[:-1], b[1:]), (a, c), (a, d)):
        assert abs(evenness(x, y) - 1.0) < 0.12  # five standard deviations


def test_files_hold_sensors_and_random_streams(tmp_path):
    model = ball()
    q = np.tile(model.neutral(), (3, 1))
    q[:, 2] = 0.3
    sensors = {"imu": Imu("ball", gyro_noise=0.1, gyro_walk=0.3), "air": FootAirTime(["ball"])}
    simulation = da.Simulation(model, q, contact="rigid", sensors=sensors, seed=4)
    simulation.step(steps=60)
    simulation.save(tmp_path / "here.npz")
    found = da.Simulation.load(tmp_path / "here.npz", model)
    for each in (simulation, found):
        each.step(steps=60)
    for name in sensors:
        assert same(found.sensors[name], simulation.sensors[name])
    own = da.Simulation(model, sensors=[Reading(lambda end: end.q[2])])
    own.save(tmp_path / "own.npz")
    with pytest.raises(ArgumentError, match="sensors"):
        da.Simulation.load(tmp_path / "own.npz", model)


class Mine(Sensor):
    label = "mine"

    def shape(self, model):
        return ()

    def read(self, end, memory, draw):
        return end.q[0]


def test_sensors_that_do_not_fit_are_refused():
    model = ball()
    for sensor, error in (
        (Imu("bal"), UnknownNameError),
        (Touch("foot"), UnknownNameError),
        (JointState("position", "knee"), UnknownNameError),
        (FramePose("ball", "base"), UnknownNameError),
        (Mine(), DtypeError),
        ("imu", DtypeError),
    ):
        with pytest.raises(error):
            da.Simulation(model, sensors=[sensor])
    with pytest.raises(UnknownNameError, match="torque"):
        JointState("force")
    with pytest.raises(ArgumentError, match="gyro_noise"):
        Imu("ball", gyro_noise=-1.0)
    with pytest.raises(ArgumentError, match="name of two"):
        da.Simulation(model, sensors=[Imu("ball"), Imu("world")])
    with pytest.raises(ArgumentError, match="taken"):
        da.rollout(model, model.neutral(), np.zeros(6), steps=1, observe={"energy": Imu("ball")})
    with pytest.raises(ArgumentError, match="contact_wrenches"):
        da.Simulation(
            model, contact="rigid", sensors=[Reading(lambda end: end.contact_forces(["ball"])[0][1])]
        )
    with pytest.raises(ModelError, match="JointWrench"):
        da.Simulation(da.models.four_bar(), sensors=[JointWrench()])
