"""Loading of motion-capture files as a model and a clip."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.errors import (
    ArgumentError,
    FileError,
    ModelError,
    UnknownNameError,
    positive_number,
    require_choice,
)
from dalembert.formats.mocap import Recording, with_z_up
from dalembert.formats.mocap.acclaim import read_asf_amc
from dalembert.formats.mocap.bvh import read_bvh
from dalembert.formats.mocap.deepmimic import read_deepmimic
from dalembert.formats.resources import reported_as_file_errors
from dalembert.model.model import Model
from dalembert.motion.characters import (
    PUBLISHED_HEIGHT,
    PUBLISHED_MASS,
    bone_columns,
    character,
    configurations,
    deepmimic_configurations,
    deepmimic_humanoid,
    stature,
)
from dalembert.motion.clip import Clip

PathLike: TypeAlias = str | os.PathLike[str]

ENDINGS: Final = (".bvh", ".asf + .amc", ".json", ".txt")
ADULT_MASS: Final = 75.0
"""Default mass of a figure [kg]."""
LIKELY_UNITS: Final = {"cm": 0.01, "inch": 0.0254, "1/0.45 inch (CMU)": 0.0254 / 0.45, "m": 1.0, "mm": 0.001}
LIKELY_HEIGHTS: Final = (1.2, 2.1)
"""Range of a person's stature [m], used to suggest the unit of a file without units."""


def load_motion(
    path: PathLike | Sequence[PathLike],
    *,
    up: Literal["y", "z"] = "y",
    scale: float | None = None,
    rotations: Literal["quaternion", "euler"] = "quaternion",
    mass: float | None = None,
    height: float | None = None,
    cutoff: float | None = None,
    frame_time: float | None = None,
    positions: Literal["add", "replace"] = "add",
    skip: int = 0,
) -> tuple[Model, Clip]:
    r"""Load a motion-capture file: return its skeleton as a model with masses, and its motion as a clip.

    path: a `.bvh` file; a pair `("x.asf", "x.amc")`; or a DeepMimic clip, `.json` or `.txt`.
    up: the file's up axis; the model has z up. For y up, axes are permuted x -> y -> z -> x (for DeepMimic,
        whose figure faces x, rotated about x), so that the figure faces x with y at its left.
    scale: metres per file unit. Default: 1.0 for BVH, which has no units (`model.report` suggests likely
        ones); 0.0254 / `length` for ASF, as in the CMU files (5.64 cm for `length 0.45`); 1.0 for DeepMimic.
    height: the stature [m], instead of `scale`.
    rotations: ball joints as quaternions, or as Euler angles in the joint's own order of channels.
    mass: of the whole figure [kg], 75 by default (DeepMimic: the published 45), distributed by the rule in
        `motion.characters`; the inertias are those of capsules along the bones.
    cutoff: cutoff frequency [Hz] of a zero-phase low-pass before differentiation; see `Clip.from_positions`.
    frame_time: time between frames [s], instead of the file's; AMC files have none, and 1/120 is assumed.
    skip: number of frames to skip at the beginning; many files begin with a rest pose, from which the
        figure would jump into its motion; `model.report` warns of it.
    positions: whether position channels of BVH joints add to the joint's OFFSET or replace it.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "nod.bvh"
    >>> lines = ["HIERARCHY", "ROOT hips", "{", "OFFSET 0 0 0",
    ...          "CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation",
    ...          "End Site", "{", "OFFSET 0 1 0", "}", "}",
    ...          "MOTION", "Frames: 3", "Frame Time: 0.1", *["0 1 0 0 0 0"] * 3]
    >>> _ = path.write_text("\n".join(lines))
    >>> model, clip = da.load_motion(path, scale=1.0)
    >>> print(model.nv, clip.q.shape)
    6 (3, 7)
    """
    if isinstance(skip, bool) or not isinstance(skip, int) or skip < 0:
        raise ArgumentError(f"load_motion: skip is {skip!r}; give a number of frames, 0 or more")
    for name, value in {"scale": scale, "mass": mass, "height": height, "frame_time": frame_time}.items():
        if value is not None:
            positive_number(f"load_motion: {name}", value)
    if scale is not None and height is not None:
        raise ArgumentError(
            "load_motion: scale and height both say how large the figure is; give one of them"
        )
    require_choice("value of rotations", rotations, ("quaternion", "euler"))
    require_choice("value of positions", positions, ("add", "replace"))
    require_choice("value of up", up, ("y", "z"))
    files = _paths(path)
    endings = tuple(file.suffix.lower() for file in files)
    with reported_as_file_errors(" and ".join(str(file) for file in files)):
        if endings in ((".json",), (".txt",)):
            if rotations == "euler" or up == "z":
                raise ArgumentError(
                    "DeepMimic clips hold quaternions and have y up; leave rotations and up as they are"
                )
            recorded = read_deepmimic(files[0])
            size = height / PUBLISHED_HEIGHT if height is not None else 1.0 if scale is None else scale
            model = deepmimic_humanoid(recorded, scale=size, mass=PUBLISHED_MASS if mass is None else mass)
            time = recorded.time if frame_time is None else frame_time * np.arange(len(recorded.time))
            _require_frames(recorded.file, len(time), skip)
            q = deepmimic_configurations(recorded, scale=size)[skip:]
            time = time[skip:] - time[skip]
            return model, Clip.from_positions(model, time, q, cutoff=cutoff, loop=recorded.loop)
        recording = _from_frame(with_z_up(_recording(files, endings, frame_time, positions), up), skip)
        if rotations == "euler":
            _note_jumps(recording)
        size = _scale(recording, scale, height)
        try:
            model = character(
                recording, scale=size, rotations=rotations, mass=ADULT_MASS if mass is None else mass
            )
        except ModelError as error:
            raise FileError(f"{recording.file}: {error}") from error
        q = configurations(recording, scale=size, rotations=rotations)
        return model, Clip.from_positions(model, recording.time, q, cutoff=cutoff)


