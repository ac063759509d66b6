"""Planar joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from dalembert.model.joints.axes import angle_about
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments
from dalembert.scalar import Scalar, cos, sin
from dalembert.spatial import Force, Motion, Placement, Transform, Vec3
from dalembert.spatial.exponential import se2_exp, se2_log
from dalembert.spatial.rotations import rotation_about_axis

__all__ = ["Planar"]


@final
@dataclass(frozen=True, slots=True)
class Planar(Joint):
    """Motion in the x-y plane: q = (x, y, angle), v = (omega, v_x, v_y) in successor coordinates.

    x and y [m] are in predecessor coordinates, unlike those of Featherstone 2008 Table 4.1, so that a body
    far away can spin without moving its coordinates; S = (e3, e4, e5) is the table's. With R(angle): d(x,
    y)/dt = R (v_x, v_y). Positions integrate by the exponential of SE(2). The angle is not wrapped:
    `difference` counts whole turns, and a displacement between poses exactly n turns apart (n not 0) does
    not exist unless the points coincide.

    >>> joint = da.Planar()
    >>> print(np.round(joint.position_rate([0.0, 0.0, np.pi / 2], [0.0, 1.0, 0.0]), 6).tolist())
    [0.0, 1.0, 0.0]
    """

    kind = "planar"
    constant_constraint_forces = True
    nq = 3
    nv = 3
    coordinates = ("length", "length", "angle")

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        x, y, angle = q
        return Transform(rotation_about_axis(2, angle), Vec3(x, y, 0.0))

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return (
            Motion(Vec3.unit(2), Vec3.zero()),
            Motion(Vec3.zero(), Vec3.unit(0)),
            Motion(Vec3.zero(), Vec3.unit(1)),
        )

    def position_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        return [*_turn(q[2], v[1], v[2]), v[0]]

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        x, y, angle = q
        turn, dx, dy = dv
        path_x, path_y, _ = se2_exp(turn, dx, dy)
        step_x, step_y = _turn(angle, path_x, path_y)
        return [x + step_x, y + step_y, angle + turn]

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        dx, dy = _turn(-q0[2], q1[0] - q0[0], q1[1] - q0[1])
        return list(se2_log(dx, dy, q1[2] - q0[2]))

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(Vec3.unit(0), Vec3.unit(1)) + forces(Vec3.unit(2))

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(Vec3.unit(2)) + forces(Vec3.unit(0), Vec3.unit(1))

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return [X.p.x, X.p.y, angle_about(Vec3.unit(2), X.R)]


def _turn(angle: Scalar, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """Rotate (x, y) by the angle."""
    c, s = cos(angle), sin(angle)
    return c * x - s * y, s * x + c * y
