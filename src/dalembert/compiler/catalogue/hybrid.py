"""Hybrid dynamics and floating bases."""

from __future__ import annotations

import functools
from typing import Any, Final

from dalembert.algorithms import floating_base, hybrid
from dalembert.compiler.catalogue.entry import LibraryFunction
from dalembert.compiler.catalogue.refusals import CAN_BE_PRESCRIBED, HAS_INVERSE
from dalembert.model.model import Model
from dalembert.model.tree import Tree

__all__ = ["HYBRID"]


def _joint_count(model: Model) -> tuple[int, ...]:
    """Return the number of joint variables of a floating-base system, without the six of its base."""
    floating_base.floating_base(model, "floating_base_inverse_dynamics")
    return (model.nv - 6,)


def _equations(tree: Tree, q: Any, v: Any, *, time: Any = None, **forces: Any) -> tuple[Any, ...]:
    I_0, F, H = floating_base.floating_base_inertia(tree, q, time=time)
    p_0, C = floating_base.floating_base_bias(tree, q, v, time=time, **forces)
    columns = [f.to_list() for f in F]
    return I_0.matrix(), [[column[r] for column in columns] for r in range(6)], H, p_0.to_list(), C


HYBRID: Final[dict[str, LibraryFunction]] = {
    "hybrid_dynamics": LibraryFunction(
        {
            method: functools.partial(hybrid.hybrid_dynamics, method=method)
            for method in ("articulated", "matrix")
        },
        ("q", "v", "tau", "a"),
        frame_free=True,
        shapes={"stabilization": lambda model: ()},
        preconditions=(CAN_BE_PRESCRIBED, *HAS_INVERSE),
    ),
    "floating_base_inverse_dynamics": LibraryFunction(
        {
            "forces": floating_base.floating_base_inverse_dynamics,
            "acceleration": functools.partial(
                floating_base.floating_base_inverse_dynamics, gravity="acceleration"
            ),
        },
        ("q", "v", "a_joints"),
        frame_free=True,
        shapes={"a_joints": _joint_count},
    ),
    "floating_base_equations": LibraryFunction({"composite": _equations}, ("q", "v"), frame_free=True),
    "floating_base_jacobian": LibraryFunction({"tree": floating_base.floating_base_jacobian}, ("q",)),
}
