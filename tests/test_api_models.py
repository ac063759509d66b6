"""Models in use: pickled, copied, shared by threads, inherited by forks, frozen."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import sys
import threading
from typing import Any

import numpy as np
import pytest
from tests.conformance.backends import draw_states
from tests.conformance.models import branched

import dalembert as da
from dalembert.codegen.cpu import threads
from dalembert.errors import ArgumentError


def fresh(seed: int) -> tuple[da.Model, list[np.ndarray]]:
    """A model that no other test has compiled for, and rows of q, v, tau."""
    model = da.models.random_tree(seed, bodies=3, joints=("revolute", "spherical", "prismatic"))
    states = draw_states(model, 9)
    return model, [states["q"], states["v"], states["tau"]]


def test_used_model_can_be_pickled_and_copied():
    """What was compiled stays behind; the copy equals the original and computes the same bits."""
    model, given = fresh(100)
    expected = da.forward_dynamics(model, *given)
    assert model.functions
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert other == model
        assert hash(other) == hash(model)
        np.testing.assert_array_equal(da.forward_dynamics(other, *given), expected)
    assert not pickle.loads(pickle.dumps(model)).functions


def test_saved_model_computes_the_same_bits():
    model, given = fresh(101)
    loaded = da.Model.from_json(model.to_json())
    np.testing.assert_array_equal(da.forward_dynamics(loaded, *given), da.forward_dynamics(model, *given))


def test_first_calls_from_many_threads():
    """Eight threads meet at the first call of one model, with single samples and with batches."""
    model, given = fresh(102)
    gate = threading.Barrier(8)
    results: list[Any] = [None] * 8

    def work(k: int) -> None:
        gate.wait()
        if k % 2:
            results[k] = da.forward_dynamics(model, *given)
        else:
            results[k] = np.array([da.forward_dynamics(model, *row) for row in zip(*given)])

    workers = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for result in results:
        np.testing.assert_array_equal(result, results[0])
    assert np.all(np.isfinite(results[0]))


def _in_child(model: da.Model, given: list[np.ndarray], pipe: Any) -> None:
    """Known code, new code, and threads of its own."""
    da.set_num_threads(2)
    threads.WORTH_A_THREAD = 1  # type: ignore[misc]
    pipe.send((da.forward_dynamics(model, *given), da.mass_matrix(model, given[0])))
    pipe.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_after_use(monkeypatch: pytest.MonkeyPatch):
    """A child inherits the compiled code, compiles more, and makes its own threads."""
    model, given = fresh(103)
    before = da.get_num_threads()
    da.set_num_threads(2)
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    try:
        expected = da.forward_dynamics(model, *given)
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=_in_child, args=(model, given, there))
        child.start()
        assert here.poll(60.0)
        accelerations, M = here.recv()
        child.join(60.0)
        assert child.exitcode == 0
    finally:
        da.set_num_threads(before)
    np.testing.assert_array_equal(accelerations, expected)
    np.testing.assert_array_equal(M, da.mass_matrix(model, given[0]))


def test_number_of_threads_is_bounded_and_checked():
    before = da.get_num_threads()
    try:
        da.set_num_threads(3)
        assert da.get_num_threads() == 3
        for wrong in (0, -1, 1.5, "2", True, None):
            with pytest.raises(ArgumentError, match=r"set_num_threads.*whole number of at least 1"):
                da.set_num_threads(wrong)  # type: ignore[arg-type]
        assert da.get_num_threads() == 3
    finally:
        da.set_num_threads(before)


def test_number_of_threads_from_the_environment():
    import subprocess

    command = [sys.executable, "-c", "import dalembert as da; print(da.get_num_threads())"]
    environment = {**os.environ, "DALEMBERT_NUM_THREADS": "5"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "5"
    environment["DALEMBERT_NUM_THREADS"] = "many"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert "DALEMBERT_NUM_THREADS='many': expected a whole number" in done.stderr


def test_models_are_frozen():
    """Neither the model nor what it hands out can be written to."""
    model = branched()
    with pytest.raises(da.errors.DalembertError, match="a model is frozen"):
        model.gravity = da.spatial.Vec3(0.0, 0.0, 0.0)  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        model.value("gravity")[0] = 1.0
    with pytest.raises(AttributeError):
        model.bodies[0].name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        model.parents[0] = 1  # type: ignore[index]
