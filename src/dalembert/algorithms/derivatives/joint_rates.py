"""The derivatives of a joint's velocity and bias with respect to its own position and velocity.

A direction k of the tangent space moves the joint's position by dq = Q(q) e_k, which displaces the successor
by the motion S_k. What else changes is what S and the bias c_J = S° v + sigma° have of q and v in successor
coordinates. Of the joints whose S is constant everything here is a literal zero, so that it costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.dense import unit
from dalembert.model.body import Body
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.joints.subspaces import combination
from dalembert.scalar import Scalar
from dalembert.spatial import Motion

__all__ = ["JointRates", "joint_rates"]


class JointRates(NamedTuple):
    """The derivatives along the nv directions of one joint, in successor coordinates.

    `S[k][l]`: of column l of S by direction k of the position; `v_J[k]`: of v_J = S v + sigma, `c_J[k]`: of
    c_J, both at constant v; `bias_by_speed[k]`: of c_J by v_k.
    """

    S: list[list[Motion]]
    v_J: list[Motion]
    c_J: list[Motion]
    bias_by_speed: list[Motion]


def joint_rates(
    body: Body, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None
) -> JointRates:
    """Return the rates of the joint of a body at the model's q and v, exact, by dual numbers."""
    joint, own_q, own_v = body.joint, body.own_q(q), body.own_v(v)
    directions = [unit(joint.nv, k) for k in range(joint.nv)]
    now = [] if time is None else [time]
    S, v_J, c_J, by_speed = [], [], [], []
    for direction in directions:
        step = joint.position_rate(own_q, direction)
        constants = [*own_v, *now]
        columns, bias = directional_derivative(
            lambda x: (list(joint.subspace(x, time)), joint.bias(x, own_v, time)), own_q, step, constants
        )[1]
        S.append(columns)
        c_J.append(bias)
        if joint.time_dependent:
            v_J.append(
                directional_derivative(lambda x: joint.velocity(x, own_v, time), own_q, step, constants)[1]
            )
        else:
            v_J.append(combination(columns, own_v))
        by_speed.append(
            directional_derivative(lambda x: joint.bias(own_q, x, time), own_v, direction, [*own_q, *now])[1]
        )
    return JointRates(S, v_J, c_J, by_speed)
