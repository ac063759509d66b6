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

URDF_PACKAGES = ("example-robot-data", "upkie-description", "jvrc-description")
MJCF_PACKAGES = ("dm-control", "gymnasium")
SLOW_URDF_PACKAGES = ("pybullet",)
SLOW_MJCF_PACKAGES = ("robosuite", "gymnasium-robotics", "mujoco-mjx", "mujoco-warp", "brax")


@dataclass(frozen=True)
class ModelFile:
    """A file inside an installed package; `name` is how tables and tests call it."""

    name: str
    path: Path


def files_of(packages: Sequence[str], ending: str) -> list[ModelFile]:
    """Every file with that ending in the packages, called by as many parts of its path as tell it apart."""
    found = []
    for package in packages:
        listed = importlib.metadata.files(package) or []
        inside = sorted(PurePosixPath(str(file)).parts for file in listed if file.suffix == ending)
        root = Path(str(importlib.metadata.distribution(package).locate_file("")))
        for parts in inside:
            count = next(n for n in range(1, len(parts) + 1) if _matches(inside, parts[-n:]) == 1)
            found.append(ModelFile("/".join((package, *parts[-count:])), root.joinpath(*parts)))
    return found


def _matches(paths: Sequence[tuple[str, ...]], ending: tuple[str, ...]) -> int:
    return sum(path[-len(ending) :] == ending for path in paths)


@dataclass(frozen=True)
class Difference:
    """The largest differences over all states, each of the largest number of its state."""

    mass_matrix: float
    bias: float
    forward: float

    @property
    def agrees(self) -> bool:
        return max(self.mass_matrix, self.bias, self.forward) <= TOLERANCE


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
        return f"{self.kind}: {reasons[self.kind]}" if self.kind in reasons else self.kind


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
    """One row for a file that was loaded in several ways: the worst of each."""
    first = rows[0]
    bad = next((row for row in rows if row.kind not in ("agrees", "empty")), None)
    if bad is not None or first.difference is None:
        return bad or first
    differences = [row.difference for row in rows if row.difference is not None]
    return replace(first, difference=Difference(*(max(x) for x in zip(*map(astuple, differences)))))


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


def relative(ours: Array, theirs: Array) -> float:
    """The largest difference of a state, of the largest number of that state; NaN is infinitely wrong."""
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    inner = tuple(range(1, theirs.ndim))
    error = np.abs(ours - theirs).max(axis=inner, initial=0.0)
    scale = np.abs(theirs).max(axis=inner, initial=0.0)
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
    return Difference(*(relative(mine, other) for mine, other in zip(ours, theirs)))
