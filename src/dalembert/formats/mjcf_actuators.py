"""Actuators and keyframes of a compiled MuJoCo model, as data beside the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dalembert.formats.mjcf_compiled import Compiled
from dalembert.formats.mjcf_constraints import fixed_tendon
from dalembert.model import Model
from dalembert.model.conventions import convert_state

__all__ = ["Actuator", "Keyframe", "actuators_of", "keyframes_of", "reflect_rotors", "start_of"]

Array = npt.NDArray[np.floating[Any]]

TRANSMISSIONS: Final = {
    0: ("joint", "JOINT"),
    1: ("joint, in parent axes,", "JOINT"),
    2: ("slider-crank", "SITE"),
    3: ("tendon", "TENDON"),
    4: ("site", "SITE"),
    5: ("body", "BODY"),
}


@final
@dataclass(frozen=True)
class Actuator:
    """One actuator of the file: the joints it drives with their gear ratios, and MuJoCo's parameters.

    The force is gain * control + bias, `gain` and `bias` being MuJoCo's numbers for it; `control` is the
    range of the control signal or None. `joints` is empty where the transmission is neither a joint nor a
    fixed tendon.
    """

    name: str
    transmission: str
    joints: tuple[tuple[str, float], ...]
    gain: tuple[float, ...]
    bias: tuple[float, ...]
    control: tuple[float, float] | None


@final
@dataclass(frozen=True, eq=False)
class Keyframe:
    """A state of the file, q `(nq,)` and v `(nv,)`, in the model's own convention."""

    name: str
    time: float
    q: Array
    v: Array


def reflect_rotors(compiled: Compiled) -> None:
    """Add the armature and damping of actuators, by gear ratio squared, to the joints they turn."""
    m = compiled.m
    for i in range(m.nactuator):
        name = compiled.name("ACTUATOR", i)
        armature, damping = float(m.actuator_armature[i]), float(m.actuator_damping[i])
        if any(m.actuator_dampingpoly[i]):
            raise compiled.error(
                ("general", "motor", "position", "velocity"), name, f'actuator "{name}" has nonlinear damping'
            )
        if not armature and not damping:
            continue
        joint = int(m.actuator_trnid[i][0])
        if int(m.actuator_trntype[i]) not in (0, 1) or int(m.jnt_type[joint]) < 2:
            raise compiled.error(
                ("general", "motor", "position", "velocity"),
                name,
                f'actuator "{name}" has armature or damping of its own and drives no hinge or slide; '
                "give these numbers to the joints",
            )
        gear = float(m.actuator_gear[i][0])
        dof = m.jnt_dofadr[joint]
        m.dof_armature[dof] += gear * gear * armature
        m.dof_damping[dof] += gear * gear * damping


def actuators_of(compiled: Compiled) -> tuple[Actuator, ...]:
    """Return every actuator; muscles, which pull by themselves, are refused."""
    m = compiled.m
    found = []
    for i in range(m.nactuator):
        name = compiled.name("ACTUATOR", i)
        if int(compiled.mujoco.mjtGain.mjGAIN_MUSCLE) == int(m.actuator_gaintype[i]) or int(
            compiled.mujoco.mjtBias.mjBIAS_MUSCLE
        ) == int(m.actuator_biastype[i]):
            raise compiled.error(
                ("muscle", "general"), name, f'actuator "{name}" is a muscle, which is not supported'
            )
        kind = int(m.actuator_trntype[i])
        label, obj = TRANSMISSIONS.get(kind, ("unknown", "BODY"))
        target = int(m.actuator_trnid[i][0])
        low, high = (float(x) for x in m.actuator_ctrlrange[i])
        found.append(
            Actuator(
                name,
                f'{label} "{compiled.name(obj, target)}"',
                _driven(compiled, kind, target, float(m.actuator_gear[i][0])),
                tuple(float(x) for x in m.actuator_gainprm[i]),
                tuple(float(x) for x in m.actuator_biasprm[i]),
                (low, high) if m.actuator_ctrllimited[i] else None,
            )
        )
        act = found[-1]
        control = f", control {low:g} to {high:g}" if act.control else ""
        compiled.report.note(
            f'ignored: actuator "{name}" on {act.transmission}, gear {m.actuator_gear[i][0]:g}{control}'
        )
    return tuple(found)


def _driven(compiled: Compiled, kind: int, target: int, gear: float) -> tuple[tuple[str, float], ...]:
    if kind in (0, 1):
        return ((compiled.joints[target], gear),)
    if kind == 3:
        terms = fixed_tendon(compiled, target)
        return tuple((joint, gear * k) for joint, k in (terms or {}).items())
    return ()


def keyframes_of(compiled: Compiled, model: Model) -> tuple[Keyframe, ...]:
    """Return the keyframes as states of the model; joints that the file has not are neutral."""
    m = compiled.m
    found = []
    for k in range(m.nkey):
        name = compiled.name("KEY", k)
        compiled.report.note(f'ignored: keyframe "{name}"')
        q, v = _state(compiled, model, m.key_qpos[k], m.key_qvel[k])
        found.append(Keyframe(name, float(m.key_time[k]), q, v))
    return tuple(found)


def start_of(compiled: Compiled, model: Model) -> Keyframe:
    """Return the state in which the file places its bodies, MuJoCo's qpos0, at rest."""
    q, v = _state(compiled, model, compiled.m.qpos0, np.zeros(compiled.m.nv))
    return Keyframe("", 0.0, q, v)


def _state(compiled: Compiled, model: Model, qpos: Array, qvel: Array) -> tuple[Array, Array]:
    q: list[Array] = []
    v: list[Array] = []
    for body in model.bodies:
        if body.dependence is not None or not body.nv:
            continue
        place = compiled.places.get(body.joint_name)
        if place is None:
            q.append(np.array(body.joint.neutral()))
            v.append(np.zeros(body.nv))
        else:
            q.append(qpos[place.qpos : place.qpos + body.nq])
            v.append(qvel[place.qvel : place.qvel + body.nv])
    q_own, v_own = convert_state(
        model, np.concatenate([[], *q]), np.concatenate([[], *v]), source="mujoco", target="dalembert"
    )
    assert v_own is not None
    return q_own, v_own
