"""Coordinate transforms, and how coordinates change while frames move."""

import numpy as np
import pytest
import scipy.linalg
from tests.spatial.dense import Random, array, cross_force, cross_motion, plucker, skew

from dalembert.errors import ArgumentError
from dalembert.spatial import (
    AxialScrew,
    Force,
    Motion,
    ScrewChain,
    SpatialTypeError,
    Transform,
    Value,
    Vec3,
    rx,
    ry,
    rz,
    scrx,
    scry,
    scrz,
)
from dalembert.spatial.matrices import XtoV, rot, rotx, roty, rotz, xlt
from dalembert.spatial.transform import Placement

SEEDS = pytest.mark.parametrize("seed", range(4))


def placements(seed):
    """One placement of every kind."""
    random = Random(seed)
    T = random.transform()[0]
    screws = [make(*random.vector(2)) for make in (scrx, scry, scrz)]
    return [Transform.identity(), T, *screws, ScrewChain(screws), ScrewChain((screws[0], T, screws[2]))]


@SEEDS
@pytest.mark.parametrize("kind", range(7))
def test_every_kind_of_placement_transforms_like_its_6x6_matrices(kind, seed):
    """RBDA-2.8-XFORM, RBDA-A.3-OPS, RBDA-A.4-SCREW: X m, X* f, X* I X^-1, X* I^A X^-1 and their inverses"""
    P, random = placements(seed)[kind], Random(seed + 100)
    R, p = array(P.R), array(P.p)
    X = plucker(R, p)
    inverse, force = np.linalg.inv(X), np.linalg.inv(X).T
    np.testing.assert_allclose(P.motion_matrix(), X, atol=1e-13)
    np.testing.assert_allclose(P.force_matrix(), force, atol=1e-13)
    np.testing.assert_allclose(X @ inverse, np.eye(6), atol=1e-13)
    (m, dm), (f, df), (I, dI), (A, dA) = random.motion(), random.force(), random.rigid(), random.articulated()
    np.testing.assert_allclose(array(P.apply(m)), X @ dm, atol=1e-12)
    np.testing.assert_allclose(array(P.apply(f)), force @ df, atol=1e-12)
    np.testing.assert_allclose(P.apply(I).matrix(), force @ dI @ inverse, atol=1e-11)
    np.testing.assert_allclose(P.apply(A).matrix(), force @ dA @ inverse, atol=1e-11)
    np.testing.assert_allclose(array(P.inverse_apply(m)), inverse @ dm, atol=1e-12)
    np.testing.assert_allclose(array(P.inverse_apply(f)), X.T @ df, atol=1e-12)
    np.testing.assert_allclose(P.inverse_apply(I).matrix(), X.T @ dI @ X, atol=1e-11)
    np.testing.assert_allclose(P.inverse_apply(A).matrix(), X.T @ dA @ X, atol=1e-11)
    for value in (m, f, I, A):
        returned = P.inverse_apply(P.apply(value))
        assert type(returned) is type(value)
        np.testing.assert_allclose(returned.leaves(), value.leaves(), atol=1e-11)
        np.testing.assert_allclose(
            P.inverse().apply(value).leaves(), P.inverse_apply(value).leaves(), atol=1e-11
        )


@SEEDS
@pytest.mark.parametrize("first", range(7))
@pytest.mark.parametrize("second", range(7))
def test_composition_is_the_product_of_matrices(first, second, seed):
    """RBDA-A.3-OPS: X1 X2 = plx(E1 E2, r2 + E2^T r1), for every pair of kinds"""
    A, B = placements(seed)[first], placements(seed + 50)[second]
    product = A @ B
    assert isinstance(product, Placement)
    np.testing.assert_allclose(product.homogeneous(), np.array(A.homogeneous()) @ B.homogeneous(), atol=1e-12)
    np.testing.assert_allclose(
        product.motion_matrix(), np.array(B.motion_matrix()) @ A.motion_matrix(), atol=1e-12
    )


