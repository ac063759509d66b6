"""Constraint stabilisation against drift: the right side of K a = k with feedback of errors.

An ODE solver integrates K a = k twice, and its errors add up. Baumgarte's term lets them fade (Featherstone
2008 section 8.3):

    K a = k - 2/T e_v - 1/T^2 e_p,     e_v = K v, e_p = phi or delta                         (Eq. 8.22)

A semi-implicit step, v' = v + dt a and then q' = q + dt v', can take errors of velocity away at once, and
those of position in a few steps:

    K a = k - (e_v + e_p / T) / dt                                                           (1)
    =>  e_v(q', v') = -e_p / T,     e_p(q') = (1 - dt/T) e_p + dt^2/2 k                      to order dt^2

so that e_p stays at dt T k / 2. From a state that keeps the constraints (1) is K a = k.
"""

from __future__ import annotations

from typing import NamedTuple

from dalembert.scalar import Scalar

__all__ = ["Leap", "Stabilization", "stabilized_row"]


class Leap(NamedTuple):
    """A semi-implicit step of dt [s], in which errors of position fade in T [s], at least dt; see (1)."""

    dt: Scalar
    T: Scalar


Stabilization = Scalar | Leap | None
"""T_stab [s] of Eq. 8.22; a step as in (1); or None: K a = k."""


def stabilized_row(k: Scalar, e_v: Scalar, e_p: Scalar, stabilization: Stabilization) -> Scalar:
    """Return the right side of one row of K a = …, from its k and its errors of velocity and position."""
    if stabilization is None:
        return k
    if isinstance(stabilization, Leap):
        return k - (e_v + e_p / stabilization.T) / stabilization.dt  # (1)
    rate = 1.0 / stabilization
    return k - 2.0 * rate * e_v - rate * rate * e_p
