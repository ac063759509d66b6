"""The force that a tree joint transmits, with armature (Featherstone 2008 §3.5).

    f_J = T_a tau + T lambda,     T^T (a_i - a_lambda - c) = 0,     q̈ = T_a^T (a_i - a_lambda - c)    (1)

Armature R takes R q̈ of the force before it reaches the body, f_J = T_a (tau - R q̈) + T lambda. With
w = R^1/2 q̈ that is the same form with more columns,

    f_J = T_a tau + T' lambda',   T' = [T  T_a R^1/2],   lambda' = [lambda; -w]                       (2)
    T'^T (a_i - a_lambda - c) + E lambda' = 0,   E = diag(0, 1)                                       (3)

a joint that yields where it has armature. Columns without armature are left out by structure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.assembly.variants import active_force
from dalembert.algorithms.external_forces import ExternalForces, body_forces
from dalembert.algorithms.velocity_products import velocity_products
from dalembert.errors import ModelError
from dalembert.model.body import Body, Placement
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, is_zero, literal, sqrt
from dalembert.spatial import Force, Motion

__all__ = ["JointForces", "joint_forces", "require_invertible_inertias"]

MIN_DETERMINANT_RATIO = 1e-12
"""Ratio of det(I) to tr(I)^3 up to which a body has no inertia about some axis."""


class JointForces(NamedTuple):
    """The terms of a joint and its body in the equations of motion, in body coordinates.

    `X` the body placed in its parent; `T` the columns of T' and `E` their diagonal (2, 3); `T_a`, and the
    active force `active` = T_a tau; `c` the velocity-product acceleration; `p` the body's bias force.
    """

    X: Placement
    T: tuple[Force, ...]
    E: list[Scalar]
    T_a: tuple[Force, ...]
    active: Force
    c: Motion
    p: Force


def joint_forces(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> PerBody[JointForces]:
    """Return the joint forces of every body."""
    moved = velocity_products(tree, q, v, body_forces(tree, q, external_forces, external_frame, time), time)

    def step(body: Body, _: tuple[()]) -> tuple[tuple[()], JointForces]:
        joint, c, p = moved[body]
        own_q = body.own_q(q)
        T = body.joint.constraint_subspace(own_q, time)
        T_a = body.joint.active_subspace(own_q, time)
        rotor = [t * sqrt(m) for t, m in zip(T_a, body.armature, strict=True) if not is_zero(m)]
        E = [0.0] * len(T) + [1.0] * len(rotor)
        active = active_force(T_a, body.own_v(tau))
        return (), JointForces(joint.X, (*T, *rotor), E, T_a, active, c, p)

    return tree.outward(step, ())


def require_invertible_inertias(tree: Tree, function: str) -> None:
    """Refuse a body that has no mass, or no moment of inertia about some axis through its centre of mass."""
    for body in tree.bodies:
        numbers = [literal(x) for x in body.inertia.leaves()]
        if any(x is None for x in numbers):
            continue
        moments = body.inertia.inertia_at_com
        size = moments.trace()
        if numbers[0] == 0.0 or moments.to_mat3().determinant() <= MIN_DETERMINANT_RATIO * size * size * size:
            raise ModelError(
                f'{function}: body "{body.name}" has no inverse inertia, since it lacks mass or a moment of '
                "inertia about some axis; give it one, or use the default method"
            )
