"""The derivatives of a joint's quantities with respect to its own position and velocity.

Along velocity variable k of a joint, with S_k = (z, y) in the body's coordinates, the body turns and shifts
by definition as

    dA = A dual(z),    d(A^T) = -dual(z) A^T,    ds = A y                                            (1)

For a hinge this is all. S, v_J and c_J of other joints may change too; they are differentiated as dual
numbers, and where S is constant the derivatives are literal zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.dense import identity
from dalembert.model.body import Body
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.joints.subspaces import combination
from dalembert.scalar import Scalar
from dalembert.spatial import Motion

__all__ = ["JointPartial", "joint_partials"]


class JointPartial(NamedTuple):
    """Derivatives along one velocity variable of the joint, in the body's coordinates.

    By its position: `S_by_q` of each column of S, `v_J_by_q` of v_J = S v + sigma, `a_J_by_q` of a_J = S a +
    c_J, with v and a held. By its velocity: `a_J_by_v` of c_J.
    """

    S_by_q: tuple[Motion, ...]
    v_J_by_q: Motion
    a_J_by_q: Motion
    a_J_by_v: Motion


def joint_partials(
    body: Body, q: Sequence[Scalar], v: Sequence[Scalar], a: Sequence[Scalar], time: Scalar | None = None
) -> list[JointPartial]:
    """Return one `JointPartial` for each velocity variable of the body's joint;
    with respect to q on the tangent space."""
    joint, own_q, own_v, own_a = body.joint, body.own_q(q), body.own_v(v), body.own_v(a)
    now = [] if time is None else [time]

    def at_position(x: list[Scalar]) -> tuple[tuple[Motion, ...], Motion, Motion]:
        S = joint.subspace(x, time)
        return S, joint.velocity(x, own_v, time), combination(S, own_a) + joint.bias(x, own_v, time)

    def at_velocity(x: list[Scalar]) -> Motion:
        return joint.bias(own_q, x, time)

    found = []
    for unit in identity(body.nv):
        direction = joint.position_rate(own_q, unit)
        _, by_q = directional_derivative(at_position, own_q, direction, [*own_v, *own_a, *now])
        _, by_v = directional_derivative(at_velocity, own_v, unit, [*own_q, *now])
        found.append(JointPartial(*by_q, by_v))
    return found
