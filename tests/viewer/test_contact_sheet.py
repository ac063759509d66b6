"""Contact sheets are PNG files whose pictures show the figure where it is."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from tests.viewer.motions import turning_arm

import dalembert as da
from dalembert.viewer.contact_sheet import samples
from dalembert.viewer.frames import standing_configuration


def read_png(path: Path) -> np.ndarray:
    """Red, green, blue (height, width, 3) of a PNG file without filters."""
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    place, data = 8, b""
    while place < len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        kind, body = content[place + 4 : place + 8], content[place + 8 : place + 8 + length]
        assert struct.unpack(">I", content[place + 8 + length : place + 12 + length])[0] == zlib.crc32(
            kind + body
        )
        if kind == b"IHDR":
            width, height, *rest = struct.unpack(">IIBBBBB", body)
            assert rest == [8, 2, 0, 0, 0]
        data += body if kind == b"IDAT" else b""
        place += 12 + length
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3).astype(int)


def test_each_picture_shows_the_figure_at_its_time(tmp_path: Path) -> None:
    """The red ball at the end of the arm goes round: right, below, left of the arm's middle."""
    model, _, _ = turning_arm()
    time = np.linspace(0.0, 1.0, 50)
    q = np.pi * time[:, np.newaxis]
    picture = read_png(
        da.viewer.contact_sheet((model, time, q), tmp_path / "arm.png", frames=3, size=(120, 160))
    )
    assert picture.shape == (160, 360, 3)
    red = (picture[..., 0] > 1.7 * picture[..., 1]) & (picture[..., 0] > 1.7 * picture[..., 2])
    middles = [np.argwhere(red[:, 120 * k : 120 * (k + 1)]).mean(axis=0) for k in range(3)]
    right, below, left = middles
    assert right[1] > 75
    assert left[1] < 45
    assert below[0] > max(right[0], left[0]) + 15
    chosen = da.viewer.contact_sheet((model, time, q), tmp_path / "b.png", times=[0, 0.5, 1], size=(120, 160))
    np.testing.assert_array_equal(read_png(chosen), picture)


def test_the_shadow_lies_on_the_ground_and_the_ground_below_the_figure(tmp_path: Path) -> None:
    model, _, q = turning_arm()
    with_arm = read_png(da.viewer.contact_sheet((model, q[:1]), tmp_path / "a.png", size=(120, 160)))
    dark = (with_arm.sum(axis=2) < 480) & (np.ptp(with_arm, axis=2) < 40)
    assert dark[100:].sum() > 40
    assert dark[20:60].sum() < 10


def arm_alone() -> da.ModelBuilder:
    """The turning arm in an empty world."""
    builder = da.ModelBuilder()
    builder.add_body("arm", parent="world", joint=da.Revolute(axis=(0, 1, 0)))
    for shape in turning_arm()[0].bodies["arm"].shapes:
        builder.add_shape("arm", shape)
    return builder


def test_what_is_below_the_ground_is_hidden(tmp_path: Path) -> None:
    shares = []
    for height in (-1.0, 0.1):
        model = arm_alone().build().with_ground(height)
        picture = read_png(da.viewer.contact_sheet((model, [[0.0]]), tmp_path / "a.png"))
        shares.append(np.mean(picture[..., 0] > 1.7 * picture[..., 1]))
    assert shares[0] > 0.002
    assert 0.0 < shares[1] < 0.5 * shares[0]


def test_many_pictures_stand_in_even_rows(tmp_path: Path) -> None:
    model, time, q = turning_arm()
    path = da.viewer.contact_sheet((model, time, q), tmp_path / "a.png", frames=12, size=(32, 40))
    assert read_png(path).shape == (80, 6 * 32, 3)


