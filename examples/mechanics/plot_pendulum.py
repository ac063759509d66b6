r"""
A pendulum that swings far is late
==================================

A pendulum's period grows with its amplitude a: :math:`T = 4 K(\sin\tfrac{a}{2}) \sqrt{l/g}`, K the complete
elliptic integral. One call of ``da.rollout`` swings forty pendulums at once.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ellipk

import dalembert as da

model = da.models.pendulum(length=1.0)
amplitudes = np.radians(np.linspace(4.0, 176.0, 40))
swing = da.rollout(model, amplitudes[:, None], np.zeros((40, 1)), steps=4000, dt=0.002, integrator="rk4")
angle, time = swing.q[..., 0], swing.time

# A quarter of a period ends where the angle first passes zero.
before = np.argmax(angle < 0.0, axis=1) - 1
left, right = np.take_along_axis(angle, np.stack([before, before + 1], axis=1), axis=1).T
periods = 4.0 * (time[before] + 0.002 * left / (left - right))
formula = 4.0 * ellipk(np.sin(amplitudes / 2.0) ** 2) / np.sqrt(9.81)

figure, (portrait, clock) = plt.subplots(1, 2, figsize=(9, 3.6), layout="tight")
portrait.plot(np.degrees(angle[::4]).T, swing.v[::4, :, 0].T, color="tab:blue", lw=0.8)
portrait.set(xlabel="angle [degrees]", ylabel="angular velocity [rad/s]")
clock.plot(np.degrees(amplitudes), formula, label="formula")
clock.plot(np.degrees(amplitudes), periods, ".", label="simulation")
clock.set(xlabel="amplitude [degrees]", ylabel="period [s]")
clock.legend()
plt.show()
