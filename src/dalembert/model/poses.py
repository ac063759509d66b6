"""Named poses of a model, and configurations from them and from the positions of joints by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, ModelError, ShapeError, UnknownNameError
from dalembert.model import checks

if TYPE_CHECKING:
    from dalembert.model.body import JointView
    from dalembert.model.joints import Joint
    from dalembert.model.model import Model

Array: TypeAlias = npt.NDArray[np.float64]
Position: TypeAlias = float | Sequence[float] | Array
"""The position of a joint [rad or m]: a number, or its nq numbers."""


@dataclass(frozen=True, slots=True)
class NamedPose:
    """Positions of joints under a name, such as a keyframe of MJCF or a group state of SRDF.

    Each joint has its nq numbers [rad or m]; joints that are not listed are neutral.
    """

    name: str
    positions: tuple[tuple[str, tuple[float, ...]], ...]


def checked_positions(given: Mapping[str, Position], what: str) -> dict[str, tuple[float, ...]]:
    """Return the positions of joints as tuples of finite numbers."""
    if not isinstance(given, Mapping):
        raise ModelError(f"{what}: positions are given by the names of joints, as in {{'knee': 0.5}}")
    found = {}
    for joint, position in given.items():
        of = f'{what}: the position of joint "{joint}"'
        numbers = np.asarray(position).ravel().tolist()
        if not numbers or not all(checks.is_finite(x) for x in numbers):
            raise ModelError(f"{of} is {position!r}; give finite numbers [rad or m]")
        found[joint] = tuple(float(x) for x in numbers)
    return found


def merged_poses(first: NamedPose, second: NamedPose) -> NamedPose:
    """Return one pose of two that have the same name and no joint in common."""
    both = {joint for joint, _ in first.positions} & {joint for joint, _ in second.positions}
    if both:
        raise ModelError(
            f'pose "{first.name}" is added twice, each time with joint "{min(both)}"; choose another name'
        )
    return NamedPose(first.name, (*first.positions, *second.positions))


def require_fitting(pose: NamedPose, joints: Mapping[str, Joint]) -> None:
    """Refuse a pose that names unknown joints, or has another number of positions for one."""
    what = f'pose "{pose.name}"'
    for name, numbers in pose.positions:
        nq = checks.require_known(joints, name, what, "joint").nq
        if len(numbers) != nq:
            raise ModelError(f'{what}: joint "{name}" has {nq} positions, {len(numbers)} are given')


def pose(
    model: Model,
    base: str | npt.ArrayLike | None = None,
    positions: Mapping[str, Position] | None = None,
    /,
    **joints: Position,
) -> Array:
    """Return q `(nq,)` from a pose and the positions of joints by name [rad or m].

    `base`: the name of one of `model.poses`, such as a keyframe, "qpos0" for the pose in which an MJCF file
    places its bodies, or "neutral"; or q `(nq,)`; None: neutral. Joints by name replace its positions, as
    keywords or, where names are not words of Python, in a dict `positions`. A joint of several coordinates
    takes all its nq numbers; quaternions are normalised. Nothing is checked against limits.

    >>> model = da.models.humanoid()
    >>> q = model.pose(left_knee=0.5, right_knee=0.5)
    >>> print(q[model.joint("left_knee").q_slice], np.count_nonzero(q - model.neutral()))
    [0.5] 2
    """
    q = _base(model, base)
    for name, value in {**dict(positions or {}), **joints}.items():
        view = model.joint(name)
        numbers = checked_positions({name: value}, "pose")[name]
        if view.body.dependence is not None:
            raise ArgumentError(
                f'pose: joint "{name}" follows {_leaders(model, view)}; give the positions of those'
            )
        if len(numbers) != view.nq:
            raise ShapeError(f'pose: joint "{name}" has {view.nq} positions, {len(numbers)} are given')
        q[view.q_slice] = view.joint.normalize(list(numbers))
    return q


def _base(model: Model, base: str | npt.ArrayLike | None) -> Array:
    """Return the configuration to begin with, as an array of its own."""
    if base is None or (isinstance(base, str) and base == "neutral" and not model.poses.has(base)):
        return model.neutral()
    if not isinstance(base, str):
        q = np.array(base, dtype=np.float64)
        if q.shape != (model.nq,):
            raise ShapeError(f"pose: the base has the shape {q.shape}; this model takes ({model.nq},)")
        return q
    if not model.poses.has(base):
        raise UnknownNameError.of("pose", base, ("neutral", *model.poses.names))
    q = model.neutral()
    for name, numbers in model.poses[base].positions:
        view = model.joint(name)
        if view.body.dependence is None:  # others follow their couplings
            q[view.q_slice] = view.joint.normalize(list(numbers))
    return q


def _leaders(model: Model, view: JointView) -> str:
    """Return the names of the joints that a dependent joint follows."""
    assert view.body.dependence is not None
    places = {place for place, _, _ in view.body.dependence.terms}
    return ", ".join(
        f'"{joint.name}"' for joint in model.joints if joint.nq == 1 and joint.q_slice.start in places
    )
