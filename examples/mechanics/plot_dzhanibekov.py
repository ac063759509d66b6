r"""
The Dzhanibekov effect
======================

In weightlessness a wing nut spins off its bolt, and turns over; and turns over again. Spin about the axis of
the middle moment of inertia is unstable; about the two others it is stable. Between two turns passes the time
:math:`2 K(k) / p` of Euler's equations, while the angular momentum stays as it is.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ellipk

import dalembert as da

I1, I2, I3 = moments = np.array([1.0, 2.0, 2.8]) * 1e-4
builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
builder.add_body("nut", "world", da.Free(), inertia=da.RigidInertia(0.1, (0, 0, 0), tuple(moments)))
model = builder.build()
v = np.zeros((3, 6))
v[:, :3] = 12.0 * np.eye(3) + 0.01 * np.eye(3)[[2, 2, 0]]
spins = da.rollout(model, np.tile(model.neutral(), (3, 1)), v, steps=10000, dt=0.001, integrator="rk4")

energy, momentum = moments @ v[1, :3] ** 2, moments**2 @ v[1, :3] ** 2  # twice the energy, momentum squared
p = np.sqrt((I3 - I2) * (momentum - energy * I1) / (I1 * I2 * I3))
between = 2.0 * ellipk((I2 - I1) * (energy * I3 - momentum) / ((p**2) * I1 * I2 * I3)) / p

figure, axes = plt.subplots(1, 3, figsize=(9, 3.0), layout="tight", sharey=True)
for k, picture in enumerate(axes):
    picture.plot(spins.time, spins.v[k, :, :3])
    picture.set(title=f"spin about the {('least', 'middle', 'greatest')[k]} axis", xlabel="time [s]")
axes[0].legend(axes[0].lines, ("least", "middle", "greatest"), title="along axis", loc="lower center")
axes[0].set_ylabel("angular velocity,\nbody axes [rad/s]")
plt.show()
