"""What a control law asks of a model."""

from __future__ import annotations

from dalembert.algorithms.aligned import AlignedTree
from dalembert.errors import ModelError
from dalembert.model.model import Model
from dalembert.model.tree import Tree

__all__ = ["require_actuation"]


def require_actuation(tree: Tree, law: str) -> None:
    """Refuse a model with joints that have no motor: the law would need a force at every joint."""
    model = tree.original if isinstance(tree, AlignedTree) else tree
    if not isinstance(model, Model):
        return
    driven = set(model.actuated)
    idle = [body.joint_name for body in model.bodies if body.nv and body.joint_name not in driven]
    if idle:
        names = ", ".join(f'"{name}"' for name in idle)
        raise ModelError(
            f"{law}: joints {names} are not in model.actuated, and this law commands a force at every joint; "
            "lock them with model.lock, or actuate them with builder.set_actuated"
        )
