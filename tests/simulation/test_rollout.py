"""Rollouts without contact: the steps of `da.step`, one after another, whatever gives the forces."""

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import (
    ArgumentError,
    DtypeError,
    OutOfRangeError,
    ShapeError,
    StateError,
    UnknownNameError,
)
from dalembert.simulation import SimulationWarning

DT = 0.004


def start_of(model, batch=()):
    rng = np.random.default_rng(1)
    count = int(np.prod(batch))
    q = np.stack([model.random_state(k)[0] for k in range(count)]).reshape(*batch, model.nq)
    return q, rng.normal(size=(*batch, model.nv))


def by_steps(model, q, v, tau, dt=DT, **options):
    Q, V = [q], [v]
    for k in range(tau.shape[-2]):
        q, v = da.step(model, q, v, np.ascontiguousarray(tau[..., k, :]), dt, **options)
        Q.append(q)
        V.append(v)
    return np.stack(Q, axis=-2), np.stack(V, axis=-2)


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_a_rollout_is_its_steps(batch, integrator):
    """ANIM-SIMLOOP"""
    model = da.models.arm6()
    q, v = start_of(model, batch)
    tau = np.random.default_rng(2).normal(size=(*batch, 6, model.nv))
    found = da.rollout(model, q, v, tau, 6, DT, integrator=integrator)
    Q, V = by_steps(model, q, v, tau, integrator=integrator)
    np.testing.assert_array_equal(found.q, Q)
    np.testing.assert_array_equal(found.v, V)
    np.testing.assert_array_equal(found.tau, tau)
    np.testing.assert_allclose(found.time, DT * np.arange(7), rtol=1e-15)
    assert found.batch == batch
    assert not found.failed.any()
    thinned = da.rollout(model, q, v, tau, 6, DT, integrator=integrator, every=3)
    np.testing.assert_array_equal(thinned.q, Q[..., ::3, :])
    np.testing.assert_array_equal(thinned.tau, tau[..., 2::3, :])
    np.testing.assert_allclose(thinned.time, found.time[::3])


def test_forces_may_be_held_or_come_from_policies_and_callbacks():
    model = da.models.double_pendulum()
    q, v = start_of(model, (3,))
    held = np.array([0.3, -0.2])
    steady = da.rollout(model, q, v, held, 5, DT, integrator="semi_implicit")
    Q, _ = by_steps(model, q, v, np.broadcast_to(held, (3, 5, 2)))
    np.testing.assert_array_equal(steady.q, Q)
    own = np.arange(6.0).reshape(3, 1, 2)
    each = da.rollout(model, q, v, own, 5, DT)
    np.testing.assert_array_equal(each.q[1], da.rollout(model, q[1], v[1], own[1, 0], 5, DT).q)
    assert each.tau.shape == (3, 5, 2)

    def policy(model, t, q, v):
        return [2.0 * t - v[0], -3.0 * q[1]]

    def callback(t, q, v):
        return np.stack([2.0 * t - v[..., 0], -3.0 * q[..., 1]], axis=-1)

    traced = da.rollout(model, q, v, policy, 5, DT, time=1.5)
    called = da.rollout(model, q, v, steps=5, dt=DT, callback=callback, time=1.5)
    np.testing.assert_allclose(traced.q, called.q, rtol=0, atol=1e-15)
    np.testing.assert_allclose(traced.tau, called.tau, rtol=0, atol=1e-14)
    np.testing.assert_allclose(traced.tau[:, 0, 0], 3.0 - v[:, 0])
    assert traced.time[0] == 1.5
    longer = da.rollout(model, q, v, policy, 6, DT, time=1.5, every=3)
    np.testing.assert_array_equal(longer.q[:, 1], traced.q[:, 3])
    np.testing.assert_array_equal(longer.tau[:, 0], traced.tau[:, 2])


def test_time_steps_and_parameters_of_samples():
    model = da.models.pendulum()
    dt = np.array([0.001, 0.002])
    found = da.rollout(
        model, [0.5], [0.0], steps=4, dt=dt, parameters={"bob.mass": [1.0, 1.0]}, observe="energy"
    )
    assert found.time.shape == (2, 5)
    np.testing.assert_allclose(found.time[1], 0.002 * np.arange(5))
    for k in range(2):
        np.testing.assert_array_equal(found.q[k], da.rollout(model, [0.5], [0.0], steps=4, dt=dt[k]).q)
    pushed = da.rollout(
        model, [0.5], [0.0], [1.0], 4, 0.01, parameters={"bob.mass": [1.0, 5.0]}, observe="energy"
    )
    heavy = model.with_values({"bob.mass": 5.0})
    alone = da.rollout(heavy, [0.5], [0.0], [1.0], 4, 0.01)
    np.testing.assert_allclose(pushed.q[1], alone.q, rtol=1e-13)
    np.testing.assert_allclose(pushed.observed["energy"][1], alone.energy(), rtol=1e-13)


