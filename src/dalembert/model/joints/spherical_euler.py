"""Spherical joint with Euler angles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from dalembert.errors import ModelError
from dalembert.model.joints.closure import origin_offset
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.subspaces import forces, moments, reciprocal_basis, rotations, velocity_product
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Placement, Transform, Vec3
from dalembert.spatial.rotations import (
    EULER_ORDERS,
    euler_angles_of_rotation,
    euler_axes,
    euler_singularity,
    rotation_of_euler_angles,
)

__all__ = ["SphericalEuler"]


@final
@dataclass(frozen=True, slots=True, init=False)
class SphericalEuler(Joint):
    """Rotation about a point: q = three angles [rad] about the axes of `order`, v = dq/dt (Featherstone 2008
    section 4.5).

    The rotations are intrinsic: "zyx" is yaw about z, pitch about the new y, roll about the new x. S varies
    while T is constant. Singular where `singularity_measure` is zero: |cos q2| = 0, or |sin q2| = 0 for
    orders such as "zxz".

    >>> joint = da.SphericalEuler("zyx")
    >>> print(round(joint.singularity_measure([0.0, np.pi / 2, 0.0]), 6))
    0.0
    """

    order: str

    kind = "spherical_euler"
    constant_constraint_forces = True
    nq = 3
    nv = 3
    coordinates = ("angle",) * 3

    def __init__(self, order: str = "zyx") -> None:
        letters = order.lower() if isinstance(order, str) else ""
        if letters not in EULER_ORDERS:
            raise ModelError(
                f"Euler angles cannot be taken in the order {order!r}; give three letters x, y, z of which "
                'neighbours differ, such as "zyx" or "zxz"'
            )
        object.__setattr__(self, "order", letters)

    def structure(self) -> tuple[Any, ...]:
        return (self.kind, self.order)

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return Transform(rotation_of_euler_angles(self.order, q), Vec3.zero())

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return rotations(*euler_axes(self.order, q))

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        axes = euler_axes(self.order, q)
        return Motion(velocity_product(axes, v), Vec3.zero())

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return forces(Vec3.unit(0), Vec3.unit(1), Vec3.unit(2))

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return moments(*reciprocal_basis(*euler_axes(self.order, q)))

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return euler_angles_of_rotation(self.order, X.R)

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return list(origin_offset(X))

    def singularity_measure(self, q: Sequence[Scalar], time: Scalar | None = None) -> Scalar:
        return euler_singularity(self.order, q)
