"""A simulation goes on where it was: pieces are one rollout, bit for bit, and so are files of it."""

import copy
import math
import signal
import threading
import warnings

import numpy as np
import pytest

import dalembert as da
from dalembert.control import Actuators, Servo
from dalembert.errors import (
    ArgumentError,
    DtypeError,
    FileError,
    ModelError,
    ShapeError,
    StateError,
    UnknownNameError,
)
from dalembert.simulation import SimulationWarning

SLOPE = math.radians(20.0)


def box_on_slope(slope=SLOPE):
    """A box on a plane, seen along the plane: gravity leans."""
    builder = da.ModelBuilder(gravity=(9.81 * math.sin(slope), 0.0, -9.81 * math.cos(slope)))
    box = da.shapes.Box((0.2, 0.2, 0.2), friction=(0.8, 0.0, 0.0))
    builder.add_body("box", joint=da.Free(), inertia=box.inertia(mass=1.0), shapes=[box])
    return builder.build().with_ground()


def driven_arm():
    """Two links over a plane, which a ball at the elbow meets when they hang; a servo and a motor."""
    builder = da.ModelBuilder()
    rod = da.RigidInertia(1.0, (0.2, 0.0, 0.0), (0.002, 0.02, 0.02))
    ball = da.shapes.Sphere(0.05)
    builder.add_body("upper", "world", da.Revolute((0, 1, 0)), "shoulder", inertia=rod)
    builder.add_body(
        "lower",
        "upper",
        da.Revolute((0, 1, 0)),
        "elbow",
        placement=da.Transform.from_rotation_translation(np.eye(3), (0.4, 0.0, 0.0)),
        inertia=rod,
        shapes=[ball],
    )
    builder.add_actuator("servo", {"shoulder": 1.0}, gain=40.0, bias=(0.0, -40.0, -2.0))
    builder.add_actuator("motor", {"elbow": 1.0})
    return builder.build().with_ground(-0.1)


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def starts(model, batch, seed=3):
    """Moving states near the ground."""
    rng = np.random.default_rng(seed)
    q = np.broadcast_to(model.neutral(), (*batch, model.nq)).copy()
    if model.nq > 6:
        q[..., 2] = 0.11 + 0.02 * rng.random(batch)
    v = 0.5 * rng.normal(size=(*batch, model.nv))
    return q, v


def policy(model, t, q, v):
    return [-3.0 * x + da.scalar.sin(5.0 * t) for x in v]


CASES = {
    "free": (driven_arm, {"integrator": "rk4"}),
    "rigid": (box_on_slope, {"contact": "rigid"}),
    "compliant": (box_on_slope, {"contact": "compliant"}),
    "servo": (driven_arm, {"controls": Servo(kp=30.0, kd=1.0), "contact": "rigid"}),
    "stable servo": (driven_arm, {"controls": Servo(kp=30.0, kd=1.0, v_ref=[0.1, 0.2])}),
    "actuators": (driven_arm, {"controls": Actuators(), "contact": "rigid"}),
    "policy": (driven_arm, {"controls": policy}),
    "prescribed": (driven_arm, {"prescribed": {"elbow": lambda model, t: [da.scalar.sin(3.0 * t)]}}),
}


def given_to_rollout(name, options, u):
    """The same controls for all steps, as `da.rollout` takes them."""
    held = None if u is None else u[..., np.newaxis, :]
    if "servo" in name:
        servo = options["controls"]
        return {**options, "controls": Servo(kp=servo.kp, kd=servo.kd, q_ref=held, v_ref=servo.v_ref)}
    if name == "actuators":
        return {**options, "controls": Actuators(held)}
    return options if held is None else {**options, "controls": held}


