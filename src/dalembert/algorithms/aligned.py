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
from typing import NamedTuple, final

import numpy as np

from dalembert.algorithms.axis_joint import AxisJoint, axis_of
from dalembert.algorithms.common_normals import (
    ROUNDING_TOLERANCE,
    Array,
    basis,
    common_normal,
    frame_of,
    inverse,
    on_axis,
    screw_z,
    tidy,
)
from dalembert.model.body import Body, Placement
from dalembert.model.elements import Loop
from dalembert.model.joints import Fixed, Joint
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import is_zero
from dalembert.spatial import AxialScrew, Mat3, RigidInertia, ScrewChain, SymMat3, Transform, Vec3

__all__ = ["AlignedBody", "AlignedTree", "aligned"]


def aligned(tree: Tree) -> Tree:
    """Return the same system with body frames along joint axes;
    the meaning of q, v, tau and external forces stays.

    A model with placements that are run-time parameters, and any other tree, is returned as it is.
    """
    if not isinstance(tree, Model) or not all(_is_constant(body.placement) for body in tree.bodies):
        return tree
    children = _moving_children(tree)
    world, gravity = _world_frame(tree, children)
    frames: dict[int, Array] = {-1: world}
    chosen = {found[0].body.index for root, found in children.items() if found and _has_axis(tree, root)}
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


@final
class AlignedTree(Tree):
    """A tree of aligned bodies; `original`: the model it describes."""

    __slots__ = (
        "bodies",
        "closure",
        "constraints",
        "gravity",
        "loop_names",
        "loops",
        "nq",
        "nv",
        "original",
        "parents",
    )

    def __init__(
        self, bodies: Sequence[AlignedBody], gravity: Vec3, original: Model, loops: Sequence[Loop] = ()
    ) -> None:
        self.bodies = tuple(bodies)
        self.gravity = gravity
        self.parents = original.parents
        self.nq = original.nq
        self.nv = original.nv
        self.loops = tuple(loops)
        self.loop_names = original.loop_names
        self.constraints = original.constraints
        self.closure = original.closure
        self.original = original


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
    return frame, _chain(normal.factors()), joint


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


def _has_axis(tree: Tree, index: int) -> bool:
    return index >= 0 and axis_of(tree.bodies[index].joint) is not None


def _matrix(placement: Placement) -> Array:
    return np.array(placement.homogeneous(), dtype=np.float64)


def _place(frame: Array) -> Transform:
    """Return a frame as a `Transform` without rounding errors."""
    scale = float(np.max(np.abs(frame[:3, 3])))
    p = [tidy(float(x), scale) for x in frame[:3, 3]]
    return Transform(Mat3(*[tidy(float(x)) for x in frame[:3, :3].flat]), Vec3(*p))


def _chain(factors: Iterator[AxialScrew]) -> Placement:
    screws = tuple(factors)
    return ScrewChain(screws) if screws else AxialScrew(2, 1.0, 0.0, 0.0)


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
