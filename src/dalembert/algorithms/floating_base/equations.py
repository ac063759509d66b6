"""The equation of motion of a floating-base system (Featherstone 2008 sections 9.3 and 9.4).

    [I_0^c  F] [a_0]   [p_0^c]   [f_0]
    [F^T    H] [q''] + [C    ] = [tau]                                                             (9.13)

I_0^c is the inertia of the whole system as one rigid body, F_i = I_i^c S_i the force at the base that a unit
acceleration of joint variable i needs (Eq. 9.12), all in base coordinates; f_0 is a force on the base, the
book's f_0^x. Weights are in p_0^c and C where the base is said to accelerate by -a_g (`gravity=True`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dalembert.algorithms.articulated import joint_inertia
from dalembert.algorithms.dense import Matrix
from dalembert.algorithms.external_forces import ExternalForces, body_forces
from dalembert.algorithms.floating_base.base import (
    BASE_VARIABLES,
    base_gravity,
    floating_base,
    rigid_acceleration,
)
from dalembert.algorithms.mass_matrix import Block, assemble_blocks, composite_inertias
from dalembert.algorithms.sparsity import velocity_places
from dalembert.model.body import Body, JointMotion
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, RigidInertia

__all__ = [
    "FloatingBaseBias",
    "FloatingBaseInertia",
    "floating_base_bias",
    "floating_base_inertia",
    "reduced_floating_base_equations",
]


class FloatingBaseInertia(NamedTuple):
    """I_0^c, the n columns of F in base coordinates, and H `(n, n)`, n = nv - 6."""

    I_0: RigidInertia
    F: list[Force]
    H: Matrix


class FloatingBaseBias(NamedTuple):
    """p_0^c in base coordinates and C `(n,)`."""

    p_0: Force
    C: list[Scalar]


def floating_base_inertia(
    tree: Tree, q: Sequence[Scalar], *, time: Scalar | None = None
) -> FloatingBaseInertia:
    """Compute the composite rigid bodies of a floating-base system (Table 9.5, right)."""
    root = floating_base(tree, "floating_base_inertia")
    joints = {body.index: body.jcalc(q, None, time) for body in tree.bodies[1:]}
    I_c = composite_inertias(tree, q, time=time)
    F = [Force.zero() for _ in range(tree.nv)]

    def blocks() -> Iterator[Block]:
        for i in tree.bodies[1:]:
            F_i = [I_c[i] * s for s in joints[i.index].S]
            yield Block(i, i, joint_inertia(joints[i.index].S, F_i, i.armature))
            j = i
            while j.parent != root.index:
                F_i = [joints[j.index].X.inverse_apply(f) for f in F_i]
                j = tree.bodies[j.parent]
                yield Block(i, j, [[s.dot(f) for s in joints[j.index].S] for f in F_i])
            for row, f in zip(velocity_places(i), F_i, strict=True):
                at_base = joints[j.index].X.inverse_apply(f)
                for place, ratio in row:
                    F[place] = F[place] + (at_base if ratio == 1.0 else at_base * ratio)

    H = assemble_blocks(tree, blocks())
    return FloatingBaseInertia(I_c[root], F[BASE_VARIABLES:], [row[BASE_VARIABLES:] for row in H[6:]])


def floating_base_bias(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
    gravity: bool = True,
) -> FloatingBaseBias:
    """Run Newton-Euler for a floating-base system with q'' = 0 and a_0 = 0 (Table 9.5, left)."""
    root = floating_base(tree, "floating_base_bias")
    f_x = body_forces(tree, q, external_forces, external_frame, time)
    a_0 = -base_gravity(tree, q, time=time) if gravity else Motion.zero()

    def move(
        body: Body, parent: tuple[Motion, Motion]
    ) -> tuple[tuple[Motion, Motion], tuple[JointMotion, Force]]:
        joint = X, _, v_J, c_J = body.jcalc(q, v, time)
        if body is root:
            v_i, a_vp = v_J, a_0
        else:
            v_i = X.apply(parent[0]) + v_J
            a_vp = X.apply(parent[1]) + c_J + v_i.cross(v_J)
        f = body.inertia * a_vp + v_i.cross(body.inertia * v_i)
        return (v_i, a_vp), (joint, f if f_x is None else f - f_x[body])

    moved = tree.outward(move, (Motion.zero(), Motion.zero()))

    def transmit(body: Body, f_children: Force) -> tuple[Force, tuple[list[Scalar], Force]]:
        joint, f_body = moved[body]
        f = f_body + f_children
        return joint.X.inverse_apply(f), ([s.dot(f) for s in joint.S], f)

    sent, _ = tree.inward(transmit, Force.zero())
    C = tree.collect([tau for tau, _ in sent])
    return FloatingBaseBias(sent[root][1], C[BASE_VARIABLES:])


def reduced_floating_base_equations(
    inertia: FloatingBaseInertia, bias: FloatingBaseBias
) -> tuple[Matrix, list[Scalar]]:
    """Return (H^fl, C^fl) of H^fl q'' + C^fl = tau (Eqs 9.14 to 9.16), where f_0 = 0.

    H^fl = H - F^T (I_0^c)^-1 F is a full matrix: what branches left zero in H is lost.
    """
    W = [rigid_acceleration(inertia.I_0, f) for f in inertia.F]
    n = len(W)
    H = [[inertia.H[i][j] - W[min(i, j)].dot(inertia.F[max(i, j)]) for j in range(n)] for i in range(n)]
    return H, [c - w.dot(bias.p_0) for c, w in zip(bias.C, W, strict=True)]
