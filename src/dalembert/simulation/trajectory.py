"""The result of a simulation: states at frames, forces, contacts, the outcome of each sample; its files."""

from __future__ import annotations

import importlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from dalembert.api.records import Poses
from dalembert.call.arguments import Array
from dalembert.errors import (
    ArgumentError,
    DalembertError,
    DtypeError,
    FileError,
    MissingExtraError,
    OutOfRangeError,
    ShapeError,
)
from dalembert.formats.meshes import resolve_allowed_meshes
from dalembert.formats.npz import MAX_RATIO, SMALL_BYTES, Archive, open_archive
from dalembert.formats.resources import Resources, reported_as_file_errors
from dalembert.host.atomic_files import replacing
from dalembert.host.foreign_arrays import is_on_gpu
from dalembert.model.model import Model
from dalembert.model.storage import parse
from dalembert.motion.clip import MAX_GHOSTS, Clip, ContactForces, Frames, nearest_frames
from dalembert.motion.differentiation import spline_slopes
from dalembert.simulation.initial_state import of_samples


class SimulationWarning(RuntimeWarning):
    """A warning about a simulation: failed samples, shapes that overlap at the start."""


@final
@dataclass(frozen=True, eq=False)
class ContactRecord:
    """Contact points in the step that led to each frame but the first, or in the last step of a `Simulation`,
    without the axis T.

    `force (…, T, nc, 3)` [N] along world axes, on the second of the two that `names` gives for each of the
    nc points; `position (…, T, nc, 3)` [m] in the world and `gap (…, T, nc)` [m], where the step began.
    """

    names: tuple[tuple[str, str], ...]
    force: Array
    position: Array
    gap: Array

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, key: Any) -> ContactRecord:
        """Return the record of one sample, or of several."""
        return replace(self, force=self.force[key], position=self.position[key], gap=self.gap[key])

    def __repr__(self) -> str:
        return f"<ContactRecord of {len(self)} points, gaps {self.gap.shape}>"


