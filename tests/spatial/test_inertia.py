"""Rigid-body and articulated-body inertias, momentum and the equation of motion."""

import re

import numpy as np
import pytest
import scipy.linalg
from tests.spatial.dense import ONE, Random, array, cross_force, cross_motion, inertia_matrix, plucker, skew

from dalembert.errors import ShapeError
from dalembert.spatial import (
    ArticulatedInertia,
    Force,
    Motion,
    RigidInertia,
    SymMat3,
    Transform,
    Vec3,
    physical_problems,
)
from dalembert.spatial.matrices import mcI

SEEDS = pytest.mark.parametrize("seed", range(4))


@SEEDS
def test_inertia_of_mass_com_and_moments(seed):
    """RBDA-2.13-INERTIA, RBDA-A.2-SPATIAL, TOD-BODY: Eq. 2.63, symmetric, definite, ten parameters back"""
    random = Random(seed)
    mass, com, moments = 1.7, random.vector(), random.spd()
    I = RigidInertia(mass, com, moments)
    c = skew(com)
    book = np.block([[moments - mass * c @ c, mass * c], [mass * c.T, mass * ONE]])
    np.testing.assert_allclose(I.matrix(), book, atol=1e-14)
    np.testing.assert_allclose(I.matrix(), inertia_matrix(mass, com, moments), atol=1e-13)
    np.testing.assert_allclose(mcI(mass, com, moments), book, atol=1e-14)
    np.testing.assert_allclose(np.array(I.matrix()), np.array(I.matrix()).T)
    assert np.linalg.eigvalsh(I.matrix()).min() > 0.0
    back = RigidInertia.from_matrix(I.matrix())
    np.testing.assert_allclose(back.mass, mass)
    np.testing.assert_allclose(array(back.com), com)
    np.testing.assert_allclose(array(back.inertia_at_com), moments, atol=1e-13)
    assert len(I.leaves()) == 10


def test_moments_may_be_given_as_matrix_diagonal_or_symmetric():
    """RBDA-2.13-INERTIA"""
    diagonal = RigidInertia(1.0, (0, 0, 0), (1.0, 2.0, 3.0))
    assert diagonal == RigidInertia(1.0, Vec3.zero(), np.diag([1.0, 2.0, 3.0]))
    assert diagonal == RigidInertia(1.0, [0.0, 0.0, 0.0], SymMat3(1.0, 2.0, 3.0, 0.0, 0.0, 0.0))
    with pytest.raises(ShapeError, match="not symmetric"):
        RigidInertia(1.0, (0, 0, 0), [[1.0, 0.1, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]])


@SEEDS
def test_two_bodies_joined_have_the_sum_of_their_inertias(seed):
    """RBDA-1.2-TYPED, RBDA-2.7-RULES: I_1 + I_2 equals mass, COM and parallel axes combined by hand"""
    random = Random(seed)
    m, c, J = (1.1, 2.3), [random.vector() for _ in range(2)], [random.spd() for _ in range(2)]
    both = RigidInertia(m[0], c[0], J[0]) + RigidInertia(m[1], c[1], J[1])
    com = (m[0] * c[0] + m[1] * c[1]) / sum(m)
    parallel = sum(
        J_i + m_i * ((c_i - com) @ (c_i - com) * ONE - np.outer(c_i - com, c_i - com))
        for m_i, c_i, J_i in zip(m, c, J, strict=True)
    )
    np.testing.assert_allclose(both.mass, sum(m))
    np.testing.assert_allclose(array(both.com), com)
    np.testing.assert_allclose(array(both.inertia_at_com), parallel, atol=1e-12)
    np.testing.assert_allclose(
        (both - RigidInertia(m[1], c[1], J[1])).leaves(), RigidInertia(m[0], c[0], J[0]).leaves()
    )


@SEEDS
def test_inertia_maps_velocity_to_momentum(seed):
    """RBDA-2.12-MOMENTUM: h at C and O, h_O = h_C + OC x h; h transforms with X*; T = h . v / 2"""
    random = Random(seed)
    mass, com, moments = 1.7, random.vector(), random.spd()
    I = RigidInertia(mass, com, moments)
    v, dense = random.motion()
    v_C = dense[3:] + np.cross(dense[:3], com)
    h = I * v
    h_C = moments @ dense[:3]
    np.testing.assert_allclose(array(h), [*(h_C + np.cross(com, mass * v_C)), *(mass * v_C)])
    at_com = Transform.from_rotation_translation(ONE, com)
    np.testing.assert_allclose(array(at_com.apply(h)), [*h_C, *(mass * v_C)], atol=1e-13)
    X = random.transform()[0]
    np.testing.assert_allclose(array(X.apply(h)), array(X.apply(I) * X.apply(v)), atol=1e-11)
    energy = 0.5 * mass * v_C @ v_C + 0.5 * dense[:3] @ moments @ dense[:3]
    np.testing.assert_allclose([I.kinetic_energy(v), 0.5 * h.dot(v)], energy)


