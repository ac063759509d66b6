"""Settings of every test: a private compile cache, and random examples that repeat."""

import os
import shutil
import tempfile

import pytest
from hypothesis import settings

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
