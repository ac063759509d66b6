"""The last resort of the readers: what Python and NumPy raise about the content of a file is our error."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import numpy as np

from dalembert.errors import DalembertError, FileError

__all__ = ["reported_as_file_errors"]

FAILURES: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    np.linalg.LinAlgError,
)
"""What hostile content can make a reader raise where no check of ours refused it first. `OSError` and
`KeyboardInterrupt` are not among them: they are not about the content.
"""


@contextlib.contextmanager
def reported_as_file_errors(name: str) -> Iterator[None]:
    """Turn failures of a reader into a `FileError` that names the file and keeps the failure as its cause.

    A reader refuses bad content by its own checks, with the place and the remedy. What gets past them ends
    here, so that callers need to catch errors of the library only.
    """
    try:
        yield
    except DalembertError:
        raise
    except FAILURES as error:
        raise FileError(
            f"{name} cannot be read: its content leads to {type(error).__name__}: {str(error)[:200]}; "
            "please report the file as a defect of dalembert"
        ) from error
