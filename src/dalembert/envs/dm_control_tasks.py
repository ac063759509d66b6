"""The cart and pole of dm_control's suite, from the model file that dm_control installs.

Tassa et al., "DeepMind Control Suite", 2018. The reward is a product of numbers from 0 to 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from dalembert.call.arguments import Array
from dalembert.envs.task import Moment, Random, Task, Terms, installed_model
from dalembert.model.model import Model
from dalembert.scalar import Scalar, cos, exp, maximum, sin

TOLERANCE_AT_MARGIN = 0.1
"""The value of dm_control's tolerances where a number is a margin away from what is wanted."""


def _tolerance(x: Scalar, margin: float) -> Scalar:
    """Return 1 where x is zero, and less away from it: a Gaussian."""
    return exp(math.log(TOLERANCE_AT_MARGIN) * x * x / (margin * margin))


@final
@dataclass(frozen=True)
class CartpoleStart:
    """The pole hangs, or stands, nearly at rest."""

    swing_up: bool

    def __call__(self, model: Model, q: Array, random: Random) -> tuple[Array, Array]:
        """Return the states in which episodes begin."""
        if self.swing_up:
            found = 0.01 * random.normal(2)
            found[:, 1] += math.pi
        else:
            found = random.uniform(-1.0, 1.0, 2) * [0.1, 0.034]
        return found, 0.01 * random.normal(2)


def _cartpole_reward(now: Moment) -> Terms:
    effort, cart, angle = now.action[0], now.q[0], now.q[1]
    upright = 0.5 * (cos(angle) + 1.0)
    centered = 0.5 * (1.0 + _tolerance(cart, 2.0))
    control = 0.2 * (4.0 + maximum(1.0 - effort * effort, 0.0))
    velocity = 0.5 * (1.0 + _tolerance(now.v[1], 5.0))
    return {"upright": upright * control * velocity * centered}


def _cartpole(name: str, *, swing_up: bool) -> Task:
    return Task(
        name,
        installed_model("dm_control", "suite/cartpole.xml"),
        observation=lambda now: [now.q[0], cos(now.q[1]), sin(now.q[1]), *now.v],
        reward=_cartpole_reward,
        time_step=0.01,
        frame_skip=1,
        start=CartpoleStart(swing_up),
    )


TASKS = {
    "CartpoleBalance": _cartpole("CartpoleBalance", swing_up=False),
    "CartpoleSwingup": _cartpole("CartpoleSwingup", swing_up=True),
}
"""The tasks by name."""
