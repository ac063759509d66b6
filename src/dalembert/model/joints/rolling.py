"""Joints of one surface on another: a frame on an ellipsoid, a ball in a tube, a pinion on a rack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.errors import ModelError
from dalembert.model.joints.elementary_joints import turned_angle
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import (
    AXES,
    angle_about,
    basis_around,
    finite_number,
    forces,
    moments,
    reciprocal_basis,
    rotations,
    unit_axis,
    velocity_product,
)
from dalembert.scalar import Scalar, Scalars, Time, cos, sin
from dalembert.spatial import Force, Mat3, Motion, Placement, Transform, Vec3
from dalembert.spatial.exponential import quaternion_difference, quaternion_integrate
from dalembert.spatial.rotations import (
    euler_angles_of_rotation,
    euler_axes,
    euler_singularity,
    quaternion_of_rotation,
    quaternion_rate,
    rotation_about_axis,
    rotation_of_euler_angles,
    rotation_of_quaternion,
)

ORDER = "xyz"


@final
@dataclass(frozen=True, slots=True, init=False)
class EllipsoidJoint(Joint):
    """The successor's origin moves on an ellipsoid of the predecessor while the successor turns with it.

    q = three angles [rad], v = dq/dt; R = R_x(q1) R_y(q2) R_z(q3), p = D R e_z with D = diag(a, b, c) the
    radii along x, y, z [m]: successor z points along n = R e_z, and p is where the unit sphere's point n
    goes when it is stretched to the ellipsoid. It is the JointModelEllipsoid of Pinocchio 4 and the
    scapula's joint of biomechanics. Singular at q2 = ±pi/2; at q = 0 the successor stands at (0, 0, c).

    >>> da.joints.EllipsoidJoint(0.1, 0.2, 0.3).transform([0.0, 0.0, 0.0]).p
    Vec3(x=0.0, y=0.0, z=0.3)
    """

    a: Scalar
    b: Scalar
    c: Scalar

    kind = "ellipsoid"
    parameter_names = ("a", "b", "c")
    coordinates = ("angle",) * 3

    def __init__(self, a: Scalar, b: Scalar, c: Scalar) -> None:
        for name, radius in (("a", a), ("b", b), ("c", c)):
            value = finite_number(radius, name, "EllipsoidJoint")
            if isinstance(value, float) and value < 0.0:
                raise ModelError(f"EllipsoidJoint: radius {name} = {value} is negative; give a length [m]")
            object.__setattr__(self, name, value)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        R = rotation_of_euler_angles(ORDER, q)
        return Transform(R, self._stretch(R.column(2)))

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        R = rotation_of_euler_angles(ORDER, q)
        axes = euler_axes(ORDER, q)
        return tuple(Motion(axis, self._origin_velocity(R, axis)) for axis in axes)

    def bias(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        # (1) linear velocity u = R^T D R (omega x e_z)
        # (2) u° = omega° part of (1) + R^T D R (omega x (omega x e_z)) - omega x u
        R = rotation_of_euler_angles(ORDER, q)
        axes = euler_axes(ORDER, q)
        omega = axes[0] * v[0] + axes[1] * v[1] + axes[2] * v[2]
        alpha = velocity_product(axes, v)
        z = Vec3.unit(2)
        swing = alpha.cross(z) + omega.cross(omega.cross(z))
        linear = R.transposed_times(self._stretch(R @ swing)) - omega.cross(self._origin_velocity(R, omega))
        return Motion(alpha, linear)

    def constraint_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        # A force f does the power f . R^T D R (omega x e_z), which the moment -(e_z x R^T D R f) cancels.
        R = rotation_of_euler_angles(ORDER, q)
        levers = [R.transposed_times(self._stretch(R @ axis)) for axis in AXES]
        return tuple(Force(lever.cross(AXES[2]), axis) for lever, axis in zip(levers, AXES))

    def active_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        return moments(*reciprocal_basis(*euler_axes(ORDER, q)))

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return euler_angles_of_rotation(ORDER, X.R)

    def singularity_measure(self, q: Scalars, time: Time = None) -> Scalar:
        return euler_singularity(ORDER, q)

    def _stretch(self, n: Vec3) -> Vec3:
        """Return D n, the point of the ellipsoid for the unit vector n."""
        return Vec3(self.a * n.x, self.b * n.y, self.c * n.z)

    def _origin_velocity(self, R: Mat3, omega: Vec3) -> Vec3:
        """Return the linear velocity R^T D R (omega x e_z) of the origin for an angular velocity."""
        return R.transposed_times(self._stretch(R @ omega.cross(Vec3.unit(2))))


@final
@dataclass(frozen=True, slots=True, init=False)
class SphereInCylinder(Joint):
    """A ball, fixed to the successor, turns freely and slides along the axis of a tube fixed to the
    predecessor.

    q = (distance along the axis [m], quaternion), v = (omega in successor coordinates [rad/s], sliding speed
    [m/s]). Its two constraints replace a revolute joint's five where that would overconstrain a planar loop
    (Featherstone 2008 section 8.10). With E the rotation into successor coordinates: S = (e1, e2, e3, (0, E
    a)), T = (0, E t1), (0, E t2).

    >>> joint = da.joints.SphereInCylinder((0, 0, 1))
    >>> joint.nv, len(joint.constraint_subspace(joint.neutral()))
    (4, 2)
    """

    axis: Vec3

    kind = "sphere_in_cylinder"
    parameter_names = ("axis",)
    coordinates = ("length",) + ("quaternion",) * 4

    def __init__(self, axis: Sequence[Scalar] | Vec3 = (0.0, 0.0, 1.0)) -> None:
        object.__setattr__(self, "axis", unit_axis(axis, "SphereInCylinder"))

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return Transform(_rotation(q), self.axis * q[0])

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        slide = Motion(Vec3.zero(), _rotation(q).transposed_times(self.axis))
        return (*rotations(*AXES), slide)

    def bias(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        # The axis is fixed in the predecessor: (E a)° = E a x omega.
        a = _rotation(q).transposed_times(self.axis)
        return Motion(Vec3.zero(), a.cross(Vec3(*v[:3])) * v[3])

    def position_rate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        return [v[3], *quaternion_rate(q[1:], Vec3(*v[:3]))]

    def integrate(self, q: Scalars, dv: Scalars) -> list[Scalar]:
        return [q[0] + dv[3], *quaternion_integrate(q[1:], Vec3(*dv[:3]))]

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        return [*quaternion_difference(q0[1:], q1[1:]), q1[0] - q0[0]]

    def constraint_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        return self.constraint_subspace_at(self.transform(q).as_transform(), time)

    def constraint_subspace_at(self, X: Transform, time: Time = None) -> tuple[Force, ...]:
        t1, t2, _ = basis_around(self.axis)
        return forces(X.R.transposed_times(t1), X.R.transposed_times(t2))

    def active_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        push = forces(_rotation(q).transposed_times(self.axis))
        return moments(*AXES) + push

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return [self.axis.dot(X.p), *quaternion_of_rotation(X.R)]

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        # X_err is a translation across the axis, so that T^T d is exact.
        t1, t2, _ = basis_around(self.axis)
        return [t1.dot(X.p), t2.dot(X.p)]


def _rotation(q: Scalars) -> Mat3:
    return rotation_of_quaternion(q[1:])


@final
@dataclass(frozen=True, slots=True, init=False)
class RackPinion(Joint):
    """A pinion, centred on z of the successor, rolls along a rack parallel to x of the predecessor.

    q [rad] is the pinion's angle, r its radius [m] (signed: a rack on the other side): the pinion stands at
    (r q, 0, 0), S = (0, 0, 1, r c, -r s, 0), c_J = (0, 0, 0, -r s, -r c, 0) v² (Featherstone 2008 Example
    4.6).

    >>> joint = da.joints.RackPinion(radius=0.1)
    >>> print(round(joint.transform([np.pi]).p.x, 6))
    0.314159
    """

    radius: Scalar

    kind = "rack_pinion"
    parameter_names = ("radius",)
    coordinates = ("angle",)

    def __init__(self, radius: Scalar) -> None:
        object.__setattr__(self, "radius", finite_number(radius, "radius", "RackPinion"))

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return Transform(rotation_about_axis(2, q[0]), Vec3(self.radius * q[0], 0.0, 0.0))

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        c, s = cos(q[0]), sin(q[0])
        return (Motion(Vec3.unit(2), Vec3(self.radius * c, -(self.radius * s), 0.0)),)

    def bias(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        c, s = cos(q[0]), sin(q[0])
        push = self.radius * v[0] * v[0]
        return Motion(Vec3.zero(), Vec3(-(push * s), -(push * c), 0.0))

    def constraint_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        c, s = cos(q[0]), sin(q[0])
        rolling = Force(Vec3(0.0, 0.0, -self.radius), Vec3(c, -s, 0.0))
        return moments(AXES[0], AXES[1]) + (rolling,) + forces(Vec3(s, c, 0.0), Vec3.unit(2))

    def active_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        return moments(Vec3.unit(2))

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return [turned_angle(angle_about(Vec3.unit(2), X.R), X.p.x, self.radius)]