@final
@dataclass(frozen=True, eq=False)
class Trajectory:
    """A simulated motion of one sample, or of a batch of any shape.

    `time (T+1,)` [s], or `(…, T+1)` if samples have different time steps; `q (…, T+1, nq)`,
    `v (…, T+1, nv)` of the frames, the first one the start; `tau (…, T, nv)` the joint forces in the step
    that led to each frame but the first; `contacts`, where there was contact; `observed` by name,
    `(…, T+1, …)`.

    `failed_at (…,)`: the step at which a sample failed, -1 for samples without failure; it stays in its last
    valid state from there on; `cause (…,)` says why. `energy_gain (…,)` [J]: energy that no work
    explains, where it is above 1 % of a sample's peak kinetic energy, else zero: such motion
    is wrong, take smaller steps. `interrupted`: the rollout was stopped by Ctrl-C; the
    trajectory holds the frames until then. `parameters`: values of the model that were given to the rollout,
    for all samples or for each. A rollout of arrays on a GPU has its arrays there, `cause` by number;
    `numpy()` copies it to the host.

    >>> trajectory = da.rollout(da.models.pendulum(), [0.1], [0.0], steps=3, dt=0.01)
    >>> trajectory
    <Trajectory of "pendulum": 4 frames, 0.03 s>
    >>> trajectory.q.shape, trajectory.tau.shape
    ((4, 1), (3, 1))
    """

    model: Model
    time: Array
    q: Array
    v: Array
    tau: Array
    contacts: ContactRecord | None = None
    observed: Mapping[str, Array] = field(default_factory=dict)
    failed_at: Array = field(default_factory=lambda: np.array(-1))
    cause: Array = field(default_factory=lambda: np.array(""))
    energy_gain: Array = field(default_factory=lambda: np.array(0.0))
    interrupted: bool = False
    parameters: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model):
            raise DtypeError(f"Trajectory: model is {type(self.model).__name__}; a Model is expected")
        batch, frames = self.q.shape[:-2], self.q.shape[-2]
        expected = {
            "q": (*batch, frames, self.model.nq),
            "v": (*batch, frames, self.model.nv),
            "tau": (*batch, frames - 1, self.model.nv),
        }
        for name, shape in expected.items():
            if getattr(self, name).shape != shape:
                raise ShapeError(f"Trajectory: {name} has the shape {getattr(self, name).shape}, not {shape}")
        if self.time.shape not in ((frames,), (*batch, frames)):
            raise ShapeError(f"Trajectory: time has the shape {self.time.shape}, not {(frames,)}")
        for name in ("failed_at", "cause", "energy_gain") if not self.on_gpu else ():
            object.__setattr__(self, name, np.broadcast_to(getattr(self, name), batch))

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape of the batch; () for one sample."""
        return self.q.shape[:-2]

    @property
    def duration(self) -> float:
        """Time from the first frame to the last [s], the longest of the samples'."""
        spans = self.time[..., -1] - self.time[..., 0]
        return float(np.max(spans, initial=0.0) if isinstance(spans, np.ndarray | float) else spans.max())

    @property
    def failed(self) -> Array:
        """The samples that failed, a mask `(…,)`."""
        return self.failed_at >= 0 if self.on_gpu else np.asarray(self.failed_at >= 0)

    @property
    def on_gpu(self) -> bool:
        """True if the arrays are on a GPU."""
        return is_on_gpu(self.q)

    def __len__(self) -> int:
        """Return the number of frames, T + 1."""
        return int(self.q.shape[-2])

    def __iter__(self) -> Iterator[Trajectory]:
        """Yield the samples along the first axis of the batch."""
        if not self.batch:
            raise DtypeError("this trajectory is one sample; its frames are in its arrays, trajectory.q")
        return (self[k] for k in range(self.batch[0]))

    def __getitem__(self, key: Any) -> Trajectory:
        """Return one sample or several: `trajectory[3]`, `trajectory[1:4]`, `trajectory[2, 0]`."""
        if not self.batch:
            raise OutOfRangeError(
                "this trajectory is one sample; its frames are in its arrays: trajectory.q[3]"
            )
        try:
            failed_at = self.failed_at[key] if self.on_gpu else np.asarray(self.failed_at[key])
        except IndexError as error:
            raise OutOfRangeError(
                f"there is no sample {key}; the batch has the shape {self.batch}"
            ) from error
        return replace(
            self,
            time=self.time if self.time.ndim == 1 else self.time[key],
            q=self.q[key],
            v=self.v[key],
            tau=self.tau[key],
            contacts=None if self.contacts is None else self.contacts[key],
            observed={name: array[key] for name, array in self.observed.items()},
            failed_at=failed_at,
            cause=self.cause[key] if self.on_gpu else np.asarray(self.cause[key]),
            energy_gain=self.energy_gain[key] if self.on_gpu else np.asarray(self.energy_gain[key]),
            parameters=of_samples(self.model, self.parameters, self.batch, key),
        )

    def numpy(self) -> Trajectory:
        """Return the trajectory with its arrays on the host; copies from a GPU, and waits for it."""
        from dalembert.simulation.gpu_rollouts import on_host

        return on_host(self) if self.on_gpu else self

    def simulated_model(self) -> Model:
        """Return the model with the values that one sample was simulated with."""
        if self.batch and self.parameters:
            raise ArgumentError(
                f"samples have models of their own; choose one sample of {self.batch}: "
                "trajectory[0].simulated_model()"
            )
        values = {name: value if value.ndim else float(value) for name, value in self.parameters.items()}
        return self.model.with_values(values, inertia="as_given") if values else self.model

    def poses(self) -> Poses:
        """Compute the poses of the bodies: `(…, T+1, n_bodies)` rotations and translations in the world."""
        from dalembert.simulation.observers import poses_of

        return poses_of(self.model, self.time, self.q, self.parameters)

    def energy(self) -> Array:
        """Compute kinetic energy plus the potential energy of gravity, `(…, T+1)` [J]; joint springs are not
        included.
        """
        from dalembert.simulation.observers import evaluate_observers

        return evaluate_observers(self.model, {"energy": None}, self.time, self.q, self.v, self.parameters)[
            "energy"
        ]

    def clip(self) -> Clip:
        """Return one sample as a `Clip`, with accelerations of splines through its velocities."""
        if self.batch:
            raise ArgumentError(
                f"a clip is the motion of one sample; choose one of {self.batch}: trajectory[0].clip()"
            )
        a = spline_slopes(self.time, self.v) if len(self) > 1 else np.zeros_like(self.v)
        return Clip(self.simulated_model(), self.time, self.q, self.v, a)

    def __frames__(self, fps: float) -> Frames:
        """Return one sample to show; of a batch the first, with others as ghosts."""
        if math.prod(self.batch) == 0:
            raise ArgumentError(f"the trajectory has the batch {self.batch}: there is no sample to show")
        first = self[(0,) * len(self.batch)] if self.batch else self
        end = "The simulation was interrupted." if self.interrupted else ""
        if first.failed_at >= 0:
            end = f"The simulation could not take step {int(first.failed_at)}: {first.cause}"
        contacts = first.contacts if len(first) > 1 else None
        others = self.q.reshape(-1, len(self), self.model.nq)[1 : 1 + MAX_GHOSTS]
        if self.time.ndim > 1:  # samples with steps of their own, at the nearest of their frames
            times = self.time.reshape(-1, len(self))[1 : 1 + MAX_GHOSTS]
            others = np.array([q[nearest_frames(own, first.time)] for q, own in zip(others, times)])
        return Frames(
            first.simulated_model(),
            first.time,
            first.q,
            first.v,
            first.tau if len(first) > 1 else None,
            None if contacts is None else ContactForces(contacts.force, contacts.position),
            others if len(others) else None,
            end,
        )

    def save(self, path: str | Path) -> None:
        """Write a file: `.npz` (all of it, with the model), `.parquet` (a table for other programs, one row a
        sample and frame, without contacts; needs pyarrow) or `.html` (a recording to look at in a browser).
        An earlier file of that name is replaced only once the new one is complete.
        """
        target = Path(path)
        ending = target.suffix.lower()
        if ending not in _WRITERS:
            raise FileError(
                f"{path}: a trajectory is saved as {', '.join(_WRITERS)}, not as {ending or 'no ending'}"
            )
        _WRITERS[ending](self, target)

    @staticmethod
    def load(
        path: str | Path, *, roots: Sequence[str | os.PathLike[str]] = (), trusted: bool = False
    ) -> Trajectory:
        """Read what `save` wrote as `.npz`.

        Meshes of the model are read below the file's folder and the folders `roots`, anywhere if the file is
        `trusted`; others are not read, and `model.report` says so. A file that would unpack to more than 200
        times its size is refused.
        """
        with reported_as_file_errors(str(path)), open_archive(path) as archive:
            archive.check_sizes()
            try:
                head = _read_head(archive)
                resources = Resources(Path(path).parent, [Path(root) for root in roots], trusted=trusted)
                model = resolve_allowed_meshes(Model.from_json(head["model"]), resources)
                return _read_trajectory(archive, head, model)
            except FileError:
                raise
            except DalembertError as error:
                raise FileError(f"{path} holds no trajectory of dalembert: {error}") from error

    def __repr__(self) -> str:
        batch = (
            f" x {len(self.failed_at)}" if len(self.batch) == 1 else f" x {self.batch}" if self.batch else ""
        )
        failed = 0 if self.on_gpu else int(np.count_nonzero(self.failed))
        return (
            f'<Trajectory of "{self.model.name}"{batch}: {len(self)} frames, {self.duration:.6g} s'
            + (f", {len(self.contacts)} contact points" if self.contacts is not None else "")
            + (f", {failed} failed" if failed else "")
            + (", interrupted" if self.interrupted else "")
            + (", on a GPU" if self.on_gpu else "")
            + ">"
        )


