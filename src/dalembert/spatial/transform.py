"""Placements of one frame in another, and the general one: a rotation and a translation.

A placement is the pose of the child frame in the parent frame: R maps child to parent coordinates, p is
the child's origin in the parent's coordinates [m]. Featherstone's E is R transposed and his r is p, and his
X, the transform of motion vectors from parent to child coordinates, is `apply`:

                  motion       force      inertia
    apply         X m          X* f       X* I X^-1        parent -> child coordinates
    inverse_apply X^-1 m       X^T f      X^T I X          child -> parent coordinates
"""

from __future__ import annotations

from typing import Any, Final, TypeVar, final

from dalembert.scalar import Scalar
from dalembert.spatial.inertia import ArticulatedInertia, RigidInertia
from dalembert.spatial.motion_force import Force, Motion
from dalembert.spatial.symmetric import (
    cross_cross,
    rotate_general,
    rotate_symmetric,
    rotation_product,
    shift_terms,
    times_symmetric,
)
from dalembert.spatial.value import SpatialTypeError, Value, mismatch
from dalembert.spatial.vectors import Mat3, Vec3, block_matrix

COMPOSED = "placements are composed with placements; use apply for the rest"
TRANSFORMED = "a placement transforms a Motion, Force, RigidInertia or ArticulatedInertia"

Quantity = TypeVar("Quantity", Motion, Force, RigidInertia, ArticulatedInertia)

_NAMES: Final = {Motion: "motion", Force: "force", RigidInertia: "rigid", ArticulatedInertia: "articulated"}
_TO_CHILD: Final[dict[type, str]] = {kind: f"{name}_to_child" for kind, name in _NAMES.items()}
_TO_PARENT: Final[dict[type, str]] = {kind: f"{name}_to_parent" for kind, name in _NAMES.items()}


