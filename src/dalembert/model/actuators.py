"""Actuators of a model: forces that a control signal, positions and velocities make on joints.

An actuator has the length l = sum of k_j q_j over its joints, k_j being gear ratios, and the force

    f = gain * u + b_0 + b_1 l + b_2 dl/dt,       u within `control`, f within `force`,                (1)

which acts on joint j as k_j f. A motor has b = 0, a position servo of stiffness kp and damping kv has
gain = kp and b = (0, -kp, -kv), a velocity servo has gain = kv and b = (0, 0, -kv). These are MuJoCo's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dalembert.errors import ModelError, items_of
from dalembert.model import checks

if TYPE_CHECKING:
    from dalembert.model.joints import Joint
    from dalembert.model.model import Model

Array = npt.NDArray[np.float64]
Range = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Actuator:
    """One actuator by Eq. (1): its joints with their gear ratios, gain and bias, and its ranges.

    `control`: the range to which the control signal is clipped, `force` [N m or N] that of the force; None:
    no limit.
    """

    name: str
    joints: tuple[tuple[str, float], ...]
    gain: float = 1.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    control: Range = None
    force: Range = None


def checked_actuator(
    name: str, joints: Mapping[str, float], gain: Any, bias: Any, control: Any, force: Any
) -> Actuator:
    """Return an actuator of finite numbers and ranges that are not empty."""
    what = f'actuator "{checks.valid_name(name, "the name of an actuator")}"'
    if not isinstance(joints, Mapping) or not joints:
        raise ModelError(f"{what} drives no joint; give joints with their gear ratios, as in {{'knee': 1.0}}")
    offsets = items_of(bias)
    if len(offsets) != 3:
        raise ModelError(f"{what}: bias has {len(offsets)} numbers; give three, (b0, b1, b2)")
    for number in (*joints.values(), gain, *offsets):
        if not checks.is_finite(number):
            raise ModelError(f"{what} holds {number!r}; gear ratios, gain and bias are finite numbers")
    terms = tuple((joint, float(ratio)) for joint, ratio in joints.items())
    b = (float(offsets[0]), float(offsets[1]), float(offsets[2]))
    return Actuator(name, terms, float(gain), b, _range(control, what), _range(force, what))


def _range(given: Any, what: str) -> Range:
    if given is None:
        return None
    ends = items_of(given)
    if len(ends) != 2 or not all(checks.is_finite(x) for x in ends) or ends[0] > ends[1]:
        raise ModelError(f"{what}: {given!r} is no range; give two finite numbers, the lower one first")
    return float(ends[0]), float(ends[1])


def require_fitting(actuator: Actuator, joints: Mapping[str, Joint]) -> None:
    """Refuse an actuator of unknown joints, or of joints of several degrees of freedom."""
    what = f'actuator "{actuator.name}"'
    for name, _ in actuator.joints:
        joint = checks.require_known(joints, name, what, "joint")
        if (joint.nq, joint.nv) != (1, 1):
            raise ModelError(
                f'{what}: joint "{name}" has {joint.nv} degrees of freedom; actuators drive joints of one'
            )


def transmission(model: Model) -> tuple[Array, Array]:
    """Return K `(nu, nv)` and l_0 `(nu,)`, with lengths l = K y + l_0 for the positions y of joints of one
    degree of freedom, and joint forces tau = K^T f; dependent joints are those that they follow.
    """
    K, offset = np.zeros((len(model.actuators), model.nv)), np.zeros(len(model.actuators))
    for i, actuator in enumerate(model.actuators):
        for name, ratio in actuator.joints:
            body = model.joints[name].body
            if body.dependence is None:
                K[i, body.v_slice.start] += ratio
                continue
            offset[i] += ratio * body.dependence.offset
            for _, place, k in body.dependence.terms:
                K[i, place] += ratio * k
    return K, offset


def positions_by_velocity(model: Model, q: Sequence[Any]) -> list[Any]:
    """Return for each velocity variable the position of its joint, zero for joints of several coordinates."""
    found: list[Any] = [0.0] * model.nv
    for body in model.bodies:
        if body.dependence is None and (body.nq, body.nv) == (1, 1):
            found[body.v_slice.start] = q[body.q_slice.start]
    return found