@SEEDS
def test_rate_of_a_moving_inertia(seed):
    """RBDA-2.13-INERTIA: dI/dt = v x* I - I v x (Eq. 2.65), by finite differences"""
    random = Random(seed)
    I, dI = random.rigid()
    v = random.vector(6)
    twist = np.block([[skew(v[:3]), v[3:, None]], [np.zeros((1, 4))]])

    def moved(t):
        T = scipy.linalg.expm(t * twist)
        return np.array(Transform.from_rotation_translation(T[:3, :3], T[:3, 3]).inverse_apply(I).matrix())

    numeric = (moved(1e-5) - moved(-1e-5)) / 2e-5
    np.testing.assert_allclose(numeric, cross_force(v) @ dI - dI @ cross_motion(v), atol=1e-6)


@SEEDS
def test_inertia_is_a_sum_of_six_dyads_fixed_in_the_body(seed):
    """RBDA-2.13-INERTIA: Eq. 2.64, transformed dyad by dyad"""
    random = Random(seed)
    I, dI = random.rigid()
    X, _ = random.transform()
    values, vectors = np.linalg.eigh(dI)
    dyads = [Force.of(np.sqrt(value) * vector) for value, vector in zip(values, vectors.T, strict=True)]
    moved = sum(np.outer(array(X.apply(g)), array(X.apply(g))) for g in dyads)
    np.testing.assert_allclose(moved, X.apply(I).matrix(), atol=1e-11)


@SEEDS
def test_the_four_kinds_of_dyadic(seed):
    """RBDA-2.13-DYADICS: similarity keeps eigenvalues, congruence symmetry and definiteness (Table 2.5)"""
    random = Random(seed)
    R, p = random.rotation(), random.vector()
    X = plucker(R, p)
    inverse, force = np.linalg.inv(X), np.linalg.inv(X).T
    v, dv = random.motion()
    T = Transform.from_rotation_translation(R, p)
    I, dI = random.rigid()
    motion_to_motion, force_to_force = X @ cross_motion(dv) @ inverse, force @ cross_force(dv) @ X.T
    np.testing.assert_allclose(motion_to_motion, cross_motion(array(T.apply(v))), atol=1e-12)
    np.testing.assert_allclose(force_to_force, cross_force(array(T.apply(v))), atol=1e-12)
    np.testing.assert_allclose(
        np.sort_complex(np.linalg.eigvals(motion_to_motion @ motion_to_motion)),
        np.sort_complex(np.linalg.eigvals(cross_motion(dv) @ cross_motion(dv))),
        atol=1e-5,
    )
    moved = np.array(T.apply(I).matrix())
    np.testing.assert_allclose(moved, moved.T)
    assert np.linalg.eigvalsh(moved).min() > 0.0
    assert not np.allclose(np.linalg.eigvalsh(moved), np.linalg.eigvalsh(dI))
    phi = X @ np.array(I.inverse_matrix()) @ X.T
    np.testing.assert_allclose(phi, T.apply(I).inverse_matrix(), atol=1e-10)


@SEEDS
def test_equation_of_motion_splits_into_newton_and_euler(seed):
    """RBDA-2.14-EOM, RBDA-1.2-TYPED, ANIM-NE, ANIM-SPATIAL, TOD-BODY: f = I a + v x* I v at the COM"""
    random = Random(seed)
    mass, moments = 1.7, random.spd()
    I = RigidInertia(mass, Vec3.zero(), moments)
    np.testing.assert_allclose(I.matrix(), scipy.linalg.block_diag(moments, mass * ONE))
    omega, alpha, v_C, c2 = (random.vector() for _ in range(4))
    v = Motion.of([*omega, *v_C])
    a = Motion.of([*alpha, *(c2 - np.cross(omega, v_C))])
    f = I * a + v.cross(I * v)
    np.testing.assert_allclose(array(f.linear), mass * c2)
    np.testing.assert_allclose(array(f.angular), moments @ alpha + np.cross(omega, moments @ omega))
    # ANIM-NE: the force F at r from the COM and a couple tau together do the same.
    r, couple = random.vector(), array(f.angular)
    at_r = Force.at_point(f.linear, Vec3.of(r))
    tau = couple - array(at_r.angular)
    np.testing.assert_allclose(
        np.cross(r, mass * c2) + tau, moments @ alpha + np.cross(omega, moments @ omega)
    )


