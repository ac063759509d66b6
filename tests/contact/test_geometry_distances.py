"""Distances of a model's shapes and their rates, compiled."""

import numpy as np
import pytest
from tests.contact.placements import Poses, by_coal, points_between

import dalembert as da
from dalembert.errors import UnknownNameError
from dalembert.model.shapes import ConvexMesh, Ellipsoid, HeightField

INERTIA = da.shapes.Sphere(0.1).inertia(mass=1.0)
MESH = ConvexMesh(np.random.default_rng(1).normal(size=(12, 3)) * 0.3)
BOX = da.shapes.Box((0.5, 0.8, 1.1))
HILLS = HeightField(0.2 * np.random.default_rng(2).normal(size=(5, 5)), (8.0, 8.0))


def two(a, b, **options):
    """Two free bodies with a shape each, or one where the first is ground."""
    builder = da.ModelBuilder()
    for name, shape in (("first", a), ("second", b)):
        if isinstance(shape, da.shapes.Plane | HeightField):
            builder.add_shape("world", shape)
        else:
            builder.add_body(name, "world", da.Free(), inertia=INERTIA)
            builder.add_shape(name, shape)
    return builder.build()


def moving(model, n, reach, rng):
    """States in which nothing is far away."""
    q = np.stack([model.random_state(rng)[0] for _ in range(n)])
    for start in range(0, model.nq, 7):
        q[:, start : start + 3] = rng.uniform(-reach, reach, size=(n, 3))
    return q, rng.normal(size=(n, model.nv))


def poses(q):
    w, x, y, z = q[..., 3:7].T
    R = np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip
    return Poses(R, q[..., :3].T)


def test_boxes_that_are_apart_are_as_far_as_coal_says():
    model = two(da.shapes.Box((0.7, 0.4, 0.9)), BOX)
    q, _ = moving(model, 800, 0.9, np.random.default_rng(41))
    found = da.contact.distances(model, q)
    distances, normals = by_coal(da.shapes.Box((0.7, 0.4, 0.9)), poses(q[:, :7]), BOX, poses(q[:, 7:]))
    apart = distances > 1e-6
    assert apart.sum() > 200
    np.testing.assert_allclose(found.gap[apart, 0], distances[apart], atol=1e-8)
    np.testing.assert_allclose(found.normal[apart, 0].T, normals[:, apart], atol=1e-5)
    assert (found.gap[~apart] < 1e-6).all()


def test_machine_code_finds_the_same_distances_as_arrays():
    """However it rounds: fused multiplications are no reason for a tetrahedron to hold the origin."""
    a, b = da.shapes.Cylinder(0.3, 0.5), Ellipsoid((0.2, 0.3, 0.4))
    model = two(a, b)
    q, _ = moving(model, 300, 0.8, np.random.default_rng(44))
    gap = points_between(a, poses(q[:, :7]), b, poses(q[:, 7:])).gap[0]
    found = da.contact.distances(model, q).gap[:, 0]
    apart = gap > -0.05
    assert apart.sum() > 200
    np.testing.assert_allclose(found[apart], gap[apart], atol=1e-6)


def test_batches_names_and_chosen_pairs():
    feet = [("ground", "left_foot"), ("ground", "right_foot")]
    model = da.models.humanoid().with_ground(name="ground")
    q = np.stack([model.random_state(s)[0] for s in range(6)]).reshape(2, 3, -1)
    found = da.contact.distances(model, q, pairs=feet)
    n = len(found.names)
    assert n == len(da.contact.pairs_of(model, only=feet))
    assert found.gap.shape == (2, 3, n)
    assert found.normal.shape == found.position.shape == (2, 3, n, 3)
    one = da.contact.distances(model, q[1, 2], pairs=feet)
    np.testing.assert_allclose(one.gap, found.gap[1, 2], atol=1e-14)
    assert {first for first, _ in found.names} == {"ground"}
    none = da.contact.distances(two(da.shapes.Sphere(0.1, collision=False), BOX), np.zeros((4, 14)))
    assert none.gap.shape == (4, 0)
    assert none.normal.shape == (4, 0, 3)
    with pytest.raises(UnknownNameError):
        da.contact.distances(model, q, pairs=["left_fot"])


PAIRS = [
    (da.shapes.Plane(), BOX),
    (HILLS, da.shapes.Capsule(0.1, 0.5)),
    (da.shapes.Sphere(0.3), da.shapes.Capsule(0.2, 0.9)),
    (da.shapes.Capsule(0.1, 0.7), da.shapes.Capsule(0.2, 0.9)),
    (da.shapes.Capsule(0.2, 0.9), BOX),
    (da.shapes.Sphere(0.2), BOX),
    (BOX, da.shapes.Box((0.3, 0.4, 0.9))),
    (BOX, MESH),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0].kind}-{pair[1].kind}")
def test_rates_are_those_of_the_nearest_points_and_of_differences(pair):
    """RBDA-11.3-SYSTEM, RBDA-11.4-STATES: d phi/dt = n . (v_b - v_a)."""
    model = two(*pair)
    q, v = moving(model, 200, 1.0, np.random.default_rng(42))
    found, rates = da.contact.distances(model, q), da.contact.gap_rates(model, q, v)
    relative = np.zeros((len(q), 3))
    for body in model.bodies:
        pose, own = poses(q[:, body.q_slice]), v[:, body.v_slice]
        turning, speed = (np.einsum("ijn,nj->ni", pose.R, part) for part in (own[:, :3], own[:, 3:]))
        velocity = speed + np.cross(turning, found.position[:, 0] - pose.p.T)
        relative += velocity if body.name == "second" else -velocity
    np.testing.assert_allclose(rates.gap[:, 0], np.sum(found.normal[:, 0] * relative, axis=1), atol=1e-10)
    h = 1e-6
    after, before = (da.contact.distances(model, da.integrate(model, q, s * h * v)) for s in (1.0, -1.0))
    change, turn = ((x - y)[:, 0] / (2.0 * h) for x, y in zip(after[:2], before[:2], strict=True))
    # Boxes and general solids that overlap deeply have a normal that is not that of the least depth.
    shallow = found.gap[:, 0] > -0.1
    assert (np.abs(change - rates.gap[:, 0])[shallow] < 1e-3).mean() > 0.95
    smooth = shallow & (np.linalg.norm(turn, axis=1) < 50.0)  # within the difference nearest points may jump
    assert smooth.sum() > 0.7 * shallow.sum()
    assert np.quantile(np.linalg.norm(turn - rates.normal[:, 0], axis=1)[smooth], 0.9) < 1e-4


def test_a_ball_that_rolls_around_another_turns_the_normal():
    """In closed form: dn/dt = (v - n n . v) / distance of the centres."""
    model = two(da.shapes.Sphere(0.3), da.shapes.Sphere(0.5))
    q, v = moving(model, 50, 1.0, np.random.default_rng(43))
    found, rates = da.contact.distances(model, q), da.contact.gap_rates(model, q, v)
    A, B = poses(q[:, :7]), poses(q[:, 7:])
    velocity = np.einsum("ijn,nj->ni", B.R, v[:, 9:12]) - np.einsum("ijn,nj->ni", A.R, v[:, 3:6])
    n = found.normal[:, 0]
    across = velocity - n * np.sum(n * velocity, axis=1, keepdims=True)
    expected = across / np.linalg.norm(B.p - A.p, axis=0)[:, None]
    np.testing.assert_allclose(rates.normal[:, 0], expected, atol=1e-10)
    np.testing.assert_allclose(rates.gap[:, 0], np.sum(n * velocity, axis=1), atol=1e-10)
