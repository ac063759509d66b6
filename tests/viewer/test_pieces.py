"""What pages and pictures are made of: solids, axes, colours, times, and where a model stands."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.viewer.motions import turning_arm

import dalembert as da
from dalembert.viewer.drawing import drawing_of, unit_solid
from dalembert.viewer.frames import frames_of, standing_configuration
from dalembert.viewer.live import sliders_of
from dalembert.viewer.page import scene_of


@pytest.mark.parametrize(
    ("kind", "volume"),
    [("ball", 4.0 * math.pi / 3.0), ("cylinder", 2.0 * math.pi), ("box", 8.0)],
)
def test_solids_are_closed_and_look_outward(kind: str, volume: float) -> None:
    """Their volume by tetrahedra from the middle, and from elsewhere; flat pieces of round ones take a
    few per cent."""
    solid = unit_solid(kind)
    for shift in (0.0, 3.0):
        corners = solid.corners + [shift, 0.0, -shift]
        found = abs(np.linalg.det(corners).sum()) / 6.0
        assert found == pytest.approx(volume, rel=0.03)
    outward = np.cross(solid.corners[:, 1] - solid.corners[:, 0], solid.corners[:, 2] - solid.corners[:, 0])
    sizes = np.linalg.norm(outward, axis=1)
    assert (np.einsum("mi,mi->m", outward, solid.corners.mean(axis=1))[sizes > 1e-9] > 0.0).all()
    assert (np.einsum("mi,mki->mk", outward, solid.normals)[sizes > 1e-9] > 0.0).all()


def test_axes_tell_turning_joints_from_sliding_ones() -> None:
    builder = da.ModelBuilder()
    ball = da.shapes.Sphere(0.1).inertia(mass=1.0)
    builder.add_body("door", "world", da.Revolute((0, 0, 2)), inertia=ball)
    builder.add_body("drawer", "door", da.Prismatic((0, 3, 0)), inertia=ball)
    builder.add_body("ball", "drawer", da.Spherical(), inertia=ball)
    scene = scene_of(frames_of(builder.build(), fps=60), title="x", follow=None)
    assert scene["axes"] == [
        {"body": 0, "axis": [0.0, 0.0, 1.0], "turns": True},
        {"body": 1, "axis": [0.0, 1.0, 0.0], "turns": False},
        {"body": 2, "axis": None, "turns": True},
    ]


def test_colours_are_shares_and_limbs_differ() -> None:
    colours = [item["colour"] for item in drawing_of(da.models.humanoid()).shapes]
    assert np.min(colours) >= 0.0
    assert np.max(colours) <= 1.0
    assert len({tuple(np.round(colour, 3)) for colour in colours}) > 5


def test_configurations_without_times_are_pictures_of_a_sixtieth() -> None:
    model, _, q = turning_arm(frames=61)
    frames = frames_of((model, q), fps=60)
    np.testing.assert_allclose(frames.time, np.arange(61) / 60.0)


def test_sliders_of_one_joint_are_counted() -> None:
    sliders = sliders_of(da.models.humanoid())
    assert [s.name for s in sliders if s.joint == "lumbar"] == ["angle 1", "angle 2", "angle 3"]
    assert [s.name for s in sliders if s.joint == "left_knee"] == ["angle"]


def test_a_figure_stands_on_the_ground_with_its_feet() -> None:
    """They are far down the tree from what is free to move."""
    model = da.models.humanoid().with_ground(0.3)
    q = standing_configuration(model)
    assert da.contact.distances(model, q, pairs=["world"]).gap.min() == pytest.approx(0.0, abs=1e-3)
    assert q[2] > 0.9
