"""
A falling cat lands on its feet
===============================

A cat dropped upside down has no angular momentum and gets none on the way, since gravity acts at its centre
of mass. Yet it turns over: it bends its spine and lets the direction of the bend go once around. This is
*hybrid dynamics* (Featherstone 2008, chapter 9): the motion of the spine is prescribed, the forces in it and
the motion of the whole cat are computed.
"""

# %%
# Two halves of a cat and a spine that bends in two directions but does not twist. The halves are cylinders.
# Their own frames have x along the spine, z up through the back.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq

import dalembert as da

mass, length, radius = 1.5, 0.24, 0.07
moment = np.diag([0.5 * mass * radius**2] + 2 * [mass * (radius**2 / 4 + length**2 / 12)])

builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81))
builder.add_body("front", "world", da.Free(), inertia=da.RigidInertia(mass, (length / 2, 0, 0), moment))
builder.add_body(
    "rear",
    "front",
    da.joints.Universal((0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    joint_name="spine",
    inertia=da.RigidInertia(mass, (-length / 2, 0, 0), moment),
)
cat = builder.build()

# %%
# The spine bends to an angle, the bend goes around once, and the spine stretches again. `smooth` goes from 0
# to 1 without jerks.

duration, steps = 0.45, 1800
time = np.linspace(0.0, duration, steps + 1)


def smooth(s):
    s = np.clip(s, 0.0, 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s**2)


def spine(bend):
    """Angles, rates and accelerations of the spine at all times."""
    s = time / duration
    angle = bend * (smooth(s / 0.25) - smooth((s - 0.75) / 0.25))
    around = 2.0 * np.pi * smooth((s - 0.1) / 0.8)
    q = np.stack([angle * np.cos(around), angle * np.sin(around)], axis=1)
    v = np.gradient(q, time, axis=0)
    return q, v, np.gradient(v, time, axis=0)


# %%
# Without momentum the velocity of the front half follows from the spine alone:
# :math:`v_0 = -(I_0^c)^{-1} F \dot q`. Its integral is how far the cat turns. One batch of all times answers
# for one bend; which bend turns it by half a turn?


def turned(bend):
    q, v, _ = spine(bend)
    start = np.tile(cat.neutral(), (steps + 1, 1))
    start[:, 7:] = q
    parts = da.floating_base.floating_base_equations(cat, start, np.zeros(cat.nv))
    v_0 = -np.linalg.solve(parts.I_0, np.einsum("tij,tj->ti", parts.F, v)[..., None])[..., 0]
    pose = cat.neutral()
    for k in range(steps):
        step = np.zeros(cat.nv)
        step[:6] = 0.5 * (v_0[k] + v_0[k + 1]) * (time[k + 1] - time[k])
        pose = da.integrate(cat, pose, step)
    return 2.0 * np.arctan2(pose[4], pose[3])


def missing(bend):
    return abs(turned(bend)) - np.pi + 1e-3


bend = brentq(missing, 0.5, 2.6, xtol=1e-4)
print(f"A bend of {np.degrees(bend):.0f} degrees that goes around once turns the cat over.")

# %%
# Now the fall itself. At each time the spine's accelerations are given; `floating_base_inverse_dynamics`
# returns the acceleration of the front half and the torques in the spine. Heun's method does the steps.

angles, rates, accelerations = spine(bend)
dt = time[1] - time[0]


def moved(q, velocity, k):
    q = da.integrate(cat, q, np.concatenate([velocity * dt, [0.0, 0.0]]))
    q[7:] = angles[k]
    return q


q, v = cat.neutral(), np.zeros(cat.nv)
q[2] = 1.3
q[3:7] = (0.0, 1.0, 0.0, 0.0)  # on its back: half a turn about x
record_q, record_v, torques = [], [], []
for k in range(steps + 1):
    v[6:] = rates[k]
    a_0, tau = da.floating_base.floating_base_inverse_dynamics(cat, q, v, accelerations[k])
    record_q.append(q.copy())
    record_v.append(v.copy())
    torques.append(tau)
    if k < steps:
        ahead = np.concatenate([v[:6] + dt * a_0, rates[k + 1]])
        there = moved(q, v[:6], k + 1)
        a_1, _ = da.floating_base.floating_base_inverse_dynamics(cat, there, ahead, accelerations[k + 1])
        q = moved(q, 0.5 * (v[:6] + ahead[:6]), k + 1)
        v[:6] += 0.5 * dt * (a_0 + a_1)
q, v, torques = np.array(record_q), np.array(record_v), np.array(torques)

poses = da.forward_kinematics(cat, q)
momentum = da.dynamics.centroidal_momentum(cat, q, v)
back = poses["front"].rotation[:, 2, 2]  # the vertical part of the direction of its back
print(f"angular momentum stays below {np.abs(momentum[:, :3]).max():.1e} kg m^2/s")
print(f"at the end its back points {'up' if back[-1] > 0.9 else 'down'}")

# %%
# The cat at seven times, seen from the side and a little from the front, its feet drawn to tell up from down.

view = np.array([[0.94, -0.34, 0.0], [0.08, 0.22, 0.97]])


def draw(axes, k, shift):
    def place(body, points):
        pose = poses[body]
        return (pose.translation[k] + np.asarray(points) @ pose.rotation[k].T) @ view.T + shift

    for body, side, color in (("rear", -1.0, "#b5651d"), ("front", 1.0, "#d98841")):
        for x in (0.35, 0.75) if side < 0 else (0.35, 0.7):
            for y in (-0.6, 0.6):
                hip = (side * x * length, y * radius, -0.3 * radius)
                paw = (side * x * length, y * radius, -2.2 * radius)
                leg = place(body, [hip, paw])
                axes.plot(*leg.T, color="#7a4413", lw=3.2, solid_capstyle="round")
        trunk = place(body, [(0.0, 0.0, 0.0), (side * 0.9 * length, 0.0, 0.0)])
        axes.plot(*trunk.T, color=color, lw=18, solid_capstyle="round", zorder=3)
    head = place("front", [(1.2 * length, 0.0, 0.5 * radius)])[0]
    axes.add_patch(plt.Circle(head, 0.062, color="#e3a15c", zorder=4))
    for y in (-0.45, 0.45):
        ear = place(
            "front", [(1.15 * length, y * radius, 1.1 * radius), (1.15 * length, y * radius, 1.9 * radius)]
        )
        axes.plot(*ear.T, color="#7a4413", lw=3, zorder=5)
    tail = place(
        "rear",
        [(-length, 0, 0.2 * radius), (-1.3 * length, 0, 0.9 * radius), (-1.5 * length, 0, 2.0 * radius)],
    )
    axes.plot(*tail.T, color="#b5651d", lw=4, solid_capstyle="round", zorder=2)


figure = plt.figure(figsize=(9, 5.6))
grid = figure.add_gridspec(2, 3, height_ratios=[1.25, 1.0])
picture = figure.add_subplot(grid[0, :])
chosen = np.linspace(0, steps, 7).astype(int)
for column, k in enumerate(chosen):
    draw(picture, k, np.array([0.62 * column, 0.0]))
    picture.text(0.62 * column, -0.05, f"{1000 * time[k]:.0f} ms", ha="center", color="0.4")
picture.set(aspect="equal", xlim=(-0.45, 4.25), ylim=(-0.07, 1.55))
picture.axis("off")

for place, values, label in (
    (0, np.degrees(np.arccos(np.clip(back, -1.0, 1.0))), "back from the vertical [deg]"),
    (1, torques, "torques in the spine [N m]"),
    (2, momentum[:, :3], "angular momentum [kg m²/s]"),
):
    axes = figure.add_subplot(grid[1, place])
    axes.plot(1000 * time, values)
    axes.set(xlabel="time [ms]", title=label)
    axes.title.set_fontsize(10)
figure.axes[-1].set_ylim(-0.001, 0.001)
figure.tight_layout()
plt.show()
