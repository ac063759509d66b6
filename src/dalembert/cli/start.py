"""A simulation starts from a pose of the file or of another file, with velocities and samples."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

import dalembert as da
from dalembert.api.constraints import close_loops
from dalembert.cli import content as files
from dalembert.errors import ArgumentError, DalembertError, FileError, UnknownNameError
from dalembert.formats.mjcf import INITIAL_POSE, read_mjcf
from dalembert.formats.npz import open_archive
from dalembert.formats.resources import read_regular_file
from dalembert.model.body import bounds_of
from dalembert.model.configuration import normalize

Array = npt.NDArray[np.float64]

MJCF: Final = (".xml", ".mjcf")
MAX_STATE_FILE_BYTES: Final = 1 << 28
"""Larger files with a pose are refused."""
RANDOM_VELOCITY_STD: Final = 0.5
"""Standard deviation of random velocities [rad/s, m/s]."""
STANDING_POSES: Final = ("standing", "stand", "half_sitting", "home", "default", "ready")
"""Beginnings of the names of poses in which robots stand or wait, the first that a file has is taken: names
in the files of example-robot-data, MuJoCo Menagerie and MoveIt."""
MIN_REPORTED_EXCESS: Final = 1e-3
"""Joints that start this far [rad, m] beyond a limit are reported: numbers in files have three or four
digits."""
LIMIT_MARGIN: Final = 0.05
"""Distance from its limit [rad, m] at which a joint starts whose neutral position is outside: above the sag
of the servos, at most a tenth of the range."""


def in_short(names: Sequence[str]) -> str:
    """Return a text of at most four names."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def starting_pose(model: da.Model, options: argparse.Namespace, notes: list[str]) -> tuple[Array, Array]:
    """Return q and v of the start: those that `--pose` names, else a pose of the file in which robots stand,
    else where an MJCF file places its bodies, else the neutral configuration within the limits of joints."""
    name = options.pose or _usual_pose(model)
    if name is None:
        return _within_limits(model, notes), np.zeros(model.nv)
    if name == "neutral" or model.poses.has(name):
        if not options.pose and name != INITIAL_POSE:
            notes.append(f'it starts in the pose "{name}" of the file (--pose neutral: in another)')
        return model.pose(name), _keyframe_velocities(model, name, options)
    ending = Path(name).suffix.lower()
    if ending == ".npz":
        return _read_stored_state(model, Path(name))
    if ending == ".json":
        return _read_json_state(model, Path(name))
    if model.poses:
        raise UnknownNameError.of("pose", name, ("neutral", *model.poses.names))
    raise ArgumentError(f'--pose {name}: give "neutral", a pose of the file, or a .json or .npz file')


def _usual_pose(model: da.Model) -> str | None:
    """Return the name of the pose in which a robot stands or waits, if its file has one."""
    names = [pose.name for pose in model.poses]
    for beginning in (*STANDING_POSES, INITIAL_POSE):
        for name in names:
            if name.lower().startswith(beginning):
                return name
    return None


def _within_limits(model: da.Model, notes: list[str]) -> Array:
    """Return the neutral configuration, with joints that would be outside their limits moved inside."""
    q, moved = np.array(model.neutral()), []
    for body in model.bodies:
        if body.dependence is None and body.nq == body.nv:
            own = q[body.q_slice]
            low, high = (np.array(bounds_of(body, kind)) for kind in ("lower", "upper"))
            margin = np.minimum(LIMIT_MARGIN, 0.1 * (high - low))
            inside = np.where(own < low, low + margin, np.where(own > high, high - margin, own))
            moved += [body.joint_name] * bool((inside != own).any())
            q[body.q_slice] = inside
    if moved and not (model.loops or model.constraints):
        notes.append(f"joints start inside their limits, not at their neutral position: {in_short(moved)}")
        return q
    return np.array(model.neutral())


