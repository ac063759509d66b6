"""Denavit-Hartenberg parameters, in the convention of Featherstone 2008 section 4.3 (the Springer
Handbook's).

Frame i stands on joint axis i. From frame i - 1: an axial screw about x_{i-1} by (alpha_i, a_i), then one
about z_i by (theta_i, d_i), of which the joint's own variable is a part:

    X_T(i) = xlt([a_i 0 d_i]) rotx(alpha_i)        placement: R = Rx(alpha), p = R (a, 0, d)

The classic convention of other textbooks places frame i on axis i + 1; `from_classic` converts it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from dalembert.errors import ArgumentError, require_choice
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Cylindrical, Helical, Prismatic, Revolute
from dalembert.model.joints.joint import SingleAxisJoint
from dalembert.model.model import Model
from dalembert.model.topology import WORLD_NAME
from dalembert.spatial import AxialScrew, RigidInertia, ScrewChain

Z = (0.0, 0.0, 1.0)
JOINTS: Final[dict[str, type[SingleAxisJoint]]] = {
    joint.kind: joint for joint in (Revolute, Prismatic, Cylindrical, Helical)
}


class DHRow(NamedTuple):
    """One row of a table of DH parameters: a, d [m], alpha, theta [rad].

    `theta` and `d` are the values at joint position zero; `joint` is "revolute", "prismatic", "cylindrical"
    or "helical", the last with `pitch` [m/rad].
    """

    a: float
    alpha: float
    d: float
    theta: float = 0.0
    joint: str = "revolute"
    pitch: float = 0.0


def dh_placement(row: DHRow) -> ScrewChain:
    """Return the placement of a row's joint in the previous frame, as two axial screws."""
    return ScrewChain(
        (
            AxialScrew(0, *_direction(row.alpha), float(row.a)),
            AxialScrew(2, *_direction(row.theta), float(row.d)),
        )
    )


def from_classic(rows: Sequence[DHRow]) -> tuple[tuple[DHRow, ...], DHRow]:
    """Convert classic DH rows to the convention above; return them and the end effector's row.

    The classic link transform is Rz(theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i): its a and alpha belong to the
    next row here.
    """
    before = [(0.0, 0.0), *((row.a, row.alpha) for row in rows)]
    moved = tuple(row._replace(a=a, alpha=alpha) for row, (a, alpha) in zip(rows, before))
    a, alpha = before[-1]
    return moved, DHRow(a, alpha, 0.0, 0.0)


def dh_chain(
    rows: Sequence[DHRow],
    inertias: Sequence[RigidInertia],
    *,
    base: tuple[float, float] = (0.0, 0.0),
    end_effector: DHRow | None = None,
    names: Sequence[str] | None = None,
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    name: str = "chain",
) -> Model:
    """Build an unbranched chain with body frames placed by the DH rows (4 n + 6 parameters).

    `base` is (theta_0, d_0), which locates x_0 and with it the first common perpendicular on the base's z
    axis; `end_effector` adds a frame of that name.
    """
    if len(inertias) != len(rows):
        raise ArgumentError(f"{len(rows)} rows but {len(inertias)} inertias; give one inertia a row")
    labels = [f"link{i + 1}" for i in range(len(rows))] if names is None else list(names)
    if len(labels) != len(rows):
        raise ArgumentError(f"{len(rows)} rows but {len(labels)} names; give one name a row")
    builder = ModelBuilder(gravity=gravity, name=name)
    parent = WORLD_NAME
    root = AxialScrew(2, *_direction(base[0]), float(base[1]))
    for i, (row, inertia, label) in enumerate(zip(rows, inertias, labels)):
        require_choice("joint of a DH row", row.joint, JOINTS)
        joint = JOINTS[row.joint](Z) if row.joint != "helical" else Helical(Z, row.pitch)
        placement = dh_placement(row)
        whole = root @ placement if i == 0 else placement
        builder.add_body(label, parent, joint, placement=whole.as_transform(), inertia=inertia)
        parent = label
    if end_effector is not None:
        builder.add_frame("end_effector", parent, dh_placement(end_effector).as_transform())
    return builder.build()


def _direction(angle: float) -> tuple[float, float]:
    """Return (cos, sin) with exact zeros and ones at quarter turns, so that structure folds."""
    c, s = math.cos(angle), math.sin(angle)
    if abs(c) < 1e-15:
        return 0.0, math.copysign(1.0, s)
    if abs(s) < 1e-15:
        return math.copysign(1.0, c), 0.0
    return c, s
