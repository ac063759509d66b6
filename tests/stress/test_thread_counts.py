"""The number of threads may change at any time, from any thread."""

import threading
import time

import numpy as np
import pytest
from tests.stress.amounts import amount

import dalembert as da
from dalembert.codegen.cpu import threads

CALLERS = 5
SECONDS = amount(4, 300)


@pytest.mark.timeout(SECONDS + 300)
def test_calls_are_right_while_the_number_of_threads_changes(monkeypatch):
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1000)
    f = da.compile(da.forward_dynamics, da.models.arm6())
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(24000, 6)) for _ in range(3)]
    before = da.get_num_threads()
    da.set_num_threads(1)
    expected = f(*arrays)
    end = time.monotonic() + SECONDS
    faults, calls = [], []

    def call() -> None:
        while time.monotonic() < end:
            try:
                if not np.array_equal(f(*arrays), expected):
                    faults.append("a wrong row")
                calls.append(None)
            except BaseException as error:
                faults.append(repr(error))

    callers = [threading.Thread(target=call, daemon=True) for _ in range(CALLERS)]
    try:
        for caller in callers:
            caller.start()
        count = 0
        while time.monotonic() < end:
            count += 1
            da.set_num_threads(1 + count % 8)
            time.sleep(0.01)
        for caller in callers:
            caller.join(timeout=60.0)
            assert not caller.is_alive(), "a call hangs"
    finally:
        da.set_num_threads(before)
    assert not faults, f"{len(faults)} faults in {len(calls)} calls, such as {faults[0]}"
    assert len(calls) > 5 * SECONDS
    print(f"{len(calls)} calls, {count} changes")
