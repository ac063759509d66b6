"""Conversions between generalized and Cartesian quantities."""

from __future__ import annotations

from typing import Final

from dalembert.algorithms import cartesian
from dalembert.algorithms.inverse_dynamics import base_wrench
from dalembert.compiler.catalogue.entry import LibraryFunction
from dalembert.model.model import Model

__all__ = ["CARTESIAN"]


def _six_a_body(model: Model) -> tuple[int, ...]:
    return len(model.bodies), 6


def _three_a_body(model: Model) -> tuple[int, ...]:
    return len(model.bodies), 3


CARTESIAN: Final[dict[str, LibraryFunction]] = {
    "maximal_velocities": LibraryFunction({"tree": cartesian.maximal_velocities}, ("q", "v")),
    "maximal_jacobians": LibraryFunction({"tree": cartesian.maximal_jacobians}, ("q",)),
    "generalized_velocity": LibraryFunction(
        {
            "least_squares": cartesian.generalized_velocity,
            "pseudo_inverse": cartesian.generalized_velocity_by_pseudo_inverse,
            "joint_by_joint": cartesian.generalized_velocity_joint_by_joint,
            "rotations_first": cartesian.generalized_velocity_rotations_first,
        },
        ("q", "body_velocities"),
        shapes={"body_velocities": _six_a_body},
    ),
    "generalized_force": LibraryFunction(
        {"tree": cartesian.generalized_force},
        ("q",),
        shapes=dict.fromkeys(("forces", "points", "torques", "joint_torques"), _three_a_body),
        one_of=("forces", "torques", "joint_torques"),
    ),
    "body_torques": LibraryFunction(
        {"tree": cartesian.body_torques}, ("q", "joint_torques"), shapes={"joint_torques": _three_a_body}
    ),
    "cartesian_forces": LibraryFunction({"least_squares": cartesian.cartesian_forces}, ("q", "tau")),
    "cartesian_forces_at_points": LibraryFunction(
        {"least_squares": cartesian.cartesian_forces_at_points},
        ("q", "tau", "points"),
        shapes={"points": _three_a_body},
    ),
    "joint_torques": LibraryFunction({"joint_by_joint": cartesian.joint_torques}, ("q", "tau")),
    "base_wrench": LibraryFunction({"rnea": base_wrench}, ("q", "v", "a")),
}
