"""The choice of the cheapest method of forward dynamics for coupled joints.

Counted multiplications and additions, with gears between neighbours or from one end of a chain to the other:

                                      clusters ("aba")   "crba"   "aba_multipliers"
    six-joint arm, a rotor a joint        1,203             978         2,337
    hand, four fingers, 15 bodies         3,259           3,055         5,563
    GU(8), last two joints                2,564           2,480         3,353
    GU(12), last two joints               4,204           5,034         5,417
    GU(12), from end to end               6,799           5,034         5,371
    GU(20), from end to end              16,267          13,102         9,499
    humanoid with that hand              12,866          27,611             -

The matrix is cheaper in shallow trees; elimination by clusters is linear in the number of bodies while
clusters stay small, and cubic in the variables of a large one, where multipliers are better.
"""

from __future__ import annotations

from dalembert.algorithms.gears.clusters import clusters_of
from dalembert.algorithms.open_tree import has_couplings
from dalembert.algorithms.sparse import depths
from dalembert.algorithms.sparsity import variable_parents
from dalembert.model.tree import Tree
from dalembert.scalar import is_zero

__all__ = ["default_method"]

MAX_CRBA_DEPTH = 8
"""Longest chain of velocity variables from the world for which "crba" costs less."""

MIN_MULTIPLIER_CLUSTER = 8
"""Velocity variables of a cluster from which "aba_multipliers" costs less."""


def default_method(tree: Tree) -> str:
    """Return "aba", or for coupled joints "crba" or "aba_multipliers" where that costs less."""
    if not has_couplings(tree):
        return "aba"
    if max(depths(variable_parents(tree)), default=0) <= MAX_CRBA_DEPTH:
        return "crba"
    largest = max(len(cluster.variables) for cluster in clusters_of(tree))
    return (
        "aba_multipliers"
        if largest >= MIN_MULTIPLIER_CLUSTER and not _has_massless_followers(tree)
        else "aba"
    )


def _has_massless_followers(tree: Tree) -> bool:
    """Return whether a dependent joint moves nothing with inertia, which multipliers need."""
    carries = [not all(is_zero(x) for x in (*body.inertia.leaves(), *body.armature)) for body in tree.bodies]
    for body in reversed(tree.bodies):
        if body.parent >= 0 and carries[body.index]:
            carries[body.parent] = True
    return any(body.dependence is not None and not carries[body.index] for body in tree.bodies)
