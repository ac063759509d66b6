"""Inverse dynamics with Cartesian tensors, and its recursive derivatives."""

from __future__ import annotations

from typing import Any

from tests.conformance.enrolling import Enrolled, algorithm, public

from dalembert.algorithms import guenter_rose as gr
from dalembert.model.model import Model
from dalembert.spatial import Mat3, Vec3

SMALL = ("arm", "geared")
"""For results with nv^2 elements: hinges about general axes, and couplings on a free root."""


def rotating(m: Model, q: Any, v: Any) -> Any:
    """The tensors of a body that turns as some numbers of the state say."""
    omega, omega_dot = Vec3(q[0], v[0], v[-1]), Vec3(v[0], 0.3, q[-1])
    Omega = gr.acceleration_tensor(omega, omega_dot)
    skew: Mat3 = gr.dual(omega)
    return (
        gr.dual(skew),
        gr.acceleration_tensor_rate(omega, omega_dot, omega),
        gr.moment_of(Omega, gr.euler_tensor(m.bodies[-1].inertia.inertia_at_com)),
    )


ENROLLED: tuple[Enrolled, ...] = (
    algorithm(
        "dual euler_tensor acceleration_tensor acceleration_tensor_rate moment_of",
        "q v",
        rotating,
        package="guenter_rose",
        models=("arm",),
    ),
    algorithm("balafoutis_patel", "q v a", gr.balafoutis_patel, package="guenter_rose"),
    algorithm(
        "inverse_dynamics_partials guenter_rose",
        "q v a",
        gr.inverse_dynamics_partials,
        package="guenter_rose",
        models=SMALL,
    ),
    public("inverse_dynamics", method="balafoutis_patel", broad=False),
    public("inverse_dynamics_derivatives", method="guenter_rose", broad=False, models=("arm",)),
)

STRUCTURE: dict[str, str] = {
    "guenter_rose.stacked_hinges": "makes a model from a model",
}
