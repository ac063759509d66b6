"""Checks of the builder: names, numbers, limits and inertias."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from dalembert.errors import ArgumentError, InertiaError, ModelError, UnknownNameError
from dalembert.model.body import LIMITS, Body, Limits, bounds_of
from dalembert.model.joints import Joint
from dalembert.spatial import Placement, Transform, physical_problems
from dalembert.spatial.value import leaves, rebuild

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
    """Return the entry under a name; an unknown name is an error with its place and the nearest names."""
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
    if not isinstance(checked, Transform):
        return checked
    a, b, c, d, e, f, g, h, i = leaves(checked.R)
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
    return checked


def per_coordinate(
    value: Any, n: int, what: str, *, negative: bool = False, infinite: bool = False
) -> tuple[float, ...]:
    """Return n numbers; one number is repeated. Negative and infinite ones are errors unless allowed."""
    numbers = [value] * n if isinstance(value, Real) else _sequence(value, what)
    if len(numbers) != n:
        raise ModelError(f"{what} has {len(numbers)} numbers, the joint needs {n}; give one number or {n}")
    for number in [value] if isinstance(value, Real) else numbers:
        if infinite:
            if not isinstance(number, Real) or math.isnan(number):
                raise ModelError(f"{what} holds {number!r}; give numbers, infinite for no limit")
        elif not is_finite(number):
            raise ModelError(f"{what} holds {number!r}; give finite numbers")
        if number < 0.0 and not negative:
            raise ModelError(f"{what} is {float(number)}; it must not be negative")
    return tuple(float(number) for number in numbers)


def resolve_limits(limits: Any, nq: int, nv: int, what: str) -> Limits:
    """Return limits with a number for every coordinate, from `Limits`, a (lower, upper) pair or None."""
    if limits is None:
        limits = Limits()
    elif not isinstance(limits, Limits):
        pair = _sequence(limits, f"{what}: limits")
        if len(pair) != 2:
            raise ModelError(
                f"{what}: limits must be Limits(…) or a pair (lower, upper), {len(pair)} items were given"
            )
        limits = Limits(*pair)
    found = {}
    for part, count in LIMITS.items():
        given, n = getattr(limits, part), nq if count == "nq" else nv
        found[part] = per_coordinate(given, n, f"{what}: {part} limit", negative=True, infinite=True)
    for low, high in zip(found["lower"], found["upper"]):
        if low > high:
            raise ModelError(f"{what}: lower limit {low} is above upper limit {high}; exchange them")
        if low == math.inf or high == -math.inf:
            raise ModelError(f"{what}: limits {low} and {high} leave no position; use -inf and inf for none")
    for kind in ("velocity", "effort"):
        if any(bound < 0.0 for bound in found[kind]):
            raise ModelError(f"{what}: {kind} limit {min(found[kind])} is negative; give a magnitude")
    return Limits(**found)


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
        lower, upper = bounds_of(body, "lower"), bounds_of(body, "upper")
        if any(not low <= x <= high for low, x, high in zip(lower, body.joint.neutral(), upper)):
            lines.append(f'joint "{body.joint_name}": the neutral position is outside the limits')
    return lines


def _sequence(value: Any, what: str) -> Sequence[Any]:
    if isinstance(value, np.ndarray):
        return value.ravel().tolist()
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ArgumentError(
            f"{what} must be a number or a sequence of numbers, {type(value).__name__} was given"
        )
    return list(value)
