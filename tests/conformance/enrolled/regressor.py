"""Dynamics as linear functions of the inertial parameters, and inverse kinematics."""

from __future__ import annotations

from typing import Any

from tests.conformance.enrolling import Enrolled, algorithm, public

from dalembert.algorithms import inverse_kinematics as ik
from dalembert.algorithms import regressor
from dalembert.model.model import Model
from dalembert.spatial import BodyAcceleration, Motion, Vec3

SMALL = ("arm", "branched", "geared")

PLACED = [[0.0, 0.6, -0.8], [1.0, 0.0, 0.0], [0.0, -0.8, -0.6]]


def errors(m: Model, q: Any) -> Any:
    target = ik.FrameTarget(m.bodies[-1].name, True, True)
    return ik.frame_errors(m, q, [target], [PLACED], [[0.3, 0.2, 0.1]])


def step(m: Model, q: Any, v: Any, *, orientation: bool = False) -> Any:
    """Toward a place, within limits that hold or stop some coordinates, and toward a posture."""
    bounds = [ik.Bound(m.nq - 1, m.nv - 1, -0.1, 0.1)]
    target = ik.FrameTarget(m.bodies[-1].name, orientation, True)
    return ik.damped_step(
        m, q, [PLACED] * orientation, [v[:3]] if m.nv > 2 else [[v[0], v[1], 0.4]],
        [2.0] * (1 + orientation), 0.1, m.neutral().tolist(), 0.3, targets=[target], bounds=bounds,
    )  # fmt: skip


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
    algorithm("frame_errors", "q", errors, package="inverse_kinematics", models=("arm", "branched")),
    algorithm("damped_step", "q v", step, package="inverse_kinematics", models=("arm", "linkage")),
    algorithm(
        "damped_step", "q v", lambda m, q, v: step(m, q, v, orientation=True), package="inverse_kinematics",
        suffix="-pose", models=("geared",),
    ),
    public("inverse_dynamics_regressor", broad=False),
    public("inverse_dynamics_regressor", armature=True, models=("arm", "geared")),
    public("kinetic_energy_regressor", broad=False),
    public("potential_energy_regressor", broad=False),
)  # fmt: skip

STRUCTURE: dict[str, str] = {
    "inverse_kinematics.position_bounds": "reads limits",
    "regressor.parameter_names": "names of parameters",
}
