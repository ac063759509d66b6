"""Analytic derivatives of the dynamics."""

from __future__ import annotations

from tests.conformance.enrolled.hybrid import every_other
from tests.conformance.enrolling import Enrolled, algorithm, public

from dalembert.algorithms import constrained_derivatives, derivatives

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
    algorithm(
        "constrained_forward_dynamics_derivatives", "q v tau",
        constrained_derivatives.constrained_forward_dynamics_derivatives,
        package="derivatives", models=("linkage",),
    ),
    algorithm(
        "directional_inverse_dynamics_derivatives", "q v a",
        constrained_derivatives.directional_inverse_dynamics_derivatives, package="derivatives",
        models=("arm", "linkage"),
    ),
    algorithm(
        "directional_forward_dynamics_derivatives", "q v tau",
        constrained_derivatives.directional_forward_dynamics_derivatives,
        package="derivatives", models=("arm",),
    ),
    algorithm(
        "hybrid_dynamics_derivatives", "q v tau a",
        lambda m, *x: constrained_derivatives.hybrid_dynamics_derivatives(m, *x, prescribed=every_other(m)),
        package="derivatives", models=("arm", "geared"),
    ),
    public("inverse_dynamics_derivatives", broad=False, models=("arm",)),
    public("inverse_dynamics_derivatives", method="directional", broad=False, models=("arm",)),
    public("forward_dynamics_derivatives", broad=False, models=("arm",)),
    public("forward_dynamics_derivatives", method="implicit", broad=False, models=("linkage",)),
    public("forward_dynamics_derivatives", method="directional", broad=False, models=("arm",)),
    public("hybrid_dynamics_derivatives", broad=False, models=("arm",), prescribed=("link0",)),
)  # fmt: skip

STRUCTURE: dict[str, str] = {}
