"""Joints of several freedoms as stacks of joints of one freedom, with links without mass between them: what
the recursions of Guenter and Rose, written for hinges, need for the root and the ball joints of a human
figure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dalembert.algorithms.open_tree import require_open_tree
from dalembert.errors import ModelError
from dalembert.model.body import Body, Limits
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Joint, Prismatic, Revolute
from dalembert.model.model import WORLD_NAME, Model
from dalembert.model.surgery import add_contact
from dalembert.scalar import is_zero
from dalembert.spatial import RigidInertia, Vec3

__all__ = ["stacked_hinges"]

SLIDES: Final = tuple(Prismatic(Vec3.unit(k)) for k in range(3))
HINGES: Final = tuple(Revolute(Vec3.unit(k)) for k in range(3))

SAME_COORDINATES: Final[dict[str, Callable[[Any], tuple[Joint, ...]]]] = {
    "cylindrical": lambda joint: (Revolute(joint.axis), Prismatic(joint.axis)),
    "universal": lambda joint: (Revolute(joint.axis1), Revolute(joint.axis2)),
    "translation": lambda joint: SLIDES,
    "spherical_euler": lambda joint: tuple(HINGES["xyz".index(letter)] for letter in joint.order),
}
"""Stacks whose q and v are those of the joint."""

OTHER_COORDINATES: Final[dict[str, tuple[Joint, ...]]] = {
    "planar": (SLIDES[0], SLIDES[1], HINGES[2]),
    "spherical": HINGES,
    "spherical_exponential": HINGES,
    "free": (*SLIDES, *HINGES),
}
"""Stacks with coordinates of their own: x, y, z [m] in the parent, angles [rad] about x, y and z in turn."""


def stacked_hinges(model: Model) -> Model:
    """Return the same system with joints of one freedom only; a stack has a massless link between two joints.

    Body "thigh" on joint "hip" of three freedoms: joints "hip_1", "hip_2" carry bodies of these names, "hip"
    carries "thigh". Where a stack has the joint's own coordinates (cylindrical, universal, translation,
    Euler angles), q, v and tau keep their meaning. A ball turns about x, y and z in turn, a free body first
    slides along x, y and z of its parent; their limits, springs, damping and friction have no meaning there
    and are left out, and the stack is singular where its second angle is a quarter turn. Joints with one
    freedom or none stay as they are, others are refused.
    """
    require_open_tree(model, "stacked_hinges")
    builder = ModelBuilder(gravity=model.gravity, name=model.name)
    actuated: list[str] = []
    for body in model.bodies:
        parent = WORLD_NAME if body.parent < 0 else model.bodies[body.parent].name
        joints = _add_stack(builder, body, parent)
        actuated += joints if body.joint_name in model.actuated else []
    for frame in model.frames:
        carrier = WORLD_NAME if frame.body < 0 else model.bodies[frame.body].name
        builder.add_frame(frame.name, carrier, frame.placement)
    for coupling in model.couplings:
        builder.add_coupling(
            coupling.name, dict(coupling.coefficients), offset=coupling.offset, dependent=coupling.dependent
        )
    for shape in model.world_shapes:
        builder.add_shape(WORLD_NAME, shape)
    add_contact(builder, model)
    for body in model.bodies:
        if body.nv > 1 and body.parent >= 0:  # the ends of a stack are no longer parent and child
            builder.exclude_contact(model.bodies[body.parent].name, body.name)
    builder.set_actuated(actuated)
    return builder.build(inertia="as_given")


def _add_stack(builder: ModelBuilder, body: Body, parent: str) -> list[str]:
    """Add a body on the stack of its joint, whose last joint alone carries mass and shapes; the joints'
    names.
    """
    joints, options = _stack_of(body)
    names = [f"{body.joint_name}_{k + 1}" for k in range(len(joints) - 1)] + [body.joint_name]
    for k, (joint, own) in enumerate(zip(joints, options, strict=True)):
        last = k == len(joints) - 1
        name = body.name if last else names[k]
        builder.add_body(
            name,
            parent,
            joint,
            names[k],
            placement=body.placement if k == 0 else None,
            inertia=body.inertia if last else RigidInertia.zero(),
            shapes=body.shapes if last else (),
            **own,
        )
        parent = name
    return names


def _stack_of(body: Body) -> tuple[tuple[Joint, ...], list[dict[str, Any]]]:
    """Return the joints of one freedom that make up a body's joint, and the parameters of each."""
    joint, kind = body.joint, body.joint.kind
    if body.nv <= 1:
        return (joint,), [_numbers(body, slice(None))]
    if kind in SAME_COORDINATES:
        parts = SAME_COORDINATES[kind](joint)
        return parts, [_numbers(body, slice(k, k + 1)) for k in range(len(parts))]
    if kind not in OTHER_COORDINATES:
        known = ", ".join([*SAME_COORDINATES, *OTHER_COORDINATES])
        raise ModelError(
            f'stacked_hinges: joint "{body.joint_name}" is {kind} with {body.nv} freedoms, for which there '
            f"is no stack of joints of one freedom; there are stacks for {known}"
        )
    if any(not is_zero(x) for x in body.armature):
        raise ModelError(
            f'stacked_hinges: joint "{body.joint_name}" is {kind} and has armature, along velocities that '
            "are not those of a stack; set it to zero first"
        )
    parts = OTHER_COORDINATES[kind]
    return parts, [{} for _ in parts]


def _numbers(body: Body, part: slice) -> dict[str, Any]:
    """Return the parameters that a joint with v = dq/dt has for each coordinate, for some coordinates."""
    limits = body.limits
    bounds = (limits.lower, limits.upper, limits.velocity, limits.effort)
    return {
        "armature": body.armature[part],
        "damping": body.damping[part],
        "friction": body.friction[part],
        "stiffness": body.stiffness[part],
        "rest": body.rest[part],
        "limits": Limits(*(bound[part] if isinstance(bound, tuple) else bound for bound in bounds)),
    }
