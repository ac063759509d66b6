"""Gymnasium's MuJoCo tasks, version 5, from the model files that Gymnasium installs.

Observation, reward, termination and start are those of `gymnasium.envs.mujoco.*_v5` with their default
options, as functions of the state at the end of a control step. MuJoCo's own environments take quantities
that follow from poses (positions of bodies, centers of mass, `cinert`, `cvel`) at the start of the last
physics step of a control step, which they have from its equations; here they belong to the state that is
observed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from dalembert.algorithms.springs import actuator_forces, clip_to_range
from dalembert.call.arguments import Array
from dalembert.envs.task import Moment, NoisyStart, Normal, Random, Task, Terms, Uniform, installed_model
from dalembert.model.body import Frame
from dalembert.model.model import Model
from dalembert.model.tree import PerBody
from dalembert.scalar import Scalar, absolute, cos, logical_and, minimum, select, sin, sqrt
from dalembert.spatial import Force, RigidInertia, Transform, Vec3
from dalembert.spatial.symmetric import rotate_symmetric

# What the tasks share.


def _file(name: str) -> Callable[[], tuple[Model, Array]]:
    return installed_model("gymnasium", f"envs/mujoco/assets/{name}")


def _squares(values: Sequence[Scalar]) -> Scalar:
    return sum((x * x for x in values), 0.0)


def _clip(values: Sequence[Scalar], bound: float) -> list[Scalar]:
    return [clip_to_range(x, (-bound, bound)) for x in values]


def _mujoco_velocity(now: Moment) -> list[Scalar]:
    """Return qvel: the linear velocity of a free root along world axes, then the angular one."""
    velocity = now.velocities[0]
    return [*(now.poses[0].R @ velocity.linear), *velocity.angular, *now.v[6:]]


def _mean_rate(now: Moment, place: int) -> Scalar:
    """Return the mean velocity of a position variable in the control step."""
    return (now.q[place] - now.q_before[place]) / now.dt


def _plane_position(now: Moment) -> Terms:
    """Return where the root is, and its distance from the origin."""
    x, y = now.q[0], now.q[1]
    return {"x_position": x, "y_position": y, "distance_from_origin": sqrt(x * x + y * y)}


def _plane_info(now: Moment) -> Terms:
    """Return where the root is, and its mean velocity in the control step."""
    return {**_plane_position(now), "x_velocity": _mean_rate(now, 0), "y_velocity": _mean_rate(now, 1)}


# Half cheetah, hopper, walker: planar figures; the first three joints are x, z and the pitch.


def _cheetah_reward(now: Moment) -> Terms:
    return {"reward_forward": _mean_rate(now, 0), "reward_ctrl": -0.1 * _squares(now.action)}


HALF_CHEETAH = Task(
    "HalfCheetah",
    _file("half_cheetah.xml"),
    observation=lambda now: [*now.q[1:], *now.v],
    reward=_cheetah_reward,
    info=lambda now: {"x_position": now.q[0], "x_velocity": _mean_rate(now, 0)},
    start=NoisyStart(Uniform(0.1), Normal(0.1)),
)


def _hopper_healthy(now: Moment) -> Scalar:
    """Return whether height and pitch are those of standing, and no number of the state exceeds 100."""
    upright = logical_and(now.q[1] > 0.7, absolute(now.q[2]) < 0.2)
    for x in (*now.q[2:], *now.v):
        upright = logical_and(upright, absolute(x) < 100.0)
    return upright


def _walker_healthy(now: Moment) -> Scalar:
    """Return whether height and pitch are those of walking."""
    z, pitch = now.q[1:3]
    return logical_and(logical_and(z > 0.8, z < 2.0), absolute(pitch) < 1.0)


def _runner(name: str, file: str, healthy: Callable[[Moment], Scalar]) -> Task:
    """Return the task of a planar figure that must not fall."""

    def reward(now: Moment) -> Terms:
        return {
            "reward_forward": _mean_rate(now, 0),
            "reward_ctrl": -1e-3 * _squares(now.action),
            "reward_survive": select(healthy(now), 1.0, 0.0),
        }

    def info(now: Moment) -> Terms:
        raised = now.q[1] - INITIAL_HEIGHT
        return {"x_position": now.q[0], "z_distance_from_origin": raised, "x_velocity": _mean_rate(now, 0)}

    return Task(
        name,
        _file(file),
        observation=lambda now: [*now.q[1:], *_clip(now.v, 10.0)],
        reward=reward,
        termination=lambda now: 1.0 - select(healthy(now), 1.0, 0.0) > 0.0,
        info=info,
        time_step=0.002,
        frame_skip=4,
        start=NoisyStart(Uniform(5e-3), Uniform(5e-3)),
    )


INITIAL_HEIGHT = 1.25
"""[m] The height in which the files of hopper and walker place the root."""

HOPPER = _runner("Hopper", "hopper.xml", _hopper_healthy)
WALKER = _runner("Walker2d", "walker2d_v5.xml", _walker_healthy)

# Bodies of MuJoCo: also links without a joint, which are merged into their parents here.


ANT_LINKS = (
    "torso",
    *("front_left_leg", "aux_1", "body_4", "front_right_leg", "aux_2", "body_7"),
    *("back_leg", "aux_3", "body_10", "right_back_leg", "aux_4", "body_13"),
)
HUMANOID_LINKS = (
    *("torso", "lwaist", "pelvis", "right_thigh", "right_shin", "right_foot"),
    *("left_thigh", "left_shin", "left_foot", "right_upper_arm", "right_lower_arm"),
    *("left_upper_arm", "left_lower_arm"),
)
"""MuJoCo's bodies in its order."""


