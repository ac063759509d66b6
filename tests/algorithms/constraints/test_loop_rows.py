"""The rows of loop joints against the motion of the loops themselves."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.constraints.closed_trees import CLOSERS, ENDS, TIME, closed_model, moved

import dalembert as da
from dalembert.algorithms import aligned
from dalembert.algorithms.constraints import constraint_equations

STEP = 1e-5

CASES = [(name, ENDS[i % len(ENDS)]) for i, name in enumerate(CLOSERS)] + [("universal", e) for e in ENDS]


def errors(tree, model, q, v, h):
    """(velocity error, position error) a time h later at the same v."""
    later = constraint_equations(tree, moved(model, q, v, h), v, time=TIME + h)
    return np.array(later.velocity_error), np.array(later.position_error)


@pytest.mark.parametrize(("name", "ends"), CASES)
def test_rows_are_the_rates_of_the_closure_error(name, ends):
    """RBDA-8.2-LOOPJAC, RBDA-8.7-KALG: delta' = T^T (v_J - sigma) on the loop, K' v = -k anywhere."""
    model, q, v = closed_model(CLOSERS[name], ends, seed=3)
    for tree in (model, aligned(model)):
        now = constraint_equations(tree, q, v, time=TIME)
        K, k = np.array(now.K).reshape(-1, model.nv), np.array(now.k)
        assert K.shape == (6 - CLOSERS[name].nv, model.nv)
        ahead, behind = errors(tree, model, q, v, STEP), errors(tree, model, q, v, -STEP)
        rates = [(a - b) / (2.0 * STEP) for a, b in zip(ahead, behind)]
        np.testing.assert_allclose(now.position_error, 0.0, atol=1e-13)
        np.testing.assert_allclose(rates[1], now.velocity_error, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(rates[0], -k, rtol=1e-6, atol=1e-5)
        # Off the loop, where delta is an approximation, K' v = -k holds all the same.
        away = moved(model, q, v, 0.3)
        at = constraint_equations(tree, away, v, time=TIME)
        ahead, behind = errors(tree, model, away, v, STEP), errors(tree, model, away, v, -STEP)
        np.testing.assert_allclose(
            (ahead[0] - behind[0]) / (2.0 * STEP), -np.array(at.k), rtol=1e-6, atol=1e-5
        )


@pytest.mark.parametrize(("name", "ends"), CASES)
def test_frames_do_not_matter(name, ends):
    """RBDA-8.7-KALG: Table 8.4 in base coordinates, nearby coordinates and aligned frames agree."""
    model, q, v = closed_model(CLOSERS[name], ends, seed=4)
    q = moved(model, q, v, 0.2)
    nearby = constraint_equations(model, q, v, time=TIME)
    base = constraint_equations(model, q, v, time=TIME, coordinates="base")
    other = constraint_equations(aligned(model), q, v, time=TIME)
    assert nearby.names == base.names == other.names == ("closer",) * len(nearby.k)
    for a, b, c in zip(nearby[:4], base[:4], other[:4]):
        np.testing.assert_allclose(np.array(b), np.array(a), rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(np.array(c), np.array(a), rtol=1e-10, atol=1e-11)
    # K v is the velocity error but for what is prescribed.
    still = constraint_equations(model, q, [0.0] * model.nv, time=TIME)
    Kv = np.array(nearby.K).reshape(-1, model.nv) @ np.array(v)
    np.testing.assert_allclose(Kv + np.array(still.velocity_error), nearby.velocity_error, atol=1e-11)


def test_time_must_be_given_where_a_loop_depends_on_it():
    model, q, _ = closed_model(CLOSERS["driven_revolute"], ENDS[0], seed=3)
    assert model.time_dependent
    with pytest.raises(da.errors.ArgumentError, match="time="):
        da.constraints.constraint_error(model, q)
    assert da.constraints.constraint_error(model, q, time=[TIME, TIME]).shape == (2, 5)
    builder = da.ModelBuilder()
    solid = da.RigidInertia(1.0, (0, 0, 0), (1, 1, 1))
    builder.add_body("cart", joint=da.Free(), inertia=solid)
    builder.add_loop("rail", "world", "cart", CLOSERS["driven_revolute"])
    with pytest.raises(da.errors.ArgumentError, match="loop joint depends on time"):
        da.constraints.constraint_error(builder.build(), builder.build().neutral())


def test_coordinates_have_names():
    model, q, v = closed_model(CLOSERS["revolute"], ENDS[0], seed=3)
    with pytest.raises(da.errors.UnknownNameError, match="nearest"):
        constraint_equations(model, q, v, time=TIME, coordinates="bases")
