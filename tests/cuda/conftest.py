"""A GPU that is none, for tests of everything but the GPU itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cuda.fake_libcuda import FakeCuda

from dalembert.cuda import device, driver, modules


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeCuda]:
    """The fake driver in place of the real one, with a disk cache of its own."""
    fake = FakeCuda()
    monkeypatch.setenv("DALEMBERT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(driver, "load_library", lambda: fake)
    monkeypatch.setattr(modules, "ptx_of", fake.ptx)
    driver.driver.cache_clear()
    device.device.cache_clear()
    yield fake
    driver.driver.cache_clear()
    device.device.cache_clear()
