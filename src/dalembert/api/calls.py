"""Calls of compiled library functions, and the types of arguments and results of the public functions."""

from __future__ import annotations

import math
from typing import Any, Final, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import as_array
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.library import UNROLLED_BODIES, function, no_model
from dalembert.errors import ArgumentError, require_choice
from dalembert.host.foreign_arrays import is_foreign
from dalembert.model.model import Model

__all__ = [
    "BODY",
    "Array",
    "ArrayLike",
    "Check",
    "ForceFrame",
    "checked_stabilization",
    "checked_time_step",
    "force_options",
    "is_large",
    "known_frame",
    "plain",
    "result",
    "results",
]

Array: TypeAlias = npt.NDArray[Any]
ArrayLike: TypeAlias = npt.ArrayLike
Check: TypeAlias = Literal["raise", "flag", "off"] | None
"""None: "raise" on the CPU; "off" on a GPU, where a check would have to wait for the device."""
ForceFrame: TypeAlias = Literal["body", "world"]
FORCE_FRAMES: Final = ("body", "world")
BODY: Final = "body"
"""The default of `external_frame`, compared by identity, since an array has no truth value."""


def plain(model: Model, name: str) -> CompiledFunction:
    """Return the compiled library function without options: the fast path of most calls."""
    try:
        return model.functions[name]  # type: ignore[no-any-return]
    except (KeyError, AttributeError):
        return function(model, name)


def is_large(model: Model, name: str) -> bool:
    """Return whether nv exceeds the limit up to which matrices are compiled as straight-line code."""
    try:
        return model.nv > UNROLLED_BODIES
    except AttributeError:
        raise no_model(name, model) from None


def known_frame(model: Model, name: str) -> str:
    """Return the name of a frame or body of the model; an unknown name is an error."""
    try:
        return model.frame(name).name
    except AttributeError:
        raise no_model("a function of a frame", model) from None


def checked_stabilization(T_stab: ArrayLike | None) -> ArrayLike | None:
    """Return the stabilisation time after checking that it is positive and finite; None passes."""
    if T_stab is None or is_foreign(T_stab):
        return T_stab
    if not (isinstance(T_stab, float) and 0.0 < T_stab < math.inf):
        times = as_array("stabilization", T_stab, (), follow=True)
        if not np.all(np.isfinite(times) & (times > 0.0)):
            raise ArgumentError(
                f"stabilization must be a positive time [s], got {T_stab}; None leaves it out"
            )
    return T_stab


def checked_time_step(dt: Any) -> Array:
    """Return the time step, or one for each sample, after checking that it is positive and finite; device
    arrays are not checked.
    """
    if is_foreign(dt):
        return dt  # type: ignore[no-any-return]
    if isinstance(dt, float) and 0.0 < dt < math.inf:
        return np.array(dt)
    span = as_array("dt", dt, (), follow=True)
    if not np.all(np.isfinite(span) & (span > 0.0)):
        raise ArgumentError(f"dt must be positive and finite, got {span}")
    return span


def force_options(external_forces: ArrayLike | None, frame: str) -> dict[str, Any]:
    """Return the options for external forces; a wrong frame name is an error even without forces."""
    require_choice("external_frame", frame, FORCE_FRAMES)
    return {} if external_forces is None else {"external_frame": frame}


def result(
    model: Model,
    name: str,
    values: tuple[Any, ...],
    arrays: dict[str, Any],
    method: str | None,
    options: dict[str, Any],
    out: Array | None,
    check: Check,
) -> Array:
    """Return the single result of a library function, called with the optional arrays that are not None."""
    return cast("Array", results(model, name, values, arrays, method, options, out, check))


def results(
    model: Model,
    name: str,
    values: tuple[Any, ...],
    arrays: dict[str, Any],
    method: str | None,
    options: dict[str, Any],
    out: Array | tuple[Array, ...] | None,
    check: Check,
) -> Any:
    """Return the results of a library function: a tuple, or one array if it has a single result."""
    given = {key: value for key, value in arrays.items() if value is not None}
    compiled = function(model, name, method, arrays=tuple(given), options=tuple(options.items()))
    if out is None and check is None:
        # Arrays alone, by place, go straight to machine code.
        return compiled(*values, *given.values())
    return compiled(*values, *given.values(), out=out, check=check)
