"""DeepMimic clips (.json, .txt): frames of numbers for one character, the humanoid of Peng et al. 2018.

A frame is its duration [s], the root's position [m] and quaternion (w, x, y, z), then for each joint in
`JOINTS` a quaternion or, for knees and elbows, one angle [rad]: 44 numbers. x points forward, y up, z to the
right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, final

import numpy as np

from dalembert.errors import FileError
from dalembert.formats.mocap import Array
from dalembert.formats.resources import MAX_FILE_BYTES, Report, read_regular_file

JOINTS: Final = {"root": 7, "chest": 4, "neck": 4} | {
    f"{side}_{part}": size
    for side in ("right", "left")
    for part, size in {"hip": 4, "knee": 1, "ankle": 4, "shoulder": 4, "elbow": 1}.items()
}
"""How many numbers of a frame belong to each joint, in their order; the duration comes before them."""

FRAME_WIDTH: Final = 1 + sum(JOINTS.values())
MAX_UNREPORTED_DEVIATION: Final = 1e-3
"""Deviation from unit length that the rounding of the files explains."""
MAX_DEVIATION: Final = 0.5
"""Quaternions farther from unit length are rejected, others normalised. Published clips are up to 0.4 off."""


@final
@dataclass(frozen=True, slots=True)
class DeepMimicClip:
    """`time (T,)` [s], `values (T, 43)` as in the file, quaternions of unit length; `loop`: it is a cycle."""

    file: str
    time: Array
    values: Array
    loop: bool
    report: Report


def read_deepmimic(path: Path) -> DeepMimicClip:
    """Read the clip in a DeepMimic file."""
    content, report = _object(path), Report()
    rows, loop = content.get("Frames"), content.get("Loop", "none")
    if not isinstance(rows, list) or not rows:
        raise FileError(f'{path.name}: a DeepMimic clip has "Frames": [[…], …], a list that is not empty')
    if loop not in ("wrap", "none", True, False, "true", "false"):
        raise FileError(f'{path.name}: "Loop" is {str(loop)[:40]!r}; it can be "wrap" or "none"')
    frames = np.array([_row(f"{path.name}: frame {number}", row) for number, row in enumerate(rows, 1)])
    values = frames[:, 1:].copy()
    start, farthest = 0, 0.0
    for joint, size in JOINTS.items():
        start += size
        if size == 1:
            continue
        quaternion = values[:, start - 4 : start]
        norm = np.linalg.norm(quaternion, axis=1)
        if len(bad := np.flatnonzero(np.abs(norm - 1.0) > MAX_DEVIATION)):
            raise FileError(
                f'{path.name}: frame {bad[0] + 1}, joint "{joint}": the quaternion has the length '
                f"{norm[bad[0]]:.4g}, not 1; are these frames of another character?"
            )
        quaternion /= norm[:, None]
        farthest = max(farthest, float(np.abs(norm - 1.0).max()))
    if farthest > MAX_UNREPORTED_DEVIATION:
        report.repair(f"quaternions are normalised; their lengths were off 1 by up to {farthest:.2g}")
    for key in content:
        if key not in ("Loop", "Frames"):
            report.note(f'ignored: "{key[:40]}"')
    time = _times(path.name, frames[:, 0])
    return DeepMimicClip(path.name, time, values, loop in ("wrap", "true", True), report)


def _times(file: str, durations: Array) -> Array:
    if len(bad := np.flatnonzero(durations[:-1] <= 0.0)):
        raise FileError(f"{file}: frame {bad[0] + 1} lasts {durations[bad[0]]} s; durations must be positive")
    time = np.concatenate([[0.0], np.cumsum(durations[:-1])])
    if not np.isfinite(time[-1]) or not (np.diff(time) > 0.0).all():
        raise FileError(
            f"{file}: frames of {durations.min():g} to {durations.max():g} s differ too much to be added "
            "up; correct the durations"
        )
    return time


def _object(path: Path) -> Mapping[str, Any]:
    def reject(constant: str) -> NoReturn:
        raise FileError(f"{path.name}: {constant} in the file; give finite numbers")

    try:
        content = json.loads(read_regular_file(path, limit=MAX_FILE_BYTES), parse_constant=reject)
    except json.JSONDecodeError as error:
        place = f"{path.name} line {error.lineno} column {error.colno}"
        raise FileError(f"{place}: not JSON: {error.msg}; the file may be truncated") from None
    except UnicodeDecodeError:
        raise FileError(f"{path.name}: not JSON: the file is not text") from None
    except FileError:
        raise
    except ValueError as error:  # whole numbers of thousands of digits
        raise FileError(f"{path.name}: not JSON: {error}") from None
    except RecursionError:
        raise FileError(f"{path.name}: lists inside lists without end; a clip is a list of frames") from None
    if not isinstance(content, dict):
        raise FileError(f'{path.name}: a DeepMimic clip is an object with "Loop" and "Frames"')
    return content


def _row(place: str, row: object) -> list[float]:
    if not isinstance(row, list) or len(row) != FRAME_WIDTH:
        found = f"{len(row)} numbers" if isinstance(row, list) else type(row).__name__
        raise FileError(f"{place} is {found}; a frame of the DeepMimic humanoid has {FRAME_WIDTH} numbers")
    values = []
    for value in row:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FileError(f"{place} holds {str(value)[:40]!r}, which is not a number")
        try:
            values.append(float(value))
        except OverflowError:
            values.append(math.inf)
    if not all(map(math.isfinite, values)):
        raise FileError(f"{place} holds a number that is not finite")
    return values
