"""Meshes collide by their hulls: corners in the world against MuJoCo's own vertices of the same file, hulls
of the files of packages against Qhull, hulls kept in the cache folder.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engines.file_table import URDF_PACKAGES, files_of
from tests.model.test_quickhull import assert_hull

import dalembert as da
from dalembert.errors import ArgumentError, FileError, MissingExtraError, ModelError
from dalembert.formats import meshes
from dalembert.formats.meshes import read_mesh, with_hulls
from dalembert.model.shapes import ConvexMesh, Mesh, Sphere, quickhull
from dalembert.model.shapes.convex_hull import hull_of
from dalembert.model.shapes.quickhull import convex_hull, reduced_hull
from dalembert.spatial import RigidInertia

WEDGE = (
    "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv .2 .2 .2\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 5\nf 3 4 5\nf 4 2 5\n"
)


def test_hulls_stand_where_mujoco_has_the_mesh(tmp_path: Path) -> None:
    """Scaled, placed on a moving body, and without the dent."""
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "wedge.obj").write_text(WEDGE)
    path = tmp_path / "model.xml"
    path.write_text("""<mujoco><asset><mesh name="w" file="wedge.obj" scale=".1 .2 -.3"/></asset><worldbody>
      <geom name="still" type="mesh" mesh="w" pos="3 2 1" euler="20 30 40"/>
      <body pos="1 2 3" euler="10 20 30"><joint axis="1 2 3"/>
        <geom name="moving" type="mesh" mesh="w" pos=".1 .2 .3" euler="50 60 70" contype="2" group="1"/>
        <geom name="drawn" type="mesh" mesh="w" contype="0" conaffinity="0"/></body></worldbody></mujoco>""")
    m = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(m)
    data.qpos[:] = 0.7
    mujoco.mj_kinematics(m, data)
    model = with_hulls(da.load(path))
    pose = da.forward_kinematics(model, [0.7])[model.bodies[0].name]
    (body,) = model.bodies
    for R, p, shape in (
        (np.eye(3), np.zeros(3), model.world_shapes[1]),
        (pose.rotation, pose.translation, body.shapes[1]),
    ):
        assert isinstance(shape, ConvexMesh)
        assert not shape.visual
        g = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_GEOM, shape.name)
        first = m.mesh_vertadr[m.geom_dataid[g]]
        vertices = m.mesh_vert[first : first + m.mesh_vertnum[m.geom_dataid[g]]]
        theirs = data.geom_xpos[g] + vertices @ data.geom_xmat[g].reshape(3, 3).T
        X = np.array(shape.placement.homogeneous())
        ours = p + (X[:3, 3] + np.array(shape.vertices) @ X[:3, :3].T) @ R.T
        assert len(ours) == 4
        gaps = np.linalg.norm(ours[:, None] - theirs[None], axis=2).min(axis=1)
        assert gaps.max() < 1e-6
    assert [type(shape) for shape in body.shapes] == [Mesh, ConvexMesh, Mesh]
    assert [shape.collision for shape in body.shapes] == [False, True, False]
    assert [shape.group for shape in body.shapes][1] == 2
    assert model.digest != da.load(path).digest


def test_models_without_meshes_stay_as_they_are() -> None:
    model = da.models.humanoid().with_ground()
    assert with_hulls(model) == model


def test_files_without_a_hull_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"package://robot/hand\.stl.*roots"):
        hull_of(Mesh("package://robot/hand.stl"))
    with pytest.raises(FileError, match=r"nothing\.stl"):
        hull_of(Mesh(str(tmp_path / "nothing.stl")))
    (tmp_path / "flat.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n")
    builder = da.ModelBuilder()
    inertia = RigidInertia(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    shapes = [Sphere(0.1), Mesh(str(tmp_path / "flat.obj"))]
    builder.add_body("a", "world", da.Free(), inertia=inertia, shapes=shapes)
    with pytest.raises(ModelError, match=r"flat\.obj.*in a plane"):
        with_hulls(builder.build())


def globe(count: int, size: float = 0.1) -> str:
    """An OBJ file of random points on a sphere, in triangles that use them all."""
    points = np.random.default_rng(count).normal(size=(count, 3))
    points *= size / np.linalg.norm(points, axis=1, keepdims=True)
    rows = [f"v {x!r} {y!r} {z!r}" for x, y, z in points.tolist()]
    return "\n".join([*rows, *(f"f {k} {k + 1} {k + 2}" for k in range(1, count - 1))])


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DALEMBERT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_hulls_of_files_are_made_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The content, the scale and the options tell entries apart; the name of the file does not."""
    made: list[int] = []

    def counted(points: Any, **options: Any) -> Any:
        made.append(len(points))
        return reduced_hull(points, **options)

    monkeypatch.setattr(meshes, "reduced_hull", counted)
    path = tmp_path / "globe.obj"
    path.write_text(globe(400))
    first = hull_of(Mesh(str(path)), tolerance=2e-3)
    assert 64 <= len(first.vertices) < 256
    assert 0.0 < first.approximation_error <= 2e-3
    (tmp_path / "copy.obj").write_text(globe(400))
    for name in ("globe.obj", "copy.obj"):
        quickhull._known_faces.clear()
        again = hull_of(Mesh(str(tmp_path / name)), tolerance=2e-3)
        assert again == first
        assert again.faces == first.faces
    assert made == [400]
    assert len(hull_of(Mesh(str(path), (2.0, 2.0, 2.0)), tolerance=2e-3).vertices) > len(first.vertices)
    assert len(hull_of(Mesh(str(path)), max_vertices=20).vertices) == 20
    assert len(hull_of(Mesh(str(path))).vertices) == 256
    path.write_text(globe(300))
    assert hull_of(Mesh(str(path)), tolerance=2e-3) != first
    assert made == [400, 400, 400, 400, 300]
    for entry in cache.iterdir():
        entry.write_bytes(entry.read_bytes()[:-1])
    assert hull_of(Mesh(str(tmp_path / "copy.obj")), tolerance=2e-3) == first
    assert made[5:] == [400]


