"""Quaternions without a direction: `normalize` refuses them, in every kind of call."""

from __future__ import annotations

import numpy as np
import pytest
from tests.conformance.models import branched

import dalembert as da
from dalembert.errors import StateError

BAD = {
    "zero": 0.0,
    "not a number": np.nan,
    "infinite": np.inf,
    "too short to square": 1e-170,
    "too long to square": 1e170,
}


@pytest.mark.parametrize("name", BAD)
def test_a_quaternion_without_a_direction_is_refused_or_flagged(name: str) -> None:
    model = branched()
    rows = np.array([model.random_state(k)[0] for k in range(6)])
    expected = da.dynamics.normalize(model, rows)
    rows[4, 3:7] = BAD[name]
    with pytest.raises(
        StateError, match=r"normalize, sample \(4,\): the quaternion q\[3:7\] = .* no direction"
    ):
        da.dynamics.normalize(model, rows)
    with pytest.raises(StateError, match=r"^normalize: the quaternion q\[3:7\]"):
        da.dynamics.normalize(model, rows[4])
    with pytest.raises(StateError, match="no direction"):
        da.compile(da.dynamics.normalize, model)(rows)
    flagged = da.dynamics.normalize(model, rows, check="flag")
    assert np.isnan(flagged[4]).all()
    others = np.arange(6) != 4
    np.testing.assert_array_equal(flagged[others], expected[others])
    np.testing.assert_array_equal(da.dynamics.normalize(model, rows, check="off")[others], expected[others])


def test_a_quaternion_of_any_other_length_is_taken() -> None:
    model = branched()
    q = model.random_state(1)[0]
    for factor in (1e-100, 0.3, 1.001, 1e100):
        scaled = q.copy()
        scaled[3:7] *= factor
        np.testing.assert_allclose(da.dynamics.normalize(model, scaled), q, rtol=1e-14)
        np.testing.assert_allclose(da.compile(da.dynamics.normalize, model)(scaled), q, rtol=1e-14)


def test_a_zero_quaternion_is_refused_wherever_configurations_are_given() -> None:
    model = branched()
    q = model.neutral()
    q[3:7] = 0.0
    with pytest.raises(StateError, match="zeros"):
        model.lock([model.bodies[0].joint_name], q)
    with pytest.raises(StateError):
        da.constraints.close_loops(model, q) if model.loops else da.integrate(model, q, np.zeros(model.nv))
