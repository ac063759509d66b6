"""
Weighing an arm by moving it
============================

A robot cannot be put on scales link by link, but its motors can feel it. The torques of a motion are linear
in the inertial parameters of the links, so that a recording of torques, noise and all, gives back every
combination of them that matters. Here an arm of six joints is moved for a few seconds, its torques get noise
of 1 %, and the parameters are solved for with more and more of the recording.
"""

# %%
# The arm, and the 36 combinations of its 60 parameters that torques show.

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da

model = da.models.arm6()
base = da.base_parameters(model)
true = base.of(da.inertial_parameters(model))
print(base)


# %%
# A motion of all joints in five harmonics, the torques that it takes, and what a sensor makes of them.


def swing(seed, t, period=5.0, harmonics=5):
    rng = np.random.default_rng(seed)
    t = t[:, None, None]
    w = 2.0 * np.pi / period * np.arange(1, harmonics + 1)[:, None]
    A, B = 0.5 * rng.standard_normal((2, harmonics, model.nv))
    q = A * np.sin(w * t) + B * np.cos(w * t)
    v = w * (A * np.cos(w * t) - B * np.sin(w * t))
    return q.sum(1), v.sum(1), (-w * w * q).sum(1)


t = np.arange(0.0, 20.0, 1e-3)
motion = swing(0, t)
exact = da.inverse_dynamics(model, *motion)
noise = 0.01 * np.sqrt((exact**2).mean(axis=0))
tau = exact + noise * np.random.default_rng(1).standard_normal(exact.shape)

# %%
# Least squares with the regressor, each joint weighed by its noise, on samples drawn from the recording.

W = base.reduced(da.inverse_dynamics_regressor(model, *motion)) / noise[:, None]
y = tau / noise
counts = np.unique(np.geomspace(20, len(t), 12).astype(int))
errors, found = [], []
for count in counts:
    rows = np.random.default_rng(2).choice(len(t), count, replace=False)
    beta = np.linalg.lstsq(W[rows].reshape(-1, len(base)), y[rows].ravel(), rcond=None)[0]
    found.append(beta)
    errors.append(np.linalg.norm(beta - true) / np.linalg.norm(true))
print(f"with all samples the base parameters are found to {errors[-1]:.3%}")

# %%
# The error falls with the root of the number of samples. The parameters that were found foretell the torques
# of a motion that was not recorded.

later = np.arange(0.0, 5.0, 1e-2)
other = swing(7, later)
expected = da.inverse_dynamics(model, *other)
foretold = base.reduced(da.inverse_dynamics_regressor(model, *other)) @ found[-1]

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
left.loglog(counts, errors, "o-", label="found")
left.loglog(counts, errors[0] * np.sqrt(counts[0] / counts), "--", color="gray", label="root of the samples")
left.axhline(0.01, color="tab:red", linewidth=0.8, label="1 %")
left.set_xlabel("samples")
left.set_ylabel("relative error of the base parameters")
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
