"""Positions as a manifold: integrate, difference, rates, normalisation, random draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.model.joints.catalogue import CATALOGUE, TIME, book_planar, close, state

from dalembert.errors import ArgumentError, StateError
from dalembert.model.joints import Free, Joint, Planar, Prismatic, Revolute, SphereInCylinder, Spherical


@pytest.fixture(params=CATALOGUE, name="joint")
def every_joint(request) -> Joint:
    return CATALOGUE[request.param]


def same_position(joint: Joint, q, expected, tolerance: float = 1e-12) -> None:
    """Equal numbers, where a quaternion and its negative are one rotation."""
    q, expected = list(q), list(expected)
    for part in joint.unit_quaternions:
        if np.dot(q[part], expected[part]) < 0:
            q[part] = [-x for x in q[part]]
    close(q, expected, tolerance)


def test_difference_leads_from_one_position_to_the_other(joint: Joint) -> None:
    """RBDA-3.1-QDFN: integrate(q, difference(q, q2)) = q2."""
    for seed in range(5):
        q, q2 = state(joint, seed)[0], state(joint, seed + 50)[0]
        same_position(joint, joint.integrate(q, joint.difference(q, q2)), q2, 1e-11)
        close(joint.difference(q, q), [0.0] * joint.nv)


def test_difference_undoes_integrate(joint: Joint) -> None:
    """RBDA-3.1-QDFN: difference(q, integrate(q, dv)) = dv for a step of less than half a turn."""
    for seed, size in ((0, 1e-9), (1, 1e-4), (2, 1e-3), (3, 0.3), (4, 1.2)):
        q, v = state(joint, seed)
        step = [size * x for x in v]
        close(joint.difference(q, joint.integrate(q, step)), step, 1e-11)


def test_a_step_of_zero_stays(joint: Joint) -> None:
    """RBDA-3.1-QDFN: no NaN where the angle of the step is zero."""
    q, _ = state(joint, 4)
    close(joint.integrate(q, [0.0] * joint.nv), q, 1e-15)
    close(joint.integrate(joint.neutral(), [0.0] * joint.nv), joint.neutral())


def test_position_rate_is_the_rate_of_integrate(joint: Joint) -> None:
    """RBDA-3.1-QDFN RBDA-4.4-JCALC: d/dh integrate(q, h v) at h = 0 is dq/dt = Q(q) v."""
    q, v = state(joint, 5)
    h = 1e-4
    ahead, behind = (np.array(joint.integrate(q, [s * h * x for x in v])) for s in (1, -1))
    close((ahead - behind) / (2 * h), joint.position_rate(q, v), 1e-7)


def test_integration_by_a_constant_velocity_is_a_one_parameter_group(joint: Joint) -> None:
    """RBDA-3.1-QDFN: two half steps make one step, where v is constant in the moving frame."""
    q, v = state(joint, 6)
    half = [0.5 * x for x in v]
    same_position(joint, joint.integrate(joint.integrate(q, half), half), joint.integrate(q, v), 1e-12)


def test_normalize_returns_unit_quaternions(joint: Joint) -> None:
    """RBDA-4.5-QUAT: the scale of a quaternion goes, everything else stays."""
    q, _ = state(joint, 7)
    scaled = list(q)
    for part in joint.unit_quaternions:
        scaled[part] = [3.0 * x for x in scaled[part]]
    close(joint.normalize(scaled), q)


def test_four_zeros_are_no_rotation() -> None:
    """RBDA-4.5-QUAT: floats raise, in a batch the row alone is NaN."""
    with pytest.raises(StateError, match="four zeros"):
        Spherical().normalize([0.0, 0.0, 0.0, 0.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = Spherical().normalize([np.array([0.0, 2.0]), *[np.zeros(2)] * 3])
    close([row[1] for row in rows], [1.0, 0.0, 0.0, 0.0])
    assert math.isnan(rows[0][0])


def test_random_positions_keep_their_limits() -> None:
    """Uniform between limits, inside the default range without, one-sided limits given a width."""
    rng = np.random.default_rng(0)
    draws = np.array([Prismatic().random(rng, [-0.2], [0.5]) for _ in range(500)])
    assert -0.2 <= draws.min() < -0.15
    assert 0.45 < draws.max() <= 0.5
    draws = np.array([Revolute().random(rng) for _ in range(500)])
    assert np.abs(draws).max() <= math.pi
    draws = np.array([Prismatic().random(rng, [3.0], [math.inf]) for _ in range(500)])
    assert draws.min() >= 3.0
    assert draws.max() <= 5.0
    draws = np.array([Prismatic().random(rng, [-math.inf], [3.0]) for _ in range(500)])
    assert 1.0 <= draws.min() < 1.1
    assert 2.9 < draws.max() <= 3.0
    with pytest.raises(ArgumentError, match="give 1"):
        Revolute().random(rng, [0.0, 1.0], [1.0, 2.0])


def test_random_rotations_are_uniform() -> None:
    """The mean of R over uniform rotations is zero; each quaternion has unit norm."""
    rng = np.random.default_rng(1)
    for joint in (Spherical(), Free(), SphereInCylinder()):
        draws = [joint.random(rng) for _ in range(4000)]
        mean = np.mean([np.array(joint.transform(q).R.to_list()) for q in draws], axis=0)
        assert np.abs(mean).max() < 0.05
        part = joint.unit_quaternions[0]
        close([np.linalg.norm(q[part]) for q in draws], np.ones(len(draws)))


def test_difference_of_quaternions_takes_the_short_way() -> None:
    """RBDA-4.5-QUAT: at most half a turn, and the same for p and -p."""
    joint = Spherical()
    for seed in range(20):
        p, r = state(joint, seed)[0], state(joint, seed + 100)[0]
        step = joint.difference(p, r)
        assert np.linalg.norm(step) <= math.pi + 1e-12
        close(joint.difference(p, [-x for x in r]), step, 1e-9)
    half_turn = joint.difference([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0])
    close(half_turn, [0.0, math.pi, 0.0])


def test_rigid_displacement_is_the_matrix_exponential() -> None:
    """RBDA-4.4-PLANAR-QDOT: free and planar integrate along the screw exp(v), by scipy's expm."""
    scipy_linalg = pytest.importorskip("scipy.linalg")
    for joint in (Free(), Planar()):
        for seed in range(4):
            q, v = state(joint, seed)
            V = joint.velocity(q, v)
            twist = np.zeros((4, 4))
            twist[:3, :3] = V.angular.skew().to_list()
            twist[:3, 3] = list(V.linear)
            expected = np.array(joint.transform(q).homogeneous()) @ scipy_linalg.expm(twist)
            close(joint.transform(joint.integrate(q, v)).homogeneous(), expected)