@SEEDS
def test_force_is_the_rate_of_momentum_at_any_origin(seed):
    """RBDA-2.14-EOM: f = d/dt (I v) of a moving body, and known forces moved into the bias p"""
    random = Random(seed)
    I, dI = random.rigid()
    dv, da = random.vector(6), random.vector(6)
    v, a = Motion.of(dv), Motion.of(da)
    f = I * a + v.cross(I * v)
    rate = dI @ da + (cross_force(dv) @ dI - dI @ cross_motion(dv)) @ dv
    np.testing.assert_allclose(array(f), rate, atol=1e-12)
    f_g = random.force()[0]
    unknown = f - f_g
    p = v.cross(I * v) - f_g
    np.testing.assert_allclose(array(I * a + p), array(unknown), atol=1e-12)


@SEEDS
def test_inverse_inertia_in_closed_form(seed):
    """RBDA-2.15-INVINERTIA: Eq. 2.74 is I^-1; a = Phi f + b; rank of Phi = degree of freedom"""
    random = Random(seed)
    I, dI = random.rigid()
    phi = np.array(I.inverse_matrix())
    np.testing.assert_allclose(phi @ dI, np.eye(6), atol=1e-10)
    v, f = random.motion()[0], random.force()[0]
    p = v.cross(I * v)
    a = phi @ array(f) - phi @ array(p)
    np.testing.assert_allclose(array(I * Motion.of(a) + p), array(f), atol=1e-10)
    S = random.rng.standard_normal((6, 2))
    constrained = S @ np.linalg.inv(S.T @ dI @ S) @ S.T
    assert np.linalg.matrix_rank(constrained) == 2
    forces = constrained @ random.vector(6)
    np.testing.assert_allclose(S @ np.linalg.lstsq(S, forces, rcond=None)[0], forces, atol=1e-12)


@SEEDS
def test_articulated_inertia_arithmetic(seed):
    """RBDA-A.3-OPS, RBDA-A.3-TYPES: 21 numbers, to and from 6x6, products and sums with both kinds"""
    random = Random(seed)
    (A, dA), (B, dB), (I, dI), (v, dv) = (
        random.articulated(),
        random.articulated(),
        random.rigid(),
        random.motion(),
    )
    assert len(A.leaves()) == 21
    np.testing.assert_allclose(A.matrix(), dA)
    np.testing.assert_allclose(array(A * v), dA @ dv)
    np.testing.assert_allclose((A + B).matrix(), dA + dB)
    np.testing.assert_allclose((A - B).matrix(), dA - dB)
    np.testing.assert_allclose((A + I).matrix(), dA + dI)
    np.testing.assert_allclose((I + A).matrix(), dA + dI)
    np.testing.assert_allclose((2.0 * A * 3.0).matrix(), 6.0 * dA)
    np.testing.assert_allclose((2.0 * I * 3.0).matrix(), 6.0 * dI)
    np.testing.assert_allclose(ArticulatedInertia.from_rigid(I).matrix(), dI)
    np.testing.assert_allclose(array(I * v), dI @ dv)
    assert not np.any(ArticulatedInertia.zero().matrix())
    assert RigidInertia.zero() + RigidInertia.zero() == RigidInertia.zero()


def test_a_body_without_mass_has_its_com_at_the_origin():
    assert RigidInertia.zero().com == Vec3.zero()
    assert RigidInertia.zero().inertia_at_com == SymMat3.zero()


@pytest.mark.parametrize(
    ("mass", "moments", "message"),
    [
        (-1.0, (1.0, 1.0, 1.0), "mass is negative: -1 kg"),
        (np.nan, (1.0, 1.0, 1.0), "not finite"),
        (1.0, (1.0, np.inf, 1.0), "not finite"),
        (1.0, (1.0, 1.0, -1.0), "none may be negative"),
        (
            1.0,
            (1.0, 1.0, 3.0),
            r"1, 1, 3 kg m\^2; the greatest exceeds the sum of the others by 1 \(triangle",
        ),
        (0.0, (1.0, 1.0, 1.0), "mass is zero"),
    ],
)
def test_what_no_body_can_have_is_reported_with_figures(mass, moments, message):
    problems = physical_problems(RigidInertia(mass, (0.1, 0.2, 0.3), np.diag(moments)))
    assert len(problems) >= 1
    assert any(re.search(message, problem) for problem in problems)


@pytest.mark.parametrize(
    "inertia",
    [
        RigidInertia(1.0, (0.5, 0.0, 0.0), (0.0, 0.0, 0.0)),
        RigidInertia(1.0, (0.5, 0.1, 3.0), (0.0, 1.0, 1.0)),
        RigidInertia(2.0, (10.0, -20.0, 5.0), (0.001, 0.002, 0.003)),
        RigidInertia(1.0, (0.0, 0.0, 0.0), (0.4, 0.4, 0.4)),
        RigidInertia.zero(),
    ],
    ids=["particle", "rod", "lamina far from its frame", "sphere", "nothing"],
)
def test_bodies_and_their_limits_are_physical(inertia):
    assert physical_problems(inertia) == []
