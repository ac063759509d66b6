"""Several joints in a row as one joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dalembert.errors import ModelError, items_of
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import relative_volume
from dalembert.scalar import Scalar
from dalembert.spatial import Motion, Placement, Transform


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

    >>> joint = da.Composite([da.Revolute((1, 0, 0)), da.Revolute((0, 1, 0))])  # a universal joint
    >>> joint.nq, joint.nv
    (2, 2)
    """

    joints: tuple[Joint, ...]
    placements: tuple[Transform, ...]

    kind = "composite"
    parameter_names = ("joints", "placements")

    def __init__(self, joints: Sequence[Joint], placements: Sequence[Placement] | None = None) -> None:
        members = tuple(items_of(joints))
        for member in members:
            if not isinstance(member, Joint):
                raise ModelError(
                    f"Composite: joints is a list of Joints, got a {type(member).__name__} in it"
                )
        where = (Transform.identity(),) * len(members)
        if placements is not None:
            where = tuple(items_of(placements))
        for place in where:
            if not isinstance(place, Placement):
                raise ModelError(
                    f"Composite: placements is a list of Transforms, got a {type(place).__name__} in it"
                )
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
    def nq(self) -> int:
        return sum(joint.nq for joint in self.joints)

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

    def structure(self) -> tuple[Any, ...]:
        return (self.kind, *(joint.structure() for joint in self.joints))

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        X = Transform.identity()
        for placement, joint, own in zip(self.placements, self.joints, self._positions(q)):
            X = X @ placement @ joint.transform(own, time)
        return X

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        columns: list[Motion] = []
        for placement, joint, own in zip(self.placements, self.joints, self._positions(q)):
            X = placement @ joint.transform(own, time)
            columns = [X.apply(column) for column in columns] + list(joint.subspace(own, time))
        return tuple(columns)

    def velocity(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        return self._motion(q, v, time)[0]

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        return self._motion(q, v, time)[1]

    def position_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        parts = zip(self.joints, self._positions(q), self._velocities(v))
        return [rate for joint, own, speed in parts for rate in joint.position_rate(own, speed)]

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        parts = zip(self.joints, self._positions(q), self._velocities(dv))
        return [x for joint, own, step in parts for x in joint.integrate(own, step)]

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        parts = zip(self.joints, self._positions(q0), self._positions(q1))
        return [step for joint, start, end in parts for step in joint.difference(start, end)]

    def neutral(self) -> list[float]:
        return [x for joint in self.joints for x in joint.neutral()]

    def normalize(self, q: Sequence[Scalar]) -> list[Scalar]:
        return [x for joint, own in zip(self.joints, self._positions(q)) for x in joint.normalize(own)]

    def random(
        self,
        rng: np.random.Generator,
        lower: Sequence[float] | None = None,
        upper: Sequence[float] | None = None,
    ) -> list[float]:
        low = [None] * len(self.joints) if lower is None else self._positions(lower)
        high = [None] * len(self.joints) if upper is None else self._positions(upper)
        return [x for joint, a, b in zip(self.joints, low, high) for x in joint.random(rng, a, b)]

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        moving = [k for k, joint in enumerate(self.joints) if joint.nq > 0]
        if len(moving) != 1:
            # Not zero-argument super(): a dataclass with slots is not the class that this method was
            # compiled in.
            return Joint.position_of(self, X, time)
        before, after = Transform.identity(), Transform.identity()
        for k, (placement, joint) in enumerate(zip(self.placements, self.joints)):
            if k < moving[0]:
                before = before @ placement @ joint.transform([], time)
            elif k == moving[0]:
                before = before @ placement
            else:
                after = after @ placement @ joint.transform([], time)
        return self.joints[moving[0]].position_of(before.inverse() @ X @ after.inverse(), time)

    def singularity_measure(self, q: Sequence[Scalar], time: Scalar | None = None) -> Scalar:
        return relative_volume(self.subspace(q, time))

    def _motion(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None) -> tuple[Motion, Motion]:
        """Return v_J and c_J by (1) and (2)."""
        u, c = Motion.zero(), Motion.zero()
        parts = zip(self.placements, self.joints, self._positions(q), self._velocities(v))
        for placement, joint, own, speed in parts:
            X = placement @ joint.transform(own, time)
            v_J = joint.velocity(own, speed, time)
            u = X.apply(u) + v_J  # (1)
            c = X.apply(c) + joint.bias(own, speed, time) + u.cross(v_J)  # (2)
        return u, c

    def _positions(self, q: Sequence[Scalar]) -> list[Sequence[Scalar]]:
        """Split q into the joints' own."""
        return _cut(q, [joint.nq for joint in self.joints])

    def _velocities(self, v: Sequence[Scalar]) -> list[Sequence[Scalar]]:
        """Split v into the joints' own."""
        return _cut(v, [joint.nv for joint in self.joints])


def _cut(values: Sequence[Scalar], sizes: Sequence[int]) -> list[Sequence[Scalar]]:
    """Split the sequence into consecutive pieces of the given sizes."""
    pieces, start = [], 0
    for size in sizes:
        pieces.append(values[start : start + size])
        start += size
    return pieces
