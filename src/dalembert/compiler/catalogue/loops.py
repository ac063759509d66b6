"""Loop joints and other constraints."""

from __future__ import annotations

from typing import Any, Final

from dalembert.algorithms.constraints import closing_equations, constraint_equations
from dalembert.algorithms.loops import constraint_forces, loop_forces
from dalembert.compiler.catalogue.entry import LibraryFunction
from dalembert.model.tree import Tree

__all__ = ["LOOPS"]


def _jacobian(tree: Tree, q: Any, *, time: Any = None) -> Any:
    return constraint_equations(tree, q, [0.0] * tree.nv, time=time).K


def _bias(tree: Tree, q: Any, v: Any, *, time: Any = None) -> Any:
    return constraint_equations(tree, q, v, time=time).k


def _error(tree: Tree, q: Any, *, time: Any = None) -> Any:
    return constraint_equations(tree, q, [0.0] * tree.nv, time=time).position_error


def _velocity(tree: Tree, q: Any, *, time: Any = None) -> Any:
    """Return K and the velocity error at rest, for which K v + error must vanish."""
    equations = constraint_equations(tree, q, [0.0] * tree.nv, time=time)
    return equations.K, equations.velocity_error


LOOPS: Final[dict[str, LibraryFunction]] = {
    "constraint_jacobian": LibraryFunction({"nearby": _jacobian}, ("q",), frame_free=True),
    "constraint_bias": LibraryFunction({"nearby": _bias}, ("q", "v"), frame_free=True),
    "constraint_error": LibraryFunction({"nearby": _error}, ("q",), frame_free=True),
    "constraint_velocity": LibraryFunction({"nearby": _velocity}, ("q",), frame_free=True),
    "constraint_forces": LibraryFunction({"shortest": constraint_forces}, ("q", "v", "tau"), frame_free=True),
    "loop_forces": LibraryFunction({"shortest": loop_forces}, ("q", "v", "tau"), frame_free=True),
    "closing_equations": LibraryFunction(
        {"nearby": lambda tree, q, *, time=None: tuple(closing_equations(tree, q, time=time))},
        ("q",),
        frame_free=True,
    ),
}
