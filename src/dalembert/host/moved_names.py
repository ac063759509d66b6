"""Names that have moved to another package and can still be imported from the old one for one release."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def moved_names(package: str, moved: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that looks the names up in their new modules, with a warning.

    `package`: the module that held the names. `moved`: the names by their new module.
    """
    homes = {name: module for module, names in moved.items() for name in names}

    def find(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        warnings.warn(
            f"{package}.{name} has moved to {home}.{name}; the old name works until the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(home), name)

    return find
