"""Clips: frozen, sliced, evaluated between frames, filtered."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ArgumentError, OutOfRangeError, ShapeError
from dalembert.motion import Clip

MODEL = da.models.pendulum()
TIME = np.linspace(0.0, 2.0, 101)


def swing(time: np.ndarray = TIME) -> Clip:
    return Clip.from_positions(MODEL, time, np.sin(3.0 * time)[:, None])


def test_arrays_are_frozen_and_the_clips_own() -> None:
    q = np.sin(TIME)[:, None]
    clip = Clip.from_positions(MODEL, TIME, q)
    q[0] = 9.0
    assert clip.q[0] == 0.0
    for array in (clip.time, clip.q, clip.v, clip.a):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_length_names_frames_and_slices() -> None:
    clip = swing()
    assert len(clip) == 101
    assert clip.names == MODEL.joints.names
    assert clip.duration == pytest.approx(2.0)
    assert clip.frame_time == pytest.approx(0.02)
    part = clip[10:21:5]
    np.testing.assert_array_equal(part.q, clip.q[10:21:5])
    np.testing.assert_array_equal(part.a, clip.a[10:21:5])
    assert clip[-1].time == pytest.approx(2.0)
    assert len(list(clip)) == 101
    with pytest.raises(OutOfRangeError, match="no frame 101"):
        clip[101]


def test_between_frames_a_clip_follows_the_motion_to_the_fourth_order() -> None:
    errors = []
    for count in (51, 101):
        fine = swing(np.linspace(0.0, 2.0, count)).resample(0.003)
        t = fine.time
        exact = np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)
        errors.append([np.abs(x[:, 0] - y).max() for x, y in zip((fine.q, fine.v, fine.a), exact)])
    orders = np.log2(np.array(errors[0]) / np.array(errors[1]))
    assert (orders > 3.4).all(), orders


def test_at_its_own_frames_a_clip_is_itself() -> None:
    clip = swing()
    same = clip.at(clip.time)
    for name in ("time", "q", "v", "a"):
        np.testing.assert_array_equal(getattr(same, name), getattr(clip, name))
    assert len(clip.resample(0.02)) == len(clip)


def test_quaternions_between_frames_have_unit_length() -> None:
    builder = da.ModelBuilder()
    builder.add_body("ball", joint=da.Spherical(), inertia=da.RigidInertia(1.0, (0, 0, 0), np.eye(3)))
    model = builder.build()
    angle = 5.0 * TIME
    q = np.stack([np.cos(angle / 2), 0 * angle, np.sin(angle / 2), 0 * angle], 1)
    fine = Clip.from_positions(model, TIME, q).resample(0.0031)
    np.testing.assert_allclose(np.linalg.norm(fine.q, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(fine.q[:, 0], np.cos(2.5 * fine.time), atol=1e-6)
    filtered = Clip.from_positions(model, TIME, q, cutoff=6.0)[20:-20]
    np.testing.assert_allclose(filtered.v, np.tile([0.0, 5.0, 0.0], (len(filtered), 1)), atol=1e-4)


def test_the_low_pass_takes_out_tremor_and_leaves_the_swing() -> None:
    tremor = 0.01 * np.sin(2 * np.pi * 20.0 * TIME + 1.0)
    shaken = Clip.from_positions(MODEL, TIME, (np.sin(3 * TIME) + tremor)[:, None], cutoff=5.0)
    np.testing.assert_allclose(shaken.a[15:-15, 0], -9 * np.sin(3 * TIME[15:-15]), atol=0.2)


def test_uneven_frames_can_be_used_but_not_filtered() -> None:
    time = TIME + 0.004 * np.sin(5.0 * TIME)
    clip = swing(time)
    np.testing.assert_allclose(clip.v[:, 0], 3 * np.cos(3 * time), atol=1e-4)
    with pytest.raises(ArgumentError, match="resample"):
        Clip.from_positions(MODEL, time, clip.q, cutoff=5.0)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ShapeError, match=r"q has the shape \(101, 2\); \(101, 1\)"):
        Clip.from_positions(MODEL, TIME, np.zeros((101, 2)))
    with pytest.raises(ArgumentError, match="finite"):
        Clip.from_positions(MODEL, TIME, np.full((101, 1), np.nan))
    with pytest.raises(ArgumentError, match="increase"):
        Clip.from_positions(MODEL, TIME[::-1], np.zeros((101, 1)))
    with pytest.raises(ArgumentError, match="dt"):
        swing().resample(0.0)
    with pytest.raises(ArgumentError, match="within the clip"):
        swing().at([3.0])
