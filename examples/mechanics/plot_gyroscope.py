r"""
A gyroscope precesses and nods
==============================

A top that spins at :math:`\omega_3` and leans by :math:`\theta` goes around at a steady rate :math:`\Omega`
if :math:`I_1 \Omega^2 \cos\theta - I_3 \omega_3 \Omega + m g l = 0`. Nudged, it nods as well, with the
frequency :math:`\sqrt{(I_3 \omega_3 / I_1 - 2 \Omega \cos\theta)^2 + (\Omega \sin\theta)^2}`; nudged harder,
it loops.
"""

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da

mass, length, about_axis, across, lean, spin = 0.5, 0.05, 4e-4, 3e-4, 0.5, 120.0
builder = da.ModelBuilder()
wheel = da.RigidInertia(mass, (0, 0, length), (across, across, about_axis))
builder.add_body("top", "world", da.Spherical(), inertia=wheel)
model = builder.build()

I1, I3 = across + mass * length**2, about_axis
c, s = np.cos(lean), np.sin(lean)
discriminant = (I3 * spin) ** 2 - 4.0 * I1 * c * mass * 9.81 * length
precession = (I3 * spin - np.sqrt(discriminant)) / (2.0 * I1 * c)
nutation = np.hypot(I3 * spin / I1 - 2.0 * precession * c, precession * s)

q = [np.cos(lean / 2), 0.0, np.sin(lean / 2), 0.0]
nudges = np.array([0.0, 0.01, 0.6, 4.0])  # of the leaning [rad/s]
v = [[-precession * s, nudge, spin] for nudge in nudges]
motion = da.rollout(model, np.tile(q, (4, 1)), v, steps=6000, dt=0.0005, integrator="rk4")
axis = motion.poses().rotation[..., 0, :, 2]

figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="tight")
for picture, k in zip(axes, (0, 2, 3), strict=True):
    picture.plot(axis[k, :, 0], axis[k, :, 1], lw=0.8)
    picture.set(aspect="equal", title=f"nudged by {nudges[k]:g} rad/s", xticks=[], yticks=[])
plt.show()
