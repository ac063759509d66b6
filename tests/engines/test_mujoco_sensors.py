"""Sensors beside MuJoCo's of the same names: one file, the same moving states, in both."""

from __future__ import annotations

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

import dalembert as da  # noqa: E402
from dalembert.simulation.sensors import (  # noqa: E402
    FramePose,
    FrameVelocity,
    HeightScan,
    Imu,
    JointState,
    JointWrench,
    Rays,
    Touch,
)

FILE = """
<mujoco model="sensed">
  <option gravity="0.3 -0.2 -9.81" integrator="Euler"><flag contact="disable"/></option>
  <worldbody>
    <body name="torso" pos="0 0 2">
      <freejoint name="root"/>
      <geom type="box" size=".2 .1 .05" mass="3"/>
      <site name="imu" pos=".1 .05 .02" euler="10 20 30"/>
      <body name="arm" pos=".2 0 .05">
        <joint name="shoulder" axis="0 1 0" damping="0.2"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0.1" size=".03" mass="1"/>
        <site name="arm_base"/>
        <body name="hand" pos=".3 0 .1" euler="0 30 0">
          <joint name="elbow" axis="1 0 1" stiffness="0.05"/>
          <geom type="box" size=".05 .04 .03" pos=".05 0 .01" mass=".5"/>
          <site name="hand_base"/>
          <site name="palm" pos=".1 .02 0" euler="40 0 10"/>
        </body>
      </body>
    </body>
  </worldbody>
  <sensor>
    <gyro name="gyro" site="imu"/>
    <accelerometer name="accelerometer" site="imu"/>
    <gyro name="palm_gyro" site="palm"/>
    <accelerometer name="palm_accelerometer" site="palm"/>
    <torque name="arm_torque" site="arm_base"/>
    <force name="arm_force" site="arm_base"/>
    <torque name="hand_torque" site="hand_base"/>
    <force name="hand_force" site="hand_base"/>
    <framepos name="position" objtype="site" objname="palm" reftype="site" refname="imu"/>
    <framequat name="turn" objtype="site" objname="palm" reftype="site" refname="imu"/>
    <frameangvel name="omega" objtype="site" objname="palm" reftype="site" refname="imu"/>
    <framelinvel name="velocity" objtype="site" objname="palm" reftype="site" refname="imu"/>
    <frameangvel name="omega_world" objtype="site" objname="palm"/>
    <framelinvel name="velocity_world" objtype="site" objname="palm"/>
    <jointpos name="angle" joint="elbow"/>
    <jointvel name="rate" joint="elbow"/>
  </sensor>
</mujoco>
"""

SENSORS = {
    "imu": Imu("imu"),
    "palm": Imu("palm"),
    "wrench": JointWrench(["shoulder", "elbow"]),
    "pose": FramePose("palm", relative_to="imu"),
    "velocity": FrameVelocity("palm", relative_to="imu", axes="imu"),
    "velocity_world": FrameVelocity("palm"),
    "own_velocity": FrameVelocity("palm", axes="frame"),
    "angle": JointState("position", "elbow"),
    "rate": JointState("velocity", ["elbow"]),
}
DT = 1e-8
"""[s] So short a step that rates in it are those where it begins, within 1e-5."""


def peer_readings(peer, data):
    return {
        peer.sensor(k).name: data.sensordata[peer.sensor_adr[k] : peer.sensor_adr[k] + peer.sensor_dim[k]]
        for k in range(peer.nsensor)
    }


@pytest.mark.parametrize("seed", range(4))
def test_readings_are_those_of_mujoco(seed, tmp_path):
    (tmp_path / "sensed.xml").write_text(FILE)
    model, peer = da.load(tmp_path / "sensed.xml"), mujoco.MjModel.from_xml_string(FILE)
    rng = np.random.default_rng(seed)
    q, v = model.random_state(seed)
    v = rng.normal(size=model.nv)
    tau = 0.05 * rng.normal(size=model.nv)
    data = mujoco.MjData(peer)
    data.qpos[:], data.qvel[:] = da.convert_state(model, q, v, source="dalembert", target="mujoco")
    tau[:6] = 0.0
    data.qfrc_applied[:] = tau  # that of the root is zero, whose axes differ
    mujoco.mj_forward(peer, data)
    simulation = da.Simulation(model, q, v, dt=DT, sensors=SENSORS, integrator="semi_implicit")
    simulation.step(tau)
    found, wanted = simulation.sensors, peer_readings(peer, data)

    def agrees(ours, *names):
        theirs = np.concatenate([wanted[name] for name in names])
        assert np.abs(theirs).max() > 0.05
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=2e-5)

    agrees(found["imu"], "gyro", "accelerometer")
    agrees(found["palm"], "palm_gyro", "palm_accelerometer")
    agrees(found["wrench"][0], "arm_torque", "arm_force")
    agrees(found["wrench"][1], "hand_torque", "hand_force")
    turn = wanted["turn"] * np.sign(wanted["turn"][0])
    agrees(found["pose"][:3], "position")
    np.testing.assert_allclose(found["pose"][3:], turn, atol=1e-5)
    agrees(found["velocity"], "omega", "velocity")
    agrees(found["velocity_world"], "omega_world", "velocity_world")
    np.testing.assert_allclose(found["own_velocity"][:3], found["palm"][:3], atol=1e-9)
    agrees(found["angle"], "angle")
    agrees(found["rate"], "rate")


