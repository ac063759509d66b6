"""Conversions of the coordinates of one joint between engines.

Engines differ in the joints whose q holds rotations. For a free joint (all verified by running the engines):

    engine      q                       v
    dalembert   position, quat wxyz     angular body, linear body
    pinocchio   position, quat xyzw     linear body, angular body
    mujoco      position, quat wxyz     linear parent, angular body
    drake       quat wxyz, position     angular parent, linear parent
    dart        rotation vector, pos.   angular parent, linear parent
    pybullet    COM, quat xyzw          linear parent (of the COM), angular parent

"Parent" axes are those of the joint's predecessor frame: the world's for a floating base. A spherical joint:

    dalembert, mujoco       quat wxyz           angular body
    pinocchio, pybullet     quat xyzw           angular body
    drake                   roll, pitch, yaw    angular parent
    dart                    rotation vector     angular body

A planar joint is (x, y, angle) with (v_x, v_y, omega) in parent axes everywhere but here and in Pinocchio:
(x, y, cos, sin) with (v_x, v_y, omega) in the body. Every other joint with v = dq/dt is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dalembert.errors import StateError
from dalembert.model.body import Body

__all__ = ["CIRCLE", "CODECS", "Array", "Codec", "State", "common_codec"]

Array = npt.NDArray[np.floating[Any]]

UNIT_TOLERANCE: Final = {"float64": 1e-6, "float32": 1e-4}
"""Largest deviation of a quaternion's norm from 1."""

State = tuple[Array, Array]
"""q and v of one joint, in our convention or in that of an engine."""


class Codec(NamedTuple):
    """The conversion of one joint for one engine: its number of entries in q, and both maps."""

    nq: int
    read: Callable[[Body, Array, Array], State]
    write: Callable[[Body, Array, Array], State]


def common_codec(nq: int) -> Codec:
    """Return the codec of a joint that has the same convention in all engines."""
    return Codec(nq, _read_checked, _same)


def _read_checked(body: Body, q: Array, v: Array) -> State:
    for part in body.joint.unit_quaternions:
        _unit(body, q[..., part])
    return q, v


def _same(body: Body, q: Array, v: Array) -> State:
    return q, v


def _read_circle(body: Body, q: Array, v: Array) -> State:
    return np.arctan2(q[..., 1:2], q[..., 0:1]), v


def _write_circle(body: Body, q: Array, v: Array) -> State:
    return np.concatenate([np.cos(q), np.sin(q)], axis=-1), v


# Free joints: from (position, rotation, linear, angular) in an engine's form to ours.


def _read_pinocchio_free(body: Body, q: Array, v: Array) -> State:
    p = _unit(body, _wxyz(q[..., 3:]))
    return _join(q[..., :3], p), _join(v[..., 3:], v[..., :3])


def _write_pinocchio_free(body: Body, q: Array, v: Array) -> State:
    return _join(q[..., :3], _xyzw(q[..., 3:])), _join(v[..., 3:], v[..., :3])


def _read_mujoco_free(body: Body, q: Array, v: Array) -> State:
    p = _unit(body, q[..., 3:])
    return _join(q[..., :3], p), _join(v[..., 3:], _to_body(p, v[..., :3]))


def _write_mujoco_free(body: Body, q: Array, v: Array) -> State:
    return q, _join(_to_parent(q[..., 3:], v[..., 3:]), v[..., :3])


def _read_drake_free(body: Body, q: Array, v: Array) -> State:
    p = _unit(body, q[..., :4])
    return _join(q[..., 4:], p), _join(_to_body(p, v[..., :3]), _to_body(p, v[..., 3:]))


def _write_drake_free(body: Body, q: Array, v: Array) -> State:
    p = q[..., 3:]
    return _join(p, q[..., :3]), _join(_to_parent(p, v[..., :3]), _to_parent(p, v[..., 3:]))


def _read_dart_free(body: Body, q: Array, v: Array) -> State:
    return _read_drake_free(body, _join(_quaternion(q[..., :3]), q[..., 3:]), v)


def _write_dart_free(body: Body, q: Array, v: Array) -> State:
    drake_q, drake_v = _write_drake_free(body, q, v)
    return _join(_rotation_vector(drake_q[..., :4]), drake_q[..., 4:]), drake_v


def _read_pybullet_free(body: Body, q: Array, v: Array) -> State:
    p = _unit(body, _wxyz(q[..., 3:]))
    com = _com(body, q)
    omega = _to_body(p, v[..., 3:])
    linear = _to_body(p, v[..., :3]) - np.cross(omega, com)
    return _join(q[..., :3] - _to_parent(p, com), p), _join(omega, linear)


def _write_pybullet_free(body: Body, q: Array, v: Array) -> State:
    p, omega = q[..., 3:], v[..., :3]
    com = _com(body, q)
    linear = _to_parent(p, v[..., 3:] + np.cross(omega, com))
    return _join(q[..., :3] + _to_parent(p, com), _xyzw(p)), _join(linear, _to_parent(p, omega))


# Spherical joints.


def _read_pinocchio_ball(body: Body, q: Array, v: Array) -> State:
    return _unit(body, _wxyz(q)), v


def _write_pinocchio_ball(body: Body, q: Array, v: Array) -> State:
    return _xyzw(q), v


def _read_mujoco_ball(body: Body, q: Array, v: Array) -> State:
    return _unit(body, q), v


def _read_drake_ball(body: Body, q: Array, v: Array) -> State:
    p = _from_roll_pitch_yaw(q)
    return p, _to_body(p, v)


def _write_drake_ball(body: Body, q: Array, v: Array) -> State:
    return _to_roll_pitch_yaw(q), _to_parent(q, v)