@SEEDS
@pytest.mark.parametrize("kind", range(7))
def test_points_and_free_vectors_follow_the_homogeneous_matrix(kind, seed):
    """RBDA-2.8-XFORM: the 4x4 matrix, and its consistency with X"""
    P, random = placements(seed)[kind], Random(seed)
    point = random.vec3()
    T = np.array(P.homogeneous())
    np.testing.assert_allclose([*P.transform_point(point), 1.0], T @ [*point, 1.0], atol=1e-13)
    np.testing.assert_allclose(
        [*P.inverse_transform_point(point), 1.0], np.linalg.solve(T, [*point, 1.0]), atol=1e-12
    )
    np.testing.assert_allclose(np.array(P.inverse_homogeneous()) @ T, np.eye(4), atol=1e-13)
    np.testing.assert_allclose(array(P.rotate_to_parent(point)), T[:3, :3] @ array(point), atol=1e-13)
    np.testing.assert_allclose(array(P.rotate_to_child(point)), T[:3, :3].T @ array(point), atol=1e-13)
    # The velocity of a body point maps like the point does: X is consistent with T.
    v = random.motion()[0]
    np.testing.assert_allclose(
        array(P.rotate_to_parent(P.apply(v).at(point))), array(v.at(P.transform_point(point))), atol=1e-12
    )


@SEEDS
def test_forces_transform_with_the_inverse_transpose_so_that_power_is_invariant(seed):
    """RBDA-2.1-DUAL: X* = X^-T; m^T f invariant"""
    random = Random(seed)
    (X, _), (m, _), (f, _) = random.transform(), random.motion(), random.force()
    np.testing.assert_allclose(np.array(X.force_matrix()).T @ X.motion_matrix(), np.eye(6), atol=1e-13)
    np.testing.assert_allclose(X.apply(m).dot(X.apply(f)), m.dot(f))


def test_the_book_s_rotations_are_passive():
    """RBDA-2.8-ROTFN, RBDA-A.2-SPATIAL: rz = [c s 0; -s c 0; 0 0 1]: "how frame A must move to become B" """
    c, s = np.cos(0.3), np.sin(0.3)
    np.testing.assert_allclose(array(rx(0.3)), [[1, 0, 0], [0, c, s], [0, -s, c]])
    np.testing.assert_allclose(array(ry(0.3)), [[c, 0, -s], [0, 1, 0], [s, 0, c]])
    np.testing.assert_allclose(array(rz(0.3)), [[c, s, 0], [-s, c, 0], [0, 0, 1]])
    for matrix, E in ((rotx, rx), (roty, ry), (rotz, rz)):
        np.testing.assert_allclose(matrix(0.3), scipy.linalg.block_diag(array(E(0.3)), array(E(0.3))))
    # B is A turned by +0.3 about z: the x axis of B, in B coordinates e_x, is (c, s, 0) in A.
    np.testing.assert_allclose(array(rz(0.3)) @ [c, s, 0.0], [1.0, 0.0, 0.0], atol=1e-15)


@SEEDS
def test_any_transform_is_a_shift_then_a_turn(seed):
    """RBDA-2.8-XFORM, RBDA-A.2-SPATIAL: B_X_A = rot(E) xlt(r) and its force version"""
    random = Random(seed)
    E, r = random.rotation(), random.vector()
    X = Transform.from_rotation_translation(E.T, r)
    np.testing.assert_allclose(X.motion_matrix(), np.array(rot(E)) @ xlt(r), atol=1e-13)
    np.testing.assert_allclose(X.force_matrix(), np.array(rot(E)) @ np.linalg.inv(xlt(r)).T, atol=1e-13)
    np.testing.assert_allclose(np.array(xlt(r))[3:, :3], -skew(r))


@pytest.mark.parametrize(("screw", "turn", "axis"), [(scrx, rotx, 0), (scry, roty, 1), (scrz, rotz, 2)])
def test_turn_and_shift_of_an_axial_screw_commute(screw, turn, axis):
    """RBDA-A.4-SCREW: scr = rot xlt = xlt rot"""
    X = screw(0.7, 0.4).motion_matrix()
    shift = xlt(0.4 * np.eye(3)[axis])
    np.testing.assert_allclose(X, np.array(turn(0.7)) @ shift, atol=1e-15)
    np.testing.assert_allclose(X, shift @ np.array(turn(0.7)), atol=1e-15)
    c, s, ss, cs, cs2, cos2 = screw(0.7, 0.4).turn
    np.testing.assert_allclose([ss, cs, cs2, cos2], [s * s, c * s, np.sin(1.4), np.cos(1.4)])