@pytest.mark.parametrize("joint", [Planar(), Free(), book_planar()], ids=["planar", "free", "book planar"])
def test_a_thrown_spinning_body_flies_straight(joint: Joint) -> None:
    """RBDA-4.4-PLANAR-QDOT: with v_O = R^T u, u constant, the origin moves on a line while the body spins."""
    q, v = state(joint, 8)
    u, spin = np.array([0.7, -0.4, 0.0]), 2.3
    start, t, h = np.array(list(joint.transform(q).p)), 0.0, 1e-3
    for _ in range(200):  # the midpoint rule on dq/dt = Q(q) v
        velocity = _spinning(joint, q, u, spin)
        middle = np.array(q) + 0.5 * h * np.array(joint.position_rate(q, velocity))
        rate = joint.position_rate(middle.tolist(), _spinning(joint, middle.tolist(), u, spin))
        q, t = joint.normalize((np.array(q) + h * np.array(rate)).tolist()), t + h
    close(list(joint.transform(q).p), start + u * t, 1e-6)
    assert len(v) == joint.nv


def _spinning(joint: Joint, q, u, spin: float) -> list[float]:
    """v of a body that spins about its z axis while its origin moves with u in the predecessor."""
    local = np.array(joint.transform(q).E.to_list()) @ u
    return [0.0, 0.0, spin, *local] if joint.nv == 6 else [spin, local[0], local[1]]


def test_book_variables_of_the_planar_joint() -> None:
    """RBDA-4.4-PLANAR-QDOT: Table 4.1's own position variables have dq2/dt = v2 + q3 v1, dq3/dt = v3 - q2 v1.

    Both sets describe one motion, and Example 4.5's matrix belongs to other velocity variables.
    """
    book, ours = book_planar(), Planar()
    q, v = [0.7, 0.5, -0.8], [1.1, -0.4, 0.9]
    close(book.position_rate(q, v), [v[0], v[1] + q[2] * v[0], v[2] - q[1] * v[0]])
    X = book.transform(q)
    ours_q = [X.p.x, X.p.y, q[0]]
    c, s = math.cos(q[0]), math.sin(q[0])
    close(ours.position_rate(ours_q, v), [c * v[1] - s * v[2], s * v[1] + c * v[2], v[0]])
    close(ours.transform(ours_q).motion_matrix(), X.motion_matrix())
    close(
        ours.transform(ours.integrate(ours_q, v)).motion_matrix(),
        book.transform(book.integrate(q, v)).motion_matrix(),
    )
    # Example 4.5 with alpha = rates of the book's own variables: the same dq/dt, from another S.
    x, y = X.p.x, X.p.y
    alpha = book.position_rate(q, v)
    example = np.array([[1, 0, 0], [-y, c, -s], [x, s, c]]) @ alpha
    close(example, [v[0], *ours.position_rate(ours_q, v)[:2]])


def test_time_does_not_change_what_it_does_not_touch(joint: Joint) -> None:
    """RBDA-4.4-USERJOINT: only a joint that says so depends on time."""
    q, _ = state(joint, 9)
    if joint.time_dependent:
        moved = np.array(joint.transform(q, TIME + 0.3).motion_matrix())
        assert np.abs(moved - np.array(joint.transform(q, TIME).motion_matrix())).max() > 1e-3
        with pytest.raises(ArgumentError, match="pass time="):
            joint.transform(q)
    else:
        close(joint.transform(q, TIME).motion_matrix(), joint.transform(q).motion_matrix())


def test_a_position_without_room_is_the_limit_itself() -> None:
    """Coupled limits may meet in a zero of either sign."""
    rng = np.random.default_rng(0)
    assert Revolute(axis=(0, 0, 1)).random(rng, [0.0], [-0.0]) == [0.0]
    assert Revolute(axis=(0, 0, 1)).random(rng, [0.5], [0.5]) == [0.5]