def _read_dart_ball(body: Body, q: Array, v: Array) -> State:
    return _quaternion(q), v


def _write_dart_ball(body: Body, q: Array, v: Array) -> State:
    return _rotation_vector(q), v


# Planar joints: ours is q = (x, y, angle), v = (omega, v_x, v_y) in body axes.


def _read_pinocchio_planar(body: Body, q: Array, v: Array) -> State:
    angle = np.arctan2(q[..., 3:4], q[..., 2:3])
    return _join(q[..., :2], angle), _join(v[..., 2:], v[..., :2])


def _write_pinocchio_planar(body: Body, q: Array, v: Array) -> State:
    angle = q[..., 2:]
    return _join(q[..., :2], np.cos(angle), np.sin(angle)), _join(v[..., 1:], v[..., :1])


def _read_rate_planar(body: Body, q: Array, v: Array) -> State:
    return q, _join(v[..., 2:], _turn(v[..., :2], -q[..., 2]))


def _write_rate_planar(body: Body, q: Array, v: Array) -> State:
    return q, _join(_turn(v[..., 1:], q[..., 2]), v[..., :1])


CIRCLE: Final = Codec(2, _read_circle, _write_circle)
"""A continuous joint as (cos, sin)."""
_RATE_PLANAR: Final = Codec(3, _read_rate_planar, _write_rate_planar)
CODECS: Final[dict[str, dict[str, Codec]]] = {
    "free": {
        "pinocchio": Codec(7, _read_pinocchio_free, _write_pinocchio_free),
        "mujoco": Codec(7, _read_mujoco_free, _write_mujoco_free),
        "drake": Codec(7, _read_drake_free, _write_drake_free),
        "dart": Codec(6, _read_dart_free, _write_dart_free),
        "pybullet": Codec(7, _read_pybullet_free, _write_pybullet_free),
    },
    "spherical": {
        "pinocchio": Codec(4, _read_pinocchio_ball, _write_pinocchio_ball),
        "mujoco": Codec(4, _read_mujoco_ball, _same),
        "drake": Codec(3, _read_drake_ball, _write_drake_ball),
        "dart": Codec(3, _read_dart_ball, _write_dart_ball),
        "pybullet": Codec(4, _read_pinocchio_ball, _write_pinocchio_ball),
    },
    "planar": {
        "pinocchio": Codec(4, _read_pinocchio_planar, _write_pinocchio_planar),
        "mujoco": _RATE_PLANAR,
        "drake": _RATE_PLANAR,
        "dart": _RATE_PLANAR,
        "pybullet": _RATE_PLANAR,
    },
}


def _join(*parts: Array) -> Array:
    return np.concatenate(parts, axis=-1)


def _wxyz(p: Array) -> Array:
    return p[..., [3, 0, 1, 2]]


def _xyzw(p: Array) -> Array:
    return p[..., [1, 2, 3, 0]]


def _unit(body: Body, p: Array) -> Array:
    """Return the quaternion after checking its unit norm; NaN passes."""
    error = np.abs(np.sqrt(np.sum(p * p, axis=-1)) - 1.0)
    if np.any(error > UNIT_TOLERANCE[p.dtype.name]):
        row = tuple(int(i) for i in np.argwhere(error > UNIT_TOLERANCE[p.dtype.name])[0])
        where = f" in row {row}" if row else ""
        raise StateError(
            f'joint "{body.joint_name}": the quaternion {p[row].tolist()} (w, x, y, z){where} has not '
            "unit norm; normalise it, and check the order of its components"
        )
    return p


def _to_parent(p: Array, x: Array) -> Array:
    """Return R x = x + 2 w (u x x) + 2 u x (u x x) for the quaternion (w, u)."""
    w, u = p[..., :1], p[..., 1:]
    once = np.cross(u, x)
    return x + 2.0 * (w * once + np.cross(u, once))


def _to_body(p: Array, x: Array) -> Array:
    return _to_parent(p * np.array([1.0, -1.0, -1.0, -1.0], p.dtype), x)


def _turn(x: Array, angle: Array) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1]], axis=-1)


def _com(body: Body, like: Array) -> Array:
    com = np.array(body.inertia.com.to_list(), dtype=like.dtype)
    return np.broadcast_to(com, (*like.shape[:-1], 3))


def _quaternion(r: Array) -> Array:
    """Return the quaternion (cos t/2, sin t/2 r/t) of the rotation vector r with t = |r|."""
    t = np.sqrt(np.sum(r * r, axis=-1, keepdims=True))
    return _join(np.cos(t / 2.0), 0.5 * np.sinc(t / (2.0 * np.pi)) * r)


def _rotation_vector(p: Array) -> Array:
    """Return the rotation vector of at most half a turn."""
    p = np.where(p[..., :1] < 0.0, -p, p)
    w, u = p[..., :1], p[..., 1:]
    s = np.sqrt(np.sum(u * u, axis=-1, keepdims=True))
    safe = np.where(s > 0.0, s, 1.0)
    return np.where(s > 0.0, 2.0 * np.arctan2(s, w) / safe, 2.0) * u


def _from_roll_pitch_yaw(r: Array) -> Array:
    """Return the quaternion of R = Rz(yaw) Ry(pitch) Rx(roll)."""
    (cr, cp, cy), (sr, sp, sy) = (np.moveaxis(f(r / 2.0), -1, 0) for f in (np.cos, np.sin))
    return np.stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ],
        axis=-1,
    )


def _to_roll_pitch_yaw(p: Array) -> Array:
    w, x, y, z = np.moveaxis(p, -1, 0)
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return np.stack([roll, pitch, yaw], axis=-1)