RESTING = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="box" pos="0 0 .1">
      <freejoint/>
      <geom name="shell" type="box" size=".1 .1 .1" mass="2"/>
      <site name="sole" type="box" size=".12 .12 .12"/>
    </body>
  </worldbody>
  <sensor><touch name="touch" site="sole"/></sensor>
</mujoco>
"""


def test_touch_of_a_resting_box_is_that_of_mujoco(tmp_path):
    (tmp_path / "box.xml").write_text(RESTING)
    model, peer = da.load(tmp_path / "box.xml"), mujoco.MjModel.from_xml_string(RESTING)
    q = model.neutral()
    q[2] = 0.1
    simulation = da.Simulation(
        model, q, dt=0.002, contact="rigid", sensors={"body": Touch("box"), "shape": Touch(["shell"])}
    )
    simulation.step(steps=500)
    data = mujoco.MjData(peer)
    mujoco.mj_step(peer, data, 1000)
    assert simulation.sensors["body"][0] == pytest.approx(data.sensordata[0], rel=1e-3)
    assert simulation.sensors["shape"][0] == pytest.approx(2.0 * 9.81, rel=1e-3)


def terrain_file(rng):
    """Tilted boxes, a height field and a plane below them; a free eye."""
    heights = " ".join(f"{x:.6f}" for x in rng.random(9 * 12))
    boxes = []
    for _ in range(6):
        size, turn = rng.uniform(0.1, 0.4, 3), rng.uniform(-90.0, 90.0, 3)
        place = rng.uniform([-2.0, -2.0, 0.6], [2.0, 2.0, 1.5])
        texts = [" ".join(f"{x:.3f}" for x in row) for row in (size, place, turn)]
        boxes.append('<geom type="box" size="{}" pos="{}" euler="{}"/>'.format(*texts))
    return f"""
<mujoco>
  <asset><hfield name="hills" nrow="9" ncol="12" size="3 2 0.8 0.1" elevation="{heights}"/></asset>
  <worldbody>
    <geom type="plane" size="20 20 1" pos="0 0 -0.3"/>
    <geom type="hfield" hfield="hills" pos="0.2 0.1 -0.2" euler="2 -3 20"/>
    {"".join(boxes)}
    <body name="eye"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>
  </worldbody>
</mujoco>
"""


def test_rays_meet_what_those_of_mujoco_meet(tmp_path):
    rng = np.random.default_rng(5)
    file = terrain_file(rng)
    (tmp_path / "terrain.xml").write_text(file)
    model, peer = da.load(tmp_path / "terrain.xml"), mujoco.MjModel.from_xml_string(file)
    data = mujoco.MjData(peer)
    mujoco.mj_forward(peer, data)
    directions = rng.normal(size=(40, 3))
    grid = rng.uniform(-1.0, 1.0, (30, 2))
    samples = 60
    q = np.array([model.random_state(k)[0] for k in range(samples)])
    q[:, :3] = rng.uniform([-3.0, -3.0, 1.7], [3.0, 3.0, 2.5], (samples, 3))
    scan = HeightScan("eye", grid, above=1.0, reach=5.0)
    simulation = da.Simulation(model, q, dt=1e-9, sensors=[Rays("eye", directions, reach=6.0), scan])
    simulation.step()
    poses = da.forward_kinematics(model, q)["eye"]
    geom = np.zeros(1, np.int32)

    def way(start, direction, reach):
        found = mujoco.mj_ray(peer, data, start, direction, None, 1, peer.body("eye").id, geom)
        return reach if found < 0.0 else min(found, reach)

    errors = []
    unit = directions / np.linalg.norm(directions, axis=1)[:, None]
    for k in range(samples):
        R, p = poses.rotation[k], poses.translation[k]
        wanted = np.array([way(p, R @ d, 6.0) for d in unit])
        assert (wanted < 6.0).any()
        errors.append(np.abs(simulation.sensors["rays"][k] - wanted))
        x, y = R[:2, 0] / np.linalg.norm(R[:2, 0])
        starts = [p + [x * a - y * b, y * a + x * b, 1.0] for a, b in grid]
        heights = 1.0 - np.array([way(start, np.array([0.0, 0.0, -1.0]), 5.0) for start in starts])
        errors.append(np.abs(simulation.sensors["height_scan"][k] - heights))
    wrong = np.concatenate(errors) > 1e-6
    assert np.mean(wrong) < 0.002, np.sort(np.concatenate(errors))[-12:]  # rays along an edge
