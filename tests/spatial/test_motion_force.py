"""Motions and forces: the two dual spaces and their rules."""

import numpy as np
import pytest
from tests.spatial.dense import ONE, Random, array, cross_force, cross_motion, skew

from dalembert.errors import ArgumentError, DalembertError
from dalembert.spatial import (
    Force,
    Motion,
    RigidInertia,
    Transform,
    Vec3,
    from_linear_first,
    scrz,
    to_linear_first,
)
from dalembert.spatial.matrices import crf, crm
from dalembert.spatial.screw import classify, decompose, magnitude, pitch, point_on_axis

SEEDS = pytest.mark.parametrize("seed", range(4))


def at_origin(P) -> Transform:
    """A frame with the same axes whose origin is at P."""
    return Transform.from_rotation_translation(np.eye(3), P)


@SEEDS
def test_velocity_field_does_not_depend_on_the_origin_chosen(seed):
    """RBDA-2.2-VELOCITY: v_P = v_O + omega x OP, with v at any origin; fields add; TOD-BODY"""
    random = Random(seed)
    (v, dense), (u, _) = random.motion(), random.motion()
    P, Q = random.vector(), random.vector()
    v_P = array(v.at(Vec3.of(P)))
    np.testing.assert_allclose(v_P, dense[3:] + np.cross(dense[:3], P))
    np.testing.assert_allclose(array(at_origin(Q).apply(v).at(Vec3.of(P - Q))), v_P, atol=1e-13)
    np.testing.assert_allclose(array((u + v).at(Vec3.of(P))), array(u.at(Vec3.of(P))) + v_P)
    # TOD-BODY prints the shift as v_O = v_P + OP x omega.
    np.testing.assert_allclose(array(v.linear), v_P + np.cross(P, dense[:3]))


def test_basis_vectors_at_another_origin():
    """RBDA-2.2-VELOCITY: d_Py = d_Oy + r d_z and d_Pz = d_Oz - r d_y for P = (r, 0, 0)"""
    r = 0.7
    back = at_origin([r, 0.0, 0.0]).inverse_apply
    basis = [Motion.of(row) for row in np.eye(6)]
    d_Px, d_Py, d_Pz = (back(d) for d in basis[:3])
    _, d_y, d_z = basis[3:]
    np.testing.assert_allclose(array(d_Px), array(basis[0]), atol=1e-15)
    # A rotation about the line through P parallel to y moves the body point at O along +z by r.
    np.testing.assert_allclose(array(d_Py), array(basis[1] + d_z * r), atol=1e-15)
    np.testing.assert_allclose(array(d_Pz), array(basis[2] - d_y * r), atol=1e-15)


@SEEDS
def test_moment_at_another_point_and_invariance_of_power(seed):
    """RBDA-2.3-FORCE: n_P = n_O + f x OP; f . v is the same at every origin; TOD-BODY: n_O = n_P + OP x f"""
    random = Random(seed)
    (v, _), (f, dense) = random.motion(), random.force()
    P = random.vector()
    X = at_origin(P)
    n_P = array(f.about(Vec3.of(P)))
    np.testing.assert_allclose(n_P, dense[:3] + np.cross(dense[3:], P))
    np.testing.assert_allclose(array(X.apply(f)), [*n_P, *dense[3:]], atol=1e-13)
    np.testing.assert_allclose(X.apply(f).dot(X.apply(v)), f.dot(v))
    np.testing.assert_allclose(dense[:3], n_P + np.cross(P, dense[3:]))
    line = Force.at_point(Vec3.of(dense[3:]), Vec3.of(P))
    np.testing.assert_allclose(array(line.about(Vec3.of(P))), 0.0, atol=1e-14)


def test_coordinates_are_angular_first_and_convert_to_linear_first():
    """RBDA-2.4-ORDER"""
    m, f = Motion.of(range(6)), Force.of(range(6))
    assert m.angular == Vec3(0.0, 1.0, 2.0)
    assert f.linear == Vec3(3.0, 4.0, 5.0)
    assert list(m) == m.to_list() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    for vector in (m, f):
        assert to_linear_first(vector) == [3.0, 4.0, 5.0, 0.0, 1.0, 2.0]
        assert from_linear_first(type(vector), to_linear_first(vector)) == vector


@SEEDS
@pytest.mark.parametrize("kind", [Motion, Force])
def test_every_vector_is_a_line_vector_and_a_parallel_free_vector(kind, seed):
    """RBDA-2.5-SCREW: Eq. 2.10, pitch, screw axis, classification"""
    random = Random(seed)
    s = kind.of(random.vector(6))
    line, free = decompose(s)
    np.testing.assert_allclose(array(line + free), array(s))
    assert (classify(s), classify(line), classify(free), classify(s * 0.0)) == (
        "screw",
        "line",
        "free",
        "zero",
    )
    direction = s.angular if kind is Motion else s.linear
    moment = line.linear if kind is Motion else line.angular
    P = point_on_axis(s) + direction * 0.37
    np.testing.assert_allclose(array(P.cross(direction)), array(moment), atol=1e-14)
    np.testing.assert_allclose(magnitude(line), np.linalg.norm(array(direction)))
    np.testing.assert_allclose(magnitude(free) / magnitude(line), abs(pitch(s)))
    np.testing.assert_allclose(pitch(at_origin(random.vector()).apply(s)), pitch(s), rtol=1e-10)
    with pytest.raises(ArgumentError, match="no magnitude"):
        magnitude(s)


