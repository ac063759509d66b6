"""Preconditions of algorithms for trees: no loops, mass on every moving body, independent coordinates."""

from __future__ import annotations

from collections.abc import Collection

from dalembert.errors import ModelError
from dalembert.model.tree import Tree
from dalembert.scalar import is_zero

__all__ = [
    "has_couplings",
    "is_constrained",
    "require_moving_mass",
    "require_open_tree",
    "require_regular_inertia",
]


def is_constrained(tree: Tree) -> bool:
    """Return whether loop joints, users' constraints or an explicit constraint bind the coordinates."""
    return bool(tree.loop_names) or bool(tree.constraints) or tree.closure is not None


def require_open_tree(tree: Tree, function: str) -> None:
    """Refuse a model with constraints, whose forces a tree algorithm would leave out."""
    if tree.loop_names:
        names = ", ".join(f'"{name}"' for name in tree.loop_names)
        raise ModelError(
            f"{function}: the model has loops or other constraints ({names}), and this algorithm is for "
            "trees; use model.tree() for the spanning tree without them"
        )


def require_moving_mass(tree: Tree, function: str) -> None:
    """Refuse a joint that moves nothing with inertia at any q: forces on it have no finite acceleration."""
    empty = [
        all(is_zero(number) for number in body.inertia.leaves())
        and any(is_zero(armature) for armature in body.armature)
        for body in tree.bodies
    ]
    for body in reversed(tree.bodies):
        if not empty[body.index] and body.parent >= 0:
            empty[body.parent] = False
    for body in tree.bodies:
        if empty[body.index] and body.nv > 0 and body.dependence is None:
            raise ModelError(
                f'{function}: joint "{body.joint_name}" moves body "{body.name}", which has no mass and '
                "carries none, so that its acceleration is undefined; give the body an inertia or the joint "
                "an armature, or lock the joint with model.lock"
            )
    require_regular_inertia(tree, function)


def require_regular_inertia(tree: Tree, function: str, prescribed: Collection[str] = ()) -> None:
    """Refuse a tree whose mass matrix is singular at every q, without the rows of the prescribed joints."""
    from dalembert.algorithms.moving_inertia import joint_without_inertia  # which needs M, and this module

    lost = joint_without_inertia(tree, prescribed)
    if lost is not None:
        raise ModelError(
            f'{function}: joint "{lost.joint_name}" has a freedom along which nothing with inertia moves: '
            "the mass matrix is singular at every q; give what the joint carries mass and moments of inertia "
            "or the joint an armature, or lock the joint with model.lock"
        )


def has_couplings(tree: Tree) -> bool:
    """Return whether some joints follow others (mimic, gears), so that v holds independent variables."""
    return any(body.dependence is not None for body in tree.bodies)
