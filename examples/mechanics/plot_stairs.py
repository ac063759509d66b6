"""
A fall down the stairs
======================

A humanoid with a little strength in its joints is pushed over the edge of a stair, tumbles, and comes to
rest on the ground, which then bears its weight. Nothing sinks into anything, and energy is only lost.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da


def at(*place):
    return da.Transform.from_rotation_translation(np.eye(3), place)


builder = da.ModelBuilder()
builder.add_body("stairs", "world", da.Fixed())
for k in range(3):
    step = da.shapes.Box((0.9, 2.0, 0.17), placement=at(-0.3 * k - 0.45, 0.0, 0.17 * (k + 0.5)))
    builder.add_shape("stairs", step)
model = da.models.humanoid().attach(builder.build()).lumped().with_ground()
q, v = model.neutral(), np.eye(model.nv)[3]  # forward, 1 m/s
q[:3] = -0.75, 0.0, 1.45
servo = da.control.Servo(kp=15.0, kd=3.0)
fall = da.rollout(model, q, v, servo, steps=2500, dt=0.002, contact="rigid")

plt.figure(figsize=(10, 2.2), layout="tight")
path = da.viewer.contact_sheet(fall, tempfile.mkdtemp() + "/fall.png", times=0.25 * np.arange(8))
plt.imshow(plt.imread(path))
plt.axis("off")
plt.show()
