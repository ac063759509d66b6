"""The places of joint variables in v, and the branch-induced zeros of a tree's joint-space inertia matrix."""

from __future__ import annotations

from dalembert.algorithms.open_tree import has_couplings
from dalembert.algorithms.sparse import depths, expanded_parents
from dalembert.model.body import Body
from dalembert.model.tree import Tree

__all__ = ["matrix_density", "variable_parents", "velocity_places"]


def velocity_places(body: Body) -> list[list[tuple[int, float]]]:
    """Return for each velocity variable of a joint its places in v, each with a ratio (a row of G)."""
    if body.dependence is not None:
        return [[(place, ratio) for _, place, ratio in body.dependence.terms]]
    return [[(place, 1.0)] for place in range(body.v_slice.start, body.v_slice.stop)]


def variable_parents(tree: Tree) -> list[int]:
    """Return lambda' of the tree's velocity variables (Featherstone 2008 Table 6.4).

    Couplings connect variables of different branches. There lambda' is the elimination tree of G^T H G: the
    parent of a variable is the last one before it that it meets in the matrix or in the fill of its factors.
    """
    if not has_couplings(tree):
        return expanded_parents(tree.parents, [body.nv for body in tree.bodies])
    below: list[set[int]] = [set() for _ in range(tree.nv)]
    supporting: dict[int, set[int]] = {-1: set()}
    for body in tree.bodies:
        own = {place for row in velocity_places(body) for place, _ in row}
        supporting[body.index] = supporting[body.parent] | own
        for k in own:
            for j in supporting[body.index]:
                below[max(j, k)].add(min(j, k))
    lam = []
    for k in reversed(range(tree.nv)):
        parent = max(below[k] - {k}, default=-1)
        if parent >= 0:
            below[parent] |= below[k] - {k}
        lam.append(parent)
    return lam[::-1]


def matrix_density(tree: Tree) -> float:
    """Return rho, the fraction of structurally nonzero elements of M (§6.4); 1 for an unbranched chain."""
    lam = variable_parents(tree)
    n = len(lam)
    below = sum(d_k - 1 for d_k in depths(lam))
    return (n + 2 * below) / (n * n) if n else 1.0
