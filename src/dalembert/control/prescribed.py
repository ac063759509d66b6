"""Prescribed joints follow functions of time, arrays or belts in a rollout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy.typing as npt

from dalembert.model.model import Model
from dalembert.scalar import Scalar

MotionFunction: TypeAlias = Callable[[Model, Scalar], Scalar | Sequence[Scalar]]
"""Positions or velocities of a joint as a function of (model, t), on generic scalars."""


@final
@dataclass(frozen=True, eq=False)
class Belt:
    """A prescribed joint whose velocity is given while its position stays: a conveyor belt, a treadmill.

    What touches the joint's body is carried along by friction, and the body is where it was: a prismatic
    joint along a box makes a straight belt of it, a revolute joint through a cylinder a roller.
    `velocity` [m/s, rad/s]: one number, `(nv,)` of the joint, `(…, steps, nv)` at the end of each step,
    `(…, 1, nv)` different from sample to sample, or a function of (model, t).

    >>> builder = da.ModelBuilder()
    >>> strip = da.shapes.Box((2.0, 0.5, 0.1), friction=(0.5, 0.0, 0.0))
    >>> builder.add_body("belt", joint=da.Prismatic((1, 0, 0)), joint_name="drive", shapes=[strip],
    ...                  inertia=strip.inertia(mass=5.0))
    >>> cube = da.shapes.Box((0.1, 0.1, 0.1))
    >>> builder.add_body("cube", joint=da.Free(), inertia=cube.inertia(mass=1.0), shapes=[cube])
    >>> model = builder.build()
    >>> q = model.neutral()
    >>> q[3] = 0.1  # on the belt
    >>> moved = da.rollout(model, q, np.zeros(model.nv), steps=500, contact="rigid",
    ...                    prescribed={"drive": da.control.Belt(0.5)})
    >>> print(moved.v[-1, 4].round(3), moved.q[-1, 0])  # the cube goes with the belt, which stays
    0.5 0.0
    """

    velocity: npt.ArrayLike | MotionFunction
