"""dalembert: the dynamics of articulated rigid bodies, written once and compiled."""

from dalembert import algorithms, errors, interop, models, scalar, spatial
from dalembert.api import (
    Pose,
    Poses,
    bias_forces,
    center_of_mass,
    centroidal_momentum,
    centroidal_momentum_matrix,
    coriolis_forces,
    difference,
    force_at_point,
    forward_dynamics,
    forward_dynamics_derivatives,
    forward_kinematics,
    gravity_forces,
    integrate,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    inverse_mass_matrix,
    jacobian,
    jacobian_rate,
    kinetic_energy,
    mass_matrix,
    normalize,
    passive_forces,
    point_motion,
    potential_energy,
    step,
)
from dalembert.codegen import get_num_threads, set_num_threads
from dalembert.compiled import compile
from dalembert.execution import CompiledFunction
from dalembert.model import Limits, Model, ModelBuilder
from dalembert.model.joints import (
    Composite,
    Cylindrical,
    Ellipsoid,
    Fixed,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    RackPinion,
    Reversed,
    Revolute,
    SphereInCylinder,
    Spherical,
    SphericalEuler,
    SphericalExponential,
    TimeDependent,
    Translation,
    Universal,
    UserDefined,
)
from dalembert.spatial import Force, Motion, RigidInertia, Transform

__version__ = "0.1.0"
