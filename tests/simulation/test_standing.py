"""`da.stand`: the lowest point of a figure on the ground, whatever its shapes and its root joint."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ModelError
from dalembert.formats.meshes import read_mesh

SOLID = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
CORNERS = np.random.default_rng(3).normal(size=(12, 3)) * 0.2
SHAPES = (
    da.shapes.Sphere(0.2),
    da.shapes.Box((0.2, 0.4, 0.6)),
    da.shapes.Capsule(0.1, 0.5),
    da.shapes.Cylinder(0.2, 0.3),
    da.shapes.Ellipsoid((0.1, 0.2, 0.4)),
    da.shapes.ConvexMesh(CORNERS.tolist()),
)


def gap(model: da.Model, q: np.ndarray) -> np.ndarray:
    """The least distance from the world, by the narrow phase of contact."""
    pairs = da.contact.pairs_of(model, self_collision=False)
    return np.asarray(da.contact.distances(model, q, pairs=pairs).gap.min(axis=-1))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape.kind))
def test_every_solid_touches_the_ground(shape: da.shapes.Shape) -> None:
    """In random poses of a batch, with a placement of its own on the second body."""
    builder = da.ModelBuilder()
    builder.add_body("a", "world", da.Free(), inertia=SOLID)
    place = da.models.random_tree(1, bodies=2).bodies[1].placement
    builder.add_body("b", "a", da.Spherical(), placement=place, inertia=SOLID)

    builder.add_shape("b", replace(shape, placement=place))
    model = builder.build().with_ground(0.3)
    q = np.array([model.random_state(seed)[0] for seed in range(20)])
    stood = da.stand(model, q)
    np.testing.assert_allclose(gap(model, stood), 0.0, atol=1e-7)
    np.testing.assert_array_equal(np.delete(stood, 2, axis=1), np.delete(q, 2, axis=1))
    np.testing.assert_allclose(da.stand(model, q[3]), stood[3], atol=1e-14)


def test_slides_and_tilted_roots_lift_too() -> None:
    """A planar walker on slides, as in Gymnasium, and a free joint in a tilted frame."""
    builder = da.ModelBuilder()
    builder.add_body("x", "world", da.Prismatic((1, 0, 0)))
    builder.add_body("z", "x", da.Prismatic((0, 0, -1)))
    builder.add_body("y", "z", da.Revolute((0, 1, 0)), inertia=SOLID, shapes=[SHAPES[1]])
    slides = builder.build().with_ground()
    stood = da.stand(slides, [0.3, 0.1, 0.5])
    assert gap(slides, stood) == pytest.approx(0.0, abs=1e-12)
    assert stood[[0, 2]].tolist() == [0.3, 0.5]
    builder = da.ModelBuilder()
    tilted = da.models.random_tree(2, bodies=2).bodies[1].placement
    builder.add_body("a", "world", da.Free(), placement=tilted, inertia=SOLID, shapes=[SHAPES[1]])
    model = builder.build().with_ground()
    before = model.random_state(5)[0]
    stood = da.stand(model, before)
    assert gap(model, stood) == pytest.approx(0.0, abs=1e-12)
    moved = [da.forward_kinematics(model, q)["a"].translation for q in (before, stood)]
    np.testing.assert_allclose(moved[0][:2], moved[1][:2], atol=1e-12)


def test_figures_that_nothing_lifts_are_refused() -> None:
    with pytest.raises(ModelError, match=r'on a fixed base.*root="floating"'):
        da.stand(da.models.arm6(), da.models.arm6().neutral())
    builder = da.ModelBuilder()
    builder.add_body("a", "world", da.Prismatic((0, 0.6, 0.8)), inertia=SOLID, shapes=[SHAPES[0]])
    with pytest.raises(ModelError, match="fixed base"):
        da.stand(builder.build(), [0.0])
    builder = da.ModelBuilder()
    builder.add_body("a", "world", da.Free(), inertia=SOLID)
    with pytest.raises(ModelError, match="no shape that collides"):
        da.stand(builder.build(), builder.build().neutral())


def test_a_released_robot_stands_on_its_meshes() -> None:
    """Go2: the oracle is the lowest vertex of all its collision meshes, posed one by one."""
    found = find_spec("pinocchio")
    if found is None or found.origin is None:
        pytest.skip("example-robot-data comes with Pinocchio")
    robots = Path(found.origin).parents[4] / "share/example-robot-data/robots"
    model = da.load(robots / "go2_description/urdf/go2.urdf", root="floating")
    q = da.stand(model, model.pose(FL_calf_joint=-1.5))
    poses, lowest = da.forward_kinematics(model, q), []
    for body in model.bodies:
        for shape in body.shapes:
            if shape.collision:
                assert isinstance(shape, da.shapes.Mesh)
                X = np.array(shape.placement.homogeneous())
                corners = read_mesh(shape.path).scale_by(shape.scale).corners @ X[:3, :3].T + X[:3, 3]
                pose = poses[body.name]
                lowest.append((corners @ pose.rotation.T + pose.translation)[:, 2].min())
    assert len(lowest) == 19
    assert min(lowest) == pytest.approx(0.0, abs=1e-12)
