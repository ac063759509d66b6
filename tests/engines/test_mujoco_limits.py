"""Limits of a joint that follows several others, beside MuJoCo's limited tendons.

A body without mass whose joint has the position r . q, and a fixed tendon of length r . q, of the same range.
The tendon's limit is a stiff spring, that of the joint has no give; what slides along them must agree.
"""

from __future__ import annotations

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

import dalembert as da  # noqa: E402
from dalembert.spatial import Mat3, Transform, Vec3  # noqa: E402

INERTIAL = '<inertial pos="0 0 -0.4" mass="1" diaginertia="0.1 0.12 0.05"/>'
CHAIN = f"""
<mujoco>
  <option timestep="1e-4"/>
  <worldbody>
    <body><joint name="j0" axis="0 1 0"/>{INERTIAL}
      <body pos="0 0 -0.8"><joint name="j1" axis="0 1 0"/>{INERTIAL}</body>
    </body>
  </worldbody>
  <tendon>
    <fixed limited="true" range="-0.6 0.4" solreflimit="0.001 1" solimplimit="0.999 0.9999 0.0001">
      <joint joint="j0" coef="0.5"/><joint joint="j1" coef="-3"/>
    </fixed>
  </tendon>
</mujoco>
"""


def follower() -> da.Model:
    """Two rods, and a joint with q2 = q0 / 2 - 3 q1 from -0.6 to 0.4."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    rod = da.RigidInertia(1.0, (0.0, 0.0, -0.4), (0.1, 0.12, 0.05))
    below = Transform(Mat3.identity(), Vec3(0.0, 0.0, -0.8))
    axis = da.Revolute((0.0, 1.0, 0.0))
    builder.add_body("a", "world", axis, "j0", inertia=rod)
    builder.add_body("b", "a", axis, "j1", inertia=rod, placement=below)
    builder.add_body("c", "b", axis, "j2", limits=(-0.6, 0.4))
    builder.add_coupling("differential", {"j0": -0.5, "j1": 3.0, "j2": 1.0})
    return builder.build()


@pytest.mark.parametrize("contact", ["rigid", "compliant"])
@pytest.mark.parametrize(
    ("q0", "v0", "tau", "end"),
    [((0.5, 0.0), (-1.0, -0.8), (5.0, -4.0), 0.4), ((0.5, 0.25), (1.0, 0.4), (-5.0, 4.0), -0.6)],
)
def test_what_slides_along_the_limit_of_a_joint_that_follows_two_moves_as_in_mujoco(
    contact, q0, v0, tau, end
):
    peer = mujoco.MjModel.from_xml_string(CHAIN)
    data = mujoco.MjData(peer)
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q0, v0, tau
    states = []
    for _ in range(500):
        mujoco.mj_step(peer, data, nstep=20)
        states.append([*data.qpos, *data.qvel])
    q, speed = np.split(np.array(states), 2, axis=1)
    found = da.rollout(follower(), q0, v0, tau, 5000, 2e-4, contact=contact)
    length = found.q @ [0.5, -3.0]
    assert np.mean(np.abs(length - end) < 1e-3) > 0.9
    np.testing.assert_allclose(found.q[10::10], q, atol=2e-3)
    np.testing.assert_allclose(found.v[-1], speed[-1], atol=2e-3)
