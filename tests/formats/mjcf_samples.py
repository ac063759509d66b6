"""Small models of MJCF, and how far a model of ours is from MuJoCo's dynamics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert import algorithms

mujoco = pytest.importorskip("mujoco")

STATES = 20

OFF = ("CONTACT", "LIMIT", "EQUALITY", "FRICTIONLOSS", "ACTUATION")

HINGES = """
<body name="upper" pos=".1 .2 .3" euler="10 20 30">
  <joint name="a" type="hinge" axis="1 2 3" pos=".05 -.02 .1" ref="25" damping=".3" armature=".02"/>
  <geom type="capsule" size=".05 .2" pos=".1 0 .2" euler="30 0 10"/>
  <body name="lower" pos="0 0 .5" quat=".5 .5 .5 .5">
    <joint name="b" type="hinge" axis="0 1 0" stiffness="7" springref="40" ref="-15" frictionloss=".4"/>
    <geom type="box" size=".1 .05 .2" pos="0 .1 .1"/>
  </body>
</body>"""

STACKED = """
<body name="cart" pos="0 0 1" euler="5 0 0">
  <joint name="x" type="slide" axis="1 0 1" ref=".3" stiffness="5" springref=".1"/>
  <joint name="y" type="slide" axis="0 1 0" damping="2"/>
  <joint name="tilt" type="hinge" axis="0 1 1" pos=".1 .2 -.3" ref="20"/>
  <joint name="roll" type="hinge" axis="1 0 0" pos="-.1 0 .2" armature=".1"/>
  <geom type="ellipsoid" size=".1 .2 .3" pos=".1 0 0"/>
  <body name="arm" pos=".3 0 0">
    <joint name="yaw" type="hinge" axis="0 0 1" pos="0 .1 0"/>
    <joint name="socket" type="ball" pos=".1 .1 .1" stiffness="3" damping=".2"/>
    <geom type="cylinder" size=".1 .3" pos="0 0 .2"/>
  </body>
</body>"""

FREE = """
<body name="trunk" pos="1 2 3" euler="40 50 60">
  <freejoint name="root"/>
  <inertial pos=".1 .02 .03" mass="2.5" fullinertia=".3 .25 .2 .01 -.02 .03"/>
  <body name="pack" pos="0 .1 .2" euler="0 30 0"><geom size=".1" pos=".1 0 0"/></body>
  <body name="leg" pos="0 -.2 0"><joint name="hip" axis="0 1 1"/><geom type="box" size=".1 .1 .2"/></body>
</body>
<body name="brick" pos="0 0 5"><joint name="loose" type="free" damping=".5"/>
  <geom type="box" size=".1 .2 .3"/></body>"""

HEAVY_FREE = """
<body name="stone" pos="0 0 1">
  <joint name="root" type="free" armature=".3" stiffness="4" damping=".2"/>
  <geom type="box" size=".1 .2 .3" pos=".1 .2 .3"/>
  <body name="tail" pos=".2 0 0"><joint name="wag" axis="0 0 1"/><geom type="capsule" size=".05 .2"/></body>
</body>"""

STATIC = """
<geom name="floor" type="plane" size="1 1 1"/>
<body name="base" pos="0 0 .5" euler="0 0 90">
  <geom type="box" size=".1 .1 .1"/><site name="mount" pos="0 0 .1"/>
  <body name="link" pos="0 0 .1"><joint name="j" axis="0 1 0" pos="0 0 -.05"/><geom size=".1" pos="0 0 .3"/>
    <body name="tool" pos="0 0 .4" euler="0 90 0"><geom size=".05" mass=".2"/></body>
  </body>
</body>"""


def write(folder: Path, bodies: str, rest: str = "", head: str = "") -> Path:
    file = folder / "model.xml"
    file.write_text(f'<mujoco model="made">{head}<worldbody>{bodies}</worldbody>{rest}</mujoco>')
    return file


def dynamics_error(path: Path, model: da.Model) -> float:
    """The largest relative difference of M, bias, passive forces and acceleration from MuJoCo's."""
    tree = model.tree().uncoupled()
    m = mujoco.MjModel.from_xml_path(str(path))
    assert (m.nq, m.nv) == (tree.nq, tree.nv)
    for flag in OFF:
        m.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
    data = mujoco.MjData(m)
    rng = np.random.default_rng(m.nv)
    worst = 0.0
    for _ in range(STATES):
        data.qpos[:] = m.qpos0
        mujoco.mj_integratePos(m, data.qpos, rng.uniform(-1.5, 1.5, m.nv), 1.0)
        data.qvel[:], data.qfrc_applied[:] = rng.uniform(-2.0, 2.0, (2, m.nv))
        mujoco.mj_forward(m, data)
        M_mj = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, data, M_mj)
        q, v = da.convert_state(tree, data.qpos, data.qvel, source="mujoco", target="dalembert")
        P, drift = rates(tree, q, v)
        lift = data.qfrc_gravcomp
        tau = P.T @ (data.qfrc_applied + data.qfrc_passive - lift)
        friction = np.concatenate([np.array(b.friction) * smooth(v[b.v_slice]) for b in tree.bodies])
        pairs = (
            (algorithms.mass_matrix(tree, q.tolist()), P.T @ M_mj @ P),
            (
                algorithms.inverse_dynamics(tree, q.tolist(), v.tolist(), [0.0] * m.nv),
                P.T @ (data.qfrc_bias - lift + M_mj @ drift),
            ),
            (
                np.array(algorithms.passive_forces(tree, q.tolist(), v.tolist())) + friction,
                P.T @ (data.qfrc_passive - lift),
            ),
            (
                P @ algorithms.forward_dynamics(tree, q.tolist(), v.tolist(), tau.tolist()) + drift,
                data.qacc,
            ),
        )
        for ours, theirs in pairs:
            scale = max(float(np.abs(theirs).max()), 1e-3)
            worst = max(worst, float(np.abs(np.array(ours) - theirs).max()) / scale)
    return worst


def smooth(v: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return v / np.sqrt(v * v + algorithms.FRICTION_SPEED**2)


def rates(tree: da.Model, q: Any, v: Any) -> tuple[Any, Any]:
    """P of v_mujoco = P v, and dP/dt v: R (omega x v) for the linear velocity of free joints."""
    unit = np.eye(tree.nv)
    P = np.stack([da.convert_state(tree, q, e, source="dalembert", target="mujoco")[1] for e in unit], axis=1)
    turning = np.zeros(tree.nv)
    for joint in tree.joints:
        if joint.kind == "free":
            turning[joint.linear] = np.cross(v[joint.angular], v[joint.linear])
    return P, P @ turning


def placements(model: da.Model, q: Any) -> list[Any]:
    placed: list[Any] = []
    for body in model.bodies:
        parent = da.Transform.identity() if body.parent < 0 else placed[body.parent]
        placed.append(parent @ body.link_transform(q.tolist()))
    return placed
