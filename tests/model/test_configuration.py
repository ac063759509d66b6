"""The configuration space of whole models."""

from __future__ import annotations

import numpy as np
import pytest

from dalembert import models
from dalembert.model import Limits, ModelBuilder, configuration
from dalembert.model.joints import Free, Prismatic, Revolute
from dalembert.models import random_tree
from dalembert.models.random_trees import MAKERS

EVERY_KIND = list(MAKERS)


def every_joint(seed: int):  # type: ignore[no-untyped-def]
    return random_tree(seed, bodies=len(EVERY_KIND), joints=EVERY_KIND)


@pytest.mark.parametrize("seed", range(5))
def test_integrate_and_difference_are_inverse(seed: int) -> None:
    model = every_joint(seed)
    q, v = (x.tolist() for x in model.random_state(seed))
    v = [0.5 * x for x in v]  # less than half a turn, where the rotation's logarithm is unique
    there = configuration.integrate(model, q, v)
    np.testing.assert_allclose(configuration.difference(model, q, there), v, atol=1e-9)
    other = model.random_state(seed + 100)[0].tolist()
    reached = configuration.integrate(model, q, configuration.difference(model, q, other))
    sign = np.ones(model.nq)
    for part in configuration.unit_quaternions(model):
        if np.dot(reached[part], other[part]) < 0.0:
            sign[part] = -1.0
    np.testing.assert_allclose(sign * reached, other, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_position_rate_is_the_derivative_of_integrate(seed: int) -> None:
    model = every_joint(seed)
    q, v = (x.tolist() for x in model.random_state(seed))
    h = 1e-6
    ahead, behind = (configuration.integrate(model, q, [s * h * x for x in v]) for s in (1.0, -1.0))
    rate = (np.array(ahead) - np.array(behind)) / (2.0 * h)
    np.testing.assert_allclose(configuration.position_rate(model, q, v), rate, atol=1e-7)


def test_batches_of_numpy_scalars_equal_single_samples() -> None:
    """Generic scalars: entries may be arrays, one sample an element."""
    model = every_joint(6)
    states = [model.random_state(seed) for seed in range(4)]
    q, v = (list(np.array(x).T) for x in zip(*states))
    for function in (configuration.integrate, configuration.position_rate):
        batched = np.array([np.broadcast_to(x, 4) for x in function(model, q, v)])
        for k, (q_k, v_k) in enumerate(states):
            np.testing.assert_allclose(batched[:, k], function(model, q_k.tolist(), v_k.tolist()), atol=1e-14)


def test_normalize_scales_quaternions_and_nothing_else() -> None:
    model = every_joint(7)
    q = model.random_state(7)[0]
    stretched = q.copy()
    parts = configuration.unit_quaternions(model)
    assert len(parts) >= 3
    for part in parts:
        assert np.linalg.norm(q[part]) == pytest.approx(1.0)
        stretched[part] *= 3.0
    np.testing.assert_allclose(configuration.normalize(model, stretched.tolist()), q, atol=1e-14)


def test_neutral_is_zero_displacement() -> None:
    model = every_joint(8)
    q = model.neutral()
    assert q.shape == (model.nq,)
    assert q.dtype == np.float64
    for part in configuration.unit_quaternions(model):
        assert q[part].tolist() == [1.0, 0.0, 0.0, 0.0]
        q[part] = 0.0
    assert not q.any()
    free = models.quadruped().neutral()
    assert free[:7].tolist() == [0, 0, 0, 1, 0, 0, 0]


def test_random_states_lie_within_limits_and_repeat() -> None:
    builder = ModelBuilder()
    builder.add_body(
        "a", "world", Free(), limits=Limits((-2, -2, 0, *[-np.inf] * 4), (2, 2, 1, *[np.inf] * 4))
    )
    builder.add_body("b", "a", Revolute(), limits=Limits(0.1, 0.2, velocity=0.5))
    builder.add_body("c", "b", Prismatic(), limits=(5.0, np.inf))
    builder.add_body("d", "c", Revolute())
    model = builder.build()
    states = [model.random_state(seed) for seed in range(300)]
    q, v = (np.array(x) for x in zip(*states))
    assert q[:, 2].min() >= 0.0
    assert q[:, 2].max() <= 1.0
    assert 0.1 <= q[:, 7].min() < 0.105
    assert 0.195 < q[:, 7].max() <= 0.2
    assert q[:, 8].min() >= 5.0
    assert q[:, 9].min() < -3.0 < 3.0 < q[:, 9].max()
    assert np.abs(v[:, 6]).max() == 0.5
    assert np.abs(v[:, 7:]).max() > 1.0
    np.testing.assert_allclose(np.linalg.norm(q[:, 3:7], axis=1), 1.0)
    again = model.random_state(7)
    np.testing.assert_array_equal(again[0], states[7][0])
    np.testing.assert_array_equal(again[1], states[7][1])
    assert not np.array_equal(states[0][0], states[1][0])


def test_a_generator_may_be_handed_in() -> None:
    model = models.arm6()
    rng = np.random.default_rng(3)
    first, second = model.random_state(rng)[0], model.random_state(rng)[0]
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, model.random_state(3)[0])
