"""Reading the files that a command names, and printing what was found in them."""

import argparse
import contextlib
import inspect
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import dalembert as da
from dalembert import formats, models
from dalembert.errors import ArgumentError, DalembertError, UnknownNameError
from dalembert.formats.resources import read_regular_file

FORMATS: Final = {
    ".urdf": "URDF",
    ".xml": "MJCF",
    ".mjcf": "MJCF",
    ".json": "dalembert model",
    ".bvh": "BVH motion",
    ".asf": "ASF skeleton with AMC motion",
    ".txt": "DeepMimic clip",
}

_CONTROLS: Final = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
}


@final
@dataclass(frozen=True, slots=True)
class Content:
    """A model, and the clip of a motion file."""

    path: str
    format: str
    model: da.Model
    clip: Any = None


class NotUnderstood(Exception):
    """The files that a command names, or what is asked of them, were not understood."""

    def __init__(self, files: Sequence[str], reason: DalembertError) -> None:
        super().__init__(str(reason))
        self.files = files


@contextlib.contextmanager
def understanding(files: Sequence[str]) -> Iterator[None]:
    """Turn errors of the library inside the block into `NotUnderstood`."""
    try:
        yield
    except DalembertError as error:
        raise NotUnderstood(files, error) from error


def content(files: Sequence[str], options: argparse.Namespace) -> Content:
    """Read the content of one file, of a skeleton and its motion, or a bundled model by its name."""
    with understanding(files):
        return _content(files, options)


def _content(files: Sequence[str], options: argparse.Namespace) -> Content:
    endings = [Path(file).suffix.lower() for file in files]
    if sorted(endings) == [".amc", ".asf"]:
        skeleton, motion = sorted(files, key=lambda file: Path(file).suffix.lower(), reverse=True)
        model, clip = da.load_motion((skeleton, motion), **_motion_options(options))
        return Content(f"{skeleton} {motion}", FORMATS[".asf"], model, clip)
    if len(files) != 1:
        raise ArgumentError(
            f"{len(files)} files were named; name one, or a skeleton (.asf) and its motion (.amc)"
        )
    if endings[0] in (".asf", ".amc"):
        raise ArgumentError(f"{files[0]} is half of a motion; name the .asf and the .amc file")
    if endings[0] in (".bvh", ".txt") or (endings[0] == ".json" and _is_clip(files[0])):
        model, clip = da.load_motion(files[0], **_motion_options(options))
        kind = ".bvh" if endings[0] == ".bvh" else ".txt"
        return Content(files[0], FORMATS[kind], model, clip)
    if not endings[0] and not Path(files[0]).exists():
        return Content(files[0], "bundled model", _bundled_model(files[0]))
    model = da.load(files[0], **model_options(options))
    return Content(files[0], FORMATS.get(endings[0], endings[0]), model)


def _bundled_model(name: str) -> da.Model:
    if name not in models.__all__:
        raise UnknownNameError.of("file or bundled model", name, sorted(models.__all__))
    make = getattr(models, name)
    parameters = inspect.signature(make).parameters.values()
    if any(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise ArgumentError(f'"{name}" needs arguments; save a model of it to a file and name that')
    model: da.Model = make()
    return model


def _is_clip(file: str) -> bool:
    """Return whether a .json file is a motion, not a model; `load` reports what is wrong with other files."""
    try:
        start = read_regular_file(file, limit=formats.MAX_FILE_BYTES)[:1024]
    except DalembertError:
        return False
    return b"dalembert-model" not in start and (b'"Loop"' in start or b'"Frames"' in start)


def model_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `da.load` that were given."""
    names = {"root": "root", "inertia": "inertia", "trusted": "trust", "roots": "allow"}
    given = {name: getattr(options, own) for name, own in names.items()}
    return {name: value for name, value in given.items() if value}


def _motion_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `da.load_motion` that were given."""
    names = ("up", "scale", "mass", "height", "frame_time", "skip")
    given = {name: getattr(options, name, None) for name in names}
    return {name: value for name, value in given.items() if value is not None}


def complain(text: str) -> None:
    """Print an error, without letting names out of a file steer the terminal."""
    print(f"dalembert: {text}".translate(_CONTROLS), file=sys.stderr)


def say(text: str = "") -> None:
    """Print text that may hold names out of a file, without letting them steer the terminal."""
    print(text.translate(_CONTROLS))


def say_json(value: object) -> None:
    """Print JSON as the standard has it: no NaN and no infinity."""
    print(json.dumps(value, indent=2, allow_nan=False))


def finite(value: float) -> float | None:
    """Return a number for JSON; None for an infinite one (no limit)."""
    return float(value) if math.isfinite(value) else None


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1) -> str:
    """Return a text table: the first `names` columns aligned to the left, the others to the right."""
    cells = [list(headers), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    lines = [
        "  ".join(
            cell.ljust(width) if column < names else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)
