"""The constraint equations K(q) a = k(q, v) of a whole system (Featherstone 2008 Eqs 8.4, 8.16, 8.21)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.constraints.explicit import closure_rows, original_model
from dalembert.algorithms.constraints.loop_rows import LoopRows, loop_rows
from dalembert.algorithms.constraints.user_rows import UserRows, user_rows
from dalembert.algorithms.stabilization import Stabilization, stabilized_row
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["ConstraintEquations", "constraint_equations", "stabilized"]


class ConstraintEquations(NamedTuple):
    """K a = k, row by row: loop joints in order, then user constraints; `names`: whose row it is.

    `K` (nc, nv); `k` (nc); `velocity_error` = K v minus what is prescribed, zero in a motion that keeps the
    constraints; `position_error` = delta of Table 8.1 or the residual, zero for constraints of velocity.
    """

    K: list[list[Scalar]]
    k: list[Scalar]
    velocity_error: list[Scalar]
    position_error: list[Scalar]
    names: tuple[str, ...]


def constraint_equations(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    *,
    time: Scalar | None = None,
    coordinates: str = "nearby",
) -> ConstraintEquations:
    """Return K(q) a = k(q, v), without stabilisation; Featherstone 2008 Eqs 8.14 to 8.20 and Table 8.4.

    A loop closure q = gamma(y) beside loops or user constraints solves them and adds no rows; alone it is the
    constraint. `coordinates`: where loops are computed, "nearby" or "base"; see `loop_rows`.
    """
    model = original_model(tree)
    parts: list[tuple[str, LoopRows | UserRows]] = [
        (loop.name, loop_rows(tree, loop, q, v, time=time, coordinates=coordinates)) for loop in tree.loops
    ]
    parts += [(item.name, user_rows(model, item, q, v, time)) for item in tree.constraints]
    if tree.closure is not None and not parts:
        parts.append(("loop closure", closure_rows(tree, q, v, time)))
    return ConstraintEquations(
        [row for _, part in parts for row in part.K],
        [x for _, part in parts for x in part.k],
        [x for _, part in parts for x in part.velocity_error],
        [x for _, part in parts for x in part.position_error],
        tuple(name for name, part in parts for _ in part.k),
    )


def stabilized(equations: ConstraintEquations, stabilization: Stabilization) -> list[Scalar]:
    """Return k + k_stab = k - 2 alpha K v - beta^2 delta, alpha = beta = 1 / T_stab (Eqs 8.21 and 8.22).

    An error then decays like (1 + t/T) exp(-t/T). T_stab [s]: about the time between two pictures that
    would not miss anything of the motion; 0.1 s for a large robot. A factor of two changes little. What else
    `stabilization` may be is in the module of that name.
    """
    return [
        stabilized_row(k, e_v, e_p, stabilization)
        for k, e_v, e_p in zip(equations.k, equations.velocity_error, equations.position_error, strict=True)
    ]
