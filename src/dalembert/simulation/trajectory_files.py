"""Trajectories in files: `.npz` holds all of one, `.parquet` is a table for other programs."""

from __future__ import annotations

import json
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dalembert.errors import ArgumentError, FileError, MissingExtraError
from dalembert.model.model import Model

if TYPE_CHECKING:
    from dalembert.simulation.trajectory import Trajectory

__all__ = ["arrays_of", "load", "save"]

FORMAT: Final = "dalembert trajectory 1"
ARRAYS: Final = ("time", "q", "v", "tau", "failed_at", "cause")
CONTACTS: Final = ("force", "position", "gap")
DAMAGED: Final = (
    ValueError, TypeError, KeyError, EOFError, RuntimeError, SyntaxError, MemoryError,
    struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What readers of archives and arrays raise about bytes that are none."""
ENDINGS: Final = (".npz", ".parquet", ".html")


def save(trajectory: Trajectory, path: Path) -> None:
    """Write the file that the ending of the path says."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise FileError(
            f"{path}: a trajectory is saved as {', '.join(ENDINGS)}, not as {ending or 'no ending'}"
        )
    try:
        if ending == ".npz":
            _save_npz(trajectory, path)
        elif ending == ".parquet":
            _save_parquet(trajectory, path)
        else:
            from dalembert import viewer

            viewer.record(trajectory, path)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}") from error


def arrays_of(path: Path) -> dict[str, Any]:
    """The arrays of an `.npz` file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (OSError, *DAMAGED) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else "it is no .npz file"
        raise FileError(f"{path} cannot be read: {what}") from error


def load(path: Path) -> Trajectory:
    """The trajectory that `save` wrote as `.npz`."""
    from dalembert.simulation.trajectory import ContactRecord, Trajectory

    content = arrays_of(path)
    try:
        head = json.loads(str(content["head"]))
        if head["format"] != FORMAT:
            raise FileError(f'{path}: the format is "{head["format"]}"; this version reads "{FORMAT}"')
        contacts = None
        if head["contacts"] is not None:
            names = tuple((first, second) for first, second in head["contacts"])
            contacts = ContactRecord(names, *(content[f"contact {name}"] for name in CONTACTS))
        return Trajectory(
            model=Model.from_json(head["model"]),
            **{name: content[name] for name in ARRAYS},
            contacts=contacts,
            observed={name: content[f"observed {name}"] for name in head["observed"]},
            interrupted=bool(head["interrupted"]),
            parameters={name: content[f"parameter {name}"] for name in head.get("parameters", ())},
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} holds no trajectory of dalembert: {error}") from error


def _save_npz(trajectory: Trajectory, path: Path) -> None:
    contacts = trajectory.contacts
    head = {
        "format": FORMAT,
        "model": trajectory.model.to_json(),
        "contacts": None if contacts is None else contacts.names,
        "observed": list(trajectory.observed),
        "interrupted": trajectory.interrupted,
        "parameters": list(trajectory.parameters),
    }
    arrays: dict[str, Any] = {name: getattr(trajectory, name) for name in ARRAYS}
    if contacts is not None:
        arrays |= {f"contact {name}": getattr(contacts, name) for name in CONTACTS}
    arrays |= {f"observed {name}": array for name, array in trajectory.observed.items()}
    arrays |= {f"parameter {name}": array for name, array in trajectory.parameters.items()}
    with path.open("wb") as file:
        np.savez_compressed(file, head=np.array(json.dumps(head)), **arrays)


def _save_parquet(trajectory: Trajectory, path: Path) -> None:
    """One row a sample and frame: sample, frame, time, q_0 …, v_0 …, tau_0 … (none in the first frame), and
    what was observed."""
    try:
        import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError(
            "writing .parquet needs pyarrow: pip install 'dalembert[parquet]'; .npz needs nothing"
        ) from error
    samples, frames = trajectory.failed_at.size, len(trajectory)
    if samples == 0:
        raise ArgumentError("a batch without samples is no table; save it as .npz")
    shape = (*trajectory.batch, frames)
    columns: dict[str, Any] = {
        "sample": np.repeat(np.arange(samples), frames),
        "frame": np.tile(np.arange(frames), samples),
        "time": np.broadcast_to(trajectory.time, shape).ravel(),
    }
    missing = np.full((*trajectory.batch, 1, trajectory.model.nv), np.nan)
    tables = {"q": trajectory.q, "v": trajectory.v, "tau": np.concatenate([missing, trajectory.tau], axis=-2)}
    for name, array in (*tables.items(), *trajectory.observed.items()):
        flat = array.reshape(samples * frames, -1)
        single = array.shape == shape
        own = {name if single else f"{name}_{k}": flat[:, k] for k in range(flat.shape[1])}
        if taken := [column for column in (*own, name) if column in columns]:
            raise ArgumentError(f'the table has a column "{taken[0]}" already; observe it under another name')
        columns |= own
    table = pyarrow.table(columns)
    model = {b"dalembert model": trajectory.model.to_json().encode()}
    parquet.write_table(table.replace_schema_metadata(model), path)
