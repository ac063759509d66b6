"""Shapes: inertias against integrals over their volumes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dalembert.errors import ArgumentError, ModelError
from dalembert.model.shapes import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Mesh,
    Plane,
    Shape,
    Solid,
    Sphere,
    total_inertia,
)
from dalembert.models.random_trees import random_placement
from dalembert.spatial import Transform

INSIDE = {
    "box": (Box((0.3, 0.5, 0.7)), lambda x, y, z: (abs(x) < 0.15) & (abs(y) < 0.25) & (abs(z) < 0.35)),
    "sphere": (Sphere(0.4), lambda x, y, z: x * x + y * y + z * z < 0.16),
    "ellipsoid": (
        Ellipsoid((0.2, 0.3, 0.4)),
        lambda x, y, z: (x / 0.2) ** 2 + (y / 0.3) ** 2 + (z / 0.4) ** 2 < 1,
    ),
    "cylinder": (Cylinder(0.3, 0.5), lambda x, y, z: (x * x + y * y < 0.09) & (abs(z) < 0.25)),
    "capsule": (
        Capsule(0.2, 0.3),
        lambda x, y, z: x * x + y * y + np.maximum(abs(z) - 0.15, 0.0) ** 2 < 0.04,
    ),
}


@pytest.mark.parametrize("kind", list(INSIDE))
def test_inertia_is_the_integral_over_the_volume(kind: str) -> None:
    """By the midpoint rule on a grid of a million cells, in a displaced and turned frame."""
    shape, inside = INSIDE[kind]
    n, half = 100, 0.5
    points = (np.arange(n) + 0.5) / n * 2 * half - half
    x, y, z = (a.ravel() for a in np.meshgrid(points, points, points, indexing="ij"))
    mask = inside(x, y, z)
    r = np.stack([x[mask], y[mask], z[mask]])
    cell = (2 * half / n) ** 3
    assert shape.volume == pytest.approx(mask.sum() * cell, rel=0.01)
    X = random_placement(3)
    moved = type(shape)(**(dict(shape.data()) | {"placement": X}))
    density = 700.0
    found = moved.inertia(density=density)
    world = np.array(X.R.to_list()) @ r + np.array(X.p.to_list())[:, None]
    weight = shape.volume * density / mask.sum()
    assert found.mass == pytest.approx(density * shape.volume)
    np.testing.assert_allclose(list(found.h), weight * world.sum(axis=1), rtol=0.01)
    second = weight * world @ world.T
    I = np.trace(second) * np.eye(3) - second
    np.testing.assert_allclose(found.inertia.to_list(), I, atol=0.01 * np.trace(I))


def test_a_capsule_without_length_is_a_sphere() -> None:
    thin = Capsule(0.3, 1e-12)
    assert thin.volume == pytest.approx(Sphere(0.3).volume, rel=1e-9)
    np.testing.assert_allclose(
        thin.inertia(mass=2.0).leaves(), Sphere(0.3).inertia(mass=2.0).leaves(), rtol=1e-9
    )


def test_mass_and_density_are_alternatives() -> None:
    box = Box((1.0, 2.0, 3.0))
    assert box.inertia(mass=12.0) == box.inertia(density=2.0)
    for options in ({}, {"mass": 1.0, "density": 1.0}):
        with pytest.raises(ArgumentError, match="give either mass or density"):
            box.inertia(**options)
    with pytest.raises(ModelError, match="mass is -1"):
        box.inertia(mass=-1.0)


def test_inertias_of_several_solids_add() -> None:
    shapes = [Sphere(0.1, placement=random_placement(1)), Box((0.1, 0.2, 0.3), placement=random_placement(2))]
    whole = total_inertia(shapes, density=1000.0)
    assert whole.mass == pytest.approx(1000.0 * sum(shape.volume for shape in shapes))
    parts = shapes[0].inertia(density=1000.0) + shapes[1].inertia(density=1000.0)
    np.testing.assert_allclose(whole.leaves(), parts.leaves(), rtol=1e-14)


@pytest.mark.parametrize("b", [(0.0, 0.0, -1.0), (0.0, 0.0, 2.0), (1.0, 2.0, -3.0), (1e-9, 0.0, -1.0)])
def test_a_capsule_between_points_ends_there(b: tuple[float, float, float]) -> None:
    a = (0.0, 0.0, 0.5)
    capsule = Capsule.between(a, b, 0.1, name="c")
    ends = [capsule.placement.transform_point(_z(s * capsule.length / 2)) for s in (-1.0, 1.0)]
    np.testing.assert_allclose([list(end) for end in ends], [a, b], atol=1e-12)
    R = np.array(capsule.placement.R.to_list())
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-12)
    assert np.linalg.det(R) > 0


def _z(z: float):  # type: ignore[no-untyped-def]
    from dalembert.spatial import Vec3

    return Vec3(0.0, 0.0, z)


BAD = [
    (lambda: Box((1, 2)), "box: size has 2 numbers; give three"),
    (lambda: Box((1, 2, 0)), "box: size is 0; give a finite positive number"),
    (lambda: Sphere(math.nan), "sphere: radius is nan"),
    (lambda: Sphere("1"), "sphere: radius is '1'"),  # type: ignore[arg-type]
    (lambda: Capsule(1.0, -1.0), "capsule: length is -1.0"),
    (lambda: Cylinder(math.inf, 1.0), "cylinder: radius is inf"),
    (lambda: Ellipsoid((1, 1, -1)), "ellipsoid: radii is -1"),
    (lambda: Capsule.between((0, 0, 0), (0, 0, 0), 1.0), "distance between its ends is 0.0"),
    (lambda: Mesh(""), "mesh: path is empty"),
    (lambda: Mesh("a.stl", (1, 0, 1)), "mesh: scale"),
    (lambda: Sphere(1.0, rgba=(1, 1, 1)), "rgba is"),  # type: ignore[arg-type]
    (lambda: Sphere(1.0, rgba=(1, 1, 1, 2)), "four numbers from 0 to 1"),
    (lambda: Sphere(1.0, friction=(1, -1, 0)), "friction is"),
    (lambda: Sphere(1.0, restitution=1.5), "restitution is 1.5"),
    (lambda: Sphere(1.0, placement=3), "sphere: placement must be a Transform"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=range(len(BAD)))
def test_bad_shapes_are_refused(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ModelError, match=message):
        make()


def test_shapes_are_frozen_values() -> None:
    assert Sphere(1.0) == Sphere(1)
    assert Sphere(1.0) != Sphere(2.0)
    assert Plane() == Plane()
    assert not isinstance(Plane(), Solid)
    assert isinstance(Mesh("a.obj", (-1, 1, 1)), Shape)
    assert Sphere(1.0).placement == Transform.identity()
    with pytest.raises(AttributeError):
        Sphere(1.0).radius = 2.0  # type: ignore[misc]


def test_the_joint_that_is_called_like_a_shape_is_told_apart():
    import dalembert as da

    builder = da.ModelBuilder()
    builder.add_body("stone", "world", da.Free())
    with pytest.raises(ModelError, match=r"use da\.shapes\.Ellipsoid"):
        builder.add_shape("stone", da.joints.EllipsoidJoint(0.3, 0.2, 0.1))
