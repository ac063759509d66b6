"""The public functions that follow from the declarations of algorithms, made when they are asked for.

`make api` writes the type stub of this module from the same declarations.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from dalembert.algorithms.declaration import DECLARED
from dalembert.api.calls import make_public
from dalembert.compiler.library import FUNCTIONS


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in FUNCTIONS or not FUNCTIONS[name].subject:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = make_public(FUNCTIONS[name], __name__)
    globals()[name] = function
    return function


def publish(subject: str, *algorithms: str) -> list[str]:
    """Put the public functions of a subject into its module of this package, and return their names.

    `algorithms`: the modules that declare them. Functions that are public at the top, as `da.jacobian`, are
    put there as well, but not returned: each public name has one path.
    """
    import dalembert

    for name in algorithms:
        importlib.import_module(f"dalembert.algorithms.{name}")
    names = sorted(name for name, declared in DECLARED.items() if declared.subject == subject)
    for name in names:
        setattr(sys.modules[f"{__package__}.{subject}"], name, getattr(sys.modules[__name__], name))
    return [name for name in names if name not in dalembert.__all__]