def test_models_say_how_near_their_hulls_are(tmp_path: Path, cache: Path) -> None:
    """Also after they are saved and read again, with the same faces."""
    (tmp_path / "globe.obj").write_text(globe(500))
    builder = da.ModelBuilder()
    inertia = RigidInertia(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    builder.add_body("a", "world", da.Free(), inertia=inertia, shapes=[Mesh(str(tmp_path / "globe.obj"))])
    model = builder.build()
    (shape,) = with_hulls(model, max_vertices=30).bodies[0].shapes[1:]
    assert isinstance(shape, ConvexMesh)
    assert len(shape.vertices) == 30
    da.save(with_hulls(model, max_vertices=30), tmp_path / "model.json")
    quickhull._known_faces.clear()
    read = da.load(tmp_path / "model.json").bodies[0].shapes[1]
    assert read == shape
    assert isinstance(read, ConvexMesh)
    assert read.faces == shape.faces
    assert read.approximation_error == shape.approximation_error > 1e-3
    (exact,) = with_hulls(model, max_vertices=500, tolerance=0.0).bodies[0].shapes[1:]
    assert isinstance(exact, ConvexMesh)
    assert exact.approximation_error == 0.0
    assert len(exact.vertices) == 500


FAILED_BEFORE = (
    "left_wrist_roll_link.STL",
    "right_wrist_roll_link.STL",
    "base_so101_v2.stl",
    "xarm7/visual/link1.stl",
    "xarm7/visual/link5.stl",
    "v2/collision/ankle-pitch.stl",
)
"""Meshes of packages whose hull was not found as long as rounding decided which faces a point sees."""


def test_meshes_of_robots_have_the_hulls_of_qhull() -> None:
    """Every twentieth file of the packages, and the hard ones; `benchmarks/mesh_hulls.py` takes them all."""
    files = [
        file
        for ending in (".stl", ".STL", ".obj", ".dae")
        for file in files_of((*URDF_PACKAGES, "dm-control"), ending)
    ]
    assert len(files) > 900
    hard = [file for file in files if file.path.as_posix().endswith(FAILED_BEFORE)]
    assert len(hard) == len(FAILED_BEFORE)
    flat = []
    for file in [*hard, *files[::20]]:
        points = read_mesh(file.path).corners
        try:
            assert_hull(points, *convex_hull(points))
        except ModelError:
            flat.append(file.name)
            assert np.linalg.matrix_rank(points - points.mean(axis=0), tol=1e-9 * np.ptp(points)) < 3
    assert len(flat) <= 1


L_SHAPE = "".join(
    f"v {x} {y} {z}\n"
    for z in (0.0, 0.1)
    for x, y in ((0.0, 0.0), (0.3, 0.0), (0.3, 0.1), (0.1, 0.1), (0.1, 0.3), (0.0, 0.3))
) + (
    "f 1 2 8 7\nf 2 3 9 8\nf 3 4 10 9\nf 4 5 11 10\nf 5 6 12 11\nf 6 1 7 12\n"
    "f 3 2 1\nf 4 3 1\nf 5 4 1\nf 6 5 1\nf 7 8 9\nf 7 9 10\nf 7 10 11\nf 7 11 12\n"
)
"""An L of two bars of 0.1 m by 0.1 m; its volume is 0.005 m^3, that of its hull 0.007 m^3."""


def body_with(path: Path) -> da.Model:
    builder = da.ModelBuilder()
    inertia = RigidInertia(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    shape = Mesh(str(path), name="bracket", group=2, friction=(0.3, 0.0, 0.0))
    builder.add_body("a", "world", da.Free(), inertia=inertia, shapes=[shape])
    return builder.build()


def test_concave_meshes_become_convex_pieces(tmp_path: Path, cache: Path, monkeypatch: Any) -> None:
    """Once: the second time CoACD is not needed."""
    pytest.importorskip("coacd")
    (tmp_path / "l.obj").write_text(L_SHAPE)
    model = body_with(tmp_path / "l.obj")
    whole = with_hulls(model).bodies[0].shapes[1]
    pieces = with_hulls(model, concavity=0.01).bodies[0].shapes[1:]
    assert isinstance(whole, ConvexMesh)
    assert whole.volume == pytest.approx(0.007)
    assert len(pieces) == 2
    assert all(isinstance(piece, ConvexMesh) and len(piece.vertices) >= 8 for piece in pieces)
    assert sum(piece.volume for piece in pieces) == pytest.approx(0.005, rel=0.01)  # type: ignore[union-attr]
    assert {(piece.name, piece.group, piece.friction) for piece in pieces} == {
        ("bracket", 2, (0.3, 0.0, 0.0))
    }
    monkeypatch.setitem(sys.modules, "coacd", None)
    assert with_hulls(model, concavity=0.01).bodies[0].shapes[1:] == pieces


def test_decomposition_names_the_extra_that_it_needs(tmp_path: Path, cache: Path, monkeypatch: Any) -> None:
    (tmp_path / "l.obj").write_text(L_SHAPE)
    monkeypatch.setitem(sys.modules, "coacd", None)
    with pytest.raises(MissingExtraError, match=r"CoACD.*pip install 'dalembert\[decomposition\]'"):
        with_hulls(body_with(tmp_path / "l.obj"), concavity=0.01)
    for given in (0.0, -1.0, float("nan"), "1 cm", True):
        with pytest.raises(ArgumentError, match="concavity is"):
            with_hulls(body_with(tmp_path / "l.obj"), concavity=given)  # type: ignore[arg-type]
