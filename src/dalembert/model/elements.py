"""Elements of a model other than its bodies: frames, loop joints, couplings, shape pairs and joint views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar, overload

from dalembert.errors import ModelError, OutOfRangeError, UnknownNameError
from dalembert.model.body import Body, Limits, Placement
from dalembert.scalar import Scalar

if TYPE_CHECKING:
    from dalembert.model.joints import Joint

__all__ = ["Coupling", "Frame", "JointView", "Loop", "Named", "ShapePair"]


class HasName(Protocol):
    @property
    def name(self) -> str: ...


Item = TypeVar("Item", bound=HasName)


@dataclass(frozen=True, slots=True)
class Frame:
    """A named frame on a body (index; -1 is the world), in the body's coordinates."""

    name: str
    body: int
    placement: Placement


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

    `friction` (sliding, torsional, rolling) and `restitution` apply to this pair; None: those of the shapes.
    """

    first: str
    second: str
    friction: tuple[float, float, float] | None = None
    restitution: float | None = None


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
        """The part of v that holds the angular velocity [rad/s] of a free or spherical joint, in the
        successor.
        """
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
            raise OutOfRangeError(
                f"there is no {self._kind} {key}; they are numbered 0 to {len(self) - 1}"
            ) from None

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
