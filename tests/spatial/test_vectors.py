"""3-D vectors and matrices, and what holds for every frozen value."""

import copy
import pickle

import numpy as np
import pytest
from tests.spatial.dense import ONE, Random, array, skew

from dalembert.errors import DalembertError, ShapeError
from dalembert.spatial import (
    AxialScrew,
    BodyAcceleration,
    Mat3,
    Motion,
    RigidInertia,
    ScrewChain,
    SymMat3,
    Transform,
    Vec3,
    scrx,
    scrz,
)
from dalembert.textbook.planar_algebra import PlanarForce, PlanarInertia, PlanarMotion, PlanarTransform


@pytest.mark.parametrize("seed", range(5))
def test_the_nine_identities_of_the_cross_operator(seed):
    """RBDA-2.8-CROSS3: Table 2.1"""
    random = Random(seed)
    a, b = random.vector(), random.vector()
    x, y, E, factor = Vec3.of(a), Vec3.of(b), random.rotation(), 1.7
    ax, bx = array(x.skew()), array(y.skew())
    np.testing.assert_allclose(ax, skew(a))
    np.testing.assert_allclose(ax, -ax.T)
    np.testing.assert_allclose(array((x * factor).skew()), factor * ax)
    np.testing.assert_allclose(array((x + y).skew()), ax + bx)
    np.testing.assert_allclose(array((Mat3.of(E) @ x).skew()), E @ ax @ E.T, atol=1e-14)
    np.testing.assert_allclose(array(x.skew() @ y), -array(y.skew() @ x))
    np.testing.assert_allclose(array(x.cross(y)), a @ bx)
    cross = array(x.cross(y).skew())
    np.testing.assert_allclose(cross, ax @ bx - bx @ ax, atol=1e-14)
    np.testing.assert_allclose(cross, array(y.outer(x) - x.outer(y)), atol=1e-14)
    np.testing.assert_allclose(ax @ bx, array(y.outer(x)) - x.dot(y) * ONE, atol=1e-14)
    np.testing.assert_allclose(array(x.skew().axial()), a)


def test_matrix_arithmetic_equals_numpy():
    """RBDA-A.3-OPS, the 3-D part"""
    random = Random(1)
    A, B, S, v = random.mat3(), random.mat3(), SymMat3.of(random.spd()), random.vec3()
    a, b, s = array(A), array(B), array(S)
    np.testing.assert_allclose(array(A @ B), a @ b)
    np.testing.assert_allclose(array(A @ S), a @ s)
    np.testing.assert_allclose(array(S @ A), s @ a)
    np.testing.assert_allclose(array(A @ v), a @ array(v))
    np.testing.assert_allclose(array(A.transposed_times(v)), a.T @ array(v))
    np.testing.assert_allclose(array(S @ v), s @ array(v))
    np.testing.assert_allclose(array(A + S - B * 2.0), a + s - 2.0 * b)
    np.testing.assert_allclose(array(S + A), s + a)
    np.testing.assert_allclose(array(S - A), s - a)
    np.testing.assert_allclose(A.determinant(), np.linalg.det(a))
    np.testing.assert_allclose(array(S.inverse()), np.linalg.inv(s))
    np.testing.assert_allclose([A.trace(), S.trace()], [np.trace(a), np.trace(s)])
    np.testing.assert_allclose((v / 2.0).norm(), np.linalg.norm(array(v)) / 2.0)


VALUES = [
    Vec3(1.0, 2.0, 3.0),
    Mat3.identity(),
    SymMat3.identity(),
    Motion.of(range(6)),
    RigidInertia(2.0, (0.1, 0.2, 0.3), (1.0, 2.0, 2.5)),
    Random(0).articulated()[0],
    Random(0).transform()[0],
    scrx(0.3, 0.4),
    ScrewChain((scrx(0.3, 0.4), scrz(0.1, 0.2))),
    BodyAcceleration(Vec3(1.0, 2.0, 3.0), Vec3.zero(), Vec3.zero()),
    PlanarMotion(1.0, 2.0, 3.0),
    PlanarForce(1.0, 2.0, 3.0),
    PlanarInertia(1.0, (2.0, 3.0), 4.0),
    PlanarTransform.of(0.3, (1.0, 2.0)),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_frozen_hashable_and_survive_copying(value):
    """RBDA-A.3-TYPES: values, not containers"""
    name = type(value).__slots__[-1]
    with pytest.raises(AttributeError, match="frozen") as caught:
        setattr(value, name, 0.0)
    assert isinstance(caught.value, DalembertError)
    with pytest.raises(AttributeError, match="frozen"):
        delattr(value, name)
    for twin in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):
        assert twin == value
        assert hash(twin) == hash(value)
    changed = value.rebuilt(iter([item + 1.0 for item in value.leaves()]))
    assert changed != value
    assert type(value).__name__ in repr(value)
    assert value != "something else"


def test_screws_about_different_axes_differ():
    assert AxialScrew(0, 1.0, 0.0, 0.0) != AxialScrew(1, 1.0, 0.0, 0.0)


def test_sequences_arrays_and_integers_are_accepted():
    assert Vec3.of((1, 2, 3)) == Vec3.of(np.array([1.0, 2.0, 3.0])) == Vec3.of([1.0, np.float64(2.0), 3])
    assert all(type(item) is float for item in Vec3.of(np.array([0, 1, 2])))
    assert Mat3.of(np.eye(3)) == Mat3.of([[1, 0, 0], [0, 1, 0], [0, 0, 1]]) == Mat3.identity()
    batch = Vec3.of(np.ones((3, 7)))
    assert batch.x.shape == (7,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Vec3.of((1.0, 2.0)), "3 elements, got 2"),
        (lambda: Vec3.of(np.zeros(4)), "3 elements, got 4"),
        (lambda: Mat3.of(np.zeros((2, 3))), "3 rows, got 2"),
        (lambda: Mat3.of(np.zeros((3, 2))), "3 elements, got 2"),
        (lambda: SymMat3.of([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), "not symmetric: xy = 2.0 but yx = 4.0"),
        (lambda: Motion.of(np.zeros(5)), "6 elements, got 5"),
    ],
)
def test_wrong_shapes_are_named(make, message):
    with pytest.raises(ShapeError, match=message):
        make()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda v, A: v + 1.0,
        lambda v, A: v - A,
        lambda v, A: v * v,
        lambda v, A: v / v,
        lambda v, A: v.dot(A),
        lambda v, A: v.cross(3.0),
        lambda v, A: A + v,
        lambda v, A: A - 1.0,
        lambda v, A: A * v,
        lambda v, A: A @ 2.0,
        lambda v, A: SymMat3.identity() + v,
        lambda v, A: SymMat3.identity() - v,
        lambda v, A: SymMat3.identity() * v,
        lambda v, A: Vec3.of(3.0),
        lambda v, A: Vec3.of("abc"),
        lambda v, A: Mat3.of("abc"),
    ],
)
def test_wrong_mixes_of_vectors_and_matrices_raise(wrong):
    """RBDA-A.3-TYPES"""
    with pytest.raises(TypeError) as caught:
        wrong(Vec3(1.0, 2.0, 3.0), Mat3.identity())
    assert isinstance(caught.value, DalembertError)


def test_transform_keeps_what_it_was_given():
    random = Random(2)
    R, p = random.rotation(), random.vector()
    X = Transform.from_rotation_translation(R, p)
    np.testing.assert_array_equal(array(X.R), R)
    np.testing.assert_array_equal(array(X.p), p)
    np.testing.assert_array_equal(array(X.E), R.T)
