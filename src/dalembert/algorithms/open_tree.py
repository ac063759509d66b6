"""What an algorithm asks of a tree before it starts: no loop joints, and whether coordinates are coupled."""

from __future__ import annotations

from dalembert.errors import ModelError
from dalembert.model.model import Model
from dalembert.model.tree import Tree

__all__ = ["has_couplings", "require_open_tree"]


def require_open_tree(tree: Tree, function: str) -> None:
    """Refuse a model with loop joints, whose constraint forces a tree algorithm would leave out."""
    if isinstance(tree, Model) and len(tree.loops) > 0:
        names = ", ".join(f'"{loop.name}"' for loop in tree.loops)
        raise ModelError(
            f"{function}: the model closes loops ({names}), and this algorithm is for trees; "
            "use model.tree() for the spanning tree without its loop joints"
        )


def has_couplings(tree: Tree) -> bool:
    """Whether some joints follow others (mimic, gears), so that v holds independent coordinates only."""
    return any(body.dependence is not None for body in tree.bodies)
