"""MJCF files against MuJoCo itself: M, bias, passive forces and forward dynamics at 20 random moving states.

Contact, limits, equality constraints, dry friction and actuation are off in MuJoCo; our models are compared
without loops and couplings, which are checked by their residuals.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert import algorithms
from dalembert.formats.mjcf import load_mjcf, read_mjcf
from dalembert.model.joints import Fixed, Free, Prismatic, Revolute, Spherical, Translation
from dalembert.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Mesh, Plane, Sphere

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

MODELS = {"hinges": HINGES, "stacked": STACKED, "free": FREE, "heavy_free": HEAVY_FREE, "static": STATIC}


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
        friction = np.concatenate([np.array(b.friction) * _smooth(v[b.v_slice]) for b in tree.bodies])
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


def _smooth(v: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
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
    places = {body.index: X for body, X in zip(model.bodies, _world(model, data.qpos), strict=True)}
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


def _world(model: da.Model, q: Any) -> list[Any]:
    placed: list[Any] = []
    for body in model.bodies:
        parent = da.Transform.identity() if body.parent < 0 else placed[body.parent]
        placed.append(parent @ body.link_transform(q.tolist()))
    return placed


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
    assert held.actuators[0].joints == (("a", 3.0),)
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


LOOPS = """
<body name="a" pos="0 0 1"><joint name="a" axis="0 1 0" pos="0 .1 .1"/>
  <geom type="capsule" size=".02 .1" pos=".2 0 0"/><site name="s1" pos=".1 .2 .3" euler="10 20 30"/></body>
<body name="b" pos="1 0 1" euler="0 20 40"><joint name="b" type="ball" pos=".1 0 0"/>
  <geom size=".1" pos="0 .1 0"/><site name="s2" pos="-.1 0 .3" euler="50 0 0"/></body>"""


@pytest.mark.parametrize(
    ("equality", "joint"),
    [
        ('<connect name="e" body1="a" body2="b" anchor=".3 .1 0"/>', Spherical),
        ('<connect name="e" body1="b" anchor=".3 .1 0"/>', Spherical),
        ('<connect name="e" site1="s1" site2="s2"/>', Spherical),
        ('<weld name="e" body1="a" body2="b"/>', Fixed),
        ('<weld name="e" body1="a" body2="b" anchor=".1 .2 .3" relpose=".1 .2 .3 .5 .5 -.5 .5"/>', Fixed),
        ('<weld name="e" site1="s1" site2="s2"/>', Fixed),
        ('<weld name="e" body1="b" torquescale="0"/>', Spherical),
    ],
)
def test_loops_have_the_residual_of_mujoco(equality: str, joint: type, tmp_path: Path) -> None:
    """Equal gaps, and MuJoCo's rotation error is the sine of half the angle."""
    path = write(tmp_path, LOOPS, f"<equality>{equality}</equality>")
    model = load_mjcf(path)
    assert dynamics_error(path, model) < 1e-8
    (loop,) = model.loops
    assert type(loop.joint) is joint
    m = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(m)
    mujoco.mj_integratePos(m, data.qpos, np.random.default_rng(2).uniform(-1.0, 1.0, m.nv), 1.0)
    mujoco.mj_forward(m, data)
    placed = {**dict(enumerate(_world(model, data.qpos))), -1: da.Transform.identity()}
    X_1 = placed[loop.predecessor] @ loop.placement_predecessor
    X_2 = placed[loop.successor] @ loop.placement_successor
    gap = np.array(list(X_1.p)) - np.array(list(X_2.p))
    np.testing.assert_allclose(np.abs(gap), np.abs(data.efc_pos[:3]), atol=1e-12)
    if joint is Fixed:
        turn = np.array(X_1.R.transpose().to_list()) @ np.array(X_2.R.to_list())
        cosine = (np.trace(turn) - 1.0) / 2.0
        half_sine = np.sqrt((1.0 - cosine) / 2.0)
        np.testing.assert_allclose(np.linalg.norm(data.efc_pos[3:6]), half_sine, atol=1e-12)


def test_joint_and_tendon_equalities_couple(tmp_path: Path) -> None:
    bodies = "".join(
        f'<body name="{n}" pos="{k} 0 0"><joint name="{n}" ref="{10 * k}"/><geom size=".1"/></body>'
        for k, n in enumerate("abcdefg")
    )
    rest = """<tendon><fixed name="t"><joint joint="c" coef="2"/><joint joint="d" coef="-3"/></fixed>
      <fixed name="u"><joint joint="e" coef="1.5"/></fixed></tendon>
      <equality><joint joint1="b" joint2="a" polycoef=".1 2 0 0 0"/>
      <tendon tendon1="t" tendon2="u" polycoef=".2 .5 0 0 0"/><joint joint1="g" polycoef=".3 1 0 0 0"/>
      <joint joint1="f" joint2="a" active="false"/></equality>"""
    path = write(tmp_path, bodies, rest)
    model = load_mjcf(path)
    assert model.nv == 4  # a, two of c, d, e, and f
    assert any("not active" in line for line in model.report)
    full = dict(zip((b.joint_name for b in model.bodies if b.nv), model.expand_q([0.4, -0.7, 0.6, 0.2])))
    m = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(m)
    for name, position in full.items():
        data.joint(name).qpos[:] = position
    data.joint("g").qpos[:] = m.joint("g").qpos0 + 0.3
    mujoco.mj_forward(m, data)
    np.testing.assert_allclose(data.efc_pos[data.efc_type == 0], 0.0, atol=1e-12)
    assert np.count_nonzero(data.efc_type == 0) == 3
    assert model.nq == 4
    assert type(model.joint("g").joint) is Fixed


