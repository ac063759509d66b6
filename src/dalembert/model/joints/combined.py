"""Joints made of other joints: reversed, driven along a prescribed motion, and several in a row."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, final

import numpy as np

from dalembert.errors import ModelError, items_of
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import relative_volume
from dalembert.model.joints.user_defined import relative_velocity
from dalembert.scalar import Scalar, Scalars, Time
from dalembert.spatial import Force, Motion, Placement, Transform


class DerivedJoint(Joint):
    """Abstract: a joint that places its frames otherwise than `joint` does, while q and v mean the same."""

    __slots__ = ()

    joint: Joint

    @property
    def coordinates(self) -> tuple[str, ...]:
        return self.joint.coordinates


def _of_inner_joint(name: str) -> Any:
    """Return the property or method of a derived joint that is its inner joint's."""
    declared = getattr(Joint, name)
    if isinstance(declared, property):
        return property(lambda self: getattr(self.joint, name), doc=declared.__doc__)

    @functools.wraps(declared)
    def method(self: DerivedJoint, *arguments: Any, **options: Any) -> Any:
        return getattr(self.joint, name)(*arguments, **options)

    return method


for _name in (
    *("nq", "nv", "unit_quaternions", "time_dependent"),
    *("position_rate", "integrate", "difference", "neutral", "normalize", "random", "singularity_measure"),
    *("constraint_subspace", "active_subspace"),
):
    setattr(DerivedJoint, _name, _of_inner_joint(_name))


