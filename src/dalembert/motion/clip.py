"""A recorded motion of a model, and inverse dynamics along it: joint forces, power, work, ground force.

    tau(t) = M(q) a + b(q, v)            at every frame, for every joint                             (1)
    P = tau . v,   W = integral of P dt                                                              (2)
    (n, f) = d/dt (momentum) - weight    the wrench of the world, about its origin                   (3)

A figure without a motor at its root has tau = 0 there. The tau of (1) at the root is therefore the residual
of the analysis: the force of the ground, or an error of the recording or of the masses. If all contact is
with level ground, the line of action of (3) meets the ground at the centre of pressure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, final, overload

import numpy as np
import numpy.typing as npt

from dalembert.api.calls import Check
from dalembert.api.cartesian import base_wrench
from dalembert.api.dynamics import inverse_dynamics as forces_of
from dalembert.errors import ArgumentError, DtypeError, OutOfRangeError, ShapeError, positive_number
from dalembert.model.model import Model
from dalembert.motion.differentiation import (
    Array,
    continuous,
    hermite,
    low_pass,
    normalize_quaternions,
    position_rates,
    spline_slopes,
    velocities_and_accelerations,
)

MAX_TIME_STEP_VARIATION: float = 1e-6
"""Largest relative difference of time steps of evenly spaced frames."""


class ClipFrame(NamedTuple):
    """One moment of a clip: `time` [s], `q (nq,)`, `v (nv,)`, `a (nv,)`."""

    time: float
    q: Array
    v: Array
    a: Array


MAX_FRAMES: Final = 100_000
"""A recording of more frames is refused: half an hour at 60 per second."""
MAX_GHOSTS: Final = 31
"""Samples of a batch that are shown beside the first."""


class ContactForces(NamedTuple):
    """Forces (T, nc, 3) [N] in world axes on the second body of each pair, in the step that begins with each
    frame but the last, and the points (T, nc, 3) [m] where they act.
    """

    force: Array
    position: Array


@final
@dataclass(frozen=True, eq=False)
class Frames:
    """A motion to show: `time (T,)` [s], `q (T, nq)`; `v`, `tau (T, nv)` and `contacts` where known.

    Every motion that the viewer shows returns its frames by a method `__frames__(fps)`: all that it has, or
    at least `fps` a second where it is known at all times. `ghosts (samples, T, nq)`: other samples of a
    batch at the same times. `end`: why the motion stops early; empty where it does not.
    """

    model: Model
    time: Array
    q: Array
    v: Array | None = None
    tau: Array | None = None
    contacts: ContactForces | None = None
    ghosts: Array | None = None
    end: str = ""

    def __len__(self) -> int:
        return len(self.time)


def nearest_frames(time: Array, wanted: Array) -> npt.NDArray[np.intp]:
    """Return for each wanted time (m,) the index of the frame nearest to it; `time (T,)` increases."""
    return np.searchsorted(0.5 * (time[1:] + time[:-1]), wanted)


def finite_array(what: str, value: Any, shape: tuple[int, ...]) -> Array:
    """Return a copy of an array of finite numbers; `what` names it in errors."""
    try:
        array = np.array(value, float)
    except Exception as error:  # any exception that a foreign array raises
        raise DtypeError(f"{what} is not an array of numbers: {error}") from error
    if array.shape != shape:
        raise ShapeError(f"{what} has the shape {array.shape}; {shape} is expected")
    if not np.isfinite(array).all():
        raise ArgumentError(f"{what} holds numbers that are not finite")
    return array


@final
@dataclass(frozen=True, eq=False)
class Clip:
    """A motion of `model`: `time (T,)` [s], `q (T, nq)`, `v (T, nv)`, `a (T, nv)`, all read-only.

    `clip[10:20]` is a clip, `clip[3]` one frame of it; `loop` is True if the file marks the motion as cyclic.
    """

    model: Model
    time: Array
    q: Array
    v: Array
    a: Array
    loop: bool = False

    def __post_init__(self) -> None:
        for name, *size in (("time",), ("q", self.model.nq), ("v", self.model.nv), ("a", self.model.nv)):
            array = finite_array(f"Clip: {name}", getattr(self, name), (len(self.time), *size))
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not (np.diff(self.time) > 0.0).all():
            raise ArgumentError("Clip: time must increase from frame to frame")

    @classmethod
    def from_positions(
        cls, model: Model, time: Any, q: Any, *, cutoff: float | None = None, loop: bool = False
    ) -> Clip:
        """Build a clip from configurations q (T, nq) at the times (T,) [s].

        v and a are computed by splines on the joints' manifolds. `cutoff` [Hz]: q is first filtered by a
        zero-phase low-pass (second-order Butterworth, forward and backward; half of the power remains at the
        cutoff), which requires evenly spaced frames. Quaternions are filtered by components and normalised,
        which to first order filters on the tangent space.
        """
        t, positions = np.array(time, float), np.array(q, float)
        zeros = np.zeros((len(t), model.nv))
        checked = cls(model, t, positions, zeros, zeros, loop)
        positions = normalize_quaternions(model, continuous(model, checked.q))
        if cutoff is not None and len(t) > 1:
            positions = normalize_quaternions(model, low_pass(positions, checked.frame_time, cutoff))
        return cls(model, t, positions, *velocities_and_accelerations(model, t, positions), loop)

    def __frames__(self, fps: float) -> Frames:
        if not len(self):
            raise ArgumentError("the clip has no frames")
        return Frames(self.model, self.time, self.q, self.v)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the joints, in the order of q."""
        return self.model.joints.names

    @property
    def duration(self) -> float:
        """Time from the first frame to the last [s]."""
        return float(self.time[-1] - self.time[0]) if len(self) else 0.0

    @property
    def frame_time(self) -> float:
        """The time between frames [s]; an error where they are not evenly spaced."""
        steps = np.diff(self.time)
        if not len(steps):
            raise ArgumentError(f"a clip of {len(self)} frames has no time between frames")
        if np.ptp(steps) > MAX_TIME_STEP_VARIATION * float(steps.mean()):
            raise ArgumentError(
                f"the frames are {steps.min():.6g} to {steps.max():.6g} s apart; resample(dt) evens them"
            )
        return float(steps.mean())

    def at(self, time: Any) -> Clip:
        """Return the clip interpolated at times (m,) [s] within its own: cubic between frames, exact at
        frames.
        """
        t = np.atleast_1d(np.array(time, float))
        slack = 1e-9 * max(self.duration, 1.0)
        if t.ndim != 1 or not len(self):
            raise ShapeError(f"Clip.at takes times of the shape (m,) and a clip with frames, got {t.shape}")
        if not ((t >= self.time[0] - slack) & (t <= self.time[-1] + slack)).all():
            raise ArgumentError(
                f"times must lie within the clip, {self.time[0]:.6g} to {self.time[-1]:.6g} s; "
                f"got {t.min():.6g} to {t.max():.6g} s"
            )
        inside = np.clip(t, self.time[0], self.time[-1])
        q = hermite(self.time, self.q, position_rates(self.model, self.q, self.v), inside)
        v = hermite(self.time, self.v, self.a, inside)
        a = hermite(self.time, self.a, spline_slopes(self.time, self.a), inside)
        return Clip(self.model, inside, normalize_quaternions(self.model, q), v, a, self.loop)

    def resample(self, dt: float) -> Clip:
        """Return the clip with a frame every dt [s] from its first on; to reduce the rate, low-pass it."""
        steps = math.floor(self.duration / positive_number("resample: dt", dt, "s") + 1e-6)
        return self.at(self.time[0] + dt * np.arange(steps + 1))

    def __len__(self) -> int:
        return len(self.time)

    @overload
    def __getitem__(self, key: slice) -> Clip: ...
    @overload
    def __getitem__(self, key: int) -> ClipFrame: ...
    def __getitem__(self, key: int | slice) -> Clip | ClipFrame:
        if isinstance(key, slice):
            return replace(self, time=self.time[key], q=self.q[key], v=self.v[key], a=self.a[key])
        if not -len(self) <= key < len(self):
            raise OutOfRangeError(f"there is no frame {key}; the clip has {len(self)}, numbered from 0")
        return ClipFrame(float(self.time[key]), self.q[key], self.v[key], self.a[key])

    def __repr__(self) -> str:
        return f"<Clip of {self.model.name}: {len(self)} frames, {self.duration:.3f} s>"


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
    coordinates, or with `external_frame="world"` or "center" as in `da.inverse_dynamics`; for example
    measured contact forces.
    `method`: another algorithm for the same forces, see `da.inverse_dynamics`. `check="off"`: for linkages,
    whose recorded accelerations do not satisfy the loops to rounding; the forces are then those of the
    nearest motion. Inverse dynamics of the animation lecture; Featherstone 2008 Table 5.1 at every frame.

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
    time = clip.time if model.time_dependent else None
    options: dict[str, Any] = {"external_frame": external_frame, "time": time, "check": check}
    tau = forces_of(model, clip.q, clip.v, clip.a, external_forces, method=method, **options)
    return MotionAnalysis(clip, tau, base_wrench(model, clip.q, clip.v, clip.a, external_forces, **options))


