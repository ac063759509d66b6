"""
A wing nut thrown into the air
==============================

A body that spins about its middle axis of inertia turns over again and again, although nothing touches it.
Its centre of mass does not notice: it follows the parabola of a thrown stone to rounding. The angular
momentum, seen from the world, stays as it was but for the error of the integrator.
"""

# %%
# One free body. Its principal moments of inertia differ, and the spin is about the middle one, almost.

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da

builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
builder.add_body(
    "nut",
    parent="world",
    joint=da.Free(),
    inertia=da.RigidInertia(0.1, (0.0, 0.0, 0.0), np.diag([1e-4, 2e-4, 2.8e-4])),
)
model = builder.build()
joint = model.joint("nut")

q = model.neutral()
v = np.zeros(model.nv)
v[joint.angular] = (0.01, 12.0, 0.01)
v[joint.linear] = (1.0, 0.0, 20.0)

# %%
# Fly for four seconds and keep the record.

dt, steps = 0.002, 2000
record_q, record_v = [q], [v]
for _ in range(steps):
    q, v = da.step(model, q, v, np.zeros(model.nv), dt, integrator="rk4")
    record_q.append(q)
    record_v.append(v)
q, v = np.array(record_q), np.array(record_v)
time = dt * np.arange(steps + 1)

# %%
# The functions of the library take the whole flight as one batch.

rotation = da.forward_kinematics(model, q)["nut"].rotation
momentum_body = v[:, joint.angular] * [1e-4, 2e-4, 2.8e-4]
momentum = np.einsum("tij,tj->ti", rotation, momentum_body)
height = q[:, joint.position][:, 2]
parabola = 20.0 * time - 0.5 * 9.81 * time**2

figure, (top, middle, bottom) = plt.subplots(3, 1, figsize=(7, 7), sharex=True)
for k, name in enumerate("xyz"):
    top.plot(time, v[:, joint.angular][:, k], label=rf"$\omega_{name}$")
top.set(ylabel="angular velocity,\nbody axes [rad/s]")
top.legend(loc="center right")
middle.plot(time, momentum - momentum[0])
middle.set(ylabel="change of angular\nmomentum [kg m²/s]")
bottom.plot(time, height - parabola)
bottom.set(ylabel="height minus\nparabola [m]", xlabel="time [s]")
figure.align_ylabels()
figure.tight_layout()
plt.show()