@final
@dataclass(frozen=True, slots=True)
class Reversed(DerivedJoint):
    """A joint with predecessor and successor exchanged; q and v keep their meaning (Featherstone 2008 Table
    4.2).

    With X = ^pX_s of the joint as it was: X_J = X, S = -X S, v_J = -X v_J, c_J = -X c_J, T = -X* T. (The
    table prints the row of T without the star; only the force transform keeps T^T S = 0.)

    >>> da.joints.Reversed(da.Prismatic((1, 0, 0))).transform([0.5]).p
    Vec3(x=-0.5, y=0.0, z=0.0)
    """

    joint: Joint

    kind = "reversed"
    parameter_names = ("joint",)

    def reversed(self) -> Joint:
        return self.joint

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return self.joint.transform(q, time).inverse()

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        X = self.joint.transform(q, time)
        return tuple(-X.inverse_apply(column) for column in self.joint.subspace(q, time))

    def velocity(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        return -self.joint.transform(q, time).inverse_apply(self.joint.velocity(q, v, time))

    def bias(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        return -self.joint.transform(q, time).inverse_apply(self.joint.bias(q, v, time))

    def constraint_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        X = self.joint.transform(q, time)
        return tuple(-X.inverse_apply(column) for column in self.joint.constraint_subspace(q, time))

    def active_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        X = self.joint.transform(q, time)
        return tuple(-X.inverse_apply(column) for column in self.joint.active_subspace(q, time))

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return self.joint.position_of(X.inverse(), time)

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        # d and T both change sign and frame, so that delta = T^T d is the same number.
        return self.joint.closure_error(X.inverse(), time)


@final
@dataclass(frozen=True, slots=True)
class TimeDependent(DerivedJoint):
    """A joint whose predecessor frame is carried along a prescribed motion x(t).

    `driver` is the joint that the motion drives and `motion(time)` its nq position variables, written with
    the functions of `dalembert.scalar`; `joint` keeps its freedoms. The successor stands at P(t) X(q), P(t)
    = driver at x(t). With sigma_P the velocity of P in its own frame and X the joint's transform
    (Featherstone 2008 section 3.5):

        v_J = S v + X sigma_P                                          sigma = X sigma_P
        c_J = S° v + X sigma_P° + v_J x S v                            since dX/dt = -(S v) x X

    sigma_P and sigma_P° are exact derivatives of the placement with respect to time. A cylinder whose
    sliding is prescribed is `TimeDependent(Revolute(a), driver=Prismatic(a), motion=…)`; with `Fixed()`
    everything is prescribed.

    >>> swing = lambda t: [0.1 * da.scalar.sin(2.0 * t)]
    >>> joint = da.joints.TimeDependent(da.Revolute((0, 1, 0)), driver=da.Prismatic((1, 0, 0)), motion=swing)
    >>> print(joint.velocity([0.0], [0.0], 0.0).to_list())  # carried along x at 0.2 m/s
    [0.0, 0.0, 0.0, 0.2, 0.0, 0.0]
    """

    joint: Joint
    driver: Joint
    motion: Callable[[Scalar], Sequence[Scalar]]

    kind = "time_dependent"
    parameter_names = ("joint", "driver")
    time_dependent = True

    def __post_init__(self) -> None:
        for name in ("joint", "driver"):
            if not isinstance(getattr(self, name), Joint):
                raise ModelError(
                    f"TimeDependent: {name} must be a Joint, got {type(getattr(self, name)).__name__}"
                )
        if not callable(self.motion):
            raise ModelError(f"TimeDependent: motion is a function of time, got {type(self.motion).__name__}")
        if self.driver.time_dependent:
            raise ModelError("TimeDependent: the driver depends on time itself; put its motion into `motion`")

    def structure(self) -> tuple[Any, ...]:
        return (*Joint.structure(self), self.motion)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return self._placement(self._now(time)) @ self.joint.transform(q, time)

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        return self.joint.subspace(q, time)

    def velocity(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        sigma = self._driven_velocity(self._now(time))
        return self.joint.velocity(q, v, time) + self.joint.transform(q, time).apply(sigma)

    def bias(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        now = self._now(time)
        sigma, sigma_rate = directional_derivative(lambda t: self._driven_velocity(t[0]), [now], [1.0])
        X = self.joint.transform(q, time)
        own = self.joint.velocity(q, v, time)
        # v_J x S v, in which S v x S v is zero for a joint that does not depend on time.
        total = own + X.apply(sigma)
        return self.joint.bias(q, v, time) + X.apply(sigma_rate) + total.cross(own)

    def constraint_subspace_at(self, X: Transform, time: Time = None) -> tuple[Force, ...]:
        return self.joint.constraint_subspace_at(self._seen_from_driver(X, time), time)

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return self.joint.position_of(self._seen_from_driver(X, time), time)

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        return self.joint.closure_error(self._seen_from_driver(X, time), time)

    def _placement(self, time: Scalar) -> Transform:
        """Return P(t) after checking the number of its coordinates."""
        x = list(self.motion(time))
        if len(x) != self.driver.nq:
            raise ModelError(
                f"TimeDependent: motion returned {len(x)} numbers; "
                f"give the {self.driver.nq} positions of its {self.driver.kind} driver"
            )
        return self.driver.transform(x).as_transform()

    def _driven_velocity(self, time: Scalar) -> Motion:
        """Return the driven velocity sigma_P in the driven frame."""
        return relative_velocity(*directional_derivative(lambda t: self._placement(t[0]), [time], [1.0]))

    def _seen_from_driver(self, X: Transform, time: Time) -> Transform:
        return self._placement(self._now(time)).inverse() @ X


@final
@dataclass(frozen=True, slots=True, init=False)
class Composite(Joint):
    """Joints one after the other without a body between them; q and v are theirs, one after the other.

    Placement k is where joint k's predecessor frame stands in the successor frame of joint k - 1 (of the
    whole joint for k = 0); the last successor frame is that of the whole. Frame by frame, with u the
    velocity and c its apparent derivative since the predecessor:

        u_k = X_k u_{k-1} + v_Jk                            (1)
        c_k = X_k c_{k-1} + c_Jk + u_k x v_Jk               (2)  since dX_k/dt = -v_Jk x X_k

    At most six freedoms; T and T_a follow from S by elimination.

    >>> joint = da.joints.Composite([da.Revolute((1, 0, 0)), da.Revolute((0, 1, 0))])  # a universal joint
    >>> joint.nq, joint.nv
    (2, 2)
    """

    joints: tuple[Joint, ...]
    placements: tuple[Transform, ...]

    kind = "composite"
    parameter_names = ("joints", "placements")

    def __init__(self, joints: Sequence[Joint], placements: Sequence[Placement] | None = None) -> None:
        members = tuple(items_of(joints))
        where = tuple([Transform.identity()] * len(members) if placements is None else items_of(placements))
        for name, items, kind in (("joints", members, Joint), ("placements", where, Placement)):
            wrong = [type(item).__name__ for item in items if not isinstance(item, kind)]
            if wrong:
                listed = "Joints" if kind is Joint else "Transforms"
                raise ModelError(f"Composite: {name} is a list of {listed}, got a {wrong[0]} in it")
        if not members:
            raise ModelError("Composite: no joints given; give at least one, or use Fixed")
        if len(where) != len(members):
            raise ModelError(
                f"Composite: {len(where)} placements given for {len(members)} joints; give one for each joint"
            )
        freedoms = sum(joint.nv for joint in members)
        if freedoms > 6:
            raise ModelError(
                f"Composite: the joints have {freedoms} freedoms together, more than a body's 6; "
                "put bodies between them"
            )
        object.__setattr__(self, "joints", members)
        object.__setattr__(self, "placements", tuple(placement.as_transform() for placement in where))

    @property
    def nv(self) -> int:
        return sum(joint.nv for joint in self.joints)

    @property
    def coordinates(self) -> tuple[str, ...]:
        return tuple(kind for joint in self.joints for kind in joint.coordinates)

    @property
    def unit_quaternions(self) -> tuple[slice, ...]:
        slices, start = [], 0
        for joint in self.joints:
            slices += [slice(start + part.start, start + part.stop) for part in joint.unit_quaternions]
            start += joint.nq
        return tuple(slices)

    @property
    def time_dependent(self) -> bool:
        return any(joint.time_dependent for joint in self.joints)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        X = Transform.identity()
        for placement, joint, own in zip(self.placements, self.joints, self._split(q, "nq")):
            X = X @ placement @ joint.transform(own, time)
        return X

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        columns: list[Motion] = []
        for placement, joint, own in zip(self.placements, self.joints, self._split(q, "nq")):
            X = placement @ joint.transform(own, time)
            columns = [X.apply(column) for column in columns] + list(joint.subspace(own, time))
        return tuple(columns)

    def velocity(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        return self._motion(q, v, time)[0]

    def bias(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        return self._motion(q, v, time)[1]

    def position_rate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        return self._joined("position_rate", self._split(q, "nq"), self._split(v, "nv"))

    def integrate(self, q: Scalars, dv: Scalars) -> list[Scalar]:
        return self._joined("integrate", self._split(q, "nq"), self._split(dv, "nv"))

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        return self._joined("difference", self._split(q0, "nq"), self._split(q1, "nq"))

    def neutral(self) -> list[float]:
        return self._joined("neutral")

    def normalize(self, q: Scalars) -> list[Scalar]:
        return self._joined("normalize", self._split(q, "nq"))

    def random(
        self,
        rng: np.random.Generator,
        lower: Sequence[float] | None = None,
        upper: Sequence[float] | None = None,
    ) -> list[float]:
        low = [None] * len(self.joints) if lower is None else self._split(lower, "nq")
        high = [None] * len(self.joints) if upper is None else self._split(upper, "nq")
        return self._joined("random", [rng] * len(self.joints), low, high)

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        moving = [k for k, joint in enumerate(self.joints) if joint.nq > 0]
        if len(moving) != 1:
            return Joint.position_of(self, X, time)  # not super(): slots make another class than this
        before, after = Transform.identity(), Transform.identity()
        for k, (placement, joint) in enumerate(zip(self.placements, self.joints)):
            if k < moving[0]:
                before = before @ placement @ joint.transform([], time)
            elif k == moving[0]:
                before = before @ placement
            else:
                after = after @ placement @ joint.transform([], time)
        return self.joints[moving[0]].position_of(before.inverse() @ X @ after.inverse(), time)

    def singularity_measure(self, q: Scalars, time: Time = None) -> Scalar:
        return relative_volume(self.subspace(q, time))

    def _motion(self, q: Scalars, v: Scalars, time: Time) -> tuple[Motion, Motion]:
        """Return v_J and c_J by (1) and (2)."""
        u, c = Motion.zero(), Motion.zero()
        parts = zip(self.placements, self.joints, self._split(q, "nq"), self._split(v, "nv"))
        for placement, joint, own, speed in parts:
            X = placement @ joint.transform(own, time)
            v_J = joint.velocity(own, speed, time)
            u = X.apply(u) + v_J  # (1)
            c = X.apply(c) + joint.bias(own, speed, time) + u.cross(v_J)  # (2)
        return u, c

    def _joined(self, method: str, *arguments: Sequence[Any]) -> list[Scalar]:
        """Return the results of one method of every joint, each with its own arguments, in one list."""
        return [x for joint, *own in zip(self.joints, *arguments) for x in getattr(joint, method)(*own)]

    def _split(self, values: Scalars, size: str) -> list[Scalars]:
        """Split q (size "nq") or v ("nv") into the joints' own."""
        sizes = [getattr(joint, size) for joint in self.joints]
        return [values[end - own : end] for own, end in zip(sizes, accumulate(sizes))]
