"""The elementary joints: those of constant S (lower pairs, free, fixed), and rotations about a point.

A joint of constant S says about which axes of its basis it turns and along which it shifts; S, T and T_a
follow.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from dalembert.errors import ModelError
from dalembert.model.joints.joint import ConstantSubspaceJoint, Joint, SingleAxisJoint, displacement
from dalembert.model.joints.subspaces import (
    AXES,
    angle_about,
    basis_around,
    finite_number,
    forces,
    moments,
    reciprocal_basis,
    rotations,
    screw,
    unit_axis,
    velocity_product,
)
from dalembert.scalar import Scalar, Scalars, Time, absolute, atan2, cos, floor, select, sin
from dalembert.spatial import Force, Mat3, Motion, Placement, Transform, Vec3, exponential
from dalembert.spatial.exponential import ExponentialCoefficients, quaternion_difference, quaternion_integrate
from dalembert.spatial.rotations import (
    EULER_ORDERS,
    euler_angles_of_rotation,
    euler_axes,
    euler_singularity,
    quaternion_of_rotation,
    quaternion_rate,
    rotation_about,
    rotation_about_axis,
    rotation_of_euler_angles,
    rotation_of_quaternion,
)


def _axis_errors(axis: Vec3, X: Transform) -> list[Scalar]:
    """Return (E23, -E13, X53, -X43, X41 X21 + X42 X22) of Table 8.1: the delta of a revolute joint.

    The first two are the tilt of the axis, the next two the distance from it, the last is the displacement
    along it. In the book's matrix ^sX_p = [E 0; L E], E = R^T and L = -E r x, r = X.p. The table is written
    for joints along z; here a is any unit axis with a basis (t1, t2, a) around it:

        u = E a        column 3 of E        (E23, -E13) = (u x a) along t1, t2
        w = L a        column 3 of L        (X53, -X43) = (w x a) along t1, t2
    """
    t1, t2, a = basis_around(axis)
    E = X.R.transpose()
    u, w = E @ a, E @ a.cross(X.p)
    # L E^T = -(E r) x, so that the sum over all three columns is a . E r; the table leaves out the third
    # product.
    offset = a.dot(X.R.transposed_times(X.p)) - w.dot(t1) * u.dot(t2)
    return [u.dot(t2), -u.dot(t1), w.dot(t2), -w.dot(t1), offset]


@final
@dataclass(frozen=True, slots=True, init=False)
class Revolute(SingleAxisJoint):
    """Rotation by q [rad] about an axis through the origin: S = (a, 0) (Featherstone 2008 Table 4.1).

    Without limits it is a continuous joint; the angle is never wrapped. Along a coordinate axis, of either
    sign, the transform is an axial screw.

    >>> joint = da.Revolute((0, 0, 1))
    >>> print(np.round(joint.transform([np.pi / 2]).R.to_list(), 6).tolist()[0])
    [0.0, -1.0, 0.0]
    >>> joint.subspace([0.0])[0].to_list()
    [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    """

    kind = "revolute"
    coordinates = ("angle",)
    _turns = (2,)

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        return _axis_errors(self.axis, X)


@final
@dataclass(frozen=True, slots=True, init=False)
class Prismatic(SingleAxisJoint):
    """Translation by q [m] along an axis: S = (0, a) (Featherstone 2008 Table 4.1).

    >>> da.Prismatic((1, 0, 0)).transform([0.5]).p
    Vec3(x=0.5, y=0.0, z=0.0)
    """

    kind = "prismatic"
    coordinates = ("length",)
    _shifts = (2,)

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        turn = X.R.axial()  # ½ (E23 - E32, E31 - E13, E12 - E21)
        return [turn.dot(t) for t in basis_around(self.axis)] + _axis_errors(self.axis, X)[2:4]


PITCH_TOLERANCE = 1.0e-12
"""Below this advance per radian [m] the angle of a screw cannot be told from how far it has advanced."""


def turned_angle(angle: Scalar, advance: Scalar, pitch: Scalar) -> Scalar:
    """Return the angle plus the whole turns that bring pitch times angle nearest to the advance [m]."""
    usable = absolute(pitch) > PITCH_TOLERANCE
    turns = floor((advance / select(usable, pitch, 1.0) - angle) / math.tau + 0.5)
    return angle + select(usable, turns, 0.0) * math.tau


@final
@dataclass(frozen=True, slots=True, init=False)
class Helical(SingleAxisJoint):
    """Rotation by q [rad] about an axis with an advance of h q along it: S = (a, h a) (Featherstone 2008
    Table 4.1).

    `pitch` is h [m/rad]: the advance per radian, not per turn.

    >>> joint = da.joints.Helical((0, 0, 1), pitch=0.1)
    >>> print(joint.subspace([0.0])[0].to_list())
    [0.0, 0.0, 1.0, 0.0, 0.0, 0.1]
    """

    pitch: Scalar

    kind = "helical"
    parameter_names = ("axis", "pitch")
    coordinates = ("angle",)

    def __init__(self, axis: Sequence[Scalar] | Vec3 = (0.0, 0.0, 1.0), pitch: Scalar = 0.0) -> None:
        SingleAxisJoint.__init__(self, axis)
        object.__setattr__(self, "pitch", finite_number(pitch, "pitch", "Helical"))

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return screw(self.axis, q[0], self.pitch * q[0])

    def subspace(self, q: Scalars, time: Time = None) -> tuple[Motion, ...]:
        return (Motion(self.axis, self.axis * self.pitch),)

    def constraint_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        t1, t2, a = basis_around(self.axis)
        return moments(t1, t2) + forces(t1, t2) + (Force(a * -self.pitch, a),)

    def active_subspace(self, q: Scalars, time: Time = None) -> tuple[Force, ...]:
        return moments(self.axis)

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return [turned_angle(angle_about(self.axis, X.R), self.axis.dot(X.p), self.pitch)]


@final
@dataclass(frozen=True, slots=True, init=False)
class Cylindrical(SingleAxisJoint):
    """Rotation by q1 [rad] about and translation by q2 [m] along an axis (Featherstone 2008 Table 4.1).

    >>> joint = da.joints.Cylindrical((0, 0, 1))
    >>> print(joint.transform([np.pi / 2, 0.3]).p, joint.nv)
    Vec3(x=0.0, y=0.0, z=0.3) 2
    """

    kind = "cylindrical"
    coordinates = ("angle", "length")
    _turns = (2,)
    _shifts = (2,)

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        return _axis_errors(self.axis, X)[:4]


@final
@dataclass(frozen=True, slots=True)
class Planar(ConstantSubspaceJoint):
    """Motion in the x-y plane: q = (x, y, angle), v = (omega, v_x, v_y) in successor coordinates.

    x and y [m] are in predecessor coordinates, unlike those of Featherstone 2008 Table 4.1, so that a body
    far away can spin without moving its coordinates; S = (e3, e4, e5) is the table's. With R(angle): d(x,
    y)/dt = R (v_x, v_y). Positions integrate by the exponential of SE(2). The angle is not wrapped:
    `difference` counts whole turns, and a displacement between poses exactly n turns apart (n not 0) does
    not exist unless the points coincide.

    >>> joint = da.joints.Planar()
    >>> print(np.round(joint.position_rate([0.0, 0.0, np.pi / 2], [0.0, 1.0, 0.0]), 6).tolist())
    [0.0, 1.0, 0.0]
    """

    kind = "planar"
    coordinates = ("length", "length", "angle")
    _turns = (2,)
    _shifts = (0, 1)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        x, y, angle = q
        return Transform(rotation_about_axis(2, angle), Vec3(x, y, 0.0))

    def position_rate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        return [*_turn(q[2], v[1], v[2]), v[0]]

    def integrate(self, q: Scalars, dv: Scalars) -> list[Scalar]:
        x, y, angle = q
        turn, dx, dy = dv
        path_x, path_y, _ = exponential.se2_exp(turn, dx, dy)
        step_x, step_y = _turn(angle, path_x, path_y)
        return [x + step_x, y + step_y, angle + turn]

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        dx, dy = _turn(-q0[2], q1[0] - q0[0], q1[1] - q0[1])
        return list(exponential.se2_log(dx, dy, q1[2] - q0[2]))

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return [X.p.x, X.p.y, angle_about(Vec3.unit(2), X.R)]


def _turn(angle: Scalar, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """Rotate (x, y) by the angle."""
    c, s = cos(angle), sin(angle)
    return c * x - s * y, s * x + c * y


@final
@dataclass(frozen=True, slots=True)
class Translation(ConstantSubspaceJoint):
    """Translation by q = (x, y, z) [m] without rotation: S = (e4, e5, e6).

    >>> da.joints.Translation().transform([1.0, 2.0, 3.0]).p
    Vec3(x=1.0, y=2.0, z=3.0)
    """

    kind = "translation"
    coordinates = ("length",) * 3
    _shifts = (0, 1, 2)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return Transform(Mat3.identity(), Vec3(*q))

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return list(X.p)

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        return list(X.R.axial())


@final
@dataclass(frozen=True, slots=True)
class Free(ConstantSubspaceJoint):
    """No constraint: q = (position in predecessor coordinates [m], quaternion), v = (omega, v_O) in body
    coordinates.

    S = 1 as in Featherstone 2008 Table 4.1, with the position variables of Example 4.5: d(position)/dt = R
    v_O, so that a distant body can spin without moving them. Positions integrate by the exponential of
    SE(3).

    >>> joint = da.Free()
    >>> joint.nq, joint.nv, joint.neutral()
    (7, 6, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    """

    kind = "free"
    coordinates = ("length",) * 3 + ("quaternion",) * 4
    _turns = (0, 1, 2)
    _shifts = (0, 1, 2)

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return Transform(rotation_of_quaternion(q[3:]), Vec3(*q[:3]))

    def position_rate(self, q: Scalars, v: Scalars) -> list[Scalar]:
        rate = rotation_of_quaternion(q[3:]) @ Vec3(*v[3:])
        return [*rate, *quaternion_rate(q[3:], Vec3(*v[:3]))]

    def integrate(self, q: Scalars, dv: Scalars) -> list[Scalar]:
        turn = Vec3(*dv[:3])
        path = exponential.so3_left_jacobian_times(turn, Vec3(*dv[3:]))
        position = Vec3(*q[:3]) + rotation_of_quaternion(q[3:]) @ path
        return [*position, *quaternion_integrate(q[3:], turn)]

    def difference(self, q0: Scalars, q1: Scalars) -> list[Scalar]:
        turn = quaternion_difference(q0[3:], q1[3:])
        path = rotation_of_quaternion(q0[3:]).transposed_times(Vec3(*q1[:3]) - Vec3(*q0[:3]))
        return [*turn, *exponential.so3_left_jacobian_inverse_times(turn, path)]

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return [*X.p, *quaternion_of_rotation(X.R)]

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        return []


@final
@dataclass(frozen=True, slots=True)
class Fixed(ConstantSubspaceJoint):
    """No motion: S is 6 x 0 and T = 1. It can close any loop (Featherstone 2008 section 8.3).

    >>> joint = da.Fixed()
    >>> joint.nv, len(joint.constraint_subspace([]))
    (0, 6)
    """

    kind = "fixed"
    coordinates = ()

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return Transform.identity()

    def position_of(self, X: Transform, time: Time = None) -> list[Scalar]:
        return []

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        d = displacement(X)
        return [*d.angular, *d.linear]


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
        return list(X.R.transposed_times(X.p))  # E r = (sum X5k X3k, sum X6k X1k, sum X4k X2k)


class RotationJoint(Joint):
    """Abstract: rotations about axes through one point; S = (w_i, 0) with the axes w_i of `_axes`.

    The defaults are those of three rotations in series: S varies while T is constant.
    """

    __slots__ = ()

    constant_constraint_forces = True

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

    def closure_error(self, X: Transform, time: Time = None) -> list[Scalar]:
        return list(X.R.transposed_times(X.p))  # E r = (sum X5k X3k, sum X6k X1k, sum X4k X2k)


@final
@dataclass(frozen=True, slots=True, init=False)
class SphericalEuler(RotationJoint):
    """Rotation about a point: q = three angles [rad] about the axes of `order`, v = dq/dt (Featherstone 2008
    section 4.5).

    The rotations are intrinsic: "zyx" is yaw about z, pitch about the new y, roll about the new x. S varies
    while T is constant. Singular where `singularity_measure` is zero: |cos q2| = 0, or |sin q2| = 0 for
    orders such as "zxz".

    >>> joint = da.joints.SphericalEuler("zyx")
    >>> print(round(joint.singularity_measure([0.0, np.pi / 2, 0.0]), 6))
    0.0
    """

    order: str

    kind = "spherical_euler"
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

    >>> R = da.joints.SphericalExponential().transform([0.0, 0.0, np.pi / 2]).R
    >>> print(np.round(R.to_list(), 6).tolist()[0])
    [0.0, -1.0, 0.0]
    """

    kind = "spherical_exponential"
    coordinates = ("angle",) * 3

    def transform(self, q: Scalars, time: Time = None) -> Placement:
        return Transform(exponential.so3_exp(Vec3(*q)), Vec3.zero())

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
        return list(exponential.so3_log(X.R))

    def singularity_measure(self, q: Scalars, time: Time = None) -> Scalar:
        w = Vec3(*q)
        return absolute(2.0 * ExponentialCoefficients(w.dot(w)).B)

    def _axes(self, q: Scalars) -> tuple[Vec3, ...]:
        J = exponential.so3_right_jacobian(Vec3(*q))
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

    >>> joint = da.joints.Universal((1, 0, 0), (0, 1, 0))
    >>> [s.angular.to_list() for s in joint.subspace([0.4, 0.0])]
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """

    axis1: Vec3
    axis2: Vec3

    kind = "universal"
    parameter_names = ("axis1", "axis2")
    coordinates = ("angle", "angle")
    constant_constraint_forces = False
    closure_error = Joint.closure_error

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
