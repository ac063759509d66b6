"""Planar vectors: the spatial algebra restricted to the x-y plane."""

import numpy as np
import pytest
from tests.spatial.dense import Random, array

from dalembert.errors import DalembertError
from dalembert.spatial import RigidInertia, Transform, matrices
from dalembert.textbook.planar_algebra import (
    PlanarForce,
    PlanarInertia,
    PlanarMotion,
    PlanarTransform,
    Xpln,
    XtoV,
    XtoV_simple,
    crf,
    crm,
    mcI,
)

SEEDS = pytest.mark.parametrize("seed", range(4))
ROWS = np.ix_([2, 3, 4], [2, 3, 4])


def planar(values):
    return np.array(list(values), dtype=float)


@SEEDS
def test_planar_matrices_are_blocks_of_the_spatial_ones(seed):
    """RBDA-2.16-PLANAR, RBDA-A.1-PLANAR: rows and columns 3, 4, 5 of v x, v x*, X and I"""
    random = Random(seed)
    v, angle, r = random.vector(), 0.8, random.vector(2)
    spatial_v = [0.0, 0.0, v[0], v[1], v[2], 0.0]
    np.testing.assert_allclose(crm(v), np.array(matrices.crm(spatial_v))[ROWS])
    np.testing.assert_allclose(crf(v), np.array(matrices.crf(spatial_v))[ROWS])
    spatial_X = np.array(matrices.rotz(angle)) @ matrices.xlt([*r, 0.0])
    np.testing.assert_allclose(Xpln(angle, r), spatial_X[ROWS], atol=1e-15)
    np.testing.assert_allclose(PlanarTransform.of(angle, r).motion_matrix(), Xpln(angle, r))
    spatial_I = RigidInertia(1.7, [*r, 0.3], np.diag([0.2, 0.4, 0.5])).matrix()
    np.testing.assert_allclose(mcI(1.7, r, 0.5), np.array(spatial_I)[ROWS])


@SEEDS
def test_planar_values_act_like_their_spatial_counterparts(seed):
    """RBDA-2.16-PLANAR: products, cross products, transforms both ways, inertias of 4 parameters"""
    random = Random(seed)
    u, v = PlanarMotion(*random.vector()), PlanarMotion(*random.vector())
    f, g = PlanarForce(*random.vector()), PlanarForce(*random.vector())
    I = PlanarInertia(1.7, random.vector(2), 0.5)
    X, Y = PlanarTransform.of(0.7, random.vector(2)), PlanarTransform.of(-1.9, random.vector(2))
    U, V, F, G, J = (value.to_spatial() for value in (u, v, f, g, I))
    T = X.to_spatial()
    pairs = [
        (u + v, U + V),
        (u - v, U - V),
        (2.0 * v, V * 2.0),
        (f + g, F + G),
        (f - g, F - G),
        (f * 3.0, F * 3.0),
        (u.cross(v), U.cross(V)),
        (u.cross(f), U.cross(F)),
        (I * v, J * V),
        (X.apply(v), T.apply(V)),
        (X.inverse_apply(v), T.inverse_apply(V)),
        (X.apply(f), T.apply(F)),
        (X.inverse_apply(f), T.inverse_apply(F)),
    ]
    for flat, spatial in pairs:
        np.testing.assert_allclose(array(flat.to_spatial()), array(spatial), atol=1e-13)
    np.testing.assert_allclose([v.dot(f), f.dot(v)], V.dot(F))
    for flat, spatial in [(X.apply(I), T.apply(J)), (X.inverse_apply(I), T.inverse_apply(J))]:
        np.testing.assert_allclose(flat.matrix(), np.array(spatial.matrix())[ROWS], atol=1e-12)
    np.testing.assert_allclose(((I + I) * 2.0 + 3.0 * I).matrix(), 7.0 * np.array(I.matrix()))
    np.testing.assert_allclose(array(I.to_spatial().com)[:2], I.com)
    assert len(I.leaves()) == 4
    product = (X @ Y).to_spatial()
    assert isinstance(product, Transform)
    np.testing.assert_allclose(product.homogeneous(), (T @ Y.to_spatial()).homogeneous(), atol=1e-13)
    np.testing.assert_allclose((X @ X.inverse()).to_spatial().homogeneous(), np.eye(4), atol=1e-13)


@SEEDS
def test_planar_equation_of_motion(seed):
    """RBDA-2.16-PLANAR: f = I a + v x* I v at the COM is f = m c'', n = I_C alpha"""
    random = Random(seed)
    I = PlanarInertia(1.7, (0.0, 0.0), 0.5)
    omega, alpha, c1, c2 = 1.2, -0.7, random.vector(2), random.vector(2)
    v = PlanarMotion(omega, *c1)
    a = PlanarMotion(alpha, c2[0] + omega * c1[1], c2[1] - omega * c1[0])
    np.testing.assert_allclose(planar(I * a + v.cross(I * v)), [0.5 * alpha, *(1.7 * c2)])


@SEEDS
def test_velocity_from_a_planar_transform(seed):
    """RBDA-A.1-PLANAR: version 2 is invariant, u = v asin(X23)/X23; both exact for translations"""
    random = Random(seed)
    angle, r = float(random.rng.uniform(-1.2, 1.2)), random.vector(2)
    X = np.array(Xpln(angle, r))
    v = np.array(XtoV(X))
    np.testing.assert_allclose(X @ v, v, atol=1e-14)
    u = v * np.arcsin(X[1, 2]) / X[1, 2]
    np.testing.assert_allclose(u[0], angle)
    # Travelling at u for one unit of time: x' = R(omega t) v, solved in closed form.
    turn = np.array([[np.sin(angle), np.cos(angle) - 1.0], [1.0 - np.cos(angle), np.sin(angle)]]) / angle
    np.testing.assert_allclose(turn @ u[1:], r, atol=1e-13)
    for version in (XtoV, XtoV_simple):
        np.testing.assert_allclose(version(Xpln(0.0, r)), [0.0, *r])
    small = np.array(Xpln(1e-6, r))
    np.testing.assert_allclose(XtoV_simple(small), XtoV(small), atol=1e-5)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m, f, I, X: m + f,
        lambda m, f, I, X: f + m,
        lambda m, f, I, X: m.dot(m),
        lambda m, f, I, X: f.dot(f),
        lambda m, f, I, X: m * f,
        lambda m, f, I, X: f * m,
        lambda m, f, I, X: m.cross(I),
        lambda m, f, I, X: I * f,
        lambda m, f, I, X: I + m,
        lambda m, f, I, X: X.apply(1.0),
        lambda m, f, I, X: X @ m,
        lambda m, f, I, X: m + m.to_spatial(),
    ],
)
def test_wrong_planar_mixes_raise(wrong):
    """RBDA-2.16-PLANAR, RBDA-A.3-TYPES"""
    values = (
        PlanarMotion(1.0, 2.0, 3.0),
        PlanarForce(1.0, 2.0, 3.0),
        PlanarInertia(1.0, (2.0, 3.0), 4.0),
        PlanarTransform.of(0.3, (1.0, 2.0)),
    )
    with pytest.raises(TypeError, match="not defined") as caught:
        wrong(*values)
    assert isinstance(caught.value, DalembertError)
