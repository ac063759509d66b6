"""What people do wrong with rollouts, and what they then read."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import (
    ArgumentError,
    DalembertError,
    DtypeError,
    ModelError,
    ShapeError,
    UnknownNameError,
)
from dalembert.simulation import SimulationWarning

SOLID = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))


def pendulum(**given):
    options = {"q0": [0.1], "v0": [0.0], "steps": 3, "dt": 0.01} | given
    return da.rollout(da.models.pendulum(), **options)


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"callback": lambda t, q, v: None}, DtypeError, "the callback returned None"),
        ({"callback": lambda t, q, v: 1j}, DtypeError, "complex"),
        ({"callback": lambda t, q, v: ["a"]}, DtypeError, "the callback returned"),
        ({"callback": lambda t, q, v: [0.0, 1.0]}, ShapeError, r"shape \(2,\); expected \(1,\)"),
        ({"callback": 3}, ArgumentError, "callback is 3; give a function"),
        ({"controls": lambda model, t, q, v: None}, DtypeError, "the policy returned None"),
        ({"controls": lambda model, t, q, v: ["a"]}, DtypeError, "the policy returned 'a'"),
        ({"controls": lambda model, t, q, v: -q[0]}, DtypeError, "the policy returned one number"),
        ({"controls": lambda model, t, q, v: [0.0, 0.0]}, ShapeError, "returned 2 joint forces"),
        ({"progress": True}, ArgumentError, "progress is True; give a function"),
        ({"external_frame": "com"}, UnknownNameError, "external_frame"),
        ({"start": [1.0]}, ArgumentError, "start is"),
        ({"time": np.inf}, ArgumentError, "time is inf"),
        ({"time": np.zeros(2), "v0": np.zeros((3, 1))}, ShapeError, r"v0 \(3,\), time \(2,\)"),
        ({"check": "never"}, UnknownNameError, 'check "never"'),
        ({"out": np.zeros((4, 1))}, ArgumentError, "out holds 1 arrays, but there are 2 results: q, v"),
        ({"out": (np.zeros((4, 1)), np.zeros((3, 1)))}, ShapeError, r"out for v: expected shape \(4, 1\)"),
        ({"q0": np.zeros((2, 1)), "v0": np.zeros((3, 1))}, ShapeError, r"q0 \(2,\), v0 \(3,\); they must"),
        ({"q0": np.zeros((2, 1)), "dt": np.full(3, 0.01)}, ShapeError, r"q0 \(2,\), dt \(3,\); they must"),
        ({"q0": np.zeros((2, 1)), "controls": np.zeros((5, 1, 1))}, ShapeError, r"controls \(5,\)"),
        ({"steps": 10**15}, ArgumentError, "every="),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(given, kind, text):
    with pytest.raises(kind, match=text):
        pendulum(**given)


def test_times_of_any_kind_of_number_begin_a_rollout():
    for time in (2, 2.0, np.float32(2.0), np.int64(2)):
        np.testing.assert_allclose(pendulum(time=time).time, [2.0, 2.01, 2.02, 2.03])
        with pytest.warns(DeprecationWarning, match="start is now called time"):
            np.testing.assert_allclose(pendulum(start=time).time, [2.0, 2.01, 2.02, 2.03])


def test_samples_begin_at_times_of_their_own():
    policy = lambda model, t, q, v: [3.0 * t - q[0]]
    found = pendulum(controls=policy, time=[0.0, 2.0])
    for k, time in enumerate((0.0, 2.0)):
        alone = pendulum(controls=policy, time=time)
        np.testing.assert_allclose(found.time[k], alone.time)
        np.testing.assert_allclose(found.q[k], alone.q, rtol=1e-13)


def test_frames_are_written_to_given_arrays():
    out = np.full((2, 4, 1), 7.0), np.full((2, 4, 1), 7.0)
    found = pendulum(q0=[[0.1], [0.2]], out=out)
    assert found.q is out[0]
    assert found.v is out[1]
    np.testing.assert_array_equal(out[0], pendulum(q0=[[0.1], [0.2]]).q)


def test_a_wrong_start_is_refused_or_flagged_or_not_checked():
    """Not a number, a quaternion off unit norm, an open loop."""
    ball = da.ModelBuilder()
    ball.add_body("ball", "world", da.Spherical(), inertia=SOLID)
    bar = da.models.four_bar()
    closed = da.constraints.close_loops(bar, bar.neutral())
    for model, good, bad in (
        (da.models.pendulum(), [0.1], [np.nan]),
        (ball.build(), [1.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]),
        (bar, closed, closed + 0.2),
    ):
        given = {"q0": np.array([good, bad]), "v0": np.zeros(model.nv), "steps": 3, "dt": 0.001}
        with pytest.raises(DalembertError):
            da.rollout(model, **given)
        with pytest.warns(RuntimeWarning, match="1 of 2 samples failed, the first at step 0, sample"):
            found = da.rollout(model, **given, check="flag", observe="energy")
        assert found.failed_at.tolist() == [-1, 0]
        assert "the start is not finite" in found.cause[1]
        assert np.isnan(found.q[1]).all()
        assert np.isnan(found.v[1]).all()
        assert np.isfinite(found.q[0]).all()
        assert np.isfinite(found.observed["energy"][0]).all()
        alone = da.rollout(model, good, given["v0"], steps=3, dt=0.001)
        np.testing.assert_allclose(found.q[0], alone.q, rtol=1e-12, atol=1e-12)
    with pytest.warns(RuntimeWarning, match="the step is not finite"):
        pendulum(q0=[np.nan], check="off")


def test_external_forces_that_are_not_finite_are_the_cause():
    forces = np.zeros((3, 1, 6))
    forces[1, 0, 4] = np.nan
    with pytest.warns(RuntimeWarning, match="step 1: external forces are not finite"):
        found = pendulum(external_forces=forces)
    assert (int(found.failed_at), str(found.cause)) == (1, "external forces are not finite")


def massless(joint, inertia=None):
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    builder.add_body("carrier", "world", da.Prismatic((0.0, 0.0, 1.0)), inertia=SOLID)
    builder.add_body("empty", "carrier", joint, inertia=inertia)
    return builder.build()


@pytest.mark.parametrize("contact", [None, "rigid", "compliant"])
@pytest.mark.parametrize("inertia", [None, da.RigidInertia(1.0, (0.0, 0.0, 0.2), np.zeros((3, 3)))])
def test_joints_that_move_nothing_are_refused_with_contact_too(contact, inertia):
    with pytest.raises(ModelError, match='joint "empty"'):
        da.rollout(
            massless(da.Revolute((0.0, 0.0, 1.0)), inertia), [0.0, 0.0], [0.0, 0.0], steps=2, contact=contact
        )


def test_a_point_mass_on_the_axis_of_a_hinge_moves_with_contact():
    """A hinge that carries a slide: no inertia about the axis in the neutral position alone."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_body("arm", "world", da.Revolute((0.0, 0.0, 1.0)))
    point = da.RigidInertia(2.0, (0.0, 0.0, 0.0), np.zeros((3, 3)))
    builder.add_body("point", "arm", da.Prismatic((1.0, 0.0, 0.0)), inertia=point)
    found = da.rollout(builder.build(), [0.0, 1.0], [1.0, 0.0], steps=1000, dt=0.001, contact="rigid")
    x = found.q[:, 1] * np.cos(found.q[:, 0])  # it flies straight on
    np.testing.assert_allclose(x, 1.0, atol=2e-3)


