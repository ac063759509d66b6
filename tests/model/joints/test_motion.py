"""Laws of every joint in motion: S, v_J and c_J are derivatives of X_J; T and T_a are dual to S."""

from __future__ import annotations

import numpy as np
import pytest
from tests.model.joints.catalogue import CATALOGUE, TIME, close, state

from dalembert.model.joints import Free, Joint, Revolute, active_subspace_along
from dalembert.spatial import Force, Motion, Vec3

STEP = 1e-3


@pytest.fixture(params=CATALOGUE, name="joint")
def every_joint(request) -> Joint:
    return CATALOGUE[request.param]


def derivative(function):
    """d/dh at h = 0 by central differences of sixth order."""
    h = STEP
    first, second, third = (function(k * h) - function(-k * h) for k in (1, 2, 3))
    return (45 * first - 9 * second + third) / (60 * h)


def along(joint: Joint, q, v, function):
    """h -> function of the position and time that the state (q, v) reaches, to first order, at TIME + h."""
    rate = np.array(joint.position_rate(q, v))
    return lambda h: np.array(function((np.array(q) + h * rate).tolist(), TIME + h), dtype=float)


def columns(vectors) -> np.ndarray:
    """6 x n."""
    return np.array([vector.to_list() for vector in vectors], dtype=float).reshape(-1, 6).T


def cross_matrix(motion: Motion) -> np.ndarray:
    """v x as a matrix (Eq. 2.31)."""
    w = np.array(motion.angular.skew().to_list(), dtype=float)
    v = np.array(motion.linear.skew().to_list(), dtype=float)
    return np.block([[w, np.zeros((3, 3))], [v, w]])


@pytest.mark.parametrize("seed", [0, 1])
def test_joint_velocity_is_the_rate_of_the_transform(joint: Joint, seed: int) -> None:
    """RBDA-4.4-TABLE41 RBDA-3.5-JOINT RBDA-3.1-QDFN ANIM-JOINTS: -dX_J/dt X_J^-1 = v_J x."""
    q, v = state(joint, seed)
    X = np.array(joint.transform(q, TIME).motion_matrix(), dtype=float)
    rate = derivative(along(joint, q, v, lambda p, t: joint.transform(p, t).motion_matrix()))
    close(-rate @ np.linalg.inv(X), cross_matrix(joint.velocity(q, v, TIME)), 1e-10)


def test_columns_of_s_are_velocities_of_unit_speeds(joint: Joint) -> None:
    """RBDA-3.5-JOINT: v_J = S v + sigma, with sigma the velocity at v = 0."""
    q, v = state(joint, 2)
    S = columns(joint.subspace(q, TIME))
    sigma = np.array(joint.velocity(q, [0.0] * joint.nv, TIME).to_list())
    assert S.shape == (6, joint.nv)
    close(S @ np.array(v) + sigma, joint.velocity(q, v, TIME).to_list())
    if not joint.time_dependent:
        close(sigma, np.zeros(6))


def test_bias_is_the_apparent_rate_of_the_joint_velocity(joint: Joint) -> None:
    """RBDA-3.5-JOINT: c_J = S° v + sigma°, the derivative of v_J's successor coordinates with v held."""
    q, v = state(joint, 3)
    rate = derivative(along(joint, q, v, lambda p, t: joint.velocity(p, v, t).to_list()))
    close(joint.bias(q, v, TIME).to_list(), rate, 1e-9)


def test_constraint_forces_do_no_work(joint: Joint) -> None:
    """RBDA-3.5-JOINT RBDA-4.4-TABLE41: T^T S = 0, rank T = 6 - nv; T^T v_J = T^T sigma."""
    q, v = state(joint, 4)
    S, T = columns(joint.subspace(q, TIME)), columns(joint.constraint_subspace(q, TIME))
    assert T.shape == (6, 6 - joint.nv)
    assert np.linalg.matrix_rank(T, tol=1e-6) == 6 - joint.nv
    close(T.T @ S, np.zeros((6 - joint.nv, joint.nv)))
    sigma = np.array(joint.velocity(q, [0.0] * joint.nv, TIME).to_list())
    close(T.T @ np.array(joint.velocity(q, v, TIME).to_list()), T.T @ sigma, 1e-11)


