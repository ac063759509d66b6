"""Inverse dynamics with Cartesian tensors, and its recursive derivatives."""

from __future__ import annotations

from typing import Any

from tests.conformance.enrolling import Enrolled, algorithm, public

from dalembert.model.model import Model
from dalembert.spatial import Mat3, Vec3
from dalembert.textbook import cartesian_tensors as balafoutis_patel
from dalembert.textbook import guenter_rose_partials as guenter_rose

SMALL = ("arm", "geared")
"""For results with nv^2 elements: hinges about general axes, and couplings on a free root."""


def rotating(m: Model, q: Any, v: Any) -> Any:
    """The tensors of a body that turns as some numbers of the state say."""
    omega, omega_dot = Vec3(q[0], v[0], v[-1]), Vec3(v[0], 0.3, q[-1])
    Omega = balafoutis_patel.acceleration_tensor(omega, omega_dot)
    skew: Mat3 = balafoutis_patel.dual(omega)
    return (
        balafoutis_patel.dual(skew),
        balafoutis_patel.acceleration_tensor_rate(omega, omega_dot, omega),
        balafoutis_patel.moment_of(Omega, balafoutis_patel.euler_tensor(m.bodies[-1].inertia.inertia_at_com)),
    )


ENROLLED: tuple[Enrolled, ...] = (
    algorithm(
        "dual euler_tensor acceleration_tensor acceleration_tensor_rate moment_of",
        "q v",
        rotating,
        package="guenter_rose",
        models=("arm",),
    ),
    algorithm("balafoutis_patel", "q v a", balafoutis_patel.balafoutis_patel, package="guenter_rose"),
    algorithm(
        "inverse_dynamics_partials guenter_rose",
        "q v a",
        guenter_rose.inverse_dynamics_partials,
        package="guenter_rose",
        models=SMALL,
    ),
    public("inverse_dynamics", method="balafoutis_patel", broad=False),
    public("inverse_dynamics_derivatives", method="guenter_rose", broad=False, models=("arm",)),
)

STRUCTURE: dict[str, str] = {
    "guenter_rose.stacked_hinges": "makes a model from a model",
}
