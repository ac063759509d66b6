"""Inverse dynamics of floating-base systems (Featherstone 2008 section 9.5, Table 9.6).

The accelerations of the joints are known, that of the base is not: nothing but gravity and external forces
can push it. With a_i = a_0 + a_i^r,

    p_i = I_i a_i^r + v_i x* I_i v_i - f_i^x,   p_i^c = p_i + sum p_j^c                           (9.22, 9.23)
    a_0 = -(I_0^c)^-1 p_0^c,   tau_i = S_i^T (I_i^c a_0 + p_i^c)                                  (9.24, 9.25)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from dalembert.algorithms.external_forces import ExternalForces, body_forces
from dalembert.algorithms.floating_base.base import (
    BASE_VARIABLES,
    base_gravity,
    floating_base,
    rigid_acceleration,
)
from dalembert.errors import require_choice
from dalembert.model.body import Body, JointMotion
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, RigidInertia

__all__ = ["floating_base_inverse_dynamics"]

GRAVITY = ("forces", "acceleration")


def floating_base_inverse_dynamics(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a_joints: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    gravity: Literal["forces", "acceleration"] = "forces",
) -> tuple[list[Scalar], list[Scalar]]:
    """Return (a_0 `(6,)`, tau `(nv - 6,)`): the base acceleration,
    and the joint forces for the accelerations a_joints.

    `gravity`: "forces", as weights in p (a_0^r starts at -a_g), or "acceleration", added to a_0 at the end;
    the results are the same.
    """
    require_choice("gravity treatment", gravity, GRAVITY)
    root = floating_base(tree, "floating_base_inverse_dynamics")
    f_x = body_forces(tree, q, external_forces, external_frame, time)
    a_g = base_gravity(tree, q, time=time)
    a = [0.0] * BASE_VARIABLES + list(a_joints)
    start = -a_g if gravity == "forces" else Motion.zero()

    def move(
        body: Body, parent: tuple[Motion, Motion]
    ) -> tuple[tuple[Motion, Motion], tuple[JointMotion, Force]]:
        joint = X, S, v_J, c_J = body.jcalc(q, v, time)
        if body is root:
            v_i, a_r = v_J, start
        else:
            v_i = X.apply(parent[0]) + v_J
            a_r = X.apply(parent[1]) + c_J + v_i.cross(v_J) + combination(S, body.own_v(a))
        p = body.inertia * a_r + v_i.cross(body.inertia * v_i)
        return (v_i, a_r), (joint, p if f_x is None else p - f_x[body])

    moved = tree.outward(move, (Motion.zero(), Motion.zero()))

    def gather(
        body: Body, children: tuple[RigidInertia, Force]
    ) -> tuple[tuple[RigidInertia, Force], tuple[RigidInertia, Force]]:
        joint, p = moved[body]
        I_c, p_c = body.inertia + children[0], p + children[1]
        return (joint.X.inverse_apply(I_c), joint.X.inverse_apply(p_c)), (I_c, p_c)

    composite, _ = tree.inward(gather, (RigidInertia.zero(), Force.zero()))
    I_0, p_0 = composite[root]
    a_0 = -rigid_acceleration(I_0, p_0)

    def press(body: Body, a_base: Motion) -> tuple[Motion, list[Scalar]]:
        X, S, _, _ = moved[body][0]
        own = a_0 if body is root else X.apply(a_base)
        I_c, p_c = composite[body]
        f = I_c * own + p_c
        return own, [s.dot(f) + m * x for s, m, x in zip(S, body.armature, body.own_v(a), strict=True)]

    tau = tree.collect(tree.outward(press, Motion.zero()))
    base = a_0 if gravity == "forces" else a_0 + a_g
    return base.to_list(), tau[BASE_VARIABLES:]