def test_energy_and_poses_are_those_of_the_parameters(tmp_path):
    """A trajectory knows the values that it was simulated with."""
    model = da.models.double_pendulum()
    first = model.bodies[0].name
    joint = model.bodies[1].joint_name
    far = np.array(model.value(f"{joint}.placement"))
    far[:, 3] *= 2.0
    values = {f"{first}.mass": [1.0, 5.0], f"{joint}.placement": far}
    both = da.rollout(model, [0.5, 0.3], [0.2, -0.1], steps=5, dt=0.01, parameters=values, observe="energy")
    both.save(tmp_path / "run.npz")
    for found in (both, da.Trajectory.load(tmp_path / "run.npz"), both[::-1][::-1]):
        np.testing.assert_allclose(found.energy(), both.observed["energy"], rtol=1e-13)
        for k, mass in enumerate(values[f"{first}.mass"]):
            own = model.with_values({f"{first}.mass": mass, f"{joint}.placement": far})
            alone = da.rollout(own, [0.5, 0.3], [0.2, -0.1], steps=5, dt=0.01)
            np.testing.assert_allclose(found.energy()[k], alone.energy(), rtol=1e-12)
            np.testing.assert_allclose(found[k].energy(), alone.energy(), rtol=1e-12)
            np.testing.assert_allclose(found.poses().translation[k], alone.poses().translation, atol=1e-12)
            assert found[k].simulated_model().value(f"{first}.mass") == mass
            assert found[k].clip().model == found[k].simulated_model()
    with pytest.raises(ArgumentError, match="one sample"):
        both.simulated_model()
    held = da.rollout(model, [0.5, 0.3], [0.2, -0.1], steps=5, dt=0.01, parameters={f"{first}.mass": 5})
    assert held.simulated_model().value(f"{first}.mass") == 5.0
    np.testing.assert_allclose(held.energy()[0], held.observed.get("energy", held.energy())[0])


