"""
Getting up with the least effort
================================

Given how a person crouches and how they stand and point ahead, how do they get from one to the other? One
answer is: with the least torque. ``da.motion.transition`` seeks it among all motions that splines can
describe, by descent on :math:`\\int \\sum_i \\tau_i^2\\,dt` (Rose, Guenter, Bodenheimer and Cohen 1996).
Nobody tells the figure to lean forward before it rises, nor when to swing its arms.
"""

# %%
# The two poses of the bundled humanoid. Hips, knees and ankles bend so that the soles stay flat, and the
# pelvis is placed so that they stay where they are.

import matplotlib.pyplot as plt
import numpy as np

import dalembert as da

model = da.models.humanoid()
FEET = ["left_sole", "right_sole"]


def pose(bend, lean, raised):
    q = model.neutral()
    q[model.joint("lumbar").q_slice] = [lean, 0.0, 0.0]
    for side in ("left", "right"):
        q[model.joint(f"{side}_hip").q_slice] = [-bend, 0.0, 0.0]
        q[model.joint(f"{side}_knee").q_slice] = 2.0 * bend
        q[model.joint(f"{side}_ankle").q_slice] = [-bend, 0.0]
        q[model.joint(f"{side}_elbow").q_slice] = 0.15
        q[model.joint(f"{side}_shoulder").q_slice] = [np.cos(raised / 2), 0.0, -np.sin(raised / 2), 0.0]
    sole = da.forward_kinematics(model, q)["left_sole"].translation
    q[:3] -= sole - [0.0, 0.09, 0.0]
    return q


crouching, standing = pose(0.9, 0.6, 0.0), pose(0.1, 0.0, 1.6)

# %%
# The soles are in contact: loop joints hold them to the ground, which pushes them with whatever forces serve
# best. Nothing else holds the figure, and no force acts at its root.

move = da.motion.transition(
    model,
    crouching,
    standing,
    0.8,
    knots=8,
    contacts=FEET,
    smoothness=0.2,
    tolerance=1e-5,
)
print(move)
print(f"soles in place within {move.loop_error:.0e} m")
print(f"force at the root: at most {np.abs(move.residual[:, 3:]).max():.1f} N")

# %%
# The search starts with a motion that is the same on both sides and leaves it: to swing one arm after the
# other costs less. Nine moments of the motion, the forces of the ground under each foot, and how the energy
# fell.

poses = da.forward_kinematics(model, move.clip.q)
bones = [(body.name, model.bodies[body.parent].name) for body in model.bodies if body.parent >= 0]
bones += [
    (tip, model.bodies[model.frame(tip).body].name) for tip in ("head_top", "left_toe_tip", "right_toe_tip")
]
bones += [(palm, palm.replace("palm", "hand")) for palm in ("left_palm", "right_palm")]
to_the_right, upward = np.array([0.9, -0.35, 0.0]), np.array([-0.05, -0.1, 1.0])
colours = plt.get_cmap("viridis")
moments = np.linspace(0, len(move.clip) - 1, 9).round().astype(int)

figure = plt.figure(figsize=(9, 5.4))
strip = figure.add_subplot(2, 1, 1)
for number, k in enumerate(moments):
    colour = colours(0.85 * number / 8)
    for a, b in bones:
        ends = np.array([poses[a].translation[k], poses[b].translation[k]])
        strip.plot(1.05 * number + ends @ to_the_right, ends @ upward, "-", color=colour, lw=2.0)
    head = 0.4 * poses["head"].translation[k] + 0.6 * poses["head_top"].translation[k]
    strip.plot(1.05 * number + head @ to_the_right, head @ upward, "o", color=colour, ms=8)
strip.axhline(-0.02, color="0.75", lw=1.0, zorder=0)
strip.set(aspect="equal")
strip.axis("off")

ground = figure.add_subplot(2, 2, 3)
weight = model.total_mass * 9.81
upward_forces = move.contact_forces[:, :, 5] / weight
ground.plot(move.clip.time, upward_forces[:, 0], label="left foot")
ground.plot(move.clip.time, upward_forces[:, 1], label="right foot")
ground.plot(move.clip.time, upward_forces.sum(axis=1), color="0.3", label="both")
ground.axhline(1.0, color="0.75", lw=1.0, zorder=0)
ground.set(xlabel="time [s]", ylabel="force of the ground\n/ body weight", ylim=(0.0, None))
ground.legend(frameon=False, fontsize=8)

fall = figure.add_subplot(2, 2, 4)
fall.semilogx(1 + np.arange(len(move.energies)), move.energies / 1000.0, color="tab:green")
fall.set(xlabel="iterations", ylabel="energy [$10^3$ N²m²s]", ylim=(0.0, None))
figure.tight_layout()
plt.show()
