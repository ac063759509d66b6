"""The binding of the values of a call to the arrays of a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dalembert.compiler.lowering import Recipe
from dalembert.errors import ArgumentError, DtypeError, UnknownNameError

__all__ = ["bind"]


def bind(
    recipe: Recipe,
    args: Sequence[object],
    named: Mapping[str, object],
    parameters: Mapping[str, object] | None,
) -> list[object]:
    """Return the values of the arguments, given by place or by name, and then of the run-time parameters."""
    return [*_arguments(recipe, args, named), *_parameters(recipe, parameters)]


def _arguments(recipe: Recipe, args: Sequence[object], named: Mapping[str, object]) -> list[object]:
    names = [item.name for item in recipe.signature]
    if len(args) == len(names) and not named:
        return list(args)
    if len(args) > len(names):
        raise ArgumentError(f"{recipe.name} takes {len(names)} arrays ({', '.join(names)}), got {len(args)}")
    given = dict(zip(names, args, strict=False))
    for name, value in named.items():
        if name not in names:
            raise UnknownNameError.of(f"argument of {recipe.name}", name, names)
        if name in given:
            raise ArgumentError(f"{recipe.name} got {name} twice, by place and by name")
        given[name] = value
    missing = [name for name in names if name not in given]
    if missing:
        raise ArgumentError(f"{recipe.name} needs {', '.join(missing)}; its arguments are {', '.join(names)}")
    return [given[name] for name in names]


def _parameters(recipe: Recipe, parameters: Mapping[str, object] | None) -> list[object]:
    """Return the given values, and the model's own for the rest."""
    if not recipe.parameters and not parameters:
        return []
    known = [item.name for item in recipe.parameters]
    if parameters is not None and not isinstance(parameters, Mapping):
        raise DtypeError(
            f"{recipe.name}: parameters are values by name, {{name: value}}, got {type(parameters).__name__}"
        )
    given = dict(parameters or {})
    for name in given:
        if name not in known:
            raise UnknownNameError.of(f"run-time parameter of {recipe.name}", name, known)
    return [given[name] if name in given else recipe.model.value(name) for name in known]
