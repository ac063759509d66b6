r"""
A small ball on a large one
===========================

Drop two elastic balls together, the small one on top. The large one rebounds first and meets the small one,
which leaves with :math:`(3 - r) / (1 + r)` times the speed of its fall, r the ratio of the masses: it rises
up to nine times as high as it fell.
"""

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da

large, small, fall = 0.1, 0.03, 0.5
builder = da.ModelBuilder()
for name, radius in (("large", large), ("small", small)):
    body = da.RigidInertia(1.0, (0, 0, 0), (0.4 * radius**2,) * 3)
    builder.add_body(name, "world", da.Prismatic((0, 0, 1)), inertia=body)
    builder.add_shape(name, da.shapes.Sphere(radius, restitution=1.0))
model = builder.build().with_ground()

ratios = np.geomspace(1e-4, 0.3, 13)
q = np.tile([large + fall, 2.0 * large + small + fall + 1e-3], (13, 1))
masses = {"small.mass": ratios}
motion = da.rollout(
    model, q, np.zeros((13, 2)), steps=70000, dt=2e-5, every=100, contact="rigid", parameters=masses
)
height = motion.q[..., 1] - (2.0 * large + small)
expected = fall * ((3.0 - ratios) / (1.0 + ratios)) ** 2

figure, (flight, law) = plt.subplots(1, 2, figsize=(9, 3.6), layout="tight")
flight.plot(motion.time, motion.q[8, :, 0] - large, label="large ball")
flight.plot(motion.time, height[8], label=f"small ball, r = {ratios[8]:.2g}")
flight.set(xlabel="time [s]", ylabel="height [m]")
flight.legend()
law.semilogx(ratios, expected / fall, label=r"$((3 - r)/(1 + r))^2$")
law.semilogx(ratios, height.max(axis=1) / fall, "o", label="simulation")
law.set(xlabel="ratio of masses r", ylabel="height over height of fall")
law.legend()
plt.show()