@pytest.mark.parametrize("batch", [(), (5,), (2, 7)])
@pytest.mark.parametrize("name", CASES)
def test_pieces_are_one_rollout_bit_for_bit(name, batch):
    make, options = CASES[name]
    model = make()
    q, v = starts(model, batch)
    u = None
    if name not in ("policy", "prescribed"):
        size = model.nq if "servo" in name else model.nv
        u = 0.3 * np.random.default_rng(1).normal(size=(*batch, size))
    whole = da.rollout(model, q, v, steps=100, dt=0.004, **given_to_rollout(name, options, u))
    pieces, once = (da.Simulation(model, q, v, dt=0.004, **options) for _ in range(2))
    for k in range(10):
        pieces.step(u if k < 3 else None, steps=10)
    once.step(u, steps=100)
    assert same(pieces.q, whole.q[..., -1, :])
    assert same(pieces.v, whole.v[..., -1, :])
    assert same(pieces.tau, whole.tau[..., -1, :])
    assert np.allclose(pieces.time, 0.4, rtol=0.0, atol=1e-12)
    assert np.abs(np.asarray(pieces.q) - q).max() > 1e-3
    for key, array in once.state().items():
        assert same(pieces.state()[key], array), key


@pytest.mark.parametrize("contact", ["rigid", "compliant"])
def test_a_box_on_a_slope_rests_though_each_call_takes_ten_steps(contact):
    model = box_on_slope()
    q = model.neutral()
    q[2] = 0.1
    kept = da.Simulation(model, q, dt=0.005, contact=contact)
    kept.step(steps=200)
    place = kept.q[0].copy()
    for _ in range(100):
        kept.step(steps=10)
    assert abs(kept.q[0] - place) < 1e-4  # m; where each call forgets the contact, 15 mm
    forgetful = da.Simulation(model, q, dt=0.005, contact=contact)
    forgetful.set_state(kept.state())
    for _ in range(100):
        forgetful.reset(q=forgetful.q.copy(), v=forgetful.v.copy())
        forgetful.step(steps=10)
    assert abs(forgetful.q[0] - place) > 1e-3
    force = kept.contacts.force.sum(axis=-2)
    weight = 9.81 * np.array([-math.sin(SLOPE), 0.0, math.cos(SLOPE)])
    assert np.allclose(force, weight, atol=2e-3)


def test_arrays_are_the_same_from_step_to_step_and_what_is_written_there_counts():
    model = driven_arm()
    simulation = da.Simulation(model, np.zeros((3, 2)), dt=0.001)
    arrays = [simulation.q, simulation.v, simulation.time, simulation.tau]
    simulation.step([1.0, 2.0])
    simulation.q[1] = [0.4, -0.2]
    simulation.v[1] = [0.5, 0.6]
    expected = da.rollout(model, [0.4, -0.2], [0.5, 0.6], [1.0, 2.0], steps=4, dt=0.001)
    simulation.step(steps=4)
    assert all(a is b for a, b in zip(arrays, (simulation.q, simulation.v, simulation.time, simulation.tau)))
    assert same(simulation.q[1], expected.q[-1])
    assert same(simulation.tau, np.tile([1.0, 2.0], (3, 1)))
    assert not same(simulation.q[0], simulation.q[1])


def test_external_forces_act_in_their_call_alone():
    model = box_on_slope(slope=0.0)
    push = np.zeros((1, 6))
    push[0, 3] = 20.0
    q = model.neutral()
    q[2] = 0.5
    simulation = da.Simulation(model, q, dt=0.001, external_frame="center")
    state = simulation.q
    simulation.step(steps=5, external_forces=push)
    whole = da.rollout(
        model, q, np.zeros(6), steps=5, dt=0.001, external_forces=push, external_frame="center"
    )
    assert same(simulation.q, whole.q[-1])
    assert simulation.v[3] == pytest.approx(20.0 * 0.005)
    simulation.step(steps=5)
    assert simulation.v[3] == pytest.approx(20.0 * 0.005)
    assert state is simulation.q


@pytest.mark.parametrize("contact", [None, "rigid"])
def test_reset_samples_begin_anew_and_others_go_on(contact):
    model = box_on_slope()
    q, v = starts(model, (6,))
    simulation, other = (da.Simulation(model, q, v, dt=0.004, contact=contact) for _ in range(2))
    for each in (simulation, other):
        each.step(steps=30)
    mask = np.array([True, False, True, False, False, True])
    simulation.reset(mask)
    assert same(simulation.q[mask], q[mask])
    assert same(simulation.time, np.where(mask, 0.0, 30 * 0.004))
    assert np.all(simulation.contacts.force[mask] == 0.0) if contact else simulation.contacts is None
    simulation.step(steps=30)
    other.step(steps=30)
    assert same(simulation.q[~mask], other.q[~mask])
    fresh = da.Simulation(model, q, v, dt=0.004, contact=contact)
    fresh.step(steps=30)
    assert same(simulation.q[mask], fresh.q[mask])
    simulation.reset(mask, q=q[:3] + [0, 0, 1, 0, 0, 0, 0], v=v)  # a row for each chosen one; one for each
    assert same(simulation.q[mask][:, 2], q[:3, 2] + 1.0)
    assert same(simulation.v[mask], v[mask])
    simulation.reset()
    assert same(simulation.q, q)
    assert np.all(simulation.time == 0.0)


