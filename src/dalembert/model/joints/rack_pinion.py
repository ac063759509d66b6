"""Rack-and-pinion joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.model.joints.axes import angle_about, finite_number
from dalembert.model.joints.helical import turned_angle
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments
from dalembert.scalar import Scalar, cos, sin
from dalembert.spatial import Force, Motion, Placement, Transform, Vec3
from dalembert.spatial.rotations import rotation_about_axis

__all__ = ["RackPinion"]


@final
@dataclass(frozen=True, slots=True, init=False)
class RackPinion(Joint):
    """A pinion, centred on z of the successor, rolls along a rack parallel to x of the predecessor.

    q [rad] is the pinion's angle, r its radius [m] (signed: a rack on the other side): the pinion stands at
    (r q, 0, 0), S = (0, 0, 1, r c, -r s, 0), c_J = (0, 0, 0, -r s, -r c, 0) v² (Featherstone 2008 Example
    4.6).

    >>> joint = da.RackPinion(radius=0.1)
    >>> print(round(joint.transform([np.pi]).p.x, 6))
    0.314159
    """

    radius: Scalar

    kind = "rack_pinion"
    parameter_names = ("radius",)
    nq = 1
    nv = 1
    coordinates = ("angle",)

    def __init__(self, radius: Scalar) -> None:
        object.__setattr__(self, "radius", finite_number(radius, "radius", "RackPinion"))

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return Transform(rotation_about_axis(2, q[0]), Vec3(self.radius * q[0], 0.0, 0.0))

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        c, s = cos(q[0]), sin(q[0])
        return (Motion(Vec3.unit(2), Vec3(self.radius * c, -(self.radius * s), 0.0)),)

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        c, s = cos(q[0]), sin(q[0])
        push = self.radius * v[0] * v[0]
        return Motion(Vec3.zero(), Vec3(-(push * s), -(push * c), 0.0))

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        c, s = cos(q[0]), sin(q[0])
        rolling = Force(Vec3(0.0, 0.0, -self.radius), Vec3(c, -s, 0.0))
        return moments(Vec3.unit(0), Vec3.unit(1)) + (rolling,) + forces(Vec3(s, c, 0.0), Vec3.unit(2))

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(Vec3.unit(2))

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return [turned_angle(angle_about(Vec3.unit(2), X.R), X.p.x, self.radius)]
