"""Targets of frames for inverse kinematics: the accepted forms, and how they are read and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dalembert.api.calls import Array, ArrayLike, known_frame
from dalembert.call.arguments import ArrayArgument, as_array, broadcast_batches
from dalembert.compiler.lowering import QUATERNION_TOLERANCE
from dalembert.errors import ArgumentError, ShapeError, StateError, UnknownNameError
from dalembert.host.foreign_arrays import require_numpy
from dalembert.model.configuration import unit_quaternions
from dalembert.model.model import Model
from dalembert.spatial import Placement

ROTATION_TOLERANCE = 1e-5
"""Largest deviation of a target's R^T R from the identity; single precision is much nearer."""


class TargetPart(NamedTuple):
    """A target: its frame, the prescribed parts of its pose, and the weights (position, orientation)."""

    frame: str
    rotation: Array | None
    translation: Array | None
    weights: tuple[float, float]

    @property
    def arrays(self) -> dict[str, tuple[Array, int]]:
        """The prescribed parts by kind, each with its number of axes beside those of a batch."""
        given = {"rotation": (self.rotation, 2), "position": (self.translation, 1)}
        return {kind: (array, axes) for kind, (array, axes) in given.items() if array is not None}


def read_targets(model: Model, targets: object, weights: Mapping[str, Any] | None) -> list[TargetPart]:
    """Return the targets, read from the forms that `inverse_kinematics` accepts, with their weights."""
    if not isinstance(targets, Mapping) or not targets:
        raise ArgumentError(
            'inverse_kinematics: targets is a mapping by frame, such as {"hand": [0.4, 0.0, 0.9]}; '
            f"got {targets!r}"
        )
    by_frame = _read_weights(targets, weights)
    parts = []
    for name, given in targets.items():
        if model.frame(known_frame(model, name)).body < 0:
            raise ArgumentError(
                f'inverse_kinematics: frame "{name}" is fixed in the world and reaches nothing'
            )
        rotation, translation = _read_pose(name, given)
        weight = by_frame.get(name, (1.0, 1.0))
        rotation = rotation if weight[1] > 0.0 else None
        translation = translation if weight[0] > 0.0 else None
        if rotation is None and translation is None:
            raise ArgumentError(
                f'inverse_kinematics: the target of "{name}" prescribes nothing; give a position or a '
                "rotation and a positive weight, or leave it out"
            )
        parts.append(TargetPart(name, rotation, translation, weight))
    return parts


def _read_pose(name: str, given: Any) -> tuple[Array | None, Array | None]:
    """Return rotation (…, 3, 3) and translation (…, 3) of a target, None for a part that is left free."""
    what = f'target "{name}"'
    if isinstance(given, Placement):
        given = (given.R.to_list(), given.p.to_list())
    if isinstance(given, tuple) and len(given) == 2:
        R = None if given[0] is None else read_array(f"{what}, rotation", given[0], (3, 3))
        p = None if given[1] is None else read_array(f"{what}, translation", given[1], (3,))
    else:
        try:
            shape = np.shape(given)
        except ValueError:
            raise ShapeError(
                f"{what} is no array: its parts differ in shape; a rotation and a translation are a pair in "
                "round brackets, (R, p)"
            ) from None
        if shape[-2:] == (4, 4):
            X = read_array(what, given, (4, 4))
            if not np.allclose(
                X[..., 3, :], [0.0, 0.0, 0.0, 1.0], rtol=0.0, atol=ROTATION_TOLERANCE, equal_nan=True
            ):
                raise StateError(
                    f"{what}: the last row of a homogeneous matrix is 0 0 0 1, got {X[..., 3, :].tolist()}; "
                    "the translation stands in the last column"
                )
            R, p = X[..., :3, :3], X[..., :3, 3]
        elif shape[-1:] == (3,):
            R, p = None, read_array(what, given, (3,))
        else:
            raise ShapeError(
                f"{what} has shape {shape}, expected a position (…, 3), a matrix (…, 4, 4), or a pair "
                "(rotation, translation)"
            )
    return None if R is None else _rotation(what, R), p


def _rotation(what: str, R: Array) -> Array:
    """Return the rotations orthonormalised to rounding: the nearest one is R (R^T R)^-1/2."""
    off = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3))
    with np.errstate(invalid="ignore"):  # samples that are no numbers stay so
        determinant = np.linalg.det(R)
    if np.any(off > ROTATION_TOLERANCE) or np.any(determinant < 0.0):
        raise StateError(
            f"{what}: the rotation must be a right-handed orthonormal matrix; R^T R is off one by "
            f"{np.nanmax(off):.3g}, the determinant is {np.nanmin(determinant):.3g}"
        )
    for _ in range(2):  # each doubles the digits
        R = R @ (1.5 * np.eye(3) - 0.5 * np.swapaxes(R, -1, -2) @ R)
    return R


def _read_weights(
    targets: Mapping[str, Any], weights: Mapping[str, Any] | None
) -> dict[str, tuple[float, float]]:
    """Return the weights (position, orientation) by frame."""
    if weights is None:
        return {}
    if not isinstance(weights, Mapping):
        raise ArgumentError(f"inverse_kinematics: weights is a mapping by frame; got {weights!r}")
    found = {}
    for name, given in weights.items():
        if name not in targets:
            raise UnknownNameError.of("target with a weight", name, tuple(targets))
        try:
            pair = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            pair = np.zeros(0)
        if pair.shape not in ((), (2,)) or not np.all(np.isfinite(pair) & (pair >= 0.0)):
            raise ArgumentError(
                f'inverse_kinematics: the weight of "{name}" is {given!r}; give a number or a pair '
                "(position, orientation), not negative"
            )
        both = np.broadcast_to(pair, (2,)).tolist()
        found[name] = (both[0], both[1])
    return found


def read_configuration(model: Model, name: str, given: ArrayLike) -> Array:
    q = read_array(name, given, (model.nq,))
    for place in unit_quaternions(model):
        off = np.abs(np.linalg.norm(q[..., place], axis=-1) - 1.0)
        if np.any(off > QUATERNION_TOLERANCE["float64"]):
            raise StateError(
                f"{name}[{place.start}:{place.stop}]: a quaternion must have unit norm, this one is off by "
                f"{np.nanmax(off):.3g}; normalize it first, for instance with da.dynamics.normalize(model, q)"
            )
    return q


def read_array(name: str, given: ArrayLike, shape: tuple[int, ...]) -> Array:
    require_numpy(name, given)
    array: Array = as_array(name, given, shape, follow=True).astype(np.float64)
    return array


def broadcast_samples(given: Mapping[str, tuple[Array, int]]) -> tuple[tuple[int, ...], dict[str, Array]]:
    """Return the common batch shape of arrays, given with their numbers of own axes, and all samples."""
    arrays = [array for array, _ in given.values()]
    signature = [ArrayArgument(name, array.shape[array.ndim - own :]) for name, (array, own) in given.items()]
    _, batch = broadcast_batches(signature, [array.shape for array in arrays])
    samples = {}
    for item, array in zip(signature, arrays, strict=True):
        whole = np.broadcast_to(array, (*batch, *item.shape)).reshape(math.prod(batch), *item.shape)
        samples[item.name] = np.ascontiguousarray(whole)
    return batch, samples
