"""The public functions that follow from the declarations of algorithms, made when they are asked for.

`make api` writes the type stub of this module from the same declarations.
"""

from __future__ import annotations

from typing import Any

from dalembert.api.calls import make_public
from dalembert.compiler.library import FUNCTIONS


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in FUNCTIONS or not FUNCTIONS[name].subject:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = make_public(FUNCTIONS[name], __name__)
    globals()[name] = function
    return function