# Files: `.npz` holds all of a trajectory, `.parquet` is a table for other programs.

FORMAT: Final = "dalembert trajectory 1"
ARRAYS: Final = {"time": "f", "q": "f", "v": "f", "tau": "f"}
OUTCOMES: Final = {"failed_at": "i", "cause": "U", "energy_gain": "f"}
"""The arrays of frames and of samples, and the kinds of their elements."""
LATER_OUTCOMES: Final = ["energy_gain"]
"""Outcomes that files of earlier versions lack."""
CONTACTS: Final = {"force": (3,), "position": (3,), "gap": ()}
"""The arrays of contacts and their axes after those of frames and contact points."""


def _read_head(archive: Archive) -> dict[str, Any]:
    """Return what the archive says about itself, with entries of the types that `save` writes."""
    said = parse(archive.text("head")) if "head" in archive.names else None
    if not isinstance(said, dict) or "format" not in said:
        raise FileError(f"{archive.path} holds no trajectory of dalembert: it has no head")
    if said["format"] != FORMAT:
        raise FileError(
            f'{archive.path}: the format is "{str(said["format"])[:60]}"; this version reads "{FORMAT}"'
        )
    head: dict[str, Any] = {"parameters": [], "outcomes": [], **said}  # which earlier versions did not write
    for name, is_valid in _HEAD.items():
        if name not in head or not is_valid(head[name]):
            raise FileError(f'{archive.path} holds no trajectory of dalembert: "{name}" is not as saved')
    names = {"head", *ARRAYS, "failed_at", "cause", *head["outcomes"]}
    names |= {f"observed {name}" for name in head["observed"]}
    names |= {f"parameter {name}" for name in head["parameters"]}
    archive.check_names(names | {f"contact {name}" for name in CONTACTS if head["contacts"] is not None})
    return head


