"""Ellipsoid joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.errors import ModelError
from dalembert.model.joints.axes import finite_number
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import moments, reciprocal_basis, velocity_product
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Mat3, Motion, Placement, Transform, Vec3
from dalembert.spatial.rotations import (
    euler_angles_of_rotation,
    euler_axes,
    euler_singularity,
    rotation_of_euler_angles,
)

__all__ = ["Ellipsoid"]

ORDER = "xyz"


@final
@dataclass(frozen=True, slots=True, init=False)
class Ellipsoid(Joint):
    """The successor's origin moves on an ellipsoid of the predecessor while the successor turns with it.

    q = three angles [rad], v = dq/dt; R = R_x(q1) R_y(q2) R_z(q3), p = D R e_z with D = diag(a, b, c) the
    radii along x, y, z [m]: successor z points along n = R e_z, and p is where the unit sphere's point n
    goes when it is stretched to the ellipsoid. It is the JointModelEllipsoid of Pinocchio 4 and the
    scapula's joint of biomechanics. Singular at q2 = ±pi/2; at q = 0 the successor stands at (0, 0, c).

    >>> da.Ellipsoid(0.1, 0.2, 0.3).transform([0.0, 0.0, 0.0]).p
    Vec3(x=0.0, y=0.0, z=0.3)
    """

    a: Scalar
    b: Scalar
    c: Scalar

    kind = "ellipsoid"
    parameter_names = ("a", "b", "c")
    nq = 3
    nv = 3
    coordinates = ("angle",) * 3

    def __init__(self, a: Scalar, b: Scalar, c: Scalar) -> None:
        for name, radius in (("a", a), ("b", b), ("c", c)):
            value = finite_number(radius, name, "Ellipsoid")
            if isinstance(value, float) and value < 0.0:
                raise ModelError(f"Ellipsoid: radius {name} = {value} is negative; give a length [m]")
            object.__setattr__(self, name, value)

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        R = rotation_of_euler_angles(ORDER, q)
        return Transform(R, self._stretch(R.column(2)))

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        R = rotation_of_euler_angles(ORDER, q)
        axes = euler_axes(ORDER, q)
        return tuple(Motion(axis, self._origin_velocity(R, axis)) for axis in axes)

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
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

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        # A force f does the power f . R^T D R (omega x e_z), which the moment -(e_z x R^T D R f) cancels.
        R = rotation_of_euler_angles(ORDER, q)
        columns = []
        for axis in (Vec3.unit(0), Vec3.unit(1), Vec3.unit(2)):
            lever = R.transposed_times(self._stretch(R @ axis))
            columns.append(Force(lever.cross(Vec3.unit(2)), axis))
        return tuple(columns)

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(*reciprocal_basis(*euler_axes(ORDER, q)))

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return euler_angles_of_rotation(ORDER, X.R)

    def singularity_measure(self, q: Sequence[Scalar], time: Scalar | None = None) -> Scalar:
        return euler_singularity(ORDER, q)

    def _stretch(self, n: Vec3) -> Vec3:
        """Return D n, the point of the ellipsoid for the unit vector n."""
        return Vec3(self.a * n.x, self.b * n.y, self.c * n.z)

    def _origin_velocity(self, R: Mat3, omega: Vec3) -> Vec3:
        """Return the linear velocity R^T D R (omega x e_z) of the origin for an angular velocity."""
        return R.transposed_times(self._stretch(R @ omega.cross(Vec3.unit(2))))