class Placement(Value):
    """Abstract base: the pose of a child frame in its parent. The kinds differ in cost, not in meaning.

    The formulas are those of a general placement, at the costs of Featherstone 2008 Table A.4.
    """

    __slots__ = ()

    @property
    def R(self) -> Mat3:
        """The rotation, child to parent coordinates; its columns are the child's axes in the parent."""
        raise SpatialTypeError(f"{type(self).__name__} is abstract")

    @property
    def p(self) -> Vec3:
        """The child's origin in parent coordinates [m]; the book's r."""
        raise SpatialTypeError(f"{type(self).__name__} is abstract")

    @property
    def E(self) -> Mat3:
        """The rotation from parent to child coordinates, R transposed; the book's E."""
        return self.R.transpose()

    def as_transform(self) -> Transform:
        """Return the same placement as a general `Transform`."""
        return Transform(self.R, self.p)

    def inverse(self) -> Placement:
        """Return the placement of the parent in the child."""
        raise SpatialTypeError(f"{type(self).__name__} is abstract")

    def apply(self, x: Quantity) -> Quantity:
        """Transform from parent to child coordinates: X m, X* f, X* I X^-1."""
        if type(x) not in _TO_CHILD:
            raise mismatch("apply", self, x, TRANSFORMED)
        transformed: Quantity = getattr(self, _TO_CHILD[type(x)])(x)
        return transformed

    def inverse_apply(self, x: Quantity) -> Quantity:
        """Transform from child to parent coordinates: X^-1 m, X^T f, X^T I X."""
        if type(x) not in _TO_PARENT:
            raise mismatch("inverse_apply", self, x, TRANSFORMED)
        transformed: Quantity = getattr(self, _TO_PARENT[type(x)])(x)
        return transformed

    def rotate_to_child(self, v: Vec3) -> Vec3:
        """Return E v: a free vector from parent to child coordinates."""
        return self.R.transposed_times(v)

    def rotate_to_parent(self, v: Vec3) -> Vec3:
        """Return R v: a free vector from child to parent coordinates."""
        rotated: Vec3 = self.R @ v
        return rotated

    def transform_point(self, point: Vec3) -> Vec3:
        """Transform a point from child to parent coordinates: p + R r [m]."""
        return self.rotate_to_parent(point) + self.p

    def inverse_transform_point(self, point: Vec3) -> Vec3:
        """Transform a point from parent to child coordinates: E (r - p) [m]."""
        return self.rotate_to_child(point - self.p)

    def motion_matrix(self) -> list[list[Scalar]]:
        """Return the 6x6 matrix X = [[E, 0], [-E p x, E]], parent to child; Eq. 2.24."""
        E = self.E
        return block_matrix(E, Mat3.zero(), -(E @ self.p.skew()), E)

    def force_matrix(self) -> list[list[Scalar]]:
        """Return the 6x6 matrix X* = [[E, -E p x], [0, E]], parent to child; Eq. 2.25."""
        E = self.E
        return block_matrix(E, -(E @ self.p.skew()), Mat3.zero(), E)

    def homogeneous(self) -> list[list[Scalar]]:
        """Return the 4x4 matrix [[R, p], [0, 1]]: child points to parent coordinates."""
        rows = [[*row, item] for row, item in zip(self.R.to_list(), self.p.to_list(), strict=True)]
        return [*rows, [0.0, 0.0, 0.0, 1.0]]

    def inverse_homogeneous(self) -> list[list[Scalar]]:
        """Return the 4x4 matrix [[E, -E p], [0, 1]]: parent points to child coordinates; T of Eq. 2.28."""
        return self.as_transform().inverse().homogeneous()

    def motion_to_child(self, m: Motion) -> Motion:
        """Return mv(E w, E (v - r x w)); 24 m + 18 a."""
        w, v, R = m.angular, m.linear, self.R
        return Motion(R.transposed_times(w), R.transposed_times(v - self.p.cross(w)))

    def motion_to_parent(self, m: Motion) -> Motion:
        """Return mv(E^T w, E^T v + r x E^T w); 24 m + 18 a."""
        w = self.R @ m.angular
        return Motion(w, self.R @ m.linear + self.p.cross(w))

    def force_to_child(self, f: Force) -> Force:
        """Return fv(E (n - r x f), E f); 24 m + 18 a."""
        R = self.R
        return Force(R.transposed_times(f.angular - self.p.cross(f.linear)), R.transposed_times(f.linear))

    def force_to_parent(self, f: Force) -> Force:
        """Return fv(E^T n + r x E^T f, E^T f); 24 m + 18 a."""
        linear = self.R @ f.linear
        return Force(self.R @ f.angular + self.p.cross(linear), linear)

    def rigid_to_child(self, inertia: RigidInertia) -> RigidInertia:
        """Return rbi(m, E y, E Z E^T), y = h - m r, Z = I + r x h x + y x r x; 52 m + 56 a."""
        m, h, r, E = inertia.mass, inertia.h, self.p, self.E
        y = h - r * m
        Z = inertia.inertia + cross_cross(r, h) + cross_cross(y, r)
        return RigidInertia.from_compact(m, E @ y, rotate_symmetric(E, Z))

    def rigid_to_parent(self, inertia: RigidInertia) -> RigidInertia:
        """Return rbi(m, h' + m r, E^T I E - r x h' x - (h' + m r) x r x), h' = E^T h; 52 m + 56 a."""
        m, r, R = inertia.mass, self.p, self.R
        h = R @ inertia.h
        y = h + r * m
        Z = rotate_symmetric(R, inertia.inertia) - cross_cross(r, h) - cross_cross(y, r)
        return RigidInertia.from_compact(m, y, Z)

    def articulated_to_child(self, inertia: ArticulatedInertia) -> ArticulatedInertia:
        """Return abi(E M E^T, E Y E^T, E Z E^T), Y = H - r x M, Z = I - r x H^T + Y r x; 137 m + 137 a."""
        H, M, r, E = inertia.H, inertia.M, self.p, self.E
        Y = H - times_symmetric(r, M)
        Z = inertia.I + shift_terms(r, H, Y)
        return ArticulatedInertia(
            rotate_symmetric(E, Z), rotate_general(E, Y, trace=False), rotate_symmetric(E, M)
        )

    def articulated_to_parent(self, inertia: ArticulatedInertia) -> ArticulatedInertia:
        """Return abi(M', Y, E^T I E + r x H'^T - Y r x), M', H' = E^T (M, H) E, Y = H' + r x M'; as above."""
        r, R = self.p, self.R
        M, H = rotate_symmetric(R, inertia.M), rotate_general(R, inertia.H, trace=False)
        Y = H + times_symmetric(r, M)
        return ArticulatedInertia(rotate_symmetric(R, inertia.I) - shift_terms(r, H, Y), Y, M)


@final
class Transform(Placement):
    """A general placement: rotation R (child to parent) and child origin p [m].

    >>> X = da.Transform.from_rotation_translation(np.eye(3), [0.0, 0.0, 1.0])
    >>> X.transform_point(da.spatial.Vec3(1.0, 2.0, 3.0))
    Vec3(x=1.0, y=2.0, z=4.0)
    >>> X.apply(da.spatial.Motion.of([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])).to_list()  # seen from the child frame
    [1.0, 0.0, 0.0, 0.0, -1.0, 0.0]
    """

    __slots__ = ("R", "p")

    R: Mat3
    p: Vec3

    @staticmethod
    def from_rotation_translation(R: Any, p: Any) -> Transform:
        """Return the placement of a rotation (child to parent) and the child's origin in the parent [m]."""
        return Transform(Mat3.of(R), Vec3.of(p))

    @staticmethod
    def identity() -> Transform:
        """Return the placement of a child that coincides with the parent; literals."""
        return Transform(Mat3.identity(), Vec3.zero())

    def as_transform(self) -> Transform:
        return self

    def inverse(self) -> Transform:
        """Return the placement of the parent in the child: plx(E^T, -E r); 9 m + 6 a."""
        return Transform(self.R.transpose(), -self.R.transposed_times(self.p))

    def __matmul__(self, other: Any) -> Transform:
        """Compose placements, parent <- self <- other; the book's X_other X_self; 33 m + 24 a."""
        if not isinstance(other, Placement):
            raise mismatch("@", self, other, COMPOSED)
        return Transform(rotation_product(self.R, other.R), self.R @ other.p + self.p)
