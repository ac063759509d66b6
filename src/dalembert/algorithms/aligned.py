"""Body frames along the joint axes: Denavit-Hartenberg frames for trees (Featherstone 2008 §10.3, §A.4).

q, v and tau do not depend on the frames in which bodies are described, but the cost of the dynamics does.
Where a body turns about or slides along an axis, its new frame has z on that axis. What remains free, a
turn about and a shift along z, is spent on the child with the largest subtree: x goes along the common
normal of the two axes, the origin to its foot. Link transforms become axial screws:

    that child            scrx(alpha, a) scrz(q + t, d)
    other children        scrz(t1, d1) scrx(alpha, a) scrz(q + t, d)
    a leaf                t = d = 0: its frame slides to the foot of the normal
    almost parallel axes  scrx(alpha, a) xlt(0, b, 0) scrz(q + t, d): their common normal would lie far away
    the world's child     scrz(q + t, 0): the world's frame is chosen too, with gravity in its x-z plane

Bodies with other joints keep their frames, in which their v is expressed; bodies fixed to another take that
one's frame.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ModelError
from dalembert.model.body import Body, Loop
from dalembert.model.joints import Cylindrical, Fixed, Helical, Joint, Prismatic, Revolute
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, Scalars, Time, cos, is_zero, sin
from dalembert.spatial import AxialScrew, Mat3, Motion, RigidInertia, ScrewChain, SymMat3, Transform, Vec3
from dalembert.spatial.transform import Placement

# A joint about z: the form of revolute, prismatic, helical and cylindrical joints in aligned frames.

COORDINATES: Final[dict[str, tuple[str, ...]]] = {
    "revolute": ("angle",),
    "prismatic": ("length",),
    "helical": ("angle",),
    "cylindrical": ("angle", "length"),
    "fixed": (),
}

Z: Final = Vec3(0.0, 0.0, 1.0)

QUARTER_TURN_TOLERANCE: Final = 2e-15
"""Rounding error [rad] up to which a turn is a multiple of a quarter turn."""


def axis_of(joint: Joint) -> npt.NDArray[np.float64] | None:
    """Return the direction about or along which a joint moves, in its own frame; None for other joints."""
    if isinstance(joint, (Revolute, Prismatic, Helical, Cylindrical)):
        components = joint.axis.to_list()
        if all(isinstance(x, (int, float)) for x in components):
            return np.array(components, dtype=np.float64)
    return None


def _quarters(turn: Scalar) -> tuple[int, Scalar]:
    """Split a constant turn into quarter turns, which cost no arithmetic, and the rest."""
    if not isinstance(turn, float):
        return 0, turn
    quarters = round(turn / (0.5 * math.pi))
    rest = turn - quarters * 0.5 * math.pi
    return (quarters, 0.0) if abs(rest) <= QUARTER_TURN_TOLERANCE else (0, turn)


@final
@dataclass(frozen=True, slots=True)
class AxisJoint(Joint):
    """scrz(angle + turn, advance + shift): the freedom along z, with a constant turn [rad] and shift [m].

    `original_frame`: the successor frame of the joint that it stands for, placed in the aligned one. q, v and
    tau are the same; S is a coordinate direction, or (e_z, pitch e_z) if helical.
    """

    freedom: str
    turn: Scalar = 0.0
    shift: Scalar = 0.0
    pitch: Scalar = 0.0
    original_frame: Transform = field(default_factory=Transform.identity)

    kind = "aligned_axis"
    parameter_names = ("turn", "shift", "pitch", "original_frame")

    @staticmethod
    def like(joint: Joint, turn: float, shift: float, original_frame: Transform) -> AxisJoint:
        """Return the joint in a frame whose z is its axis, with its own successor frame as given."""
        pitch = joint.pitch if isinstance(joint, Helical) else 0.0
        return AxisJoint(joint.kind, turn, shift, pitch, original_frame)

    @property
    def nq(self) -> int:
        return len(self.coordinates)

    nv = nq

    @property
    def coordinates(self) -> tuple[str, ...]:
        return COORDINATES[self.freedom]

    def structure(self) -> tuple[Any, ...]:
        quarters, rest = _quarters(self.turn)
        return (self.kind, self.freedom, quarters % 4, is_zero(rest), is_zero(self.shift))

    def transform(self, q: Scalars, time: Time = None) -> AxialScrew:
        quarters, angle = _quarters(self.turn)
        advance: Scalar = self.shift
        if "angle" in self.coordinates:
            angle = q[0] + angle
        if "length" in self.coordinates:
            advance = q[-1] + advance
        if self.freedom == "helical":
            advance = self.pitch * q[0] + advance
        c, s = cos(angle), sin(angle)
        for _ in range(quarters % 4):
            c, s = -s, c
        return AxialScrew(2, c, s, advance)

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        turning = Motion(Z, Vec3(0.0, 0.0, self.pitch))  # the pitch is zero unless the joint is helical
        columns = {"angle": turning, "length": Motion(Vec3.zero(), Z)}
        return tuple(columns[coordinate] for coordinate in self.coordinates)


# The common normal of two joint axes, the origin of Denavit-Hartenberg frames.
#
# Frames are 4x4 arrays [[R, p], [0, 1]]: a child placed in its parent.

Array = npt.NDArray[np.float64]

ROUNDING_TOLERANCE = 2e-15
"""Rounding error, relative to its neighbours, of a constant that is exactly 0 or ±1."""

MAX_NORMAL_DISTANCE_RATIO = 20.0
"""Largest distance from a joint to the foot of its normal, relative to its distance from the other axis."""


class Normal(NamedTuple):
    """scrz(t, d) scrx(alpha, a) xlt(0, b, 0) leads from a frame to `frame`, whose z is the child's axis."""

    frame: Array
    t: float
    d: float
    cos_alpha: float
    sin_alpha: float
    a: float
    b: float

    def factors(self) -> Iterator[AxialScrew]:
        """Return the screws that are not the identity."""
        c, s, d = tidy(math.cos(self.t)), tidy(math.sin(self.t)), tidy(self.d)
        if (c, s, d) != (1.0, 0.0, 0.0):
            yield AxialScrew(2, c, s, d)
        c, s, a = tidy(self.cos_alpha), tidy(self.sin_alpha), tidy(self.a)
        if (c, s, a) != (1.0, 0.0, 0.0):
            yield AxialScrew(0, c, s, a)
        if tidy(self.b) != 0.0:
            yield AxialScrew(1, 1.0, 0.0, tidy(self.b))


