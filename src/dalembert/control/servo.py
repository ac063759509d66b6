"""PD control of the actuated joints inside a rollout."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.api.calls import Array
from dalembert.call.arguments import as_array
from dalembert.control.laws import per_direction, positive_gain
from dalembert.errors import ArgumentError, ModelError
from dalembert.model.joints import Free
from dalembert.model.model import Model
from dalembert.scalar import Scalar

Reference: TypeAlias = Callable[[Model, Scalar], Sequence[Scalar]]
"""A target as a function of (model, t), on generic scalars."""

UNBOUNDED_EFFORT: Final = 1e30
"""Finite effort [N m, N] that replaces an infinite limit, so that products with zero stay finite."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Servo:
    """PD control of the actuated joints, for the `controls` of `da.rollout`:

        tau = kp (q_ref - q') + kd (v_ref - v'),        |tau| <= effort

    with q', v' at the end of the step, so that it is stable for all gains. q_ref - q' is the displacement of
    `da.difference`, for a ball joint the rotation vector. With rigid contact tau is solved together with the
    contact forces; without, it is that of `stable_pd`, constant during the step of the integrator.

    `kp` [N m/rad, N/m] and `kd` [N m s/rad, N s/m]: one number for all joints that have motors, or one for
    each velocity variable `(…, nv)`; joints with neither move freely. `q_ref`: None holds the initial
    configuration; `(nq,)` or `(…, 1, nq)` is constant, `(…, steps, nq)` has one target for each step; or a
    function of (model, t) on generic scalars. `v_ref` likewise `(nv,)`; None: at rest. `effort` [N m, N]: one
    number or `(…, nv)`; None: the model's limits.

    Source: Tan, Liu and Turk, "Stable Proportional-Derivative Controllers", 2011.

    >>> model = da.models.pendulum()
    >>> servo = da.control.Servo(kp=1e6, kd=1e4, q_ref=[0.5])
    >>> held = da.rollout(model, [0.0], [0.0], servo, steps=200, dt=0.01)
    >>> print(f"{held.q[-1, 0]:.4f}")
    0.5000
    """

    kp: npt.ArrayLike
    kd: npt.ArrayLike
    q_ref: npt.ArrayLike | Reference | None = None
    v_ref: npt.ArrayLike | Reference | None = None
    effort: npt.ArrayLike | None = None

    def gains(self, model: Model) -> dict[str, Array]:
        """Return kp, kd and effort for each velocity variable of a model, `(…, nv)`; zero where there is no
        motor.
        """
        driven, limits = _motors(model)
        found: dict[str, Array] = {}
        for name, given in (("kp", self.kp), ("kd", self.kd)):
            values = positive_gain(name, per_direction(name, given, model.nv, [("q", np.zeros(1))]))
            if not np.isfinite(values).all():
                raise ArgumentError(f"Servo: {name} holds numbers that are not finite")
            if np.ndim(given) and np.any(values[..., ~driven]):
                place = int(np.argwhere((values * ~driven).any(axis=tuple(range(values.ndim - 1))))[0, 0])
                joint = next(
                    body.joint_name
                    for body in model.bodies
                    if body.dependence is None and body.v_slice.start <= place < body.v_slice.stop
                )
                raise ModelError(
                    f'Servo: {name} has a gain for joint "{joint}", which has no motor; set zero there, or '
                    "name it in builder.set_actuated"
                )
            found[name] = values * driven
        effort = limits if self.effort is None else per_direction("effort", self.effort, model.nv, [])
        if np.any(~(effort >= 0.0)):
            raise ArgumentError("Servo: effort must be a torque or force from 0 on")
        found["effort"] = np.minimum(effort, UNBOUNDED_EFFORT) * driven
        return found

    def driven(self, model: Model) -> tuple[int, ...]:
        """Return the indices of the velocity variables that have a gain in some sample."""
        gains = self.gains(model)
        stiff = [np.any(gains[name] > 0.0, axis=tuple(range(gains[name].ndim - 1))) for name in ("kp", "kd")]
        return tuple(int(place) for place in np.flatnonzero(stiff[0] | stiff[1]))


def _motors(model: Model) -> tuple[npt.NDArray[np.bool_], Array]:
    """Return a mask of the velocity variables whose joints have motors, of which free joints have none, and
    the limits of their efforts; kept with the model, since each rollout asks twice.
    """
    found: tuple[npt.NDArray[np.bool_], Array] | None = model.functions.get("motors")
    if found is None:
        driven, efforts = np.zeros(model.nv, bool), np.full(model.nv, math.inf)
        for body in model.bodies:
            if body.dependence is None:
                driven[body.v_slice] = body.joint_name in model.actuated and not isinstance(body.joint, Free)
                efforts[body.v_slice] = as_array("effort", body.limits.effort, ())
        found = model.functions["motors"] = (driven, efforts)
    return found
