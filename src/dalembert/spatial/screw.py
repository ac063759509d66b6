"""Axial screws: a turn about and a shift along one coordinate axis, which commute (Featherstone 2008 §A.4).

A transform by a screw costs less than half of a general one; two of them make a Denavit-Hartenberg link
transform, three any transform. Since turn and shift commute, the inverse of a screw is the screw with -s and
-d.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeVar, final

from dalembert.errors import ArgumentError
from dalembert.scalar import Scalar, cos, sin
from dalembert.spatial.inertia import ArticulatedInertia, RigidInertia
from dalembert.spatial.motion_force import Force, Motion
from dalembert.spatial.rotations import axial_rotation
from dalembert.spatial.symmetric import AxialTurn, SymMat3, rotate_general_about_z, rotate_symmetric_about_z
from dalembert.spatial.transform import COMPOSED, Placement, Transform
from dalembert.spatial.value import SpatialTypeError, mismatch
from dalembert.spatial.vectors import Mat3, Vec3

# All formulas are written for the z axis; the other two are the same formulas on components taken in cyclic
# order, the screw's axis last, which keeps every cross product.


def _vector_to_z(axis: int, v: Vec3) -> Vec3:
    return v if axis == 2 else Vec3(v.y, v.z, v.x) if axis == 0 else Vec3(v.z, v.x, v.y)


def _vector_from_z(axis: int, v: Vec3) -> Vec3:
    return v if axis == 2 else _vector_to_z(1 - axis, v)


def _matrix_to_z(axis: int, A: Mat3) -> Mat3:
    if axis == 2:
        return A
    if axis == 0:
        return Mat3(A.yy, A.yz, A.yx, A.zy, A.zz, A.zx, A.xy, A.xz, A.xx)
    return Mat3(A.zz, A.zx, A.zy, A.xz, A.xx, A.xy, A.yz, A.yx, A.yy)


def _matrix_from_z(axis: int, A: Mat3) -> Mat3:
    return A if axis == 2 else _matrix_to_z(1 - axis, A)


def _symmetric_to_z(axis: int, A: SymMat3) -> SymMat3:
    if axis == 2:
        return A
    if axis == 0:
        return SymMat3(A.yy, A.zz, A.xx, A.yz, A.xy, A.xz)
    return SymMat3(A.zz, A.xx, A.yy, A.xz, A.yz, A.xy)


def _symmetric_from_z(axis: int, A: SymMat3) -> SymMat3:
    return A if axis == 2 else _symmetric_to_z(1 - axis, A)


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
    """A frame turned by (c, s) = (cos, sin) about, and shifted by d [m] along, its parent's axis 0, 1, 2.

    Costs are those of Featherstone 2008 §A.4 and Table A.5. Since turn and shift commute, inertias may be
    rotated first and shifted then: that order makes the best use of structural zeros.
    """

    __slots__ = ("_turn", "axis", "c", "d", "s")

    axis: int
    c: Scalar
    s: Scalar
    d: Scalar
    _turn: AxialTurn | None

    def __init__(self, axis: int, c: Scalar, s: Scalar, d: Scalar) -> None:
        if axis not in (0, 1, 2):
            raise ArgumentError(f"axis of an AxialScrew must be 0, 1 or 2, got {axis!r}")
        self._fill(axis, c, s, d)

    @property
    def R(self) -> Mat3:
        return axial_rotation(self.axis, self.c, self.s)

    @property
    def p(self) -> Vec3:
        return _vector_from_z(self.axis, Vec3(0.0, 0.0, self.d))

    @property
    def turn(self) -> AxialTurn:
        """(c, s, s^2, cs, 2cs, 1 - 2s^2), computed once at 2 m + 3 a."""
        if self._turn is not None:
            return self._turn
        ss, cs = self.s * self.s, self.c * self.s
        return self._keep("_turn", (self.c, self.s, ss, cs, cs + cs, 1.0 - (ss + ss)))

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
        raise mismatch("@", self, other, COMPOSED)

    def _inverse_with_turn(self) -> AxialScrew:
        """Return the inverse with the quantities of its turn, which those of this turn give for free."""
        c, s, ss, cs, cs2, cos2 = self.turn
        inverse = self.inverse()
        inverse._keep("_turn", (c, -s, ss, -cs, -cs2, cos2))
        return inverse

    def rotate_to_child(self, v: Vec3) -> Vec3:
        """Return E v; 4 m + 2 a."""
        c, s, v = self.c, self.s, _vector_to_z(self.axis, v)
        return _vector_from_z(self.axis, Vec3(c * v.x + s * v.y, c * v.y - s * v.x, v.z))

    def rotate_to_parent(self, v: Vec3) -> Vec3:
        """Return R v; 4 m + 2 a."""
        return self.inverse().rotate_to_child(v)

    def _pair_to_child(self, line: Vec3, free: Vec3) -> tuple[Vec3, Vec3]:
        """Return E line and E (free - r x line): (omega, v) of a motion, (f, n) of a force."""
        c, s, d = self.c, self.s, self.d
        a, b = _vector_to_z(self.axis, line), _vector_to_z(self.axis, free)
        bx, by = b.x + a.y * d, b.y - a.x * d
        rotated_line = Vec3(c * a.x + s * a.y, c * a.y - s * a.x, a.z)
        rotated_free = Vec3(c * bx + s * by, c * by - s * bx, b.z)
        return _vector_from_z(self.axis, rotated_line), _vector_from_z(self.axis, rotated_free)

    def motion_to_child(self, m: Motion) -> Motion:
        """Return X m; 10 m + 6 a."""
        return Motion(*self._pair_to_child(m.angular, m.linear))

    def motion_to_parent(self, m: Motion) -> Motion:
        """Return X^-1 m; 10 m + 6 a."""
        return self.inverse().motion_to_child(m)

    def force_to_child(self, f: Force) -> Force:
        """Return X* f; 10 m + 6 a."""
        linear, angular = self._pair_to_child(f.linear, f.angular)
        return Force(angular, linear)

    def force_to_parent(self, f: Force) -> Force:
        """Return X^T f; 10 m + 6 a."""
        return self.inverse().force_to_child(f)

    def rigid_to_child(self, inertia: RigidInertia) -> RigidInertia:
        """Return X* I X^-1; 16 m + 15 a, and the turn once.

        y = h - m r: 1 m + 1 a; Z = I + r x h x + y x r x: 3 m + 5 a; E y: 4 m + 2 a; E Z E^T: 8 m + 7 a.
        """
        h, I = _vector_to_z(self.axis, inertia.h), _symmetric_to_z(self.axis, inertia.inertia)
        c, s, d = self.c, self.s, self.d
        y = h.z - inertia.mass * d
        both = (h.z + y) * d
        Z = SymMat3(I.xx - both, I.yy - both, I.zz, I.xy, I.xz + h.x * d, I.yz + h.y * d)
        Ey = _vector_from_z(self.axis, Vec3(c * h.x + s * h.y, c * h.y - s * h.x, y))
        EZE = _symmetric_from_z(self.axis, rotate_symmetric_about_z(self.turn, Z))
        return RigidInertia.from_compact(inertia.mass, Ey, EZE)

    def rigid_to_parent(self, inertia: RigidInertia) -> RigidInertia:
        """Return X^T I X; 16 m + 15 a, and the turn once."""
        return self._inverse_with_turn().rigid_to_child(inertia)

    def articulated_to_child(self, inertia: ArticulatedInertia) -> ArticulatedInertia:
        """Return X* I^A X^-1; 38 m + 40 a, less with structural zeros (Table A.5), and the turn once.

        The turn of M, H, I: 28 m + 26 a; Y = H - r x M: 5 m + 6 a; Z = I - r x H^T + Y r x: 5 m + 8 a.
        """
        axis, turn, d = self.axis, self.turn, self.d
        M = rotate_symmetric_about_z(turn, _symmetric_to_z(axis, inertia.M))
        H = rotate_general_about_z(turn, _matrix_to_z(axis, inertia.H))
        I = rotate_symmetric_about_z(turn, _symmetric_to_z(axis, inertia.I))
        dxy = M.xy * d
        Y = Mat3(
            H.xx + dxy, H.xy + M.yy * d, H.xz + M.yz * d,
            H.yx - M.xx * d, H.yy - dxy, H.yz - M.xz * d,
            H.zx, H.zy, H.zz,
        )  # fmt: skip
        Z = SymMat3(
            I.xx + (H.xy + Y.xy) * d,
            I.yy - (H.yx + Y.yx) * d,
            I.zz,
            I.xy + (Y.yy - H.xx) * d,
            I.xz + H.zy * d,
            I.yz - H.zx * d,
        )
        Y, Z, M = _matrix_from_z(axis, Y), _symmetric_from_z(axis, Z), _symmetric_from_z(axis, M)
        return ArticulatedInertia(Z, Y, M)

    def articulated_to_parent(self, inertia: ArticulatedInertia) -> ArticulatedInertia:
        """Return X^T I^A X; 38 m + 40 a, less with structural zeros (Table A.5), and the turn once."""
        return self._inverse_with_turn().articulated_to_child(inertia)


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
        self._fill(tuple(factors))

    @property
    def R(self) -> Mat3:
        return self.as_transform().R

    @property
    def p(self) -> Vec3:
        return self.as_transform().p

    def as_transform(self) -> Transform:
        """Return the product of the factors, from the child's end: a screw acts on three columns."""
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
        raise mismatch("@", self, other, COMPOSED)