def common_normal(offset: Array, axis: Array) -> Normal:
    """Return the common normal of a frame's z axis and a child's axis,
    which passes through the origin of `offset`.

    With z' the child's axis through p, x along z x z' and y = z x x:  z' = cos(alpha) z - sin(alpha) y, and

        p = d z + a x - u z'          a = p.x,   u = (p.y) / sin(alpha),   d = p.z + u cos(alpha)     (1)
        p = d z + a x + b (z' x x)    a = p.x,   b = (p.y) / cos(alpha),   d = p.z - b sin(alpha)     (2)

    (2) where u would be far. Parallel axes have a normal at every height: d = 0. On one axis, nothing is
    left to do.
    """
    p, z_child = offset[:3, 3], offset[:3, :3] @ axis
    across = np.array([-z_child[1], z_child[0], 0.0])
    sine, cosine = math.hypot(across[0], across[1]), float(z_child[2])
    if sine <= ROUNDING_TOLERANCE:
        return _parallel_normal(p, math.copysign(1.0, cosine))
    if across[0] < 0.0:
        sine = -sine  # of the two directions of the normal, the one that turns x less
    x = across / sine
    y = np.array([-x[1], x[0], 0.0])
    t, a, along = math.atan2(x[1], x[0]), float(p @ x), float(p @ y)
    if abs(along) <= MAX_NORMAL_DISTANCE_RATIO * abs(sine) * math.hypot(p[0], p[1]):
        u, b = along / sine, 0.0
        d = float(p[2]) + u * cosine  # (1)
    else:
        u, b = 0.0, along / cosine
        d = float(p[2]) - b * sine  # (2)
    frame = frame_of(x, _cross(z_child, x), z_child, p + u * z_child)
    return Normal(frame, t, d, cosine, sine, a, b)


