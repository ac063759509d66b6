"""delta of Table 8.1: zero on the manifold, T^T d near it, and the table's own formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.model.joints.catalogue import CATALOGUE, SKEW, TIME, close, helix, placement, state

from dalembert.errors import ModelError
from dalembert.model.joints import (
    Composite,
    Cylindrical,
    Fixed,
    Helical,
    Joint,
    Prismatic,
    RackPinion,
    Revolute,
    Spherical,
    SphericalEuler,
)
from dalembert.spatial import Motion, Transform, Vec3

CLOSING = [
    name
    for name, joint in CATALOGUE.items()
    if not name.startswith("user") and (not isinstance(joint, Composite) or name == "composite of one")
]


@pytest.fixture(params=CLOSING, name="joint")
def every_closing_joint(request) -> Joint:
    return CATALOGUE[request.param]


def displaced(X: Transform, d: Motion) -> Transform:
    """The successor frame moved by the motion d of its own coordinates (the exponential of d)."""
    scipy_linalg = pytest.importorskip("scipy.linalg")
    twist = np.zeros((4, 4))
    twist[:3, :3] = d.angular.skew().to_list()
    twist[:3, 3] = list(d.linear)
    moved = np.array(X.homogeneous(), dtype=float) @ scipy_linalg.expm(twist)
    return Transform.from_rotation_translation(moved[:3, :3], moved[:3, 3])


def test_error_vanishes_in_every_joint_position(joint: Joint) -> None:
    """RBDA-8.3-DELTA: delta = 0 wherever the joint may be, also after many turns."""
    for seed in range(4):
        q, _ = state(joint, seed)
        X = joint.transform(q, TIME).as_transform()
        close(joint.closure_error(X, TIME), np.zeros(6 - joint.nv))
        found = joint.position_of(X, TIME)
        close(joint.transform(found, TIME).motion_matrix(), X.motion_matrix())


def test_error_is_the_constrained_part_of_a_small_displacement(joint: Joint) -> None:
    """RBDA-8.3-DELTA: delta = T^T d to first order in the displacement d (Eqs 8.25 to 8.27)."""
    for seed in range(3):
        q, _ = state(joint, seed)
        d = Motion.of(np.random.default_rng(seed).standard_normal(6) * 1e-6)
        X = displaced(joint.transform(q, TIME).as_transform(), d)
        expected = [d.dot(force) for force in joint.constraint_subspace(q, TIME)]
        close(np.array(joint.closure_error(X, TIME)) * 1e6, np.array(expected) * 1e6, 2e-4)


def test_implicit_constraint_pairs_the_error_with_its_forces(joint: Joint) -> None:
    """RBDA-4.4-JCALC: (delta, T) of a placement, T at the position nearest to it."""
    q, _ = state(joint, 4)
    X = joint.transform(q, TIME).as_transform()
    delta, T = joint.implicit_constraint(X, TIME)
    close(delta, joint.closure_error(X, TIME))
    S = np.array([column.to_list() for column in joint.subspace(q, TIME)]).reshape(-1, 6)
    close(np.array([force.to_list() for force in T]).reshape(-1, 6) @ S.T, np.zeros((6 - joint.nv, joint.nv)))


def test_constraint_forces_that_are_said_to_be_constant_are(joint: Joint) -> None:
    """T at a placement is T at the position there, which need not be found where T is constant."""
    columns = []
    for seed in (1, 2):
        q, _ = state(joint, seed)
        T = joint.constraint_subspace(q, TIME)
        at = joint.constraint_subspace_at(joint.transform(q, TIME).as_transform(), TIME)
        close([f.to_list() for f in at], [f.to_list() for f in T])
        columns.append([f.to_list() for f in T])
    if joint.constant_constraint_forces:
        assert columns[0] == columns[1]


def rows_of_the_table(M: np.ndarray) -> dict[str, list[float]]:
    """Table 8.1 in the book's matrix elements, counted from 1."""
    X = np.zeros((7, 7))
    X[1:, 1:] = M
    cylindrical = [X[2, 3], -X[1, 3], X[5, 3], -X[4, 3]]
    turn = [(X[2, 3] - X[3, 2]) / 2, (X[3, 1] - X[1, 3]) / 2, (X[1, 2] - X[2, 1]) / 2]
    shift = [(X[5, 3] - X[6, 2]) / 2, (X[6, 1] - X[4, 3]) / 2, (X[4, 2] - X[5, 1]) / 2]
    return {
        "fixed": turn + shift,
        "revolute": [*cylindrical, X[4, 1] * X[2, 1] + X[4, 2] * X[2, 2]],
        "prismatic": [*turn, X[5, 3], -X[4, 3]],
        "cylindrical": cylindrical,
        "spherical": [
            sum(X[5, k] * X[3, k] for k in (1, 2, 3)),
            sum(X[6, k] * X[1, k] for k in (1, 2, 3)),
            sum(X[4, k] * X[2, k] for k in (1, 2, 3)),
        ],
    }


