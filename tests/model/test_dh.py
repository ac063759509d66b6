"""Denavit-Hartenberg parameters."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dalembert.errors import ArgumentError, UnknownNameError
from dalembert.model import DHRow, dh_chain, dh_placement, from_classic
from dalembert.models import gu
from dalembert.models.random_trees import random_inertia
from dalembert.spatial import Transform


def Rx(angle: float) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1.0]])


def Rz(angle: float) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


def T(x: float, y: float, z: float) -> np.ndarray:
    shifted = np.eye(4)
    shifted[:3, 3] = x, y, z
    return shifted


def pose(model: object, q: list[float], name: str) -> np.ndarray:
    owns = list(model.outward(lambda body, X: (X @ body.link_transform(q),) * 2, Transform.identity()))  # type: ignore[attr-defined]
    frame = model.frame(name)  # type: ignore[attr-defined]
    return np.array((owns[frame.body] @ frame.placement).homogeneous())


def rows(rng: np.random.Generator, n: int) -> list[DHRow]:
    kinds = ["revolute", "prismatic", "cylindrical", "helical"]
    return [
        DHRow(*rng.uniform(-1.5, 1.5, 4).tolist(), joint=kinds[i % 4], pitch=float(rng.uniform(-0.5, 0.5)))
        for i in range(n)
    ]


def test_chain_equals_the_product_of_elementary_transforms() -> None:
    """RBDA-4.3-DH: every kind of joint, base terms theta_0 and d_0, the end effector's four parameters."""
    rng = np.random.default_rng(1)
    table = rows(rng, 8)
    base, last = (0.7, 0.4), DHRow(0.1, 0.2, 0.3, 0.4)
    model = dh_chain(table, [random_inertia(rng) for _ in table], base=base, end_effector=last)
    q = model.random_state(1)[0].tolist()
    expected = Rz(base[0]) @ T(0.0, 0.0, base[1])
    for row, body in zip(table, model.bodies):
        own = body.own_q(q)
        theta, d = row.theta, row.d
        if row.joint == "prismatic":
            d += own[0]
        elif row.joint == "cylindrical":
            theta, d = theta + own[0], d + own[1]
        elif row.joint == "helical":
            theta, d = theta + own[0], d + row.pitch * own[0]
        else:
            theta += own[0]
        expected = expected @ T(row.a, 0, 0) @ Rx(row.alpha) @ T(0, 0, d) @ Rz(theta)
        np.testing.assert_allclose(pose(model, q, body.name), expected, atol=1e-12)
    expected = expected @ T(last.a, 0, 0) @ Rx(last.alpha) @ T(0, 0, last.d) @ Rz(last.theta)
    np.testing.assert_allclose(pose(model, q, "end_effector"), expected, atol=1e-12)
    # 4 numbers for each joint, 2 for the base and 4 for the end effector.
    assert 4 * len(table) + len(base) + len(last[:4]) == 4 * 8 + 6


def test_placement_is_the_books_tree_transform() -> None:
    """RBDA-4.3-DH: X_T = xlt([a 0 d]) rotx(alpha), and equal to the product of two axial screws."""
    row = DHRow(0.3, 0.5, -0.2)
    X = dh_placement(row)
    c, s = math.cos(0.5), math.sin(0.5)
    E = np.array([[1, 0, 0], [0, c, s], [0, -s, c]])
    rotx = np.block([[E, np.zeros((3, 3))], [np.zeros((3, 3)), E]])
    skew = np.cross(np.eye(3), [0.3, 0.0, -0.2])
    xlt = np.block([[np.eye(3), np.zeros((3, 3))], [-skew, np.eye(3)]])
    np.testing.assert_allclose(np.array(X.motion_matrix()), xlt @ rotx, atol=1e-15)
    assert [factor.axis for factor in X.factors] == [0, 2]


def test_classic_tables_describe_the_same_end_effector() -> None:
    """RBDA-4.3-DH: the classic link transform is Rz(theta) Tz(d) Tx(a) Rx(alpha)."""
    rng = np.random.default_rng(2)
    classic = [row._replace(joint="revolute") for row in rows(rng, 6)]
    moved, last = from_classic(classic)
    model = dh_chain(moved, [random_inertia(rng) for _ in moved], end_effector=last)
    q = model.random_state(2)[0].tolist()
    expected = np.eye(4)
    for row, angle in zip(classic, q):
        expected = expected @ Rz(row.theta + angle) @ T(0, 0, row.d) @ T(row.a, 0, 0) @ Rx(row.alpha)
    np.testing.assert_allclose(pose(model, q, "end_effector"), expected, atol=1e-12)


def test_quarter_turns_are_exact() -> None:
    """Zeros and ones are literals, so that structure folds."""
    for k in range(-4, 5):
        entries = dh_placement(DHRow(0.0, k * math.pi / 2, 0.0, k * math.pi / 2)).as_transform().R.leaves()
        assert all(x in (0.0, 1.0, -1.0) for x in entries)


def test_bad_tables_are_refused() -> None:
    """RBDA-4.3-DH"""
    with pytest.raises(UnknownNameError, match=r'unknown joint of a DH row "revolut".*nearest: "revolute"'):
        dh_chain([DHRow(0, 0, 0, joint="revolut")], [random_inertia(1)])
    with pytest.raises(ArgumentError, match="1 rows but 0 inertias"):
        dh_chain([DHRow(0, 0, 0)], [])
    with pytest.raises(ArgumentError, match="1 rows but 2 names"):
        dh_chain([DHRow(0, 0, 0)], [random_inertia(1)], names=["a", "b"])


def test_gu_is_general_and_grows_by_links() -> None:
    """RBDA-10.3-COUNTER: the family GU(n): unbranched, all revolute, general parameters, DH frames."""
    long, short = gu(9), gu(4)
    assert long.parents == tuple(range(-1, 8))
    for a, b in zip(short.bodies, long.bodies):
        assert (a.placement, a.inertia, a.joint) == (b.placement, b.inertia, b.joint)
    for body in long.bodies:
        assert body.joint.kind == "revolute"
        assert list(body.joint.axis) == [0.0, 0.0, 1.0]
        assert all(x != 0.0 for x in body.inertia.leaves())
        R, p = np.array(body.placement.R.to_list()), np.array(body.placement.p.to_list())
        assert R[0].tolist() == [1.0, 0.0, 0.0]
        assert np.all(np.abs(p) > 0.01)
        assert abs(R[1, 1]) > 0.1
        assert abs(R[1, 2]) > 0.1
    for n in (0, -1, 2.5, True):
        with pytest.raises(ArgumentError, match="whole number of joints"):
            gu(n)  # type: ignore[arg-type]
