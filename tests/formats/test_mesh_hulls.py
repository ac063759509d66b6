"""Meshes collide by their hulls: corners in the world against MuJoCo's own vertices of the same file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import FileError, ModelError
from dalembert.formats.meshes import with_hulls
from dalembert.model.shapes import ConvexMesh, Mesh, Sphere
from dalembert.model.shapes.convex_hull import hull_of
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
