"""Loop joints as joints between the handles of two bodies (Featherstone 2008 §7.5 and §8.2).

A loop's equations are K a = k with K a = T^T (J_s - J_p) a; the accelerations of its bodies are a_i = J_i a +
a_i^vp. So

    T^T (a_s - a_p) = k + T^T (a_s^vp - a_p^vp) = gamma                                               (1)

with k from `constraints.loop_rows`, stabilised if so asked (§7.5, end).
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.assembly.handles import HandleJoint
from dalembert.algorithms.assembly.joint_forces import JointForces
from dalembert.algorithms.constraints import loop_rows
from dalembert.algorithms.stabilization import Stabilization, stabilized_row
from dalembert.model.body import Body
from dalembert.model.elements import Loop
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion

__all__ = ["loop_handle_joint", "velocity_product_accelerations"]


def velocity_product_accelerations(tree: Tree, joints: PerBody[JointForces]) -> PerBody[Motion]:
    """Return a_i^vp = X a_lambda^vp + c_i of every body, in its own coordinates."""

    def step(body: Body, a_parent: Motion) -> tuple[Motion, Motion]:
        a = joints[body].X.apply(a_parent) + joints[body].c
        return a, a

    return tree.outward(step, Motion.zero())


def loop_handle_joint(
    tree: Tree,
    loop: Loop,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    products: PerBody[Motion],
    *,
    time: Scalar | None = None,
    stabilization: Stabilization = None,
) -> HandleJoint:
    """Return the loop joint with T in the coordinates of both bodies and gamma of (1); it is passive."""
    rows = loop_rows(tree, loop, q, v, time=time)
    at_predecessor = loop.placement_predecessor.as_transform() @ rows.X
    T_p = tuple(at_predecessor.inverse_apply(t) for t in rows.T)
    T_s = tuple(loop.placement_successor.inverse_apply(t) for t in rows.T)
    errors = zip(rows.k, rows.velocity_error, rows.position_error, strict=True)
    gamma = [stabilized_row(k, e_v, e_p, stabilization) for k, e_v, e_p in errors]
    for sign, body, T in ((1.0, loop.successor, T_s), (-1.0, loop.predecessor, T_p)):
        if body >= 0:
            gamma = [g + sign * products[body].dot(t) for g, t in zip(gamma, T, strict=True)]  # (1)
    zero = Force.zero()
    return HandleJoint(loop.predecessor, loop.successor, T_p, T_s, zero, zero, gamma, [0.0] * len(gamma))
