"""Forward dynamics of systems with constraints, by any of the methods of Featherstone 2008 chapter 8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

from dalembert.algorithms.external_forces import Conditions
from dalembert.algorithms.loops.closure import accelerations_by_closure
from dalembert.algorithms.loops.direct import accelerations_by_elimination
from dalembert.algorithms.loops.maximal import accelerations_by_maximal_coordinates
from dalembert.algorithms.loops.null_space import accelerations_by_null_space
from dalembert.algorithms.loops.range_space import accelerations_by_range_space
from dalembert.algorithms.loops.sparse_elimination import accelerations_by_sparse_elimination
from dalembert.algorithms.open_tree import require_moving_mass
from dalembert.errors import ModelError, require_choice
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["ANY_CONNECTIVITY", "METHODS", "constrained_forward_dynamics"]

METHODS: dict[str, Callable[..., list[Scalar]]] = {
    "range_space": accelerations_by_range_space,
    "direct": accelerations_by_elimination,
    "null_space": accelerations_by_null_space,
    "loop_closure": accelerations_by_closure,
    "sparse": accelerations_by_sparse_elimination,
    "maximal": accelerations_by_maximal_coordinates,
}
"""Every method for the accelerations of a constrained system, by its name."""

ANY_CONNECTIVITY = ("sparse", "maximal")
"""The methods without a spanning tree, which also accept trees."""

MAX_RANGE_SPACE_ROWS = 50
"""Rows of K up to which "range_space" takes less time than maximal coordinates; measured on ladders."""

METHODS_THAT_NEED_MASS = ("range_space", "sparse", "maximal")
"""The methods that divide by inertias before they apply the constraints."""


def constrained_forward_dynamics(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    *,
    method: str | None = None,
    **options: Unpack[Conditions],
) -> list[Scalar]:
    """Solve M(q) a + b(q, v) = tau + external + K^T lambda, K a = k for a `(nv,)`.

    `method`: a name of `METHODS`; by default "loop_closure" where the model has q = gamma(y), "null_space"
    where joints move massless bodies that only the constraints hold, "sparse" where loops are many, else
    "range_space". `stabilization`: T_stab [s] (Eq. 8.22), without it errors drift.
    """
    chosen = method or _default(tree)
    require_choice("method of forward_dynamics for a model with constraints", chosen, METHODS)
    if chosen in METHODS_THAT_NEED_MASS:
        require_moving_mass(tree, f'forward_dynamics with method="{chosen}"')
    return METHODS[chosen](tree, q, v, tau, **options)


def _default(tree: Tree) -> str:
    if tree.closure is not None:
        return "loop_closure"
    try:
        require_moving_mass(tree, "forward_dynamics")
    except ModelError:
        return "null_space"
    rows = sum(6 - loop.joint.nv for loop in tree.loops)
    return "range_space" if rows <= MAX_RANGE_SPACE_ROWS else "sparse"
