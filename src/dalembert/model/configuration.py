"""The configuration space of a model: integration, difference and normalisation of q, and named poses.

q + v is not an addition where q holds quaternions: `integrate` moves along a constant velocity, `difference`
is its inverse. Generic over scalars; q has nq entries, v and displacements nv.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError, ModelError, ShapeError, UnknownNameError
from dalembert.model import checks
from dalembert.model.body import Body, bounds_of
from dalembert.scalar import Scalar

if TYPE_CHECKING:
    from dalembert.model.body import JointView
    from dalembert.model.joints import Joint
    from dalembert.model.model import Model
    from dalembert.model.tree import Tree

Array: TypeAlias = npt.NDArray[np.float64]


def neutral(model: Model) -> list[float]:
    """Return q at zero displacement: zero angles and lengths, unit quaternions (1, 0, 0, 0)."""
    return [x for body in _independent(model) for x in body.joint.neutral()]


def integrate(model: Model, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
    """Return the configuration q exp(dv) `(…, nq)`: q moved for unit time at the velocity dv. Pass `v * dt`.

    `dv`: `(…, nv)` [rad or m]. Coordinates add where v = dq/dt; quaternions, planar and free joints use the
    exponential of SO(3), SE(2), SE(3), so that positions stay on the manifold.

    >>> builder = da.ModelBuilder()
    >>> solid = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    >>> _ = builder.add_body("ball", "world", da.Spherical(), inertia=solid)
    >>> model = builder.build()
    >>> q = da.integrate(model, model.neutral(), [0.0, 0.0, np.pi / 2])  # a quarter turn about z
    >>> print(q.round(6), round(float(np.linalg.norm(q)), 12))
    [0.707107 0.       0.       0.707107] 1.0
    """
    return [x for body in _independent(model) for x in body.joint.integrate(body.own_q(q), body.own_v(dv))]


def difference(model: Model, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
    """Return the displacement dv `(…, nv)` [rad or m] at q0 with `integrate(model, q0, dv) = q1`.

    It is q1 - q0 on the manifold, expressed in the velocity variables at q0. For quaternions it is the
    shorter rotation.

    >>> model = da.models.humanoid()
    >>> q0, q1 = model.random_state(1)[0], model.random_state(2)[0]
    >>> dv = da.difference(model, q0, q1)
    >>> back = da.integrate(model, q0, dv)
    >>> print(model.nq - dv.size, np.abs(da.difference(model, back, q1)).max() < 1e-12)
    3 True
    """
    return [x for body in _independent(model) for x in body.joint.difference(body.own_q(q0), body.own_q(q1))]


def normalize(model: Model, q: Sequence[Scalar]) -> list[Scalar]:
    """Return q `(…, nq)` with its quaternions scaled to unit norm, p' = p / |p|; nothing else changes.

    A quaternion without a direction is rejected (`check`): zero, NaN, or so long or short that the square of
    its norm is infinite or zero. Featherstone 2008 section 4.5.

    >>> model = da.models.humanoid()
    >>> q = model.neutral()
    >>> q[3:7] *= 1.001  # the root's quaternion, a little off
    >>> print(round(float(np.linalg.norm(da.dynamics.normalize(model, q)[3:7])), 12))
    1.0
    """
    return [x for body in _independent(model) for x in body.joint.normalize(body.own_q(q))]


def position_rate(model: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """Return dq/dt = Q(q) v, nq entries (Featherstone 2008 Eq. 3.5)."""
    return [x for body in _independent(model) for x in body.joint.position_rate(body.own_q(q), body.own_v(v))]


def unit_quaternions(model: Model) -> tuple[slice, ...]:
    """Return the slices of q that hold unit quaternions."""
    return tuple(
        slice(body.q_slice.start + part.start, body.q_slice.start + part.stop)
        for body in _independent(model)
        for part in body.joint.unit_quaternions
    )


def random_state(model: Model, seed: int | np.random.Generator) -> tuple[Array, Array]:
    """Draw q `(nq,)` uniformly within the limits and v `(nv,)` from a unit normal distribution, clipped to
    the speed limits; the same seed gives the same state.

    A joint without limits is drawn over a full turn or from -1 to 1 m. If a dependent joint follows a single
    other one, its limits bound that one too.
    """
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0
    if not whole and not isinstance(seed, np.random.Generator):
        raise ArgumentError("random_state: seed is a whole number that is not negative, or a NumPy Generator")
    rng = np.random.default_rng(seed)
    q: list[float] = []
    v: list[float] = []
    bounds = _coupled_bounds(model)
    for body in _independent(model):
        limits = bounds_of(body, "lower"), bounds_of(body, "upper")
        q.extend(body.joint.random(rng, *bounds.get(body.index, limits)))
        speed = np.array(bounds_of(body, "velocity"))
        v.extend(np.clip(rng.standard_normal(body.nv), -speed, speed).tolist())
    return np.array(q, dtype=np.float64), np.array(v, dtype=np.float64)


def _coupled_bounds(model: Model) -> dict[int, tuple[tuple[float, ...], tuple[float, ...]]]:
    """Return the tighter limits of joints that others follow, by body index."""
    at = {body.q_slice.start: body for body in model.bodies if body.dependence is None and body.nq == 1}
    bounds: dict[int, tuple[tuple[float, ...], tuple[float, ...]]] = {}
    for body in model.bodies:
        if body.dependence is None or len(body.dependence.terms) != 1:
            continue
        (place, _, ratio), offset = body.dependence.terms[0], body.dependence.offset
        if ratio == 0.0:
            continue
        leader = at[place]
        (low,), (high,) = bounds.get(leader.index, (bounds_of(leader, "lower"), bounds_of(leader, "upper")))
        ends = [(limit - offset) / ratio for limit in bounds_of(body, "lower") + bounds_of(body, "upper")]
        low, high = max(low, min(ends)), min(high, max(ends))
        if low <= high:
            bounds[leader.index] = (low,), (high,)
    return bounds


def _independent(model: Tree) -> list[Body]:
    return [body for body in model.bodies if body.dependence is None]


# Named poses of a model, and configurations from them and from the positions of joints by name.

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
