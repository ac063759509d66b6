"""Settings of every test: a private compile cache, random examples that repeat, kernels dropped after use."""

import ctypes
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from dalembert.call import arguments
from dalembert.model import Model

settings.register_profile("gate", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("gate")


def pytest_configure(config: pytest.Config) -> None:
    """Compile into a new folder, so that no code from an earlier run can hide a fault; xdist's workers share
    it.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    folder = tempfile.mkdtemp(prefix="dalembert-tests-")
    os.environ["DALEMBERT_CACHE_DIR"] = folder
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


MODELS_OF_MODULES: list[Model] = []
"""The models that test modules made while they were imported; they live until the process ends."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exempt what now exists from garbage collection: 800,000 objects of test modules and of the libraries
    that they import, which all stay and would be searched again and again.
    """
    gc.collect()
    MODELS_OF_MODULES.extend(item for item in gc.get_objects() if issubclass(type(item), Model))
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def drop_kernels() -> Iterator[None]:
    """Drop what was compiled for models once the tests of a module are done."""
    yield
    drop_compiled_functions()


MAX_GROWTH = 150.0
"""[MB] Growth since compiled functions were dropped, after which they are in the middle of a module, too: 400
tests of gradients by PyTorch and JAX took 550 MB until the end of theirs."""
LIMIT = [0.0]
"""[MB] The memory of the process at which they are dropped."""


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Drop compiled functions where the process has grown much since they were dropped last."""
    if resident_megabytes() > LIMIT[0]:
        drop_compiled_functions()


def resident_megabytes() -> float:
    """Return the memory that the process has, or 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return 0.0


def drop_compiled_functions() -> None:
    """Drop what was compiled for models.

    Compiled functions, their programs and kernels stay with their model, and test modules keep models in
    constants and caches until the process ends. A later test that uses such a model loads the kernels from
    the disk cache again. JAX too keeps every function that it has compiled, and the library 128 MB of memory
    for results.
    """
    made = (item for item in gc.get_objects() if issubclass(type(item), Model))
    for model in (*MODELS_OF_MODULES, *made):
        model.functions.clear()
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    gc.collect()
    arguments._KEPT.clear()
    return_free_memory()
    LIMIT[0] = resident_megabytes() + MAX_GROWTH


def return_free_memory() -> None:
    """Let the C library give free memory back to the system; glibc keeps what lies between used blocks."""
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)
