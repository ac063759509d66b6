"""One moving body with the joint that connects it to its parent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Protocol, TypeVar, overload

from dalembert.errors import ModelError, OutOfRangeError, UnknownNameError
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import Motion, Placement, RigidInertia, ScrewChain, Transform

if TYPE_CHECKING:
    from dalembert.model.joints import Joint
    from dalembert.model.shapes import Shape


PER_VELOCITY: Final = ("armature", "damping", "friction", "stiffness")
"""Fields of a body with a number for each velocity variable of its joint."""

LIMITS: Final = {"lower": "nq", "upper": "nq", "velocity": "nv", "effort": "nv"}
"""Fields of `Limits` with how many numbers each has."""

JOINT_VALUES: Final = {**dict.fromkeys(PER_VELOCITY, "nv"), "rest": "nq", **LIMITS}
"""The numbers of a joint with how many there are of each: its nq or its nv."""

LOOP_PLACEMENTS: Final = ("placement_predecessor", "placement_successor")


def link_transform(placement: Placement, X_J: Placement) -> Placement:
    """Return the child frame placed in its parent: i_X_lambda = X_J X_T, Featherstone 2008 section 4.2.

    Axial screws stay factored, since two of them cost less than one general transform (Table A.5).
    """
    if isinstance(placement, Transform) or isinstance(X_J, Transform):
        return placement.as_transform() @ X_J
    return ScrewChain((*_factors(placement), *_factors(X_J)))


def _factors(placement: Placement) -> tuple[Placement, ...]:
    return tuple(placement.factors) if isinstance(placement, ScrewChain) else (placement,)


class JointMotion(NamedTuple):
    """The quantities of a joint at one instant (the book's jcalc), in the child's coordinates.

    `X`: the child placed in the parent (placement, then joint); `S`: the motion subspace, nv columns; `v_J` =
    S v + sigma: the velocity across the joint; `c_J` = S-ring v + sigma-ring: its velocity-product
    acceleration.
    """

    X: Placement
    S: tuple[Motion, ...]
    v_J: Motion
    c_J: Motion


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one joint: position (nq numbers each), speed and effort (nv numbers each, not negative).

    Units are rad or m, rad/s or m/s, N m or N. A single number applies to every coordinate; the default is no
    limit.

    >>> da.Limits(-2.0, 2.0, velocity=4.0)
    Limits(lower=-2.0, upper=2.0, velocity=4.0, effort=inf)
    """

    lower: tuple[float, ...] | float = -math.inf
    upper: tuple[float, ...] | float = math.inf
    velocity: tuple[float, ...] | float = math.inf
    effort: tuple[float, ...] | float = math.inf


@dataclass(frozen=True, slots=True)
class Dependence:
    """A coordinate that follows independent ones: q = offset + sum of ratio * q[index in q], v likewise.

    Each term is (index in q, index in v, ratio).
    """

    terms: tuple[tuple[int, int, float], ...]
    offset: float

    def position(self, q: Scalars) -> Scalar:
        """Return the dependent position [rad or m] from the model's q."""
        total: Scalar = self.offset
        for place, _, ratio in self.terms:
            total = total + ratio * q[place]
        return total

    def rate(self, v: Scalars) -> Scalar:
        """Return the dependent rate from the model's v; accelerations and displacements map alike."""
        total: Scalar = 0.0
        for _, place, ratio in self.terms:
            total = total + ratio * v[place]
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """One body of a model: its place in the tree, its joint, and its constant data in body coordinates.

    `index` in the regular numbering and `parent` (-1 is the world), Featherstone 2008 section 4.1.2;
    `placement` of the joint in the parent's frame (the book's X_T); `inertia` at the body's origin; `q_slice`
    and `v_slice`, the joint's slices of the model's q and v (both empty for a joint that a coupling makes
    dependent). For each velocity variable: `armature` [kg m^2 or kg], `damping` [N m s/rad or N s/m],
    `friction` [N m or N], `stiffness` [N m/rad or N/m]; `rest` (nq) is the position at which the spring is
    slack.
    """

    index: int
    name: str
    parent: int
    joint: Joint
    joint_name: str
    placement: Placement
    inertia: RigidInertia
    q_slice: slice
    v_slice: slice
    armature: tuple[Scalar, ...]
    damping: tuple[Scalar, ...]
    friction: tuple[Scalar, ...]
    stiffness: tuple[Scalar, ...]
    rest: tuple[Scalar, ...]
    limits: Limits
    shapes: tuple[Shape, ...] = ()
    dependence: Dependence | None = field(default=None)

    @property
    def nq(self) -> int:
        """Number of the joint's position variables."""
        return self.joint.nq

    @property
    def nv(self) -> int:
        """Number of the joint's velocity variables, its degree of freedom."""
        return self.joint.nv

    def own_q(self, q: Scalars) -> list[Scalar]:
        """Return this joint's own positions from the model's q; a dependent joint follows its coupling."""
        if self.dependence is not None:
            return [self.dependence.position(q)]
        return list(q[self.q_slice])

    def own_v(self, v: Scalars) -> list[Scalar]:
        """Return this joint's own velocities from the model's v, or accelerations from a (not forces)."""
        if self.dependence is not None:
            return [self.dependence.rate(v)]
        return list(v[self.v_slice])

    def jcalc(self, q: Scalars, v: Scalars | None = None, time: Time = None) -> JointMotion:
        """Return the joint's transform, subspace, velocity and bias from the model's q and v (default 0)."""
        own_q = self.own_q(q)
        own_v = [0.0] * self.joint.nv if v is None else self.own_v(v)
        X_J, S, v_J, c_J = self.joint.jcalc(own_q, own_v, time)
        return JointMotion(link_transform(self.placement, X_J), S, v_J, c_J)

    def link_transform(self, q: Scalars, time: Time = None) -> Placement:
        """Return this body placed in its parent, from the model's q."""
        return link_transform(self.placement, self.joint.transform(self.own_q(q), time))


def bounds_of(body: Body, part: str) -> tuple[float, ...]:
    """Return the limits of one kind (a field of `Limits`), one for each coordinate of a body's joint."""
    found: tuple[float, ...] | float = getattr(body.limits, part)
    return found if isinstance(found, tuple) else (found,) * getattr(body, LIMITS[part])


# Elements of a model other than its bodies: frames, loop joints, couplings, shape pairs and joint views.


class HasName(Protocol):
    @property
    def name(self) -> str: ...


Item = TypeVar("Item", bound=HasName)


@dataclass(frozen=True, slots=True)
class Frame:
    """A named frame on a body (index; -1 is the world), in the body's coordinates.

    The frame of a link that was merged into the body has that link's `inertia`, in the frame's coordinates,
    which is a part of the body's; other frames have None.
    """

    name: str
    body: int
    placement: Placement
    inertia: RigidInertia | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A joint that closes a loop, from a frame on one body to a frame on another (indices; -1 is the world).

    `placement_predecessor` and `placement_successor` are the book's X_P and X_S (section 4.2), each in its
    own body.
    """

    name: str
    predecessor: int
    successor: int
    joint: Joint
    placement_predecessor: Placement
    placement_successor: Placement


@dataclass(frozen=True, slots=True)
class Coupling:
    """A linear relation between joints: sum of k_j q_j + offset = 0, solved for `dependent`."""

    name: str
    coefficients: tuple[tuple[str, float], ...]
    offset: float
    dependent: str


@dataclass(frozen=True, slots=True)
class ShapePair:
    """Two shapes, by name, that may touch regardless of their masks and bodies.

    `friction` (sliding, torsional, rolling; or four coefficients, sliding along both directions of the
    surface, torsional, rolling), `restitution` and `condim` apply to this pair; None: those of the shapes.
    """

    first: str
    second: str
    friction: tuple[float, ...] | None = None
    restitution: float | None = None
    condim: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class JointView:
    """A view of a joint in a model; its data belong to its body."""

    body: Body

    @property
    def name(self) -> str:
        return self.body.joint_name

    @property
    def joint(self) -> Joint:
        """The kind of joint with its parameters."""
        return self.body.joint

    @property
    def kind(self) -> str:
        return self.body.joint.kind

    @property
    def nq(self) -> int:
        """The number of position variables in q: zero for a dependent joint."""
        return self.q_slice.stop - self.q_slice.start  # type: ignore[no-any-return]

    @property
    def nv(self) -> int:
        """The number of velocity variables in v: zero for a dependent joint."""
        return self.v_slice.stop - self.v_slice.start  # type: ignore[no-any-return]

    @property
    def q_slice(self) -> slice:
        """The slice of q that holds the joint's position variables."""
        return self.body.q_slice

    @property
    def v_slice(self) -> slice:
        """The slice of v, a and tau that belongs to the joint."""
        return self.body.v_slice

    @property
    def placement(self) -> Placement:
        return self.body.placement

    @property
    def limits(self) -> Limits:
        return self.body.limits

    @property
    def armature(self) -> tuple[Scalar, ...]:
        return self.body.armature

    @property
    def damping(self) -> tuple[Scalar, ...]:
        return self.body.damping

    @property
    def friction(self) -> tuple[Scalar, ...]:
        return self.body.friction

    @property
    def position(self) -> slice:
        """The part of q that holds a free joint's position [m], in the parent."""
        start = self.q_slice.start
        return slice(start, start + 3) if self.kind == "free" else self._absent("position")

    @property
    def quaternion(self) -> slice:
        """The part of q that holds the quaternion (w, x, y, z) of a free or spherical joint."""
        if len(self.joint.unit_quaternions) != 1:
            self._absent("quaternion")
        inside, start = self.joint.unit_quaternions[0], self.q_slice.start
        return slice(start + inside.start, start + inside.stop)

    @property
    def angular(self) -> slice:
        """The part of v with the angular velocity [rad/s] of a free or spherical joint, in the successor."""
        start = self.v_slice.start
        return slice(start, start + 3) if self.kind in ("free", "spherical") else self._absent("angular")

    @property
    def linear(self) -> slice:
        """The part of v that holds a free joint's linear velocity [m/s], in the successor."""
        start = self.v_slice.start
        return slice(start + 3, start + 6) if self.kind == "free" else self._absent("linear")

    def _absent(self, part: str) -> NoReturn:
        raise ModelError(
            f'joint "{self.name}" is of kind {self.kind} and has no {part} part; use q_slice and v_slice'
        )


class Named(Sequence[Item]):
    """An immutable sequence with access by name or index: `model.joints["elbow"]`, `model.joints[2]`."""

    __slots__ = ("_index", "_items", "_kind")

    def __init__(self, kind: str, items: Iterable[Item]) -> None:
        self._kind = kind
        self._items = tuple(items)
        self._index = {item.name: i for i, item in enumerate(self._items)}

    @overload
    def __getitem__(self, key: int | str) -> Item: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self._index:
                raise UnknownNameError.of(self._kind, key, self._index)
            return self._items[self._index[key]]
        try:
            return self._items[key]
        except IndexError:
            known = f"they are numbered 0 to {len(self) - 1}" if self._items else "the model has none"
            raise OutOfRangeError(f"there is no {self._kind} {key}; {known}") from None

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __reversed__(self) -> Iterator[Item]:
        return reversed(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return self.has(key) if isinstance(key, str) else key in self._items

    def has(self, name: str) -> bool:
        """Return whether an item has this name."""
        return name in self._index

    def __repr__(self) -> str:
        return f"<{len(self)} items: {', '.join(self._index)}>"

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self._index)
