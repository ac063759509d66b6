"""Joints that rotate about a point: spherical joints by their coordinates, and the universal joint."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from dalembert.errors import ModelError
from dalembert.model.joints.joint import ConstantSubspaceJoint, Joint, origin_offset
from dalembert.model.joints.subspaces import (
    AXES,
    angle_about,
    forces,
    moments,
    reciprocal_basis,
    rotations,
    unit_axis,
    velocity_product,
)
from dalembert.scalar import Scalar, Scalars, Time, absolute, atan2
from dalembert.spatial import Force, Motion, Placement, Transform, Vec3
from dalembert.spatial.exponential import (
    ExponentialCoefficients,
    quaternion_difference,
    quaternion_integrate,
    so3_exp,
    so3_log,
    so3_right_jacobian,
)
from dalembert.spatial.rotations import (
    EULER_ORDERS,
    euler_angles_of_rotation,
    euler_axes,
    euler_singularity,
    quaternion_of_rotation,
    quaternion_rate,
    rotation_about,
    rotation_of_euler_angles,
    rotation_of_quaternion,
)


@final
@dataclass(frozen=True, slots=True)
class Spherical(ConstantSubspaceJoint):
    """Rotation about a point: q = Euler parameters (w, x, y, z), v = omega [rad/s] in successor coordinates.

    S = (e1, e2, e3), dq/dt = ½ Q(q) omega (Featherstone 2008 Table 4.1, Eqs 4.12 and 4.13). Free of
    singularities.

    >>> joint = da.Spherical()
    >>> joint.neutral()
    [1.0, 0.0, 0.0, 0.0]
    >>> joint.position_rate(joint.neutral(), [0.0, 0.0, 2.0])
    [0.0, 0.0, 0.0, 1.0]
    """

    kind = "spherical"
    coordinates = ("quaternion",) * 4
    _turns = (0, 1, 2)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return Transform(rotation_of_quaternion(q), Vec3.zero())

    def position_rate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        return quaternion_rate(q, Vec3(*v))

    def integrate(self, q: Scalars, dv: Scalars) -> list[Scalar]:
        return quaternion_integrate(q, Vec3(*dv))

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        return list(quaternion_difference(q0, q1))

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return quaternion_of_rotation(X.R)

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        return list(origin_offset(X))


class RotationJoint(Joint):
    """Abstract: rotations about axes through one point; S = (w_i, 0) with the axes w_i of `_axes`.

    The defaults are those of three rotations in series.
    """

    __slots__ = ()

    @abstractmethod
    def _axes(self, q: Scalars) -> tuple[Vec3, ...]:
        """Return the axes of rotation in successor coordinates."""

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        return rotations(*self._axes(q))

    def bias(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        return Motion(velocity_product(self._axes(q), v), Vec3.zero())

    def constraint_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        return forces(*AXES)

    def active_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        return moments(*reciprocal_basis(*self._axes(q)))


@final
@dataclass(frozen=True, slots=True, init=False)
class SphericalEuler(RotationJoint):
    """Rotation about a point: q = three angles [rad] about the axes of `order`, v = dq/dt (Featherstone 2008
    section 4.5).

    The rotations are intrinsic: "zyx" is yaw about z, pitch about the new y, roll about the new x. S varies
    while T is constant. Singular where `singularity_measure` is zero: |cos q2| = 0, or |sin q2| = 0 for
    orders such as "zxz".

    >>> joint = da.SphericalEuler("zyx")
    >>> print(round(joint.singularity_measure([0.0, np.pi / 2, 0.0]), 6))
    0.0
    """

    order: str

    kind = "spherical_euler"
    constant_constraint_forces = True
    coordinates = ("angle",) * 3

    def __init__(self, order: str = "zyx") -> None:
        letters = order.lower() if isinstance(order, str) else ""
        if letters not in EULER_ORDERS:
            raise ModelError(
                f"Euler angles cannot be taken in the order {order!r}; give three letters x, y, z of which "
                'neighbours differ, such as "zyx" or "zxz"'
            )
        object.__setattr__(self, "order", letters)

    def structure(self) -> tuple[Any, ...]:
        return (self.kind, self.order)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return Transform(rotation_of_euler_angles(self.order, q), Vec3.zero())

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return euler_angles_of_rotation(self.order, X.R)

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        return list(origin_offset(X))

    def singularity_measure(self, q: Scalars, time: Time = None) -> Scalar:
        return euler_singularity(self.order, q)

    def _axes(self, q: Scalars) -> tuple[Vec3, ...]:
        return euler_axes(self.order, q)


@final
@dataclass(frozen=True, slots=True)
class SphericalExponential(RotationJoint):
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
    coordinates = ("angle",) * 3

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return Transform(so3_exp(Vec3(*q)), Vec3.zero())

    def bias(self, q: Scalars, v: Scalars, time: Time = None) -> Motion:
        # omega = v - B q x v + C q x (q x v), differentiated with dq/dt = v and v held.
        w, rate = Vec3(*q), Vec3(*v)
        k = ExponentialCoefficients(w.dot(w))
        s_rate = 2.0 * w.dot(rate)
        turned = w.cross(rate)
        double = w.cross(turned)
        c = double * (k.C_rate * s_rate) - turned * (k.B_rate * s_rate) + rate.cross(turned) * k.C
        return Motion(c, Vec3.zero())

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return list(so3_log(X.R))

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        return list(origin_offset(X))

    def singularity_measure(self, q: Scalars, time: Time = None) -> Scalar:
        w = Vec3(*q)
        return absolute(2.0 * ExponentialCoefficients(w.dot(w)).B)

    def _axes(self, q: Scalars) -> tuple[Vec3, ...]:
        J = so3_right_jacobian(Vec3(*q))
        return J.column(0), J.column(1), J.column(2)


PARALLEL_TOLERANCE = 1.0e-6
"""Axes whose cross product is shorter than this span one freedom, not two."""


@final
@dataclass(frozen=True, slots=True, init=False)
class Universal(RotationJoint):
    """Rotation by q1 about axis1, fixed in the predecessor, then by q2 about axis2, fixed in the successor
    [rad].

    R = R(axis1, q1) R(axis2, q2); S = (R(axis2, q2)^T axis1, axis2), angular. The axes need not be
    perpendicular.

    >>> joint = da.Universal((1, 0, 0), (0, 1, 0))
    >>> [s.angular.to_list() for s in joint.subspace([0.4, 0.0])]
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """

    axis1: Vec3
    axis2: Vec3

    kind = "universal"
    parameter_names = ("axis1", "axis2")
    coordinates = ("angle", "angle")

    def __init__(
        self,
        axis1: Sequence[Scalar] | Vec3 = (1.0, 0.0, 0.0),
        axis2: Sequence[Scalar] | Vec3 = (0.0, 1.0, 0.0),
    ) -> None:
        first, second = unit_axis(axis1, "Universal, axis1"), unit_axis(axis2, "Universal, axis2")
        sine = first.cross(second).norm()
        if isinstance(sine, float) and sine < PARALLEL_TOLERANCE:
            raise ModelError(
                f"Universal: axis1 {list(first)} and axis2 {list(second)} are parallel; "
                "give two directions, or use Revolute"
            )
        object.__setattr__(self, "axis1", first)
        object.__setattr__(self, "axis2", second)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return Transform(rotation_about(self.axis1, q[0]) @ rotation_about(self.axis2, q[1]), Vec3.zero())

    def constraint_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        w1, w2 = self._axes(q)
        return moments(w1.cross(w2)) + forces(*AXES)

    def active_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        w1, w2 = self._axes(q)
        return moments(*reciprocal_basis(w1, w2, w1.cross(w2))[:2])

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        # axis2 keeps its direction in the second rotation, so that the first takes axis2 to R axis2.
        a, b = self.axis1, self.axis2
        image = X.R @ b
        q1 = atan2(a.dot(b.cross(image)), b.dot(image) - a.dot(b) * a.dot(image))
        return [q1, angle_about(b, rotation_about(a, q1).transpose() @ X.R)]

    def _axes(self, q: Scalars) -> tuple[Vec3, ...]:
        return rotation_about(self.axis2, q[1]).transposed_times(self.axis1), self.axis2