def _parallel_normal(p: Array, cosine: float) -> Normal:
    """Return the normal to an axis through p that points along +z or -z."""
    away = math.hypot(p[0], p[1])
    if away <= ROUNDING_TOLERANCE * (1.0 + abs(p[2])):
        x, a = np.array([1.0, 0.0, 0.0]), 0.0
    else:
        a = math.copysign(away, p[0])
        x = np.array([p[0], p[1], 0.0]) / a
    z = np.array([0.0, 0.0, cosine])
    return Normal(frame_of(x, _cross(z, x), z, a * x), math.atan2(x[1], x[0]), 0.0, cosine, 0.0, a, 0.0)


def on_axis(frame: Array, axis: Array) -> Array:
    """Return the frame with z exactly on the axis, so that rounding does not build up along a chain."""
    y = _cross(axis, frame[:3, 0])
    y = y / np.linalg.norm(y)
    return frame_of(_cross(y, axis), y, axis, float(frame[:3, 3] @ axis) * axis)


def basis(z: Array) -> tuple[Array, Array, Array]:
    """Return a right-handed orthonormal (x, y, z)."""
    x = _cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x = x / np.linalg.norm(x)
    return x, _cross(z, x), z


def frame_of(x: Array, y: Array, z: Array, p: Array) -> Array:
    """Return the frame with these axes at p."""
    frame = np.eye(4)
    frame[:3, 0], frame[:3, 1], frame[:3, 2], frame[:3, 3] = x, y, z, p
    return frame


def screw_z(t: float, d: float) -> Array:
    """Return the screw of a turn t about z and a shift d along it."""
    c, s = math.cos(t), math.sin(t)
    return frame_of(
        np.array([c, s, 0.0]), np.array([-s, c, 0.0]), np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.0, d])
    )


def inverse(frame: Array) -> Array:
    """Return the placement of the parent in the child."""
    R, p = frame[:3, :3], frame[:3, 3]
    return frame_of(R[0], R[1], R[2], -R.T @ p)


def tidy(x: Scalar, scale: float = 1.0) -> Scalar:
    """Round a number to an exact 0 or ±1 if it differs only by rounding."""
    if not isinstance(x, (int, float)):
        return x
    if abs(x) <= ROUNDING_TOLERANCE * scale:
        return 0.0
    return math.copysign(1.0, x) if scale == 1.0 and abs(abs(x) - 1.0) <= ROUNDING_TOLERANCE else float(x)


def _cross(a: Array, b: Array) -> Array:
    """Return a x b; NumPy's function takes ten times as long for three numbers."""
    (ax, ay, az), (bx, by, bz) = a.tolist(), b.tolist()
    return np.array([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])


def aligned(tree: Tree) -> Tree:
    """Return the same system with body frames along joint axes; q, v, tau and external forces mean the same.

    A model with placements that are run-time parameters, and any other tree, is returned as it is.
    """
    if not isinstance(tree, Model) or not all(_is_constant(body.placement) for body in tree.bodies):
        return tree
    children = _moving_children(tree)
    world, gravity = _world_frame(tree, children)
    frames: dict[int, Array] = {-1: world}
    chosen = {
        found[0].body.index
        for root, found in children.items()
        if found and root >= 0 and axis_of(tree.bodies[root].joint) is not None
    }
    world_frame = _place(world).inverse()
    bodies = []
    for body in tree.bodies:
        frames[body.index], placement, joint = _align(body, frames[body.parent], children, chosen)
        fields = {field.name: getattr(body, field.name) for field in dataclasses.fields(Body)}
        inertia = _tidy_inertia(_place(frames[body.index]).apply(body.inertia))
        fields |= {"placement": placement, "joint": joint, "inertia": inertia}
        bodies.append(AlignedBody(**fields, world_frame=world_frame))
    return AlignedTree(bodies, gravity, tree, _aligned_loops(tree, bodies, world_frame))


