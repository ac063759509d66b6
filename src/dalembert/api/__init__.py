"""The public functions by subject, made from the declarations of `dalembert.algorithms`.

A subject, as `da.geometry`, is a module without a file: it is filled when it is first asked for a name, with
the functions that algorithms declare for it and with those that `SUBJECTS` names beside them. `make api`
writes the type stubs, `geometry.pyi` and so on.
"""

import importlib
import sys
from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Any, Final, NamedTuple


class Subject(NamedTuple):
    """A public module: its topic, the algorithms that declare its functions, and other names by module."""

    topic: str
    algorithms: str = ""
    others: Mapping[str, str] = MappingProxyType({})


SUBJECTS: Final = {
    "cartesian": Subject(
        "Conversions between generalized and maximal coordinates, in which every body has six coordinates.",
        "cartesian inverse_dynamics",
    ),
    "constraints": Subject(
        "Loop joints and other constraints: their equations and forces, and the closing of loops.",
        "constraints loops",
        {"api.loop_closing": "close_loops"},
    ),
    "dynamics": Subject(
        "The equation of motion M(q) a + b(q, v) = tau: its parts, solutions, derivatives and integration.",
        "inverse_dynamics forward_dynamics mass_matrix applied_forces energy_momentum hybrid "
        "constrained_derivatives stepping",
        {
            "api.derivative": "derivative",
            "api.records": "HybridDynamicsDerivatives",
            "api.time_step": "force_at_point step",
        },
    ),
    "floating_base": Subject(
        "Systems with a free root that carries all other bodies.",
        "floating_base",
        {"api.records": "FloatingBaseEquations"},
    ),
    "geometry": Subject(
        "The geometry of configuration space: M(q) as a metric, its connection, geodesics, Hamilton's form.",
        "coriolis geometry",
        {"api.geodesics": "covariant_derivative geodesic parallel_transport"},
    ),
    "identification": Subject(
        "Inertial parameters: dynamics as linear functions of them, and their identification from motions.",
        "regressor",
        {
            "api.estimation": "ExcitingMotion Identification exciting_motion identify",
            "api.inertial_parameters": "BaseParameters base_parameters inertial_parameters "
            "with_inertial_parameters",
            "model.equivalence": "simplify_inertias",
        },
    ),
    "joints": Subject(
        "Joints beyond the common ones, which are at the top: `da.Revolute`, `da.Free` …",
        others={
            "model.joints": "Composite Cylindrical EllipsoidJoint Helical Joint Planar RackPinion Reversed "
            "SphereInCylinder SphericalEuler SphericalExponential TimeDependent Translation Universal "
            "UserDefined"
        },
    ),
    "kinematics": Subject(
        "Kinematics of bodies and frames: poses, Jacobians, the motion of points, inverse kinematics.",
        "kinematics jacobians springs",
        {"api.reaching": "InverseKinematics inverse_kinematics", "api.records": "Pose Poses"},
    ),
    "shapes": Subject(
        "Shapes of bodies and of the world.",
        others={
            "model.shapes": "Box Capsule ConvexMesh Cylinder Ellipsoid HeightField Mesh Plane Shape Solid "
            "Sphere"
        },
    ),
}


class _SubjectModule(ModuleType):
    """A public module that is filled when it is first asked for a name that it lacks."""

    def __getattr__(self, name: str) -> Any:
        if "__all__" not in vars(self) and (name == "__all__" or not name.startswith("__")):
            self._fill()
            return getattr(self, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__all__})

    def _fill(self) -> None:
        """Put all names of the subject into the module; `__all__` leaves out those that are at the top."""
        import dalembert
        from dalembert.algorithms.declaration import DECLARED
        from dalembert.api import declared

        title = self.__name__.rpartition(".")[2]
        homes = {name: path for path, names in SUBJECTS[title].others.items() for name in names.split()}
        found = {n: getattr(importlib.import_module(f"dalembert.{path}"), n) for n, path in homes.items()}
        for module in SUBJECTS[title].algorithms.split():
            importlib.import_module(f"dalembert.algorithms.{module}")
        found |= {n: getattr(declared, n) for n, item in [*DECLARED.items()] if item.subject == title}
        vars(self).update(
            found, __all__=sorted(name for name in found if name not in vars(dalembert)["__all__"])
        )


for _title, _subject in SUBJECTS.items():
    globals()[_title] = sys.modules[f"{__name__}.{_title}"] = _SubjectModule(
        f"{__name__}.{_title}", _subject.topic
    )