def test_triangles_leave_no_pixel_out() -> None:
    """Every pixel whose middle is inside a triangle has a point of it."""
    rng = np.random.default_rng(0)
    for size in (3.0, 30.0, 200.0):
        for _ in range(20):
            corners = rng.uniform(0.0, size, (1, 3, 2))
            weights, which = samples(corners)
            assert not which.any()
            np.testing.assert_allclose(weights.sum(axis=1), 1.0)
            assert weights.min() >= 0.0
            points = weights @ corners[0]
            grid = np.zeros((int(size) + 2, int(size) + 2), bool)
            grid[tuple(np.floor(points).astype(int).T)] = True
            y, x = np.meshgrid(np.arange(int(size)) + 0.5, np.arange(int(size)) + 0.5)
            middle = np.stack([x, y], axis=-1)
            a, b, c = corners[0]
            full = np.linalg.det(np.stack([b - a, c - a]))
            shares = [
                np.cross(np.append(p - o, 0), np.concatenate([middle - o, np.zeros((*x.shape, 1))], -1))[
                    ..., 2
                ]
                / full
                for o, p in ((a, b), (b, c), (c, a))
            ]
            inside = np.min(shares, axis=0) > 0.0
            assert grid[:-2, :-2][inside].all()


def test_the_world_may_be_much_larger_than_the_figure(tmp_path: Path) -> None:
    """A floor of two kilometres is drawn where it is seen, behind the arm, and costs no more than that."""
    builder = arm_alone()
    low = da.Transform.from_rotation_translation(np.eye(3), (0.0, 0.0, -2.0))
    builder.add_shape("world", da.shapes.Box((2000.0, 2000.0, 1.0), rgba=(0.0, 0.0, 1.0, 1.0), placement=low))
    path = da.viewer.contact_sheet((builder.build(), [[0.0]]), tmp_path / "a.png", size=(120, 160))
    picture = read_png(path)
    blue = picture[..., 2] > 1.5 * picture[..., 0]
    assert blue[150:].mean() > 0.95
    red = picture[..., 0] > 1.7 * picture[..., 1]
    assert red.sum() > 100


def test_a_model_without_a_pose_stands_on_its_ground() -> None:
    """Its lowest point touches the plane, level or not; with a fixed root, or without a ground, it stays."""
    ball = da.shapes.Sphere(0.3)
    tilted = da.Transform.from_rotation_translation(
        [[0.8, 0.0, 0.6], [0.0, 1.0, 0.0], [-0.6, 0.0, 0.8]], (0.0, 0.0, 0.5)
    )
    for plane in (da.shapes.Plane(), da.shapes.Plane(placement=tilted)):
        builder = da.ModelBuilder()
        builder.add_body("ball", parent="world", joint=da.Free(), inertia=ball.inertia(mass=1.0))
        builder.add_shape("ball", ball)
        builder.add_shape("world", plane)
        model = builder.build()
        normal = np.array([float(x) for x in plane.placement.as_transform().R.column(2)])
        origin = np.array([float(x) for x in plane.placement.as_transform().p])
        centre = standing_configuration(model)[:3]
        sagitta = 0.3 * (1.0 - np.cos(np.pi / 24) ** 2)  # of the triangles that the ball is drawn with
        assert 0.3 - sagitta <= normal @ (centre - origin) <= 0.3
        np.testing.assert_allclose(np.cross(centre, normal), 0.0, atol=1e-12)
    for model in (turning_arm()[0], da.models.humanoid()):
        np.testing.assert_array_equal(standing_configuration(model), model.neutral())


def test_bad_input_is_refused_by_name(tmp_path: Path) -> None:
    model, _, _ = turning_arm()
    for options, message in (
        ({"path": "x.jpg"}, r"\.png"),
        ({"frames": 0}, "frames"),
        ({"frames": True}, "frames"),
        ({"size": (0, 100)}, "size"),
        ({"times": [0.0, np.nan]}, "times"),
        ({"times": []}, "times"),
    ):
        given = {"path": tmp_path / "x.png", **options}
        with pytest.raises(da.errors.ArgumentError, match=message):
            da.viewer.contact_sheet(model, **given)
    builder = da.ModelBuilder()
    builder.add_body("glass", parent="world", joint=da.Free())
    builder.add_shape("glass", da.shapes.Sphere(0.1, rgba=(1.0, 1.0, 1.0, 0.0)))
    with pytest.raises(da.errors.ArgumentError, match="nothing to draw"):
        da.viewer.contact_sheet(builder.build(), tmp_path / "x.png")
    with pytest.raises(da.errors.FileError, match="cannot be written"):
        da.viewer.contact_sheet(model, tmp_path / "no" / "x.png")
