"""MJCF files against MuJoCo itself: M, bias, passive forces and forward dynamics at 20 random moving states.

Contact, limits, equality constraints, dry friction and actuation are off in MuJoCo; our models are compared
without loops and couplings, which are checked by their residuals.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.formats.mjcf_samples import (
    FREE,
    HEAVY_FREE,
    HINGES,
    STACKED,
    STATIC,
    dynamics_error,
    placements,
    write,
)

import dalembert as da
from dalembert.formats.mjcf import load_mjcf, read_mjcf
from dalembert.model.joints import Free, Prismatic, Revolute, Spherical, Translation

mujoco = pytest.importorskip("mujoco")

MODELS = {"hinges": HINGES, "stacked": STACKED, "free": FREE, "heavy_free": HEAVY_FREE, "static": STATIC}


@pytest.mark.parametrize("name", MODELS)
def test_dynamics_are_those_of_mujoco(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, MODELS[name], head='<option gravity="1 -2 -9"/>')
    assert dynamics_error(path, load_mjcf(path)) < 1e-8


def test_all_in_one_file_keep_the_order_of_coordinates(tmp_path: Path) -> None:
    path = write(tmp_path, "".join(MODELS.values()).replace('name="root"', "", 1))
    model = load_mjcf(path)
    assert dynamics_error(path, model) < 1e-8
    m = mujoco.MjModel.from_xml_path(str(path))
    for j in range(m.njnt):
        if name := m.joint(j).name:
            assert model.joint(name).q_slice.stop == m.jnt_qposadr[j] + (7, 4, 1, 1)[m.jnt_type[j]]


def test_positions_of_frames_are_those_of_mujoco(tmp_path: Path) -> None:
    """qpos with reference positions is our q, anchors and lumped bodies included."""
    path = write(tmp_path, HINGES + STACKED + STATIC)
    model = load_mjcf(path)
    m = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(m)
    data.qpos[:] = m.qpos0
    mujoco.mj_integratePos(m, data.qpos, np.random.default_rng(1).uniform(-1.0, 1.0, m.nv), 1.0)
    mujoco.mj_kinematics(m, data)
    places = {body.index: X for body, X in zip(model.bodies, placements(model, data.qpos), strict=True)}
    places[-1] = da.Transform.identity()
    for b in range(1, m.nbody):
        name = m.body(b).name
        own = f"{name}:origin" if model.frames.has(f"{name}:origin") else name
        frame = model.frame(own)
        X = places[frame.body] @ frame.placement
        np.testing.assert_allclose(list(X.p), data.xpos[b], atol=1e-12)
        np.testing.assert_allclose(list(X.R), data.xmat[b], atol=1e-12)
    mount = model.frame("mount")
    mujoco.mj_forward(m, data)
    np.testing.assert_allclose(
        list((places[mount.body] @ mount.placement).p), data.site("mount").xpos, atol=1e-12
    )


def test_joints_become_the_kinds_they_are(tmp_path: Path) -> None:
    model = load_mjcf(write(tmp_path, STACKED + FREE))
    kinds = {joint.name: type(joint.joint) for joint in model.joints}
    assert kinds["x"] is Prismatic
    assert kinds["tilt"] is Revolute
    assert kinds["socket"] is Spherical
    assert kinds["root"] is Free
    assert [model.bodies[model.body("cart").parent].inertia.mass] == [0.0]
    heavy = load_mjcf(write(tmp_path, HEAVY_FREE))
    assert type(heavy.joint("root:translation").joint) is Translation


def test_joint_data_are_copied(tmp_path: Path) -> None:
    text = """<body name="b"><joint name="j" axis="0 0 1" range="-30 60" armature=".1" damping=".2"
      frictionloss=".3" stiffness="4" springref="90" actuatorfrcrange="-5 5"/><geom size=".1"/></body>"""
    body = load_mjcf(write(tmp_path, text)).body("b")
    assert (body.armature, body.damping, body.friction, body.stiffness) == ((0.1,), (0.2,), (0.3,), (4.0,))
    np.testing.assert_allclose(body.rest, np.pi / 2)
    np.testing.assert_allclose([body.limits.lower, body.limits.upper], [[-np.pi / 6], [np.pi / 3]])
    assert body.limits.effort == (5.0,)


def test_actuator_armature_is_reflected_by_the_gear(tmp_path: Path) -> None:
    rest = '<actuator><motor name="m" joint="a" gear="3" armature=".5" damping=".7"/></actuator>'
    path = write(tmp_path, HINGES, rest)
    held = read_mjcf(path)
    assert dynamics_error(path, held.model) < 1e-8
    assert held.model.actuators["m"].joints == (("a", 3.0),)
    assert held.model.actuated == ("a",)


def test_equal_gravity_compensation_weakens_gravity(tmp_path: Path) -> None:
    text = """<body name="a" gravcomp=".4"><joint axis="0 1 0"/><geom size=".1" pos=".2 0 0"/>
      <body name="b" gravcomp=".4" pos=".3 0 0"><joint axis="1 1 0"/>
      <geom size=".1" pos="0 .2 0"/></body></body>"""
    path = write(tmp_path, text)
    model = load_mjcf(path)
    np.testing.assert_allclose(list(model.gravity), [0.0, 0.0, -0.6 * 9.81])
    assert dynamics_error(path, model) < 1e-8


def test_flags_switch_forces_off(tmp_path: Path) -> None:
    head = '<option><flag gravity="disable" spring="disable" damper="disable"/></option>'
    path = write(tmp_path, HINGES, head=head)
    model = load_mjcf(path)
    assert not any(model.gravity)
    assert dynamics_error(path, model) < 1e-8
    assert not any(model.body("upper").damping)
    assert not any(model.body("lower").stiffness)
