"""The inputs of a simulated system: arrays for all steps, or step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import ArrayArgument, as_array
from dalembert.compiler.recording import RecordedFunction, record_function
from dalembert.errors import DtypeError, ShapeError, TracingError
from dalembert.model.model import Model
from dalembert.scalar import Scalar

__all__ = ["Asked", "Callback", "Policy", "Series", "forces_of", "recorded_policy", "series"]

Array: TypeAlias = npt.NDArray[Any]
Callback: TypeAlias = Callable[[Array, Array, Array], npt.ArrayLike]
"""tau `(…, nv)` from the time `(…,)` and the state of all samples."""
Policy: TypeAlias = Callable[[Model, Scalar, Sequence[Scalar], Sequence[Scalar]], Sequence[Scalar]]
"""tau `(nv,)` of (model, t, q, v), on generic scalars."""


class Series(NamedTuple):
    """Values of all steps `(…, steps, *own)`, or `(…, *own)` where they are held."""

    values: Array
    stepwise: bool

    def at_frames(self, batch: tuple[int, ...], frames: int, every: int) -> Array:
        """Return the values in the last step before each frame but the first, `(…, T, n)`."""
        last = self.values[..., every - 1 :: every, :] if self.stepwise else self.values[..., np.newaxis, :]
        last = last[..., :frames, :].copy()  # the caller may go on using the array
        return np.broadcast_to(last, (*batch, frames, last.shape[-1]))


def series(name: str, given: npt.ArrayLike, own: tuple[int, ...], steps: int) -> Series:
    """Return a series from values `own` (held), `(…, 1, *own)` (held, sample by sample) or `(…, steps,
    *own)`.
    """
    values = as_array(name, given, own)
    axis = values.ndim - len(own) - 1
    if axis < 0:
        return Series(values, False)
    if values.shape[axis] == 1:
        return Series(np.squeeze(values, axis), False)
    if values.shape[axis] == steps:
        return Series(values, True)
    wanted = ", ".join(map(str, own))
    raise ShapeError(
        f"{name} has the shape {values.shape}; expected (…, {steps}, {wanted}), a value for each of the "
        f"{steps} steps, or ({wanted},), or (…, 1, {wanted}), held throughout"
    )


@final
class Asked:
    """Joint forces that a Python function gives step by step, written where the kernel reads them."""

    def __init__(self, callback: Callback, values: Array, start: float, dt: Array) -> None:
        """`values (…, steps, nv)`: what the kernel reads."""
        self._callback = callback
        self._start, self._dt = start, dt
        self.values = values

    def before(self, step: int, q: Array, v: Array) -> None:
        """Ask for the forces of a step."""
        found = self._callback(self._start + step * self._dt, q.copy(), v.copy())
        tau = np.asarray(found)
        if tau.dtype.kind not in "biuf":
            what = "None" if found is None else f"an array of type {tau.dtype}"
            raise DtypeError(f"the callback returned {what}; expected the joint forces, real numbers")
        expected = self.values[..., step, :].shape
        try:
            self.values[..., step, :] = tau
        except ValueError:
            raise ShapeError(
                f"the callback returned an array of the shape {tau.shape}; expected {expected}"
            ) from None


def recorded_policy(
    policy: Policy, model: Model, parameters: Sequence[ArrayArgument] = ()
) -> RecordedFunction:
    """Return what a policy computes now, as a policy."""

    def call(model: Model, time: Scalar, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        return forces_of(policy, model, time, q, v)

    arguments = [ArrayArgument("time", ()), ArrayArgument("q", (model.nq,)), ArrayArgument("v", (model.nv,))]
    return record_function("policy", policy, model, arguments, parameters, call)


def forces_of(
    policy: Policy, model: Model, time: Scalar, q: Sequence[Scalar], v: Sequence[Scalar]
) -> list[Scalar]:
    """Return tau `(nv,)` of a policy, or refuse another shape."""
    found: Any = policy(model, time, q, v)
    try:
        tau = list(found)
    except (TypeError, TracingError):
        what = "None" if found is None else "one number"
        raise DtypeError(f"the policy returned {what}; expected a list of {model.nv} joint forces") from None
    if len(tau) != model.nv:
        raise ShapeError(f"the policy returned {len(tau)} joint forces; this model has {model.nv}")
    for force in tau:
        if isinstance(force, str | complex | list | tuple | dict | None):
            raise DtypeError(f"the policy returned {force!r} among the joint forces; expected numbers")
    return tau
