"""
A four-bar linkage
==================

The shortest bar of this linkage turns all the way round while the rocker swings to and fro (Grashof). The
loop leaves one freedom: the angle of the rocker follows from that of the crank by geometry alone. Gravity
makes the crank run unevenly; the energy stays.
"""

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da

crank, coupler, rocker, ground = 0.3, 0.9, 0.7, 1.0
hinge = da.Revolute(axis=(0, -1, 0))


def at(x):
    return da.Transform.from_rotation_translation(np.eye(3), (x, 0, 0))


builder = da.ModelBuilder()
for name, parent, x, size in (
    ("crank", "world", 0.0, crank),
    ("coupler", "crank", crank, coupler),
    ("rocker", "world", ground, rocker),
):
    bar = da.RigidInertia(size, (size / 2, 0, 0), (1e-3, size**3 / 12, size**3 / 12))
    builder.add_body(name, parent, hinge, placement=at(x), inertia=bar)
builder.add_loop("pin", "coupler", "rocker", hinge, at(coupler), at(rocker))
model = builder.build()
q, v = da.constraints.close_loops(model, [0.5, 0.6, 1.9], [8.0, 0.0, 0.0], hold=["crank"])
motion = da.rollout(model, q, v, steps=4000, dt=0.0005, integrator="rk4", every=10)

figure, (drawing, graph) = plt.subplots(1, 2, figsize=(9, 3.6), layout="tight")
for a, _, b in motion.q[:160:10]:
    pins = np.array([0.0, crank * np.exp(1j * a), ground + rocker * np.exp(1j * b), ground])
    drawing.plot(pins.real, pins.imag, "o-", color="tab:blue", alpha=0.4)
drawing.set(aspect="equal", xlabel="x [m]", ylabel="z [m]")
graph.plot(motion.time, motion.q[:, [0, 2]], label=["crank", "rocker"])
graph.set(xlabel="time [s]", ylabel="angle [rad]")
graph.legend()
plt.show()
