"""
Weighing an arm by moving it
============================

A robot cannot be put on scales link by link, but its motors can feel it. The torques of a motion are linear
in the inertial parameters of the links, so that a recording of torques, noise and all, gives back every
combination of them that matters. Here an arm of six joints with equipment on every link is moved for a
minute, its torques get noise of 1 %, and every parameter that torques show is found to 1 % of itself.
"""

# %%
# The arm as drawn, the 36 combinations of its 60 parameters that torques show, and the arm as it is:
# something heavy is fixed to each link, off the planes of symmetry.

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da

model = da.models.arm6()
base = da.identification.base_parameters(model)
equipment = {
    "turret": (2.0, (-0.15, 0.10, -0.10)),
    "upper_arm": (5.0, (0.15, -0.20, 0.20)),
    "forearm": (3.0, (0.08, 0.10, 0.15)),
    "roll": (1.0, (0.08, 0.10, -0.12)),
    "wrist": (1.0, (0.10, -0.08, 0.12)),
    "flange": (1.0, (0.06, 0.10, 0.12)),
}
tens = da.identification.inertial_parameters(model).reshape(-1, 10)
for body, own in zip(model.bodies, tens, strict=True):
    mass, place = equipment[body.name]
    I = mass * (np.dot(place, place) * np.eye(3) - np.outer(place, place))
    own += [mass, *np.multiply(mass, place), I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
robot = da.identification.with_inertial_parameters(model, tens.ravel())
true = base.of(da.identification.inertial_parameters(robot))
print(base, f"smallest {np.abs(true).min():.4f}, largest {np.abs(true).max():.1f}")

# %%
# A motion that shows the parameters well, within the joints' limits; the torques that it takes, and what a
# sensor makes of them.

excitation = da.identification.exciting_motion(model)
t = np.arange(0.0, 60.0, 1e-3)
motion = excitation.at(t)
exact = da.inverse_dynamics(robot, *motion)
noise = 0.01 * np.sqrt((exact**2).mean(axis=0))
tau = exact + noise * np.random.default_rng(0).standard_normal(exact.shape)

# %%
# Weighted least squares, with standard deviations.

found = da.identification.identify(model, *motion, tau)
error = np.abs(found.values / true - 1.0)
print(f"condition number {found.condition_number:.1f}, largest error of a parameter {error.max():.2%}")

# %%
# Errors of all parameters, each relative to its own value, beside what the standard deviations say. On the
# right, the parameters that were found foretell the torques of a motion that was not recorded.

later = np.arange(0.0, 7.0, 1e-2)
other = da.identification.exciting_motion(model, period=7.0, trials=1, seed=5).at(later)
expected = da.inverse_dynamics(robot, *other)
foretold = base.reduced(da.identification.inverse_dynamics_regressor(model, *other)) @ found.values

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
sigma = found.standard_deviations / np.abs(true)
order = np.argsort(sigma)
left.semilogy(100.0 * error[order], "o", markersize=4, label="error")
left.semilogy(300.0 * sigma[order], "-", color="gray", label="3 standard deviations")
left.axhline(1.0, color="tab:red", linewidth=0.8, label="1 %")
left.set_xlabel("base parameters, the best known first")
left.set_ylabel("percent of its own value")
left.legend(frameon=False)
for joint in (1, 2):
    right.plot(later, expected[:, joint], color=f"C{joint}", label=model.joints[joint].name)
    right.plot(later, foretold[:, joint], ":", color="black")
right.set_xlabel("time [s]")
right.set_ylabel("torque [N m]")
right.set_title("another motion: torques, and foretold (dotted)", fontsize=10)
right.legend(frameon=False)
fig.tight_layout()
plt.show()
