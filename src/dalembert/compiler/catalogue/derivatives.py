"""Derivatives of the dynamics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dalembert.algorithms import constrained_derivatives, derivatives
from dalembert.algorithms.open_tree import is_constrained
from dalembert.compiler.catalogue.entry import LibraryFunction, textbook
from dalembert.compiler.catalogue.refusals import (
    CAN_BE_PRESCRIBED,
    HAS_INVERSE,
    KEEPS_CONSTRAINTS,
    WITHIN_REACH,
)
from dalembert.model.tree import Tree

__all__ = ["DERIVATIVES"]


def _square(algorithm: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an algorithm whose results are all (nv, nv), so that they have this shape also for nv = 0."""

    def call(*args: Any, **options: Any) -> Any:
        return tuple(matrix or np.zeros((0, 0)) for matrix in algorithm(*args, **options))

    return call


def _inverse(tree: Tree, *args: Any, **options: Any) -> Any:
    if is_constrained(tree):
        return constrained_derivatives.directional_inverse_dynamics_derivatives(tree, *args, **options)
    return derivatives.inverse_dynamics_derivatives(tree, *args, **options)


def _forward(tree: Tree, *args: Any, **options: Any) -> Any:
    if is_constrained(tree):
        return constrained_derivatives.constrained_forward_dynamics_derivatives(tree, *args, **options)
    options.pop("stabilization", None)  # of constraints alone
    return derivatives.forward_dynamics_derivatives(tree, *args, **options)


DERIVATIVES: Final[dict[str, LibraryFunction]] = {
    "inverse_dynamics_derivatives": LibraryFunction(
        {
            "spatial": _square(derivatives.inverse_dynamics_derivatives),
            "directional": _square(constrained_derivatives.directional_inverse_dynamics_derivatives),
            "guenter_rose": _square(textbook("inverse_dynamics_partials")),
        },
        ("q", "v", "a"),
        frame_free=True,
        automatic=_square(_inverse),
        preconditions=(KEEPS_CONSTRAINTS, WITHIN_REACH),
    ),
    "forward_dynamics_derivatives": LibraryFunction(
        {
            "spatial": _square(derivatives.forward_dynamics_derivatives),
            "implicit": _square(constrained_derivatives.constrained_forward_dynamics_derivatives),
            "directional": _square(constrained_derivatives.directional_forward_dynamics_derivatives),
        },
        ("q", "v", "tau"),
        frame_free=True,
        automatic=_square(_forward),
        preconditions=HAS_INVERSE,
    ),
    "hybrid_dynamics_derivatives": LibraryFunction(
        {"spatial": _square(constrained_derivatives.hybrid_dynamics_derivatives)},
        ("q", "v", "tau", "a"),
        frame_free=True,
        preconditions=(CAN_BE_PRESCRIBED, *HAS_INVERSE),
    ),
}
