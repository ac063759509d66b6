"""Generalized forces of forces on bodies: Q = sum J_k^T f_k (Liu & Jain Eq. 67; Featherstone Eq. 7.6)."""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.model.body import Body
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force

__all__ = ["joint_forces"]


def joint_forces(
    tree: Tree, q: Sequence[Scalar], forces: PerBody[Force], *, time: Scalar | None = None
) -> list[Scalar]:
    """Return Q `(nv,)` of one spatial force a body, in body coordinates: equal power, Q . v = sum f_k . v_k.

    One inward pass: f_k and all that acts beyond joint k do work on S_k.
    """

    def step(body: Body, beyond: Force) -> tuple[Force, Sequence[Scalar]]:
        X, S, _, _ = body.jcalc(q, None, time)
        f = forces[body] + beyond
        return X.inverse_apply(f), [s.dot(f) for s in S]

    return tree.collect(tree.inward(step, Force.zero())[0])
