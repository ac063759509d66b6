"""Contact sheets are PNG files whose pictures show the figure where it is."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from tests.viewer.motions import turning_arm

import dalembert as da
from dalembert.viewer.rasterizer import samples


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
    builder.add_shape("glass", da.Sphere(0.1, rgba=(1.0, 1.0, 1.0, 0.0)))
    with pytest.raises(da.errors.ArgumentError, match="nothing to draw"):
        da.viewer.contact_sheet(builder.build(), tmp_path / "x.png")
    with pytest.raises(da.errors.FileError, match="cannot be written"):
        da.viewer.contact_sheet(model, tmp_path / "no" / "x.png")
