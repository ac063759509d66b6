"""Dynamics as linear functions of the inertial parameters."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dalembert.algorithms import regressor
from dalembert.compiler.catalogue.entry import LibraryFunction

__all__ = ["IDENTIFICATION"]


def _torques(tree: Any, *args: Any, **options: Any) -> Any:
    """Return the regressor, with its width also for nv = 0."""
    Y = regressor.inverse_dynamics_regressor(tree, *args, **options)
    return Y or np.zeros((0, len(regressor.PARTS) * len(tree.bodies)))


def _empty(algorithm: Any) -> Any:
    def call(*args: Any, **options: Any) -> Any:
        return algorithm(*args, **options) or np.zeros(0)

    return call


IDENTIFICATION: Final[dict[str, LibraryFunction]] = {
    "inverse_dynamics_regressor": LibraryFunction({"passes": _torques}, ("q", "v", "a")),
    "kinetic_energy_regressor": LibraryFunction(
        {"passes": _empty(regressor.kinetic_energy_regressor)}, ("q", "v")
    ),
    "potential_energy_regressor": LibraryFunction(
        {"passes": _empty(regressor.potential_energy_regressor)}, ("q",)
    ),
}
