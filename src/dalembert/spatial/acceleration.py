"""Body acceleration as seen by a co-moving observer: RNEA without linear velocities.

Each body is observed from an inertial frame that at this instant moves with the body's origin. Its linear
velocity is then zero, its spatial acceleration equals its classical acceleration (Featherstone 2008 Eq. 2.48
with r' = 0), and the point r of the body has the acceleration

    (1)  r'' = linear + W r,      W = alpha x + omega x omega x        (the tensor)

A child frame is at p in the parent, turned by E, and moves relative to it with the joint's velocity
v_J = (omega_J, u) and a_J = S q'' + c_J, both in child coordinates; a_J is the rate of the components of v_J.
With omega and alpha of the parent rotated to the child, differentiating omega' = omega + omega_J and the
origin's velocity once more gives

    (2)  linear at p = linear + W p,   then E times omega, alpha, linear
    (3)  omega'  = omega + omega_J
    (4)  alpha'  = alpha + alpha_J + omega x omega_J
    (5)  linear' = linear + 2 omega x u + omega_J x u + a_Jlin = linear + (omega + omega') x u + a_Jlin

2 omega x u is the Coriolis term; omega_J x u turns the rate of the components into the rate of the vector as
seen from the parent. If the last part of the placement is a screw about an axis e, with omega_J and alpha_J
along e, the shift d e may also come last, with the child's own tensor W':

    (6)  W' e = alpha' x e + omega' x (omega' x e) = alpha x e + (omega x omega_J) x e + omega' x (omega x e)
              = W e + (omega x omega_J) x e + omega_J x (omega x e) = W e

since e x (omega x e) = -(omega x e) x e. The tensors of frames between two bodies are then not needed.
"""

from __future__ import annotations

from typing import final

from dalembert.scalar import is_zero
from dalembert.spatial.motion_force import Motion
from dalembert.spatial.screw import AxialScrew, ScrewChain
from dalembert.spatial.transform import Placement
from dalembert.spatial.value import Value, mismatch
from dalembert.spatial.vectors import Mat3, Vec3


def spatial_acceleration(classical: Motion, v: Motion) -> Motion:
    """Return a = (omega', r'' - omega x r') of the classical acceleration; Featherstone 2008 Eq. 2.48.

    `v` = (omega, r'): velocity of the body. Spatial acceleration is the rate of the spatial velocity; it is a
    vector that adds and transforms like one.
    """
    return Motion(classical.angular, classical.linear - v.angular.cross(v.linear))


def classical_acceleration(a: Motion, v: Motion) -> Motion:
    """Return (omega', r'') of the spatial acceleration a, r'' of the point at the origin; Eq. 2.50."""
    return Motion(a.angular, a.linear + v.angular.cross(v.linear))


@final
class BodyAcceleration(Value):
    """The motion of a body in its own coordinates, without linear velocity.

    Angular velocity omega [rad/s], angular acceleration alpha [rad/s^2] and the classical acceleration of the
    origin, linear [m/s^2].
    """

    __slots__ = ("_tensor", "alpha", "linear", "omega")

    omega: Vec3
    alpha: Vec3
    linear: Vec3
    _tensor: Mat3 | None

    def __init__(self, omega: Vec3, alpha: Vec3, linear: Vec3) -> None:
        self._fill(omega, alpha, linear)

    @property
    def tensor(self) -> Mat3:
        """W = alpha x + omega x omega x of Eq. (1) [1/s^2]; 6 m + 9 a, computed once."""
        if self._tensor is not None:
            return self._tensor
        w, a = self.omega, self.alpha
        xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
        xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
        W = Mat3(
            -(yy + zz), xy - a.z, xz + a.y,
            xy + a.z, -(xx + zz), yz - a.x,
            xz - a.y, yz + a.x, -(xx + yy),
        )  # fmt: skip
        return self._keep("_tensor", W)

    def at(self, point: Vec3) -> Vec3:
        """Return the acceleration of a point of the body [m/s^2]; Eq. (1); 9 m + 9 a."""
        moved: Vec3 = self.tensor @ point + self.linear
        return moved

    def across_joint(self, X: Placement, v_J: Motion, a_J: Motion) -> BodyAcceleration:
        """Propagate the acceleration across a joint: return that of the child; Eqs. (2)-(6).

        `X`: placement of the child in this body, the joint's own transform last; `v_J`: joint velocity; `a_J`
        = S q'' + c_J; both in child coordinates.
        """
        if not isinstance(X, Placement) or type(v_J) is not Motion or type(a_J) is not Motion:
            raise mismatch("across_joint", self, X, "give a placement and two Motions, v_J and a_J")
        factors = X.factors if type(X) is ScrewChain else (X,)
        moved = self
        for factor in factors[:-1]:
            moved = moved._shift(factor)._rotate(factor)  # (2)
        last = factors[-1]
        if type(last) is AxialScrew and _turns_about(last.axis, v_J, a_J):
            return moved._rotate(last)._add_joint_motion(v_J, a_J)._shift(last)  # (6)
        return moved._shift(last)._rotate(last)._add_joint_motion(v_J, a_J)

    through = across_joint  # the former name, kept for one release

    def _shift(self, X: Placement) -> BodyAcceleration:
        """Apply the first half of Eq. (2); 9 m + 9 a, for a screw 3 m + 3 a; the tensor stays."""
        p = X.p
        if all(is_zero(item) for item in p.leaves()):
            return self
        if type(X) is AxialScrew:
            linear = self.tensor.column(X.axis) * X.d + self.linear
        else:
            linear = self.tensor @ p + self.linear
        shifted = BodyAcceleration(self.omega, self.alpha, linear)
        shifted._keep("_tensor", self._tensor)
        return shifted

    def _rotate(self, X: Placement) -> BodyAcceleration:
        """Apply the second half of Eq. (2); 27 m + 18 a, for a screw 12 m + 6 a."""
        to_child = X.rotate_to_child
        return BodyAcceleration(to_child(self.omega), to_child(self.alpha), to_child(self.linear))

    def _add_joint_motion(self, v_J: Motion, a_J: Motion) -> BodyAcceleration:
        w, w_J, u = self.omega, v_J.angular, v_J.linear
        omega = w + w_J  # (3)
        alpha = self.alpha + a_J.angular + w.cross(w_J)  # (4)
        linear = self.linear + a_J.linear + (w + omega).cross(u)  # (5)
        return BodyAcceleration(omega, alpha, linear)


def _turns_about(axis: int, v_J: Motion, a_J: Motion) -> bool:
    """Return whether omega_J and alpha_J are along the axis by structure, so that Eq. (6) holds."""
    across = [m.angular[index] for m in (v_J, a_J) for index in range(3) if index != axis]
    return all(is_zero(item) for item in across)
