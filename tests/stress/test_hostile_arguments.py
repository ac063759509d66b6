"""Arguments of every wrong kind to every public function: a result, or an error of the library's own."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.stress.amounts import WHOLE, amount
from tests.stress.hostile_values import CALLABLE, BaseCall, base_calls, hopper, hostile_values, stop

import dalembert as da
from dalembert.errors import DalembertError

SEED = 15


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[BaseCall]:
    return list(base_calls(tmp_path_factory.mktemp("files")))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def tried(call: BaseCall, parameter: str, value: Any) -> str | None:
    """What is wrong with the way in which a function took a value; None where all is well."""
    try:
        found = call.function(**{**call.arguments, parameter: value})
    except DalembertError:
        return None
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        if isinstance(error, TypeError) and len(frames) == 1:
            return None  # of the call itself, by Python
        return f"{type(error).__name__} at {frames[-1].filename}:{frames[-1].lineno}: {error}"
    if isinstance(found, da.viewer.Viewer):
        found.close()
    return None


def test_valid_calls_of_every_function_work(calls: list[BaseCall]) -> None:
    """The calls that are spoilt below are right: they give results, but for files that are not there."""
    assert len(calls) > 120
    wrong = []
    for call in calls if WHOLE else calls[:: amount(7, 1)]:
        try:
            found = call.function(**call.arguments)
        except da.errors.FileError:
            continue
        except Exception as error:
            wrong.append(f"{call.name}: {type(error).__name__}: {error}")
            continue
        if isinstance(found, da.viewer.Viewer):
            found.close()
    assert not wrong, "\n".join(wrong)


@pytest.mark.timeout(3000)
def test_no_argument_of_any_kind_raises_a_foreign_error(calls: list[BaseCall]) -> None:
    values, rng = hostile_values(), np.random.default_rng(SEED)
    pairs = [
        (call, name, kind)
        for call in calls
        for name in call.names
        for kind in values
        if not (name in CALLABLE and kind in ("function", "class"))
    ]
    if not WHOLE:
        pairs = [pairs[k] for k in rng.choice(len(pairs), size=amount(600, 0), replace=False)]
    wrong = []
    for call, name, kind in pairs:
        problem = tried(call, name, values[kind]())
        if problem is not None:
            wrong.append(f"{call.name}({name} = {kind}): {problem}")
    assert not wrong, f"{len(wrong)} of {len(pairs)}:\n" + "\n".join(wrong[:50])


INTEGERS = {
    "rollout steps": lambda n: da.rollout(hopper(), hopper().neutral(), np.zeros(4), steps=n),
    "rollout every": lambda n: da.rollout(hopper(), hopper().neutral(), np.zeros(4), steps=4, every=n),
    "geodesic": lambda n: da.geometry.geodesic(hopper(), hopper().neutral(), np.zeros(4), 0.01, n),
    "gu": da.models.gu,
    "ladder": da.models.ladder,
    "random_tree": lambda n: da.models.random_tree(1, bodies=n),
    "random_state": lambda n: hopper().random_state(n),
    "threads": da.set_num_threads,
    "contact_sheet": lambda n: da.viewer.contact_sheet(hopper(), Path("unused.png"), frames=n),
    "binary_tree": da.analysis.binary_tree,
    "inverse_kinematics": lambda n: da.kinematics.inverse_kinematics(
        hopper(), {"shank": np.ones(3)}, hopper().neutral(), max_iterations=n
    ),
    "Rigid": lambda n: da.contact.Rigid(iterations=n),
    "close_loops": lambda n: da.constraints.close_loops(hopper(), hopper().neutral(), max_iterations=n),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_numbers_that_count_nothing_are_refused(name: str) -> None:
    """Negative, broken, boolean, textual and outsized numbers, each with the library's own error."""
    before = da.get_num_threads()
    for number in (-1, -(2**63), 1.5, float("nan"), float("inf"), "3", b"3", None, [3], True, 2.0, 1j):
        with pytest.raises(DalembertError):
            INTEGERS[name](number)
    assert da.get_num_threads() == before


@pytest.mark.parametrize("steps", [2**31, 2**40, 2**53 + 1, 2**63, 2**64, 10**30])
def test_rollouts_too_long_for_memory_are_refused_before_it_is_asked_for(steps: int) -> None:
    """With the bytes that they would take, or the bound of the number."""
    model = da.models.humanoid()
    with pytest.raises(da.errors.ArgumentError, match=r"would take [\d.e+]+ .B.*every=100|from 1 to 900719"):
        da.rollout(model, model.neutral(), np.zeros(model.nv), steps=steps)


def test_events_over_more_steps_than_memory_holds_are_refused() -> None:
    """They were computed until the end of time, or of memory."""
    for duration in (2**31, 1e300):
        with pytest.raises(da.errors.ArgumentError, match=r"would take .*; give a shorter duration"):
            da.textbook.simulate_events(stop().model, [0.0], [0.0], stop(), duration=duration, step=0.01)


@pytest.mark.parametrize("value", ["no", 1, None, [True]])
def test_flags_of_files_are_true_or_false_alone(value: Any, tmp_path: Path) -> None:
    """A file is not trusted by a text that happens to be true."""
    path = tmp_path / "hopper.json"
    with pytest.raises(da.errors.ArgumentError, match=r"accept_losses is .*; give True or False"):
        da.save(hopper(), path, accept_losses=value)
    da.save(hopper(), path)
    with pytest.raises(da.errors.ArgumentError, match=r"trusted is .*; give True or False"):
        da.load(path, trusted=value)


def test_batches_too_large_for_memory_are_refused_in_words() -> None:
    model = da.models.pendulum()
    many = np.broadcast_to(np.zeros(1), (10**13, 1))
    with pytest.raises(da.errors.ArgumentError, match="would take 80 TB"):
        da.gravity_forces(model, many)
    with pytest.raises(da.errors.ArgumentError, match="would take"):
        da.rollout(model, many, np.zeros(1), steps=1)
