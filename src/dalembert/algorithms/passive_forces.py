"""Forces that joints exert by themselves: springs, dampers and dry friction, as contributions to tau.

None of them is part of `inverse_dynamics`, `forward_dynamics` or `mass_matrix`: a simulation adds them to
tau. Per velocity variable of a joint with the displacement x from its rest position, its rate v and the
constants of the model,

    tau = - stiffness x - damping v - friction v / sqrt(v^2 + s^2)                                  (1)

x is the joint's `difference(rest, q)`: q - rest for angles and lengths, the rotation vector for a ball
joint. The last term is dry friction with its jump at rest smoothed over speeds of about s, so that it has a
derivative everywhere; the smoothed law lets a loaded joint creep instead of sticking.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.model.body import Body
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero, sqrt

__all__ = ["FRICTION_SPEED", "displacement", "passive_forces", "spring_energy"]

FRICTION_SPEED = 1e-3
"""s of Eq. (1) [rad/s or m/s]: at this speed friction has 71 % of its full size."""


def passive_forces(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """Return tau `(nv,)` of springs, damping and dry friction [N m or N]; Eq. (1)."""
    return tree.collect(
        tree.outward(lambda body, _: ((), _joint_forces(body, body.own_q(q), body.own_v(v))), ())
    )


def spring_energy(tree: Tree, q: Sequence[Scalar]) -> Scalar:
    """Return the energy stored in the springs, sum of stiffness x^2 / 2 [J]."""
    total: Scalar = 0.0
    for body in tree.bodies:
        for k, x in zip(body.stiffness, displacement(body, body.own_q(q)), strict=True):
            total = total + 0.5 * k * x * x
    return total


def _joint_forces(body: Body, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """Compute Eq. (1) of one joint; terms whose constant is a structural zero are left out."""
    forces: list[Scalar] = []
    for k, x, d, f, rate in zip(
        body.stiffness, displacement(body, q), body.damping, body.friction, v, strict=True
    ):
        tau: Scalar = -(d * rate)
        if not is_zero(k):
            tau = tau - k * x
        if not is_zero(f):
            tau = tau - f * rate / sqrt(rate * rate + FRICTION_SPEED * FRICTION_SPEED)
        forces.append(tau)
    return forces


def displacement(body: Body, q: Sequence[Scalar]) -> list[Scalar]:
    """Return x from the rest position to q; zeros without a spring."""
    if all(is_zero(k) for k in body.stiffness):
        return [0.0] * body.nv
    return body.joint.difference(body.rest, q)
