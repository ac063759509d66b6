"""Conversion of states between the coordinate conventions of engines.

Engines differ in the joints whose q holds rotations: `FORMS` lists them, all verified by running the engines.
"Parent" axes are those of the joint's predecessor frame: the world's for a floating base. Every other joint
with v = dq/dt is the same everywhere.
"""

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
from dalembert.scalar import Scalar
from dalembert.spatial import Vec3
from dalembert.spatial.exponential import quaternion_exp, quaternion_log
from dalembert.spatial.rotations import (
    euler_angles_of_rotation,
    quaternion_of_rotation,
    rotation_of_euler_angles,
    rotation_of_quaternion,
)

if TYPE_CHECKING:
    from dalembert.model.model import Model

Array = npt.NDArray[np.floating[Any]]

UNIT_TOLERANCE: Final = {"float64": 1e-6, "float32": 1e-4}
"""Largest deviation of a quaternion's norm from 1."""

State = dict[str, Array]
"""A joint's "rotation" (quaternion wxyz, or angle), "position", and velocities in body axes."""


class Form(NamedTuple):
    """The parts of q and v of a joint, in order; `com` is the position of the centre of mass."""

    q: tuple[str, ...]
    v: tuple[str, ...]


_ALIKE: Final = ("mujoco", "drake", "dart", "pybullet")
"""Engines with the same planar and continuous joints."""

FORMS: Final[dict[str, dict[str, Form]]] = {
    "free": {
        "dalembert": Form(("position", "wxyz"), ("angular body", "linear body")),
        "pinocchio": Form(("position", "xyzw"), ("linear body", "angular body")),
        "mujoco": Form(("position", "wxyz"), ("linear parent", "angular body")),
        "drake": Form(("wxyz", "position"), ("angular parent", "linear parent")),
        "dart": Form(("rotation vector", "position"), ("angular parent", "linear parent")),
        "pybullet": Form(("com", "xyzw"), ("linear parent", "angular parent")),
    },
    "spherical": {
        "dalembert": Form(("wxyz",), ("angular body",)),
        "pinocchio": Form(("xyzw",), ("angular body",)),
        "mujoco": Form(("wxyz",), ("angular body",)),
        "drake": Form(("roll pitch yaw",), ("angular parent",)),
        "dart": Form(("rotation vector",), ("angular body",)),
        "pybullet": Form(("xyzw",), ("angular body",)),
    },
    "planar": {
        "dalembert": Form(("x y", "angle"), ("omega", "slide body")),
        "pinocchio": Form(("x y", "cos sin"), ("slide body", "omega")),
        **dict.fromkeys(_ALIKE, Form(("x y", "angle"), ("slide parent", "omega"))),
    },
    "continuous": {
        "pinocchio": Form(("cos sin",), ("omega",)),
        **dict.fromkeys(("dalembert", *_ALIKE), Form(("angle",), ("omega",))),
    },
}

ENGINES: Final = tuple(FORMS["free"])

SIZES: Final = {
    **dict.fromkeys(("angle", "omega"), 1),
    **dict.fromkeys(("x y", "cos sin", "slide body", "slide parent"), 2),
    **dict.fromkeys(("position", "com", "rotation vector", "roll pitch yaw"), 3),
    **dict.fromkeys(("angular body", "angular parent", "linear body", "linear parent"), 3),
    **dict.fromkeys(("wxyz", "xyzw"), 4),
}
"""Numbers of each part of q and v."""


def _cut(values: Array, names: Sequence[str]) -> list[Array]:
    return np.split(values, np.cumsum([SIZES[name] for name in names])[:-1], axis=-1)


def _join(*parts: Array) -> Array:
    return np.concatenate(parts, axis=-1)


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
    """Return R x = x + 2 w (u x x) + 2 u x (u x x) for the quaternion (w, u), or x turned by the angle p."""
    if p.shape[-1] == 1:
        c, s = np.cos(p[..., 0]), np.sin(p[..., 0])
        return np.stack([c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1]], axis=-1)
    w, u = p[..., :1], p[..., 1:]
    once = np.cross(u, x)
    return x + 2.0 * (w * once + np.cross(u, once))


def _to_body(p: Array, x: Array) -> Array:
    return _to_parent(-p if p.shape[-1] == 1 else p * np.array([1.0, -1.0, -1.0, -1.0], p.dtype), x)


def _com(body: Body, like: Array) -> Array:
    com = np.array(body.inertia.com.to_list(), dtype=like.dtype)
    return np.broadcast_to(com, (*like.shape[:-1], 3))


def _by_rows(function: Callable[[list[Scalar]], Iterable[Scalar]]) -> Callable[[Array], Array]:
    """Return a function of generic scalars as one of the last axis of arrays."""

    def convert(x: Array) -> Array:
        columns = np.broadcast_arrays(*function(list(x.reshape(-1, x.shape[-1]).T)))
        return np.stack(columns, axis=-1).reshape(*x.shape[:-1], len(columns)).astype(x.dtype, copy=False)

    return convert


_from_rotation_vector = _by_rows(lambda r: quaternion_exp(Vec3(*r)))
_from_roll_pitch_yaw = _by_rows(lambda r: quaternion_of_rotation(rotation_of_euler_angles("zyx", r[::-1])))
_to_roll_pitch_yaw = _by_rows(lambda p: euler_angles_of_rotation("zyx", rotation_of_quaternion(p))[::-1])

