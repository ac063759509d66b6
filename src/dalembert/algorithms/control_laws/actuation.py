"""Motor forces for a wanted acceleration, and the preconditions of control laws on a model."""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.algorithms.aligned import AlignedTree
from dalembert.algorithms.inverse_dynamics import inverse_dynamics
from dalembert.algorithms.loops import is_constrained
from dalembert.errors import ModelError
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar

__all__ = ["commanded_forces", "require_actuation"]


def commanded_forces(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    *,
    law: str,
    time: Scalar | None = None,
) -> list[Scalar]:
    """Return tau `(nv,)` = M a + b, the last step of every law of this package.

    In a model with loops or other constraints the joints in `model.actuated` alone have forces; they must be
    able to produce every motion that the constraints allow.
    """
    if not is_constrained(tree):
        require_actuation(tree, law)
    return inverse_dynamics(tree, q, v, a, time=time)


def require_actuation(tree: Tree, law: str) -> None:
    """Refuse a tree with joints that have no motor: the law needs a force at every joint."""
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
