"""Models that other packages install are read from their files, when a task is made."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from dalembert.call.arguments import Array
from dalembert.errors import MissingExtraError
from dalembert.formats.mjcf import read_mjcf
from dalembert.model.model import Model

DISTRIBUTIONS = {"gymnasium": "'dalembert[rl]'", "dm_control": "dm-control"}
"""What pip installs for a package."""


def installed_model(package: str, path: str) -> Callable[[], tuple[Model, Array]]:
    """Return a function that returns the model of an MJCF file in a package, and where the file places it."""

    def load() -> tuple[Model, Array]:
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            raise MissingExtraError(
                f"{path} is a file of {package}, which is not installed: pip install {DISTRIBUTIONS[package]}"
            )
        file = read_mjcf(Path(found.origin).parent / path)
        return file.model, file.start.q

    return load
