"""Trajectories in files: `.npz` holds all of one, `.parquet` is a table for other programs."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, DalembertError, FileError, MissingExtraError
from dalembert.formats.meshes import resolve_allowed_meshes
from dalembert.formats.npz import MAX_RATIO, SMALL_BYTES, Archive, open_archive
from dalembert.formats.resources import Resources, reported_as_file_errors
from dalembert.host.atomic_files import replacing
from dalembert.model.model import Model
from dalembert.model.storage import parse

if TYPE_CHECKING:
    from dalembert.simulation.trajectory import ContactRecord, Trajectory

FORMAT: Final = "dalembert trajectory 1"
ARRAYS: Final = {"time": "f", "q": "f", "v": "f", "tau": "f", "failed_at": "i", "cause": "U"}
OUTCOMES: Final = {"energy_gain": "f"}
"""The arrays of every trajectory and the kinds of their elements."""
CONTACTS: Final = {"force": (3,), "position": (3,), "gap": ()}
"""The arrays of contacts and their axes after those of frames and contact points."""
OBSERVED_KINDS: Final = "fib"


def save(trajectory: Trajectory, path: Path) -> None:
    """Write the file that the ending of the path says; an earlier one stays until that is complete."""
    ending = path.suffix.lower()
    if ending not in WRITERS:
        raise FileError(
            f"{path}: a trajectory is saved as {', '.join(WRITERS)}, not as {ending or 'no ending'}"
        )
    WRITERS[ending](trajectory, path)


def arrays_of(path: Path, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Return those arrays of an `.npz` file that are there, as real numbers."""
    with open_archive(path) as archive:
        return {name: archive.array(name, "fi") for name in names if name in archive.names}


def load(path: Path, *, roots: Sequence[str | os.PathLike[str]] = (), trusted: bool = False) -> Trajectory:
    """Return the trajectory that `save` wrote as `.npz`; arguments as in `Trajectory.load`."""
    with reported_as_file_errors(str(path)), open_archive(path) as archive:
        archive.check_sizes()
        try:
            head = _head(archive)
            archive.check_names(_expected_names(head))
            resources = Resources(path.parent, [Path(root) for root in roots], trusted=trusted)
            return _trajectory(
                archive, head, resolve_allowed_meshes(Model.from_json(head["model"]), resources)
            )
        except FileError:
            raise
        except DalembertError as error:
            raise FileError(f"{path} holds no trajectory of dalembert: {error}") from error


def _head(archive: Archive) -> dict[str, Any]:
    """Return the part that says what the archive holds, with entries of the types that `save` writes."""
    if "head" not in archive.names:
        raise FileError(f"{archive.path} holds no trajectory of dalembert: it has no head")
    head = parse(archive.text("head"))
    if not isinstance(head, dict) or "format" not in head:
        raise FileError(f"{archive.path} holds no trajectory of dalembert: it has no head")
    if head["format"] != FORMAT:
        raise FileError(
            f'{archive.path}: the format is "{str(head["format"])[:60]}"; this version reads "{FORMAT}"'
        )
    head = {"parameters": [], "outcomes": [], **head}  # which earlier versions did not write
    checks: dict[str, Callable[[Any], bool]] = {
        "model": lambda entry: isinstance(entry, str),
        "contacts": lambda entry: entry is None or _are_pairs(entry),
        "observed": _are_names,
        "interrupted": lambda entry: isinstance(entry, bool),
        "parameters": _are_names,
        "outcomes": lambda entry: entry in ([], list(OUTCOMES)),
    }
    for name, check in checks.items():
        if name not in head or not check(head[name]):
            raise FileError(f'{archive.path} holds no trajectory of dalembert: "{name}" is not as saved')
    return head


def _are_names(entry: Any) -> bool:
    return (
        isinstance(entry, list) and all(isinstance(x, str) for x in entry) and len(set(entry)) == len(entry)
    )


def _are_pairs(entry: Any) -> bool:
    return isinstance(entry, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, str) for x in pair) for pair in entry
    )


def _expected_names(head: dict[str, Any]) -> set[str]:
    names = {"head", *ARRAYS, *head["outcomes"], *(f"observed {name}" for name in head["observed"])}
    names |= {f"parameter {name}" for name in head["parameters"]}
    return names | {f"contact {name}" for name in CONTACTS} if head["contacts"] is not None else names