def _aligned_loops(tree: Model, bodies: Sequence[AlignedBody], world_frame: Transform) -> tuple[Loop, ...]:
    """Return the loop joints between the aligned frames; the joints' own frames do not move."""

    def aligned_placement(body: int, placement: Placement) -> Placement:
        frame = bodies[body].original_frame if body >= 0 else world_frame
        return _place(_matrix(frame @ placement)) if _is_constant(placement) else frame @ placement

    return tuple(
        dataclasses.replace(
            loop,
            placement_predecessor=aligned_placement(loop.predecessor, loop.placement_predecessor),
            placement_successor=aligned_placement(loop.successor, loop.placement_successor),
        )
        for loop in tree.loops
    )


@final
@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class AlignedBody(Body):
    """A body in its aligned frame. `world_frame`: the model's world, placed in the aligned world."""

    world_frame: Transform = dataclasses.field(default_factory=Transform.identity)

    @property
    def original_frame(self) -> Transform:
        """The model's frame of the body, placed in the aligned one; joints without an axis keep theirs."""
        return self.joint.original_frame if isinstance(self.joint, AxisJoint) else Transform.identity()


SAME_AS_ORIGINAL: Final = ("closure", "constraints", "loop_names", "nq", "nv", "parents", "springs", "fluid")
"""The attributes of a tree that do not depend on the frames of its bodies."""


@final
class AlignedTree(Tree):
    """A tree of aligned bodies; `original`: the model it describes."""

    __slots__ = ("bodies", "gravity", "loops", "original", *SAME_AS_ORIGINAL)

    original: Model

    def __init__(
        self, bodies: Sequence[AlignedBody], gravity: Vec3, original: Model, loops: Sequence[Loop] = ()
    ) -> None:
        self.bodies, self.gravity, self.loops, self.original = tuple(bodies), gravity, tuple(loops), original
        for name in SAME_AS_ORIGINAL:
            setattr(self, name, getattr(original, name))


def original_model(tree: Tree) -> Model:
    """Return the model that users' functions see: the tree, or the one that an aligned tree describes."""
    if isinstance(tree, AlignedTree):
        return tree.original
    if isinstance(tree, Model):
        return tree
    raise ModelError(
        f"constraints are equations of a Model or an AlignedTree, not of a {type(tree).__name__}"
    )


def _align(
    body: Body, parent_frame: Array, children: dict[int, list[_MovingChild]], chosen: set[int]
) -> tuple[Array, Placement, Joint]:
    """Return the body's new frame in its old one, and the placement and joint from the parent's new frame.

    `chosen`: the bodies whose parent's frame was put on the common normal for them, so that only rounding
    is left of t1, d1.
    """
    offset = inverse(parent_frame) @ _matrix(body.placement)
    if isinstance(body.joint, Fixed):
        joint = AxisJoint("fixed", original_frame=_place(offset))
        return inverse(offset), AxialScrew(2, 1.0, 0.0, 0.0), joint
    axis = axis_of(body.joint)
    if axis is None:
        return np.eye(4), _place(offset), body.joint
    normal = common_normal(offset, axis)
    if body.index in chosen:
        normal = normal._replace(t=0.0, d=0.0)
    ready = on_axis(inverse(offset) @ normal.frame, axis)
    t, s = _own_freedom(body, children[body.index], ready)
    frame = on_axis(ready @ screw_z(t, s), axis)
    joint = AxisJoint.like(body.joint, tidy(t), tidy(s), _place(inverse(frame)))
    screws = tuple(normal.factors())
    return frame, ScrewChain(screws) if screws else AxialScrew(2, 1.0, 0.0, 0.0), joint


