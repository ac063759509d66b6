"""The force by which the world holds a system; it follows from weight and motion, not from joint forces.

Summed over all bodies the forces across joints cancel, loop joints among them, but for those to the world:

    sum of f to the world = d/dt (sum I_i v_i) - weight - external forces            (all at one point)

For a figure that touches nothing but the ground, and whose root joint carries no force, it is the force of
the ground.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.external_forces import ExternalForces, body_forces
from dalembert.algorithms.mass_centers import require_centers_of_mass
from dalembert.model.body import Body, Placement
from dalembert.model.joints.subspaces import combination
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import BodyAcceleration, Force, Vec3

__all__ = ["base_wrench"]


def base_wrench(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    *,
    external_forces: ExternalForces = None,
    external_frame: str = "body",
    time: Scalar | None = None,
) -> Force:
    """Return (moment about the world's origin, force) on the system, in world axes [N m, N].

    The inward pass of recursive Newton-Euler taken one step further, to the world (Featherstone 2008 Eq. 5.10
    for body 0), with what the bodies need and no joint forces.
    """
    require_centers_of_mass(tree, "base_wrench")
    f_x = body_forces(tree, q, external_forces, external_frame, time)

    def accelerate(
        body: Body, A_parent: BodyAcceleration
    ) -> tuple[BodyAcceleration, tuple[Placement, Force]]:
        X, S, v_J, c_J = body.jcalc(q, v, time)
        A = A_parent.across_joint(X, v_J, combination(S, body.own_v(a)) + c_J)
        f = body.inertia.force_of(A)
        return A, (X, f if f_x is None else f - f_x[body])

    base = BodyAcceleration(Vec3.zero(), Vec3.zero(), -tree.gravity)
    needed = tree.outward(accelerate, base)

    def gather(body: Body, beyond: Force) -> tuple[Force, tuple[()]]:
        X, f = needed[body]
        return X.inverse_apply(f + beyond), ()

    _, total = tree.inward(gather, Force.zero())
    support: Force = total
    return support
