"""Actuators of a model: forces that a control signal, positions and velocities make on joints.

An actuator has the length l = sum of k_j q_j over its joints, k_j being gear ratios, and the force

    f = gain * u + b_0 + b_1 l + b_2 dl/dt,       u within `control`, f within `force`,                (1)

which acts on joint j as k_j f. Where it drives a tendon, the path of a spring, q_j is that one's length. A
motor has b = 0, a position servo of stiffness kp and damping kv has gain = kp and b = (0, -kp, -kv), a
velocity servo has gain = kv and b = (0, 0, -kv). These are MuJoCo's.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from dalembert.errors import ModelError, items_of
from dalembert.model import checks
from dalembert.model.coupling import require_single_freedoms
from dalembert.model.joints import Joint

Range = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Actuator:
    """One actuator by Eq. (1): its joints or springs with their gear ratios, gain and bias, and its ranges.

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
        raise ModelError(
            f"{what} drives no joint; give joints or springs with their gear ratios, as in {{'knee': 1.0}}"
        )
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


def require_fitting(actuator: Actuator, joints: Mapping[str, Joint], springs: Container[str]) -> None:
    """Refuse an actuator of unknown joints, or of joints of several degrees of freedom."""
    driven = [name for name, _ in actuator.joints if name not in springs]
    require_single_freedoms(driven, joints, f'actuator "{actuator.name}"')
