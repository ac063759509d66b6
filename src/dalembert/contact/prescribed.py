"""Joints whose motion is given: their velocities in a step are known, and leave the unknowns.

Prescribed joints, and the part of time-dependent joints that is not theirs to choose.

A joint that moves from q to q' in a step of h [s] has the mean velocity w of the displacement between them,
in centroidal coordinates (`algorithms.integrators`): constant in time for a body that is not accelerated,
however it turns. The momentum of the step before has the mean velocity of that step, so that

    (w_k - w_(k-1)) / h = (q_(k+1) - 2 q_k + q_(k-1)) / h^2                                             (1)

is the acceleration at the start of the step to second order, and its velocity is the mean of both. Bodies
that touch a prescribed one are moved by h w, exactly as far as that: no gap opens and none closes by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, final

from dalembert.algorithms.aligned import SAME_AS_ORIGINAL
from dalembert.algorithms.integrators import from_centroidal, to_centroidal
from dalembert.model.body import Body
from dalembert.model.joints import Free, Joint, Planar
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import Motion, Placement


class PrescribedMotion(NamedTuple):
    """The motion of prescribed joints in a step; entries of other joints mean nothing.

    `places` in v; the mean velocities of the previous step, `earlier`, and of this one, both `(nv,)` along
    the axes at the start of the step; q `(nq,)` and v `(nv,)` at its end.
    """

    places: frozenset[int]
    earlier: Sequence[Scalar]
    velocity: Sequence[Scalar]
    q: Sequence[Scalar]
    v: Sequence[Scalar]

    def fill(self, v: Sequence[Scalar], given: Sequence[Scalar]) -> list[Scalar]:
        """Return v with the entries of prescribed joints from `given`."""
        return [given[k] if k in self.places else x for k, x in enumerate(v)]

    def middle(self) -> list[Scalar]:
        """Return the velocities at the start of the step: the mean of those of both steps around it."""
        return [0.5 * (a + b) for a, b in zip(self.earlier, self.velocity, strict=True)]

    def moves(self, body: Body) -> bool:
        """Return whether the joint of a body is prescribed."""
        return body.dependence is None and body.v_slice.start in self.places and body.nv > 0


def mean_velocity(body: Body, q: Sequence[Scalar], q_end: Sequence[Scalar], dt: Scalar) -> list[Scalar]:
    """Return the velocity w in centroidal coordinates at which a joint moves from q to q_end in dt [s]."""
    rate = 1.0 / dt
    travel, still = body.joint.difference(q, q_end), [0.0] * body.nv
    if not isinstance(body.joint, Free | Planar):
        return [x * rate for x in travel]
    (y, _), (y_end, _) = to_centroidal(body, q, still), to_centroidal(body, q_end, still)
    turns = 3 if isinstance(body.joint, Free) else 1
    moved = [b - a for a, b in zip(y[: body.nv - turns], y_end[: body.nv - turns], strict=True)]
    return [x * rate for x in (*travel[:turns], *moved)]


def along_axes(body: Body, q: Sequence[Scalar], w: Sequence[Scalar]) -> list[Scalar]:
    """Return v along the axes at q of the velocity w in centroidal coordinates."""
    y, _ = to_centroidal(body, q, [0.0] * body.nv)
    return from_centroidal(body, y, w)[1]


# Joints that depend on time.
#
# Such a joint gives its body the velocity S v + sigma(q, t). In a step sigma is the column of one more
# velocity variable of the tree, the clock's, which is always 1 and known, as those of prescribed joints are:
# it moves contact points and is no unknown. sigma is that in the middle of the step, about the mean over it,
# by which bodies are displaced.


@final
@dataclass(frozen=True, slots=True)
class JointAtTime(Joint):
    """A time-dependent joint at a time [s], and sigma at another, `middle`."""

    joint: Joint
    time: Scalar
    middle: Scalar

    kind = "joint_at_time"

    @property
    def coordinates(self) -> tuple[str, ...]:
        return self.joint.coordinates

    @property
    def nv(self) -> int:
        return self.joint.nv

    @property
    def unit_quaternions(self) -> tuple[slice, ...]:
        return self.joint.unit_quaternions

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return self.joint.transform(q, self.time)

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        return self.joint.subspace(q, self.time)

    def velocity(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        return self.joint.velocity(q, v, self.time)

    def bias(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        return self.joint.bias(q, v, self.time)

    def position_rate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        return self.joint.position_rate(q, v)

    def integrate(self, q: Scalars, dv: Scalars) -> list[Scalar]:
        return self.joint.integrate(q, dv)

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        return self.joint.difference(q0, q1)

    def neutral(self) -> list[float]:
        return self.joint.neutral()

    def normalize(self, q: Scalars) -> list[Scalar]:
        return self.joint.normalize(q)

    def drift(self, q: Scalars) -> Motion:
        """Return sigma in the middle of the step, in successor coordinates."""
        return self.joint.velocity(q, [0.0] * self.nv, self.middle)


UNCHANGED: Final = ("gravity", "loops", *(name for name in SAME_AS_ORIGINAL if name != "nv"))
"""The attributes of a tree that are the same at any time."""


@final
class TreeAtTime(Tree):
    """A tree at a time [s]. In a step with the time `middle` in its middle the variable of the clock follows
    the others in v."""

    __slots__ = ("bodies", "nv", "original", *UNCHANGED)

    original: Tree

    def __init__(self, original: Tree, time: Scalar, middle: Scalar | None = None) -> None:
        self.original = original
        for name in UNCHANGED:
            setattr(self, name, getattr(original, name))
        self.nv = original.nv + (middle is not None)
        self.bodies = [
            replace(body, joint=JointAtTime(body.joint, time, time if middle is None else middle))
            if body.joint.time_dependent
            else body
            for body in original.bodies
        ]

    def prescribe_clock(self, q: Scalars, given: PrescribedMotion | None) -> PrescribedMotion:
        """Return the motion of prescribed joints with that of the clock."""
        clock, still = self.original.nv, [0.0] * self.original.nv
        if given is None:
            given = PrescribedMotion(frozenset(), still, still, q, still)
        earlier, velocity, v = ([*x, 1.0] for x in (given.earlier, given.velocity, given.v))
        return PrescribedMotion(given.places | {clock}, earlier, velocity, given.q, v)


def at_time_zero(tree: Tree) -> Tree:
    """Return a tree as it is at time zero, for scales that are constants."""
    return TreeAtTime(tree.original, 0.0) if isinstance(tree, TreeAtTime) else tree


def moves_as_given(bodies: Sequence[Body], places: frozenset[int]) -> bool:
    """Return whether something moves bodies of a tree as given: prescribed joints, or ones that depend on
    time."""
    return any(
        isinstance(body.joint, JointAtTime)
        or (body.dependence is None and not places.isdisjoint(range(body.v_slice.start, body.v_slice.stop)))
        for body in bodies
    )