def test_two_screws_make_a_denavit_hartenberg_transform():
    """RBDA-A.4-SCREW: a along x and alpha about x, then d along z and theta about z"""
    a, alpha, d, theta = 0.4, 0.3, -0.2, 1.1
    chain = scrx(alpha, a) @ scrz(theta, d)
    assert isinstance(chain, ScrewChain)
    ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    modified = [
        [ct, -st, 0.0, a],
        [st * ca, ct * ca, -sa, -d * sa],
        [st * sa, ct * sa, ca, d * ca],
        [0.0, 0.0, 0.0, 1.0],
    ]
    np.testing.assert_allclose(chain.homogeneous(), modified, atol=1e-15)


@SEEDS
def test_three_screws_make_any_transform(seed):
    """RBDA-A.4-SCREW: about z, x and z, with the shifts solved from the position"""
    random = Random(seed)
    R, p = random.rotation(), random.vector()
    angles = [np.arctan2(R[0, 2], -R[1, 2]), np.arccos(R[2, 2]), np.arctan2(R[2, 0], R[2, 1])]
    e_z, e_x = np.eye(3)[2], np.eye(3)[0]
    columns = [e_z, array(scrz(angles[0], 0.0).R) @ e_x, R @ e_z]
    shifts = np.linalg.solve(np.array(columns).T, p)
    chain = ScrewChain([make(t, d) for make, t, d in zip((scrz, scrx, scrz), angles, shifts, strict=True)])
    np.testing.assert_allclose(chain.homogeneous()[:3], np.column_stack([R, p]), atol=1e-13)


def test_screws_about_one_axis_compose_to_a_screw():
    """RBDA-A.4-SCREW"""
    both = scry(0.3, 0.1) @ scry(0.5, -0.4)
    assert isinstance(both, AxialScrew)
    np.testing.assert_allclose(both.homogeneous(), scry(0.8, -0.3).homogeneous(), atol=1e-15)


@SEEDS
def test_velocity_from_a_transform(seed):
    """RBDA-A.2-SPATIAL: XtoV is invariant under X, exact for translations, first order in the angle"""
    random = Random(seed)
    R, p = random.rotation(), random.vector()
    X = plucker(R, p)
    v = np.array(XtoV(X))
    np.testing.assert_allclose(X @ v, v, atol=1e-13)
    np.testing.assert_allclose(np.linalg.solve(X, v), v, atol=1e-13)
    np.testing.assert_allclose(XtoV(xlt(p)), [0.0, 0.0, 0.0, *p])
    u = random.vector(6)
    errors = []
    for angle in (1e-2, 1e-3):
        T = scipy.linalg.expm(angle * np.block([[skew(u[:3]), u[3:, None]], [np.zeros((1, 4))]]))
        errors.append(np.linalg.norm(np.array(XtoV(plucker(T[:3, :3], T[:3, 3]))) / angle - u))
    assert errors[1] < errors[0] / 50.0


def moving_frame(seed):
    """A frame in constant screw motion: X(t) from fixed to moving coordinates, and its velocity in both."""
    random = Random(seed)
    v = random.vector(6)
    R0, p0 = random.rotation(), random.vector()
    start = np.vstack([np.column_stack([R0, p0]), [0.0, 0.0, 0.0, 1.0]])
    twist = np.block([[skew(v[:3]), v[3:, None]], [np.zeros((1, 4))]])

    def X(t):
        T = scipy.linalg.expm(t * twist) @ start
        return plucker(T[:3, :3], T[:3, 3])

    return X, v


def rate(function, step=1e-5):
    return (function(step) - function(-step)) / (2.0 * step)


