"""
A hand that draws while the elbow moves
=======================================

Seven joints are one more than a hand needs. Operational-space control gives the hand the dynamics of a mass
on a spring, and what the hand leaves free is free for something else. Here the hand draws a circle in the
air and keeps its orientation, while a spring in the null space pulls the joints to another posture halfway
through: the elbow swings over, and the drawing does not show it.
"""

# %%
# The arm, its hand, and the circle with its velocity and acceleration.

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da

model = da.models.arm7()
q = np.array([0.0, 0.6, 0.0, 1.4, 0.0, 1.0, 0.0])

tool = model.frame("tool")
offset = np.array(tool.placement.p.to_list())


def hand(q):
    pose = da.forward_kinematics(model, q)["hand"]
    return pose.rotation @ offset + pose.translation, pose.rotation


start, level = hand(q)
rotation = level @ np.array(tool.placement.R.to_list())
radius, period = 0.12, 2.0
center = start - [0.0, radius, 0.0]


def circle(t):
    angle = 2.0 * np.pi * t / period
    rate = 2.0 * np.pi / period
    across, along = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
    x = center + radius * (np.cos(angle) * across + np.sin(angle) * along)
    x_rate = radius * rate * (-np.sin(angle) * across + np.cos(angle) * along)
    return x, x_rate, -(rate**2) * (x - center)


# %%
# The task has six rows, angular first. The posture forces are projected, so that the hand does not feel them.
# The arm starts with the joint velocities of least kinetic energy that give the hand its speed on the circle.

v = da.control.consistent_inverse(model, q, "tool") @ np.concatenate([np.zeros(3), circle(0.0)[1]])
dt, steps = 0.002, 2000
postures = (q, q + [1.2, 0.0, -1.2, 0.0, 0.0, 0.0, 0.0])
record, errors = [], []
for step in range(steps):
    x, x_rate, x_second = circle(step * dt)
    posture = da.control.posture_forces(model, q, v, postures[step >= steps // 2], stiffness=20.0)
    tau = da.control.operational_space(
        model,
        q,
        v,
        "tool",
        x,
        rotation,
        velocity=np.concatenate([np.zeros(3), x_rate]),
        acceleration=np.concatenate([np.zeros(3), x_second]),
        stiffness=400.0,
        null_space=posture,
    )
    tau -= da.passive_forces(model, q, v)  # the joints of this arm have friction; the law does not know it
    q, v = da.step(model, q, v, tau, dt)
    record.append(q)
    errors.append(np.linalg.norm(hand(q)[0] - circle((step + 1) * dt)[0]))
record = np.array(record)
print(f"largest error of the hand: {1e3 * max(errors):.2f} mm")

# %%
# The whole motion is one batch of forward kinematics.

poses = da.forward_kinematics(model, record)
names = ("base_link", "upper_link", "lower_link", "hand")
points = np.stack([poses[name].translation for name in names], axis=1)
tips = np.array([hand(q)[0] for q in record])
points = np.concatenate([np.zeros((steps, 1, 3)), points, tips[:, None]], axis=1)

figure = plt.figure(figsize=(8, 4.6))
space = figure.add_subplot(1, 2, 1, projection="3d")
for step in (0, 500, 1000, 1250, 1500, 1999):
    color = plt.cm.viridis(step / steps)
    label = f"{step * dt:.1f} s"
    space.plot(*points[step].T, color=color, linewidth=2.5, marker="o", markersize=4, label=label)
space.plot(*tips.T, color="#c2410c", linewidth=2.5)
space.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]", xticks=[0.0, 0.2], yticks=[-0.2, 0.0, 0.2])
space.set_aspect("equal")
space.view_init(elev=18, azim=-35)
space.legend(fontsize="small", loc="center left", bbox_to_anchor=(-0.35, 0.5))

time = dt * np.arange(1, steps + 1)
top = figure.add_subplot(2, 2, 2)
top.plot(time, np.linalg.norm(points[:, 2] - points[0, 2], axis=1), color="#1d4ed8")
top.set(ylabel="elbow from\nits start [m]")
top.axvline(time[steps // 2], color="0.7", linestyle=":")
bottom = figure.add_subplot(2, 2, 4, sharex=top)
bottom.plot(time, 1e3 * np.array(errors), color="#c2410c")
bottom.axvline(time[steps // 2], color="0.7", linestyle=":")
bottom.set(ylabel="error of the\nhand [mm]", xlabel="time [s]")
figure.tight_layout()
plt.show()