def test_the_pitch_of_a_helical_motion_is_recovered():
    """RBDA-2.5-SCREW: a screw of 0.2 m per radian about a line through P"""
    P, axis = Vec3(0.3, -0.4, 0.5), Vec3(0.0, 0.6, 0.8)
    s = Motion(axis, P.cross(axis) + axis * 0.2)
    np.testing.assert_allclose(pitch(s), 0.2)
    offset = array(P - point_on_axis(s))
    np.testing.assert_allclose(np.cross(offset, array(axis)), 0.0, atol=1e-15)


WRONG_MIXES = {
    "m + f": lambda m, f, I, X: m + f,
    "f + m": lambda m, f, I, X: f + m,
    "m - f": lambda m, f, I, X: m - f,
    "f - m": lambda m, f, I, X: f - m,
    "m . m": lambda m, f, I, X: m.dot(m),
    "f . f": lambda m, f, I, X: f.dot(f),
    "m * f": lambda m, f, I, X: m * f,
    "f * m": lambda m, f, I, X: f * m,
    "f x f": lambda m, f, I, X: f.cross(f),
    "f x m": lambda m, f, I, X: f.cross(m),
    "v x vector": lambda m, f, I, X: m.cross(Vec3.zero()),
    "I f": lambda m, f, I, X: I * f,
    "m I": lambda m, f, I, X: m * I,
    "I + m": lambda m, f, I, X: I + m,
    "I - m": lambda m, f, I, X: I - m,
    "IA f": lambda m, f, I, X: Random(0).articulated()[0] * f,
    "IA + f": lambda m, f, I, X: Random(0).articulated()[0] + f,
    "IA - I": lambda m, f, I, X: Random(0).articulated()[0] - I,
    "X vector": lambda m, f, I, X: X.apply(Vec3.zero()),
    "X number": lambda m, f, I, X: X.apply(1.0),
    "X^-1 X": lambda m, f, I, X: X.inverse_apply(X),
    "screw number": lambda m, f, I, X: scrz(0.1, 0.2).apply(2.0),
    "X @ m": lambda m, f, I, X: X @ m,
    "screw @ m": lambda m, f, I, X: scrz(0.1, 0.2) @ m,
    "chain @ m": lambda m, f, I, X: (scrz(0.1, 0.2) @ X.inverse()) @ m,
    "f as m": lambda m, f, I, X: Motion.of(f),
    "m as f": lambda m, f, I, X: Force.of(m),
}


@pytest.mark.parametrize("name", WRONG_MIXES)
def test_wrong_mixes_raise_and_say_what_is_defined(name):
    """RBDA-2.6-SCALAR, RBDA-A.3-TYPES, RBDA-1.2-TYPED"""
    random = Random(0)
    operands = (random.motion()[0], random.force()[0], random.rigid()[0], random.transform()[0])
    with pytest.raises(TypeError, match="not defined") as caught:
        WRONG_MIXES[name](*operands)
    assert isinstance(caught.value, DalembertError)


def test_the_scalar_product_pairs_dual_coordinates():
    """RBDA-2.6-SCALAR: Eqs. 2.11 and 2.12; RBDA-2.1-DUAL: d_i . e_j = 1 if i = j, else 0"""
    products = [[Motion.of(d).dot(Force.of(e)) for e in np.eye(6)] for d in np.eye(6)]
    np.testing.assert_array_equal(products, np.eye(6))
    random = Random(3)
    (m, dense_m), (f, dense_f) = random.motion(), random.force()
    np.testing.assert_allclose([m.dot(f), f.dot(m)], dense_m @ dense_f)


@SEEDS
def test_rules_for_using_spatial_vectors(seed):
    """RBDA-2.7-RULES: relative velocity, rigid connection, sums of forces, reaction, scaling of power"""
    random = Random(seed)
    (v1, a1), (v2, a2) = random.motion(), random.motion()
    (f1, b1), (f2, b2) = random.force(), random.force()
    np.testing.assert_allclose(array(v2 - v1), a2 - a1)
    np.testing.assert_allclose(array(f1 + f2), b1 + b2)
    np.testing.assert_allclose((f1 + f2).dot(v1), f1.dot(v1) + f2.dot(v1))
    np.testing.assert_allclose(array(f1 + -f1), 0.0)
    np.testing.assert_allclose((f1 * 2.0).dot(3.0 * v1), 6.0 * f1.dot(v1))
    # Rigid connection: in the coordinates of any frame of the one body, both parts have one velocity.
    X = random.transform()[0]
    point = random.vec3()
    np.testing.assert_allclose(
        array(X.rotate_to_parent(X.apply(v1).at(point))), array(v1.at(X.transform_point(point))), atol=1e-13
    )


