"""Preconditions of the declared functions, sample by sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from dalembert.algorithms.declaration import Precondition, later
from dalembert.model import configuration
from dalembert.scalar import Scalar, logical_and, maximum, select

KEEPS_CONSTRAINTS: Final = Precondition(
    later("algorithms.loops:constraint_violation"),
    {"float64": 1e-6, "float32": 1e-3},
    "a breaks the constraints, K a - k is {measure:.3g} of its terms; da.forward_dynamics gives "
    "accelerations that keep them, constraint_jacobian and constraint_bias of da.constraints are K and k",
)

WITHIN_REACH: Final = Precondition(
    later("algorithms.loops:unreachable_share"),
    {"float64": 1e-6, "float32": 1e-3},
    "the actuated joints cannot produce this motion, {measure:.3g} of the forces that it needs is out of "
    "their reach; see da.analysis.actuation(model, q) and builder.set_actuated",
)

CAN_BE_PRESCRIBED: Final = Precondition(
    later("algorithms.hybrid:prescribed_violation"),
    {"float64": 1e-4, "float32": 1e-2},
    "the prescribed accelerations break the constraints, K a - k is {measure:.3g} of its terms; prescribe as "
    "many joints as the system has freedoms (da.analysis.mobility), or accelerations that keep the "
    "constraints",
)

_MOVES_INERTIA: Final = Precondition(
    later("algorithms.moving_inertia:inertia_loss"),
    {"float64": 1e13, "float32": 1e6},  # the digits of the float type: the rest of the pivot is rounding
    'in this configuration joint "{place}" has a freedom along which nothing with inertia moves: the mass '
    "matrix is singular; give what the joint carries moments of inertia, or the joint an armature",
    later("algorithms.moving_inertia:lost_joint"),
)

_REGULAR_COORDINATES: Final = Precondition(
    later("algorithms.moving_inertia:coordinate_singularity"),
    {"float64": -3e-7, "float32": -1e-3},  # the square of it is left of a pivot of M, as above
    'in this configuration the coordinates of joint "{place}" are singular (gimbal lock), so that some '
    "motions of it have no velocity v; use da.Spherical, whose coordinates are a quaternion, or give the "
    "joint an armature",
    later("algorithms.moving_inertia:singular_joint"),
)

HAS_INVERSE: Final = (_MOVES_INERTIA, _REGULAR_COORDINATES)
"""Preconditions of functions that divide by the mass matrix."""


def _cannot_be_normalized(model: Any, q: Sequence[Scalar]) -> Scalar:
    """Return one where the square of a quaternion's norm is zero, infinite or NaN, else zero."""
    bad: Scalar = 0.0
    for place in configuration.unit_quaternions(model):
        square = sum((x * x for x in q[place]), 0.0)
        bad = maximum(bad, select(logical_and(square > 0.0, square < math.inf), 0.0, 1.0))
    return bad


def _quaternion_without_direction(model: Any, q: Sequence[float]) -> str:
    """Return the place in q of the first quaternion that has no direction."""
    for place in configuration.unit_quaternions(model):
        if not 0.0 < sum(x * x for x in q[place]) < math.inf:
            return f"q[{place.start}:{place.stop}] = ({', '.join(f'{x:.3g}' for x in q[place])})"
    return "q"


CAN_BE_NORMALIZED: Final = Precondition(
    _cannot_be_normalized,
    {"float64": 0.5, "float32": 0.5},
    "the quaternion {place} has no direction, so that it cannot be scaled to unit norm; no rotation is "
    "(1, 0, 0, 0)",
    _quaternion_without_direction,
)