def test_parameters_are_drawn_anew_for_the_samples_that_are_reset():
    model = da.models.pendulum(length=1.0)
    masses = np.array([1.0, 2.0, 3.0])
    name = next(item for item in model.value_names() if item.endswith("mass"))
    simulation = da.Simulation(model, [0.3], parameters={name: masses}, dt=0.001)
    assert simulation.batch == (3,)
    assert same(simulation.parameters[name], masses)
    simulation.reset([False, True, False], parameters={name: 5.0})
    simulation.step([0.7], steps=50)
    expected = da.rollout(
        model, [0.3], [0.0], [0.7], steps=50, dt=0.001, parameters={name: np.array([1.0, 5.0, 3.0])}
    )
    assert same(simulation.q, expected.q[:, -1])
    simulation.reset()  # which keeps them
    assert same(simulation.parameters[name], [1.0, 5.0, 3.0])
    with pytest.raises(UnknownNameError, match="made with"):
        simulation.reset(parameters={"bob.friction": 1.0})


@pytest.mark.parametrize("name", CASES)
def test_a_file_goes_on_bit_for_bit(name, tmp_path):
    make, options = CASES[name]
    model = make()
    q, v = starts(model, (4,))
    simulation = da.Simulation(model, q, v, dt=0.004, time=1.5, **options)
    takes_controls = name not in ("policy", "prescribed")
    simulation.step(
        np.full(model.nq if "servo" in name else model.nv, 0.2) if takes_controls else None, steps=20
    )
    simulation.save(tmp_path / "here.npz")
    given = options if name in ("policy", "prescribed") else {}
    found = da.Simulation.load(tmp_path / "here.npz", make(), **given)
    for each in (simulation, found):
        each.step(steps=20)
    for key, array in simulation.state().items():
        assert same(found.state()[key], array), key
    for each in (simulation, found):
        each.reset()
    assert same(found.q, simulation.q)
    assert np.all(found.time == 1.5)


def test_files_of_other_models_and_functions_are_refused(tmp_path):
    model = driven_arm()
    simulation = da.Simulation(model, controls=policy)
    with pytest.raises(FileError, match="is saved as"):
        simulation.save(tmp_path / "here.txt")
    simulation.save(tmp_path / "here.npz")
    with pytest.raises(ArgumentError, match="controls=…"):
        da.Simulation.load(tmp_path / "here.npz", model)
    with pytest.raises(ModelError, match="another model"):
        da.Simulation.load(tmp_path / "here.npz", da.models.pendulum())
    with pytest.raises(ArgumentError, match="dt is in the file"):
        da.Simulation.load(tmp_path / "here.npz", model, dt=0.1)
    trajectory = da.rollout(model, [0.0, 0.0], [0.0, 0.0], steps=1)
    trajectory.save(tmp_path / "motion.npz")
    with pytest.raises(FileError, match="no simulation"):
        da.Simulation.load(tmp_path / "motion.npz", model)


def test_files_that_are_cut_or_changed_are_refused(tmp_path):
    model = box_on_slope()
    da.Simulation(model, contact=da.contact.Rigid(pairs=["box"])).save(tmp_path / "here.npz")
    with np.load(tmp_path / "here.npz") as file:
        arrays = dict(file)
    assert da.Simulation.load(tmp_path / "here.npz", model).contacts is not None

    def refused(**changes):
        changed = {name: array for name, array in {**arrays, **changes}.items() if array is not None}
        np.savez(tmp_path / "changed.npz", **changed)
        with pytest.raises(FileError):
            da.Simulation.load(tmp_path / "changed.npz", model)

    head = str(arrays["head"])
    for wrong in (
        head.replace("rigid", "stiff"),
        head.replace('"parameters": []', '"parameters": [3]'),
        "{}",
        "x",
    ):
        assert wrong != head
        refused(head=np.array(wrong))
    refused(memory=None)
    refused(memory=arrays["memory"][1:])
    refused(q=np.array(["a"]))
    refused(**{"start of v": None})
    (tmp_path / "changed.npz").write_bytes((tmp_path / "here.npz").read_bytes()[:-200])
    with pytest.raises(FileError):
        da.Simulation.load(tmp_path / "changed.npz", model)