def _links(model: Model, names: Sequence[str]) -> list[tuple[Frame, RigidInertia]]:
    """Return links as frames, with their inertias in these frames, without what was merged into them."""
    found = []
    for name in names:
        frame = model.frame(name)
        if frame.inertia is not None:
            found.append((frame, frame.inertia))
            continue
        own = model.bodies[frame.body].inertia
        for other in model.frames:
            if other.body == frame.body and other.inertia is not None:
                own = own - other.placement.rigid_to_parent(other.inertia)
        found.append((frame, own))
    return found


def _center_of_mass(now: Moment, poses: PerBody[Transform]) -> Vec3:
    """Return the center of mass of all bodies [m]."""
    total: Vec3 = Vec3.zero()
    for body in now.model.bodies:
        total += poses[body].transform_point(body.inertia.com) * body.inertia.mass
    center: Vec3 = total / now.model.total_mass
    return center


def _cinert(now: Moment, center: Vec3) -> list[Scalar]:
    """Return MuJoCo's `cinert`: inertias in world axes about the center of mass of all, first moments
    about it, and masses."""
    found: list[Scalar] = []
    for frame, inertia in _links(now.model, HUMANOID_LINKS):
        X = now.poses[frame.body] @ frame.placement
        d, m = X.transform_point(inertia.com) - center, inertia.mass
        I = rotate_symmetric(X.R, inertia.inertia_at_com)
        found += [I.xx + m * (d.y * d.y + d.z * d.z), I.yy + m * (d.x * d.x + d.z * d.z)]
        found += [I.zz + m * (d.x * d.x + d.y * d.y)]
        found += [I.xy - m * d.x * d.y, I.xz - m * d.x * d.z, I.yz - m * d.y * d.z]
        found += [m * d.x, m * d.y, m * d.z, m]
    return found


def _cvel(now: Moment, center: Vec3) -> list[Scalar]:
    """Return MuJoCo's `cvel`: angular velocities, and velocities of the bodies' points at the center of
    mass of all, in world axes."""
    found: list[Scalar] = []
    for frame, _ in _links(now.model, HUMANOID_LINKS):
        X, u = now.poses[frame.body], now.velocities[frame.body]
        turn = X.R @ u.angular
        found += [*turn, *(X.R @ u.linear + turn.cross(center - X.p))]
    return found


def _cfrc_ext(now: Moment, links: Sequence[str]) -> list[Scalar]:
    """Return MuJoCo's `cfrc_ext`: contact forces on the bodies, moments about the center of mass of all."""
    found, center = list[Scalar](), _center_of_mass(now, now.poses)
    for name in links:
        load = now.loads.get(name, Force.zero())
        found += [*(load.angular - center.cross(load.linear)), *load.linear]
    return found


# Ant.


def _ant_healthy(now: Moment) -> Scalar:
    """Return whether the height of the torso is that of walking, and the state is finite."""
    z = now.q[2]
    size = sum((absolute(x) for x in (*now.q, *now.v)), 0.0)
    return logical_and(logical_and(z >= 0.2, z <= 1.0), size < math.inf)


def _ant_contact(now: Moment) -> list[Scalar]:
    return _clip(_cfrc_ext(now, ANT_LINKS), 1.0)


