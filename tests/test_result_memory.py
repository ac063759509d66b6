"""Large results use memory again, and never while somebody looks at it."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest

from dalembert.call import arguments as result_memory

SHAPE = (3, result_memory.MIN_REUSED_BYTES // 16)


def test_memory_returns_only_when_every_view_is_gone() -> None:
    first = result_memory.empty(SHAPE, "float64")
    place = first.ctypes.data
    first[:] = 1.0
    view = first[1:].reshape(-1)[5:].view(np.int64)
    del first
    gc.collect()
    second = result_memory.empty(SHAPE, "float64")
    second[:] = 2.0
    assert second.ctypes.data != place
    assert np.all(view.view(np.float64) == 1.0)
    del view
    gc.collect()
    assert result_memory.empty(SHAPE, "float64").ctypes.data == place


def test_results_are_ordinary_arrays() -> None:
    array = result_memory.empty(SHAPE, "float32")
    array[:] = 3.0
    assert type(array) is np.ndarray
    assert array.flags.writeable
    assert array.flags.c_contiguous
    assert array.flags.aligned
    assert np.array_equal(copy.deepcopy(array), array)
    assert np.array_equal(pickle.loads(pickle.dumps(array)), array)


def test_what_is_kept_is_bounded() -> None:
    size = result_memory.KEPT_BYTES // 8 // 3
    held = [result_memory.empty((size,), "float64") for _ in range(5)]
    held.clear()
    gc.collect()
    assert sum(item.size for item in result_memory._KEPT.values()) <= result_memory.KEPT_BYTES


def test_small_and_empty_results_come_from_numpy() -> None:
    assert result_memory.empty((0, 4), "float64").shape == (0, 4)
    assert result_memory.empty((4,), "float64").base is None


def test_large_results_begin_with_a_cache_line() -> None:
    held = [result_memory.empty((k, result_memory.MIN_REUSED_BYTES // 8 + 1), "float64") for k in range(1, 5)]
    assert all(array.ctypes.data % result_memory.CACHE_LINE == 0 for array in held)


def test_memory_comes_back_when_the_names_of_the_module_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the end of a process."""
    array = result_memory.empty(SHAPE, "float64")
    release, lent = type(array.base).__del__, array.base
    kept = result_memory._KEPT
    before = len(kept)
    for name in [name for name in vars(result_memory) if not name.startswith("__")]:
        monkeypatch.setattr(result_memory, name, None)
    release(lent)
    assert len(kept) == before + 1
    release(lent)
    assert len(kept) == before + 1, "memory returns once"
    kept.popitem()
