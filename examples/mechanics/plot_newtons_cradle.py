"""
Newton's cradle
===============

Five equal balls hang in a row, a tenth of a millimetre apart. One comes in, and one goes out at the other end
with all of its momentum and energy; two come in, and two go out. The gaps make it a sequence of collisions of
two balls each, and two equal balls exchange their velocities.
"""

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da

radius, length, mass, gap, n = 0.02, 0.3, 0.26, 1e-4, 5
builder = da.ModelBuilder()
for k in range(n):
    place = da.Transform.from_rotation_translation(np.eye(3), (k * (2 * radius + gap), 0, 0))
    bob = da.RigidInertia(mass, (0, 0, -length), (0.4 * mass * radius**2,) * 3)
    builder.add_body(f"ball {k}", "world", da.Revolute((0, -1, 0)), placement=place, inertia=bob)
    below = da.Transform.from_rotation_translation(np.eye(3), (0, 0, -length))
    ball = da.shapes.Sphere(radius, placement=below, restitution=1.0, friction=(0.0, 0.0, 0.0))
    builder.add_shape(f"ball {k}", ball)
model = builder.build()
q = -np.radians(25.0) * np.array([[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]])
stiff = da.contact.Rigid(compliance=1e-3)
motion = da.rollout(model, q, np.zeros((2, n)), steps=60000, dt=2e-5, contact=stiff, every=50)

figure, axes = plt.subplots(2, 1, figsize=(8, 4.4), layout="tight", sharex=True)
for picture, angles in zip(axes, np.degrees(motion.q), strict=True):
    picture.plot(motion.time, angles + 4.0 * np.arange(n))
    picture.set(yticks=[], ylabel="angles, one above\nthe other")
axes[1].set_xlabel("time [s]")
plt.show()