ROTATIONS: Final[dict[str, tuple[Callable[[Body, Array], Array], Callable[[Array], Array]]]] = {
    "wxyz": (_unit, lambda p: p),
    "xyzw": (lambda body, p: _unit(body, p[..., [3, 0, 1, 2]]), lambda p: p[..., [1, 2, 3, 0]]),
    "rotation vector": (lambda body, r: _from_rotation_vector(r), _by_rows(quaternion_log)),
    "roll pitch yaw": (lambda body, r: _from_roll_pitch_yaw(r), _to_roll_pitch_yaw),
    "angle": (lambda body, angle: angle, lambda angle: angle),
    "cos sin": (
        lambda body, x: np.arctan2(x[..., 1:2], x[..., 0:1]),
        lambda angle: _join(np.cos(angle), np.sin(angle)),
    ),
}
"""How each form of a rotation is read and written."""


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
    turning = frozenset(require_names("continuous", continuous))
    for name in turning:
        if (kind := model.joint(name).kind) != "revolute":
            raise ModelError(f'joint "{name}" is of kind {kind}; only revolute joints are continuous')
    sequence = _order(model, order)
    read = _layout(model, source, turning, sequence)
    write = _layout(model, target, turning, sequence)
    q_in = _array(q, "q", sum(part.nq for part in read), source)
    v_in = None if v is None else _array(v, "v", model.nv, source)
    if v_in is not None and v_in.shape[:-1] != q_in.shape[:-1]:
        raise ShapeError(
            f"q has the batch shape {q_in.shape[:-1]} but v has {v_in.shape[:-1]}; give both the same"
        )
    states = {part.body.index: part.read(q_in, v_in) for part in read}
    out = [part.write(states[part.body.index]) for part in write]
    q_out = _join(q_in[..., :0], *(q_part for q_part, _ in out))
    return q_out, None if v_in is None else _join(v_in[..., :0], *(v_part for _, v_part in out))


class Part(NamedTuple):
    """The position of a joint in an engine's q and v; `form` is None where all engines have the same."""

    body: Body
    form: Form | None
    q_start: int
    v_start: int

    @property
    def nq(self) -> int:
        return self.body.nq if self.form is None else sum(SIZES[name] for name in self.form.q)

    def read(self, q: Array, v: Array | None) -> State:
        """Return the state of the joint from q and v in the form of the engine."""
        body, form = self.body, self.form
        q = q[..., self.q_start : self.q_start + self.nq]
        if v is None:
            v = np.zeros((*q.shape[:-1], body.nv), q.dtype)
        else:
            v = v[..., self.v_start : self.v_start + body.nv]
        if form is None:
            for quaternion in body.joint.unit_quaternions:
                _unit(body, q[..., quaternion])
            return {"q": q, "v": v}
        state: State = {}
        for name, part in zip(form.q, _cut(q, form.q)):
            if name in ROTATIONS:
                state["rotation"] = ROTATIONS[name][0](body, part)
            else:
                state["position"] = part
        p = state["rotation"]
        for name, part in zip(form.v, _cut(v, form.v)):
            quantity, _, axes = name.partition(" ")
            state[quantity] = _to_body(p, part) if axes == "parent" else part
        if "com" in form.q:
            com = _com(body, q)
            state["position"] = state["position"] - _to_parent(p, com)
            state["linear"] = state["linear"] - np.cross(state["angular"], com)
        return state

    def write(self, state: State) -> tuple[Array, Array]:
        """Return q and v of the joint in the form of the engine."""
        if self.form is None:
            return state["q"], state["v"]
        p = state["rotation"]
        if "com" in self.form.q:
            com = _com(self.body, p)
            linear = state["linear"] + np.cross(state["angular"], com)
            state = state | {"position": state["position"] + _to_parent(p, com), "linear": linear}
        q = [ROTATIONS[name][1](p) if name in ROTATIONS else state["position"] for name in self.form.q]
        v = []
        for name in self.form.v:
            quantity, _, axes = name.partition(" ")
            v.append(_to_parent(p, state[quantity]) if axes == "parent" else state[quantity])
        return _join(*q), _join(*v)


def _layout(model: Model, engine: str, continuous: frozenset[str], order: Sequence[Body]) -> list[Part]:
    """Return the joints with their positions in an engine's q and v."""
    parts, q_start, v_start = [], 0, 0
    for body in model.bodies if engine == "dalembert" else order:
        if body.dependence is not None:
            continue
        kind = "continuous" if body.joint_name in continuous else body.joint.kind
        form = FORMS[kind][engine] if kind in FORMS else None
        curved = body.nq != body.nv or body.joint.unit_quaternions
        if form is None and engine != "dalembert" and curved:
            raise ModelError(f'joint "{body.joint_name}" of kind {kind} has no counterpart in {engine}')
        parts.append(Part(body, form, q_start, v_start))
        q_start, v_start = q_start + parts[-1].nq, v_start + body.nv
    return parts


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
    except Exception as error:  # any exception that a foreign array raises
        raise ArgumentError(f"{name}: {error}") from error
    if np.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_:
        array = array.astype(np.float64)
    if array.dtype not in (np.float64, np.float32):
        raise DtypeError(f"{name} has elements of type {array.dtype}; give float64 or float32")
    if array.ndim < 1 or array.shape[-1] != width:
        raise ShapeError(f"{name} of {engine} has shape {array.shape}, expected (…, {width})")
    return array
