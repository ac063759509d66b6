"""Axial screws: a turn about and a shift along one coordinate axis, which commute (Featherstone 2008 §A.4).

A transform by a screw costs less than half of a general one; two of them make a Denavit-Hartenberg link
transform, three any transform. Since turn and shift commute, the inverse of a screw is the screw with -s and
-d. The formulas are in `axial`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, final

from dalembert.errors import ArgumentError
from dalembert.scalar import Scalar, cos, sin
from dalembert.spatial.axial import (
    inverse_turn,
    rotate_vector,
    transform_articulated,
    transform_pair,
    transform_rigid,
    vector_from_z,
)
from dalembert.spatial.congruence import AxialTurn
from dalembert.spatial.inertia import ArticulatedInertia, RigidInertia
from dalembert.spatial.motion_force import Force, Motion
from dalembert.spatial.rotations import axial_rotation
from dalembert.spatial.transform import Placement, Transform
from dalembert.spatial.value import SpatialTypeError, mismatch
from dalembert.spatial.vectors import Mat3, Vec3

__all__ = ["AxialScrew", "ScrewChain", "scrx", "scry", "scrz"]


def scrx(angle: Scalar, shift: Scalar) -> AxialScrew:
    """Return the frame turned by angle [rad] about, and shifted by shift [m] along, its x axis."""
    return AxialScrew(0, cos(angle), sin(angle), shift)


def scry(angle: Scalar, shift: Scalar) -> AxialScrew:
    """Return the frame turned by angle [rad] about, and shifted by shift [m] along, its y axis."""
    return AxialScrew(1, cos(angle), sin(angle), shift)


def scrz(angle: Scalar, shift: Scalar) -> AxialScrew:
    """Return the frame turned by angle [rad] about, and shifted by shift [m] along, its z axis."""
    return AxialScrew(2, cos(angle), sin(angle), shift)


@final
class AxialScrew(Placement):
    """A frame turned by (c, s) = (cos, sin) about, and shifted by d [m] along, its parent's axis 0, 1, 2."""

    __slots__ = ("_turn", "axis", "c", "d", "s")

    axis: int
    c: Scalar
    s: Scalar
    d: Scalar
    _turn: AxialTurn | None

    def __init__(self, axis: int, c: Scalar, s: Scalar, d: Scalar) -> None:
        if axis not in (0, 1, 2):
            raise ArgumentError(f"axis of an AxialScrew must be 0, 1 or 2, got {axis!r}")
        _screw_axis(self, axis)
        _screw_c(self, c)
        _screw_s(self, s)
        _screw_d(self, d)
        _screw_turn(self, None)

    @property
    def R(self) -> Mat3:
        return axial_rotation(self.axis, self.c, self.s)

    @property
    def p(self) -> Vec3:
        return vector_from_z(self.axis, Vec3(0.0, 0.0, self.d))

    @property
    def turn(self) -> AxialTurn:
        """(c, s, s^2, cs, 2cs, 1 - 2s^2), computed once at 2 m + 3 a."""
        turn = self._turn
        if turn is None:
            ss, cs = self.s * self.s, self.c * self.s
            turn = (self.c, self.s, ss, cs, cs + cs, 1.0 - (ss + ss))
            _screw_turn(self, turn)
        return turn

    def leaves(self) -> list[Scalar]:
        return [self.c, self.s, self.d]

    def rebuilt(self, leaves: Iterator[Scalar]) -> AxialScrew:
        return AxialScrew(self.axis, next(leaves), next(leaves), next(leaves))

    def __reduce__(self) -> Any:
        return AxialScrew, (self.axis, self.c, self.s, self.d)

    def __eq__(self, other: object) -> bool:
        return type(other) is AxialScrew and self.axis == other.axis and super().__eq__(other)

    def __hash__(self) -> int:
        return hash((self.axis, self.c, self.s, self.d))

    def inverse(self) -> AxialScrew:
        """Return the placement of the parent in the child: the screw by -angle and -d; free."""
        return AxialScrew(self.axis, self.c, -self.s, -self.d)

    def __matmul__(self, other: Any) -> Placement:
        """Compose placements: one screw if both are about the same axis, else a chain, or a `Transform`."""
        if type(other) is AxialScrew:
            if other.axis != self.axis:
                return ScrewChain((self, other))
            c, s = self.c * other.c - self.s * other.s, self.s * other.c + self.c * other.s
            return AxialScrew(self.axis, c, s, self.d + other.d)
        if type(other) is ScrewChain:
            return ScrewChain((self, *other.factors))
        if type(other) is Transform:
            x, y, z = (self.rotate_to_parent(other.R.column(j)) for j in range(3))
            return Transform(Mat3.from_columns(x, y, z), self.transform_point(other.p))
        raise mismatch("@", self, other, "placements are composed with placements; use apply for the rest")

    def rotate_to_child(self, v: Vec3) -> Vec3:
        """Return E v; 4 m + 2 a."""
        return rotate_vector(self.axis, self.c, self.s, v)

    def rotate_to_parent(self, v: Vec3) -> Vec3:
        """Return R v; 4 m + 2 a."""
        return rotate_vector(self.axis, self.c, -self.s, v)

    def motion_to_child(self, m: Motion) -> Motion:
        """Return X m; 10 m + 6 a."""
        return Motion(*transform_pair(self.axis, self.c, self.s, self.d, m.angular, m.linear))

    def motion_to_parent(self, m: Motion) -> Motion:
        """Return X^-1 m; 10 m + 6 a."""
        return Motion(*transform_pair(self.axis, self.c, -self.s, -self.d, m.angular, m.linear))

    def force_to_child(self, f: Force) -> Force:
        """Return X* f; 10 m + 6 a."""
        linear, angular = transform_pair(self.axis, self.c, self.s, self.d, f.linear, f.angular)
        return Force(angular, linear)

    def force_to_parent(self, f: Force) -> Force:
        """Return X^T f; 10 m + 6 a."""
        linear, angular = transform_pair(self.axis, self.c, -self.s, -self.d, f.linear, f.angular)
        return Force(angular, linear)

    def rigid_to_child(self, inertia: RigidInertia) -> RigidInertia:
        """Return X* I X^-1; 16 m + 15 a, and the turn once."""
        return transform_rigid(self.axis, self.turn, self.d, inertia)

    def rigid_to_parent(self, inertia: RigidInertia) -> RigidInertia:
        """Return X^T I X; 16 m + 15 a, and the turn once."""
        return transform_rigid(self.axis, inverse_turn(self.turn), -self.d, inertia)

    def articulated_to_child(self, inertia: ArticulatedInertia) -> ArticulatedInertia:
        """Return X* I^A X^-1; 38 m + 40 a, and the turn once;
        less where rows are structural zeros (Table A.5)."""
        return transform_articulated(self.axis, self.turn, self.d, inertia)

    def articulated_to_parent(self, inertia: ArticulatedInertia) -> ArticulatedInertia:
        """Return X^T I^A X; 38 m + 40 a, and the turn once;
        less where rows are structural zeros (Table A.5)."""
        return transform_articulated(self.axis, inverse_turn(self.turn), -self.d, inertia)


