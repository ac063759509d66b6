"""Articulated bodies where joints move together or as prescribed, in O(n).

The passes of Featherstone 2008 Tables 7.1 and 9.3 over the tree of clusters (`clusters`): inward, each one
is taken out of the equations of motion (`cluster_elimination`); outward, its accelerations are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dalembert.algorithms.gears.cluster_elimination import (
    Accelerations,
    Handle,
    Inertia,
    cluster_members,
    eliminate_cluster,
)
from dalembert.algorithms.gears.clusters import Cluster, clusters_of
from dalembert.algorithms.velocity_products import Moved
from dalembert.errors import ModelError
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Vec3

__all__ = ["ClusterMotion", "articulated_accelerations", "cluster_inertias"]


class ClusterMotion(NamedTuple):
    """dv/dt `(nv,)` of the tree, and the forces `(nv,)` at the prescribed variables (zeros elsewhere)."""

    a: list[Scalar]
    tau: list[Scalar]


def articulated_accelerations(
    tree: Tree,
    moved: PerBody[Moved],
    tau: Sequence[Scalar],
    *,
    function: str,
    a: Sequence[Scalar] = (),
    prescribed: frozenset[int] = frozenset(),
    gravity: Vec3 | None = None,
) -> ClusterMotion:
    """Solve for dv/dt where tau acts, and for the forces at the `prescribed` places of v, where a is given.

    `moved`: the outward pass of `velocity_products`. `function` is named in errors. `gravity`
    replaces the tree's.
    """
    clusters = clusters_of(tree)
    handles = [Handle(body.inertia, moved[body][2]) for body in tree.bodies]
    eliminated: list[Any] = [None] * len(clusters)
    for k in reversed(range(len(clusters))):
        cluster = clusters[k]
        members = cluster_members(tree, cluster, moved, handles, a, prescribed)
        try:
            eliminated[k] = eliminate_cluster(members, cluster, tau, prescribed)
        except ZeroDivisionError:
            raise _without_inertia(function, cluster) from None
        if cluster.base >= 0:
            handles[cluster.base] = handles[cluster.base].carrying(eliminated[k])
    accelerations = Accelerations(tree, tree.gravity if gravity is None else gravity, a, prescribed)
    for cluster, elimination in zip(clusters, eliminated, strict=True):
        elimination.accelerate(cluster, accelerations)
    return ClusterMotion(accelerations.a, accelerations.tau)


def cluster_inertias(tree: Tree, q: Sequence[Scalar], *, time: Scalar | None = None) -> PerBody[Inertia]:
    """Return I_i^A of every body with its load outside its own cluster, in its own coordinates.

    Of a body whose joint is coupled to none this is the articulated inertia of all it carries.
    """
    moved = tree.outward(lambda body, _: ((), (body.jcalc(q, None, time), Motion.zero(), Force.zero())), ())
    clusters = clusters_of(tree)
    handles = [Handle(body.inertia, Force.zero()) for body in tree.bodies]
    zero = [0.0] * tree.nv
    for cluster in reversed(clusters):
        members = cluster_members(tree, cluster, moved, handles, (), frozenset())
        if cluster.base >= 0:
            elimination = eliminate_cluster(members, cluster, zero, frozenset())
            handles[cluster.base] = handles[cluster.base].carrying(elimination)
    return PerBody([handle.I for handle in handles])


def _without_inertia(function: str, cluster: Cluster) -> ModelError:
    names = ", ".join(f'"{body.joint_name}"' for body in cluster.bodies)
    subject = f"joint {names} has" if len(cluster.bodies) == 1 else f"the joints {names} have together"
    return ModelError(
        f"{function}: {subject} a freedom along which nothing with inertia moves; give what moves "
        "mass and moments of inertia, or a joint an armature"
    )
