"""Control signals of a model's actuators in rollouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy.typing as npt

from dalembert.model.model import Model
from dalembert.scalar import Scalar

Signal: TypeAlias = Callable[[Model, Scalar, Sequence[Scalar], Sequence[Scalar]], Sequence[Scalar]]
"""Control signals `(nu,)` of (model, t, q, v), on generic scalars."""


@final
@dataclass(frozen=True, eq=False)
class Actuators:
    """Control signals of `model.actuators`, for the `controls` of `da.rollout`:

        f = gain u + b0 + b1 l' + b2 dl'/dt,     tau = J^T f,     J = dl/dq

    with the length l', gear ratios times positions of joints or lengths of tendons, and its rate at the end
    of the step where b1 and b2 resist motion (servos) and the actuator drives one joint, so that stiff servos
    are stable; elsewhere at its start. u and f are clipped to the ranges of
    the actuator, and joint forces to the joint's effort.

    `ctrl`: u `(nu,)` is held throughout, `(…, steps, nu)` has one for each step, `(…, 1, nu)` is held but
    different from sample to sample; or a function of (model, t, q, v) on generic scalars; None: zero. An MJCF
    file brings its actuators; `ModelBuilder.add_actuator` adds one.

    >>> builder = da.ModelBuilder()
    >>> rod = da.RigidInertia(1.0, (0.5, 0.0, 0.0), (0.0, 1 / 12, 1 / 12))
    >>> builder.add_body("rod", "world", da.Revolute((0, 1, 0)), "hinge", inertia=rod)
    >>> builder.add_actuator("servo", {"hinge": 1.0}, gain=1e5, bias=(0.0, -1e5, -1e3))
    >>> model = builder.build()
    >>> moved = da.rollout(model, [0.0], [0.0], da.control.Actuators([0.3]), steps=300, dt=0.01)
    >>> print(f"{moved.q[-1, 0]:.3f}")
    0.300
    """

    ctrl: npt.ArrayLike | Signal | None = None
