"""URDF out: what comes back is the same system, and what cannot be written is said."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.formats.urdf_files import menagerie

import dalembert as da
from dalembert import algorithms
from dalembert.errors import FileError
from dalembert.formats.resources import CHANGES_DYNAMICS
from dalembert.formats.urdf import load_urdf
from dalembert.formats.urdf.urdf_writer import rpy_of_rotation, urdf_text
from dalembert.model import Model
from dalembert.model.shapes import Ellipsoid, Mesh, Sphere
from dalembert.models.random_trees import random_placement
from dalembert.spatial.rotations import rotation_of_euler_angles, rotation_of_quaternion


def again(model: Model) -> Model:
    return load_urdf(urdf_text(model)[0].encode(), name="again.urdf")


def assert_same_dynamics(a: Model, b: Model) -> None:
    """M, bias, forward dynamics and passive forces agree to 1e-12 at moving states, joint by joint."""
    assert (a.nq, a.nv, a.bodies.names, a.joints.names) == (b.nq, b.nv, b.bodies.names, b.joints.names)
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = list(a.random_state(rng)[0])
        v, tau = (list(x) for x in rng.normal(size=(2, a.nv)))
        for f in (
            lambda m: algorithms.mass_matrix(m, q),  # noqa: B023
            lambda m: algorithms.bias_forces(m, q, v),  # noqa: B023
            lambda m: algorithms.passive_forces(m, q, v),  # noqa: B023
            lambda m: algorithms.forward_dynamics(m, q, v, tau),  # noqa: B023
        ):
            x, y = np.array(f(a), float), np.array(f(b), float)
            assert np.abs(x - y).max() <= 1e-12 * max(1.0, np.abs(x).max())


@pytest.mark.parametrize("root", [None, "floating"])
@pytest.mark.parametrize("normal", ["0 0 1", "0.6 0 -0.8", "-1 0 0"])
def test_load_save_load_keeps_the_dynamics(normal: str, root: Any) -> None:
    """RBDA-4.6-MODEL: save and load round trip."""
    model = load_urdf(menagerie(normal).encode(), name="x.urdf", root=root)
    text, losses = urdf_text(model)
    assert losses == []
    back = again(model)
    assert_same_dynamics(model, back)
    assert set(back.frames.names) == set(model.frames.names)
    for name in model.frames.names:
        ours, theirs = (np.array(m.frame(name).placement.homogeneous()) for m in (model, back))
        assert np.abs(ours - theirs).max() < 1e-14
    for body in model.bodies:
        same = back.body(body.name)
        assert (same.limits, same.damping, same.friction) == (body.limits, body.damping, body.friction)
        assert [type(shape) for shape in same.shapes] == [type(shape) for shape in body.shapes]
    assert urdf_text(back)[0].count("<link") == text.count("<link")


def test_shapes_of_the_world_come_back() -> None:
    model = da.models.double_pendulum()
    builder = da.ModelBuilder()
    builder.add_body("a", "world", da.Revolute(), inertia=model.body("upper").inertia)
    builder.add_shape("world", da.shapes.Box((1.0, 2.0, 0.5), name="table", placement=random_placement(3)))
    builder.add_shape("world", da.shapes.Plane(name="floor"))
    builder.add_shape("a", da.shapes.Sphere(0.1, group=2))
    builder.exclude_contact("a", "world")
    model = builder.build()
    assert urdf_text(model)[1] == [
        "exclusions and pairs of contact, which belong into an SRDF file",
        'the plane of body "world": URDF has no such shape',
        'the sphere of body "a": its group and mask of contact',
    ]
    looks, collides = again(model).world_shapes
    assert (looks.name, collides.name) == ("table", "table")
    assert collides.collision
    assert not looks.collision
    assert (
        np.abs(
            np.array(collides.placement.homogeneous()) - model.world_shapes[0].placement.homogeneous()
        ).max()
        < 1e-14
    )


def test_bundled_models_come_back() -> None:
    for model in (da.models.arm6(), da.models.double_pendulum(), da.models.cart_pole()):
        text, losses = urdf_text(model)
        assert "</robot>" in text
        if not any(loss.startswith(CHANGES_DYNAMICS) for loss in losses):
            assert_same_dynamics(model, again(model))


def test_missing_limits_come_back_as_missing() -> None:
    """URDF has no word for infinity; other readers want a number, so the largest one is written."""
    inf = math.inf
    for joint in (da.Revolute(), da.Prismatic()):
        for limits in (da.Limits(), da.Limits(-1.0, inf, inf, 2.0), da.Limits(-inf, 0.5, 3.0, inf)):
            model = one_joint(joint, limits=limits)
            assert again(model).body("a").limits == model.body("a").limits


def test_other_readers_read_what_was_written() -> None:
    pin = pytest.importorskip("pinocchio")
    model = load_urdf(menagerie().encode(), name="x.urdf")
    text = urdf_text(model)[0].replace("capsule", "cylinder")
    theirs = pin.buildModelFromXML(text)
    assert theirs.nv == model.uncoupled().nv
    assert math.isclose(pin.computeTotalMass(theirs), model.total_mass)


def test_rpy_is_exact_in_gimbal_lock_and_near_it() -> None:
    rng = np.random.default_rng(1)
    rotations = [rotation_of_quaternion(list(q / np.linalg.norm(q))) for q in rng.normal(size=(200, 4))]
    for off in (0.0, 1e-16, 1e-12, 1e-9, 1e-8, 1e-7, 1e-4):
        for sign in (1.0, -1.0):
            yaw, roll = rng.uniform(-3, 3, size=2)
            rotations.append(rotation_of_euler_angles("zyx", (yaw, sign * math.pi / 2 + off, roll)))
    for R in rotations:
        roll, pitch, yaw = rpy_of_rotation(R)
        back = rotation_of_euler_angles("zyx", (yaw, pitch, roll))
        assert np.abs(np.array(R.to_list()) - np.array(back.to_list())).max() < 2e-15


def one_joint(joint: da.model.joints.Joint, **options: Any) -> Model:
    builder = da.ModelBuilder()
    builder.add_body("a", joint=joint, inertia=da.RigidInertia(1.0, (0.1, 0, 0), (0.1, 0.1, 0.1)), **options)
    return builder.build()


@pytest.mark.parametrize("kind", ["Spherical", "Helical", "Cylindrical", "Universal"])
def test_joints_that_urdf_does_not_know_are_refused_by_name(kind: str) -> None:
    joints = {
        "Spherical": da.Spherical(),
        "Helical": da.joints.Helical(axis=(0, 0, 1), pitch=0.1),
        "Cylindrical": da.joints.Cylindrical(),
        "Universal": da.joints.Universal(),
    }
    with pytest.raises(FileError, match=f'joint "a" of kind {joints[kind].kind}'):
        urdf_text(one_joint(joints[kind]))


def test_loops_and_couplings_of_three_are_refused() -> None:
    with pytest.raises(FileError, match="loop joints"):
        urdf_text(da.models.four_bar())
    builder = da.ModelBuilder()
    for name in "abc":
        builder.add_body(
            name, joint=da.Revolute(), inertia=da.RigidInertia(1.0, (0.1, 0, 0), (0.1, 0.1, 0.1))
        )
    builder.add_coupling("gear", {"a": 1.0, "b": 2.0, "c": -3.0})
    with pytest.raises(FileError, match='coupling "gear" of 3 joints'):
        urdf_text(builder.build())


def test_losses_are_listed_and_grave_ones_refused(tmp_path: Path) -> None:
    shapes = (Ellipsoid((1.0, 2.0, 3.0)), Sphere(1.0, friction=(0.5, 0.0, 0.0)))
    model = one_joint(da.Revolute(), armature=0.2, stiffness=3.0, shapes=shapes)
    losses = urdf_text(model)[1]
    for words in ("armature 0.2", "stiffness 3.0", "no such shape", "friction and restitution"):
        assert sum(words in loss for loss in losses) == 1
    file = tmp_path / "x.urdf"
    with pytest.raises(FileError, match=r"x\.urdf: .*armature 0\.2.*accept_losses=True"):
        da.save(model, file)
    assert not file.exists()
    assert da.save(model, file, accept_losses=True) == tuple(
        loss.removeprefix(CHANGES_DYNAMICS) for loss in losses
    )
    assert da.load(file).nv == 1
    mild = one_joint(da.Revolute(), shapes=shapes)
    assert len(da.save(mild, file)) == 2
    moon = da.ModelBuilder(gravity=(0, 0, -1.6))
    moon.add_body("a", joint=da.Revolute(), inertia=da.RigidInertia(1.0, (0.1, 0, 0), (0.1, 0.1, 0.1)))
    with pytest.raises(FileError, match="gravity"):
        da.save(moon.build(), file)
    with pytest.raises(FileError, match="damping"):
        da.save(one_joint(da.joints.Planar(), damping=(1.0, 2.0, 2.0)), file)


def test_names_and_meshes_are_written_so_that_they_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / "meshes").mkdir(parents=True)
    inside, outside = folder / "meshes" / "a b.stl", tmp_path / "far" / "c.stl"
    outside.parent.mkdir()
    for file in (inside, outside):
        file.write_bytes(b"x")
    builder = da.ModelBuilder(name='the "best" <robot> & co')
    shapes = [Mesh(str(inside.resolve()), (1.0, 2.0, -3.0)), Mesh(str(outside.resolve()))]
    builder.add_body(
        "a<b>", joint=da.Revolute(), inertia=da.RigidInertia(1.0, (1, 0, 0), (1, 1, 1)), shapes=shapes
    )
    model = builder.build()
    losses = da.save(model, folder / "x.urdf")
    assert len(losses) == 1
    assert "package://far/c.stl" in losses[0]
    assert str(tmp_path) not in (folder / "x.urdf").read_text(encoding="utf-8")
    back = da.load(folder / "x.urdf", roots=[tmp_path])
    assert (back.name, back.bodies.names) == (model.name, model.bodies.names)
    assert {shape.path for shape in back.body("a<b>").shapes} == {
        str(inside.resolve()),
        str(outside.resolve()),
    }
    builder.add_body("\x07", joint=da.Revolute())
    with pytest.raises(FileError, match="character that XML cannot hold"):
        da.save(builder.build(), folder / "y.urdf")