def test_states_of_other_simulations_are_refused():
    model = driven_arm()
    simulation = da.Simulation(model, np.zeros((3, 2)))
    with pytest.raises(ShapeError, match="as many samples"):
        simulation.set_state(da.Simulation(model).state())
    with pytest.raises(UnknownNameError, match="ctrl"):
        simulation.set_state(da.Simulation(model, np.zeros((3, 2)), controls=Actuators()).state())
    with pytest.raises(DtypeError, match="set_state"):
        copy.deepcopy(simulation)


def test_failed_samples_stay_and_say_why():
    model = driven_arm()
    simulation = da.Simulation(model, np.zeros((3, 2)), dt=0.001)
    simulation.step(np.array([[0.0, 0.1], [np.nan, 0.0], [0.2, 0.0]]), steps=5)
    assert simulation.failed.tolist() == [False, True, False]
    assert "controls are not finite" in simulation.cause[1]
    assert same(simulation.q[1], [0.0, 0.0])
    assert simulation.time[1] == 0.0
    assert "1 failed" in repr(simulation)
    simulation.reset(simulation.failed)
    simulation.step([0.0, 0.1], steps=5)
    assert not simulation.failed.any()
    assert simulation.time[1] == pytest.approx(0.005)


def test_wrong_starts_are_refused_or_flagged():
    model = box_on_slope()
    q, v = starts(model, (3,))
    q[1, 3:] *= 1.1
    simulation = da.Simulation(model, q, v)
    before = simulation.state()
    with pytest.raises(StateError, match="sample \\(1,\\): a quaternion must have unit norm"):
        simulation.step()
    assert all(same(array, before[name]) for name, array in simulation.state().items())
    flagged = da.Simulation(model, q, v, check="flag")
    flagged.step(steps=3)
    assert flagged.failed.tolist() == [False, True, False]
    assert same(flagged.q[1], q[1])
    assert flagged.time.tolist() == pytest.approx([0.006, 0.0, 0.006])
    q[0, 0] = np.nan
    with pytest.raises(ArgumentError, match="not finite"):
        da.Simulation(model, q, v)
    good = da.Simulation(model, starts(model, (3,))[0])
    with pytest.raises(ArgumentError, match="not finite"):
        good.reset([True, False, False], v=[np.inf, 0, 0, 0, 0, 0])
    linkage = da.models.four_bar()
    with pytest.raises(StateError, match="close_loops"):
        da.Simulation(linkage, linkage.neutral() + 0.3)


def test_overlap_is_reported_once():
    model = box_on_slope()
    q = model.neutral()
    q[2] = 0.05
    simulation = da.Simulation(model, q, contact="compliant", dt=0.001)
    with pytest.warns(SimulationWarning, match="Simulation: shapes overlap at the start"):
        simulation.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulation.step()
        simulation.reset()
        simulation.step()


def test_tensors_in_and_out_share_memory():
    torch = pytest.importorskip("torch")
    model = driven_arm()
    q = torch.zeros((4, 2), dtype=torch.float32)
    simulation = da.Simulation(model, q, torch.ones((4, 2)))
    plain = da.Simulation(model, np.zeros((4, 2)), np.ones((4, 2)))
    u = torch.full((4, 2), 0.5, dtype=torch.float32)
    held = simulation.q
    simulation.step(u, steps=7)
    plain.step(np.full((4, 2), 0.5), steps=7)
    assert isinstance(held, torch.Tensor)
    assert held is simulation.q
    assert same(held.numpy(), plain.q)
    assert isinstance(simulation.failed, torch.Tensor)
    simulation.reset(torch.tensor([True, False, False, False]), q=torch.full((2,), 0.25))
    assert held[0].tolist() == [0.25, 0.25]
    with pytest.raises(DtypeError, match="detach"):
        simulation.step(u.requires_grad_())


