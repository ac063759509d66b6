"""Spatial motion and force vectors: the two spaces M^6 and F^6, and the products between them.

Plucker coordinates are listed angular first (Featherstone 2008 §2.4). A motion is (omega, v_O), the angular
velocity [rad/s] and the velocity of the body point at the origin O [m/s]; a force is (n_O, f), the moment
about O [N m] and the force [N]. Only a motion and a force have a scalar product, their power; a wrong mix
raises `SpatialTypeError`, which is a TypeError.
"""

from __future__ import annotations

from typing import Any, final, overload

from dalembert.scalar import Scalar
from dalembert.spatial.value import LinearValue, mismatch, scalars_of
from dalembert.spatial.vectors import Vec3


def to_linear_first(vector: Motion | Force) -> list[Scalar]:
    """Return the six coordinates in linear-before-angular order, which other libraries use (§2.4)."""
    return [*vector.linear, *vector.angular]


def from_linear_first(kind: type[Motion] | type[Force], values: Any) -> Any:
    """Return a `Motion` or `Force` from six coordinates in linear-before-angular order."""
    x = scalars_of(values, 6, "a spatial vector")
    return kind(Vec3(x[3], x[4], x[5]), Vec3(x[0], x[1], x[2]))


@final
class Motion(LinearValue):
    """An element of M^6: velocity, acceleration, infinitesimal displacement, direction of freedom.

    `angular`: omega [rad/s]; `linear`: v_O [m/s], of the body point that is now at the origin.

    >>> v = da.spatial.Motion.of([0.0, 0.0, 2.0, 1.0, 0.0, 0.0])  # turning about z, the origin moving along x
    >>> v.at(da.spatial.Vec3(1.0, 0.0, 0.0))
    Vec3(x=1.0, y=2.0, z=0.0)
    """

    __slots__ = ("angular", "linear")

    angular: Vec3
    linear: Vec3

    _product_remedy = "write inertia * motion, or use dot or cross"

    @staticmethod
    def of(values: Any) -> Motion:
        """Return the motion of six coordinates, angular first."""
        if type(values) is Motion:
            return values
        if type(values) is Force:
            raise mismatch("as", values, Motion, "a force is no motion; use an inverse inertia")
        x = scalars_of(values, 6, "a motion")
        return Motion(Vec3(x[0], x[1], x[2]), Vec3(x[3], x[4], x[5]))

    def to_list(self) -> list[Scalar]:
        """Return the six Plucker coordinates, angular first."""
        return self.leaves()

    def dot(self, other: Force) -> Scalar:
        """Return the power m . f [W]; Featherstone 2008 Eq. 2.12; 6 m + 5 a."""
        if type(other) is not Force:
            raise mismatch("dot", self, other, "the scalar product is of a Motion and a Force")
        return self.angular.dot(other.angular) + self.linear.dot(other.linear)

    @overload
    def cross(self, other: Motion) -> Motion: ...
    @overload
    def cross(self, other: Force) -> Force: ...
    def cross(self, other: Motion | Force) -> Motion | Force:
        """Return v x m (Eq. 2.33) or v x* f (Eq. 2.34); 18 m + 12 a.

        The rate of a vector that is fixed in a body moving with the velocity v.
        """
        w, v = self.angular, self.linear
        if type(other) is Motion:
            return Motion(w.cross(other.angular), w.cross(other.linear) + v.cross(other.angular))
        if type(other) is Force:
            return Force(w.cross(other.angular) + v.cross(other.linear), w.cross(other.linear))
        raise mismatch("cross", self, other, "a motion crosses a Motion (v x m) or a Force (v x* f)")

    def at(self, point: Vec3) -> Vec3:
        """Return the velocity of the body point at `point`: v_P = v_O + omega x OP; Eq. 2.1."""
        return self.linear + self.angular.cross(point)


@final
class Force(LinearValue):
    """An element of F^6: force, momentum, impulse, direction of constraint.

    `angular`: n_O [N m], the moment about the origin; `linear`: f [N].

    >>> f = da.spatial.Force.at_point(da.spatial.Vec3(0.0, 0.0, 3.0), da.spatial.Vec3(2.0, 0.0, 0.0))
    >>> f.to_list()
    [0.0, -6.0, 0.0, 0.0, 0.0, 3.0]
    >>> f.dot(da.spatial.Motion.of([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]))  # power [W]
    -6.0
    """

    __slots__ = ("angular", "linear")

    angular: Vec3
    linear: Vec3

    _product_remedy = "write force.dot(motion) for their power"

    @staticmethod
    def of(values: Any) -> Force:
        """Return the force of six coordinates, moment first."""
        if type(values) is Force:
            return values
        if type(values) is Motion:
            raise mismatch("as", values, Force, "a motion is no force; multiply an inertia by it")
        x = scalars_of(values, 6, "a force")
        return Force(Vec3(x[0], x[1], x[2]), Vec3(x[3], x[4], x[5]))

    @staticmethod
    def at_point(force: Vec3, point: Vec3) -> Force:
        """Return the spatial force of a 3-D force along the line through `point`: n_O = OP x f; Eq. 2.6."""
        return Force(point.cross(force), force)

    def to_list(self) -> list[Scalar]:
        """Return the six Plucker coordinates, moment first."""
        return self.leaves()

    def dot(self, other: Motion) -> Scalar:
        """Return the power f . m [W]; Eq. 2.12; 6 m + 5 a."""
        if type(other) is not Motion:
            raise mismatch("dot", self, other, "the scalar product is of a Force and a Motion")
        return self.angular.dot(other.angular) + self.linear.dot(other.linear)

    def cross(self, other: object) -> Force:
        """Raise an error: only a motion has cross products with other vectors."""
        raise mismatch("cross", self, other, "only a Motion has cross products: v.cross(f) is v x* f")

    def about(self, point: Vec3) -> Vec3:
        """Return the moment about `point`: n_P = n_O + f x OP; Eq. 2.6."""
        return self.angular + self.linear.cross(point)
