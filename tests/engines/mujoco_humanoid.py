"""The humanoid of dm_control's suite in MuJoCo and here: the same file, the same geoms, pairs and springs.

The figure touches the floor alone. MuJoCo's sensors are off: nothing here computes them.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout as peer_rollout

import dalembert as da
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.contact.pairs import ContactPair, contact_points, pairs_of

Array = np.ndarray[Any, np.dtype[np.float64]]

STIFF, SOFT = (600.0, 20.0), (50.0, 2.0)
"""Springs [N m/rad] and dampers [N m s/rad] that hold a pose: of legs and trunk, of arms."""

STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS

# Without a handler MuJoCo writes its warnings to a file in the current folder.
mujoco.set_mju_user_warning(lambda text: None)


def path() -> Path | None:
    """The file, None where the package is not installed."""
    package = find_spec("dm_control")
    return (
        None
        if package is None or package.origin is None
        else Path(package.origin).parent / "suite/humanoid.xml"
    )


@cache
def figure() -> da.Model:
    """The humanoid here, 27 freedoms."""
    return da.load(path())


@cache
def floor_pairs() -> tuple[ContactPair, ...]:
    return pairs_of(figure(), self_collision=False)


def peer(dt: float, *, self_collision: bool = False) -> Any:
    """The humanoid in MuJoCo, with the options of its file but for the step and, unless asked for,
    self-collision."""
    model = mujoco.MjModel.from_xml_path(str(path()))
    model.opt.timestep = dt
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
    if not self_collision:
        model.geom_conaffinity[np.arange(model.ngeom) != model.geom("floor").id] = 0
    return model


@cache
def held() -> da.Model:
    """The humanoid held in its standing pose by springs and dampers in its hinges."""
    values: dict[str, float] = {}
    for body in figure().bodies[1:]:
        stiffness, damping = _hold(body.joint_name)
        values |= {
            f"{body.joint_name}.stiffness": stiffness,
            f"{body.joint_name}.damping": damping,
            f"{body.joint_name}.rest": standing()[body.q_slice.start],
        }
    return figure().with_values(values)


def hold(model: Any) -> Any:
    """The same springs and dampers in MuJoCo's model."""
    for joint in range(1, model.njnt):
        model.jnt_stiffness[joint], model.dof_damping[joint + 5] = _hold(model.joint(joint).name)
        model.qpos_spring[joint + 6] = standing()[joint + 6]
    return model


def _hold(name: str) -> tuple[float, float]:
    return SOFT if "shoulder" in name or "elbow" in name else STIFF


def standing() -> Array:
    """Upright, soles on the floor, the centre of mass over their middle."""
    q = np.array(figure().neutral())
    lean = 0.0190108
    q[3:7] = np.cos(lean / 2), 0.0, np.sin(lean / 2), 0.0
    for name in ("left_ankle_y", "right_ankle_y"):
        q[figure().joint(name).q_slice] = -0.011011
    q[2] = 1.2847
    return q


def random_poses(count: int, seed: int, *, height: float) -> Array:
    """Turned at random, the torso at a height [m], joints within the inner part of their ranges."""
    rng = np.random.default_rng(seed)
    model = peer(0.005)
    lower, upper = model.jnt_range[1:].T
    q = np.zeros((count, model.nq))
    q[:, 2] = height
    q[:, 3:7] = rng.normal(size=(count, 4))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    q[:, 7:] = 0.3 * rng.uniform(lower, upper, size=(count, model.nq - 7))
    return q


def peer_states(model: Any, q: Array, v: Array) -> Array:
    """MuJoCo's states `(samples, …)` of q and v."""
    states = np.zeros((len(q), mujoco.mj_stateSize(model, STATE)))
    states[:, 1 : 1 + model.nq], states[:, 1 + model.nq : 1 + model.nq + model.nv] = da.convert_state(
        figure(), q, v, source="dalembert", target="mujoco"
    )
    return states


def own_states(model: Any, states: Array) -> tuple[Array, Array]:
    """q and v of MuJoCo's states."""
    q, v = states[..., 1 : 1 + model.nq], states[..., 1 + model.nq : 1 + model.nq + model.nv]
    return da.convert_state(figure(), q, v, source="mujoco", target="dalembert")


def peer_rollouts(model: Any, states: Array, steps: int) -> Array:
    """MuJoCo's states after each step `(samples, steps, …)`, in one thread."""
    with peer_rollout.Rollout(nthread=0) as pool:
        found: Array = pool.rollout(model, mujoco.MjData(model), states, nstep=steps)[0]
        return found


@cache
def gaps() -> Any:
    """The gaps of all points against the floor as a compiled function of q."""

    def found(model: Any, q: Any) -> list[Any]:
        return [item.point.gap for item in contact_points(forward_kinematics(model, q), floor_pairs())]

    return da.compile(found, figure())


def lowest(q: Array) -> Array:
    """The least gap of every pose `(…,)` [m]."""
    return gaps()(q).min(axis=-1)
