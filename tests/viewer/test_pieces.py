"""What pages and pictures are made of: solids, axes, colours, times, and where a model stands."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.formats.collada_files import collada_text
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


def drawn(path: Path, **options: Any) -> list[dict[str, Any]]:
    """The shapes of the drawing of a body with one mesh."""
    builder = da.ModelBuilder()
    inertia = da.shapes.Sphere(0.1).inertia(mass=1.0)
    builder.add_body("a", "world", da.Free(), inertia=inertia, shapes=[da.shapes.Mesh(str(path), **options)])
    drawing = drawing_of(builder.build())
    assert drawing.notes == []
    return drawing.shapes


def test_collada_files_are_drawn_in_their_own_colours(tmp_path: Path) -> None:
    """A mesh for each colour, whatever colour a URDF file gives besides."""
    path = tmp_path / "part.dae"
    path.write_text(collada_text())
    for options in ({}, {"rgba": (0.0, 1.0, 0.0, 1.0)}):
        shapes = drawn(path, **options)
        assert [shape["colour"] for shape in shapes] == [[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
        assert [shape["plain"] for shape in shapes] == [False, False]
        assert {shape["mesh"] for shape in shapes} == {0, 1}
    uncoloured = tmp_path / "plain.dae"
    uncoloured.write_text(collada_text().replace("instance_material", "instance_nothing"))
    assert [shape["plain"] for shape in drawn(uncoloured)] == [True]
    (shape,) = drawn(uncoloured, rgba=(0.0, 1.0, 0.0, 1.0))
    assert shape["colour"] == [0.0, 1.0, 0.0, 1.0]


def test_obj_files_are_drawn_in_their_own_colours_where_the_model_has_none(tmp_path: Path) -> None:
    """MuJoCo reads OBJ files without their materials, so that the colour of a geom is what is meant."""
    (tmp_path / "a.mtl").write_text("newmtl a\nKd 1 0 0\n")
    triangles = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nusemtl a\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (tmp_path / "a.obj").write_text(f"mtllib a.mtl\n{triangles}")
    plain, red = drawn(tmp_path / "a.obj")
    assert plain["plain"]
    assert red["colour"] == [1.0, 0.0, 0.0, 1.0]
    for shape in drawn(tmp_path / "a.obj", rgba=(0.0, 1.0, 0.0, 1.0)):
        assert shape["colour"] == [0.0, 1.0, 0.0, 1.0]


def test_a_link_whose_visual_mesh_is_missing_is_drawn_as_it_collides():
    """Though another link of the same body is drawn."""
    from dalembert.viewer.drawing import drawing_of

    builder = da.ModelBuilder()
    shapes = [
        da.shapes.Mesh("missing.stl", name="skin", link="arm", collision=False),
        da.shapes.Capsule(0.1, 0.5, name="arm", link="arm", visual=False),
        da.shapes.Sphere(0.1, name="hand", link="hand", collision=False),
        da.shapes.Box((0.1, 0.1, 0.1), name="palm", link="hand", visual=False),
    ]
    solid = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (0.01, 0.01, 0.01))
    builder.add_body("arm", "world", da.Revolute(), inertia=solid, shapes=shapes)
    drawn = {entry["name"]: not entry["collision"] for entry in drawing_of(builder.build()).shapes}
    assert drawn == {"arm": True, "hand": True, "palm": False}
