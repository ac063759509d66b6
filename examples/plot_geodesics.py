"""
Straight lines of an arm
========================

Left alone, an arm without gravity moves along a geodesic: the straightest line of its configuration space,
with distances measured by the mass matrix. Here a fan of them leaves one posture of a two-link arm in all
directions, each with the same kinetic energy. The curves of equal time are circles of this geometry; what
makes them uneven is that stretching the elbow makes the shoulder heavier.
"""

# %%
# The start is one configuration; the directions have equal length in the metric M.

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da

model = da.models.two_link_arm()
start = np.array([0.0, 1.2])
M = da.mass_matrix(model, start)

count = 360
angle = np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
circle = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
v = np.linalg.solve(np.linalg.cholesky(M).T, circle.T).T
print("speeds from", *np.round(np.linalg.norm(v, axis=1)[[0, count // 4]], 3), "rad/s, all of K =",
      np.round(da.dynamics.kinetic_energy(model, start, v).max(), 3), "J")  # fmt: skip

# %%
# All geodesics at once: a batch of 360 starts.

dt, steps = 0.01, 260
q, v = da.geometry.geodesic(model, np.tile(start, (count, 1)), v, dt, steps)
drift = np.ptp(da.geometry.inner_product(model, q, v, v))
print(f"<v, v> changes by {drift:.1e} along the way")

# %%
# A vector that is carried parallel keeps its length and its angle to the path.

carried = da.geometry.parallel_transport(model, q, v, np.array([0.0, 1.0]), dt)

figure, axes = plt.subplots(figsize=(5.0, 7.6))
axes.plot(q[:, ::12, 0], q[:, ::12, 1], color="#1d4ed8", linewidth=0.8, alpha=0.7)
closed = np.concatenate([q, q[:, :1]], axis=1)
for step in range(40, steps + 1, 55):
    axes.plot(closed[step, :, 0], closed[step, :, 1], color="#c2410c", linewidth=1.4)
path = 48
along = q[::2, path][::13]
arrows = carried[:, path][::13]
axes.quiver(
    along[:, 0], along[:, 1], arrows[:, 0], arrows[:, 1], angles="xy", scale_units="xy", scale=1.2,
    color="#15803d", width=0.008, zorder=3,
)  # fmt: skip
axes.plot(*start, "o", color="black")
axes.set(xlabel="shoulder [rad]", ylabel="elbow [rad]", aspect="equal")
figure.tight_layout()
plt.show()
