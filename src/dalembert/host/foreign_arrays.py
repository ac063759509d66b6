"""Arrays of other libraries among the arguments of a call: which bridge computes with them.

No library is imported to find out: a type says by its module where it comes from. Arrays on a GPU of any
other library are known by their `__cuda_array_interface__`, or by the device that DLPack names.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from dalembert.errors import DtypeError

BRIDGES: Final = {"torch": "dalembert.interop.torch", "jax": "dalembert.interop.jax"}
"""The module that serves the arrays of a library, by the library's name."""

ON_GPU: Final = "dalembert.compiler.gpu_calls"
"""The module that serves all other arrays on a GPU."""

ROLLOUT_BRIDGES: Final = {"jax": "dalembert.interop.xla_calls"}
"""The module that runs rollouts of the arrays of a library on a GPU, where it is not `ON_GPU`."""

LIBRARIES: Final = {
    "torch": ("PyTorch tensor", "torch.from_dlpack", "torch.as_tensor"),
    "jax": ("JAX array", "jax.numpy.asarray", "jax.numpy.asarray"),
    "cupy": ("CuPy array", "cupy.asarray", "cupy.asarray"),
}
"""What an array of a library is called, and what makes one of an array of another of these libraries, and of
any other array on a GPU, in its memory. PyTorch's `as_tensor` refuses what may not be written: JAX's."""

DLPACK_CUDA: Final = 2

FLOATS: Final = ("float64", "float32")

PLAIN: Final = (np.ndarray, float, int, list, tuple, str, type(None))
"""Types that are not of such a library: the quick answer for most values."""


class Bridge(Protocol):
    """The functions of a module for the arrays of a library."""

    def call(self, function: Any, values: list[object], out: object, check: str | None) -> Any:
        """Return the results of a `CompiledFunction`, as arrays of the library with their derivatives."""

    def alike(self, array: np.ndarray[Any, Any], beside: Any) -> Any:
        """Return a constant as an array of the library, of the float type of the array beside it."""


class RolloutBridge(Protocol):
    """The functions of a module for rollouts of the arrays of a library."""

    def launch_rollout(self, kernels: Any, rollout: Any, values: Mapping[str, object], **options: Any) -> Any:
        """Run all steps in one launch."""

    def arithmetic(self, values: Sequence[object]) -> Any:
        """Return the object that computes with such arrays."""


def is_foreign(value: object) -> bool:
    """Return whether a value is an array of one of these libraries."""
    return library_of(value) is not None


def is_on_gpu(value: object) -> bool:
    """Return whether a value is an array on a GPU; a traced JAX array counts, since it may be anywhere."""
    library = library_of(value)
    if library == "torch":
        return is_cuda(value)
    if library == "jax":
        return bool(importlib.import_module(BRIDGES[library]).may_be_on_gpu(value))
    return library is not None


def is_cuda(tensor: object) -> bool:
    """Return whether a PyTorch tensor is on a GPU."""
    return bool(getattr(tensor, "is_cuda", False))


def library_of(value: object) -> str | None:
    """Return the library that owns the array `value`, "" for another array on a GPU, else None."""
    if isinstance(value, PLAIN):
        return None
    for kind in type(value).__mro__:
        name = kind.__module__.partition(".")[0].removesuffix("lib")
        if name in LIBRARIES:
            return name
    if hasattr(value, "__cuda_array_interface__"):
        return ""
    place = getattr(value, "__dlpack_device__", None)
    return "" if place is not None and place()[0] == DLPACK_CUDA else None


def require_library(name: str, value: object, library: str) -> None:
    """Refuse an array of another library than the first one's: memory is ordered on one's stream alone."""
    own = library_of(value)
    if own in (None, library):
        return
    home = type(value).__module__.partition(".")[0]
    what = f"a {LIBRARIES[own][0]}" if own else f"an array of {home}"
    if library:
        beside, of_these, of_others = LIBRARIES[library]
        remedy = f"{of_these if own else of_others}({name})"
    else:
        beside, remedy = "GPU array", "all as arrays of one"
    raise DtypeError(
        f"{name} is {what} beside {beside}s; the arguments of a call are arrays of one library: pass {remedy}"
    )


def require_numpy(name: str, value: object) -> None:
    """Refuse a foreign array where NumPy computes, through which no gradient would pass."""
    library = library_of(value)
    if library is not None:
        kind = LIBRARIES[library][0] if library in BRIDGES else "GPU array"
        raise DtypeError(
            f"{name} is a {kind}, but this function computes in NumPy, which knows no gradients; "
            "pass a NumPy array"
        )


def to_host(name: str, value: Any, where: str) -> Any:
    """Return an array of a library as a float64 NumPy array, of the same memory if that is its type; refuse
    arrays on a GPU and those that gradients are wanted of. Other values pass; `where` has its state on the
    host."""
    library = library_of(value)
    if library is None:
        return value
    if is_on_gpu(value):
        raise DtypeError(
            f"{name} is on a GPU, but {where} has its state on the host; copy it there, or call da.rollout, "
            "which takes arrays on a GPU"
        )
    if getattr(value, "requires_grad", False):
        raise DtypeError(
            f"{name} requires gradients, which do not pass through {where}; give {name}.detach()"
        )
    return np.asarray(value, np.float64)


def bridge_of(values: Iterable[object]) -> Bridge | None:
    """Return the bridge for the first foreign array, or None."""
    library = _first_library(values)
    return None if library is None else importlib.import_module(BRIDGES.get(library, ON_GPU))


def rollout_bridge_of(values: Iterable[object]) -> RolloutBridge:
    """Return the bridge for rollouts of the first array of a library that is not NumPy."""
    return importlib.import_module(ROLLOUT_BRIDGES.get(_first_library(values) or "", ON_GPU))


def _first_library(values: Iterable[object]) -> str | None:
    libraries = (library_of(value) for value in values)
    return next((name for name in libraries if name is not None), None)


def float_type(value: object) -> str | None:
    """Return the float type of a foreign array, or None if kernels are not compiled for it."""
    given = getattr(value, "dtype", None)
    if given is None and hasattr(value, "__cuda_array_interface__"):
        given = np.dtype(value.__cuda_array_interface__["typestr"])
    name = str(given).removeprefix("torch.")
    return name if name in FLOATS and is_foreign(value) else None
