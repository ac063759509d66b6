"""A recorded motion of a model."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, final, overload

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, OutOfRangeError, ShapeError
from dalembert.model.checks import is_finite
from dalembert.model.model import Model
from dalembert.motion.differentiate import (
    continuous,
    normalize_quaternions,
    position_rates,
    velocities_and_accelerations,
)
from dalembert.motion.low_pass import low_pass
from dalembert.motion.spline import hermite, spline_slopes

__all__ = ["Clip", "ClipFrame"]

Array = npt.NDArray[np.float64]

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
    last = len(time) - 1
    after = np.clip(np.searchsorted(time, wanted), 1, max(last, 1))
    nearest = after - (wanted - time[after - 1] <= time[np.minimum(after, last)] - wanted)
    found: npt.NDArray[np.intp] = np.clip(nearest, 0, last)
    return found


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
        frames = len(self.time)
        sizes = {"time": (frames,), "q": (frames, self.model.nq)}
        sizes |= dict.fromkeys(("v", "a"), (frames, self.model.nv))
        for name, expected in sizes.items():
            array = np.array(getattr(self, name), float)
            if array.shape != expected:
                raise ShapeError(f"Clip: {name} has the shape {array.shape}; {expected} is expected")
            if not np.isfinite(array).all():
                raise ArgumentError(f"Clip: {name} holds numbers that are not finite")
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
        """Return the clip with a frame every dt [s] from its first frame on; low-pass it first to reduce the
        frame rate.
        """
        if not (is_finite(dt) and dt > 0.0):
            raise ArgumentError(f"resample: dt is {dt!r}; give a positive time [s]")
        steps = math.floor(self.duration / dt + 1e-6)
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
