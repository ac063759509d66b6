"""The residual of the constraints of a configuration, in a form without spurious roots.

delta of Table 8.1 is made for small errors: its sines vanish at half a turn as well. Here the error of a loop
joint is the whole displacement from where its successor ought to be, at `position_of`, to where it is,

    d = (log(R_err), R_err^T p_err),     X_err = X_J(q_J)^-1 X,     residual = T^T d

which agrees with delta to first order and vanishes, all of d, only where the loop is closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.constraints.explicit import closure_rows, original_model
from dalembert.algorithms.constraints.loop_rows import loop_rows
from dalembert.algorithms.constraints.user_rows import user_rows
from dalembert.model.elements import Loop
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Motion, Transform
from dalembert.spatial.exponential import so3_log

__all__ = ["ClosingEquations", "closing_equations"]


class ClosingEquations(NamedTuple):
    """residual (n) and its Jacobian K (n, nv), to first order, of all constraints of position; `gap`: numbers
    that are all zero where the constraints hold, and only there.
    """

    residual: list[Scalar]
    K: list[list[Scalar]]
    gap: list[Scalar]


def closing_equations(tree: Tree, q: Sequence[Scalar], *, time: Scalar | None = None) -> ClosingEquations:
    """Return the equations K dq = -residual of a Gauss-Newton step toward closed loops."""
    at_rest: list[Scalar] = [0.0] * tree.nv
    residual: list[Scalar] = []
    K: list[list[Scalar]] = []
    gap: list[Scalar] = []
    for loop in tree.loops:
        rows = loop_rows(tree, loop, q, at_rest, time=time)
        d = _displacement(loop, rows.X, time)
        residual += [d.dot(force) for force in rows.T]
        K += rows.K
        gap += d.to_list() if rows.T else []
    user = [
        user_rows(original_model(tree), item, q, at_rest, time)
        for item in tree.constraints
        if item.kind == "position"
    ]
    if tree.closure is not None and not tree.loops and not tree.constraints:
        user.append(closure_rows(tree, q, at_rest, time))
    for part in user:
        residual += part.position_error
        K += part.K
        gap += part.position_error
    return ClosingEquations(residual, K, gap)


def _displacement(loop: Loop, X: Transform, time: Scalar | None) -> Motion:
    """Return d, in successor coordinates."""
    X_J = loop.joint.transform(loop.joint.position_of(X, time), time).as_transform()
    error = X_J.inverse() @ X
    return Motion(so3_log(error.R), error.R.transposed_times(error.p))