@pytest.mark.parametrize("frame", ["body", "world", "center"])
def test_external_forces_are_held_or_given_step_by_step(frame):
    model = da.models.double_pendulum()
    q, v = start_of(model)
    push = np.random.default_rng(3).normal(size=(4, len(model.bodies), 6))
    found = da.rollout(model, q, v, steps=4, dt=DT, external_forces=push, external_frame=frame)
    now, rate = q, v
    for k in range(4):
        wrench = push[k]
        if frame != "body":
            poses = da.forward_kinematics(model, now)
            R, p = poses.rotation, poses.translation
            at = (
                p
                if frame == "world"
                else [-r @ body.inertia.com.to_list() for r, body in zip(R, model.bodies)]
            )
            force = np.einsum("bji,bj->bi", R, wrench[:, 3:])
            moment = np.einsum("bji,bj->bi", R, wrench[:, :3] - np.cross(at, wrench[:, 3:]))
            wrench = np.concatenate([moment, force], axis=1)
        now, rate = da.step(model, now, rate, np.zeros(2), DT, external_forces=wrench, integrator="midpoint")
    np.testing.assert_allclose(found.q[-1], now, rtol=1e-12)
    held = da.rollout(model, q, v, steps=4, dt=DT, external_forces=push[0], external_frame=frame)
    same = np.broadcast_to(push[0], push.shape)
    again = da.rollout(model, q, v, steps=4, dt=DT, external_forces=same, external_frame=frame)
    np.testing.assert_array_equal(held.q, again.q)


def test_observers_see_every_frame():
    """ANIM-SIMLOOP"""
    model = da.models.double_pendulum()
    q, v = start_of(model, (2,))
    found = da.rollout(
        model,
        q,
        v,
        steps=6,
        dt=DT,
        every=2,
        observe=("energy", "momentum", {"both": lambda model, t, q, v: [q[0] + t, v[1]]}),
    )
    np.testing.assert_allclose(found.observed["energy"], found.energy(), rtol=1e-14)
    np.testing.assert_allclose(
        found.observed["momentum"], da.dynamics.centroidal_momentum(model, found.q, found.v), atol=1e-14
    )
    np.testing.assert_allclose(found.observed["both"][..., 0], found.q[..., 0] + found.time, atol=1e-15)
    np.testing.assert_array_equal(found.observed["both"][..., 1], found.v[..., 1])
    loop = da.models.four_bar()
    q, v = da.constraints.close_loops(loop, loop.neutral(), np.array([1.0, 0.0, 0.0]))
    closed = da.rollout(loop, q, v, steps=50, dt=0.001, observe="constraint_error")
    np.testing.assert_allclose(
        closed.observed["constraint_error"],
        da.constraints.constraint_error(loop, closed.q),
        rtol=0,
        atol=1e-14,
    )
    assert np.abs(closed.observed["constraint_error"]).max() < 1e-4


def test_a_sample_that_fails_stays_and_tells_while_others_go_on():
    model = da.models.double_pendulum()
    q, v = start_of(model, (5,))
    tau = np.zeros((5, 10, 2))
    tau[1, 4, 1] = np.nan
    tau[3, 6, 0] = np.inf
    tau[4, 2, 0] = 1e11
    with pytest.warns(SimulationWarning, match=r"3 of 5 samples failed, the first at step 2, sample \(4,\)"):
        found = da.rollout(model, q, v, tau, 10, DT)
    assert found.failed_at.tolist() == [-1, 4, -1, 6, 2]
    assert "not finite" in found.cause[1]
    assert "blown up" in found.cause[4]
    assert "3 failed" in repr(found)
    for sample in (0, 2):
        alone = da.rollout(model, q[sample], v[sample], tau[sample], 10, DT)
        np.testing.assert_array_equal(found.q[sample], alone.q)
    np.testing.assert_array_equal(found.q[1, 4:], np.broadcast_to(found.q[1, 4], (7, 2)))
    np.testing.assert_array_equal(found.v[3, 6:], np.broadcast_to(found.v[3, 6], (5, 2)))
    assert np.isfinite(found.q).all()
    assert found[1].failed_at == 4
    with pytest.warns(SimulationWarning, match="failed"):
        single = da.rollout(model, q[1], v[1], tau[1], 10, DT)
    np.testing.assert_array_equal(single.q, found.q[1])


