"""Bridges to other engines and array libraries. Importing this package loads none of them.

`da.interop.torch` and `da.interop.jax` serve the arrays of PyTorch and JAX (extras `torch` and `jax`); they
are loaded when first asked for, or when such an array is first given to a function.
"""

import importlib
from typing import Any

from dalembert.interop.pinocchio_bridge import PinocchioBridge, from_pinocchio

__all__ = ["PinocchioBridge", "from_pinocchio"]

_LATER = ("jax", "torch")


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'dalembert.interop' has no attribute {name!r}")
    return importlib.import_module(f"dalembert.interop.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
