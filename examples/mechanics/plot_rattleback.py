"""
A rattleback turns back
=======================

A boat-shaped stone, its mass askew to its keel, begins to rattle while it spins, stops, and turns back; soon
when it was spun one way, late when the other. Its mirror image does the opposite. The numbers are those of
Kane and Levinson (1982).
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da
from dalembert.model.shapes import Ellipsoid

askew = ((0.0002, -0.0002, 0.0), (-0.0002, 0.0016, 0.0), (0.0, 0.0, 0.0017))
builder = da.ModelBuilder()
builder.add_body("stone", "world", da.Free(), inertia=da.RigidInertia(1.0, (0.0, 0.0, -0.01), askew))
builder.add_shape("stone", Ellipsoid((0.2, 0.03, 0.02)))
model = builder.build().with_ground()
q, v = np.tile(model.neutral(), (2, 1)), np.zeros((2, 6))
q[:, 2], v[:, 1], v[:, 3] = 0.02, 0.1, 0.1 * 0.02  # level, rocking a little
v[:, 2] = 5.0, -5.0
motion = da.rollout(model, q, v, steps=175000, dt=2e-5, contact="rigid", every=100)

moments = np.arange(9) * 0.1
path = da.viewer.contact_sheet(motion[1], tempfile.mkdtemp() + "/stone.png", times=moments, size=(200, 130))
figure, (sheet, axes) = plt.subplots(2, 1, figsize=(9, 4.0), layout="tight", height_ratios=(1, 4))
sheet.imshow(plt.imread(path))
sheet.axis("off")
axes.plot(motion.time, motion.v[..., 2].T, label=["spun one way", "spun the other way"])
axes.set(xlabel="time [s]", ylabel="spin [rad/s]")
axes.legend()
plt.show()