def joints_beyond_limits(model: da.Model, q: Array) -> list[str]:
    """Return the names of the joints of one coordinate that are outside their limits at q."""
    found = []
    for body in model.bodies:
        if body.dependence is None and body.nq == body.nv == 1:
            own = float(q[body.q_slice][0])
            low, high = bounds_of(body, "lower")[0], bounds_of(body, "upper")[0]
            if not low - MIN_REPORTED_EXCESS <= own <= high + MIN_REPORTED_EXCESS:
                found.append(body.joint_name)
    return found


def _keyframe_velocities(model: da.Model, name: str, options: argparse.Namespace) -> Array:
    """Return v of a keyframe of an MJCF file; zero for other poses."""
    if Path(options.file).suffix.lower() in MJCF and name not in ("neutral", INITIAL_POSE):
        for frame in read_mjcf(options.file, **files.model_options(options)).keyframes:
            if frame.name == name:
                return np.asarray(frame.v)
    return np.zeros(model.nv)


def _read_stored_state(model: da.Model, path: Path) -> tuple[Array, Array]:
    """Read the last frame (of the first sample) of a trajectory, or arrays q and v."""
    with open_archive(path) as archive:
        arrays = {name: archive.array(name, "fi") for name in ("q", "v") if name in archive.names}
    if "q" not in arrays:
        raise FileError(f"{path} holds no array q")
    for name, array in tuple(arrays.items()):
        if not array.ndim or not array.size:
            raise FileError(f"{path}: {name} has the shape {array.shape}; it holds no state")
        if array.ndim > 1:
            arrays[name] = array.reshape(-1, *array.shape[-2:])[0, -1]
    return _require_fitting(model, str(path), arrays["q"], arrays.get("v", np.zeros(model.nv)))


def _read_json_state(model: da.Model, path: Path) -> tuple[Array, Array]:
    """Read a list of nq numbers, {"q": […], "v": […]}, or values by the names of joints."""
    text = read_regular_file(str(path), limit=MAX_STATE_FILE_BYTES)
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is no JSON: {error}") from error
    if isinstance(given, list):
        given = {"q": given}
    if not isinstance(given, dict):
        raise FileError(f"{path}: expected a list of {model.nq} numbers, or values by the names of joints")
    q, v = np.array(model.neutral()), np.zeros(model.nv)
    try:
        if "q" in given:
            given_q, given_v = (np.array(x, float) for x in (given["q"], given.get("v", v)))
            return _require_fitting(model, str(path), given_q, given_v)
        for name, value in given.items():
            if not model.joints.has(name):
                raise UnknownNameError.of("joint", name, model.joints.names)
            q[model.joints[name].body.q_slice] = np.array(value, float)
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(error, DalembertError):
            raise
        raise FileError(f"{path}: {error}") from error
    return _require_fitting(model, str(path), q, v)


def _require_fitting(model: da.Model, path: str, q: Array, v: Array) -> tuple[Array, Array]:
    for name, array, size in (("q", q, model.nq), ("v", v, model.nv)):
        if array.shape != (size,):
            raise FileError(f"{path}: {name} has the shape {array.shape}; this model takes ({size},)")
        if not np.isfinite(array).all():
            raise FileError(f"{path}: {name} holds numbers that are not finite")
    return np.array(normalize(model, q.tolist())), v


def random_velocities(
    model: da.Model, q: Array, v: Array, options: argparse.Namespace, notes: list[str]
) -> tuple[Array, Array]:
    """Return the start of every sample, with random velocities if a seed is given."""
    seed, samples = options.seed, options.samples
    if seed is None and samples is None:
        return q, v
    if seed is None:
        seed = 0
        notes.append("samples differ by random velocities of seed 0")
    shape = () if samples is None else (samples,)
    v = v + RANDOM_VELOCITY_STD * np.random.default_rng(seed).standard_normal((*shape, model.nv))
    q = np.array(np.broadcast_to(q, (*shape, model.nq)))
    if model.loops or model.constraints:
        closed = close_loops(model, q, v)
        return np.asarray(closed[0]), np.asarray(closed[1])
    return q, v