def _are_names(entry: Any) -> bool:
    return (
        isinstance(entry, list) and all(isinstance(x, str) for x in entry) and len(set(entry)) == len(entry)
    )


def _are_pairs(entry: Any) -> bool:
    return isinstance(entry, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, str) for x in pair) for pair in entry
    )


_HEAD: Final[dict[str, Callable[[Any], bool]]] = {
    "model": lambda entry: isinstance(entry, str),
    "contacts": lambda entry: entry is None or _are_pairs(entry),
    "observed": _are_names,
    "interrupted": lambda entry: isinstance(entry, bool),
    "parameters": _are_names,
    "outcomes": lambda entry: entry in ([], LATER_OUTCOMES),
}
"""Whether an entry of the head is as `save` writes it."""


def _read_trajectory(archive: Archive, head: dict[str, Any], model: Model) -> Trajectory:
    def read(name: str, kinds: str, *shapes: tuple[int, ...]) -> Array:
        """Return an array, of one of the shapes where they are known."""
        array = archive.array(name, kinds)
        if shapes and array.shape not in shapes:
            raise FileError(f'{archive.path}: "{name[:60]}" has the shape {array.shape}, not {shapes[-1]}')
        return array

    arrays = {name: read(name, kinds) for name, kinds in ARRAYS.items()}
    if arrays["q"].ndim < 2:
        raise FileError(f'{archive.path}: "q" has the shape {arrays["q"].shape}; frames are missing')
    *batch, frames = arrays["q"].shape[:-1]
    observed = {name: read(f"observed {name}", "fib") for name in head["observed"]}
    for name, array in observed.items():
        if array.shape[: len(batch) + 1] != (*batch, frames):
            raise FileError(
                f'{archive.path}: "observed {name[:60]}" has the shape {array.shape}; '
                f"it begins with {(*batch, frames)}"
            )
    arrays |= {
        name: read(name, kinds, tuple(batch)) for name, kinds in OUTCOMES.items() if name in archive.names
    }
    contacts = None
    if head["contacts"] is not None:
        points = (*batch, frames - 1, len(head["contacts"]))
        values = (read(f"contact {name}", "f", (*points, *axes)) for name, axes in CONTACTS.items())
        contacts = ContactRecord(tuple((first, second) for first, second in head["contacts"]), *values)
    own = {name: np.shape(model.value(name)) for name in head["parameters"]}
    parameters = {name: read(f"parameter {name}", "fi", own[name], (*batch, *own[name])) for name in own}
    return Trajectory(
        model=model,
        **arrays,
        contacts=contacts,
        observed=observed,
        interrupted=head["interrupted"],
        parameters=parameters,
    )


def _save_npz(trajectory: Trajectory, path: Path) -> None:
    contacts = trajectory.contacts
    head = {
        "format": FORMAT,
        "model": trajectory.model.to_json(),
        "contacts": None if contacts is None else contacts.names,
        "observed": list(trajectory.observed),
        "interrupted": trajectory.interrupted,
        "parameters": list(trajectory.parameters),
        "outcomes": LATER_OUTCOMES,
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
    """Write one row per sample and frame: sample, frame, time, q, v, tau (NaN in the first one), observed."""
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


_WRITERS: Final[dict[str, Callable[[Trajectory, Path], None]]] = {
    ".npz": _save_npz,
    ".parquet": _save_parquet,
    ".html": _save_html,
}
"""The writer of a trajectory by the ending of the file."""
