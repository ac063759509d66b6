"""Conversion of states between the coordinate conventions of engines; see `engine_joints` for the tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dalembert.errors import (
    ArgumentError,
    DtypeError,
    ModelError,
    ShapeError,
    require_choice,
    require_names,
)
from dalembert.host.foreign_arrays import require_numpy
from dalembert.model.body import Body
from dalembert.model.engine_joints import CIRCLE, CODECS, Array, Codec, State, common_codec

if TYPE_CHECKING:
    from dalembert.model.model import Model

__all__ = ["ENGINES", "convert_state"]

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
