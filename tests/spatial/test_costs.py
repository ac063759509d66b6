"""Operation counts of Featherstone 2008 appendix A, by instrumented scalars."""

import numpy as np
import pytest
from tests.spatial.counting import Counted, Tally, count
from tests.spatial.dense import Random

from dalembert.spatial import (
    ArticulatedInertia,
    AxialScrew,
    BodyAcceleration,
    Mat3,
    Motion,
    ScrewChain,
    SymMat3,
    Transform,
    Vec3,
    scrx,
    scry,
    scrz,
)
from dalembert.spatial.symmetric import (
    cross_cross,
    rotate_general,
    rotate_general_about_z,
    rotate_symmetric,
    rotate_symmetric_about_z,
    rotation_product,
    shift_terms,
    times_symmetric,
)

random = Random(5)
SCREWS = [scrx(0.7, 0.3), scry(-1.1, 0.4), scrz(0.4, -0.6)]


def table_a4():
    """The lines of Table A.4: name, operation, operands, multiplications, additions."""
    v1, v2, f1, f2 = random.motion()[0], random.motion()[0], random.force()[0], random.force()[0]
    I1, I2, A1, A2 = random.rigid()[0], random.rigid()[0], random.articulated()[0], random.articulated()[0]
    X1, X2 = random.transform()[0], random.transform()[0]
    return [
        ("alpha v", lambda a, v: a * v, (1.7, v1), 6, 0),
        ("alpha f", lambda a, f: a * f, (1.7, f1), 6, 0),
        ("alpha I", lambda a, I: a * I, (1.7, I1), 10, 0),
        ("alpha IA", lambda a, A: a * A, (1.7, A1), 21, 0),
        ("v + v", lambda a, b: a + b, (v1, v2), 0, 6),
        ("f + f", lambda a, b: a + b, (f1, f2), 0, 6),
        ("I + I", lambda a, b: a + b, (I1, I2), 0, 10),
        ("IA + IA", lambda a, b: a + b, (A1, A2), 0, 21),
        ("IA + I", lambda a, b: a + b, (A1, I1), 0, 15),
        ("v . f", lambda a, b: a.dot(b), (v1, f1), 6, 5),
        ("v x v", lambda a, b: a.cross(b), (v1, v2), 18, 12),
        ("v x* f", lambda a, b: a.cross(b), (v1, f1), 18, 12),
        ("I v", lambda a, b: a * b, (I1, v1), 24, 18),
        ("IA v", lambda a, b: a * b, (A1, v1), 36, 30),
        ("X1 X2", lambda a, b: a @ b, (X1, X2), 33, 24),
        ("X^-1", lambda a: a.inverse(), (X1,), 9, 6),
        ("X v", lambda X, v: X.apply(v), (X1, v1), 24, 18),
        ("X^-1 v", lambda X, v: X.inverse_apply(v), (X1, v1), 24, 18),
        ("X* f", lambda X, f: X.apply(f), (X1, f1), 24, 18),
        ("X^T f", lambda X, f: X.inverse_apply(f), (X1, f1), 24, 18),
        ("X* I X^-1", lambda X, I: X.apply(I), (X1, I1), 52, 56),
        ("X^T I X", lambda X, I: X.inverse_apply(I), (X1, I1), 52, 56),
        ("X* IA X^-1", lambda X, A: X.apply(A), (X1, A1), 137, 137),
        ("X^T IA X", lambda X, A: X.inverse_apply(A), (X1, A1), 137, 137),
    ]


@pytest.mark.parametrize(
    ("name", "operation", "operands", "m", "a"), table_a4(), ids=[row[0] for row in table_a4()]
)
def test_compact_arithmetic_costs_what_table_a4_says(name, operation, operands, m, a):
    """RBDA-A.3-COSTS"""
    assert count(operation, *operands) == (m, a), name