def _ant_reward(now: Moment) -> Terms:
    return {
        "reward_forward": _mean_rate(now, 0),
        "reward_ctrl": -0.5 * _squares(now.action),
        "reward_contact": -5e-4 * _squares(_ant_contact(now)),
        "reward_survive": select(_ant_healthy(now), 1.0, 0.0),
    }


ANT = Task(
    "Ant",
    _file("ant.xml"),
    observation=lambda now: [*now.q[2:], *_mujoco_velocity(now), *_ant_contact(now)],
    reward=_ant_reward,
    termination=lambda now: 1.0 - select(_ant_healthy(now), 1.0, 0.0) > 0.0,
    info=_plane_info,
    start=NoisyStart(Uniform(0.1), Normal(0.1)),
)

# Humanoid.


def _humanoid_observation(now: Moment) -> list[Scalar]:
    center = _center_of_mass(now, now.poses)
    forces = actuator_forces(now.model, now.q, now.v, now.action)
    body_terms = [*_cinert(now, center), *_cvel(now, center), *forces[6:], *_cfrc_ext(now, HUMANOID_LINKS)]
    return [*now.q[2:], *_mujoco_velocity(now), *body_terms]


def _impact_cost(now: Moment, weight: float) -> Scalar:
    """Return the cost of contact forces, at most 10."""
    return minimum(weight * _squares(_cfrc_ext(now, HUMANOID_LINKS)), 10.0)


def _humanoid_velocity(now: Moment) -> Vec3:
    """Return the mean velocity of the center of mass in the control step."""
    return (_center_of_mass(now, now.poses) - _center_of_mass(now, now.poses_before)) / now.dt


def _humanoid_healthy(now: Moment) -> Scalar:
    return logical_and(now.q[2] > 1.0, now.q[2] < 2.0)


def _humanoid_reward(now: Moment) -> Terms:
    return {
        "reward_survive": select(_humanoid_healthy(now), 5.0, 0.0),
        "reward_forward": 1.25 * _humanoid_velocity(now).x,
        "reward_ctrl": -0.1 * _squares(now.action),
        "reward_contact": -_impact_cost(now, 5e-7),
    }


def _humanoid_info(now: Moment) -> Terms:
    u = _humanoid_velocity(now)
    return {**_plane_position(now), "x_velocity": u.x, "y_velocity": u.y}


HUMANOID = Task(
    "Humanoid",
    _file("humanoid.xml"),
    observation=_humanoid_observation,
    reward=_humanoid_reward,
    termination=lambda now: 1.0 - select(_humanoid_healthy(now), 1.0, 0.0) > 0.0,
    info=_humanoid_info,
    time_step=0.003,
    start=NoisyStart(Uniform(1e-2), Uniform(1e-2)),
)


def _standup_reward(now: Moment) -> Terms:
    return {
        "reward_linup": now.q[2] / STANDUP_TIME_STEP,
        "reward_quadctrl": -0.1 * _squares(now.action),
        "reward_impact": -_impact_cost(now, 0.5e-6),
        "reward_alive": 1.0 + 0.0 * now.time,
    }


STANDUP_TIME_STEP = 0.003
"""[s] The task's reward is the height divided by the time step of its physics."""

HUMANOID_STANDUP = Task(
    "HumanoidStandup",
    _file("humanoidstandup.xml"),
    observation=_humanoid_observation,
    reward=_standup_reward,
    info=lambda now: {
        "x_position": now.q[0],
        "y_position": now.q[1],
        "z_distance_from_origin": now.q[2] - 0.105,
    },
    time_step=STANDUP_TIME_STEP,
    start=NoisyStart(Uniform(1e-2), Uniform(1e-2)),
)

# Pendulums on a cart.


def _is_tilted(now: Moment) -> Scalar:
    return absolute(now.q[1]) > 0.2


INVERTED_PENDULUM = Task(
    "InvertedPendulum",
    _file("inverted_pendulum.xml"),
    observation=lambda now: [*now.q, *now.v],
    reward=lambda now: {"reward_survive": select(_is_tilted(now), 0.0, 1.0)},
    termination=_is_tilted,
    time_step=0.02,
    frame_skip=2,
    start=NoisyStart(Uniform(0.01), Uniform(0.01)),
)


def _double_pendulum_observation(now: Moment) -> list[Scalar]:
    angles = now.q[1:]
    return [now.q[0], *map(sin, angles), *map(cos, angles), *_clip(now.v, 10.0), 0.0 * now.time]


def _is_low(now: Moment) -> Scalar:
    return now.position("tip").z <= 1.0


