"""Control laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dalembert.algorithms import control_laws
from dalembert.compiler.catalogue.entry import LibraryFunction
from dalembert.compiler.catalogue.refusals import HAS_INVERSE
from dalembert.model.model import Model
from dalembert.model.tree import Tree

__all__ = ["CONTROL"]

POSE_ROWS: Final = 6
"""Rows of a pose task, angular first; a task of position or rotation alone reads three of them."""


def _feedback_linearization(
    tree: Tree,
    q: Any,
    v: Any,
    q_ref: Any,
    stiffness: Any,
    *,
    v_ref: Any = None,
    a_ref: Any = None,
    **more: Any,
) -> Any:
    return control_laws.feedback_linearization(tree, q, v, q_ref, v_ref, a_ref, stiffness=stiffness, **more)


def _posture_forces(tree: Tree, q: Any, v: Any, q_ref: Any, stiffness: Any, **more: Any) -> Any:
    return control_laws.posture_forces(tree, q, v, q_ref, stiffness=stiffness, **more)


def _pd(tree: Tree, q: Any, v: Any, q_ref: Any, kp: Any, kd: Any, **more: Any) -> Any:
    return control_laws.pd_forces(tree, q, v, q_ref, kp=kp, kd=kd, **more)


def _stable_pd(tree: Tree, q: Any, v: Any, q_ref: Any, kp: Any, kd: Any, dt: Any, **more: Any) -> Any:
    return control_laws.stable_pd_forces(tree, q, v, q_ref, dt, kp=kp, kd=kd, **more)


def _operational_space(
    model: Model,
    q: Any,
    v: Any,
    stiffness: Any,
    *,
    where: str,
    position: Any = None,
    rotation: Any = None,
    velocity: Any = None,
    acceleration: Any = None,
    damping: Any = None,
    null_space: Any = None,
    regularization: Any = 0.0,
    time: Any = None,
) -> Any:
    rows = slice(0 if rotation is not None else 3, 6 if position is not None else 3)
    task = control_laws.frame_task(
        model,
        q,
        v,
        where,
        position=position,
        rotation=rotation,
        velocity=None if velocity is None else velocity[rows],
        acceleration=None if acceleration is None else acceleration[rows],
        stiffness=stiffness[rows],
        damping=None if damping is None else damping[rows],
        time=time,
    )
    return control_laws.operational_space(
        model, q, v, [task], null_space=null_space, regularization=regularization, time=time
    )


def _position(model: Model) -> tuple[int, ...]:
    return (model.nq,)


def _velocity(model: Model) -> tuple[int, ...]:
    return (model.nv,)


def _constant_shape(*shape: int) -> Callable[[Model], tuple[int, ...]]:
    return lambda model: shape


JOINT_SHAPES: Final = {
    "q_ref": _position,
    "v_ref": _velocity,
    "a_ref": _velocity,
    "stiffness": _velocity,
    "damping": _velocity,
}

PD_SHAPES: Final = {
    "q_ref": _position,
    **dict.fromkeys(("v_ref", "kp", "kd", "effort"), _velocity),
}

TASK_SHAPES: Final = {
    **dict.fromkeys(("stiffness", "damping", "velocity", "acceleration"), _constant_shape(POSE_ROWS)),
    "position": _constant_shape(3),
    "rotation": _constant_shape(3, 3),
    "null_space": _velocity,
    "regularization": _constant_shape(),
}

CONTROL: Final[dict[str, LibraryFunction]] = {
    "gravity_compensation": LibraryFunction(
        {"rnea": control_laws.gravity_compensation}, ("q",), frame_free=True, loops=("rnea",)
    ),
    "feedback_linearization": LibraryFunction(
        {"rnea": _feedback_linearization},
        ("q", "v", "q_ref", "stiffness"),
        frame_free=True,
        shapes=JOINT_SHAPES,
    ),
    "posture_forces": LibraryFunction(
        {"rnea": _posture_forces}, ("q", "v", "q_ref", "stiffness"), frame_free=True, shapes=JOINT_SHAPES
    ),
    "pd": LibraryFunction(
        {"joints": _pd}, ("q", "v", "q_ref", "kp", "kd"), frame_free=True, shapes=PD_SHAPES
    ),
    "stable_pd": LibraryFunction(
        {"aba": _stable_pd}, ("q", "v", "q_ref", "kp", "kd", "dt"), frame_free=True, shapes=PD_SHAPES
    ),
    "operational_space": LibraryFunction(
        {"rnea": _operational_space},
        ("q", "v", "stiffness"),
        shapes=TASK_SHAPES,
        preconditions=HAS_INVERSE,
    ),
    "operational_inertia": LibraryFunction(
        {"ltdl": control_laws.operational_inertia}, ("q",), preconditions=HAS_INVERSE
    ),
    "consistent_inverse": LibraryFunction(
        {"ltdl": control_laws.consistent_inverse}, ("q",), preconditions=HAS_INVERSE
    ),
}
