"""The precondition of T = v^T M v / 2 in Lagrange's equations: joints that do not depend on time."""

from __future__ import annotations

from dalembert.errors import ModelError
from dalembert.model.tree import Tree

__all__ = ["require_scleronomic"]


def require_scleronomic(tree: Tree, function: str) -> None:
    """Refuse rheonomic joints, whose velocity does not vanish with v: V = J v would leave it out."""
    for body in tree.bodies:
        if body.joint.time_dependent:
            raise ModelError(
                f'{function}: joint "{body.joint_name}" depends on time, and this formulation has V = J v; '
                "use another method, such as the default"
            )