def test_loops_are_closed_for_the_parameters_of_each_sample():
    """A start that closes the loop of the sample's own lengths is no error, one that does not is."""
    model = da.models.four_bar()
    q, v = da.constraints.close_loops(model, np.array(model.neutral()), np.zeros(model.nv))
    joint = model.bodies[-1].joint_name
    other = np.array(model.value(f"{joint}.placement"))
    other[:, 3] *= 1.2
    fitting, _ = da.constraints.close_loops(model.with_values({f"{joint}.placement": other}), q, v)
    found = da.rollout(model, fitting, v, steps=3, dt=0.001, parameters={f"{joint}.placement": other})
    assert not found.failed
    with pytest.raises(DalembertError, match="loops or constraints are open"):
        da.rollout(model, q, v, steps=3, dt=0.001, parameters={f"{joint}.placement": other})


def test_time_steps_of_one_axis_of_a_batch():
    model = da.models.pendulum()
    q = np.linspace(0.1, 0.6, 6).reshape(3, 2, 1)
    found = da.rollout(model, q, [0.0], steps=4, dt=[0.01, 0.02], every=2, observe="energy")
    assert found.time.shape == (3, 2, 3)
    np.testing.assert_allclose(found[2, 1].time, [0.0, 0.04, 0.08])
    np.testing.assert_array_equal(
        found[2, 1].q, da.rollout(model, q[2, 1], [0.0], steps=4, dt=0.02, every=2).q
    )
    np.testing.assert_allclose(found.energy(), found.observed["energy"], rtol=1e-14)


def test_trajectories_are_iterated_by_samples():
    one = pendulum()
    with pytest.raises(DtypeError, match="one sample"):
        list(one)
    three = pendulum(q0=[[0.1], [0.2], [0.3]])
    assert [float(sample.q[0, 0]) for sample in three] == [0.1, 0.2, 0.3]


def test_names_of_observers_are_names_of_their_own(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(DtypeError, match="observe has the name 3"):
        pendulum(observe={3: lambda model, t, q, v: q[0]})
    for name in ("q", "q_0", "time"):
        found = pendulum(observe={name: lambda model, t, q, v: [2.0 * q[0], v[0]]})
        with pytest.raises(ArgumentError, match=f'"{name}'):
            found.save(tmp_path / "run.parquet")
    assert not (tmp_path / "run.parquet").exists()


def test_damaged_files_are_named(tmp_path):
    """Whatever byte is wrong: a file that cannot be read is an error of its own kind."""
    pendulum(steps=200).save(tmp_path / "whole.npz")
    content = (tmp_path / "whole.npz").read_bytes()
    rng = np.random.default_rng(0)
    wrong = 0
    for case in range(120):
        damaged = bytearray(content)
        if case % 3 == 0:
            damaged = damaged[: rng.integers(len(content))]
        else:
            for place in rng.integers(len(content), size=5):
                damaged[place] = rng.integers(256)
        (tmp_path / "run.npz").write_bytes(bytes(damaged))
        try:
            da.Trajectory.load(tmp_path / "run.npz")
        except DalembertError as error:
            wrong += "run.npz" in str(error)
    assert wrong > 60


def test_contact_is_observed_where_there_is_contact():
    for name in ("contact_forces", "contact_work"):
        with pytest.raises(ArgumentError, match=f'"{name}" .*contact='):
            pendulum(observe=name)


def test_trajectories_keep_what_was_given_when_the_caller_goes_on_using_it():
    """A buffer of controls that is filled anew for every rollout."""
    controls, held, masses = np.ones((3, 1)), np.ones(1), np.array([1.0, 2.0])
    found = [pendulum(controls=controls, parameters={"bob.mass": masses}), pendulum(controls=held)]
    energy = found[0].energy()
    for array in (controls, held, masses):
        array[:] = 7.0
    for trajectory in found:
        np.testing.assert_array_equal(trajectory.tau, np.ones_like(trajectory.tau))
    np.testing.assert_array_equal(found[0].energy(), energy)


def limited(upper: float = 0.5) -> da.Model:
    """A rod that falls from the horizontal, with a joint limit on its way."""
    builder = da.ModelBuilder()
    rod = da.RigidInertia(1.0, (0.5, 0.0, 0.0), (0.01, 1 / 12, 1 / 12))
    limits = da.Limits(-1.0, upper)
    builder.add_body("rod", "world", da.Revolute((0, 1, 0)), "hinge", inertia=rod, limits=limits)
    return builder.build()


def test_joints_that_end_beyond_limits_without_contact_are_reported() -> None:
    with pytest.warns(
        SimulationWarning, match=r'joint "hinge" ended beyond its limits, -1 to 0.5; .*"rigid"'
    ):
        fall = da.rollout(limited(), [0.0], [0.0], steps=400, dt=1e-3)
    assert fall.q[-1, 0] > 0.6
    with warnings.catch_warnings():
        warnings.simplefilter("error", SimulationWarning)
        held = da.rollout(limited(), [0.0], [0.0], steps=400, dt=1e-3, contact="rigid")
        assert held.q[-1, 0] < 0.501  # the remedy that the warning names
        da.rollout(limited(np.inf), [0.0], [0.0], steps=400, dt=1e-3)
        da.rollout(limited(), [0.0], [0.0], steps=100, dt=1e-3)
