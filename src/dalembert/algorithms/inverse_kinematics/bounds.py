"""The limits of a model's joints as bounds of single coordinates, in q and in v."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.tree import Tree

__all__ = ["Bound", "position_bounds"]


class Bound(NamedTuple):
    """lower <= q[position] <= upper, a coordinate whose rate is v[velocity]."""

    position: int
    velocity: int
    lower: float
    upper: float


def position_bounds(tree: Tree) -> list[Bound]:
    """Return the bounds of coordinates with finite limits;
    a joint that follows a single other one bounds that one.

    Limits of coordinates whose rate is not a velocity variable (quaternions, positions of free bodies), and
    of joints that follow several others, are not bounds of this kind and are rejected.
    """
    bounds: dict[int, Bound] = {}
    for body in tree.bodies:
        if body.dependence is None:
            for bound in _own_bounds(body):
                bounds[bound.position] = bound
    for body in tree.bodies:
        limits = [*_ends(body.limits.lower, 1), *_ends(body.limits.upper, 1)]
        if body.dependence is not None and any(math.isfinite(x) for x in limits):
            found = _followed_bound(body, limits)
            old = bounds.get(found.position, found)
            lower, upper = max(old.lower, found.lower), min(old.upper, found.upper)
            if lower > upper:
                raise ModelError(
                    f'joint "{body.joint_name}" and the joint that it follows have no position within the '
                    "limits of both; change the limits or solve with limits=False"
                )
            bounds[found.position] = found._replace(lower=lower, upper=upper)
    return [bounds[position] for position in sorted(bounds)]


def _own_bounds(body: Body) -> list[Bound]:
    lower, upper = _ends(body.limits.lower, body.nq), _ends(body.limits.upper, body.nq)
    limited = [i for i in range(body.nq) if math.isfinite(lower[i]) or math.isfinite(upper[i])]
    if not limited:
        return []
    rates = _own_rates(body)
    for i in limited:
        if rates[i] is None:
            raise ModelError(
                f'joint "{body.joint_name}" has a limit on its coordinate {i}, whose rate is no velocity '
                "variable, so that it cannot be kept; take the limit away or solve with limits=False"
            )
    q, v = body.q_slice.start, body.v_slice.start
    return [Bound(q + i, v + j, lower[i], upper[i]) for i in limited if (j := rates[i]) is not None]


def _own_rates(body: Body) -> list[int | None]:
    """Return for each position variable the velocity variable that is its rate, if there is one."""
    rng = np.random.default_rng(1)
    joint = body.joint
    infinite = [math.inf] * body.nq
    q = joint.random(rng, [-x for x in infinite], infinite)
    v = rng.uniform(1.0, 2.0, body.nv).tolist()
    rates = joint.position_rate(q, v)
    return [v.index(rate) if rate in v else None for rate in rates]


def _followed_bound(body: Body, limits: Sequence[float]) -> Bound:
    """Return the limits of a dependent joint as limits of the coordinate that it follows."""
    dependence = body.dependence
    assert dependence is not None
    if len(dependence.terms) != 1 or dependence.terms[0][2] == 0.0:
        raise ModelError(
            f'joint "{body.joint_name}" has limits and follows several others, so that these limits are no '
            "bounds of single coordinates; take them away or solve with limits=False"
        )
    position, velocity, ratio = dependence.terms[0]
    ends = sorted((end - dependence.offset) / ratio for end in limits)
    return Bound(position, velocity, ends[0], ends[1])


def _ends(value: Sequence[float] | float, n: int) -> list[float]:
    return [float(value)] * n if isinstance(value, int | float) else [float(x) for x in value]
