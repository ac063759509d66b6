"""Checks of the builder: names, numbers, limits and inertias."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from dalembert.errors import ArgumentError, DalembertError, InertiaError, ModelError, UnknownNameError
from dalembert.model.body import Body, Limits
from dalembert.model.joints import Joint
from dalembert.model.user_constraints import (
    CarriedFunction,
    Constraint,
    KnownFunction,
    LoopClosure,
    as_list,
    moving_bodies,
)
from dalembert.spatial import Transform, physical_problems
from dalembert.spatial.transform import Placement
from dalembert.spatial.value import leaves, rebuild

if TYPE_CHECKING:
    from dalembert.model.model import Model


ROTATION_TOLERANCE = 1.0e-9
"""Largest deviation of R^T R from the identity."""

Value = TypeVar("Value")


def is_finite(number: object) -> bool:
    """Return whether this is a real number that a float can hold, neither infinite nor NaN."""
    try:
        return isinstance(number, Real) and math.isfinite(number)
    except OverflowError:  # an int beyond the range of floats
        return False


def valid_name(name: object, what: str) -> str:
    """Return the name if it is a string that is not blank."""
    if not isinstance(name, str):
        raise ModelError(f"{what} must be a string, {type(name).__name__} was given")
    if not name.strip():
        raise ModelError(f"{what} is empty; give every body, joint and frame a name")
    return name


def checked_joint(joint: object, what: str) -> Joint:
    """Return the joint with plain floats, after checking that it is a joint with finite numbers."""
    if isinstance(joint, type) and issubclass(joint, Joint):
        raise ModelError(f"{what}: joint is the class {joint.__name__}; make one, as in {joint.__name__}()")
    if not isinstance(joint, Joint):
        raise ModelError(
            f"{what}: joint must be a Joint such as Revolute(axis=(0, 0, 1)), not {type(joint).__name__}"
        )
    numbers = joint.parameters()
    for number in numbers:
        if not is_finite(number):
            raise ModelError(f"{what}: the {joint.kind} joint holds {number!r}; give finite numbers")
    if not all(type(number) is float for number in numbers):
        return joint.with_parameters([float(number) for number in numbers])
    return joint


def require_known(index: Mapping[str, Any], name: object, place: str, kind: str = "body") -> Any:
    """Return the entry of `index` under a name; an unknown name is an error with its place and the nearest
    names.
    """
    if isinstance(name, str) and name in index:
        return index[name]
    raise UnknownNameError(f"{place}: {UnknownNameError.of(kind, name, index)}")


def finite_value(value: Value, what: str) -> Value:
    """Return a spatial value with every scalar a finite Python float."""
    numbers = leaves(value)
    for number in numbers:
        if not isinstance(number, Real):
            raise ModelError(
                f"{what} holds a {type(number).__name__}; a model is built from numbers (values that are "
                "known at run time only are named as parameters of da.compile)"
            )
        if not math.isfinite(number):
            raise ModelError(f"{what} holds {float(number)}; every number of a model must be finite")
    if all(type(number) is float for number in numbers):
        return value
    rebuilt: Value = rebuild(value, [float(number) for number in numbers])
    return rebuilt


def placement_or_identity(placement: Any, what: str) -> Placement:
    """Return the placement after checking it; None gives the identity."""
    if placement is None:
        return Transform.identity()
    if not isinstance(placement, Placement):
        raise ModelError(
            f"{what} must be a Transform, {type(placement).__name__} was given; "
            "use Transform.from_rotation_translation(R, p)"
        )
    checked = finite_value(placement, what)
    check_rotation(checked, what)
    return checked


def check_rotation(placement: Placement, what: str) -> None:
    """Raise an error for a matrix that is not a rotation."""
    if not isinstance(placement, Transform):
        return
    a, b, c, d, e, f, g, h, i = leaves(placement.R)
    # R^T R = 1, written out: this runs for every body of a large model.
    gram = (
        a * a + d * d + g * g - 1.0,
        b * b + e * e + h * h - 1.0,
        c * c + f * f + i * i - 1.0,
        a * b + d * e + g * h,
        a * c + d * f + g * i,
        b * c + e * f + h * i,
    )
    if max(map(abs, gram)) > ROTATION_TOLERANCE:
        raise ModelError(
            f"{what}: R is not a rotation, R^T R differs from the identity by {max(map(abs, gram)):.2g}"
        )
    if a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) < 0.0:
        raise ModelError(
            f"{what}: R is a reflection (determinant -1); a placement needs a right-handed frame"
        )


def per_coordinate(value: Any, n: int, what: str, *, negative: bool = False) -> tuple[float, ...]:
    """Return n finite numbers; one number is repeated, and negative ones are rejected unless `negative`."""
    numbers = [value] * n if isinstance(value, Real) else _sequence(value, what)
    if len(numbers) != n:
        raise ModelError(f"{what} has {len(numbers)} numbers, the joint needs {n}; give one number or {n}")
    for number in numbers if n else [value] if isinstance(value, Real) else []:
        if not is_finite(number):
            raise ModelError(f"{what} holds {number!r}; give finite numbers")
        if number < 0.0 and not negative:
            raise ModelError(f"{what} is {float(number)}; it must not be negative")
    return tuple(float(number) for number in numbers)


def resolve_limits(limits: Any, nq: int, nv: int, what: str) -> Limits:
    """Limits with a number for every coordinate, from `Limits`, a (lower, upper) pair or None."""
    if limits is None:
        limits = Limits()
    elif not isinstance(limits, Limits):
        pair = _sequence(limits, f"{what}: limits")
        if len(pair) != 2:
            raise ModelError(
                f"{what}: limits must be Limits(…) or a pair (lower, upper), {len(pair)} items were given"
            )
        limits = Limits(*pair)
    lower, upper = (_bounds(getattr(limits, f), nq, f"{what}: {f} limit") for f in ("lower", "upper"))
    velocity, effort = (_bounds(getattr(limits, f), nv, f"{what}: {f} limit") for f in ("velocity", "effort"))
    for low, high in zip(lower, upper):
        if low > high:
            raise ModelError(f"{what}: lower limit {low} is above upper limit {high}; exchange them")
        if low == math.inf or high == -math.inf:
            raise ModelError(f"{what}: limits {low} and {high} leave no position; use -inf and inf for none")
    for kind, bounds in (("velocity", velocity), ("effort", effort)):
        if any(bound < 0.0 for bound in bounds):
            raise ModelError(f"{what}: {kind} limit {min(bounds)} is negative; give a magnitude")
    return Limits(lower, upper, velocity, effort)


def inspect_bodies(bodies: Sequence[Body], policy: str) -> list[str]:
    """Check the bodies: raise an error for impossible values, and return lines about implausible ones.

    `policy` "strict" makes inertias that no physical body has an error.
    """
    lines = []
    has_child = {body.parent for body in bodies}
    for body in bodies:
        what = f'body "{body.name}"'
        reason = "; ".join(physical_problems(body.inertia))
        if reason:
            if policy == "strict":
                raise InertiaError(
                    f'{what}: {reason}; correct it, or build with inertia="as_given" to use it as it is'
                )
            lines.append(f"{what}: {reason}; used as given")
        carries = body.index in has_child or any(body.inertia.leaves()) or any(body.armature)
        if body.nv and not carries:
            lines.append(f"{what} moves, has no mass and carries nothing: its acceleration is undefined")
        lower, upper = _bounds(body.limits.lower, body.nq, what), _bounds(body.limits.upper, body.nq, what)
        if any(not low <= x <= high for low, x, high in zip(lower, body.joint.neutral(), upper)):
            lines.append(f'joint "{body.joint_name}": the neutral position is outside the limits')
    return lines


def _bounds(value: Any, n: int, what: str) -> tuple[float, ...]:
    numbers = [value] * n if isinstance(value, Real) else _sequence(value, what)
    if len(numbers) != n:
        raise ModelError(f"{what} has {len(numbers)} numbers, the joint needs {n}; give one number or {n}")
    for number in numbers:
        if not isinstance(number, Real) or math.isnan(number):
            raise ModelError(f"{what} holds {number!r}; give numbers, infinite for no limit")
    return tuple(float(number) for number in numbers)


def _sequence(value: Any, what: str) -> Sequence[Any]:
    if isinstance(value, np.ndarray):
        return value.ravel().tolist()
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ArgumentError(
            f"{what} must be a number or a sequence of numbers, {type(value).__name__} was given"
        )
    return list(value)


# Trial evaluations of the constraint functions of users, when a model is built.
#
# An error reports a function that takes the wrong arguments, returns anything but numbers, is not finite at
# the neutral configuration, is not linear where it must be, or does not close its loops.

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
