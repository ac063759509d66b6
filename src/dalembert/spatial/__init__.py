"""Spatial vector algebra: 6-D motions, forces, inertias and placements over generic scalars.

Conventions: angular before linear; R of a placement maps child to parent coordinates; SI units and radians;
rx, ry, rz are the book's passive matrices. Everything is frozen and works on floats, NumPy arrays (one sample
an element), traced and SymPy expressions. The book's 6x6 matrices are in `matrices`, pitch and axis of screws
in `screw`, exponential maps in `exponential`, the rest of rotations in `rotations`.
"""

from dalembert.spatial.acceleration import BodyAcceleration, classical_acceleration, spatial_acceleration
from dalembert.spatial.inertia import ArticulatedInertia, RigidInertia
from dalembert.spatial.matrices import physical_problems
from dalembert.spatial.motion_force import Force, Motion, from_linear_first, to_linear_first
from dalembert.spatial.rotations import rx, ry, rz
from dalembert.spatial.screw import AxialScrew, ScrewChain, scrx, scry, scrz
from dalembert.spatial.symmetric import SymMat3
from dalembert.spatial.transform import Placement, Transform
from dalembert.spatial.value import FrozenValueError, SpatialTypeError, Value, leaves, rebuild
from dalembert.spatial.vectors import Mat3, Vec3

__all__ = [
    "ArticulatedInertia",
    "AxialScrew",
    "BodyAcceleration",
    "Force",
    "FrozenValueError",
    "Mat3",
    "Motion",
    "Placement",
    "RigidInertia",
    "ScrewChain",
    "SpatialTypeError",
    "SymMat3",
    "Transform",
    "Value",
    "Vec3",
    "classical_acceleration",
    "from_linear_first",
    "leaves",
    "physical_problems",
    "rebuild",
    "rx",
    "ry",
    "rz",
    "scrx",
    "scry",
    "scrz",
    "spatial_acceleration",
    "to_linear_first",
]
