"""Joints beyond the common ones, which are at the top: `da.Revolute`, `da.Free` …"""

from dalembert.model.joints import (
    Composite,
    Cylindrical,
    EllipsoidJoint,
    Helical,
    Joint,
    Planar,
    RackPinion,
    Reversed,
    SphereInCylinder,
    SphericalEuler,
    SphericalExponential,
    TimeDependent,
    Translation,
    Universal,
    UserDefined,
)

__all__ = [
    "Composite",
    "Cylindrical",
    "EllipsoidJoint",
    "Helical",
    "Joint",
    "Planar",
    "RackPinion",
    "Reversed",
    "SphereInCylinder",
    "SphericalEuler",
    "SphericalExponential",
    "TimeDependent",
    "Translation",
    "Universal",
    "UserDefined",
]
