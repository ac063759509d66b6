"""Momentum, energy and Jacobians of floating-base systems (Featherstone 2008 Examples 9.3 and 9.4).

    momentum = sum I_i v_i = I_0^c v_0 + F q'                                     in base coordinates      (1)
    T = (v_0, q')^T [[I_0^c, F], [F^T, H]] (v_0, q') / 2                                                  (2)
    J_i^f = J_i - (I_0^c)^-1 F                                                                            (3)

Without external forces I_0^c a_0 + F q'' + p_0^c = 0, so that J^f says how the velocity of body i changes
with those of the joints when the base is left to itself: delta v_i = J_i^f delta q'.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.dense import Matrix, dot
from dalembert.algorithms.floating_base.base import BASE_VARIABLES, rigid_acceleration
from dalembert.algorithms.floating_base.equations import floating_base_inertia
from dalembert.algorithms.jacobians import jacobian
from dalembert.model.body import Body
from dalembert.model.elements import Frame
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion

__all__ = ["floating_base_jacobian", "floating_base_kinetic_energy", "floating_base_momentum"]


def floating_base_momentum(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], *, time: Scalar | None = None
) -> Force:
    """Return I_0^c v_0 + F q' in base coordinates; Eq. (1)."""
    I_0, F, _ = floating_base_inertia(tree, q, time=time)
    total: Force = I_0 * Motion.of(list(v[:BASE_VARIABLES]))
    for f, x in zip(F, v[BASE_VARIABLES:], strict=True):
        total = total + f * x
    return total


def floating_base_kinetic_energy(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], *, time: Scalar | None = None
) -> Scalar:
    """Return T [J] from the blocks of Eq. (2)."""
    I_0, F, H = floating_base_inertia(tree, q, time=time)
    v_0, rates = Motion.of(list(v[:BASE_VARIABLES])), list(v[BASE_VARIABLES:])
    total = I_0.kinetic_energy(v_0)
    for i, x in enumerate(rates):
        total = total + v_0.dot(F[i]) * x
        for j, y in enumerate(rates):
            total = total + 0.5 * H[i][j] * x * y
    return total


def floating_base_jacobian(
    model: Model,
    q: Sequence[Scalar],
    where: str | Body | Frame,
    *,
    frame: str = "world_aligned",
    time: Scalar | None = None,
) -> Matrix:
    """Return J^f `(6, nv - 6)`, angular first, of a body or frame; Eq. (3), at the places of `jacobian`."""
    I_0, F, _ = floating_base_inertia(model, q, time=time)
    J = jacobian(model, q, where, frame=frame, time=time)
    recoil = [rigid_acceleration(I_0, f).to_list() for f in F]
    return [
        [x - dot(row[:BASE_VARIABLES], w) for x, w in zip(row[BASE_VARIABLES:], recoil, strict=True)]
        for row in J
    ]
