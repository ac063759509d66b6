"""SymPy, imported with the first formula: `import dalembert` must not load it."""

from __future__ import annotations

from typing import Any

from dalembert.errors import MissingExtraError

__all__ = ["sympy"]


def sympy() -> Any:
    """Return the module `sympy`; raise an error that names the extra if it is not installed."""
    try:
        import sympy as module
    except ImportError as error:
        raise MissingExtraError(
            "da.symbolic writes equations with SymPy, which is not installed; "
            "pip install 'dalembert[symbolic]' or pip install sympy"
        ) from error
    return module