def _one_by_one(method: str) -> Callable[[ScrewChain, Any], Any]:
    """Return the method of a chain that passes a quantity through the method of each factor in turn."""
    from_parent = method.endswith("_to_child") or method.startswith("inverse_")

    @functools.wraps(getattr(Placement, method))
    def transform(self: ScrewChain, x: Any) -> Any:
        for factor in self.factors if from_parent else reversed(self.factors):
            x = getattr(factor, method)(x)
        return x

    return transform


for _method in (
    *("rotate_to_child", "rotate_to_parent", "transform_point", "inverse_transform_point"),
    *("motion_to_child", "motion_to_parent", "force_to_child", "force_to_parent"),
    *("rigid_to_child", "rigid_to_parent", "articulated_to_child", "articulated_to_parent"),
):
    setattr(ScrewChain, _method, _one_by_one(_method))


# Screws as lines: pitch, axis and magnitude of spatial vectors (Featherstone 2008 §2.5).
#
# A pure rotation and a linear force are *line vectors*: a magnitude along a line in space. A pure translation
# and a couple are *free vectors*: a magnitude and a direction. Every other spatial vector is a line vector
# plus a parallel free vector (a twist or a wrench), and the ratio of the two is its pitch [m]. With s the
# part that does not depend on the origin (omega of a motion, f of a force) and s_O the other, the pitch is h
# = s . s_O / s . s.

