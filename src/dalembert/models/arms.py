"""Robot arms with six and seven revolute joints, of human size and industrial mass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from dalembert.errors import own_errors
from dalembert.model.body import Limits
from dalembert.model.builder import ModelBuilder
from dalembert.model.dh import DHRow, dh_placement
from dalembert.model.joints import Revolute
from dalembert.model.model import Model
from dalembert.model.shapes import Capsule
from dalembert.model.topology import WORLD_NAME

__all__ = ["arm6", "arm7"]

QUARTER = math.pi / 2.0


class Link(NamedTuple):
    """One link: its DH row, its capsule (from, to, radius [m]), mass [kg], limit [rad], speed [rad/s],
    effort [N m].
    """

    name: str
    joint: str
    row: DHRow
    start: tuple[float, float, float]
    end: tuple[float, float, float]
    radius: float
    mass: float
    limit: float
    speed: float
    effort: float


ARM6 = (
    Link("turret", "waist", DHRow(0.0, 0.0, 0.40),
         (0.0, 0.0, -0.25), (0.08, 0.0, 0.0), 0.090, 12.0, 2.9, 3.0, 330.0),
    Link("upper_arm", "shoulder", DHRow(0.08, -QUARTER, 0.0),
         (0.0, 0.0, 0.0), (0.45, 0.0, 0.0), 0.075, 13.0, 2.0, 3.0, 330.0),
    Link("forearm", "elbow", DHRow(0.45, 0.0, 0.0),
         (0.0, 0.0, 0.0), (0.05, 0.18, 0.0), 0.060, 7.5, 2.5, 3.5, 150.0),
    Link("roll", "forearm_roll", DHRow(0.05, -QUARTER, 0.42),
         (0.0, 0.0, -0.21), (0.0, 0.0, -0.05), 0.050, 4.0, 3.1, 5.0, 60.0),
    Link("wrist", "wrist_bend", DHRow(0.0, QUARTER, 0.0),
         (0.0, -0.01, -0.03), (0.0, 0.01, 0.03), 0.045, 2.2, 2.1, 5.0, 60.0),
    Link("flange", "wrist_roll", DHRow(0.0, -QUARTER, 0.0),
         (0.0, 0.0, 0.05), (0.0, 0.0, 0.09), 0.035, 0.7, 6.2, 6.0, 30.0),
)  # fmt: skip

ARM7 = (
    Link("base_link", "shoulder_yaw", DHRow(0.0, 0.0, 0.34),
         (0.0, 0.0, -0.15), (0.0, 0.02, 0.0), 0.075, 5.0, 2.9, 1.7, 300.0),
    Link("shoulder_link", "shoulder_pitch", DHRow(0.0, -QUARTER, 0.0),
         (0.0, 0.0, 0.0), (0.0, -0.16, 0.02), 0.070, 5.5, 2.0, 1.7, 300.0),
    Link("upper_link", "shoulder_roll", DHRow(0.0, QUARTER, 0.40),
         (0.0, 0.02, -0.20), (0.0, 0.0, 0.0), 0.065, 4.0, 2.9, 1.7, 180.0),
    Link("elbow_link", "elbow", DHRow(0.0, QUARTER, 0.0),
         (0.0, 0.0, 0.0), (0.0, 0.16, 0.02), 0.060, 3.0, 2.0, 2.2, 180.0),
    Link("lower_link", "forearm_roll", DHRow(0.0, -QUARTER, 0.39),
         (0.0, 0.02, -0.20), (0.0, 0.0, 0.0), 0.055, 2.0, 2.9, 2.4, 110.0),
    Link("wrist_link", "wrist_pitch", DHRow(0.0, -QUARTER, 0.0),
         (0.0, 0.0, -0.02), (0.0, 0.03, 0.02), 0.050, 1.6, 2.0, 3.1, 40.0),
    Link("hand", "wrist_roll", DHRow(0.0, QUARTER, 0.0),
         (0.0, 0.0, 0.05), (0.0, 0.0, 0.10), 0.040, 0.6, 3.0, 3.1, 40.0),
)  # fmt: skip


@own_errors
def arm6() -> Model:
    """Return a six-joint arm with a spherical wrist; reach about 1 m, 39 kg; frame "tool" at the flange."""
    return _arm("arm6", ARM6, tool=0.10)


@own_errors
def arm7() -> Model:
    """Return a seven-joint arm with a spherical shoulder and wrist, redundant like a human arm; frame "tool"
    at the hand.
    """
    return _arm("arm7", ARM7, tool=0.13, nested=[("lower_link", "hand")])


def _arm(name: str, links: Sequence[Link], tool: float, nested: Sequence[tuple[str, str]] = ()) -> Model:
    """Build an arm from its links; the `nested` pairs overlap within a wrist of several joints."""
    builder = ModelBuilder(name=name)
    for pair in nested:
        builder.exclude_contact(*pair)
    parent = WORLD_NAME
    for link in links:
        capsule = Capsule.between(link.start, link.end, link.radius)
        builder.add_body(
            link.name,
            parent,
            Revolute((0.0, 0.0, 1.0)),
            link.joint,
            placement=dh_placement(link.row).as_transform(),
            inertia=capsule.inertia(mass=link.mass),
            limits=Limits(-link.limit, link.limit, link.speed, link.effort),
            damping=0.01 * link.effort,
            shapes=(capsule,),
        )
        parent = link.name
    builder.add_frame("tool", parent, dh_placement(DHRow(0.0, 0.0, tool)).as_transform())
    return builder.build()