_screw_axis, _screw_c, _screw_s, _screw_d, _screw_turn = (
    AxialScrew.__dict__[name].__set__ for name in ("axis", "c", "s", "d", "_turn")
)


@final
class ScrewChain(Placement):
    """Placements in order from parent to child, applied one after the other."""

    __slots__ = ("factors",)

    factors: tuple[Placement, ...]

    def __init__(self, factors: Sequence[Placement]) -> None:
        for factor in factors:
            if not isinstance(factor, Placement):
                raise SpatialTypeError(f"a ScrewChain is made of placements, got {type(factor).__name__}")
        if not factors:
            raise ArgumentError("a ScrewChain needs at least one factor; use Transform.identity() for none")
        _chain_factors(self, tuple(factors))

    @property
    def R(self) -> Mat3:
        return self.as_transform().R

    @property
    def p(self) -> Vec3:
        return self.as_transform().p

    def as_transform(self) -> Transform:
        """Return the product of the factors; from the child's end,
        so that each screw acts on three columns only."""
        product = self.factors[-1].as_transform()
        for factor in reversed(self.factors[:-1]):
            product = (factor @ product).as_transform()  # type: ignore[operator]
        return product

    def leaves(self) -> list[Scalar]:
        return [leaf for factor in self.factors for leaf in factor.leaves()]

    def rebuilt(self, leaves: Iterator[Scalar]) -> ScrewChain:
        return ScrewChain([factor.rebuilt(leaves) for factor in self.factors])

    def __reduce__(self) -> Any:
        return ScrewChain, (self.factors,)

    def __eq__(self, other: object) -> bool:
        return type(other) is ScrewChain and self.factors == other.factors

    def __hash__(self) -> int:
        return hash(self.factors)

    def inverse(self) -> ScrewChain:
        """Return the placement of the parent in the child."""
        return ScrewChain([factor.inverse() for factor in reversed(self.factors)])

    def __matmul__(self, other: Any) -> Placement:
        """Compose placements: a longer chain, or a `Transform` if the other one is."""
        if type(other) is AxialScrew:
            return ScrewChain((*self.factors, other))
        if type(other) is ScrewChain:
            return ScrewChain((*self.factors, *other.factors))
        if type(other) is Transform:
            return ScrewChain((*self.factors, other)).as_transform()
        raise mismatch("@", self, other, "placements are composed with placements; use apply for the rest")

    def rotate_to_child(self, v: Vec3) -> Vec3:
        for factor in self.factors:
            v = factor.rotate_to_child(v)
        return v

    def rotate_to_parent(self, v: Vec3) -> Vec3:
        for factor in reversed(self.factors):
            v = factor.rotate_to_parent(v)
        return v

    def transform_point(self, point: Vec3) -> Vec3:
        for factor in reversed(self.factors):
            point = factor.transform_point(point)
        return point

    def inverse_transform_point(self, point: Vec3) -> Vec3:
        for factor in self.factors:
            point = factor.inverse_transform_point(point)
        return point

    def motion_to_child(self, m: Motion) -> Motion:
        for factor in self.factors:
            m = factor.motion_to_child(m)
        return m

    def motion_to_parent(self, m: Motion) -> Motion:
        for factor in reversed(self.factors):
            m = factor.motion_to_parent(m)
        return m

    def force_to_child(self, f: Force) -> Force:
        for factor in self.factors:
            f = factor.force_to_child(f)
        return f

    def force_to_parent(self, f: Force) -> Force:
        for factor in reversed(self.factors):
            f = factor.force_to_parent(f)
        return f

    def rigid_to_child(self, inertia: RigidInertia) -> RigidInertia:
        for factor in self.factors:
            inertia = factor.rigid_to_child(inertia)
        return inertia

    def rigid_to_parent(self, inertia: RigidInertia) -> RigidInertia:
        for factor in reversed(self.factors):
            inertia = factor.rigid_to_parent(inertia)
        return inertia

    def articulated_to_child(self, inertia: ArticulatedInertia) -> ArticulatedInertia:
        for factor in self.factors:
            inertia = factor.articulated_to_child(inertia)
        return inertia

    def articulated_to_parent(self, inertia: ArticulatedInertia) -> ArticulatedInertia:
        for factor in reversed(self.factors):
            inertia = factor.articulated_to_parent(inertia)
        return inertia


_chain_factors = ScrewChain.__dict__["factors"].__set__
