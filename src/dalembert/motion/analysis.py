"""Inverse dynamics of a recorded motion: the joint forces, their power and work, and the ground force.

    tau(t) = M(q) a + b(q, v)            at every frame, for every joint                             (1)
    P = tau . v,   W = integral of P dt                                                              (2)
    (n, f) = d/dt (momentum) - weight    the wrench of the world, about its origin                   (3)

A figure without a motor at its root has tau = 0 there. The tau of (1) at the root is therefore the residual
of the analysis: the force of the ground, or an error of the recording or of the masses. If all contact is
with level ground, the line of action of (3) meets the ground at the centre of pressure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dalembert.api.calls import Check
from dalembert.api.cartesian import base_wrench
from dalembert.api.dynamics import inverse_dynamics as forces_of
from dalembert.errors import DtypeError
from dalembert.motion.clip import Clip
from dalembert.motion.spline import spline_slopes

__all__ = ["MotionAnalysis", "inverse_dynamics"]

Array = npt.NDArray[np.float64]


def inverse_dynamics(
    clip: Clip,
    external_forces: Any = None,
    *,
    external_frame: Any = "body",
    method: str | None = None,
    check: Check = None,
) -> MotionAnalysis:
    """Compute the forces along a clip: tau = M(q) a + b(q, v) - J^T external `(T, nv)` [N m or N].

    `external_forces`: `(T, n_bodies, 6)` or one set for all frames, moment and force on each body in body
    coordinates, or in world coordinates with `external_frame="world"`; for example measured contact forces.
    `method`: another algorithm for the same forces, see `da.inverse_dynamics`. `check="off"`: for linkages,
    whose recorded accelerations do not satisfy the loops to rounding; the forces are then those of the
    nearest motion. Inverse dynamics of the animation lecture; Featherstone 2008 Table 5.1 at every frame.

    >>> import dalembert as da, numpy as np
    >>> model = da.models.pendulum()
    >>> time = np.linspace(0.0, 1.0, 101)
    >>> clip = da.motion.Clip.from_positions(model, time, 0.5 * np.sin(6.0 * time)[:, None])
    >>> analysis = da.motion.inverse_dynamics(clip)
    >>> analysis.tau.shape, analysis.wrench.shape, analysis.work.shape
    ((101, 1), (101, 6), (1,))
    """
    if not isinstance(clip, Clip):
        raise DtypeError(
            f"motion.inverse_dynamics takes a Clip, got {type(clip).__name__}; da.load_motion reads one, "
            "Clip.from_positions makes one of recorded q"
        )
    model = clip.model
    options: dict[str, Any] = {
        "external_forces": external_forces,
        "external_frame": external_frame,
        "check": check,
    }
    if model.time_dependent:
        options["time"] = clip.time
    tau = forces_of(model, clip.q, clip.v, clip.a, method=method, **options)
    wrench = base_wrench(model, clip.q, clip.v, clip.a, **options)
    return MotionAnalysis(clip, tau, wrench)


@final
@dataclass(frozen=True, eq=False)
class MotionAnalysis:
    """The result of `inverse_dynamics` for a clip of T frames.

    `tau (T, nv)` [N m or N]: the joint forces. `wrench (T, 6)` [N m, N]: the force of the world on the
    figure, (moment about the world's origin, force) in world axes. `analysis["elbow"]` is tau of one joint.

    >>> import dalembert as da, numpy as np
    >>> model = da.models.humanoid()
    >>> still = np.tile(model.neutral(), (8, 1))
    >>> analysis = da.motion.inverse_dynamics(da.motion.Clip.from_positions(model, 0.1 * np.arange(8), still))
    >>> bool(np.allclose(analysis.ground_force[:, 2], model.total_mass * 9.81))
    True
    """

    clip: Clip
    tau: Array
    wrench: Array

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the joints, in the order of `power` and `work`."""
        return self.clip.names

    def __getitem__(self, joint: str) -> Array:
        """Return tau `(T, nv of the joint)` of the joint with this name."""
        return self.tau[:, self.clip.model.joint(joint).v_slice]

    @property
    def residual(self) -> Array:
        """The forces tau `(T, nv)` at joints without a motor, those not in `model.actuated`; else zero."""
        residual = np.zeros_like(self.tau)
        model = self.clip.model
        for name in model.joints.names:
            if name not in model.actuated:
                place = model.joint(name).v_slice
                residual[:, place] = self.tau[:, place]
        return residual

    @property
    def ground_force(self) -> Array:
        """The force of the world on the figure `(T, 3)` [N], in world axes."""
        return self.wrench[:, 3:]

    def center_of_pressure(self, height: float = 0.0) -> Array:
        """Return the centre of pressure `(T, 3)` [m] on level ground at z = height [m]; NaN where the ground
        does not push up.

        About that point the horizontal moments vanish: n - p x f is vertical.
        """
        n, f = self.wrench[:, :3], self.wrench[:, 3:]
        upward = np.where(f[:, 2] > 0.0, f[:, 2], np.nan)
        x = (height * f[:, 0] - n[:, 1]) / upward
        y = (height * f[:, 1] + n[:, 0]) / upward
        return np.stack([x, y, np.where(np.isnan(upward), np.nan, height)], axis=1)

    @property
    def power(self) -> Array:
        """The power tau . v of every joint `(T, n_joints)` [W]; positive where it drives the motion."""
        by_coordinate = self.tau * self.clip.v
        model = self.clip.model
        places = [model.joint(name).v_slice for name in model.joints.names]
        return np.stack([by_coordinate[:, place].sum(axis=1) for place in places], axis=1)

    @property
    def work(self) -> Array:
        """The work of every joint over the clip `(n_joints,)` [J], of fourth order in the frame time.

        It integrates the spline through the power: h (P_0 + P_1) / 2 + h^2 (P_0' - P_1') / 12 for each step.
        """
        time, P = self.clip.time, self.power
        slopes = spline_slopes(time, P)
        h = np.diff(time)[:, None]
        steps = 0.5 * h * (P[1:] + P[:-1]) + h * h / 12.0 * (slopes[:-1] - slopes[1:])
        total: Array = steps.sum(axis=0)
        return total

    @property
    def positive_work(self) -> Array:
        """The work of every joint while it drives `(n_joints,)` [J]."""
        return self._integrate(np.maximum(self.power, 0.0))

    @property
    def negative_work(self) -> Array:
        """The work of every joint while it brakes `(n_joints,)` [J], not positive."""
        return self._integrate(np.minimum(self.power, 0.0))

    def _integrate(self, power: Array) -> Array:
        h = np.diff(self.clip.time)[:, None]
        total: Array = (0.5 * h * (power[1:] + power[:-1])).sum(axis=0)
        return total
