"""Controls of a model's actuators: `Actuators` for rollouts, and the joint forces that they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import Array, as_array
from dalembert.errors import ModelError
from dalembert.model.actuators import transmission
from dalembert.model.model import Model, require_model
from dalembert.scalar import Scalar

Signal: TypeAlias = Callable[[Model, Scalar, Sequence[Scalar], Sequence[Scalar]], Sequence[Scalar]]
"""Control signals `(nu,)` of (model, t, q, v), on generic scalars."""


@final
@dataclass(frozen=True, eq=False)
class Actuators:
    """Control signals of `model.actuators`, for the `controls` of `da.rollout`:

        f = gain u + b0 + b1 l' + b2 dl'/dt,     l = K q,     tau = K^T f

    with l' and its rate at the end of the step where b1 and b2 resist motion (servos) and the actuator drives
    one joint, so that stiff servos are stable; elsewhere at its start. u and f are clipped to the ranges of
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


def actuator_forces(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, ctrl: npt.ArrayLike) -> Array:
    """Return the joint forces tau `(…, nv)` [N m or N] of the actuators at a state, for signals `(…, nu)`.

    tau = K^T f, f = clip(gain u + b0 + b1 l + b2 dl/dt), l = K q. These are MuJoCo's `qfrc_actuator`, before
    it limits the force on a joint (`actuatorfrcrange`).

    >>> builder = da.ModelBuilder()
    >>> builder.add_body("rod", inertia=da.RigidInertia(1.0, (0.5, 0.0, 0.0), (0.0, 1 / 12, 1 / 12)),
    ...                  joint=da.Revolute((0, 1, 0)), joint_name="hinge")
    >>> builder.add_actuator("motor", {"hinge": 50.0}, control=(-1.0, 1.0))
    >>> print(da.control.actuator_forces(builder.build(), [0.0], [0.0], [[0.5], [2.0]]))
    [[25.]
     [50.]]
    """
    K, offset = transmission(require_actuators(model))
    y = np.zeros((model.nv, model.nq))
    for body in model.bodies:
        if body.dependence is None and (body.nq, body.nv) == (1, 1):
            y[body.v_slice.start, body.q_slice.start] = 1.0
    length = as_array("q", q, (model.nq,)) @ (K @ y).T + offset
    rate = as_array("v", v, (model.nv,)) @ K.T
    low, high = _ends(model, "control")
    u = np.clip(as_array("ctrl", ctrl, (len(model.actuators),)), low, high)
    gain = np.array([item.gain for item in model.actuators])
    b0, b1, b2 = np.array([item.bias for item in model.actuators]).T
    forces = np.clip(gain * u + b0 + b1 * length + b2 * rate, *_ends(model, "force"))
    return np.asarray(forces @ K)


def require_actuators(model: Model) -> Model:
    """Refuse a model without actuators."""
    if not require_model(model).actuators:
        raise ModelError(
            f'model "{model.name}" has no actuators; give joint forces or a Servo, or add actuators with '
            "ModelBuilder.add_actuator"
        )
    return model


def _ends(model: Model, kind: str) -> tuple[Array, Array]:
    """Return the lower and upper ends of the ranges of all actuators."""
    ranges = [getattr(item, kind) or (-np.inf, np.inf) for item in model.actuators]
    low, high = np.array(ranges, dtype=np.float64).T
    return low, high
