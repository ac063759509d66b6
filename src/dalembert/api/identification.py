"""Inertial parameters: dynamics as linear functions of them, and their identification from measurements."""

from dalembert.api.declared import publish
from dalembert.api.estimation import Identification, identify
from dalembert.api.excitation import ExcitingMotion, exciting_motion
from dalembert.api.inertial_parameters import (
    BaseParameters,
    base_parameters,
    inertial_parameters,
    with_inertial_parameters,
)
from dalembert.model.equivalence import simplify_inertias

__all__ = [
    "BaseParameters",
    "ExcitingMotion",
    "Identification",
    "base_parameters",
    "exciting_motion",
    "identify",
    "inertial_parameters",
    "simplify_inertias",
    "with_inertial_parameters",
    *publish("identification", "regressor"),
]
