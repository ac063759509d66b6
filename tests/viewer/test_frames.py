"""What is recorded: pictures at the right times, forces without loss of impulse, curves that are true."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest
from tests.viewer.motions import bouncing_ball, turning_arm

import dalembert as da
from dalembert.viewer.frames import frames_of
from dalembert.viewer.page import poses_of, scene_of


def numbers(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), kind)


def test_pictures_are_frames_nearest_to_even_times() -> None:
    model, _, _ = turning_arm()
    time = np.sort(np.random.default_rng(0).uniform(0.0, 3.0, 5000))
    frames = frames_of((model, time, time[:, np.newaxis]), fps=30)
    assert 90 <= len(frames) <= 92
    assert (frames.time[0], frames.time[-1]) == (time[0], time[-1])
    assert np.abs(np.diff(frames.time)[:-1] - 1 / 30).max() < 0.006
    np.testing.assert_array_equal(frames.q[:, 0], frames.time)


def test_sparse_motions_keep_every_frame() -> None:
    model, time, q = turning_arm(frames=11)
    assert len(frames_of((model, time, q), fps=60)) == 11


def test_quaternions_are_those_of_the_poses() -> None:
    """Rotations by all signs and axes, compared as matrices."""
    model = da.models.humanoid()
    q = np.stack([model.random_state(seed)[0] for seed in range(50)])
    poses = da.forward_kinematics(model, q)
    w, x, y, z = np.moveaxis(poses_of(model, q, np.zeros(50))[..., 3:], -1, 0)
    columns = [
        [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
        [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
        [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
    ]
    R = np.stack([np.stack(column, axis=-1) for column in columns], axis=-1)
    np.testing.assert_allclose(R, poses.rotation, atol=1e-12)


def test_contact_forces_keep_their_impulse_when_pictures_are_few() -> None:
    """The sum of force times time over the pictures is that over the steps; the last one is a bounce."""
    trajectory = bouncing_ball(steps=129)
    impulse = trajectory.contacts.force.sum(axis=(0, 1)) * 0.005
    frames = frames_of(trajectory, fps=20)
    spans = np.diff(frames.time)
    np.testing.assert_allclose(
        np.einsum("t,tci->i", spans, frames.contacts.force[:-1]), impulse, rtol=1e-9, atol=1e-9
    )
    assert trajectory.contacts.force[-1, 0, 2] > 100.0


def test_a_resting_ball_is_held_by_its_weight() -> None:
    scene = scene_of(frames_of(bouncing_ball(), fps=50), title="ball", follow=None)
    assert scene["weight"] == pytest.approx(2.0 * 9.81)
    energy, contact = scene["plots"]  # without motors there is no plot of them
    assert [plot["title"] for plot in (energy, contact)] == ["Energy", "Contact force"]
    upward, size = numbers(contact["values"], "<f4").reshape(2, -1)
    assert upward[-1] == pytest.approx(2.0 * 9.81, rel=1e-3)
    assert size[-1] == pytest.approx(upward[-1], rel=1e-3)
    kinetic, potential, whole = numbers(energy["values"], "<f4").reshape(3, -1)
    np.testing.assert_allclose(kinetic + potential, whole, rtol=1e-5, atol=1e-5)
    assert potential[0] == pytest.approx(2.0 * 9.81 * 0.5, rel=0.01)
    counts = numbers(scene["contacts"]["counts"], "<u2")
    points = numbers(scene["contacts"]["points"], "<f4").reshape(-1, 6)
    assert counts[0] == 0
    assert counts[-1] == 1
    assert counts.sum() == len(points)
    np.testing.assert_allclose(points[-1], [0.0, 0.0, 0.0, 0.0, 0.0, 2.0 * 9.81], atol=0.02)


def test_ten_seconds_of_the_humanoid_stay_below_a_megabyte_and_a_half(tmp_path: Path) -> None:
    """With forces in every joint and twenty contact points at all times."""
    model = da.models.humanoid().with_ground()
    q = np.stack([model.random_state(seed)[0] for seed in range(601)])
    rng = np.random.default_rng(0)
    names = (("ground", "foot"),) * 20
    shape = (600, 20, 3)
    record = da.simulation.trajectory.ContactRecord(
        names, rng.normal(size=shape), rng.normal(size=shape), np.zeros((600, 20))
    )
    tau, v = rng.normal(size=(600, model.nv)), rng.normal(size=(601, model.nv))
    trajectory = da.Trajectory(model, np.arange(601) / 60.0, q, v, tau, record)
    path = da.viewer.record(trajectory, tmp_path / "long.html")
    assert path.stat().st_size < 1_500_000


def test_a_sample_that_failed_says_so() -> None:
    trajectory = bouncing_ball(steps=10)
    failed = da.Trajectory(
        **{name: getattr(trajectory, name) for name in ("model", "time", "q", "v", "tau")},
        failed_at=np.array(7),
        cause=np.array("not finite"),
    )
    assert frames_of(failed, fps=60).end == "The simulation could not take step 7: not finite"


def test_missing_meshes_are_named_and_the_rest_is_drawn() -> None:
    builder = da.ModelBuilder()
    for k in range(5):
        builder.add_body(f"b{k}", parent="world", joint=da.Free())
        builder.add_shape(f"b{k}", da.shapes.Mesh(f"/nowhere/{k}.stl"))
    builder.add_shape("b0", da.shapes.Sphere(0.1, visual=False))
    scene = scene_of(frames_of(builder.build(), fps=60), title="x", follow=None)
    assert "/nowhere/0.stl" in scene["notes"][0]
    assert scene["notes"][-1] == "and 3 more shapes"
    drawn = [shape for shape in scene["shapes"] if shape["body"] == 0]
    assert [(shape["kind"], shape["collision"]) for shape in drawn] == [("ball", False)]
    assert all(any(shape["body"] == k for shape in scene["shapes"]) for k in range(5))


def test_what_cannot_be_shown_is_refused_by_name(tmp_path: Path) -> None:
    model, time, q = turning_arm()
    ArgumentError, ShapeError = da.errors.ArgumentError, da.errors.ShapeError
    path = tmp_path / "x.html"
    bad = q.copy()
    bad[7] = np.nan
    empty = da.rollout(model, np.zeros((2, 1)), np.zeros((2, 1)), steps=2, dt=0.01)[:0]
    cases = [
        ("a string", da.errors.DtypeError, "str cannot be shown"),
        ((model, np.zeros((3, 2))), ShapeError, r"\(3, 2\).*nq = 1"),
        ((model, np.zeros((0, 1))), ShapeError, r"\(0, 1\)"),
        ((model, bad), ArgumentError, "frame 7"),
        ((model, time[:5], q), ShapeError, "time"),
        ((model, time[::-1], q), ArgumentError, "increase"),
        (empty, ArgumentError, "no sample"),
    ]
    for given, kind, message in cases:
        with pytest.raises(kind, match=message):
            da.viewer.record(given, path)
    assert not path.exists()
    with pytest.raises(ArgumentError, match="fps"):
        da.viewer.record(model, path, fps=0)
    with pytest.raises(ArgumentError, match=r"\.html"):
        da.viewer.record(model, tmp_path / "x.mp4")
    with pytest.raises(da.errors.UnknownNameError, match='nearest: "arm"'):
        da.viewer.record(model, path, follow="arn")
    with pytest.raises(da.errors.FileError, match="cannot be written"):
        da.viewer.record(model, tmp_path / "no" / "x.html")


def test_ghosts_are_at_the_moments_of_the_first_sample() -> None:
    """Samples with time steps of their own have frames at other times."""
    model = da.models.pendulum(length=1.0)
    dt = np.array([0.01, 0.02, 0.005])
    both = da.rollout(model, [[0.3]] * 3, [0.0], steps=200, dt=dt, integrator="rk4")
    frames = frames_of(both, fps=100)
    assert frames.ghosts is not None
    slower, faster = frames.ghosts[..., 0]
    np.testing.assert_allclose(slower, frames.q[:, 0], atol=0.02)
    np.testing.assert_allclose(faster[:101], frames.q[:101, 0], atol=0.01)
    np.testing.assert_array_equal(faster[101:], both.q[2, -1, 0])  # it has come to its end


def test_adaptive_and_event_driven_motions_are_shown() -> None:
    model = da.models.pendulum(length=1.0)
    motion = da.simulation.integrate_adaptive(model, [0.3], [0.0], duration=1.0)
    frames = frames_of(motion, fps=50)
    np.testing.assert_allclose(frames.time, np.arange(51) / 50)
    np.testing.assert_allclose(frames.q, motion.at(frames.time)[0])
    gap = da.textbook.GapFunction(model, lambda model, q: [q[0] + 0.1])
    bounced = da.textbook.simulate_events(model, [0.3], [0.0], gap, duration=1.0, step=0.01)
    np.testing.assert_array_equal(frames_of(bounced, fps=60).q[-1], bounced.trajectory.q[-1])
