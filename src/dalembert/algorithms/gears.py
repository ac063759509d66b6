"""Gears and couplings: joints that move together, eliminated together (Featherstone 2008 section 9.6)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from dalembert.algorithms.aligned import AlignedTree, aligned, original_model
from dalembert.algorithms.clusters import clusters_of
from dalembert.algorithms.dense import (
    Matrix,
    Vector,
    dot,
    factor,
    product,
    symmetric_product,
    times,
    transpose,
)
from dalembert.algorithms.open_tree import has_couplings, variable_parents
from dalembert.algorithms.sparse import depths
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, Scalars, is_zero

# The choice of the cheapest method of forward dynamics for coupled joints.
#
# Counted multiplications and additions, with gears between neighbours or from one end of a chain to the
# other:
#
#                                       clusters ("aba")   "crba"   "aba_multipliers"
#     six-joint arm, a rotor a joint        1,203             978         2,337
#     hand, four fingers, 15 bodies         3,259           3,055         5,563
#     GU(8), last two joints                2,564           2,480         3,353
#     GU(12), last two joints               4,204           5,034         5,417
#     GU(12), from end to end               6,799           5,034         5,371
#     GU(20), from end to end              16,267          13,102         9,499
#     humanoid with that hand              12,866          27,611             -
#
# The matrix is cheaper in shallow trees; elimination by clusters is linear in the number of bodies while
# clusters stay small, and cubic in the variables of a large one, where multipliers are better.

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
    large = largest >= MIN_MULTIPLIER_CLUSTER and not _has_massless_followers(tree)
    return "aba_multipliers" if large else "aba"


def _has_massless_followers(tree: Tree) -> bool:
    """Return whether a dependent joint moves nothing with inertia, which multipliers need."""
    carries = [not all(is_zero(x) for x in (*body.inertia.leaves(), *body.armature)) for body in tree.bodies]
    for body in reversed(tree.bodies):
        if body.parent >= 0 and carries[body.index]:
            carries[body.parent] = True
    return any(body.dependence is not None and not carries[body.index] for body in tree.bodies)


# The equation of motion of a geared tree from that of the tree without gears (Featherstone 2008 §9.6).
#
#     q = gamma(y),   v = G y',   a = G y'' + g                                           (8.56 to 8.60)
#     G^T H G y'' + G^T (C + H g) = G^T tau                                                        (9.26)
#
# G has few nonzero entries, many of them ones; zeros and ones that are literals cost nothing. `mass_matrix`
# does the same block by block; these functions are for G and g of any origin, such as nonlinear gears.


def geared_matrix(H: Sequence[Scalars], G: Sequence[Scalars]) -> Matrix:
    """Return G^T H G for symmetric H `(n, n)` and G `(n, m)`."""
    return symmetric_product(transpose(G), transpose(product(H, G)))


def gear_equations(
    H: Sequence[Scalars], C: Scalars, tau: Scalars, G: Sequence[Scalars], g: Scalars
) -> tuple[Matrix, list[Scalar]]:
    """Return (G^T H G, G^T (tau - C - H g)): the matrix and right-hand side of Eq. 9.26 for y''."""
    rest = [t - c - h for t, c, h in zip(tau, C, times(H, g), strict=True)]
    return geared_matrix(H, G), times(transpose(G), rest)


# Couplings as constraints with multipliers, for methods of forward dynamics without couplings.
#
# On the model with all coordinates a coupling is a row of N a = 0 with constant N. Any method FD solves for
# the accelerations of that model, linearly in the forces:
#
#   a_0 = FD(tau_full),   W = FD(tau_full + N^T) - a_0               tau at independent joints, zero elsewhere
#   N W mu = -N a_0,      a = a_0 + W mu                              one call for each coupling and one more


def with_couplings(method: Callable[..., Vector]) -> Callable[..., Vector]:
    """Extend a method of forward dynamics, `method(tree, q, v, tau, **options)`, to models with couplings."""

    @functools.wraps(method)
    def run(tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **options: Any) -> Vector:
        if not has_couplings(tree):
            return method(tree, q, v, tau, **options)
        model = original_model(tree)
        loose = model.uncoupled()
        frames = aligned(loose) if isinstance(tree, AlignedTree) else loose
        places = _independent_places(model)
        force: Vector = [0.0] * loose.nv
        for place, t in zip(places, tau, strict=True):
            force[place] = t

        def accelerations(force: Vector) -> Vector:
            return method(frames, model.expand_q(q), model.expand_v(v), force, **options)

        a = accelerations(force)
        N = _rows(model, places)
        W = []
        for row in N:
            pushed = accelerations([f + n for f, n in zip(force, row, strict=True)])
            W.append([x - y for x, y in zip(pushed, a, strict=True)])
        mu = factor([[dot(row, w) for w in W] for row in N]).solve([-dot(row, a) for row in N])
        for w, m in zip(W, mu, strict=True):
            a = [x + w_k * m for x, w_k in zip(a, w, strict=True)]
        return [a[place] for place in places]

    return run


def _independent_places(model: Model) -> list[int]:
    """Return the index of each entry of the model's v in the v of all joints."""
    places, start = [0] * model.nv, 0
    for body in model.bodies:
        if body.dependence is None:
            for k in range(body.nv):
                places[body.v_slice.start + k] = start + k
        start += body.nv
    return places


def _rows(model: Model, places: Sequence[int]) -> list[list[float]]:
    """Return N of v_d - sum of ratio v_j = 0, a row for each dependent joint d."""
    rows, start = [], 0
    for body in model.bodies:
        if body.dependence is not None:
            row = [0.0] * len(model.expansion()[1])
            row[start] = 1.0
            for _, place, ratio in body.dependence.terms:
                row[places[place]] -= ratio
            rows.append(row)
        start += body.nv
    return rows