@pytest.mark.parametrize(
    "joint", [Fixed(), Revolute(), Prismatic(), Cylindrical(), Spherical()], ids=lambda j: j.kind
)
def test_table_81_as_printed(joint: Joint) -> None:
    """RBDA-8.3-DELTA: the printed formulas, at placements that are far from closed."""
    for seed in range(3):
        X = placement(seed)
        close(joint.closure_error(X), rows_of_the_table(np.array(X.motion_matrix()))[joint.kind])


@pytest.mark.parametrize("make", [Prismatic, Cylindrical])
def test_any_axis_is_the_table_seen_in_another_frame(make) -> None:
    """RBDA-8.3-DELTA: T delta does not depend on how the axes are named.

    (A revolute joint's last item does, to second order, since the table leaves out one product of three.)
    """
    X = placement(5)
    turned = Transform(Spherical().transform(placement_quaternion(6)).R, Vec3.zero())
    axis = turned.rotate_to_parent(Vec3.unit(2))
    # The same two frames, each described by axes turned alike.
    seen = turned @ X @ turned.inverse()
    here, there = make((0, 0, 1)), make(axis)
    q = [0.0] * here.nq
    straight = _resultant(here, X, q)
    rotated = _resultant(there, seen, q)
    close(turned.motion_to_parent(straight).to_list(), rotated.to_list(), 1e-11)


def _resultant(joint: Joint, X: Transform, q) -> Motion:
    """Sum of delta_i T_i, as six numbers: free of the choice of basis, for orthonormal bases."""
    total = np.zeros(6)
    for error, force in zip(joint.closure_error(X), joint.constraint_subspace(q)):
        total = total + error * np.array(force.to_list())
    return Motion.of(total)


def placement_quaternion(seed: int) -> list[float]:
    p = np.random.default_rng(seed).standard_normal(4)
    return (p / np.linalg.norm(p)).tolist()


@pytest.mark.parametrize("joint", [Helical((0, 0, 1), 0.3), Helical(SKEW, -0.2), RackPinion(0.7)])
def test_whole_turns_of_a_screw_are_counted(joint: Joint) -> None:
    """RBDA-8.3-DELTA: a screw that has turned many times is told from its advance."""
    for q in (0.4, 9.0, -31.0, 100.0):
        close(joint.position_of(joint.transform([q]).as_transform()), [q], 1e-10)
        close(joint.closure_error(joint.transform([q]).as_transform()), np.zeros(5), 1e-10)


def test_screw_without_pitch_is_a_hinge() -> None:
    """RBDA-8.3-DELTA: no division by a zero pitch."""
    close(Helical((0, 0, 1), 0.0).position_of(Revolute().transform([0.8]).as_transform()), [0.8])
    close(RackPinion(0.0).position_of(Revolute().transform([0.8]).as_transform()), [0.8])


@pytest.mark.parametrize("order", ["zyx", "xyz", "zxz", "yxy"])
def test_angles_are_recovered_in_their_principal_range(order: str) -> None:
    """RBDA-4.5-EULERZYX: the angles of a rotation, and some angles even where they are not unique."""
    joint = SphericalEuler(order)
    q = [0.4, 0.9, -2.0]
    close(joint.position_of(joint.transform(q).as_transform()), q)
    singular = [0.4, 0.0 if order[0] == order[2] else math.pi / 2, 0.3]
    found = joint.position_of(joint.transform(singular).as_transform())
    assert all(math.isfinite(angle) for angle in found)


def test_joints_that_cannot_close_a_loop_say_so() -> None:
    """RBDA-8.3-DELTA: a chain of joints and a user's joint without `position_of` name the remedy."""
    X = Transform.identity()
    for joint in (CATALOGUE["composite"], helix()):
        with pytest.raises(ModelError, match="close the loop with"):
            joint.closure_error(X)
