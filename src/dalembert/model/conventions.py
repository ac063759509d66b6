"""Conversion of states between the coordinate conventions of engines; see `engine_joints` for the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dalembert.errors import (
    ArgumentError,
    DtypeError,
    ModelError,
    ShapeError,
    StateError,
    require_choice,
    require_names,
)
from dalembert.host.foreign_arrays import require_numpy
from dalembert.model.body import Body

if TYPE_CHECKING:
    from dalembert.model.model import Model


# Conversions of the coordinates of one joint between engines.
#
# Engines differ in the joints whose q holds rotations. For a free joint (all verified by running the
# engines):
#
#     engine      q                       v
#     dalembert   position, quat wxyz     angular body, linear body
#     pinocchio   position, quat xyzw     linear body, angular body
#     mujoco      position, quat wxyz     linear parent, angular body
#     drake       quat wxyz, position     angular parent, linear parent
#     dart        rotation vector, pos.   angular parent, linear parent
#     pybullet    COM, quat xyzw          linear parent (of the COM), angular parent
#
# "Parent" axes are those of the joint's predecessor frame: the world's for a floating base. A spherical
# joint:
#
#     dalembert, mujoco       quat wxyz           angular body
#     pinocchio, pybullet     quat xyzw           angular body
#     drake                   roll, pitch, yaw    angular parent
#     dart                    rotation vector     angular body
#
# A planar joint is (x, y, angle) with (v_x, v_y, omega) in parent axes everywhere but here and in Pinocchio:
# (x, y, cos, sin) with (v_x, v_y, omega) in the body. Every other joint with v = dq/dt is the same
# everywhere.

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


ENGINES: Final = ("dalembert", "pinocchio", "mujoco", "drake", "dart", "pybullet")


def convert_state(
    model: Model,
    q: npt.ArrayLike,
    v: npt.ArrayLike | None = None,
    *,
    source: str,
    target: str,
    continuous: Iterable[str] = (),
    order: Sequence[str] | None = None,
) -> tuple[Array, Array | None]:
    """Convert q `(…, nq)` and v `(…, nv)` from the convention of one engine to that of another.

    `continuous` names the revolute joints that Pinocchio represents as (cos, sin); their angles come back
    between -pi and pi. `order` names all joints in the order of the other engine, if it differs from the
    model's. v may be omitted.

    >>> model = da.models.humanoid()
    >>> q, v = model.random_state(1)
    >>> x, w = da.convert_state(model, q, v, source="dalembert", target="pinocchio")
    >>> print(q[3:7].round(3), x[3:7].round(3))  # scalar first here, scalar last there
    [-0.752  0.522  0.257 -0.31 ] [ 0.522  0.257 -0.31  -0.752]
    """
    if not hasattr(model, "bodies"):  # this module lies below that of models
        raise DtypeError(f"the first argument of convert_state must be a Model, got {type(model).__name__}")
    for engine in (source, target):
        require_choice("engine", engine, ENGINES)
    turning = _continuous(model, continuous)
    sequence = _order(model, order)
    read = _layout(model, source, turning, sequence)
    write = _layout(model, target, turning, sequence)
    q_in = _array(q, "q", sum(part.codec.nq for part in read), source)
    v_in = None if v is None else _array(v, "v", model.nv, source)
    if v_in is not None and v_in.shape[:-1] != q_in.shape[:-1]:
        raise ShapeError(
            f"q has the batch shape {q_in.shape[:-1]} but v has {v_in.shape[:-1]}; give both the same"
        )
    states = {part.body.index: part.codec.read(part.body, *part.cut(q_in, v_in)) for part in read}
    q_out, v_out = [], []
    for part in write:
        q_part, v_part = part.codec.write(part.body, *states[part.body.index])
        q_out.append(q_part)
        v_out.append(v_part)
    empty = q_in[..., :0]
    return (
        np.concatenate([empty, *q_out], axis=-1),
        None if v_in is None else np.concatenate([v_in[..., :0], *v_out], axis=-1),
    )


class Part(NamedTuple):
    """The position of a joint in an engine's q and v."""

    body: Body
    codec: Codec
    q_start: int
    v_start: int

    def cut(self, q: Array, v: Array | None) -> State:
        own_q = q[..., self.q_start : self.q_start + self.codec.nq]
        if v is None:
            return own_q, np.zeros((*q.shape[:-1], self.body.nv), q.dtype)
        return own_q, v[..., self.v_start : self.v_start + self.body.nv]


def _layout(model: Model, engine: str, continuous: frozenset[str], order: Sequence[Body]) -> list[Part]:
    """Return the joints with their positions in an engine's q and v."""
    parts, q_start, v_start = [], 0, 0
    for body in model.bodies if engine == "dalembert" else order:
        if body.dependence is not None:
            continue
        codec = _codec(body, engine, body.joint_name in continuous)
        parts.append(Part(body, codec, q_start, v_start))
        q_start, v_start = q_start + codec.nq, v_start + body.nv
    return parts


def _codec(body: Body, engine: str, continuous: bool) -> Codec:
    kind = body.joint.kind
    if engine != "dalembert":
        if continuous and engine == "pinocchio":
            return CIRCLE
        if kind in CODECS:
            return CODECS[kind][engine]
        if body.nq != body.nv or body.joint.unit_quaternions:
            raise ModelError(f'joint "{body.joint_name}" of kind {kind} has no counterpart in {engine}')
    return common_codec(body.nq)


def _continuous(model: Model, names: Iterable[str]) -> frozenset[str]:
    found = frozenset(require_names("continuous", names))
    for name in found:
        if model.joint(name).kind != "revolute":
            raise ModelError(
                f'joint "{name}" is of kind {model.joint(name).kind}; only revolute joints are continuous'
            )
    return found


def _order(model: Model, names: Sequence[str] | None) -> list[Body]:
    if names is None:
        return list(model.bodies)
    names = require_names("order", names)
    bodies = [model.joint(name).body for name in names]
    missing = {body.joint_name for body in model.bodies if body.nv} - set(names)
    if missing or len(set(names)) != len(bodies):
        raise ArgumentError(f"order must name every joint once; missing: {sorted(missing)}")
    return bodies


def _array(values: npt.ArrayLike, name: str, width: int, engine: str) -> Array:
    require_numpy(name, values)
    try:
        array = np.asarray(values)
    except Exception as error:  # of somebody's array, whatever it is
        raise ArgumentError(f"{name}: {error}") from error
    if np.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_:
        array = array.astype(np.float64)
    if array.dtype not in (np.float64, np.float32):
        raise DtypeError(f"{name} has elements of type {array.dtype}; give float64 or float32")
    if array.ndim < 1 or array.shape[-1] != width:
        raise ShapeError(f"{name} of {engine} has shape {array.shape}, expected (…, {width})")
    return array
