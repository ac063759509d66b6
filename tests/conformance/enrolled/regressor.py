"""Dynamics as linear functions of the inertial parameters, and inverse kinematics."""

from __future__ import annotations

from tests.conformance.enrolling import Enrolled, algorithm, public

from dalembert.algorithms import regressor
from dalembert.spatial import BodyAcceleration, Motion, Vec3

SMALL = ("arm", "branched", "geared")

ENROLLED: tuple[Enrolled, ...] = (
    algorithm(
        "inverse_dynamics_regressor", "q v a", regressor.inverse_dynamics_regressor, package="regressor",
        models=SMALL,
    ),
    algorithm(
        "inverse_dynamics_regressor", "q v a",
        lambda m, *x: regressor.inverse_dynamics_regressor(m, *x, armature=True), package="regressor",
        suffix="-armature", models=SMALL,
    ),
    algorithm(
        "kinetic_energy_regressor", "q v", regressor.kinetic_energy_regressor, package="regressor",
        models=SMALL,
    ),
    algorithm(
        "potential_energy_regressor", "q", regressor.potential_energy_regressor, package="regressor",
        models=SMALL,
    ),
    algorithm(
        "power_coefficients", "q v",
        lambda m, q, v: regressor.power_coefficients(
            Motion(Vec3(*v[:3]), Vec3(*v[3:6])), BodyAcceleration(Vec3(*v[1:4]), Vec3(*q[:3]), Vec3(*v[2:5]))
        ),
        package="regressor", models=("branched",),
    ),
    algorithm(
        "inertial_parameters inertia_of", "q",
        lambda m, q: [q[0], *regressor.inertial_parameters(m), regressor.inertia_of([*q[:6], *q[:4]])],
        package="regressor", models=("branched",),
    ),
    public("inverse_dynamics_regressor", broad=False),
    public("inverse_dynamics_regressor", armature=True, models=("arm", "geared")),
    public("kinetic_energy_regressor", broad=False),
    public("potential_energy_regressor", broad=False),
)  # fmt: skip

STRUCTURE: dict[str, str] = {"regressor.parameter_names": "names of parameters"}
