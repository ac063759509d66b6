"""The formulas of Table 4.1, of section 4.5 and of the other seeds, each joint by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.model.joints.catalogue import CATALOGUE, EULER_ORDERS, book_planar, close, state

from dalembert.model.joints import (
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Planar,
    Prismatic,
    RackPinion,
    Revolute,
    SphereInCylinder,
    Spherical,
    SphericalEuler,
    SphericalExponential,
    Translation,
    Universal,
)
from dalembert.spatial import AxialScrew, Motion, Vec3

ANGLE, LENGTH = 0.7, -0.4


def rx(a: float) -> np.ndarray:
    """The book's coordinate rotations (Table 2.2)."""
    return np.array([[1, 0, 0], [0, math.cos(a), math.sin(a)], [0, -math.sin(a), math.cos(a)]])


def ry(a: float) -> np.ndarray:
    return np.array([[math.cos(a), 0, -math.sin(a)], [0, 1, 0], [math.sin(a), 0, math.cos(a)]])


def rz(a: float) -> np.ndarray:
    return np.array([[math.cos(a), math.sin(a), 0], [-math.sin(a), math.cos(a), 0], [0, 0, 1]])


def skew(a) -> np.ndarray:
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def columns(vectors) -> list[list[float]]:
    return [vector.to_list() for vector in vectors]


def e(i: int) -> list[float]:
    """Unit column e_i of the book, i from 1."""
    return [1.0 if k == i else 0.0 for k in range(1, 7)]


def euler_parameters(seed: int) -> list[float]:
    p = np.random.default_rng(seed).standard_normal(4)
    return (p / np.linalg.norm(p)).tolist()


def book_rotation(p) -> np.ndarray:
    """E of Eq. 4.12."""
    p0, p1, p2, p3 = p
    return 2 * np.array(
        [
            [p0**2 + p1**2 - 0.5, p1 * p2 + p0 * p3, p1 * p3 - p0 * p2],
            [p1 * p2 - p0 * p3, p0**2 + p2**2 - 0.5, p2 * p3 + p0 * p1],
            [p1 * p3 + p0 * p2, p2 * p3 - p0 * p1, p0**2 + p3**2 - 0.5],
        ]
    )