@SEEDS
def test_rate_of_a_transform(seed):
    """RBDA-2.10-XDOT: d/dt B_X_A = (v_A - v_B) x B_X_A in B coordinates, both frames moving"""
    X_A, v_A = moving_frame(seed)
    X_B, v_B = moving_frame(seed + 10)

    def B_X_A(t):
        return X_B(t) @ np.linalg.inv(X_A(t))

    relative = Motion.of(X_B(0.0) @ (v_A - v_B))
    expected = cross_motion(array(relative)) @ B_X_A(0.0)
    np.testing.assert_allclose(rate(B_X_A), expected, atol=1e-7)


@SEEDS
def test_differentiation_in_moving_coordinates(seed):
    """RBDA-2.10-DIFF: m' = ring m + v_A x m and f' = ring f + v_A x* f (Eqs. 2.36, 2.37)"""
    X, v = moving_frame(seed)
    random = Random(seed + 20)
    m0, m1, f0, f1 = (random.vector(6) for _ in range(4))
    v_A = Motion.of(X(0.0) @ v)
    force = np.linalg.inv(X(0.0)).T
    ring_m = rate(lambda t: X(t) @ (m0 + t * m1))
    ring_f = rate(lambda t: np.linalg.inv(X(t)).T @ (f0 + t * f1))
    m, f = Motion.of(X(0.0) @ m0), Force.of(force @ f0)
    np.testing.assert_allclose(ring_m + array(v_A.cross(m)), X(0.0) @ m1, atol=1e-7)
    np.testing.assert_allclose(ring_f + array(v_A.cross(f)), force @ f1, atol=1e-7)


@SEEDS
def test_product_rules_of_vector_expressions(seed):
    """RBDA-2.10-DIFF: Table 2.4, by finite differences"""
    random = Random(seed)
    u, du, v, dv, f, df = (random.vector(6) for _ in range(6))

    def at(x, dx, t, kind):
        return kind.of(x + t * dx)

    U, DU, V, DV, F, DF = (
        kind.of(x) for kind, x in zip((Motion,) * 4 + (Force,) * 2, (u, du, v, dv, f, df), strict=True)
    )
    np.testing.assert_allclose(
        rate(lambda t: at(u, du, t, Motion).dot(at(f, df, t, Force))), DU.dot(F) + U.dot(DF), atol=1e-8
    )
    np.testing.assert_allclose(
        rate(lambda t: array(at(u, du, t, Motion).cross(at(v, dv, t, Motion)))),
        array(DU.cross(V) + U.cross(DV)),
        atol=1e-8,
    )
    np.testing.assert_allclose(
        rate(lambda t: array(at(u, du, t, Motion).cross(at(f, df, t, Force)))),
        array(DU.cross(F) + U.cross(DF)),
        atol=1e-8,
    )
    np.testing.assert_allclose(
        rate(lambda t: array(at(v, dv, t, Motion) * (2.0 + t))), array(V + DV * 2.0), atol=1e-8
    )
    np.testing.assert_allclose(
        rate(lambda t: cross_force(u + t * du) @ (f + t * df)),
        cross_force(du) @ f + cross_force(u) @ df,
        atol=1e-8,
    )


def test_bad_placements_are_refused():
    with pytest.raises(ArgumentError, match="0, 1 or 2"):
        AxialScrew(3, 1.0, 0.0, 0.0)
    with pytest.raises(ArgumentError, match="at least one factor"):
        ScrewChain(())
    with pytest.raises(SpatialTypeError, match="made of placements"):
        ScrewChain((Vec3.zero(),))


def test_abstract_classes_do_nothing_by_themselves():
    bare = Placement()
    for use in (
        lambda: bare.R,
        lambda: bare.p,
        bare.inverse,
        lambda: bare.apply(Motion.zero()),
        lambda: bare.apply(Force.zero()),
        lambda: bare.inverse_apply(Motion.zero()),
        lambda: bare.inverse_apply(Force.zero()),
        lambda: bare.apply(Random(0).rigid()[0]),
        lambda: bare.inverse_apply(Random(0).rigid()[0]),
        lambda: bare.apply(Random(0).articulated()[0]),
        lambda: bare.inverse_apply(Random(0).articulated()[0]),
        Value().leaves,
        lambda: Value().rebuilt(iter(())),
    ):
        with pytest.raises(SpatialTypeError, match="abstract"):
            use()
