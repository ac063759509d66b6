"""dalembert: the dynamics of articulated rigid bodies, written once and compiled."""

import importlib
from typing import Any

from dalembert.host import moved_names

__version__ = "0.1.0"

_PACKAGES = {
    "dalembert": (
        "algorithms", "analysis", "contact", "control", "envs", "errors", "interop", "models", "motion",
        "scalar", "simulation", "spatial", "symbolic", "textbook", "viewer",
    ),
    "dalembert.api": (
        "cartesian", "constraints", "dynamics", "floating_base", "geometry", "identification", "joints",
        "kinematics", "shapes",
    ),
    "dalembert.simulation": ("sensors",),
}  # fmt: skip
"""The public modules by the packages that hold them."""

_HOMES = {
    "dalembert.model": ("Limits", "Model", "ModelBuilder"),
    "dalembert.model.conventions": ("convert_state",),
    "dalembert.model.joints": ("Fixed", "Free", "Prismatic", "Revolute", "Spherical"),
    "dalembert.spatial": ("RigidInertia", "Transform"),
    "dalembert.formats": ("load", "save"),
    "dalembert.motion": ("load_motion",),
    "dalembert.api.dynamics": (
        "bias_forces", "coriolis_forces", "difference", "force_at_point", "forward_dynamics",
        "forward_dynamics_derivatives", "gravity_forces", "integrate", "inverse_dynamics",
        "inverse_dynamics_derivatives", "inverse_mass_matrix", "mass_matrix", "passive_forces", "step",
    ),
    "dalembert.api.kinematics": ("forward_kinematics", "jacobian"),
    "dalembert.compiler.compiled": ("compile", "jvp", "vjp"),
    "dalembert.simulation.rollouts": ("rollout",),
    "dalembert.simulation.running": ("Simulation",),
    "dalembert.simulation.standing": ("stand",),
    "dalembert.simulation.trajectory": ("Trajectory",),
    "dalembert.codegen": ("get_num_threads", "set_num_threads"),
}  # fmt: skip
"""The other public names by the modules that hold them. Both are imported when first asked for."""

_MODULES = {name: f"{home}.{name}" for home, names in _PACKAGES.items() for name in names}
_NAMES = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted({**_MODULES, **_NAMES})]

_find_moved = moved_names(
    "dalembert",
    {
        "dalembert.analysis": {
            "Actuation": "ActuationReport", "Mobility": "MobilityReport", "actuation": "actuation",
            "mobility": "mobility",
        },
        "dalembert.cartesian": (
            "base_wrench", "body_torques", "cartesian_forces", "cartesian_forces_at_points",
            "generalized_force", "generalized_velocity", "joint_torques", "maximal_jacobians",
            "maximal_velocities",
        ),
        "dalembert.compiler": ("CompiledFunction",),
        "dalembert.constraints": (
            "close_loops", "constraint_bias", "constraint_error", "constraint_forces", "constraint_jacobian",
            "loop_forces",
        ),
        "dalembert.dynamics": (
            "center_of_mass", "centroidal_momentum", "centroidal_momentum_matrix", "derivative",
            "hybrid_dynamics", "hybrid_dynamics_derivatives", "inertial_forces", "kinetic_energy",
            "normalize", "potential_energy",
        ),
        "dalembert.floating_base": (
            "FloatingBaseEquations", "floating_base_equations", "floating_base_inverse_dynamics",
            "floating_base_jacobian",
        ),
        "dalembert.geometry": (
            "christoffel_symbols", "connection_term", "coriolis_matrix", "coriolis_product",
            "covariant_derivative", "geodesic", "geodesic_acceleration", "hamiltonian", "hamiltonian_rates",
            "inner_product", "mass_matrix_rate", "momentum_coordinates", "parallel_transport",
            "velocity_coordinates",
        ),
        "dalembert.identification": (
            "BaseParameters", "ExcitingMotion", "Identification", "base_parameters", "exciting_motion",
            "identify", "inertial_parameters", "inverse_dynamics_regressor", "kinetic_energy_regressor",
            "potential_energy_regressor", "simplify_inertias", "with_inertial_parameters",
        ),
        "dalembert.joints": {
            **{
                name: name
                for name in (
                    "Composite", "Cylindrical", "Helical", "Joint", "Planar", "RackPinion", "Reversed",
                    "SphereInCylinder", "SphericalEuler", "SphericalExponential", "TimeDependent",
                    "Translation", "Universal", "UserDefined",
                )
            },
            "Ellipsoid": "EllipsoidJoint",
        },
        "dalembert.kinematics": (
            "InverseKinematics", "Pose", "Poses", "inverse_kinematics", "jacobian_rate", "point_motion",
        ),
        "dalembert.shapes": (
            "Box", "Capsule", "ConvexMesh", "Cylinder", "HeightField", "Mesh", "Plane", "Sphere",
        ),
        "dalembert.spatial": ("Force", "Motion"),
    },
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(_MODULES[name])
    elif name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    else:
        return _find_moved(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
