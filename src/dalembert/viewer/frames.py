"""The frames of anything that can be shown: configurations of a model at increasing times.

A motion returns its frames itself, by the method `__frames__` (see `dalembert.motion.clip.Frames`), so that
the viewer need not know the classes of motions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dalembert.api.kinematics import forward_kinematics
from dalembert.errors import ArgumentError, DtypeError, ShapeError
from dalembert.model.checks import is_finite
from dalembert.model.model import Model
from dalembert.motion.clip import MAX_FRAMES, ContactForces, Frames, nearest_frames
from dalembert.viewer.drawing import Array, drawing_of, vector, visible_triangles

WHAT_CAN_BE_SHOWN: Final = "a model, a clip, a transition, a trajectory, (model, q) or (model, time, q)"


@runtime_checkable
class FrameSource(Protocol):
    """A motion that can be shown."""

    def __frames__(self, fps: float) -> Frames:
        """Return all frames of the motion; at least `fps` a second where it is known at all times."""


def frames_of(given: Any, *, fps: float) -> Frames:
    """Return at most `fps` frames a second of a model at rest, a motion, or configurations."""
    if not (is_finite(fps) and 0.0 < fps <= 1000.0):
        raise ArgumentError(f"fps is {fps!r}; give the pictures a second, from above 0 to 1000")
    if isinstance(given, Model):
        whole = Frames(given, np.zeros(1), standing_configuration(given)[np.newaxis])
    elif isinstance(given, tuple) and len(given) in (2, 3) and isinstance(given[0], Model):
        whole = _frames_of_configurations(given[0], given[-1], given[1] if len(given) == 3 else None)
    elif isinstance(given, FrameSource) and not isinstance(given, type):
        whole = given.__frames__(fps)
    else:
        raise DtypeError(f"{type(given).__name__} cannot be shown; give {WHAT_CAN_BE_SHOWN}")
    start, end = whole.time[0], whole.time[-1]
    wanted = np.append(np.arange(start, end + 0.5 / fps, 1.0 / fps), end)
    picked = np.unique(nearest_frames(whole.time, wanted))
    if len(picked) > MAX_FRAMES:
        raise ArgumentError(
            f"the motion has {len(picked)} pictures at {fps:g} a second; a lower fps or a part of it will do"
        )
    return replace(
        whole,
        time=whole.time[picked],
        q=whole.q[picked],
        v=None if whole.v is None else whole.v[picked],
        tau=None if whole.tau is None else whole.tau[np.minimum(picked, len(whole.tau) - 1)],
        contacts=None if whole.contacts is None else _mean_forces(whole.contacts, picked),
        ghosts=None if whole.ghosts is None else whole.ghosts[:, picked],
    )


def _frames_of_configurations(model: Model, q: Any, time: Any) -> Frames:
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


def _mean_forces(contacts: ContactForces, picked: npt.NDArray[np.intp]) -> ContactForces:
    """Average forces from picture to picture, so that no impulse is lost, at their points' weighted mean."""
    force, position = contacts
    starts = picked[picked < len(force)]
    counts = np.diff(np.append(starts, len(force)))[:, np.newaxis, np.newaxis]
    weight = np.linalg.norm(force, axis=2, keepdims=True) + 1e-300
    mean = np.add.reduceat(force, starts) / counts
    middle = np.add.reduceat(weight * position, starts) / np.add.reduceat(weight, starts)
    rest = len(picked) - len(starts)  # the last picture begins no step
    return ContactForces(*(np.concatenate([x, np.repeat(x[-1:], rest, axis=0)]) for x in (mean, middle)))


def standing_configuration(model: Model) -> Array:
    """Return the neutral configuration (nq,); free bodies stand on the world's plane, not in it."""
    q = model.neutral()
    planes = [shape for shape in model.world_shapes if shape.kind == "plane"]
    free = [body for body in model.bodies if body.parent < 0 and body.joint.kind == "free"]
    if not planes or not free or model.time_dependent:
        return q
    X = planes[0].placement.as_transform()
    normal = vector(X.R.column(2))
    height = float(normal @ vector(X.p))
    roots: list[int] = []
    for body in model.bodies:
        roots.append(body.index if body.parent < 0 else roots[body.parent])
    poses = forward_kinematics(model, q)
    seen = visible_triangles(drawing_of(model), poses.rotation, poses.translation)
    heights = (seen.corners @ normal).min(axis=1) - height
    figures = np.where(seen.bodies < 0, -1, np.array(roots)[seen.bodies])
    for body in free:
        lowest = float(heights[figures == body.index].min(initial=np.inf))
        if -np.inf < lowest < 0.0:
            R: Array = np.array(body.placement.as_transform().R.to_list())
            q[body.q_slice][:3] -= lowest * (R.T @ normal)
    return q
