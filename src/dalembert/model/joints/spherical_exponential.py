"""Spherical joint with the exponential map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.model.joints.closure import origin_offset
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments, reciprocal_basis, rotations
from dalembert.scalar import Scalar, absolute
from dalembert.spatial import Force, Motion, Placement, Transform, Vec3
from dalembert.spatial.exponential import so3_exp, so3_log, so3_right_jacobian
from dalembert.spatial.exponential_coefficients import ExponentialCoefficients

__all__ = ["SphericalExponential"]


@final
@dataclass(frozen=True, slots=True)
class SphericalExponential(Joint):
    """Rotation about a point: q = rotation vector [rad], R = exp(q x), v = dq/dt.

    R = 1 + A q x + B q x q x and, in successor coordinates, S = 1 - B q x + C q x q x (Liu & Jain Eqs 53 to
    56, whose Jacobian is in the parent frame: R times ours), with A, B, C of `ExponentialCoefficients`.
    Singular at |q| = 2 pi.

    >>> R = da.SphericalExponential().transform([0.0, 0.0, np.pi / 2]).R
    >>> print(np.round(R.to_list(), 6).tolist()[0])
    [0.0, -1.0, 0.0]
    """

    kind = "spherical_exponential"
    constant_constraint_forces = True
    nq = 3
    nv = 3
    coordinates = ("angle",) * 3

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return Transform(so3_exp(Vec3(*q)), Vec3.zero())

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return rotations(*_axes(q))

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        # omega = v - B q x v + C q x (q x v), differentiated with dq/dt = v and v held.
        w, rate = Vec3(*q), Vec3(*v)
        k = ExponentialCoefficients(w.dot(w))
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
        return list(so3_log(X.R))

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return list(origin_offset(X))

    def singularity_measure(self, q: Sequence[Scalar], time: Scalar | None = None) -> Scalar:
        w = Vec3(*q)
        return absolute(2.0 * ExponentialCoefficients(w.dot(w)).B)


def _axes(q: Sequence[Scalar]) -> tuple[Vec3, Vec3, Vec3]:
    """Return the angular parts of the columns of S."""
    J = so3_right_jacobian(Vec3(*q))
    return J.column(0), J.column(1), J.column(2)