def test_interrupts_keep_what_was_computed():
    model = da.models.double_pendulum()
    q, v = start_of(model)
    whole = da.rollout(model, q, v, steps=20, dt=DT)

    def stop(t, q, v):
        if t > 6.5 * DT:
            raise KeyboardInterrupt
        return np.zeros(2)

    with pytest.warns(SimulationWarning, match="interrupted after 7 steps"):
        part = da.rollout(model, q, v, steps=20, dt=DT, callback=stop, every=2)
    assert part.interrupted
    np.testing.assert_array_equal(part.q, whole.q[:7:2])
    assert part.time.shape == (4,)
    seen = []
    da.rollout(model, q, v, steps=20, dt=DT, progress=lambda done, steps: seen.append((done, steps)))
    assert seen[-1] == (20, 20)


def test_trajectories_in_files(tmp_path):
    model = da.models.double_pendulum()
    q, v = start_of(model, (2,))
    found = da.rollout(model, q, v, steps=5, dt=DT, observe="energy")
    found.save(tmp_path / "run.npz")
    back = da.Trajectory.load(tmp_path / "run.npz")
    assert back.model == model
    for name in ("time", "q", "v", "tau", "failed_at", "cause"):
        np.testing.assert_array_equal(getattr(back, name), getattr(found, name))
    np.testing.assert_array_equal(back.observed["energy"], found.observed["energy"])
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(da.errors.FileError, match=r"bad\.npz"):
        da.Trajectory.load(tmp_path / "bad.npz")
    with pytest.raises(da.errors.FileError, match="cannot be read"):
        da.Trajectory.load(tmp_path / "none.npz")
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(da.errors.FileError, match="no trajectory"):
        da.Trajectory.load(tmp_path / "other.npz")
    with pytest.raises(da.errors.FileError, match=r"\.npz"):
        found.save(tmp_path / "run.csv")
    with pytest.raises(da.errors.FileError, match="cannot be written"):
        found.save(tmp_path / "nowhere" / "run.npz")


