"""The pictures of a motion of any type: configurations of a model at increasing times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, DtypeError, ShapeError
from dalembert.model.checks import is_finite
from dalembert.model.model import Model
from dalembert.motion import Clip, Transition
from dalembert.simulation.adaptive import AdaptiveMotion
from dalembert.simulation.trajectory import Trajectory
from dalembert.textbook.event_driven import EventDrivenMotion
from dalembert.viewer.standing import standing

__all__ = ["Contacts", "Frames", "frames_of"]

Array: TypeAlias = npt.NDArray[np.float64]

MAX_FRAMES: Final = 100_000
"""More pictures are refused: half an hour at 60 per second."""
MAX_GHOSTS: Final = 31
"""Samples of a batch that are shown beside the first."""
WHAT_CAN_BE_SHOWN: Final = "a model, a clip, a transition, a trajectory, (model, q) or (model, time, q)"


class Contacts(NamedTuple):
    """Forces (n, nc, 3) [N] in world axes on the second body of each pair, and where they act, (n, nc, 3)
    [m]: of each picture, the mean over the time until the next one.
    """

    force: Array
    position: Array


@final
@dataclass(frozen=True, eq=False)
class Frames:
    """Pictures of a motion: `time (n,)` [s], `q (n, nq)`; `v`, `tau (n, nv)` and `contacts` where known.

    `ghosts (samples, n, nq)`: the same moments of other samples of a batch. `end`: why the motion stops
    early; empty where it does not.
    """

    model: Model
    time: Array
    q: Array
    v: Array | None = None
    tau: Array | None = None
    contacts: Contacts | None = None
    ghosts: Array | None = None
    end: str = ""

    def __len__(self) -> int:
        return len(self.time)


def frames_of(given: Any, *, fps: float) -> Frames:
    """Return at most `fps` pictures a second of a model at rest, a clip, a motion, a trajectory, or
    configurations.
    """
    if not (is_finite(fps) and 0.0 < fps <= 1000.0):
        raise ArgumentError(f"fps is {fps!r}; give the pictures a second, from above 0 to 1000")
    if isinstance(given, EventDrivenMotion):
        given = given.trajectory
    if isinstance(given, AdaptiveMotion):
        pictures = 1 + math.ceil(min((given.time[-1] - given.time[0]) * fps, MAX_FRAMES + 1))
        given = given.trajectory(np.unique(np.linspace(given.time[0], given.time[-1], pictures)))
    whole = _whole(given)
    picked = _nearest_frames(whole.time, fps)
    if len(picked) > MAX_FRAMES:
        raise ArgumentError(
            f"the motion has {len(picked)} pictures at {fps:g} a second; a lower fps or a part of it will do"
        )
    return Frames(
        whole.model,
        whole.time[picked],
        whole.q[picked],
        None if whole.v is None else whole.v[picked],
        None if whole.tau is None else whole.tau[np.minimum(picked, len(whole.tau) - 1)],
        None if whole.contacts is None else Contacts(*_means(whole.contacts, picked)),
        None if whole.ghosts is None else whole.ghosts[:, picked],
        whole.end,
    )


def _whole(given: Any) -> Frames:
    """Return the motion with all its frames."""
    if isinstance(given, Model):
        return Frames(given, np.zeros(1), standing(given)[np.newaxis])
    if isinstance(given, Trajectory):
        return _trajectory(given)
    if isinstance(given, Transition):
        return Frames(given.clip.model, given.clip.time, given.clip.q, given.clip.v, np.asarray(given.tau))
    if isinstance(given, Clip):
        if not len(given):
            raise ArgumentError("the clip has no frames")
        return Frames(given.model, given.time, given.q, given.v)
    if isinstance(given, tuple) and len(given) in (2, 3) and isinstance(given[0], Model):
        return _configurations(given[0], given[-1], given[1] if len(given) == 3 else None)
    raise DtypeError(f"{type(given).__name__} cannot be shown; give {WHAT_CAN_BE_SHOWN}")


def _trajectory(given: Trajectory) -> Frames:
    """Return one sample; of a batch the first, with the others as ghosts."""
    if math.prod(given.batch) == 0:
        raise ArgumentError(f"the trajectory has the batch {given.batch}: there is no sample to show")
    first = given[(0,) * len(given.batch)] if given.batch else given
    ghosts = _ghosts(given, first.time) if given.batch else None
    contacts = first.contacts
    end = ""
    if first.failed_at >= 0:
        end = f"The simulation could not take step {int(first.failed_at)}: {first.cause}"
    elif given.interrupted:
        end = "The simulation was interrupted."
    return Frames(
        first.simulated_model(),
        first.time,
        first.q,
        first.v,
        first.tau if len(first) > 1 else None,
        None if contacts is None or len(first) < 2 else Contacts(contacts.force, contacts.position),
        ghosts if ghosts is not None and len(ghosts) else None,
        end,
    )


def _ghosts(given: Trajectory, time: Array) -> Array:
    """Return the other samples at these times; a sample with times of its own at the nearest of them."""
    frames = len(time)
    q = given.q.reshape(-1, frames, given.model.nq)[1 : 1 + MAX_GHOSTS]
    if given.time.ndim == 1:
        return q
    times = given.time.reshape(-1, frames)[1 : 1 + MAX_GHOSTS]
    found = []
    for own, other in zip(q, times, strict=True):
        after = np.clip(np.searchsorted(other, time), 1, max(frames - 1, 1))
        nearest = after - (time - other[after - 1] <= other[np.minimum(after, frames - 1)] - time)
        found.append(own[np.clip(nearest, 0, frames - 1)])
    return np.array(found).reshape(-1, frames, given.model.nq)


def _configurations(model: Model, q: Any, time: Any) -> Frames:
    positions = np.array(q, dtype=np.float64)
    if positions.ndim == 1:
        positions = positions[np.newaxis]
    if positions.ndim != 2 or positions.shape[1] != model.nq or not len(positions):
        raise ShapeError(
            f"q has the shape {np.shape(q)}; the model takes (nq,) or (frames, nq) with nq = {model.nq}"
        )
    if not np.isfinite(positions).all():
        bad = int(np.argmin(np.isfinite(positions).all(axis=1)))
        raise ArgumentError(f"q of frame {bad} holds numbers that are not finite; cut the motion before it")
    times = np.arange(len(positions)) / 60.0 if time is None else np.array(time, dtype=np.float64)
    if times.shape != (len(positions),):
        raise ShapeError(
            f"time has the shape {times.shape}; give one number for each of {len(positions)} frames"
        )
    if not np.isfinite(times).all() or not (np.diff(times) > 0.0).all():
        raise ArgumentError("time must be finite and increase from frame to frame")
    return Frames(model, times, positions)


def _nearest_frames(time: Array, fps: float) -> npt.NDArray[np.intp]:
    """Return the frames nearest to the pictures' times; all frames if they are no closer than pictures."""
    if len(time) < 2:
        return np.arange(len(time))
    wanted = np.arange(time[0], time[-1] + 0.5 / fps, 1.0 / fps)
    after = np.clip(np.searchsorted(time, wanted), 1, len(time) - 1)
    nearest = after - (wanted - time[after - 1] <= time[after] - wanted)
    return np.unique(np.concatenate([nearest, [len(time) - 1]]))


def _means(contacts: Contacts, picked: npt.NDArray[np.intp]) -> tuple[Array, Array]:
    """Average forces from each picture to the next, so that no impulse between them is lost; they act at the
    mean of their points, weighted by the forces.
    """
    force, position = contacts.force, contacts.position
    starts = picked[picked < len(force)]
    counts = np.diff(np.append(starts, len(force)))[:, np.newaxis, np.newaxis]
    weight = np.linalg.norm(force, axis=2, keepdims=True) + 1e-300
    mean = np.add.reduceat(force, starts) / counts
    middle = np.add.reduceat(weight * position, starts) / np.add.reduceat(weight, starts)
    rest = len(picked) - len(starts)  # the last picture begins no step
    return tuple(np.concatenate([x, np.repeat(x[-1:], rest, axis=0)]) for x in (mean, middle))  # type: ignore[return-value]