def test_jax_arrays_are_taken():
    jax = pytest.importorskip("jax")
    model = driven_arm()
    simulation = da.Simulation(model, jax.numpy.zeros((4, 2)))
    simulation.step(jax.numpy.full((4, 2), 0.5), steps=3)
    plain = da.Simulation(model, np.zeros((4, 2)))
    plain.step(np.full((4, 2), 0.5), steps=3)
    assert isinstance(simulation.q, np.ndarray)
    assert same(simulation.q, plain.q)


class OnGpu:
    """An array that says that it is on a GPU."""

    @property
    def __cuda_array_interface__(self):
        return {"typestr": "<f8", "shape": (2,), "data": (0, False), "version": 3}


def test_arguments_that_do_not_fit_are_refused():
    model = driven_arm()
    simulation = da.Simulation(model, np.zeros((3, 2)))
    with pytest.raises(DtypeError, match="on a GPU"):
        da.Simulation(model, OnGpu())
    with pytest.raises(DtypeError, match="on a GPU"):
        simulation.step(OnGpu())
    with pytest.raises(ShapeError, match="controls: expected"):
        simulation.step(np.zeros(5))
    with pytest.raises(ShapeError, match="samples"):
        simulation.step(np.zeros((4, 2)))
    with pytest.raises(ShapeError, match="mask"):
        simulation.reset([True])
    with pytest.raises(ShapeError, match="reset: q has"):
        simulation.reset([True, True, False], q=np.zeros((4, 2)))
    with pytest.raises(ArgumentError, match="whole number"):
        simulation.step(steps=0)
    with pytest.raises(DtypeError, match="arrays of joint forces"):
        da.Simulation(model, controls=np.zeros(2))
    with pytest.raises(ArgumentError, match="without controls"):
        da.Simulation(model, controls=policy).step(np.zeros(2))
    with pytest.raises(DtypeError, match="must be a Model"):
        da.Simulation("arm")
    with pytest.raises(ArgumentError, match="semi-implicit"):
        da.Simulation(model, contact="rigid", integrator="rk4")
    with pytest.raises(ShapeError, match="batches"):
        da.Simulation(model, np.zeros((3, 2)), np.zeros((4, 2)))


def test_no_samples_take_steps():
    simulation = da.Simulation(driven_arm(), np.zeros((0, 2)), contact="rigid")
    simulation.step(steps=10)
    simulation.reset()
    assert simulation.q.shape == (0, 2)


def test_ctrl_c_ends_a_call_that_would_take_hours():
    model = box_on_slope()
    q, v = starts(model, (9,))
    simulation = da.Simulation(model, q, v, contact="rigid")
    simulation.step()
    main = threading.get_ident()
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            simulation.step(steps=10**12)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, previous)
    steps = round(simulation.time[0] / 0.002)
    assert steps > 1
    assert np.allclose(simulation.time, steps * 0.002)
    again = da.Simulation(model, q, v, contact="rigid")
    again.step(steps=steps)
    assert same(again.q, simulation.q)


def test_blocks_of_alike_samples_change_no_bit(monkeypatch):
    """Boxes that lie on different faces touch with different points."""
    model = box_on_slope()
    rng = np.random.default_rng(2)
    q = np.tile(model.neutral(), (40, 1))
    q[:, 2] = 0.18
    q[:, 3:] = rng.normal(size=(40, 4))
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1)[:, None]
    found = []
    for cost in (0.0, 1e9):
        monkeypatch.setattr("dalembert.simulation.alike_samples.SECONDS_PER_SAMPLE", cost)
        orders = []
        simulation = da.Simulation(model, q, contact="rigid", dt=0.004)
        run = simulation._run.steps
        form = run.form_blocks
        run.form_blocks = lambda order, form=form, orders=orders: (orders.append(order), form(order))
        for _ in range(15):
            simulation.step(steps=20)
        found.append(simulation.q.copy())
        assert bool(orders) == (cost == 0.0)
        assert all(sorted(order) == list(range(40)) for order in orders)
    assert same(*found)
