"""Model files that come inside packages, each loaded by us and by another engine and compared.

URDF files are compared with Pinocchio (`file_pinocchio`), MJCF files with MuJoCo (`file_mujoco`). A file of
which the mass matrix, the bias forces and the forward dynamics are the same at 20 random moving states
agrees; a file that we refuse has the refusal's reason.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

import dalembert as da
from dalembert import algorithms
from dalembert.errors import FileError

Array = np.ndarray[Any, np.dtype[np.float64]]

STATES = 20
TOLERANCE = 1e-8

SINGULAR = 1e13
"""The condition number of M from which on it counts as singular."""

ARMATURE = 0.01
"""What joints are given in both engines where M is singular [kg m^2 or kg]."""

URDF_PACKAGES = ("example-robot-data", "upkie-description", "jvrc-description")
MJCF_PACKAGES = ("dm-control", "gymnasium")
SLOW_URDF_PACKAGES = ("pybullet",)
SLOW_MJCF_PACKAGES = ("robosuite", "gymnasium-robotics", "mujoco-mjx", "mujoco-warp", "brax")


@dataclass(frozen=True)
class ModelFile:
    """A file inside an installed package; `name` is how tables and tests call it.

    `root` is the package's own folder: meshes and textures may be named anywhere in it.
    """

    name: str
    path: Path
    root: Path


def files_of(packages: Sequence[str], ending: str) -> list[ModelFile]:
    """Every file with that ending in the packages, called by as many parts of its path as tell it apart."""
    found = []
    for package in packages:
        listed = importlib.metadata.files(package) or []
        inside = sorted(PurePosixPath(str(file)).parts for file in listed if file.suffix == ending)
        root = Path(str(importlib.metadata.distribution(package).locate_file("")))
        for parts in inside:
            count = next(n for n in range(1, len(parts) + 1) if _matches(inside, parts[-n:]) == 1)
            found.append(
                ModelFile("/".join((package, *parts[-count:])), root.joinpath(*parts), root / parts[0])
            )
    return found


def _matches(paths: Sequence[tuple[str, ...]], ending: tuple[str, ...]) -> int:
    return sum(path[-len(ending) :] == ending for path in paths)


@dataclass(frozen=True)
class Difference:
    """The largest differences over all states, each of the largest number of its state.

    Bias forces are measured by the forces of a unit acceleration where these are larger. `constraints` is how
    differently the engines see couplings and loops. `singular`: the mass matrix is, so that both engines were
    given armature.
    """

    mass_matrix: float
    bias: float
    forward: float
    constraints: float = 0.0
    singular: bool = False

    @property
    def agrees(self) -> bool:
        return max(self.mass_matrix, self.bias, self.forward, self.constraints) <= TOLERANCE


@dataclass(frozen=True)
class Row:
    """What became of one file.

    `nv` is the peer's, if it loads the file; `refusal` and `peer_refusal` are the reasons that are given for
    not loading it; `fault` is anything that should not have happened.
    """

    name: str
    nv: int | None = None
    difference: Difference | None = None
    refusal: str | None = None
    peer_refusal: str | None = None
    fault: str | None = None

    @property
    def agrees(self) -> bool:
        return self.fault is None and self.difference is not None and self.difference.agrees

    @property
    def kind(self) -> str:
        """One word for the totals."""
        if self.fault is not None:
            return "fault"
        if self.peer_refusal is not None:
            return "peer refuses"
        if self.refusal is not None:
            return "empty" if self.nv == 0 else "refused"
        return "agrees" if self.agrees else "differs"

    @property
    def verdict(self) -> str:
        """The kind and what explains it."""
        reasons = {
            "fault": self.fault,
            "peer refuses": f"{self.peer_refusal}; ours: {self.refusal or 'loads'}",
            "refused": self.refusal,
            "empty": self.refusal,
            "differs": str(self.difference),
        }
        if self.kind in reasons:
            return f"{self.kind}: {reasons[self.kind]}"
        singular = self.difference is not None and self.difference.singular
        return "agrees; M is singular, so with armature" if singular else "agrees"


def row_of(
    file: ModelFile,
    load_peer: Callable[[Path], Any],
    compare: Callable[[da.Model, Any], Difference],
    peer_nv: Callable[[Any], int],
    **options: Any,
) -> Row:
    """Load a file in both engines and compare."""
    row = Row(file.name)
    peer = None
    try:
        peer = load_peer(file.path)
        row = replace(row, nv=peer_nv(peer))
    except Exception as error:  # each peer has exceptions of its own
        row = replace(row, peer_refusal=first_line(error).replace(str(file.path.parent) + "/", ""))
    try:
        model = da.load(file.path, **options)
        return row if peer is None else replace(row, difference=compare(model, peer))
    except FileError as error:
        return replace(row, refusal=first_line(error).replace(str(file.path.parent) + "/", ""))
    except Exception as error:  # to be seen in the table beside all others
        return replace(row, fault=f"{type(error).__name__}: {first_line(error)}")


def merged(rows: Sequence[Row]) -> Row:
    """One row for a file that was loaded in several ways: the worst of those in which anything moves."""
    moving = [row for row in rows if row.kind != "empty"]
    if not moving:
        return rows[0]
    for row in moving:
        if row.difference is None or row.fault is not None:
            return row
    figures = [astuple(row.difference) for row in moving if row.difference is not None]
    return replace(moving[0], difference=Difference(*(max(column) for column in zip(*figures))))


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def scalars(array: Array) -> list[Array]:
    """The last axis as a sequence of scalars, each an array with one element a state."""
    return [np.ascontiguousarray(array[..., i]) for i in range(array.shape[-1])]


def dense(values: Any, states: int = STATES) -> Array:
    """Nested sequences of scalars, some of them plain numbers, as an array with the states first."""
    if isinstance(values, (list, tuple)):
        if not values:
            return np.zeros((states, 0))
        return np.stack([dense(value, states) for value in values], axis=1)
    return np.broadcast_to(np.asarray(values, dtype=float), (states,))


def relative(ours: Array, theirs: Array, least: Array | float = 0.0) -> float:
    """The largest difference of a state, of the largest number of that state; NaN is infinitely wrong."""
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    inner = tuple(range(1, theirs.ndim))
    error = np.abs(ours - theirs).max(axis=inner, initial=0.0)
    scale = np.maximum(np.abs(theirs).max(axis=inner, initial=0.0), least)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(error == 0.0, 0.0, error / scale)
    return float(np.nan_to_num(ratio, nan=np.inf).max(initial=0.0))


def by_algorithms(model: da.Model, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array]:
    """M, C and the acceleration by the algorithms on NumPy scalars, one state an element."""
    x, rate = scalars(q), scalars(v)
    with np.errstate(all="ignore"):
        return (
            dense(algorithms.mass_matrix(model, x)).reshape(STATES, model.nv, model.nv),
            dense(algorithms.bias_forces(model, x, rate)),
            dense(algorithms.forward_dynamics(model, x, rate, scalars(tau))),
        )


def by_compiled_functions(model: da.Model, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array]:
    """M, C and the acceleration by the public functions."""
    return da.mass_matrix(model, q), da.bias_forces(model, q, v), da.forward_dynamics(model, q, v, tau)


def difference_of(ours: tuple[Array, Array, Array], theirs: tuple[Array, Array, Array]) -> Difference:
    """Compare (M, C, a) of both engines."""
    M, C, a = theirs
    unit = np.abs(M).max(axis=(1, 2), initial=0.0)
    return Difference(relative(ours[0], M), relative(ours[1], C, unit), relative(ours[2], a))
