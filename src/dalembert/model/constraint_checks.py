"""Trial evaluations of the constraint functions of users, when a model is built.

An error reports a function that takes the wrong arguments, returns anything but numbers, is not finite at the
neutral configuration, is not linear where it must be, or does not close its loops.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dalembert.errors import DalembertError, ModelError
from dalembert.model.body import Body, Placement
from dalembert.model.user_constraints import (
    CarriedFunction,
    Constraint,
    KnownFunction,
    LoopClosure,
    as_list,
    moving_bodies,
)
from dalembert.spatial import Transform

if TYPE_CHECKING:
    from dalembert.model.model import Model

__all__ = ["checked_closure", "checked_constraint", "takes_time"]

LINEARITY_TOLERANCE: Final = 1e-6
"""Largest deviation of a velocity residual from linearity, relative to its size."""

CLOSURE_TOLERANCE: Final = 1e-6
"""Largest error [m or rad] of gamma(y) in the loops that it closes."""

TRIAL_OFFSET: Final = 0.01
"""Distance [m or rad] from the neutral y of the second trial evaluation of gamma."""


def takes_time(function: Callable[..., Any], arguments: Sequence[str], what: str) -> bool:
    """Return whether a function takes `time` after the given arguments; any other signature is an error."""
    if not callable(function):
        raise ModelError(f"{what}: give a function({', '.join(arguments)}), not {type(function).__name__}")
    if isinstance(function, KnownFunction):
        return isinstance(function, CarriedFunction) and function.constraint.time_dependent
    try:
        listed = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [
        p for p in listed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]
    if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in listed):
        raise ModelError(f"{what}: its function has keyword-only arguments; write {_form(arguments)}")
    if len(positional) == len(arguments):
        return False
    if len(positional) == len(arguments) + 1 and positional[-1].name == "time":
        return True
    given = ", ".join(p.name for p in positional)
    raise ModelError(
        f"{what}: its function takes ({given}); write {_form(arguments)}, or with a last argument `time`"
    )


def checked_constraint(constraint: Constraint, model: Model) -> Constraint:
    """Return the constraint with its number of residuals, after trial evaluations at and near the neutral
    configuration.
    """
    what = f'constraint "{constraint.name}"'
    rng = np.random.default_rng(7)
    q = model.neutral().tolist()
    v, w = rng.standard_normal((2, model.nv)).tolist()
    time = 0.0 if constraint.time_dependent else None

    def evaluate(speed: Sequence[float]) -> list[float]:
        arguments = [model, list(q)] if constraint.kind == "position" else [model, list(q), list(speed)]
        return _numbers(constraint.function, [*arguments, *([] if time is None else [time])], what)

    at_rest = evaluate([0.0] * model.nv)
    if constraint.kind == "velocity":
        both = evaluate([x + y for x, y in zip(v, w)])
        parts = zip(at_rest, evaluate(v), evaluate(w), both, strict=True)
        for row, (zero, one, two, three) in enumerate(parts):
            size = abs(zero) + abs(one) + abs(two) + abs(three)
            if abs(three - one - two + zero) > LINEARITY_TOLERANCE * size:
                raise ModelError(
                    f"{what}: residual {row} is not linear in v; a constraint of velocity is K(q) v = 0, "
                    'and a relation of positions is kind="position"'
                )
    if not at_rest:
        raise ModelError(f"{what} returned no residuals; return one for each relation that must stay zero")
    return replace(constraint, size=len(at_rest))


def checked_closure(
    function: Callable[..., Any], independent: Sequence[str], time_dependent: bool, model: Model
) -> LoopClosure:
    """Return the loop closure with its indices, after a trial evaluation at the independent joints' neutral
    positions.
    """
    what = "the loop closure"
    chosen = {name: model.joint(name).body for name in independent}
    follows = [name for name, body in chosen.items() if body.dependence is not None]
    if follows:
        raise ModelError(f'{what}: joint "{follows[0]}" follows a coupling and cannot be independent')
    for body in moving_bodies(model):
        if body.joint_name not in chosen and not _rates_are_velocities(body):
            raise ModelError(
                f'{what}: joint "{body.joint_name}" is of kind {body.joint.kind}, whose v is not dq/dt; make '
                "it independent, or use joints of angles and lengths"
            )
    closure = LoopClosure(
        function,
        tuple(independent),
        tuple(i for body in chosen.values() for i in range(body.q_slice.start, body.q_slice.stop)),
        tuple(i for body in chosen.values() for i in range(body.v_slice.start, body.v_slice.stop)),
        time_dependent,
    )
    neutral = model.neutral().tolist()
    y = [neutral[place] for place in closure.positions]
    q = _numbers(function, [model, y, *([0.0] if time_dependent else [])], what)
    if len(q) != model.nq:
        raise ModelError(f"{what} returned {len(q)} numbers; return the whole q, which has {model.nq}")
    for place, own in zip(closure.positions, y):
        if abs(q[place] - own) > CLOSURE_TOLERANCE:
            raise ModelError(
                f"{what}: q[{place}] belongs to an independent joint and must be its y, {own:g}, but is "
                f"{q[place]:g}; y holds the positions of {', '.join(independent)}, in this order"
            )
    _check_loops(closure, model, y)
    return closure


def _check_loops(closure: LoopClosure, model: Model, y: list[float]) -> None:
    """Refuse a gamma(y) that leaves loops open or breaks constraints, at the neutral y or near it."""
    time = 0.0 if model.time_dependent else None
    for near in (y, [x + TRIAL_OFFSET * (1.0 + i) for i, x in enumerate(y)]):
        try:
            q = closure.configuration(model, _normalize_quaternions(closure, model, near), time)
            errors = _errors(model, q, time)
        except (ArithmeticError, ValueError):
            continue  # outside of where gamma is defined, which is the user's to know
        for name, error in errors:
            if error > CLOSURE_TOLERANCE:
                raise ModelError(
                    f'the loop closure leaves "{name}" open by {error:.2g} (m or rad) at y = '
                    f"{[round(x, 4) for x in near]}; gamma(y) must solve the model's loops and constraints"
                )


def _normalize_quaternions(closure: LoopClosure, model: Model, y: list[float]) -> list[float]:
    """Return y with its quaternions scaled to unit norm."""
    own: list[float] = []
    start = 0
    for name in closure.independent:
        joint = model.joint(name).joint
        own += joint.normalize(y[start : start + joint.nq])
        start += joint.nq
    return own


def _errors(model: Model, q: Sequence[float], time: float | None) -> list[tuple[str, float]]:
    """Return the error of each loop and each position constraint [m or rad]."""
    poses: list[Transform] = []
    for body in model.bodies:
        at = poses[body.parent] if body.parent >= 0 else Transform.identity()
        poses.append(at @ body.link_transform(q, time))

    def place(body: int, placement: Placement) -> Transform:
        return (poses[body] if body >= 0 else Transform.identity()) @ placement

    found = []
    for loop in model.loops:
        X_p = place(loop.predecessor, loop.placement_predecessor)
        X_s = place(loop.successor, loop.placement_successor)
        delta = loop.joint.closure_error(X_p.inverse() @ X_s, time)
        found.append((loop.name, max((abs(x) for x in delta), default=0.0)))
    for item in model.constraints:
        if item.kind == "position":
            residual = item.residual(model, q, [0.0] * model.nv, time)
            found.append((item.name, max(abs(x) for x in residual)))
    return found


def _rates_are_velocities(body: Body) -> bool:
    """Return whether dq/dt = v for the body's joint."""
    joint = body.joint
    if joint.nq != joint.nv:
        return False
    q, v = [0.3 + 0.1 * i for i in range(joint.nq)], [0.7 - 0.2 * i for i in range(joint.nv)]
    return all(abs(rate - x) < 1e-12 for rate, x in zip(joint.position_rate(q, v), v))


def _numbers(function: Callable[..., Any], arguments: Sequence[Any], what: str) -> list[float]:
    """Call a user's function on floats and return its values as finite numbers."""
    try:
        values = as_list(function(*arguments), what)
    except DalembertError:
        raise
    except Exception as error:
        raise ModelError(
            f"{what}: its function failed at the neutral configuration: {type(error).__name__}: {error}"
        ) from error
    for value in values:
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ModelError(
                f"{what} returned {value!r} among its numbers; return a list of scalars"
            ) from None
        if not math.isfinite(number):
            raise ModelError(
                f"{what} is {number} at the neutral configuration; place the joints so that it is finite"
            )
    return [float(value) for value in values]


def _form(arguments: Sequence[str]) -> str:
    return f"function({', '.join(arguments)})"
