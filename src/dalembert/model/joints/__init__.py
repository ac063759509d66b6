"""The joint library: one class a joint (Featherstone 2008 Table 4.1 and beyond).

A new joint is one class, and one entry in `REGISTRY`.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from dalembert.errors import ModelError, require_choice
from dalembert.model.joints.combined import Composite, Reversed, TimeDependent, UserDefined
from dalembert.model.joints.elementary_joints import (
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    SphericalEuler,
    SphericalExponential,
    Translation,
    Universal,
)
from dalembert.model.joints.joint import ExplicitConstraint, Joint, flatten
from dalembert.model.joints.rolling import EllipsoidJoint, RackPinion, SphereInCylinder
from dalembert.model.joints.subspaces import active_subspace_along
from dalembert.spatial import Mat3, Transform, Vec3

__all__ = [
    "REGISTRY",
    "Composite",
    "Cylindrical",
    "EllipsoidJoint",
    "ExplicitConstraint",
    "Fixed",
    "Free",
    "Helical",
    "Joint",
    "Planar",
    "Prismatic",
    "RackPinion",
    "Reversed",
    "Revolute",
    "SphereInCylinder",
    "Spherical",
    "SphericalEuler",
    "SphericalExponential",
    "TimeDependent",
    "Translation",
    "Universal",
    "UserDefined",
    "active_subspace_along",
    "joint_from_data",
]

REGISTRY: Final[dict[str, type[Joint]]] = {
    joint.kind: joint
    for joint in (
        *(Revolute, Prismatic, Helical, Cylindrical, Planar, Translation, Free, Fixed),
        *(Spherical, SphericalEuler, SphericalExponential, Universal),
        *(RackPinion, SphereInCylinder, EllipsoidJoint),
        *(Composite, Reversed, UserDefined, TimeDependent),
    )
}
"""Every joint class by the name it is saved under."""


def joint_from_data(data: dict[str, Any]) -> Joint:
    """Return the joint described by `Joint.to_data`, bit for bit.

    Constructors normalise axes, which may change the last bit of a unit axis; numbers that differ from the
    saved ones by no more than that are replaced by the saved ones.
    """
    if not isinstance(data, dict) or "type" not in data:
        raise ModelError(f'a joint is saved as a dictionary with a "type", got {repr(data)[:60]}')
    kind = data["type"]
    require_choice("joint type", kind, REGISTRY)
    fields = {name: _decode(value) for name, value in data.items() if name != "type"}
    try:
        joint = REGISTRY[kind](**fields)
    except TypeError as error:
        raise ModelError(f"{kind} joint: the saved fields {sorted(fields)} do not fit it: {error}") from error
    given = [x for name in joint.parameter_names if name in fields for x in flatten(fields[name])]
    saved = [float(x) for x in given if isinstance(x, int | float) and not isinstance(x, bool)]
    made = joint.parameters()
    close = [abs(a - b) <= 4.0 * sys.float_info.epsilon for a, b in zip(saved, made)]
    return joint.with_parameters(saved) if len(saved) == len(made) and all(close) else joint


def _decode(value: Any) -> Any:
    """Decode a saved field: a nested joint, a placement, a list of either, or a plain value."""
    if isinstance(value, dict) and "type" in value:
        return joint_from_data(value)
    if isinstance(value, dict) and set(value) == {"rotation", "translation"}:
        return Transform(Mat3(*value["rotation"]), Vec3(*value["translation"]))
    return [_decode(item) for item in value] if isinstance(value, list) else value
