"""
A fall down the stairs
======================

A figure of capsules, with some strength in its joints, walks over the edge of a stair, tumbles, and comes to
rest; what it lies on then bears its weight. Nothing sinks into anything.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da


def at(*place):
    return da.Transform.from_rotation_translation(np.eye(3), place)


builder = da.ModelBuilder()
for k in range(3):
    builder.add_shape("world", da.Box((0.9, 2.0, 0.17), placement=at(-0.3 * k - 0.45, 0.0, 0.17 * (k + 0.5))))
parts = [("torso", "world", (-0.75, 0.0, 1.428), da.Free(), 0.45, 0.13, 36.0)]
parts += [("head", "torso", (0.0, 0.0, 0.68), da.Spherical(), 0.06, 0.09, 5.0)]
for s, y in (("left", 1.0), ("right", -1.0)):
    parts += [(f"{s} arm", "torso", (0.0, 0.2 * y, 0.47), da.Spherical(), -0.26, 0.05, 2.0)]
    parts += [(f"{s} forearm", f"{s} arm", (0.0, 0.0, -0.3), da.Revolute((0, 1, 0)), -0.28, 0.045, 1.6)]
    parts += [(f"{s} thigh", "torso", (0.0, 0.1 * y, -0.06), da.Spherical(), -0.38, 0.075, 8.5)]
    parts += [(f"{s} shank", f"{s} thigh", (0.0, 0.0, -0.42), da.Revolute((0, 1, 0)), -0.38, 0.055, 4.5)]
for name, parent, place, joint, length, radius, mass in parts:
    capsule = da.Capsule(radius, abs(length), placement=at(0.0, 0.0, length / 2))
    builder.add_body(name, parent, joint, placement=at(*place), inertia=capsule.inertia(mass=mass))
    builder.add_shape(name, capsule)
model = builder.build().with_ground()
v = np.eye(model.nv)[3]  # forward, 1 m/s
servo, contact = da.control.Servo(kp=15.0, kd=3.0), da.contact.Rigid(self_collision=False)
fall = da.rollout(model, model.neutral(), v, servo, steps=1250, dt=0.002, contact=contact)

plt.figure(figsize=(10, 1.9), layout="tight")
path = da.viewer.contact_sheet(fall, tempfile.mkdtemp() + "/fall.png", times=0.2 * np.arange(8))
plt.imshow(plt.imread(path))
plt.axis("off")
plt.show()