def test_breakdown_of_the_rigid_inertia_transform():
    """RBDA-A.3-BREAKDOWN: 52 m + 56 a = h - mr, r x h x, y x r x, their sum, E y, E Z E^T"""
    h, r, y = random.vec3(), random.vec3(), random.vec3()
    E, Z, parts = (
        Mat3.of(random.rotation()),
        SymMat3.of(random.spd()),
        [SymMat3.of(random.spd()) for _ in range(2)],
    )
    assert count(lambda m, h, r: h - r * m, 2.0, h, r) == (3, 3)
    assert count(cross_cross, r, h) == (6, 3)
    assert count(cross_cross, y, r) == (6, 3)
    assert count(lambda I, a, b: I + a + b, Z, *parts) == (0, 12)
    assert count(lambda E, y: E @ y, E, y) == (9, 6)
    assert count(rotate_symmetric, E, Z) == (28, 29)
    assert count(times_symmetric, r, Z) == (15, 9)
    assert count(shift_terms, r, random.mat3(), random.mat3())[0] == 24


def test_product_of_rotations_takes_the_third_column_as_a_cross_product():
    """RBDA-A.5-ROTPROD: 24 m + 15 a; a chain of n costs (18 m + 12 a) n + 6 m + 3 a"""
    F, G = Mat3.of(random.rotation()), Mat3.of(random.rotation())
    assert count(rotation_product, F, G) == (24, 15)
    product = np.array(rotation_product(F, G).to_list())
    np.testing.assert_allclose(product, np.array(F.to_list()) @ np.array(G.to_list()), atol=1e-14)
    np.testing.assert_allclose(product @ product.T, np.eye(3), atol=1e-14)

    def chain(F1, F2, F3, G):
        columns = [F1 @ (F2 @ (F3 @ G.column(j))) for j in range(2)]
        return Mat3.from_columns(*columns, columns[0].cross(columns[1]))

    assert count(chain, F, G, F, G) == (18 * 3 + 6, 12 * 3 + 3)


def test_structural_zeros_make_a_product_of_rotations_cheaper():
    """RBDA-A.5-ROTPROD: with a turn about an axis, plain folding beats the trick; with no turn it is free"""
    tally = Tally()
    general = Mat3(*[Counted(item, tally) for item in random.rotation().ravel()])
    rotation_product(general, Mat3.identity())
    assert (tally.m, tally.a) == (0, 0)
    turn = scrz(0.3, 0.0).R
    rotation_product(general, Mat3(*[item if item in (0.0, 1.0) else Counted(item, tally) for item in turn]))
    assert (tally.m, tally.a) == (12, 6)


def test_rotation_of_a_general_matrix():
    """RBDA-A.5-ROTGEN: 40 m + 39 a, 42 m + 37 a without the trace"""
    E, A = Mat3.of(random.rotation()), random.mat3()
    assert count(rotate_general, E, A) == (40, 39)
    assert count(lambda E, A: rotate_general(E, A, trace=False), E, A) == (42, 37)
    dense = np.array(E.to_list()) @ np.array(A.to_list()) @ np.array(E.to_list()).T
    np.testing.assert_allclose(rotate_general(E, A).to_list(), dense, atol=1e-14)
    np.testing.assert_allclose(rotate_general(E, A, trace=False).to_list(), dense, atol=1e-14)


def test_rotation_of_a_symmetric_matrix():
    """RBDA-A.5-ROTSYM: 28 m + 29 a"""
    E, A = Mat3.of(random.rotation()), SymMat3.of(random.spd())
    assert count(rotate_symmetric, E, A) == (28, 29)
    dense = np.array(E.to_list()) @ np.array(A.to_list()) @ np.array(E.to_list()).T
    np.testing.assert_allclose(rotate_symmetric(E, A).to_list(), dense, atol=1e-14)


@pytest.mark.parametrize(
    "turn", [Mat3.identity(), scrx(0.3, 0.0).R, Mat3.of([[0, 1, 0], [0, 0, 1], [1, 0, 0]])]
)
def test_rotations_with_structural_zeros_agree_with_the_dense_product(turn):
    """RBDA-A.5-ROTSYM, RBDA-A.5-ROTGEN on the folded way"""
    A, S = random.mat3(), SymMat3.of(random.spd())
    E = np.array(turn.to_list())
    np.testing.assert_allclose(rotate_general(turn, A).to_list(), E @ np.array(A.to_list()) @ E.T, atol=1e-14)
    np.testing.assert_allclose(
        rotate_symmetric(turn, S).to_list(), E @ np.array(S.to_list()) @ E.T, atol=1e-14
    )


