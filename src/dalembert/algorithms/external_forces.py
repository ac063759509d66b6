"""External forces: the arguments of a caller as one spatial force for each body, in body coordinates.

A caller gives, for every body, (moment, force) as six scalars: in body coordinates at the body's origin
("body"), or in world coordinates at the world's origin ("world", the form of Featherstone 2008 Table 5.1).
Where a tree uses other body frames than the model, as `aligned` makes them, the forces are still given in
the model's frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np

from dalembert.algorithms.aligned import AlignedBody
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.stabilization import Stabilization
from dalembert.errors import ArgumentError, ShapeError, require_choice
from dalembert.model.body import Body
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Transform, Vec3

__all__ = ["ExternalForces", "Conditions", "body_forces", "force_at_point"]

ExternalForces = Sequence[Any] | None
"""One entry a body: a `Force` or six scalars, moment first; None: no external forces."""


class Conditions(TypedDict, total=False):
    """The conditions of a motion, which every method of dynamics accepts as keywords.

    `external_frame`: "body", the default, or "world". `time` [s]: read by models that depend on it.
    `stabilization`: T_stab [s] of constraints (Featherstone 2008 Eq. 8.22).
    """

    external_forces: ExternalForces
    external_frame: str
    time: Scalar | None
    stabilization: Stabilization


def body_forces(
    tree: Tree,
    q: Sequence[Scalar],
    external_forces: ExternalForces,
    frame: str = "body",
    time: Scalar | None = None,
) -> PerBody[Force] | None:
    """Return the external force on each body, in the coordinates of the tree's bodies:
    i_X_0* f_i^x (Eq. 5.20)."""
    require_choice("external_frame", frame, ("body", "world"))
    if external_forces is None:
        return None
    given = external_forces
    if isinstance(given, Sequence | np.ndarray) and len(given) != len(tree.bodies):
        raise ShapeError(
            f"external_forces has {len(given)} entries; give one (moment, force) for each of the "
            f"{len(tree.bodies)} bodies"
        )
    if frame == "body":
        return tree.outward(lambda body, _: ((), _in_tree_frame(body, _as_force(given[body.index]))), ())
    poses = forward_kinematics(tree, q, time=time)
    return tree.outward(
        lambda body, _: ((), poses[body].apply(_in_tree_world(body, _as_force(given[body.index])))), ()
    )


def force_at_point(pose: Transform, point: Vec3, force: Vec3) -> Force:
    """Return the spatial force, in body coordinates, of `force` acting at `point`, both in world coordinates.

    `pose`: the body placed in the world. f_O = (OP x f, f) (Featherstone 2008 Eq. 2.6).
    """
    arm = pose.R.transposed_times(point - pose.p)
    push = pose.R.transposed_times(force)
    return Force(arm.cross(push), push)


def _as_force(given: Any) -> Force:
    if isinstance(given, Force):
        return given
    if len(given) != 6:
        raise ArgumentError(f"an external force has 6 numbers, moment first; got {len(given)}")
    return Force(Vec3(given[0], given[1], given[2]), Vec3(given[3], given[4], given[5]))


def _in_tree_frame(body: Body, force: Force) -> Force:
    """Return the force in the coordinates of the tree's body, from those of the model's body."""
    return body.original_frame.inverse_apply(force) if isinstance(body, AlignedBody) else force


def _in_tree_world(body: Body, force: Force) -> Force:
    """Return the force in the coordinates of the tree's world, from those of the model's world."""
    return body.world_frame.inverse_apply(force) if isinstance(body, AlignedBody) else force
