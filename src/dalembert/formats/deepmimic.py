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
import numpy.typing as npt

from dalembert.errors import FileError
from dalembert.formats.document import MAX_FILE_BYTES
from dalembert.formats.report import Report
from dalembert.formats.resources import read_regular_file

__all__ = ["JOINTS", "DeepMimicClip", "read_deepmimic"]

Array = npt.NDArray[np.float64]

JOINTS: Final = {
    "root": 7,
    "chest": 4,
    "neck": 4,
    "right_hip": 4,
    "right_knee": 1,
    "right_ankle": 4,
    "right_shoulder": 4,
    "right_elbow": 1,
    "left_hip": 4,
    "left_knee": 1,
    "left_ankle": 4,
    "left_shoulder": 4,
    "left_elbow": 1,
}
"""How many numbers of a frame belong to each joint, in their order; the duration comes before them."""

NOTED_DEVIATION: Final = 1e-3
"""A length farther from 1 than the rounding of the files explains."""
WIDTH: Final = 1 + sum(JOINTS.values())
UNIT_TOLERANCE: Final = 0.5
"""Quaternions farther from unit length are refused; the others are normalised. Published clips are up to 0.4
off.
"""


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
    content = _object(path)
    rows = content.get("Frames")
    if not isinstance(rows, list) or not rows:
        raise FileError(f'{path.name}: a DeepMimic clip has "Frames": [[…], …], a list that is not empty')
    loop = content.get("Loop", "none")
    if loop not in ("wrap", "none", True, False, "true", "false"):
        raise FileError(f'{path.name}: "Loop" is {str(loop)[:40]!r}; it can be "wrap" or "none"')
    frames = np.array([_row(path.name, number, row) for number, row in enumerate(rows, 1)])
    durations = frames[:, 0]
    for number, duration in enumerate(durations[:-1], 1):
        if duration <= 0.0:
            raise FileError(f"{path.name}: frame {number} lasts {duration} s; durations must be positive")
    values = frames[:, 1:].copy()
    start, farthest = 0, 0.0
    for joint, size in JOINTS.items():
        if size > 1:
            quaternion = values[:, start + size - 4 : start + size]
            norm = np.linalg.norm(quaternion, axis=1)
            bad = np.flatnonzero(np.abs(norm - 1.0) > UNIT_TOLERANCE)
            if len(bad):
                raise FileError(
                    f'{path.name}: frame {bad[0] + 1}, joint "{joint}": the quaternion has the length '
                    f"{norm[bad[0]]:.4g}, not 1; are these frames of another character?"
                )
            quaternion /= norm[:, None]
            farthest = max(farthest, float(np.abs(norm - 1.0).max()))
        start += size
    time = np.concatenate([[0.0], np.cumsum(durations[:-1])])
    if not np.isfinite(time[-1]) or not (np.diff(time) > 0.0).all():
        raise FileError(
            f"{path.name}: frames of {durations.min():g} to {durations.max():g} s differ too much to be "
            "added up; correct the durations"
        )
    report = Report()
    if farthest > NOTED_DEVIATION:
        report.repair(f"quaternions are normalised; their lengths were off 1 by up to {farthest:.2g}")
    for key in content:
        if key not in ("Loop", "Frames"):
            report.note(f'ignored: "{key[:40]}"')
    return DeepMimicClip(path.name, time, values, loop in ("wrap", "true", True), report)


def _object(path: Path) -> Mapping[str, Any]:
    def refuse(constant: str) -> NoReturn:
        raise FileError(f"{path.name}: {constant} in the file; give finite numbers")

    try:
        content = json.loads(read_regular_file(path, limit=MAX_FILE_BYTES), parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise FileError(
            f"{path.name} line {error.lineno} column {error.colno}: not JSON: {error.msg}; "
            "the file may be truncated"
        ) from None
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


def _row(file: str, number: int, row: object) -> list[float]:
    if not isinstance(row, list) or len(row) != WIDTH:
        found = f"{len(row)} numbers" if isinstance(row, list) else type(row).__name__
        raise FileError(
            f"{file}: frame {number} is {found}; a frame of the DeepMimic humanoid has {WIDTH} numbers"
        )
    values = []
    for value in row:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FileError(f"{file}: frame {number} holds {str(value)[:40]!r}, which is not a number")
        try:
            values.append(float(value))
        except OverflowError:
            values.append(math.inf)
    if not all(map(math.isfinite, values)):
        raise FileError(f"{file}: frame {number} holds a number that is not finite")
    return values