Vector = TypeVar("Vector", Motion, Force)

Kind = Literal["zero", "line", "free", "screw"]


def pitch(vector: Motion | Force) -> Scalar:
    """Return the pitch h = s . s_O / s . s [m]; free vectors have infinite pitch and are not allowed."""
    s, s_O = _parts(vector)
    return s.dot(s_O) / s.dot(s)


def point_on_axis(vector: Motion | Force) -> Vec3:
    """Return the point of the screw axis nearest the origin, s x s_O / s . s [m]."""
    s, s_O = _parts(vector)
    nearest: Vec3 = s.cross(s_O) / s.dot(s)
    return nearest


def decompose(vector: Vector) -> tuple[Vector, Vector]:
    """Return the line vector and the parallel free vector of a line vector or screw (Eq. 2.10)."""
    s, s_O = _parts(vector)
    along = s * pitch(vector)
    if type(vector) is Motion:
        return Motion(s, s_O - along), Motion(Vec3.zero(), along)
    return Force(s_O - along, s), Force(along, Vec3.zero())


def classify(vector: Motion | Force, *, tolerance: float = 1e-12) -> Kind:
    """Return the kind of a vector of numbers: "zero", "line" (s . s_O = 0), "free" (s = 0) or "screw"."""
    s, s_O = _parts(vector)
    line, free = s.dot(s) ** 0.5, s_O.dot(s_O) ** 0.5
    if line == 0.0 and free == 0.0:
        return "zero"
    if line <= tolerance * free:
        return "free"
    return "line" if abs(s.dot(s_O)) <= tolerance * line * free else "screw"


def magnitude(vector: Motion | Force) -> float:
    """Return the magnitude of a rotation [rad/s], translation [m/s], force [N] or couple [N m].

    Only line and free vectors have one, and only those of one kind can be compared.
    """
    s, s_O = _parts(vector)
    kind = classify(vector)
    if kind == "screw":
        raise ArgumentError(
            f"a {type(vector).__name__} of pitch {pitch(vector)} m is neither a line nor a free vector "
            "and has no magnitude; decompose it first"
        )
    measured = s_O if kind == "free" else s
    return float(measured.dot(measured) ** 0.5)


def _parts(vector: Motion | Force) -> tuple[Vec3, Vec3]:
    """Return s and s_O: the part that is the same at every origin, and the part that is not."""
    if type(vector) is Motion:
        return vector.angular, vector.linear
    return vector.linear, vector.angular