def test_a_table_for_other_programs(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    model = da.models.double_pendulum()
    q, v = start_of(model, (2,))
    found = da.rollout(model, q, v, steps=3, dt=DT, observe=("energy", "momentum"))
    found.save(tmp_path / "run.parquet")
    table = parquet.read_table(tmp_path / "run.parquet")
    np.testing.assert_array_equal(table["q_1"].to_numpy(), found.q[..., 1].ravel())
    np.testing.assert_array_equal(table["energy"].to_numpy(), found.observed["energy"].ravel())
    assert {"sample", "frame", "time", "tau_0", "momentum_5"} <= set(table.column_names)


def test_parts_of_a_trajectory():
    model = da.models.humanoid()
    q, v = np.array(model.neutral()), np.zeros(model.nv)
    both = da.rollout(model, np.stack([q, q]), v, steps=6, dt=DT)
    one = both[1]
    assert len(one) == 7
    assert one.batch == ()
    assert one.duration == pytest.approx(6 * DT)
    np.testing.assert_array_equal(one.poses().translation, both.poses().translation[1])
    clip = one.clip()
    np.testing.assert_array_equal(clip.q, one.q)
    fall = np.asarray(clip.a[3])
    assert np.abs(np.linalg.norm(fall[3:6]) - 9.81) < 1e-6
    assert repr(both) == '<Trajectory of "humanoid" x 2: 7 frames, 0.024 s>'
    with pytest.raises(ArgumentError, match="one sample"):
        both.clip()
    with pytest.raises(OutOfRangeError, match="no sample 5"):
        both[5]
    with pytest.raises(OutOfRangeError, match="one sample"):
        one[0]


def test_bad_input_is_refused():
    model = da.models.double_pendulum()
    q, v = start_of(model)
    good = {"steps": 5, "dt": DT}
    for error, match, changed in (
        (ArgumentError, "dt must be positive", {"dt": -0.1}),
        (ArgumentError, "dt must be positive", {"dt": 0.0}),
        (ArgumentError, "dt must be positive", {"dt": np.nan}),
        (ArgumentError, "steps is 0", {"steps": 0}),
        (ArgumentError, "steps is -3", {"steps": -3}),
        (ArgumentError, "steps is 2.5", {"steps": 2.5}),
        (ArgumentError, "steps is True", {"steps": True}),
        (ArgumentError, "how many steps", {"steps": None}),
        (ArgumentError, "every is 0", {"every": 0}),
        (ArgumentError, "not a multiple of every=2", {"every": 2}),
        (ArgumentError, "start", {"start": np.inf}),
        (UnknownNameError, "semi_implicit", {"integrator": "semi"}),
        (UnknownNameError, "rigid", {"contact": "ridgid"}),
        (DtypeError, "contact is int", {"contact": 3}),
        (UnknownNameError, "energy", {"observe": "enrgy"}),
        (DtypeError, "observe holds", {"observe": (3,)}),
        (ArgumentError, "taken", {"observe": {"energy": lambda *a: a[1]}}),
        (ArgumentError, "2 results", {"observe": {"x": lambda model, t, q, v: (t, t)}}),
        (UnknownNameError, "external_frame", {"external_forces": np.zeros((2, 6)), "external_frame": "w"}),
        (ShapeError, "external_forces", {"external_forces": np.zeros((3, 2, 6))}),
        (ShapeError, r"\(…, 5, 2\)", {"controls": np.zeros((4, 2))}),
        (ShapeError, "controls", {"controls": np.zeros(3)}),
        (ShapeError, "policy returned 1", {"controls": lambda model, t, q, v: [0.0]}),
        (ShapeError, "callback returned", {"callback": lambda t, q, v: np.zeros(3)}),
        (ArgumentError, "not both", {"callback": lambda t, q, v: np.zeros(2), "controls": [0.0, 0.0]}),
        (ArgumentError, "callback", {"callback": 3}),
        (UnknownNameError, "nothing", {"parameters": {"nothing": 1.0}}),
    ):
        with pytest.raises(error, match=match):
            da.rollout(model, q, v, **{**good, **changed})
    with pytest.raises(ShapeError, match="q0"):
        da.rollout(model, [0.0], v, **good)
    with pytest.raises(ArgumentError, match=r"v0 of sample \(1,\)"):
        da.rollout(model, q, np.array([[0.0, 0.0], [np.nan, 0.0]]), **good)
    with pytest.raises(DtypeError, match="Model"):
        da.rollout("arm", q, v, **good)
    ball = da.models.humanoid()
    lying = np.array(ball.neutral())
    lying[3:7] *= 2.0
    with pytest.raises(StateError, match="quaternion"):
        da.rollout(ball, lying, np.zeros(ball.nv), **good)


def test_loops_must_be_closed_at_the_start():
    """A start whose velocities would open a loop is refused, and the remedy works."""
    model = da.models.four_bar()
    q, v = np.array(model.neutral()), np.array([1.0, 0.0, 0.0])
    with pytest.raises(StateError, match="velocities open loops"):
        da.rollout(model, q, v, steps=5, dt=DT)
    with pytest.raises(StateError, match=r"start of sample \(1,\) loops .* are open by"):
        da.rollout(model, np.stack([q, q + [0.1, 0.0, 0.0]]), np.zeros(3), steps=5, dt=DT)
    fitting = da.constraints.close_loops(model, q, v)
    assert np.isfinite(da.rollout(model, *fitting, steps=5, dt=DT).q).all()


def test_contacts_of_every_third_frame_are_those_of_all_frames():
    builder = da.ModelBuilder()
    inertia = da.RigidInertia(1.0, (0.0, 0.0, 0.0), np.eye(3) * 0.01)
    for name in ("lower", "upper"):
        builder.add_body(name, parent="world", joint=da.Free(), inertia=inertia)
        builder.add_shape(name, da.shapes.Box((0.2, 0.2, 0.2)))
    model = builder.build().with_ground(friction=0.8)
    rng = np.random.default_rng(3)
    q = np.tile(model.neutral(), (5, 1))
    q[:, 2], q[:, 9] = 0.15, 0.4
    v = rng.normal(size=(5, model.nv))
    options = {"dt": 0.004, "contact": "rigid"}
    for rows in (slice(0, 5), 0):
        all_frames = da.rollout(model, q[rows], v[rows], steps=90, **options)
        third = da.rollout(model, q[rows], v[rows], steps=90, every=3, **options)
        np.testing.assert_array_equal(third.q, all_frames.q[..., ::3, :])
        forces, gaps = all_frames.contacts.force.sum(axis=-2), all_frames.contacts.gap.min(axis=-1)
        assert np.abs(forces).max() > 1.0
        np.testing.assert_array_equal(third.contacts.force.sum(axis=-2), forces[..., 2::3, :])
        np.testing.assert_array_equal(third.contacts.gap.min(axis=-1), gaps[..., 2::3])
