"""Spherical joint with the exponential map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.model.joints import rotation_maps as maps
from dalembert.model.joints.axes import Placement
from dalembert.model.joints.closure import origin_offset
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments, reciprocal_basis, rotations
from dalembert.scalar import Scalar, absolute
from dalembert.spatial import Force, Mat3, Motion, Transform, Vec3

__all__ = ["SphericalExponential"]


@final
@dataclass(frozen=True, slots=True)
class SphericalExponential(Joint):
    """Rotation about a point: q = rotation vector [rad], R = exp(q x), v = dq/dt.

    R = 1 + A q x + B q x q x and, in successor coordinates, S = 1 - B q x + C q x q x (Liu & Jain Eqs 53 to
    56, whose Jacobian is in the parent frame: R times ours), with A, B, C of `ExponentialCoefficients`.
    Singular at |q| = 2 pi.
    """

    kind = "spherical_exponential"
    nq = 3
    nv = 3
    coordinates = ("angle",) * 3

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        w = Vec3(*q)
        k = maps.ExponentialCoefficients(w.dot(w))
        bx, by, bz = w * k.B
        xx, yy, zz = w.x * bx, w.y * by, w.z * bz
        xy, xz, yz = w.x * by, w.x * bz, w.y * bz
        ax, ay, az = w * k.A
        R = Mat3(
            1.0 - (yy + zz), xy - az, xz + ay,
            xy + az, 1.0 - (xx + zz), yz - ax,
            xz - ay, yz + ax, 1.0 - (xx + yy),
        )  # fmt: skip
        return Transform(R, Vec3.zero())

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return rotations(*_axes(q))

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        # omega = v - B q x v + C q x (q x v), differentiated with dq/dt = v and v held.
        w, rate = Vec3(*q), Vec3(*v)
        k = maps.ExponentialCoefficients(w.dot(w))
        s_rate = 2.0 * w.dot(rate)
        turned = w.cross(rate)
        double = w.cross(turned)
        c = double * (k.C_rate * s_rate) - turned * (k.B_rate * s_rate) + rate.cross(turned) * k.C
        return Motion(c, Vec3.zero())

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return forces(Vec3.unit(0), Vec3.unit(1), Vec3.unit(2))

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(*reciprocal_basis(*_axes(q)))

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return list(maps.quaternion_log(maps.quaternion_from_rotation(X.R)))

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return list(origin_offset(X))

    def singularity_measure(self, q: Sequence[Scalar], time: Scalar | None = None) -> Scalar:
        w = Vec3(*q)
        return absolute(2.0 * maps.ExponentialCoefficients(w.dot(w)).B)


def _axes(q: Sequence[Scalar]) -> tuple[Vec3, Vec3, Vec3]:
    """The columns of 1 - B q x + C (q q^T - s 1)."""
    w = Vec3(*q)
    k = maps.ExponentialCoefficients(w.dot(w))
    diagonal = 1.0 - k.C * k.s
    cx, cy, cz = w * k.C
    bx, by, bz = w * k.B
    xy, xz, yz = w.x * cy, w.x * cz, w.y * cz
    return (
        Vec3(diagonal + w.x * cx, xy - bz, xz + by),
        Vec3(xy + bz, diagonal + w.y * cy, yz - bx),
        Vec3(xz - by, yz + bx, diagonal + w.z * cz),
    )