@final
@dataclass(frozen=True, eq=False)
class MotionAnalysis:
    """The result of `inverse_dynamics` for a clip of T frames.

    `tau (T, nv)` [N m or N]: the joint forces. `wrench (T, 6)` [N m, N]: the force of the world on the
    figure, (moment about the world's origin, force) in world axes. `analysis["elbow"]` is tau of one joint.

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
        for name, place in self._places.items():
            if name not in self.clip.model.actuated:
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
        return np.stack([by_coordinate[:, place].sum(axis=1) for place in self._places.values()], axis=1)

    @property
    def work(self) -> Array:
        """The work of every joint over the clip `(n_joints,)` [J], of fourth order in the frame time.

        It integrates the spline through the power: h (P_0 + P_1) / 2 + h^2 (P_0' - P_1') / 12 for each step.
        """
        slopes = spline_slopes(self.clip.time, self.power)
        h = np.diff(self.clip.time)[:, None]
        correction: Array = (h * h / 12.0 * (slopes[:-1] - slopes[1:])).sum(axis=0)
        return self._integrate(self.power) + correction

    @property
    def positive_work(self) -> Array:
        """The work of every joint while it drives `(n_joints,)` [J]."""
        return self._integrate(np.maximum(self.power, 0.0))

    @property
    def negative_work(self) -> Array:
        """The work of every joint while it brakes `(n_joints,)` [J], not positive."""
        return self._integrate(np.minimum(self.power, 0.0))

    @property
    def _places(self) -> dict[str, slice]:
        """The joints' slices of v."""
        return {name: self.clip.model.joint(name).v_slice for name in self.names}

    def _integrate(self, power: Array) -> Array:
        h = np.diff(self.clip.time)[:, None]
        total: Array = (0.5 * h * (power[1:] + power[:-1])).sum(axis=0)
        return total
