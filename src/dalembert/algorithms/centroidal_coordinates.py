"""Centroidal coordinates (y, w) of a joint: centre of mass and its velocity if free or planar, else q and v.

y holds the position variables with the position of the body's own centre of mass in place of its origin's,
w the velocity variables with the centre's velocity along predecessor axes in place of the origin's along
body axes; see `stepping`, Eqs (1) and (2). For every other joint y = q and w = v.
"""

from __future__ import annotations

from dalembert.model.body import Body
from dalembert.model.joints import Free, Planar
from dalembert.scalar import Scalar, Scalars, cos, sin
from dalembert.spatial import Mat3, Vec3
from dalembert.spatial.rotations import quaternion_rate, rotation_of_quaternion

Pair = tuple[list[Scalar], list[Scalar]]


def to_centroidal(body: Body, q: Scalars, v: Scalars) -> Pair:
    """Return (y, w) of (q, v): y = p + R c, w = R (v_O + omega x c)."""
    if not _is_free_or_planar(body):
        return list(q), list(v)
    R, p, omega, v_O = _parts(body, q, v)
    c = _center(body)
    return _pack(body, p + R @ c, q, omega, R @ (v_O + omega.cross(c)))


def from_centroidal(body: Body, y: Scalars, w: Scalars) -> Pair:
    """Return (q, v) of (y, w); quaternions in y have unit norm."""
    if not _is_free_or_planar(body):
        return list(y), list(w)
    R, center, omega, velocity = _parts(body, y, w)
    c = _center(body)
    return _pack(body, center - R @ c, y, omega, R.transposed_times(velocity) - omega.cross(c))


def velocity_relative_to_center(body: Body, q: Scalars, v: Scalars) -> list[Scalar]:
    """Return v relative to a frame that moves with the body's centre of mass and does not rotate."""
    if not _is_free_or_planar(body):
        return list(v)
    _, _, omega, _ = _parts(body, q, v)
    return _pack(body, Vec3.zero(), q, omega, -omega.cross(_center(body)))[1]


def centroidal_rates(body: Body, q: Scalars, v: Scalars, a: Scalars) -> Pair:
    """Return (dy/dt, dw/dt) for dv/dt = a."""
    if not _is_free_or_planar(body):
        return body.joint.position_rate(q, v), list(a)
    R, _, omega, v_O = _parts(body, q, v)
    _, _, alpha, a_O = _parts(body, q, a)
    c = _center(body)
    at_center = v_O + omega.cross(c)
    turn = quaternion_rate(q[3:], omega) if isinstance(body.joint, Free) else [v[0]]
    return _pack(
        body, R @ at_center, [0.0] * 3 + turn, alpha, R @ (a_O + alpha.cross(c) + omega.cross(at_center))
    )


def integrate_centroidal(body: Body, y: Scalars, dw: Scalars) -> list[Scalar]:
    """Return y after unit time at constant dw: the centre moves straight, the turn is its exponential."""
    if not _is_free_or_planar(body):
        return body.joint.integrate(y, dw)
    if isinstance(body.joint, Free):
        rotated = body.joint.integrate(y, [*dw[:3], 0.0, 0.0, 0.0])
        return [y[0] + dw[3], y[1] + dw[4], y[2] + dw[5], *rotated[3:]]
    return [y[0] + dw[1], y[1] + dw[2], y[2] + dw[0]]


def _is_free_or_planar(body: Body) -> bool:
    return isinstance(body.joint, (Free, Planar))


def _center(body: Body) -> Vec3:
    """Return the body's centre of mass c; for a planar joint, its part in the plane, as only that moves."""
    c = body.inertia.com
    return c if isinstance(body.joint, Free) else Vec3(c.x, c.y, 0.0)


def _parts(body: Body, q: Scalars, v: Scalars) -> tuple[Mat3, Vec3, Vec3, Vec3]:
    """Return R, position, angular and linear part; for a planar joint, in three dimensions."""
    if isinstance(body.joint, Free):
        return rotation_of_quaternion(q[3:]), Vec3(*q[:3]), Vec3(*v[:3]), Vec3(*v[3:])
    x, y, angle = q
    c, s = cos(angle), sin(angle)
    R = Mat3(c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0)
    return R, Vec3(x, y, 0.0), Vec3(0.0, 0.0, v[0]), Vec3(v[1], v[2], 0.0)


def _pack(body: Body, position: Vec3, q: Scalars, angular: Vec3, linear: Vec3) -> Pair:
    """Return the joint's variables with this position and the orientation in q."""
    if isinstance(body.joint, Free):
        return [*position, *q[3:]], [*angular, *linear]
    return [position.x, position.y, q[-1]], [angular.z, linear.x, linear.y]
