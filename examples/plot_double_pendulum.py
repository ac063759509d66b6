"""
Where a double pendulum flips
=============================

A double pendulum that starts at rest either swings for ever or, sooner or later, throws its lower rod over
the top. When that happens depends on the start in a way that no formula captures. Here forty thousand
pendulums are released at once, one for each pair of starting angles; a batch is just one more axis in
front.
"""

# %%
# The bundled model hangs straight down at zero. The state of the whole batch has the shape ``(200, 200, 2)``.

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da

model = da.models.double_pendulum()
print(model.summary())

n = 200
angles = np.linspace(-np.pi, np.pi, n)
q = np.stack(np.meshgrid(angles, angles, indexing="ij"), axis=-1)
q[..., 1] -= q[..., 0]  # the axes of the picture are both angles from the vertical; joints are relative
v = np.zeros_like(q)
tau = np.zeros_like(q)

# %%
# Step them together and note the first time at which the lower rod passes the top.

dt, steps = 0.01, 1500
flip_time = np.full((n, n), np.nan)
for step in range(steps):
    q, v = da.step(model, q, v, tau, dt, integrator="rk4")
    flipped = np.isnan(flip_time) & (np.abs(q[..., 0] + q[..., 1]) > np.pi)
    flip_time[flipped] = (step + 1) * dt
print(f"{n * n * steps:,} steps of the fourth order; {np.isfinite(flip_time).mean():.0%} flipped")

# %%
# In the pale middle nothing flips within the fifteen seconds, mostly for want of energy. Around it,
# neighbours have nothing in common.

figure, axes = plt.subplots(figsize=(6.4, 5.4))
image = axes.imshow(
    flip_time.T, origin="lower", extent=(-180, 180, -180, 180), cmap="viridis_r", vmin=0, vmax=dt * steps
)
axes.set(xlabel="upper rod from the vertical [degrees]", ylabel="lower rod from the vertical [degrees]")
axes.set_facecolor("#f3efe4")
figure.colorbar(image, label="time until the lower rod flips [s]")
figure.tight_layout()
plt.show()