def _own_freedom(body: Body, children: list[_MovingChild], ready: Array) -> tuple[float, float]:
    """Return (turn, shift) that bring a frame to the common normal with the best child; zero for a leaf.

    Parallel axes leave the shift open: the model's own origin, if the inertia has more zeros there.
    """
    if not children or (axis := children[0].axis) is None:
        return 0.0, 0.0
    normal = common_normal(inverse(ready) @ children[0].placement, axis)
    if normal.sin_alpha == 0.0:
        shifts = (0.0, -float(ready[:3, 3] @ ready[:3, 2]))
        return normal.t, max(shifts, key=lambda s: _zeros(body, ready @ screw_z(normal.t, s)))
    return normal.t, normal.d


def _zeros(body: Body, frame: Array) -> int:
    """Return how many of the ten inertia parameters vanish in a frame."""
    return sum(is_zero(leaf) for leaf in _tidy_inertia(_place(frame).apply(body.inertia)).leaves())


def _world_frame(tree: Tree, children: dict[int, list[_MovingChild]]) -> tuple[Array, Vec3]:
    """Return the new world frame in the old one, on the axis of its best child, and gravity in it."""
    if not children[-1] or (axis := children[-1][0].axis) is None:
        return np.eye(4), tree.gravity
    first = children[-1][0]
    upright = frame_of(*basis(axis), np.zeros(3))
    t, s = _own_freedom(first.body, children[first.body.index], upright)
    g = [x for x in tree.gravity if isinstance(x, (int, float))]
    if len(g) == 3:
        across = (first.placement[:3, :3] @ upright[:3, :3]).T @ np.array(g)
        if math.hypot(across[0], across[1]) > ROUNDING_TOLERANCE * math.hypot(*g):
            t = math.atan2(across[1], across[0])
    world = first.placement @ upright @ screw_z(t, s)
    gravity = _place(world).rotate_to_child(tree.gravity)
    if len(g) == 3:
        scale = math.hypot(*g)
        gravity = Vec3(*[tidy(x, scale) for x in gravity])
    return world, gravity


class _MovingChild(NamedTuple):
    """A body that moves relative to another one, seen through bodies that are fixed to that one."""

    body: Body
    placement: Array
    axis: Array | None


def _moving_children(tree: Tree) -> dict[int, list[_MovingChild]]:
    """Return the moving children of each body and the world (-1), with an axis and large subtrees first."""
    sizes = [1] * len(tree.bodies)
    for body in reversed(tree.bodies):
        if body.parent >= 0:
            sizes[body.parent] += sizes[body.index]
    carrier: dict[int, tuple[int, Array]] = {-1: (-1, np.eye(4))}
    children: dict[int, list[_MovingChild]] = {-1: []}
    for body in tree.bodies:
        root, place = carrier[body.parent]
        place = place @ _matrix(body.placement)
        children[body.index] = []
        if isinstance(body.joint, Fixed):
            carrier[body.index] = root, place
        else:
            carrier[body.index] = body.index, np.eye(4)
            children[root].append(_MovingChild(body, place, axis_of(body.joint)))
    for found in children.values():
        found.sort(key=lambda child: (child.axis is None, -sizes[child.body.index]))
    return children


def _matrix(placement: Placement) -> Array:
    return np.array(placement.homogeneous(), dtype=np.float64)


def _place(frame: Array) -> Transform:
    """Return a frame as a `Transform` without rounding errors."""
    scale = float(np.max(np.abs(frame[:3, 3])))
    p = [tidy(float(x), scale) for x in frame[:3, 3]]
    return Transform(Mat3(*[tidy(float(x)) for x in frame[:3, :3].flat]), Vec3(*p))


def _tidy_inertia(inertia: RigidInertia) -> RigidInertia:
    """Return the inertia with rounding errors of its rotation set to zero."""
    numbers = inertia.leaves()
    if not all(isinstance(x, (int, float)) for x in numbers):
        return inertia
    h_scale, I_scale = max(map(abs, numbers[1:4])), max(map(abs, numbers[4:]))
    h = [tidy(x, h_scale) for x in numbers[1:4]]
    I = [tidy(x, I_scale) for x in numbers[4:]]
    return RigidInertia.from_compact(numbers[0], Vec3(*h), SymMat3(*I))


def _is_constant(placement: Placement) -> bool:
    return all(isinstance(x, (int, float)) for x in placement.leaves())
