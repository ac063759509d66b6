"""What else a model of MJCF holds: loops, couplings, shapes, keyframes, and a report of the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.formats.mjcf_samples import FREE, HINGES, STATIC, dynamics_error, placements, write

import dalembert as da
from dalembert.formats.mjcf import load_mjcf, read_mjcf
from dalembert.model.joints import Fixed, Free, Spherical
from dalembert.model.shapes import Box, Capsule, Cylinder, Ellipsoid, Mesh, Plane, Sphere

mujoco = pytest.importorskip("mujoco")

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
    placed = {**dict(enumerate(placements(model, data.qpos))), -1: da.Transform.identity()}
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
      <tendon><spatial name="rope"><site site="p"/><site site="q"/></spatial></tendon>"""
    bodies = HINGES + '<site name="p"/><site name="q" pos="1 0 0"/><light pos="0 0 3"/>'
    report = "\n".join(load_mjcf(write(tmp_path, bodies, rest)).report)
    for words in ("1 sensors", "1 lights", 'tendon "rope"'):
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
