"""Couplings as constraints with multipliers, for methods of forward dynamics without couplings.

On the model with all coordinates a coupling is a row of N a = 0 with constant N. Any method FD solves for the
accelerations of that model, linearly in the forces:

    a_0 = FD(tau_full),   W = FD(tau_full + N^T) - a_0               tau at independent joints, zero elsewhere
    N W mu = -N a_0,      a = a_0 + W mu                              one call for each coupling and one more
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from dalembert.algorithms.aligned import AlignedTree, aligned
from dalembert.algorithms.dense import Vector, dot
from dalembert.algorithms.open_tree import has_couplings
from dalembert.algorithms.small_solve import factor
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["with_couplings"]


def with_couplings(method: Callable[..., Vector]) -> Callable[..., Vector]:
    """Extend a method of forward dynamics, `method(tree, q, v, tau, **options)`, to models with couplings."""

    @functools.wraps(method)
    def run(
        tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], tau: Sequence[Scalar], **options: Any
    ) -> Vector:
        if not has_couplings(tree):
            return method(tree, q, v, tau, **options)
        model = _model(tree)
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


def _model(tree: Tree) -> Model:
    model = tree.original if isinstance(tree, AlignedTree) else tree
    assert isinstance(model, Model)
    return model


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