@SEEDS
def test_both_cross_products_and_every_identity_of_table_2_3(seed):
    """RBDA-2.9-CROSS6: Eqs. 2.31 to 2.34, Table 2.3"""
    random = Random(seed)
    (u, du), (v, dv), (f, df) = random.motion(), random.motion(), random.force()
    X, dX = random.transform()
    np.testing.assert_allclose(crm(u), cross_motion(du))
    np.testing.assert_allclose(crf(u), cross_force(du))
    np.testing.assert_allclose(crf(u), -np.array(crm(u)).T)
    np.testing.assert_allclose(array(u.cross(v)), cross_motion(du) @ dv)
    np.testing.assert_allclose(array(u.cross(f)), cross_force(du) @ df)
    np.testing.assert_allclose(crm(u * 1.7), 1.7 * np.array(crm(u)))
    np.testing.assert_allclose(crf(u + v), np.array(crf(u)) + crf(v))
    np.testing.assert_allclose(array(u.cross(v)), -array(v.cross(u)))
    inverse, force = np.linalg.inv(dX), np.linalg.inv(dX).T
    np.testing.assert_allclose(crm(X.apply(v)), dX @ cross_motion(dv) @ inverse, atol=1e-12)
    np.testing.assert_allclose(crf(X.apply(v)), force @ cross_force(dv) @ dX.T, atol=1e-12)
    np.testing.assert_allclose(u.cross(v).dot(f), -v.dot(u.cross(f)))
    np.testing.assert_allclose(
        crm(u.cross(v)), cross_motion(du) @ cross_motion(dv) - cross_motion(dv) @ cross_motion(du), atol=1e-13
    )
    np.testing.assert_allclose(
        crf(u.cross(v)), cross_force(du) @ cross_force(dv) - cross_force(dv) @ cross_force(du), atol=1e-13
    )
    w = random.motion()[0]
    jacobi = u.cross(v.cross(w)) + v.cross(w.cross(u)) + w.cross(u.cross(v))
    np.testing.assert_allclose(array(jacobi), 0.0, atol=1e-13)


def test_multiplication_tables_of_the_basis_vectors():
    """RBDA-2.9-CROSS6: d_Ox x d_Oy = d_Oz, d_x x d_Oy = d_z and d_x x d_y = 0 (Figure 2.5)"""
    Ox, Oy, Oz, x, y, z = (Motion.of(row) for row in np.eye(6))
    assert Ox.cross(Oy) == Oz
    assert x.cross(Oy) == z
    assert Ox.cross(y) == z
    assert x.cross(y) == Motion.zero()


@SEEDS
def test_units_rescale_consistently(seed):
    """RBDA-1.3-UNITS: length, mass and time in other units rescale f = I a + v x* I v consistently"""
    random = Random(seed)
    length, mass, time = 3.0, 0.5, 7.0
    m, c, I_C = 1.3, random.vector(), random.spd()
    (v, dv), (a, da) = random.motion(), random.motion()
    I = RigidInertia(m, c, I_C)
    f = array(I * a + v.cross(I * v))
    linear = np.array([1.0, 1.0, 1.0, length, length, length])
    scaled = RigidInertia(m * mass, c * length, I_C * (mass * length**2))
    v2, a2 = Motion.of(dv * linear / time), Motion.of(da * linear / time**2)
    force = mass * length / time**2 * np.array([length, length, length, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(array(scaled * a2 + v2.cross(scaled * v2)), f * force)
    np.testing.assert_allclose(scaled.kinetic_energy(v2), I.kinetic_energy(v) * mass * length**2 / time**2)


def test_angles_are_radians():
    """RBDA-1.3-UNITS"""
    np.testing.assert_allclose(array(scrz(np.pi / 2, 0.0).R), [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)


@SEEDS
def test_chain_velocities_three_ways(seed):
    """RBDA-2.7-CHAIN: recursion (2.16), sum (2.17) and body Jacobian (2.18)"""
    random = Random(seed)
    axes = [random.motion()[0] for _ in range(4)]
    rates = random.vector(4)
    v, recursion = Motion.zero(), []
    for s, rate in zip(axes, rates, strict=True):
        v = v + s * rate
        recursion.append(array(v))
    J = np.array([s.to_list() for s in axes]).T
    for i in range(4):
        total = Motion.zero()
        for j in range(i + 1):
            total = total + rates[j] * axes[j]
        J_i = np.where(np.arange(4) <= i, J, 0.0)
        np.testing.assert_allclose(array(total), recursion[i])
        np.testing.assert_allclose(J_i @ rates, recursion[i])


def test_a_dyad_maps_motions_to_multiples_of_a_force():
    """RBDA-2.1-DUAL: dyads and dyadics as sums of rank one"""
    random = Random(8)
    forces = [random.force() for _ in range(6)]
    m, dense = random.motion()
    total = Force.zero()
    for g, _ in forces:
        total = total + g * g.dot(m)
    matrix = sum(np.outer(g, g) for _, g in forces)
    np.testing.assert_allclose(array(total), matrix @ dense)
    assert np.linalg.matrix_rank(matrix) == 6
    assert skew(ONE[0])[2, 1] == 1.0
