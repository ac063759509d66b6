"""Blocks of samples that touch alike: results do not depend on the order, neighbours share points."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.codegen import default_lanes
from dalembert.compiler.kernels import DIVERGENT_VECTOR_BYTES
from dalembert.simulation import alike_samples
from dalembert.simulation.alike_samples import alike_order
from dalembert.simulation.step_function import rollout_kernel
from dalembert.simulation.step_plan import DEFAULT_INTEGRATOR, FEW_POINTS, StepPlan

SAMPLES = 21


def rollout() -> Any:
    """Quadrupeds that fall on the ground and on their legs, each from another pose."""
    model = da.models.quadruped().with_ground()
    rng = np.random.default_rng(5)
    q = np.stack([model.random_state(k)[0] for k in range(SAMPLES)])
    q[:, :2], q[:, 2] = 0.0, rng.uniform(0.1, 0.4, SAMPLES)
    v = rng.normal(0.0, 0.3, (SAMPLES, model.nv))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # legs that begin in each other
        return da.rollout(model, q, v, steps=60, dt=0.002, every=20, contact="rigid", record_contacts=True)


@pytest.mark.parametrize("threads", [1, 3])
def test_results_do_not_depend_on_the_order_of_samples(monkeypatch: Any, threads: int) -> None:
    before = da.get_num_threads()
    da.set_num_threads(threads)
    monkeypatch.setattr(alike_samples, "SECONDS_PER_SAMPLE", 0.0)
    rng, motions, calls = np.random.default_rng(threads), [], []
    try:
        for order in (np.arange(SAMPLES), rng.permutation(SAMPLES), rng.permutation(SAMPLES)):

            def chosen(numbers: Any, order: Any = order) -> Any:
                calls.append(len(numbers))
                return order.astype(np.int64)

            monkeypatch.setattr(alike_samples, "alike_order", chosen)
            motions.append(rollout())
    finally:
        da.set_num_threads(before)
    assert set(calls) == {SAMPLES}
    assert len(calls) >= 3
    assert len(np.unique((np.abs(motions[0].contacts.force[:, -1]).sum(axis=-1) > 0.0), axis=0)) > 5
    for motion in motions[1:]:
        np.testing.assert_array_equal(motion.q, motions[0].q)
        np.testing.assert_array_equal(motion.v, motions[0].v)
        np.testing.assert_array_equal(motion.contacts.force, motions[0].contacts.force)


def test_samples_with_the_same_points_are_neighbours() -> None:
    rng = np.random.default_rng(0)
    kinds = [rng.choice(200, 12, replace=False) for _ in range(40)]
    numbers = np.full((400, 16), -1.0)
    for row in numbers:
        row[:12] = rng.permutation(kinds[rng.integers(40)])
    order = alike_order(numbers)
    assert sorted(order) == list(range(400))
    sets = [frozenset(row[row >= 0.0]) for row in numbers[order]]
    changes = sum(a != b for a, b in pairwise(sets))
    assert changes < 100  # 39 if there were one window; 390 as they lie


def test_samples_without_points_have_an_order() -> None:
    assert sorted(alike_order(np.full((5, 3), -1.0))) == list(range(5))
    assert sorted(alike_order(np.zeros((3, 0)))) == list(range(3))


@pytest.mark.parametrize(("boxes", "divergent"), [(1, False), (6, True)])
def test_scenes_with_many_points_have_narrower_blocks(boxes: int, divergent: bool) -> None:
    builder = da.ModelBuilder()
    inertia = da.RigidInertia(1.0, (0.0, 0.0, 0.0), np.eye(3) * 0.01)
    for k in range(boxes):
        builder.add_body(f"box{k}", parent="world", joint=da.Free(), inertia=inertia)
        builder.add_shape(f"box{k}", da.shapes.Box((0.2, 0.2, 0.2)))
    plan = StepPlan.of(
        builder.build().with_ground(), da.contact.Rigid(), None, None, None, integrator=DEFAULT_INTEGRATOR
    )
    assert (plan.scene.point_count > FEW_POINTS) is divergent
    kernel = rollout_kernel(plan, (), ())._kernels.kernel("lanes")
    widest = default_lanes("float64")
    assert kernel.info.lanes == (min(widest, DIVERGENT_VECTOR_BYTES // 8) if divergent else widest)