def _trajectory(archive: Archive, head: dict[str, Any], model: Model) -> Trajectory:
    from dalembert.simulation.trajectory import Trajectory

    arrays = {name: archive.array(name, kinds) for name, kinds in ARRAYS.items()}
    arrays |= {name: archive.array(name, OUTCOMES[name]) for name in head["outcomes"]}
    frames = arrays["q"].shape[:-1]
    if not frames:
        raise FileError(f'{archive.path}: "q" has the shape {arrays["q"].shape}; frames are missing')
    observed = {name: archive.array(f"observed {name}", OBSERVED_KINDS) for name in head["observed"]}
    for name, array in observed.items():
        if array.shape[: len(frames)] != frames:
            raise FileError(
                f'{archive.path}: "observed {name[:60]}" has the shape {array.shape}; it begins with {frames}'
            )
    for name in ("failed_at", "cause", *head["outcomes"]):
        if arrays[name].shape != frames[:-1]:
            raise FileError(f'{archive.path}: "{name}" has the shape {arrays[name].shape}, not {frames[:-1]}')
    return Trajectory(
        model=model,
        **arrays,
        contacts=None if head["contacts"] is None else _contacts(archive, head["contacts"], frames),
        observed=observed,
        interrupted=head["interrupted"],
        parameters={name: _parameter(archive, model, name, frames[:-1]) for name in head["parameters"]},
    )


def _parameter(archive: Archive, model: Model, name: str, batch: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return a value of the model, for all samples or for each."""
    array = archive.array(f"parameter {name}", "fi")
    own = np.shape(model.value(name))
    if array.shape not in (own, (*batch, *own)):
        raise FileError(
            f'{archive.path}: "parameter {name[:60]}" has the shape {array.shape}, not {(*batch, *own)}'
        )
    return array


def _contacts(archive: Archive, pairs: list[list[str]], frames: tuple[int, ...]) -> ContactRecord:
    from dalembert.simulation.trajectory import ContactRecord

    arrays = {name: archive.array(f"contact {name}", "f") for name in CONTACTS}
    points = (*frames[:-1], frames[-1] - 1, len(pairs))
    for name, axes in CONTACTS.items():
        if arrays[name].shape != (*points, *axes):
            raise FileError(
                f'{archive.path}: "contact {name}" has the shape {arrays[name].shape}, not {(*points, *axes)}'
            )
    return ContactRecord(tuple((first, second) for first, second in pairs), **arrays)


def _save_npz(trajectory: Trajectory, path: Path) -> None:
    contacts = trajectory.contacts
    head = {
        "format": FORMAT,
        "model": trajectory.model.to_json(),
        "contacts": None if contacts is None else contacts.names,
        "observed": list(trajectory.observed),
        "interrupted": trajectory.interrupted,
        "parameters": list(trajectory.parameters),
        "outcomes": list(OUTCOMES),
    }
    arrays: dict[str, Any] = {"head": np.array(json.dumps(head))}
    arrays |= {name: getattr(trajectory, name) for name in (*ARRAYS, *OUTCOMES)}
    if contacts is not None:
        arrays |= {f"contact {name}": getattr(contacts, name) for name in CONTACTS}
    arrays |= {f"observed {name}": array for name, array in trajectory.observed.items()}
    arrays |= {f"parameter {name}": array for name, array in trajectory.parameters.items()}
    with replacing(path) as file:
        np.savez_compressed(file, **arrays)
        whole = sum(np.asarray(array).nbytes for array in arrays.values())
        # Nothing but zeros packs 1000 times smaller, and readers take such a file for a bomb.
        if file.seekable() and whole > SMALL_BYTES and whole > MAX_RATIO // 2 * file.tell():
            file.seek(0)
            file.truncate()
            np.savez(file, **arrays)


def _save_parquet(trajectory: Trajectory, path: Path) -> None:
    """Write one row per sample and frame: sample, frame, time, q_0 …, v_0 …, tau_0 … (none in the first
    frame), and what was observed.
    """
    try:
        import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError(
            "writing .parquet needs pyarrow: pip install 'dalembert[parquet]'; .npz needs nothing"
        ) from error
    samples, frames = trajectory.failed_at.size, len(trajectory)
    if samples == 0:
        raise ArgumentError("a batch without samples is not a table; save it as .npz")
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
    with replacing(path) as file:
        parquet.write_table(table.replace_schema_metadata(model), file)


def _save_html(trajectory: Trajectory, path: Path) -> None:
    # By name, since the viewer is a room above this one; it is imported when it is first asked for.
    importlib.import_module("dalembert.viewer").record(trajectory, path)


WRITERS: Final[dict[str, Callable[[Trajectory, Path], None]]] = {
    ".npz": _save_npz,
    ".parquet": _save_parquet,
    ".html": _save_html,
}
"""The writer of a trajectory by the ending of the file."""
