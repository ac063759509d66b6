"""
From motion capture to the force on the ground
==============================================

A motion-capture file holds a skeleton and angles over time, no masses and no forces. ``load_motion`` makes a
model of it, with masses by an anthropometric rule, and a clip with velocities and accelerations. Inverse
dynamics then says what moved it: every joint's torque, and the force that the ground must have given.
"""

# %%
# Somebody else would have recorded the file; here we write it: three knee bends in which the arms swing up.
# BVH has y up, z forward, x to the left, and degrees.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da
from dalembert.motion import load_motion


def limb(side, sign):
    """An arm and a leg."""
    arm = f"""JOINT {side}Arm {{ OFFSET {sign * 0.2} 0.22 0
      CHANNELS 3 Zrotation Xrotation Yrotation
      JOINT {side}ForeArm {{ OFFSET {sign * 0.29} 0 0
        CHANNELS 1 Zrotation
        JOINT {side}Hand {{ OFFSET {sign * 0.26} 0 0
          CHANNELS 0
          End Site {{ OFFSET {sign * 0.16} 0 0 }} }} }} }}"""
    leg = f"""JOINT {side}UpLeg {{ OFFSET {sign * 0.09} -0.05 0
      CHANNELS 3 Xrotation Yrotation Zrotation
      JOINT {side}Leg {{ OFFSET 0 -0.43 0
        CHANNELS 1 Xrotation
        JOINT {side}Foot {{ OFFSET 0 -0.43 0
          CHANNELS 1 Xrotation
          End Site {{ OFFSET 0 -0.07 0.16 }} }} }} }}"""
    return arm, leg


(left_arm, left_leg), (right_arm, right_leg) = limb("Left", 1.0), limb("Right", -1.0)
skeleton = f"""HIERARCHY
ROOT Hips {{ OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Xrotation Yrotation Zrotation
  JOINT Spine {{ OFFSET 0 0.12 0
    CHANNELS 3 Xrotation Yrotation Zrotation
    JOINT Chest {{ OFFSET 0 0.18 0
      CHANNELS 3 Xrotation Yrotation Zrotation
      JOINT Neck {{ OFFSET 0 0.26 0
        CHANNELS 3 Xrotation Yrotation Zrotation
        End Site {{ OFFSET 0 0.28 0 }} }}
      {left_arm}
      {right_arm} }} }}
  {left_leg}
  {right_leg} }}
MOTION
"""

frame_time = 1.0 / 60.0
phase = 2.0 * np.pi * np.arange(0.0, 3.6, frame_time) / 1.2
rows = []
for bend in 0.5 - 0.5 * np.cos(phase):
    knee, raised, lean = 55.0 * bend, -75.0 + 150.0 * bend, 28.0 * bend
    height = 0.05 + 2 * 0.43 * np.cos(np.radians(knee)) + 0.07
    arms = [raised, 0, 0, 12.0], [-raised, 0, 0, -12.0]
    leg = [-knee, 0, 0, 2.0 * knee, -knee]
    trunk = [lean / 2, 0, 0, lean / 2, 0, 0, -0.7 * lean, 0, 0]
    rows.append([0, height, 0, 0, 0, 0, *trunk, *arms[0], *arms[1], *leg, *leg])
motion = "\n".join(" ".join(f"{value:.9g}" for value in row) for row in rows)

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "knee_bends.bvh"
    file.write_text(f"{skeleton}Frames: {len(rows)}\nFrame Time: {frame_time:.9g}\n{motion}\n")
    model, clip = load_motion(file, mass=70.0, cutoff=12.0)

print(clip)
print(*model.report, sep="\n")

# %%
# One call for the forces of all frames. Nothing in the figure pushes its root, so what inverse dynamics asks
# for at the root's joint is the force of the ground. The arms touch nothing: the shoulder's torque is all
# that moves them.

tau = da.inverse_dynamics(model, clip.q, clip.v, clip.a)
poses = da.forward_kinematics(model, clip.q)
ground = np.einsum("tij,tj->ti", poses["Hips"].rotation, tau[:, model.joint("Hips").linear])
shoulder = np.linalg.norm(tau[:, model.joint("LeftArm").v_slice], axis=1)

# %%
# Nine moments of the second knee bend as stick figures, seen from the front and a little from the side, each
# above its time in the curves below.

bones = [(body.name, model.bodies[body.parent].name) for body in model.bodies if body.parent >= 0]
bones += [(frame.name, model.bodies[frame.body].name) for frame in model.frames]
to_the_right, upward = np.array([0.4, 0.85, 0.0]), np.array([0.12, -0.06, 1.0])
colours = plt.get_cmap("viridis")
first, every, width = 72, 9, 1.35

figure, (strip, curves) = plt.subplots(2, 1, figsize=(9, 5.2), height_ratios=(1.0, 1.35))
for number, k in enumerate(range(first, first + 73, every)):
    colour = colours(0.85 * number / 8)
    for a, b in bones:
        ends = np.array([poses[a].translation[k], poses[b].translation[k]])
        strip.plot(width * number + ends @ to_the_right, ends @ upward, "-", color=colour, lw=2.0)
    head = 0.35 * poses["Neck"].translation[k] + 0.65 * poses["Neck_end"].translation[k]
    strip.plot(width * number + head @ to_the_right, head @ upward, "o", color=colour, ms=9)
strip.axhline(0.0, color="0.75", lw=1.0, zorder=0)
strip.set(xlim=(-width / 2, 8.5 * width), aspect="equal")
strip.axis("off")

start, step = first * frame_time, every * frame_time
curves.plot(clip.time, ground[:, 2] / (70.0 * 9.81), color="tab:blue")
curves.axhline(1.0, color="0.75", lw=1.0, zorder=0)
curves.set(xlabel="time [s]", xlim=(start - step / 2, start + 8.5 * step), ylim=(0.0, 2.0))
curves.set_ylabel("force of the ground\n/ body weight", color="tab:blue")
torque = curves.twinx()
torque.plot(clip.time, shoulder, color="tab:orange")
torque.set(ylim=(0.0, None))
torque.set_ylabel("torque of a shoulder [N m]", color="tab:orange")
figure.tight_layout()
plt.show()