P = euler_parameters(3)
C, S = math.cos(ANGLE), math.sin(ANGLE)
TABLE = {
    "revolute": (Revolute((0, 0, 1)), [ANGLE], rz(ANGLE), [0, 0, 0], [e(3)], [e(1), e(2), e(4), e(5), e(6)]),
    "prismatic": (
        Prismatic((0, 0, 1)), [LENGTH], np.eye(3), [0, 0, LENGTH], [e(6)], [e(1), e(2), e(3), e(4), e(5)],
    ),
    "helical": (
        Helical((0, 0, 1), 0.3), [ANGLE], rz(ANGLE), [0, 0, 0.3 * ANGLE], [[0, 0, 1, 0, 0, 0.3]],
        [e(1), e(2), e(4), e(5), [0, 0, -0.3, 0, 0, 1]],
    ),
    "cylindrical": (
        Cylindrical((0, 0, 1)), [ANGLE, LENGTH], rz(ANGLE), [0, 0, LENGTH], [e(3), e(6)],
        [e(1), e(2), e(4), e(5)],
    ),
    "planar": (
        book_planar(), [ANGLE, 0.5, -0.8], rz(ANGLE), [C * 0.5 + S * 0.8, S * 0.5 - C * 0.8, 0],
        [e(3), e(4), e(5)], [e(1), e(2), e(6)],
    ),
    "planar, ours": (
        Planar(), [0.5, -0.8, ANGLE], rz(ANGLE), [0.5, -0.8, 0], [e(3), e(4), e(5)], [e(1), e(2), e(6)],
    ),
    "spherical": (Spherical(), P, book_rotation(P), [0, 0, 0], [e(1), e(2), e(3)], [e(4), e(5), e(6)]),
    "free": (
        Free(), [0.5, -0.8, 0.3, *P], book_rotation(P), [0.5, -0.8, 0.3], [e(i) for i in range(1, 7)], [],
    ),
    "zero-DoF": (Fixed(), [], np.eye(3), [0, 0, 0], [], [e(i) for i in range(1, 7)]),
    "translation": (
        Translation(), [0.5, -0.8, 0.3], np.eye(3), [0.5, -0.8, 0.3], [e(4), e(5), e(6)], [e(1), e(2), e(3)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_joint_model_formulae(name: str) -> None:
    """RBDA-4.4-VALUES RBDA-4.4-TABLE41: E, r, S and T of each joint, individually."""
    joint, q, E, r, motion, constraint = TABLE[name]
    X = joint.transform(q)
    close(X.E.to_list(), E)
    close(list(X.p), r)
    close(np.array(columns(joint.subspace(q))).reshape(-1, 6), np.array(motion).reshape(-1, 6))
    T = np.array(columns(joint.constraint_subspace(q))).reshape(-1, 6)
    if name == "planar":
        # A joint given by functions finds some basis of the same space.
        T, constraint = T.T @ T, np.array(constraint).T @ np.array(constraint)
    close(T, np.array(constraint).reshape(-1, 6))


OFFSET_BY_DEFINITION = ("composite", "ellipsoid", "driven", "rheonomic")


@pytest.mark.parametrize(
    "name", [n for n in CATALOGUE if not any(word in n for word in OFFSET_BY_DEFINITION)]
)
def test_frames_coincide_in_the_neutral_position(name: str) -> None:
    """RBDA-4.4-TABLE41: X_J(0) = 1."""
    joint = CATALOGUE[name]
    close(joint.transform(joint.neutral()).motion_matrix(), np.eye(6))


@pytest.mark.parametrize("joint", [Revolute, Prismatic, Cylindrical, lambda axis: Helical(axis, 0.2)])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("sign", [1, -1])
def test_motion_about_a_coordinate_axis_is_an_axial_screw(joint, axis: int, sign: int) -> None:
    """RBDA-4.4-TABLE41: a cheap transform for either sense of x, y and z, equal to the general one."""
    direction = [0.0] * 3
    direction[axis] = sign
    made = joint(direction)
    q, _ = state(made, axis)
    X = made.transform(q)
    assert isinstance(X, AxialScrew)
    assert X.axis == axis
    general = made.with_parameters([np.float64(x) for x in made.parameters()])
    assert not isinstance(general.transform(q), AxialScrew)
    close(X.motion_matrix(), general.transform(q).motion_matrix())
    close(columns(made.subspace(q)), columns(general.subspace(q)))


def test_rack_and_pinion() -> None:
    """RBDA-4.4-RACKPINION: X_J, S, c_J of Example 4.6; r = 0 is a revolute joint."""
    r, q, v = 0.7, 0.9, 1.3
    c, s = math.cos(q), math.sin(q)
    joint = RackPinion(r)
    xlt = np.block([[np.eye(3), np.zeros((3, 3))], [-skew([r * q, 0, 0]), np.eye(3)]])
    close(joint.transform([q]).motion_matrix(), np.kron(np.eye(2), rz(q)) @ xlt)
    close(columns(joint.subspace([q])), [[0, 0, 1, r * c, -r * s, 0]])
    close(joint.bias([q], [v]).to_list(), [0, 0, 0, -r * s * v * v, -r * c * v * v, 0])
    hinge, degenerate = Revolute((0, 0, 1)), RackPinion(0.0)
    close(degenerate.transform([q]).motion_matrix(), hinge.transform([q]).motion_matrix())
    close(columns(degenerate.subspace([q])), columns(hinge.subspace([q])))


def test_rolling_pinion_touches_the_rack_at_rest() -> None:
    """RBDA-4.4-RACKPINION: the point of the pinion at distance r across the rack has no velocity."""
    r, q, v = 0.7, 0.9, 1.3
    joint = RackPinion(r)
    X = joint.transform([q])
    touching = X.p + Vec3(0.0, r, 0.0)
    close(list(X.inverse_apply(joint.velocity([q], [v])).at(touching)), [0, 0, 0])


def test_yaw_pitch_roll() -> None:
    """RBDA-4.5-EULERZYX: E of Eq. 4.7, S of Eq. 4.8, c_J of Eq. 4.9, T constant."""
    joint = SphericalEuler("zyx")
    (q1, q2, q3), (v1, v2, v3) = (0.4, -0.7, 1.1), (0.9, -1.2, 0.5)
    s2, c2, s3, c3 = math.sin(q2), math.cos(q2), math.sin(q3), math.cos(q3)
    close(joint.transform([q1, q2, q3]).E.to_list(), rx(q3) @ ry(q2) @ rz(q1))
    S = [[-s2, c2 * s3, c2 * c3, 0, 0, 0], [0, c3, -s3, 0, 0, 0], [1, 0, 0, 0, 0, 0]]
    close(columns(joint.subspace([q1, q2, q3])), S)
    c_J = [
        -c2 * v1 * v2,
        -s2 * s3 * v1 * v2 + c2 * c3 * v1 * v3 - s3 * v2 * v3,
        -s2 * c3 * v1 * v2 - c2 * s3 * v1 * v3 - c3 * v2 * v3,
        0, 0, 0,
    ]  # fmt: skip
    close(joint.bias([q1, q2, q3], [v1, v2, v3]).to_list(), c_J)
    close(columns(joint.constraint_subspace([q1, q2, q3])), [e(4), e(5), e(6)])


@pytest.mark.parametrize("order", EULER_ORDERS)
def test_every_order_of_euler_angles(order: str) -> None:
    """RBDA-4.5-EULERZYX LJ-5.2-EULERXYZ: R = R_i(q1) R_j(q2) R_k(q3) for all twelve orders."""
    passive = {"x": rx, "y": ry, "z": rz}
    q, _ = state(SphericalEuler(order), 1)
    R = np.eye(3)
    for letter, angle in zip(order, q):
        R = R @ passive[letter](angle).T
    close(SphericalEuler(order).transform(q).R.to_list(), R)


@pytest.mark.parametrize("order", EULER_ORDERS)
def test_euler_angles_are_singular_where_two_axes_align(order: str) -> None:
    """RBDA-4.5-EULERZYX: |det| of S's angular block is |cos q2|, or |sin q2| for proper Euler angles."""
    joint = SphericalEuler(order)
    q, _ = state(joint, 2)
    block = np.array(columns(joint.subspace(q)))[:, :3]
    close(abs(np.linalg.det(block)), joint.singularity_measure(q))
    bad = (0.0, math.pi) if order[0] == order[2] else (math.pi / 2, -math.pi / 2)
    for angle in bad:
        assert joint.singularity_measure([0.3, angle, 0.2]) < 1e-12
        assert joint.singularity_measure([0.3, angle + math.pi / 2, 0.2]) > 1 - 1e-12


def test_xyz_angles_of_the_animation_tutorial() -> None:
    """LJ-5.2-EULERXYZ: the parent-frame Jacobian is (e_x, R^x e_y, R^x R^y e_z); ours is R^T times it."""
    q = [0.4, -0.7, 1.1]
    joint = SphericalEuler("xyz")
    R = np.array(joint.transform(q).R.to_list())
    Rx, Ry = rx(q[0]).T, ry(q[1]).T
    parent = np.column_stack([[1, 0, 0], Rx @ [0, 1, 0], Rx @ Ry @ [0, 0, 1]])
    close(R @ np.array(columns(joint.subspace(q)))[:, :3].T, parent)
    assert joint.singularity_measure([0.1, math.pi / 2, 0.2]) < 1e-12


def test_exponential_map() -> None:
    """LJ-5.2-EXPMAP: R and both forms of the parent-frame Jacobian; ours is R^T times it."""
    joint = SphericalExponential()
    for seed in range(5):
        q = np.random.default_rng(seed).uniform(-3, 3, 3)
        theta, Q = np.linalg.norm(q), skew(q)
        a, b = math.sin(theta) / theta, (1 - math.cos(theta)) / theta**2
        c = (theta - math.sin(theta)) / theta**3
        R = np.eye(3) + a * Q + b * Q @ Q
        close(joint.transform(q.tolist()).R.to_list(), R)
        ours = np.array(columns(joint.subspace(q.tolist())))[:, :3].T
        close(R @ ours, np.eye(3) + b * Q + c * Q @ Q)
        close(ours, np.eye(3) - b * Q + c * Q @ Q)
    assert joint.singularity_measure([0.0, 2 * math.pi, 0.0]) < 1e-12


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-12, 1e-8, 1e-4, 1e-2, 0.4, 0.4999999, 0.5, 0.5000001, 0.6])
def test_exponential_map_near_zero(size: float) -> None:
    """LJ-5.2-EXPMAP0: the branches meet, q = 0 is no NaN, the limits are 1+[q]+½[q]² and 1+½[q]+⅙[q]²."""
    joint = SphericalExponential()
    direction = np.array([0.48, -0.6, 0.64])
    q, v = (size * direction).tolist(), [0.3, 0.7, -0.4]
    Q = skew(q)
    R, terms = np.eye(3), np.eye(3)
    left, left_terms = np.eye(3), np.eye(3)
    for n in range(
        1, 25
    ):  # the series of the exponential and of its left Jacobian, as an oracle for both branches
        terms = terms @ Q / n
        left_terms = left_terms @ Q / (n + 1)
        R, left = R + terms, left + left_terms
    close(joint.transform(q).R.to_list(), R, 1e-15)
    close(R @ np.array(columns(joint.subspace(q)))[:, :3].T, left, 1e-15)
    if size < 1e-3:
        close(R, np.eye(3) + Q + Q @ Q / 2, size**3 + 1e-16)
        close(left, np.eye(3) + Q / 2 + Q @ Q / 6, size**3 + 1e-16)
    h = 1e-3
    ahead, behind = (joint.velocity((np.array(q) + k * np.array(v)).tolist(), v) for k in (h, -h))
    rate = (np.array(ahead.to_list()) - np.array(behind.to_list())) / (2 * h)
    close(joint.bias(q, v).to_list(), rate, 1e-6)
    assert np.all(np.isfinite(joint.bias(q, v).to_list()))


def test_euler_parameters() -> None:
    """RBDA-4.5-QUAT RBDA-3.1-QDFN: Eqs 4.10, 4.12, 4.13; p . dp/dt = 0; zero rotation is (1, 0, 0, 0)."""
    joint = Spherical()
    p, omega = euler_parameters(5), [0.4, -1.1, 0.7]
    p0, p1, p2, p3 = p
    Q = np.array([[-p1, -p2, -p3], [p0, -p3, p2], [p3, p0, -p1], [-p2, p1, p0]])
    close(joint.position_rate(p, omega), 0.5 * Q @ omega)
    close(np.dot(p, joint.position_rate(p, omega)), 0.0)
    close(joint.transform(p).E.to_list(), book_rotation(p))
    angle, axis = 1.2, np.array([0.48, -0.6, 0.64])
    turned = [math.cos(angle / 2), *(math.sin(angle / 2) * axis)]
    K = skew(axis)
    close(
        joint.transform(turned).R.to_list(), np.eye(3) + math.sin(angle) * K + (1 - math.cos(angle)) * K @ K
    )
    assert joint.neutral() == [1.0, 0.0, 0.0, 0.0]


def test_unnormalised_euler_parameters_scale_the_subtree() -> None:
    """RBDA-4.5-QUAT: without renormalisation the matrix is no rotation; `normalize` restores it."""
    joint, p, omega = Spherical(), euler_parameters(6), [0.4, -1.1, 0.7]
    q = np.array(p)
    for _ in range(100):
        q = q + 0.05 * np.array(joint.position_rate(q.tolist(), omega))
    R = np.array(joint.transform(q.tolist()).R.to_list())
    assert np.abs(R @ R.T - np.eye(3)).max() > 1e-2
    R = np.array(joint.transform(joint.normalize(q.tolist())).R.to_list())
    close(R @ R.T, np.eye(3))


def test_universal_joint_is_two_hinges() -> None:
    """RBDA-4.4-TABLE41 LJ-5.1-TREE: R = R_x(q1) R_y(q2), S = (c2 e_x + s2 e_z, e_y)."""
    q = [0.6, -1.0]
    joint = Universal((1, 0, 0), (0, 1, 0))
    close(joint.transform(q).R.to_list(), rx(q[0]).T @ ry(q[1]).T)
    close(columns(joint.subspace(q)), [[math.cos(q[1]), 0, math.sin(q[1]), 0, 0, 0], e(2)])


def test_ball_slides_in_its_tube() -> None:
    """RBDA-4.4-TABLE41: sphere-in-cylinder keeps the ball's centre on the axis with two constraints."""
    joint = SphereInCylinder((0, 0, 1))
    q, v = state(joint, 3)
    X = joint.transform(q)
    close(list(X.p), [0, 0, q[0]])
    world = X.inverse_apply(Motion(joint.velocity(q, v).angular, joint.velocity(q, v).linear))
    close(list(world.at(X.p)), [0, 0, v[3]])
    assert len(joint.constraint_subspace(q)) == 2
