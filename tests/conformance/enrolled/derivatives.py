"""Analytic derivatives of the dynamics."""

from __future__ import annotations

from tests.conformance.enrolling import Enrolled, algorithm

from dalembert.algorithms import derivatives

SMALL = ("arm", "branched", "geared")

ENROLLED: tuple[Enrolled, ...] = (
    algorithm(
        "inverse_dynamics_derivatives", "q v a", derivatives.inverse_dynamics_derivatives,
        package="derivatives", models=SMALL,
    ),
    algorithm(
        "forward_dynamics_derivatives", "q v tau", derivatives.forward_dynamics_derivatives,
        package="derivatives", models=SMALL,
    ),
)  # fmt: skip

STRUCTURE: dict[str, str] = {}