def test_an_unturned_frame_rotates_matrices_for_free():
    """RBDA-A.5-ROTSYM, RBDA-A.5-ROTGEN: identity and permutations fold to nothing"""
    for E in (Mat3.identity(), Mat3.of([[0, 1, 0], [0, 0, 1], [1, 0, 0]])):
        assert count(lambda A, E=E: rotate_symmetric(E, A), SymMat3.of(random.spd())) == (0, 0)
        assert count(lambda A, E=E: rotate_general(E, A), random.mat3()) == (0, 0)


def counted_turn(tally):
    screw = AxialScrew(2, Counted(np.cos(0.4), tally), Counted(np.sin(0.4), tally), 0.0)
    return screw.turn


def test_rotation_about_an_axis_of_any_and_of_symmetric_matrices():
    """RBDA-A.5-AXISGEN: 12 m + 12 a (+ 2 m); RBDA-A.5-AXISSYM: 8 m + 7 a (+ 2 m + 3 a)"""
    tally = Tally()
    turn = counted_turn(tally)
    assert (tally.m, tally.a) == (2, 3)
    A, S = random.mat3(), SymMat3.of(random.spd())
    tally.reset()
    rotate_general_about_z(turn, Mat3(*[Counted(item, tally) for item in A]))
    assert (tally.m, tally.a) == (12, 12)
    tally.reset()
    rotate_symmetric_about_z(turn, SymMat3(*[Counted(item, tally) for item in S]))
    assert (tally.m, tally.a) == (8, 7)
    E = np.array(scrz(0.4, 0.0).E.to_list())
    numbers = scrz(0.4, 0.0).turn
    np.testing.assert_allclose(rotate_general_about_z(numbers, A).to_list(), E @ np.array(A.to_list()) @ E.T)
    np.testing.assert_allclose(
        rotate_symmetric_about_z(numbers, S).to_list(), E @ np.array(S.to_list()) @ E.T
    )


def recurring(screw, value, *, inverse=False):
    """Cost of a screw transform without the one-time cost of its turn, which is checked to be 2 m + 3 a."""
    tally = Tally()
    counted = AxialScrew(screw.axis, *[Counted(float(item), tally) for item in screw])
    _ = counted.turn
    assert (tally.m, tally.a) == (2, 3)
    tally.reset()
    operand = value.rebuilt(item if item == 0.0 else Counted(float(item), tally) for item in value.leaves())
    _ = counted.inverse_apply(operand) if inverse else counted.apply(operand)
    return tally.m, tally.a


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("screw", SCREWS)
def test_axial_screws_cost_what_table_a5_says(screw, inverse):
    """RBDA-A.4-COSTS: vectors 10 m + 6 a, I 16 m + 15 a, I^A 38 m + 40 a, each way, each axis"""
    assert recurring(screw, random.motion()[0], inverse=inverse) == (10, 6)
    assert recurring(screw, random.force()[0], inverse=inverse) == (10, 6)
    assert recurring(screw, random.rigid()[0], inverse=inverse) == (16, 15)
    assert recurring(screw, random.articulated()[0], inverse=inverse) == (38, 40)


def with_zero_rows(*rows):
    A = random.spd(6)
    for row in rows:
        A[row, :] = A[:, row] = 0.0
    return ArticulatedInertia.from_matrix(A.tolist())


@pytest.mark.parametrize("inverse", [False, True])
def test_zero_rows_of_articulated_inertias_are_exploited(inverse):
    """RBDA-A.4-ZEROROWS, RBDA-A.4-COSTS: row 3 zero: z 28 m + 34 a, x, y 32 m + 28 a; DH 62 m + 65 a"""
    Ia = with_zero_rows(2)
    assert recurring(SCREWS[2], Ia, inverse=inverse) == (28, 34)
    assert recurring(SCREWS[0], Ia, inverse=inverse) == (32, 28)
    assert recurring(SCREWS[1], Ia, inverse=inverse) == (32, 28)
    z = (28 + 2, 34 + 3)
    assert (z[0] + 32, z[1] + 28) == (62, 65)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_screw_about_the_joint_axis_keeps_its_zero_row(axis):
    """RBDA-A.4-ZEROROWS: scrz keeps the zeros of row 3, scrx and scry do not; planar joint: rows 3, 4, 5"""
    Ia = with_zero_rows(axis)
    own = np.array(SCREWS[axis].inverse_apply(Ia).matrix())
    assert not own[axis].any()
    for other in {0, 1, 2} - {axis}:
        assert np.array(SCREWS[other].inverse_apply(Ia).matrix())[axis].any()
    planar = with_zero_rows(2, 3, 4)
    general = SCREWS[2].as_transform()
    np.testing.assert_allclose(SCREWS[2].apply(planar).matrix(), general.apply(planar).matrix(), atol=1e-13)
    assert recurring(SCREWS[2], planar)[0] < 28


