"""A browser for the tests of pages, started once."""

from collections.abc import Iterator

import pytest
from tests.viewer.browser import Browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    one = Browser(tmp_path_factory.mktemp("profile"))
    yield one
    one.close()
