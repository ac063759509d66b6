"""The force by which the world holds a system: what its weight and its motion ask for, whatever the joints
do.

Summed over all bodies, the forces across joints cancel but for those to the world, so that

    sum of f over the world's children = d/dt (sum I_i v_i) - weight - external forces        (at one point)

For a body that touches nothing but the ground, and whose root joint carries no force, it is the force of the
ground.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.external_forces import ExternalForces
from dalembert.algorithms.inverse_dynamics import rnea_spatial
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force

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
    """(moment about the world's origin, force), in world axes, on the system [N m, N].

    The inward pass of recursive Newton-Euler taken one step further, to the world (Featherstone 2008 Eq. 5.10
    for body 0).
    """
    f = rnea_spatial(
        tree, q, v, a, external_forces=external_forces, external_frame=external_frame, time=time
    ).f
    total = Force.zero()
    for body in tree.bodies:
        if body.parent < 0:
            total = total + body.jcalc(q, None, time).X.inverse_apply(f[body])
    return total