def test_breakdown_of_the_screw_transform_of_inertias():
    """RBDA-A.4-COSTS breakdown: without shift the rest of the terms vanishes and the turns remain"""
    tally = Tally()
    turned = AxialScrew(2, Counted(np.cos(0.4), tally), Counted(np.sin(0.4), tally), 0.0)
    _ = turned.turn
    I, A = random.rigid()[0], random.articulated()[0]
    counted = [value.rebuilt(Counted(float(item), tally) for item in value.leaves()) for value in (I, A)]
    tally.reset()
    turned.apply(counted[0])
    # E y and E Z E^T; h_z + y_z of the vanished shift terms is added up, then dropped with d = 0.
    assert (tally.m, tally.a) == (4 + 8, 2 + 7 + 1)
    tally.reset()
    shifted = AxialScrew(2, 1.0, 0.0, Counted(0.3, tally))
    shifted.apply(counted[0])
    # y = h - m r and Z; the difference of the diagonal is added up, then dropped with s = 0.
    assert (tally.m, tally.a) == (1 + 3, 1 + 5 + 1)
    tally.reset()
    shifted.apply(counted[1])
    # Y = H - r x M and Z, and five sums and differences of the turns that vanish.
    assert tally.m == 5 + 5


def test_body_acceleration_costs():
    """RBDA-A.3-COSTS extended: tensor 6 m + 9 a; force 33 m + 30 a beside it: 39 m + 39 a in all"""
    A = BodyAcceleration(random.vec3(), random.vec3(), random.vec3())
    assert count(lambda A: A.tensor, A) == (6, 9)
    tally = Tally()
    counted = A.rebuilt(Counted(float(item), tally) for item in A.leaves())
    inertia = random.rigid()[0]
    inertia = inertia.rebuilt(Counted(float(item), tally) for item in inertia.leaves())
    _ = inertia.euler_tensor
    tally.reset()
    inertia.force_of(counted)
    assert (tally.m, tally.a) == (39, 39)


def test_body_acceleration_across_a_denavit_hartenberg_link():
    """RBDA-A.4-COSTS: a shift along an axis 3 m + 3 a, a turn of three vectors 12 m + 6 a"""
    tally = Tally()

    def data(value):
        return Counted(value, tally)

    parent = BodyAcceleration(*[Vec3(*[data(x) for x in random.vector()]) for _ in range(3)])
    _ = parent.tensor
    link = ScrewChain(
        (
            AxialScrew(0, data(np.cos(0.3)), data(np.sin(0.3)), data(0.2)),
            AxialScrew(2, data(0.6), data(0.8), data(0.5)),
        )
    )
    v_J = Motion(Vec3(0.0, 0.0, data(1.2)), Vec3.zero())
    a_J = Motion(Vec3(0.0, 0.0, data(-0.7)), Vec3.zero())
    tally.reset()
    child = parent.across_joint(link, v_J, a_J)
    turns = (2 * 12, 2 * 6)
    # omega + omega_J, alpha + alpha_J, two products of omega x omega_J; omega + omega' dies with u = 0.
    joint = (2, 1 + 1 + 2 + 3)
    shifts = (2 * 3, 2 * 3)
    tensor = (6, 9)
    expected = tuple(sum(parts) for parts in zip(turns, joint, shifts, tensor, strict=True))
    assert (tally.m, tally.a) == expected
    tally.reset()
    _ = child.tensor
    assert (tally.m, tally.a) == (0, 0)


def test_a_transform_with_literals_folds():
    """RBDA-A.4-ZEROROWS for general placements: an unturned, unshifted frame costs nothing"""
    value = random.articulated()[0]
    assert count(lambda A: Transform.identity().apply(A), value) == (0, 0)
    assert count(lambda A: Transform.identity().inverse_apply(A), random.rigid()[0]) == (0, 0)
    assert count(lambda m: Transform.identity().apply(m), random.motion()[0]) == (0, 0)
