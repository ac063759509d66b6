"""What an entry of the conformance list is, and how algorithms and public functions become one.

An entry becomes a `Recipe`, whose function takes lists of scalars of any kind; the kinds of arithmetic
(`backends.py`) run that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dalembert import algorithms as al
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.library import argument_shape, library_recipe
from dalembert.compiler.lowering import Recipe
from dalembert.model.model import Model
from dalembert.spatial import Vec3
from dalembert.spatial.value import leaves

POINT = Vec3(0.11, -0.23, 0.37)


@dataclass(frozen=True)
class Enrolled:
    """Something to compute: `recipe(model)`; `covers` are the names of the functions that it exercises."""

    name: str
    covers: frozenset[str]
    recipe: Callable[[Model], Recipe]
    broad: bool = False
    """Whether it is compiled on the tree of every joint type too; not where LLVM would take seconds."""
    models: tuple[str, ...] = ()
    """Models of `models.py` to use instead of the usual trees, for functions of loops, free roots …"""


def algorithm(
    covers: str,
    arguments: str,
    function: Callable[..., Any],
    *,
    suffix: str = "",
    package: str = "",
    models: tuple[str, ...] = (),
) -> Enrolled:
    """An algorithm of `dalembert.algorithms` or a package of it, its result as one flat list of scalars."""
    prefix = f"algorithms.{package}." if package else "algorithms."

    def recipe(model: Model) -> Recipe:
        shapes = [(name, argument_shape(model, name)) for name in arguments.split()]
        return Recipe(
            name=covers.split()[0],
            function=lambda *args: flat(function(*args)),
            model=model,
            arguments=tuple(ArrayArgument(name, shape) for name, shape in shapes if shape is not None),
        )

    names = frozenset(f"{package}.{name}" if package else name for name in covers.split())
    return Enrolled(f"{prefix}{covers.split()[0]}{suffix}", names, recipe, models=models)


def public(
    name: str,
    *,
    method: str | None = None,
    arrays: tuple[str, ...] = (),
    broad: bool = True,
    models: tuple[str, ...] = (),
    **options: Any,
) -> Enrolled:
    """A public function, by the recipe that its first call compiles; `where`: the last body."""

    def recipe(model: Model) -> Recipe:
        static = {key: model.bodies[-1].name if key == "where" else value for key, value in options.items()}
        return library_recipe(model, name, method, arrays=arrays, options=tuple(static.items()))

    details = [method, *arrays, *(str(value) for key, value in options.items() if key != "where")]
    label = "-".join(str(item) for item in details if item)
    return Enrolled(f"da.{name}{'-' if label else ''}{label}", frozenset([name]), recipe, broad, models)


def flat(value: Any) -> list[Any]:
    """All scalars of a result, whatever its structure."""
    if isinstance(value, al.JointElimination):
        return [*flat(value.K), *flat(value.I_a)]
    if hasattr(value, "_values"):  # PerBody
        value = list(value)
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flat(item)]
    return leaves(value)