def _recording(
    files: list[Path], endings: tuple[str, ...], frame_time: float | None, positions: str
) -> Recording:
    if endings == (".bvh",):
        recording = read_bvh(files[0])
        if frame_time is not None:
            recording = replace(recording, time=frame_time * np.arange(len(recording.time), dtype=np.float64))
        return _relative_to_offset(recording, positions)
    if sorted(endings) == [".amc", ".asf"]:
        asf, amc = (files[endings.index(ending)] for ending in (".asf", ".amc"))
        return read_asf_amc(asf, amc, frame_time=frame_time)
    if endings in ((".asf",), (".amc",)):
        raise ArgumentError(
            f'{files[0].name}: skeleton and motion are two files; load_motion(("x.asf", "x.amc")) takes both'
        )
    raise UnknownNameError.of(
        "motion file format", ", ".join(ending or "none" for ending in endings), ENDINGS
    )


def _relative_to_offset(recording: Recording, positions: str) -> Recording:
    """Return the recording with position channels relative to the OFFSET; note those of inner joints."""
    recording = replace(recording, values=recording.values.copy())
    for bone, values in bone_columns(recording):
        for k, channel in enumerate(bone.channels):
            if channel[0] == "t" and positions == "replace":
                values[:, k] -= bone.offset["xyz".index(channel[1])]
    inside = sum(bone.parent >= 0 and bool(bone.positions) for bone in recording.bones)
    if inside:
        what = "added to" if positions == "add" else "taken instead of"
        recording.report.note(
            f"position channels of {inside} inner joints are {what} their OFFSET (positions={positions!r})"
        )
    return recording


def _scale(recording: Recording, scale: float | None, height: float | None) -> float:
    """Return the metres per file unit, and report how they were found."""
    if scale is not None:
        return scale
    tall = stature(recording.bones)
    if height is not None:
        if not tall > 0.0:
            raise FileError(f"{recording.file}: the skeleton has no extent; give scale=… instead of height=…")
        return height / tall
    report = recording.report
    if recording.unit is not None:
        report.note(
            f"scale: by the file, its unit is {recording.unit:.6g} m; "
            f"the figure is {tall * recording.unit:.3g} m tall"
        )
        return recording.unit
    low, high = LIKELY_HEIGHTS
    guesses = [
        f"{unit} (scale={size:.6g})" for unit, size in LIKELY_UNITS.items() if low < tall * size < high
    ]
    guess = f"; the unit may be {' or '.join(guesses)}" if guesses else "; give scale=… or height=…"
    report.note(
        f"scale: the file has no units, 1 m is taken for one; the figure is {tall:.4g} units tall{guess}"
    )
    return 1.0


def _paths(path: object) -> list[Path]:
    if isinstance(path, str | os.PathLike):
        return [Path(path)]
    if isinstance(path, Sequence) and all(isinstance(one, str | os.PathLike) for one in path):
        return [Path(one) for one in path]
    raise ArgumentError(f'load_motion takes a path or a pair ("x.asf", "x.amc"), not {type(path).__name__}')


def _require_frames(file: str, count: int, skip: int) -> None:
    if skip >= count:
        raise ArgumentError(f"{file} has {count} frames; skip={skip} leaves none")


def _from_frame(recording: Recording, skip: int) -> Recording:
    """Return the recording without its first frames; warn if it begins with a jump."""
    _require_frames(recording.file, len(recording.time), skip)
    left = len(recording.time) - skip
    recording = replace(recording, values=recording.values[skip:], time=recording.time[:left])
    turns = [channel[0] == "r" for bone in recording.bones for channel in bone.channels]
    steps = _angle_steps(recording.values[:12, turns]).max(axis=1, initial=0.0)
    if len(steps) > 2 and steps[0] > max(0.1, 5.0 * steps[1:].max()):
        recording.report.warn(
            f"the first frame is {math.degrees(steps[0]):.0f} degrees away from the second; "
            "it may be a rest pose: skip=1 leaves it out"
        )
    return recording


def _note_jumps(recording: Recording) -> None:
    """Warn of Euler angles that jump near gimbal lock, where their rates are meaningless."""
    for bone, values in bone_columns(recording):
        turns = [channel[0] == "r" for channel in bone.channels]
        steps = _angle_steps(values[:, turns]).max(axis=1, initial=0.0)
        if sum(turns) == 3 and (jumps := np.flatnonzero(steps > math.pi / 2.0)).size:
            recording.report.warn(
                f'the Euler angles of "{bone.name}" jump after frame {jumps[0] + 1}, {len(jumps)} times; '
                'rotations="quaternion" has no such jumps'
            )


def _angle_steps(angles: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the shorter angle between consecutive frames [rad]."""
    return np.asarray(np.abs((np.diff(angles, axis=0) + math.pi) % (2.0 * math.pi) - math.pi), np.float64)
