r"""
A falling cat turns over
========================

A cat dropped on its back has no angular momentum and gets none, yet it lands on its feet: it bends its back
by an angle 2h and lets the bend go around once. The halves roll on each other then, and with moments of
inertia A along the back and B across, the cat turns by
:math:`2\pi \left(1 - \cos h / (\cos^2 h + (B / A) \sin^2 h)\right)`.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da

mass, length, radius, dt = 1.5, 0.24, 0.07, 1e-4
A, B = mass * radius**2 / 2.0, mass * (radius**2 / 4.0 + length**2 / 12.0)
builder = da.ModelBuilder()
halves = (("front", "world", da.Free(), length / 2), ("rear", "front", da.Spherical(), -length / 2))
for name, parent, joint, x in halves:
    builder.add_body(name, parent, joint, inertia=da.RigidInertia(mass, (x, 0, 0), (A, B, B)))
    for size, z, red in (((length, 0.12, 0.12), 0.0, 0.9), ((0.05, 0.1, 0.1), -0.11, 0.4)):  # trunk and feet
        at = da.Transform.from_rotation_translation(np.eye(3), (x, 0.0, z))
        builder.add_shape(name, da.shapes.Box(size, placement=at, rgba=(red, 0.55 * red, 0.2 * red, 1.0)))
cat = builder.build()

# It bends, lets the bend go around, and stretches. The formula is a quadratic equation for cos h.
h = np.arccos((np.sqrt(A * A + B * (B - A)) - A) / (B - A))
time = np.arange(5001) * dt
half = np.interp(time, (0.0, 0.1, 0.4, 0.5), (0.0, h, h, 0.0))
around = np.interp(time, (0.1, 0.4), (0.0, 2.0 * np.pi))
q = np.zeros((5001, cat.nq))
q[:, 2], q[:, 4] = 1.5, 1.0  # on its back
q[:, 7], q[:, 9], q[:, 10] = np.cos(half), np.sin(half) * np.cos(around), np.sin(half) * np.sin(around)
v = da.difference(cat, q[:-1], q[1:]) / dt
servo = da.control.Servo(kp=2000.0, kd=20.0, q_ref=q[1:], v_ref=v, effort=np.inf)
fall = da.rollout(cat, q[0], 0 * v[0], servo, 5000, dt, integrator="variational", observe=["momentum"])

path = da.viewer.contact_sheet(fall, tempfile.mkdtemp() + "/cat.png", size=(150, 320))
plt.figure(figsize=(9, 2.6), layout="tight")
plt.imshow(plt.imread(path))
plt.axis("off")
plt.show()