def _double_pendulum_reward(now: Moment) -> Terms:
    x, _, y = now.position("tip")
    v1, v2 = now.v[1:]
    return {
        "reward_survive": select(_is_low(now), 0.0, 10.0),
        "distance_penalty": -(0.01 * x * x + (y - 2.0) * (y - 2.0)),
        "velocity_penalty": -(1e-3 * v1 * v1 + 5e-3 * v2 * v2),
    }


INVERTED_DOUBLE_PENDULUM = Task(
    "InvertedDoublePendulum",
    _file("inverted_double_pendulum.xml"),
    observation=_double_pendulum_observation,
    reward=_double_pendulum_reward,
    termination=_is_low,
    start=NoisyStart(Uniform(0.1), Normal(0.1)),
)

# Arms that reach and push.


@final
@dataclass(frozen=True)
class ReacherStart:
    """The target lies anywhere within 0.2 m of the origin."""

    def __call__(self, model: Model, q: Array, random: Random) -> tuple[Array, Array]:
        """Return the states in which episodes begin."""
        found, v = q + random.uniform(-0.1, 0.1, 4), random.uniform(-0.005, 0.005, 4)
        radius, angle = 0.2 * np.sqrt(random.uniform(0.0, 1.0, 1)), random.uniform(0.0, 2.0 * math.pi, 1)
        found[:, 2:] = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        v[:, 2:] = 0.0
        return found, v


def _reacher_observation(now: Moment) -> list[Scalar]:
    angles = now.q[:2]
    way = now.position("fingertip") - now.position("target")
    return [*map(cos, angles), *map(sin, angles), *now.q[2:], *now.v[:2], way.x, way.y]


def _reacher_reward(now: Moment) -> Terms:
    way = now.position("fingertip") - now.position("target")
    return {"reward_dist": -way.norm(), "reward_ctrl": -_squares(now.action)}


REACHER = Task(
    "Reacher",
    _file("reacher.xml"),
    observation=_reacher_observation,
    reward=_reacher_reward,
    frame_skip=2,
    episode_steps=50,
    start=ReacherStart(),
)


@final
@dataclass(frozen=True)
class PusherStart:
    """The object lies anywhere in a rectangle, more than 0.17 m from the goal."""

    tries: int = 32

    def __call__(self, model: Model, q: Array, random: Random) -> tuple[Array, Array]:
        """Return the states in which episodes begin: the first of the object's places that is far enough."""
        v = random.uniform(-0.005, 0.005, 11)
        v[:, -4:] = 0.0
        places = random.uniform(-0.2, [0.1, 0.2] * self.tries, 2 * self.tries).reshape(len(v), -1, 2)
        places[..., 0] -= 0.1
        first = np.argmax(np.linalg.norm(places, axis=-1) > 0.17, axis=1)
        found = np.repeat(q[np.newaxis], len(v), axis=0)
        found[:, -4:-2], found[:, -2:] = places[np.arange(len(v)), first], 0.0
        return found, v


def _pusher_observation(now: Moment) -> list[Scalar]:
    places = [x for name in ("tips_arm", "object", "goal") for x in now.position(name)]
    return [*now.q[:7], *now.v[:7], *places]


def _pusher_reward(now: Moment) -> Terms:
    tips, thing, goal = (now.position(name) for name in ("tips_arm", "object", "goal"))
    return {
        "reward_dist": -(thing - goal).norm(),
        "reward_ctrl": -0.1 * _squares(now.action),
        "reward_near": -0.5 * (thing - tips).norm(),
    }


PUSHER = Task(
    "Pusher",
    _file("pusher_v5.xml"),
    observation=_pusher_observation,
    reward=_pusher_reward,
    episode_steps=100,
    start=PusherStart(),
)


def _swimmer_reward(now: Moment) -> Terms:
    return {"reward_forward": _mean_rate(now, 0), "reward_ctrl": -1e-4 * _squares(now.action)}


SWIMMER = Task(
    "Swimmer",
    _file("swimmer.xml"),
    observation=lambda now: [*now.q[2:], *now.v],
    reward=_swimmer_reward,
    info=_plane_info,
    frame_skip=4,
    start=NoisyStart(Uniform(0.1), Uniform(0.1)),
)

TASKS = {
    task.name: task
    for task in (
        HALF_CHEETAH, HOPPER, WALKER, ANT, HUMANOID, HUMANOID_STANDUP, INVERTED_PENDULUM,
        INVERTED_DOUBLE_PENDULUM, REACHER, PUSHER, SWIMMER,
    )
}  # fmt: skip
"""Gymnasium's tasks by name."""
