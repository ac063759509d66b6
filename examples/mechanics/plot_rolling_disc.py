r"""
Euler's disc
============

A coin that whirls on a table, its centre at rest, rolls on its rim and goes around at the rate
:math:`\Omega = \sqrt{4 g / (a \sin\alpha)}`, a its radius and :math:`\alpha` its inclination: the flatter,
the faster.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da
from dalembert.model.shapes import Ellipsoid

radius, mass, dt = 0.04, 0.4, 2e-5
builder = da.ModelBuilder()
disc = da.RigidInertia(mass, (0, 0, 0), (mass * radius**2 / 4, mass * radius**2 / 4, mass * radius**2 / 2))
builder.add_body("disc", "world", da.Free(), inertia=disc)
builder.add_shape("disc", Ellipsoid((radius, radius, radius / 200)))
model = builder.build().with_ground()

lean = np.radians(np.linspace(10.0, 60.0, 11))
formula = np.sqrt(4.0 * 9.81 / (radius * np.sin(lean)))
q, v = np.tile(model.neutral(), (11, 1)), np.zeros((11, 6))
q[:, 2], q[:, 3], q[:, 5] = radius * np.sin(lean), np.cos(lean / 2), np.sin(lean / 2)
v[:, 0] = -formula * np.sin(lean)  # about the diameter through the contact
motion = da.rollout(model, q, v, steps=20000, dt=dt, contact="rigid", every=10)
axis = motion.poses().rotation[..., 0, :, 2]
around = np.unwrap(np.arctan2(axis[..., 1], axis[..., 0]))
rates = (around[:, -1] - around[:, 0]) / motion.time[-1]

figure, (sheet, law) = plt.subplots(2, 1, figsize=(8, 4.8), layout="tight", height_ratios=(1, 2))
path = da.viewer.contact_sheet(motion[4], tempfile.mkdtemp() + "/disc.png", times=np.arange(8) * 0.02)
sheet.imshow(plt.imread(path))
sheet.axis("off")
law.plot(np.degrees(lean), formula, label="formula")
law.plot(np.degrees(lean), rates, "o", label="simulation")
law.set(xlabel="inclination [degrees]", ylabel="precession [rad/s]")
law.legend()
plt.show()