def test_geoms_become_shapes(tmp_path: Path) -> None:
    (tmp_path / "wedge.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    )
    text = """<geom name="floor" type="plane" size="1 1 1" pos="0 0 -1"/>
      <body name="b"><joint pos=".1 .2 .3"/><geom type="sphere" size=".1"/>
      <geom type="capsule" size=".1 .2" pos="0 0 1" rgba="1 0 0 1" friction=".5 .1 .01"/>
      <geom type="cylinder" size=".1 .3" contype="0" conaffinity="0"/>
      <geom type="box" size=".1 .2 .3" group="4"/>
      <geom type="ellipsoid" size=".1 .2 .3"/>
      <geom type="mesh" mesh="wedge" pos=".4 .5 .6" euler="0 0 90"/></body>"""
    head = '<asset><mesh file="wedge.obj" scale="1 2 3"/></asset>'
    model = load_mjcf(write(tmp_path, text, head=head))
    shapes = {shape.kind: shape for shape in model.body("b").shapes}
    assert isinstance(shapes["sphere"], Sphere)
    assert shapes["sphere"].radius == 0.1
    np.testing.assert_allclose(list(shapes["sphere"].placement.p), [-0.1, -0.2, -0.3])
    capsule = shapes["capsule"]
    assert isinstance(capsule, Capsule)
    assert (capsule.radius, capsule.length) == (0.1, 0.4)
    assert capsule.friction == (0.5, 0.1, 0.01)
    assert capsule.rgba[:2] == (1.0, 0.0)
    assert isinstance(shapes["cylinder"], Cylinder)
    assert not shapes["cylinder"].collision
    box = shapes["box"]
    assert isinstance(box, Box)
    assert box.size == (0.2, 0.4, 0.6)
    assert not box.visual
    assert isinstance(shapes["ellipsoid"], Ellipsoid)
    mesh = shapes["mesh"]
    assert isinstance(mesh, Mesh)
    assert Path(mesh.path).name == "wedge.obj"
    assert mesh.scale == (1.0, 2.0, 3.0)
    np.testing.assert_allclose(list(mesh.placement.p), [0.3, 0.3, 0.3], atol=1e-6)
    np.testing.assert_allclose(list(mesh.placement.R), [0, -1, 0, 1, 0, 0, 0, 0, 1], atol=1e-6)
    (floor,) = model.world_shapes
    assert isinstance(floor, Plane)
    assert floor.name == "floor"


def test_keyframes_are_states_of_the_model(tmp_path: Path) -> None:
    rest = """<keyframe><key name="k" time="2" qpos="1 2 3 0 1 0 0 .7" qvel="1 2 3 4 5 6 7"/></keyframe>"""
    body = FREE.split('<body name="brick"')[0]
    held = read_mjcf(write(tmp_path, body, rest))
    (key,) = held.keyframes
    assert (key.name, key.time) == ("k", 2.0)
    np.testing.assert_allclose(key.q, [1, 2, 3, 0, 1, 0, 0, 0.7])
    np.testing.assert_allclose(key.v, [4, 5, 6, 1, -2, -3, 7])  # half a turn about x
    np.testing.assert_allclose(held.start.q[:3], [1, 2, 3])
    assert not held.start.v.any()


def test_root_can_be_fixed_or_floating(tmp_path: Path) -> None:
    path = write(tmp_path, FREE)
    fixed = load_mjcf(path, root="fixed")
    assert fixed.nv == 1
    np.testing.assert_allclose(list(fixed.frame("trunk").placement.p), [1, 2, 3])
    assert load_mjcf(path, root="floating").nv == load_mjcf(path).nv == 13
    arm = load_mjcf(write(tmp_path, STATIC), root="floating")
    assert type(arm.joint("base:root").joint) is Free
    assert arm.nv == 7
    assert arm.total_mass > load_mjcf(write(tmp_path, STATIC)).total_mass


def test_what_moves_nothing_is_listed(tmp_path: Path) -> None:
    rest = """<sensor><jointpos joint="a"/></sensor><keyframe><key name="k"/></keyframe>
      <actuator><position name="servo" joint="b" kp="3"/></actuator>
      <tendon><spatial name="rope" range="0 1"><site site="p"/><site site="q"/></spatial></tendon>"""
    bodies = HINGES + '<site name="p"/><site name="q" pos="1 0 0"/><light pos="0 0 3"/>'
    report = "\n".join(load_mjcf(write(tmp_path, bodies, rest)).report)
    for words in ("1 sensors", "1 lights", 'actuator "servo"', 'tendon "rope"', "limits of tendon"):
        assert words in report


@pytest.mark.parametrize("inertia", ["as_given", "repair"])
def test_what_mujoco_warns_of_stands_in_the_report(inertia, tmp_path, recwarn):
    file = tmp_path / "old.xml"
    file.write_text(
        '<mujoco><compiler settotalmass="2"/><worldbody><body><joint/>'
        '<geom size="0.1" pos="0 0 0.1"/></body></worldbody></mujoco>'
    )
    model = da.load(file, inertia=inertia)
    assert any("settotalmass" in line for line in model.report)
    assert not recwarn.list
    assert model.total_mass == pytest.approx(2.0)
