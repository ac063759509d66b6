"""The outward pass with which every articulated-body algorithm starts (Featherstone 2008 Table 7.1, pass 1).

Of each body: what its joint does, the acceleration c that the velocities alone give it beside its parent's,
and the force p that they ask for. Two observers give the same equations of motion:

    co-moving   c_i = the (alpha, linear) of body i when its parent has the angular velocity omega_lambda and
                no acceleration,   p_i = omega x* I omega - f_i^x;   linear velocities do not occur
    spatial     c_i = c_J + v_i x v_J,   p_i = v_i x* I v_i - f_i^x
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.model.body import Body, JointMotion
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar
from dalembert.spatial import BodyAcceleration, Force, Motion, RigidInertia, Vec3

__all__ = ["Moved", "spatial_velocity_products", "velocity_products"]

Moved = tuple[JointMotion, Motion, Force]
"""Of each body: the joint's motion, the velocity-product acceleration c, the bias force p."""


def velocity_products(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], f_x: PerBody[Force] | None, time: Scalar | None
) -> PerBody[Moved]:
    """Return c and p relative to a co-moving observer."""

    def step(body: Body, parent: BodyAcceleration) -> tuple[BodyAcceleration, Moved]:
        joint = body.jcalc(q, v, time)
        A = parent.across_joint(joint.X, joint.v_J, joint.c_J)
        c = Motion(A.alpha, A.linear)
        spin = BodyAcceleration(A.omega, Vec3.zero(), Vec3.zero())
        p = _gyroscopic_force(body.inertia, spin)
        return spin, (joint, c, p if f_x is None else p - f_x[body])

    return tree.outward(step, BodyAcceleration(Vec3.zero(), Vec3.zero(), Vec3.zero()))


def spatial_velocity_products(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], f_x: PerBody[Force] | None, time: Scalar | None
) -> PerBody[Moved]:
    """Return c and p with spatial velocities in body coordinates, as in the book."""

    def step(body: Body, v_parent: Motion) -> tuple[Motion, Moved]:
        joint = body.jcalc(q, v, time)
        v_i = joint.X.apply(v_parent) + joint.v_J
        p = v_i.cross(body.inertia * v_i)
        return v_i, (joint, joint.c_J + v_i.cross(joint.v_J), p if f_x is None else p - f_x[body])

    return tree.outward(step, Motion.zero())


def _gyroscopic_force(inertia: RigidInertia, spin: BodyAcceleration) -> Force:
    """Return v x* I v for v = (omega, 0): moment omega x I omega, force omega x omega x h."""
    return Force(spin.omega.cross(inertia.inertia @ spin.omega), spin.tensor @ inertia.h)
