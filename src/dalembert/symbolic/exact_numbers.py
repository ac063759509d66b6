"""Exact numbers for the floats of a model, so that formulas hold 1/12 and pi/2 and cancel exactly."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

from dalembert.model.body import Body, Dependence, Loop
from dalembert.model.model import Model
from dalembert.model.values import rebuilt
from dalembert.spatial import AxialScrew, Mat3, RigidInertia, ScrewChain, SymMat3, Transform, Vec3
from dalembert.spatial.rotations import principal_direction
from dalembert.spatial.transform import Placement
from dalembert.symbolic.requirement import sympy

__all__ = [
    "exact_loop",
    "exact_model",
    "exact_number",
    "exact_placement",
    "is_recognized",
    "with_decimals",
    "without_floats",
]

MAX_DENOMINATOR = 1000
"""Largest denominator of a fraction that replaces a float."""

RELATIVE_TOLERANCE = 1e-14
"""Relative distance of a float from the number that replaces it: the rounding of a few operations."""

MAX_DECIMAL_DIGITS = 12
"""Digits up to which the decimal form of a float counts as exact."""

MAX_SHOWN_DENOMINATOR = 10**6
"""Fractions with larger denominators are shown as decimal numbers."""

ROUNDED_DIGITS = 10
"""The same for floats that are such a number but for rounding."""


def exact_number(x: Any) -> Any:
    """Return the exact number for a float: a fraction, a short decimal, a multiple of pi, a square root.

    Any other float becomes its printed decimal number. Other values are returned unchanged.
    """
    sp = sympy()
    if not isinstance(x, (int, float)):
        return x
    known = _recognize(float(x))
    return sp.Rational(repr(float(x))) if known is None else known


def is_recognized(x: Any) -> bool:
    """Return whether `exact_number` is exact for this number, and not just the nearest decimal."""
    return not isinstance(x, (int, float)) or _recognize(float(x)) is not None


def _recognize(x: float) -> Any | None:
    sp = sympy()
    if x == 0.0 or not math.isfinite(x):
        return sp.Integer(0) if x == 0.0 else sp.oo * int(math.copysign(1, x))
    fraction = _fraction(x, MAX_DENOMINATOR)
    if fraction is not None:
        return fraction
    if len(repr(abs(x)).replace(".", "").replace("e", "").strip("0")) <= MAX_DECIMAL_DIGITS:
        return sp.Rational(repr(x))
    short = f"{x:.{ROUNDED_DIGITS}g}"
    if abs(float(short) - x) <= RELATIVE_TOLERANCE * abs(x):
        return sp.Rational(short)
    of_pi = _fraction(x / math.pi, 360)
    if of_pi is not None:
        return of_pi * sp.pi
    square = _fraction(x * x, 100)
    return None if square is None else int(math.copysign(1, x)) * sp.sqrt(square)


def _fraction(x: float, denominator: int) -> Any | None:
    near = Fraction(x).limit_denominator(denominator)
    if abs(float(near) - x) <= RELATIVE_TOLERANCE * abs(x):
        return sympy().Rational(near.numerator, near.denominator)
    return None


def without_floats(expression: Any) -> Any:
    """Return an expression with its literals 0.5, 1.0, 2.0 … as exact numbers."""
    sp = sympy()
    whole = sp.sympify(expression)
    return whole.xreplace({x: exact_number(float(x)) for x in whole.atoms(sp.Float)})


def exact_model(model: Model) -> tuple[Model, bool]:
    """Return the model with exact numbers throughout, and whether its directions are exact too.

    A placement turned by phi about the axis of its joint holds cos(phi) and sin(phi), which merge with the
    joint's angle; other rotations and axes may be exact only to rounding. Axes along coordinate axes stay
    floats, since the joints look for them.
    """
    directions: list[Any] = []
    bodies = [_exact_body(body, directions) for body in model.bodies]
    loops = [exact_loop(loop, directions) for loop in model.loops]
    gravity = Vec3(*(exact_number(x) for x in model.gravity))
    changed = rebuilt(model, bodies=bodies, gravity=gravity, loops=loops)
    return changed, all(is_recognized(x) for x in directions)


def _exact_body(body: Body, directions: list[Any]) -> Body:
    dependence = body.dependence
    if dependence is not None:
        terms = tuple((place, rate, exact_number(ratio)) for place, rate, ratio in dependence.terms)
        dependence = Dependence(terms, exact_number(dependence.offset))
    return dataclasses.replace(
        body,
        placement=exact_placement(body.placement, directions, body.joint),
        inertia=_exact_inertia(body.inertia),
        joint=_exact_joint(body.joint, directions),
        armature=tuple(exact_number(x) for x in body.armature),
        dependence=dependence,
    )


def exact_loop(loop: Loop, directions: list[Any]) -> Loop:
    """Return a loop joint with exact numbers."""
    return dataclasses.replace(
        loop,
        joint=_exact_joint(loop.joint, directions),
        placement_predecessor=exact_placement(loop.placement_predecessor, directions, loop.joint),
        placement_successor=exact_placement(loop.placement_successor, directions, loop.joint),
    )


def _exact_joint(joint: Any, directions: list[Any]) -> Any:
    """Return the joint with exact parameters; literal zeros and ones stay, which keeps coordinate axes."""
    parameters = joint.parameters()
    if all(x in (0.0, 1.0, -1.0) for x in parameters):
        return joint
    if "axis" in joint.parameter_names:
        directions.extend(joint.axis)
    return joint.with_parameters([x if x in (0.0, 1.0, -1.0) else exact_number(x) for x in parameters])


def exact_placement(placement: Placement, directions: list[Any], joint: Any) -> Placement:
    """Return a placement of exact numbers; the entries of a general rotation are added to `directions`."""
    if isinstance(placement, AxialScrew):
        c, s = _tidy((placement.c, placement.s), 1.0)
        if _axis_of(joint) == placement.axis:
            c, s = _exact_turn(c, s)
        else:
            directions.extend((c, s))
            c, s = exact_number(c), exact_number(s)
        return AxialScrew(placement.axis, c, s, exact_number(placement.d))
    if isinstance(placement, ScrewChain):
        return ScrewChain(tuple(exact_placement(factor, directions, joint) for factor in placement.factors))
    X = placement.as_transform()
    return Transform(_exact_rotation(X.R, directions, _axis_of(joint)), Vec3(*(exact_number(x) for x in X.p)))


def _axis_of(joint: Any) -> int | None:
    """Return the coordinate axis about which a joint turns, with which a turn of its placement merges."""
    axis = getattr(joint, "axis", None)
    principal = principal_direction(axis) if isinstance(axis, Vec3) else None
    return None if principal is None else principal[0]


def _exact_turn(c: Any, s: Any) -> tuple[Any, Any]:
    """Return (cos, sin) of an angle, which stay on the unit circle."""
    sp = sympy()
    if not (isinstance(c, (int, float)) and isinstance(s, (int, float))):
        return c, s
    if is_recognized(c) and is_recognized(s):
        return exact_number(c), exact_number(s)
    angle = exact_number(math.atan2(s, c))
    return sp.cos(angle), sp.sin(angle)


def _exact_rotation(R: Mat3, directions: list[Any], k: int | None) -> Mat3:
    """Return exact entries; for a turn about axis k, if a joint turns about it too."""
    zero, one = sympy().Integer(0), sympy().Integer(1)
    rows = [_tidy(row, 1.0) for row in R.to_list()]
    if k is not None and all(isinstance(x, (int, float)) for row in rows for x in row):
        i, j = (k + 1) % 3, (k + 2) % 3
        if abs(rows[k][k] - 1.0) <= RELATIVE_TOLERANCE and not any(
            (rows[k][i], rows[k][j], rows[i][k], rows[j][k])
        ):
            c, s = _exact_turn(rows[i][i], rows[j][i])
            turned = [[zero] * 3 for _ in range(3)]
            turned[k][k], turned[i][i], turned[j][j], turned[i][j], turned[j][i] = one, c, c, -s, s
            return Mat3(*(x for row in turned for x in row))
    directions.extend(x for row in rows for x in row)
    return Mat3(*(exact_number(x) for row in rows for x in row))


def _tidy(numbers: Any, size: float) -> list[Any]:
    """Return numbers with rounding errors of zeros removed."""
    return [0.0 if isinstance(x, float) and abs(x) <= RELATIVE_TOLERANCE * size else x for x in numbers]


def _exact_inertia(inertia: RigidInertia) -> RigidInertia:
    """Return mass, centre of mass and the moments about it, without rounding errors."""
    mass = inertia.mass
    if not isinstance(mass, (int, float)) or mass == 0.0:
        zero = not any(isinstance(x, (int, float)) and x for x in inertia.leaves())
        return RigidInertia.zero() if zero and mass == 0.0 else inertia
    about_com = inertia.inertia_at_com
    size = float(mass) * sum(float(x) ** 2 for x in inertia.com) + max(abs(x) for x in about_com.leaves())
    moments = SymMat3(*(exact_number(x) for x in _tidy(about_com.leaves(), size)))
    return RigidInertia(exact_number(mass), [exact_number(x) for x in inertia.com], moments)


def with_decimals(expression: Any) -> Any:
    """Return an expression whose long fractions are decimal numbers again."""
    sp = sympy()
    long = [x for x in expression.atoms(sp.Rational) if x.q > MAX_SHOWN_DENOMINATOR]
    return expression.xreplace({x: sp.Float(x, 16) for x in long}) if long else expression
