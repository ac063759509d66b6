"""The result of a simulation: states at frames, forces, contacts, and the outcome of each sample."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.api.records import Poses
from dalembert.errors import ArgumentError, DtypeError, OutOfRangeError, ShapeError
from dalembert.host.foreign_arrays import is_on_gpu
from dalembert.model.model import Model
from dalembert.motion.clip import MAX_GHOSTS, Clip, ContactForces, Frames, nearest_frames
from dalembert.motion.differentiation import spline_slopes
from dalembert.simulation.initial_state import of_samples

Array: TypeAlias = npt.NDArray[Any]


class SimulationWarning(RuntimeWarning):
    """A warning about a simulation: failed samples, shapes that overlap at the start."""


@final
@dataclass(frozen=True, eq=False)
class ContactRecord:
    """Contact points in the step that led to each frame but the first.

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
        return f"<ContactRecord of {len(self)} points, {self.gap.shape[-2]} frames>"


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
    explains (`energy_watch`), where it is above 1 % of a sample's peak kinetic energy, else zero: such motion
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
        from dalembert.simulation.trajectory_files import save

        save(self, Path(path))

    @staticmethod
    def load(
        path: str | Path, *, roots: Sequence[str | os.PathLike[str]] = (), trusted: bool = False
    ) -> Trajectory:
        """Read what `save` wrote as `.npz`.

        Meshes of the model are read below the file's folder and the folders `roots`, anywhere if the file is
        `trusted`; others are not read, and `model.report` says so. A file that would unpack to more than 200
        times its size is refused.
        """
        from dalembert.simulation.trajectory_files import load

        return load(Path(path), roots=roots, trusted=trusted)

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
