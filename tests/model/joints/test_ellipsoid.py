"""The ellipsoid joint against Pinocchio's, which defines it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.model.joints.catalogue import close, state

from dalembert.model.joints import EllipsoidJoint
from dalembert.spatial import to_linear_first

pin = pytest.importorskip("pinocchio")


@pytest.mark.parametrize("seed", range(4))
def test_ellipsoid_is_pinocchios(seed: int) -> None:
    """RBDA-4.4-TABLE41: transform, S, v_J and c_J of JointModelEllipsoid in random moving states."""
    radii = np.random.default_rng(seed).uniform(0.2, 2.0, 3)
    ours, theirs = EllipsoidJoint(*radii.tolist()), pin.JointModelEllipsoid(*radii.tolist())
    theirs.setIndexes(1, 0, 0)
    data = theirs.createData()
    q, v = state(ours, seed)
    theirs.calc(data, np.array(q), np.array(v))
    X = ours.transform(q)
    close(X.R.to_list(), data.M.rotation)
    close(list(X.p), data.M.translation)
    close(np.array([to_linear_first(column) for column in ours.subspace(q)]).T, data.S)
    close(to_linear_first(ours.velocity(q, v)), data.v.vector)
    close(to_linear_first(ours.bias(q, v)), data.c.vector)


def test_origin_stays_on_the_surface() -> None:
    """RBDA-4.4-TABLE41: (x/a)² + (y/b)² + (z/c)² = 1, and successor z points along the stretched normal."""
    joint = EllipsoidJoint(0.7, 1.1, 1.6)
    for seed in range(5):
        X = joint.transform(state(joint, seed)[0])
        assert abs((X.p.x / 0.7) ** 2 + (X.p.y / 1.1) ** 2 + (X.p.z / 1.6) ** 2 - 1.0) < 1e-12
        close([X.p.x / 0.7, X.p.y / 1.1, X.p.z / 1.6], list(X.R.column(2)))
