"""Legged robots that walk with a commanded velocity on flat ground.

An agent moves the targets of the joints' servos; the commands are velocities of the trunk along its own axes,
forward and to the left, and its turning rate. The rewards are those of Rudin, Hoeller, Reist and Hutter,
"Learning to Walk in Minutes Using Massively Parallel Deep Reinforcement Learning", 2021, Table 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import final

from dalembert.call.arguments import Array
from dalembert.contact.options import Compliant
from dalembert.envs.task import Moment, NoisyStart, Targets, Task, Terms, Uniform
from dalembert.errors import MissingExtraError
from dalembert.formats import load
from dalembert.model.model import Model
from dalembert.scalar import Scalar, exp, logical_or
from dalembert.spatial import Vec3


@final
@dataclass(frozen=True, kw_only=True)
class Robot:
    """A legged robot: its file in the package example-robot-data, the links that touch the ground, the height
    of the trunk [m] and the angles of joints [rad] by the endings of their names when it stands, the gains of
    its servos, and the range of commanded speeds forward [m/s]."""

    file: str
    feet: tuple[str, ...]
    height: float
    pose: Mapping[str, float]
    kp: float
    kd: float
    scale: float = 0.25
    speeds: tuple[float, float] = (-0.5, 1.0)

    def load(self) -> tuple[Model, Array]:
        """Return the model on flat ground, and how it stands."""
        try:
            files = metadata.files("example-robot-data") or []
        except metadata.PackageNotFoundError:
            raise MissingExtraError(
                f"{self.file} is in the package example-robot-data: pip install example-robot-data"
            ) from None
        [found] = [item for item in files if str(item).endswith(self.file)]
        model = load(Path(str(found.locate())), root="floating").with_ground()
        return model, self.stance(model)

    def stance(self, model: Model) -> Array:
        """Return the configuration in which the robot stands."""
        q = model.neutral()
        q[2] = self.height
        for body in model.bodies[1:]:
            angles = [angle for ending, angle in self.pose.items() if body.joint_name.endswith(ending)]
            q[body.q_slice] = angles[0] if angles else 0.0
        return q


def _gravity_direction(now: Moment) -> Vec3:
    """Return the direction of gravity along the trunk's axes."""
    down: Vec3 = now.poses[0].R.transposed_times(Vec3(0.0, 0.0, -1.0))
    return down


def _squares(*values: Scalar) -> Scalar:
    return sum((x * x for x in values), 0.0)


def velocity_tracking(name: str, robot: Robot) -> Task:
    """Return the task of walking with a commanded velocity."""

    def observation(now: Moment) -> list[Scalar]:
        trunk, command = now.velocities[0], [now.command[x] for x in ("forward", "left", "turn")]
        angles = [a - float(b) for a, b in zip(now.q[7:], robot.stance(now.model)[7:], strict=True)]
        return [
            *trunk.linear,
            *trunk.angular,
            *_gravity_direction(now),
            *command,
            *angles,
            *now.v[6:],
            *now.action,
        ]

    def reward(now: Moment) -> Terms:
        trunk, command, down = now.velocities[0], now.command, _gravity_direction(now)
        u, turn = trunk.linear, trunk.angular
        error = _squares(command["forward"] - u.x, command["left"] - u.y)
        changes = [a - b for a, b in zip(now.action, now.action_before, strict=True)]
        terms = {
            "velocity": exp(error / -0.25),
            "turn": 0.5 * exp(_squares(command["turn"] - turn.z) / -0.25),
            "heave": -2.0 * _squares(u.z),
            "roll_pitch": -0.05 * _squares(turn.x, turn.y),
            "tilt": -1.0 * _squares(down.x, down.y),
            "action_rate": -0.01 * _squares(*changes),
            "joint_rates": -1e-4 * _squares(*now.v[6:]),
        }
        return {key: now.dt * term for key, term in terms.items()}

    def termination(now: Moment) -> Scalar:
        return logical_or(_gravity_direction(now).z > -0.5, now.q[2] < 0.4 * robot.height)

    return Task(
        name,
        robot.load,
        observation,
        reward,
        termination,
        info=lambda now: {"height": now.q[2]},
        time_step=0.005,
        frame_skip=4,
        episode_steps=1000,
        contact=Compliant(pairs=list(robot.feet), self_collision=False),
        start=NoisyStart(Uniform(0.02), Uniform(0.1)),
        actions=Targets(robot.kp, robot.kd, robot.scale),
        commands={"forward": robot.speeds, "left": (-0.3, 0.3), "turn": (-0.7, 0.7)},
    )


LEGS = ("FL", "FR", "RL", "RR")
QUADRUPED_POSE = {"hip_joint": 0.0, "thigh_joint": 0.8, "calf_joint": -1.5}

A1 = Robot(
    file="a1_description/urdf/a1.urdf",
    feet=tuple(f"{leg}_foot" for leg in LEGS),
    height=0.345,
    pose=QUADRUPED_POSE,
    kp=25.0,
    kd=0.6,
)
GO2 = Robot(
    file="go2_description/urdf/go2.urdf",
    feet=tuple(f"{leg}_foot" for leg in LEGS),
    height=0.365,
    pose=QUADRUPED_POSE,
    kp=25.0,
    kd=0.6,
)
G1 = Robot(
    file="g1_description/urdf/g1_29dof_rev_1_0.urdf",
    feet=("left_ankle_roll_link", "right_ankle_roll_link"),
    height=0.81,
    pose={"hip_pitch_joint": -0.2, "knee_joint": 0.42, "ankle_pitch_joint": -0.23, "elbow_joint": 0.9},
    kp=80.0,
    kd=3.0,
    speeds=(0.0, 1.0),
)
TASKS = {
    task.name: task
    for task in (
        velocity_tracking("A1Velocity", A1),
        velocity_tracking("Go2Velocity", GO2),
        velocity_tracking("G1Velocity", G1),
    )
}
"""The tasks by name."""
