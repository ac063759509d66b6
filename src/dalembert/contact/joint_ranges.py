"""The ranges of joints in steps with contact: both ends of every coordinate that has a limit.

The rate of a coordinate is a multiple of one velocity variable, or a row K v: that of a joint that follows
several others (a coupling), and those of joints whose positions are along other axes than their velocities
(the lengths of a planar joint). An end lets the rate close the remaining gap in one step, and no more;
position correction removes an overlap beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dalembert.algorithms.dense import unit
from dalembert.contact.costs import JointLimit, RangeEnd
from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero, literal, maximum, minimum

LIMIT_GIVE = 0.02
"""The distance [rad or m] by which joints may be beyond their limits, so that overlaps can be corrected. With
0, 0.01 and 0.02 thrown humanoids sink in by 1.55, 0.63 and 0.39 mm, as far as without any bound."""

LIMIT_COMPLIANCE = 1e-2
"""The compliance of joint limits as a fraction of the inverse effective mass."""


def limit_terms(
    tree: Tree,
    q: Sequence[Scalar],
    dt: Scalar,
    inverse_mass: Sequence[Scalar],
    correction_ratio: float,
) -> list[JointLimit]:
    """Return both ends of the range of every coordinate that one velocity variable moves."""
    found = []
    for body in tree.bodies:
        rates = _rates(body)
        for sign, k, end in _ends(body):
            rate = rates[k]
            if rate is None:
                continue
            place, ratio = rate
            gap = (body.own_q(q)[k] - end) * (sign / abs(ratio))
            found.append(
                JointLimit(
                    place,
                    sign if ratio > 0.0 else -sign,
                    bound=-(maximum(gap, 0.0) * (1.0 / dt)),
                    overlap=maximum(-gap, 0.0) * correction_ratio,
                    stiffness=1.0 / (LIMIT_COMPLIANCE * inverse_mass[place]),
                    room=maximum(gap + LIMIT_GIVE, 0.0),
                )
            )
    return found


def range_terms(
    tree: Tree, q: Sequence[Scalar], dt: Scalar, inverse_mass: Sequence[Scalar], correction_ratio: float
) -> list[RangeEnd]:
    """Return both ends of the range of every coordinate that several velocity variables move.

    These are the coordinates of joints that follow several others, and of joints whose positions are along
    other axes than their velocities.
    """
    found = []
    for body in tree.bodies:
        rates = _rates(body)
        for sign, k, end in _ends(body):
            if rates[k] is not None:
                continue
            row = [sign * x for x in _row(tree, body, q, k)]
            places = [j for j, x in enumerate(row) if not is_zero(x)]
            if places:
                gap = (body.own_q(q)[k] - end) * sign
                found.append(
                    RangeEnd(
                        row,
                        bound=-(maximum(gap, 0.0) * (1.0 / dt)),
                        overlap=maximum(-gap, 0.0) * correction_ratio,
                        stiffness=1.0 / (LIMIT_COMPLIANCE * row_inverse_mass(row, places, inverse_mass)),
                    )
                )
    return found


def row_inverse_mass(row: Sequence[Scalar], places: Sequence[int], inverse_mass: Sequence[Scalar]) -> Scalar:
    """Return K diag(w) K^T of the rate K v, whose structural non-zeros are at `places`; within bounds."""
    first, *rest = places
    w = sum((row[j] * row[j] * inverse_mass[j] for j in rest), row[first] ** 2 * inverse_mass[first])
    return minimum(maximum(w, 1e-12), 1e12)


def _ends(body: Body) -> list[tuple[float, int, Scalar]]:
    """Return the finite ends of the ranges of a joint: sign (1 for lower ends), coordinate index, end."""
    found = []
    for sign, ends in ((1.0, body.limits.lower), (-1.0, body.limits.upper)):
        listed = [ends] * body.nq if isinstance(ends, (int, float)) else list(ends)
        for k, end in enumerate(listed):
            value = literal(end)
            if value is None or math.isfinite(value):
                found.append((sign, k, end))
    return found


def _row(tree: Tree, body: Body, q: Sequence[Scalar], k: int) -> list[Scalar]:
    """Return K of the rate K v of the k-th coordinate of a joint."""
    row: list[Scalar] = [0.0] * tree.nv
    if body.dependence is not None:
        for _, place, ratio in body.dependence.terms:
            row[place] = row[place] + ratio
        return row
    own = [body.joint.position_rate(body.own_q(q), unit(body.nv, j))[k] for j in range(body.nv)]
    row[body.v_slice] = own
    return row


def _rates(body: Body) -> list[tuple[int, float] | None]:
    """Return for each coordinate of a joint the velocity variable of which its rate is a constant multiple,
    or None: a planar joint's angle has such a variable, its lengths and quaternions do not."""
    if body.dependence is not None:
        return [single_rate(body)]
    here, there = ([start + 0.2 * k for k in range(body.nq)] for start in (0.3, -0.7))
    columns = [
        (body.joint.position_rate(here, unit(body.nv, j)), body.joint.position_rate(there, unit(body.nv, j)))
        for j in range(body.nv)
    ]
    found: list[tuple[int, float] | None] = []
    for k in range(body.nq):
        moving = [j for j, (a, b) in enumerate(columns) if not (is_zero(a[k]) and is_zero(b[k]))]
        ratios = {literal(rates[k]) for rates in columns[moving[0]]} if len(moving) == 1 else {None}
        ratio = ratios.pop() if len(ratios) == 1 else None
        found.append(None if ratio is None else (body.v_slice.start + moving[0], ratio))
    return found


def single_rate(body: Body) -> tuple[int, float] | None:
    """Return the velocity variable that a joint follows, if there is exactly one, and the ratio."""
    terms = [] if body.dependence is None else [term for term in body.dependence.terms if term[2] != 0.0]
    return (terms[0][1], terms[0][2]) if len(terms) == 1 else None
