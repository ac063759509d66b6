"""The host of the library: the process, its files, captured values, arrays of other libraries."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def names_of_modules(package: str, modules: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of names that modules of a package define, listed in one string a module."""
    return {
        name: getattr(importlib.import_module(f"{package}.{module}"), name)
        for module, names in modules.items()
        for name in names.split()
    }


def warn_renamed(function: str, old: str, new: str, frames: int = 3) -> None:
    """Warn the caller of a public function, `frames` up the stack, that an option has a new name."""
    told = f"{function}: {old} is now called {new}; the old name works until the next release"
    warnings.warn(told, DeprecationWarning, stacklevel=frames)


def moved_names(package: str, moved: Mapping[str, Sequence[str] | Mapping[str, str]]) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that looks the names up in their new modules, with a warning.

    `package`: the module that held the names. `moved`: by their new module, as users reach it, the names, or
    the new names by the old ones.
    """
    homes = {
        name: (module, names[name] if isinstance(names, Mapping) else name)
        for module, names in moved.items()
        for name in names
    }

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, new_name = homes[name]
        warnings.warn(
            f"{package}.{name} has moved to {module}.{new_name}; the old name works until the next release",
            DeprecationWarning,
            stacklevel=3,  # the caller of the module's own __getattr__
        )
        return pkgutil.resolve_name(f"{module}.{new_name}")

    return find