def test_active_forces_carry_the_generalised_force(joint: Joint) -> None:
    """RBDA-3.5-JOINT: T_a^T S = 1, so that f_J = T_a tau + T lambda has S^T f_J = tau and power tau . v."""
    q, v = state(joint, 5)
    rng = np.random.default_rng(5)
    tau, constraint = rng.standard_normal(joint.nv), rng.standard_normal(6 - joint.nv)
    S = columns(joint.subspace(q, TIME))
    Ta, T = columns(joint.active_subspace(q, TIME)), columns(joint.constraint_subspace(q, TIME))
    close(Ta.T @ S, np.eye(joint.nv), 1e-11)
    f = Ta @ tau + T @ constraint
    close(S.T @ f, tau, 1e-10)
    close(f @ S @ np.array(v), tau @ np.array(v), 1e-10)


def test_joint_acceleration_between_two_moving_bodies(joint: Joint) -> None:
    """RBDA-3.5-JOINT: a_s - a_p = S dv/dt + c_J + v_s x v_J, the predecessor itself in flight."""
    q, v = state(joint, 6)
    base = Free()
    base_q, base_v = state(base, 7)
    a = np.random.default_rng(8).standard_normal(joint.nv)

    def position_and_velocity(h: float):
        speed = (np.array(v) + h * a).tolist()
        here = joint.integrate(q, (np.array(v) * h + a * (h * h / 2)).tolist())
        return here, speed

    def velocities(h: float) -> tuple[np.ndarray, np.ndarray]:
        """v_p and v_s in world coordinates."""
        placed = base.transform(base.integrate(base_q, [h * x for x in base_v]))
        here, speed = position_and_velocity(h)
        X = joint.transform(here, TIME + h).as_transform()
        v_p = Motion.of(base_v)
        v_s = X.apply(v_p) + joint.velocity(here, speed, TIME + h)
        return np.array(placed.inverse_apply(v_p).to_list()), np.array(
            (placed @ X).inverse_apply(v_s).to_list()
        )

    a_p, a_s = derivative(lambda h: velocities(h)[0]), derivative(lambda h: velocities(h)[1])
    X = joint.transform(q, TIME).as_transform()
    v_J = joint.velocity(q, v, TIME)
    v_s = X.apply(Motion.of(base_v)) + v_J
    own = joint.bias(q, v, TIME) + v_s.cross(v_J)
    for column, rate_of_v in zip(joint.subspace(q, TIME), a):
        own = own + column * float(rate_of_v)
    expected = (base.transform(base_q) @ X).inverse_apply(own).to_list()
    close(a_s - a_p, expected, 1e-8)


def test_jcalc_has_three_modes(joint: Joint) -> None:
    """RBDA-4.4-JCALC: explicit (X_J, S, v_J, c_J) and dq/dt; the implicit one is in test_closure."""
    q, v = state(joint, 9)
    X_J, S, v_J, c_J = joint.jcalc(q, v, TIME)
    close(X_J.motion_matrix(), joint.transform(q, TIME).motion_matrix())
    close(columns(S), columns(joint.subspace(q, TIME)))
    close(v_J.to_list(), joint.velocity(q, v, TIME).to_list())
    close(c_J.to_list(), joint.bias(q, v, TIME).to_list())
    assert len(joint.position_rate(q, v)) == joint.nq == len(joint.coordinates)


def test_chosen_active_force_of_a_geared_hinge() -> None:
    """RBDA-3.5-TA: a pinion at (-r, 0, 0) gives T_a = (0, 0, 1, 0, -1/r, 0); S^T f_J = tau all the same."""
    r = 0.25
    hinge = Revolute((0, 0, 1))
    S = hinge.subspace([0.3])
    tooth = Force.at_point(Vec3(0.0, 1.0, 0.0), Vec3(-r, 0.0, 0.0))
    (T_a,) = active_subspace_along(S, [tooth])
    close(T_a.to_list(), [0, 0, 1, 0, -1 / r, 0])
    (usual,) = hinge.active_subspace([0.3])
    # What differs is a constraint force: the bearing's load, which does no work.
    close((T_a - usual).dot(S[0]), 0.0)


def test_chosen_active_forces_of_a_joint_with_many_freedoms() -> None:
    """RBDA-3.5-TA: T_a^T S = 1 for any directions that can drive every freedom."""
    joint = CATALOGUE["composite nested"]
    q, _ = state(joint, 10)
    S = joint.subspace(q)
    rng = np.random.default_rng(11)
    directions = [Force.of(rng.standard_normal(6)) for _ in S]
    close(columns(active_subspace_along(S, directions)).T @ columns(S), np.eye(joint.nv), 1e-9)
